"""The metrics of a KafkaConsumer at work: what it reads, and what its group costs."""

from __future__ import annotations

import pytest

from kafka.testing import Cluster
from test.consumer.modern import FIRST, consumer_of, poll_until, poll_while, write

FETCHING = 'consumer-fetch-manager-metrics'


@pytest.fixture
def cluster():
    with Cluster(version='4.4', topics={'t': 2}) as running:
        yield running


def test_metrics_count_what_was_read(cluster):
    write(cluster, 10)
    with consumer_of(cluster, client_id='mine') as consumer:
        consumer.assign([FIRST])
        poll_until(consumer, 4, max_records=4)
        found = consumer.metrics()
        whole = found[FETCHING]
        assert whole['records-consumed-total'] == 4
        assert found[FETCHING + '.t.0']['records-lag'] == 6
        poll_until(consumer, 6)
        found = consumer.metrics()
        assert found[FETCHING]['records-consumed-total'] == 10
        assert found[FETCHING]['records-consumed-rate'] > 0
        assert found[FETCHING + '.t']['bytes-consumed-total'] == whole['bytes-consumed-total'] > 0
        assert found[FETCHING + '.t.0']['records-lag'] == 0
        assert found['consumer-coordinator-metrics']['assigned-partitions'] == 1
        assert found['consumer-metrics']['time-between-poll-max'] > 0
        assert 'consumer-node-metrics.node-%d' % cluster.nodes[0] in found
        assert {name.tags['client-id'] for name in consumer.metrics(raw=True)} == {'mine'}
        consumer.unsubscribe()
        assert FETCHING + '.t' not in consumer.metrics()


def test_iteration_is_counted_too(cluster):
    write(cluster, 10)
    with consumer_of(cluster, 't', consumer_timeout_ms=10_000) as consumer:
        next(consumer)
        assert consumer.metrics()[FETCHING]['records-consumed-total'] >= 1


@pytest.mark.parametrize('protocol', ['classic', 'consumer'])
def test_metrics_of_the_group(cluster, protocol):
    write(cluster, 1)
    options = {'group_id': 'g', 'group_protocol': protocol, 'enable_auto_commit': False}
    with consumer_of(cluster, 't', heartbeat_interval_ms=100, **options) as consumer:
        poll_until(consumer, 1)
        consumer.commit()

        def group():
            return consumer.metrics()['consumer-coordinator-metrics']

        poll_while(consumer, lambda: not group()['heartbeat-total'])
        found = group()
        assert found['commit-total'] == found['rebalance-total'] == 1
        assert found['commit-latency-max'] > 0
        assert found['assigned-partitions'] == 2
        assert 0 <= found['last-heartbeat-seconds-ago'] < 30
        assert 0 <= found['last-rebalance-seconds-ago'] < 30
        joins = 0 if protocol == 'consumer' else 1
        assert found['sync-total'] == joins <= found['join-total']


def test_metrics_can_be_left_out(cluster):
    write(cluster, 1)
    with consumer_of(cluster, 't', metrics_enabled=False) as consumer:
        poll_until(consumer, 1)
        assert consumer.metrics() is None
        assert consumer.metrics(raw=True) is None
