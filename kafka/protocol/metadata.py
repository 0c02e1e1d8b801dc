"""Metadata, and DescribeTopicPartitions, which returns similar information page by page.

In the order of the protocol guide. kafka.cluster stores the result.
"""

from __future__ import annotations

from typing import List, Optional

from kafka.internals.lazy_imports import import_late
from kafka.protocol.wire import (
    ZERO_UUID,
    Bool,
    Int16,
    Int32,
    Message,
    Route,
    String,
    Struct,
    Uuid,
    v,
)


class MetadataRequestTopic(Struct):
    topic_id: Uuid = v('10+', default=ZERO_UUID, ignorable=True)
    name: Optional[String] = v(nullable='10+')


class MetadataRequest(Message, api_key=3, valid='0-13', flexible='9+', route=Route.ANY):
    """Request metadata of topics; null means all of them from v1 on, an empty list in v0.

    v4 can prevent the broker from creating topics, v8 requests authorized operations (KIP-430), v9
    is flexible, v10 may name topics by id (KIP-516) and v11 moves the cluster's operations to
    DescribeCluster (KIP-700). v12 accepts ids without names.
    """

    topics: Optional[List[MetadataRequestTopic]] = v(nullable='1+')
    allow_auto_topic_creation: Bool = v('4+', default=True)
    include_cluster_authorized_operations: Bool = v('8-10', default=False)
    include_topic_authorized_operations: Bool = v('8+', default=False)


class MetadataResponseBroker(Struct):
    node_id: Int32
    host: String
    port: Int32
    rack: Optional[String] = v('1+', default=None, ignorable=True)


class MetadataResponsePartition(Struct):
    error_code: Int16
    partition_index: Int32
    leader_id: Int32
    leader_epoch: Int32 = v('7+', default=-1, ignorable=True)
    replica_nodes: List[Int32]
    isr_nodes: List[Int32]
    offline_replicas: List[Int32] = v('5+', default=[], ignorable=True)


class MetadataResponseTopic(Struct):
    error_code: Int16
    name: Optional[String] = v(nullable='12+')
    topic_id: Uuid = v('10+', default=ZERO_UUID, ignorable=True)
    is_internal: Bool = v('1+', default=False, ignorable=True)
    partitions: List[MetadataResponsePartition]
    topic_authorized_operations: Int32 = v('8+', default=-0x80000000)


class MetadataResponse(Message, api_key=3, valid='0-13', flexible='9+'):
    """Brokers, topics and the leader of each partition.

    v1 adds racks, the controller and internal topics, v2 the cluster id (KIP-78), v3 the throttle
    time, v5 offline replicas (KIP-112), v7 leader epochs (KIP-320), v8 authorized operations
    (KIP-430), v9 is flexible, v10 adds topic ids (KIP-516), v12 allows topics without a name. v13
    adds an error for the whole, by which a broker requests a rebootstrap (KIP-1102).
    """

    throttle_time_ms: Int32 = v('3+', default=0, ignorable=True)
    brokers: List[MetadataResponseBroker]
    cluster_id: Optional[String] = v('2+', default=None, ignorable=True)
    controller_id: Int32 = v('1+', default=-1, ignorable=True)
    topics: List[MetadataResponseTopic]
    cluster_authorized_operations: Int32 = v('8-10', default=-0x80000000)
    error_code: Int16 = v('13+', default=0, ignorable=True)


class TopicRequest(Struct):
    name: String


class Cursor(Struct):
    topic_name: String
    partition_index: Int32


class DescribeTopicPartitionsRequest(
    Message, api_key=75, valid='0', flexible='0+', route=Route.ANY
):
    """Request topics page by page, with the eligible leader replicas (KIP-966)."""

    topics: List[TopicRequest]
    response_partition_limit: Int32 = v(default=2000)
    cursor: Optional[Cursor] = v(default=None)


class DescribeTopicPartitionsResponsePartition(Struct):
    error_code: Int16
    partition_index: Int32
    leader_id: Int32
    leader_epoch: Int32 = v(default=-1)
    replica_nodes: List[Int32]
    isr_nodes: List[Int32]
    eligible_leader_replicas: Optional[List[Int32]] = v(default=None)
    last_known_elr: Optional[List[Int32]] = v(default=None)
    offline_replicas: List[Int32]


class DescribeTopicPartitionsResponseTopic(Struct):
    error_code: Int16
    name: Optional[String]
    topic_id: Uuid
    is_internal: Bool = v(default=False)
    partitions: List[DescribeTopicPartitionsResponsePartition]
    topic_authorized_operations: Int32 = v(default=-0x80000000)


class DescribeTopicPartitionsResponse(Message, api_key=75, valid='0', flexible='0+'):
    """One page of topics, and the cursor of the next (KIP-966)."""

    throttle_time_ms: Int32
    topics: List[DescribeTopicPartitionsResponseTopic]
    next_cursor: Optional[Cursor] = v(default=None)


def __getattr__(name: str) -> object:
    """Return the classes of single versions that 1.x and 2.x had here (struct_names.py)."""
    return import_late('kafka.protocol.struct_names').look_up(__name__, name)
