#!/usr/bin/env python
"""Route user events as the Java producer does, so that its consumers find them where they look."""
from __future__ import print_function

import sys

from kafka import KafkaClient, KeyedProducer, Murmur2Partitioner
from kafka.partitioner.hashed import murmur2

EVENTS = [
    (b'a', b'login'),
    (b'ab', b'login'),
    (b'abc', b'login'),
    (b'test', b'login'),
    (b'foo', b'login'),
    (b'123456789', b'login'),
    (b'a', b'logout'),
    (b'foo', b'logout'),
]


def main(brokers, topic):
    client = KafkaClient(brokers)
    producer = KeyedProducer(client, partitioner=Murmur2Partitioner)
    for user, action in EVENTS:
        responses = producer.send_messages(topic, user, action)
        print('%s %s -> %d (hash %d)' % (
            user.decode('ascii'), action.decode('ascii'), responses[0].partition, murmur2(user)))
    print('partitioners for %s' % [t.decode('ascii') for t in producer.partitioners])
    client.close()


if __name__ == '__main__':
    main(*sys.argv[1:])
