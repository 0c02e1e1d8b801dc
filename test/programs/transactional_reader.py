#!/usr/bin/env python
"""Handle messages in units of work: what fails is read again, what is done is committed."""
from __future__ import print_function

import sys

from kafka import KafkaClient, SimpleConsumer
from kafka.context import OffsetCommitContext


class Poisoned(Exception):
    pass


def handle(message, tries):
    value = message.message.value
    tries[value] = tries.get(value, 0) + 1
    if value.startswith(b'bad') and tries[value] < 3:
        raise Poisoned(value)
    return value.decode('ascii')


def main(brokers, group, topic):
    client = KafkaClient(brokers)
    consumer = SimpleConsumer(client, group.encode('ascii'), topic.encode('ascii'),
                              auto_commit=False, partitions=[0], iter_timeout=1)
    consumer.provide_partition_info()
    done, tries, failures = [], {}, 0
    while consumer.pending():
        try:
            with OffsetCommitContext(consumer) as context:
                unit = []
                for partition, message in consumer.get_messages(count=3, timeout=2):
                    unit.append(handle(message, tries))
                    context.mark(partition, message.offset)
            done.extend(unit)
        except Poisoned as error:
            failures += 1
            print('back to %d after %s' % (consumer.offsets[0], error.args[0].decode('ascii')))
    print('%d failures, done: %s' % (failures, ' '.join(done)))
    consumer.stop()
    client.close()


if __name__ == '__main__':
    main(*sys.argv[1:])
