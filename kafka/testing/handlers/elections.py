"""ElectLeaders of an embedded cluster (KIP-183, KIP-460)."""

from __future__ import annotations

from typing import List, Optional, Tuple

from kafka.protocol.admin.partitions import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)
from kafka.testing import errors
from kafka.testing.calls import Call, handles
from kafka.testing.handlers.create_topics import is_wrong_node
from kafka.testing.state import NO_LEADER, Partition

PREFERRED, UNCLEAN = 0, 1

Outcome = Tuple[int, Optional[str]]


@handles(ElectLeadersRequest)
def elect_leaders(call: Call[ElectLeadersRequest]) -> ElectLeadersResponse:
    """Elect leaders; if no partitions are named, of all that need an election."""
    asked = call.request.topic_partitions
    if call.request.election_type not in (PREFERRED, UNCLEAN):
        return _unknown_type(call, asked or [])
    wanted = asked
    if wanted is None:
        wanted = [
            TopicPartitions(topic=topic.name, partitions=[each.index for each in topic.partitions])
            for topic in call.state.topics.values()
        ]
    results = []
    for each in wanted:
        indexes = each.partitions
        if call.state.release.has_zookeeper:
            indexes = list(dict.fromkeys(indexes))
        found = [_result(call, each.topic, index) for index in indexes]
        if asked is None:
            found = [one for one in found if one.error_code != errors.ELECTION_NOT_NEEDED]
        if found:
            results.append(ReplicaElectionResult(topic=each.topic, partition_result=found))
    return ElectLeadersResponse(throttle_time_ms=0, replica_election_results=results)


def _unknown_type(
    call: Call[ElectLeadersRequest], asked: List[TopicPartitions]
) -> ElectLeadersResponse:
    outcome: Outcome = (
        errors.INVALID_REQUEST,
        'Unknown election type %d' % call.request.election_type,
    )
    if call.state.release.has_zookeeper:
        outcome = errors.UNKNOWN_SERVER_ERROR, None
    return ElectLeadersResponse(
        throttle_time_ms=0,
        error_code=outcome[0],
        replica_election_results=[
            ReplicaElectionResult(
                topic=each.topic,
                partition_result=[
                    PartitionResult(
                        partition_id=index, error_code=outcome[0], error_message=outcome[1]
                    )
                    for index in each.partitions
                ],
            )
            for each in asked
        ],
    )


def _result(call: Call[ElectLeadersRequest], name: str, index: int) -> PartitionResult:
    topic = call.state.topics.get(name)
    partition = topic.partition(index) if topic else None
    if is_wrong_node(call):
        outcome: Outcome = errors.NOT_CONTROLLER, None
    elif partition is None:
        what = 'partition as %s-%d' % (name, index) if topic else 'topic as %s' % name
        outcome = errors.UNKNOWN_TOPIC_OR_PARTITION, 'No such %s' % what
    elif call.request.election_type == PREFERRED:
        outcome = _elect_preferred(partition, call.state.alive)
    else:
        outcome = _elect_unclean(partition, call.state.alive)
    if outcome[0] == errors.NONE:
        call.broker.waiting.touch(('partition', name, index))
    return PartitionResult(partition_id=index, error_code=outcome[0], error_message=outcome[1])


def _elect_preferred(partition: Partition, alive: List[int]) -> Outcome:
    preferred = partition.replicas[0]
    if partition.leader == preferred:
        return errors.ELECTION_NOT_NEEDED, 'Leader election not needed for topic partition.'
    if preferred not in alive or preferred not in partition.isr:
        return (
            errors.PREFERRED_LEADER_NOT_AVAILABLE,
            'Failed to elect leader for partition %s-%d under strategy'
            ' PreferredReplicaPartitionLeaderElectionStrategy' % (partition.topic, partition.index),
        )
    partition.elect(alive, preferred=preferred)
    return errors.NONE, None


def _elect_unclean(partition: Partition, alive: List[int]) -> Outcome:
    if partition.leader != NO_LEADER:
        return errors.ELECTION_NOT_NEEDED, 'Leader election not needed for topic partition.'
    living = [node for node in partition.replicas if node in alive]
    if not living:
        return errors.ELIGIBLE_LEADERS_NOT_AVAILABLE, 'No replica of the partition lives.'
    partition.isr = living[:1]
    partition.elect(alive)
    return errors.NONE, None
