"""Which partition a keyed message goes to: the partitioners of 0.9.5."""

from __future__ import annotations

from kafka.partitioner.hashed import HashedPartitioner, LegacyPartitioner, Murmur2Partitioner
from kafka.partitioner.roundrobin import RoundRobinPartitioner

__all__ = ['RoundRobinPartitioner', 'HashedPartitioner', 'Murmur2Partitioner', 'LegacyPartitioner']
