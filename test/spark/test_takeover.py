"""Which sessions have the JVM connector. What is taken over is shown by test_source.py."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kafka.spark.takeover import CONNECTOR, has_connector


def session(find):
    """A classic session, whose JVM looks a class up by a function."""

    def for_name(name, initialize, loader):
        assert (name, initialize, loader) == (CONNECTOR, False, 'loader')
        return find()

    thread = SimpleNamespace(getContextClassLoader=lambda: 'loader')
    return SimpleNamespace(
        _jvm=SimpleNamespace(
            Thread=SimpleNamespace(currentThread=lambda: thread),
            java=SimpleNamespace(lang=SimpleNamespace(Class=SimpleNamespace(forName=for_name))),
        )
    )


def fail(text):
    raise RuntimeError(text)


def test_a_session_that_finds_the_class_has_it():
    assert has_connector(session(lambda: 'class'))


def test_a_session_that_does_not_has_none():
    assert not has_connector(session(lambda: fail('java.lang.ClassNotFoundException: org...')))


def test_another_failure_is_told():
    with pytest.raises(RuntimeError, match='gone'):
        has_connector(session(lambda: fail('the JVM is gone')))


def test_connect_cannot_be_asked():
    assert not has_connector(SimpleNamespace())
