"""close() of a modern consumer: how its time is shared where nobody answers, on a virtual clock."""

from __future__ import annotations

import logging

import pytest

from kafka import TopicPartition
from kafka.metrics.metrics_reporter import AbstractMetricsReporter
from kafka.testing import MemoryCluster
from kafka.testing.faults import Delay, Error
from test.consumer.bounded import numbered, write
from test.simulation.reader import SimConsumer

#: What tells the group, in each protocol.
FAREWELLS = [('classic', 'LeaveGroup'), ('consumer', 'ConsumerGroupHeartbeat')]


@pytest.fixture
def cluster():
    with MemoryCluster(version='4.4', seed=1, topics={'t': 1}) as made:
        write(made.state.topics['t'].partitions[0].log, *numbered(5))
        yield made


def joined(cluster, protocol, **options):
    made = SimConsumer.of(
        cluster, [], 't', group_id='g', group_protocol=protocol, auto_offset_reset='earliest',
        request_timeout_ms=40000, **options
    )  # fmt: skip
    made.poll(timeout_ms=10000)
    return made


def closed(cluster, consumer, **how):
    """Return how long close() took."""
    began = cluster.timers.clock.monotonic()
    consumer.close(**how)
    return cluster.timers.clock.monotonic() - began


@pytest.mark.parametrize('protocol', ['classic', 'consumer'])
def test_a_group_that_nobody_hears_of_is_left_soon_unless_told_otherwise(cluster, protocol):
    quick, patient = (joined(cluster, protocol, enable_auto_commit=False) for _ in range(2))
    cluster.pause(0)
    assert closed(cluster, patient, timeout_ms=8000) == pytest.approx(8.0, abs=0.1)
    assert closed(cluster, quick) == pytest.approx(5.0, abs=0.1)


def test_closing_takes_half_a_minute_at_most_where_nobody_says_how_long(cluster):
    made = joined(cluster, 'consumer')
    cluster.pause(0)
    assert closed(cluster, made) == pytest.approx(30.0, abs=1.5)


@pytest.mark.parametrize(('protocol', 'farewell'), FAREWELLS)
def test_leaving_has_its_share_of_the_time_whatever_the_commit_takes(
    cluster, protocol, farewell, caplog
):
    made = joined(cluster, protocol, retry_backoff_ms=50, retry_backoff_max_ms=50)
    cluster.faults.add(Error(14), 'OffsetCommit', times=None)  # as while the group settles
    cluster.faults.add(Delay(0.5), farewell, times=None)
    group = cluster.state.groups.consumers.get('g') or cluster.state.groups.get('g')
    assert group.members
    with caplog.at_level(logging.DEBUG, 'kafka.coordinator'):
        assert 3.0 < closed(cluster, made, timeout_ms=4000) <= 4.0
    assert not group.members
    assert 'was not told' not in caplog.text


class Reporter(AbstractMetricsReporter):
    def __init__(self, closed):
        self.closed = closed

    def init(self, metrics):
        pass

    def metric_change(self, metric):
        pass

    def metric_removal(self, metric):
        pass

    def configure(self, configs):
        pass

    def close(self):
        self.closed.append('reporter')


class Deserializer:
    def __init__(self, closed, name, is_broken=False):
        self.closed, self.name, self.is_broken = closed, name, is_broken

    def deserialize(self, topic, data):
        return data

    def close(self):
        self.closed.append(self.name)
        if self.is_broken:
            raise ZeroDivisionError(self.name)


def test_all_is_closed_although_a_deserializer_cannot_be(cluster):
    closed = []
    made = SimConsumer.of(
        cluster, [], 't',
        key_deserializer=Deserializer(closed, 'key', is_broken=True),
        value_deserializer=Deserializer(closed, 'value'),
        metric_reporters=[Reporter(closed)],
    )  # fmt: skip
    with pytest.raises(ZeroDivisionError, match='key'):
        made.close()
    assert closed == ['key', 'value', 'reporter']
    made.close()
    assert closed == ['key', 'value', 'reporter']


def test_callbacks_that_fail_are_all_called_and_the_consumer_is_closed(cluster):
    closed = []
    made = SimConsumer.of(
        cluster, [], 't', group_id='g', auto_offset_reset='earliest', enable_auto_commit=False,
        value_deserializer=Deserializer(closed, 'value'),
    )  # fmt: skip
    made.poll(timeout_ms=10000)

    def fails(offsets, error):
        closed.append('told')
        raise ZeroDivisionError

    futures = [made.commit_async(callback=fails) for _ in range(2)]
    made.committed(TopicPartition('t', 0))  # is answered behind them
    with pytest.raises(ZeroDivisionError):
        made.close()
    assert closed == ['told', 'told', 'value']
    assert all(future.succeeded() for future in futures)
