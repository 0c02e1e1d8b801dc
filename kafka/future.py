"""Future: a value or an error that comes later, and what to call when it comes.

Owns one result and its callbacks, safe to share between threads. It does not wait: whoever has to
lets the connection work until the future is done. The interface is that of 1.x.
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
    """A future was to fail with something that is no exception: an AssertionError up to 2.3."""


class Future:
    """The result of something that may still be under way (1.x).

    Attributes: is_done: whether it has a value or an exception; value; exception.
    error_on_callbacks (of the class): whether what a callback raises goes on to the one who
    completes the future, after it was logged; usually it is logged only.

    Callbacks run in the thread that completes the future, in the order in which they were added;
    one that is added later runs at once, in the thread that adds it.
    """

    error_on_callbacks = False

    def __init__(self) -> None:
        self.is_done = False
        self.value: Any = None
        self.exception: Any = None
        # Guards the change to done and the list: a callback is either kept or runs at once.
        # Reentrant: a finalizer that the collector runs inside may add a callback.
        self._lock = threading.RLock()
        self._calls: List[_Call] = []

    def __repr__(self) -> str:
        if not self.is_done:
            return '<%s pending>' % type(self).__name__
        state = 'failed: %r' % self.exception if self.failed() else 'value %r' % (self.value,)
        return '<%s %s>' % (type(self).__name__, state)

    def succeeded(self) -> bool:
        """Tell whether it is done without an exception."""
        return self.is_done and not self.exception

    def failed(self) -> bool:
        """Tell whether it is done with an exception."""
        return self.is_done and bool(self.exception)

    def retriable(self) -> bool:
        """Return what the exception says of itself; False where it says nothing."""
        retriable: bool = getattr(self.exception, 'retriable', False)
        return retriable

    def success(self: _Self, value: Any) -> _Self:
        """Complete it with a value and run the callbacks.

        Raises: AssertionError when it is done already.
        """
        return self._complete(value, None)

    def failure(self: _Self, e: Any) -> _Self:
        """Complete it with an exception and run the errbacks.

        Arguments: e: an exception, or a class of exceptions that is made without arguments.
        Raises: AssertionError when it is done already; TypeError, which is one too, otherwise.
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
        """Make one call if the future is done in the way that it waits for."""
        if wants_error != self.failed():
            return
        try:
            call(self.exception if wants_error else self.value)
        except Exception as error:
            # Nobody waits for a callback, and it must not keep the next ones from being told.
            log_program_error(log, error, 'a callback failed: %r', call)
            if self.error_on_callbacks:
                raise

    def _tell(self, wants_error: bool, call: Callable[[Any], Any]) -> None:
        """Make one call for somebody whose work it must not end."""
        try:
            self._run(wants_error, call)
        except BaseException as error:  # sys.exit() in a callback, or a failed check of a test
            text = 'a callback wants to end the thread that called it: %r'
            log_program_error(log, error, text, call)

    def _add(self, wants_error: bool, call: Callable[[Any], Any]) -> None:
        with self._lock:
            if not self.is_done:
                self._calls.append((wants_error, call))
                return
        self._run(wants_error, call)

    def add_callback(self: _Self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> _Self:
        """Call ``f(*args, value, **kwargs)`` when there is a value; return the future."""
        self._add(False, functools.partial(f, *args, **kwargs))
        return self

    def add_errback(self: _Self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> _Self:
        """Call ``f(*args, exception, **kwargs)`` when there is an exception; return the future."""
        self._add(True, functools.partial(f, *args, **kwargs))
        return self

    def add_both(self: _Self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> _Self:
        """Call ``f(*args, value or exception, **kwargs)``, whichever comes; return the future."""
        return self.add_callback(f, *args, **kwargs).add_errback(f, *args, **kwargs)

    def __await__(self) -> Generator[Any, None, Any]:
        """Let a coroutine of asyncio wait for it: its value, or its exception raised (3.0).

        Raises: RuntimeError where it is not done and no loop of asyncio runs, nor drive_coroutine()
            drives the coroutine.
        """
        if not self.is_done and getattr(_driven, 'is_on', False):
            yield self
        elif not self.is_done:
            # Whoever runs a loop of asyncio has imported it.
            yield from _waiter(sys.modules.get('asyncio'), self)
        if self.failed():
            raise self.exception.with_traceback(None)  # as it may be awaited more than once
        return self.value

    def chain(self: _Self, other: Future) -> _Self:
        """Complete another future as this one is; return this one."""
        return self.add_callback(other.success).add_errback(other.failure)


#: By thread, whether who runs a coroutine here waits for the futures that it yields.
_driven = threading.local()


def drive_coroutine(coroutine: Any, wait: Callable[[Future], Any]) -> None:
    """Run a coroutine to its end in this thread, without asyncio.

    Arguments: wait: called with each future that it awaits; returns when that is done, and raises
    what the coroutine is to get in its place.
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
        except Exception as error:  # belongs to who awaits
            go_on = functools.partial(coroutine.throw, error)


def _waiter(asyncio: Any, future: Future) -> Generator[Any, None, Any]:
    """Wait for a future in a task of asyncio, whichever thread completes it."""
    if asyncio is None:
        raise RuntimeError('a future that is not done can be awaited in asyncio only: call get()')
    loop = asyncio.get_running_loop()
    waiter = loop.create_future()

    def finish() -> None:
        if not waiter.done():  # the task may have been cancelled
            waiter.set_result(None)

    def wake(_: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(finish)

    future.add_both(wake)
    return (yield from waiter)
