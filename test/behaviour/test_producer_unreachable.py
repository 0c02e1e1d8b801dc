"""What KafkaProducer's constructor tells where no broker can be used: each stage, and its hint.

Beside it, what the clients of 0.9.5 tell of the same, in the error classes that they have.
"""

from __future__ import annotations

import contextlib
import pickle

import pytest

from kafka import KafkaClient, KafkaProducer
from kafka.errors import (
    KafkaUnavailableError,
    NoBrokersAvailable,
    SaslAuthenticationFailedError,
)
from kafka.net.attempts import STAGES
from kafka.net.failures import TlsCertificateError
from kafka.testing import Cluster
from test.hostile_servers import CLOSE, Broker, Server, nobody

TLS = {'security_protocol': 'SSL'}
HTTP = b'HTTP/1.1 400 Bad Request\r\n\r\n'
ALERT = b'\x15\x03\x03\x00\x02\x02\x50'
HANDSHAKE = b'\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03'


@contextlib.contextmanager
def unknown_name():
    yield 'nobody.invalid:9092'


@contextlib.contextmanager
def says(*answers):
    with Server(lambda data: answers if len(answers) > 1 else answers[0]) as server:
        yield server.address


@contextlib.contextmanager
def cluster(**options):
    with Cluster(version='4.4', **options) as running:
        yield running.bootstrap


@contextlib.contextmanager
def metadata(said):
    """Yield a broker that tells its versions, which takes a Metadata 1, and then answers this."""
    broker = Broker()
    broker.answers[3] = lambda header, request: (
        broker.metadata() if header.api_version == 1 else said
    )
    with broker:
        yield broker.address


# Who is there, the options beside that, the stage, the hint, and what 0.9.5's client says.
CASES = {
    'a name that nobody has': (unknown_name, {}, 'DNS', 'name is not known', 'nobody.invalid'),
    'nobody listens': (nobody, {}, 'TCP', 'nothing listens there', 'refused'),
    'it says nothing': (lambda: says(None), {}, 'ApiVersions', 'said nothing', 'timed out'),
    'HTTP': (lambda: says(HTTP, CLOSE), {}, 'ApiVersions', 'answered with HTTP', 'HTTP'),
    'a TLS alert': (lambda: says(ALERT, CLOSE), {}, 'ApiVersions', 'looks like TLS', 'TLS'),
    'a TLS handshake': (lambda: says(HANDSHAKE), {}, 'ApiVersions', 'looks like TLS', 'TLS'),
    'HTTP, asked in TLS': (lambda: says(HTTP), TLS, 'TLS', 'answered with HTTP', 'HTTP'),
    'no TLS': (lambda: says(b'SSH-2.0-x\r\n'), TLS, 'TLS', 'does not speak TLS', 'TLS'),
    'it closes, asked in TLS': (lambda: says(CLOSE), TLS, 'TLS', 'may not speak TLS', 'TLS'),
    'it says nothing to TLS': (lambda: says(None), TLS, 'TLS', 'said nothing', 'timed out'),
    'a broker without TLS': (cluster, TLS, 'TLS', 'may not speak TLS', 'TLS'),
    'it closes at Metadata': (lambda: metadata(CLOSE), {}, 'Metadata', 'SASL', 'closed'),
    'it says nothing to Metadata': (lambda: metadata(None), {}, 'Metadata', 'nothing', 'timed out'),
    'a broker that wants a login': (
        lambda: cluster(sasl={'alice': 'secret'}),
        {},
        'Metadata',
        'SASL',
        'closed',
    ),
}


@pytest.fixture(params=list(CASES))
def case(request):
    server, options, stage, hint, old = CASES[request.param]
    with server() as address:
        yield address, options, stage, hint, old


def refused(address, stage='TCP', hint='', **options):
    """Return the constructor's error; it gets more time where a busy machine was too slow."""
    for milliseconds in (300, 2000, 20000):
        with pytest.raises(NoBrokersAvailable) as raised:
            KafkaProducer(bootstrap_servers=address, bootstrap_timeout_ms=milliseconds, **options)
        last = raised.value.attempts[-1]
        if last.stage == stage and hint in last.hint:
            break
    return raised.value


def test_the_constructor_tells_how_far_it_came(case):
    address, options, stage, hint, _ = case
    error = refused(address, stage, hint, **options)
    for attempt in error.attempts:
        assert attempt.stage in STAGES
        assert attempt.address == address
        assert attempt.ip == (None if stage == 'DNS' else '127.0.0.1')
        assert 0 <= attempt.seconds < 20
    last = error.attempts[-1]
    assert (last.stage, hint in last.hint) == (stage, True), last
    assert last.hint in str(error)
    assert stage in str(error)


def test_a_client_of_0_9_5_says_the_same_in_its_own_error(case):
    address, options, _, _, old = case
    with pytest.raises(KafkaUnavailableError, match=old):
        KafkaClient(address, timeout=0.3 if old == 'timed out' else 20, **options)


def test_each_server_has_its_attempts():
    with nobody() as first, says(HTTP, CLOSE) as second:
        error = refused('%s,%s' % (first, second), 'ApiVersions')
    assert {(each.address, each.stage) for each in error.attempts} == {
        (first, 'TCP'),
        (second, 'ApiVersions'),
    }


@pytest.mark.parametrize('mechanism', ['PLAIN', 'SCRAM-SHA-256'])
def test_a_wrong_password_is_told_at_once_without_showing_it(mechanism):
    with Cluster(version='4.4', sasl={'alice': 'secret'}) as running:
        with pytest.raises(SaslAuthenticationFailedError) as raised:
            KafkaProducer(
                bootstrap_servers=running.bootstrap,
                security_protocol='SASL_PLAINTEXT',
                sasl_mechanism=mechanism,
                sasl_plain_username='alice',
                sasl_plain_password='canary',
            )
    (attempt,) = raised.value.attempts
    assert (attempt.stage, attempt.error) == ('SASL', raised.value)
    assert 'canary' not in str(raised.value) + repr(raised.value.attempts)


def test_a_certificate_that_nobody_vouches_for():
    with Cluster(version='4.4', tls=True) as running:
        address = running.bootstrap.replace('127.0.0.1', 'localhost')
        with pytest.raises(TlsCertificateError) as raised:
            KafkaProducer(bootstrap_servers=address, bootstrap_timeout_ms=20000, **TLS)
    attempt = raised.value.attempts[-1]
    assert attempt.stage == 'TLS'
    assert 'ssl_cafile' in str(attempt)


def test_the_error_can_be_pickled():
    with nobody() as address:
        error = refused(address)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (type(error), str(error))
