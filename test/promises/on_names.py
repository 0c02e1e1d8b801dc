"""Promises about names: errors, modules, metrics, partitioners. Most need no broker."""

from __future__ import annotations

import importlib
import inspect
from typing import Any, Dict, List

from asking import Asking, promise, told


def _missing(names: Dict[str, str]) -> List[Any]:
    """Return [module, name] of what is not there; names are separated by blanks."""
    found: List[Any] = []
    for module, wanted in names.items():
        try:
            loaded = importlib.import_module(module)
        except ImportError:
            found.append([module, 'is missing'])
            continue
        found += [[module, name] for name in wanted.split() if not hasattr(loaded, name)]
    return found


@promise('M 3, L 3')
def errors_with_codes(at: Asking) -> Any:
    from kafka.errors import for_code

    found = {}
    for code in range(-1, 45):
        kind = for_code(code)
        found[code] = [kind.errno, isinstance(kind().retriable, bool), issubclass(kind, Exception)]
    return found


@promise('L 3', since='2.2.15')
def names_of_errors_with_codes(at: Asking) -> Any:
    from kafka.errors import for_code

    found = {}
    for code in range(-1, 100):
        kind = for_code(code)
        found[code] = kind.__name__
    return found


@promise('L 3', since='3.0.12')
def what_to_do_about_errors_with_codes(at: Asking) -> Any:
    from kafka.errors import for_code

    found = {}
    for code in range(-1, 128):
        kind = for_code(code)
        found[code] = [kind.__name__, kind.retriable, bool(getattr(kind, 'invalid_metadata', 0))]
    return found


@promise('L 3')
def texts_of_errors(at: Asking) -> Any:
    from kafka import errors

    return [
        str(errors.KafkaTimeoutError('late')),
        str(errors.KafkaTimeoutError()),
        str(errors.UnknownTopicOrPartitionError()),
        str(errors.NotLeaderForPartitionError('t')),
        str(errors.KafkaError('a', 5)),
    ]


@promise('M 3, L 3')
def errors_are_caught_by_their_bases(at: Asking) -> Any:
    from kafka import errors

    found = {}
    names = (
        'KafkaError BrokerResponseError KafkaTimeoutError KafkaConnectionError IllegalStateError'
        ' IllegalArgumentError UnsupportedVersionError KafkaConfigurationError Cancelled'
        ' NodeNotReadyError TooManyInFlightRequests CommitFailedError UnsupportedCodecError'
        ' MessageSizeTooLargeError TopicAuthorizationFailedError NotLeaderForPartitionError'
        ' KafkaProtocolError CorrelationIdError QuotaViolationError StaleMetadata'
    )
    for name in names.split():
        kind = getattr(errors, name)
        bases = {each.__name__ for each in kind.__mro__}
        found[name] = [base for base in ('KafkaError', 'BrokerResponseError') if base in bases]
    return found


def _missing(names: Dict[str, str]) -> List[Any]:
    """Return which modules, and names that they should have, are not there."""
    found: List[Any] = []
    for module, wanted in names.items():
        try:
            loaded = importlib.import_module(module)
        except ImportError:
            found.append([module, 'is missing'])
            continue
        found += [[module, name] for name in wanted.split() if not hasattr(loaded, name)]
    return found


@promise('M 1, L 1')
def modules_that_programs_import(at: Asking) -> Any:
    names = {
        'kafka': 'KafkaConsumer KafkaProducer TopicPartition OffsetAndMetadata Serializer'
        ' Deserializer __version__',
        'kafka.errors': 'KafkaError KafkaTimeoutError for_code',
        'kafka.structs': 'TopicPartition OffsetAndMetadata BrokerMetadata PartitionMetadata'
        ' OffsetAndTimestamp',
        'kafka.future': 'Future',
        'kafka.cluster': 'ClusterMetadata',
        'kafka.partitioner': 'DefaultPartitioner murmur2',
        'kafka.partitioner.default': 'DefaultPartitioner',
        'kafka.producer': 'KafkaProducer',
        'kafka.producer.kafka': 'KafkaProducer',
        'kafka.producer.future': 'FutureRecordMetadata RecordMetadata FutureProduceResult',
        'kafka.producer.record_accumulator': 'RecordAccumulator',
        'kafka.producer.sender': 'Sender',
        'kafka.serializer': 'Serializer Deserializer',
        'kafka.serializer.abstract': 'Serializer Deserializer',
        'kafka.metrics': 'AnonMeasurable DictReporter KafkaMetric MetricConfig MetricName Metrics'
        ' NamedMeasurable Quota',
        'kafka.metrics.stats': 'Avg Count Histogram Max Min Percentile Percentiles Rate Sensor'
        ' Total',
        'kafka.codec': 'gzip_encode gzip_decode snappy_encode snappy_decode lz4_encode lz4_decode'
        ' has_snappy has_lz4 has_gzip',
        'kafka.record': 'MemoryRecords MemoryRecordsBuilder',
        'kafka.version': '__version__',
    }
    return _missing(names)


