"""Each option about connections and their security changes what it says, as a producer uses it.

How TLS, logins and proxies work is shown by the tests of ``kafka.net``; here, that what a producer
is told gets there. At the end: no option is left out, and those without effect say so.
"""

from __future__ import annotations

import importlib
import socket
import ssl
import subprocess
import time
import types

import pytest

from kafka import KafkaConsumer, KafkaProducer, config
from kafka.errors import KafkaConfigurationError, KafkaError, KafkaTimeoutError, NoBrokersAvailable
from kafka.net import node_connection
from kafka.net import pool as pools
from kafka.net.sasl import gssapi
from kafka.net.sasl.oauth import AbstractTokenProvider
from kafka.testing import Cluster
from kafka.testing.security.certificates import local_tls, make_certificate
from kafka.testing.security.sasl.oauthbearer import unsigned_token
from kafka.testing.security.tls import Tls
from test.hostile_servers import CLOSE, Server
from test.producer.shown import SHOWN, received, shows

SECONDS = 60


@pytest.fixture
def cluster():
    with Cluster(version='4.4', topics={'t': 1}) as running:
        yield running


@pytest.fixture
def make():
    made = []

    def give(cluster, **more):
        servers = cluster if isinstance(cluster, str) else cluster.bootstrap
        made.append(KafkaProducer(**{'bootstrap_servers': servers, **more}))
        return made[-1]

    yield give
    for producer in made:
        producer.close(timeout=5)


def wait(producer, condition):
    assert producer._loop.wait(condition, SECONDS)


# ---------------------------------------------------------------- finding the cluster


@shows('bootstrap_servers', 'client_id')
def test_servers_and_name(cluster, make):
    make(cluster, client_id='me').send('t', b'v').get(SECONDS)
    assert {each.client_id for each in cluster.requests} == {'me'}
    with pytest.raises(NoBrokersAvailable, match='127.0.0.1:1 '):
        make('127.0.0.1:1', bootstrap_timeout_ms=10)


@shows('bootstrap_timeout_ms', 'api_version_auto_timeout_ms')
@pytest.mark.parametrize('name', ['bootstrap_timeout_ms', 'api_version_auto_timeout_ms'])
def test_how_long_it_looks_for_a_broker(make, name):
    with pytest.raises(NoBrokersAvailable, match='within 0.12 seconds'):
        make('127.0.0.1:1', **{name: 120})


@shows('client_dns_lookup')
@pytest.mark.parametrize(
    ('way', 'names'),
    [('use_all_dns_ips', []), ('resolve_canonical_bootstrap_servers_only', ['localhost'])],
)
def test_names_of_servers(cluster, make, monkeypatch, way, names):
    asked = []

    def look_up(host, port):
        asked.append(host)
        return [types.SimpleNamespace(sockaddr=('127.0.0.1', port))]

    monkeypatch.setattr(pools, 'look_up', look_up)
    monkeypatch.setattr(pools, 'canonical_name', lambda each: '127.0.0.1')
    make(cluster.bootstrap.replace('127.0.0.1', 'localhost'), client_dns_lookup=way)
    assert asked == names


@shows('api_version')
def test_release(cluster, make):
    producer = make(cluster, api_version=(0, 9))
    assert not cluster.requests, 'a broker was asked though its release was told'
    assert producer.max_usable_produce_magic(producer.config['api_version']) == 0
    assert make(cluster).config['api_version'] >= (4, 0)


@pytest.mark.parametrize('told', [(0, 9), (0, 8, 2), (0, 8)])
def test_a_release_that_is_long_gone_may_be_told(cluster, make, told):
    """Brokers from 4.0 on close the connection at what those of that release were sent."""
    producer = make(cluster, api_version=told)
    assert producer.send('t', b'x').get(30).offset == 0
    producer.flush()
    with KafkaConsumer(
        't', bootstrap_servers=cluster.bootstrap, api_version=told, auto_offset_reset='earliest'
    ) as consumer:
        assert next(consumer).value == b'x'


