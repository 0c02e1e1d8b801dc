"""The clients of 0.9.5 and 1.x on secured embedded brokers, over real sockets of this machine."""

from __future__ import annotations

import contextlib
import copy
import logging
import pickle
import socket
import ssl
import threading
import time
import traceback

import pytest

from kafka import KafkaClient, KafkaConnection, SimpleClient, create_message
from kafka.common import FetchRequest, ProduceRequest
from kafka.errors import (
    KafkaConfigurationError,
    KafkaConnectionError,
    KafkaUnavailableError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)
from kafka.net.failures import ProxyError, TlsCertificateError, TlsError
from kafka.net.sasl import AbstractTokenProvider
from kafka.testing import Cluster
from kafka.testing.security.certificates import local_tls, make_certificate
from kafka.testing.security.sasl.oauthbearer import unsigned_token
from test.hostile_servers import CLOSE, Server
from test.net.proxies import SocksProxy

MECHANISMS = ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512', 'OAUTHBEARER']
CANARY = 'Canary-of-a-secret'


class Provider(AbstractTokenProvider):
    def token(self):
        return unsigned_token('alice', int(time.time() * 1000) + 600_000)


def options_of(cluster, mechanism='', password='secret', **more):
    """What a client is told about the cluster."""
    found = {'security_protocol': cluster.security_protocol, **more}
    if cluster.ca_file:
        found.setdefault('ssl_cafile', cluster.ca_file)
    if mechanism == 'OAUTHBEARER':
        found['sasl_oauth_token_provider'] = Provider()
    elif mechanism:
        found.update(sasl_plain_username='alice', sasl_plain_password=password)
    if mechanism:
        found['sasl_mechanism'] = mechanism
    return found


def there_and_back(client):
    """Write a message and read it again."""
    topic = b't' if isinstance(client, KafkaClient) else 't'
    client.send_produce_request([ProduceRequest(topic, 0, [create_message(b'm')])])
    (answer,) = client.send_fetch_request([FetchRequest(topic, 0, 0, 1 << 20)])
    return [each.message.value for each in answer.messages]


@contextlib.contextmanager
def closing(client):
    try:
        yield client
    finally:
        client.close()


@pytest.mark.parametrize('tls', [False, True])
@pytest.mark.parametrize('mechanism', MECHANISMS)
def test_the_client_of_0_9_5_logs_in_by_each_mechanism(mechanism, tls):
    with Cluster(sasl={'alice': 'secret'}, mechanisms=MECHANISMS, tls=tls, topics={'t': 1}) as it:
        with closing(KafkaClient(it.bootstrap, **options_of(it, mechanism))) as client:
            assert there_and_back(client) == [b'm']


@pytest.mark.parametrize('version', ['0.10.2', '1.0', '2.8', '4.4'])
def test_the_client_of_1_x_logs_in_at_each_release(version):
    with Cluster(version=version, sasl={'alice': 'secret'}, tls=True, topics={'t': 1}) as it:
        with closing(SimpleClient(it.bootstrap, **options_of(it, 'SCRAM-SHA-512'))) as client:
            assert there_and_back(client) == [b'm']


def test_tls_alone_and_copies_of_a_client():
    with Cluster(tls=True, topics={'t': 1}) as it:
        with closing(KafkaClient(it.bootstrap, **options_of(it))) as client:
            assert there_and_back(client) == [b'm']
            with closing(client.copy()) as copied:
                assert there_and_back(copied) == [b'm', b'm']


def test_pem_text_stands_for_a_file():
    with Cluster(tls=True) as it, open(it.ca_file, encoding='ascii') as file:
        options = options_of(it, ssl_cafile=file.read())
        KafkaClient(it.bootstrap, **options).close()


def test_a_context_of_the_program_is_used_as_it_is():
    with Cluster(tls=True) as it:
        context = ssl.create_default_context(cafile=it.ca_file)
        KafkaClient(it.bootstrap, security_protocol='SSL', ssl_context=context).close()


def test_a_client_certificate_says_who_one_is(tmp_path):
    certificate, key = make_certificate(str(tmp_path), 'alice', hosts=())
    tls = local_tls()._replace(client_ca=certificate, client_auth='required')
    with Cluster(tls=tls, authorizer=True, topics={'t': 1}) as it:
        it.allow('CN=alice', 'Read', 'Write', 'Describe', topic='t')
        shown = options_of(it, ssl_certfile=certificate, ssl_keyfile=key)
        with closing(KafkaClient(it.bootstrap, **shown)) as client:
            assert there_and_back(client) == [b'm']
        with pytest.raises(KafkaUnavailableError, match='demands (a certificate|one)'):
            KafkaClient(it.bootstrap, **options_of(it))


