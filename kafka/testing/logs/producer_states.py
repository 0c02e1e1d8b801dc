"""Producer states of a partition: epochs and sequences of idempotent producers.

Called by appending.py. Checks a batch before it is appended, and keeps the last batches of each
producer, by which duplicates are recognised and acknowledged. Follows KIP-98 and KIP-360; the
differences between releases are listed in :func:`check`.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Deque, Dict, List, NamedTuple, Optional, Tuple, Union

from kafka.testing.errors import (
    INVALID_PRODUCER_EPOCH,
    INVALID_TXN_STATE,
    NONE,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    TRANSACTION_COORDINATOR_FENCED,
    UNKNOWN_PRODUCER_ID,
)
from kafka.testing.logs.partition_log import Batch

#: Per partition; brokers have no such limit, but more memory.
MOST_PRODUCERS = 10_000

_SEQUENCES = 2**31
_DAY_MS = 24 * 3600 * 1000


class Appended(NamedTuple):
    """The sequences, offset and timestamp of a batch that was appended."""

    base_sequence: int
    last_sequence: int
    base_offset: int
    timestamp: int  # ms


class ProducerState:
    """The state of one producer in one partition.

    Attributes: producer_epoch: the last one seen; coordinator_epoch: of the last marker, -1 for
    none; batches: the last ones of this epoch, newest last; first_offset: of its open
    transaction, -1 for none; modified_ms: the time of its last write.
    """

    def __init__(self, producer_epoch: int) -> None:
        self.producer_epoch = producer_epoch
        self.coordinator_epoch = -1
        self.batches: Deque[Appended] = deque(maxlen=5)
        self.first_offset = -1
        self.modified_ms = -1

    def __repr__(self) -> str:
        return '<ProducerState epoch=%d last_sequence=%d>' % (
            self.producer_epoch,
            self.last_sequence,
        )

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record of this epoch, -1 for none."""
        return self.batches[-1].last_sequence if self.batches else -1

    @property
    def last_offset(self) -> int:
        """The offset of its last record of this epoch, -1 for none."""
        if not self.batches:
            return -1
        last = self.batches[-1]
        return last.base_offset + (last.last_sequence - last.base_sequence) % _SEQUENCES


States = Dict[int, ProducerState]


def last_sequence(batch: Batch) -> int:
    """Return the sequence of the last record of a batch; 0 follows 2 ** 31 - 1."""
    return (batch.base_sequence + batch.last_offset - batch.base_offset) % _SEQUENCES


def check(states: States, batch: Batch, release: Tuple[int, ...]) -> Union[int, Appended]:
    """Return the error code for a batch, NONE if it may be appended, or what it duplicates.

    0.11 keeps one batch, later releases five. If a batch of an unknown producer does not begin
    at sequence 0, 0.11 returns OUT_OF_ORDER_SEQUENCE_NUMBER, 1.0 to 2.4 UNKNOWN_PRODUCER_ID; from
    2.5 on it is accepted.
    """
    if batch.producer_id < 0:
        return NONE
    state = states.get(batch.producer_id)
    if state is None:
        if release >= (2, 5) or batch.base_sequence == 0:
            return NONE
        return UNKNOWN_PRODUCER_ID if release >= (1, 0) else OUT_OF_ORDER_SEQUENCE_NUMBER
    if batch.producer_epoch < state.producer_epoch:
        return INVALID_PRODUCER_EPOCH
    if batch.producer_epoch == state.producer_epoch:
        repeated = _repeated(state, batch, 5 if release >= (1, 0) else 1)
        if repeated is not None:
            return repeated
    error = _check_sequence(state, batch)
    if error == NONE and state.first_offset >= 0 and not batch.is_transactional:
        return INVALID_TXN_STATE
    return error


def _repeated(state: ProducerState, batch: Batch, remembered: int) -> Optional[Appended]:
    wanted = batch.base_sequence, last_sequence(batch)
    for appended in list(state.batches)[-remembered:]:
        if appended[:2] == wanted:
            return appended
    return None


