#!/usr/bin/env python
"""Read a topic with two processes. A script: all of it stands at the top, nothing guards it."""
from __future__ import print_function

import sys

from kafka import KafkaClient, MultiProcessConsumer

brokers, group, topic = sys.argv[1:4]
print('script starts')
sys.stdout.flush()

kafka = KafkaClient(brokers)
consumer = MultiProcessConsumer(kafka, group, topic, num_procs=2, auto_commit_every_n=4)
print('%d processes, %d partitions' % (len(consumer.procs), len(consumer.offsets)))

values = []
while len(values) < 12:
    for message in consumer:  # ends whenever a second passes without one
        values.append(message.message.value.decode('utf-8'))

print(' '.join(sorted(values)))
print(sorted(consumer.offsets.items()))
consumer.stop()
kafka.close()
