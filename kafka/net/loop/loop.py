"""The event loop of one client: coroutines, timers and sockets, run by the threads that wait.

Made by NetworkClient. Tasks and timers are kept by a Scheduler, sockets by a Poller; this class
decides which thread runs them, and hands the results to the threads that wait. Every client calls
it from any thread; coroutines use it inside of an iteration (``run_once`` below).

**The driver lock** is held by the thread that runs iterations: it polls, runs timers, runs what is
ready. An exception from outside, raised by the handler of a signal or by another thread with
``PyThreadState_SetAsyncExc``, would hit whatever coroutine runs at that moment. So iterations are
run only where none comes: in the main thread, where signals are postponed meanwhile (signals.py),
and in the background thread, which no program knows of. A call that blocks in the main thread takes
the lock if it is free and runs the loop until it has what it waits for, so that a lone
``send(); get()`` needs no switch of threads. If another thread has the lock, it waits, and is
woken to take over.

**Every other thread** only waits: it leaves the work to the background thread, and sleeps until the
driver finds that it has what it waits for. An exception that hits it there harms no other: the
loop holds only a weak reference to a thread that waits, and a call that was brought wakes the
driver even if its thread is being ended. Threads of programs patched by gevent or eventlet are
greenlets, in which exceptions are raised where they wait and nowhere else; all of them run
iterations. So does any thread if no background thread can be started.

**Interrupted.** An exception that is raised inside of an iteration all the same, in the main thread
by ``PyThreadState_SetAsyncExc``, may have left anything half done. It is raised to the caller, and
from then on each call fails with it as the cause (``interrupted_by``); only close() works.

**The background thread** runs iterations when no caller does and something is *pending*: calls are
ready, a timer is due, or a transport expects a response (``pending``). It is started when a caller
leaves something to be done, or calls without waiting. When callers come that run the loop it gives
way, for a moment: if none takes the lock, it goes on. When nothing is pending it sleeps, without
the lock, until the next timer; for as long as anything is connected it checks once a second whether
a broker has closed the connection.

**Lazy calls** come from programs that send and do not wait. The first one wakes the background
thread, or ends the poll. For the next 50 ms no thread sleeps for longer than a millisecond, and
calls that come meanwhile wake no thread: to be woken for each record would cost more than to look.
Where the caller sends its record itself and waits for the response, the background thread would
find nothing, and looks every 5 ms (``_quiet_until``).

The flags are read and written by several threads without a lock. Each pair that must not miss each
other does "write, then check": a thread that brings a call appends it and then checks who sleeps; a
thread that is going to sleep says so and then checks whether there are calls.
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
from typing import TYPE_CHECKING, Any, Callable, Coroutine, Dict, List, Optional, Tuple, TypeVar

from kafka.errors import IllegalStateError, KafkaTimeoutError
from kafka.net.loop.event_loop import Pollable
from kafka.net.loop.executor import Executor, started
from kafka.net.loop.selector import Poller
from kafka.net.loop.signals import Interrupts, main_ident
from kafka.net.loop.tasks import Scheduler, Task
from kafka.net.resolver import Address, resolve
from kafka.net.transport import SocketOptions, Transport, open_transport

__all__ = ['Loop']

log = logging.getLogger(__name__)

T = TypeVar('T')

#: Seconds that a poll or a rest takes at most while lazy calls come.
NAP = 0.001
#: The same for a sleep of the background while a caller runs the loop and does what is pending.
LONG_NAP = 0.005
#: Seconds for which that goes on after the last of them.
ALERT = 0.05
#: Seconds between two checks of connections that no request uses.
HEARTBEAT = 1.0
#: Seconds after which ready calls no longer have precedence over sockets.
POLL_AT_LEAST = 0.005
#: Longest sleep of a primitive. On Windows Ctrl-C does not end one, so it is checked so often.
SLICE = 0.2 if os.name == 'nt' else 3600.0
#: Seconds for which the background leaves a free lock to a caller that was woken to take it over.
HANDOVER = 0.05
#: Seconds for which the background waits, at the end, for a thread in the last iteration.
FINISHING = 5.0
#: Longest time that a call whose timeout is over waits for one iteration of the background.
ONE_ITERATION = 0.01

_getpid = os.getpid
_AT_ONCE = (False,)

#: What a caller that waits wants to be done first, in an iteration. Argument: its deadline.
Begin = Callable[[float], Any]

# The kinds of polls, for a thread that may have to end one.
NO_POLL, SHORT_POLL, LONG_POLL = 0, 1, 2

if TYPE_CHECKING:
    #: What the loop holds of a thread that waits.
    Entry = weakref.ReferenceType['WaitingThread']
else:
    Entry = weakref.ref  # not subscriptable before Python 3.9

#: Longest sleep of a thread that waits; then it checks itself, in case a wake-up was lost.
LONGEST_WAIT = 0.2 if os.name == 'nt' else 5.0


class WaitingThread:
    """A thread that waits while another one runs the loop.

    Made by the thread that waits, woken by the driver. The loop holds only weak references: the
    thread may be ended by an exception at any point, and an entry that it left is gone with its
    frame. Its lock guards nothing and is slept on.

    Arguments: done: returns whether the thread has what it waits for; called in any thread.
    """

    __slots__ = ('__weakref__', '_lock', 'done')

    def __init__(self, done: Callable[[], Any]) -> None:
        self.done = done
        self._lock = threading.Lock()
        self._lock.acquire()

    def sleep(self, seconds: float) -> None:
        """Sleep until woken, at most so many seconds, and no longer than LONGEST_WAIT."""
        self._lock.acquire(timeout=max(0.0, min(seconds, LONGEST_WAIT)))

    def wake(self) -> None:
        """End the sleep; the next one, if the thread does not sleep now."""
        try:
            self._lock.release()
        except RuntimeError:  # it was woken already
            pass

    def is_done(self) -> bool:
        """Return True if it has what it waits for; on an error too, which its own thread raises."""
        try:
            return bool(self.done())
        except Exception:
            return True


def discard(entries: List[Entry], entry: Entry) -> None:
    """Remove an entry, which another thread may have removed already."""
    try:
        entries.remove(entry)
    except ValueError:
        pass


class Loop:
    """Runs the coroutines of one client.

    Arguments: name: of the background thread, as ``<client id>-network-thread``; busy_poll: seconds
    for which a thread that waits for one response may poll the socket before it sleeps; clock:
    returns seconds that never go back.

    Attributes: name; pending: how many transports expect a response, which they count themselves;
    interrupted_by: what was raised inside of an iteration from outside, None if nothing was.

    Making one opens nothing and starts nothing. After a fork each call in the child raises
    IllegalStateError; the parent goes on.
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
        # Called twenty times for one request, so the function itself and not a method around it.
        self.time = clock
        self._scheduler = scheduler = Scheduler(clock)
        # The scheduler's own: what runs for each record goes without a call in between.
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
        # Held by the thread that runs iterations: guards tasks, timers and all that coroutines
        # touch.
        self._driver_lock = threading.Lock()
        self._driver: Optional[int] = None  # the thread that holds it
        self._waiting: List[Entry] = []  # threads
        self._next_drivers: List[Entry] = []  # those of them that are to run iterations
        self._notified_at = 0.0  # when one of those was woken last
        self._begin: Optional[Tuple[Begin, float]] = None  # for the background to do first
        self._late: Optional[BaseException] = None  # ended a sleep in the middle of an iteration
        # Of gevent or eventlet: greenlets take each other's place only where they wait.
        self._is_green = not isinstance(threading.get_ident, types.BuiltinFunctionType)
        self._iterations = 0
        self._polling = NO_POLL
        self._polled_at = 0.0
        self._next_due = math.inf  # as it was when the lock was released
        self._lazy = False  # a lazy call came
        self._alert_until = 0.0
        self._quiet_until = 0.0  # callers send their own records so long
        # Guards the start of the thread.
        # Reentrant: while it is started a finalizer may bring a call.
        self._thread_lock = threading.RLock()
        self._thread: Optional[threading.Thread] = None
        self._background_wakeup = threading.Lock()  # released to wake the thread
        self._background_wakeup.acquire()
        self._sleeps_until = 0.0  # of a sleep that calls must end; 0: there is none
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
        """Call something in the next iteration, from any thread.

        Raises IllegalStateError after close(), in the child of a fork, and when the loop was
        interrupted.
        """
        self._check_usable()
        try:
            self._ready.append((call, args))
            self._notify()
        except BaseException:  # from outside: maybe the call was appended and no thread woken
            self._notify()
            raise

    def call_from_finalizer(self, call: Callable[..., Any], *args: Any) -> None:
        """Call something in an iteration of the background thread, from a finalizer.

        Python runs finalizers at any place of any thread: this takes no lock, starts nothing and
        waits for nothing. Without a background thread, as after close(), nothing is called.
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
        """Call something within some milliseconds, from any thread; errors as call_threadsafe().

        Costs a fraction of a microsecond but for the first one in a while.
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
        """End the poll of the driver; wake the background thread if there is no driver."""
        if self._polling:
            self._poller.wake()
        elif not self._driver_lock.locked():
            self._wake_background()

    def runs_here(self) -> bool:
        """Return True if this is a call of the loop, in which nothing may wait for the loop."""
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

    def wait(self, done: Any, timeout: Optional[float], begin: Optional[Begin] = None) -> bool:
        """Block until something has happened; return True if it has.

        Arguments:
            done: a function without arguments, called again and again and maybe in other threads;
                or an object with the attribute ``is_done``. It has to change in the loop.
            timeout: seconds; None for no limit. With 0 one iteration is run if no other thread has
                the driver lock.
            begin: called with the deadline in the first iteration, before anything else, if this
                thread gets the driver lock at once; raises nothing.

        Raises IllegalStateError in a call of the loop itself, which would wait for itself; after
        close(); and in the child of a fork.
        """
        ask = done if callable(done) else lambda: done.is_done
        if ask():
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
            if self._is_done(ask):
                return True
        deadline = math.inf if timeout is None else self.time() + timeout
        # The main thread is where handlers of signals are called.
        if (
            me == main_ident[0]
            or self._is_green
            or (self._thread is None and not self._has_background())
        ):
            return self._wait_driving(ask, deadline, begin, me)
        return self._wait_for_others(ask, deadline, begin)

    def run(self, coroutine: Coroutine[Any, Any, T], timeout: Optional[float]) -> T:
        """Run a coroutine from any thread and return what it returns.

        Arguments: timeout: seconds; None for no limit.

        Raises KafkaTimeoutError after that time, and cancels the coroutine; what the coroutine
        raises; and as wait().
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
            task.asked = True  # by this call: its error is not logged
            if not task.done:
                self._give_up(task)
            raise

    def _give_up(self, task: Task[Any]) -> None:
        try:
            self.call_threadsafe(self._scheduler.cancel, task)
        except IllegalStateError:  # closed meanwhile, which cancels those that had begun
            if task not in self._scheduler.tasks:
                task.drop()

    def _is_done(self, done: Callable[[], Any]) -> bool:
        """Return True if something has happened; raise if nothing will happen any more."""
        if done():
            return True
        try:
            self._check_usable()
        except IllegalStateError:
            if done():  # after the check above, and then another thread has closed the loop
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
        self, done: Callable[[], Any], deadline: float, begin: Optional[Begin], me: int
    ) -> bool:
        """Run the loop until something is done; wait while another thread runs it."""
        has_waited = False
        try:
            while True:
                interrupts = Interrupts(self._poller.wake)
                try:
                    interrupts.begin()
                    if self._drive(done, deadline, interrupts, begin, me):
                        return True
                finally:
                    interrupts.end()
                if done():
                    return True
                # As _is_done(), without its call: each poll() of a consumer comes here.
                if (
                    self._closing or self._forked or self.interrupted_by is not None
                ) and self._is_done(done):
                    return True
                if self.time() >= deadline:
                    return False
                has_waited, begin = True, None
                self._wait_for_lock(done, deadline)
        except BaseException:
            if self._driver == me:  # the exception came before it could release the lock
                self._release()
            else:  # or after that, before the next driver was woken
                self._notify_next_driver()
            raise
        finally:
            if has_waited:  # maybe it was woken to take over, and does not
                self._notify_next_driver()

    def _drive(
        self,
        done: Callable[[], Any],
        deadline: float,
        interrupts: Interrupts,
        begin: Optional[Begin],
        me: int,
    ) -> bool:
        """Run the loop until something is done, if no other thread does; release the lock.

        Returns True if it is known to be done.
        """
        has_run = False
        held: List[bool] = []
        try:
            # In one step, so that it is known whether the lock is to be released.
            held.extend(map(self._driver_lock.acquire, _AT_ONCE))
            if not held[0]:
                return False
            self._driver = me
            if begin is not None and not self._closing:
                self._run_begin(begin, deadline)
            # It may have happened after the caller checked, in the last iteration of another
            # thread: nothing would end the poll then.
            while not self._closing:
                if done():
                    return True
                if has_run and (interrupts.is_due or self.time() >= deadline):
                    break
                self._run_once(deadline)
                has_run = True
        finally:
            if held and held[0]:
                self._driver = me
                self._release()
        return False

    def _run_begin(self, begin: Begin, until: float) -> None:
        """Call what a caller wants to be done first; raise what ended a sleep in it."""
        try:
            begin(until)
        except BaseException as error:
            self._mark_interrupted(error)
            raise
        if self._late is not None:
            late, self._late = self._late, None
            raise late

    def _wait_for_lock(self, done: Callable[[], Any], deadline: float) -> None:
        """Sleep until woken to take over or to check again, if another thread has the lock."""
        waiting = WaitingThread(done)
        entry = Entry(waiting)
        try:
            self._waiting.append(entry)
            self._next_drivers.append(entry)
            if self._driver_lock.locked() and not waiting.is_done():
                if self._polling and (self._ready or self._driver == self._background_id()):
                    self._poller.wake()  # which lets the background give way
                waiting.sleep(deadline - self.time())
        finally:
            discard(self._next_drivers, entry)
            discard(self._waiting, entry)

    def _wait_for_others(
        self, done: Callable[[], Any], deadline: float, begin: Optional[Begin]
    ) -> bool:
        """Sleep until something is done by other threads that run the loop."""
        waiting = WaitingThread(done)
        entry = Entry(waiting)
        try:
            self._waiting.append(entry)
            left = deadline - self.time()
            if left <= 0:
                self._ready.append((waiting.wake, ()))
                left = ONE_ITERATION
            elif begin is None:
                self._quiet_until = 0.0  # only the background makes lazy calls now
            else:
                self._begin = begin, deadline
            self._request_run()
            # It may have happened before there was an entry.
            while not done():
                # As _is_done(), without its call: each record that is waited for comes here.
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
                self._request_run()  # in case it was lost
            return True
        except BaseException:  # the calls that were brought are made all the same
            self._request_run()
            raise
        finally:
            discard(self._waiting, entry)

    def _request_run(self) -> None:
        """Let the background run the loop if there is work, for a thread that only waits."""
        if self._ready or self._begin is not None:
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
            self._wake_background()  # a call in the loop has closed it while the background sleeps
            self._wake_all()
            return
        # As _has_pending(), without its call: each record that is waited for comes here.
        has_pending = self._ready or self.pending > 0 or self._begin is not None
        if has_pending or self._next_drivers or self._next_due < self._sleeps_until:
            self._notify_next_driver()
        elif self._thread is None:
            self._notify_next_driver()

    def _notify_next_driver(self) -> None:
        """Wake a thread to run the loop, if no thread does."""
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
        return bool(self._ready) or self.pending > 0 or self._begin is not None

    # ------------------------------------------------------------ one iteration

    def _run_once(self, deadline: float) -> None:
        """Poll, run what is due and what is ready, and wake the threads that wait for it."""
        now = self.time()
        if self._lazy:
            self._lazy, self._quiet_until = False, 0.0
            self._alert_until = now + ALERT
        happened: Any = ()
        if not self._ready or now - self._polled_at > POLL_AT_LEAST:
            happened = self._poll(now, deadline)  # an exception that ends a poll does no harm
            self._polled_at = now = self.time()
        try:
            for on_ready, events in happened:
                try:
                    on_ready(events)
                except Exception:  # as _guarded(), without a call for each
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
        """Note that an exception came from outside inside of an iteration; wake all that wait."""
        if self.interrupted_by is None:
            self.interrupted_by = error
            log.critical('%s cannot go on: %r was raised inside a turn', self.name, error)
        self._wake_all()

    def _wake_all(self) -> None:
        """Let all threads that wait check again: nothing will be done for them any more."""
        for entry in list(self._waiting):
            waiting = entry()
            if waiting is not None:
                waiting.wake()

    def _wake_done(self) -> None:
        """Wake the threads that have what they wait for; forget those that an exception ended."""
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
            poller.open()  # a wake-up before that would be lost
        self._polling = SHORT_POLL if seconds <= NAP else LONG_POLL
        try:
            if self._ready or self._closing or (self._next_drivers and self._must_give_way()):
                seconds = 0
            return poller.poll(seconds)
        finally:
            self._polling = NO_POLL

    def is_only(self, transport: Pollable, until: float) -> bool:
        """Sleep in an iteration until anything happens; return True if a transport can be read.

        False also when anything else is to be done: the next iteration does that, and its poll
        returns the same. Arguments: transport: one with a descriptor; until: when to stop
        sleeping.
        """
        timers = self._timers
        if timers and not timers[0][2].waits:
            self._scheduler.next_time()
        if timers and timers[0][0] < until:
            until = timers[0][0]
        self._polled_at = now = self.time()
        # A caller that waits for its own record needs no other thread that looks.
        self._quiet_until, self._lazy = now + ALERT, False
        seconds = until - now
        if seconds > SLICE:
            seconds = SLICE
        self._polling = LONG_POLL
        try:
            if self._ready or self._closing or (self._next_drivers and self._must_give_way()):
                return False
            is_only = self._poller.is_only(transport.descriptor, seconds)
        except BaseException as error:  # from outside: raised once the iteration is in order
            self._late, is_only = error, False
        finally:
            self._polling = NO_POLL
        self._iterations += 1
        return is_only and not self._ready

    def _must_give_way(self) -> bool:
        return self._driver == self._background_id()

    # ------------------------------------------------------------ the background

    def start(self) -> None:
        """Start the background thread now, before it is needed."""
        self._check_usable()
        if not self._poller.is_open:
            self._poller.open()  # raises to the caller where there are no more descriptors
        self._wake_background()

    def _background_id(self) -> Optional[int]:
        return None if self._thread is None else self._thread.ident

    def _has_background(self) -> bool:
        """Return True if there is a background thread, started now if need be."""
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
        if started(thread):  # else the program is about to end: callers run the loop
            self._thread = thread

    def _background(self) -> None:
        me = threading.current_thread()
        with self._thread_lock:
            # The thread that started it may have been ended before it assigned self._thread.
            if self._thread is not None and self._thread is not me:
                return
            self._thread = me
        try:
            self._run_background()
            # Here, and not in the thread that closes the loop, which an exception may end.
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
            # Then the thread that brought a lazy call is about to do its work itself.
            is_quiet = now < self._quiet_until and self._lazy
            if self._has_work(now) and (
                self._iterations == seen
                or self._begin is not None
                or (self._ready and not is_quiet)
            ):
                if self._driver_lock.acquire(False):
                    self._drive_in_background()
            if self._is_over():  # closed by a call in the iteration: nothing would end the sleep
                return
            now, seen = self.time(), self._iterations
            if (self._lazy or self._ready) and not is_quiet:
                self._alert_until = max(self._alert_until, now + ALERT)
            self._background_sleep(now)

    def _is_over(self) -> bool:
        return self._closing

    def _is_free(self) -> bool:
        """Return True if the lock is free, and no caller was woken to take it over."""
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
        """Return when the sockets have to be checked next."""
        return self._polled_at + HEARTBEAT if self._poller.sockets else math.inf

    def _drive_in_background(self) -> None:
        """Run the loop until nothing is pending or a caller wants the lock."""
        self._driver = threading.get_ident()
        try:
            deadline = 0.0  # of the first iteration, in which there may be nothing to wait for
            while not self._closing:
                if self._begin is not None:
                    (begin, until), self._begin = self._begin, None
                    self._run_begin(begin, until)
                    self._wake_done()
                else:
                    self._run_once(deadline)
                    deadline = math.inf
                if self._next_drivers or not self._has_pending():
                    return
        finally:
            self._release()

    def _background_sleep(self, now: float) -> None:
        """Sleep until there is work, or until it is time to look for some."""
        if self._next_drivers and not self._driver_lock.locked():
            self._wait_for_next_driver(now)
            return
        if now < self._alert_until or now < self._quiet_until:
            is_long = self._driver_lock.locked() or (now < self._quiet_until and not self._ready)
            self._background_wakeup.acquire(timeout=LONG_NAP if is_long else NAP)
            return
        # The driver does what is due, and wakes this thread when it releases the lock; so does a
        # thread that begins to wait.
        until = now + SLICE
        if self._is_free():
            until = min(until, self._next_due, self._heartbeat())
        self._sleeps_until = until
        try:
            # The sleep is announced; now check again.
            if self._lazy or (self._is_free() and self._is_due_before(until)):
                return
            self._background_wakeup.acquire(timeout=max(0.0, until - now))
        finally:
            self._sleeps_until = 0.0

    def _wait_for_next_driver(self, now: float) -> None:
        """Leave a free lock to a caller that was woken to take it over, for a moment."""
        left = self._notified_at + HANDOVER - now
        if left > 0:
            self._background_wakeup.acquire(timeout=left)
        else:  # an exception may have ended that caller; if not, it comes back
            del self._next_drivers[:]

    # ------------------------------------------------------------ for coroutines and transports

    @property
    def poller(self) -> Poller:
        """The selector that sockets are registered with."""
        return self._poller

    async def resolve(self, host: str, port: int, timeout: float) -> List[Address]:
        """Return all addresses of a host.

        Raises KafkaConnectionError for a name that is not known, KafkaTimeoutError when that takes
        longer than `timeout` seconds.
        """
        return await resolve(self._executor, host, port, timeout)

    async def blocking(self, function: Callable[[], T], timeout: float, what: str) -> T:
        """Run a function that blocks in another thread; return what it returns.

        Arguments: what: what it does, for errors. Raises what it raises, and as Executor.run().
        """
        return await self._executor.run(function, timeout, what)

    async def connect(
        self, address: Address, timeout: float, options: Optional[SocketOptions] = None
    ) -> Transport:
        """Return a connection to an address.

        Raises KafkaConnectionError when it cannot be reached, KafkaTimeoutError when that is not
        known after `timeout` seconds.
        """
        transport = await open_transport(self, address, options or SocketOptions(), timeout)
        self._transports[transport] = None
        return transport

    def forget_transport(self, transport: Transport) -> None:
        """Remove a transport that was closed."""
        self._transports.pop(transport, None)

    # ------------------------------------------------------------ the end

    def close(self, timeout: float = 5.0) -> None:
        """Cancel all coroutines, close all connections and end the background thread.

        Arguments: timeout: seconds that all of it may take. Coroutines that do not end by then are
        dropped, and a thread that does not end its iteration is not waited for.

        May be called again, from any thread, and from a call of the loop, which closes it after
        that iteration.
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
                # Calls that were brought before it may begin tasks as well.
                self.wait(lambda: cancelled and not self._scheduler.tasks, max(0.0, timeout / 2))
        except IllegalStateError:  # another thread has closed it
            pass
        except BaseException:  # Ctrl-C: it is closed all the same, without further waiting
            deadline = 0.0
            raise
        finally:
            self._end(deadline)

    def _end(self, deadline: float) -> None:
        """Run no more iterations, and close what is open, or let the last driver do that."""
        self._closing = True
        held: List[bool] = []
        try:
            self._stop_background(max(0.0, deadline - self.time()))
            # In one step, so that it is known whether the lock is to be released.
            held.extend(
                map(self._driver_lock.acquire, (True,), (max(0.0, deadline - self.time()),))
            )
            if held[0]:
                self._close_all()  # unless the background has done it
        finally:
            if held and held[0]:
                self._driver_lock.release()
            self._wake_all()

    def _cancel_all(self, cancelled: List[bool]) -> None:
        for task in list(self._scheduler.tasks):
            task.cancel()
        cancelled.append(True)

    def _close_all(self) -> None:
        """Close what is open, under the driver lock. May be called again after an exception."""
        if self._closed:
            return
        for transport in list(self._transports):
            transport.close()
            transport.abandon()  # one whose close() an exception has ended
            self._transports.pop(transport, None)
        self._scheduler.drop_all()
        self._poller.close()
        self._closed = True

    def _stop_background(self, seconds: float) -> None:
        """Let the background thread end; wait for that at most so many seconds."""
        self._poller.wake()
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return
        self._wake_background()
        if not _is_ending():
            thread.join(seconds)

    def abandon(self) -> None:
        """Let go of everything in the child of a fork: nothing of it may touch the parent's."""
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