def _check_sequence(state: ProducerState, batch: Batch) -> int:
    if batch.producer_epoch > state.producer_epoch or not state.batches:
        # After a marker with a new epoch, no batch of that epoch has been written yet.
        is_next = batch.base_sequence == 0
    else:
        is_next = batch.base_sequence == (state.last_sequence + 1) % _SEQUENCES
    return NONE if is_next else OUT_OF_ORDER_SEQUENCE_NUMBER


def remember(states: States, batch: Batch, base_offset: int, now_ms: int) -> None:
    """Record a batch that was appended."""
    if batch.producer_id < 0:
        return
    state = states.get(batch.producer_id)
    if state is None or state.producer_epoch < batch.producer_epoch:
        known = state
        state = states[batch.producer_id] = ProducerState(batch.producer_epoch)
        if known is not None:
            state.coordinator_epoch = known.coordinator_epoch
            state.first_offset = known.first_offset
    state.batches.append(
        Appended(batch.base_sequence, last_sequence(batch), base_offset, batch.max_timestamp)
    )
    state.modified_ms = now_ms
    if batch.is_transactional and state.first_offset < 0:
        state.first_offset = base_offset


def check_marker(
    states: States, producer_id: int, producer_epoch: int, coordinator_epoch: int
) -> int:
    """Return the error code for a marker, NONE if it may be written."""
    state = states.get(producer_id)
    if state is None:
        return NONE
    if producer_epoch < state.producer_epoch:
        return INVALID_PRODUCER_EPOCH
    if coordinator_epoch < state.coordinator_epoch:
        return TRANSACTION_COORDINATOR_FENCED
    return NONE


def remember_marker(
    states: States, producer_id: int, producer_epoch: int, coordinator_epoch: int, now_ms: int
) -> None:
    """Record a marker that was appended: it ends the transaction and may begin an epoch."""
    state = states.get(producer_id)
    if state is None or state.producer_epoch < producer_epoch:
        state = states[producer_id] = ProducerState(producer_epoch)
    state.coordinator_epoch = coordinator_epoch
    state.first_offset = -1
    state.modified_ms = now_ms


def forget_expired(
    states: States, producer_id: int, release: Tuple[int, ...], now_ms: int, start_offset: int
) -> None:
    """Remove a producer that has expired.

    It expires after a day without writes, up to 3.3 after a week; before 2.5 (KIP-360) also if its
    last record was deleted.
    """
    state = states.get(producer_id)
    if state is None or state.first_offset >= 0:
        return
    expires_ms = _DAY_MS if release >= (3, 4) else 7 * _DAY_MS
    is_deleted = release < (2, 5) and 0 <= state.last_offset < start_offset
    if is_deleted or state.modified_ms + expires_ms < now_ms:
        del states[producer_id]


def forget_many(states: States) -> None:
    """Remove the producers that have been idle longest if there are too many."""
    if len(states) > MOST_PRODUCERS:
        idle = [key for key, state in states.items() if state.first_offset < 0]
        idle.sort(key=lambda producer_id: states[producer_id].modified_ms)
        for producer_id in idle[: MOST_PRODUCERS // 2]:
            del states[producer_id]


# ---------------------------------------------------------------- on disk


def as_numbers(state: ProducerState) -> List[Any]:
    """Return a state as numbers, for the checkpoint."""
    return [
        state.producer_epoch,
        state.coordinator_epoch,
        state.first_offset,
        state.modified_ms,
        [list(batch) for batch in state.batches],
    ]


def of_numbers(numbers: List[Any]) -> ProducerState:
    """Return the state of such numbers."""
    state = ProducerState(numbers[0])
    state.coordinator_epoch, state.first_offset, state.modified_ms = numbers[1:4]
    state.batches.extend(Appended(*batch) for batch in numbers[4])
    return state
