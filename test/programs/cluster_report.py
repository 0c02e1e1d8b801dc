"""What does the cluster look like? Written for kafka-python 2.0, with the client inside of it.

    cluster_report.py BROKERS TOPIC
"""
from __future__ import print_function
import sys
import time

from kafka import KafkaClient
from kafka.errors import NoBrokersAvailable


def connect(brokers, tries=5):
    for i in range(tries):
        try:
            return KafkaClient(bootstrap_servers=brokers, client_id='report',
                               request_timeout_ms=15000)
        except NoBrokersAvailable:
            time.sleep(2 ** i * 0.1)
    raise SystemExit('nobody there')


def metadata(client, topic):
    future = client.add_topic(topic)
    while not future.is_done:
        client.poll(timeout_ms=500, future=future)
    assert future.succeeded(), future.exception
    return client.cluster


brokers, topic = sys.argv[1:]
client = connect(brokers.split(','))
print('bootstrapped', client.bootstrap_connected())
cluster = metadata(client, topic)
print('%d broker(s)' % len(cluster.brokers()))
for broker in sorted(cluster.brokers(), key=lambda b: b.nodeId):
    for _ in range(200):
        if client.ready(broker.nodeId):
            break
        client.poll(timeout_ms=100)
    print('node', broker.nodeId, 'connected', client.connected(broker.nodeId),
          'port', broker.port > 0)
print('topic: partitions', sorted(cluster.partitions_for_topic(topic)))
available = cluster.available_partitions_for_topic(topic)
print('available', sorted(available), 'version', client.config['api_version'] >= (0, 9))
node = client.least_loaded_node()
print('least loaded known:', cluster.broker_metadata(node) is not None)
print('in flight', client.in_flight_request_count(node), client.in_flight_request_count())
client.close()
