"""How long a client may take to come in over TLS and SASL: then it is closed, without a word."""

from __future__ import annotations

import ssl

import pytest

from kafka.protocol.api_versions import ApiVersionsRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from kafka.testing import MemoryCluster
from kafka.testing.security.certificates import local_tls
from kafka.testing.security.sasl.login import Sasl
from test.testing.drive import Driver, Wire
from test.testing.security.sasl.clients import ScramClient, log_in

MECHANISMS = ['PLAIN', 'SCRAM-SHA-256']


@pytest.fixture(scope='module')
def files():
    return local_tls()


def with_logins(**settings):
    driver = Driver(**settings)
    driver.state.sasl = Sasl(driver.state, {'alice': 'secret'}, MECHANISMS)
    return driver


def handshakes(driver):
    return len(driver.brokers[0]._handshakes)


def ask(client, request):
    client.send(request)
    return client.receive()


def first_scram_token(client):
    client.send(SaslHandshakeRequest(mechanism='SCRAM-SHA-256'))
    token = ScramClient('SCRAM-SHA-256', 'alice', 'secret').first()
    client.send(SaslAuthenticateRequest(auth_bytes=token))


@pytest.mark.parametrize(
    'say',
    [
        lambda client: None,
        lambda client: client.send(ApiVersionsRequest()),
        lambda client: client.send(SaslHandshakeRequest(mechanism='PLAIN')),
        first_scram_token,
        lambda client: client.connection.receive_data(b'\0\0\0\x30\0'),
    ],
    ids=['nothing', 'versions', 'mechanism', 'first token', 'half a frame'],
)
def test_who_stops_in_the_middle_of_a_login_is_closed(say):
    driver = with_logins()
    client = driver.client()
    say(client)
    driver.advance(29.9)
    assert not client.wire.is_closed
    driver.advance(0.2)
    assert client.wire.is_closed
    assert (handshakes(driver), driver.timers.next_time()) == (0, None)


def test_who_says_a_little_now_and_then_is_closed_as_well():
    driver = with_logins()
    client = driver.client()
    for byte in b'\0\0\0\x30' + bytes(25):
        client.connection.receive_data(bytes([byte]))
        driver.advance(1)
    assert not client.wire.is_closed
    driver.advance(1.1)
    assert client.wire.is_closed


def test_who_has_logged_in_may_stay():
    driver = with_logins(connections_max_reauth_ms=3_600_000)
    client = driver.client()
    assert log_in(lambda request: ask(client, request), 'alice', 'secret').error_code == 0
    driver.advance(300)
    client.send(SaslHandshakeRequest(mechanism='PLAIN'))  # once more, and not to the end
    assert client.receive().error_code == 0
    driver.advance(300)
    assert not client.wire.is_closed
    assert handshakes(driver) == 0


def test_a_connection_that_ends_leaves_nothing_to_wait_for():
    driver = with_logins()
    driver.client().connection.close()
    assert (handshakes(driver), driver.timers.next_time()) == (0, None)


def test_there_need_not_be_a_bound():
    driver = with_logins(handshake_timeout_ms=None)
    client = driver.client()
    driver.advance(1e6)
    assert not client.wire.is_closed


def test_a_client_that_needs_no_login_is_not_hurried():
    driver = Driver()
    client = driver.client()
    driver.advance(599)
    client.send(MetadataRequest(topics=[]))
    assert client.receive() is not None


@pytest.mark.parametrize('has_spoken', [False, True])
def test_who_stops_in_the_middle_of_tls_is_closed(files, has_spoken):
    driver = Driver()
    driver.state.tls_context = files.context()
    wire = Wire()
    end = driver.brokers[0].connect(wire)
    if has_spoken:
        outgoing = ssl.MemoryBIO()
        context = ssl.create_default_context(cafile=files.certificate)
        client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname='localhost')
        with pytest.raises(ssl.SSLWantReadError):
            client.do_handshake()
        end.receive_data(outgoing.read())
        assert wire.written
    driver.advance(29.9)
    assert not wire.is_closed
    driver.advance(0.2)
    assert wire.is_closed
    assert (handshakes(driver), driver.timers.next_time()) == (0, None)


def test_a_broker_that_hangs_blames_nobody():
    with MemoryCluster(sasl={'alice': 'secret'}, seed=1) as cluster:
        sock = cluster.connect()
        cluster.pause(0)
        cluster.advance(100)
        cluster.resume(0)
        cluster.advance(5)
        assert not sock.is_ready
        cluster.advance(31)
        assert sock.is_ready
        assert sock.recv(1) == b''
