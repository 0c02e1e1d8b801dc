"""CreateTopics of an embedded cluster (KIP-4, KIP-464, KIP-525)."""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, List, Optional, Tuple

from kafka.protocol.admin.topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafka.protocol.wire import ZERO_UUID, Message
from kafka.testing import errors
from kafka.testing.calls import Call, handles
from kafka.testing.kept_bytes import settings_bytes
from kafka.testing.settings import configs
from kafka.testing.state import NO_LEADER, ClusterState
from kafka.testing.topic_checks import (
    Refused,
    check_absent,
    check_assignments,
    check_counts,
    check_name,
    check_room,
    refuse,
)

UNSET = -1
LONGEST_MS = 3_600_000


@handles(CreateTopicsRequest)
def create_topics(call: Call[CreateTopicsRequest]) -> Optional[Message]:
    """Create topics; the response has one result for each name.

    With ZooKeeper, REQUEST_TIMED_OUT for a topic without leaders is sent after the time-out.
    """
    counts = Counter(topic.name for topic in call.request.topics)
    if call.state.release.version < (0, 11) and _has_null_value(call.request):
        call.close_connection()  # it cannot be decoded before 0.11
        return None
    results = []
    for topic in call.request.topics:
        if counts[topic.name] == 0:
            continue
        if is_wrong_node(call):
            results.append(_failed(topic.name, Refused(errors.NOT_CONTROLLER)))
        elif counts[topic.name] > 1:
            results.append(_failed(topic.name, Refused(errors.INVALID_REQUEST, _twice(call))))
        else:
            results.append(_result(call, topic))
        counts[topic.name] = 0
    if call.state.release.has_zookeeper and call.state.release.version >= (2, 4):
        found = {each.name: each for each in results}
        results = [found[topic.name] for topic in call.request.topics]  # duplicates twice
    response = CreateTopicsResponse(topics=results)
    if not any(each.error_code == errors.REQUEST_TIMED_OUT for each in results):
        return response
    seconds = min(max(0, call.request.timeout_ms), LONGEST_MS) / 1000
    return call.wait(seconds, (), lambda last: response if last else None)


def _has_null_value(request: CreateTopicsRequest) -> bool:
    return any(config.value is None for topic in request.topics for config in topic.configs)


def is_wrong_node(call: Call[Any]) -> bool:
    """Return True if, with ZooKeeper, another node is the controller and has to answer."""
    state = call.state
    return state.release.has_zookeeper and call.broker.node_id != state.controller_id


def _twice(call: Call[CreateTopicsRequest]) -> str:
    if not call.state.release.has_zookeeper:
        return 'Duplicate topic name.'
    return 'Found multiple entries for this topic.'


def _result(call: Call[CreateTopicsRequest], asked: CreatableTopic) -> CreatableTopicResult:
    state = call.state
    values = {config.name: config.value or '' for config in asked.configs}
    size = settings_bytes(asked.name, values)
    try:
        partitions, copies, assignments = _checked(state, asked)
        state.kept.check(0, size)
    except Refused as refused:
        return _failed(asked.name, refused)
    topic_id = ZERO_UUID
    if assignments and not all(assignments.values()):  # the controller never creates it
        late = _failed(asked.name, Refused(errors.REQUEST_TIMED_OUT))
        late.topic_id = state.new_uuid()
        return late
    if call.request.validate_only:
        if not state.release.has_zookeeper:
            topic_id = state.new_uuid()
    else:
        numbers, nodes = sorted(assignments or {}), None
        if assignments is not None:
            nodes = [assignments[number] for number in numbers]
        topic = state.create_topic(asked.name, partitions, copies, nodes, numbers)
        topic.configs.update(values)
        state.kept.change(0, size)
        topic_id = topic.topic_id
        has_leaders = all(each.leader != NO_LEADER for each in topic.partitions)
        if state.release.has_zookeeper and not (has_leaders and call.request.timeout_ms > 0):
            late = _failed(asked.name, Refused(errors.REQUEST_TIMED_OUT))
            late.topic_id = topic_id
            return late
    return CreatableTopicResult(
        name=asked.name,
        topic_id=topic_id,
        error_code=errors.NONE,
        error_message=None,
        num_partitions=partitions,
        replication_factor=copies,
        configs=_described(state, values, call.broker.node_id),
    )


