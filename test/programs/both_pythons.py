#!/usr/bin/env python
"""Library code that wants to run on 2.7 and 3.4: send as it is, encode when that is refused."""
from __future__ import print_function

import sys

from kafka import KafkaClient, KeyedProducer, SimpleProducer


def send(producer, topic, *args):
    try:
        return producer.send_messages(topic, *args), 'as it is'
    except TypeError:
        return producer.send_messages(
            topic, *[a if isinstance(a, bytes) else a.encode('utf-8') for a in args]), 'encoded'


def main(brokers, topic):
    client = KafkaClient(brokers)
    simple, keyed = SimpleProducer(client, random_start=False), KeyedProducer(client)
    for producer, args in [
        (simple, (b'bytes',)),
        (simple, ('text',)),
        (simple, (b'both', 'both')),
        (keyed, (b'key', 'text')),
        (keyed, ('key', b'bytes')),
    ]:
        responses, how = send(producer, topic, *args)
        print(type(producer).__name__, how, responses[0].error)
    for bad in (None, 5, [b'list'], {'a': 1}):
        try:
            simple.send_messages(topic, b'good', bad)
        except TypeError:
            print('refused: %s' % type(bad).__name__)
    client.close()


if __name__ == '__main__':
    main(*sys.argv[1:])
