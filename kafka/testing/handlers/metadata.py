"""Metadata of an embedded cluster: brokers, topics, leaders.

Creates missing topics if the cluster and the request allow it.
"""

from __future__ import annotations

import re
from typing import List, Optional

from kafka.protocol.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafka.protocol.wire import ZERO_UUID
from kafka.testing.calls import Call, handles
from kafka.testing.errors import (
    INVALID_REPLICATION_FACTOR,
    INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION,
    LEADER_NOT_AVAILABLE,
    NONE,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kafka.testing.security.operations import cluster_operations, topic_operations
from kafka.testing.state import NO_LEADER, ClusterState, Partition, Topic

_LEGAL_NAME = re.compile(r'[a-zA-Z0-9._-]+')
LONGEST_NAME = 249
#: The limit before 0.10, which was too long for file names.
LONGEST_NAME_OF_OLD = 255


def is_legal_name(name: str, longest: int = LONGEST_NAME) -> bool:
    """Return True if brokers create a topic of this name."""
    is_legal = len(name) <= longest and _LEGAL_NAME.fullmatch(name)
    return bool(is_legal) and name not in ('.', '..')


@handles(MetadataRequest)
def metadata(call: Call[MetadataRequest]) -> MetadataResponse:
    """Return the brokers and the topics in the request, all topics if it names none."""
    state, asked = call.state, call.request.topics
    error = _error_of_all(call)
    if error != NONE:
        return _refused(call, error)
    brokers = _brokers(state)  # 0.8 lists brokers only after the first topic is created
    if asked is None or (not asked and call.version == 0):
        topics = [_described(call, topic) for _, topic in sorted(state.topics.items())]
    elif any(each.topic_id != ZERO_UUID for each in asked):
        ids = dict.fromkeys(each.topic_id for each in asked if each.topic_id != ZERO_UUID)
        found = [state.topic_by_id(topic_id) for topic_id in ids]
        topics = [_failed(None, UNKNOWN_TOPIC_ID, i) for i, topic in zip(ids, found) if not topic]
        topics += [_described(call, topic) for topic in found if topic]
    else:
        topics = [_answer(call, name) for name in dict.fromkeys(each.name or '' for each in asked)]
    if state.release.version < (0, 8, 2):
        named = {node for t in topics for p in t.partitions for node in p.replica_nodes}
        brokers = [broker for broker in brokers if broker.node_id in named]
    response = MetadataResponse(
        brokers=brokers,
        cluster_id=state.cluster_id,
        controller_id=state.controller_id,
        topics=topics,
    )
    if call.request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(call)
    return response


def _error_of_all(call: Call[MetadataRequest]) -> int:
    """Return the error code of a request that cannot be answered at all, or NONE."""
    asked = call.request.topics or []
    if call.state.release.version < (0, 9):
        return _error_of_0_8(call.state, [each.name or '' for each in asked])
    has_ids = any(each.topic_id != ZERO_UUID for each in asked)
    lacks_names = any(each.name is None for each in asked)
    if call.version < 12:
        # v10 and v11 have ids and nullable names, but brokers do not support them before v12.
        return INVALID_REQUEST if has_ids or lacks_names else NONE
    return UNKNOWN_SERVER_ERROR if lacks_names and not has_ids else NONE


def _error_of_0_8(state: ClusterState, names: List[str]) -> int:
    """Return the error of automatic creation that makes 0.8 fail the whole request."""
    missing = [name for name in names if name not in state.topics]
    if not missing or not state.defaults.auto_create_topics:
        return NONE
    if not all(is_legal_name(name, LONGEST_NAME_OF_OLD) for name in missing):
        return INVALID_TOPIC_EXCEPTION
    has_brokers = state.defaults.replication_factor <= len(state.alive)
    return NONE if has_brokers else UNKNOWN_SERVER_ERROR


def _refused(call: Call[MetadataRequest], error: int) -> MetadataResponse:
    """Return a response in which the error is that of every topic."""
    topics = [_failed(each.name or '', error, each.topic_id) for each in call.request.topics or ()]
    return MetadataResponse(brokers=[], topics=topics, error_code=error)


def _brokers(state: ClusterState) -> List[MetadataResponseBroker]:
    if state.release.version < (0, 9) and not state.had_topics:
        return []
    return [
        MetadataResponseBroker(node_id=n.node_id, host=n.host, port=n.port, rack=n.rack)
        for n in map(state.nodes.__getitem__, state.alive)
    ]


def _answer(call: Call[MetadataRequest], name: str) -> MetadataResponseTopic:
    """Return a topic by name, or the error code for it."""
    state = call.state
    topic = state.topics.get(name)
    if topic is not None:
        return _described(call, topic)
    answer = _failed(name, _create(call, name))
    if call.request.include_topic_authorized_operations:
        answer.topic_authorized_operations = topic_operations(call, name)
    return answer


def _create(call: Call[MetadataRequest], name: str) -> int:
    """Create a missing topic if that is allowed; return the error code for the response."""
    state = call.state
    creates = state.defaults.auto_create_topics and call.request.allow_auto_topic_creation
    release = state.release.version
    longest = LONGEST_NAME if release >= (0, 10) else LONGEST_NAME_OF_OLD
    if (creates or release >= (2, 8)) and not is_legal_name(name, longest):
        return INVALID_TOPIC_EXCEPTION
    if not creates or not state.has_room(state.defaults.num_partitions):
        return UNKNOWN_TOPIC_OR_PARTITION
    if state.defaults.replication_factor > len(state.alive):
        return _too_few_brokers(state)
    state.create_topic(name)
    # Brokers know no leader until the controller sends it; with KRaft the topic is unknown.
    zookeeper = state.release.has_zookeeper
    return LEADER_NOT_AVAILABLE if zookeeper else UNKNOWN_TOPIC_OR_PARTITION


def _too_few_brokers(state: ClusterState) -> int:
    """Return the error code of a topic with more replicas than live brokers."""
    if not state.release.has_zookeeper:
        return UNKNOWN_TOPIC_OR_PARTITION  # the refusal does not reach the client
    # Before CreateTopics there was no error code for it.
    return (
        INVALID_REPLICATION_FACTOR if state.release.version >= (0, 10, 1) else UNKNOWN_SERVER_ERROR
    )


def _failed(name: Optional[str], error: int, topic_id: bytes = ZERO_UUID) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=error, name=name, topic_id=topic_id, partitions=[])


def _described(call: Call[MetadataRequest], topic: Topic) -> MetadataResponseTopic:
    alive = call.state.alive
    described = MetadataResponseTopic(
        error_code=NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[_partition(each, alive) for each in topic.partitions],
    )
    if call.request.include_topic_authorized_operations:
        described.topic_authorized_operations = topic_operations(call, topic.name)
    return described


def _partition(partition: Partition, alive: List[int]) -> MetadataResponsePartition:
    error = LEADER_NOT_AVAILABLE if partition.leader == NO_LEADER else NONE
    return MetadataResponsePartition(
        error_code=error,
        partition_index=partition.index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        offline_replicas=[node for node in partition.replicas if node not in alive],
    )
