#!/usr/bin/env python
"""Start-up of a service: the broker may come up later than we do, or under another address."""
from __future__ import print_function

import sys
import time

from kafka import SimpleProducer
from kafka.client import KafkaClient, KafkaUnavailableError


def connect(candidates, attempts=10, pause=0.2):
    for attempt in range(attempts):
        brokers = candidates[min(attempt, len(candidates) - 1)]
        try:
            client = KafkaClient(brokers)
            print('attempt %d: connected' % (attempt + 1))
            return client
        except KafkaUnavailableError as error:
            print('attempt %d: %s' % (attempt + 1, type(error).__name__))
            time.sleep(pause)
    sys.exit('no broker, giving up')


if __name__ == '__main__':
    topic = sys.argv[1]
    client = connect(sys.argv[2:])
    print('%d hosts known' % len(client.hosts))
    producer = SimpleProducer(client)
    for response in producer.send_messages(topic, b'service is up'):
        print('error %d' % response.error)
    client.close()
