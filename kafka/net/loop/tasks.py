"""Tasks, awaitables, timers and the scheduler: the part of an event loop without clock and threads.

Used by every coroutine of the clients, and run by the loops: kafka.net.loop.loop.Loop, the manual
loops of the tests and that of the simulation. Everything is used by one thread at a time, the one
that runs the loop, except for ``Scheduler.ready``, which any thread may append to.

A coroutine runs until it awaits something that is not ready. Cancelling raises TaskCancelled in it.
TaskCancelled is a BaseException, so that ``except KafkaError`` and ``except Exception`` do not
catch it; a caller that awaits a cancelled task gets Cancelled, which is a KafkaError.
"""

from __future__ import annotations

import heapq
import logging
import math
from collections import deque
from typing import (
    Any,
    Awaitable,
    Callable,
    Coroutine,
    Deque,
    Dict,
    Generator,
    Generic,
    List,
    Optional,
    Protocol,
    Tuple,
    TypeVar,
    cast,
)

from kafka.errors import Cancelled, IllegalStateError, KafkaError, KafkaTimeoutError

__all__ = [
    'Alarm',
    'CoroutineCall',
    'Event',
    'Scheduler',
    'Task',
    'TaskCancelled',
    'Timer',
    'Waiter',
]

log = logging.getLogger(__name__)

T = TypeVar('T')
E = TypeVar('E', bound=BaseException)

#: Maximum number of causes of an error that are followed: they may form a cycle.
_MOST_CAUSES = 10
#: Number of timers from which on cancelled ones are removed from the heap.
CLEAN_AT = 1024


class TaskCancelled(BaseException):
    """Raised inside a coroutine that is cancelled; the coroutine must not suppress it."""


class Waiter(Generic[T]):
    """Suspends one coroutine until it is woken with a value or an error; only the first counts.

    If awaited after that, it returns or raises at once. May be woken only by the thread that runs
    the loop.

    Attributes: done: whether it was woken; task: the waiting task, set by the task itself.
    """

    __slots__ = ('_error', '_value', 'done', 'task')

    def __init__(self) -> None:
        self.done = False
        self._value: Any = None
        self._error: Optional[BaseException] = None
        self.task: Optional[Task[Any]] = None

    def __repr__(self) -> str:
        return '<Waiter %s>' % ('done' if self.done else 'pending')

    def wake(self, value: Any = None) -> bool:
        """Resume the coroutine with a value. Returns False if it was woken before."""
        return self._finish(value, None)

    def fail(self, error: BaseException) -> bool:
        """Resume the coroutine with an error. Returns False if it was woken before."""
        return self._finish(None, error)

    def _finish(self, value: Any, error: Optional[BaseException]) -> bool:
        if self.done:
            return False
        self.done = True
        self._value, self._error = value, error
        task, self.task = self.task, None
        if task is not None:
            task.resume()
        return True

    def __await__(self) -> Generator[Any, None, T]:
        if not self.done:
            yield self
        if self._error is not None:
            raise self._error
        return cast(T, self._value)


class Event:
    """A flag that any number of coroutines may wait for."""

    __slots__ = ('_waiters', 'is_set')

    def __init__(self) -> None:
        self.is_set = False
        self._waiters: List[Waiter[None]] = []

    def __repr__(self) -> str:
        return '<Event %s, %d wait>' % ('set' if self.is_set else 'clear', len(self._waiters))

    def set(self) -> None:
        """Set the flag, and resume all coroutines that wait for it."""
        self.is_set = True
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter.wake()

    def clear(self) -> None:
        """Clear the flag."""
        self.is_set = False

    async def wait(self) -> None:
        """Return when the flag is set."""
        if self.is_set:
            return
        waiter: Waiter[None] = Waiter()
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            if waiter in self._waiters:  # cancelled
                self._waiters.remove(waiter)


class Timer:
    """A scheduled call; ``cancel()`` may be called at any time.

    Attributes: waits: True until it was run or cancelled; when: its time.
    """

    __slots__ = ('_args', '_call', 'waits', 'when')

    def __init__(self, when: float, call: Callable[..., Any], args: Tuple[Any, ...]) -> None:
        self.when = when
        self.waits = True
        self._call: Optional[Callable[..., Any]] = call
        self._args = args

    def __repr__(self) -> str:
        return '<Timer at %.3f%s>' % (self.when, '' if self.waits else ', over')

    def cancel(self) -> None:
        """Drop the call."""
        self._call, self._args, self.waits = None, (), False

    def run(self) -> None:
        """Make the call, once."""
        call, args = self._call, self._args
        self._call, self._args, self.waits = None, (), False
        if call is not None:
            call(*args)


