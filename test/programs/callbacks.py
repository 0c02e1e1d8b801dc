#!/usr/bin/env python
"""Use the callback argument of the low-level calls to build rows for a report."""
from __future__ import print_function

import sys

from kafka import KafkaClient, create_message
from kafka.common import FetchRequest, OffsetRequest, ProduceRequest


class Report(object):
    def __init__(self):
        self.rows = []

    def produced(self, response):
        self.rows.append('wrote %d at %d' % (response.partition, response.offset))
        return response.offset

    def fetched(self, response):
        values = [m.message.value for m in response.messages]
        self.rows.append('read %d: %s' % (response.partition, values))
        return len(values)


def main(brokers, topic):
    client = KafkaClient(brokers, b'report', 20)
    topic = topic.encode('ascii')
    report = Report()
    batch = [ProduceRequest(topic, p, [create_message(b'p%d m%d' % (p, i)) for i in range(2)])
             for p in (1, 0)]
    print(client.send_produce_request(batch, 1, 1000, True, report.produced))
    # nobody waits for this one
    print(client.send_produce_request(
        [ProduceRequest(topic, 0, [create_message(b'unheard')])], acks=0))
    ends = []
    while ends != [3, 2]:
        ends = client.send_offset_request(
            [OffsetRequest(topic, p, -1, 1) for p in (0, 1)], callback=lambda r: r.offsets[0])
    print(client.send_fetch_request(
        [FetchRequest(topic, p, 0, 4096) for p in (0, 1)], callback=report.fetched,
        max_wait_time=100, min_bytes=1))
    print('\n'.join(report.rows))
    client.close()


if __name__ == '__main__':
    main(sys.argv[1], sys.argv[2])
