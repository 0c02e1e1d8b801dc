"""Fetch of an embedded cluster: all versions, with sessions, long polls and down-conversion.

Decides when a response is due, reads partitions, and applies the size limits. Sessions are in
:mod:`kafka.testing.fetch_sessions`, logs in :mod:`kafka.testing.logs.partition_log`, conversions
to older formats in :mod:`kafka.testing.logs.down_conversion`.
"""

from __future__ import annotations

import logging
from itertools import islice
from typing import Any, List, NamedTuple, Optional, Tuple, Union, cast

from kafka.errors import UnsupportedCodecError
from kafka.protocol.fetch import (
    AbortedTransaction,
    DivergingEpoch,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from kafka.protocol.primitives import Pieces
from kafka.testing.calls import Call, handles
from kafka.testing.errors import (
    FENCED_LEADER_EPOCH,
    KAFKA_STORAGE_ERROR,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    REPLICA_NOT_AVAILABLE,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_COMPRESSION_TYPE,
)
from kafka.testing.fetch_sessions import FetchSessions, Wanted, wanted_partitions
from kafka.testing.guards.data import fetch_code
from kafka.testing.located import (
    as_replica_error,
    epoch_error,
    find_topic,
    held_partition,
    leader_endpoints,
    led_partition,
)
from kafka.testing.logs.down_conversion import DownConverter, HeadersError, filled_up
from kafka.testing.logs.segments import StorageError
from kafka.testing.settings.configs import broker_config
from kafka.testing.state import Partition, Topic

log = logging.getLogger(__name__)

READ_UNCOMMITTED = 0
READ_COMMITTED = 1
#: The default of ``fetch.max.bytes`` of brokers, from 2.5 on.
MOST_BYTES = 55 * 1024 * 1024

#: Errors of reading a partition, as opposed to looking it up.
_REPLICA_ERRORS = (NOT_LEADER_OR_FOLLOWER, REPLICA_NOT_AVAILABLE)

Found = List[Tuple[Wanted, PartitionData]]


@handles(FetchRequest)
def fetch(call: Call[FetchRequest]) -> Optional[FetchResponse]:
    """Return records once ``min_bytes`` are available, or after ``max_wait_ms``."""
    if call.request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        if call.state.release.version < (2, 1):
            call.close_connection()  # the request cannot be decoded
            return None
        return _refused(call)
    opened = _sessions(call).open(call.request, call.version)
    if isinstance(opened, int):
        return FetchResponse(error_code=opened, responses=[])

    def attempt(last: bool) -> Optional[FetchResponse]:
        reads = [_looked_up(call, wanted) for wanted in opened.partitions]
        if not (last or _is_enough(call, reads)):
            return None
        session_id, kept = opened.finish(_read_all(call, reads))
        return _response(call, session_id, kept)

    keys = [
        ('partition', name, wanted.asked.partition)
        for wanted in opened.partitions
        for name in [_name(call, wanted)]
    ]
    answer = call.wait(call.request.max_wait_ms / 1000, keys, attempt)
    assert answer is None or isinstance(answer, FetchResponse)
    return answer


def _sessions(call: Call[FetchRequest]) -> FetchSessions:
    state = call.state
    found = state.fetch_sessions.get(call.broker.node_id)
    if found is None:
        found = FetchSessions(state.chance, state.timers.clock.monotonic)
        state.fetch_sessions[call.broker.node_id] = found
    return found


def _refused(call: Call[FetchRequest]) -> FetchResponse:
    """Return the response to a request with an unknown isolation level."""
    found = [
        (each, _failed(call, _Read(each, None, UNKNOWN_SERVER_ERROR, -1), UNKNOWN_SERVER_ERROR))
        for each in wanted_partitions(call.request)
    ]
    if (3, 0) <= call.state.release.version < (4, 0):
        for _, data in found:
            data.records = None
    response = _response(call, 0, [] if call.version >= 13 else found)
    response.error_code = UNKNOWN_SERVER_ERROR
    return response


def _name(call: Call[FetchRequest], wanted: Wanted) -> str:
    if call.version < 13:
        return wanted.topic
    topic = call.state.topic_by_id(wanted.topic_id)
    return '' if topic is None else topic.name


# ---------------------------------------------------------------- partitions


class _Read(NamedTuple):
    """A partition to read, or the error code."""

    wanted: Wanted
    partition: Optional[Partition]
    error: int
    end_offset: int  # up to where this client may read
    diverging: Optional[Tuple[int, int]] = None  # epoch and its end
    preferred: int = -1  # the preferred read replica, -1 for none

    @property
    def is_told_otherwise(self) -> bool:
        """Whether the response has an error, a diverging epoch or another replica, not records."""
        return self.error != NONE or self.diverging is not None or self.preferred >= 0


def _looked_up(call: Call[FetchRequest], wanted: Wanted) -> _Read:
    asked = wanted.asked
    partition = _located(call, wanted)
    if isinstance(partition, int):
        return _Read(wanted, None, partition, -1)
    error = epoch_error(partition, asked.current_leader_epoch)
    if error != NONE:
        return _Read(wanted, partition, error, -1)
    log = partition.log
    preferred = _preferred(call, partition)
    if preferred >= 0:
        return _Read(wanted, partition, NONE, -1, preferred=preferred)
    if call.request.isolation_level == READ_COMMITTED:
        end = min(log.last_stable_offset, partition.high_watermark)
    else:
        end = partition.high_watermark
    diverging = None
    if asked.last_fetched_epoch >= 0:
        log.note_epoch(partition.leader_epoch)
        epoch, epoch_end = log.end_of_epoch(asked.last_fetched_epoch)
        if epoch < 0:
            return _Read(wanted, partition, OFFSET_OUT_OF_RANGE, -1)
        if epoch < asked.last_fetched_epoch or epoch_end < asked.fetch_offset:
            diverging = epoch, epoch_end
    if diverging is None and not log.start_offset <= asked.fetch_offset <= log.end_offset:
        error = OFFSET_OUT_OF_RANGE
    elif asked.partition_max_bytes < 0:
        error = UNKNOWN_SERVER_ERROR
    return _Read(wanted, partition, error, end, diverging)


def _located(call: Call[FetchRequest], wanted: Wanted) -> Union[Partition, int]:
    topic = find_topic(call, wanted.topic, wanted.topic_id, call.version >= 13)
    if call.state.authorizer is not None:
        name = topic.name if isinstance(topic, Topic) else wanted.topic or None
        denied = fetch_code(call, name)
        if denied != NONE:
            return denied
    if call.version < 11:
        return led_partition(call, topic, wanted.asked.partition)
    found = held_partition(call, topic, wanted.asked.partition)  # any replica may answer (KIP-392)
    return as_replica_error(call, found) if isinstance(found, int) else found


def _preferred(call: Call[FetchRequest], partition: Partition) -> int:
    """Return the in-sync replica in the client's rack, -1 for none (KIP-392)."""
    state, rack, node_id = call.state, call.request.rack_id, call.broker.node_id
    if not rack or partition.leader != node_id or state.nodes[node_id].rack == rack:
        return -1
    selector = broker_config(state, node_id, 'replica.selector.class')
    if not selector.endswith('RackAwareReplicaSelector'):
        return -1
    nodes = (state.nodes[node] for node in partition.isr)
    return next((node.node_id for node in nodes if node.is_alive and node.rack == rack), -1)


def _is_enough(call: Call[FetchRequest], reads: List[_Read]) -> bool:
    """Return True if a response is due before the time-out."""
    if call.request.min_bytes <= 0:
        return True
    in_vain = (UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID)
    known = [read for read in reads if read.error not in in_vain]
    size = 0
    for read in known:
        if read.partition is None or read.is_told_otherwise:
            return True
        asked = read.wanted.asked
        there = read.partition.log.bytes_between(asked.fetch_offset, read.end_offset)
        size += min(there, asked.partition_max_bytes)
    # Brokers before 0.10 look up a partition only when they read it, so that it is an error here.
    if len(known) < len(reads) and call.state.release.version < (0, 10):
        return True
    return not known or size >= call.request.min_bytes


# ---------------------------------------------------------------- reading


def _read_all(call: Call[FetchRequest], reads: List[_Read]) -> Found:
    """Read partitions in order up to the size limit of the response."""
    is_hard = call.version <= 2
    room = call.request.max_bytes
    if call.state.release.version >= (2, 5):
        room = min(room, MOST_BYTES)
    found: Found = []
    is_first = not is_hard
    for read in reads:
        data = _partition_data(call, read)
        if read.partition is not None and not read.is_told_otherwise:
            records = _read(call, read, read.partition, max(0, room), is_first)
            if isinstance(records, int):
                data = _failed(call, read, records)
            else:
                data.records = cast(Any, records)
                room -= len(records)
                is_first = is_first and not records
                _name_aborted(call, read, read.partition, data)
        found.append((read.wanted, data))
    return found


def _read(
    call: Call[FetchRequest], read: _Read, partition: Partition, room: int, whole: bool
) -> Union[bytes, Pieces, int]:
    """Return the result of _records(), or an error code if a file cannot be read."""
    try:
        return _records(call, read, partition, room, whole)
    except StorageError as error:
        log.error('topic=%s partition=%d: %s', partition.topic, partition.index, error)
        return KAFKA_STORAGE_ERROR if call.version >= 6 else NOT_LEADER_OR_FOLLOWER


def _records(
    call: Call[FetchRequest], read: _Read, partition: Partition, room: int, whole: bool
) -> Union[bytes, Pieces, int]:
    """Return the records for one partition, or an error code."""
    asked, log = read.wanted.asked, partition.log
    offset, end = asked.fetch_offset, read.end_offset
    if offset >= end:
        return b''
    most = min(asked.partition_max_bytes, room)
    if call.version > 2 and not whole and log.first_entry_bytes(offset, end) > most:
        return b''  # from v3 on no partial batch is sent
    magic = 0 if call.version <= 1 else 1 if call.version <= 3 else 2
    if magic == 2 or call.state.release.highest_magic <= magic:
        return Pieces(log.read_parts(offset, end, most, whole))
    if whole:
        most = max(most, log.first_entry_bytes(offset, end))
    if call.state.down_converter is None:
        takes_headers = call.state.release.version >= (1, 0)
        call.state.down_converter = DownConverter(takes_headers=takes_headers)
    converter: DownConverter = call.state.down_converter
    try:
        if call.state.release.highest_magic == 1:
            return converter.convert_set(log.read(offset, end, most, whole), magic)
        converted = converter.convert(log.batches_from(offset, end), offset, most, magic)
        if converted and call.state.release.version >= (2, 0):
            first = converter.convert(islice(log.batches_from(offset, end), 1), offset, most, magic)
            size = min(most, log.bytes_between(offset, end))
            return filled_up(converted, max(size, len(first or b'')))
    except UnsupportedCodecError:
        return UNSUPPORTED_COMPRESSION_TYPE
    except HeadersError:
        return UNKNOWN_SERVER_ERROR
    if converted is not None or call.state.release.version >= (3, 0):
        return converted or b''
    # Not even one batch fits: a partial one makes the client raise its limit.
    return log.read(offset, end, most, False)


def _partition_data(call: Call[FetchRequest], read: _Read) -> PartitionData:
    """Return the response of a partition without records."""
    partition = read.partition
    if partition is None or read.error != NONE:
        return _failed(call, read, read.error)
    data = PartitionData(
        partition_index=read.wanted.asked.partition,
        error_code=NONE,
        high_watermark=partition.high_watermark,
        last_stable_offset=min(partition.log.last_stable_offset, partition.high_watermark),
        log_start_offset=partition.log.start_offset,
        aborted_transactions=[] if call.request.isolation_level == READ_COMMITTED else None,
        records=b'',
    )
    if call.state.release.version < (2, 1) and call.request.isolation_level != READ_COMMITTED:
        data.last_stable_offset = -1
    if read.preferred >= 0:
        data.preferred_read_replica = read.preferred
    if read.diverging is not None:
        epoch, end_offset = read.diverging
        data.diverging_epoch = DivergingEpoch(epoch=epoch, end_offset=end_offset)
    return data


def _failed(call: Call[FetchRequest], read: _Read, error: int) -> PartitionData:
    is_unknown = read.partition is None and error not in _REPLICA_ERRORS
    data = PartitionData(
        partition_index=read.wanted.asked.partition,
        error_code=error,
        high_watermark=-1,
        aborted_transactions=[] if is_unknown and call.state.release.version >= (3, 0) else None,
        records=b'',
    )
    moved = error in (NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH)
    if moved and call.version >= 16:
        partition = read.partition or _named_partition(call, read.wanted)
        if partition is not None:
            data.current_leader = LeaderIdAndEpoch(
                leader_id=partition.leader, leader_epoch=partition.leader_epoch
            )
    return data


def _named_partition(call: Call[FetchRequest], wanted: Wanted) -> Optional[Partition]:
    topic = find_topic(call, wanted.topic, wanted.topic_id, call.version >= 13)
    return None if isinstance(topic, int) else topic.partition(wanted.asked.partition)


def _name_aborted(
    call: Call[FetchRequest], read: _Read, partition: Partition, data: PartitionData
) -> None:
    """Add the aborted transactions in the range that was read."""
    if call.request.isolation_level != READ_COMMITTED or not data.records:
        return
    offset, log = read.wanted.asked.fetch_offset, partition.log
    end = log.offset_behind(offset, len(data.records))
    data.aborted_transactions = [
        AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
        for each in log.aborted_between(offset, end)
    ]


# ---------------------------------------------------------------- response


def _response(call: Call[FetchRequest], session_id: int, found: Found) -> FetchResponse:
    topics: List[FetchableTopicResponse] = []
    last: Optional[Tuple[str, bytes]] = None
    for wanted, data in found:
        if (wanted.topic, wanted.topic_id) != last:
            last = wanted.topic, wanted.topic_id
            topics.append(FetchableTopicResponse(topic=last[0], topic_id=last[1], partitions=[]))
        topics[-1].partitions.append(data)
    response = FetchResponse(responses=topics)
    if call.version >= 7:
        response.session_id = session_id
    if call.version >= 16:
        leaders = [data.current_leader.leader_id for _, data in found]
        response.node_endpoints = leader_endpoints(call, leaders, NodeEndpoint)
    return response