class TimerLoop(Protocol):
    """The part of a loop that an Alarm uses."""

    def time(self) -> float:
        """Return the monotonic time in seconds."""

    def call_later(self, seconds: float, call: Callable[..., Any], *args: Any) -> Timer:
        """Schedule a call after a delay in seconds."""


class Alarm:
    """A timer that is set repeatedly: the call is made once, at the earliest time that was set.

    The call then sets the next time. Arguments: loop; call: the function to call.
    """

    __slots__ = ('_call', '_loop', '_timer')

    def __init__(self, loop: TimerLoop, call: Callable[[], Any]) -> None:
        self._loop = loop
        self._call = call
        self._timer: Optional[Timer] = None

    def set(self, when: float) -> None:
        """Make the call at this time, unless an earlier one is set; infinity sets nothing."""
        timer = self._timer
        if timer is not None and timer.waits:
            if timer.when <= when:
                return
            timer.cancel()
        if when < math.inf:
            self._timer = self._loop.call_later(max(0.0, when - self._loop.time()), self._call)

    def cancel(self) -> None:
        """Cancel the call; a time may be set again."""
        if self._timer is not None:
            self._timer.cancel()


class CoroutineCall(Coroutine[Any, Any, T]):
    """A call of an ``async`` function that is made in the loop, with the first step.

    For EventLoop.run() in threads of the program. A coroutine that an exception from outside
    removes before its first step shows a RuntimeWarning that it was never awaited; this does not.

    Arguments: function; args: of the call.
    """

    def __init__(self, function: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> None:
        self.__qualname__ = str(getattr(function, '__qualname__', function))
        self._function, self._args = function, args
        self._made: Optional[Coroutine[Any, Any, T]] = None

    def send(self, value: Any) -> Any:
        """Run the coroutine until it waits for something."""
        if self._made is None:
            self._made = self._function(*self._args)
            self.__qualname__ = str(getattr(self._made, '__qualname__', self._made))
        return self._made.send(value)

    def throw(self, kind: Any, *details: Any) -> Any:
        """Raise an exception where the coroutine waits."""
        if self._made is None:
            raise kind
        return self._made.throw(kind, *details)

    def close(self) -> None:
        """End the coroutine."""
        if self._made is not None:
            self._made.close()

    def __await__(self) -> Generator[Any, Any, T]:
        return self._function(*self._args).__await__()


class Task(Generic[T]):
    """A running coroutine. Await it for its result; ``cancel()`` ends it early.

    Attributes: done; asked: whether the outcome was retrieved: if not, an error is logged; name: of
    the coroutine, for logs.
    """

    __slots__ = (
        '__weakref__',
        '_callbacks',
        '_cancelling',
        '_coroutine',
        '_error',
        '_parked',
        '_running',
        '_scheduler',
        '_value',
        'asked',
        'done',
    )

    def __init__(self, scheduler: Scheduler, coroutine: Coroutine[Any, Any, T]) -> None:
        self.done = False
        self._scheduler = scheduler
        self._coroutine = coroutine
        self._value: Optional[T] = None
        self._error: Optional[BaseException] = None
        self._parked: Optional[Waiter[Any]] = None
        self._cancelling = False
        self._running = False
        self.asked = False
        self._callbacks: List[Callable[[Task[T]], Any]] = []

    def __repr__(self) -> str:
        return '<Task %s %s>' % (self.name, 'done' if self.done else 'pending')

    def __del__(self) -> None:
        error = getattr(self, '_error', None)
        if error is not None and not self.asked and not isinstance(error, Cancelled):
            log.error('%s failed, and no caller took the error', self.name, exc_info=error)

    @property
    def name(self) -> str:
        """The name of the coroutine."""
        return str(getattr(self._coroutine, '__qualname__', self._coroutine))

    @property
    def exception(self) -> Optional[BaseException]:
        """The error of the coroutine; None if it succeeded or has not ended."""
        self.asked = True
        return self._error

    def result(self) -> T:
        """Return the result of the coroutine, or raise its error.

        Raises Cancelled if it was cancelled, IllegalStateError if it has not ended.
        """
        self.asked = True
        if not self.done:
            raise IllegalStateError('%s is not done' % self.name)
        if self._error is not None:
            raise self._error
        return cast(T, self._value)

    def add_done_callback(self, call: Callable[[Task[T]], Any]) -> None:
        """Call a function with the task in the loop when it is done; at once if it is done now."""
        self.asked = True
        if self.done:
            call(self)
        else:
            self._callbacks.append(call)

    def cancel(self) -> bool:
        """Raise TaskCancelled where the coroutine waits. Returns False if it is done.

        Only for the thread that runs the loop. If the coroutine is running, TaskCancelled is raised
        where it waits next.
        """
        if self.done:
            return False
        self._cancelling = True
        if self._parked is not None:
            self._parked.task = None
            self.resume()
        return True

    def __await__(self) -> Generator[Any, None, T]:
        if not self.done:
            waiter: Waiter[None] = Waiter()
            self.add_done_callback(lambda task: waiter.wake())
            yield from waiter.__await__()
        return self.result()

    def resume(self) -> None:
        """Schedule the next step of the coroutine: its waiter was woken."""
        self._parked = None
        self._scheduler.call_soon(self.step)

    def step(self) -> None:
        """Run the coroutine until it waits for something."""
        if self.done or self._running:
            return
        self._running = True
        try:
            if self._cancelling:
                self._cancelling = False
                parked = self._coroutine.throw(TaskCancelled())
            else:
                parked = self._coroutine.send(None)
        except StopIteration as stop:
            self._finish(stop.value, None)
        except TaskCancelled:
            self._finish(None, Cancelled('%s was cancelled' % self.name))
        except KafkaError as error:  # re-raised by result(), or kept for logs
            self._finish(None, without_frames(error))
        except Exception as error:
            self._finish(None, error)
        except BaseException as error:  # SystemExit, or an exception of a signal handler
            self._finish(None, Cancelled('%s was ended by %r' % (self.name, error)))
            raise
        else:
            self._park(parked)
        finally:
            self._running = False

    def _park(self, parked: Optional[Waiter[Any]]) -> None:
        if parked is None or parked.done or self._cancelling:
            self._scheduler.call_soon(self.step)
        else:
            self._parked = parked
            parked.task = self

    def _finish(self, value: Optional[T], error: Optional[BaseException]) -> None:
        self.done = True
        self._value, self._error = value, error
        self._scheduler.forget(self)
        callbacks, self._callbacks = self._callbacks, []
        for call in callbacks:
            self._scheduler.call_soon(call, self)

    def drop(self) -> None:
        """Close the coroutine, which cannot await anything any more: the loop is being closed."""
        self.done = True
        self._error = Cancelled('%s had not ended when its loop was closed' % self.name)
        if self._running:  # this coroutine closes the loop; a running one cannot be closed
            return
        try:
            self._coroutine.close()
        except Exception:  # an error in its finally blocks must not keep the others from ending
            log.exception('%s failed when its loop was closed', self.name)


#: A call and its arguments.
Call = Tuple[Callable[..., Any], Tuple[Any, ...]]
#: A heap of timers; the number keeps timers of equal time in the order in which they were set.
Timers = List[Tuple[float, int, Timer]]


class Scheduler:
    """Keeps tasks, timers and ready calls in order, for the thread that runs the loop.

    Arguments: time: returns the monotonic time in seconds.

    Attributes: ready: the calls to make next, which any thread may append to; timers: a heap, the
    same list object as long as the loop is in use; tasks: those that have begun and are not done,
    in the order in which they began; time.
    """

    def __init__(self, time: Callable[[], float]) -> None:
        self.time = time
        self.ready: Deque[Call] = deque()
        self.timers: Timers = []
        self.tasks: Dict[Task[Any], None] = {}
        self._timers_made = 0
        self._clean_at = CLEAN_AT

    def __repr__(self) -> str:
        return '<Scheduler tasks=%d timers=%d>' % (len(self.tasks), len(self.timers))

    # ------------------------------------------------------------ for coroutines

    def spawn(self, coroutine: Coroutine[Any, Any, T]) -> Task[T]:
        """Start a coroutine; its first step runs after the caller has returned to the loop."""
        task = Task(self, coroutine)
        self.tasks[task] = None
        self.call_soon(task.step)
        return task

    def call_soon(self, call: Callable[..., Any], *args: Any) -> None:
        """Schedule a call after the caller has returned to the loop."""
        self.ready.append((call, args))

    def take_only(self, call: Callable[[], Any]) -> bool:
        """Remove a call if it is the only scheduled one; the caller then makes it itself."""
        ready = self.ready
        if len(ready) == 1 and ready[0][0] == call:
            ready.popleft()  # safe: other threads only append
            return True
        return False

    def call_later(self, seconds: float, call: Callable[..., Any], *args: Any) -> Timer:
        """Schedule a call after a delay in seconds; calls of equal time are made in order."""
        timer = Timer(self.time() + max(0.0, seconds), call, args)
        self._timers_made += 1
        heapq.heappush(self.timers, (timer.when, self._timers_made, timer))
        if len(self.timers) >= self._clean_at:
            self.timers[:] = [each for each in self.timers if each[2].waits]
            heapq.heapify(self.timers)
            self._clean_at = max(CLEAN_AT, 2 * len(self.timers))
        return timer

    async def sleep(self, seconds: float) -> None:
        """Suspend the coroutine for `seconds`."""
        waiter: Waiter[None] = Waiter()
        timer = self.call_later(seconds, waiter.wake)
        try:
            await waiter
        finally:
            timer.cancel()

    async def within(self, seconds: float, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine.

        Raises KafkaTimeoutError, and cancels the coroutine, if it takes longer than `seconds`.
        """
        task = self.spawn(coroutine)
        expired: Waiter[None] = Waiter()

        def expire() -> None:
            expired.wake()
            task.cancel()

        timer = self.call_later(seconds, expire)
        try:
            return await task
        except Cancelled as error:
            if not expired.done:
                raise
            raise KafkaTimeoutError('it took longer than %.3g seconds' % seconds) from error
        finally:
            timer.cancel()
            task.cancel()

    async def gather(self, *coroutines: Coroutine[Any, Any, T]) -> List[T]:
        """Run several coroutines concurrently; return their results, in their order.

        If coroutines fail, raises the error of the first of them in order, and cancels the others.
        """
        tasks = [self.spawn(each) for each in coroutines]
        try:
            return [await task for task in tasks]
        finally:
            for task in tasks:
                task.cancel()
                task.asked = True

    # ------------------------------------------------------------ for the loop that runs it

    def begin(self, task: Task[Any]) -> None:
        """Add a task that another thread has created, and run it until it waits."""
        self.tasks[task] = None
        task.step()

    def cancel(self, task: Task[Any]) -> None:
        """Cancel a task, even if begin() was not called for it."""
        if task in self.tasks:
            task.cancel()
        elif not task.done:
            task.drop()

    def next_time(self) -> Optional[float]:
        """Return the time of the next timer, None without timers; drop cancelled ones before it."""
        timers = self.timers
        while timers and not timers[0][2].waits:
            heapq.heappop(timers)
        return timers[0][0] if timers else None

    def restore_timers(self) -> None:
        """Restore the order of the timers after an exception that may have ended call_later()."""
        heapq.heapify(self.timers)

    def run_timers(self, now: float) -> None:
        """Run the timers that are due at a time."""
        timers = self.timers
        while timers and timers[0][0] <= now:
            timer = heapq.heappop(timers)[2]
            self._guarded(timer.run, ())

    def run_ready(self) -> None:
        """Make the calls that are ready now, but not those that become ready while they run."""
        ready = self.ready
        for _ in range(len(ready)):
            call, args = ready.popleft()
            try:
                call(*args)
            except Exception:  # inlined _guarded()
                log.exception('a call of the loop failed: %r', call)

    def _guarded(self, call: Callable[..., Any], args: Tuple[Any, ...]) -> None:
        try:
            call(*args)
        except Exception:
            # No caller could handle the error, and the other calls have to be made.
            log.exception('a call of the loop failed: %r', call)

    def forget(self, task: Task[Any]) -> None:
        """Remove a finished task."""
        self.tasks.pop(task, None)

    def drop_all(self) -> None:
        """Close all coroutines, and remove all tasks, calls and timers."""
        for task in list(self.tasks):
            self.tasks.pop(task, None)
            task.drop()
        self.ready.clear()
        self.timers.clear()

    def abandon(self) -> Tuple[Dict[Task[Any], None], Deque[Call], Timers]:
        """Replace tasks, calls and timers by empty ones; return the old ones unchanged.

        For the child of a fork. The caller keeps the old ones alive: a coroutine that is collected
        runs its ``finally`` blocks, which only the parent may do.
        """
        old = self.tasks, self.ready, self.timers
        self.tasks, self.ready, self.timers = {}, deque(), []
        return old


def without_frames(error: E) -> E:
    """Remove the tracebacks of an error and its causes; return the error.

    Errors of connections are kept as long as the client exists. The frames in a traceback include
    those of the caller that ran the loop, and would keep the client and everything it refers to
    from being collected.
    """
    seen: Optional[BaseException] = error
    for _ in range(_MOST_CAUSES):
        if seen is None:
            break
        seen.__traceback__ = None
        seen = seen.__cause__ or seen.__context__
    return error


async def awaited(thing: Awaitable[T]) -> T:
    """Return the result of an awaitable: makes a coroutine of a Waiter or a Task."""
    return await thing
