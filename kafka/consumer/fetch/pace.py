"""When one broker may be asked for records again, and how long it is to wait for some.

Owns: pauses after failures and after answers that came at once and said nothing, and how long a
broker keeps a request while there is nothing to tell. Does not own: requests (manager.py), what is
asked (node_selection.py). Pure.

A broker answers as soon as there is a record, however long it may wait. So one that had nothing to
tell for a while may wait longer: an idle consumer costs both sides less, and no record comes later
for it. What else the program may want of it meanwhile must not wait as long: whoever sends gives
such a request up (`is_long`).
"""

from __future__ import annotations

from typing import Callable

from kafka.net.link_parts import backoff_seconds

__all__ = ['Pace']

#: How long a broker is left alone that had nothing to say and said so at once, the first time.
FIRST_PAUSE = 0.01
#: How long such a broker is left alone at most, where brokers are not to wait at all.
LONGEST_PAUSE = 0.1


class Pace:
    """Of fetching from one broker.

    Arguments: usual: seconds that a broker waits as a rule; longest: seconds that one waits which
        has had nothing to tell for a while, at least as long.

    Attributes: failures: in a row; not_before: when it may be asked again.
    """

    __slots__ = ('_hasty', '_longest', '_quiet', '_usual', 'failures', 'not_before')

    def __init__(self, usual: float, longest: float) -> None:
        self.failures = 0
        self.not_before = 0.0
        self._usual = usual
        self._longest = longest
        self._hasty = 0  # answers in a row that came at once and said nothing
        self._quiet = 0  # answers in a row for which the broker waited in vain

    def __repr__(self) -> str:
        return '<Pace failures=%d quiet=%d>' % (self.failures, self._quiet)

    def max_wait(self, is_hurried: bool, may_be_long: bool) -> float:
        """Return how long the broker is to wait with its next answer.

        Arguments: is_hurried: whether something else is about to be asked; may_be_long: whether it
            tells at once of all that concerns a partition, its leader included.
        """
        if is_hurried:
            return min(self._usual, FIRST_PAUSE)
        if not may_be_long:
            return self._usual
        return min(self._longest, self._usual * 2.0**self._quiet)

    def is_long(self, max_wait: float) -> bool:
        """Tell whether a request waits longer than programs expect."""
        return max_wait > self._usual

    def answered(self, asked_at: float, max_wait: float, is_progress: bool, now: float) -> None:
        """Note an answer. Do not ask who says nothing, and does not wait with it, at once again.

        Arguments: asked_at, max_wait: when the request was sent, and how long the broker might
            have waited; is_progress: whether it brought anything.
        """
        if is_progress or (max_wait and now - asked_at >= max_wait / 2):
            self._hasty = 0
            is_waited = not is_progress and max_wait >= self._usual
            self._quiet = min(self._quiet + 1, 20) if is_waited else 0
            return
        self._hasty += 1
        self._quiet = 0
        longest = max(max_wait, LONGEST_PAUSE)
        self.not_before = now + backoff_seconds(FIRST_PAUSE, longest, self._hasty, 1.0)

    def disturb(self) -> None:
        """Note that the consumer is idle no longer."""
        self._quiet = 0

    def succeeded(self) -> None:
        """Note that the broker took a request."""
        self.failures = 0

    def failed(self, now: float, backoff: Callable[[int], float], is_at_once: bool = False) -> None:
        """Leave the broker alone after a failure.

        Arguments: backoff: returns the seconds after so many failures in a row; is_at_once: do not
            if it is the first.
        """
        self.failures += 1
        self._quiet = 0
        self.not_before = now + backoff(self.failures - is_at_once)
