#!/usr/bin/env python
"""What a SimpleClient of 1.x raises, caught by the names of kafka.errors and of kafka.common."""
from __future__ import print_function

import sys

import kafka.common
import kafka.errors
import kafka.structs
from kafka import SimpleClient
from kafka.errors import FailedPayloadsError, KafkaError, UnknownTopicOrPartitionError
from kafka.protocol import create_message
from kafka.structs import ProduceRequestPayload


def main(brokers, topic):
    client = SimpleClient(brokers)
    payload = ProduceRequestPayload(topic, 23, [create_message(b'nowhere')])
    try:
        client.send_produce_request([payload])
    except FailedPayloadsError as error:
        print('FailedPayloadsError holds the payload: %s' % (error.payload == payload))
    failed, = client.send_produce_request([payload], fail_on_error=False)
    print('or hands it back: %s' % type(failed).__name__)

    try:
        client.send_fetch_request([kafka.structs.FetchRequestPayload(topic, 0, 50, 100)])
    except KafkaError as error:
        print('%s %d' % (type(error).__name__, error.errno))

    print('same classes: %s' % all([
        kafka.errors.KafkaUnavailableError is kafka.common.KafkaUnavailableError,
        kafka.errors.UnknownTopicOrPartitionError is kafka.common.UnknownTopicOrPartitionError,
        kafka.structs.ProduceRequestPayload is kafka.common.ProduceRequestPayload,
        kafka.common.GroupCoordinatorNotAvailableError is
        kafka.errors.GroupCoordinatorNotAvailableError]))
    try:
        kafka.common.check_error(kafka.structs.ProduceResponsePayload(topic, 0, 3, -1))
    except UnknownTopicOrPartitionError:
        print('check_error raises by code')
    try:
        SimpleClient('127.0.0.1:1', timeout=2)
    except kafka.errors.KafkaUnavailableError as error:
        print('KafkaUnavailableError')
    client.close()


if __name__ == '__main__':
    main(sys.argv[1], sys.argv[2])
