"""Context managers that take a lock without waiting for ever.

Used by :mod:`kafka.producer.record_accumulator`: a thread that waits for its lock may hold a lock
of the program that the owner needs.

``lock.acquire()`` and remembering that it was taken are two steps, between which an exception can
be raised in a thread. Entering a ``with`` statement is one step as long as no code of Python runs
in it: so what is called here is made of built-in functions.
"""

from __future__ import annotations

from functools import partial
from itertools import repeat
from typing import Any, Callable, Dict

__all__ = ['LockBusyError', 'bounded', 'try_lock']


class LockBusyError(Exception):
    """Another thread has not released a lock in time."""


def try_lock(lock: Any) -> Any:
    """Return a context manager that takes a reentrant lock if no other thread has it.

    ``with`` gives True if it was taken. Where it gives False, the end of the block raises
    RuntimeError: to avoid that would cost a call of Python for each record.
    """
    return _context(lock, partial(lock.acquire, False))


def bounded(lock: Any, seconds: float, error: Callable[[], Exception]) -> Any:
    """Return a context manager that takes a reentrant lock, or raises an error after some time.

    Arguments: error: makes what is raised.
    """
    outcomes = map(lock.acquire, repeat(True), repeat(seconds))
    checked = map(_Outcomes(error).__getitem__, outcomes)
    return _context(lock, checked.__next__)


class _Outcomes(Dict[bool, bool]):
    """True for True; raises for everything else."""

    def __init__(self, error: Callable[[], Exception]) -> None:
        super().__init__({True: True})
        self._error = error

    def __missing__(self, key: bool) -> bool:
        raise self._error()


def _context(lock: Any, enter: Callable[[], bool]) -> Any:
    # A class of its own: `with` asks the class, and whatever is there is called with no object.
    methods = {
        '__slots__': (),
        '__enter__': staticmethod(enter),
        '__exit__': staticmethod(lock.__exit__),
    }
    return type('BoundedLock', (), methods)()
