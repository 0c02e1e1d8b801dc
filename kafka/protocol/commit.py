"""The committed offsets of a group: OffsetCommit, OffsetFetch, OffsetDelete.

Version 0 of commit and fetch means offsets in ZooKeeper, which any broker of 0.8.1 to 3.9 handles;
later versions are sent to the group's coordinator.
"""

from __future__ import annotations

from typing import List, Optional

from kafka.internals.lazy_imports import import_late
from kafka.protocol.wire import (
    ZERO_UUID,
    Bool,
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


class OffsetCommitRequestPartition(Struct):
    partition_index: Int32
    committed_offset: Int64
    commit_timestamp: Int64 = v('1', default=-1)
    committed_leader_epoch: Int32 = v('6+', default=-1, ignorable=True)
    committed_metadata: Optional[String]


class OffsetCommitRequestTopic(Struct):
    name: String = v('0-9', default='', ignorable=True)
    topic_id: Uuid = v('10+', default=ZERO_UUID, ignorable=True)
    partitions: List[OffsetCommitRequestPartition]


class OffsetCommitRequest(
    Message, api_key=8, valid='0-10', flexible='8+', route=Route.GROUP_COORDINATOR
):
    """Store offsets for a group.

    v0 stores in ZooKeeper and has no membership. v1 adds it and a timestamp per partition, v2 has
    a retention time instead, gone again in v5 (KIP-211). v6 adds leader epochs (KIP-320), v7
    static members (KIP-345), v8 is flexible, v9 allows the members of KIP-848, v10 names topics by
    id (KIP-848). 4.0 dropped v0 and v1 (KIP-896).
    """

    group_id: String
    generation_id_or_member_epoch: Int32 = v('1+', default=-1, ignorable=True)
    member_id: String = v('1+', default='', ignorable=True)
    retention_time_ms: Int64 = v('2-4', default=-1, ignorable=True)
    group_instance_id: Optional[String] = v('7+', default=None)
    topics: List[OffsetCommitRequestTopic]


class OffsetCommitResponsePartition(Struct):
    partition_index: Int32
    error_code: Int16


class OffsetCommitResponseTopic(Struct):
    name: String = v('0-9', default='', ignorable=True)
    topic_id: Uuid = v('10+', default=ZERO_UUID, ignorable=True)
    partitions: List[OffsetCommitResponsePartition]


class OffsetCommitResponse(Message, api_key=8, valid='0-10', flexible='8+'):
    """One error code per partition.

    v3 adds the throttle time, v8 is flexible, v10 names topics by id (KIP-848).
    """

    throttle_time_ms: Int32 = v('3+', default=0, ignorable=True)
    topics: List[OffsetCommitResponseTopic]


class OffsetFetchRequestTopic(Struct):
    name: String
    partition_indexes: List[Int32]


class OffsetFetchRequestTopics(Struct):
    name: String = v('8-9', default='', ignorable=True)
    topic_id: Uuid = v('10+', default=ZERO_UUID, ignorable=True)
    partition_indexes: List[Int32]


class OffsetFetchRequestGroup(Struct):
    group_id: String
    member_id: Optional[String] = v('9+', default=None, ignorable=True)
    member_epoch: Int32 = v('9+', default=-1, ignorable=True)
    topics: Optional[List[OffsetFetchRequestTopics]]


class OffsetFetchRequest(
    Message, api_key=9, valid='0-10', flexible='6+', route=Route.GROUP_COORDINATOR
):
    """Request committed offsets; null topics mean all, from v2 on.

    v0 reads ZooKeeper. v6 is flexible, v7 can require stable offsets, which no open transaction may
    change (KIP-447), v8 takes several groups (KIP-709), v9 adds the members of KIP-848, v10
    names topics by id (KIP-848). 4.0 dropped v0 (KIP-896).
    """

    group_id: String = v('0-7', default='')
    topics: Optional[List[OffsetFetchRequestTopic]] = v('0-7', nullable='2-7', default=[])
    groups: List[OffsetFetchRequestGroup] = v('8+', default=[])
    require_stable: Bool = v('7+', default=False)


class OffsetFetchResponsePartition(Struct):
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = v('5+', default=-1, ignorable=True)
    metadata: Optional[String]
    error_code: Int16


class OffsetFetchResponseTopic(Struct):
    name: String
    partitions: List[OffsetFetchResponsePartition]


class OffsetFetchResponsePartitions(Struct):
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = v(default=-1)
    metadata: Optional[String]
    error_code: Int16


class OffsetFetchResponseTopics(Struct):
    name: String = v('8-9', default='', ignorable=True)
    topic_id: Uuid = v('10+', default=ZERO_UUID, ignorable=True)
    partitions: List[OffsetFetchResponsePartitions]


class OffsetFetchResponseGroup(Struct):
    group_id: String
    topics: List[OffsetFetchResponseTopics]
    error_code: Int16 = v(default=0)


class OffsetFetchResponse(Message, api_key=9, valid='0-10', flexible='6+'):
    """The committed offsets, -1 if there is none; by topic until v7, by group since v8.

    v2 adds an error for the whole, v3 the throttle time, v5 leader epochs (KIP-320), v6 is
    flexible, v8 holds several groups (KIP-709), v10 names topics by id (KIP-848).
    """

    throttle_time_ms: Int32 = v('3+', default=0, ignorable=True)
    topics: List[OffsetFetchResponseTopic] = v('0-7', default=[])
    error_code: Int16 = v('2-7', default=0, ignorable=True)
    groups: List[OffsetFetchResponseGroup] = v('8+', default=[])


class OffsetDeleteRequestPartition(Struct):
    partition_index: Int32


class OffsetDeleteRequestTopic(Struct):
    name: String
    partitions: List[OffsetDeleteRequestPartition]


class OffsetDeleteRequest(Message, api_key=47, valid='0', route=Route.GROUP_COORDINATOR):
    """Delete offsets of a group (KIP-496). Never flexible."""

    group_id: String
    topics: List[OffsetDeleteRequestTopic]


class OffsetDeleteResponsePartition(Struct):
    partition_index: Int32
    error_code: Int16


class OffsetDeleteResponseTopic(Struct):
    name: String
    partitions: List[OffsetDeleteResponsePartition]


class OffsetDeleteResponse(Message, api_key=47, valid='0'):
    """One error code per partition, and one for the group."""

    error_code: Int16
    throttle_time_ms: Int32
    topics: List[OffsetDeleteResponseTopic]


def __getattr__(name: str) -> object:
    """Return the classes of single versions that 1.x and 2.x had here (struct_names.py)."""
    return import_late('kafka.protocol.struct_names').look_up(__name__, name)
