#!/usr/bin/env python
"""Nightly job: read what came since last night, commit as it goes, end when the topic is dry."""
from __future__ import print_function

import argparse
import sys

from kafka import KafkaClient, SimpleConsumer


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--brokers', nargs='+', default=['localhost:9092'])
    parser.add_argument('--group', default='nightly')
    parser.add_argument('--every', type=int, default=10)
    parser.add_argument('topic')
    return parser.parse_args(argv)


def run(consumer):
    total, biggest = 0, b''
    for message in consumer:
        total += 1
        biggest = max(biggest, message.message.value)
    return total, biggest


def main(argv):
    args = parse(argv)
    client = KafkaClient(args.brokers, client_id=b'nightly')
    consumer = SimpleConsumer(client, args.group.encode('ascii'), args.topic.encode('ascii'),
                              auto_commit=True, auto_commit_every_n=args.every,
                              auto_commit_every_t=60000, iter_timeout=1)
    total, biggest = run(consumer)
    print('%d messages, last in order: %s' % (total, biggest.decode('ascii') or 'none'))
    print('uncommitted before stop: %d' % consumer.count_since_commit)
    consumer.stop()
    print('uncommitted after stop: %d' % consumer.count_since_commit)
    client.close()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
