"""The public producer classes: KafkaProducer, and SimpleProducer and KeyedProducer of 0.9.5.

KafkaProducer is imported on first use: it needs kafka.net, which the producers of 0.9.5 do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka.internals.lazy_imports import look_up
from kafka.producer.keyed import KeyedProducer
from kafka.producer.simple import SimpleProducer

if TYPE_CHECKING:
    from kafka.producer.kafka import KafkaProducer as KafkaProducer

__all__ = ['KafkaProducer', 'SimpleProducer', 'KeyedProducer']


def __getattr__(name: str) -> object:
    """Import KafkaProducer on first use."""
    found: object = look_up(globals(), name, {'KafkaProducer': 'kafka.producer.kafka'})
    return found
