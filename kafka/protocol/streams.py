"""Groups of Kafka Streams programs (KIP-1071).

A Python client can only describe such groups; the heartbeat is declared for the embedded broker and
for tools.
"""

from __future__ import annotations

from typing import List, Optional

from kafka.protocol.wire import (
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    Route,
    String,
    Struct,
    UInt16,
    v,
)


class KeyValue(Struct):
    key: String
    value: String


class TopicInfo(Struct):
    name: String
    partitions: Int32
    replication_factor: Int16
    topic_configs: List[KeyValue]


class CopartitionGroup(Struct):
    source_topics: List[Int16]
    source_topic_regex: List[Int16]
    repartition_source_topics: List[Int16]


class StreamsGroupHeartbeatSubtopology(Struct):
    subtopology_id: String
    source_topics: List[String]
    source_topic_regex: List[String]
    state_changelog_topics: List[TopicInfo]
    repartition_sink_topics: List[String]
    repartition_source_topics: List[TopicInfo]
    copartition_groups: List[CopartitionGroup]


class StreamsGroupHeartbeatTopology(Struct):
    epoch: Int32
    subtopologies: List[StreamsGroupHeartbeatSubtopology]


class TaskIds(Struct):
    subtopology_id: String
    partitions: List[Int32]


class Endpoint(Struct):
    host: String
    port: UInt16


class TaskOffset(Struct):
    subtopology_id: String
    partition: Int32
    offset: Int64


class StreamsGroupHeartbeatRequest(
    Message, api_key=88, valid='0-1', flexible='0+', route=Route.GROUP_COORDINATOR
):
    """Join, stay in or leave a streams group; null means unchanged since the last one.

    v1 only changed the response.
    """

    group_id: String
    member_id: String
    member_epoch: Int32
    endpoint_information_epoch: Int32
    instance_id: Optional[String] = v(default=None)
    rack_id: Optional[String] = v(default=None)
    rebalance_timeout_ms: Int32 = v(default=-1)
    topology: Optional[StreamsGroupHeartbeatTopology] = v(default=None)
    active_tasks: Optional[List[TaskIds]] = v(default=None)
    standby_tasks: Optional[List[TaskIds]] = v(default=None)
    warmup_tasks: Optional[List[TaskIds]] = v(default=None)
    process_id: Optional[String] = v(default=None)
    user_endpoint: Optional[Endpoint] = v(default=None)
    client_tags: Optional[List[KeyValue]] = v(default=None)
    task_offsets: Optional[List[TaskOffset]] = v(default=None)
    task_end_offsets: Optional[List[TaskOffset]] = v(default=None)
    shutdown_application: Bool = v(default=False)


class Status(Struct):
    status_code: Int8
    status_detail: String


class TopicPartition(Struct):
    topic: String
    partitions: List[Int32]


class EndpointToPartitions(Struct):
    user_endpoint: Endpoint
    active_partitions: List[TopicPartition]
    standby_partitions: List[TopicPartition]


class StreamsGroupHeartbeatResponse(Message, api_key=88, valid='0-1', flexible='0+'):
    """The member's epoch, and its tasks if they have changed.

    v1 can request a description of the topology (KIP-1331).
    """

    throttle_time_ms: Int32
    error_code: Int16
    error_message: Optional[String] = v(default=None)
    member_id: String
    member_epoch: Int32
    heartbeat_interval_ms: Int32
    acceptable_recovery_lag_legacy: Int32 = v('0', default=0)
    task_offset_interval_ms: Int32
    acceptable_recovery_lag: Int64 = v('1+', default=-1, ignorable=True)
    status: Optional[List[Status]]
    active_tasks: Optional[List[TaskIds]] = v(default=None)
    standby_tasks: Optional[List[TaskIds]] = v(default=None)
    warmup_tasks: Optional[List[TaskIds]] = v(default=None)
    topology_description_required: Bool = v('1+', default=False)
    endpoint_information_epoch: Int32
    partitions_by_user_endpoint: Optional[List[EndpointToPartitions]] = v(default=None)


class StreamsGroupDescribeRequest(
    Message, api_key=89, valid='0-1', flexible='0+', route=Route.GROUP_COORDINATOR
):
    """Request the members and tasks of streams groups.

    v1 can request descriptions of their topologies (KIP-1331).
    """

    group_ids: List[String]
    include_authorized_operations: Bool
    include_topology_description: Bool = v('1+', default=False)


class StreamsGroupDescribeSubtopology(Struct):
    subtopology_id: String
    source_topics: List[String]
    repartition_sink_topics: List[String]
    state_changelog_topics: List[TopicInfo]
    repartition_source_topics: List[TopicInfo]


class StreamsGroupDescribeTopology(Struct):
    epoch: Int32
    subtopologies: Optional[List[StreamsGroupDescribeSubtopology]] = v(default=None)


class Assignment(Struct):
    active_tasks: List[TaskIds]
    standby_tasks: List[TaskIds]
    warmup_tasks: List[TaskIds]


class Member(Struct):
    member_id: String
    member_epoch: Int32
    instance_id: Optional[String] = v(default=None)
    rack_id: Optional[String] = v(default=None)
    client_id: String
    client_host: String
    topology_epoch: Int32
    process_id: String
    user_endpoint: Optional[Endpoint] = v(default=None)
    client_tags: List[KeyValue]
    task_offsets: List[TaskOffset]
    task_end_offsets: List[TaskOffset]
    assignment: Assignment
    target_assignment: Assignment
    is_classic: Bool


class TopologyDescriptionNode(Struct):
    name: String
    node_type: Int8
    source_topics: List[String]
    sink_topic: Optional[String] = v(default=None)
    stores: List[String]
    successors: List[String]


class TopologyDescriptionSubtopology(Struct):
    subtopology_id: String
    nodes: List[TopologyDescriptionNode]


class TopologyDescriptionGlobalStore(Struct):
    source: TopologyDescriptionNode
    processor: TopologyDescriptionNode


class TopologyDescription(Struct):
    subtopologies: List[TopologyDescriptionSubtopology]
    global_stores: List[TopologyDescriptionGlobalStore]


class DescribedGroup(Struct):
    error_code: Int16
    error_message: Optional[String] = v(default=None)
    group_id: String
    group_state: String
    group_epoch: Int32
    assignment_epoch: Int32
    topology: Optional[StreamsGroupDescribeTopology] = v(default=None)
    members: List[Member]
    authorized_operations: Int32 = v(default=-0x80000000)
    topology_description: Optional[TopologyDescription] = v('1+', default=None)
    topology_description_status: Int8 = v('1+', default=0)
    assignor_name: Optional[String] = v('1+', default=None, ignorable=True)


class StreamsGroupDescribeResponse(Message, api_key=89, valid='0-1', flexible='0+'):
    """Streams groups with topology, members and tasks.

    v1 adds descriptions of topologies (KIP-1331) and the assignor's name (KIP-1357).
    """

    throttle_time_ms: Int32
    groups: List[DescribedGroup]


class StreamsGroupTopologyDescriptionUpdateRequest(
    Message, api_key=93, valid='0', flexible='0+', route=Route.GROUP_COORDINATOR
):
    """Store the description of a topology that the broker has requested (KIP-1331)."""

    group_id: String
    member_id: String
    topology_epoch: Int32
    topology_description: TopologyDescription


class StreamsGroupTopologyDescriptionUpdateResponse(Message, api_key=93, valid='0', flexible='0+'):
    """The result: whether the description was stored."""

    throttle_time_ms: Int32
    error_code: Int16
    error_message: Optional[String] = v(default=None)
