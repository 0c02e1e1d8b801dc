"""The state of one assigned partition: its phase, position, fetch offset and leader.

SubscriptionState keeps one for each partition; the fetch manager and the offsets request manager
change it, under the consumer's lock. TRANSITIONS is the table of phases. A change of leader is
handled as in KIP-320 and the Java client.

Every request for a partition carries its token. The token changes whenever the position moves by
anything but returning records, so that a response to an earlier request is recognized as stale.
Pure.
"""

from __future__ import annotations

import enum
import itertools
from typing import Any, Mapping, NamedTuple, Optional, Set, Tuple

from kafka.consumer.reset_policy import ResetPolicy, read_policy
from kafka.errors import IllegalStateError
from kafka.structs import OffsetAndMetadata, TopicPartition

__all__ = [
    'EpochEnd',
    'PositionEvent',
    'Phase',
    'TopicPartitionState',
    'Validation',
    'ValidationOutcome',
]


class Phase(enum.Enum):
    """How the position of a partition is known. Only FETCHING partitions are fetched."""

    INITIALIZING = 'initializing'  # unknown: the committed offset has to be looked up
    FETCHING = 'fetching'
    AWAIT_RESET = 'awaiting a reset'  # by the policy, with ListOffsets
    AWAIT_VALIDATION = 'awaiting validation'  # the log may be truncated: OffsetForLeaderEpoch

    __hash__ = object.__hash__


class PositionEvent(enum.Enum):
    """The events that change the phase."""

    COMMITTED = 'begin at the committed offset'
    COMMITTED_IN_EPOCH = 'begin at a committed offset whose leader epoch is known'
    SEEK = 'seek'
    SEEK_IN_EPOCH = 'seek to an offset whose leader epoch is known'
    NEED_RESET = 'need a reset'
    RESET = 'be reset'
    DOUBT = 'need validation'
    VALIDATED = 'be validated'
    TRUNCATED = 'go back to where the log was cut'
    HAND_OUT = 'return records'
    FETCH = 'fetch'

    __hash__ = object.__hash__


_P, _E = Phase, PositionEvent
_BY_THE_PROGRAM = {
    _E.SEEK: _P.FETCHING,
    _E.SEEK_IN_EPOCH: _P.AWAIT_VALIDATION,
    _E.NEED_RESET: _P.AWAIT_RESET,
}

#: The next phase. An event that is not listed is an error of the caller or a bug of this package.
TRANSITIONS: Mapping[Phase, Mapping[PositionEvent, Phase]] = {
    _P.INITIALIZING: {
        **_BY_THE_PROGRAM,
        _E.COMMITTED: _P.FETCHING,
        _E.COMMITTED_IN_EPOCH: _P.AWAIT_VALIDATION,
    },
    _P.AWAIT_RESET: {
        **_BY_THE_PROGRAM,
        _E.RESET: _P.FETCHING,
    },
    _P.FETCHING: {
        **_BY_THE_PROGRAM,
        _E.DOUBT: _P.AWAIT_VALIDATION,
        _E.HAND_OUT: _P.FETCHING,
        _E.FETCH: _P.FETCHING,
    },
    _P.AWAIT_VALIDATION: {
        **_BY_THE_PROGRAM,
        _E.DOUBT: _P.AWAIT_VALIDATION,  # the leader has changed once more
        _E.VALIDATED: _P.FETCHING,
        _E.TRUNCATED: _P.FETCHING,
        # Records sent by the former leader were on all replicas in sync.
        _E.HAND_OUT: _P.AWAIT_VALIDATION,
        _E.FETCH: _P.AWAIT_VALIDATION,
    },
}


class EpochEnd(NamedTuple):
    """The response to OffsetForLeaderEpoch: the last epoch up to the requested one, and its end.

    Both are -1 if the leader does not know.
    """

    epoch: int
    end_offset: int


#: Number of moves, position, its leader epoch, and whether records were returned since it moved.
Place = Tuple[int, Optional[int], int, bool]


class Validation(NamedTuple):
    """The position to validate; a response counts only while the partition has the same."""

    token: int
    offset: int  # the next to fetch
    epoch: int  # that of the last batch before it
    leader: Optional[Tuple[int, int]]  # node and epoch of the leader


class ValidationOutcome(enum.Enum):
    """The result of a validation."""

    STALE = 'stale'  # the position or the leader has changed meanwhile
    VALID = 'valid'
    AGAIN = 'again'  # the records fetched ahead are dropped: the position has to be validated
    TRUNCATED = 'truncated'  # records that were returned are no longer in the log
    UNDEFINED = 'undefined'  # the leader knows of no such epoch


