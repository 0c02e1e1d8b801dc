"""Functions that block, run in threads of their own while the loop goes on.

Owns the threads and their limits. What is run: look-ups of names (resolver.py), and logins that ask
a third party (connect.py).
"""

from __future__ import annotations

import sys
import threading
from typing import Any, Callable, Optional, TypeVar

from kafka.errors import IllegalStateError, KafkaConnectionError, KafkaTimeoutError
from kafka.net.loop.tasks import Scheduler, Waiter

__all__ = ['Helpers', 'Work', 'started']

T = TypeVar('T')

#: So many at once; more than that run only where all hang.
MAX_HELPERS = 16


def started(thread: threading.Thread) -> bool:
    """Start a thread; False where the program is at its end, when 3.12 starts none any more.

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


class Helpers:
    """Runs functions for one loop.

    Arguments: loop: whose turns get the results.
    """

    def __init__(self, loop: Scheduler) -> None:
        self._loop: Any = loop
        self.running = 0

    async def run(self, function: Callable[[], T], timeout: float, what: str) -> T:
        """Return what a function returns, or raise what it raises.

        Arguments: what: it does, for errors.

        Raises KafkaTimeoutError after `timeout` seconds; the function goes on, and its result is
        dropped. Raises KafkaConnectionError when too many hang, or there can be no more threads.
        """
        if self.running >= MAX_HELPERS:
            raise KafkaConnectionError('%d calls hang, %s has to wait' % (self.running, what))
        answer: Waiter[T] = Waiter()
        thread = threading.Thread(
            target=self._help, args=(function, answer), name='kafka-helper', daemon=True
        )
        try:
            has_started = started(thread)
        except RuntimeError as error:
            raise KafkaConnectionError('%s has no thread: %s' % (what, error)) from error
        if not has_started:
            return function()  # whoever flushes at exit has nothing else to do meanwhile
        self.running += 1
        late = KafkaTimeoutError('%s took longer than %.3g seconds' % (what, timeout))
        timer = self._loop.call_later(timeout, answer.fail, late)
        try:
            return await answer
        finally:
            timer.cancel()

    def _help(self, function: Callable[[], T], answer: Waiter[T]) -> None:
        result, error = None, None
        try:
            result = function()
        except Exception as raised:  # belongs to who waits for the answer
            error = raised
        try:
            self._loop.call_threadsafe(self._take, answer, result, error)
        except IllegalStateError:  # closed meanwhile: nobody waits
            pass

    def _take(self, answer: Waiter[T], result: Any, error: Any) -> None:
        self.running -= 1
        if error is not None:
            answer.fail(error)
        else:
            answer.wake(result)


class Work:
    """A function that runs in a thread of its own, for who has no loop: looks again, or waits."""

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
        except Exception as raised:  # belongs to who looks
            self._error = raised
        self._ended.set()

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""
        return self._ended.is_set()

    def wait(self, seconds: Optional[float]) -> bool:
        """Wait until it has ended; tell whether it has. Arguments: seconds: None for ever."""
        return self._ended.wait(seconds)

    def check(self) -> None:
        """Raise what the function raised."""
        if self._error is not None:
            raise self._error
