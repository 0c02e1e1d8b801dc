#!/usr/bin/env python
"""`async` as a parameter, an attribute, a key and a local name; ends with an exit code."""
from __future__ import print_function

import optparse
import sys

from kafka import KafkaClient, KeyedProducer, RoundRobinPartitioner
from kafka.producer.base import Producer


class Publisher(object):
    def __init__(self, client, topic, async=False, retries=3):
        self.topic = topic
        self.async = async
        self.producer = KeyedProducer(
            client, partitioner=RoundRobinPartitioner, async=async, batch_send=True,
            batch_send_every_n=5, batch_send_every_t=1, async_retry_limit=retries)

    def publish(self, key, value):
        answers = self.producer.send_messages(self.topic, key, value)
        return 'queued' if self.async and self.producer.async else answers[0].error


def main():
    parser = optparse.OptionParser()
    parser.add_option('--async', dest='async', action='store_true', default=False)
    options, (brokers, topic) = parser.parse_args()
    async = options.async
    client = KafkaClient(brokers)
    publisher = Publisher(client, topic, async=async)
    print([publisher.publish(b'key', b'async message %d' % i) for i in range(3)])
    print(isinstance(publisher.producer, Producer), {'async': async}, "async=True in a text")
    publisher.producer.stop()
    client.close()
    return 3 if async else 0


if __name__ == '__main__':
    sys.exit(main())