def _checked(
    state: ClusterState, asked: CreatableTopic
) -> Tuple[int, int, Optional[Dict[int, List[int]]]]:
    """Return the counts and the assignment, None if the cluster assigns the replicas."""
    if state.release.has_zookeeper:
        if state.release.version >= (2, 4) and asked.name in state.topics:
            check_absent(state, asked.name)
        if state.release.version >= (2, 0):
            _check_values_are_there(asked, errors.INVALID_REQUEST)
        counts = _counts(state, asked)
        check_name(state, asked.name)
        check_absent(state, asked.name)
        _check_configs(state, asked)
    else:
        check_name(state, asked.name)
        check_absent(state, asked.name)
        _check_values_are_there(asked, errors.INVALID_CONFIG)
        _check_configs(state, asked)
        counts = _counts(state, asked)
    check_room(state, counts[0])
    return counts


def _counts(
    state: ClusterState, asked: CreatableTopic
) -> Tuple[int, int, Optional[Dict[int, List[int]]]]:
    if asked.assignments:
        assignments = _assigned(state, asked)
        return len(assignments), len(next(iter(assignments.values()))), assignments
    partitions, copies = asked.num_partitions, asked.replication_factor
    if state.release.version >= (2, 4):  # KIP-464
        if partitions == UNSET:
            partitions = state.defaults.num_partitions
        if copies == UNSET:
            copies = state.defaults.replication_factor
    check_counts(state, partitions, copies)
    return partitions, copies, None


def _assigned(state: ClusterState, asked: CreatableTopic) -> Dict[int, List[int]]:
    for field, value in (
        ('replication factor', asked.replication_factor),
        ('numPartitions', asked.num_partitions),
    ):
        if value != UNSET:
            refuse(
                errors.INVALID_REQUEST,
                'Both numPartitions or replicationFactor and replicasAssignments were set.'
                ' Both cannot be used at the same time.'
                if state.release.has_zookeeper
                else 'A manual partition assignment was specified, but %s was not set to -1.'
                % field,
            )
    by_index: Dict[int, List[int]] = {}
    for each in asked.assignments:
        if each.partition_index in by_index:
            refuse(
                errors.INVALID_REPLICA_ASSIGNMENT,
                'Found multiple manual partition assignments for partition %d'
                % each.partition_index,
            )
        by_index[each.partition_index] = list(each.broker_ids)
    check_assignments(state, by_index)
    return by_index


def _check_values_are_there(asked: CreatableTopic, code: int) -> None:
    missing = sorted(config.name for config in asked.configs if config.value is None)
    if missing:
        refuse(code, 'Null value not supported for topic configs: %s' % ','.join(missing))


def _check_configs(state: ClusterState, asked: CreatableTopic) -> None:
    keys = configs.topic_keys(state.release.name)
    for config in asked.configs:
        is_old = state.release.version < (2, 0) and config.name in keys
        if is_old and config.value is None:
            refuse(errors.UNKNOWN_SERVER_ERROR)
        wrong = configs.unknown_or_invalid(keys, config.name, config.value or '', 'topic')
        if wrong:  # before 2.0 brokers fail unexpectedly
            refuse(errors.UNKNOWN_SERVER_ERROR if is_old else errors.INVALID_CONFIG, wrong)


def _described(
    state: ClusterState, values: Dict[str, str], node_id: int
) -> List[CreatableTopicConfigs]:
    found = []
    for name, key in sorted(configs.topic_keys(state.release.name).items()):
        held = configs.topic_values(state, values, key, node_id)
        found.append(
            CreatableTopicConfigs(
                name=name,
                value=held[0].value if held else key.default,
                read_only=False,
                config_source=held[0].source if held else configs.FROM_DEFAULT,
                is_sensitive=key.is_sensitive,
            )
        )
    return found


def _failed(name: str, refused: Refused) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=name, error_code=refused.code, error_message=refused.text, configs=[]
    )
