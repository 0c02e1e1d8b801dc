"""The consumers of 0.9.5, under the name that programs import them from."""

from __future__ import annotations

from kafka.consumer.group import KafkaConsumer
from kafka.consumer.simple import SimpleConsumer

__all__ = ['SimpleConsumer', 'KafkaConsumer']
