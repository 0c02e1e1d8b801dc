"""The evented client and BrokerConnection on secured embedded brokers, over real sockets."""

from __future__ import annotations

import contextlib
import logging
import pickle
import socket
import ssl
import time
import traceback

import pytest

from kafka import BrokerConnection, KafkaClient
from kafka.errors import SaslAuthenticationFailedError
from kafka.net.failures import TlsCertificateError
from kafka.protocol.metadata import MetadataRequest
from kafka.testing import Cluster
from test.net.proxies import SocksProxy
from test.net.test_blocking import CANARY, MECHANISMS, options_of

SECONDS = 60


def evented(cluster, told):
    return contextlib.closing(KafkaClient(bootstrap_servers=cluster.bootstrap, **told))


def asked(client):
    """Ask a node for its topics when it is ready; return their names."""
    node_id = client.least_loaded_node()
    assert client.await_ready(node_id, timeout_ms=SECONDS * 1000)
    return [each[1] for each in client.send_and_receive(node_id, MetadataRequest[0]([])).topics]


def connected(conn):
    ends_at = time.monotonic() + SECONDS
    while not conn.connected():
        assert time.monotonic() < ends_at
        conn.connect()
        time.sleep(0.002)


@pytest.mark.parametrize('tls', [False, True])
@pytest.mark.parametrize('mechanism', MECHANISMS)
def test_the_evented_client_logs_in_by_each_mechanism(mechanism, tls):
    with Cluster(sasl={'alice': 'secret'}, mechanisms=MECHANISMS, tls=tls, topics={'t': 1}) as it:
        with evented(it, options_of(it, mechanism)) as client:
            assert asked(client) == ['t']
            again = pickle.loads(pickle.dumps(client)) if mechanism != 'OAUTHBEARER' else client
            assert asked(again) == ['t']
            again.close()


def test_tls_alone_with_a_context_of_the_program():
    with Cluster(tls=True, topics={'t': 1}) as it:
        context = ssl.create_default_context(cafile=it.ca_file)
        with evented(it, {'security_protocol': 'SSL', 'ssl_context': context}) as client:
            assert asked(client) == ['t']


@pytest.mark.parametrize('tls', [False, True])
@pytest.mark.parametrize('version', ['0.10.2', '4.4'])
def test_a_wrong_password_is_raised_at_once_with_what_was_tried(version, tls, caplog):
    caplog.set_level(logging.DEBUG)
    with Cluster(version=version, sasl={'alice': 'secret'}, tls=tls) as it:
        with pytest.raises(SaslAuthenticationFailedError) as caught:
            KafkaClient(bootstrap_servers=it.bootstrap, **options_of(it, 'PLAIN', CANARY))
        (attempt,) = caught.value.attempts
        assert (attempt.address, attempt.stage) == (it.bootstrap, 'SASL')
        told = ''.join(traceback.format_exception(caught.type, caught.value, caught.tb))
    assert CANARY not in told + repr(attempt) + caplog.text


def test_a_certificate_that_nobody_knows_is_raised_at_once():
    with Cluster(tls=True) as it:
        with pytest.raises(TlsCertificateError, match='ssl_cafile') as caught:
            KafkaClient(bootstrap_servers=it.bootstrap, security_protocol='SSL')
        assert caught.value.attempts[-1].stage == 'TLS'


def test_a_broker_that_refuses_later_makes_requests_fail_and_polls_return():
    """The password changed meanwhile: who polls is told, and is not kept."""
    with Cluster(sasl={'alice': 'secret'}, topics={'t': 1}) as it:
        with evented(it, options_of(it, 'PLAIN')) as client:
            assert asked(client) == ['t']
            node_id = client.least_loaded_node()
            client.close(node_id)
            client.config['sasl_plain_password'] = 'another'
            with pytest.raises(SaslAuthenticationFailedError):
                client.await_ready(node_id, timeout_ms=SECONDS * 1000)
            assert client.is_disconnected(node_id)


@pytest.mark.parametrize(
    ('scheme', 'host', 'name'),
    [
        ('socks5', '127.0.0.1', b'\x01\x7f\x00\x00\x01'),
        ('socks5h', 'localhost', b'\x03\x09localhost'),
    ],
)
def test_a_proxy_leads_to_a_broker_behind_tls(scheme, host, name):
    """Which of the two looks up the name is the scheme's meaning; TLS is checked end to end."""
    with Cluster(tls=True, sasl={'alice': 'secret'}, topics={'t': 1}) as it:
        port = int(it.bootstrap.split(':')[1])
        with SocksProxy(port) as proxy:
            told = options_of(it, 'PLAIN', socks5_proxy='%s://127.0.0.1:%d' % (scheme, proxy.port))
            conn = BrokerConnection(host, port, socket.AF_UNSPEC, **told)
            connected(conn)
            future = conn.send(MetadataRequest[0]([]))
            ends_at = time.monotonic() + SECONDS
            while not future.is_done and time.monotonic() < ends_at:
                conn.recv()
                time.sleep(0.002)
            assert [each[1] for each in future.value.topics] == ['t']
            conn.close()
        assert proxy.asked[1] == b'\x05\x01\x00' + name + port.to_bytes(2, 'big')


def test_a_connection_is_pickled_with_what_secures_it():
    with Cluster(sasl={'alice': 'secret'}) as it:
        host, port = it.bootstrap.split(':')
        told = options_of(it, 'PLAIN', state_change_callback=lambda conn: None)
        conn = BrokerConnection(host, int(port), socket.AF_INET, **told)
        other = pickle.loads(pickle.dumps(conn))
        assert other.disconnected()
        assert CANARY not in repr(other)
        connected(other)
        other.close()
