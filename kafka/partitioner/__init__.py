"""Partitioners of all eras: the partition of a message by its key.

``Partitioner`` is the class of 3.0; that of 0.9.5 is ``kafka.partitioner.base.Partitioner``.
Partitioners for KafkaProducer only are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka.internals.lazy_imports import look_up
from kafka.partitioner.hashed import HashedPartitioner, LegacyPartitioner, Murmur2Partitioner
from kafka.partitioner.hashed import murmur2 as murmur2
from kafka.partitioner.roundrobin import RoundRobinPartitioner

if TYPE_CHECKING:
    from kafka.partitioner.abstract import Partitioner as Partitioner
    from kafka.partitioner.default import DefaultPartitioner as DefaultPartitioner
    from kafka.partitioner.sticky import StickyPartitioner as StickyPartitioner

__all__ = ['RoundRobinPartitioner', 'HashedPartitioner', 'Murmur2Partitioner', 'LegacyPartitioner']

_LATE = {
    'DefaultPartitioner': 'kafka.partitioner.default',
    'Partitioner': 'kafka.partitioner.abstract',
    'StickyPartitioner': 'kafka.partitioner.sticky',
}


def __getattr__(name: str) -> object:
    """Import a partitioner of KafkaProducer on first use."""
    found: object = look_up(globals(), name, _LATE)
    return found
