#!/usr/bin/env python
"""Show or set the committed offsets of a group (SimpleClient, ...Payload)."""
from __future__ import print_function

import sys

from kafka import SimpleClient
from kafka.common import check_error
from kafka.structs import (
    OffsetCommitRequestPayload, OffsetFetchRequestPayload, OffsetRequestPayload)


class OffsetAdmin(object):
    def __init__(self, brokers):
        self.client = SimpleClient(brokers)

    def show(self, group, topic):
        partitions = self.client.get_partition_ids_for_topic(topic)
        answers = self.client.send_offset_fetch_request(
            group, [OffsetFetchRequestPayload(topic, p) for p in partitions])
        for a in answers:
            print('%d: %d (metadata %r)' % (a.partition, a.offset, a.metadata))

    def set(self, group, topic, when):
        partitions = self.client.get_partition_ids_for_topic(topic)
        ends = self.client.send_offset_request(
            [OffsetRequestPayload(topic, p, when, 1) for p in partitions])
        payloads = [OffsetCommitRequestPayload(e.topic, e.partition, e.offsets[0], None)
                    for e in ends]
        for answer in self.client.send_offset_commit_request(group, payloads):
            check_error(answer)
        print('%d partitions set' % len(payloads))


def main(brokers, command, group, topic):
    admin = OffsetAdmin(brokers)
    try:
        if command == 'show':
            admin.show(group, topic)
        elif command in ('to-start', 'to-end'):
            admin.set(group, topic, -2 if command == 'to-start' else -1)
            admin.show(group, topic)
        else:
            sys.exit('show, to-start or to-end?')
    finally:
        admin.client.close()


if __name__ == '__main__':
    main(*sys.argv[1:])
