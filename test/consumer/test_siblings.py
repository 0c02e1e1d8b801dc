"""A warning about another consumer of the process that keeps its share of a group."""

from __future__ import annotations

import gc
import logging
import threading

import pytest

from kafka import TopicPartition
from kafka.consumer import siblings
from kafka.testing import MemoryCluster
from test.consumer.written_logs import numbered, write
from test.simulation.reader import SimConsumer


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.setattr(siblings, '_told', set())
    with MemoryCluster(version='4.4', seed=1, topics={'t': 1}) as made:
        write(made.state.topics['t'].partitions[0].log, *numbered(5))
        yield made


@pytest.fixture(autouse=True)
def at_warning(caplog):
    caplog.set_level(logging.WARNING, 'kafka.consumer')


def new(cluster, protocol='classic', group='g', **options):
    options = {'group_id': group, 'group_protocol': protocol, **options}
    return SimConsumer.of(cluster, [], 't', enable_auto_commit=False, **options)


@pytest.mark.parametrize('protocol', ['classic', 'consumer'])
def test_a_consumer_that_is_not_polled_any_more_is_named_once(cluster, protocol, caplog):
    first = new(cluster, protocol)
    first.poll(timeout_ms=5000)
    second = new(cluster, protocol)
    second.poll(timeout_ms=2000)
    assert 'another KafkaConsumer' not in caplog.text  # the first may be about to be collected
    second.poll(timeout_ms=20000)
    assert caplog.text.count('group=g: another KafkaConsumer of this process') == 1
    first.close()
    second.close()


def test_members_that_both_poll_may_share_a_group(cluster, caplog):
    both = [new(cluster), new(cluster)]
    for _ in range(20):
        for each in both:
            each.poll(timeout_ms=1000)
    for each in both:
        each.close()
    assert 'another KafkaConsumer' not in caplog.text


@pytest.mark.parametrize('case', ['closed', 'other group', 'never polled', 'collected', 'assigned'])
def test_nothing_is_said_of_what_is_no_idle_member_of_the_group(cluster, case, caplog):
    first = new(cluster, group='other' if case == 'other group' else 'g')
    if case == 'assigned':
        first.unsubscribe()
        first.assign([TopicPartition('t', 0)])
    if case != 'never polled':
        first.poll(timeout_ms=5000)
    if case == 'closed':
        first.close()
    if case == 'collected':
        first = None
        gc.collect()
    second = new(cluster)
    second.poll(timeout_ms=20000)
    second.close()
    if first is not None:
        first.close()
    assert 'another KafkaConsumer' not in caplog.text


def test_a_member_with_a_share_is_patient_with_one_that_works_at_its_records(cluster, caplog):
    slow, quick = new(cluster), new(cluster)
    for _ in range(10):
        slow.poll(timeout_ms=500)
        quick.poll(timeout_ms=500)
    assert quick.assignment() or slow.assignment()
    holder = quick if quick.assignment() else slow
    holder.poll(timeout_ms=20000)
    assert 'another KafkaConsumer' not in caplog.text
    slow.close()
    quick.close()


def test_one_that_waits_in_a_long_poll_is_not_idle(cluster, caplog):
    first, is_over, is_inside = new(cluster), threading.Event(), threading.Event()
    first.poll(timeout_ms=5000)

    def wait(guard):
        with guard:
            is_inside.set()
            is_over.wait(10)

    thread = threading.Thread(target=wait, args=[first._guard])
    thread.start()
    is_inside.wait(10)
    second = new(cluster)
    second.poll(timeout_ms=20000)
    is_over.set()
    thread.join()
    assert 'another KafkaConsumer' not in caplog.text
    second.poll(timeout_ms=20000)
    assert 'another KafkaConsumer' in caplog.text
    first.close()
    second.close()


def test_waiting_for_the_next_check_costs_an_idle_consumer_nothing_afterwards(cluster):
    made = new(cluster)
    made.poll(timeout_ms=70000)
    assert made._modern._siblings.next_at == float('inf')
    made.close()
