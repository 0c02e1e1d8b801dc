"""An embedded cluster with topics to read, and options that read them."""

from __future__ import annotations

from kafka.producer import KafkaProducer
from kafka.spark.options import Limit, SourceOptions, Topics

EARLIEST, LATEST = Limit('earliest'), Limit('latest')


def options_of(cluster, *names, start=EARLIEST, end=LATEST, config=None, **more):
    """Return the options of a batch reader of some topics."""
    topics = more.pop('topics', None) or Topics('subscribe', names)
    given = {'bootstrap_servers': cluster.bootstrap, **(config or {})}
    return SourceOptions(topics, start, end, given, **more)


def fill(cluster, topic, partition, values, **fields):
    """Write values; timestamp_ms counts up from a first one."""
    first = fields.pop('timestamp_ms', None)
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap)
    try:
        for number, value in enumerate(values):
            stamp = None if first is None else first + number
            producer.send(topic, value, partition=partition, timestamp_ms=stamp, **fields)
        producer.flush(10)
    finally:
        producer.close(10)
