#!/usr/bin/env python
"""Copy a topic to another one, partition by partition, keys and order kept."""
from __future__ import print_function

import sys

from kafka import KafkaClient, SimpleConsumer, create_message
from kafka.common import ProduceRequest


class Mirror(object):
    def __init__(self, brokers, source, target):
        self.source, self.target = source, target.encode('ascii')
        self.reader = KafkaClient(brokers, client_id=b'mirror-in')
        self.writer = KafkaClient(brokers, client_id=b'mirror-out')
        self.writer.ensure_topic_exists(target)
        self.copied = 0

    def flush(self, batch):
        requests = [
            ProduceRequest(self.target, partition,
                           [create_message(m.value, m.key) for m in messages])
            for partition, messages in sorted(batch.items())]
        for response in self.writer.send_produce_request(requests, acks=-1, timeout=5000):
            self.copied += len(batch[response.partition])

    def run(self):
        consumer = SimpleConsumer(self.reader, 'mirror', self.source, auto_commit=False,
                                  buffer_size=65536, max_buffer_size=1048576)
        consumer.provide_partition_info()
        while consumer.pending():
            batch = {}
            for partition, (_, message) in consumer.get_messages(count=50, timeout=1):
                batch.setdefault(partition, []).append(message)
            self.flush(batch)
        consumer.stop()
        self.reader.close()
        self.writer.close()


if __name__ == '__main__':
    mirror = Mirror(*sys.argv[1:4])
    mirror.run()
    print('%d copied' % mirror.copied)
