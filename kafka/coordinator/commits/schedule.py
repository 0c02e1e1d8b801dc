"""The time of automatic commits, and the order in which repeated commits take effect.

AutoCommit has the time of the next commit by interval; each poll() of a consumer asks it. Before a
rebalance and on close() the consumer commits whatever the time is, and calls reset(). CommitOrder
keeps a repeated commit from overwriting a later one. Pure.

The same positions are committed again and again on purpose: brokers before 2.1 let offsets expire
by the age of the commit (KIP-211).
"""

from __future__ import annotations

import enum
from typing import Any, Dict, FrozenSet, Iterable, List, Mapping, TypeVar

from kafka.errors import IllegalStateError
from kafka.structs import TopicPartition

__all__ = ['AutoCommit', 'AutoCommitState', 'CommitOrder']

T = TypeVar('T')

#: The back-off doubles so often at most; it never exceeds the interval anyway.
MOST_DOUBLINGS = 30


class AutoCommitState(enum.Enum):
    """What goes on."""

    WAITING = 'waiting'
    UNDER_WAY = 'under way'


TRANSITIONS: Mapping[AutoCommitState, List[AutoCommitState]] = {
    AutoCommitState.WAITING: [AutoCommitState.UNDER_WAY],
    AutoCommitState.UNDER_WAY: [AutoCommitState.WAITING],
}


class AutoCommit:
    """Says when it is time to commit; looked at by each poll.

    Arguments: interval: seconds between commits; retry_backoff: seconds after a commit that may
    succeed when it is tried again, doubled with each such failure in a row up to the interval; now:
    when the consumer begins.

    Attributes: state; next_at: when a commit is due, if none is under way.
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
        """Note that a commit was sent. Raises IllegalStateError while one is under way."""
        self._move(AutoCommitState.UNDER_WAY)
        self.next_at = now + self._interval

    def ended(self, now: float, ok: bool) -> None:
        """Note how it ended. Raises IllegalStateError when none was under way.

        Arguments: ok: also when it failed in a way that another try does not cure: the next is made
        when the interval is over.
        """
        self._move(AutoCommitState.WAITING)
        self._failures = 0 if ok else self._failures + 1
        if not ok:
            doublings = min(self._failures - 1, MOST_DOUBLINGS)
            self.next_at = now + min(self._interval, self._retry_backoff * 2.0**doublings)

    def reset(self, now: float) -> None:
        """Begin the interval anew: all was committed otherwise, or there is another assignment."""
        self.next_at = now + self._interval

    def _move(self, state: AutoCommitState) -> None:
        if state not in TRANSITIONS[self.state]:
            raise IllegalStateError(
                'an automatic commit that is %s cannot become %s' % (self.state.value, state.value)
            )
        self.state = state


class CommitOrder:
    """Which commits are under way, in the order of their calls.

    First tries go out in order on one connection, and brokers answer in order. A repeated one could
    arrive behind a later call and take the group back: so it waits until later calls about the same
    partitions have ended, and leaves out what they have stored.
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
        """Note that a call is over."""
        del self._under_way[number]
        if not self._under_way:
            self._stored.clear()  # nobody is left whom it could stop

    def stored(self, number: int, partitions: Iterable[TopicPartition]) -> None:
        """Note what a call has stored."""
        for partition in partitions:
            self._stored[partition] = max(number, self._stored.get(partition, 0))

    def later(self, number: int, partitions: Iterable[TopicPartition]) -> List[int]:
        """Return the later calls under way that are about any of some partitions."""
        asked = set(partitions)
        return [each for each, its in self._under_way.items() if each > number and its & asked]

    def left(self, number: int, offsets: Mapping[TopicPartition, Any]) -> Dict[TopicPartition, Any]:
        """Return the offsets of a call without those that later calls have replaced."""
        stored = self._stored
        return {each: offsets[each] for each in offsets if stored.get(each, 0) <= number}
