"""Metadata of an embedded cluster: brokers, topics, leaders.

Creates topics that are asked for, where the brokers do that.
"""

from __future__ import annotations

import re
from typing import List

from kafka.protocol.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafka.protocol.wire import ZERO_UUID
from kafka.testing.calls import Call, handles
from kafka.testing.errors import (
    INVALID_TOPIC_EXCEPTION,
    LEADER_NOT_AVAILABLE,
    NONE,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kafka.testing.state import NO_LEADER, ClusterState, Partition, Topic

_LEGAL_NAME = re.compile(r'[a-zA-Z0-9._-]{1,249}')


def is_legal_name(name: str) -> bool:
    """Tell whether brokers create a topic of this name."""
    return bool(_LEGAL_NAME.fullmatch(name)) and name not in ('.', '..')


@handles(MetadataRequest)
def metadata(call: Call[MetadataRequest]) -> MetadataResponse:
    """Tell of the topics that are asked for, of all if none is."""
    state, asked = call.state, call.request.topics
    if asked is None or (not asked and call.version == 0):
        topics = [_described(state, topic) for _, topic in sorted(state.topics.items())]
    else:
        topics = [_answer(call, each) for each in asked]
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=n.node_id, host=n.host, port=n.port, rack=n.rack)
            for n in map(state.nodes.__getitem__, state.alive)
        ],
        cluster_id=state.cluster_id,
        controller_id=state.controller_id,
        topics=topics,
    )


def _answer(call: Call[MetadataRequest], asked: MetadataRequestTopic) -> MetadataResponseTopic:
    state = call.state
    if asked.topic_id != ZERO_UUID:
        by_id = state.topic_by_id(asked.topic_id)
        return _described(state, by_id) if by_id else _failed(asked, UNKNOWN_TOPIC_ID)
    name = asked.name or ''
    topic = state.topics.get(name)
    if topic is not None:
        return _described(state, topic)
    if not is_legal_name(name):
        return _failed(asked, INVALID_TOPIC_EXCEPTION)
    if not (state.defaults.auto_create_topics and call.request.allow_auto_topic_creation):
        return _failed(asked, UNKNOWN_TOPIC_OR_PARTITION)
    state.create_topic(name)
    # A broker says so until the controller has told it of the leaders; KRaft ones call it unknown.
    zookeeper = state.release.has_zookeeper
    return _failed(asked, LEADER_NOT_AVAILABLE if zookeeper else UNKNOWN_TOPIC_OR_PARTITION)


def _failed(asked: MetadataRequestTopic, error: int) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=error, name=asked.name, topic_id=asked.topic_id, partitions=[]
    )


def _described(state: ClusterState, topic: Topic) -> MetadataResponseTopic:
    alive = state.alive
    return MetadataResponseTopic(
        error_code=NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[_partition(each, alive) for each in topic.partitions],
    )


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
