"""ListOffsets, named Offset before 0.10.1: offsets by time.

Version 0 requests something else than all later ones (KIP-79).
"""

from __future__ import annotations

from typing import List

from kafka.internals.lazy_imports import import_late
from kafka.protocol.wire import Int8, Int16, Int32, Int64, Message, Route, String, Struct, v


class ListOffsetsPartition(Struct):
    partition_index: Int32
    current_leader_epoch: Int32 = v('4+', default=-1, ignorable=True)
    timestamp: Int64
    max_num_offsets: Int32 = v('0', default=1)


class ListOffsetsTopic(Struct):
    name: String
    partitions: List[ListOffsetsPartition]


class ListOffsetsRequest(Message, api_key=2, valid='0-11', flexible='6+', route=Route.LEADER):
    """Request the offset at a time in milliseconds, or -1 latest, -2 earliest.

    v0 requests up to ``max_num_offsets`` segment starts, v1 one offset (KIP-79). v2 adds
    isolation levels (KIP-98), v4 leader epochs (KIP-320), v6 is flexible. New special times:
    -3 greatest timestamp in v7 (KIP-734), -4 local start in v8 (KIP-405), -5 tiered end in v9
    (KIP-1005), -6 earliest pending upload in v11 (KIP-1023). v10 adds a timeout (KIP-1075).
    4.0 dropped v0 (KIP-896).
    """

    replica_id: Int32
    isolation_level: Int8 = v('2+', default=0)
    topics: List[ListOffsetsTopic]
    timeout_ms: Int32 = v('10+', default=0, ignorable=True)


class ListOffsetsPartitionResponse(Struct):
    partition_index: Int32
    error_code: Int16
    old_style_offsets: List[Int64] = v('0', default=[])
    timestamp: Int64 = v('1+', default=-1)
    offset: Int64 = v('1+', default=-1)
    leader_epoch: Int32 = v('4+', default=-1)


class ListOffsetsTopicResponse(Struct):
    name: String
    partitions: List[ListOffsetsPartitionResponse]


class ListOffsetsResponse(Message, api_key=2, valid='0-11', flexible='6+'):
    """The offset of each partition, -1 if there is none.

    v0 lists offsets in ``old_style_offsets``, v1 gives one with its timestamp (KIP-79), v2 adds
    the throttle time, v4 the leader epoch (KIP-320), v6 is flexible.
    """

    throttle_time_ms: Int32 = v('2+', default=0, ignorable=True)
    topics: List[ListOffsetsTopicResponse]


def __getattr__(name: str) -> object:
    """Return the classes of single versions, and the special times, that 2.x had here."""
    if name in ('OffsetResetStrategy', 'UNKNOWN_OFFSET'):
        return getattr(import_late('kafka.protocol.offset'), name)
    return import_late('kafka.protocol.struct_names').look_up(__name__, name)
