"""KafkaProducer on a real broker with every listener: TLS, certificates, each mechanism, ACLs.

``KAFKA_VERSION`` says on which releases, else as test_security.py. What is refused is refused at
the first call, and each time.
"""

from __future__ import annotations

import collections
import logging
import time

import pytest

from kafka import KafkaClient, KafkaProducer
from kafka.errors import (
    ClusterAuthorizationFailedError,
    IllegalSaslStateError,
    KafkaError,
    KafkaTimeoutError,
    LeaderNotAvailableError,
    SaslAuthenticationFailedError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailedError,
    UnsupportedSaslMechanismError,
)
from kafka.net import sasl
from kafka.net.failures import SaslError, TlsCertificateError
from kafka.testing.security.sasl.oauthbearer import unsigned_token
from test.integration.authority import KEY_PASSWORD
from test.integration.fixtures import fetch, retry, values
from test.integration.secured import (
    EXPIRED,
    FORBIDDEN,
    FORBIDDEN_ID,
    MALLORY,
    ODD_PASSWORD,
    ODD_USER,
    OSCAR,
    READ_ONLY,
    RENEWAL_MS,
    SINCE,
    Provider,
    by,
)
from test.net.sasl.identity_provider import Provider as IdentityProvider
from test.net.sasl.identity_provider import token

pytestmark = [pytest.mark.integration, pytest.mark.real, pytest.mark.column('TLS')]

TOPIC = 'secured'
SECONDS = 60
MECHANISMS = [by(name) for name in (*dict(SINCE), 'GSSAPI')]
with_password = pytest.mark.parametrize(
    'mechanism', [by('PLAIN'), by('SCRAM-SHA-256'), by('SCRAM-SHA-512')]
)
with_plain = pytest.mark.parametrize('mechanism', [by('PLAIN')])
with_token = pytest.mark.parametrize('mechanism', [by('OAUTHBEARER')])


class Unknown(sasl.Mechanism):
    """A mechanism of the program that no broker has."""

    name = 'NO-SUCH'


sasl.register_sasl_mechanism(Unknown.name, Unknown, overwrite=True)


@pytest.fixture
def made():
    """Producers, closed at the end."""
    producers = []
    yield producers
    for producer in producers:
        producer.close(timeout=10)


@pytest.fixture
def make(secured, made):
    """Return a function that makes a producer for a listener."""

    def give(protocol, mechanism='', at=None, host='localhost', **more):
        own = {name: more.pop(name) for name in ('user', 'password') if name in more}
        told = {**secured.options(protocol, mechanism, **own), **more}
        servers = secured.at(at or protocol, host)
        told.setdefault('max_block_ms', SECONDS * 1000)
        made.append(KafkaProducer(bootstrap_servers=servers, **told))
        return made[-1]

    return give


def written_and_read(secured, producer):
    sent = [b'%d' % (time.monotonic_ns() + n) for n in range(20)]
    first = [producer.send(TOPIC, value) for value in sent][0].get(SECONDS).offset
    producer.flush(SECONDS)
    client = KafkaClient(secured.bootstrap)
    try:
        found = retry(lambda: fetch(client, TOPIC, 0, first), LeaderNotAvailableError)
        assert values(found) == sent
    finally:
        client.close()


def text_of(path):
    with open(path, encoding='ascii') as file:
        return file.read()


def refused(make, kind, match, *arguments, **more):
    """Make a producer twice, which raises each time; return the last error."""
    for _ in range(2):
        with pytest.raises(kind, match=match) as caught:
            make(*arguments, **more)
    return caught.value


# ---------------------------------------------------------------- TLS


def test_a_client_certificate_is_shown(secured, make):
    written_and_read(secured, make('SSL'))


def test_pem_text_stands_for_files(secured, make):
    pem = [text_of(path) for path in (secured.ca_file, secured.certificate, secured.key)]
    producer = make('SSL', ssl_cafile=pem[0], ssl_certfile=pem[1], ssl_keyfile=pem[2].encode())
    written_and_read(secured, producer)


def test_one_file_has_certificate_and_key(secured, make):
    both = text_of(secured.certificate) + text_of(secured.key)
    written_and_read(secured, make('SSL', ssl_certfile=both, ssl_keyfile=None))


@pytest.mark.parametrize('password', [KEY_PASSWORD, lambda: KEY_PASSWORD], ids=['text', 'call'])
def test_the_key_may_be_encrypted(secured, make, password):
    key = secured.authority.encrypted(secured.key)
    written_and_read(secured, make('SSL', ssl_keyfile=key, ssl_password=password))


@pytest.mark.parametrize('password', [None, 'wrong'])
def test_an_encrypted_key_needs_its_password(secured, make, password):
    key = secured.authority.encrypted(secured.key)
    refused(make, KafkaError, 'ssl_password', 'SSL', ssl_keyfile=key, ssl_password=password)


def test_without_a_certificate_one_is_demanded(make):
    error = refused(make, KafkaError, 'ssl_certfile', 'SSL', ssl_certfile=None, ssl_keyfile=None)
    assert error.attempts


