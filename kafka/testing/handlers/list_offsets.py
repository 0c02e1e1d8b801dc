"""ListOffsets of an embedded cluster: start and end offsets, and offsets by timestamp.

Version 0 returns the start offsets of segments by the age of their files, later versions look up a
record by timestamp (KIP-79). Special timestamps came with KIP-734, KIP-405, KIP-1005 and KIP-1023.
"""

from __future__ import annotations

from collections import Counter
from typing import Dict, List, NamedTuple, Optional, Set, Tuple, Union

from kafka.protocol.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from kafka.protocol.wire import ZERO_UUID
from kafka.testing.calls import Call, handles
from kafka.testing.errors import (
    INVALID_REQUEST,
    NONE,
    UNKNOWN_SERVER_ERROR,
    UNSUPPORTED_FOR_MESSAGE_FORMAT,
    UNSUPPORTED_VERSION,
)
from kafka.testing.located import epoch_error, find_topic, held_partition, led_partition
from kafka.testing.logs.log_settings import log_settings
from kafka.testing.logs.partition_log import PartitionLog
from kafka.testing.logs.record_times import first_record_at
from kafka.testing.state import Partition

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

#: The first version with a special timestamp.
_SINCE = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
#: The replica id of tools (debugging consumers), which any replica answers.
_DEBUGGING = -2
_READ_COMMITTED = 1


class _Found(NamedTuple):
    """The result for a timestamp; -1 means no offset."""

    offset: int = -1
    timestamp: int = -1
    leader_epoch: int = -1


@handles(ListOffsetsRequest)
def list_offsets(call: Call[ListOffsetsRequest]) -> Optional[ListOffsetsResponse]:
    """Return the offsets for the timestamps in the request."""
    if call.request.isolation_level not in (0, _READ_COMMITTED):
        if call.state.release.version < (2, 1):
            call.close_connection()  # the request cannot be decoded
            return None
        failed = [
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    _failed(each.partition_index, UNKNOWN_SERVER_ERROR) for each in topic.partitions
                ],
            )
            for topic in call.request.topics
        ]
        return ListOffsetsResponse(topics=failed)
    counts = Counter(
        (topic.name, each.partition_index)
        for topic in call.request.topics
        for each in topic.partitions
    )
    twice = {key for key, count in counts.items() if count > 1}
    topics = [
        ListOffsetsTopicResponse(
            name=topic.name,
            partitions=[_one(call, topic, each, twice) for each in topic.partitions],
        )
        for topic in call.request.topics
    ]
    if not (2, 8) <= call.state.release.version < (4, 0):
        topics = _merged(topics)
    return ListOffsetsResponse(topics=topics)


def _merged(topics: List[ListOffsetsTopicResponse]) -> List[ListOffsetsTopicResponse]:
    """Return each topic and partition once, as most releases do."""
    found: Dict[str, Dict[int, ListOffsetsPartitionResponse]] = {}
    for topic in topics:
        partitions = found.setdefault(topic.name, {})
        for each in topic.partitions:
            partitions[each.partition_index] = each
    return [
        ListOffsetsTopicResponse(name=name, partitions=list(partitions.values()))
        for name, partitions in found.items()
    ]


def _one(
    call: Call[ListOffsetsRequest],
    topic: ListOffsetsTopic,
    asked: ListOffsetsPartition,
    twice: Set[Tuple[str, int]],
) -> ListOffsetsPartitionResponse:
    index = asked.partition_index
    if call.version and (topic.name, index) in twice:
        return _failed(index, INVALID_REQUEST)
    found_topic = find_topic(call, topic.name, ZERO_UUID, False)
    locate = held_partition if call.request.replica_id == _DEBUGGING else led_partition
    partition = locate(call, found_topic, index)
    if isinstance(partition, int):
        return _failed(index, partition)
    if call.version == 0:
        if asked.timestamp < EARLIEST and call.state.release.version >= (3, 0):
            return _failed(index, UNSUPPORTED_VERSION)
        return ListOffsetsPartitionResponse(
            partition_index=index,
            error_code=NONE,
            old_style_offsets=_segment_starts(call, partition, asked),
        )
    found = _found(call, partition, asked)
    if isinstance(found, int):
        return _failed(index, found)
    response = ListOffsetsPartitionResponse(
        partition_index=index,
        error_code=NONE,
        timestamp=found.timestamp,
        offset=found.offset,
    )
    if call.version >= 4:
        response.leader_epoch = found.leader_epoch
    return response


def _failed(index: int, error: int) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=index, error_code=error)


# ---------------------------------------------------------------- version 0


def _segment_starts(
    call: Call[ListOffsetsRequest], partition: Partition, asked: ListOffsetsPartition
) -> List[int]:
    """Return the start offsets of segments last modified before a timestamp, newest first.

    The end of the log counts as the start of a segment that is modified now.
    """
    log = partition.log
    starts = [
        (
            max(each.base_offset, log.start_offset),
            log.modified_ms if each is log.active else each.modified_ms,
        )
        for each in log.segments
    ]
    if log.active_bytes:
        starts.append((log.end_offset, call.state.timers.clock.wall_ms()))
    if asked.timestamp == EARLIEST:
        starts = starts[:1]
    elif asked.timestamp != LATEST:
        starts = [start for start in starts if start[1] <= asked.timestamp]
    return [offset for offset, _ in reversed(starts)][: max(0, asked.max_num_offsets)]


# ---------------------------------------------------------------- later versions


def _found(
    call: Call[ListOffsetsRequest], partition: Partition, asked: ListOffsetsPartition
) -> Union[_Found, int]:
    """Return the offset for a timestamp, or an error code."""
    timestamp, release = asked.timestamp, call.state.release.version
    if timestamp < 0 and release >= (3, 0) and call.version < _SINCE.get(timestamp, 1 << 15):
        return UNSUPPORTED_VERSION
    error = epoch_error(partition, asked.current_leader_epoch)
    if error != NONE:
        return error
    log = partition.log
    if release >= (2, 0) and log_settings(call.state, partition.topic).magic == 2:
        log.note_epoch(partition.leader_epoch)
    end = partition.high_watermark
    if call.request.isolation_level == _READ_COMMITTED:
        end = min(end, log.last_stable_offset)
    if timestamp == LATEST:
        return _Found(offset=end, leader_epoch=partition.leader_epoch)
    knows_special = release >= (3, 0)  # before, these were ordinary timestamps
    if timestamp == EARLIEST or (timestamp == EARLIEST_LOCAL and knows_special):
        return _Found(offset=log.start_offset, leader_epoch=log.epoch_at(log.start_offset))
    if knows_special and timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return _Found()  # there is no tiered storage
    if log_settings(call.state, partition.topic).magic == 0:
        return UNSUPPORTED_FOR_MESSAGE_FORMAT
    if timestamp == MAX_TIMESTAMP and knows_special:
        if log.max_timestamp < 0:
            return _Found()
        timestamp = log.max_timestamp
    return at_time(log, timestamp, end)


def at_time(log: PartitionLog, timestamp: int, end_offset: int) -> _Found:
    """Return the first record below ``end_offset`` with this timestamp or a later one."""
    found = first_record_at(log, timestamp, end_offset)
    return _Found() if found is None else _Found(*found, log.epoch_at(found[0]))
