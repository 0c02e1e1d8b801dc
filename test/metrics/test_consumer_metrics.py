"""kafka.metrics.consumer_metrics: the names that programs read, and what they are made of."""

from __future__ import annotations

import threading
import time

import pytest

from kafka.metrics import Metrics
from kafka.metrics.consumer_metrics import ConsumerMetrics
from kafka.structs import TopicPartition

FETCHING = 'consumer-fetch-manager-metrics'
GROUP = 'consumer-coordinator-metrics'
WHOLE = 'consumer-metrics'
# The names of modern-behaviour.md, section 19; the others are the Java client's.
OF_1_2 = {
    FETCHING: """
        fetch-size-avg fetch-size-max bytes-consumed-rate records-per-request-avg
        records-consumed-rate fetch-latency-avg fetch-latency-max fetch-rate records-lag-max
        fetch-throttle-time-avg fetch-throttle-time-max""",
    GROUP: 'commit-latency-avg commit-latency-max commit-rate assigned-partitions',
}
OF_TOPICS = {
    'fetch-size-avg', 'fetch-size-max', 'bytes-consumed-rate', 'records-per-request-avg',
    'records-consumed-rate',
}  # fmt: skip
T0, T1, U0 = TopicPartition('t', 0), TopicPartition('t', 1), TopicPartition('u', 0)
rate = pytest.approx


class Clocks:
    """The wall clock of metrics and the seconds of the loop, moved together."""

    def __init__(self):
        self.seconds = 1000.0


@pytest.fixture
def clocks(monkeypatch):
    made = Clocks()
    monkeypatch.setattr(time, 'time', lambda: made.seconds)
    return made


@pytest.fixture
def recorder(clocks):
    metrics = Metrics()
    yield ConsumerMetrics(metrics, 'me', lambda: clocks.seconds, lambda: 3, lambda: 12.5)
    metrics.close()


def test_the_names_are_there_from_the_beginning(recorder):
    found = recorder.snapshot()
    for group, names in OF_1_2.items():
        assert set(names.split()) <= set(found[group])
    assert set(found) == {FETCHING, GROUP, WHOLE, 'kafka-metrics-count'}
    assert {name.tags.get('client-id') for name in recorder.metrics.metrics} == {'me', None}
    assert found[GROUP]['assigned-partitions'] == 3
    assert found[WHOLE]['metadata-age'] == 12.5


def test_figures_of_fetches(recorder):
    recorder.answered(1, 0.040, 7, {'t': 300, 'u': 100})
    recorder.answered(2, 0.060, 0, {'t': 500})
    recorder.consumed(T0, 20, 5)
    recorder.consumed(U0, 10, 40)
    found = recorder.snapshot()
    expected = {
        'fetch-size-avg': 450,
        'fetch-size-max': 500,
        'bytes-consumed-rate': rate(900 / 30),
        'bytes-consumed-total': 900,
        'records-per-request-avg': 15,
        'records-consumed-rate': rate(30 / 30),
        'records-consumed-total': 30,
        'fetch-latency-avg': rate(50),
        'fetch-latency-max': 60,
        'fetch-rate': rate(2 / 30),
        'fetch-total': 2,
        'fetch-throttle-time-avg': 3.5,
        'fetch-throttle-time-max': 7,
        'records-lag-max': 40,
    }
    assert found[FETCHING] == expected
    of_topic = found[FETCHING + '.t']
    assert OF_TOPICS <= set(of_topic)
    assert (of_topic['fetch-size-avg'], of_topic['records-per-request-avg']) == (400, 10)
    assert found[FETCHING + '.u']['bytes-consumed-rate'] == rate(100 / 30)


