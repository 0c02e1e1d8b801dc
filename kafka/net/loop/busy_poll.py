"""Adaptive busy-polling: spin briefly on the socket before blocking in the selector.

Blocking and being woken takes about as long as a response of a broker nearby. Polling is limited to
the option busy_poll_us, and skipped if responses usually take longer. The thread yields the
processor after each poll. If it does not get the processor back within LENT seconds, the machine is
busy, and the thread blocks at once for a while: the scheduler prefers a thread that has slept to
threads that compute. This pause grows while the machine stays busy. Used by the Poller, under the
driver lock.
"""

from __future__ import annotations

import os
import time
from typing import Any, Callable, List

__all__ = ['BusyPoll']

#: Seconds for which another thread may take the processor. The time slice of a thread that computes
#: is longer.
LENT = 0.0005
#: Shortest and longest pause in seconds, without polling, after the processor was taken for longer.
SHORTEST, LONGEST = 0.01, 2.0
#: Factor that shortens the pause with each response that polling received.
LESS = 0.995
#: Weight of the last response in the moving average of response times.
PART = 0.125

_give_way = getattr(os, 'sched_yield', None)


class BusyPoll:
    """Decides when to poll without blocking, and does it.

    Arguments: longest: limit in seconds of polling in one wait, 0 for no polling; now: a monotonic
    clock in seconds; give_way: yields the processor; None, where the system has no such call,
    disables polling.
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
        self._usual = 0.0  # moving average of response times, in seconds
        self._pause = SHORTEST
        self._rests_until = 0.0

    def __repr__(self) -> str:
        return '<BusyPoll of %.0f us, answers take %.0f us>' % (
            self._longest * 1e6,
            self._usual * 1e6,
        )

    def wait(self, ask: Callable[[float, int], List[Any]], seconds: float, most: int) -> List[Any]:
        """Return the events of the last call of ``ask(seconds, most)``.

        Arguments: ask: blocks for at most `seconds`, not at all for 0, and returns the events;
        seconds: negative for no limit; most: maximum number of events.
        """
        longest = self._longest
        if not longest:
            return ask(seconds, most)
        now = self._now()
        if now >= self._rests_until and self._usual < longest and not 0 <= seconds <= longest:
            came = self._asked(ask, most, now)
            if came:
                return came
            if seconds > 0:  # polling has used some of the time
                seconds = max(0.0, seconds - (self._now() - now))
        came = ask(seconds, most)
        self._took(self._now() - now)
        return came

    def _asked(self, ask: Callable[[float, int], List[Any]], most: int, now: float) -> List[Any]:
        """Poll repeatedly; return the events, or none if it is time to block."""
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
        """Add the time of a response to the average; outliers count as twice the limit."""
        self._usual += PART * (min(seconds, 2 * self._longest) - self._usual)
