#!/usr/bin/env python
"""tail for topics: the last N messages, or everything from the start."""
from __future__ import print_function

import optparse

from kafka import KafkaClient, SimpleConsumer


def show(consumer):
    count = 0
    for partition, message in consumer.get_messages(count=1000, block=True, timeout=1):
        print('%d:%d %s' % (partition, message.offset, message.message.value.decode('utf-8')))
        count += 1
    return count


def main():
    parser = optparse.OptionParser(usage='%prog [-n LINES | -a] BROKERS TOPIC')
    parser.add_option('-n', dest='lines', type='int', default=10)
    parser.add_option('-a', dest='all', action='store_true')
    options, (brokers, topic) = parser.parse_args()

    kafka = KafkaClient(brokers)
    consumer = SimpleConsumer(kafka, 'tail', topic, auto_commit=False)
    consumer.provide_partition_info()
    if options.all:
        consumer.seek(0, 0)
    else:
        consumer.seek(0, 2)
        assert consumer.get_messages(count=1, block=False) == []
        consumer.seek(-options.lines, 2)
    print('== %d shown' % show(consumer))

    # once more from where the last third began, then drop what was fetched ahead
    consumer.seek(-1, 1)
    ahead = consumer.get_message(timeout=1)
    consumer.seek(0, 1)
    print('== %d shown again besides %d' % (show(consumer), 1 if ahead else 0))
    kafka.close()


if __name__ == '__main__':
    main()