_tokens = itertools.count(1)


def is_suspended(state: TopicPartitionState) -> bool:
    """Return True if no records of a partition may be returned now, fetched or not."""
    return state.paused or state.held or state.is_unsubscribed


class TopicPartitionState:
    """The state of one partition, guarded by the consumer's lock.

    Arguments: partition: for the texts of errors; unsettled: a set that contains the partition
    while its position has to be found or validated; changed: a set to which it is added when a
    change, other than a fetch, affects its Fetch requests.

    Attributes:
        phase; token.
        moves: how often the position was set other than by returning records.
        position_epoch: the leader epoch of the last record before the position, -1 unknown.
        fetch_offset: the offset to fetch next, None without a position; fetch_epoch: the
            leader epoch of the last batch before it, -1 unknown.
        reset_strategy: the policy of a pending reset, or None.
        paused: by the program; held: by a rebalance that has not ended; is_unsubscribed: its topic
            is not subscribed any more, and the group has not revoked it yet; stuck_token: the token
            when the next record could not be returned.
        highwater, last_stable_offset, log_start_offset: of the last fetch, None before.
        committed: as last known, an OffsetAndMetadata.
        current_leader: the (node, epoch) last noted by leader_changed().
        preferred_replica: the node to fetch from instead of the leader (KIP-392), or None;
            preferred_until: the time when that ends.
    """

    __slots__ = (
        '_changed',
        '_has_returned',
        '_may_commit',
        '_partition',
        '_position',
        '_unsettled',
        'committed',
        'current_leader',
        'fetch_epoch',
        'fetch_offset',
        'held',
        'highwater',
        'is_unsubscribed',
        'last_stable_offset',
        'log_start_offset',
        'moves',
        'paused',
        'phase',
        'position_epoch',
        'preferred_replica',
        'preferred_until',
        'reset_strategy',
        'stuck_token',
        'token',
    )

    def __init__(
        self,
        partition: Optional[TopicPartition] = None,
        unsettled: Optional[Set[TopicPartition]] = None,
        changed: Optional[Set[TopicPartition]] = None,
    ) -> None:
        self.phase = Phase.INITIALIZING
        self.token = next(_tokens)
        self.moves = 0
        self.position_epoch = -1
        self.fetch_offset: Optional[int] = None
        self.fetch_epoch = -1
        self.reset_strategy: Optional[ResetPolicy] = None
        self.paused = False
        self.held = False
        self.is_unsubscribed = False
        self.stuck_token = -1
        self.highwater: Optional[int] = None
        self.last_stable_offset: Optional[int] = None
        self.log_start_offset: Optional[int] = None
        self.committed: Optional[OffsetAndMetadata] = None
        self.current_leader: Optional[Tuple[int, int]] = None
        self.preferred_replica: Optional[int] = None
        self.preferred_until = 0.0
        self._position: Optional[int] = None
        # Whether the position may be committed before a record was returned: the program has sought
        # there, or it is the committed offset of the group.
        self._may_commit = False
        # Whether records were returned since the last seek or reset.
        self._has_returned = False
        self._partition = partition
        self._unsettled = unsettled
        self._changed = changed
        self._note_phase()

    def __repr__(self) -> str:
        return '<TopicPartitionState %s %s position=%s fetch_offset=%s%s%s%s>' % (
            self._name(),
            self.phase.value,
            self._position,
            self.fetch_offset,
            ' paused' if self.paused else '',
            ' held' if self.held else '',
            ' unsubscribed' if self.is_unsubscribed else '',
        )

    def _name(self) -> str:
        return (
            '?'
            if self._partition is None
            else '%s-%d' % (str(self._partition[0]), self._partition[1])
        )

    # ------------------------------------------------------------ queries

    @property
    def position(self) -> Optional[int]:
        """The offset of the next record to return, or None."""
        return self._position

    @position.setter
    def position(self, offset: int) -> None:
        """Seek to an offset. Raises IllegalStateError without a position (1.x)."""
        if not self.has_valid_position:
            raise IllegalStateError('%r has no position that could be moved: seek' % self)
        self.seek(offset)

    @property
    def has_valid_position(self) -> bool:
        """Whether there is a position, validated or not."""
        return self._position is not None

    @property
    def awaiting_reset(self) -> bool:
        """Whether the position has to be found by the reset policy."""
        return self.phase is Phase.AWAIT_RESET

    def is_fetchable(self) -> bool:
        """Return True if records of it may be fetched now."""
        # The same as is_suspended(), without the cost of a call: each poll comes here.
        waits = self.paused or self.held or self.is_unsubscribed
        return self.phase is Phase.FETCHING and not waits

    @property
    def is_stuck(self) -> bool:
        """Whether the next record cannot be returned, so that no more are fetched."""
        return self.stuck_token == self.token

    def consumed_offset(self, place: Optional[Place] = None) -> Optional[OffsetAndMetadata]:
        """Return the offset to commit, the position; None without one, or as a reset has set it.

        A position found by the reset policy counts only once records were returned from there: a
        commit before that would make the group skip records that no program has seen.
        Arguments: place: an earlier place(), to return the offset of that time; None for now.
        """
        _, position, epoch, has_returned = self.place() if place is None else place
        if position is None or not (has_returned or self._may_commit):
            return None
        return OffsetAndMetadata(position, '', epoch)

    def lag(self, read_committed: bool) -> Optional[int]:
        """Return the number of offsets after the position, as of the last fetch; None: unknown."""
        end = self.last_stable_offset if read_committed else self.highwater
        if end is None or self._position is None:
            return None
        return max(0, end - self._position)

    # ------------------------------------------------------------ by the program

    def pause(self) -> None:
        """Fetch and return nothing until resume()."""
        self.paused = True
        self._note_change()

    def resume(self) -> None:
        """Undo pause()."""
        self.paused = False
        self._note_change()

    def hold(self, is_held: bool) -> None:
        """Fetch and return nothing during a rebalance."""
        self.held = is_held
        self._note_change()

    def unsubscribe(self, is_unsubscribed: bool) -> None:
        """Fetch and return nothing until it is revoked, or its topic is subscribed again."""
        if is_unsubscribed != self.is_unsubscribed:
            self.is_unsubscribed = is_unsubscribed
            self._note_change()

    def stick(self) -> None:
        """Stop fetching until the record is returned after all, or the position moves."""
        if not self.is_stuck:
            self.stuck_token = self.token
            self._note_change()

    def seek(self, offset: int, epoch: int = -1) -> None:
        """Go to an offset; it is validated first if the leader epoch before it is known."""
        self._go(PositionEvent.SEEK if epoch < 0 else PositionEvent.SEEK_IN_EPOCH)
        self._move(offset, epoch)
        self._may_commit = True

    def await_reset(self, strategy: Any, by_program: bool = False) -> None:
        """Drop the position until the reset policy finds one.

        Arguments: strategy: as read_policy(); by_program: whether the program asked for it, by
            seek_to_beginning() or seek_to_end(): the offset may be committed once it is known.
        """
        self._go(PositionEvent.NEED_RESET)
        self._move(None, -1)
        self._may_commit = by_program
        self.reset_strategy = read_policy(strategy)

    # ------------------------------------------------------------ responses to lookups

    def begin_at(self, token: int, committed: OffsetAndMetadata) -> bool:
        """Begin at a committed offset; return False if the token has changed."""
        if token != self.token:
            return False
        self.committed = committed
        epoch = -1 if committed.leader_epoch is None else committed.leader_epoch
        self._go(PositionEvent.COMMITTED if epoch < 0 else PositionEvent.COMMITTED_IN_EPOCH)
        self._move(committed.offset, epoch)
        self._may_commit = True
        return True

    def reset_to(self, token: int, offset: int) -> bool:
        """Begin at the offset that a reset has found; return False if the token has changed."""
        if token != self.token:
            return False
        self._go(PositionEvent.RESET)
        self._move(offset, -1)
        return True

    # ------------------------------------------------------------ leaders

    def leader_changed(self, node: int, epoch: int) -> bool:
        """Note the leader; return True if the position has to be validated because of it.

        Arguments: epoch: of the leader, -1 if unknown: then no position can be validated.
        """
        if self.current_leader == (node, epoch):
            return False
        self.current_leader = node, epoch
        self.prefer(None)
        return epoch >= 0 and self.doubt()

    def prefer(self, node: Optional[int], until: float = 0.0) -> None:
        """Fetch from a node until a time; None: from the leader (KIP-392)."""
        self.preferred_replica, self.preferred_until = node, until
        self._note_change()

    def doubt(self) -> bool:
        """Require validation; return False if the epoch of the position is unknown."""
        if self.fetch_epoch < 0 or self._position is None:
            return False
        self._go(PositionEvent.DOUBT)
        return True

    def validation(self) -> Optional[Validation]:
        """Return the pending validation, or None."""
        if self.phase is not Phase.AWAIT_VALIDATION or self.fetch_offset is None:
            return None
        return Validation(self.token, self.fetch_offset, self.fetch_epoch, self.current_leader)

    def spare_validation(self, asked: Validation) -> bool:
        """Skip the validation: brokers do not support it. Return False if it is stale."""
        if asked != self.validation():
            return False
        self._go(PositionEvent.VALIDATED)
        return True

    def judge(self, asked: Validation, end: EpochEnd) -> ValidationOutcome:
        """Apply the response to a validation.

        After TRUNCATED and UNDEFINED the position is unchanged; the reset policy decides.
        """
        if asked != self.validation():
            return ValidationOutcome.STALE
        is_defined = end.epoch >= 0 and end.end_offset >= 0
        if is_defined and end.end_offset >= asked.offset:
            self._go(PositionEvent.VALIDATED)
            return ValidationOutcome.VALID
        if self._position != self.fetch_offset:
            self.rewind()
            if self.fetch_epoch >= 0:
                return ValidationOutcome.AGAIN
            self._go(PositionEvent.VALIDATED)
            return ValidationOutcome.VALID
        return ValidationOutcome.TRUNCATED if is_defined else ValidationOutcome.UNDEFINED

    def truncate(self, asked: Validation, end: EpochEnd) -> bool:
        """Move to where the log was truncated; return False if the validation is stale."""
        if asked != self.validation():
            return False
        self._go(PositionEvent.TRUNCATED)
        may_commit = self.consumed_offset() is not None  # the records before it were returned
        self._move(end.end_offset, end.epoch)
        self._may_commit = may_commit
        return True

    # ------------------------------------------------------------ fetching

    def fetched(self, next_offset: int, next_epoch: int = -1) -> None:
        """Note that all records before an offset are fetched; epoch -1: unchanged."""
        if self.phase is not Phase.FETCHING:
            self._go(PositionEvent.FETCH)
        self.fetch_offset = next_offset
        if next_epoch >= 0:
            self.fetch_epoch = next_epoch

    def consumed(self, offset: int, epoch: int = -1) -> None:
        """Note that all records before an offset are returned; epoch -1: unchanged."""
        self._has_returned = True
        self.passed_over(offset, epoch)

    def passed_over(self, offset: int, epoch: int = -1) -> None:
        """Note that no record before an offset is left, for example because they were aborted."""
        if self.phase is not Phase.FETCHING:
            self._go(PositionEvent.HAND_OUT)
        if self.stuck_token == self.token and offset != self._position:
            self.stuck_token = -1
            self._note_change()
        self._position = offset
        if epoch >= 0:
            self.position_epoch = epoch
        if self.fetch_offset is None or self.fetch_offset < offset:
            self.fetch_offset, self.fetch_epoch = offset, self.position_epoch

    def place(self) -> Place:
        """Return what rewind() needs to undo consumed() and passed_over()."""
        return self.moves, self._position, self.position_epoch, self._has_returned

    def rewind(self, place: Optional[Place] = None) -> None:
        """Drop the records fetched ahead: the next fetch begins at the position.

        Arguments: place: the place to go back to first, unless the position was moved otherwise.
        """
        if place is not None and place[0] == self.moves:
            _, self._position, self.position_epoch, self._has_returned = place
        self.token = next(_tokens)
        self.fetch_offset, self.fetch_epoch = self._position, self.position_epoch
        self._note_change()

    # ------------------------------------------------------------ moving

    def leave(self) -> None:
        """Note the end of the assignment: responses to earlier requests are stale."""
        self.token = next(_tokens)
        self.moves += 1
        if self._unsettled is not None and self._partition is not None:
            self._unsettled.discard(self._partition)
        self._note_change()
        self._unsettled = self._changed = None

    def _go(self, event: PositionEvent) -> None:
        phase = TRANSITIONS[self.phase].get(event)
        if phase is None:
            raise IllegalStateError(
                'partition %s is %s and cannot %s' % (self._name(), self.phase.value, event.value)
            )
        if phase is not self.phase:
            self.phase = phase
            self._note_phase()

    def _note_change(self) -> None:
        if self._changed is not None and self._partition is not None:
            self._changed.add(self._partition)

    def _note_phase(self) -> None:
        self._note_change()
        if self._unsettled is not None and self._partition is not None:
            if self.phase is Phase.FETCHING:
                self._unsettled.discard(self._partition)
            else:
                self._unsettled.add(self._partition)

    def _move(self, offset: Optional[int], epoch: int) -> None:
        self.token = next(_tokens)
        self.moves += 1
        self._position = self.fetch_offset = offset
        self.position_epoch = self.fetch_epoch = epoch
        self.reset_strategy = None
        self._has_returned = False
        self._note_change()
