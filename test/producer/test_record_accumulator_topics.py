"""Topics that nobody uses any more are forgotten, and come back when somebody does (KIP-526)."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from kafka import KafkaProducer
from kafka.producer.buffer import Ticket
from kafka.producer.engine import ProducerEngine
from kafka.producer.topic_queue import TopicQueue
from kafka.testing import Cluster
from test.producer.test_record_accumulator import Machine


def idle(machine, seconds=10.0):
    """Look, and again when the time is over."""
    found = machine.accumulator.forget_idle(machine.now, seconds)
    found += machine.accumulator.forget_idle(machine.now, seconds)
    machine.now += seconds
    return found + machine.accumulator.forget_idle(machine.now, seconds)


def test_a_topic_is_forgotten_after_its_time():
    machine = Machine()
    assert idle(machine) == ['t']
    assert machine.accumulator.topics() == []


def test_one_in_use_is_kept():
    machine = Machine(linger=0.0)
    machine.append()
    assert idle(machine) == []  # it waits
    machine.accumulator.forget_idle(machine.now, 10.0)
    batch = machine.take()
    assert idle(machine) == []  # it is on the wire
    machine.done(batch)
    assert idle(machine) == ['t']


def test_what_was_asked_for_lately_is_kept():
    machine = Machine()
    machine.accumulator.forget_idle(machine.now, 10.0)
    machine.now += 9.0
    machine.accumulator.topic('t')
    machine.now += 9.0
    assert machine.accumulator.forget_idle(machine.now, 10.0) == []


def test_a_value_in_a_box_keeps_its_topic():
    machine = Machine()
    machine.accumulator.open_box(machine.topic, machine.now, machine.now)
    machine.topic.put_in_box(b'1')
    assert idle(machine) == []


def test_who_still_has_the_queue_brings_it_back():
    machine = Machine()
    idle(machine)
    batch, _ = machine.append()
    assert machine.accumulator.topics() == [machine.topic]
    assert machine.take() is batch


@pytest.mark.parametrize('way', ['append', 'many', 'box', 'late'])
def test_who_still_has_a_queue_whose_place_is_taken_uses_the_new_one(way):
    machine = Machine(partitions=2)
    old = machine.topic
    idle(machine)
    machine.topic = new = machine.accumulator.topic('t')
    accumulator = machine.accumulator
    if way == 'append':
        machine.topic = old
        machine.append(partition=1)
    elif way == 'many':
        machine.topic = old
        many = machine.many([b'1', b'2', b'3'], partition=1)
        assert not isinstance(accumulator.append_many(many, machine.now), Ticket)
    else:
        if way == 'box':
            accumulator.open_box(old, machine.now, machine.now)
        old.put_in_box(b'1')
        assert not old.is_watched
        accumulator.watch_box(old)
        accumulator.sweep(machine.now)
    assert sorted(new.partitions) == [0, 1]
    assert any(queue.waiting or queue.open.values for queue in new.queues.values())
    assert accumulator.topics() == [new]
    assert not old.box
    assert not any(queue.waiting or queue.open.values for queue in old.queues.values())


def test_a_value_that_comes_while_a_box_moves_to_the_new_queue_moves_too():
    machine = Machine()
    old, accumulator = machine.topic, machine.accumulator
    idle(machine)
    new = accumulator.topic('t')

    class Box(list):
        """While values of another are added to it, a thread puts one there."""

        def __iadd__(self, values):
            super().__iadd__(values)
            if old.box == [b'1']:
                old.put_in_box(b'2')
            return self

    new.box = Box()
    old.put_in_box(b'1')
    accumulator.watch_box(old)
    accumulator.watch_box(old)  # of the thread that has put the other there
    assert new.box == [b'1', b'2'] and not old.box


def test_who_sees_the_partitions_of_a_topic_sees_which_have_a_leader(monkeypatch):
    """A partitioner of the program's is given both, without the lock."""
    slot, seen = TopicQueue.partitions, []

    def set_partitions(queue, partitions):
        slot.__set__(queue, partitions)
        seen.append((partitions, queue.available))

    topic = Machine(partitions=1).topic
    monkeypatch.setattr(TopicQueue, 'partitions', property(slot.__get__, set_partitions))
    topic.update([0, 1, 2], [0, 2])
    assert seen == [((0, 1, 2), (0, 2))]


class Engine(ProducerEngine):
    """What asks for the queue of a topic of a cluster that is known."""

    def __init__(self, accumulator, cluster):
        self.accumulator = accumulator
        self.pool = SimpleNamespace(cluster=cluster)

    def _find(self, topic, deadline):
        pass


class Known:
    """What is known of one topic."""

    partition_states = {0: 'led'}

    def partitions_for_topic(self, topic):
        return set(self.partition_states)

    available_partitions_for_topic = partitions_for_topic


def test_partitions_that_come_while_a_queue_is_told_of_the_others_are_kept(monkeypatch):
    """The thread that runs the loop hears of them, and tells the queue first."""
    cluster, accumulator = Known(), Machine().accumulator
    update = accumulator.update

    def update_late(queue, partitions, available):
        monkeypatch.undo()
        cluster.partition_states = {0: 'led', 1: 'led'}
        update(queue, {0, 1}, {0, 1})
        update(queue, partitions, available)

    monkeypatch.setattr(accumulator, 'update', update_late)
    assert Engine(accumulator, cluster).wait_for_queue('new', 0.0).partitions == (0, 1)


def test_a_producer_forgets_what_it_knew_of_idle_topics():
    """Of fifty topics that got a record each nothing is left."""
    clock = [time.monotonic()]
    topics = dict.fromkeys(['last', *('topic-%d' % number for number in range(50))], 1)
    with Cluster(version='4.4', topics=topics) as cluster:
        with KafkaProducer(
            bootstrap_servers=cluster.bootstrap,
            metadata_max_idle_ms=5000,
            max_block_ms=20000,
            retry_backoff_ms=1,
            retry_backoff_max_ms=10,
        ) as producer:
            producer._engine.topic_updater.now = lambda: clock[0]
            for number in range(50):
                producer.send('topic-%d' % number, b'1').get(20)
            assert len(producer._accumulator.topics()) == 50
            for _ in range(12):
                clock[0] += 1.0
                producer.send('last', b'1').get(20)
                producer._loop.run(producer._engine.pool.refreshed(), 20)
            assert [each.topic for each in producer._accumulator.topics()] == ['last']
            assert producer._engine.pool.cluster.topics() == {'last'}
            assert producer._engine.pool.topics.topics() == ['last']
            assert list(producer._accumulator.fast) == ['last']
            groups = {group for group in producer.metrics() if 'topic-metrics' in group}
            assert groups == {'producer-topic-metrics.last'}
            producer.send('topic-0', b'2').get(20)
