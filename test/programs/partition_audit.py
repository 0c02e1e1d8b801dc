#!/usr/bin/env python
"""Check that no partition has a hole and that keys stay where they are."""
from __future__ import print_function

import collections
import sys

from kafka import KafkaClient
from kafka.consumer import SimpleConsumer


def audit(consumer):
    offsets = collections.defaultdict(list)
    homes = collections.defaultdict(set)
    for partition, (offset, (magic, attributes, key, value)) in consumer:
        offsets[partition].append(offset)
        if key is not None:
            homes[key].add(partition)
    return offsets, homes


def main(brokers, topic):
    consumer = SimpleConsumer(KafkaClient(brokers), None, topic, auto_commit=False,
                              iter_timeout=1, fetch_size_bytes=1024)
    consumer.provide_partition_info()
    offsets, homes = audit(consumer)
    for partition in sorted(offsets):
        found = offsets[partition]
        holes = [b for a, b in zip(found, found[1:]) if b != a + 1]
        print('partition %d: %d messages, holes before %s' % (partition, len(found), holes))
    moved = sorted(key.decode('ascii') for key, where in homes.items() if len(where) > 1)
    print('%d keys, moved: %s' % (len(homes), ' '.join(moved) or 'none'))
    # single messages tell it too, when asked to
    consumer.seek(0, 0)
    first = consumer.get_message(True, 5, False)
    second = consumer.get_message(True, 5, True)
    print(type(first).__name__, type(second).__name__)
    consumer.stop()
    consumer.client.close()


if __name__ == '__main__':
    main(*sys.argv[1:])
