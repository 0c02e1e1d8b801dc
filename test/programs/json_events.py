#!/usr/bin/env python
"""Events as JSON, decoded by the consumer; places are committed every five events by themselves."""
from __future__ import print_function

import json
import os

from kafka import KafkaConsumer
from kafka.common import ConsumerTimeout


def from_json(raw):
    return json.loads(raw.decode('utf-8'))


def main():
    consumer = KafkaConsumer(
        os.environ['EVENTS_TOPIC'],
        bootstrap_servers=os.environ['KAFKA_BROKERS'].split(','),
        group_id=os.environ['EVENTS_GROUP'],
        deserializer_class=from_json,
        auto_offset_reset='smallest',
        auto_commit_enable=True,
        auto_commit_interval_messages=5,
        auto_commit_interval_ms=60 * 1000,
        consumer_timeout_ms=1000)
    users = {}
    count = 0
    try:
        while True:
            event = consumer.next()
            users.setdefault(event.value['user'], []).append(event.value['what'])
            consumer.task_done(event)
            count += 1
    except ConsumerTimeout:
        print('%d events' % count)
    for user in sorted(users):
        print('%s: %s' % (user, ' '.join(sorted(users[user]))))
    print('%s' % type(event).__name__, event.topic, event._fields)
    committed = consumer.offsets('commit')
    print('committed %d of %d' % (sum(o or 0 for o in committed.values()), count))
    consumer.close()


if __name__ == '__main__':
    main()
