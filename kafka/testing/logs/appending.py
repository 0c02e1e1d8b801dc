"""Appending validated batches and transaction markers to a partition.

Called by handlers/produce.py, handlers/producers.py and the transaction coordinator. Checks
sequences, appends (the log assigns the offsets), wakes waiting fetches, and enforces the memory
limit: all logs in memory take at most ``Defaults.log_bytes_limit`` bytes together. Above it the
oldest batches of the largest log are deleted, as with ``retention.bytes``, except those of topics
that are only compacted. If that does not suffice, or a disk write fails, the error is
KAFKA_STORAGE_ERROR.
"""

from __future__ import annotations

import logging
import struct
from heapq import heapify, heapreplace
from typing import NamedTuple, Sequence, Union

from kafka.record.default_records import encode_batch
from kafka.testing.errors import KAFKA_STORAGE_ERROR, NONE
from kafka.testing.logs import producer_states
from kafka.testing.logs.log_settings import log_settings
from kafka.testing.logs.partition_log import BATCH_BYTES, Batch
from kafka.testing.logs.retention import roll_if_due, upkeep_of
from kafka.testing.state import ClusterState, Partition
from kafka.testing.waiting import Waiting

logger = logging.getLogger(__name__)

# A marker: key is version and type (0 abort, 1 commit), value is version and coordinator epoch.
_MARKER_KEY = struct.Struct('>hh')
_MARKER_VALUE = struct.Struct('>hi')

#: The logs are measured again after appends of this fraction of the limit.
_MEASURED_PARTS = 16


class AppendedAt(NamedTuple):
    """The base offset of appended records; ``append_time_ms`` is -1 except for a duplicate."""

    base_offset: int
    append_time_ms: int = -1


def append(
    state: ClusterState, waiting: Waiting, partition: Partition, batches: Sequence[Batch]
) -> Union[AppendedAt, int]:
    """Append batches; return the base offset of the first, -1 without batches, or an error code.

    A duplicate of an earlier batch is not appended again; the result is that of the first time.
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
    if not _has_room(state, batches):
        return KAFKA_STORAGE_ERROR
    settings = log_settings(state, partition.topic)
    first = -1
    try:
        for batch in batches:
            roll_if_due(log, batch, settings, now_ms)
            base = log.append(batch, partition.leader_epoch)
            producer_states.remember(states, batch, base, now_ms)
            first = base if first < 0 else first
    except OSError as error:
        logger.error('topic=%s partition=%d: %s', partition.topic, partition.index, error)
        return KAFKA_STORAGE_ERROR
    if batches:
        _touch(waiting, partition, now_ms)
        upkeep_of(state, waiting).note(settings)
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
    """Append the marker that ends a transaction; return NONE or an error code.

    After KAFKA_STORAGE_ERROR the call can be repeated.
    """
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
    _has_room(state, [marker])
    try:
        partition.log.end_transaction(marker, partition.leader_epoch, commit)
    except OSError as problem:
        logger.error('topic=%s partition=%d: %s', partition.topic, partition.index, problem)
        return KAFKA_STORAGE_ERROR
    producer_states.remember_marker(states, producer_id, producer_epoch, coordinator_epoch, now_ms)
    _touch(waiting, partition, now_ms)
    return NONE


def _touch(waiting: Waiting, partition: Partition, now_ms: int) -> None:
    partition.log.modified_ms = now_ms
    waiting.touch(('partition', partition.topic, partition.index))


# ---------------------------------------------------------------- memory limit


def _has_room(state: ClusterState, batches: Sequence[Batch]) -> bool:
    """Make room for batches if needed; return True if there is enough."""
    if state.storage is not None:  # they are written to disk
        return True
    limit = state.defaults.log_bytes_limit
    part = limit // _MEASURED_PARTS
    size = sum(len(batch.data) + BATCH_BYTES for batch in batches)
    state.unmeasured_bytes += size
    if state.unmeasured_bytes > part:
        if size > limit - part or not _shrink(state, limit - part - size):
            state.unmeasured_bytes = max(part, state.unmeasured_bytes - size)
            return False
        state.unmeasured_bytes = size
    return True


def _shrink(state: ClusterState, most_bytes: int) -> bool:
    """Delete the oldest batches of the largest log until all logs are small enough.

    Returns True if they are: compacted topics are not reduced.
    """
    partitions = list(state.partitions())
    excess = sum(each.log.memory_bytes for each in partitions) - most_bytes
    if excess <= 0:
        return True
    logs = {id(each.log): each for each in partitions if log_settings(state, each.topic).is_deleted}
    before = {key: each.log.start_offset for key, each in logs.items()}
    largest = [(-each.log.memory_bytes, key) for key, each in logs.items()]
    heapify(largest)
    while excess > 0 and largest and largest[0][0]:
        size, key = largest[0]
        log = logs[key].log
        # Half of it at a time: then another log may be the largest.
        log.delete_before(log.offset_after(min(excess, max(1, log.size_bytes // 2))))
        excess += size + log.memory_bytes
        heapreplace(largest, (-log.memory_bytes, key))
    for key, each in logs.items():
        if each.log.start_offset != before[key]:
            logger.warning(
                'topic=%s partition=%d: deleted what was before offset %d, since all logs together'
                ' reached log_bytes_limit=%d',
                each.topic,
                each.index,
                each.log.start_offset,
                state.defaults.log_bytes_limit,
            )
    return excess <= 0
