"""The event loop of one client: coroutines, timers and sockets, run by the threads that wait.

Created by NetworkClient. Tasks and timers are kept by a Scheduler, sockets by a Poller; this class
decides which thread runs them, and wakes the threads that wait for results. Clients call it from
any thread; coroutines use it inside an iteration (``_run_once`` below).

**The driver lock** is held by the thread that runs iterations: that thread polls, runs timers and
runs the ready calls. An asynchronous exception, raised by a signal handler or by another thread
with ``PyThreadState_SetAsyncExc``, would be raised inside an arbitrary coroutine. So iterations run
only in threads without such exceptions: in the main thread, while signals are postponed
(signals.py), and in the background thread, which is private to this class. A blocking call in the
main thread takes the lock if it is free and runs the loop until its condition holds, so that a lone
``send(); get()`` needs no thread switch. If another thread holds the lock, the call waits, and is
woken to take over the lock.

**Every other thread** only waits: the background thread does the work, and the waiting thread
sleeps until the driver finds that its condition holds. An exception raised in the waiting thread
affects no other thread: the loop holds only a weak reference to it, and a call that it has
scheduled wakes the driver even if the thread is being ended. One thing such a thread may do itself,
with the driver lock, is its first call (``FirstCall.attempt()``), so that a lone ``send(); get()``
needs no thread switch there either. If an exception ends that call, ``_attempt`` stays set, and the
next driver repairs what is half done before anything else (``FirstCall.mend()``). In programs
patched by gevent or eventlet threads are greenlets, which get exceptions only where they wait, so
all of them run iterations. So does any thread if no background thread can be started.

**Interrupted.** If an exception is nevertheless raised inside an iteration, in the main thread by
``PyThreadState_SetAsyncExc``, the state may be inconsistent. The exception is raised to the caller,
and from then on each call fails with it as the cause (``interrupted_by``); only close() works.

**The background thread** runs iterations when no caller does and something is *pending*: calls are
ready, a timer is due, or a transport expects a response (``pending``). It is started when a caller
returns while something is pending, or schedules a call without waiting. It releases the lock for a
caller that wants to run the loop, and continues if that caller does not take the lock in time. When
nothing is pending it sleeps, without the lock, until the next timer; while any socket is open, it
checks once a second whether a broker has closed the connection.

**Lazy calls** are made by programs that send without waiting. The first one wakes the background
thread, or ends the poll. For the next 50 ms no thread sleeps for longer than a millisecond, and
further lazy calls wake no thread: a wake-up per record would cost more than polling. If the caller
sends its record itself and waits for the response, the background thread would find nothing to do,
so it checks only every 5 ms (``_quiet_until``).

Several threads read and write the flags without a lock. To avoid lost wake-ups, each side writes
first and then checks: a thread that schedules a call appends it and then checks whether a thread
sleeps; a thread that is about to sleep sets its flag and then checks whether there are calls.
"""

from __future__ import annotations

import logging
import math
import os
import sys
import threading
import time
import types
import weakref
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Callable, Coroutine, Dict, List, Optional, Tuple, TypeVar

from kafka.errors import IllegalStateError, KafkaTimeoutError
from kafka.net.loop.event_loop import FirstCall, Pollable
from kafka.net.loop.executor import Executor, started
from kafka.net.loop.selector import Poller
from kafka.net.loop.signals import PostponedSignals, main_ident
from kafka.net.loop.tasks import Scheduler, Task
from kafka.net.resolver import Address, resolve
from kafka.net.transport import SocketOptions, Transport, open_transport

__all__ = ['Loop']

log = logging.getLogger(__name__)

T = TypeVar('T')

#: Longest poll or sleep in seconds while lazy calls are made.
NAP = 0.001
#: The same for the background thread while a caller runs the loop.
LONG_NAP = 0.005
#: Seconds after the last lazy call for which these limits apply.
ALERT = 0.05
#: Seconds between two checks of idle connections.
HEARTBEAT = 1.0
#: Seconds after which ready calls no longer have precedence over sockets.
POLL_AT_LEAST = 0.005
#: Longest sleep in one call, in seconds. On Windows Ctrl-C does not interrupt a lock or a poll.
SLICE = 0.2 if os.name == 'nt' else 3600.0
#: Seconds for which the background thread leaves a free lock to a caller woken to take it over.
HANDOVER = 0.05
#: Seconds for which the background thread, at its end, waits for a thread in the last iteration.
FINISHING = 5.0
#: Longest time in seconds that a call with an expired timeout waits for one background iteration.
ONE_ITERATION = 0.01