def test_figures_of_nodes(recorder):
    recorder.answered(1, 0.040, 0, {'t': 300})
    recorder.answered(1, 0.060, 0, {})
    recorder.answered(2, 0.100, 0, {'t': 600})
    found = recorder.snapshot()
    assert found['consumer-node-metrics.node-1'] == {
        'request-latency-avg': rate(50),
        'request-latency-max': 60,
        'request-rate': rate(2 / 30),
        'incoming-byte-rate': rate(10),
    }
    assert found['consumer-node-metrics.node-2']['request-latency-max'] == 100
    assert found[WHOLE]['request-rate'] == rate(3 / 30)
    assert found[WHOLE]['incoming-byte-rate'] == rate(30)


def test_a_fetch_that_brings_nothing_is_one_all_the_same(recorder):
    recorder.answered(1, 0.5, 0, {})
    found = recorder.snapshot()[FETCHING]
    assert (found['fetch-total'], found['fetch-size-avg']) == (1, 0)
    assert found['records-per-request-avg'] == 0


def test_how_far_partitions_are_behind(recorder):
    recorder.consumed(T0, 1, 50)
    recorder.consumed(T0, 1, 40)
    recorder.consumed(T0, 1, 30)
    recorder.consumed(T1, 1, 10)
    recorder.consumed(U0, 1, None)
    found = recorder.snapshot()
    assert found[FETCHING + '.t.0'] == {
        'records-lag': 30,
        'records-lag-avg': 40,
        'records-lag-max': 50,
    }
    assert found[FETCHING + '.t.1']['records-lag'] == 10
    assert FETCHING + '.u.0' not in found
    assert found[FETCHING]['records-lag-max'] == 50


def test_partitions_and_topics_are_tagged(recorder):
    recorder.consumed(T0, 1, 50)
    recorder.settle()
    tags = [dict(n.tags) for n in recorder.metrics.metrics if n.name == 'records-lag']
    assert tags == [{'client-id': 'me', 'topic': 't', 'partition': '0'}]


def test_a_lag_that_is_asked_for_alone_is_the_last(recorder):
    recorder.consumed(T0, 1, 50)
    recorder.settle()
    recorder.consumed(T0, 1, 20)
    (lag,) = [m for n, m in recorder.metrics.metrics.items() if n.name == 'records-lag']
    assert lag.value() == 20


def test_each_sum_alone_knows_all_that_was_noted(recorder):
    for _ in range(3):
        recorder.committed(0.1)
    (total,) = [m for n, m in recorder.metrics.metrics.items() if n.name == 'commit-total']
    assert total.value() == 3


def test_what_is_not_assigned_any_more_is_forgotten(recorder):
    recorder.answered(1, 0.1, 0, {'t': 300, 'u': 100})
    for partition in (T0, T1, U0):
        recorder.consumed(partition, 1, 7)
    recorder.settle()
    before = len(recorder.metrics.metrics)
    recorder.assignment_changed([T0])
    found = recorder.snapshot()
    assert {each for each in found if each.startswith(FETCHING)} == {
        FETCHING,
        FETCHING + '.t',
        FETCHING + '.t.0',
    }
    assert set(recorder._lags) == {T0}
    recorder.assignment_changed([])
    recorder.answered(1, 0.1, 0, {'t': 300, 'u': 100})
    for partition in (T0, T1, U0):
        recorder.consumed(partition, 1, 7)
    recorder.settle()
    assert len(recorder.metrics.metrics) == before
    assert recorder.snapshot()[FETCHING + '.t']['bytes-consumed-total'] == 300


def test_a_fetch_that_is_recorded_while_the_assignment_changes_has_its_figures(
    recorder, monkeypatch
):
    """The network thread records it, while that of the program removes what was before."""
    remove, raised = recorder._remove, []

    def record():
        recorder.answered(1, 0.1, 0, {'t': 7})
        try:
            recorder.settle()
        except ValueError as error:
            raised.append(error)

    def remove_meanwhile(sensors):
        monkeypatch.undo()
        network.start()
        network.join(0.1)
        remove(sensors)

    network = threading.Thread(target=record)
    recorder.answered(1, 0.1, 0, {'t': 5})
    recorder.settle()
    monkeypatch.setattr(recorder, '_remove', remove_meanwhile)
    recorder.assignment_changed([])
    network.join()
    assert not raised
    assert recorder.snapshot()[FETCHING + '.t']['fetch-size-avg'] == 7


