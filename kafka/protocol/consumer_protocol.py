"""What consumers put inside the messages of classic groups.

Owns the layout of subscriptions and assignments (protocol type "consumer"). An int16 with the
version stands before each, which isn't part of the message. Follows upstream's descriptions
``ConsumerProtocolSubscription`` and ``ConsumerProtocolAssignment``.
"""

from __future__ import annotations

from typing import List, Optional

from kafka.protocol.wire import Bytes, Int32, Message, String, Struct, v


class TopicPartition(Struct):
    topic: String
    partitions: List[Int32]


class ConsumerProtocolSubscription(Message, valid='0-3'):
    """What a consumer wants, inside JoinGroup.

    v1 adds owned partitions (KIP-429), v2 the generation they come from (KIP-792), v3 the rack
    (KIP-881).
    """

    topics: List[String]
    user_data: Optional[Bytes] = v(default=None)
    owned_partitions: List[TopicPartition] = v('1+', default=[], ignorable=True)
    generation_id: Int32 = v('2+', default=-1, ignorable=True)
    rack_id: Optional[String] = v('3+', default=None, ignorable=True)


class ConsumerProtocolAssignment(Message, valid='0-3'):
    """What a consumer gets, inside SyncGroup. All versions look the same."""

    assigned_partitions: List[TopicPartition]
    user_data: Optional[Bytes] = v(default=None)
