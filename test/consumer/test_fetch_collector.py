"""What is taken from the fetch buffer, and where positions are by then."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kafka import config
from kafka.consumer.engine import Engine
from kafka.consumer.fetch.completed_fetch import CompletedFetch
from kafka.consumer.fetch_collector import FetchCollector, ListedRecords
from kafka.consumer.hand_out import HandOut, Iteration
from kafka.net.client import NetworkClient
from kafka.net.settings import NetSettings
from kafka.testing import MemoryCluster
from test.consumer.modern import FIRST
from test.consumer.written_logs import write
from test.simulation.loop import SimLoop

VALUES = [b'a', b'b', b'c', b'd']


class Rig:
    """A collector over four records that are fetched already."""

    def __init__(self, cluster, interceptors=()):
        given = {'bootstrap_servers': cluster.bootstrap, 'auto_offset_reset': 'earliest'}
        options = config.resolve(config.CONSUMER, given)
        client = NetworkClient(NetSettings.from_options(options), loop=SimLoop(cluster, []))
        self.engine = engine = Engine(options, CompletedFetch, client)
        engine.begin()
        with engine.lock:
            engine.subscription.assign_from_user([FIRST])
        engine.nudge()
        self.iteration = Iteration()
        self.collector = FetchCollector(engine, self.iteration, interceptors)
        self.wait()

    def wait(self):
        assert self.engine.wait(self.engine.fetcher.has_news, 5)

    def collect(self, most=100, closes=True):
        """Return values as a call would that returns records, or that is interrupted before."""
        self.collector.begin()
        marked = self.collector.hand_out = HandOut()
        marked.is_open = True
        found = self.collector.collect(most)
        if closes:
            marked.is_open = False
        return [record.value for records in found.values() for record in records]

    def iterate(self, count):
        """Return so many values, as iteration does."""
        self.collector.begin()
        self.collector.hand_out = HandOut()
        taken = self.collector.take_for_iteration(100)
        size, self.iteration.records = self.collector.iterate_over(taken)
        assert size >= count
        return [next(self.iteration.records).value for _ in range(count)]

    @property
    def position(self):
        with self.engine.lock:
            return self.engine.subscription.state(FIRST).position


@pytest.fixture
def cluster():
    with MemoryCluster(version='4.4', seed=1, topics={'t': 1}) as made:
        write(made.state.topics['t'].partitions[0].log, *VALUES)
        yield made


@pytest.fixture
def rig(cluster):
    made = Rig(cluster)
    yield made
    made.engine.close(1.0)


def test_listed_records_know_which_was_returned_last():
    records = ListedRecords([SimpleNamespace(offset=each, leader_epoch=1) for each in (4, 6)])
    assert (records.left(), records.last()) == (2, None)
    next(records.iterator)
    next(records.iterator)
    assert (records.left(), records.last(), records.last(without=1)) == (0, (6, 1), (4, 1))


def test_positions_move_with_what_is_collected(rig):
    assert (rig.collect(3), rig.position) == (VALUES[:3], 3)
    assert (rig.collect(), rig.position) == (VALUES[3:], 4)
    assert rig.collect() == []


def test_what_an_interrupted_call_has_taken_comes_again(rig):
    assert rig.collect(2, closes=False) == VALUES[:2]
    rig.collector.sync()
    assert rig.position == 0
    rig.wait()
    assert (rig.collect(), rig.position) == (VALUES, 4)


def test_the_rest_of_iteration_is_held_and_collected_first(rig):
    assert rig.iterate(1) == VALUES[:1]
    rig.collector.sync()
    assert rig.position == 1
    rig.collector.stop_iterating()
    assert list(rig.iteration.records) == []
    assert list(rig.collector.held) == [FIRST]
    assert (rig.collect(2), rig.collect()) == (VALUES[1:3], VALUES[3:])


def test_a_record_of_iteration_that_was_lost_comes_again(rig):
    assert rig.iterate(2) == VALUES[:2]
    rig.iteration.is_cut = True
    rig.collector.sync()
    assert rig.position == 1
    rig.wait()
    assert rig.collect() == VALUES[1:]


def test_what_is_held_of_a_partition_that_is_read_from_elsewhere_is_dropped(rig):
    rig.iterate(1)
    rig.collector.stop_iterating()
    with rig.engine.lock:
        rig.engine.subscription.seek(FIRST, 3)
    rig.collector.forget_held([FIRST])
    rig.engine.nudge()
    rig.wait()
    assert (rig.collector.held, rig.collect()) == ({}, VALUES[3:])


def test_interceptors_see_the_records_of_iteration(cluster):
    class Shortening:
        def on_consume(self, records):
            return {partition: found[:1] for partition, found in records.items()}

    rig = Rig(cluster, [Shortening()])
    assert rig.iterate(1) == VALUES[:1]
    assert list(rig.iteration.records) == []
    rig.collector.sync()
    assert rig.position == 4  # what an interceptor leaves out is not returned later
    rig.engine.close(1.0)


def test_an_interceptor_that_returns_no_dict_is_refused(cluster):
    rig = Rig(cluster, [SimpleNamespace(on_consume=list)])
    with pytest.raises(TypeError, match='must return a dict of lists'):
        rig.collector.intercepted({FIRST: []})
    rig.engine.close(1.0)
