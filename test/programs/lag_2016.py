#!/usr/bin/env python
"""The lag recipe of 2016: SimpleClient and OffsetRequestPayload."""
from __future__ import print_function

import sys

from kafka import SimpleClient
from kafka.common import OffsetRequestPayload


def get_latest(client, topic):
    partitions = client.topic_partitions[topic]
    requests = [OffsetRequestPayload(topic, p, -1, 1) for p in partitions.keys()]
    return dict((r.partition, r.offsets[0]) for r in client.send_offset_request(requests))


def main(brokers, topic):
    client = SimpleClient(brokers)
    total = 0
    for partition, offset in sorted(get_latest(client, topic).items()):
        print('partition = {0}, offset = {1}'.format(partition, offset))
        total += offset
    print('{0} messages ever'.format(total))
    client.close()


if __name__ == '__main__':
    main(sys.argv[1], sys.argv[2])