@pytest.mark.parametrize('tls', [False, True])
@pytest.mark.parametrize('version', ['0.10.2', '4.4'])
@pytest.mark.parametrize('mechanism', ['PLAIN', 'SCRAM-SHA-256'])
def test_a_wrong_password_is_told_at_once_and_never_shown(mechanism, version, tls, caplog):
    caplog.set_level(logging.DEBUG)
    with Cluster(version=version, sasl={'alice': 'secret'}, tls=tls) as it:
        options = options_of(it, mechanism, CANARY)
        with pytest.raises(SaslAuthenticationFailedError) as caught:
            KafkaClient(it.bootstrap, **options)
        assert caught.value.stage == 'SASL' and it.bootstrap in str(caught.value)
        told = ''.join(traceback.format_exception(caught.type, caught.value, caught.tb))
    assert CANARY not in told + caplog.text


def test_secrets_are_never_in_logs_at_debug(caplog):
    caplog.set_level(logging.DEBUG)
    with Cluster(sasl={'alice': CANARY}, topics={'t': 1}) as it:
        for mechanism in ('PLAIN', 'SCRAM-SHA-512'):
            options = options_of(it, mechanism, CANARY)
            with closing(KafkaClient(it.bootstrap, **options)) as client:
                assert b'm' in there_and_back(client)
                told = repr([client, vars(client), client.conns])
                for conn in client.conns.values():
                    told += repr(vars(conn))
                assert CANARY not in told
    assert CANARY not in caplog.text and 'security_protocol' not in caplog.text


def test_a_mechanism_that_is_not_offered():
    with Cluster(sasl={'alice': 'secret'}, mechanisms=['SCRAM-SHA-512']) as it:
        with pytest.raises(UnsupportedSaslMechanismError, match='but SCRAM-SHA-512'):
            KafkaClient(it.bootstrap, **options_of(it, 'PLAIN'))


def test_a_certificate_of_nobody_that_is_trusted():
    with Cluster(tls=True) as it:
        with pytest.raises(TlsCertificateError, match='give the authority as ssl_cafile') as caught:
            KafkaClient(it.bootstrap, security_protocol='SSL')
        assert caught.value.stage == 'TLS'


def test_a_certificate_for_another_host(tmp_path):
    tls = local_tls()._replace()
    certificate, key = make_certificate(str(tmp_path), 'x', hosts=['elsewhere.example'])
    with Cluster(tls=tls._replace(certificate=certificate, key=key)) as it:
        options = options_of(it, ssl_cafile=certificate)
        with pytest.raises(TlsCertificateError, match='is for another name'):
            KafkaClient(it.bootstrap, **options)
        KafkaClient(it.bootstrap, **options, ssl_check_hostname=False).close()


def test_tls_to_a_port_without_it():
    with Cluster() as it:
        with pytest.raises(KafkaUnavailableError, match='So does a listener without TLS'):
            KafkaClient(it.bootstrap, security_protocol='SSL')


def test_a_web_server_where_tls_was_expected():
    with Server(lambda data: (b'HTTP/1.1 400 Bad Request\r\n\r\n', CLOSE)) as server:
        with pytest.raises(TlsError, match='an HTTP answer'):
            KafkaConnection('127.0.0.1', server.port, security_protocol='SSL')


def test_no_tls_to_a_port_with_it():
    with Cluster(tls=True) as it:
        with pytest.raises(KafkaUnavailableError, match='TLS'):
            KafkaClient(it.bootstrap)


def test_a_server_that_says_nothing_is_given_up_in_time():
    with Server() as server:
        for options in (
            {'security_protocol': 'SSL'},
            {
                'security_protocol': 'SASL_PLAINTEXT',
                'sasl_mechanism': 'SCRAM-SHA-256',
                'sasl_plain_username': 'u',
                'sasl_plain_password': 'p',
            },
            {'socks5_proxy': 'socks5h://127.0.0.1:%d' % server.port},
        ):
            began = time.monotonic()
            with pytest.raises(KafkaConnectionError, match='timed out'):
                KafkaConnection('127.0.0.1', server.port, timeout=0.2, **options)
            assert time.monotonic() - began < 20  # of ever


