#!/usr/bin/env python
"""Load a CSV file, keys from its first column, rows spread evenly whatever the keys are."""
import argparse
import csv

from kafka import KafkaClient, KeyedProducer, RoundRobinPartitioner


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('file', type=argparse.FileType('r'))
    parser.add_argument('--brokers', required=True)
    parser.add_argument('--topic', required=True)
    parser.add_argument('--skip-header', action='store_true')
    args = parser.parse_args()

    client = KafkaClient(args.brokers)
    client.ensure_topic_exists(args.topic)
    producer = KeyedProducer(client, partitioner=RoundRobinPartitioner,
                             req_acks=KeyedProducer.ACK_AFTER_CLUSTER_COMMIT, ack_timeout=5000)
    rows = csv.reader(args.file)
    if args.skip_header:
        next(rows)
    per_partition = {}
    for row in rows:
        value = '|'.join(row[1:]).encode('utf-8')
        for response in producer.send_messages(args.topic, row[0].encode('utf-8'), value):
            per_partition[response.partition] = per_partition.get(response.partition, 0) + 1
    args.file.close()
    client.close()
    for partition in sorted(per_partition):
        print('partition %d: %d rows' % (partition, per_partition[partition]))


if __name__ == '__main__':
    main()
