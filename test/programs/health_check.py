#!/usr/bin/env python
"""Nagios plugin: are the topics there, and has every partition a leader? 0 yes, 2 no, 3 unknown."""
from __future__ import print_function

import sys

from kafka import KafkaClient
from kafka.common import KafkaUnavailableError, TopicAndPartition

OK, CRITICAL, UNKNOWN = 0, 2, 3


def check(brokers, topics):
    try:
        client = KafkaClient(brokers, timeout=5)
    except KafkaUnavailableError:
        return UNKNOWN, 'UNKNOWN: no broker of %s answers' % brokers.count(',')
    client.close()
    # From here on nothing is asked: a look must not make a topic.
    problems, partitions = [], 0
    for topic in topics:
        if not client.has_metadata_for_topic(topic):
            problems.append('%s is missing' % topic)
            continue
        found = client.topic_partitions[topic]
        if sorted(found) != client.get_partition_ids_for_topic(topic.encode('utf-8')):
            problems.append('%s looks different as bytes' % topic)
        for partition in found:
            broker = client.topics_to_brokers[TopicAndPartition(topic, partition)]
            if broker is None or broker.nodeId not in client.brokers:
                problems.append('%s/%d has no leader' % (topic, partition))
            partitions += 1
    if topics[0].encode('utf-8') not in client.topics:
        problems.append('not listed')
    if problems:
        return CRITICAL, 'CRITICAL: ' + ', '.join(problems)
    return OK, 'OK: %d topics, %d partitions|partitions=%d' % (len(topics), partitions, partitions)


if __name__ == '__main__':
    code, text = check(sys.argv[1], sys.argv[2:])
    print(text)
    sys.exit(code)
