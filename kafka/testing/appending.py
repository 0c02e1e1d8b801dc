"""Appending to a partition: sequences, offsets, whoever waits for data, and the limit of memory.

Owns the steps from checked batches to what lies in the log, for clients' records and for markers of
transactions, and the rule for the limit: all logs together hold at most
``Defaults.log_bytes_limit`` bytes. Beyond it the oldest batches of the largest log are deleted, as
``retention.bytes`` would; a set that is larger than the limit alone is KAFKA_STORAGE_ERROR.
"""

from __future__ import annotations

import struct
from typing import List, NamedTuple, Sequence, Union

from kafka.record.default_records import encode_batch
from kafka.testing import producer_states
from kafka.testing.errors import KAFKA_STORAGE_ERROR, NONE
from kafka.testing.partition_log import Batch, PartitionLog
from kafka.testing.state import ClusterState, Partition
from kafka.testing.waiting import Waiting

# A marker: key is version and type (0 abort, 1 commit), value is version and coordinator epoch.
_MARKER_KEY = struct.Struct('>hh')
_MARKER_VALUE = struct.Struct('>hi')

#: All logs are measured when so large a part of the limit was appended.
_MEASURED_PARTS = 16


class AppendedAt(NamedTuple):
    """Where records lie now; ``append_time_ms`` is -1 but for a repeat, which has its own."""

    base_offset: int
    append_time_ms: int = -1


def append(
    state: ClusterState, waiting: Waiting, partition: Partition, batches: Sequence[Batch]
) -> Union[AppendedAt, int]:
    """Append batches; return where the first lies, -1 for none at all, or the code of an error.

    A batch that its producer sends once more is not appended again; where it lies is told.
    """
    now_ms = state.timers.clock.wall_ms()
    release = state.release.version
    log = partition.log
    states = partition.producers
    producer_states.forget_many(states)
    for batch in batches:
        producer_states.forget_expired(states, batch.producer_id, release, now_ms, log.start_offset)
        found = producer_states.check(states, batch, release)
        if isinstance(found, producer_states.Appended):
            return AppendedAt(found.base_offset, found.timestamp)
        if found != NONE:
            return found
    if not _has_room(state, sum(len(batch.data) for batch in batches)):
        return KAFKA_STORAGE_ERROR
    first = -1
    for batch in batches:
        base = log.append(batch, partition.leader_epoch)
        producer_states.remember(states, batch, base, now_ms)
        first = base if first < 0 else first
    if batches:
        _touch(waiting, partition, now_ms)
    return AppendedAt(first)


def append_marker(
    state: ClusterState,
    waiting: Waiting,
    partition: Partition,
    producer_id: int,
    producer_epoch: int,
    commit: bool,
    coordinator_epoch: int = 0,
) -> int:
    """Append the marker that ends a transaction; return NONE or the code of an error."""
    states = partition.producers
    error = producer_states.check_marker(states, producer_id, producer_epoch, coordinator_epoch)
    if error != NONE:
        return error
    now_ms = state.timers.clock.wall_ms()
    data = encode_batch(
        [
            (
                now_ms,
                _MARKER_KEY.pack(0, 1 if commit else 0),
                _MARKER_VALUE.pack(0, coordinator_epoch),
                (),
            )
        ],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )
    marker = Batch(
        base_offset=0,
        last_offset=0,
        max_timestamp=now_ms,
        magic=2,
        data=data,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )
    _has_room(state, len(data))
    partition.log.end_transaction(marker, partition.leader_epoch, commit)
    producer_states.remember_marker(states, producer_id, producer_epoch, coordinator_epoch, now_ms)
    _touch(waiting, partition, now_ms)
    return NONE


def _touch(waiting: Waiting, partition: Partition, now_ms: int) -> None:
    partition.log.modified_ms = now_ms
    waiting.touch(('partition', partition.topic, partition.index))


# ---------------------------------------------------------------- the limit


def _has_room(state: ClusterState, size_bytes: int) -> bool:
    """Make room for so many bytes where that is needed; return whether there is any."""
    limit = state.defaults.log_bytes_limit
    part = limit // _MEASURED_PARTS
    state.unmeasured_bytes += size_bytes
    if state.unmeasured_bytes > part:
        if size_bytes > limit - part:
            state.unmeasured_bytes -= size_bytes
            return False
        _shrink([partition.log for partition in state.partitions()], limit - part - size_bytes)
        state.unmeasured_bytes = size_bytes
    return True


def _shrink(logs: List[PartitionLog], most_bytes: int) -> None:
    """Delete the oldest batches of the largest log until all logs are small enough."""
    excess = sum(log.size_bytes for log in logs) - most_bytes
    while excess > 0:
        largest = max(logs, key=lambda log: log.size_bytes)
        before = largest.size_bytes
        # Half of it at a time: another one may be the largest then.
        largest.delete_before(largest.offset_after(min(excess, max(1, before // 2))))
        excess -= before - largest.size_bytes
