"""ProtocolMetadata and MemberAssignment: the consumer protocol as structs of 1.x.

Programs import them from ``kafka.protocol.group``. The messages that this package itself uses are
in consumer_protocol.py.
"""

from __future__ import annotations

from kafka.protocol.struct import Struct
from kafka.protocol.types import Array, Bytes, Int16, Int32, Schema, String

__all__ = ['MemberAssignment', 'ProtocolMetadata']


class ProtocolMetadata(Struct):
    """The subscription of a member, inside JoinGroup."""

    SCHEMA = Schema(
        ('version', Int16),
        ('subscription', Array(String('utf-8'))),
        ('user_data', Bytes),
    )


class MemberAssignment(Struct):
    """The assignment of a member, inside SyncGroup."""

    SCHEMA = Schema(
        ('version', Int16),
        (
            'partition_assignment',
            Array(('topic', String('utf-8')), ('partitions', Array(Int32))),
        ),
        ('user_data', Bytes),
    )


for _cls in (ProtocolMetadata, MemberAssignment):
    _cls.__module__ = 'kafka.protocol.group'  # their public place, which pickles refer to
del _cls
