#!/usr/bin/env python
"""Start a new consumer group where the old one is: copy its committed offsets."""
from __future__ import print_function

import argparse
import sys

from kafka import KafkaClient
from kafka.common import OffsetCommitRequest, OffsetFetchRequest, check_error


def read(client, group, topic, partitions):
    answers = client.send_offset_fetch_request(
        group, [OffsetFetchRequest(topic, p) for p in partitions], fail_on_error=False)
    return dict((a.partition, a.offset) for a in answers if a.error == 0 and a.offset >= 0)


def write(client, group, topic, offsets):
    answers = client.send_offset_commit_request(
        group, [OffsetCommitRequest(topic, p, o, b'migrated') for p, o in sorted(offsets.items())])
    for answer in answers:
        check_error(answer)
    return len(answers)


def main(argv):
    parser = argparse.ArgumentParser()
    parser.add_argument('brokers')
    parser.add_argument('topic')
    parser.add_argument('old')
    parser.add_argument('new')
    parser.add_argument('--dry-run', action='store_true')
    args = parser.parse_args(argv)

    client = KafkaClient(args.brokers)
    topic, old, new = [name.encode('utf-8') for name in (args.topic, args.old, args.new)]
    partitions = client.get_partition_ids_for_topic(topic)
    offsets = read(client, old, topic, partitions)
    print('%s: %s' % (args.old, sorted(offsets.items())))
    print('%s before: %s' % (args.new, sorted(read(client, new, topic, partitions).items())))
    if not args.dry_run:
        print('%d offsets written' % write(client, new, topic, offsets))
    print('%s after: %s' % (args.new, sorted(read(client, new, topic, partitions).items())))
    client.close()


if __name__ == '__main__':
    main(sys.argv[1:])
