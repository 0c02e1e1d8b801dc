#!/usr/bin/env python
"""A group whose stored place lies beyond the log (the topic was made anew): start over."""
from __future__ import print_function

import sys

from kafka import KafkaClient, SimpleConsumer
from kafka.common import OffsetOutOfRangeError


def read(client, group, topic, reset):
    consumer = SimpleConsumer(client, group, topic, auto_commit=False, iter_timeout=1,
                              auto_offset_reset=reset)
    stored = dict(consumer.offsets)
    try:
        values = sorted(m.message.value.decode('ascii') for m in consumer)
        print('%s from %s: %s' % (reset, stored, ' '.join(values) or 'nothing'))
    except OffsetOutOfRangeError as error:
        print('%s from %s: %s' % (reset, stored, type(error).__name__))
    return consumer


def main(brokers, group, topic):
    client = KafkaClient(brokers)
    read(client, group, topic, 'fail')
    read(client, group, topic, 'largest')
    consumer = read(client, group, topic, 'smallest')
    consumer.commit()
    print('by hand: %r' % consumer.reset_partition_offset(0))
    consumer.auto_offset_reset = 'largest'
    print('by hand: %r' % consumer.reset_partition_offset(0))
    client.close()


if __name__ == '__main__':
    main(*sys.argv[1:4])
