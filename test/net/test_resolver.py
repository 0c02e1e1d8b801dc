"""Names of hosts: written out, known, unknown, and look-ups that hang."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from kafka.errors import KafkaConnectionError, KafkaTimeoutError
from kafka.net.loop import executor
from kafka.net.resolver import Address, literal


def test_a_literal_needs_no_look_up(loop, monkeypatch):
    monkeypatch.setattr(socket, 'getaddrinfo', None)
    assert loop.run(loop.resolve('127.0.0.1', 9092, 1), 5) == [
        Address(socket.AF_INET, ('127.0.0.1', 9092))
    ]
    assert literal('::1', 5) == [Address(socket.AF_INET6, ('::1', 5, 0, 0))]
    assert literal('localhost', 5) == []


def test_a_name_gives_all_its_addresses_once(loop, monkeypatch):
    def answer(host, port, *rest):
        one = (socket.AF_INET, socket.SOCK_STREAM, 6, '', ('10.0.0.1', port))
        two = (socket.AF_INET, socket.SOCK_STREAM, 6, '', ('10.0.0.2', port))
        return [one, two, one]

    monkeypatch.setattr(socket, 'getaddrinfo', answer)
    found = loop.run(loop.resolve('broker', 9092, 1), 5)
    assert [each.ip for each in found] == ['10.0.0.1', '10.0.0.2']


def test_an_unknown_name_says_its_stage(loop, monkeypatch):
    def fail(*args):
        raise socket.gaierror(-2, 'Name or service not known')

    monkeypatch.setattr(socket, 'getaddrinfo', fail)
    with pytest.raises(KafkaConnectionError, match='broker cannot be resolved') as raised:
        loop.run(loop.resolve('broker', 9092, 1), 5)
    assert raised.value.stage == 'DNS'


def test_a_name_that_is_none(loop):
    with pytest.raises(KafkaConnectionError, match='cannot be resolved'):
        loop.run(loop.resolve('a' * 70 + '.example', 9092, 1), 5)


def test_look_ups_that_hang_hold_nothing_up_and_are_few(loop, monkeypatch):
    end = threading.Event()
    monkeypatch.setattr(socket, 'getaddrinfo', lambda *args: end.wait(30) and [])
    monkeypatch.setattr(executor, 'MAX_THREADS', 1)
    began = time.monotonic()
    with pytest.raises(KafkaTimeoutError, match='the look-up of broker took longer') as raised:
        loop.run(loop.resolve('broker', 9092, 0.1), 5)
    assert 0.1 <= time.monotonic() - began < 8
    assert raised.value.stage == 'DNS'
    with pytest.raises(KafkaConnectionError, match='1 calls hang, the look-up of other'):
        loop.run(loop.resolve('other', 9092, 0.1), 5)
    end.set()
    assert loop.wait(lambda: loop._executor.running == 0, 5)


def test_a_system_without_threads_is_told_as_a_broken_connection(loop, monkeypatch):
    def fail(thread):
        raise RuntimeError("can't start new thread")

    loop.start()
    monkeypatch.setattr(threading.Thread, 'start', fail)
    for _ in range(executor.MAX_THREADS + 1):
        with pytest.raises(KafkaConnectionError, match="no thread: can't start") as raised:
            loop.run(loop.resolve('broker', 9092, 1), 5)
    assert raised.value.stage == 'DNS'
    assert loop._executor.running == 0


@pytest.mark.parametrize('port', [0, -1, 65536, 65536 + 9092])
@pytest.mark.parametrize('host', ['127.0.0.1', 'localhost'])
def test_a_port_that_there_is_not_is_never_another_one(loop, host, port):
    with pytest.raises(KafkaConnectionError, match='%d: a port is from 1 to 65535' % port) as told:
        loop.run(loop.resolve(host, port, 1), 5)
    assert told.value.stage == 'DNS'
