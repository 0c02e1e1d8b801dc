"""Future: the result of an operation that may be pending, and callbacks for it.

Safe to share between threads. It does not wait: the waiting code lets the connection work until the
future is done. The interface is that of 1.x.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import sys
import threading
from typing import Any, Callable, Generator, List, Tuple, TypeVar

from kafka.internals.program_errors import log_program_error

log = logging.getLogger(__name__)

_Self = TypeVar('_Self', bound='Future')
_Call = Tuple[bool, Callable[[Any], Any]]


class NoExceptionError(TypeError, AssertionError):
    """failure() was called with a value that is not an exception: AssertionError up to 2.3."""


class Future:
    """The result of an operation that may still be pending (1.x).

    Attributes: is_done: whether it has a value or an exception; value; exception.
    error_on_callbacks (of the class): whether an exception of a callback is raised in the code that
    completes the future, after it was logged; by default it is only logged.

    Callbacks run in the thread that completes the future, in the order in which they were added; a
    callback added later runs at once, in the thread that adds it.
    """

    error_on_callbacks = False

    def __init__(self) -> None:
        self.is_done = False
        self.value: Any = None
        self.exception: Any = None
        # Guards `is_done` and the list: a callback is either stored or runs at once. Reentrant: a
        # finalizer that runs while the lock is held may add a callback.
        self._lock = threading.RLock()
        self._calls: List[_Call] = []

    def __repr__(self) -> str:
        if not self.is_done:
            return '<%s pending>' % type(self).__name__
        state = 'failed: %r' % self.exception if self.failed() else 'value %r' % (self.value,)
        return '<%s %s>' % (type(self).__name__, state)

    def succeeded(self) -> bool:
        """Return True if it is done without an exception."""
        return self.is_done and not self.exception

    def failed(self) -> bool:
        """Return True if it is done with an exception."""
        return self.is_done and bool(self.exception)

    def retriable(self) -> bool:
        """Return `retriable` of the exception; False if it has no such attribute."""
        retriable: bool = getattr(self.exception, 'retriable', False)
        return retriable

    def success(self: _Self, value: Any) -> _Self:
        """Complete the future with a value and run the callbacks.

        Raises: AssertionError if it is done already.
        """
        return self._complete(value, None)

    def failure(self: _Self, e: Any) -> _Self:
        """Complete the future with an exception and run the errbacks.

        Arguments: e: an exception, or an exception class that needs no arguments.
        Raises: AssertionError if it is done already; TypeError, also an AssertionError, for another
            value.
        """
        exception = e() if isinstance(e, type) else e
        if not isinstance(exception, BaseException):
            raise NoExceptionError('a future fails with an exception, not with %r' % (e,))
        return self._complete(None, exception)

    def _complete(self: _Self, value: Any, exception: Any) -> _Self:
        with self._lock:
            if self.is_done:
                raise AssertionError('the future is done already')
            self.value, self.exception = value, exception
            self.is_done = True
            calls, self._calls = self._calls, []
        for wants_error, call in calls:
            self._run(wants_error, call)
        return self

    def _run(self, wants_error: bool, call: Callable[[Any], Any]) -> None:
        """Make a call if it is for the result that the future has: a value, or an error."""
        if wants_error != self.failed():
            return
        try:
            call(self.exception if wants_error else self.value)
        except Exception as error:
            # No code waits for a callback, and its error must not keep the next ones from running.
            log_program_error(log, error, 'a callback failed: %r', call)
            if self.error_on_callbacks:
                raise

    def _tell(self, wants_error: bool, call: Callable[[Any], Any]) -> None:
        """Make a call in a thread of the client, which no exception of the call may end."""
        try:
            self._run(wants_error, call)
        except BaseException as error:  # sys.exit() in a callback, or a failed assertion of a test
            text = 'a callback wants to end the thread that called it: %r'
            log_program_error(log, error, text, call)

    def _add(self, wants_error: bool, call: Callable[[Any], Any]) -> None:
        with self._lock:
            if not self.is_done:
                self._calls.append((wants_error, call))
                return
        self._run(wants_error, call)

    def add_callback(self: _Self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> _Self:
        """Call ``f(*args, value, **kwargs)`` once there is a value; return the future."""
        self._add(False, functools.partial(f, *args, **kwargs))
        return self

    def add_errback(self: _Self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> _Self:
        """Call ``f(*args, exception, **kwargs)`` once there is an exception; return the future."""
        self._add(True, functools.partial(f, *args, **kwargs))
        return self

    def add_both(self: _Self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> _Self:
        """Call ``f(*args, value or exception, **kwargs)`` once it is done; return the future."""
        return self.add_callback(f, *args, **kwargs).add_errback(f, *args, **kwargs)

    def __await__(self) -> Generator[Any, None, Any]:
        """Wait in a coroutine of asyncio; return the value or raise the exception (3.0).

        Raises: RuntimeError if it is not done, no asyncio loop runs, and drive_coroutine() does not
            drive the coroutine.
        """
        if not self.is_done and getattr(_driven, 'is_on', False):
            yield self
        elif not self.is_done:
            # If an asyncio loop runs, the module has been imported.
            yield from _waiter(sys.modules.get('asyncio'), self)
        if self.failed():
            raise self.exception.with_traceback(None)  # because it may be awaited more than once
        return self.value

    def chain(self: _Self, other: Future) -> _Self:
        """Complete another future with the result of this one; return this one."""
        return self.add_callback(other.success).add_errback(other.failure)


#: Per thread: whether drive_coroutine() waits for the futures that a coroutine yields.
_driven = threading.local()


def drive_coroutine(coroutine: Any, wait: Callable[[Future], Any]) -> None:
    """Run a coroutine to its end in this thread, without asyncio.

    Arguments: wait: called with each future that the coroutine awaits; returns once that is done,
    or raises an exception, which is thrown into the coroutine.
    """
    go_on: Callable[[], Any] = functools.partial(coroutine.send, None)
    while True:
        before, _driven.is_on = getattr(_driven, 'is_on', False), True
        try:
            future = go_on()
        except StopIteration:
            return
        finally:
            _driven.is_on = before
        go_on = functools.partial(coroutine.send, None)
        try:
            if not isinstance(future, Future):
                raise TypeError('only futures of a client can be awaited here, not %r' % (future,))
            wait(future)
        except Exception as error:  # the coroutine has to see it
            go_on = functools.partial(coroutine.throw, error)


def _waiter(asyncio: Any, future: Future) -> Generator[Any, None, Any]:
    """Wait for a future in an asyncio task; any thread may complete it."""
    if asyncio is None:
        raise RuntimeError('a future that is not done can be awaited in asyncio only: call get()')
    loop = asyncio.get_running_loop()
    waiter = loop.create_future()

    def finish() -> None:
        if not waiter.done():  # the task may have been cancelled
            waiter.set_result(None)

    def wake(_: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: no task waits any more
            loop.call_soon_threadsafe(finish)

    future.add_both(wake)
    return (yield from waiter)
