"""The time of automatic commits, and the order in which repeated commits take effect.

AutoCommit keeps the time of the next automatic commit; each poll() of a consumer checks it. Before
a rebalance and on close() the consumer commits at any time, and calls reset(). CommitOrder keeps a
repeated commit from overwriting a later one.

Unchanged positions are committed repeatedly on purpose: brokers before 2.1 expire offsets by the
age of the commit (KIP-211). Pure.
"""

from __future__ import annotations

import enum
from typing import Any, Dict, FrozenSet, Iterable, List, Mapping, TypeVar

from kafka.errors import IllegalStateError
from kafka.structs import TopicPartition

__all__ = ['AutoCommit', 'AutoCommitState', 'CommitOrder']

T = TypeVar('T')

#: Maximum number of doublings of the backoff, which never exceeds the interval anyway.
MOST_DOUBLINGS = 30


class AutoCommitState(enum.Enum):
    """Whether an automatic commit is in progress."""

    WAITING = 'waiting'
    UNDER_WAY = 'under way'


TRANSITIONS: Mapping[AutoCommitState, List[AutoCommitState]] = {
    AutoCommitState.WAITING: [AutoCommitState.UNDER_WAY],
    AutoCommitState.UNDER_WAY: [AutoCommitState.WAITING],
}


class AutoCommit:
    """The schedule of automatic commits, checked by each poll().

    Arguments: interval: seconds between commits; retry_backoff: seconds after a commit with a
    retriable error, doubled with each consecutive failure up to the interval; now: the time when
    the consumer starts.

    Attributes: state; next_at: the time of the next commit, unless one is in progress.
    """

    def __init__(self, interval: float, retry_backoff: float, now: float) -> None:
        self.state = AutoCommitState.WAITING
        self.next_at = now + interval
        self._interval = interval
        self._retry_backoff = retry_backoff
        self._failures = 0

    def __repr__(self) -> str:
        return '<AutoCommit %s next_at=%.3f>' % (self.state.value, self.next_at)

    def due(self, now: float) -> bool:
        """Return True if it is time to commit."""
        return now >= self.next_at and self.state is AutoCommitState.WAITING

    def began(self, now: float) -> None:
        """Record that a commit was sent. Raises IllegalStateError while one is in progress."""
        self._move(AutoCommitState.UNDER_WAY)
        self.next_at = now + self._interval

    def ended(self, now: float, ok: bool) -> None:
        """Record the end of a commit. Raises IllegalStateError if none was in progress.

        Arguments: ok: True for success, and for an error that a retry does not cure: the next
        commit then follows after the interval.
        """
        self._move(AutoCommitState.WAITING)
        self._failures = 0 if ok else self._failures + 1
        if not ok:
            doublings = min(self._failures - 1, MOST_DOUBLINGS)
            self.next_at = now + min(self._interval, self._retry_backoff * 2.0**doublings)

    def reset(self, now: float) -> None:
        """Restart the interval: all was committed in another way, or the assignment has changed."""
        self.next_at = now + self._interval

    def _move(self, state: AutoCommitState) -> None:
        if state not in TRANSITIONS[self.state]:
            raise IllegalStateError(
                'an automatic commit that is %s cannot become %s' % (self.state.value, state.value)
            )
        self.state = state


class CommitOrder:
    """The commits in progress, in the order of their calls.

    First attempts are sent in order on one connection, and brokers handle them in order. A retry
    could arrive after a later call and reset the committed offset: so it waits until later calls
    for the same partitions have ended, and omits the partitions that they have stored.
    """

    def __init__(self) -> None:
        self._last = 0
        self._under_way: Dict[int, FrozenSet[TopicPartition]] = {}
        self._stored: Dict[TopicPartition, int] = {}  # the last call that has stored each

    def __repr__(self) -> str:
        return '<CommitOrder under_way=%d>' % len(self._under_way)

    def begin(self, partitions: Iterable[TopicPartition]) -> int:
        """Return the number of a new call."""
        self._last += 1
        self._under_way[self._last] = frozenset(partitions)
        return self._last

    def end(self, number: int) -> None:
        """Record the end of a call."""
        del self._under_way[number]
        if not self._under_way:
            self._stored.clear()  # no call in progress needs it

    def stored(self, number: int, partitions: Iterable[TopicPartition]) -> None:
        """Record the partitions that a call has stored."""
        for partition in partitions:
            self._stored[partition] = max(number, self._stored.get(partition, 0))

    def later(self, number: int, partitions: Iterable[TopicPartition]) -> List[int]:
        """Return the later calls in progress that include any of the partitions."""
        asked = set(partitions)
        return [each for each, its in self._under_way.items() if each > number and its & asked]

    def left(self, number: int, offsets: Mapping[TopicPartition, Any]) -> Dict[TopicPartition, Any]:
        """Return the offsets of a call, without those that later calls have replaced."""
        stored = self._stored
        return {each: offsets[each] for each in offsets if stored.get(each, 0) <= number}
