#!/usr/bin/env python
"""Refresh what the client knows of topics, and report what a refresh changes."""
from __future__ import print_function

import sys

from kafka import KafkaClient
from kafka.common import PartitionMetadata, TopicAndPartition


def known(client, *topics):
    return ['yes' if client.has_metadata_for_topic(t) else 'no' for t in topics]


def main(brokers, first, second):
    client = KafkaClient(brokers)
    topics = [t.encode('ascii') for t in (first, second)]
    print('at start   ', known(client, *topics))
    client.reset_topic_metadata(topics[0])
    print('one reset  ', known(client, *topics), client.get_partition_ids_for_topic(topics[0]))
    client.load_metadata_for_topics(topics[0])
    print('loaded     ', known(client, *topics), client.get_partition_ids_for_topic(first))
    client.reset_all_metadata()
    print('all reset  ', known(client, *topics), len(client.topics), len(client.brokers) > 0)
    client.load_metadata_for_topics(first, second)
    print('both loaded', known(client, *topics), len(client.topics))
    client.load_metadata_for_topics()
    print('everything ', known(client, *topics), len(client.topics) >= 2)

    p = client.topic_partitions[topics[1]][0]
    print(isinstance(p, PartitionMetadata), p.partition, p.error, list(p.replicas) == list(p.isr))
    leader = client.topics_to_brokers[TopicAndPartition(topics[1], 0)]
    print(leader == client.brokers[p.leader], leader.nodeId == p.leader)
    answer = client.send_metadata_request([topics[0]])
    print(len(answer.brokers), [t.topic.decode('ascii') for t in answer.topics] == [first])
    client.close()


if __name__ == '__main__':
    main(*sys.argv[1:])
