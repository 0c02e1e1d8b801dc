"""The clients on a real broker with every listener: TLS, client certificates, each mechanism.

``KAFKA_VERSION`` says on which releases, else 0.9.0.1, 0.10.2.2, 2.8.2 and 4.4.0. GSSAPI needs a
KDC and the package gssapi, and says so where they are missing.
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
from kafka.net.sasl import AbstractTokenProvider
from kafka.testing.security.sasl.oauthbearer import unsigned_token
from servers.releases import are_named, chosen, problem, releases
from test.integration import kerberos
from test.integration.secured import ODD_PASSWORD, ODD_USER, RENEWAL_MS, RENEWS, SecuredCluster

pytestmark = [pytest.mark.integration, pytest.mark.real]

SOME = ('0.9.0.1', '0.10.2.2', '2.8.2', '4.4.0')
FIRST = (0, 9)  # before there is no security
MECHANISMS = ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512', 'OAUTHBEARER', 'GSSAPI']
TOPIC = 'secured'


class Unknown(sasl.Mechanism):
    """A mechanism of the program that no broker has."""

    name = 'NO-SUCH'


sasl.register_sasl_mechanism(Unknown.name, Unknown, overwrite=True)


def _wanted():
    named = chosen() if are_named() else [releases()[name] for name in SOME]
    return [release for release in named if release.version >= FIRST]


class Provider(AbstractTokenProvider):
    """Makes tokens that nobody has signed, as brokers take them for tests."""

    def __init__(self, seconds=600):
        self.seconds = seconds

    def token(self):
        return unsigned_token('alice', int((time.time() + self.seconds) * 1000))


@pytest.fixture(scope='module')
def realm(tmp_path_factory):
    """A Kerberos realm, None where there can be none."""
    if kerberos.missing():
        yield None
        return
    with kerberos.Realm(tmp_path_factory.mktemp('realm')) as made:
        made.log_in()
        with pytest.MonkeyPatch.context() as patch:
            for name, value in made.environment.items():
                patch.setenv(name, value)
            yield made


@pytest.fixture(scope='module', params=_wanted(), ids=lambda release: release.name)
def secured(request, realm, tmp_path_factory):
    reason = problem(request.param)
    if reason:
        pytest.skip(reason)
    with SecuredCluster(request.param, tmp_path_factory.mktemp('tls'), realm) as running:
        running.create_topic(TOPIC, 1)
        yield running


@pytest.fixture
def other_children(secured, realm):
    """Brokers and the KDC are there longer than a test."""
    return lambda: secured.process_ids | ({realm._kdc.pid} if realm else set())


def options(secured, protocol, mechanism='', **more):
    if mechanism not in ('', *secured.mechanisms):
        if mechanism == 'GSSAPI':
            pytest.skip(kerberos.missing())
        pytest.skip('Kafka %s has no %s' % (secured.release.name, mechanism))
    if mechanism == 'GSSAPI':
        pytest.importorskip('gssapi')
    if mechanism == 'OAUTHBEARER':
        more.setdefault('sasl_oauth_token_provider', Provider())
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
    told = options(secured, 'SASL_SSL', 'PLAIN', ssl_cafile=secured.stranger[0])
    with pytest.raises(TlsCertificateError, match='ssl_cafile'):
        KafkaClient(secured.at('SASL_SSL'), **told)


@pytest.mark.parametrize('mechanism', ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'])
def test_a_wrong_password_is_refused_at_once(secured, mechanism):
    told = options(secured, 'SASL_PLAINTEXT', mechanism, password='wrong')
    began = time.monotonic()
    with pytest.raises(SaslAuthenticationFailedError, match='sasl_plain_password'):
        KafkaClient(secured.at('SASL_PLAINTEXT'), **told)
    assert time.monotonic() - began < 5


def test_an_expired_token_is_refused_with_the_reason(secured):
    told = options(
        secured, 'SASL_PLAINTEXT', 'OAUTHBEARER', sasl_oauth_token_provider=Provider(-600)
    )
    with pytest.raises(SaslAuthenticationFailedError, match='invalid_token'):
        KafkaClient(secured.at('SASL_PLAINTEXT'), **told)


@pytest.mark.parametrize('mechanism', ['SCRAM-SHA-256', 'SCRAM-SHA-512'])
def test_a_password_that_saslprep_would_change_is_good(secured, mechanism):
    told = options(secured, 'SASL_PLAINTEXT', mechanism, user=ODD_USER, password=ODD_PASSWORD)
    with connected(secured, 'SASL_PLAINTEXT', told) as client:
        written_and_read(client)


def test_a_mechanism_that_the_broker_does_not_have(secured):
    if 'PLAIN' not in secured.mechanisms:
        pytest.skip('there is no handshake in which a mechanism is named')
    told = {**options(secured, 'SASL_SSL'), 'sasl_mechanism': 'NO-SUCH'}
    with pytest.raises(UnsupportedSaslMechanismError, match='not offer NO-SUCH.*PLAIN'):
        KafkaClient(secured.at('SASL_SSL'), **told)


def test_tls_to_a_listener_without_it(secured):
    told = {**options(secured, 'SASL_SSL', 'PLAIN')}
    with pytest.raises(KafkaUnavailableError, match='listener without TLS'):
        KafkaClient(secured.at('SASL_PLAINTEXT'), **told)


def test_no_tls_to_a_listener_with_it(secured):
    told = options(secured, 'SASL_PLAINTEXT', 'PLAIN')
    with pytest.raises(KafkaUnavailableError, match='TLS'):
        KafkaClient(secured.at('SASL_SSL'), **told)


def test_a_listener_without_sasl(secured):
    told = options(secured, 'SASL_PLAINTEXT', 'PLAIN')
    with pytest.raises((KafkaUnavailableError, IllegalSaslStateError), match='SASL'):
        KafkaClient(secured.bootstrap, **told)


def test_logins_that_end_are_renewed_on_the_connection(secured):
    if secured.release.version < RENEWS:
        pytest.skip('KIP-368 came with 2.2')
    told = options(secured, 'SASL_SSL', 'SCRAM-SHA-512')
    with connected(secured, 'SASL_SSL', told) as client:
        written_and_read(client)
        sockets = [conn.get_connected_socket() for conn in client.conns.values()]
        until = time.monotonic() + 2.5 * RENEWAL_MS / 1000
        while time.monotonic() < until:
            client.load_metadata_for_topics(TOPIC)
            written_and_read(client)
            time.sleep(0.1)
        assert [conn.get_connected_socket() for conn in client.conns.values()] == sockets
