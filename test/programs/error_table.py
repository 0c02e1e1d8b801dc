#!/usr/bin/env python
"""Provoke what brokers refuse, and look the codes up in the table of errors."""
from __future__ import print_function

import sys

from kafka import KafkaClient, create_message
from kafka.common import (
    BrokerResponseError, FetchRequest, KafkaError, OffsetOutOfRangeError, ProduceRequest,
    UnknownTopicOrPartitionError, check_error, kafka_errors)


def describe(response):
    cls = kafka_errors[response.error]
    print('code %d is %s (%s)' % (response.error, cls.__name__, cls.message))
    try:
        check_error(response)
    except BrokerResponseError as error:
        print('  raised as %s, a KafkaError: %s, holds the response: %s' % (
            type(error).__name__, isinstance(error, KafkaError), error.args[0] is response))


def main(brokers, topic):
    client = KafkaClient(brokers)
    topic = topic.encode('ascii')

    ok, = client.send_produce_request([ProduceRequest(topic, 0, [create_message(b'fine')])])
    print('check_error of a good answer: %r' % check_error(ok))

    answer, = client.send_fetch_request([FetchRequest(topic, 0, 99, 1024)], fail_on_error=False)
    describe(answer)
    try:
        client.send_fetch_request([FetchRequest(topic, 0, 99, 1024)])
    except OffsetOutOfRangeError as error:
        print('or at once: errno %d' % error.errno)

    big = ProduceRequest(topic, 0, [create_message(b'x' * 1100000)])
    answer, = client.send_produce_request([big], fail_on_error=False)
    describe(answer)

    try:
        client.send_produce_request([ProduceRequest(topic, 17, [create_message(b'lost')])])
    except UnknownTopicOrPartitionError as error:
        print('no such partition: errno %d' % error.errno)
    print('not in the table: %s' % [c for c in [-1] + list(range(1, 17)) if c not in kafka_errors])
    client.close()


if __name__ == '__main__':
    main(*sys.argv[1:])