@pytest.mark.parametrize('which', ['stranger', 'late'])
def test_a_certificate_that_the_broker_does_not_accept(secured, make, which):
    certificate, key = getattr(secured, which)
    refused(make, KafkaError, 'ssl_certfile', 'SSL', ssl_certfile=certificate, ssl_keyfile=key)


def test_another_authority_is_not_believed(secured, make):
    error = refused(make, TlsCertificateError, 'ssl_cafile', 'SSL', ssl_cafile=secured.stranger[0])
    assert {each.stage for each in error.attempts} == {'TLS'}


def test_the_host_name_is_checked_unless_that_is_off(make):
    other = '127.1'  # another way to write 127.0.0.1, which the certificate does not have
    refused(make, TlsCertificateError, 'for another name', 'SSL', host=other)
    make('SSL', host=other, ssl_check_hostname=False)


@pytest.mark.releases(since='0.11')
def test_a_certificate_of_the_broker_that_has_expired(make):
    refused(make, TlsCertificateError, 'has expired', 'SSL', at=EXPIRED)


def test_a_list_of_those_that_were_called_back(secured, make):
    nobody = secured.authority.no_one_revoked
    written_and_read(secured, make('SSL', ssl_crlfile=nobody))
    make('SSL', ssl_crlfile=text_of(nobody))
    revoked = secured.authority.revoke(secured.broker_certificate)
    refused(make, TlsCertificateError, 'revoked', 'SSL', ssl_crlfile=revoked)


def test_no_tls_to_a_listener_with_it(make):
    with pytest.raises(KafkaError, match='TLS'):
        make('PLAINTEXT', at='SSL', bootstrap_timeout_ms=3000)


# ---------------------------------------------------------------- logins


@pytest.mark.parametrize('protocol', ['SASL_PLAINTEXT', 'SASL_SSL'])
@pytest.mark.parametrize('mechanism', MECHANISMS)
def test_a_producer_logs_in_by_each_mechanism(secured, make, mechanism, protocol):
    written_and_read(secured, make(protocol, mechanism))


@with_password
def test_a_wrong_password_is_refused_at_once_and_each_time(make, mechanism):
    error = refused(
        make, SaslAuthenticationFailedError, mechanism, 'SASL_PLAINTEXT', mechanism, password='x'
    )
    assert {each.stage for each in error.attempts} == {'SASL'}


@with_plain
def test_a_wrong_password_is_told_by_the_first_call_where_nothing_was_asked_before(make, mechanism):
    producer = make('SASL_PLAINTEXT', mechanism, password='x', api_version=(0, 11))
    for _ in range(2):
        with pytest.raises(SaslAuthenticationFailedError):
            producer.send(TOPIC, b'v')
        with pytest.raises(SaslAuthenticationFailedError):
            producer.partitions_for(TOPIC)


@pytest.mark.parametrize('mechanism', [by('SCRAM-SHA-256'), by('SCRAM-SHA-512')])
def test_a_password_that_saslprep_would_change_is_good(secured, make, mechanism):
    written_and_read(
        secured, make('SASL_PLAINTEXT', mechanism, user=ODD_USER, password=ODD_PASSWORD)
    )


@with_plain
def test_a_mechanism_that_the_broker_does_not_have(make, mechanism):
    refused(
        make,
        UnsupportedSaslMechanismError,
        'not offer NO-SUCH.*PLAIN',
        'SASL_SSL',
        sasl_mechanism='NO-SUCH',
    )


@with_plain
def test_listeners_of_another_kind(make, mechanism):
    with pytest.raises(KafkaError, match='listener without TLS'):
        make('SASL_SSL', mechanism, at='SASL_PLAINTEXT', bootstrap_timeout_ms=3000)
    with pytest.raises(KafkaError, match='TLS'):
        make('SASL_PLAINTEXT', mechanism, at='SASL_SSL', bootstrap_timeout_ms=3000)


@with_plain
def test_a_listener_without_sasl(secured, made, mechanism):
    told = secured.options('SASL_PLAINTEXT', mechanism)
    with pytest.raises((IllegalSaslStateError, KafkaError), match='SASL'):
        made.append(
            KafkaProducer(bootstrap_servers=secured.bootstrap, bootstrap_timeout_ms=3000, **told)
        )


@with_token
def test_a_token_of_an_identity_provider(secured, make, mechanism):
    def give(handler):
        body = token(access_token=Provider().token(), expires_in=600)[2]
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(body)

    with IdentityProvider(give) as provider:
        producer = make('SASL_SSL', mechanism, sasl_oauth_token_provider=provider.client())
        written_and_read(secured, producer)
    assert len(provider.asked) == 1


@with_token
def test_an_identity_provider_that_refuses(make, mechanism):
    answer = 401, {}, b'{"error": "invalid_client"}'
    with IdentityProvider(answer) as provider, pytest.raises(KafkaError, match='invalid_client'):
        make(
            'SASL_SSL',
            mechanism,
            sasl_oauth_token_provider=provider.client(),
            bootstrap_timeout_ms=3000,
        )


