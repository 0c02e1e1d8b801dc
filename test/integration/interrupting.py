"""Exceptions raised at random into calls of a client, as job runners do with their time limits.

Chaos programs make their calls through ``Interrupter.call()``. About once a second one of these
calls is hit: in the main thread by a signal whose handler raises, in any other thread by
``PyThreadState_SetAsyncExc``; by turns with an Exception and with a BaseException. Calls that are
too short to be met so, such as send(), are hit at one of their points (test/raising.py). The
program's own code is never hit, so that it can keep its books: a call that is running is *exposed*,
and a hit that comes too late for it is waited for.
"""

from __future__ import annotations

import random
import signal
import sys
import threading
import time
from itertools import starmap

from test.raising import Raiser, raise_in

#: A hit that has not come out of a call by then was swallowed by it.
SWALLOWED_SECONDS = 3.0
#: A short call is hit at one of so many points, drawn so that early ones are not rare.
MOST_POINTS = 300
#: So many short calls are tried until one has the point drawn. From 3.13 on the interpreter leaves
#: out events of code that was left by an exception: then none has it.
MOST_TRIES = 50
#: For so long a call that waits is looked for, before a short one is hit.
LOOKING_SECONDS = 0.05


class TimeLimit(Exception):
    """What a job runner raises into a job that takes too long."""


class Shutdown(BaseException):
    """What a job runner raises into a worker that is to end."""


class Interrupted(Exception):
    """A call was hit: it may have done its work or not."""


class Uninterrupted:
    """Makes calls as they are: what programs use when nothing is to be raised."""

    hits = swallowed = 0

    def call(self, function, *arguments):
        """Return what a call returns."""
        return function(*arguments)


class Interrupter(threading.Thread):
    """Hits calls of the thread that made it, until end() is called.

    Arguments: seconds: the mean time between two hits; seed.

    Attributes: hits: so many were raised; swallowed: so many did not come out of a call.
    """

    def __init__(self, seconds=1.0, seed=0):
        super().__init__(name='interrupter', daemon=True)
        self.hits = self.swallowed = 0
        self._target = threading.get_ident()
        self._is_main = threading.current_thread() is threading.main_thread()
        self._seconds, self._chance = seconds, random.Random(seed)
        self._is_exposed = False
        self._is_armed = False  # the next call is hit at one of its points
        self._tries = 0  # calls since then that did not have the point
        self._caught = 0
        # Held while a hit is decided, so that it finds an exposed call or none.
        self._gate = threading.Lock()
        self._ends = threading.Event()
        self._kinds = [TimeLimit, Shutdown]
        if self._is_main:
            self._before = signal.signal(signal.SIGUSR2, self._on_signal)
        self._hook_before, sys.unraisablehook = sys.unraisablehook, self._on_unraisable
        self.start()

    def _on_unraisable(self, unraisable):
        """Take what the interpreter itself swallows: in finalizers and callbacks of weakrefs."""
        if issubclass(unraisable.exc_type, (TimeLimit, Shutdown)):
            self._caught += 1
        else:
            self._hook_before(unraisable)

    def _on_signal(self, number, frame):
        raise self._kind('a time limit was reached')

    @property
    def _kind(self):
        return self._kinds[self.hits % 2]

    def run(self):
        """Hit, until it ends."""
        while not self._ends.wait(self._seconds * (0.5 + self._chance.random())):
            deadline = time.monotonic() + LOOKING_SECONDS
            while not self._hit():
                if time.monotonic() > deadline or self._chance.random() < 0.1:
                    self._is_armed = True
                    break
                time.sleep(self._chance.random() * 0.002)

    def _hit(self):
        with self._gate:
            if not self._is_exposed:
                return False
            self._is_exposed = False
            self.hits += 1
            if self._is_main:
                signal.pthread_kill(self._target, signal.SIGUSR2)
            else:
                raise_in(self._target, self._kind)
            return True

    def call(self, function, *arguments):
        """Return what a call returns, and raise what it raises; Interrupted if it was hit.

        A result that comes with a hit is returned: no step of Python is between it and the list.
        """
        results, error, caught = [], None, self._caught
        try:
            if self._is_armed:
                self._call_armed(results, function, arguments)
            else:
                self._is_exposed = True
                results.extend(starmap(function, [arguments]))
        except (TimeLimit, Shutdown):
            self._caught += 1
        except Exception as other:
            if isinstance(other.__cause__, (TimeLimit, Shutdown)):  # it hit a listener as it began
                self._caught += 1
            else:
                error = other
        self.cover()
        if results:
            return results[0]
        if error is not None:
            raise error
        assert self._caught > caught
        raise Interrupted(getattr(function, '__name__', repr(function)))

    def _call_armed(self, results, function, arguments):
        """Make a call that is hit at one of its points, if it has so many."""
        raiser = Raiser(int(MOST_POINTS ** self._chance.random()), self._strike)
        try:
            with raiser:
                results.extend(starmap(function, [arguments]))
        finally:
            self._tries += 1
            self._is_armed = raiser.raised_at is None and self._tries < MOST_TRIES
            if not self._is_armed:
                self._tries = 0

    def _strike(self):
        """Hit this thread. Counted here: a callback before that point has nothing to wait for."""
        kind = self._kind
        self.hits += 1
        if self._is_main:
            signal.raise_signal(signal.SIGUSR2)
        else:
            raise kind('a time limit was reached')

    def catch(self):
        """Take note that the exception of a hit ended in code that cannot pass it on."""
        self._caught += 1

    def cover(self):
        """Expose no call any more, and take what was raised and has not come yet."""
        deadline = time.monotonic() + SWALLOWED_SECONDS
        while True:
            try:
                with self._gate:
                    self._is_exposed = False
                if self.hits == self._caught:
                    return
                if time.monotonic() > deadline:
                    self.swallowed += 1
                    self._caught = self.hits
                    return
                time.sleep(0.0005)
            except (TimeLimit, Shutdown):
                self._caught += 1

    def end(self):
        """Hit nothing any more."""
        self._ends.set()
        self.join()
        sys.unraisablehook = self._hook_before
        if self._is_main:
            signal.signal(signal.SIGUSR2, self._before)
