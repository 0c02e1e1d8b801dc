"""The embedded protocol of classic groups, as structs of 1.x.

Three names that programs import to write assignors. The engine encodes and decodes all versions
with assignors/subscriptions.py. Pure.
"""

from __future__ import annotations

from typing import Any, ClassVar, List, Optional, Tuple, Type

from kafka.protocol.struct import Struct
from kafka.protocol.types import Array, Bytes, Int16, Int32, Schema, String
from kafka.structs import TopicPartition

__all__ = ['ConsumerProtocol', 'ConsumerProtocolMemberAssignment', 'ConsumerProtocolMemberMetadata']


class ConsumerProtocolMemberMetadata(Struct):
    """The subscription of a member (1.x).

    Fields: version; subscription: a list of topics; user_data: bytes or None. Only these are
    compared and encoded. The fields of 3.0 are attributes, for assignors that use them: the owned
    partitions, their generation, and the rack of the member.
    """

    SCHEMA = Schema(
        ('version', Int16),
        ('subscription', Array(String('utf-8'))),
        ('user_data', Bytes),
    )

    version: int
    subscription: List[str]
    user_data: Optional[bytes]
    #: Structs with topic and partitions (KIP-429).
    owned_partitions: Tuple[Any, ...] = ()
    #: -1: unknown (KIP-792).
    generation_id: int = -1
    #: None: unknown (KIP-881).
    rack_id: Optional[str] = None

    @property
    def topics(self) -> List[str]:
        """The subscription, by its name in 3.0."""
        return self.subscription


class ConsumerProtocolMemberAssignment(Struct):
    """The assignment of a member (1.x): version, assignment: [(topic, [partition])], user_data."""

    SCHEMA = Schema(
        ('version', Int16),
        ('assignment', Array(('topic', String('utf-8')), ('partitions', Array(Int32)))),
        ('user_data', Bytes),
    )

    version: int
    assignment: List[Tuple[str, List[int]]]
    user_data: Optional[bytes]

    def partitions(self) -> List[TopicPartition]:
        """Return all partitions of the assignment."""
        return [
            TopicPartition(topic, partition)
            for topic, partitions in self.assignment
            for partition in partitions
        ]


class ConsumerProtocol:
    """The embedded protocol of consumer groups (1.x)."""

    PROTOCOL_TYPE: ClassVar[str] = 'consumer'
    ASSIGNMENT_STRATEGIES: ClassVar[Tuple[str, ...]] = ('range', 'roundrobin')
    METADATA: ClassVar[Type[Struct]] = ConsumerProtocolMemberMetadata
    ASSIGNMENT: ClassVar[Type[Struct]] = ConsumerProtocolMemberAssignment
