"""BrokerConnection and the evented KafkaClient on secured embedded brokers, over real sockets."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

import pytest

from kafka.conn import BrokerConnection, ConnectionStates
from kafka.errors import (
    KafkaConnectionError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)
from kafka.evented.client import KafkaClient
from kafka.net import mechanisms
from kafka.net.failures import SaslError
from kafka.net.sasl import AbstractTokenProvider
from kafka.protocol.admin import ListGroupsRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.testing import Cluster
from kafka.testing.faults import Hang
from kafka.testing.security.sasl.oauthbearer import unsigned_token
from test.hostile_servers import Server
from test.net.test_connect_logins import Old, Tickets

MECHANISMS = ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512', 'OAUTHBEARER']
#: Longer than anything here takes.
SECONDS = 60
#: What SASLprep writes otherwise.
ODD = 'o\ufb03ce\u00ad'


class Provider(AbstractTokenProvider):
    """Gives a token when it is let; counts in which threads it was asked."""

    def __init__(self, errors=()):
        self.may_go = threading.Event()
        self.may_go.set()
        self.threads = []
        self.errors = list(errors)

    def token(self):
        self.threads.append(threading.current_thread().name)
        assert self.may_go.wait(SECONDS)
        if self.errors:
            raise self.errors.pop(0)
        return unsigned_token('alice', int(time.time() * 1000) + 600_000)


def options_of(cluster, mechanism, password='secret', **more):
    found = {'security_protocol': cluster.security_protocol, 'sasl_mechanism': mechanism, **more}
    if cluster.ca_file:
        found['ssl_cafile'] = cluster.ca_file
    if mechanism == 'OAUTHBEARER':
        found.setdefault('sasl_oauth_token_provider', Provider())
    else:
        found.update(sasl_plain_username='alice', sasl_plain_password=password)
    return found


def connection(address, **options):
    host, _, port = address.rpartition(':')
    return BrokerConnection(host, int(port), socket.AF_INET, **options)


def moved(conn, until):
    """Call connect() until something is true."""
    ends_at = time.monotonic() + SECONDS
    while not until():
        assert time.monotonic() < ends_at
        conn.connect()
        time.sleep(0.001)


def received(conn, future):
    ends_at = time.monotonic() + SECONDS
    while not future.is_done:
        assert time.monotonic() < ends_at
        conn.recv()
        time.sleep(0.001)
    assert future.succeeded(), future.exception
    return future.value


def logins(cluster):
    return sum(each.api.name == 'SASL_HANDSHAKE' for each in cluster.requests)


@pytest.mark.parametrize('tls', [False, True])
@pytest.mark.parametrize('mechanism', MECHANISMS)
def test_a_connection_logs_in_by_each_mechanism(mechanism, tls):
    with Cluster(sasl={'alice': 'secret'}, mechanisms=MECHANISMS, tls=tls) as cluster:
        conn = connection(cluster.bootstrap, **options_of(cluster, mechanism))
        assert conn.connect_blocking(SECONDS)
        future = conn.send(MetadataRequest[0]([]))
        while not future.is_done:
            for response, each in conn.recv():
                each.success(response)
        assert future.value.brokers and conn.versions
        conn.close()


def test_a_client_logs_in_and_asks():
    with Cluster(sasl={'alice': 'secret'}, tls=True, topics={'t': 1}) as cluster:
        client = KafkaClient(
            bootstrap_servers=cluster.bootstrap, **options_of(cluster, 'SCRAM-SHA-256')
        )
        (broker,) = client.cluster.brokers()
        response = client.send_and_receive(broker.nodeId, MetadataRequest[0](['t']))
        assert response.topics[0][1] == 't'
        client.close()


def test_a_wrong_password_is_raised_each_time():
    with Cluster(sasl={'alice': 'secret'}) as cluster:
        told = options_of(cluster, 'PLAIN', 'wrong')
        conn = connection(cluster.bootstrap, **told)
        for _ in range(2):
            with pytest.raises(SaslAuthenticationFailedError):
                conn._connect_within(SECONDS)
            assert conn.disconnected()
            conn.last_attempt = 0
        for _ in range(2):
            with pytest.raises(SaslAuthenticationFailedError):
                KafkaClient(bootstrap_servers=cluster.bootstrap, **told)


def test_a_mechanism_that_is_not_offered_is_raised():
    with Cluster(sasl={'alice': 'secret'}, mechanisms=['SCRAM-SHA-512']) as cluster:
        for _ in range(2):
            with pytest.raises(UnsupportedSaslMechanismError, match='not offer PLAIN'):
                KafkaClient(bootstrap_servers=cluster.bootstrap, **options_of(cluster, 'PLAIN'))


def test_the_other_form_of_a_password_is_tried_on_another_connection():
    with Cluster(sasl={'alice': ODD}, mechanisms=['SCRAM-SHA-256']) as cluster:
        conn = connection(cluster.bootstrap, **options_of(cluster, 'SCRAM-SHA-256', ODD))
        assert conn._connect_within(SECONDS)
        assert logins(cluster) == 2
        conn.close()


def test_a_broker_of_0_9_gets_the_ticket_at_once(monkeypatch):
    monkeypatch.setattr(mechanisms, 'registered', {**mechanisms.registered, 'GSSAPI': Tickets})
    old = Old()
    with Server(old) as server:
        conn = connection(
            server.address, security_protocol='SASL_PLAINTEXT', sasl_mechanism='GSSAPI'
        )
        assert conn._connect_within(SECONDS)
        assert received(conn, conn.send(ListGroupsRequest[0]())).error_code == 0
        assert old.seen[1:3] == [b'ticket', b'no layer']
        conn.close()


# ---------------------------------------------------------------- what takes time


@contextlib.contextmanager
def waiting_for_a_token():
    """Yield (connection, provider), which is asked and does not answer until it may."""
    with Cluster(sasl={'alice': 'secret'}, mechanisms=MECHANISMS) as cluster:
        provider = Provider()
        provider.may_go.clear()
        conn = connection(
            cluster.bootstrap,
            **options_of(cluster, 'OAUTHBEARER', sasl_oauth_token_provider=provider),
        )
        moved(conn, lambda: provider.threads)
        yield conn, provider
        provider.may_go.set()


def test_connecting_does_not_wait_for_a_token():
    with waiting_for_a_token() as (conn, provider):
        assert provider.threads == ['kafka-helper']
        for _ in range(5):  # would wait in the provider
            assert conn.connect() is ConnectionStates.HANDSHAKE
        provider.may_go.set()
        moved(conn, conn.connected)
        conn.close()


def test_a_token_that_does_not_come_in_time():
    with waiting_for_a_token() as (conn, _):
        conn.last_attempt -= 3600
        conn.connect()
        assert conn.disconnected()


def test_a_provider_that_fails_is_told():
    with Cluster(sasl={'alice': 'secret'}, mechanisms=MECHANISMS) as cluster:
        conn = connection(
            cluster.bootstrap,
            **options_of(
                cluster, 'OAUTHBEARER', sasl_oauth_token_provider=Provider([OSError('mine')])
            ),
        )
        with pytest.raises(SaslError, match='the provider of tokens, failed with OSError') as told:
            conn._connect_within(SECONDS)
        assert isinstance(told.value.__cause__, OSError) and str(told.value.__cause__) == 'mine'
        assert conn.disconnected()


# ---------------------------------------------------------------- logins that end


@pytest.fixture
def short():
    """A cluster whose logins end; the tests let their time pass."""
    with Cluster(
        sasl={'alice': 'secret'},
        mechanisms=MECHANISMS,
        connections_max_reauth_ms=3_600_000,
        topics={'t': 1},
    ) as cluster:
        yield cluster


@pytest.mark.parametrize('mechanism', ['PLAIN', 'OAUTHBEARER'])
def test_a_login_is_renewed_behind_what_is_in_flight(short, mechanism):
    provider = Provider()
    more = {'sasl_oauth_token_provider': provider} if mechanism == 'OAUTHBEARER' else {}
    conn = connection(short.bootstrap, **options_of(short, mechanism, **more))
    assert conn._connect_within(SECONDS)
    seconds = 600 if mechanism == 'OAUTHBEARER' else 3600
    assert 0.7 * seconds < conn._socket.renew_at - time.monotonic() < 0.96 * seconds
    first = [conn.send(MetadataRequest[0](['t'])) for _ in range(3)]
    conn._socket.renew_at = 0
    last = conn.send(MetadataRequest[0](['t']))
    assert [each.value.topics[0][1] for each in first] == ['t'] * 3
    assert received(conn, last).topics and logins(short) == 2
    assert conn._socket.renew_at > time.monotonic()
    assert set(provider.threads) <= {'kafka-helper'}
    assert len({each.connection for each in short.requests}) == 1
    conn.close()


def test_programs_of_1_3_get_all_answers_from_recv(short):
    conn = connection(short.bootstrap, **options_of(short, 'PLAIN'))
    assert conn.connect_blocking(SECONDS)
    sent = [conn.send(MetadataRequest[0](['t'])) for _ in range(3)]
    conn._socket.renew_at = 0
    sent.append(conn.send(MetadataRequest[0](['t'])))
    assert not any(future.is_done for future in sent)
    conn.check_version(timeout=SECONDS)
    got = []
    while len(got) < 4:
        got += conn.recv()
    assert [future for _, future in got] == sent and logins(short) == 2
    conn.close()


def test_a_renewal_that_is_refused_fails_the_request_and_closes(short):
    provider = Provider()
    conn = connection(
        short.bootstrap, **options_of(short, 'OAUTHBEARER', sasl_oauth_token_provider=provider)
    )
    assert conn._connect_within(SECONDS)
    conn._socket.renew_at = 0
    provider.errors.append(SaslError('no more tokens'))
    future = conn.send(MetadataRequest[0](['t']))
    assert isinstance(future.exception, SaslError) and conn.disconnected()
    conn.last_attempt = 0
    assert conn._connect_within(SECONDS)
    assert received(conn, conn.send(MetadataRequest[0](['t']))).topics
    conn.close()


def test_a_renewal_whose_token_does_not_come_in_time_names_the_connection(short):
    provider = Provider()
    conn = connection(
        short.bootstrap, **options_of(short, 'OAUTHBEARER', sasl_oauth_token_provider=provider)
    )
    assert conn._connect_within(SECONDS)
    conn._socket.renew_at = 0
    conn.config['request_timeout_ms'] = 50
    provider.may_go.clear()
    future = conn.send(MetadataRequest[0](['t']))
    provider.may_go.set()
    assert future.exception.args == ('%s: the login is not ready in time' % conn,)
    assert type(future.exception) is KafkaConnectionError and conn.disconnected()


def test_answers_that_do_not_come_end_the_wait_for_a_renewal(short):
    conn = connection(short.bootstrap, **options_of(short, 'PLAIN'))
    assert conn._connect_within(SECONDS)
    short.faults.add(Hang(), 'Metadata', times=1)
    hanging = conn.send(MetadataRequest[0](['t']))
    conn._socket.renew_at = 0
    conn.config['request_timeout_ms'] = 50
    future = conn.send(MetadataRequest[0](['t']))
    assert isinstance(future.exception, KafkaConnectionError) and conn.disconnected()
    assert hanging.failed() and logins(short) == 1


def test_a_login_that_is_due_behind_an_answer_that_does_not_come():
    with Cluster(sasl={'alice': 'secret'}) as cluster:
        options = options_of(cluster, 'PLAIN', request_timeout_ms=300)
        conn = connection(cluster.bootstrap, **options)
        assert conn._connect_within(SECONDS)
        cluster.faults.add(Hang(), 'Metadata', times=None)
        waits = conn.send(MetadataRequest[1]([]))
        conn._socket.renew_at = 0.0
        refused = conn.send(ListGroupsRequest[0]())
        assert 'login cannot be renewed' in str(waits.exception)
        assert refused.failed() and conn.disconnected()
