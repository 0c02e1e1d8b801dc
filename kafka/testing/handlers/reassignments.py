"""AlterPartitionReassignments and ListPartitionReassignments of an embedded cluster (KIP-455).

Replicas are state only: a reassignment completes as soon as all its brokers are alive. Until then
it is listed, and can be cancelled.
"""

from __future__ import annotations

from typing import List

from kafka.protocol.admin.partitions import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kafka.testing import errors
from kafka.testing.calls import Call, handles
from kafka.testing.handlers.create_topics import is_wrong_node
from kafka.testing.state import ClusterState, Partition
from kafka.testing.topic_checks import Refused, check_replicas, refuse


@handles(AlterPartitionReassignmentsRequest)
def alter_partition_reassignments(
    call: Call[AlterPartitionReassignmentsRequest],
) -> AlterPartitionReassignmentsResponse:
    """Start or cancel reassignments of partitions."""
    wrong = is_wrong_node(call)
    responses = []
    for topic in [] if wrong else call.request.topics:
        results = [_result(call, topic.name, each) for each in topic.partitions]
        responses.append(ReassignableTopicResponse(name=topic.name, partitions=results))
    return AlterPartitionReassignmentsResponse(
        throttle_time_ms=0,
        allow_replication_factor_change=call.request.allow_replication_factor_change,
        error_code=errors.NOT_CONTROLLER if wrong else errors.NONE,
        error_message='' if call.state.release.has_zookeeper or not responses else None,
        responses=responses,
    )


def _result(
    call: Call[AlterPartitionReassignmentsRequest], name: str, asked: ReassignablePartition
) -> ReassignablePartitionResponse:
    code, text = errors.NONE, None
    try:
        _alter(call, name, asked)
    except Refused as refused:
        code, text = refused.code, refused.text
    return ReassignablePartitionResponse(
        partition_index=asked.partition_index, error_code=code, error_message=text
    )


def _alter(
    call: Call[AlterPartitionReassignmentsRequest], name: str, asked: ReassignablePartition
) -> None:
    state = call.state
    topic = state.topics.get(name)
    partition = topic.partition(asked.partition_index) if topic else None
    if partition is None:
        refuse(errors.UNKNOWN_TOPIC_OR_PARTITION, 'The partition does not exist.')
    place = name, asked.partition_index
    finish_moves(state)
    if asked.replicas is None:
        if state.reassignments.pop(place, None) is None:
            text = 'No partition reassignment is in progress.'
            refuse(
                errors.NO_REASSIGNMENT_IN_PROGRESS, text if state.release.has_zookeeper else None
            )
        return
    nodes = list(asked.replicas)
    check_replicas(state, nodes, asked.partition_index)
    if any(node not in state.nodes for node in nodes):
        refuse(errors.INVALID_REPLICA_ASSIGNMENT, 'Unknown broker in %s.' % nodes)
    if not call.request.allow_replication_factor_change:
        if len(nodes) != len(partition.replicas):
            refuse(
                errors.INVALID_REPLICATION_FACTOR,
                'The replication factor is changed from %d to %d'
                % (len(partition.replicas), len(nodes)),
            )
    state.reassignments[place] = nodes
    finish_moves(state)
    call.broker.waiting.touch(('partition', *place))


def finish_moves(state: ClusterState) -> None:
    """Complete reassignments whose brokers are all alive, and drop those of deleted topics."""
    for (name, index), nodes in list(state.reassignments.items()):
        topic = state.topics.get(name)
        partition = topic.partition(index) if topic else None
        if partition is not None:
            if not set(nodes) <= set(state.alive):
                continue
            partition.replicas = list(nodes)
            partition.isr = list(nodes)
            partition.elect(state.alive)
        del state.reassignments[name, index]


@handles(ListPartitionReassignmentsRequest)
def list_partition_reassignments(
    call: Call[ListPartitionReassignmentsRequest],
) -> ListPartitionReassignmentsResponse:
    """Return the reassignments in progress."""
    state = call.state
    wrong = is_wrong_node(call)
    finish_moves(state)
    wanted = call.request.topics
    if wanted is None:
        wanted = [
            ListPartitionReassignmentsTopics(name=name, partition_indexes=[index])
            for name, index in sorted(state.reassignments)
        ]
    topics: List[OngoingTopicReassignment] = []
    for each in [] if wrong else wanted:
        moves = [
            _move(state.topics[each.name].partitions[index], state.reassignments[each.name, index])
            for index in each.partition_indexes
            if (each.name, index) in state.reassignments
        ]
        if moves and topics and topics[-1].name == each.name:
            topics[-1].partitions += moves
        elif moves:
            topics.append(OngoingTopicReassignment(name=each.name, partitions=moves))
    return ListPartitionReassignmentsResponse(
        throttle_time_ms=0,
        error_code=errors.NOT_CONTROLLER if wrong else errors.NONE,
        error_message='' if state.release.has_zookeeper else None,
        topics=topics,
    )


def _move(partition: Partition, nodes: List[int]) -> OngoingPartitionReassignment:
    added = [node for node in nodes if node not in partition.replicas]
    return OngoingPartitionReassignment(
        partition_index=partition.index,
        replicas=nodes + [node for node in partition.replicas if node not in nodes],
        adding_replicas=added,
        removing_replicas=[node for node in partition.replicas if node not in nodes],
    )
