#!/usr/bin/env python
"""A consumer with habits of its own: a subclass that passes its settings on by position."""
from __future__ import print_function

import sys

from kafka import KafkaClient, SimpleConsumer


class LineConsumer(SimpleConsumer):
    """Hands out decoded lines and skips comments."""

    def __init__(self, client, group, topic, every_n):
        # client, group, topic, auto_commit, partitions, every_n, every_t, fetch, buffer, max
        super(LineConsumer, self).__init__(
            client, group, topic, False, None, every_n, None, 2048, 8192, 65536)
        self.skipped = 0

    def get_message(self, block=True, timeout=0.1, get_partition_info=None):
        message = super(LineConsumer, self).get_message(block, timeout, get_partition_info)
        if message is not None and message.message.value.startswith(b'#'):
            self.skipped += 1
            return self.get_message(block, timeout, get_partition_info)
        return message

    def lines(self, wait):
        while True:
            message = self.get_message(True, wait)
            if message is None:
                return
            yield message.message.value.decode('utf-8')


if __name__ == '__main__':
    client = KafkaClient(sys.argv[1])
    consumer = LineConsumer(client, sys.argv[2], sys.argv[3], 3)
    consumer.auto_commit = True  # switched on from outside, after the fact
    for line in sorted(consumer.lines(1)):
        print(line)
    print('%d skipped, %d since the last commit' % (
        consumer.skipped, consumer.count_since_commit))
    consumer.stop()
    client.close()
