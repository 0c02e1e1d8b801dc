#!/usr/bin/env python
"""Orders of one region stay together: a partitioner of our own."""
from __future__ import print_function

import os
import sys

from kafka import KafkaClient, KeyedProducer
from kafka.partitioner.base import Partitioner


class RegionPartitioner(Partitioner):
    """Europe has the first half of the partitions, everyone else the second."""

    EUROPE = (b'de', b'fr', b'nl', b'se')

    def __init__(self, partitions):
        super(RegionPartitioner, self).__init__(partitions)
        self.seen = 0

    def partition(self, key, partitions=None):
        partitions = partitions or self.partitions
        self.seen += 1
        half = len(partitions) // 2
        mine = partitions[:half] if key in self.EUROPE else partitions[half:]
        return mine[sum(bytearray(key)) % len(mine)]


def main():
    client = KafkaClient(os.environ['KAFKA_BROKERS'])
    topic = os.environ['ORDERS_TOPIC']
    producer = KeyedProducer(client, partitioner=RegionPartitioner)
    for number, country in enumerate([b'de', b'us', b'fr', b'jp', b'de', b'br', b'se']):
        order = ('order %d' % number).encode('ascii')
        producer.send_messages(topic, country, order)
    partitioner = producer.partitioners[topic.encode('ascii')]
    print('%s placed %d orders on %r' % (
        type(partitioner).__name__, partitioner.seen, list(partitioner.partitions)))
    client.close()


if __name__ == '__main__':
    sys.exit(main())
