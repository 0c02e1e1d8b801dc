"""Timers of an embedded cluster and their clocks.

Used on one thread. The clock is that of the machine if the brokers are reached over sockets, or a
virtual one if client and brokers run in one thread and time passes only by :meth:`Timers.advance`.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from typing import Callable, List, Optional, Tuple, Union

#: From this number of timers on cancelled ones are removed.
CLEAN_AT = 1024


class SystemClock:
    """The clock of the machine."""

    def monotonic(self) -> float:
        """Return monotonic seconds."""
        return time.monotonic()

    def wall_ms(self) -> int:
        """Return milliseconds since the epoch."""
        return int(time.time() * 1000)


class VirtualClock:
    """A clock that is moved explicitly.

    Arguments: wall_ms: the initial time, in milliseconds since the epoch.
    """

    def __init__(self, wall_ms: int = 1_600_000_000_000) -> None:
        self._start_ms = wall_ms
        self._now = 0.0

    def monotonic(self) -> float:
        """Return the seconds since the clock was made."""
        return self._now

    def wall_ms(self) -> int:
        """Return milliseconds since the epoch."""
        return self._start_ms + int(self._now * 1000)

    def move_to(self, now: float) -> None:
        """Move to a later time; an earlier one is ignored."""
        self._now = max(self._now, now)


Clock = Union[SystemClock, VirtualClock]


class Timer:
    """A scheduled call; ``cancel()`` is allowed at any time."""

    __slots__ = ('_call', 'when')

    def __init__(self, when: float, call: Callable[[], None]) -> None:
        self.when = when
        self._call: Optional[Callable[[], None]] = call

    def cancel(self) -> None:
        """Cancel the call."""
        self._call = None

    @property
    def waits(self) -> bool:
        """Whether the call is still scheduled."""
        return self._call is not None

    def run(self) -> None:
        """Make the call, unless it was made or cancelled."""
        call, self._call = self._call, None
        if call is not None:
            call()


class Timers:
    """Scheduled calls, in the order of their times. Used on one thread; a driver runs what is due.

    Arguments: clock: SystemClock or VirtualClock.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._waiting: List[Tuple[float, int, Timer]] = []
        self._count = itertools.count()
        self._clean_at = CLEAN_AT

    def later(self, seconds: float, call: Callable[[], None]) -> Timer:
        """Schedule a call after ``seconds``; calls for the same time keep their order."""
        return self.at(self.clock.monotonic() + max(0.0, seconds), call)

    def at(self, when: float, call: Callable[[], None]) -> Timer:
        """Schedule a call at a time of the clock; otherwise as later()."""
        timer = Timer(when, call)
        heapq.heappush(self._waiting, (timer.when, next(self._count), timer))
        if len(self._waiting) >= self._clean_at:
            self._clean()
        return timer

    def _clean(self) -> None:
        """Remove cancelled timers, which may be due in years."""
        self._waiting = [each for each in self._waiting if each[2].waits]
        heapq.heapify(self._waiting)
        self._clean_at = max(CLEAN_AT, 2 * len(self._waiting))

    def next_time(self) -> Optional[float]:
        """Return when the next call is due, None if nothing is scheduled."""
        while self._waiting and not self._waiting[0][2].waits:
            heapq.heappop(self._waiting)
        return self._waiting[0][0] if self._waiting else None

    def run_due(self) -> None:
        """Make all calls that are due, including those that they schedule for now."""
        while True:
            when = self.next_time()
            if when is None or when > self.clock.monotonic():
                return
            heapq.heappop(self._waiting)[2].run()

    def advance(self, seconds: float) -> None:
        """Let virtual time pass; the clock is at the time of each call when it runs.

        Raises TypeError if the clock is not a VirtualClock.
        """
        clock = self._movable()
        end = clock.monotonic() + seconds
        while self.step(end):
            pass
        clock.move_to(end)

    def step(self, end: float = math.inf) -> bool:
        """Let virtual time pass until the next call, and make only that one.

        Arguments: end: calls after this time are not made.
        Returns: False if no call was made. Raises TypeError if the clock is not a VirtualClock.
        """
        clock = self._movable()
        when = self.next_time()
        if when is None or when > end:
            return False
        clock.move_to(when)
        heapq.heappop(self._waiting)[2].run()
        return True

    def _movable(self) -> VirtualClock:
        if not isinstance(self.clock, VirtualClock):
            raise TypeError('only a VirtualClock can be moved, not %s' % type(self.clock).__name__)
        return self.clock
