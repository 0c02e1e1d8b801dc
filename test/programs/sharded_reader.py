#!/usr/bin/env python
"""One consumer and one thread per partition, results in a queue."""
from __future__ import print_function

import sys
import threading
try:
    from queue import Queue
except ImportError:
    from Queue import Queue

from kafka import KafkaClient, SimpleConsumer


class PartitionReader(threading.Thread):
    daemon = True

    def __init__(self, brokers, group, topic, partition, results):
        threading.Thread.__init__(self, name='reader-%d' % partition)
        self.args = brokers, group, topic
        self.partition = partition
        self.results = results

    def run(self):
        brokers, group, topic = self.args
        client = KafkaClient(brokers)
        consumer = SimpleConsumer(client, group, topic, partitions=[self.partition],
                                  auto_commit_every_n=5, auto_commit_every_t=None,
                                  iter_timeout=1)
        try:
            values = [m.message.value.decode('utf-8') for m in consumer]
            consumer.commit()
            self.results.put((self.partition, values, dict(consumer.offsets)))
        finally:
            consumer.stop()
            client.close()


def main(brokers, group, topic):
    client = KafkaClient(brokers)
    partitions = client.get_partition_ids_for_topic(topic.encode('ascii'))
    client.close()
    results = Queue()
    threads = [PartitionReader(brokers, group, topic, p, results) for p in partitions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for partition, values, offsets in sorted(results.get_nowait() for _ in threads):
        print(partition, ' '.join(values), offsets)


if __name__ == '__main__':
    main(*sys.argv[1:])
