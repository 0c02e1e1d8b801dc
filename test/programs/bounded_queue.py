#!/usr/bin/env python
"""A producer that may drop but must never block, and that keeps count of both."""
from __future__ import print_function

import sys

from kafka import KafkaClient, SimpleProducer
from kafka.common import AsyncProducerQueueFull


class Stats(object):
    def __init__(self):
        self.accepted = []
        self.dropped = []


class DroppingProducer(object):
    def __init__(self, client, topic, size):
        self.topic = topic
        self.stats = Stats()
        options = {'async': True}
        self.producer = SimpleProducer(
            client, batch_send_every_n=1000, batch_send_every_t=2,
            async_queue_maxsize=size, async_queue_put_timeout=0, **options)

    def send(self, *messages):
        try:
            self.producer.send_messages(self.topic, *messages)
            dropped = []
        except AsyncProducerQueueFull as full:
            dropped = list(full.failed_msgs)
        self.stats.dropped += dropped
        self.stats.accepted += messages[:len(messages) - len(dropped)]

    def close(self):
        self.producer.stop()


def main(brokers, topic):
    client = KafkaClient(brokers)
    producer = DroppingProducer(client, topic, 10)
    for burst in range(40):
        producer.send(*[('%d.%d' % (burst, i)).encode('ascii') for i in range(50)])
    producer.close()
    client.close()
    stats = producer.stats
    print('%d offered, %s dropped, %s accepted' % (
        len(stats.accepted) + len(stats.dropped),
        'some' if stats.dropped else 'none', 'some' if stats.accepted else 'none'))
    for message in stats.accepted:
        print('accepted %s' % message.decode('ascii'))


if __name__ == '__main__':
    main(*sys.argv[1:])
