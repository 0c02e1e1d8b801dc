"""The names of ``kafka.consumer.kafka`` (0.9.5): KafkaConsumer and its default options.

An alias file: the class is in ``kafka.consumer.group``.
"""

from __future__ import annotations

from kafka.client import KafkaClient as KafkaClient  # used from here: programs may replace it
from kafka.consumer.arguments_09 import DEFAULT_CONSUMER_CONFIG, DEPRECATED_CONFIG_KEYS
from kafka.consumer.group import KafkaConsumer
from kafka.consumer.kafka_09 import OffsetsStruct

__all__ = ['DEFAULT_CONSUMER_CONFIG', 'DEPRECATED_CONFIG_KEYS', 'KafkaConsumer', 'OffsetsStruct']
