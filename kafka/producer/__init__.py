"""The producers of all eras, under the name that programs import them from.

KafkaProducer is loaded when it is asked for: it brings the network floor with it, which those of
0.9.5 do not need.
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
    """Load KafkaProducer when it is first asked for."""
    found: object = look_up(globals(), name, {'KafkaProducer': 'kafka.producer.kafka'})
    return found