@shows('allow_auto_create_topics')
@pytest.mark.parametrize('creates', [True, False])
def test_topics_that_there_are_not(cluster, make, creates):
    producer = make(cluster, allow_auto_create_topics=creates, max_block_ms=2000)
    if creates:
        assert producer.partitions_for('new')
    else:
        with pytest.raises(KafkaTimeoutError):
            producer.partitions_for('new')
    assert ('new' in cluster.state.topics) is creates


@shows('metadata_max_age_ms')
def test_age(cluster, make):
    producer = make(cluster, metadata_max_age_ms=20, retry_backoff_ms=1)
    wait(producer, lambda: len(received(cluster, 'METADATA')) >= 4)


@shows('metadata_recovery_strategy', 'metadata_recovery_rebootstrap_trigger_ms')
@pytest.mark.parametrize('strategy', ['rebootstrap', 'none'])
def test_beginning_anew(cluster, make, strategy):
    producer = make(
        cluster,
        metadata_recovery_strategy=strategy,
        metadata_recovery_rebootstrap_trigger_ms=50,
        request_timeout_ms=30,
        socket_connection_setup_timeout_ms=30,
        socket_connection_setup_timeout_max_ms=30,
        reconnect_backoff_ms=1,
        retry_backoff_ms=1,
        metadata_max_age_ms=10,
        delivery_timeout_ms=60000,
    )
    begun, refresh = [], producer._engine.pool._rebootstrap

    async def rebootstrap():
        begun.append(1)
        await refresh()

    producer._engine.pool._rebootstrap = rebootstrap
    cluster.pause(cluster.nodes[0])  # it is silent, and there: only the trigger tells
    topics = producer._engine.pool.topics
    wait(producer, lambda: begun or strategy == 'none' and topics._dull > 8)
    assert bool(begun) is (strategy == 'rebootstrap')


# ---------------------------------------------------------------- connections


def backoffs(monkeypatch, module):
    """Return the set to which (base, longest) of each back-off of a module is added."""
    asked = set()
    real = module.backoff_seconds

    def backoff(base, longest, failures, part):
        asked.add((base, longest))
        return real(base, longest, failures, part)

    monkeypatch.setattr(module, 'backoff_seconds', backoff)
    return asked


@shows('reconnect_backoff_ms', 'reconnect_backoff_max_ms')
def test_reconnecting(make, monkeypatch):
    asked = backoffs(monkeypatch, pools)
    with pytest.raises(NoBrokersAvailable):
        make(
            '127.0.0.1:1',
            reconnect_backoff_ms=7,
            reconnect_backoff_max_ms=9,
            bootstrap_timeout_ms=50,
        )
    assert asked == {(0.007, 0.009)}


@shows('socket_connection_setup_timeout_ms', 'socket_connection_setup_timeout_max_ms')
def test_connecting_in_time(make, monkeypatch):
    asked = backoffs(monkeypatch, node_connection)
    with Server() as silent, pytest.raises(NoBrokersAvailable) as caught:
        make(
            silent.address,
            socket_connection_setup_timeout_ms=40,
            socket_connection_setup_timeout_max_ms=60,
            bootstrap_timeout_ms=300,
        )
    assert (0.04, 0.06) in asked
    assert any(each.stage == 'ApiVersions' for each in caught.value.attempts)


@shows('connections_max_idle_ms')
def test_idle_connections(cluster, make):
    producer = make(cluster, connections_max_idle_ms=100)
    producer.send('t', b'v').get(SECONDS)
    wait(producer, lambda: not producer.bootstrap_connected())


@shows('receive_message_max_bytes')
def test_large_answers(cluster, make):
    with pytest.raises(KafkaError, match='50'):
        make(cluster, receive_message_max_bytes=50, bootstrap_timeout_ms=500)


