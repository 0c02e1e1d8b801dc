"""Idempotent and transactional producing (KIP-98, KIP-360, KIP-447, KIP-890).

The producer's transaction state decides when to send which message.
"""

from __future__ import annotations

from typing import List, Optional

from kafka.internals.lazy_imports import import_late
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


class InitProducerIdRequest(
    Message, api_key=22, valid='0-6', flexible='2+', route=Route.TRANSACTION_COORDINATOR
):
    """Request a producer id; with a transactional id, end the last transaction of that id.

    Without a transactional id any broker responds. v2 is flexible, v3 can keep the id and increase
    its epoch (KIP-360), v4 adds fencing (KIP-588), v6 two-phase commit (KIP-939).
    """

    transactional_id: Optional[String]
    transaction_timeout_ms: Int32
    producer_id: Int64 = v('3+', default=-1)
    producer_epoch: Int16 = v('3+', default=-1)
    enable2_pc: Bool = v('6+', default=False)
    keep_prepared_txn: Bool = v('6+', default=False)


class InitProducerIdResponse(Message, api_key=22, valid='0-6', flexible='2+'):
    """The producer id and its epoch.

    v2 is flexible, v6 names a transaction that was kept prepared (KIP-939).
    """

    throttle_time_ms: Int32
    error_code: Int16
    producer_id: Int64 = v(default=-1)
    producer_epoch: Int16
    ongoing_txn_producer_id: Int64 = v('6+', default=-1)
    ongoing_txn_producer_epoch: Int16 = v('6+', default=-1)


class AddPartitionsToTxnTopic(Struct):
    name: String
    partitions: List[Int32]


class AddPartitionsToTxnTransaction(Struct):
    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    verify_only: Bool = v(default=False)
    topics: List[AddPartitionsToTxnTopic]


class AddPartitionsToTxnRequest(
    Message, api_key=24, valid='0-5', flexible='3+', route=Route.TRANSACTION_COORDINATOR
):
    """Add partitions to a transaction.

    v3 is flexible. v4 can only verify, for several transactions at a time, and is meant for brokers
    (KIP-890): clients use v3.
    """

    v3_and_below_transactional_id: String = v('0-3', default='')
    v3_and_below_producer_id: Int64 = v('0-3', default=0)
    v3_and_below_producer_epoch: Int16 = v('0-3', default=0)
    v3_and_below_topics: List[AddPartitionsToTxnTopic] = v('0-3', default=[])
    transactions: List[AddPartitionsToTxnTransaction] = v('4+', default=[])


class AddPartitionsToTxnPartitionResult(Struct):
    partition_index: Int32
    partition_error_code: Int16


class AddPartitionsToTxnTopicResult(Struct):
    name: String
    results_by_partition: List[AddPartitionsToTxnPartitionResult]


class AddPartitionsToTxnResult(Struct):
    transactional_id: String
    topic_results: List[AddPartitionsToTxnTopicResult]


class AddPartitionsToTxnResponse(Message, api_key=24, valid='0-5', flexible='3+'):
    """One error code per partition; from v4 on by transaction (KIP-890).

    v3 is flexible.
    """

    throttle_time_ms: Int32
    results_by_topic_v3_and_below: List[AddPartitionsToTxnTopicResult] = v('0-3', default=[])
    error_code: Int16 = v('4+', default=0, ignorable=True)
    results_by_transaction: List[AddPartitionsToTxnResult] = v('4+', default=[])


class AddOffsetsToTxnRequest(
    Message, api_key=25, valid='0-4', flexible='3+', route=Route.TRANSACTION_COORDINATOR
):
    """Add the offsets of a group to a transaction.

    v3 is flexible.
    """

    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    group_id: String


class AddOffsetsToTxnResponse(Message, api_key=25, valid='0-4', flexible='3+'):
    """The result: whether the group was added to the transaction. v3 is flexible."""

    throttle_time_ms: Int32
    error_code: Int16


class EndTxnRequest(
    Message, api_key=26, valid='0-5', flexible='3+', route=Route.TRANSACTION_COORDINATOR
):
    """Commit or abort a transaction.

    v3 is flexible. v5 increases the epoch with every transaction and may only be sent if the
    feature transaction.version is 2 (KIP-890).
    """

    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    committed: Bool


class EndTxnResponse(Message, api_key=26, valid='0-5', flexible='3+'):
    """The result; v5 adds the producer id and epoch for the next transaction (KIP-890).

    v3 is flexible.
    """

    throttle_time_ms: Int32
    error_code: Int16
    producer_id: Int64 = v('5+', default=-1, ignorable=True)
    producer_epoch: Int16 = v('5+', default=-1, ignorable=True)


class TxnOffsetCommitRequestPartition(Struct):
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = v('2+', default=-1, ignorable=True)
    committed_metadata: Optional[String]


class TxnOffsetCommitRequestTopic(Struct):
    name: String = v('0-5', default='', ignorable=True)
    topic_id: Uuid = v('6+', default=ZERO_UUID, ignorable=True)
    partitions: List[TxnOffsetCommitRequestPartition]


