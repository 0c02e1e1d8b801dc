"""The evented client and BrokerConnection on a real broker with every listener.

``KAFKA_VERSION`` says on which releases, else 0.9.0.1, 0.10.2.2, 2.8.2 and 4.4.0.
"""

from __future__ import annotations

import contextlib
import socket
import time

import pytest

from kafka import BrokerConnection, KafkaClient
from kafka.errors import NoBrokersAvailable, SaslAuthenticationFailedError
from kafka.protocol.metadata import MetadataRequest
from test.integration.secured import RENEWAL_MS, SINCE, by

pytestmark = [pytest.mark.integration, pytest.mark.real, pytest.mark.column('TLS')]

TOPIC = 'secured'
MECHANISMS = [by(name) for name in (*dict(SINCE), 'GSSAPI')]


def evented(secured, protocol, told):
    client = KafkaClient(bootstrap_servers=secured.at(protocol), **told)
    return contextlib.closing(client)


def asked(client):
    """Ask a node for the topic when it is ready; return what it says."""
    node_id = client.least_loaded_node()
    client.await_ready(node_id, timeout_ms=60000)
    response = client.send_and_receive(node_id, MetadataRequest[0]([TOPIC]))
    ((error, topic, partitions),) = response.topics
    assert (error, topic, len(partitions)) == (0, TOPIC, 1)
    return node_id


@pytest.mark.parametrize('protocol', ['SASL_PLAINTEXT', 'SASL_SSL'])
@pytest.mark.parametrize('mechanism', MECHANISMS)
def test_the_evented_client_logs_in_by_each_mechanism(secured, mechanism, protocol):
    with evented(secured, protocol, secured.options(protocol, mechanism)) as client:
        node_id = asked(client)
        assert client.check_version(node_id, timeout=30)[:2] <= secured.release.version[:2]


def test_the_evented_client_shows_its_certificate(secured):
    with evented(secured, 'SSL', secured.options('SSL')) as client:
        asked(client)


@pytest.mark.parametrize('mechanism', [by('PLAIN'), by('SCRAM-SHA-512')])
def test_a_wrong_password_ends_it_at_once_with_what_was_tried(secured, mechanism):
    told = secured.options('SASL_PLAINTEXT', mechanism, password='wrong')
    with pytest.raises(SaslAuthenticationFailedError) as raised:
        evented(secured, 'SASL_PLAINTEXT', told)
    assert raised.value.attempts[-1].stage == 'SASL'


def test_a_listener_that_wants_tls_is_told_from_nobody(secured):
    with pytest.raises(NoBrokersAvailable, match='TLS') as raised:
        KafkaClient(bootstrap_servers=secured.at('SSL'))
    assert raised.value.attempts[-1].stage == 'ApiVersions'


@pytest.mark.parametrize('protocol', ['SSL', 'SASL_SSL'])
@pytest.mark.parametrize('mechanism', [by('SCRAM-SHA-256')])
def test_a_connection_by_itself_is_secured(secured, protocol, mechanism):
    mechanism = '' if protocol == 'SSL' else mechanism
    told = secured.options(protocol, mechanism)
    host, port = secured.at(protocol).split(':')
    conn = BrokerConnection(host, int(port), socket.AF_UNSPEC, **told)
    try:
        assert conn.connect_blocking(timeout=60)
        future = conn.send(MetadataRequest[0]([TOPIC]))
        answers = []
        until = time.monotonic() + 60
        while not answers and time.monotonic() < until:
            answers = conn.recv()
            time.sleep(0.005)
        assert [each for _, each in answers] == [future]
    finally:
        conn.close()


@pytest.mark.releases(since='2.2')
@pytest.mark.parametrize('mechanism', [by('SCRAM-SHA-512')])
def test_logins_of_the_evented_client_are_renewed_on_the_connection(secured, mechanism):
    told = secured.options('SASL_SSL', mechanism)
    changes = []
    with evented(secured, 'SASL_SSL', told) as client:
        node_id = asked(client)
        until = time.monotonic() + 2.5 * RENEWAL_MS / 1000
        while time.monotonic() < until:
            assert asked(client) == node_id
            changes.append(client.is_disconnected(node_id))
            time.sleep(0.1)
    assert not any(changes)
