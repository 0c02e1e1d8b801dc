"""How a consumer begins and ends, with brokers of all ages and with none."""

from __future__ import annotations

import functools
import gc
import os
import pickle
import threading
import time
import warnings

import pytest

from kafka import KafkaConsumer, OffsetAndMetadata, config
from kafka.consumer.engine import Engine
from kafka.consumer.fetch.completed_fetch import CompletedFetch
from kafka.consumer.fetch_collector import FetchCollector
from kafka.consumer.hand_out import HandOut, Iteration
from kafka.errors import (
    IllegalStateError,
    KafkaError,
    NoBrokersAvailable,
    UnsupportedVersionError,
)
from kafka.net.client import NetworkClient
from kafka.net.settings import NetSettings
from kafka.testing import Cluster, MemoryCluster
from kafka.testing.errors import LEADER_NOT_AVAILABLE
from kafka.testing.faults import Error, Hang
from test.consumer.modern import FIRST, consumer_of, poll_until, write
from test.consumer.written_logs import write as write_to
from test.simulation.loop import SimLoop
from test.simulation.reader import SimConsumer

pytestmark = pytest.mark.once

NOWHERE = '127.0.0.1:1'


def test_without_brokers_the_constructor_says_so():
    began = time.monotonic()
    with pytest.raises(NoBrokersAvailable):
        KafkaConsumer('t', bootstrap_servers=NOWHERE, api_version_auto_timeout_ms=100)
    assert time.monotonic() - began < 10


def test_with_api_version_it_reaches_nobody_and_polls_all_the_same():
    made = KafkaConsumer('t', bootstrap_servers=NOWHERE, api_version=(2, 8), group_id='g')
    assert made.poll(timeout_ms=100) == {}
    made.close()


def test_with_api_version_it_finds_brokers_at_the_first_poll():
    with Cluster(version='2.8', topics={'t': 1}) as cluster:
        write(cluster, 3)
        with consumer_of(cluster, 't', api_version=(2, 8)) as made:
            assert len(poll_until(made, 3)) == 3


@pytest.mark.parametrize('release', ['0.8.0', '0.8.1', '0.8.2', '0.9', '0.10.0', '0.11', '4.4'])
def test_brokers_of_all_ages_are_read(release):
    with Cluster(version=release, topics={'t': 1}) as cluster:
        write(cluster, 3)
        group = None if release == '0.8.0' else 'g'
        with consumer_of(cluster, 't', group_id=group) as made:
            assert len(poll_until(made, 3)) == 3
            assert made.config['api_version'][:2] == tuple(map(int, release.split('.')))[:2]
            if group:
                made.commit()
                assert made.committed(FIRST) == 3


def test_options_that_the_brokers_cannot_serve_are_refused():
    with Cluster(version='2.8', topics={'t': 1}) as cluster:
        with consumer_of(cluster, 't', group_id='g', group_protocol='consumer') as made:
            with pytest.raises(UnsupportedVersionError, match=r'4\.0'):
                poll_until(made, 1, seconds=5)


def test_closing_ends_the_thread():
    before = threading.active_count()
    with Cluster(topics={'t': 1}) as cluster:
        made = consumer_of(cluster, 't', group_id='g')
        made.poll(timeout_ms=100)
        made.close()
    assert threading.active_count() == before


def test_a_consumer_that_is_collected_ends_its_thread():
    before = threading.active_count()
    with Cluster(topics={'t': 1}) as cluster:
        made = consumer_of(cluster, 't')
        made.poll(timeout_ms=50)
        del made
    deadline = time.monotonic() + 10
    while threading.active_count() > before:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_consumer_pickles_as_its_configuration():
    with Cluster(topics={'t': 1}) as cluster:
        write(cluster, 2)
        with consumer_of(cluster, 't') as made:
            data = pickle.dumps(made)
        with pickle.loads(data) as other:
            assert len(poll_until(other, 2)) == 2


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='there is no fork')
def test_a_forked_child_is_told_and_the_parent_goes_on():
    with Cluster(topics={'t': 1}) as cluster:
        write(cluster, 2)
        with consumer_of(cluster, 't') as made:
            poll_until(made, 1, max_records=1)
            child = os.fork()
            if not child:
                try:
                    made.poll(timeout_ms=100)
                except IllegalStateError:
                    made.close()
                    os._exit(7)
                finally:
                    os._exit(1)
            assert os.waitpid(child, 0)[1] == 7 << 8
            assert len(poll_until(made, 1)) == 1


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='there is no fork')
def test_a_forked_child_leaves_no_coroutine_behind_that_was_not_awaited():
    with Cluster(topics={'t': 1}) as cluster, consumer_of(cluster, 't', group_id='g') as made:
        child, code = os.fork(), 1
        if not child:
            try:
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter('always')
                    wanted = {FIRST: OffsetAndMetadata(0, '')}
                    for call in (made.topics, functools.partial(made.commit, wanted)):
                        with pytest.raises(IllegalStateError):
                            call()
                    gc.collect()
                code = 1 if told else 7
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 7 << 8


