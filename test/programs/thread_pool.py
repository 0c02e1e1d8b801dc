#!/usr/bin/env python
"""Upload in parallel: each thread has a copy of the client, since a client is for one thread."""
from __future__ import print_function

import sys
import threading
try:
    import queue
except ImportError:
    import Queue as queue

from kafka import KafkaClient, SimpleProducer


class Uploader(threading.Thread):
    def __init__(self, client, topic, work):
        super(Uploader, self).__init__()
        self.client = client.copy()
        self.topic = topic
        self.work = work
        self.sent = 0

    def run(self):
        self.client.reinit()
        producer = SimpleProducer(self.client)
        try:
            while True:
                chunk = self.work.get()
                if chunk is None:
                    break
                response, = producer.send_messages(self.topic, *chunk)
                self.sent += len(chunk) if response.error == 0 else 0
        finally:
            self.client.close()


def main(brokers, topic, threads=4):
    client = KafkaClient(brokers, timeout=30)
    work = queue.Queue()
    for start in range(0, 400, 10):
        work.put([('row %03d' % i).encode('ascii') for i in range(start, start + 10)])
    pool = [Uploader(client, topic, work) for _ in range(threads)]
    for _ in pool:
        work.put(None)
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join()
    print('%d rows sent by %d threads' % (sum(t.sent for t in pool), len(pool)))
    client.close()


if __name__ == '__main__':
    main(sys.argv[1], sys.argv[2])
