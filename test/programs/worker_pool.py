#!/usr/bin/env python
"""Feed workers in slices: as many processes as partitions, a slice of messages at a time."""
from __future__ import print_function

import argparse
import multiprocessing

from kafka import KafkaClient
from kafka.consumer.multiprocess import MultiProcessConsumer


class SliceReader(MultiProcessConsumer):
    """get_messages() for people who want lists of (partition, text)."""

    def get_messages(self, count=1, block=True, timeout=10):
        found = super(SliceReader, self).get_messages(count, block, timeout)
        return [(p, m.message.value.decode('utf-8')) for p, m in found]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('brokers')
    parser.add_argument('group')
    parser.add_argument('topic')
    parser.add_argument('--spawn', action='store_true')
    args = parser.parse_args()
    if args.spawn:
        multiprocessing.set_start_method('spawn')

    client = KafkaClient(args.brokers)
    consumer = SliceReader(client, args.group, args.topic, auto_commit=False,
                           partitions_per_proc=1, buffer_size=16384)
    consumer.provide_partition_info()
    print('%d processes for %d partitions' % (len(consumer.procs), len(consumer.offsets)))
    slices = []
    while not slices or slices[-1]:
        slices.append(consumer.get_messages(count=4, block=True, timeout=15 if not slices else 1))
    print('full slices: %s' % all(len(s) == 4 for s in slices[:-1]))
    for line in sorted('%d %s' % pair for found in slices for pair in found):
        print(line)
    consumer.commit()
    processes = list(consumer.procs)
    consumer.stop()
    print('%d processes left' % sum(p.is_alive() for p in processes))
    client.close()


if __name__ == '__main__':
    main()
