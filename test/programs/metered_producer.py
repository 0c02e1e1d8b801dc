#!/usr/bin/env python
"""Producers of our own: three subclasses that pass their settings on by position."""
from __future__ import print_function

import sys
import time

from kafka import KafkaClient, KeyedProducer, SimpleProducer
from kafka.producer.base import Producer


class MeteredProducer(SimpleProducer):
    def __init__(self, client, req_acks=1, ack_timeout=1000):
        super(MeteredProducer, self).__init__(client, req_acks, ack_timeout)
        self.calls, self.seconds = 0, 0.0

    def send_messages(self, topic, *msg):
        started = time.time()
        try:
            return super(MeteredProducer, self).send_messages(topic, *msg)
        finally:
            self.calls += 1
            self.seconds += time.time() - started


class PrefixedProducer(KeyedProducer):
    prefix = b'user:'

    def send_messages(self, topic, key, *msg):
        return super(PrefixedProducer, self).send_messages(topic, self.prefix + key, *msg)


class FirstPartitionProducer(Producer):
    def __init__(self, client):
        # acks, timeout, codec, level, fail_on_error
        Producer.__init__(self, client, self.ACK_AFTER_CLUSTER_COMMIT, 2000, None, None, True)

    def put(self, topic, message):
        response, = Producer.send_messages(self, topic, 0, message)
        return response.offset


def main(brokers, topic):
    client = KafkaClient(brokers)
    metered = MeteredProducer(client, MeteredProducer.ACK_AFTER_LOCAL_WRITE, 3000)
    for i in range(4):
        metered.send_messages(topic, b'metered %d' % i)
    print('%d calls, took time: %s, acks %d, timeout %d' % (
        metered.calls, metered.seconds > 0, metered.req_acks, metered.ack_timeout))
    PrefixedProducer(client).send_messages(topic, b'7', b'prefixed')
    first = FirstPartitionProducer(client)
    offsets = [first.put(topic, b'first %d' % i) for i in range(3)]
    print('consecutive: %s, acks %d' % (
        [offset - offsets[0] for offset in offsets], first.req_acks))
    client.close()


if __name__ == '__main__':
    main(*sys.argv[1:])
