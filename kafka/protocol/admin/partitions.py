"""Messages for the administration of replicas: their directories, brokers and leaders.

In the order of the protocol guide.
"""

from __future__ import annotations

from typing import List, Optional

from kafka.protocol.wire import Bool, Int8, Int16, Int32, Int64, Message, Route, String, Struct, v


class AlterReplicaLogDirTopic(Struct):
    name: String
    partitions: List[Int32]


class AlterReplicaLogDir(Struct):
    path: String
    topics: List[AlterReplicaLogDirTopic]


class AlterReplicaLogDirsRequest(
    Message, api_key=34, valid='0-2', flexible='2+', route=Route.BROKER
):
    """Move replicas of one broker between its directories (KIP-113).

    v2 is flexible. 4.0 dropped v0.
    """

    dirs: List[AlterReplicaLogDir]


class AlterReplicaLogDirPartitionResult(Struct):
    partition_index: Int32
    error_code: Int16


class AlterReplicaLogDirTopicResult(Struct):
    topic_name: String
    partitions: List[AlterReplicaLogDirPartitionResult]


class AlterReplicaLogDirsResponse(Message, api_key=34, valid='0-2', flexible='2+'):
    """One error code per partition. v2 is flexible."""

    throttle_time_ms: Int32
    results: List[AlterReplicaLogDirTopicResult]


class DescribableLogDirTopic(Struct):
    topic: String
    partitions: List[Int32]


class DescribeLogDirsRequest(Message, api_key=35, valid='0-5', flexible='2+', route=Route.BROKER):
    """Request the content of a broker's log directories; null means everything (KIP-113).

    v2 is flexible; later versions only changed the response. 4.0 dropped v0.
    """

    topics: Optional[List[DescribableLogDirTopic]]


class DescribeLogDirsPartition(Struct):
    partition_index: Int32
    partition_size: Int64
    offset_lag: Int64
    is_future_key: Bool


class DescribeLogDirsTopic(Struct):
    name: String
    partitions: List[DescribeLogDirsPartition]


class DescribeLogDirsResult(Struct):
    error_code: Int16
    log_dir: String
    topics: List[DescribeLogDirsTopic]
    total_bytes: Int64 = v('4+', default=-1, ignorable=True)
    usable_bytes: Int64 = v('4+', default=-1, ignorable=True)
    is_cordoned: Bool = v('5+', default=False, ignorable=True)


class DescribeLogDirsResponse(Message, api_key=35, valid='0-5', flexible='2+'):
    """Directories with the sizes of replicas.

    v2 is flexible, v3 adds an error for the whole, v4 sizes of volumes (KIP-827), v5 whether they
    are cordoned (KIP-1066).
    """

    throttle_time_ms: Int32
    error_code: Int16 = v('3+', default=0, ignorable=True)
    results: List[DescribeLogDirsResult]


class TopicPartitions(Struct):
    topic: String
    partitions: List[Int32]


class ElectLeadersRequest(Message, api_key=43, valid='0-2', flexible='2+', route=Route.CONTROLLER):
    """Elect leaders; null means every partition (KIP-183).

    v1 chooses preferred or unclean elections (KIP-460), v2 is flexible.
    """

    election_type: Int8 = v('1+', default=0)
    topic_partitions: Optional[List[TopicPartitions]]
    timeout_ms: Int32 = v(default=60000)


class PartitionResult(Struct):
    partition_id: Int32
    error_code: Int16
    error_message: Optional[String]


class ReplicaElectionResult(Struct):
    topic: String
    partition_result: List[PartitionResult]


class ElectLeadersResponse(Message, api_key=43, valid='0-2', flexible='2+'):
    """One result per partition; v1 adds an error for the whole, v2 is flexible."""

    throttle_time_ms: Int32
    error_code: Int16 = v('1+', default=0)
    replica_election_results: List[ReplicaElectionResult]


class ReassignablePartition(Struct):
    partition_index: Int32
    replicas: Optional[List[Int32]] = v(default=None)


class ReassignableTopic(Struct):
    name: String
    partitions: List[ReassignablePartition]


class AlterPartitionReassignmentsRequest(
    Message, api_key=45, valid='0-1', flexible='0+', route=Route.CONTROLLER
):
    """Move partitions to other brokers; null replicas cancel a move (KIP-455).

    v1 can require that the number of replicas stays the same (KIP-860).
    """

    timeout_ms: Int32 = v(default=60000)
    allow_replication_factor_change: Bool = v('1+', default=True)
    topics: List[ReassignableTopic]


class ReassignablePartitionResponse(Struct):
    partition_index: Int32
    error_code: Int16
    error_message: Optional[String]


class ReassignableTopicResponse(Struct):
    name: String
    partitions: List[ReassignablePartitionResponse]


class AlterPartitionReassignmentsResponse(Message, api_key=45, valid='0-1', flexible='0+'):
    """One result per partition."""

    throttle_time_ms: Int32
    allow_replication_factor_change: Bool = v('1+', default=True, ignorable=True)
    error_code: Int16
    error_message: Optional[String]
    responses: List[ReassignableTopicResponse]


class ListPartitionReassignmentsTopics(Struct):
    name: String
    partition_indexes: List[Int32]


class ListPartitionReassignmentsRequest(
    Message, api_key=46, valid='0', flexible='0+', route=Route.CONTROLLER
):
    """Request ongoing reassignments; null means all (KIP-455)."""

    timeout_ms: Int32 = v(default=60000)
    topics: Optional[List[ListPartitionReassignmentsTopics]] = v(default=None)


class OngoingPartitionReassignment(Struct):
    partition_index: Int32
    replicas: List[Int32]
    adding_replicas: List[Int32]
    removing_replicas: List[Int32]


class OngoingTopicReassignment(Struct):
    name: String
    partitions: List[OngoingPartitionReassignment]


class ListPartitionReassignmentsResponse(Message, api_key=46, valid='0', flexible='0+'):
    """The present replicas, those being added and those being removed."""

    throttle_time_ms: Int32
    error_code: Int16
    error_message: Optional[String]
    topics: List[OngoingTopicReassignment]
