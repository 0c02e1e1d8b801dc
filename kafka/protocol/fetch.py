"""Fetch, and OffsetForLeaderEpoch, by which a consumer detects truncation of a log.

Fetch sessions (KIP-227) and the records in the responses are handled elsewhere.
"""

from __future__ import annotations

from typing import List, Optional

from kafka.internals.lazy_imports import import_late
from kafka.protocol.wire import (
    ZERO_UUID,
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


class ReplicaState(Struct):
    replica_id: Int32 = v(default=-1)
    replica_epoch: Int64 = v(default=-1)


class FetchPartition(Struct):
    partition: Int32
    current_leader_epoch: Int32 = v('9+', default=-1, ignorable=True)
    fetch_offset: Int64
    last_fetched_epoch: Int32 = v('12+', default=-1)
    log_start_offset: Int64 = v('5+', default=-1, ignorable=True)
    partition_max_bytes: Int32
    replica_directory_id: Uuid = v('17+', tag=0, default=ZERO_UUID, ignorable=True)
    high_watermark: Int64 = v('18+', tag=1, default=0x7FFFFFFFFFFFFFFF, ignorable=True)


class FetchTopic(Struct):
    topic: String = v('0-12', default='', ignorable=True)
    topic_id: Uuid = v('13+', default=ZERO_UUID, ignorable=True)
    partitions: List[FetchPartition]


class ForgottenTopic(Struct):
    topic: String = v('7-12', default='', ignorable=True)
    topic_id: Uuid = v('13+', default=ZERO_UUID, ignorable=True)
    partitions: List[Int32]


class FetchRequest(Message, api_key=1, valid='0-18', flexible='12+', route=Route.LEADER):
    """Request records of partitions; wait at most ``max_wait_ms`` for ``min_bytes``.

    v3 limits the whole response (KIP-74), v4 adds the isolation level (KIP-98), v7 fetch sessions
    (KIP-227), v9 leader epochs (KIP-320), v11 racks (KIP-392). v12 is flexible and detects
    diverged logs (KIP-595), v13 names topics by id (KIP-516), v15 moved the replica into a tag
    (KIP-903). 4.0 dropped v0 to v3 (KIP-896).
    """

    cluster_id: Optional[String] = v('12+', tag=0, default=None, ignorable=True)
    replica_id: Int32 = v('0-14', default=-1)
    replica_state: ReplicaState = v('15+', tag=1, default=ReplicaState())
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = v('3+', default=0x7FFFFFFF, ignorable=True)
    isolation_level: Int8 = v('4+', default=0, ignorable=True)
    session_id: Int32 = v('7+', default=0, ignorable=True)
    session_epoch: Int32 = v('7+', default=-1, ignorable=True)
    topics: List[FetchTopic]
    forgotten_topics_data: List[ForgottenTopic] = v('7+', default=[])
    rack_id: String = v('11+', default='', ignorable=True)


class DivergingEpoch(Struct):
    epoch: Int32 = v(default=-1)
    end_offset: Int64 = v(default=-1)


class LeaderIdAndEpoch(Struct):
    leader_id: Int32 = v(default=-1)
    leader_epoch: Int32 = v(default=-1)


class SnapshotId(Struct):
    end_offset: Int64 = v(default=-1)
    epoch: Int32 = v(default=-1)


class AbortedTransaction(Struct):
    producer_id: Int64
    first_offset: Int64


class PartitionData(Struct):
    partition_index: Int32
    error_code: Int16
    high_watermark: Int64
    last_stable_offset: Int64 = v('4+', default=-1, ignorable=True)
    log_start_offset: Int64 = v('5+', default=-1, ignorable=True)
    diverging_epoch: DivergingEpoch = v('12+', tag=0, default=DivergingEpoch())
    current_leader: LeaderIdAndEpoch = v('12+', tag=1, default=LeaderIdAndEpoch())
    snapshot_id: SnapshotId = v('12+', tag=2, default=SnapshotId())
    aborted_transactions: Optional[List[AbortedTransaction]] = v('4+', default=[], ignorable=True)
    preferred_read_replica: Int32 = v('11+', default=-1)
    records: Optional[Records]


class FetchableTopicResponse(Struct):
    topic: String = v('0-12', default='', ignorable=True)
    topic_id: Uuid = v('13+', default=ZERO_UUID, ignorable=True)
    partitions: List[PartitionData]


class NodeEndpoint(Struct):
    node_id: Int32
    host: String
    port: Int32
    rack: Optional[String] = v(default=None)


class FetchResponse(Message, api_key=1, valid='0-18', flexible='12+'):
    """The records of each partition, still encoded.

    v1 adds the throttle time (KIP-13), v4 aborted transactions (KIP-98), v7 fetch sessions
    (KIP-227), v10 may contain zstd (KIP-110), v11 names a preferred read replica (KIP-392). v12
    adds the current leader as tags (KIP-595), v13 ids (KIP-516), v16 the addresses of new leaders
    (KIP-951).
    """

    throttle_time_ms: Int32 = v('1+', default=0, ignorable=True)
    error_code: Int16 = v('7+', default=0, ignorable=True)
    session_id: Int32 = v('7+', default=0)
    responses: List[FetchableTopicResponse]
    node_endpoints: List[NodeEndpoint] = v('16+', tag=0, default=[])


class OffsetForLeaderPartition(Struct):
    partition: Int32
    current_leader_epoch: Int32 = v('2+', default=-1, ignorable=True)
    leader_epoch: Int32


class OffsetForLeaderTopic(Struct):
    topic: String
    partitions: List[OffsetForLeaderPartition]


class OffsetForLeaderEpochRequest(
    Message, api_key=23, valid='0-4', flexible='4+', route=Route.LEADER
):
    """Request the end offset of a leader epoch (KIP-101, KIP-320).

    v2 fences old epochs, v3 names the replica, v4 is flexible. 4.0 dropped v0 and v1 (KIP-896).
    """

    replica_id: Int32 = v('3+', default=-2, ignorable=True)
    topics: List[OffsetForLeaderTopic]


class EpochEndOffset(Struct):
    error_code: Int16
    partition: Int32
    leader_epoch: Int32 = v('1+', default=-1, ignorable=True)
    end_offset: Int64 = v(default=-1)


class OffsetForLeaderTopicResult(Struct):
    topic: String
    partitions: List[EpochEndOffset]


class OffsetForLeaderEpochResponse(Message, api_key=23, valid='0-4', flexible='4+'):
    """The largest epoch up to the requested one, and its end offset.

    v1 adds that epoch, v2 the throttle time, v4 is flexible.
    """

    throttle_time_ms: Int32 = v('2+', default=0, ignorable=True)
    topics: List[OffsetForLeaderTopicResult]


def __getattr__(name: str) -> object:
    """Return the classes of single versions that 1.x and 2.x had here (struct_names.py)."""
    return import_late('kafka.protocol.struct_names').look_up(__name__, name)