def test_figures_tell_what_was_read():
    with Cluster(topics={'t': 1}) as cluster:
        write(cluster, 20)
        with consumer_of(cluster, 't', group_id='g', max_poll_records=5) as made:
            poll_until(made, 5)
            made.commit()
            found = made.metrics()
            assert found['consumer-fetch-manager-metrics']['records-lag-max'] == 15
            assert found['consumer-coordinator-metrics']['assigned-partitions'] == 1
            assert found['consumer-coordinator-metrics']['commit-latency-max'] > 0
            assert found['consumer-metrics']['last-poll-seconds-ago'] < 60
        with consumer_of(cluster, 't', metrics_enabled=False) as made:
            assert made.metrics() is None


@pytest.mark.parametrize('how', ['subscribed', 'assigned', 'assigned, with a position'])
def test_a_topic_whose_leaders_are_not_elected_yet_is_asked_about_until_they_are(how):
    """Also without group, where no coordinator tells of it."""
    with MemoryCluster(version='4.4', seed=1, topics={'t': 1}) as cluster:
        write_to(cluster.state.topics['t'].partitions[0].log, b'a')
        made = SimConsumer.of(cluster, [], auto_offset_reset='earliest', group_id=None)
        fault = cluster.faults.add(Error(LEADER_NOT_AVAILABLE), 'Metadata', times=4)
        if how == 'subscribed':
            made.subscribe(['t'])
        else:
            made.assign([FIRST])
        if how.endswith('position'):
            made.seek(FIRST, 0)
        found = {}
        for _ in range(20):
            found = found or made.poll(timeout_ms=500)
        assert list(found) == [FIRST] and fault.hits == 4
        made.close()


class CallbackConsumer:
    """A second face: records go to a callback, nothing waits, and there is no thread."""

    def __init__(self, cluster, partitions, on_record, **options):
        given = {'bootstrap_servers': cluster.bootstrap, 'auto_offset_reset': 'earliest'}
        options = config.resolve(config.CONSUMER, {**given, **options})
        client = NetworkClient(NetSettings.from_options(options), loop=SimLoop(cluster, []))
        self.engine = Engine(options, CompletedFetch, client)
        self.error = None
        self._collector = FetchCollector(self.engine, Iteration())
        self._on_record = on_record
        self.engine.loop.spawn(self._run(partitions))

    async def _run(self, partitions):
        engine = self.engine
        try:
            await engine.begin_in_turns()
            with engine.lock:
                engine.subscription.assign_from_user(partitions)
            engine.following.subscribed()
            while self.error is None:
                self._collector.hand_out = HandOut()
                for records in self._collector.collect(100).values():
                    for record in records:
                        self._on_record(record)
                self.error = engine.next_error()
                await engine.loop.sleep(0.01)
        except KafkaError as error:
            self.error = error

    def close(self):
        self.engine.close(1.0)


def test_a_second_face_gives_records_to_a_callback():
    threads, found = threading.active_count(), []
    with MemoryCluster(version='4.4', seed=1, topics={'t': 1}) as cluster:
        log = cluster.state.topics['t'].partitions[0].log
        write_to(log, b'a', b'b')
        made = CallbackConsumer(cluster, [FIRST], lambda record: found.append(record.value))
        assert found == []  # nothing has happened before the loop is driven
        assert made.engine.loop.wait(lambda: len(found) == 2, 5)
        write_to(log, b'c')
        assert made.engine.loop.wait(lambda: len(found) == 3, 5)
        with made.engine.lock:
            assert made.engine.subscription.state(FIRST).position == 3
        made.close()
    assert (found, made.error, threading.active_count()) == ([b'a', b'b', b'c'], None, threads)


def test_a_second_face_hears_of_brokers_that_are_not_there():
    with MemoryCluster(version='4.4', seed=1, topics={'t': 1}) as cluster:
        cluster.faults.add(Hang(), 'ApiVersions', times=None)
        cluster.faults.add(Hang(), 'Metadata', times=None)
        made = CallbackConsumer(cluster, [FIRST], print, bootstrap_timeout_ms=500)
        assert made.engine.loop.wait(lambda: made.error, 60)
        assert isinstance(made.error, NoBrokersAvailable)
        made.close()
