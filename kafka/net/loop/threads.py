"""Division of the loop's turns between the calls that wait for it and the background thread.

Owns: the turn and its handing over, the background thread, sleeping and waking. Does not own: tasks
and timers (tasks.py), what a socket does (transport.py), how a thread sleeps (parked.py).

**The turn** is a lock. Whoever holds it runs turns: it polls, runs timers, runs what is ready. An
exception that comes from outside, raised by a signal's handler or by another thread with
``PyThreadState_SetAsyncExc``, would tear whatever coroutine runs at that moment. So turns are run
only where none comes: in the main thread, where signals are held off meanwhile (signals.py),
and in the background thread, which nobody else knows of. There a call that blocks takes the turn if
it is free and runs the loop until it has what it waits for, so that a lone ``send(); get()`` needs
no switch of threads. If another has the turn, it parks, and is called to take over.

**Every other thread** only parks: it leaves what is to be done to the background, and sleeps until
whoever runs the turn finds that it has what it waits for. An exception that hits it there harms
nobody else: the loop holds only a weak reference to a parked thread, and a call that was brought
is told of even if its thread is being ended. Threads of programs patched by gevent or eventlet
are greenlets, in which exceptions are raised where they wait and nowhere else; all of them run
turns. So does any thread if there can be no background thread.

**Torn.** What is raised inside a turn all the same, in the main thread by
``PyThreadState_SetAsyncExc``, may have left anything half done. It goes to the caller, and from
then on each call says so (``torn``); only close() works.

**The background thread** runs turns when no caller does and something is *owed*: calls are ready, a
timer is due, or a transport expects an answer (``owed``). It is started when a caller leaves
something behind, or calls without waiting. When callers come that run turns it gives way, for a
moment: if none takes the turn, it goes on. When nothing is owed it rests, without the turn, until
the next timer; for as long as anything is connected it looks once a second whether a broker has
hung up.

**Lazy calls** come from programs that send and do not wait. The first one wakes the background
thread, or ends the poll. For the next 50 ms nobody sleeps for longer than a millisecond, and calls
that come meanwhile wake nobody: to be woken for each record would cost more than to look. Where the
caller takes up its own call and waits for the answer, all is calm: the background, which would find
nothing, looks every 5 ms.

The flags are read and written by several threads without a lock. Each pair that must not miss each
other does "tell, then look": whoever brings a call appends it and then looks who sleeps; whoever is
going to sleep says so and then looks whether there are calls.
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
from collections import deque
from typing import Any, Callable, List, Optional, Tuple

from kafka.errors import IllegalStateError
from kafka.net.loop.helpers import started
from kafka.net.loop.parked import Entry, Parked, discard
from kafka.net.loop.selector import Poller
from kafka.net.loop.signals import Interrupts, main_ident
from kafka.net.loop.tasks import Scheduler

__all__ = ['Driving']

log = logging.getLogger(__name__)

#: Seconds that a poll or a rest takes at most while lazy calls come.
NAP = 0.001
#: The same for a rest while a caller has the turn: it does what is owed.
LONG_NAP = 0.005
#: Seconds for which that goes on after the last of them.
ALERT = 0.05
#: Seconds after which somebody looks at connections that nobody uses.
HEARTBEAT = 1.0
#: Seconds after which ready calls no longer have precedence over sockets.
POLL_AT_LEAST = 0.005
#: Longest sleep of a primitive; where Ctrl-C does not end one, it is looked for so often.
SLICE = 0.2 if os.name == 'nt' else 3600.0
#: For so long the background leaves a free turn to a caller who was called to take it over.
HANDING_OVER = 0.05
#: For so long the background waits, when all is over, for who still runs the last turn.
FINISHING = 5.0
#: Longest time that a call whose timeout is over waits for one turn of the background.
ONE_TURN = 0.01

_getpid = os.getpid
_AT_ONCE = (False,)

#: What a caller who waits does first, in the turn. Arguments: when it waits no longer.
Begin = Callable[[float], Any]

# What a poll is, for whoever may have to end it.
NO_POLL, SHORT_POLL, LONG_POLL = 0, 1, 2


class Driving(Scheduler):
    """A scheduler whose turns are run by callers and by a thread in the background.

    Arguments: name: of that thread; busy_poll: see Poller.

    Attributes: owed: how many transports expect something; they count themselves; torn: what was
    raised inside a turn from outside, None if nothing was.
    """

    def __init__(self, name: str, busy_poll: float = 0.0) -> None:
        super().__init__()
        self.name = name
        self.owed = 0
        self._pid = os.getpid()
        self._forked = False
        self._closing = False
        self._poller = Poller(busy_poll)
        # Held by whoever runs turns: guards tasks, timers and all that coroutines touch.
        self._turn = threading.Lock()
        self._driver: Optional[int] = None  # the thread in the turn
        self._parked: List[Entry] = []
        self._heirs: List[Entry] = []  # those of them who are to run turns
        self._handed_at = 0.0  # when one of those was called last
        self._begin: Optional[Tuple[Begin, float]] = None  # for the background to do first
        self._late: Optional[BaseException] = None  # ended a sleep in the middle of a turn
        self.torn: Optional[BaseException] = None
        # Of gevent or eventlet: greenlets take each other's place only where they wait.
        self._is_green = not isinstance(threading.get_ident, types.BuiltinFunctionType)
        self._turns = 0
        self._polling = NO_POLL
        self._polled_at = 0.0
        self._next_due = math.inf  # as it was when the turn was left
        self._lazy = False  # a lazy call came
        self._alert_until = 0.0
        self._calm_until = 0.0  # callers take up their own lazy calls so long
        # Guards the start of the thread.
        # Reentrant: while it is started a finalizer may bring a call.
        self._thread_lock = threading.RLock()
        self._thread: Optional[threading.Thread] = None
        self._bell = threading.Lock()  # released to wake the thread
        self._bell.acquire()
        self._rests_until = 0.0  # of a rest that calls must end; 0: there is none
        _loops.add(self)

    # Seconds that never go back; asked twenty times for one request, so nothing stands around it.
    time: Callable[[], float] = staticmethod(time.monotonic)

    def wall(self) -> float:
        """Return seconds since the epoch."""
        return time.time()

    # ------------------------------------------------------------ calls from any thread

    def call_threadsafe(self, call: Callable[..., Any], *args: Any) -> None:
        """Call something in the next turn, from any thread. Raises IllegalStateError after close().

        Raises it in the child of a fork as well, and when the loop was torn.
        """
        self._check_usable()
        try:
            self._ready.append((call, args))
            self._rouse()
        except BaseException:  # from outside: maybe the call is there and nobody was woken
            self._rouse()
            raise

    def call_from_finalizer(self, call: Callable[..., Any], *args: Any) -> None:
        """Call something in a turn of the background thread, from a finalizer.

        Python runs those at any place of any thread: this takes no lock, starts nothing and waits
        for nothing. Without a background thread, as after close(), nothing is called.
        """
        if self._closing or self._forked or self._thread is None or _getpid() != self._pid:
            return
        self._ready.append((call, args))
        if self._polling:
            self._poller.wake()
        try:
            self._bell.release()
        except RuntimeError:  # it was rung already
            pass

    def call_lazily(self, call: Callable[..., Any], *args: Any) -> None:
        """Call something within some milliseconds, from any thread; errors as call_threadsafe().

        Costs a fraction of a microsecond but for the first one in a while.
        """
        if self._closing or self._forked or self.torn is not None:
            self._check_usable()
        try:
            self._ready.append((call, args))
            self._lazy = True
            if self._polling == SHORT_POLL:
                return
            if self._polling or (not self._turn.locked() and self._rests_until):
                self._rouse()
            elif self._thread is None and not self._turn.locked():
                self._rouse()
        except BaseException:  # as above
            self._rouse()
            raise

    def _rouse(self) -> None:
        """See to it that somebody runs a turn soon."""
        if self._polling:
            self._poller.wake()
        elif not self._turn.locked():
            self._ring()

    def runs_here(self) -> bool:
        """Tell whether this is a call of the loop, where nothing may wait for it."""
        return self._driver == threading.get_ident()

    def _check_usable(self) -> None:
        if self._forked or os.getpid() != self._pid:
            raise IllegalStateError(
                'this client was made in process %d and cannot be used in process %d, which was'
                ' forked from it: make a new one here' % (self._pid, os.getpid())
            )
        if self._closing:
            raise IllegalStateError('the client is closed')
        if self.torn is not None:
            raise IllegalStateError(
                'the client cannot go on: %r was raised inside its network loop: close it and make'
                ' a new one' % (self.torn,)
            ) from self.torn

    # ------------------------------------------------------------ waiting

    def wait(self, done: Any, timeout: Optional[float], begin: Optional[Begin] = None) -> bool:
        """Block until something has happened; tell whether it has.

        Arguments:
            done: a function without arguments, asked again and again and maybe in other threads;
                or an object with the attribute ``is_done``. It has to change in turns of the loop.
            timeout: seconds; None for no end. With 0 one turn is run if nobody else runs any.
            begin: called in the turn before anything else, if this thread gets the turn at once,
                with when the timeout is over; raises nothing.

        Raises IllegalStateError in a call of the loop itself, which would wait for itself; after
        close(); and in the child of a fork.
        """
        ask = done if callable(done) else lambda: done.is_done
        if ask():
            return True
        me = threading.get_ident()
        if self._driver == me:
            self._check_caller()
        if self._closing or self._forked or self.torn is not None or _getpid() != self._pid:
            if self._is_done(ask):
                return True
        deadline = math.inf if timeout is None else self.time() + timeout
        # The main thread is where handlers of signals are called.
        if (
            me == main_ident[0]
            or self._is_green
            or (self._thread is None and not self._has_background())
        ):
            return self._wait_in_turns(ask, deadline, begin, me)
        return self._wait_parked(ask, deadline, begin)

    def _is_done(self, done: Callable[[], Any]) -> bool:
        """Return whether something has happened; raise if nothing will happen any more."""
        if done():
            return True
        try:
            self._check_usable()
        except IllegalStateError:
            if done():  # since it was asked, and then another thread has closed the loop
                return True
            raise
        return False

    def _check_caller(self) -> None:
        if self.runs_here():
            raise IllegalStateError(
                'a call that blocks was made in a callback: there it would wait for itself'
            )
        self._check_usable()

    def _wait_in_turns(
        self, done: Callable[[], Any], deadline: float, begin: Optional[Begin], me: int
    ) -> bool:
        """Run turns until something is done; park while another thread runs them."""
        has_parked = False
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
                # As _is_done(), without its call: this is asked in each poll().
                if (self._closing or self._forked or self.torn is not None) and self._is_done(done):
                    return True
                if self.time() >= deadline:
                    return False
                has_parked, begin = True, None
                self._park(done, deadline)
        except BaseException:
            if self._driver == me:  # what came from outside has kept it from leaving the turn
                self._leave()
            else:  # or, when it was left, from finding somebody for it
                self._pass_on()
            raise
        finally:
            if has_parked:  # maybe it was called to take over, and does not
                self._pass_on()

    def _drive(
        self,
        done: Callable[[], Any],
        deadline: float,
        interrupts: Interrupts,
        begin: Optional[Begin],
        me: int,
    ) -> bool:
        """Run turns until something is done, if nobody else does; leave the turn.

        Returns whether it is known to be done.
        """
        has_run = False
        held: List[bool] = []
        try:
            # In one step, so that it is known whether the lock is to be released.
            held.extend(map(self._turn.acquire, _AT_ONCE))
            if not held[0]:
                return False
            self._driver = me
            if begin is not None and not self._closing:
                self._run_begin(begin, deadline)
            # It may have happened after the caller asked, in the last turn of another thread:
            # nothing would end the poll then.
            while not self._closing:
                if done():
                    return True
                if has_run and (interrupts.is_due or self.time() >= deadline):
                    break
                self._run_turn(deadline)
                has_run = True
        finally:
            if held and held[0]:
                self._driver = me
                self._leave()
        return False

    def _run_begin(self, begin: Begin, until: float) -> None:
        """Do in the turn what a caller wants to be done first; raise what ended a sleep there."""
        try:
            begin(until)
        except BaseException as error:
            self._tear(error)
            raise
        if self._late is not None:
            late, self._late = self._late, None
            raise late

    def _park(self, done: Callable[[], Any], deadline: float) -> None:
        """Sleep until called to take over or to look again, if somebody else has the turn."""
        parked = Parked(done)
        entry = Entry(parked)
        try:
            self._parked.append(entry)
            self._heirs.append(entry)
            if self._turn.locked() and not parked.is_done():
                if self._polling and (self._ready or self._driver == self._background_id()):
                    self._poller.wake()  # which lets the background give way
                parked.sleep(deadline - self.time())
        finally:
            discard(self._heirs, entry)
            discard(self._parked, entry)

    def _wait_parked(
        self, done: Callable[[], Any], deadline: float, begin: Optional[Begin]
    ) -> bool:
        """Sleep until something is done in the turns of other threads."""
        parked = Parked(done)
        entry = Entry(parked)
        try:
            self._parked.append(entry)
            left = deadline - self.time()
            if left <= 0:
                self._ready.append((parked.call, ()))
                left = ONE_TURN
            elif begin is None:
                self._calm_until = 0.0  # nobody takes up lazy calls but the background
            else:
                self._begin = begin, deadline
            self._want_turns()
            # It may have happened before there was an entry.
            while not done():
                # As _is_done(), without its call: this is asked for each record.
                if (self._closing or self._forked or self.torn is not None) and self._is_done(done):
                    break
                parked.sleep(left)
                if done():
                    break
                left = deadline - self.time()
                if left <= 0:
                    return False
                self._want_turns()  # in case it was lost
            return True
        except BaseException:  # what was brought is done all the same
            self._want_turns()
            raise
        finally:
            discard(self._parked, entry)

    def _want_turns(self) -> None:
        """Let the background run turns if there is anything to do, for a thread that only waits."""
        if self._ready or self._begin is not None:
            self._rouse()
        elif not self._turn.locked():
            self._ring()

    def _leave(self) -> None:
        """Leave the turn to others, and see to it that there are some if anything is owed."""
        try:
            if self._closing:
                self._end_turns()
            timers = self._timers
            if timers and not timers[0][2].waits:
                self._next_time()
            self._next_due = timers[0][0] if timers else math.inf
        finally:
            self._driver = None
            self._turn.release()
        if self._closing:
            self._ring()  # a call in the turn has closed the loop, while the background rests
            self._call_all()
            return
        # As _is_owed(), without its call: this is left for each record that is waited for.
        owes = self._ready or self.owed > 0 or self._begin is not None
        if owes or self._heirs or self._next_due < self._rests_until:
            self._pass_on()
        elif self._thread is None:
            self._pass_on()

    def _end_turns(self) -> None:
        """Close what is open: a call in the turn has closed the loop, and no other is run."""
        raise NotImplementedError

    def _pass_on(self) -> None:
        """Find somebody for a turn that is free."""
        if self._turn.locked():
            return
        for entry in list(self._heirs):
            heir = entry()
            if heir is not None:
                self._handed_at = self.time()
                heir.call()
                return
            discard(self._heirs, entry)
        if self._is_owed() or self._next_due < self._rests_until:
            if self._rests_until or self._thread is None:
                self._ring()
        elif self._thread is None and (self._poller.sockets or self._next_due < math.inf):
            self._ring()

    def _is_owed(self) -> bool:
        return bool(self._ready) or self.owed > 0 or self._begin is not None

    # ------------------------------------------------------------ one turn

    def _run_turn(self, deadline: float) -> None:
        """Poll, run what is due and what is ready, and call those who wait for it."""
        now = self.time()
        if self._lazy:
            self._lazy, self._calm_until = False, 0.0
            self._alert_until = now + ALERT
        happened: Any = ()
        if not self._ready or now - self._polled_at > POLL_AT_LEAST:
            happened = self._poll(now, deadline)  # what ends a poll does no harm
            self._polled_at = now = self.time()
        try:
            for on_ready, events in happened:
                try:
                    on_ready(events)
                except Exception:  # as _guarded(), without a call for each
                    log.exception('a call of the loop failed: %r', on_ready)
            if self._timers and self._timers[0][0] <= now:
                self._run_timers(now)
            if self._ready:
                self._run_ready()
        except BaseException as error:
            self._tear(error)
            raise
        self._turns += 1
        if self._parked:
            self._call_parked()

    def _tear(self, error: BaseException) -> None:
        """Note that something was raised inside a turn from outside; tell all who wait."""
        if self.torn is None:
            self.torn = error
            log.critical('%s cannot go on: %r was raised inside a turn', self.name, error)
        self._call_all()

    def _call_all(self) -> None:
        """Let all who wait look again: nothing will be done for them any more."""
        for entry in list(self._parked):
            parked = entry()
            if parked is not None:
                parked.call()

    def _call_parked(self) -> None:
        """Wake the threads that have what they wait for; forget those that an exception ended."""
        for entry in list(self._parked):
            parked = entry()
            if parked is None:
                discard(self._parked, entry)
            elif parked.is_done():
                parked.call()

    def _poll(self, now: float, deadline: float) -> Any:
        timers = self._timers
        if timers and not timers[0][2].waits:
            self._next_time()
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
            if self._ready or self._closing or (self._heirs and self._must_give_way()):
                seconds = 0
            return poller.poll(seconds)
        finally:
            self._polling = NO_POLL

    def is_only(self, transport: Any, until: float) -> bool:
        """Sleep in the turn until anything happens; tell whether a transport can be read.

        False also when anything else is to be done: which turns do that follow, and when they poll
        they are told of the same. Arguments: transport: which has a descriptor; until: when to
        sleep no longer.
        """
        timers = self._timers
        if timers and not timers[0][2].waits:
            self._next_time()
        if timers and timers[0][0] < until:
            until = timers[0][0]
        self._polled_at = now = self.time()
        # Who waits for what it sent has no need of others that look.
        self._calm_until, self._lazy = now + ALERT, False
        seconds = until - now
        if seconds > SLICE:
            seconds = SLICE
        self._polling = LONG_POLL
        try:
            if self._ready or self._closing or (self._heirs and self._must_give_way()):
                return False
            is_only = self._poller.is_only(transport.descriptor, seconds)
        except BaseException as error:  # from outside: raised once the turn is in order
            self._late, is_only = error, False
        finally:
            self._polling = NO_POLL
        self._turns += 1
        return is_only and not self._ready

    def _must_give_way(self) -> bool:
        return self._driver == self._background_id()

    # ------------------------------------------------------------ the background

    def start(self) -> None:
        """Start the background thread now, and not when it is needed first."""
        self._check_usable()
        if not self._poller.is_open:
            self._poller.open()  # what it needs may be used up: the caller hears of that
        self._ring()

    def _background_id(self) -> Optional[int]:
        return None if self._thread is None else self._thread.ident

    def _has_background(self) -> bool:
        """Return True if there is a background thread, started now if need be."""
        if self._thread is None:
            self._ring()
        return self._thread is not None

    def _ring(self) -> None:
        """Wake the background thread, or start it."""
        if self._thread is None:
            with self._thread_lock:
                if self._thread is None and not self._closing:
                    self._start_thread()
            return
        try:
            self._bell.release()
        except RuntimeError:  # it was rung already
            pass

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._background, name=self.name, daemon=True)
        if started(thread):  # else the program is about to end: callers have to do without
            self._thread = thread

    def _background(self) -> None:
        me = threading.current_thread()
        with self._thread_lock:
            # Whoever started it may have been ended between that and saying so.
            if self._thread is not None and self._thread is not me:
                return
            self._thread = me
        try:
            self._run_background()
            # Here, and not in the thread that closes the loop: that one may be ended in the middle.
            if self._turn.acquire(timeout=FINISHING):
                try:
                    self._end_turns()
                finally:
                    self._turn.release()
        finally:
            if not self._closing:
                self._thread = None  # the next one who needs it starts another

    def _run_background(self) -> None:
        seen = self._turns
        while not self._closing:
            now = self.time()
            # Then who brought a lazy call is about to take it up.
            is_calm = now < self._calm_until and self._lazy
            if self._has_work(now) and (
                self._turns == seen or self._begin is not None or (self._ready and not is_calm)
            ):
                if self._turn.acquire(False):
                    self._drive_in_background()
            if self._is_over():  # closed by a call in the turn: nobody would end the rest
                return
            now, seen = self.time(), self._turns
            if (self._lazy or self._ready) and not is_calm:
                self._alert_until = max(self._alert_until, now + ALERT)
            self._rest(now)

    def _is_over(self) -> bool:
        return self._closing

    def _is_free(self) -> bool:
        """Tell whether the turn is free, and no caller was called to take it over."""
        return not self._turn.locked() and not self._heirs and self.torn is None

    def _has_work(self, now: float) -> bool:
        if not self._is_free():
            return False
        return self._is_owed() or self._next_due <= now or self._heartbeat() <= now

    def _is_due_before(self, until: float) -> bool:
        return self._is_owed() or min(self._next_due, self._heartbeat()) < until

    def _heartbeat(self) -> float:
        """Return when somebody has to look at the sockets."""
        return self._polled_at + HEARTBEAT if self._poller.sockets else math.inf

    def _drive_in_background(self) -> None:
        """Run turns until nothing is owed or a caller wants the turn."""
        self._driver = threading.get_ident()
        try:
            deadline = 0.0  # of the first turn, for which there may be nothing to wait
            while not self._closing:
                if self._begin is not None:
                    (begin, until), self._begin = self._begin, None
                    self._run_begin(begin, until)
                    self._call_parked()
                else:
                    self._run_turn(deadline)
                    deadline = math.inf
                if self._heirs or not self._is_owed():
                    return
        finally:
            self._leave()

    def _rest(self, now: float) -> None:
        """Sleep until there is work, or until it is to be looked for."""
        if self._heirs and not self._turn.locked():
            self._wait_for_heir(now)
            return
        if now < self._alert_until or now < self._calm_until:
            is_long = self._turn.locked() or (now < self._calm_until and not self._ready)
            self._bell.acquire(timeout=LONG_NAP if is_long else NAP)
            return
        # Who has the turn does what is due, and tells when it leaves it; so does who parks.
        until = now + SLICE
        if self._is_free():
            until = min(until, self._next_due, self._heartbeat())
        self._rests_until = until
        try:
            # Told that it rests; now look again.
            if self._lazy or (self._is_free() and self._is_due_before(until)):
                return
            self._bell.acquire(timeout=max(0.0, until - now))
        finally:
            self._rests_until = 0.0

    def _wait_for_heir(self, now: float) -> None:
        """Leave a free turn to who was called to take it over, unless that takes too long."""
        left = self._handed_at + HANDING_OVER - now
        if left > 0:
            self._bell.acquire(timeout=left)
        else:  # an exception may have ended it; if not, it comes back
            del self._heirs[:]

    # ------------------------------------------------------------ the end

    def _stop_background(self, seconds: float) -> None:
        """Let the background thread end, and wait so long for that."""
        self._poller.wake()
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return
        self._ring()
        if not _is_ending():
            thread.join(seconds)

    def _abandon(self) -> None:
        """Let go of everything in the child of a fork: nothing of it may touch the parent's."""
        self._forked = True
        self._closing = True
        self._thread = None
        # Coroutines that are let go run what is behind their ``finally``. Here they must not.
        _left_behind.append((self._tasks, self._ready, self._timers))
        self._tasks, self._ready, self._timers = {}, deque(), []
        self._poller.close()


_left_behind: List[Any] = []


def _is_ending() -> bool:
    return sys.is_finalizing()


_loops: weakref.WeakSet[Any] = weakref.WeakSet()


def _after_fork() -> None:
    for loop in list(_loops):
        loop._abandon()


if hasattr(os, 'register_at_fork'):
    os.register_at_fork(after_in_child=_after_fork)