@promise('M 1, L 1', until='3.0')
def modules_that_programs_import_up_to_2_3(at: Asking) -> Any:
    names = {
        'kafka': 'KafkaClient BrokerConnection ConsumerRebalanceListener',
        'kafka.evented.client': 'KafkaClient',
        'kafka.conn': 'BrokerConnection ConnectionStates collect_hosts get_ip_port_afi',
        'kafka.protocol.api': 'RequestHeader',
        'kafka.protocol.produce': 'ProduceRequest ProduceResponse',
        'kafka.protocol.metadata': 'MetadataRequest MetadataResponse',
        'kafka.protocol.types': 'Int8 Int16 Int32 Int64 String Bytes Array Schema',
        'kafka.producer.buffer': '',
        'kafka.util': 'WeakMethod',
    }
    return _missing(names)


@promise('L 5')
def parameters_of_methods(at: Asking) -> Any:
    from kafka import KafkaProducer

    found = {}
    for name in ('send', 'flush', 'close', 'partitions_for', 'metrics'):
        parameters = inspect.signature(getattr(KafkaProducer, name)).parameters
        found[name] = [each for each in parameters if each != 'null_logger']
    return found


@promise('M 13, L 11')
def murmur2(at: Asking) -> Any:
    from kafka.partitioner import murmur2 as hashed

    keys = [b'', b'a', b'123456789', b'\x00\xff' * 9, bytearray(b'key'), 'ä'.encode()]
    return [hashed(bytes(key)) & 0x7FFFFFFF for key in keys]


@promise('M 13', until='3.0')
def the_default_partitioner(at: Asking) -> Any:
    from kafka.partitioner import DefaultPartitioner

    partitioner = DefaultPartitioner()
    return [
        [partitioner(key, list(range(1000)), []) for key in (b'a', b'123456789', b'')],
        partitioner(None, [0, 1, 2], [1]),
        partitioner(None, [0, 1, 2], []) in (0, 1, 2),
    ]


@promise('L 11', since='3.0.12')
def the_default_partitioner_of_3_0(at: Asking) -> Any:
    from kafka.partitioner import DefaultPartitioner, Partitioner, StickyPartitioner

    producer = at.producer()
    producer.partitions_for(at.topic)
    cluster = producer._metadata
    found: List[Any] = [isinstance(DefaultPartitioner(), Partitioner)]
    for kind in (DefaultPartitioner, StickyPartitioner):
        own = kind()
        found.append([own.partition(at.topic, k, k, b'v', b'v', cluster) for k in (b'a', b'b')])
        found.append(own.partition(at.topic, None, None, b'v', b'v', cluster) in (0, 1, 2))
        found.append(told(own.partition, 'unknown', b'a', b'a', b'v', b'v', cluster))
    return found


@promise('L 5')
def names_of_metrics(at: Asking) -> Any:
    producer = at.producer()
    producer.send(at.topic, b'v', partition=0).get(20)
    wanted = {
        'producer-metrics': 'batch-size-avg batch-size-max byte-rate compression-rate-avg'
        ' metadata-age record-error-rate record-queue-time-avg record-queue-time-max'
        ' record-retry-rate record-send-rate record-size-avg record-size-max'
        ' records-per-request-avg request-latency-avg request-latency-max requests-in-flight'
        ' connection-count connection-close-rate connection-creation-rate select-rate io-ratio'
        ' network-io-rate outgoing-byte-rate incoming-byte-rate request-rate request-size-avg'
        ' request-size-max response-rate io-wait-ratio io-time-ns-avg io-wait-time-ns-avg',
        'producer-topic-metrics.' + at.topic: 'byte-rate compression-rate record-error-rate'
        ' record-retry-rate record-send-rate',
        'producer-node-metrics.node-0': 'request-rate request-size-avg request-latency-avg'
        ' outgoing-byte-rate incoming-byte-rate response-rate request-latency-max'
        ' request-size-max',
        'kafka-metrics-count': 'count',
    }
    metrics = producer.metrics()
    found = {}
    for group, names in wanted.items():
        there = metrics.get(group, {})
        name = group.replace(at.topic, 'topic')
        found[name] = [each for each in names.split() if each in there]
    return found


@promise('L 5')
def values_of_metrics(at: Asking) -> Any:
    producer = at.producer()
    for _ in range(5):
        producer.send(at.topic, b'v' * 100, b'k', partition=0).get(20)
    found = producer.metrics()['producer-metrics']
    topic = producer.metrics()['producer-topic-metrics.' + at.topic]
    return [
        found['record-size-max'] > 100,
        found['record-send-rate'] > 0,
        found['record-error-rate'],
        found['records-per-request-avg'],
        0.9 < found['compression-rate-avg'] <= 1,
        0 < found['request-latency-avg'] < 60000,
        found['metadata-age'] >= 0,
        found['requests-in-flight'],
        topic['record-send-rate'] > 0,
        topic['byte-rate'] > 0,
        topic['record-error-rate'],
    ]


@promise('L 5')
def raw_metrics(at: Asking) -> Any:
    producer = at.producer(client_id='raw')
    producer.send(at.topic, b'v', partition=0).get(20)
    raw = producer.metrics(raw=True)
    name = next(
        each for each in raw if each.name == 'record-send-rate' and 'topic' not in each.tags
    )
    return [name.group, name.tags, raw[name].value() > 0, raw[name].metric_name == name]


@promise('L 12', until='3.0')
def metrics_after_close(at: Asking) -> Any:
    producer = at.producer()
    producer.send(at.topic, b'v', partition=0).get(20)
    producer.close()
    return 'producer-metrics' in producer.metrics()
