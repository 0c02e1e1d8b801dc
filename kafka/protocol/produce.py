"""Produce: appending records to partitions.

In the order of the protocol guide; kafka.record builds the batches and message sets.
"""

from __future__ import annotations

from typing import List, Optional

from kafka.internals.lazy_imports import import_late
from kafka.protocol.wire import (
    ZERO_UUID,
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


class PartitionProduceData(Struct):
    index: Int32
    records: Optional[Records]


class TopicProduceData(Struct):
    name: String = v('0-12', default='', ignorable=True)
    topic_id: Uuid = v('13+', default=ZERO_UUID, ignorable=True)
    partition_data: List[PartitionProduceData]


class ProduceRequest(Message, api_key=0, valid='0-13', flexible='9+', route=Route.LEADER):
    """Append records to partitions. With ``acks`` 0 the broker sends no response.

    v1 and v2 equal v0, but v2 allows magic 1 (KIP-32); v3 allows magic 2 and transactions
    (KIP-98), v7 zstd (KIP-110). v9 is flexible (KIP-482), v12 may add its partitions to the
    transaction (KIP-890), v13 names topics by id (KIP-516). 4.0 dropped v0 to v2 (KIP-896).
    """

    transactional_id: Optional[String] = v('3+', default=None)
    acks: Int16
    timeout_ms: Int32
    topic_data: List[TopicProduceData]


class BatchIndexAndErrorMessage(Struct):
    batch_index: Int32
    batch_index_error_message: Optional[String] = v(default=None)


class LeaderIdAndEpoch(Struct):
    leader_id: Int32 = v(default=-1)
    leader_epoch: Int32 = v(default=-1)


class PartitionProduceResponse(Struct):
    index: Int32
    error_code: Int16
    base_offset: Int64
    log_append_time_ms: Int64 = v('2+', default=-1, ignorable=True)
    log_start_offset: Int64 = v('5+', default=-1, ignorable=True)
    record_errors: List[BatchIndexAndErrorMessage] = v('8+', default=[], ignorable=True)
    error_message: Optional[String] = v('8+', default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = v('10+', tag=0, default=LeaderIdAndEpoch())


class TopicProduceResponse(Struct):
    name: String = v('0-12', default='', ignorable=True)
    topic_id: Uuid = v('13+', default=ZERO_UUID, ignorable=True)
    partition_responses: List[PartitionProduceResponse]


class NodeEndpoint(Struct):
    node_id: Int32
    host: String
    port: Int32
    rack: Optional[String] = v(default=None)


class ProduceResponse(Message, api_key=0, valid='0-13', flexible='9+'):
    """One result per partition.

    v1 adds the throttle time (KIP-13), v2 the append time (KIP-32), v5 the log start offset.
    v8 names invalid records (KIP-467), v10 the new leader (KIP-951), v13 ids (KIP-516).
    """

    responses: List[TopicProduceResponse]
    throttle_time_ms: Int32 = v('1+', default=0, ignorable=True)
    node_endpoints: List[NodeEndpoint] = v('10+', tag=0, default=[])


def __getattr__(name: str) -> object:
    """Return the classes of single versions that 1.x and 2.x had here (struct_names.py)."""
    return import_late('kafka.protocol.struct_names').look_up(__name__, name)
