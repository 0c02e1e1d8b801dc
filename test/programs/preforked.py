#!/usr/bin/env python
"""Workers of a preforking server: the parent has a connection already, each child makes its own."""
from __future__ import print_function

import os
import sys

from kafka import KafkaClient, SimpleProducer


def work(client, topic, number):
    client = client.copy()
    client.reinit()
    producer = SimpleProducer(client)
    for i in range(5):
        response, = producer.send_messages(topic, b'worker %d item %d' % (number, i))
        if response.error:
            return 1
    client.close()
    return 0


def main(brokers, topic, workers=3):
    client = KafkaClient(brokers)
    producer = SimpleProducer(client)
    producer.send_messages(topic, b'parent before')
    children = []
    for number in range(workers):
        pid = os.fork()
        if pid == 0:
            code = 99
            try:
                code = work(client, topic, number)
            finally:
                os._exit(code)
        children.append(pid)
    producer.send_messages(topic, b'parent beside')
    codes = [os.waitpid(pid, 0)[1] for pid in children]
    producer.send_messages(topic, b'parent after')
    print('children ended with %s' % codes)
    client.close()


if __name__ == '__main__':
    main(sys.argv[1], sys.argv[2])
