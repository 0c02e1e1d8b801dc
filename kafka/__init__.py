"""The public names of the package: a Kafka client for Python programs of all earlier releases.

A table of the module that defines each name. Nothing is imported before it is used: names and
submodules are resolved on first access (PEP 562), so that a program pays only for what it uses.
"""

from __future__ import annotations

from importlib import import_module

from kafka.version import __version__ as __version__

__title__ = 'kafka'
__author__ = 'The kafka-evergreen authors'
__license__ = 'Apache License 2.0'
__copyright__ = 'Copyright The kafka-evergreen authors'

# For type checkers. Importing typing would cost as much as all the rest of this file.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka import client as client
    from kafka import client_async as client_async
    from kafka import codec as codec
    from kafka import common as common
    from kafka import conn as conn
    from kafka import consumer as consumer
    from kafka import context as context
    from kafka import errors as errors
    from kafka import partitioner as partitioner
    from kafka import producer as producer
    from kafka import protocol as protocol
    from kafka import structs as structs
    from kafka import util as util
    from kafka.client import KafkaClient as KafkaClient
    from kafka.conn import KafkaConnection as KafkaConnection
    from kafka.consumer import KafkaConsumer as KafkaConsumer
    from kafka.consumer import MultiProcessConsumer as MultiProcessConsumer
    from kafka.consumer import SimpleConsumer as SimpleConsumer
    from kafka.consumer.listener import (
        AsyncConsumerRebalanceListener as AsyncConsumerRebalanceListener,
    )
    from kafka.consumer.listener import ConsumerRebalanceListener as ConsumerRebalanceListener
    from kafka.consumer.listener import SubscriptionPattern as SubscriptionPattern
    from kafka.evented.broker_connection import BrokerConnection as BrokerConnection
    from kafka.partitioner import HashedPartitioner as HashedPartitioner
    from kafka.partitioner import Murmur2Partitioner as Murmur2Partitioner
    from kafka.partitioner import RoundRobinPartitioner as RoundRobinPartitioner
    from kafka.producer import KafkaProducer as KafkaProducer
    from kafka.producer import KeyedProducer as KeyedProducer
    from kafka.producer import SimpleProducer as SimpleProducer
    from kafka.protocol import create_gzip_message as create_gzip_message
    from kafka.protocol import create_message as create_message
    from kafka.protocol import create_snappy_message as create_snappy_message
    from kafka.protocol.consumer import IsolationLevel as IsolationLevel
    from kafka.protocol.consumer import OffsetSpec as OffsetSpec
    from kafka.serializer import DefaultSerializer as DefaultSerializer
    from kafka.serializer import Deserializer as Deserializer
    from kafka.serializer import JsonSerializer as JsonSerializer
    from kafka.serializer import Serializer as Serializer
    from kafka.simple_client import SimpleClient as SimpleClient
    from kafka.structs import ConsumerGroupMetadata as ConsumerGroupMetadata
    from kafka.structs import OffsetAndMetadata as OffsetAndMetadata
    from kafka.structs import TopicPartition as TopicPartition
    from kafka.structs import TopicPartitionReplica as TopicPartitionReplica

# Names exported by a star import: those of 0.9.5, then those added in 1.x.
__all__ = [
    'KafkaClient',
    'KafkaConnection',
    'SimpleProducer',
    'KeyedProducer',
    'RoundRobinPartitioner',
    'HashedPartitioner',
    'SimpleConsumer',
    'MultiProcessConsumer',
    'create_message',
    'create_gzip_message',
    'create_snappy_message',
    'KafkaConsumer',
    'KafkaProducer',
    'BrokerConnection',
    'SimpleClient',
]

_HOMES = {
    'KafkaClient': 'kafka.client',
    'IsolationLevel': 'kafka.protocol.consumer',
    'OffsetSpec': 'kafka.protocol.consumer',
    'SimpleClient': 'kafka.simple_client',
    'KafkaConnection': 'kafka.conn',
    'BrokerConnection': 'kafka.evented.broker_connection',
    'SimpleProducer': 'kafka.producer',
    'KafkaProducer': 'kafka.producer',
    'KeyedProducer': 'kafka.producer',
    'RoundRobinPartitioner': 'kafka.partitioner',
    'HashedPartitioner': 'kafka.partitioner',
    'Murmur2Partitioner': 'kafka.partitioner',
    'SimpleConsumer': 'kafka.consumer',
    'KafkaConsumer': 'kafka.consumer',
    'MultiProcessConsumer': 'kafka.consumer',
    'AsyncConsumerRebalanceListener': 'kafka.consumer.listener',
    'ConsumerRebalanceListener': 'kafka.consumer.listener',
    'SubscriptionPattern': 'kafka.consumer.listener',
    'create_message': 'kafka.protocol',
    'create_gzip_message': 'kafka.protocol',
    'create_snappy_message': 'kafka.protocol',
    'ConsumerGroupMetadata': 'kafka.structs',
    'TopicPartition': 'kafka.structs',
    'OffsetAndMetadata': 'kafka.structs',
    'TopicPartitionReplica': 'kafka.structs',
    'DefaultSerializer': 'kafka.serializer',
    'Deserializer': 'kafka.serializer',
    'JsonSerializer': 'kafka.serializer',
    'Serializer': 'kafka.serializer',
}

# Reachable as attributes after a bare `import kafka`, as in 0.9.5.
_SUBMODULES = (
    'client',
    'client_async',
    'codec',
    'common',
    'config',
    'conn',
    'consumer',
    'context',
    'errors',
    'future',
    'interceptors',
    'metrics',
    'partitioner',
    'producer',
    'protocol',
    'serializer',
    'structs',
    'util',
)


def __getattr__(name: str) -> object:
    """Import a name on first access and store it, so that this is called once per name."""
    found: object
    if name in _HOMES:
        found = getattr(import_module(_HOMES[name]), name)
    elif name in _SUBMODULES:
        found = import_module('kafka.' + name)
    else:
        raise AttributeError('module %r has no attribute %r' % (__name__, name))
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Return all public names, imported or not."""
    return sorted(set(globals()) | set(_HOMES) | set(_SUBMODULES))
