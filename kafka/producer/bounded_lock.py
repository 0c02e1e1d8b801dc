"""Context managers that acquire a lock with a time limit.

Used by :mod:`kafka.producer.record_accumulator`: a thread that waits for its lock may hold a lock
of the program that the owner needs.

Between ``lock.acquire()`` and the code that notes the result, an exception can be raised in the
thread. Entering a ``with`` statement is atomic as long as no Python code runs in it, so the methods
here consist of built-in functions only.
"""

from __future__ import annotations

from functools import partial
from itertools import repeat
from typing import Any, Callable, Dict

__all__ = ['LockBusyError', 'bounded', 'try_lock']


class LockBusyError(Exception):
    """Another thread has not released a lock in time."""


def try_lock(lock: Any) -> Any:
    """Return a context manager that acquires a reentrant lock unless another thread holds it.

    The value of ``with`` is True if the lock was acquired. If it is False, the end of the block
    raises RuntimeError: avoiding that would cost a Python call for each record.
    """
    return _context(lock, partial(lock.acquire, False))


def bounded(lock: Any, seconds: float, error: Callable[[], Exception]) -> Any:
    """Return a context manager that acquires a reentrant lock, or raises an error after a time.

    Arguments: seconds: the time limit; error: returns the exception to raise.
    """
    outcomes = map(lock.acquire, repeat(True), repeat(seconds))
    checked = map(_Outcomes(error).__getitem__, outcomes)
    return _context(lock, checked.__next__)


class _Outcomes(Dict[bool, bool]):
    """Maps True to True; raises the error for every other key."""

    def __init__(self, error: Callable[[], Exception]) -> None:
        super().__init__({True: True})
        self._error = error

    def __missing__(self, key: bool) -> bool:
        raise self._error()


def _context(lock: Any, enter: Callable[[], bool]) -> Any:
    # A class for each: `with` looks the methods up in the class, and static methods get no self.
    methods = {
        '__slots__': (),
        '__enter__': staticmethod(enter),
        '__exit__': staticmethod(lock.__exit__),
    }
    return type('BoundedLock', (), methods)()
