"""close() of a modern consumer: how its time is shared where nobody answers, on a virtual clock."""

from __future__ import annotations

import logging
import sys
import threading

import pytest

from kafka import ConsumerRebalanceListener, OffsetAndMetadata, TopicPartition
from kafka.errors import IllegalStateError
from kafka.metrics.metrics_reporter import AbstractMetricsReporter
from kafka.testing import MemoryCluster
from kafka.testing.faults import Delay, Error
from test.consumer.written_logs import numbered, write
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


def test_a_second_thread_does_not_close_what_the_first_is_closing(cluster, monkeypatch):
    made, calls = SimConsumer.of(cluster, []), []
    is_over, is_inside, close = threading.Event(), threading.Event(), made._engine.close

    def wait(seconds):
        calls.append(seconds)
        is_inside.set()
        is_over.wait(10)
        close(seconds)

    monkeypatch.setattr(made._engine, 'close', wait)
    thread = threading.Thread(target=made.close)
    thread.start()
    is_inside.wait(10)
    with pytest.raises(IllegalStateError, match='is being used by thread'):
        made.close()
    is_over.set()
    thread.join()
    made.close()
    assert len(calls) == 1


# ------------------------------------------------------------ sys.exit() of a signal's handler


def close_and_exit(made):
    made.close()
    sys.exit(3)


def interrupted_in_wait(made, handler=close_and_exit):
    """Let the handler of a signal run in the next wait of a consumer."""
    engine, loop = made._engine, made._engine.loop

    def interrupt(waited_for, *seconds):
        del engine.run, loop.wait
        if hasattr(waited_for, 'close'):
            waited_for.close()
        handler(made)

    engine.run = loop.wait = interrupt


TP = TopicPartition('t', 0)


@pytest.mark.parametrize(
    'verb',
    [
        lambda made: made.poll(timeout_ms=10000),
        next,
        lambda made: made.poll_arrow(timeout_ms=10000),
        lambda made: made.commit({TP: OffsetAndMetadata(3, '', -1)}),
        lambda made: made.end_offsets([TP]),
        lambda made: made.committed(TP),
    ],
)
@pytest.mark.parametrize('protocol', ['classic', 'consumer'])
def test_a_handler_that_closes_and_exits_while_a_verb_waits_ends_the_program(
    cluster, verb, protocol
):
    made = joined(cluster, protocol, enable_auto_commit=False)
    made.poll(timeout_ms=0)
    interrupted_in_wait(made)
    with pytest.raises(SystemExit) as raised:
        verb(made)
    assert raised.value.code == 3
    assert raised.value.__cause__ is None


@pytest.mark.parametrize('method', ['on_partitions_assigned', 'on_partitions_revoked'])
def test_a_handler_that_closes_and_exits_in_a_listener_ends_the_program(cluster, method):
    made = SimConsumer.of(cluster, [], group_id='g', auto_offset_reset='earliest')
    listener = ConsumerRebalanceListener()
    setattr(listener, method, lambda partitions: close_and_exit(made))
    made.subscribe(['t'], listener=listener)
    with pytest.raises(SystemExit):
        for _ in range(20):
            made.poll(timeout_ms=1000)
            made.enforce_rebalance()


def test_a_callback_that_fails_does_not_hide_what_ended_a_commit(cluster, caplog):
    made = joined(cluster, 'classic', enable_auto_commit=False)
    made.commit_async({TP: OffsetAndMetadata(2, '', -1)}, callback=lambda *_: 1 / 0)
    made.committed(TP)  # is answered after it
    interrupted_in_wait(made, lambda made: sys.exit(3))
    with pytest.raises(SystemExit):
        made.commit({TP: OffsetAndMetadata(3, '', -1)})
    assert 'ZeroDivisionError' in caplog.text
    made.close()


def test_a_deserializer_that_cannot_be_closed_does_not_hide_the_error_of_a_block(cluster, caplog):
    closed = []
    with pytest.raises(SystemExit), SimConsumer.of(
        cluster, [], 't', value_deserializer=Deserializer(closed, 'value', is_broken=True)
    ):  # fmt: skip
        sys.exit(3)
    assert closed == ['value']
    assert 'ZeroDivisionError: value' in caplog.text


def test_a_closed_consumer_refers_to_no_frame_of_its_last_next():
    """On Python 3.8 and 3.9 that frame is kept, and refers to the callers of next()."""
    with MemoryCluster(version='4.4', seed=1, topics={'t': 1}) as cluster:
        write(cluster.state.topics['t'].partitions[0].log, b'a', b'b')
        made = SimConsumer.of(cluster, [], 't', auto_offset_reset='earliest')
        assert next(made).offset == 0
        made.close()
        assert made._iteration.last_next is None
        with pytest.raises(StopIteration):
            next(made)


def test_whether_it_is_closed_is_known_by_the_name_of_1_x(cluster):
    made = SimConsumer.of(cluster, [])
    assert made._closed is False
    made.close()
    assert made._closed is True
