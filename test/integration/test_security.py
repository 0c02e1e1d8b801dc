"""The clients of 0.9.5 on a real broker with every listener: TLS, certificates, each mechanism.

``KAFKA_VERSION`` says on which releases, else 0.9.0.1, 0.10.2.2, 2.8.2 and 4.4.0. GSSAPI needs a
KDC and the package gssapi, and says so where they are missing. KafkaProducer: in
test_secured_producer.py.
"""

from __future__ import annotations

import contextlib
import time

import pytest

from kafka import KafkaClient, SimpleClient, create_message
from kafka.common import FetchRequest, ProduceRequest
from kafka.errors import (
    IllegalSaslStateError,
    KafkaUnavailableError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)
from kafka.net import sasl
from kafka.net.failures import TlsCertificateError
from test.integration.secured import ODD_PASSWORD, ODD_USER, RENEWAL_MS, SINCE, Provider, by

pytestmark = [pytest.mark.integration, pytest.mark.real, pytest.mark.column('TLS')]

TOPIC = 'secured'
MECHANISMS = [by(name) for name in (*dict(SINCE), 'GSSAPI')]
SCRAM = [by('SCRAM-SHA-256'), by('SCRAM-SHA-512')]
with_plain = pytest.mark.parametrize('mechanism', [by('PLAIN')])


class Unknown(sasl.Mechanism):
    """A mechanism of the program that no broker has."""

    name = 'NO-SUCH'


sasl.register_sasl_mechanism(Unknown.name, Unknown, overwrite=True)


def options(secured, protocol, mechanism='', **more):
    return secured.options(protocol, mechanism, **more)


def written_and_read(client):
    topic = TOPIC.encode() if isinstance(client, KafkaClient) else TOPIC
    value = b'%d' % time.monotonic_ns()
    request = ProduceRequest(topic, 0, [create_message(value)])
    (answer,) = client.send_produce_request([request])
    (found,) = client.send_fetch_request([FetchRequest(topic, 0, answer.offset, 1 << 20)])
    assert next(each.message.value for each in found.messages) == value


@contextlib.contextmanager
def connected(secured, protocol, told, face=KafkaClient):
    client = face(secured.at(protocol), **told)
    try:
        yield client
    finally:
        client.close()


@pytest.mark.parametrize('protocol', ['SASL_PLAINTEXT', 'SASL_SSL'])
@pytest.mark.parametrize('mechanism', MECHANISMS)
@pytest.mark.parametrize('face', [KafkaClient, SimpleClient])
def test_a_client_logs_in_by_each_mechanism(secured, face, mechanism, protocol):
    told = options(secured, protocol, mechanism)
    with connected(secured, protocol, told, face) as client:
        written_and_read(client)


def test_a_client_shows_its_certificate(secured):
    with connected(secured, 'SSL', options(secured, 'SSL')) as client:
        written_and_read(client)


def test_without_a_certificate_one_is_demanded(secured):
    told = options(secured, 'SSL', ssl_certfile=None, ssl_keyfile=None)
    with pytest.raises(KafkaUnavailableError, match='ssl_certfile'):
        KafkaClient(secured.at('SSL'), **told)


def test_a_certificate_that_the_broker_does_not_know_is_refused(secured):
    certificate, key = secured.stranger
    told = options(secured, 'SSL', ssl_certfile=certificate, ssl_keyfile=key)
    with pytest.raises((KafkaUnavailableError, TlsCertificateError), match='ssl_certfile'):
        KafkaClient(secured.at('SSL'), **told)


def test_a_broker_that_is_not_known_is_refused(secured):
    told = options(secured, 'SSL', ssl_cafile=secured.stranger[0])
    with pytest.raises(TlsCertificateError, match='ssl_cafile'):
        KafkaClient(secured.at('SSL'), **told)


@pytest.mark.parametrize('mechanism', [by('PLAIN'), *SCRAM])
def test_a_wrong_password_is_refused_at_once(secured, mechanism):
    told = options(secured, 'SASL_PLAINTEXT', mechanism, password='wrong')
    began = time.monotonic()
    with pytest.raises(SaslAuthenticationFailedError, match='sasl_plain_password'):
        KafkaClient(secured.at('SASL_PLAINTEXT'), **told)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize('mechanism', [by('OAUTHBEARER')])
def test_an_expired_token_is_refused_with_the_reason(secured, mechanism):
    told = options(secured, 'SASL_PLAINTEXT', mechanism, sasl_oauth_token_provider=Provider(-600))
    with pytest.raises(SaslAuthenticationFailedError, match='invalid_token'):
        KafkaClient(secured.at('SASL_PLAINTEXT'), **told)


@pytest.mark.parametrize('mechanism', SCRAM)
def test_a_password_that_saslprep_would_change_is_good(secured, mechanism):
    told = options(secured, 'SASL_PLAINTEXT', mechanism, user=ODD_USER, password=ODD_PASSWORD)
    with connected(secured, 'SASL_PLAINTEXT', told) as client:
        written_and_read(client)


@with_plain
def test_a_mechanism_that_the_broker_does_not_have(secured, mechanism):
    told = {**options(secured, 'SASL_SSL'), 'sasl_mechanism': 'NO-SUCH'}
    with pytest.raises(UnsupportedSaslMechanismError, match='not offer NO-SUCH.*PLAIN'):
        KafkaClient(secured.at('SASL_SSL'), **told)


@with_plain
def test_tls_to_a_listener_without_it(secured, mechanism):
    told = options(secured, 'SASL_SSL', mechanism)
    with pytest.raises(KafkaUnavailableError, match='listener without TLS'):
        KafkaClient(secured.at('SASL_PLAINTEXT'), **told)


@with_plain
def test_no_tls_to_a_listener_with_it(secured, mechanism):
    told = options(secured, 'SASL_PLAINTEXT', mechanism)
    with pytest.raises(KafkaUnavailableError, match='TLS'):
        KafkaClient(secured.at('SASL_SSL'), **told)


@with_plain
def test_a_listener_without_sasl(secured, mechanism):
    told = options(secured, 'SASL_PLAINTEXT', mechanism)
    with pytest.raises((KafkaUnavailableError, IllegalSaslStateError), match='SASL'):
        KafkaClient(secured.bootstrap, **told)


@pytest.mark.releases(since='2.2')
@pytest.mark.column('SCRAM')
def test_logins_that_end_are_renewed_on_the_connection(secured):
    told = options(secured, 'SASL_SSL', 'SCRAM-SHA-512')
    with connected(secured, 'SASL_SSL', told) as client:
        written_and_read(client)
        sockets = [conn.get_connected_socket() for conn in client.conns.values()]
        until = time.monotonic() + 1.2 * RENEWAL_MS / 1000
        while time.monotonic() < until:
            client.load_metadata_for_topics(TOPIC)
            written_and_read(client)
            time.sleep(0.1)
        assert [conn.get_connected_socket() for conn in client.conns.values()] == sockets
