#!/usr/bin/env python
"""Type "key value" and the value goes to the partition of its key. An empty line ends."""
from __future__ import print_function

import sys

from kafka import HashedPartitioner, KafkaClient, KeyedProducer


def prompt():
    sys.stdout.write('> ')
    sys.stdout.flush()
    return sys.stdin.readline().strip()


def main(brokers, topic):
    kafka = KafkaClient(brokers)
    producer = KeyedProducer(kafka, partitioner=HashedPartitioner)
    sent = 0
    line = prompt()
    while line:
        try:
            key, value = line.split(None, 1)
        except ValueError:
            print('key and value, please')
        else:
            resp, = producer.send_messages(topic, key.encode('utf-8'), value.encode('utf-8'))
            assert resp.error == 0
            sent += 1
        line = prompt()
    print('\n%d sent' % sent)
    producer.stop()
    kafka.close()


if __name__ == '__main__':
    if len(sys.argv) != 3:
        sys.exit('usage: keyed_prompt.py BROKERS TOPIC')
    main(sys.argv[1], sys.argv[2])
