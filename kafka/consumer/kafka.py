"""The names of ``kafka.consumer.kafka`` (0.9.5): its KafkaConsumer and what it can be told.

An alias file: the class stands in ``kafka.consumer.group``.
"""

from __future__ import annotations

from kafka.client import KafkaClient as KafkaClient  # the one that is used: replaced by programs
from kafka.consumer.arguments_09 import DEFAULT_CONSUMER_CONFIG, DEPRECATED_CONFIG_KEYS
from kafka.consumer.group import KafkaConsumer
from kafka.consumer.kafka_09 import OffsetsStruct

__all__ = ['DEFAULT_CONSUMER_CONFIG', 'DEPRECATED_CONFIG_KEYS', 'KafkaConsumer', 'OffsetsStruct']
