"""Consumers that Python collects before they were closed, in whatever thread and place."""

from __future__ import annotations

import contextlib
import gc
import threading
import time
import weakref

import pytest

from kafka import (
    KafkaClient,
    KafkaConsumer,
    MultiProcessConsumer,
    SimpleClient,
    SimpleConsumer,
    TopicPartition,
)
from kafka.consumer import engine as engine_module
from kafka.consumer.listener import ConsumerRebalanceListener
from kafka.testing import Cluster
from test.consumer.modern import consumer_of, poll_until, write

TP = TopicPartition('t', 0)


@pytest.fixture
def cluster():
    with Cluster(version='4.4', topics={'t': 1}) as running:
        write(running, 3)
        yield running


@pytest.fixture(autouse=True)
def no_collector():
    """Collect only where a test does, and nothing but what it has made, which takes no time."""
    gc.collect()
    gc.freeze()
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()


class Listener(ConsumerRebalanceListener):
    def __init__(self, consumer):
        self.consumer = consumer


class Service(ConsumerRebalanceListener):
    """A program's object that has a consumer, and gives it everything that may refer to itself."""

    def __init__(self, cluster, options):
        self.consumer = KafkaConsumer(
            bootstrap_servers=cluster.bootstrap,
            auto_offset_reset='earliest',
            key_deserializer=self.decode,
            value_deserializer=self,
            interceptors=[self],
            default_offset_commit_callback=self.committed,
            **options,
        )
        self.consumer.subscribe(['t'], listener=self)

    def decode(self, data):
        return data

    def deserialize(self, topic, data):
        return data

    def on_consume(self, records):
        return records

    def committed(self, offsets, error):
        pass

    def on_partitions_assigned(self, partitions):
        pass

    def on_partitions_revoked(self, partitions):
        pass


def plain(cluster, options):
    made = consumer_of(cluster, 't', **options)
    return made, made


def with_a_listener(cluster, options):
    made = consumer_of(cluster, **options)
    made.subscribe(['t'], listener=Listener(made))
    return made, made


def of_a_service(cluster, options):
    service = Service(cluster, options)
    return service, service.consumer


class Left:
    """A consumer that nobody has any more and that is not collected yet; it has read a record."""

    def __init__(self, cluster, make=plain, protocol='classic', **options):
        options = {'group_id': 'g', 'group_protocol': protocol, **options}
        owner, made = make(cluster, {'auto_commit_interval_ms': 3_600_000, **options})
        poll_until(made, 1, max_records=1)
        made.itself = owner  # a cycle
        self.engine, self.loop = made._engine, made._engine.loop
        self.member_id = made.group_metadata().member_id
        self.thread = self.loop._thread
        self.is_there = weakref.ref(made)

    def is_closed(self):
        self.thread.join(20)
        gc.collect()
        return self.loop._closed and not self.thread.is_alive() and self.is_there() is None


def committed(cluster):
    with contextlib.closing(consumer_of(cluster, group_id='g')) as made:
        return made.committed(TP)


def members(cluster):
    groups = cluster.state.groups
    group = groups.consumers.get('g') or groups.get('g')
    return set(group.members)


@pytest.mark.parametrize('protocol', ['classic', 'consumer'])
@pytest.mark.parametrize('make', [plain, with_a_listener, of_a_service])
def test_one_that_is_collected_leaves_its_group_without_committing(cluster, make, protocol):
    left = Left(cluster, make, protocol)
    assert members(cluster) == {left.member_id}
    gc.collect()
    assert left.is_closed()
    assert not members(cluster)
    assert committed(cluster) is None


def test_a_cell_that_is_run_again_reads_at_once(cluster):
    options = {'group_id': 'g', 'enable_auto_commit': False}
    for _ in range(2):
        consumer = consumer_of(cluster, 't', **options)
        began = time.monotonic()
        assert len(poll_until(consumer, 3)) == 3
        assert time.monotonic() - began < 10
    consumer.close()


@pytest.mark.parametrize('lock', ['engine', 'turn', 'start', 'guard'])
def test_collecting_waits_for_no_lock(cluster, lock):
    """Python collects in the middle of any call, which may hold any of them."""
    left = Left(cluster)
    engine, loop = left.engine, left.loop
    locks = {
        'engine': engine.lock,
        'turn': loop._driver_lock,
        'start': loop._thread_lock,
        'guard': threading._active_limbo_lock,
    }
    with locks[lock]:
        began = time.monotonic()
        gc.collect()
        assert time.monotonic() - began < 0.5
    assert left.is_closed()
    assert not members(cluster)


def test_one_that_its_own_loop_collects_leaves_its_group(cluster):
    left = Left(cluster)
    left.loop.call_threadsafe(gc.collect)
    assert left.is_closed()
    assert not members(cluster)


def test_a_commit_that_is_not_answered_keeps_it_from_nothing(cluster, monkeypatch):
    monkeypatch.setattr(engine_module, '_LEAVE_SECONDS', 0.1)
    left = Left(cluster)
    (node,) = cluster.nodes
    cluster.pause(node)
    left.is_there().commit_async()
    began = time.monotonic()
    gc.collect()
    assert left.is_closed()
    assert time.monotonic() - began < 5
    cluster.resume(node)


def test_one_that_has_found_no_cluster_ends_too():
    made = KafkaConsumer('t', bootstrap_servers='127.0.0.1:1', group_id='g', api_version=(2, 0))
    made.poll(timeout_ms=50)
    thread, is_there = made._engine.loop._thread, weakref.ref(made)
    del made
    thread.join(10)
    assert not thread.is_alive() and is_there() is None


# ------------------------------------------------------------ 0.9.5


def commits(cluster):
    return sum(each.api.name == 'OFFSET_COMMIT' for each in cluster.requests)


def threads():
    return set(threading.enumerate())


def gone(is_there, before):
    """Return whether an object was collected and all threads that began since have ended."""
    gc.collect()
    deadline = time.monotonic() + 10
    while threads() - before and time.monotonic() < deadline:
        time.sleep(0.01)
    return is_there() is None and not threads() - before


@pytest.mark.parametrize('every_ms', [20, 3_600_000])
@pytest.mark.parametrize('kind', [KafkaClient, SimpleClient])
def test_a_simple_consumer_that_is_collected_ends_its_timer_and_commits_nothing(
    cluster, kind, every_ms
):
    before = threads()
    client = kind(cluster.bootstrap)
    made = SimpleConsumer(client, b'g', b't', auto_commit_every_t=every_ms)
    made.get_messages(1)
    if every_ms == 20:
        deadline = time.monotonic() + 10
        while made.count_since_commit and time.monotonic() < deadline:
            time.sleep(0.01)  # the timer commits
    count = commits(cluster)
    assert bool(count) == (every_ms == 20)
    made.itself = made
    is_there = weakref.ref(made)
    del made
    assert gone(is_there, before)
    assert commits(cluster) == count
    client.close()


@pytest.mark.parametrize('auto_commit', [False, True])
def test_a_consumer_in_processes_that_is_collected_ends_them(cluster, auto_commit):
    before = threads()
    client = KafkaClient(cluster.bootstrap)
    made = MultiProcessConsumer(client, b'g', b't', auto_commit=auto_commit)
    assert len(made.get_messages(1, timeout=20)) == 1
    processes, is_there = list(made.procs), weakref.ref(made)
    made.itself = made
    del made
    with threading._active_limbo_lock:  # the collector may run where a thread is just begun
        gc.collect()
    assert gone(is_there, before)
    assert not any(process.is_alive() for process in processes)
    client.close()
