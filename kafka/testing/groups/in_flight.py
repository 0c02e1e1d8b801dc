"""Records of a share partition that are on their way: acquired, given back or dealt with.

Owns the state of one delivery and of a row of records that were acquired together, which is split
into single records when they go different ways (KIP-932). Who gets what is in share_partition.py.
"""

from __future__ import annotations

import enum
from typing import Dict, Iterator, NamedTuple, Optional, Tuple


class RecordState(enum.Enum):
    """Where a record is: on offer, with a member, dealt with, or given up."""

    AVAILABLE = 'available'
    ACQUIRED = 'acquired'
    ACKNOWLEDGED = 'acknowledged'
    ARCHIVED = 'archived'


#: Nothing happens any more to what is in one of these.
TERMINAL = frozenset([RecordState.ACKNOWLEDGED, RecordState.ARCHIVED])

_MOVES = {
    RecordState.AVAILABLE: {RecordState.ACQUIRED, RecordState.ARCHIVED},
    RecordState.ACQUIRED: {
        RecordState.AVAILABLE,
        RecordState.ACKNOWLEDGED,
        RecordState.ARCHIVED,
    },
    RecordState.ACKNOWLEDGED: set(),
    RecordState.ARCHIVED: set(),
}


class Acquired(NamedTuple):
    """A row of offsets that a member got, all for the same time."""

    first: int
    last: int
    delivery_count: int


class Delivery:
    """How it stands with one record, or with several that share it.

    ``until`` is when an acquisition ends by itself, in seconds of the clock.
    """

    __slots__ = ('count', 'member_id', 'state', 'until')

    def __init__(
        self,
        state: RecordState = RecordState.AVAILABLE,
        count: int = 0,
        member_id: str = '',
        until: float = 0.0,
    ) -> None:
        self.state = state
        self.count = count
        self.member_id = member_id
        self.until = until

    def __repr__(self) -> str:
        return '<Delivery %s count=%d member=%s>' % (
            self.state.value,
            self.count,
            self.member_id or '-',
        )

    @property
    def is_available(self) -> bool:
        """Whether anybody may acquire it."""
        return self.state is RecordState.AVAILABLE

    def acquire(self, member_id: str, until: float) -> None:
        """Give it to a member."""
        self._move(RecordState.ACQUIRED)
        self.count += 1
        self.member_id = member_id
        self.until = until

    def end(self, state: RecordState) -> None:
        """Take it from its member: it becomes available or is dealt with."""
        self._move(state)
        self.member_id = ''

    def _move(self, state: RecordState) -> None:
        if state not in _MOVES[self.state]:
            raise ValueError('a record that is %s never is %s' % (self.state.name, state.name))
        self.state = state

    def copy(self) -> Delivery:
        """Return another one in the same state."""
        return Delivery(self.state, self.count, self.member_id, self.until)


class InFlight:
    """Offsets that were acquired together first; one delivery for all, or one for each."""

    __slots__ = ('each', 'first', 'last', 'whole')

    def __init__(self, first: int, last: int, whole: Delivery) -> None:
        self.first = first
        self.last = last
        self.whole: Optional[Delivery] = whole
        self.each: Dict[int, Delivery] = {}

    def __repr__(self) -> str:
        return '<InFlight %d to %d %r>' % (self.first, self.last, self.whole or 'one by one')

    def __len__(self) -> int:
        return self.last - self.first + 1

    def split(self) -> Dict[int, Delivery]:
        """Return a delivery for each offset; from now on they go their own ways."""
        if self.whole is not None:
            copy = self.whole.copy
            self.each = {offset: copy() for offset in range(self.first, self.last + 1)}
            self.whole = None
        return self.each

    def deliveries(self) -> Iterator[Tuple[int, int, Delivery]]:
        """Yield each delivery with the first and the last offset that it is about."""
        if self.whole is not None:
            yield self.first, self.last, self.whole
        else:
            for offset, delivery in self.each.items():
                yield offset, offset, delivery