_getpid = os.getpid
_AT_ONCE = (False,)
_unlock = methodcaller('release')
# Before Python 3.10 an exception may be raised between any two bytecodes, not only after calls.
_MAY_ATTEMPT = sys.version_info >= (3, 10)

# The kind of the poll in progress: a thread that schedules a call may have to end it.
NO_POLL, SHORT_POLL, LONG_POLL = 0, 1, 2

if TYPE_CHECKING:
    #: A reference of the loop to a waiting thread.
    Entry = weakref.ReferenceType['WaitingThread']
else:
    Entry = weakref.ref  # not subscriptable before Python 3.9

#: Longest sleep of a waiting thread in seconds; it then checks itself, in case a wake-up was lost.
LONGEST_WAIT = 0.2 if os.name == 'nt' else 5.0


class WaitingThread:
    """A thread that waits while another one runs the loop.

    Created by the waiting thread, woken by the driver. The loop holds only weak references: the
    thread may be ended by an exception at any point, and its entry then disappears with its frame.
    The lock guards no data: the thread sleeps by acquiring it.

    Arguments: done: returns whether the condition of the thread holds; called in any thread.
    """

    __slots__ = ('__weakref__', '_lock', 'done')

    def __init__(self, done: Callable[[], Any]) -> None:
        self.done = done
        self._lock = threading.Lock()
        self._lock.acquire()

    def sleep(self, seconds: float) -> None:
        """Sleep until woken, at most `seconds`, and no longer than LONGEST_WAIT."""
        self._lock.acquire(timeout=max(0.0, min(seconds, LONGEST_WAIT)))

    def wake(self) -> None:
        """End the sleep, or the next one if the thread does not sleep now."""
        try:
            self._lock.release()
        except RuntimeError:  # it was woken already
            pass

    def is_done(self) -> bool:
        """Return True if the condition holds, or raises: the waiting thread then gets the error."""
        try:
            return bool(self.done())
        except Exception:
            return True


def discard(entries: List[Entry], entry: Entry) -> None:
    """Remove an entry, unless another thread has already removed it."""
    try:
        entries.remove(entry)
    except ValueError:
        pass