def test_figures_of_the_group(recorder, clocks):
    recorder.committed(0.010)
    recorder.committed(0.030)
    recorder.heartbeat(clocks.seconds, 0.004)
    recorder.joined(3.0)
    recorder.synced(0.2)
    recorder.rebalanced(4.0)
    recorder.rebalanced(2.0)
    recorder.rebalance_failed()
    clocks.seconds += 5
    found = recorder.snapshot()[GROUP]
    assert {name: found[name] for name in found if not name.endswith(('rate', 'hour'))} == {
        'commit-latency-avg': 20,
        'commit-latency-max': 30,
        'commit-total': 2,
        'heartbeat-response-time-max': 4,
        'heartbeat-total': 1,
        'last-heartbeat-seconds-ago': 5,
        'join-time-avg': 3000,
        'join-time-max': 3000,
        'join-total': 1,
        'sync-time-avg': 200,
        'sync-time-max': 200,
        'sync-total': 1,
        'rebalance-latency-avg': 3000,
        'rebalance-latency-max': 4000,
        'rebalance-latency-total': 6000,
        'rebalance-total': 2,
        'failed-rebalance-total': 1,
        'last-rebalance-seconds-ago': 5,
        'assigned-partitions': 3,
    }
    assert found['commit-rate'] == rate(2 / 35)
    assert found['heartbeat-rate'] == found['join-rate'] == found['sync-rate'] == rate(1 / 35)
    assert found['rebalance-rate-per-hour'] == rate(2 / 35 * 3600)
    assert found['failed-rebalance-rate-per-hour'] == rate(1 / 35 * 3600)


def test_what_never_happened_was_no_seconds_ago(recorder):
    found = recorder.snapshot()
    assert found[GROUP]['last-heartbeat-seconds-ago'] == -1
    assert found[GROUP]['last-rebalance-seconds-ago'] == -1
    assert found[WHOLE]['last-poll-seconds-ago'] == -1


def test_figures_of_polls(recorder, clocks):
    recorder.polled(1000.0, 1001.0)
    recorder.polled(1004.0, 1005.0)  # 1 of 4 seconds since the last one ended
    recorder.polled(1006.0, 1009.0)  # 3 of 4
    clocks.seconds = 1010.0
    found = recorder.snapshot()[WHOLE]
    assert found['time-between-poll-avg'] == 3000
    assert found['time-between-poll-max'] == 4000
    assert found['poll-idle-ratio-avg'] == 0.5
    assert found['last-poll-seconds-ago'] == 4


def test_polls_at_one_moment_are_all_idle(recorder):
    recorder.polled(1000.0, 1000.0)
    recorder.polled(1000.0, 1000.0)
    assert recorder.snapshot()[WHOLE]['poll-idle-ratio-avg'] == 1


def test_another_prefix(clocks):
    metrics = Metrics()
    recorder = ConsumerMetrics(metrics, 'me', lambda: 0, lambda: 0, lambda: 0, 'mine')
    recorder.answered(1, 0.1, 0, {})
    recorder.settle()
    assert {name.group for name in metrics.metrics} == {
        'mine-metrics',
        'mine-coordinator-metrics',
        'mine-fetch-manager-metrics',
        'mine-node-metrics.node-1',
        'kafka-metrics-count',
    }


def test_a_million_records_cost_no_more_than_their_polls(recorder):
    for _ in range(2000):
        recorder.consumed(T0, 500, 1)
    assert len(recorder._noted) < 500
    assert recorder.snapshot()[FETCHING]['records-consumed-total'] == 1_000_000
