#!/usr/bin/env python
"""Deploy script: make the topics a release needs and wait until each has leaders."""
from __future__ import print_function

import sys
import time

import kafka.client
import kafka.common
import kafka.producer


def wait_for_leaders(client, topic, seconds=30):
    deadline = time.time() + seconds
    while time.time() < deadline:
        try:
            client.load_metadata_for_topics(topic)
        except (kafka.common.LeaderNotAvailableError, kafka.common.UnknownTopicOrPartitionError):
            time.sleep(0.2)
            continue
        leaders = [p.leader for p in client.topic_partitions[topic].values()]
        if leaders and -1 not in leaders:
            return len(leaders)
        time.sleep(0.2)
    sys.exit('%s has no leaders' % topic)


def main(brokers, topics):
    client = kafka.client.KafkaClient(brokers)
    before = [t for t in topics if client.has_metadata_for_topic(t)]
    print('there already: %d of %d' % (len(before), len(topics)))
    try:
        client.ensure_topic_exists(topics[0], timeout=0)
    except kafka.common.KafkaTimeoutError:
        print('not there at once')
    for topic in topics:
        client.ensure_topic_exists(topic)
        print('%d partitions' % wait_for_leaders(client, topic))
    producer = kafka.producer.SimpleProducer(client)
    for topic in topics:
        producer.send_messages(topic, b'hello')
    client.close()


if __name__ == '__main__':
    main(sys.argv[1], sys.argv[2:])
