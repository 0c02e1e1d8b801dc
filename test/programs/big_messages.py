#!/usr/bin/env python
"""Read messages of any size: the buffer grows up to its limit, then the program lifts the limit."""
from __future__ import print_function

import sys

from kafka import KafkaClient, SimpleConsumer
from kafka.common import ConsumerFetchSizeTooSmall


def main(brokers, topic):
    client = KafkaClient(brokers)
    consumer = SimpleConsumer(client, None, topic, auto_commit=False, partitions=[0],
                              buffer_size=1024, max_buffer_size=8192)
    sizes = []
    while True:
        try:
            found = consumer.get_messages(count=10, block=True, timeout=1)
        except ConsumerFetchSizeTooSmall:
            print('more than %d bytes, no limit from here on' % consumer.max_buffer_size)
            consumer.max_buffer_size = None
            continue
        if not found:
            break
        sizes.extend(len(m.message.value) for m in found)
    print(sizes)
    print('next %d, buffer starts at %d' % (consumer.offsets[0], consumer.buffer_size))
    try:
        SimpleConsumer(client, None, topic, buffer_size=2048, max_buffer_size=1024)
    except ValueError:
        print('a buffer above its limit is refused')
    client.close()


if __name__ == '__main__':
    main(sys.argv[1], sys.argv[2])