def test_bytes_that_trickle_in_do_not_prolong_the_limit():
    """A peer that goes on with half a TLS record for ever keeps nobody longer than the limit."""
    with Server(lambda data: b'\x16\x03\x03\x40\x00') as server:
        began = time.monotonic()
        with pytest.raises(KafkaConnectionError):
            KafkaConnection('127.0.0.1', server.port, timeout=0.3, security_protocol='SSL')
        assert time.monotonic() - began < 20


def test_what_is_no_option_is_named():
    with pytest.raises(TypeError, match='KafkaClient has no argument ssl_ca'):
        KafkaClient('127.0.0.1:1', ssl_ca='x')
    with pytest.raises(KafkaConfigurationError, match='ssl_cafile: cannot use'):
        KafkaClient('127.0.0.1:1', security_protocol='SSL', ssl_cafile='/nowhere')
    with pytest.raises(TypeError, match='security stands for all of ssl_cafile'):
        KafkaConnection('127.0.0.1', 1, security=None, ssl_cafile='x')


def test_logins_that_end_are_renewed_on_the_same_connection():
    with Cluster(sasl={'alice': 'secret'}, topics={'t': 1}, connections_max_reauth_ms=1500) as it:
        with closing(KafkaClient(it.bootstrap, **options_of(it, 'SCRAM-SHA-256'))) as client:
            there_and_back(client)
            (conn,) = client.conns.values()
            sock = conn.get_connected_socket()
            until = time.monotonic() + 4
            while time.monotonic() < until:
                client.load_metadata_for_topics()
                time.sleep(0.05)
            assert conn.get_connected_socket() is sock


def test_connections_are_copied_and_pickled_with_what_secures_them():
    with Cluster(sasl={'alice': 'secret'}, topics={'t': 1}) as it:
        host, port = it.bootstrap.split(':')
        conn = KafkaConnection(host, int(port), **options_of(it, 'PLAIN'))
        for other in (conn.copy(), copy.deepcopy(conn), pickle.loads(pickle.dumps(conn))):
            assert other.api_versions()
            other.close()
        conn.close()


def test_a_socket_that_breaks_is_an_error_of_the_connection():
    with Cluster(tls=True) as it:
        host, port = it.bootstrap.split(':')
        conn = KafkaConnection(host, int(port), **options_of(it))
        conn.get_connected_socket()._sock.shutdown(socket.SHUT_RDWR)
        with pytest.raises(KafkaConnectionError, match='went away'):
            conn.recv(1)
        assert conn.api_versions()
        conn.close()


@pytest.mark.parametrize(
    ('scheme', 'name'), [('socks5', b'\x01\x7f\x00\x00\x01'), ('socks5h', b'\x03\x09localhost')]
)
def test_a_proxy_leads_to_a_broker_behind_tls(scheme, name):
    """Which of the two looks up the name is the scheme's meaning; TLS is checked end to end."""
    with Cluster(tls=True, sasl={'alice': 'secret'}) as it:
        port = int(it.bootstrap.split(':')[1])
        with SocksProxy(port) as proxy:
            told = options_of(it, 'PLAIN', socks5_proxy='%s://127.0.0.1:%d' % (scheme, proxy.port))
            conn = KafkaConnection('localhost', port, timeout=10, **told)
            assert conn.api_versions()
            conn.close()
        assert proxy.asked[1] == b'\x05\x01\x00' + name + port.to_bytes(2, 'big')


def test_a_proxy_that_is_not_there_is_named():
    with Server() as server:
        port = server.port
    url = 'socks5://me:%s@127.0.0.1:%d' % (CANARY, port)
    with pytest.raises(ProxyError, match='no connection to the proxy socks5://') as caught:
        KafkaConnection('127.0.0.1', 9, timeout=5, proxy_url=url)
    assert caught.value.stage == 'proxy' and CANARY not in str(caught.value)


def test_a_token_that_does_not_come_in_time():
    may_go = threading.Event()

    class Slow(Provider):
        def token(self):
            assert may_go.wait(60)
            return super().token()

    with Cluster(sasl={'alice': 'secret'}, mechanisms=MECHANISMS) as it:
        host, port = it.bootstrap.split(':')
        options = {**options_of(it, 'OAUTHBEARER'), 'sasl_oauth_token_provider': Slow()}
        began = time.monotonic()
        try:
            with pytest.raises(KafkaConnectionError, match='timed out'):
                KafkaConnection(host, int(port), timeout=0.3, **options)
            assert time.monotonic() - began < 10
        finally:
            may_go.set()