class TxnOffsetCommitRequest(
    Message, api_key=28, valid='0-6', flexible='3+', route=Route.GROUP_COORDINATOR
):
    """Commit offsets of a group, visible when the transaction is committed.

    v2 adds leader epochs (KIP-320), v3 is flexible and adds membership (KIP-447). v5 does not
    require AddOffsetsToTxn before it, if transaction.version is 2 (KIP-890). v6 names topics by id
    and allows the members of KIP-848 (KIP-1319).
    """

    transactional_id: String
    group_id: String
    producer_id: Int64
    producer_epoch: Int16
    generation_id_or_member_epoch: Int32 = v('3+', default=-1)
    member_id: String = v('3+', default='')
    group_instance_id: Optional[String] = v('3+', default=None)
    topics: List[TxnOffsetCommitRequestTopic]


class TxnOffsetCommitResponsePartition(Struct):
    partition_index: Int32
    error_code: Int16


class TxnOffsetCommitResponseTopic(Struct):
    name: String = v('0-5', default='', ignorable=True)
    topic_id: Uuid = v('6+', default=ZERO_UUID, ignorable=True)
    partitions: List[TxnOffsetCommitResponsePartition]


class TxnOffsetCommitResponse(Message, api_key=28, valid='0-6', flexible='3+'):
    """One error code per partition. v3 is flexible, v6 names topics by id (KIP-1319)."""

    throttle_time_ms: Int32
    topics: List[TxnOffsetCommitResponseTopic]


class WritableTxnMarkerTopic(Struct):
    name: String
    partition_indexes: List[Int32]


class WritableTxnMarker(Struct):
    producer_id: Int64
    producer_epoch: Int16
    transaction_result: Bool
    topics: List[WritableTxnMarkerTopic]
    coordinator_epoch: Int32
    transaction_version: Int8 = v('2+', default=0, ignorable=True)


class WriteTxnMarkersRequest(Message, api_key=27, valid='0-2', flexible='1+', route=Route.LEADER):
    """Write end markers to partitions; administrators abort hanging transactions (KIP-664).

    v1 is flexible, v2 adds the transaction's version (KIP-1228). 4.0 dropped v0 (KIP-896).
    """

    markers: List[WritableTxnMarker]


class WritableTxnMarkerPartitionResult(Struct):
    partition_index: Int32
    error_code: Int16


class WritableTxnMarkerTopicResult(Struct):
    name: String
    partitions: List[WritableTxnMarkerPartitionResult]


class WritableTxnMarkerResult(Struct):
    producer_id: Int64
    topics: List[WritableTxnMarkerTopicResult]


class WriteTxnMarkersResponse(Message, api_key=27, valid='0-2', flexible='1+'):
    """One error code per producer id and partition. v1 is flexible."""

    markers: List[WritableTxnMarkerResult]


class DescribeTransactionsRequest(
    Message, api_key=65, valid='0', flexible='0+', route=Route.TRANSACTION_COORDINATOR
):
    """Request the state of transactional ids (KIP-664)."""

    transactional_ids: List[String]


class TopicData(Struct):
    topic: String
    partitions: List[Int32]


class DescribedTransaction(Struct):
    error_code: Int16
    transactional_id: String
    transaction_state: String
    transaction_timeout_ms: Int32
    transaction_start_time_ms: Int64
    producer_id: Int64
    producer_epoch: Int16
    topics: List[TopicData]


class DescribeTransactionsResponse(Message, api_key=65, valid='0', flexible='0+'):
    """State, timeout and partitions of each transactional id."""

    throttle_time_ms: Int32
    transaction_states: List[DescribedTransaction]


class ListTransactionsRequest(Message, api_key=66, valid='0-2', flexible='0+', route=Route.BROKER):
    """Request the transactions that a broker coordinates (KIP-664).

    v1 filters by age (KIP-994), v2 by a pattern of names (KIP-1152).
    """

    state_filters: List[String]
    producer_id_filters: List[Int64]
    duration_filter: Int64 = v('1+', default=-1)
    transactional_id_pattern: Optional[String] = v('2+', default=None)


class ListedTransaction(Struct):
    transactional_id: String
    producer_id: Int64
    transaction_state: String


class ListTransactionsResponse(Message, api_key=66, valid='0-2', flexible='0+'):
    """Transactional ids with producer ids and states."""

    throttle_time_ms: Int32
    error_code: Int16
    unknown_state_filters: List[String]
    transaction_states: List[ListedTransaction]


class TopicRequest(Struct):
    name: String
    partition_indexes: List[Int32]


class DescribeProducersRequest(Message, api_key=61, valid='0', flexible='0+', route=Route.LEADER):
    """Request the active producers of partitions from their leader (KIP-664)."""

    topics: List[TopicRequest]


class ProducerState(Struct):
    producer_id: Int64
    producer_epoch: Int32
    last_sequence: Int32 = v(default=-1)
    last_timestamp: Int64 = v(default=-1)
    coordinator_epoch: Int32
    current_txn_start_offset: Int64 = v(default=-1)


class PartitionResponse(Struct):
    partition_index: Int32
    error_code: Int16
    error_message: Optional[String] = v(default=None)
    active_producers: List[ProducerState]


class TopicResponse(Struct):
    name: String
    partitions: List[PartitionResponse]


class DescribeProducersResponse(Message, api_key=61, valid='0', flexible='0+'):
    """The producers of each partition with sequence, epoch and open transaction."""

    throttle_time_ms: Int32
    topics: List[TopicResponse]


def __getattr__(name: str) -> object:
    """Return the classes of single versions that 1.x and 2.x had here (struct_names.py)."""
    return import_late('kafka.protocol.struct_names').look_up(__name__, name)
