#!/usr/bin/env python
"""What a consumer of 2015 knows about offsets, before and after it reads."""
from __future__ import print_function

import sys

from kafka import KafkaConsumer
from kafka.consumer.kafka import OffsetsStruct

EARLIEST, LATEST = -2, -1


def table(consumer):
    groups = consumer.offsets()
    for (topic, partition) in sorted(groups['fetch']):
        print('  %d: %s' % (partition, ', '.join(
            '%s %s' % (name, groups[name].get((topic, partition)))
            for name in OffsetsStruct._fields)))


def main(brokers, group, topic):
    consumer = KafkaConsumer(topic, group_id=group, metadata_broker_list=[brokers],
                             auto_offset_reset='smallest', fetch_min_bytes=1)
    for partition in (0, 1):
        print('%d: from %s to %s' % (
            partition,
            list(consumer.get_partition_offsets(topic, partition, EARLIEST, 1)),
            list(consumer.get_partition_offsets(topic, partition, LATEST, 1))))
    print('before')
    table(consumer)
    seen = []
    while len(seen) < 5:
        for message in consumer.fetch_messages():
            seen.append(message)
            if message.partition == 1:
                consumer.task_done(message)
    print('after')
    table(consumer)
    print('committed: %s, again: %s' % (consumer.commit(), consumer.commit()))
    table(consumer)
    mine = consumer.offsets('highwater')
    mine.clear()
    print('a copy: %s' % bool(consumer.offsets('highwater')))
    consumer.close()


if __name__ == '__main__':
    main(*sys.argv[1:])
