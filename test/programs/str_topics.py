#!/usr/bin/env python
"""SimpleClient with its str names: producers, a consumer, and what the client knows."""
from __future__ import print_function

import sys

from kafka import KeyedProducer, Murmur2Partitioner, SimpleClient, SimpleConsumer, SimpleProducer


def main(brokers, topic):
    client = SimpleClient(brokers)
    simple = SimpleProducer(client, random_start=False)
    for r in simple.send_messages(topic, b'one', b'two') + simple.send_messages(topic, b'three'):
        print(type(r.topic).__name__, r.partition, r.error, r.offset)
    keyed = KeyedProducer(client, partitioner=Murmur2Partitioner)
    for r in keyed.send_messages(topic, b'test', b'four'):
        print(type(r.topic).__name__, r.partition, r.error, r.offset)
    print(list(keyed.partitioners) == [topic])

    consumer = SimpleConsumer(client, 'unused-group', topic, auto_commit=False, iter_timeout=1)
    for m in sorted(consumer, key=lambda m: m.message.value):
        print(m.offset, m.message.key, m.message.value)
    print(type(consumer.topic).__name__, type(consumer.group).__name__, consumer.pending())
    consumer.stop()

    print(sorted(client.topic_partitions[topic].items()) == [
        (p, list(client.brokers)[0]) for p in client.get_partition_ids_for_topic(topic)])
    broker = list(client.brokers.values())[0]
    print(type(broker.host).__name__, len(client.hosts[0]), topic in client.topics)
    client.close()


if __name__ == '__main__':
    main(*sys.argv[1:])
