"""Share groups, the queues of Kafka (KIP-932).

Version 0 of the first four messages was the early access of 4.0 and was removed in 4.1.
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
    Records,
    Route,
    String,
    Struct,
    Uuid,
    v,
)


class ShareGroupHeartbeatRequest(
    Message, api_key=76, valid='0-1', flexible='0+', route=Route.GROUP_COORDINATOR
):
    """Join, stay in or leave a share group; null means unchanged since the last one."""

    group_id: String
    member_id: String
    member_epoch: Int32
    rack_id: Optional[String] = v(default=None)
    subscribed_topic_names: Optional[List[String]] = v(default=None)


class ShareGroupHeartbeatTopicPartitions(Struct):
    topic_id: Uuid
    partitions: List[Int32]


class ShareGroupHeartbeatAssignment(Struct):
    topic_partitions: List[ShareGroupHeartbeatTopicPartitions]


class ShareGroupHeartbeatResponse(Message, api_key=76, valid='0-1', flexible='0+'):
    """The member's epoch, and the assignment if it has changed."""

    throttle_time_ms: Int32
    error_code: Int16
    error_message: Optional[String] = v(default=None)
    member_id: Optional[String] = v(default=None)
    member_epoch: Int32
    heartbeat_interval_ms: Int32
    assignment: Optional[ShareGroupHeartbeatAssignment] = v(default=None)


class ShareGroupDescribeRequest(
    Message, api_key=77, valid='0-1', flexible='0+', route=Route.GROUP_COORDINATOR
):
    """Request the members of share groups."""

    group_ids: List[String]
    include_authorized_operations: Bool


class ShareGroupDescribeTopicPartitions(Struct):
    topic_id: Uuid
    topic_name: String
    partitions: List[Int32]


class ShareGroupDescribeAssignment(Struct):
    topic_partitions: List[ShareGroupDescribeTopicPartitions]


class Member(Struct):
    member_id: String
    rack_id: Optional[String] = v(default=None)
    member_epoch: Int32
    client_id: String
    client_host: String
    subscribed_topic_names: List[String]
    assignment: ShareGroupDescribeAssignment


class DescribedGroup(Struct):
    error_code: Int16
    error_message: Optional[String] = v(default=None)
    group_id: String
    group_state: String
    group_epoch: Int32
    assignment_epoch: Int32
    assignor_name: String
    members: List[Member]
    authorized_operations: Int32 = v(default=-0x80000000)


class ShareGroupDescribeResponse(Message, api_key=77, valid='0-1', flexible='0+'):
    """Share groups with members and their assignments."""

    throttle_time_ms: Int32
    groups: List[DescribedGroup]


class AcknowledgementBatch(Struct):
    first_offset: Int64
    last_offset: Int64
    acknowledge_types: List[Int8]


class FetchPartition(Struct):
    partition_index: Int32
    partition_max_bytes: Int32 = v('0', default=0)
    acknowledgement_batches: List[AcknowledgementBatch]


class FetchTopic(Struct):
    topic_id: Uuid
    partitions: List[FetchPartition]


class ForgottenTopic(Struct):
    topic_id: Uuid
    partitions: List[Int32]


class ShareFetchRequest(Message, api_key=78, valid='0-2', flexible='0+', route=Route.LEADER):
    """Acquire records for a member, and acknowledge earlier ones.

    v1 limits the number of records. v2 can renew acquisitions (KIP-1222) and apply that limit
    strictly (KIP-1206).
    """

    group_id: Optional[String] = v(default=None)
    member_id: Optional[String]
    share_session_epoch: Int32
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = v(default=0x7FFFFFFF)
    max_records: Int32 = v('1+', default=0)
    batch_size: Int32 = v('1+', default=0)
    share_acquire_mode: Int8 = v('2+', default=0, ignorable=True)
    is_renew_ack: Bool = v('2+', default=False)
    topics: List[FetchTopic]
    forgotten_topics_data: List[ForgottenTopic]


class LeaderIdAndEpoch(Struct):
    leader_id: Int32
    leader_epoch: Int32


class AcquiredRecords(Struct):
    first_offset: Int64
    last_offset: Int64
    delivery_count: Int16


class ShareFetchPartitionData(Struct):
    partition_index: Int32
    error_code: Int16
    error_message: Optional[String] = v(default=None)
    acknowledge_error_code: Int16
    acknowledge_error_message: Optional[String] = v(default=None)
    current_leader: LeaderIdAndEpoch
    records: Optional[Records] = v(nullable='0')
    acquired_records: List[AcquiredRecords]


class ShareFetchableTopicResponse(Struct):
    topic_id: Uuid
    partitions: List[ShareFetchPartitionData]


class NodeEndpoint(Struct):
    node_id: Int32
    host: String
    port: Int32
    rack: Optional[String] = v(default=None)


class ShareFetchResponse(Message, api_key=78, valid='0-2', flexible='0+'):
    """Records with the ranges that were acquired.

    v1 adds the duration of acquisition locks.
    """

    throttle_time_ms: Int32
    error_code: Int16
    error_message: Optional[String] = v(default=None)
    acquisition_lock_timeout_ms: Int32 = v('1+', default=0)
    responses: List[ShareFetchableTopicResponse]
    node_endpoints: List[NodeEndpoint]


