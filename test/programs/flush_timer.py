#!/usr/bin/env python
"""Counters that a timer sends every so often, as StatsD does."""
from __future__ import print_function

import sys
import threading
import time

from kafka import KafkaClient, SimpleProducer
from kafka.util import ReentrantTimer


class Counters(object):
    def __init__(self, client, topic, every_ms):
        self.lock = threading.Lock()
        self.counts = {}
        self.flushes = 0
        self.topic = topic
        self.client = client.copy()
        self.producer = SimpleProducer(self.client)
        self.timer = ReentrantTimer(every_ms, self.flush, 'timer')
        self.timer.start()

    def incr(self, name):
        with self.lock:
            self.counts[name] = self.counts.get(name, 0) + 1

    def flush(self, why):
        with self.lock:
            counts, self.counts = self.counts, {}
        for name, count in sorted(counts.items()):
            line = '%s:%d|c' % (name, count)
            self.producer.send_messages(self.topic, line.encode('ascii'))
            self.flushes += 1

    def close(self):
        self.timer.stop()
        self.flush('end')
        self.client.close()


if __name__ == '__main__':
    client = KafkaClient(sys.argv[1])
    counters = Counters(client, sys.argv[2], 100)
    counters.incr('early')
    while not counters.flushes:
        time.sleep(0.01)
    counters.incr('late')
    counters.incr('late')
    counters.close()
    print('%d flushes' % counters.flushes)
    client.close()
