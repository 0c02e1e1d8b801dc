"""Blocking clients whose broker has closed their connections while they were idle, or has moved.

No call fails, and nothing is sent twice: an end is seen before a request is written.
"""

from __future__ import annotations

import contextlib
import logging
import socket

import pytest

from kafka import (
    KafkaClient,
    KafkaConsumer,
    KeyedProducer,
    SimpleClient,
    SimpleConsumer,
    SimpleProducer,
)
from kafka.errors import FailedPayloadsError
from kafka.testing import Cluster
from test.stored import stored

CLIENTS = [KafkaClient, SimpleClient]


@contextlib.contextmanager
def running(**options):
    with Cluster(topics={'t': 1}, **{'version': '4.4', **options}) as cluster:
        yield cluster


def close_connections(cluster):
    """Let the broker close all connections, as it does with those that are idle."""
    (node,) = cluster.nodes
    cluster.kill(node)
    cluster.restart(node)


@pytest.mark.parametrize('version', ['0.8.2.2', '0.9.0.1', '4.4'])
@pytest.mark.parametrize('kind', CLIENTS)
def test_a_synchronous_producer_sends_after_it_was_idle(kind, version, caplog):
    with running(version=version) as cluster, contextlib.closing(kind(cluster.bootstrap)) as client:
        simple, keyed = SimpleProducer(client), KeyedProducer(client)
        simple.send_messages(b't', b'0')
        close_connections(cluster)
        simple.send_messages(b't', b'1')
        close_connections(cluster)
        keyed.send_messages(b't', b'key', b'2')
        assert stored(cluster) == [b'0', b'1', b'2']
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]


@pytest.mark.parametrize('kind', CLIENTS)
def test_a_producer_without_acks_loses_nothing_after_it_was_idle(kind):
    with running() as cluster, contextlib.closing(kind(cluster.bootstrap)) as client:
        producer = SimpleProducer(client, req_acks=0)
        producer.send_messages(b't', b'0')
        client.send_metadata_request()  # answered after the broker has read it
        close_connections(cluster)
        producer.send_messages(b't', b'1')
        client.send_metadata_request()
        assert stored(cluster) == [b'0', b'1']


@pytest.mark.parametrize('kind', CLIENTS)
def test_a_consumer_reads_and_commits_after_it_was_idle(kind, caplog):
    with running() as cluster, contextlib.closing(kind(cluster.bootstrap)) as client:
        SimpleProducer(client).send_messages(b't', b'0', b'1')
        consumer = SimpleConsumer(client, b'g', b't', auto_commit_every_t=None)
        for value in (b'0', b'1'):
            close_connections(cluster)
            (message,) = consumer.get_messages(1, timeout=5)
            assert message.message.value == value
            close_connections(cluster)
            assert consumer.commit() is True
        consumer.stop()
    assert 'failed' not in caplog.text


def test_a_consumer_of_0_9_5_reads_after_it_was_idle(caplog):
    with running() as cluster:
        with contextlib.closing(KafkaClient(cluster.bootstrap)) as client:
            SimpleProducer(client).send_messages(b't', b'0', b'1')
        consumer = KafkaConsumer(
            b't', bootstrap_servers=[cluster.bootstrap], group_id=b'g', auto_offset_reset='smallest'
        )
        for value in (b'0', b'1'):
            close_connections(cluster)
            assert consumer.next().value == value
        consumer.close()
    assert 'failed' not in caplog.text


def test_an_encrypted_connection_that_was_closed_is_noticed_too(caplog):
    with running(tls=True) as cluster:
        options = {'security_protocol': 'SSL', 'ssl_cafile': cluster.ca_file}
        with contextlib.closing(KafkaClient(cluster.bootstrap, **options)) as client:
            producer = SimpleProducer(client)
            for value in (b'0', b'1', b'2'):
                producer.send_messages(b't', value)
                close_connections(cluster)
        assert stored(cluster) == [b'0', b'1', b'2']


@pytest.fixture
def moving(monkeypatch):
    """Return a function that lets the name moved.test stand for an address."""
    resolve, where = socket.getaddrinfo, []

    def getaddrinfo(host, *arguments, **options):
        return resolve(where[-1] if host == 'moved.test' else host, *arguments, **options)

    monkeypatch.setattr(socket, 'getaddrinfo', getaddrinfo)
    return where.append


@pytest.mark.parametrize('is_silent', [False, True])
@pytest.mark.parametrize('kind', CLIENTS)
def test_a_bootstrap_name_that_has_moved_to_another_address_is_found(kind, is_silent, moving):
    """The request that meets the old address fails, and the next one goes to the new one."""
    with contextlib.ExitStack() as stack:
        old = stack.enter_context(running())
        port = int(old.bootstrap.rpartition(':')[2])
        moving('127.0.0.1')
        client = stack.enter_context(contextlib.closing(kind('moved.test:%d' % port, timeout=0.3)))
        producer = SimpleProducer(client)
        producer.send_messages(b't', b'0')
        if is_silent:
            old.pause(0)
        else:
            old.kill(0)
        new = stack.enter_context(running(host='127.0.0.2', port=port))
        moving('127.0.0.2')
        with pytest.raises(FailedPayloadsError):
            producer.send_messages(b't', b'1')
        producer.send_messages(b't', b'2')
        assert stored(new) == [b'2']
        old.resume(0)