@shows('send_buffer_bytes', 'receive_buffer_bytes', 'socket_options')
def test_sockets(cluster, make, monkeypatch):
    told = []

    class Recording(socket.socket):
        def setsockopt(self, *arguments):
            told.append(arguments)
            super().setsockopt(*arguments)

    monkeypatch.setattr(socket, 'socket', Recording)
    more = (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    make(cluster, send_buffer_bytes=20000, receive_buffer_bytes=30000, socket_options=[more])
    assert {
        (socket.SOL_SOCKET, socket.SO_SNDBUF, 20000),
        (socket.SOL_SOCKET, socket.SO_RCVBUF, 30000),
        more,
    } <= set(told)


@shows('proxy_url', 'socks5_proxy')
@pytest.mark.parametrize(
    ('option', 'scheme', 'begins'),
    [('proxy_url', 'http', b'CONNECT 127.0.0.1:1 '), ('socks5_proxy', 'socks5', b'\x05')],
)
def test_proxies(make, option, scheme, begins):
    said = []

    def answer(data):
        said.append(data)
        return CLOSE

    with Server(answer) as proxy, pytest.raises(NoBrokersAvailable):
        url = '%s://%s' % (scheme, proxy.address)
        make('127.0.0.1:1', bootstrap_timeout_ms=300, **{option: url})
    assert said[0].startswith(begins)


# ---------------------------------------------------------------- TLS


@pytest.fixture(scope='module')
def files(tmp_path_factory):
    """The files of a client's certificate and key."""
    return make_certificate(str(tmp_path_factory.mktemp('keys')), 'alice', hosts=())


@pytest.fixture
def demanding(files):
    """A cluster that wants the certificate of a client."""
    tls = local_tls()._replace(client_ca=files[0], client_auth='required')
    with Cluster(tls=tls, topics={'t': 1}) as running:
        yield running


@shows('security_protocol', 'ssl_cafile', 'ssl_certfile', 'ssl_keyfile')
def test_certificates(demanding, make, files):
    whole = {
        'security_protocol': 'SSL',
        'ssl_cafile': demanding.ca_file,
        'ssl_certfile': files[0],
        'ssl_keyfile': files[1],
    }
    make(demanding, **whole).send('t', b'v').get(SECONDS)
    for missing in (['security_protocol'], ['ssl_cafile'], ['ssl_certfile', 'ssl_keyfile']):
        some = {name: value for name, value in whole.items() if name not in missing}
        with pytest.raises(KafkaError):
            make(demanding, bootstrap_timeout_ms=2000, **some)


@shows('ssl_context')
def test_context(demanding, make, files):
    context = ssl.create_default_context(cafile=demanding.ca_file)
    context.load_cert_chain(*files)
    producer = make(demanding, security_protocol='SSL', ssl_context=context)
    producer.send('t', b'v').get(SECONDS)


@shows('ssl_check_hostname')
def test_host_name(make, tmp_path):
    files = make_certificate(str(tmp_path), 'another', hosts=['another.example'])
    with Cluster(tls=Tls(*files), topics={'t': 1}) as cluster:
        known = {'security_protocol': 'SSL', 'ssl_cafile': cluster.ca_file}
        with pytest.raises(KafkaError, match='ertificate'):
            make(cluster, bootstrap_timeout_ms=2000, **known)
        make(cluster, ssl_check_hostname=False, **known).send('t', b'v').get(SECONDS)


@shows('ssl_ciphers', 'ssl_password', 'ssl_crlfile')
def test_details_of_tls(make, files, tmp_path):
    with pytest.raises(KafkaConfigurationError, match='ssl_ciphers'):
        make('127.0.0.1:1', security_protocol='SSL', ssl_ciphers='NONE-OF-THESE')
    with pytest.raises(KafkaConfigurationError, match='ssl_crlfile'):
        make('127.0.0.1:1', security_protocol='SSL', ssl_crlfile=str(tmp_path / 'none'))
    asked = []

    def password():
        asked.append(1)
        return 'secret'

    protected = _protected(files[1])
    certificate = {'ssl_certfile': files[0], 'ssl_keyfile': protected, 'ssl_password': password}
    make('127.0.0.1:1', api_version=(2, 8), security_protocol='SSL', **certificate)
    assert asked
    with pytest.raises(KafkaConfigurationError, match='ssl_password'):
        make('127.0.0.1:1', security_protocol='SSL', **{**certificate, 'ssl_password': 'wrong'})


def _protected(key):
    """Return the text of a key, behind the password 'secret'."""
    return subprocess.run(
        ['openssl', 'pkcs8', '-topk8', '-in', key, '-passout', 'pass:secret'],
        check=True,
        timeout=SECONDS,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ).stdout.decode()


# ---------------------------------------------------------------- logins


@shows('sasl_mechanism', 'sasl_plain_username', 'sasl_plain_password')
@pytest.mark.parametrize('mechanism', ['PLAIN', 'SCRAM-SHA-256'])
def test_passwords(make, mechanism):
    whole = {
        'security_protocol': 'SASL_PLAINTEXT',
        'sasl_mechanism': mechanism,
        'sasl_plain_username': 'alice',
        'sasl_plain_password': 'secret',
    }
    with Cluster(sasl={'alice': 'secret'}, mechanisms=[mechanism], topics={'t': 1}) as cluster:
        make(cluster, **whole).send('t', b'v').get(SECONDS)
        for wrong in (
            {'sasl_plain_username': 'bob'},
            {'sasl_plain_password': 'x'},
            {'sasl_mechanism': 'SCRAM-SHA-512'},
        ):
            with pytest.raises(KafkaError):
                make(cluster, bootstrap_timeout_ms=2000, **{**whole, **wrong})


class Provider(AbstractTokenProvider):
    """Gives a token."""

    def token(self):
        """Return one for alice."""
        return unsigned_token('alice', int((time.time() + 600) * 1000))


@shows('sasl_oauth_token_provider')
def test_tokens(make):
    with Cluster(sasl={}, mechanisms=['OAUTHBEARER'], topics={'t': 1}) as cluster:
        producer = make(
            cluster,
            security_protocol='SASL_PLAINTEXT',
            sasl_mechanism='OAUTHBEARER',
            sasl_oauth_token_provider=Provider(),
        )
        producer.send('t', b'v').get(SECONDS)


@shows('sasl_kerberos_service_name', 'sasl_kerberos_domain_name', 'sasl_kerberos_name')
@pytest.mark.parametrize(
    ('options', 'name'),
    [
        ({}, ('kafka@127.0.0.1', 'host')),
        ({'sasl_kerberos_service_name': 'queue'}, ('queue@127.0.0.1', 'host')),
        ({'sasl_kerberos_domain_name': 'a.example'}, ('kafka@a.example', 'host')),
        ({'sasl_kerberos_name': 'kafka/b@REALM'}, ('kafka/b@REALM', 'principal')),
    ],
)
def test_names_of_kerberos(make, options, name):
    kinds = types.SimpleNamespace(hostbased_service='host', kerberos_principal='principal')
    package = types.SimpleNamespace(Name=lambda *parts: parts, NameType=kinds)
    login = {'security_protocol': 'SASL_PLAINTEXT', 'sasl_mechanism': 'GSSAPI'}
    producer = make('127.0.0.1:1', api_version=(2, 8), **login, **options)
    made = gssapi.Gssapi(producer._engine.pool.settings.security.sasl, '127.0.0.1', 0.0)
    assert made._service(package) == name


# ---------------------------------------------------------------- all of them


def test_no_option_is_left_out():
    importlib.import_module('test.behaviour.test_options_of_records')
    rows = config.options_of(config.PRODUCER)
    without = {name for name, row in rows.items() if row.is_ignored}
    assert set(rows) == SHOWN | without
    assert not SHOWN & without


def test_those_without_effect_say_why():
    for row in config.options_of(config.PRODUCER).values():
        if row.is_ignored:
            assert 'no effect' in row.doc.lower() and ':' in row.doc, row.name
