#!/usr/bin/env python
"""Endless consumer that looks after itself whenever the topic is quiet (the KafkaConsumer of 2015).
"""
from __future__ import print_function

import sys

from kafka import KafkaConsumer
from kafka.common import ConsumerTimeout


class MetricsConsumer(object):
    def __init__(self, brokers, group, topic):
        self.consumer = KafkaConsumer(
            topic, group_id=group, metadata_broker_list=brokers.split(','),
            auto_offset_reset='smallest', consumer_timeout_ms=700)
        self.sums = {}
        self.quiet = 0

    def handle(self, message):
        name, number = message.value.decode('ascii').split('=')
        self.sums[name] = self.sums.get(name, 0) + int(number)
        return self.consumer.task_done(message)

    def run(self, patience):
        while self.quiet < patience:
            try:
                for message in self.consumer:
                    self.handle(message)
            except ConsumerTimeout:
                self.quiet += 1
                print('quiet: committed something: %s' % self.consumer.commit())


if __name__ == '__main__':
    metrics = MetricsConsumer(*sys.argv[1:4])
    metrics.run(2)
    for name in sorted(metrics.sums):
        print('%s: %d' % (name, metrics.sums[name]))
    for (topic, partition), offset in sorted(metrics.consumer.offsets('commit').items()):
        print('partition %d committed at %d' % (partition, offset))
    metrics.consumer.close()
