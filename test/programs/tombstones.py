#!/usr/bin/env python
"""Keep a table in a compacted topic: keys with values, and None for what was deleted."""
from __future__ import print_function

import sys
import warnings

from kafka import KafkaClient, KeyedProducer, SimpleConsumer
from kafka.partitioner import RoundRobinPartitioner


class Table(object):
    def __init__(self, client, topic):
        self.client, self.topic = client, topic
        self.producer = KeyedProducer(client, partitioner=RoundRobinPartitioner)

    def __setitem__(self, key, value):
        # an old habit; send_messages() is the name by now
        self.producer.send(self.topic, key, value)

    def __delitem__(self, key):
        self.producer.send_messages(self.topic, key, None)

    def load(self):
        rows = {}
        consumer = SimpleConsumer(self.client, None, self.topic, auto_commit=False,
                                  iter_timeout=1)
        for offset, message in consumer:
            if message.value is None:
                rows.setdefault(message.key, [])
            else:
                rows.setdefault(message.key, []).append(message.value)
        return rows


if __name__ == '__main__':
    client = KafkaClient(sys.argv[1])
    table = Table(client, sys.argv[2])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        table[b'one'] = b'1'
        table[b'two'] = b'2'
    print('warned: %s' % sorted(set(w.category.__name__ for w in caught)))
    del table[b'one']
    del table[b'three']
    for key, values in sorted(table.load().items()):
        print(key.decode('ascii'), [value.decode('ascii') for value in values])
    client.close()
