"""What happens later in an embedded broker: a clock, and calls that wait for their time.

Owns both. The clock is handed in: that of the machine when the broker is reached over sockets, a
virtual one when client and broker run in one thread and time passes only by :meth:`Timers.advance`.
"""

from __future__ import annotations

import heapq
import itertools
import time
from typing import Callable, List, Optional, Tuple, Union


class SystemClock:
    """The clock of the machine."""

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic()

    def wall_ms(self) -> int:
        """Return milliseconds since the epoch."""
        return int(time.time() * 1000)


class VirtualClock:
    """A clock that stands still until it is moved.

    Arguments: wall_ms: what time it is at first, in milliseconds since the epoch.
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
    """One call that waits; ``cancel()`` is allowed at any time."""

    __slots__ = ('_call', 'when')

    def __init__(self, when: float, call: Callable[[], None]) -> None:
        self.when = when
        self._call: Optional[Callable[[], None]] = call

    def cancel(self) -> None:
        """Forget the call."""
        self._call = None

    @property
    def waits(self) -> bool:
        """Whether it was neither made nor cancelled."""
        return self._call is not None

    def run(self) -> None:
        """Make the call, once."""
        call, self._call = self._call, None
        if call is not None:
            call()


class Timers:
    """Calls in the order of their times. Of one thread; a driver asks for what is due.

    Arguments: clock: SystemClock or VirtualClock.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._waiting: List[Tuple[float, int, Timer]] = []
        self._count = itertools.count()

    def later(self, seconds: float, call: Callable[[], None]) -> Timer:
        """Call something after so many seconds; those of one time in the order they were given."""
        timer = Timer(self.clock.monotonic() + max(0.0, seconds), call)
        heapq.heappush(self._waiting, (timer.when, next(self._count), timer))
        return timer

    def next_time(self) -> Optional[float]:
        """Return when the next call is due, None if nothing waits."""
        while self._waiting and not self._waiting[0][2].waits:
            heapq.heappop(self._waiting)
        return self._waiting[0][0] if self._waiting else None

    def run_due(self) -> None:
        """Make all calls whose time has come, also those that they add for now."""
        while True:
            when = self.next_time()
            if when is None or when > self.clock.monotonic():
                return
            heapq.heappop(self._waiting)[2].run()

    def advance(self, seconds: float) -> None:
        """Let virtual time pass; each call finds the clock at its own time.

        Raises TypeError for a clock that cannot be moved.
        """
        clock = self.clock
        if not isinstance(clock, VirtualClock):
            raise TypeError('only a VirtualClock can be moved, not %s' % type(clock).__name__)
        end = clock.monotonic() + seconds
        while True:
            when = self.next_time()
            if when is None or when > end:
                break
            clock.move_to(when)
            self.run_due()
        clock.move_to(end)
