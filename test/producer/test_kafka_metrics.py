"""What a producer records into, from its options, and what its metrics tell."""

from __future__ import annotations

import pytest

from kafka import KafkaProducer
from kafka.testing import Cluster


@pytest.fixture
def cluster():
    with Cluster(version='4.4', topics={'t': 3}) as running:
        yield running


class Reporter:
    """Knows the names of metrics; fails on one of them."""

    def __init__(self):
        self.calls, self.names = [], []

    def init(self, metrics):
        self.calls.append('init')

    def metric_change(self, metric):
        self.names.append((metric.metric_name.group, metric.metric_name.name))
        if metric.metric_name.group == 'producer-topic-metrics.t':
            raise ValueError('of the program')

    def metric_removal(self, metric):
        self.calls.append('removal')

    def configure(self, configs):
        self.calls.append('configure')

    def close(self):
        self.calls.append('close')


def test_metrics_count_what_was_sent(cluster, caplog):
    reporter = Reporter()
    with KafkaProducer(
        bootstrap_servers=cluster.bootstrap, client_id='mine', metric_reporters=[reporter]
    ) as producer:
        producer.send_many('t', [b'v' * 100] * 10, partition=0).get(30)
        found = producer.metrics()
        raw = producer.metrics(raw=True)
    whole = found['producer-metrics']
    assert (whole['records-per-request-avg'], whole['requests-in-flight']) == (10, 0)
    assert 100 < whole['record-size-avg'] < 200 and whole['record-send-rate'] > 0
    assert 0 <= whole['metadata-age'] < 600
    of_topic = found['producer-topic-metrics.t']
    assert of_topic['byte-rate'] == pytest.approx(whole['byte-rate'], rel=0.01)
    assert 'producer-node-metrics.node-%d' % cluster.nodes[0] in found
    assert found['kafka-metrics-count']['count'] == len(raw) == len(reporter.names)
    assert {name.tags['client-id'] for name in raw} == {'mine'}
    assert reporter.calls == ['init', 'close'] and 'reporter failed' in caplog.text


def test_metrics_can_be_left_out(cluster):
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, metrics_enabled=False) as producer:
        producer.send('t', b'v').get(30)
        assert producer.metrics() is None
