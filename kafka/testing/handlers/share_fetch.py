"""ShareFetch and ShareAcknowledge of an embedded cluster (KIP-932; KIP-1206 and KIP-1222 in v2).

Validates acknowledgements, decides when a response is due, and applies the limits. Sessions are in
:mod:`kafka.testing.groups.share_sessions`, acquisitions in
:mod:`kafka.testing.groups.share_partition`.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple, Union

from kafka.protocol.share import (
    AcquiredRecords,
    LeaderIdAndEpoch,
    NodeEndpoint,
    ShareAcknowledgePartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
    ShareFetchableTopicResponse,
    ShareFetchPartitionData,
    ShareFetchRequest,
    ShareFetchResponse,
)
from kafka.testing.calls import Call, handles
from kafka.testing.errors import (
    INVALID_REQUEST,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    SHARE_SESSION_LIMIT_REACHED,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_VERSION,
)
from kafka.testing.groups.group_settings import group_config
from kafka.testing.groups.in_flight import Acquired
from kafka.testing.groups.server_assignors import TopicPartition
from kafka.testing.groups.share_partition import (
    RENEW,
    Acknowledgement,
    LogRange,
    SharePartition,
    Wish,
)
from kafka.testing.groups.share_sessions import (
    FINAL_EPOCH,
    FIRST_EPOCH,
    SessionKey,
    ShareSession,
    ShareSessions,
)
from kafka.testing.handlers.share_groups import has_share_groups
from kafka.testing.located import find_topic, leader_endpoints, led_partition
from kafka.testing.logs.partition_log import Batch
from kafka.testing.security import acls
from kafka.testing.settings.configs import broker_config
from kafka.testing.state import Partition

_LONGEST_MEMBER_ID = 36
_MODES = _BATCH_OPTIMIZED, _RECORD_LIMIT = 0, 1  # KIP-1206

#: Error code and message of each partition with acknowledgements.
Results = Dict[TopicPartition, Tuple[int, Optional[str]]]


@handles(ShareFetchRequest)
def share_fetch(call: Call[ShareFetchRequest]) -> Optional[ShareFetchResponse]:
    """Process acknowledgements, then acquire records once available, or after ``max_wait_ms``."""
    request = call.request
    error = _refusal(call)
    if error:
        return _failed_fetch(error)
    key = SessionKey(request.group_id or '', request.member_id or '')
    topics = [(topic.topic_id, part) for topic in request.topics for part in topic.partitions]
    told = {
        (topic_id, part.partition_index): _acknowledgements(part.acknowledgement_batches)
        for topic_id, part in topics
        if part.acknowledgement_batches
    }
    opened = _sessions(call).open(
        key,
        call.connection_id,
        request.share_session_epoch,
        [(topic_id, part.partition_index) for topic_id, part in topics],
        [(each.topic_id, n) for each in request.forgotten_topics_data for n in each.partitions],
        bool(told),
    )
    if opened == SHARE_SESSION_LIMIT_REACHED:
        return _later(call, _failed_fetch(opened))
    if isinstance(opened, int):
        return _failed_fetch(opened)
    if request.share_acquire_mode not in _MODES:
        return _failed_fetch(UNKNOWN_SERVER_ERROR)
    results = _acknowledge(call, key, told)
    if request.share_session_epoch == FINAL_EPOCH:
        _end(call, key)
        return _fetch_response(call, _merged({}, results))
    return _fetched(call, opened, results)


def _refusal(call: Call[Any]) -> int:
    """Return the error code of an invalid request, or NONE."""
    request = call.request
    if not has_share_groups(call):
        return UNSUPPORTED_VERSION
    is_null = request.group_id is None or request.member_id is None
    if is_null and call.state.release.version < (4, 3):
        return UNKNOWN_SERVER_ERROR
    if request.group_id is None:
        return INVALID_REQUEST
    if not request.member_id or len(request.member_id) > _LONGEST_MEMBER_ID:
        return INVALID_REQUEST
    if call.version >= 2 and request.is_renew_ack and isinstance(request, ShareFetchRequest):
        # A renewal must not fetch.
        limits = (request.max_bytes, request.min_bytes, request.max_records, request.max_wait_ms)
        return INVALID_REQUEST if any(limits) else NONE
    return NONE


def _failed_fetch(error: int) -> ShareFetchResponse:
    return ShareFetchResponse(throttle_time_ms=0, error_code=error, responses=[], node_endpoints=[])


def _later(
    call: Call[ShareFetchRequest], response: ShareFetchResponse
) -> Optional[ShareFetchResponse]:
    """Answer after ``max_wait_ms``, so that the client does not retry at once."""
    seconds = call.request.max_wait_ms / 1000
    answer = call.wait(seconds, [], lambda last: response if last else None)
    assert answer is None or isinstance(answer, ShareFetchResponse)
    return answer


# ---------------------------------------------------------------- sessions


def _sessions(call: Call[Any]) -> ShareSessions:
    state, node_id = call.state, call.broker.node_id
    found = state.share_sessions.get(node_id)
    if found is None:
        limit = int(broker_config(state, node_id, 'group.share.max.share.sessions'))
        found = state.share_sessions[node_id] = ShareSessions(limit)

        def ended(connection_id: int) -> None:
            sessions = found.end_with(connection_id)
            if sessions:
                # Later, since the connections of a broker that stops are closed before it is dead.
                state.timers.later(0, lambda: _give_back(call, sessions))

        call.broker.when_closed['share sessions'] = ended
    # Fetches that wait for records are woken when some become available.
    waiting = call.broker.waiting
    state.groups.shares.on_available = lambda group_id, each: waiting.touch(_key(group_id, each))
    return found


def _key(group_id: str, partition: TopicPartition) -> Tuple[str, str, bytes, int]:
    return ('share', group_id, *partition)


def _give_back(call: Call[Any], sessions: List[ShareSession]) -> None:
    """Release what sessions acquired whose connection has ended, unless the broker is dead."""
    if call.broker.node.is_alive:
        for session in sessions:
            _release(call, session)


def _end(call: Call[Any], key: SessionKey) -> None:
    session = _sessions(call).end(key)
    if session is not None:
        _release(call, session)


def _release(call: Call[Any], session: ShareSession) -> None:
    """Release the records of the member of a session."""
    state = call.state
    for each in session.partitions:
        found = state.groups.shares.known(session.key.group_id, each)
        if found is not None:
            found.release(session.key.member_id, state.release.version >= (4, 2))
    group = state.groups.shares.get(session.key.group_id)
    if group is not None and not _sessions(call).has_group(session.key.group_id):
        group.rest(session.partitions)


# ---------------------------------------------------------------- acknowledgements


def _acknowledgements(batches: Iterable[Any]) -> List[Acknowledgement]:
    return [
        Acknowledgement(each.first_offset, each.last_offset, list(each.acknowledge_types))
        for each in batches
    ]


def _acknowledge(
    call: Call[Any], key: SessionKey, told: Dict[TopicPartition, List[Acknowledgement]]
) -> Results:
    """Apply acknowledgements, those of a partition all or none."""
    results: Results = {}
    highest = RENEW if call.version >= 2 else RENEW - 1
    can_renew = call.version >= 2 and call.request.is_renew_ack
    for partition, batches in told.items():
        if call.state.topic_by_id(partition[0]) is None:
            results[partition] = UNKNOWN_TOPIC_ID, None
        elif not _may_read(call, partition[0]):
            results[partition] = TOPIC_AUTHORIZATION_FAILED, None
        elif _is_senseless(batches, highest, can_renew):
            results[partition] = INVALID_REQUEST, None
        else:
            found = call.state.groups.shares.known(key.group_id, partition)
            if found is None or not _is_led(call, partition):
                results[partition] = UNKNOWN_TOPIC_OR_PARTITION, None
            else:
                error, text = found.acknowledge(key.member_id, batches)
                results[partition] = error, text or None
    return results


def _is_senseless(batches: List[Acknowledgement], highest: int, can_renew: bool) -> bool:
    """Return True if acknowledgements of a partition are invalid."""
    before = -1
    for each in batches:
        if each.first > each.last or each.first < before or not each.types:
            return True
        if len(each.types) > 1 and each.last - each.first != len(each.types) - 1:
            return True
        if any(not 0 <= kind <= highest for kind in each.types):
            return True
        if RENEW in each.types and not can_renew:
            return True
        before = each.last
    return False


def _is_led(call: Call[Any], partition: TopicPartition) -> bool:
    return not isinstance(_led(call, partition), int)


def _led(call: Call[Any], partition: TopicPartition) -> Union[Partition, int]:
    topic = find_topic(call, '', partition[0], True)
    if not _may_read(call, partition[0]):
        return TOPIC_AUTHORIZATION_FAILED
    return led_partition(call, topic, partition[1])


def _may_read(call: Call[Any], topic_id: bytes) -> bool:
    topic = call.state.topic_by_id(topic_id)
    return topic is None or call.may(acls.READ, acls.TOPIC, topic.name)


@handles(ShareAcknowledgeRequest)
def share_acknowledge(call: Call[ShareAcknowledgeRequest]) -> ShareAcknowledgeResponse:
    """Process acknowledgements without a fetch."""
    request = call.request
    error = _refusal(call)
    key = SessionKey(request.group_id or '', request.member_id or '')
    if not error:
        session = _sessions(call).acknowledge(key, request.share_session_epoch)
        error = session if isinstance(session, int) else NONE
    if error:
        return ShareAcknowledgeResponse(
            throttle_time_ms=0, error_code=error, responses=[], node_endpoints=[]
        )
    told = {
        (topic.topic_id, part.partition_index): _acknowledgements(part.acknowledgement_batches)
        for topic in request.topics
        for part in topic.partitions
        if part.acknowledgement_batches
    }
    results = _acknowledge(call, key, told)
    if request.share_session_epoch == FINAL_EPOCH:
        _end(call, key)
    topics: Dict[bytes, ShareAcknowledgeTopicResponse] = {}
    for (topic_id, index), (error, text) in results.items():
        topic = topics.setdefault(
            topic_id, ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=[])
        )
        topic.partitions.append(
            ShareAcknowledgePartitionData(
                partition_index=index,
                error_code=error,
                error_message=text,
                current_leader=LeaderIdAndEpoch(leader_id=0, leader_epoch=0),
            )
        )
    response = ShareAcknowledgeResponse(
        throttle_time_ms=0, error_code=NONE, responses=list(topics.values()), node_endpoints=[]
    )
    if call.version >= 2:
        response.acquisition_lock_timeout_ms = _lock_ms(call)
    return response


def _lock_ms(call: Call[Any]) -> int:
    return call.state.groups.shares.rules.setting(
        call.request.group_id, 'share.record.lock.duration.ms'
    )


# ---------------------------------------------------------------- fetching


class _Read(NamedTuple):
    """A partition to read, or the error code."""

    key: TopicPartition
    partition: Optional[Partition]
    shared: Optional[SharePartition]
    error: int


def _fetched(
    call: Call[ShareFetchRequest], session: ShareSession, results: Results
) -> Optional[ShareFetchResponse]:
    """Return records once ``min_bytes`` are available, or after ``max_wait_ms``."""
    request, version = call.request, call.state.release.version
    if version < (4, 4) and any(
        call.state.topic_by_id(name) is None for name, _ in session.partitions
    ):
        return _failed_fetch(UNKNOWN_SERVER_ERROR)  # they fail on unknown topics

    def attempt(last: bool) -> Optional[ShareFetchResponse]:
        reads = [_looked_up(call, session.key.group_id, each) for each in session.wanted()]
        if not (last or _is_enough(call, reads)):
            return None
        found = {} if request.max_bytes <= 0 else _acquired(call, session.key.member_id, reads)
        if request.share_session_epoch != FIRST_EPOCH:
            found = {key: data for key, data in found.items() if _is_news(session, key, data)}
        return _fetch_response(call, _merged(found, results))

    keys: List[Any] = []
    for topic_id, index in session.partitions:
        keys.append(_key(session.key.group_id, (topic_id, index)))
        topic = call.state.topic_by_id(topic_id)
        if topic is not None:
            keys.append(('partition', topic.name, index))
    answer = call.wait(request.max_wait_ms / 1000, keys, attempt)
    assert answer is None or isinstance(answer, ShareFetchResponse)
    return answer


def _looked_up(call: Call[ShareFetchRequest], group_id: str, key: TopicPartition) -> _Read:
    partition = _led(call, key)
    if isinstance(partition, int):
        return _Read(key, None, None, partition)
    topic = call.state.topics[partition.topic]
    shared = call.state.groups.shares.partition(group_id, topic, partition)
    if isinstance(shared, int):
        return _Read(key, partition, None, shared)
    return _Read(key, partition, shared, NONE)


def _end_offset(call: Call[ShareFetchRequest], partition: Partition) -> int:
    level = group_config(call.state, call.request.group_id or '', 'share.isolation.level')
    if level == 'read_committed':
        return min(partition.log.last_stable_offset, partition.high_watermark)
    return partition.high_watermark


def _is_enough(call: Call[ShareFetchRequest], reads: List[_Read]) -> bool:
    """Return True if a response is due before the time-out."""
    if all(read.error for read in reads):
        return True
    size, is_able = 0, False
    for read in reads:
        if read.shared is not None and read.partition is not None and read.shared.can_acquire:
            first, end = read.shared.next_fetch_offset, _end_offset(call, read.partition)
            size += read.partition.log.bytes_between(first, end) if first < end else 0
            is_able = True
    return is_able and size >= call.request.min_bytes


def _is_news(session: ShareSession, key: TopicPartition, data: ShareFetchPartitionData) -> bool:
    """Return True if a response must have a partition; also once after an error has ended."""
    was_failed = session.partitions.get(key, False)
    if key in session.partitions:
        session.partitions[key] = data.error_code != NONE
    return bool(data.records) or was_failed or data.error_code != NONE


def _acquired(
    call: Call[ShareFetchRequest], member_id: str, reads: List[_Read]
) -> Dict[TopicPartition, ShareFetchPartitionData]:
    """Acquire records of all partitions that have some."""
    request = call.request
    able = [read for read in reads if read.shared is not None and read.shared.can_acquire]
    found = {read.key: _partition_data(read.key, read.error) for read in reads if read.error}
    room, records = request.max_bytes, request.max_records
    for read in able:
        assert read.shared is not None and read.partition is not None
        data = found[read.key] = _partition_data(read.key, NONE)
        offset, end = read.shared.next_fetch_offset, _end_offset(call, read.partition)
        share = min(room, request.max_bytes // len(able))
        batches = _batches(read.partition, offset, end, share, not any(_records_of(found)))
        wish = Wish(
            member_id, records, request.batch_size, request.share_acquire_mode == _RECORD_LIMIT
        )
        ranges = [LogRange(each.base_offset, each.last_offset) for each in batches]
        acquired = read.shared.acquire(wish, offset, ranges)
        records -= sum(each.last - each.first + 1 for each in acquired)
        acquired = _committed(call, read, batches, acquired)
        data.records = _records(batches, acquired)
        data.acquired_records = [
            AcquiredRecords(
                first_offset=each.first,
                last_offset=each.last,
                delivery_count=each.delivery_count,
            )
            for each in acquired
        ]
        room -= len(data.records)
    return found


def _records_of(found: Dict[TopicPartition, ShareFetchPartitionData]) -> List[Any]:
    return [data.records for data in found.values()]


def _batches(
    partition: Partition, offset: int, end: int, most_bytes: int, whole: bool
) -> List[Batch]:
    """Return the batches from an offset on, up to ``most_bytes``; with ``whole`` at least one."""
    found: List[Batch] = []
    for batch in partition.log.batches_from(offset, end) if offset < end else ():
        most_bytes -= len(batch.data)
        if most_bytes < 0 and (found or not whole):
            break
        found.append(batch)
    return found


def _committed(
    call: Call[ShareFetchRequest], read: _Read, batches: List[Batch], acquired: List[Acquired]
) -> List[Acquired]:
    """Archive the records of aborted transactions if the group reads committed records."""
    assert read.shared is not None and read.partition is not None
    level = group_config(call.state, call.request.group_id or '', 'share.isolation.level')
    if level != 'read_committed' or not acquired:
        return acquired
    aborted = read.partition.log.aborted_between(batches[0].base_offset, batches[-1].last_offset)
    for batch in batches:
        if not batch.is_transactional or batch.is_control:
            continue
        for each in aborted:
            is_inside = each.first_offset <= batch.base_offset <= each.last_offset
            if each.producer_id == batch.producer_id and is_inside:
                gone = LogRange(batch.base_offset, batch.last_offset)
                acquired = read.shared.give_up(gone, acquired)
                break
    return acquired


def _records(batches: List[Batch], acquired: List[Acquired]) -> bytes:
    """Return the batches with the acquired records."""
    if not acquired:
        return b''
    first, last = acquired[0].first, acquired[-1].last
    return b''.join(
        batch.data for batch in batches if batch.last_offset >= first and batch.base_offset <= last
    )


# ---------------------------------------------------------------- response


def _partition_data(key: TopicPartition, error: int) -> ShareFetchPartitionData:
    return ShareFetchPartitionData(
        partition_index=key[1],
        error_code=error,
        acknowledge_error_code=NONE,
        current_leader=LeaderIdAndEpoch(leader_id=0, leader_epoch=0),
        records=b'',
        acquired_records=[],
    )


def _merged(
    found: Dict[TopicPartition, ShareFetchPartitionData], results: Results
) -> Dict[TopicPartition, ShareFetchPartitionData]:
    """Add the results of acknowledgements to fetched partitions."""
    for key, (error, text) in results.items():
        data = found.setdefault(key, _partition_data(key, NONE))
        data.acknowledge_error_code = error
        data.acknowledge_error_message = text
    return found


def _fetch_response(
    call: Call[ShareFetchRequest], found: Dict[TopicPartition, ShareFetchPartitionData]
) -> ShareFetchResponse:
    topics: Dict[bytes, ShareFetchableTopicResponse] = {}
    leaders = []
    for (topic_id, index), data in found.items():
        topic = call.state.topic_by_id(topic_id)
        partition = None if topic is None else topic.partition(index)
        if data.error_code == NOT_LEADER_OR_FOLLOWER and partition is not None:
            data.current_leader = LeaderIdAndEpoch(
                leader_id=partition.leader, leader_epoch=partition.leader_epoch
            )
            leaders.append(partition.leader)
        made = ShareFetchableTopicResponse(topic_id=topic_id, partitions=[])
        topics.setdefault(topic_id, made).partitions.append(data)
    response = ShareFetchResponse(
        throttle_time_ms=0,
        error_code=NONE,
        responses=list(topics.values()),
        node_endpoints=leader_endpoints(call, leaders, NodeEndpoint),
    )
    if call.version >= 1:
        response.acquisition_lock_timeout_ms = _lock_ms(call)
    return response
