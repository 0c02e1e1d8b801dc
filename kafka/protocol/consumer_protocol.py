"""The consumer protocol: subscriptions and assignments inside the messages of classic groups.

The protocol type is "consumer". An int16 with the version precedes each; it is not part of the
message. Follows ``ConsumerProtocolSubscription`` and ``ConsumerProtocolAssignment`` of Apache
Kafka.
"""

from __future__ import annotations

from typing import List, Optional

from kafka.protocol.wire import Bytes, Int32, Message, String, Struct, v


class TopicPartition(Struct):
    topic: String
    partitions: List[Int32]


class ConsumerProtocolSubscription(Message, valid='0-3'):
    """The subscription of a consumer, inside JoinGroup.

    v1 adds owned partitions (KIP-429), v2 the generation they come from (KIP-792), v3 the rack
    (KIP-881).
    """

    topics: List[String]
    user_data: Optional[Bytes] = v(default=None)
    owned_partitions: List[TopicPartition] = v('1+', default=[], ignorable=True)
    generation_id: Int32 = v('2+', default=-1, ignorable=True)
    rack_id: Optional[String] = v('3+', default=None, ignorable=True)


class ConsumerProtocolAssignment(Message, valid='0-3'):
    """The assignment of a consumer, inside SyncGroup. All versions are the same."""

    assigned_partitions: List[TopicPartition]
    user_data: Optional[Bytes] = v(default=None)
