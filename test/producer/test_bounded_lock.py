"""No lock is waited for longer than was said, and a `with` statement gives it back."""

from __future__ import annotations

import contextlib
import threading

import pytest

from kafka.producer.bounded_lock import LockBusyError, bounded, try_lock


@pytest.fixture
def lock():
    return threading.RLock()


@contextlib.contextmanager
def held(lock):
    """Have a lock in another thread."""
    has_it, may_end = threading.Event(), threading.Event()

    def hold():
        with lock:
            has_it.set()
            may_end.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    has_it.wait(30)
    try:
        yield
    finally:
        may_end.set()
        holder.join()


def test_a_free_lock_is_taken_and_released(lock):
    for entered in (try_lock(lock), bounded(lock, 0.01, LockBusyError)):
        for _ in range(2):
            with entered as is_held, entered:
                assert is_held and lock._is_owned()
            assert not lock._is_owned()
        with pytest.raises(KeyError), entered:
            raise KeyError
        assert not lock._is_owned()


def test_a_lock_that_another_thread_has_is_not_waited_for(lock):
    entered = try_lock(lock)
    with held(lock), pytest.raises(RuntimeError), entered as is_held:
        assert not is_held
    with entered as is_held:
        assert is_held


def test_a_lock_that_another_thread_keeps_raises_an_error_each_time(lock):
    entered = bounded(lock, 0.01, lambda: LockBusyError('busy'))
    for _ in range(2):
        with held(lock), pytest.raises(LockBusyError, match='busy'), entered:
            raise AssertionError
        with entered:
            pass
