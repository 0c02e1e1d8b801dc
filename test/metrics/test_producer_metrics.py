"""kafka.metrics.producer_metrics: the names that programs read, and what they are made of."""

from __future__ import annotations

import time
from typing import NamedTuple, Tuple

import pytest

from kafka.metrics import Metrics
from kafka.metrics.producer_metrics import GROUP, ProducerMetrics

# The names of later-behaviour.md, section 5.
NAMES = """
    batch-size-avg batch-size-max byte-rate compression-rate-avg metadata-age record-error-rate
    record-queue-time-avg record-queue-time-max record-retry-rate record-send-rate record-size-avg
    record-size-max records-per-request-avg request-latency-avg request-latency-max
    requests-in-flight
""".split()
TOPIC_NAMES = {
    'byte-rate', 'compression-rate', 'record-error-rate', 'record-retry-rate', 'record-send-rate',
}  # fmt: skip


class Batch(NamedTuple):
    topic_partition: Tuple[str, int] = ('t', 0)
    record_count: int = 10
    size: int = 300
    raw_size: int = 600
    created_at: float = 5.0


class Response(NamedTuple):
    throttle_time_ms: int = 0


@pytest.fixture
def recorder(monkeypatch):
    monkeypatch.setattr(time, 'time', lambda: 1000.0)
    metrics = Metrics()
    yield ProducerMetrics(metrics, 'me', lambda: 3, lambda: 12.5)
    metrics.close()


def test_the_names_are_there_from_the_beginning(recorder):
    found = recorder.snapshot()
    assert set(NAMES) <= set(found[GROUP])
    assert found['kafka-metrics-count']['count'] == len(recorder.metrics.metrics)
    assert {name.tags.get('client-id') for name in recorder.metrics.metrics} == {'me', None}


def test_figures_of_batches_and_requests(recorder):
    batch, other = Batch(), Batch(('t', 1), 30, 900, 900, 5.0)
    recorder.drained(batch, 5.25)
    recorder.drained(other, 6.0)
    recorder.answered(1, 0.040, Response(7), [batch, other])
    recorder.answered(1, 0.060, Response(0), [])
    recorder.retried(batch)
    recorder.failed(other)
    found = recorder.snapshot()
    rate = pytest.approx
    assert {name: found[GROUP][name] for name in NAMES} == {
        'batch-size-avg': 600,
        'batch-size-max': 900,
        'byte-rate': rate(1200 / 30),
        'compression-rate-avg': 0.75,
        'metadata-age': 12.5,
        'record-error-rate': rate(30 / 30),
        'record-queue-time-avg': 625,
        'record-queue-time-max': 1000,
        'record-retry-rate': rate(10 / 30),
        'record-send-rate': rate(40 / 30),
        'record-size-avg': 45,
        'record-size-max': 60,
        'records-per-request-avg': 20,
        'request-latency-avg': rate(50),
        'request-latency-max': 60,
        'requests-in-flight': 3,
    }
    assert found[GROUP]['produce-throttle-time-max'] == 7
    assert found['producer-topic-metrics.t'] == {
        'byte-rate': rate(40),
        'compression-rate': 0.75,
        'record-error-rate': rate(1),
        'record-retry-rate': rate(1 / 3),
        'record-send-rate': rate(4 / 3),
    }
    node = found['producer-node-metrics.node-1']
    assert node['request-latency-max'] == 60
    assert node['request-rate'] == rate(2 / 30)


def test_topics_and_nodes_have_groups_of_their_own(recorder):
    recorder.drained(Batch(('a', 0)), 5.0)
    recorder.drained(Batch(('b', 0)), 5.0)
    recorder.answered(1, 0.1, Response(), [])
    recorder.answered(2, 0.1, Response(), [])
    groups = set(recorder.snapshot())
    assert groups == {
        GROUP,
        'kafka-metrics-count',
        'producer-topic-metrics.a',
        'producer-topic-metrics.b',
        'producer-node-metrics.node-1',
        'producer-node-metrics.node-2',
    }
    assert set(recorder.snapshot()['producer-topic-metrics.a']) == TOPIC_NAMES


def test_what_was_noted_is_recorded_before_it_becomes_much(recorder):
    for _ in range(10_000):
        recorder.drained(Batch(), 5.0)
        recorder.answered(1, 0.1, Response(), [])
    assert len(recorder._noted) <= 500
    assert recorder.snapshot()[GROUP]['byte-rate'] == pytest.approx(10_000 * 300 / 30)
    assert recorder.snapshot()[GROUP]['request-latency-avg'] == pytest.approx(100)


def test_each_metric_alone_knows_all_that_was_noted(recorder):
    recorder.drained(Batch(size=300), 5.0)
    recorder.drained(Batch(size=700), 5.0)
    by_name = {(n.group, n.name): metric for n, metric in recorder.metrics.metrics.items()}
    assert by_name[GROUP, 'batch-size-max'].value() == 700
    recorder.drained(Batch(size=500), 5.0)
    assert by_name[GROUP, 'batch-size-avg'].value() == 500


def test_windows_go_by(recorder, monkeypatch):
    recorder.drained(Batch(size=900), 5.0)
    assert recorder.snapshot()[GROUP]['batch-size-max'] == 900
    monkeypatch.setattr(time, 'time', lambda: 1061.0)
    recorder.drained(Batch(size=100), 5.0)
    assert recorder.snapshot()[GROUP]['batch-size-max'] == 100


def test_an_empty_batch_divides_by_nothing(recorder):
    recorder.drained(Batch(record_count=0, size=0, raw_size=0), 4.0)
    assert recorder.snapshot()[GROUP]['compression-rate-avg'] == 0
    assert recorder.snapshot()[GROUP]['record-queue-time-max'] == 0


def test_what_was_noted_of_a_topic_that_is_forgotten_counts(recorder):
    recorder.drained(Batch(), 6.0)
    recorder.drained(Batch(size=900), 6.0)  # noted, and not recorded yet
    recorder.forget_topic('t')
    recorder.drained(Batch(('u', 0)), 6.0)
    found = recorder.snapshot()
    assert found[GROUP]['batch-size-avg'] == 500
    assert 'producer-topic-metrics.t' not in found and 'producer-topic-metrics.u' in found
