"""In-flight records of a share partition: their delivery state (KIP-932).

Used by share_partition.py. Records that are acquired together share one state, and are split into
single records when their states differ.
"""

from __future__ import annotations

import enum
from typing import Dict, Iterator, NamedTuple, Optional, Tuple


class RecordState(enum.Enum):
    """The state of a record (KIP-932, "In-flight records")."""

    AVAILABLE = 'available'
    ACQUIRED = 'acquired'
    ACKNOWLEDGED = 'acknowledged'
    ARCHIVED = 'archived'


#: States that are final.
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
    """A range of offsets that a member acquired, with the same delivery count."""

    first: int
    last: int
    delivery_count: int


class Delivery:
    """The state of one record, or of several that share it.

    ``until`` is when the acquisition lock expires, in seconds of the clock.
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
        """Whether any member may acquire it."""
        return self.state is RecordState.AVAILABLE

    def acquire(self, member_id: str, until: float) -> None:
        """Acquire it for a member."""
        self._move(RecordState.ACQUIRED)
        self.count += 1
        self.member_id = member_id
        self.until = until

    def end(self, state: RecordState) -> None:
        """End the acquisition with a new state."""
        self._move(state)
        self.member_id = ''

    def _move(self, state: RecordState) -> None:
        if state not in _MOVES[self.state]:
            raise ValueError('a record that is %s never is %s' % (self.state.name, state.name))
        self.state = state

    def copy(self) -> Delivery:
        """Return another instance with the same state."""
        return Delivery(self.state, self.count, self.member_id, self.until)


class InFlight:
    """Offsets that were first acquired together; one delivery for all, or one for each."""

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
        """Return a delivery for each offset; from now on each has a state of its own."""
        if self.whole is not None:
            copy = self.whole.copy
            self.each = {offset: copy() for offset in range(self.first, self.last + 1)}
            self.whole = None
        return self.each

    def deliveries(self) -> Iterator[Tuple[int, int, Delivery]]:
        """Yield each delivery with its first and last offset."""
        if self.whole is not None:
            yield self.first, self.last, self.whole
        else:
            for offset, delivery in self.each.items():
                yield offset, offset, delivery
