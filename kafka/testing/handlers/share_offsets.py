"""Start offsets of share groups, described, altered and deleted by administrators (KIP-932).

The offsets are in :mod:`kafka.testing.groups.share_group`; the lag follows KIP-1226.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from kafka.protocol.share import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from kafka.protocol.wire import ZERO_UUID
from kafka.testing.calls import Call, handles
from kafka.testing.errors import (
    GROUP_ID_NOT_FOUND,
    INVALID_GROUP_ID,
    NON_EMPTY_GROUP,
    NONE,
    NOT_COORDINATOR,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_VERSION,
)
from kafka.testing.group_checks import ELSEWHERE, group_error
from kafka.testing.groups.share_group import ShareGroup
from kafka.testing.groups.share_partition import NO_OFFSET
from kafka.testing.handlers.share_groups import has_share_groups
from kafka.testing.state import Topic

_TEXTS = {
    GROUP_ID_NOT_FOUND: 'There is no such share group.',
    INVALID_GROUP_ID: 'The group id is empty.',
    NON_EMPTY_GROUP: 'The group is not empty.',
    NOT_COORDINATOR: ELSEWHERE,
    UNKNOWN_SERVER_ERROR: 'The server did not expect this request.',
    UNSUPPORTED_VERSION: 'The cluster has no share groups.',
}
_UNKNOWN = 'There is no such topic or partition.'


def _empty_group(
    call: Call[Any], group_id: str, find: Callable[[str], Optional[ShareGroup]]
) -> Union[ShareGroup, int]:
    """Return a group without members, or an error code."""
    error = group_error(call, group_id, has_share_groups(call))
    if error:
        return error
    group = find(group_id)
    if group is None:
        return GROUP_ID_NOT_FOUND
    return NON_EMPTY_GROUP if group.members else group


# ------------------------------------------------------------ describe


@handles(DescribeShareGroupOffsetsRequest)
def describe_share_group_offsets(
    call: Call[DescribeShareGroupOffsetsRequest],
) -> DescribeShareGroupOffsetsResponse:
    """Return the start offsets of groups."""
    return DescribeShareGroupOffsetsResponse(
        throttle_time_ms=0, groups=[_described(call, each) for each in call.request.groups]
    )


def _described(
    call: Call[DescribeShareGroupOffsetsRequest], asked: DescribeShareGroupOffsetsRequestGroup
) -> DescribeShareGroupOffsetsResponseGroup:
    group = call.state.groups.shares.get(asked.group_id)
    error = group_error(call, asked.group_id, has_share_groups(call))
    if error == INVALID_GROUP_ID:
        error = UNKNOWN_SERVER_ERROR
    if error:
        return DescribeShareGroupOffsetsResponseGroup(
            group_id=asked.group_id,
            topics=[],
            error_code=error,
            error_message=None if error == UNSUPPORTED_VERSION else _TEXTS[error],
        )
    wanted = {} if group is None else _known(call, group)
    if asked.topics is not None:
        # Brokers do not check that the group exists.
        wanted = {each.topic_name: each.partitions for each in asked.topics}
    topics = [_topic(call, group, name, indexes) for name, indexes in wanted.items()]
    return DescribeShareGroupOffsetsResponseGroup(
        group_id=asked.group_id, topics=topics, error_code=NONE
    )


def _known(call: Call[Any], group: ShareGroup) -> Dict[str, List[int]]:
    """Return the partitions of which a group has offsets, by topic."""
    found: Dict[str, List[int]] = {}
    for topic_id, index in sorted(group.stored):
        topic = call.state.topic_by_id(topic_id)
        if topic is not None:
            found.setdefault(topic.name, []).append(index)
    return found


def _topic(
    call: Call[Any], group: Optional[ShareGroup], name: str, indexes: List[int]
) -> DescribeShareGroupOffsetsResponseTopic:
    topic = call.state.topics.get(name)
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=name,
        topic_id=ZERO_UUID if topic is None else topic.topic_id,
        partitions=[_partition(group, topic, index) for index in indexes],
    )


def _partition(
    group: Optional[ShareGroup], topic: Optional[Topic], index: int
) -> DescribeShareGroupOffsetsResponsePartition:
    partition = None if topic is None else topic.partition(index)
    if topic is None or partition is None:
        return DescribeShareGroupOffsetsResponsePartition(
            partition_index=index,
            start_offset=NO_OFFSET,
            leader_epoch=0,
            error_code=UNKNOWN_TOPIC_OR_PARTITION,
            error_message=_UNKNOWN,
        )
    key = topic.topic_id, index
    start, lag = NO_OFFSET if group is None else group.stored_offset(key), -1
    if group is not None and start != NO_OFFSET:
        live = group.partitions.get(key)
        completed = 0 if live is None else live.stored_completed
        lag = max(0, partition.high_watermark - start - completed)
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=index,
        start_offset=start,
        leader_epoch=partition.leader_epoch,
        lag=lag,
        error_code=NONE,
    )


# ------------------------------------------------------------ alter


@handles(AlterShareGroupOffsetsRequest)
def alter_share_group_offsets(
    call: Call[AlterShareGroupOffsetsRequest],
) -> AlterShareGroupOffsetsResponse:
    """Set the start offsets of a group without members, created if it does not exist."""
    group = _empty_group(call, call.request.group_id, call.state.groups.altered_share_group)
    if isinstance(group, int):
        return AlterShareGroupOffsetsResponse(
            throttle_time_ms=0, error_code=group, error_message=_TEXTS.get(group), responses=[]
        )
    return AlterShareGroupOffsetsResponse(
        throttle_time_ms=0,
        error_code=NONE,
        responses=[_altered(call, group, each) for each in call.request.topics],
    )


def _altered(
    call: Call[AlterShareGroupOffsetsRequest],
    group: ShareGroup,
    asked: AlterShareGroupOffsetsRequestTopic,
) -> AlterShareGroupOffsetsResponseTopic:
    topic = call.state.topics.get(asked.topic_name)
    partitions = []
    for each in asked.partitions:
        error, text = _located(topic, each.partition_index)
        if topic is not None and not error:
            group.begin_at((topic.topic_id, each.partition_index), each.start_offset)
        partitions.append(
            AlterShareGroupOffsetsResponsePartition(
                partition_index=each.partition_index, error_code=error, error_message=text
            )
        )
    return AlterShareGroupOffsetsResponseTopic(
        topic_name=asked.topic_name,
        topic_id=ZERO_UUID if topic is None else topic.topic_id,
        partitions=partitions,
    )


def _located(topic: Optional[Topic], index: int) -> Tuple[int, Optional[str]]:
    """Return the error code for a partition and its message."""
    if topic is None or topic.partition(index) is None:
        return UNKNOWN_TOPIC_OR_PARTITION, _UNKNOWN
    return NONE, None


# ------------------------------------------------------------ delete


@handles(DeleteShareGroupOffsetsRequest)
def delete_share_group_offsets(
    call: Call[DeleteShareGroupOffsetsRequest],
) -> DeleteShareGroupOffsetsResponse:
    """Delete the offsets of topics in a group without members."""
    group = _empty_group(call, call.request.group_id, call.state.groups.shares.get)
    if isinstance(group, int):
        return DeleteShareGroupOffsetsResponse(
            throttle_time_ms=0, error_code=group, error_message=_TEXTS.get(group), responses=[]
        )
    responses = []
    for each in call.request.topics:
        topic = call.state.topics.get(each.topic_name)
        error, text = (UNKNOWN_TOPIC_OR_PARTITION, _UNKNOWN) if topic is None else (NONE, None)
        if topic is not None:
            group.forget_topic(topic.topic_id)
        responses.append(
            DeleteShareGroupOffsetsResponseTopic(
                topic_name=each.topic_name,
                topic_id=ZERO_UUID if topic is None else topic.topic_id,
                error_code=error,
                error_message=text,
            )
        )
    return DeleteShareGroupOffsetsResponse(throttle_time_ms=0, error_code=NONE, responses=responses)
