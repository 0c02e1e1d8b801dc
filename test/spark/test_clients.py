"""Clients that the tasks of one process use one after the other."""

from __future__ import annotations

import os
import threading

import pytest

from kafka.consumer.bounded.reader import BoundedReader
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


def kept(config):
    """Return the producer that the next task would get."""
    loan = clients.producer(config)
    loan.give_back()
    return loan.producer


def is_closed(producer):
    return repr(producer).endswith(' closed>')


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


def test_a_client_that_cannot_be_closed_does_not_hide_what_failed(servers, monkeypatch, caplog):
    config = {'bootstrap_servers': servers}
    with pytest.raises(ZeroDivisionError), clients.reader_client(config) as lent:
        monkeypatch.setattr(lent, 'close', lambda: [].pop())
        raise ZeroDivisionError
    assert 'cleaning up after ZeroDivisionError failed' in caplog.text


def test_what_a_fork_inherits_is_left_alone(servers, monkeypatch):
    config = {'bootstrap_servers': servers}
    with clients.reader_client(config) as first:
        pass
    made = kept(config)
    monkeypatch.setattr(os, 'getpid', lambda: 1)
    with clients.reader_client(config) as second:
        assert second is not first
    loan = clients.producer(config)
    assert loan.producer is not made
    assert repr(first) == '<ReaderClient new>'
    loan.give_up()
    monkeypatch.undo()
    made.close()


def test_only_some_without_work_are_kept(servers):
    made = []
    for number in range(clients.MOST_IDLE + 2):
        config = {'bootstrap_servers': servers, 'client_id': str(number)}
        with clients.reader_client(config) as client:
            made.append(repr(client))
    assert len(clients._idle) == clients.MOST_IDLE


def test_clients_for_prepared_transactions_are_kept_like_those_of_readers(servers):
    config = {'bootstrap_servers': servers}
    with clients.prepared(config) as first, clients.reader_client(config):
        pass
    with clients.prepared(config) as second:
        assert second is first


# ------------------------------------------------------------ producers


def test_a_producer_is_for_all_tasks(servers):
    config = {'bootstrap_servers': servers, 'linger_ms': 5}
    first, second = clients.producer(config), clients.producer(config)
    assert isinstance(first.producer, KafkaProducer)
    assert first.producer is second.producer
    first.give_back()
    second.give_back()
    assert kept(config) is first.producer


def test_who_fails_takes_the_producer_from_no_other(servers):
    config = {'bootstrap_servers': servers, 'linger_ms': 5}
    bad, good = clients.producer(config), clients.producer(config)
    bad.give_up()
    assert kept(config) is not good.producer
    assert good.producer.send('t', b'x').get(10).offset == 0
    good.give_back()
    assert is_closed(good.producer)


def test_what_waits_is_dropped_with_the_last_who_had_it(servers):
    loan = clients.producer({'bootstrap_servers': servers, 'linger_ms': 60000})
    future = loan.producer.send('t', b'x')
    loan.give_up()
    assert future.failed()


def test_few_producers_without_work_are_kept(servers):
    made = [kept({'bootstrap_servers': servers, 'linger_ms': each}) for each in range(6)]
    assert [is_closed(each) for each in made] == [True, True, False, False, False, False]
    assert len(clients._producers) == clients.MOST_IDLE_PRODUCERS


def test_a_producer_that_tasks_have_is_not_closed_for_there_being_many(servers):
    loan = clients.producer({'bootstrap_servers': servers})
    for each in range(6):
        kept({'bootstrap_servers': servers, 'linger_ms': each})
    assert not is_closed(loan.producer)
    loan.give_back()


def test_a_producer_that_was_idle_for_long_is_closed_by_the_next_task(servers, monkeypatch):
    first = kept({'bootstrap_servers': servers})
    monkeypatch.setattr(clients, 'IDLE_SECONDS', 0.0)
    loan = clients.producer({'bootstrap_servers': servers, 'linger_ms': 5})
    assert is_closed(first)
    loan.give_back()
    assert is_closed(loan.producer)


def test_a_producer_that_takes_long_to_make_keeps_nobody_else_waiting(servers, monkeypatch):
    begun, may_end = threading.Event(), threading.Event()

    class Slow(KafkaProducer):
        def __init__(self, **config):
            begun.set()
            assert may_end.wait(20)
            super().__init__(**config)

    loans = []
    monkeypatch.setattr(clients, 'KafkaProducer', Slow)
    config = {'bootstrap_servers': servers}
    slow = threading.Thread(target=lambda: loans.append(clients.producer(config)))
    slow.start()
    assert begun.wait(20)
    monkeypatch.setattr(clients, 'KafkaProducer', KafkaProducer)
    clients.producer({**config, 'linger_ms': 5}).give_back()
    may_end.set()
    slow.join(20)
    loans[0].give_back()


def test_a_producer_that_could_not_be_made_is_made_by_the_next(servers, monkeypatch):
    def fail(**config):
        raise ZeroDivisionError

    config = {'bootstrap_servers': servers}
    with monkeypatch.context() as patch:
        patch.setattr(clients, 'KafkaProducer', fail)
        with pytest.raises(ZeroDivisionError):
            clients.producer(config)
    assert isinstance(kept(config), KafkaProducer)


def test_wrong_options_are_refused(servers):
    with pytest.raises(KafkaConfigurationError), clients.reader_client({'wrong': 1}):
        pass
