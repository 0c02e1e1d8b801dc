#!/usr/bin/env python
"""Graph how long the work queue is, with and without one worker at it."""
from __future__ import print_function

import os

from kafka import *

BROKERS = os.environ.get('KAFKA_BROKERS', 'localhost:9092')
TOPIC = os.environ.get('QUEUE', 'jobs')
GROUP = os.environ.get('WORKERS', 'workers')


class Monitor(object):
    def __init__(self):
        self.kafka = KafkaClient(BROKERS)
        self.consumer = SimpleConsumer(self.kafka, GROUP, TOPIC, auto_commit=False)

    def sample(self, what):
        each = [self.consumer.pending(partitions=[p]) for p in sorted(self.consumer.offsets)]
        print('%-8s %3d = %s' % (
            what, abs(self.consumer.pending()), ' + '.join('%d' % n for n in each)))


if __name__ == '__main__':
    monitor = Monitor()
    monitor.sample('start')
    done = monitor.consumer.get_messages(count=5, block=True, timeout=5)
    monitor.sample('5 done')
    producer = SimpleProducer(monitor.kafka, random_start=False)
    producer.send_messages(TOPIC, b'new', b'newer')
    monitor.sample('2 new')
    monitor.consumer.seek(0, 2)
    monitor.sample('skipped')
    monitor.consumer.stop()
    monitor.kafka.close()
