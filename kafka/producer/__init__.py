"""The producers."""

from __future__ import annotations

from kafka.producer.keyed import KeyedProducer
from kafka.producer.simple import SimpleProducer

__all__ = ['SimpleProducer', 'KeyedProducer']
