"""Functions that block, run in short threads of their own while the loop goes on.

Used for look-ups of names (resolver.py) and logins that ask a third party (connect.py). No locks: a
thread hands its result to the loop by one call.
"""

from __future__ import annotations

import sys
import threading
from typing import Any, Callable, Optional, TypeVar

from kafka.errors import IllegalStateError, KafkaConnectionError, KafkaTimeoutError
from kafka.net.loop.tasks import Scheduler, Waiter

__all__ = ['Executor', 'Work', 'started']

T = TypeVar('T')

#: Threads at once; there are more calls than that only where all of them hang.
MAX_THREADS = 16


def started(thread: threading.Thread) -> bool:
    """Start a thread; return False at the end of the program, when 3.12 starts none any more.

    Raises RuntimeError when there can be no more threads for another reason.
    """
    try:
        thread.start()
    except RuntimeError:
        # The main thread counts as ended before what is registered with atexit is called, which is
        # long before sys.is_finalizing().
        if threading.main_thread().is_alive() and not sys.is_finalizing():
            raise
        return False
    return True


class Executor:
    """Runs functions that block for one loop.

    Arguments: scheduler: of the loop; call_threadsafe: brings a call to the loop from any thread,
    and raises IllegalStateError after its end.

    Attributes: running: how many functions run, for the thread that runs the loop.
    """

    def __init__(self, scheduler: Scheduler, call_threadsafe: Callable[..., Any]) -> None:
        self._scheduler = scheduler
        self._call_threadsafe = call_threadsafe
        self.running = 0

    def __repr__(self) -> str:
        return '<Executor running=%d>' % self.running

    async def run(self, function: Callable[[], T], timeout: float, what: str) -> T:
        """Return what a function returns, or raise what it raises.

        Arguments: what: what it does, for errors.

        Raises KafkaTimeoutError after `timeout` seconds; the function goes on, and its result is
        dropped. Raises KafkaConnectionError when too many hang, or there can be no more threads.
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
            return function()  # at exit the caller has nothing else to do meanwhile
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
        except Exception as raised:  # raised again where the result is awaited
            error = raised
        try:
            self._call_threadsafe(self._take, answer, result, error)
        except IllegalStateError:  # closed meanwhile: no coroutine waits
            pass

    def _take(self, answer: Waiter[T], result: Any, error: Any) -> None:
        self.running -= 1
        if error is not None:
            answer.fail(error)
        else:
            answer.wake(result)


class Work:
    """A function in a thread of its own, for callers without a loop, which check or wait."""

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
        except Exception as raised:  # raised again by check()
            self._error = raised
        self._ended.set()

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""
        return self._ended.is_set()

    def wait(self, seconds: Optional[float]) -> bool:
        """Wait until it has ended; return True if it has. Arguments: seconds: None for no limit."""
        return self._ended.wait(seconds)

    def check(self) -> None:
        """Raise what the function raised."""
        if self._error is not None:
            raise self._error
