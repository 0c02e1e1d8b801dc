#!/usr/bin/env python
"""Watch a topic: nothing in the call tells 2015's consumer from its namesake of 2016."""
from __future__ import print_function

import sys

from kafka import KafkaConsumer
from kafka.common import ConsumerTimeout

WAIT_MS = 800


def main(brokers, group, topic):
    consumer = KafkaConsumer(topic,
                             group_id=group,
                             bootstrap_servers=[brokers],
                             auto_offset_reset='smallest',
                             consumer_timeout_ms=WAIT_MS)
    alerts = 0
    while True:
        try:
            message = consumer.next()
        except ConsumerTimeout:
            break
        print('%s:%d:%d: key=%s value=%s' % (message.topic.decode('ascii'), message.partition,
                                             message.offset, message.key, message.value))
        alerts += 1
        consumer.task_done(message)
    print('%d alerts, committed: %s' % (alerts, consumer.commit()))
    consumer.close()


if __name__ == '__main__':
    main(*sys.argv[1:])
