"""ProtocolMetadata and MemberAssignment: what members tell their group, as structs of 1.x.

Owns these two structs, which programs find in ``kafka.protocol.group``. The engine's own messages
are in consumer_protocol.py.
"""

from __future__ import annotations

from kafka.protocol.struct import Struct
from kafka.protocol.types import Array, Bytes, Int16, Int32, Schema, String

__all__ = ['MemberAssignment', 'ProtocolMetadata']


class ProtocolMetadata(Struct):
    """What a member wants, inside JoinGroup."""

    SCHEMA = Schema(
        ('version', Int16),
        ('subscription', Array(String('utf-8'))),
        ('user_data', Bytes),
    )


class MemberAssignment(Struct):
    """What a member gets, inside SyncGroup."""

    SCHEMA = Schema(
        ('version', Int16),
        (
            'partition_assignment',
            Array(('topic', String('utf-8')), ('partitions', Array(Int32))),
        ),
        ('user_data', Bytes),
    )


for _cls in (ProtocolMetadata, MemberAssignment):
    _cls.__module__ = 'kafka.protocol.group'  # where programs find them, and pickles
del _cls
