#!/usr/bin/env python
"""Let time decide when to commit: every 300 ms by the consumer's own timer."""
from __future__ import print_function

import sys
import time

from kafka import KafkaClient, SimpleConsumer


def main(brokers, group, topic):
    client = KafkaClient(brokers)
    consumer = SimpleConsumer(client, group, topic, auto_commit_every_n=None,
                              auto_commit_every_t=300)
    messages = consumer.get_messages(count=7, block=True, timeout=10)
    print('%d read' % len(messages))
    deadline = time.time() + 20
    while consumer.count_since_commit and time.time() < deadline:
        time.sleep(0.05)
    print('%d uncommitted' % consumer.count_since_commit)

    # another one of the group goes on where the first one is
    second = SimpleConsumer(client, group, topic, auto_commit=False)
    print('second starts at the same place: %s' % (second.offsets == consumer.offsets))
    second.fetch_last_known_offsets()
    print('left for it: %d' % second.pending())
    second.stop()
    consumer.stop()
    client.close()


if __name__ == '__main__':
    main(*sys.argv[1:])
