#!/usr/bin/env python
"""Which broker keeps a group's offsets, and what has it stored there (the new storage of 0.8.2)?"""
from __future__ import print_function

import sys
import time

from kafka import KafkaClient
from kafka.common import ConsumerCoordinatorNotAvailableCode, OffsetFetchRequest


def coordinator_of(client, group, attempts=50):
    for _ in range(attempts):
        answer = client.send_consumer_metadata_request(group)
        if answer.error == 0:
            return answer
        if answer.error != ConsumerCoordinatorNotAvailableCode.errno:
            break
        time.sleep(0.2)
    sys.exit('no coordinator: error %d' % answer.error)


def main(brokers, topic, group):
    client = KafkaClient(brokers)
    topic, group = topic.encode('ascii'), group.encode('ascii')
    coordinator = coordinator_of(client, group)
    known = client.brokers[coordinator.nodeId]
    print('coordinator is a known broker: %s' % (
        (known.host, known.port) == (coordinator.host, coordinator.port)))
    for answer in client.send_offset_fetch_request_kafka(
            group, [OffsetFetchRequest(topic, p) for p in sorted(client.topic_partitions[topic])]):
        print('%d: %d' % (answer.partition, answer.offset))
    client.close()


if __name__ == '__main__':
    main(*sys.argv[1:4])
