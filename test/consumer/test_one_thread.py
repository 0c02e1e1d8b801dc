"""That one thread at a time is inside a consumer."""

from __future__ import annotations

import threading

import pytest

from kafka.consumer.one_thread import OneThread
from kafka.errors import IllegalStateError


def in_thread(call):
    errors = []

    def run():
        try:
            call()
        except IllegalStateError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return errors


def test_calls_of_one_thread_may_nest():
    guard = OneThread()
    with guard, guard:
        assert repr(guard) == '<OneThread thread %d>' % threading.get_ident()
    assert repr(guard) == '<OneThread free>'


def test_another_thread_is_told_who_is_inside():
    guard = OneThread()

    def enter():
        with guard:
            pass

    with guard:
        with guard:
            pass
        (error,) = in_thread(enter)
    assert str(threading.get_ident()) in str(error)
    assert in_thread(enter) == []


def test_an_error_inside_lets_go():
    guard = OneThread()
    with pytest.raises(ZeroDivisionError), guard:
        1 / 0  # noqa: B018 - it is to raise
    with guard:
        pass
