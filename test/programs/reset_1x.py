#!/usr/bin/env python
"""Rewind a group by the hour: SimpleConsumer on SimpleClient, seeks to single partitions."""
from __future__ import print_function

import sys

from kafka.client import SimpleClient
from kafka.consumer.simple import SimpleConsumer


def main(brokers, group, topic, back):
    client = SimpleClient(brokers)
    consumer = SimpleConsumer(client, group, topic, auto_commit=False, iter_timeout=1)
    print('was at %s' % sorted(consumer.offsets.items()))
    consumer.seek(-int(back), 1, 0)
    consumer.seek(-1, 2, partition=1)
    print('now at %s' % sorted(consumer.offsets.items()))
    for message in sorted(consumer, key=lambda m: m.message.value):
        print(message.message.value.decode('ascii'))
    consumer.seek(1, None, 0)
    print('committed: %s, %s' % (consumer.commit([0]), sorted(consumer.offsets.items())))
    consumer.stop()
    client.close()


if __name__ == '__main__':
    main(*sys.argv[1:])
