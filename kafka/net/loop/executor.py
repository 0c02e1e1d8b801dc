"""Blocking functions in short-lived threads, so that the loop does not block.

Used to resolve names (resolver.py) and for logins that contact a third party (connect.py). No
locks: a thread passes its result to the loop by one call.
"""

from __future__ import annotations

import sys
import threading
from typing import Any, Callable, Optional, TypeVar

from kafka.errors import IllegalStateError, KafkaConnectionError, KafkaTimeoutError
from kafka.net.loop.tasks import Scheduler, Waiter

__all__ = ['Executor', 'Work', 'started']

T = TypeVar('T')

#: Maximum number of threads. It is reached only if calls hang.
MAX_THREADS = 16


def started(thread: threading.Thread) -> bool:
    """Start a thread; return False at interpreter exit, when Python 3.12 refuses to start one.

    Raises RuntimeError if the thread cannot be started for another reason.
    """
    try:
        thread.start()
    except RuntimeError:
        # The main thread counts as ended before atexit functions are called, long before
        # sys.is_finalizing() is true.
        if threading.main_thread().is_alive() and not sys.is_finalizing():
            raise
        return False
    return True


class Executor:
    """Runs blocking functions for one loop.

    Arguments: scheduler: of the loop; call_threadsafe: schedules a call in the loop from any
    thread, and raises IllegalStateError after the loop was closed.

    Attributes: running: the number of running functions; only for the thread that runs the loop.
    """

    def __init__(self, scheduler: Scheduler, call_threadsafe: Callable[..., Any]) -> None:
        self._scheduler = scheduler
        self._call_threadsafe = call_threadsafe
        self.running = 0

    def __repr__(self) -> str:
        return '<Executor running=%d>' % self.running

    async def run(self, function: Callable[[], T], timeout: float, what: str) -> T:
        """Return the result of a function, or raise its error.

        Arguments: what: a description of the call for error texts.

        Raises KafkaTimeoutError after `timeout` seconds; the function keeps running, and its result
        is dropped. Raises KafkaConnectionError if MAX_THREADS calls hang, or the thread cannot be
        started.
        """
        if self.running >= MAX_THREADS:
            raise KafkaConnectionError('%d calls hang, %s has to wait' % (self.running, what))
        answer: Waiter[T] = Waiter()
        thread = threading.Thread(
            target=self._run, args=(function, answer), name='kafka-helper', daemon=True
        )
        try:
            has_started = started(thread)
        except RuntimeError as error:
            raise KafkaConnectionError('%s has no thread: %s' % (what, error)) from error
        if not has_started:
            return function()  # at interpreter exit the loop may block
        self.running += 1
        late = KafkaTimeoutError('%s took longer than %.3g seconds' % (what, timeout))
        timer = self._scheduler.call_later(timeout, answer.fail, late)
        try:
            return await answer
        finally:
            timer.cancel()

    def _run(self, function: Callable[[], T], answer: Waiter[T]) -> None:
        result, error = None, None
        try:
            result = function()
        except Exception as raised:  # re-raised where the result is awaited
            error = raised
        try:
            self._call_threadsafe(self._take, answer, result, error)
        except IllegalStateError:  # the loop was closed: no coroutine waits
            pass

    def _take(self, answer: Waiter[T], result: Any, error: Any) -> None:
        self.running -= 1
        if error is not None:
            answer.fail(error)
        else:
            answer.wake(result)


class Work:
    """A function in a separate thread, for callers without a loop."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._ended = threading.Event()
        self._error: Optional[Exception] = None
        thread = threading.Thread(
            target=self._run, args=(function,), name='kafka-helper', daemon=True
        )
        if not started(thread):
            self._run(function)

    def _run(self, function: Callable[[], Any]) -> None:
        try:
            function()
        except Exception as raised:  # re-raised by check()
            self._error = raised
        self._ended.set()

    @property
    def is_done(self) -> bool:
        """Whether the function has ended."""
        return self._ended.is_set()

    def wait(self, seconds: Optional[float]) -> bool:
        """Wait until the function has ended; return False if it has not after `seconds`.

        Arguments: seconds: None for no limit.
        """
        return self._ended.wait(seconds)

    def check(self) -> None:
        """Raise the exception of the function, if there was one."""
        if self._error is not None:
            raise self._error
