#!/usr/bin/env python
"""A SimpleClient of one's own: one name for the service, retries at start-up, a readable repr."""
from __future__ import print_function

import logging
import sys
import time

from kafka import SimpleClient, SimpleConsumer, SimpleProducer
from kafka.errors import KafkaUnavailableError

logging.getLogger('kafka').addHandler(logging.NullHandler())


class ServiceClient(SimpleClient):
    service = 'billing'

    def __init__(self, brokers, attempts=3):
        self.sent = 0
        while True:
            attempts -= 1
            try:
                super(ServiceClient, self).__init__(brokers, self.service, 15, 0)
                break
            except KafkaUnavailableError:
                if not attempts:
                    raise
                time.sleep(1)

    def send_produce_request(self, payloads=[], *args, **kwargs):
        self.sent += sum(len(p.messages) for p in payloads)
        return super(ServiceClient, self).send_produce_request(payloads, *args, **kwargs)


def main(brokers, topic):
    client = ServiceClient(['127.0.0.1:1', brokers])
    producer = SimpleProducer(client, req_acks=SimpleProducer.ACK_AFTER_CLUSTER_COMMIT)
    for i in range(5):
        producer.send_messages(topic, ('invoice %d' % i).encode('ascii'))
    print('%d sent by %s' % (client.sent, client.service))
    consumer = SimpleConsumer(client, None, topic, auto_commit=False)
    print('%d to read' % consumer.pending())
    found = consumer.get_messages(count=5, block=True, timeout=10)
    print(sorted(m.message.value.decode('ascii') for m in found))
    other = client.copy()
    print(type(other).__name__, other.client_id == client.client_id)
    other.close()
    client.close()


if __name__ == '__main__':
    main(*sys.argv[1:])
