#!/usr/bin/env python
"""Draw the cluster from hand-made metadata requests, and find a group's coordinator."""
from __future__ import print_function

import sys
import time

from kafka.conn import KafkaConnection, collect_hosts
from kafka.protocol import KafkaProtocol


def ask(conn, number, request):
    conn.send(number, request)
    return conn.recv(number)


def main(brokers, topic, group):
    host, port = collect_hosts(brokers)[0][:2]
    conn = KafkaConnection(host, port)
    try:
        body = ask(conn, 1, KafkaProtocol.encode_metadata_request(
            b'topology', 1, topics=[topic.encode('ascii')]))
        cluster = KafkaProtocol.decode_metadata_response(body)
        for broker in cluster.brokers:
            print('broker %d at %s:%d' % (broker.nodeId, broker.host.decode('ascii'), broker.port))
        for found in cluster.topics:
            print('topic %s, error %d' % (found.topic.decode('ascii'), found.error))
            for p in sorted(found.partitions, key=lambda p: p.partition):
                print('  %d: leader %d, replicas %s, in sync %s' % (
                    p.partition, p.leader, list(p.replicas), list(p.isr)))

        for number in range(2, 100):  # the first one to ask makes the broker prepare its topic
            body = ask(conn, number, KafkaProtocol.encode_consumer_metadata_request(
                b'topology', number, group.encode('ascii')))
            coordinator = KafkaProtocol.decode_consumer_metadata_response(body)
            if not coordinator.error:
                break
            time.sleep(0.2)
        print('coordinator %d at %s:%d' % (
            coordinator.nodeId, coordinator.host.decode('ascii'), coordinator.port))
    finally:
        conn.close()


if __name__ == '__main__':
    main(*sys.argv[1:])
