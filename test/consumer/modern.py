"""Short ways to try a modern consumer on an embedded cluster."""

from __future__ import annotations

import time

from kafka import KafkaConsumer, KafkaProducer
from kafka.structs import TopicPartition

SECONDS = 30
FIRST, SECOND = TopicPartition('t', 0), TopicPartition('t', 1)


def write(cluster, count, topic='t', partition=0, start=0, **options):
    """Store values b'0', b'1' ... in a partition."""
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, **options) as producer:
        values = [b'%d' % number for number in range(start, start + count)]
        for value in values:
            producer.send(topic, value, partition=partition)
        producer.flush(SECONDS)


def consumer_of(cluster, *topics, **options):
    """Return a consumer that begins with the first record."""
    options = {'auto_offset_reset': 'earliest', 'fetch_max_wait_ms': 50, **options}
    return KafkaConsumer(*topics, bootstrap_servers=cluster.bootstrap, **options)


def poll_until(consumer, count, seconds=SECONDS, **options):
    """Poll until so many records came; return them, in their order."""
    deadline, found = time.monotonic() + seconds, []
    while len(found) < count:
        assert time.monotonic() < deadline, 'only %d of %d records came' % (len(found), count)
        for records in consumer.poll(timeout_ms=200, **options).values():
            found += records
    return found


def poll_while(consumer, is_wanted, seconds=SECONDS):
    """Poll for as long as something holds; return what came."""
    deadline, found = time.monotonic() + seconds, []
    while is_wanted():
        assert time.monotonic() < deadline, 'it does not come'
        for records in consumer.poll(timeout_ms=50).values():
            found += records
    return found


def values(records):
    """Return the values of records as numbers."""
    return [int(record.value) for record in records]
