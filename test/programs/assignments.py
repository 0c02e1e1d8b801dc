#!/usr/bin/env python
"""Read chosen partitions from chosen offsets: every way to say which."""
from __future__ import print_function

import sys

from kafka import KafkaConsumer
from kafka.common import (
    ConsumerTimeout, KafkaConfigurationError, UnknownTopicOrPartitionError)


def read(consumer):
    found = []
    try:
        for m in consumer:
            found.append('%d:%s' % (m.partition, m.value.decode('ascii')))
    except ConsumerTimeout:
        return ' '.join(sorted(found))


def main(brokers, topic, other):
    consumer = KafkaConsumer(metadata_broker_list=[brokers], auto_offset_reset='smallest',
                             consumer_timeout_ms=300)
    for wanted in [
        [topic],
        [(topic, 1)],
        [(topic, 0, 2)],
        [{topic: 1}],
        [{topic: [0, 1]}],
        [{topic: (0,)}],
        [{(topic, 0): 1, (topic, 1): 2}],
        [topic.encode('ascii')],
        [(topic, 0), {other: 1}],
        [other, (topic, 1, 1)],
    ]:
        consumer.set_topic_partitions(*wanted)
        print(read(consumer))
    for wrong in [(topic, 'first'), {topic: 9}, 5]:
        try:
            consumer.set_topic_partitions(wrong)
        except (KafkaConfigurationError, UnknownTopicOrPartitionError) as error:
            print(type(error).__name__)
    consumer.close()


if __name__ == '__main__':
    main(*sys.argv[1:])
