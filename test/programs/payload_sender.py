#!/usr/bin/env python
"""Low-level producing in the words of 1.x, with the retries its documents advise."""
from __future__ import print_function

import sys
import time

from kafka import SimpleClient
from kafka.errors import LeaderNotAvailableError, NotLeaderForPartitionError
from kafka.protocol import create_gzip_message, create_message
from kafka.structs import ProduceRequestPayload


def send(client, payloads, retries=5):
    while retries:
        retries -= 1
        try:
            return client.send_produce_request(payloads=payloads, fail_on_error=True)
        except (LeaderNotAvailableError, NotLeaderForPartitionError):
            client.load_metadata_for_topics()
            time.sleep(1)
    return []


def main(brokers, topic):
    client = SimpleClient(brokers, client_id='payloads', timeout=20)
    payloads = [
        ProduceRequestPayload(topic=topic, partition=1, messages=[create_message(b'plain')]),
        ProduceRequestPayload(topic=topic, partition=0, messages=[
            create_gzip_message([(b'packed one', b'k1'), (b'packed two', b'k2')])]),
    ]
    for resp in send(client, payloads):
        print(sorted(resp._asdict().items()) == sorted([
            ('topic', topic), ('partition', resp.partition), ('error', 0), ('offset', 0)]))
    for resp in send(client, [payloads[0]]):
        print(resp.topic == topic, resp.partition, resp.error, resp.offset)
    client.close()


if __name__ == '__main__':
    main(*sys.argv[1:])
