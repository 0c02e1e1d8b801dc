"""Clients that the tasks of one process use one after the other."""

from __future__ import annotations

import os

import pytest

from kafka.consumer.reader import BoundedReader
from kafka.errors import KafkaConfigurationError
from kafka.producer import KafkaProducer
from kafka.spark import clients
from kafka.testing import Cluster


@pytest.fixture
def servers():
    with Cluster(topics={'t': 1}) as cluster:
        yield cluster.bootstrap


@pytest.fixture(autouse=True)
def forget():
    yield
    clients.close_all()
    assert not clients._idle and not clients._producers


def test_the_next_task_gets_the_client_of_the_last(servers):
    config = {'bootstrap_servers': servers}
    with clients.reader_client(config) as first, BoundedReader('t', client=first) as reader:
        assert reader.read() == []
    with clients.reader_client(dict(config)) as second:
        assert second is first


def test_two_tasks_at_a_time_have_one_each(servers):
    config = {'bootstrap_servers': servers}
    with clients.reader_client(config) as first, clients.reader_client(config) as second:
        assert first is not second


def test_other_options_are_another_client(servers):
    with clients.reader_client({'bootstrap_servers': servers}) as first:
        pass
    with clients.reader_client({'bootstrap_servers': servers, 'check_crcs': False}) as second:
        assert first is not second


def test_a_client_that_a_task_failed_with_is_closed(servers):
    config = {'bootstrap_servers': servers}
    with pytest.raises(ZeroDivisionError), clients.reader_client(config) as first:
        first.connected()
        raise ZeroDivisionError
    assert repr(first) == '<ReaderClient closed>'
    with clients.reader_client(config) as second:
        assert second is not first


def test_what_a_fork_inherits_is_left_alone(servers, monkeypatch):
    config = {'bootstrap_servers': servers}
    with clients.reader_client(config) as first:
        pass
    made = clients.producer(config)
    monkeypatch.setattr(os, 'getpid', lambda: 1)
    with clients.reader_client(config) as second:
        assert second is not first
    other = clients.producer(config)
    assert other is not made
    assert repr(first) == '<ReaderClient new>'
    clients.discard(other, 10)
    monkeypatch.undo()
    assert clients.producer(config) is made


def test_only_some_without_work_are_kept(servers):
    made = []
    for number in range(clients.MOST_IDLE + 2):
        config = {'bootstrap_servers': servers, 'client_id': str(number)}
        with clients.reader_client(config) as client:
            made.append(repr(client))
    assert len(clients._idle) == clients.MOST_IDLE


def test_a_producer_is_for_all_tasks_until_it_fails(servers):
    config = {'bootstrap_servers': servers, 'linger_ms': 5}
    made = clients.producer(config)
    assert isinstance(made, KafkaProducer)
    assert clients.producer(config) is made
    clients.discard(made, 10)
    again = clients.producer(config)
    assert again is not made
    assert again.send('t', b'x').get(10).offset == 0


def test_wrong_options_are_refused(servers):
    with pytest.raises(KafkaConfigurationError), clients.reader_client({'wrong': 1}):
        pass
