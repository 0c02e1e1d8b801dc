"""The producers of 0.9.5, under the name that programs import them from."""

from __future__ import annotations

from kafka.producer.keyed import KeyedProducer
from kafka.producer.simple import SimpleProducer

__all__ = ['SimpleProducer', 'KeyedProducer']
