"""That one thread at a time is inside a consumer."""

from __future__ import annotations

import itertools
import sys
import threading

import pytest

from kafka.consumer import one_thread
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


def test_it_is_known_whether_somebody_is_inside():
    guard = OneThread()
    assert not guard.is_used()
    with guard:
        assert guard.is_used()
    in_thread(guard.__enter__)  # as an exception may leave it
    assert repr(guard) != '<OneThread free>' and not guard.is_used()


def test_an_error_inside_lets_go():
    guard = OneThread()
    with pytest.raises(ZeroDivisionError), guard:
        1 / 0  # noqa: B018 - it is to raise
    with guard:
        pass


def stopped_at(number, guard):
    """Go in and out with Ctrl-C before so many steps of the guard; return whether it came."""
    steps = itertools.count(1)

    def trace(frame, event, argument):
        if frame.f_code.co_filename != one_thread.__file__:
            return None
        frame.f_trace_opcodes = True
        if event == 'opcode' and next(steps) == number:
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with guard:
            pass
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def test_ctrl_c_at_any_moment_does_not_keep_its_thread_out():
    """As from close() behind it."""
    for number in itertools.count(1):
        guard = OneThread()
        if not stopped_at(number, guard):
            break
        with guard:
            assert repr(guard) == '<OneThread thread %d>' % threading.get_ident()
    assert number > 20


def test_an_exception_at_any_moment_does_not_keep_other_threads_out():
    """A pool of threads may use a consumer in turn."""
    shared = OneThread()

    def enter():
        with shared:
            pass

    for number in itertools.count(1):
        if not stopped_at(number, shared):
            break
        assert in_thread(enter) == []
    assert number > 20


def test_a_second_greenlet_is_kept_out(monkeypatch):
    """gevent replaces get_ident() by one whose ids the interpreter does not know."""
    guard = OneThread()
    for ident in (-1, -2):
        monkeypatch.setattr(threading, 'get_ident', lambda ident=ident: ident)
        if ident == -1:
            guard.__enter__()
    with pytest.raises(IllegalStateError), guard:
        pass
