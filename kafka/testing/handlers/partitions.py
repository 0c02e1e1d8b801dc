"""CreatePartitions of an embedded cluster (KIP-195)."""

from __future__ import annotations

from collections import Counter
from typing import List

from kafka.protocol.admin.topics import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from kafka.testing import errors
from kafka.testing.calls import Call, handles
from kafka.testing.handlers.create_topics import is_wrong_node
from kafka.testing.state import ClusterState, Topic
from kafka.testing.topic_checks import MOST_PARTITIONS, Refused, check_replicas, check_room, refuse


@handles(CreatePartitionsRequest)
def create_partitions(call: Call[CreatePartitionsRequest]) -> CreatePartitionsResponse:
    """Increase partition counts; the response has one result for each topic."""
    counts = Counter(each.name for each in call.request.topics)
    results = []
    for each in call.request.topics:
        if counts[each.name]:
            results.append(_result(call, each, counts[each.name] > 1))
            counts[each.name] = 0
    return CreatePartitionsResponse(throttle_time_ms=0, results=results)


def _result(
    call: Call[CreatePartitionsRequest], asked: CreatePartitionsTopic, is_twice: bool
) -> CreatePartitionsTopicResult:
    code, text = errors.NONE, None
    try:
        if is_wrong_node(call):
            refuse(errors.NOT_CONTROLLER)
        if is_twice:
            refuse(errors.INVALID_REQUEST, 'Duplicate topic name.')
        _grow(call, asked)
    except Refused as refused:
        code, text = refused.code, refused.text
    return CreatePartitionsTopicResult(name=asked.name, error_code=code, error_message=text)


def _grow(call: Call[CreatePartitionsRequest], asked: CreatePartitionsTopic) -> None:
    state = call.state
    topic = state.topics.get(asked.name)
    if topic is None:
        refuse(
            errors.UNKNOWN_TOPIC_OR_PARTITION,
            "The topic '%s' does not exist." % asked.name if state.release.has_zookeeper else None,
        )
    _check_count(state, topic, asked.count)
    replicas = _replicas(state, topic, asked)
    if call.request.validate_only:
        return
    for nodes in replicas:
        state.add_partition(topic, nodes)


def _check_count(state: ClusterState, topic: Topic, count: int) -> None:
    code, now, zookeeper = (
        errors.INVALID_PARTITIONS,
        len(topic.partitions),
        state.release.has_zookeeper,
    )
    if count == now:
        refuse(code, 'Topic already has %d partition%s.' % (now, 's' if zookeeper else '(s)'))
    if count < now:
        refuse(
            code,
            'Topic currently has %d partitions, which is higher than the requested %d.'
            % (now, count)
            if zookeeper
            else 'The topic %s currently has %d partition(s); %d would not be an increase.'
            % (topic.name, now, count),
        )
    if count > MOST_PARTITIONS:
        refuse(code, 'More than %d partitions.' % MOST_PARTITIONS)
    check_room(state, count - now)


def _replicas(state: ClusterState, topic: Topic, asked: CreatePartitionsTopic) -> List[List[int]]:
    """Return the replicas of the new partitions."""
    missing = asked.count - len(topic.partitions)
    copies = len(topic.partitions[0].replicas)
    if asked.assignments is None:
        return _chosen(state, topic, missing, copies)
    given = [list(each.broker_ids) for each in asked.assignments]
    code = errors.INVALID_REPLICA_ASSIGNMENT
    if len(given) != missing:
        refuse(
            code,
            'Increasing the number of partitions by %d but %d assignments provided.'
            % (missing, len(given))
            if state.release.has_zookeeper
            else 'Attempted to add %d additional partition(s), but only %d assignment(s) were'
            ' specified.' % (missing, len(given)),
        )
    for index, nodes in enumerate(given, len(topic.partitions)):
        check_replicas(state, nodes, index)
        unknown = [node for node in nodes if node not in state.nodes]
        if unknown:
            refuse(code, 'Unknown broker(s) in replica assignment: %s.' % unknown)
        if len(nodes) != copies:
            refuse(
                code,
                'The manual partition assignment includes a partition with %d replica(s), but this'
                ' is not consistent with previous partitions, which have %d replica(s).'
                % (len(nodes), copies),
            )
    return given


def _chosen(state: ClusterState, topic: Topic, missing: int, copies: int) -> List[List[int]]:
    nodes = state.alive
    if copies > len(nodes):
        refuse(
            errors.INVALID_REPLICATION_FACTOR,
            'Unable to replicate the partition %d time(s): only %d broker(s) live.'
            % (copies, len(nodes)),
        )
    first = state.chance.randrange(len(nodes))
    return [
        [nodes[(first + index + copy) % len(nodes)] for copy in range(copies)]
        for index in range(missing)
    ]
