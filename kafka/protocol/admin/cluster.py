"""Messages for the administration of the cluster: its nodes, features and quorum.

In the order of the protocol guide.
"""

from __future__ import annotations

from typing import List, Optional

from kafka.protocol.wire import (
    ZERO_UUID,
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
    Uuid,
    v,
)


class DescribeClusterRequest(Message, api_key=60, valid='0-2', flexible='0+', route=Route.ANY):
    """Ask for the nodes of the cluster (KIP-700).

    v1 chooses brokers or controllers (KIP-919), v2 includes fenced brokers (KIP-1073).
    """

    include_cluster_authorized_operations: Bool
    endpoint_type: Int8 = v('1+', default=1)
    include_fenced_brokers: Bool = v('2+', default=False)


class DescribeClusterBroker(Struct):
    broker_id: Int32
    host: String
    port: Int32
    rack: Optional[String] = v(default=None)
    is_fenced: Bool = v('2+', default=False)


class DescribeClusterResponse(Message, api_key=60, valid='0-2', flexible='0+'):
    """Id, controller and nodes of the cluster; versions as in the request."""

    throttle_time_ms: Int32
    error_code: Int16
    error_message: Optional[String] = v(default=None)
    endpoint_type: Int8 = v('1+', default=1)
    cluster_id: String
    controller_id: Int32 = v(default=-1)
    brokers: List[DescribeClusterBroker]
    cluster_authorized_operations: Int32 = v(default=-0x80000000)


class DescribeQuorumRequestPartitionData(Struct):
    partition_index: Int32


class DescribeQuorumRequestTopicData(Struct):
    topic_name: String
    partitions: List[DescribeQuorumRequestPartitionData]


class DescribeQuorumRequest(Message, api_key=55, valid='0-2', flexible='0+', route=Route.ANY):
    """Ask for the state of the KRaft quorum (KIP-595); later versions changed the response."""

    topics: List[DescribeQuorumRequestTopicData]


class ReplicaState(Struct):
    replica_id: Int32
    replica_directory_id: Uuid = v('2+', default=ZERO_UUID)
    log_end_offset: Int64
    last_fetch_timestamp: Int64 = v('1+', default=-1, ignorable=True)
    last_caught_up_timestamp: Int64 = v('1+', default=-1, ignorable=True)


class DescribeQuorumResponsePartitionData(Struct):
    partition_index: Int32
    error_code: Int16
    error_message: Optional[String] = v('2+', default='', ignorable=True)
    leader_id: Int32
    leader_epoch: Int32
    high_watermark: Int64
    current_voters: List[ReplicaState]
    observers: List[ReplicaState]


class DescribeQuorumResponseTopicData(Struct):
    topic_name: String
    partitions: List[DescribeQuorumResponsePartitionData]


class Listener(Struct):
    name: String
    host: String
    port: UInt16


class Node(Struct):
    node_id: Int32
    listeners: List[Listener]


class DescribeQuorumResponse(Message, api_key=55, valid='0-2', flexible='0+'):
    """Leader, voters and observers of the quorum.

    v1 adds times (KIP-836), v2 messages, directories and addresses (KIP-853).
    """

    error_code: Int16
    error_message: Optional[String] = v('2+', default='', ignorable=True)
    topics: List[DescribeQuorumResponseTopicData]
    nodes: List[Node] = v('2+', default=[])


class FeatureUpdateKey(Struct):
    feature: String
    max_version_level: Int16
    allow_downgrade: Bool = v('0', default=False)
    upgrade_type: Int8 = v('1+', default=1)


class UpdateFeaturesRequest(
    Message, api_key=57, valid='0-2', flexible='0+', route=Route.CONTROLLER
):
    """Set the finalized levels of features (KIP-584).

    v1 can validate only and names the kind of change (KIP-778), v2 only changed the response.
    """

    timeout_ms: Int32 = v(default=60000)
    feature_updates: List[FeatureUpdateKey]
    validate_only: Bool = v('1+', default=False)


class UpdatableFeatureResult(Struct):
    feature: String
    error_code: Int16
    error_message: Optional[String]


class UpdateFeaturesResponse(Message, api_key=57, valid='0-2', flexible='0+'):
    """One result per feature until v1, one for the whole since v2."""

    throttle_time_ms: Int32
    error_code: Int16
    error_message: Optional[String]
    results: List[UpdatableFeatureResult] = v('0-1', default=[], ignorable=True)


class UnregisterBrokerRequest(Message, api_key=64, valid='0', flexible='0+', route=Route.ANY):
    """Remove the registration of a broker that was shut down (KIP-500)."""

    broker_id: Int32


class UnregisterBrokerResponse(Message, api_key=64, valid='0', flexible='0+'):
    """The result: whether the registration was removed."""

    throttle_time_ms: Int32
    error_code: Int16
    error_message: Optional[String]


class AddRaftVoterRequest(Message, api_key=80, valid='0-1', flexible='0+', route=Route.ANY):
    """Add a voter to the KRaft quorum (KIP-853).

    v1 can be answered before the change is committed (KIP-1186).
    """

    cluster_id: Optional[String]
    timeout_ms: Int32
    voter_id: Int32
    voter_directory_id: Uuid
    listeners: List[Listener]
    ack_when_committed: Bool = v('1+', default=True)


class AddRaftVoterResponse(Message, api_key=80, valid='0-1', flexible='0+'):
    """The result: whether the voter was added."""

    throttle_time_ms: Int32
    error_code: Int16
    error_message: Optional[String]


class RemoveRaftVoterRequest(Message, api_key=81, valid='0', flexible='0+', route=Route.ANY):
    """Remove a voter from the KRaft quorum (KIP-853)."""

    cluster_id: Optional[String]
    voter_id: Int32
    voter_directory_id: Uuid


class RemoveRaftVoterResponse(Message, api_key=81, valid='0', flexible='0+'):
    """The result: whether the voter was removed."""

    throttle_time_ms: Int32
    error_code: Int16
    error_message: Optional[String]


class UnregisterControllerRequest(Message, api_key=94, valid='0', flexible='0+', route=Route.ANY):
    """Remove the registration of a controller that was shut down."""

    controller_id: Int32


class UnregisterControllerResponse(Message, api_key=94, valid='0', flexible='0+'):
    """The result: whether the registration was removed."""

    throttle_time_ms: Int32
    error_code: Int16
    error_message: Optional[String]
