#!/usr/bin/env python
"""Keep the reading position in a file of our own and put it into the consumer by hand."""
from __future__ import print_function

import json
import os
import sys

from kafka import KafkaClient, SimpleConsumer


def load(path):
    if not os.path.exists(path):
        return {}
    with open(path) as f:
        return dict((int(p), o) for p, o in json.load(f).items())


def save(path, offsets):
    with open(path + '.new', 'w') as f:
        json.dump(offsets, f)
    os.rename(path + '.new', path)


def main(brokers, topic, path):
    client = KafkaClient(brokers)
    consumer = SimpleConsumer(client, None, topic, auto_commit=False)
    checkpoint = load(path)
    consumer.offsets.update(checkpoint)
    consumer.fetch_offsets = dict(consumer.offsets)
    print('starting at %s' % sorted(consumer.fetch_offsets.items()))
    seen = []
    while True:
        message = consumer.get_message(block=True, timeout=1)
        if message is None:
            break
        seen.append(message.message.value.decode('utf-8'))
    print('saw %s' % ' '.join(sorted(seen)))
    save(path, consumer.offsets)
    client.close()


if __name__ == '__main__':
    main(*sys.argv[1:])
