"""Adaptive busy-polling: polls briefly for a response before it sleeps in the selector.

To be put to sleep and woken takes as long as a broker nearby takes to respond. Polling has a limit
(option busy_poll_us); it is left out where responses take longer than that; and before each poll
the processor is offered to other threads. If one of them takes it for long, this computer is busy:
then the thread sleeps at once for a while, as a thread that slept gets the processor before those
that compute. That while grows as long as the computer is busy. Used by the Poller, under the driver
lock.
"""

from __future__ import annotations

import os
import time
from typing import Any, Callable, List

__all__ = ['BusyPoll']

#: Seconds for which others may take the processor. The time slice of one that computes is longer.
LENT = 0.0005
#: Seconds, at least and at most, without polling after that.
SHORTEST, LONGEST = 0.01, 2.0
#: The factor by which each response in time shortens a pause.
LESS = 0.995
#: The weight of the last response in the average of their times.
PART = 0.125

_give_way = getattr(os, 'sched_yield', None)


class BusyPoll:
    """Polls without sleeping, for a moment, where that pays.

    Arguments: longest: seconds of polling in one wait, 0 for none; now: returns seconds that never
    go back; give_way: offers the processor to others, None where the system has no call for that,
    which switches polling off.
    """

    __slots__ = ('_give_way', '_longest', '_now', '_pause', '_rests_until', '_usual')

    def __init__(
        self,
        longest: float,
        now: Callable[[], float] = time.monotonic,
        give_way: Any = _give_way,
    ) -> None:
        self._longest = longest if give_way is not None else 0.0
        self._now = now
        self._give_way = give_way
        self._usual = 0.0  # seconds that an answer takes
        self._pause = SHORTEST
        self._rests_until = 0.0

    def __repr__(self) -> str:
        return '<BusyPoll of %.0f us, answers take %.0f us>' % (
            self._longest * 1e6,
            self._usual * 1e6,
        )

    def wait(self, ask: Callable[[float, int], List[Any]], seconds: float, most: int) -> List[Any]:
        """Return what comes: of the last call of ``ask(seconds, most)``, which sleeps so long.

        Arguments: ask: sleeps for as many seconds as it is told, none for 0, and returns what has
        come; seconds: negative for no end.
        """
        longest = self._longest
        if not longest:
            return ask(seconds, most)
        now = self._now()
        if now >= self._rests_until and self._usual < longest and not 0 <= seconds <= longest:
            came = self._asked(ask, most, now)
            if came:
                return came
            if seconds > 0:  # some of them are over
                seconds = max(0.0, seconds - (self._now() - now))
        came = ask(seconds, most)
        self._took(self._now() - now)
        return came

    def _asked(self, ask: Callable[[float, int], List[Any]], most: int, now: float) -> List[Any]:
        """Ask again and again; return what comes, nothing if it is time to sleep."""
        begun, end = now, now + self._longest
        while now < end:
            came = ask(0, most)
            if came:
                self._took(now - begun)
                if self._pause > SHORTEST:
                    self._pause *= LESS
                return came
            self._give_way()
            before, now = now, self._now()
            if now - before > LENT:
                self._rests_until = now + self._pause
                self._pause = min(2 * self._pause, LONGEST)
                break
        return []

    def _took(self, seconds: float) -> None:
        """Learn how long an answer took. One that takes very long says no more than others."""
        self._usual += PART * (min(seconds, 2 * self._longest) - self._usual)
