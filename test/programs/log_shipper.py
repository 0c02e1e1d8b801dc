#!/usr/bin/env python
"""Ship lines of a log file as JSON, keyed by host. Usage: log_shipper.py BROKERS TOPIC FILE"""
import json
import logging
import sys
import threading

from kafka import KafkaProducer
from kafka.errors import KafkaError

log = logging.getLogger(__name__)


class Shipper(object):

    def __init__(self, brokers, topic):
        self.topic = topic
        self.lock = threading.Lock()
        self.ok = 0
        self.failed = 0
        self.producer = KafkaProducer(
            bootstrap_servers=brokers.split(','),
            client_id='log-shipper',
            key_serializer=str.encode,
            value_serializer=lambda v: json.dumps(v, sort_keys=True).encode('ascii'),
            compression_type='gzip',
            acks='all',
            retries=5,
            linger_ms=20)

    def on_success(self, host, metadata):
        with self.lock:
            self.ok += 1
        assert metadata.topic == self.topic
        assert metadata.topic_partition.partition == metadata.partition

    def on_error(self, excp):
        with self.lock:
            self.failed += 1
        log.error('not delivered', exc_info=excp)

    def ship(self, number, line):
        host, _, text = line.partition(' ')
        record = {'n': number, 'text': text}
        future = self.producer.send(self.topic, key=host, value=record)
        future.add_callback(self.on_success, host)
        future.add_errback(self.on_error)
        return future

    def close(self):
        self.producer.flush()
        self.producer.close()


def main(brokers, topic, path):
    shipper = Shipper(brokers, topic)
    futures = []
    with open(path) as f:
        for number, line in enumerate(f, 1):
            futures.append(shipper.ship(number, line.rstrip('\n')))
    shipper.close()
    assert all(f.is_done for f in futures)
    try:
        last = futures[-1].get(timeout=10)
        print('last at offset >= 0: %s' % (last.offset >= 0))
    except KafkaError as e:
        print('lost: %r' % e)
    print('%d shipped, %d failed' % (shipper.ok, shipper.failed))


if __name__ == '__main__':
    main(*sys.argv[1:])