@with_token
def test_an_expired_token_is_refused_with_the_reason(make, mechanism):
    error = refused(
        make,
        SaslAuthenticationFailedError,
        'invalid_token',
        'SASL_PLAINTEXT',
        mechanism,
        sasl_oauth_token_provider=Provider(-600),
    )
    assert unsigned_token('alice', 0)[:20] not in str(error)


@pytest.mark.parametrize('mechanism', [by('GSSAPI')])
def test_a_service_that_the_kdc_does_not_know(make, mechanism):
    refused(
        make,
        (SaslAuthenticationFailedError, SaslError),
        'sasl_kerberos_service_name',
        'SASL_PLAINTEXT',
        mechanism,
        sasl_kerberos_service_name='nobody',
    )


# ---------------------------------------------------------------- logins that end


@pytest.mark.releases(since='2.2')
@pytest.mark.column('SCRAM')
def test_logins_are_renewed_under_load(secured, make, caplog):
    """KIP-368: no record lost or stored twice, no error, the same connection."""
    caplog.set_level(logging.WARNING, 'kafka')
    producer = make('SASL_SSL', 'SCRAM-SHA-512', linger_ms=0)
    first = producer.send(TOPIC, b'first').get(SECONDS).offset
    links = dict(producer._engine.pool._connections.common)
    sessions = {node: link.session for node, link in links.items()}
    futures = collections.deque()
    until = time.monotonic() + 1.2 * RENEWAL_MS / 1000
    while time.monotonic() < until:
        futures.extend(producer.send(TOPIC, b'%d' % len(futures)) for _ in range(20))
        time.sleep(0.01)
    producer.flush(SECONDS)
    offsets = [future.get(SECONDS).offset for future in futures]
    assert offsets == list(range(first + 1, first + 1 + len(offsets)))
    assert {
        node: link.session for node, link in producer._engine.pool._connections.common.items()
    } == sessions
    assert not caplog.records, caplog.text


# ---------------------------------------------------------------- ACLs


@pytest.fixture(scope='module')
def guarded(secured):
    """The broker with ACLs."""
    secured.set_acls()
    return secured


@pytest.fixture
def make_as(guarded, make):
    """Return a function that makes a producer with somebody's certificate."""

    def give(name, **more):
        certificate, key = guarded.others[name]
        return make('SSL', ssl_certfile=certificate, ssl_keyfile=key, **more)

    return give


def test_a_topic_that_may_not_be_seen(secured, make_as):
    """It is told so, but by brokers that say there is none: 0.10.1 to 0.11 (KAFKA-5547)."""
    kind, match, seconds = TopicAuthorizationFailedError, FORBIDDEN, SECONDS
    if (0, 10, 1) <= secured.release.version < (1, 0):
        kind, match, seconds = KafkaTimeoutError, '%s.*UnknownTopic' % FORBIDDEN, 5
    producer = make_as(MALLORY, max_block_ms=seconds * 1000)
    for _ in range(2):
        with pytest.raises(kind, match=match):
            producer.send(FORBIDDEN, b'v').get(SECONDS)
        with pytest.raises(kind, match=match):
            producer.partitions_for(FORBIDDEN)
    producer.send(TOPIC, b'v').get(SECONDS)


def test_a_topic_that_may_be_seen_and_not_written(make_as):
    producer = make_as(MALLORY)
    for _ in range(2):
        future = producer.send(READ_ONLY, b'v')
        with pytest.raises(TopicAuthorizationFailedError, match=READ_ONLY):
            future.get(SECONDS)
    producer.send(TOPIC, b'v').get(SECONDS)


@pytest.mark.releases(since='0.11')
@pytest.mark.column('transactions')
def test_a_transactional_id_that_may_not_be_used(make_as):
    producer = make_as(MALLORY, transactional_id=FORBIDDEN_ID)
    for _ in range(2):
        with pytest.raises(TransactionalIdAuthorizationFailedError):
            producer.init_transactions()


@pytest.mark.releases(since='0.11')
@pytest.mark.column('transactions')
def test_a_topic_of_a_transaction_that_may_not_be_written(make_as):
    producer = make_as(MALLORY, transactional_id='own-id')
    producer.init_transactions()
    producer.begin_transaction()
    future = producer.send(READ_ONLY, b'v')
    with pytest.raises(KafkaError):
        producer.commit_transaction()
    with pytest.raises(TopicAuthorizationFailedError):
        future.get(SECONDS)
    producer.abort_transaction()
    producer.begin_transaction()
    producer.send(TOPIC, b'v')
    producer.commit_transaction()


@pytest.mark.releases(since='0.11')
def test_producing_idempotently_may_be_denied(make_as):
    producer = make_as(OSCAR, enable_idempotence=True)
    for _ in range(2):
        with pytest.raises(ClusterAuthorizationFailedError):
            producer.send(TOPIC, b'v').get(SECONDS)
