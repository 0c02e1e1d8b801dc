"""Producers that Python collects before they were closed, in whatever thread and place."""

from __future__ import annotations

import contextlib
import gc
import time
import weakref

import pytest

from kafka import KafkaProducer
from kafka.testing import Cluster
from test.stored import stored


@pytest.fixture
def cluster():
    with Cluster(version='4.4', topics={'t': 1}) as running:
        yield running


@pytest.fixture(autouse=True)
def no_collector():
    """Let nobody collect but who is told to."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Left:
    """A producer in a cycle that nobody has any more, with a record that lingers."""

    def __init__(self, cluster, **options):
        made = KafkaProducer(
            bootstrap_servers=cluster.bootstrap,
            linger_ms=600_000,
            delivery_timeout_ms=700_000,
            **options,
        )
        made.itself = made
        made.partitions_for('t')
        self.accumulator, self.loop = made._accumulator, made._loop
        self.future = made.send('t', b'v')
        self.is_there = weakref.ref(made)

    def collect(self, lock):
        """Collect it, in this thread."""
        with lock:
            gc.collect()

    def is_closed(self):
        deadline = time.monotonic() + 30
        while not self.loop._closed and time.monotonic() < deadline:
            time.sleep(0.01)
        gc.collect()
        return self.loop._closed and self.is_there() is None


@pytest.mark.parametrize('is_locked', [False, True])
@pytest.mark.parametrize('options', [{}, {'acks': 0}, {'acks': 1}])
def test_one_that_its_own_loop_collects_sends_what_it_has(cluster, is_locked, options):
    left = Left(cluster, **options)
    lock = left.accumulator.lock if is_locked else contextlib.nullcontext()
    left.loop.call_threadsafe(left.collect, lock)
    left.future.get(30)
    assert left.is_closed()
    assert stored(cluster) == [b'v']


def test_one_that_is_collected_where_its_lock_is_held_sends_what_it_has(cluster):
    """As by the tuple that add_callback() makes."""
    left = Left(cluster)
    left.collect(left.accumulator.lock)
    left.future.get(30)
    assert left.is_closed()
    assert stored(cluster) == [b'v']


def test_one_that_its_own_loop_collects_says_what_may_be_lost(cluster, caplog, monkeypatch):
    monkeypatch.setattr('kafka.producer.kafka._COLLECTED_SECONDS', 0.2)
    left = Left(cluster)
    (node,) = cluster.nodes
    cluster.pause(node)
    left.loop.call_threadsafe(left.collect, contextlib.nullcontext())
    assert left.is_closed()
    assert '1 records were not acknowledged and may be lost' in caplog.text
    cluster.resume(node)
