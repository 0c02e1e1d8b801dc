"""Constructors where a connection ends as soon as it is made, or descriptors have run out."""

from __future__ import annotations

import errno
import selectors
import socket
from types import SimpleNamespace

import pytest

from kafka import KafkaConsumer, KafkaProducer
from kafka.conn import BrokerConnection
from kafka.errors import KafkaConnectionError, NoBrokersAvailable
from kafka.evented import stepped_socket
from kafka.net.loop.loop import Loop
from kafka.net.loop.selector import Poller
from kafka.net.node_connection import session_of
from kafka.net.pool import Pool
from kafka.net.settings import NetSettings, parse_servers
from kafka.protocol import api
from kafka.protocol.frames import frame
from test.hostile_servers import Broker, Unframed

CLIENTS = [KafkaProducer, KafkaConsumer]


def used_up(*_, **__):
    raise OSError(errno.EMFILE, 'Too many open files')


class Unasked(Broker):
    """A broker that sends something behind the list of its versions that nobody has asked for."""

    def __init__(self):
        super().__init__()
        self.answers[18] = self.answer_too_much

    def answer_too_much(self, header, _):
        listed = api.encode_response(self.versions(), header.api_version, header.correlation_id)
        return Unframed(frame(listed) + frame(b'\0\0\0\x07more'))


def test_a_connection_that_ends_at_once_is_a_failed_try():
    loop = Loop()
    with Unasked() as broker:
        pool = Pool(loop, NetSettings(servers=parse_servers(broker.address)))
        pool._connections.family.lists_versions = True  # as another broker of the cluster has shown
        with pytest.raises(NoBrokersAvailable, match='lost as soon as it was ready') as raised:
            loop.run(pool.bootstrap(0.2), 10)
        pool.close()
    loop.close()
    assert {each.stage for each in raised.value.attempts} == {'Metadata'}


def test_a_link_without_a_session_is_a_connection_error():
    with pytest.raises(KafkaConnectionError, match='lost as soon as it was ready'):
        session_of(SimpleNamespace(session=None))


@pytest.mark.parametrize('client', CLIENTS)
def test_constructors_name_that_descriptors_have_run_out(client, monkeypatch):
    monkeypatch.setattr(selectors, 'DefaultSelector', used_up)
    with pytest.raises(KafkaConnectionError, match='Too many open files') as raised:
        client(bootstrap_servers='127.0.0.1:1')
    assert isinstance(raised.value.__cause__, OSError)


def test_half_a_poller_is_closed_again(monkeypatch):
    made = []

    class Selector(selectors.SelectSelector):
        def close(self):
            made.append('closed')
            super().close()

    monkeypatch.setattr(selectors, 'DefaultSelector', Selector)
    monkeypatch.setattr(socket, 'socketpair', used_up)
    poller = Poller()
    with pytest.raises(KafkaConnectionError):
        poller.open()
    assert made == ['closed']
    assert not poller.is_open


def test_an_evented_connection_has_the_project_s_error_too(monkeypatch):
    conn = BrokerConnection('127.0.0.1', 1, socket.AF_INET)
    monkeypatch.setattr(stepped_socket.socket, 'socket', used_up)
    with pytest.raises(KafkaConnectionError, match='Too many open files') as raised:
        conn.connect()
    assert isinstance(raised.value.__cause__, OSError)
    assert conn.disconnected()
    assert conn.attempts
