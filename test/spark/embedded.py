"""An embedded cluster with topics to read, and options that read them."""

from __future__ import annotations

from kafka.producer import KafkaProducer
from kafka.protocol.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
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


def without_topics(cluster):
    """Return a handler that answers as a broker that has just started: it knows no topic."""
    host, port = cluster.bootstrap.rsplit(':', 1)
    broker = MetadataResponseBroker(node_id=0, host=host, port=int(port))

    def answer(call):
        asked = call.request.topics or ()
        topics = [
            MetadataResponseTopic(error_code=3, name=each.name, partitions=[]) for each in asked
        ]
        return MetadataResponse(brokers=[broker], controller_id=0, topics=topics)

    return answer
