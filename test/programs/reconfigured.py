#!/usr/bin/env python
"""Settings in layers: defaults of the package, a file, the command line; and what is refused."""
from __future__ import print_function

import json
import sys

from kafka import KafkaConsumer
from kafka.common import ConsumerTimeout, KafkaConfigurationError
from kafka.consumer.kafka import DEFAULT_CONSUMER_CONFIG


def attempt(**settings):
    try:
        KafkaConsumer(**settings)
        print('accepted')
    except KafkaConfigurationError as error:
        print('refused: %s' % sorted(settings))


def main(path, brokers, topic):
    with open(path) as f:
        settings = json.load(f)
    unknown = set(settings) - set(DEFAULT_CONSUMER_CONFIG)
    print('unknown settings in the file: %s' % sorted(unknown))
    for name in unknown:
        del settings[name]
    settings['bootstrap_servers'] = brokers.split(',')

    consumer = KafkaConsumer(metadata_broker_list=['localhost:1'], **settings)
    consumer.configure(consumer_timeout_ms=400, auto_offset_reset='smallest', **dict(
        (k, v) for k, v in settings.items() if k == 'bootstrap_servers'))
    consumer.set_topic_partitions(topic)
    count = 0
    try:
        while True:
            consumer.next()
            count += 1
    except ConsumerTimeout:
        print('%d messages' % count)
    consumer.close()

    attempt(bootstrap_servers=[brokers], auto_commit_enable=True)
    attempt(bootstrap_servers=[brokers], deserializer_class=bytes, no_such_setting=1)
    attempt(auto_commit_enable=False, group_id='g')
    attempt()


if __name__ == '__main__':
    main(*sys.argv[1:])
