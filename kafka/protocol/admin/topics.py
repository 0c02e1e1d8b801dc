"""Messages for the administration of topics and their records.

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
    Uuid,
    v,
)


class CreatableReplicaAssignment(Struct):
    partition_index: Int32
    broker_ids: List[Int32]


class CreatableTopicConfig(Struct):
    name: String
    value: Optional[String]


class CreatableTopic(Struct):
    name: String
    num_partitions: Int32
    replication_factor: Int16
    assignments: List[CreatableReplicaAssignment]
    configs: List[CreatableTopicConfig]


class CreateTopicsRequest(Message, api_key=19, valid='0-7', flexible='5+', route=Route.CONTROLLER):
    """Create topics, each with counts or with an assignment of replicas.

    v1 can validate only. v4 lets brokers choose the counts by -1 (KIP-464), v5 is flexible. 4.0
    dropped v0 and v1 (KIP-896).
    """

    topics: List[CreatableTopic]
    timeout_ms: Int32 = v(default=60000)
    validate_only: Bool = v('1+', default=False)


class CreatableTopicConfigs(Struct):
    name: String
    value: Optional[String]
    read_only: Bool
    config_source: Int8 = v(default=-1)
    is_sensitive: Bool


class CreatableTopicResult(Struct):
    name: String
    topic_id: Uuid = v('7+', default=ZERO_UUID, ignorable=True)
    error_code: Int16
    error_message: Optional[String] = v('1+', default='', ignorable=True)
    topic_config_error_code: Int16 = v('5+', tag=0, default=0, ignorable=True)
    num_partitions: Int32 = v('5+', default=-1, ignorable=True)
    replication_factor: Int16 = v('5+', default=-1, ignorable=True)
    configs: Optional[List[CreatableTopicConfigs]] = v('5+', default=[], ignorable=True)


class CreateTopicsResponse(Message, api_key=19, valid='0-7', flexible='5+'):
    """One result per topic.

    v1 adds error messages, v2 the throttle time, v5 is flexible and adds configurations (KIP-525),
    v7 adds topic ids (KIP-516).
    """

    throttle_time_ms: Int32 = v('2+', default=0, ignorable=True)
    topics: List[CreatableTopicResult]


class DeleteTopicState(Struct):
    name: Optional[String] = v(default=None)
    topic_id: Uuid


class DeleteTopicsRequest(Message, api_key=20, valid='0-6', flexible='4+', route=Route.CONTROLLER):
    """Delete topics: by name until v5, by name or id since v6 (KIP-516).

    v4 is flexible. 4.0 dropped v0 (KIP-896).
    """

    topic_names: List[String] = v('0-5', default=[], ignorable=True)
    topics: List[DeleteTopicState] = v('6+', default=[])
    timeout_ms: Int32


class DeletableTopicResult(Struct):
    name: Optional[String] = v(nullable='6+')
    topic_id: Uuid = v('6+', default=ZERO_UUID, ignorable=True)
    error_code: Int16
    error_message: Optional[String] = v('5+', default=None, ignorable=True)


class DeleteTopicsResponse(Message, api_key=20, valid='0-6', flexible='4+'):
    """One result per topic.

    v1 adds the throttle time, v4 is flexible, v5 adds error messages (KIP-599), v6 ids (KIP-516).
    """

    throttle_time_ms: Int32 = v('1+', default=0, ignorable=True)
    responses: List[DeletableTopicResult]


class DeleteRecordsPartition(Struct):
    partition_index: Int32
    offset: Int64


class DeleteRecordsTopic(Struct):
    name: String
    partitions: List[DeleteRecordsPartition]


class DeleteRecordsRequest(Message, api_key=21, valid='0-2', flexible='2+', route=Route.LEADER):
    """Delete the records before an offset; -1 means the high watermark (KIP-107).

    v2 is flexible.
    """

    topics: List[DeleteRecordsTopic]
    timeout_ms: Int32


class DeleteRecordsPartitionResult(Struct):
    partition_index: Int32
    low_watermark: Int64
    error_code: Int16


class DeleteRecordsTopicResult(Struct):
    name: String
    partitions: List[DeleteRecordsPartitionResult]


class DeleteRecordsResponse(Message, api_key=21, valid='0-2', flexible='2+'):
    """The new log start offset of each partition. v2 is flexible."""

    throttle_time_ms: Int32
    topics: List[DeleteRecordsTopicResult]


class CreatePartitionsAssignment(Struct):
    broker_ids: List[Int32]


class CreatePartitionsTopic(Struct):
    name: String
    count: Int32
    assignments: Optional[List[CreatePartitionsAssignment]]


class CreatePartitionsRequest(
    Message, api_key=37, valid='0-3', flexible='2+', route=Route.CONTROLLER
):
    """Increase the number of partitions of topics (KIP-195). v2 is flexible."""

    topics: List[CreatePartitionsTopic]
    timeout_ms: Int32
    validate_only: Bool


class CreatePartitionsTopicResult(Struct):
    name: String
    error_code: Int16
    error_message: Optional[String] = v(default=None)


class CreatePartitionsResponse(Message, api_key=37, valid='0-3', flexible='2+'):
    """One result per topic. v2 is flexible, v3 may report a quota (KIP-599)."""

    throttle_time_ms: Int32
    results: List[CreatePartitionsTopicResult]
