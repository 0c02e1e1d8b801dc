"""DescribeTopicPartitions of an embedded cluster: topics in pages (KIP-966)."""

from __future__ import annotations

from typing import List

from kafka.protocol.metadata import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from kafka.protocol.wire import ZERO_UUID
from kafka.testing import errors
from kafka.testing.calls import Call, handles
from kafka.testing.security.operations import topic_operations
from kafka.testing.state import NO_LEADER, Partition, Topic
from kafka.testing.topic_checks import Refused, check_name

_MOST_PARTITIONS = 2000


@handles(DescribeTopicPartitionsRequest)
def describe_topic_partitions(
    call: Call[DescribeTopicPartitionsRequest],
) -> DescribeTopicPartitionsResponse:
    """Return topics from the cursor on, sorted by name."""
    request, state = call.request, call.state
    cursor = request.cursor
    names = sorted({topic.name for topic in request.topics} or set(state.topics))
    if cursor is not None:
        names = [name for name in names if name >= cursor.topic_name]
    room = max(1, min(request.response_partition_limit, _MOST_PARTITIONS))
    response = DescribeTopicPartitionsResponse(throttle_time_ms=0, topics=[])
    for name in names:
        first = max(0, cursor.partition_index) if cursor and cursor.topic_name == name else 0
        topic = state.topics.get(name)
        if topic is None:
            response.topics.append(_unknown(call, name))
            continue
        if room == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        partitions = topic.partitions[first : first + room]
        response.topics.append(_described(call, topic, partitions))
        room -= len(partitions)
        if first + len(partitions) < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=first + len(partitions))
            break
    return response


def _unknown(
    call: Call[DescribeTopicPartitionsRequest], name: str
) -> DescribeTopicPartitionsResponseTopic:
    code = errors.UNKNOWN_TOPIC_OR_PARTITION
    try:
        check_name(call.state, name)
    except Refused as refused:
        code = refused.code
    return DescribeTopicPartitionsResponseTopic(
        error_code=code,
        name=name,
        topic_id=ZERO_UUID,
        partitions=[],
        topic_authorized_operations=topic_operations(call, name),
    )


def _described(
    call: Call[DescribeTopicPartitionsRequest], topic: Topic, partitions: List[Partition]
) -> DescribeTopicPartitionsResponseTopic:
    alive = call.state.alive
    return DescribeTopicPartitionsResponseTopic(
        error_code=errors.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[_partition(each, alive) for each in partitions],
        topic_authorized_operations=topic_operations(call, topic.name),
    )


def _partition(partition: Partition, alive: List[int]) -> DescribeTopicPartitionsResponsePartition:
    has_leader = partition.leader != NO_LEADER
    return DescribeTopicPartitionsResponsePartition(
        error_code=errors.NONE if has_leader else errors.LEADER_NOT_AVAILABLE,
        partition_index=partition.index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=[],
        last_known_elr=[],
        offline_replicas=[node for node in partition.replicas if node not in alive],
    )
