#!/usr/bin/env python
"""MultiProcessConsumer over a SimpleClient, results collected by iteration."""
from __future__ import print_function

import sys

from kafka import MultiProcessConsumer, SimpleClient


def main(brokers, group, topic):
    client = SimpleClient(brokers)
    consumer = MultiProcessConsumer(client, group, topic, auto_commit=True,
                                    auto_commit_every_n=None, auto_commit_every_t=None,
                                    num_procs=2, iter_timeout=None)
    try:
        first = consumer.get_messages(count=5, block=True, timeout=15)
        rest = []
        while len(first) + len(rest) < 10:
            rest.extend(consumer)
        print('%d and %d' % (len(first), len(rest)))
        print(sorted(m.message.value.decode('ascii') for m in first + rest))
        print(consumer.commit(), consumer.commit())
    finally:
        consumer.stop()
        client.close()


if __name__ == '__main__':
    main(sys.argv[1], sys.argv[2], sys.argv[3])
