#!/usr/bin/env python
"""A chat room: what is typed is sent as it is, which was fine while str meant bytes."""
from __future__ import print_function

import sys

from kafka import KafkaClient, KeyedProducer, RoundRobinPartitioner, SimpleConsumer, SimpleProducer


def main(brokers, room, nick):
    kafka = KafkaClient(brokers)
    producer = SimpleProducer(kafka, async=False, req_acks=SimpleProducer.ACK_AFTER_LOCAL_WRITE,
                              random_start=False)
    producer.send_messages(room, '* %s joins' % nick, 'says hello')
    log = KeyedProducer(kafka, partitioner=RoundRobinPartitioner)
    for line in sys.stdin:
        log.send_messages(room, nick, line.strip())
    consumer = SimpleConsumer(kafka, None, room, auto_commit=False, iter_timeout=1)
    for m in consumer:
        print('%s: %s' % (m.message.key, m.message.value))
    kafka.close()


if __name__ == '__main__':
    main(*sys.argv[1:4])