class AcknowledgePartition(Struct):
    partition_index: Int32
    acknowledgement_batches: List[AcknowledgementBatch]


class AcknowledgeTopic(Struct):
    topic_id: Uuid
    partitions: List[AcknowledgePartition]


class ShareAcknowledgeRequest(Message, api_key=79, valid='0-2', flexible='0+', route=Route.LEADER):
    """Accept, release, reject or, from v2 on, renew acquired records (KIP-1222)."""

    group_id: Optional[String] = v(default=None)
    member_id: Optional[String]
    share_session_epoch: Int32
    is_renew_ack: Bool = v('2+', default=False)
    topics: List[AcknowledgeTopic]


class ShareAcknowledgePartitionData(Struct):
    partition_index: Int32
    error_code: Int16
    error_message: Optional[String] = v(default=None)
    current_leader: LeaderIdAndEpoch


class ShareAcknowledgeTopicResponse(Struct):
    topic_id: Uuid
    partitions: List[ShareAcknowledgePartitionData]


class ShareAcknowledgeResponse(Message, api_key=79, valid='0-2', flexible='0+'):
    """One error code per partition; v2 adds the duration of acquisition locks."""

    throttle_time_ms: Int32
    error_code: Int16
    error_message: Optional[String] = v(default=None)
    acquisition_lock_timeout_ms: Int32 = v('2+', default=0, ignorable=True)
    responses: List[ShareAcknowledgeTopicResponse]
    node_endpoints: List[NodeEndpoint]


class DescribeShareGroupOffsetsRequestTopic(Struct):
    topic_name: String
    partitions: List[Int32]


class DescribeShareGroupOffsetsRequestGroup(Struct):
    group_id: String
    topics: Optional[List[DescribeShareGroupOffsetsRequestTopic]]


class DescribeShareGroupOffsetsRequest(
    Message, api_key=90, valid='0-1', flexible='0+', route=Route.GROUP_COORDINATOR
):
    """Request the start offsets of share groups; null topics mean all."""

    groups: List[DescribeShareGroupOffsetsRequestGroup]


class DescribeShareGroupOffsetsResponsePartition(Struct):
    partition_index: Int32
    start_offset: Int64
    leader_epoch: Int32
    lag: Int64 = v('1+', default=-1, ignorable=True)
    error_code: Int16
    error_message: Optional[String] = v(default=None)


class DescribeShareGroupOffsetsResponseTopic(Struct):
    topic_name: String
    topic_id: Uuid
    partitions: List[DescribeShareGroupOffsetsResponsePartition]


class DescribeShareGroupOffsetsResponseGroup(Struct):
    group_id: String
    topics: List[DescribeShareGroupOffsetsResponseTopic]
    error_code: Int16
    error_message: Optional[String] = v(default=None)


class DescribeShareGroupOffsetsResponse(Message, api_key=90, valid='0-1', flexible='0+'):
    """Start offsets; v1 adds the lag (KIP-1226)."""

    throttle_time_ms: Int32
    groups: List[DescribeShareGroupOffsetsResponseGroup]


class AlterShareGroupOffsetsRequestPartition(Struct):
    partition_index: Int32
    start_offset: Int64


class AlterShareGroupOffsetsRequestTopic(Struct):
    topic_name: String
    partitions: List[AlterShareGroupOffsetsRequestPartition]


class AlterShareGroupOffsetsRequest(
    Message, api_key=91, valid='0', flexible='0+', route=Route.GROUP_COORDINATOR
):
    """Set the start offsets of an empty share group."""

    group_id: String
    topics: List[AlterShareGroupOffsetsRequestTopic]


class AlterShareGroupOffsetsResponsePartition(Struct):
    partition_index: Int32
    error_code: Int16
    error_message: Optional[String] = v(default=None)


class AlterShareGroupOffsetsResponseTopic(Struct):
    topic_name: String
    topic_id: Uuid
    partitions: List[AlterShareGroupOffsetsResponsePartition]


class AlterShareGroupOffsetsResponse(Message, api_key=91, valid='0', flexible='0+'):
    """One error per partition."""

    throttle_time_ms: Int32
    error_code: Int16
    error_message: Optional[String] = v(default=None)
    responses: List[AlterShareGroupOffsetsResponseTopic]


class DeleteShareGroupOffsetsRequestTopic(Struct):
    topic_name: String


class DeleteShareGroupOffsetsRequest(
    Message, api_key=92, valid='0', flexible='0+', route=Route.GROUP_COORDINATOR
):
    """Delete the offsets of topics in an empty share group."""

    group_id: String
    topics: List[DeleteShareGroupOffsetsRequestTopic]


class DeleteShareGroupOffsetsResponseTopic(Struct):
    topic_name: String
    topic_id: Uuid
    error_code: Int16
    error_message: Optional[String] = v(default=None)


class DeleteShareGroupOffsetsResponse(Message, api_key=92, valid='0', flexible='0+'):
    """One error per topic."""

    throttle_time_ms: Int32
    error_code: Int16
    error_message: Optional[String] = v(default=None)
    responses: List[DeleteShareGroupOffsetsResponseTopic]
