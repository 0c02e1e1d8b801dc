"""OffsetCommit, OffsetFetch and OffsetDelete of an embedded cluster.

Version 0 stores offsets in ZooKeeper and is served by any broker (0.8.1 to 3.2), later ones by the
group's coordinator (KIP-211, KIP-320, KIP-447, KIP-496, KIP-709, KIP-848). The offsets are in
:mod:`kafka.testing.groups.stored_offsets`.
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from kafka.protocol.commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kafka.protocol.wire import ZERO_UUID
from kafka.testing.calls import Call, handles
from kafka.testing.errors import (
    COORDINATOR_NOT_AVAILABLE,
    GROUP_SUBSCRIBED_TO_TOPIC,
    NONE,
    NOT_COORDINATOR,
    OFFSET_METADATA_TOO_LARGE,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSTABLE_OFFSET_COMMIT,
    UNSUPPORTED_VERSION,
)
from kafka.testing.group_checks import is_coordinator
from kafka.testing.groups.stored_offsets import NO_EPOCH, NO_OFFSET
from kafka.testing.state import Topic

# ------------------------------------------------------------ commit


@handles(OffsetCommitRequest)
def offset_commit(call: Call[OffsetCommitRequest]) -> OffsetCommitResponse:
    """Commit offsets of a group."""
    error = _commit_error(call)
    return OffsetCommitResponse(topics=[_committed(call, t, error) for t in call.request.topics])


def _commit_error(call: Call[OffsetCommitRequest]) -> int:
    """Return the error code that applies to all partitions."""
    request = call.request
    if call.version == 0:
        return _zookeeper_error(call, request.group_id)
    if not is_coordinator(call, request.group_id):
        return NOT_COORDINATOR
    return call.state.groups.check_commit(
        request.group_id,
        request.generation_id_or_member_epoch,
        request.member_id,
        request.group_instance_id,
        call.version,
        [
            (topic.topic_id, each.partition_index)
            for asked in request.topics
            for topic in [_topic(call, asked.topic_id, asked.name)]
            if topic is not None
            for each in asked.partitions
        ],
    )


def _zookeeper_error(call: Call[Any], group_id: str) -> int:
    if not call.state.release.has_zookeeper:
        return UNSUPPORTED_VERSION
    return NONE if group_id else UNKNOWN_SERVER_ERROR  # an empty name makes no ZooKeeper path


def _committed(
    call: Call[OffsetCommitRequest], asked: OffsetCommitRequestTopic, error: int
) -> OffsetCommitResponseTopic:
    by_id = call.version >= 10
    topic = _topic(call, asked.topic_id if by_id else ZERO_UUID, asked.name)
    partitions = []
    for each in asked.partitions:
        # Unknown topics are found before the group is checked.
        code = _partition_error(call, topic, each.partition_index, by_id) or error
        if not code:
            code = _commit_one(call, topic.name if topic else asked.name, each)
        partitions.append(
            OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
        )
    return OffsetCommitResponseTopic(
        name=asked.name, topic_id=asked.topic_id, partitions=partitions
    )


def _topic(call: Call[Any], topic_id: bytes, name: str) -> Optional[Topic]:
    state = call.state
    return state.topic_by_id(topic_id) if topic_id != ZERO_UUID else state.topics.get(name)


def _partition_error(call: Call[Any], topic: Optional[Topic], index: int, by_id: bool) -> int:
    """Return the error code of a partition that does not exist, NONE if it exists."""
    version = call.state.release.version
    if topic is None and by_id:
        return UNKNOWN_TOPIC_ID
    if topic is None:  # 0.8.2 coordinators stored these
        stored = (0, 8, 2) <= version < (0, 9) and call.version > 0
        return NONE if stored else UNKNOWN_TOPIC_OR_PARTITION
    if version >= (2, 0) and topic.partition(index) is None:
        return UNKNOWN_TOPIC_OR_PARTITION
    return NONE


def _commit_one(
    call: Call[OffsetCommitRequest], topic: str, asked: OffsetCommitRequestPartition
) -> int:
    request, offsets = call.request, call.state.offsets
    metadata = asked.committed_metadata
    if metadata is None and call.state.release.version >= (0, 10):
        metadata = ''
    code = NONE
    if len(metadata or '') > call.state.defaults.offset_metadata_max_bytes:
        code = OFFSET_METADATA_TOO_LARGE
        if call.version == 0 or call.state.release.version >= (0, 9):
            return code
        # 0.8.2 returns the error, and stores the offset and its metadata all the same.
    index, offset = asked.partition_index, asked.committed_offset
    if call.version == 0:
        if not offsets.has_room_in_zookeeper(request.group_id, topic, index):
            return UNKNOWN_SERVER_ERROR
        offsets.commit_to_zookeeper(request.group_id, topic, index, offset)
        return NONE
    if not code and not offsets.has_room(request.group_id, topic, index, metadata):
        return COORDINATOR_NOT_AVAILABLE
    now_ms = call.state.timers.clock.wall_ms()
    committed_ms = asked.commit_timestamp if asked.commit_timestamp >= 0 else now_ms
    retention = request.retention_time_ms
    offsets.commit(
        request.group_id,
        topic,
        index,
        offset,
        asked.committed_leader_epoch,
        metadata,
        committed_ms,
        expires_ms=-1 if retention < 0 else now_ms + retention,
    )
    return code


# ------------------------------------------------------------ fetch


class _Found(NamedTuple):
    """The result for one partition."""

    partition_index: int
    committed_offset: int = NO_OFFSET
    committed_leader_epoch: int = NO_EPOCH
    metadata: Optional[str] = ''
    error_code: int = NONE


class _FoundTopic(NamedTuple):
    name: str
    topic_id: bytes
    partitions: List[_Found]


@handles(OffsetFetchRequest)
def offset_fetch(call: Call[OffsetFetchRequest]) -> OffsetFetchResponse:
    """Return the committed offsets of groups."""
    request = call.request
    if call.version >= 8:
        return OffsetFetchResponse(groups=[_fetched_group(call, g) for g in request.groups])
    asked = None
    if request.topics is not None:
        asked = [(t.name, ZERO_UUID, t.partition_indexes) for t in request.topics]
    if call.version == 0:
        topics, error = _fetched_from_zookeeper(call, asked or []), NONE
    else:
        error = _fetch_error(call, request.group_id)
        topics = _fetched(call, request.group_id, asked) if not error else []
        if error and call.version < 2:
            topics = _failed(asked or [], error)
    return OffsetFetchResponse(
        error_code=error,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(**each._asdict()) for each in topic.partitions
                ],
            )
            for topic in topics
        ],
    )


_Asked = List[Tuple[str, bytes, List[int]]]


def _fetch_error(call: Call[OffsetFetchRequest], group_id: str) -> int:
    return NONE if is_coordinator(call, group_id) else NOT_COORDINATOR


def _fetched_group(
    call: Call[OffsetFetchRequest], asked: OffsetFetchRequestGroup
) -> OffsetFetchResponseGroup:
    error = _fetch_error(call, asked.group_id) or call.state.groups.check_fetch(
        asked.group_id, asked.member_id, asked.member_epoch
    )
    wanted = None
    if asked.topics is not None:
        wanted = [(t.name, t.topic_id, t.partition_indexes) for t in asked.topics]
    topics = [] if error else _fetched(call, asked.group_id, wanted)
    return OffsetFetchResponseGroup(
        group_id=asked.group_id,
        error_code=error,
        topics=[
            OffsetFetchResponseTopics(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetFetchResponsePartitions(**each._asdict()) for each in topic.partitions
                ],
            )
            for topic in topics
        ],
    )


def _fetched(
    call: Call[OffsetFetchRequest], group_id: str, asked: Optional[_Asked]
) -> List[_FoundTopic]:
    call.state.groups.get(group_id)  # expires old offsets
    if asked is None:
        asked = _all_topics(call, group_id)
    found = []
    for name, topic_id, indexes in asked:
        topic = _topic(call, topic_id, name)
        if call.version >= 10:
            if topic is None:
                found += [_failed_topic(name, topic_id, indexes, UNKNOWN_TOPIC_ID)]
                continue
            name, topic_id = topic.name, topic.topic_id
        partitions = [_fetched_one(call, group_id, name, index) for index in indexes]
        if call.state.release.version < (0, 9):
            partitions = [_known(topic, each) for each in partitions]
        found.append(_FoundTopic(name, topic_id, partitions))
    return found


def _known(topic: Optional[Topic], found: _Found) -> _Found:
    """Return the result of 0.8.2: an error for a partition that does not exist."""
    if topic is None or topic.partition(found.partition_index) is None:
        return _Found(found.partition_index, error_code=UNKNOWN_TOPIC_OR_PARTITION)
    return found


def _all_topics(call: Call[OffsetFetchRequest], group_id: str) -> _Asked:
    offsets = call.state.offsets
    keys = set(offsets.fetch_all(group_id))
    if call.request.require_stable:
        keys |= set(offsets.pending_keys(group_id))
    topics: Dict[str, List[int]] = {}
    for name, index in sorted(keys):
        topics.setdefault(name, []).append(index)
    asked = []
    for name, indexes in topics.items():
        topic = call.state.topics.get(name)
        if topic is not None or call.version < 10:
            asked.append((name, topic.topic_id if topic is not None else ZERO_UUID, indexes))
    return asked


def _fetched_one(call: Call[OffsetFetchRequest], group_id: str, topic: str, index: int) -> _Found:
    offsets = call.state.offsets
    if call.request.require_stable and offsets.has_pending(group_id, topic, index):
        return _Found(index, error_code=UNSTABLE_OFFSET_COMMIT)
    stored = offsets.fetch(group_id, topic, index)
    if stored is None:
        return _Found(index)
    return _Found(index, stored.offset, stored.leader_epoch, stored.metadata)


def _fetched_from_zookeeper(call: Call[OffsetFetchRequest], asked: _Asked) -> List[_FoundTopic]:
    state, group_id = call.state, call.request.group_id
    error = _zookeeper_error(call, group_id)
    if error == UNSUPPORTED_VERSION:
        return _failed(asked, error)
    found = []
    for name, topic_id, indexes in asked:
        topic, partitions = state.topics.get(name), []
        for index in indexes:
            offset = state.offsets.fetch_from_zookeeper(group_id, name, index)
            code = _partition_error(call, topic, index, False) or error
            if offset is None and not code:
                code = UNKNOWN_TOPIC_OR_PARTITION
            stored = NO_OFFSET if code or offset is None else offset
            partitions.append(_Found(index, stored, error_code=code))
        found.append(_FoundTopic(name, topic_id, partitions))
    return found


def _failed(asked: _Asked, error: int) -> List[_FoundTopic]:
    return [_failed_topic(name, topic_id, indexes, error) for name, topic_id, indexes in asked]


def _failed_topic(name: str, topic_id: bytes, indexes: List[int], error: int) -> _FoundTopic:
    return _FoundTopic(name, topic_id, [_Found(index, error_code=error) for index in indexes])


# ------------------------------------------------------------ delete


@handles(OffsetDeleteRequest)
def offset_delete(call: Call[OffsetDeleteRequest]) -> OffsetDeleteResponse:
    """Delete offsets of topics to which the group is not subscribed (KIP-496)."""
    request, groups = call.request, call.state.groups
    error = groups.check_offset_delete(request.group_id)
    if not is_coordinator(call, request.group_id):
        error = NOT_COORDINATOR
    if error:
        return OffsetDeleteResponse(error_code=error, throttle_time_ms=0, topics=[])
    topics = []
    for asked in request.topics:
        topic = call.state.topics.get(asked.name)
        partitions = []
        for each in asked.partitions:
            index = each.partition_index
            code = NONE
            if topic is None or topic.partition(index) is None:
                code = UNKNOWN_TOPIC_OR_PARTITION
            elif groups.is_subscribed(request.group_id, asked.name):
                code = GROUP_SUBSCRIBED_TO_TOPIC
            else:
                call.state.offsets.delete(request.group_id, asked.name, index)
            partitions.append(OffsetDeleteResponsePartition(partition_index=index, error_code=code))
        topics.append(OffsetDeleteResponseTopic(name=asked.name, partitions=partitions))
    return OffsetDeleteResponse(error_code=NONE, throttle_time_ms=0, topics=topics)
