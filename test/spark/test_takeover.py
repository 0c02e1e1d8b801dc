"""Which sessions have the JVM connector; modes of writers. The rest is shown by test_source.py.

Queries in update mode are in test_update_mode.py.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kafka.spark.takeover import CONNECTOR, has_connector, take_over


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


# ------------------------------------------------------------ modes of batch writers


class DataFrameWriter:
    """Does with modes and formats what PySpark's does."""

    def __init__(self):
        self.has = {}

    def format(self, source):
        self.has['format'] = source
        return self

    def mode(self, saveMode):
        if saveMode is not None:
            self.has['mode'] = saveMode
        return self

    def save(self, format=None, mode=None):
        self.mode(mode)
        if format is not None:
            self.format(format)
        return self.has


@pytest.fixture
def writer(monkeypatch):
    cls = type('DataFrameWriter', (DataFrameWriter,), dict(vars(DataFrameWriter)))
    monkeypatch.setitem(take_over.__globals__, '_classes', lambda: [cls])
    take_over('kafka-py')
    return cls()


def test_a_writer_without_a_mode_appends(writer):
    assert writer.format('kafka').save() == {'format': 'kafka-py', 'mode': 'append'}


def test_a_format_that_save_is_given_appends_as_well(writer):
    assert writer.save(format='kafka') == {'format': 'kafka-py', 'mode': 'append'}


@pytest.mark.parametrize('named', [True, False])
def test_a_mode_that_was_named_stays(writer, named):
    writer.mode(saveMode='overwrite') if named else writer.mode('overwrite')
    assert writer.save(format='kafka') == {'format': 'kafka-py', 'mode': 'overwrite'}


@pytest.mark.parametrize('mode', ['error', 'errorifexists', 'ErrorIfExists', 'default'])
def test_the_default_mode_appends_when_it_is_named_too(writer, mode):
    """To the JVM connector it means Append; Spark refuses it for formats in Python."""
    appended = {'format': 'kafka-py', 'mode': 'append'}
    assert writer.format('kafka').mode(mode).save() == appended
    assert writer.mode('overwrite').mode(mode).format('kafka').save() == appended


def test_other_formats_are_left_alone(writer):
    writer.format('kafka').format('parquet').mode('error')
    assert writer.save() == {'format': 'parquet', 'mode': 'error'}


def test_other_formats_that_save_is_given_are_left_alone(writer):
    assert writer.save(format='parquet') == {'format': 'parquet'}
