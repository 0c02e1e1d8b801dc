#!/usr/bin/env python
"""Cron check: how far behind the log's end has a consumer group committed?"""
from __future__ import print_function

import optparse
import sys

from kafka import KafkaClient
from kafka.common import OffsetFetchRequest, OffsetRequest

LATEST, EARLIEST = -1, -2


def log_offsets(client, topic, partitions, when):
    requests = [OffsetRequest(topic, p, when, 1) for p in partitions]
    return dict((r.partition, r.offsets[0]) for r in client.send_offset_request(requests))


def committed(client, group, topic, partitions):
    requests = [OffsetFetchRequest(topic, p) for p in partitions]
    responses = client.send_offset_fetch_request(group, requests, fail_on_error=False)
    return dict((r.partition, max(r.offset, 0)) for r in responses)


def main():
    parser = optparse.OptionParser(usage='%prog -b BROKERS -g GROUP [-w LAG] TOPIC...')
    parser.add_option('-b', '--brokers', default='localhost:9092')
    parser.add_option('-g', '--group')
    parser.add_option('-w', '--warn', type='int', default=1000)
    options, topics = parser.parse_args()
    if not topics or not options.group:
        parser.error('a group and a topic, please')

    client = KafkaClient(options.brokers, client_id=b'lag-checker')
    total = 0
    for name in topics:
        topic = name.encode('utf-8')
        partitions = sorted(client.topic_partitions[topic])
        first = log_offsets(client, topic, partitions, EARLIEST)
        last = log_offsets(client, topic, partitions, LATEST)
        done = committed(client, options.group.encode('utf-8'), topic, partitions)
        for p in partitions:
            lag = last[p] - max(done[p], first[p])
            total += lag
            print('%s/%d: log %d to %d, group at %d, lag %d'
                  % (name, p, first[p], last[p], done[p], lag))
    client.close()
    if total > options.warn:
        print('WARNING: %d messages behind' % total)
        return 1
    print('OK: %d messages behind' % total)
    return 0


if __name__ == '__main__':
    sys.exit(main())