class Loop:
    """Runs the coroutines of one client.

    Arguments: name: of the background thread, as ``<client id>-network-thread``; busy_poll: seconds
    for which a thread that waits for one response may poll the socket before it blocks; clock:
    returns the monotonic time in seconds.

    Attributes: name; pending: the number of transports that expect a response, which they update
    themselves; interrupted_by: the asynchronous exception that was raised inside an iteration, or
    None.

    The constructor opens no socket and starts no thread. After a fork each call in the child raises
    IllegalStateError; the parent is not affected.
    """

    def __init__(
        self,
        name: str = 'kafka-network-thread',
        busy_poll: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.pending = 0
        self.interrupted_by: Optional[BaseException] = None
        # The function itself, without a method around it: it is called twenty times per request.
        self.time = clock
        self._scheduler = scheduler = Scheduler(clock)
        # Bound methods of the scheduler: calls made for each record need no indirection.
        self.spawn = scheduler.spawn
        self.call_soon = scheduler.call_soon
        self.call_later = scheduler.call_later
        self.take_only = scheduler.take_only
        self.sleep = scheduler.sleep
        self.within = scheduler.within
        self.gather = scheduler.gather
        self._ready = scheduler.ready
        self._timers = scheduler.timers
        self._poller = Poller(busy_poll)
        self._executor = Executor(scheduler, self.call_threadsafe)
        self._transports: Dict[Transport, None] = {}
        self._pid = os.getpid()
        self._forked = False
        self._closing = False
        self._closed = False
        # Held by the thread that runs iterations: guards tasks, timers and the state of coroutines.
        self._driver_lock = threading.Lock()
        self._locks = (self._driver_lock,)
        self._driver: Optional[int] = None  # the thread that holds it
        self._waiting: List[Entry] = []  # all waiting threads
        self._next_drivers: List[Entry] = []  # the waiting threads that want the driver lock
        self._notified_at = 0.0  # when one of those was woken last
        self._first: Optional[Tuple[FirstCall, float]] = None  # for the background thread
        self._attempt: Optional[FirstCall] = None  # made now; if the lock is free: interrupted
        self._late: Optional[BaseException] = None  # exception that ended the sleep of is_only()
        # Patched by gevent or eventlet: greenlets switch only where they wait.
        self._is_green = not isinstance(threading.get_ident, types.BuiltinFunctionType)
        self._iterations = 0
        self._polling = NO_POLL
        self._polled_at = 0.0
        self._next_due = math.inf  # time of the next timer when the lock was released
        self._lazy = False  # a lazy call was made
        self._alert_until = 0.0
        self._quiet_until = 0.0  # until then callers send their own records
        # Guards the start of the thread. Reentrant: a finalizer that runs meanwhile may make a call
        # that starts it.
        self._thread_lock = threading.RLock()
        self._thread: Optional[threading.Thread] = None
        self._background_wakeup = threading.Lock()  # released to wake the thread
        self._background_wakeup.acquire()
        self._sleeps_until = 0.0  # end of a background sleep that calls must interrupt; 0: none
        _loops.add(self)

    def __repr__(self) -> str:
        return '<Loop %s %s tasks=%d sockets=%d>' % (
            self.name,
            'closed' if self._closing else 'open',
            len(self._scheduler.tasks),
            self._poller.sockets,
        )

    def wall(self) -> float:
        """Return seconds since the epoch."""
        return time.time()

    # ------------------------------------------------------------ calls from any thread

    def call_threadsafe(self, call: Callable[..., Any], *args: Any) -> None:
        """Schedule a call for the next iteration, from any thread.

        Raises IllegalStateError after close(), in the child of a fork, and if the loop was
        interrupted.
        """
        self._check_usable()
        try:
            self._ready.append((call, args))
            self._notify()
        except BaseException:  # asynchronous: the call may be appended without a wake-up
            self._notify()
            raise

    def call_from_finalizer(self, call: Callable[..., Any], *args: Any) -> None:
        """Schedule a call in the background thread, from a finalizer.

        Python may run finalizers at any point of any thread: this method takes no lock, starts no
        thread and does not block. It does nothing if there is no background thread, or after
        close().
        """
        if self._closing or self._forked or self._thread is None or _getpid() != self._pid:
            return
        self._ready.append((call, args))
        if self._polling:
            self._poller.wake()
        try:
            self._background_wakeup.release()
        except RuntimeError:  # it was woken already
            pass

    def call_lazily(self, call: Callable[..., Any], *args: Any) -> None:
        """Schedule a call within some milliseconds, from any thread; errors as call_threadsafe().

        Costs a fraction of a microsecond, except for the first call after a pause.
        """
        if self._closing or self._forked or self.interrupted_by is not None:
            self._check_usable()
        try:
            self._ready.append((call, args))
            self._lazy = True
            if self._polling == SHORT_POLL:
                return
            if self._polling or (not self._driver_lock.locked() and self._sleeps_until):
                self._notify()
            elif self._thread is None and not self._driver_lock.locked():
                self._notify()
        except BaseException:  # as above
            self._notify()
            raise

    def _notify(self) -> None:
        """End the driver's poll; wake the background thread if no thread is the driver."""
        if self._polling:
            self._poller.wake()
        elif not self._driver_lock.locked():
            self._wake_background()

    def runs_here(self) -> bool:
        """Return True in a callback of the loop, where a blocking call would wait for itself."""
        return self._driver == threading.get_ident()

    def _check_usable(self) -> None:
        if self._forked or os.getpid() != self._pid:
            raise IllegalStateError(
                'this client was made in process %d and cannot be used in process %d, which was'
                ' forked from it: make a new one here' % (self._pid, os.getpid())
            )
        if self._closing:
            raise IllegalStateError('the client is closed')
        if self.interrupted_by is not None:
            raise IllegalStateError(
                'the client cannot go on: %r was raised inside its network loop: close it and make'
                ' a new one' % (self.interrupted_by,)
            ) from self.interrupted_by

    # ------------------------------------------------------------ waiting

    def wait(
        self,
        done: Callable[[], Any],
        timeout: Optional[float],
        first: Optional[FirstCall] = None,
    ) -> bool:
        """Block until a condition holds; return False if it does not hold after `timeout`.

        Arguments:
            done: returns whether the condition holds; called repeatedly and possibly in other
                threads. Only the loop may make it true.
            timeout: seconds; None for no limit. With 0 one iteration is run if no other thread has
                the driver lock.
            first: called with the deadline at the start of the first iteration, in this thread if
                it gets the driver lock at once.

        Raises IllegalStateError in a callback of the loop, which would wait for itself; after
        close(); and in the child of a fork.
        """
        if done():
            return True
        me = threading.get_ident()
        if self._driver == me:
            self._check_caller()
        if (
            self._closing
            or self._forked
            or self.interrupted_by is not None
            or _getpid() != self._pid
        ):
            if self._is_done(done):
                return True
        deadline = math.inf if timeout is None else self.time() + timeout
        # Only the main thread can postpone the signals that would interrupt an iteration.
        if (
            me == main_ident[0]
            or self._is_green
            or (self._thread is None and not self._has_background())
        ):
            return self._wait_driving(done, deadline, first, me)
        return self._wait_for_others(done, deadline, first, me)

    def run(self, coroutine: Coroutine[Any, Any, T], timeout: Optional[float]) -> T:
        """Run a coroutine from any thread and return its result.

        Arguments: timeout: seconds; None for no limit.

        Raises KafkaTimeoutError after that time, and cancels the coroutine; the error of the
        coroutine; and as wait().
        """
        task: Optional[Task[T]] = None
        try:
            self._check_caller()
            task = Task(self._scheduler, coroutine)
            self._ready.append((self._scheduler.begin, (task,)))
            finished = self.wait(lambda: task.done, timeout)
            if not finished:
                raise KafkaTimeoutError('%s took longer than %s seconds' % (task.name, timeout))
            return task.result()
        except BaseException:
            if task is None:
                coroutine.close()
                raise
            task.asked = True  # this call raises, so the error of the task is not logged
            if not task.done:
                self._give_up(task)
            raise

    def _give_up(self, task: Task[Any]) -> None:
        try:
            self.call_threadsafe(self._scheduler.cancel, task)
        except IllegalStateError:  # the loop was closed, which cancels tasks that had begun
            if task not in self._scheduler.tasks:
                task.drop()

    def _is_done(self, done: Callable[[], Any]) -> bool:
        """Return True if the condition holds; raise IllegalStateError if the loop has ended."""
        if done():
            return True
        try:
            self._check_usable()
        except IllegalStateError:
            if done():  # it became true after the check above, before the loop was closed
                return True
            raise
        return False

    def _check_caller(self) -> None:
        if self.runs_here():
            raise IllegalStateError(
                'a call that blocks was made in a callback: there it would wait for itself'
            )
        self._check_usable()

    def _wait_driving(
        self, done: Callable[[], Any], deadline: float, first: Optional[FirstCall], me: int
    ) -> bool:
        """Run the loop until the condition holds; wait while another thread runs it."""
        has_waited = False
        try:
            while True:
                postponed = PostponedSignals(self._poller.wake)
                try:
                    postponed.begin()
                    if self._drive(done, deadline, postponed, first, me):
                        return True
                finally:
                    postponed.end()
                if done():
                    return True
                # Inlined _is_done(): this runs for each poll() of a consumer.
                if (
                    self._closing or self._forked or self.interrupted_by is not None
                ) and self._is_done(done):
                    return True
                if self.time() >= deadline:
                    return False
                has_waited, first = True, None
                self._wait_for_lock(done, deadline)
        except BaseException:
            if self._driver == me:  # the exception was raised before the lock was released
                self._release()
            else:  # or after that, before the next driver was woken
                self._notify_next_driver()
            raise
        finally:
            if has_waited:  # it may have been woken to take over the lock, which it does not
                self._notify_next_driver()

    def _drive(
        self,
        done: Callable[[], Any],
        deadline: float,
        postponed: PostponedSignals,
        first: Optional[FirstCall],
        me: int,
    ) -> bool:
        """Run the loop until the condition holds, unless another thread runs it; release the lock.

        Returns True if the condition holds.
        """
        has_run = False
        held: List[bool] = []
        try:
            # Acquire and record in one step of C code: an asynchronous exception cannot separate
            # them, so it is known whether the lock has to be released.
            held.extend(map(self._driver_lock.acquire, _AT_ONCE))
            if not held[0]:
                return False
            self._driver = me
            if self._attempt is not None:
                self._mend()
            if first is not None and not self._closing:
                self._run_first(first, deadline)
            # Check again: if the last iteration of another thread made it true after the caller's
            # check, nothing would end the poll.
            while not self._closing:
                if done():
                    return True
                if has_run and (postponed.is_due or self.time() >= deadline):
                    break
                self._run_once(deadline)
                has_run = True
        finally:
            if held and held[0]:
                self._driver = me
                self._release()
        return False

    def _run_first(self, first: FirstCall, until: float) -> None:
        """Make the first call of a waiting thread; raise the exception that ended a sleep in it."""
        try:
            first.begin(until)
        except BaseException as error:
            self._mark_interrupted(error)
            raise
        if self._late is not None:
            late, self._late = self._late, None
            raise late

    def _wait_for_lock(self, done: Callable[[], Any], deadline: float) -> None:
        """Sleep, if the lock is not free, until woken to take it over or to check again."""
        waiting = WaitingThread(done)
        entry = Entry(waiting)
        try:
            self._waiting.append(entry)
            self._next_drivers.append(entry)
            if self._driver_lock.locked() and not waiting.is_done():
                if self._polling and (self._ready or self._driver == self._background_id()):
                    self._poller.wake()  # so that the background thread releases the lock
                waiting.sleep(deadline - self.time())
        finally:
            discard(self._next_drivers, entry)
            discard(self._waiting, entry)

    def _wait_for_others(
        self, done: Callable[[], Any], deadline: float, first: Optional[FirstCall], me: int
    ) -> bool:
        """Sleep until the condition holds; other threads run the loop."""
        if first is not None and len(self._ready) == 1 and _MAY_ATTEMPT:
            self._run_attempt(first, deadline, me)
            if done():
                return True
        waiting = WaitingThread(done)
        entry = Entry(waiting)
        try:
            self._waiting.append(entry)
            left = deadline - self.time()
            if left <= 0:
                self._ready.append((waiting.wake, ()))
                left = ONE_ITERATION
            elif first is None:
                self._quiet_until = 0.0  # the background thread has to make the lazy calls now
            else:
                self._first = first, deadline
            self._request_run()
            # The condition may have become true before the entry was added.
            while not done():
                # Inlined _is_done(): this runs for each record that is waited for.
                if (
                    self._closing or self._forked or self.interrupted_by is not None
                ) and self._is_done(done):
                    break
                waiting.sleep(left)
                if done():
                    break
                left = deadline - self.time()
                if left <= 0:
                    return False
                self._request_run()  # in case the last wake-up was lost
            return True
        except BaseException:  # scheduled calls are made even if this thread is ended
            self._request_run()
            raise
        finally:
            discard(self._waiting, entry)

    def _run_attempt(self, first: FirstCall, until: float, me: int) -> None:
        """Make the first call of this thread here, unless another thread has the driver lock.

        An asynchronous exception may be raised at any point, also where one is handled: so the lock
        is acquired, and released, together with a note of that, in one step of C code.
        """
        held: List[Any] = []
        late: Optional[BaseException] = None
        try:
            held.extend(map(self._driver_lock.acquire, _AT_ONCE))
            if not held[0]:
                return
            if self._attempt is None and not self._next_drivers and not self._closing:
                self._driver = me
                self._attempt = first
                first.attempt(until)
                late, self._late = self._late, None
                self._attempt = None
                timers = self._timers
                if timers and not timers[0][2].waits:
                    self._scheduler.next_time()
                self._next_due = timers[0][0] if timers else math.inf
            self._driver = None
            held.extend(map(_unlock, self._locks))
            if self._closing or self._waiting:
                self._wake_all()  # not _wake_done(): conditions of others are not checked here
            # Inlined _has_pending().
            has_pending = self._ready or self.pending > 0 or self._first is not None
            if has_pending or self._next_drivers or self._next_due < self._sleeps_until:
                self._notify_next_driver()
        except BaseException:
            try:
                self._leave(held)
            finally:  # another exception may have ended that
                self._leave(held)
                self._wake_all()
                self._notify_next_driver()
            raise
        if late is not None:
            raise late

    def _leave(self, held: List[Any]) -> None:
        """Release the driver lock after an interrupted attempt, if it was acquired."""
        if len(held) == 1 and held[0]:
            self._polling, self._driver = NO_POLL, None
            held.extend(map(_unlock, self._locks))

    def _mend(self) -> None:
        """Repair what an interrupted attempt has left half done; first in an iteration."""
        first, self._late = self._attempt, None
        self._scheduler.restore_timers()
        try:
            if first is not None:
                first.mend()
        except BaseException as error:
            self._mark_interrupted(error)
            raise
        self._attempt = None

    def _request_run(self) -> None:
        """Wake the thread that runs the loop, for a thread that only waits."""
        if self._ready or self._first is not None:
            self._notify()
        elif not self._driver_lock.locked():
            self._wake_background()

    def _release(self) -> None:
        """Release the driver lock; wake the next driver if anything is pending."""
        try:
            if self._closing:
                self._close_all()
            timers = self._timers
            if timers and not timers[0][2].waits:
                self._scheduler.next_time()
            self._next_due = timers[0][0] if timers else math.inf
        finally:
            self._driver = None
            self._driver_lock.release()
        if self._closing:
            self._wake_background()  # a callback has closed the loop while that thread sleeps
            self._wake_all()
            return
        # Inlined _has_pending(): this runs for each record that is waited for.
        has_pending = self._ready or self.pending > 0 or self._first is not None
        if has_pending or self._next_drivers or self._next_due < self._sleeps_until:
            self._notify_next_driver()
        elif self._thread is None:
            self._notify_next_driver()

    def _notify_next_driver(self) -> None:
        """Wake a thread to run the loop, unless a thread runs it."""
        if self._driver_lock.locked():
            return
        for entry in list(self._next_drivers):
            driver = entry()
            if driver is not None:
                self._notified_at = self.time()
                driver.wake()
                return
            discard(self._next_drivers, entry)
        if self._has_pending() or self._next_due < self._sleeps_until:
            if self._sleeps_until or self._thread is None:
                self._wake_background()
        elif self._thread is None and (self._poller.sockets or self._next_due < math.inf):
            self._wake_background()

    def _has_pending(self) -> bool:
        if self._first is not None or self._attempt is not None:
            return True
        return bool(self._ready) or self.pending > 0

    # ------------------------------------------------------------ one iteration

    def _run_once(self, deadline: float) -> None:
        """Poll, run due timers and ready calls, and wake the threads whose conditions hold."""
        now = self.time()
        if self._lazy:
            self._lazy, self._quiet_until = False, 0.0
            self._alert_until = now + ALERT
        happened: Any = ()
        if not self._ready or now - self._polled_at > POLL_AT_LEAST:
            happened = self._poll(now, deadline)  # outside try: an exception here is harmless
            self._polled_at = now = self.time()
        try:
            for on_ready, events in happened:
                try:
                    on_ready(events)
                except Exception:  # inlined Scheduler._guarded()
                    log.exception('a call of the loop failed: %r', on_ready)
            if self._timers and self._timers[0][0] <= now:
                self._scheduler.run_timers(now)
            if self._ready:
                self._scheduler.run_ready()
        except BaseException as error:
            self._mark_interrupted(error)
            raise
        self._iterations += 1
        if self._waiting:
            self._wake_done()

    def _mark_interrupted(self, error: BaseException) -> None:
        """Record an asynchronous exception inside an iteration; wake all waiting threads."""
        if self.interrupted_by is None:
            self.interrupted_by = error
            log.critical('%s cannot go on: %r was raised inside a turn', self.name, error)
        self._wake_all()

    def _wake_all(self) -> None:
        """Wake all waiting threads to check again: the loop has ended."""
        for entry in list(self._waiting):
            waiting = entry()
            if waiting is not None:
                waiting.wake()

    def _wake_done(self) -> None:
        """Wake the threads whose conditions hold; remove those that an exception has ended."""
        for entry in list(self._waiting):
            waiting = entry()
            if waiting is None:
                discard(self._waiting, entry)
            elif waiting.is_done():
                waiting.wake()

    def _poll(self, now: float, deadline: float) -> Any:
        timers = self._timers
        if timers and not timers[0][2].waits:
            self._scheduler.next_time()
        if timers and timers[0][0] < deadline:
            deadline = timers[0][0]
        seconds = deadline - now
        longest = NAP if now < self._alert_until else SLICE
        if seconds > longest:
            seconds = longest
        poller = self._poller
        if not poller.is_open:
            poller.open()  # before _polling is set: an earlier wake-up would be lost
        self._polling = SHORT_POLL if seconds <= NAP else LONG_POLL
        try:
            if self._ready or self._closing or (self._next_drivers and self._must_give_way()):
                seconds = 0
            return poller.poll(seconds)
        finally:
            self._polling = NO_POLL

    def is_only(self, transport: Pollable, until: float) -> bool:
        """Block inside an iteration until an event; return True if only this transport is readable.

        False if anything else has to be done: the next iteration does that, and its poll returns
        the same events. Arguments: transport: one with a descriptor; until: when to stop waiting.
        """
        timers = self._timers
        if timers and not timers[0][2].waits:
            self._scheduler.next_time()
        if timers and timers[0][0] < until:
            until = timers[0][0]
        self._polled_at = now = self.time()
        # The caller waits for its own record: the background thread need not check for lazy calls.
        self._quiet_until, self._lazy = now + ALERT, False
        seconds = until - now
        if seconds > SLICE:
            seconds = SLICE
        self._polling = LONG_POLL
        try:
            if self._ready or self._closing or (self._next_drivers and self._must_give_way()):
                return False
            is_only = self._poller.is_only(transport.descriptor, seconds)
        except BaseException as error:  # asynchronous: raised when the state is consistent
            self._late, is_only = error, False
        finally:
            self._polling = NO_POLL
        self._iterations += 1
        return is_only and not self._ready

    def _must_give_way(self) -> bool:
        return self._driver == self._background_id()

    # ------------------------------------------------------------ the background

    def start(self) -> None:
        """Start the background thread now instead of when it is needed.

        Raises KafkaConnectionError if the system has no more file descriptors, and
        IllegalStateError as call_threadsafe().
        """
        self._check_usable()
        if not self._poller.is_open:
            self._poller.open()  # here, so that its error is raised to the caller
        self._wake_background()

    def _background_id(self) -> Optional[int]:
        return None if self._thread is None else self._thread.ident

    def _has_background(self) -> bool:
        """Return True if a background thread exists; start it if necessary."""
        if self._thread is None:
            self._wake_background()
        return self._thread is not None

    def _wake_background(self) -> None:
        """Wake the background thread, or start it."""
        if self._thread is None:
            with self._thread_lock:
                if self._thread is None and not self._closing:
                    self._start_thread()
            return
        try:
            self._background_wakeup.release()
        except RuntimeError:  # it was woken already
            pass

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._background, name=self.name, daemon=True)
        if started(thread):  # otherwise at interpreter exit: callers run the loop
            self._thread = thread

    def _background(self) -> None:
        me = threading.current_thread()
        with self._thread_lock:
            # An exception may have ended the thread that started this one before it assigned
            # self._thread.
            if self._thread is not None and self._thread is not me:
                return
            self._thread = me
        try:
            self._run_background()
            # Here rather than in the thread that calls close(), which an exception may end.
            if self._driver_lock.acquire(timeout=FINISHING):
                try:
                    self._close_all()
                finally:
                    self._driver_lock.release()
        finally:
            if not self._closing:
                self._thread = None  # the next thread that needs it starts another

    def _run_background(self) -> None:
        seen = self._iterations
        while not self._closing:
            now = self.time()
            # If so, the thread that made a lazy call is about to do the work itself.
            is_quiet = now < self._quiet_until and self._lazy
            if self._has_work(now) and (
                self._iterations == seen
                or self._first is not None
                or self._attempt is not None
                or (self._ready and not is_quiet)
            ):
                if self._driver_lock.acquire(False):
                    self._drive_in_background()
            if self._is_over():  # closed by a callback: nothing would end the sleep
                return
            now, seen = self.time(), self._iterations
            if (self._lazy or self._ready) and not is_quiet:
                self._alert_until = max(self._alert_until, now + ALERT)
            self._background_sleep(now)

    def _is_over(self) -> bool:
        return self._closing

    def _is_free(self) -> bool:
        """Return True if the lock is free and no caller waits to take it over."""
        return (
            not self._driver_lock.locked()
            and not self._next_drivers
            and self.interrupted_by is None
        )

    def _has_work(self, now: float) -> bool:
        if not self._is_free():
            return False
        return self._has_pending() or self._next_due <= now or self._heartbeat() <= now

    def _is_due_before(self, until: float) -> bool:
        return self._has_pending() or min(self._next_due, self._heartbeat()) < until

    def _heartbeat(self) -> float:
        """Return when the idle sockets have to be checked next."""
        return self._polled_at + HEARTBEAT if self._poller.sockets else math.inf

    def _drive_in_background(self) -> None:
        """Run the loop until nothing is pending or a caller wants the lock."""
        self._driver = threading.get_ident()
        try:
            deadline = 0.0  # the first iteration must not block: maybe nothing is pending
            if self._attempt is not None:
                self._mend()
            while not self._closing:
                if self._first is not None:
                    (first, until), self._first = self._first, None
                    self._run_first(first, until)
                    self._wake_done()
                else:
                    self._run_once(deadline)
                    deadline = math.inf
                if self._next_drivers or not self._has_pending():
                    return
        finally:
            self._release()

    def _background_sleep(self, now: float) -> None:
        """Sleep until there is work, or until it is time to check for work."""
        if self._next_drivers and not self._driver_lock.locked():
            self._wait_for_next_driver(now)
            return
        if now < self._alert_until or now < self._quiet_until:
            is_long = self._driver_lock.locked() or (now < self._quiet_until and not self._ready)
            self._background_wakeup.acquire(timeout=LONG_NAP if is_long else NAP)
            return
        # The driver runs timers and calls while it has the lock, and wakes this thread when it
        # releases it. A thread that begins to wait wakes this thread too.
        until = now + SLICE
        if self._is_free():
            until = min(until, self._next_due, self._heartbeat())
        self._sleeps_until = until
        try:
            # _sleeps_until is set; now check again, see the end of the module's docstring.
            if self._lazy or (self._is_free() and self._is_due_before(until)):
                return
            self._background_wakeup.acquire(timeout=max(0.0, until - now))
        finally:
            self._sleeps_until = 0.0

    def _wait_for_next_driver(self, now: float) -> None:
        """Leave a free lock for at most HANDOVER seconds to a caller woken to take it over."""
        left = self._notified_at + HANDOVER - now
        if left > 0:
            self._background_wakeup.acquire(timeout=left)
        else:  # an exception may have ended that caller; if not, it adds itself again
            del self._next_drivers[:]

    # ------------------------------------------------------------ for coroutines and transports

    @property
    def poller(self) -> Poller:
        """The selector that sockets are registered with."""
        return self._poller

    async def resolve(self, host: str, port: int, timeout: float) -> List[Address]:
        """Return all addresses of a host.

        Raises KafkaConnectionError for an unknown name, KafkaTimeoutError if that takes longer than
        `timeout` seconds.
        """
        return await resolve(self._executor, host, port, timeout)

    async def blocking(self, function: Callable[[], T], timeout: float, what: str) -> T:
        """Run a blocking function in another thread; return its result.

        Arguments: what: a description of the call for error texts. Raises the error of the
        function, and as Executor.run().
        """
        return await self._executor.run(function, timeout, what)

    async def connect(
        self, address: Address, timeout: float, options: Optional[SocketOptions] = None
    ) -> Transport:
        """Return a connection to an address.

        Raises KafkaConnectionError if it cannot be reached, KafkaTimeoutError if the connection is
        not established after `timeout` seconds.
        """
        transport = await open_transport(self, address, options or SocketOptions(), timeout)
        self._transports[transport] = None
        return transport

    def forget_transport(self, transport: Transport) -> None:
        """Remove a closed transport."""
        self._transports.pop(transport, None)

    # ------------------------------------------------------------ the end

    def close(self, timeout: float = 5.0) -> None:
        """Cancel all coroutines, close all connections and end the background thread.

        Arguments: timeout: seconds for all of it. Coroutines that have not ended by then are
        dropped, and a thread that does not end its iteration is not waited for.

        May be called more than once, from any thread. A callback of the loop may call it too: the
        loop is then closed after that iteration.
        """
        if self._forked or self._closed:
            return
        deadline = self.time() + timeout
        if self.runs_here():
            self._closing = True
            return  # closed when the lock is released
        try:
            if not self._closing:
                cancelled: List[bool] = []
                self._ready.append((self._cancel_all, (cancelled,)))
                # Calls scheduled before _cancel_all() may begin tasks too, so wait for all tasks.
                self.wait(lambda: cancelled and not self._scheduler.tasks, max(0.0, timeout / 2))
        except IllegalStateError:  # another thread has closed it
            pass
        except BaseException:  # Ctrl-C: close without further waiting
            deadline = 0.0
            raise
        finally:
            self._end(deadline)

    def _end(self, deadline: float) -> None:
        """Stop the iterations and close everything, or let the last driver do that."""
        self._closing = True
        held: List[bool] = []
        try:
            self._stop_background(max(0.0, deadline - self.time()))
            # In one step of C code, as in _drive().
            held.extend(
                map(self._driver_lock.acquire, (True,), (max(0.0, deadline - self.time()),))
            )
            if held[0]:
                self._close_all()  # does nothing if the background thread has done it
        finally:
            if held and held[0]:
                self._driver_lock.release()
            self._wake_all()

    def _cancel_all(self, cancelled: List[bool]) -> None:
        for task in list(self._scheduler.tasks):
            task.cancel()
        cancelled.append(True)

    def _close_all(self) -> None:
        """Close everything, under the driver lock. May be called again after an exception."""
        if self._closed:
            return
        for transport in list(self._transports):
            transport.close()
            transport.abandon()  # in case an earlier close() was ended by an exception
            self._transports.pop(transport, None)
        self._scheduler.drop_all()
        self._poller.close()
        self._closed = True

    def _stop_background(self, seconds: float) -> None:
        """Let the background thread end; wait for it at most `seconds`."""
        self._poller.wake()
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return
        self._wake_background()
        if not _is_ending():
            thread.join(seconds)

    def abandon(self) -> None:
        """Drop everything in the child of a fork, without effect on the parent's connections."""
        self._forked = True
        self._closing = True
        self._thread = None
        _left_behind.append(self._scheduler.abandon())
        self._ready, self._timers = self._scheduler.ready, self._scheduler.timers
        self._poller.close()
        for transport in list(self._transports):
            transport.abandon()
        self._transports.clear()


_left_behind: List[Any] = []


def _is_ending() -> bool:
    return sys.is_finalizing()


_loops: weakref.WeakSet[Any] = weakref.WeakSet()


def _after_fork() -> None:
    for loop in list(_loops):
        loop.abandon()


if hasattr(os, 'register_at_fork'):
    os.register_at_fork(after_in_child=_after_fork)
