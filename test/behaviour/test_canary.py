"""No secret is shown: not in a log at DEBUG, a repr, an error and its attempts, a copy by pickle.

Every kind of secret, through every kind of client that there is, where it goes well and where it
is refused.
"""

from __future__ import annotations

import json
import logging
import pickle
import socket
import subprocess
import sys
import time
import traceback
import types

import pytest

from kafka import KafkaClient, KafkaConsumer, KafkaProducer, SimpleClient
from kafka.conn import BrokerConnection
from kafka.conn import KafkaConnection as Connection
from kafka.evented.client import KafkaClient as Evented
from kafka.net.sasl import AbstractTokenProvider
from kafka.net.security import SecuritySettings
from kafka.testing import Cluster
from kafka.testing.security.certificates import local_tls, make_certificate
from kafka.testing.security.sasl.mechanisms import LoginFailed, Mechanism
from kafka.testing.security.sasl.oauthbearer import unsigned_token
from test.hostile_servers import CLOSE, Server
from test.net.sasl import identity_provider

CANARY = 'Canary-of-a-secret'
SECONDS = 60
MECHANISMS = ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512', 'OAUTHBEARER']


#: What nobody may see in the test that runs.
secrets = {CANARY}


class Provider(AbstractTokenProvider):
    """Gives tokens, which are secrets from then on."""

    def __init__(self, seconds=600):
        self.seconds = seconds

    def token(self):
        told = unsigned_token('alice', int((time.time() + self.seconds) * 1000))
        secrets.add(told.split('.')[1])
        return told


# ---------------------------------------------------------------- looking


def reachable(thing):
    """Yield what belongs to a client, as far as it is the package's."""
    seen, found = set(), [thing]
    while found:
        each = found.pop()
        if id(each) in seen or isinstance(each, (str, bytes, int, float, type(None), type)):
            continue
        seen.add(id(each))
        if isinstance(each, dict):
            found.extend(each.values())
        elif isinstance(each, (list, tuple, set, frozenset)):
            found.extend(each)
        elif type(each).__module__.split('.')[0] == 'kafka':
            yield each
        if type(each).__module__.split('.')[0] == 'kafka':
            found.extend(getattr(each, '__dict__', {}).values())
            slots = [name for cls in type(each).__mro__ for name in getattr(cls, '__slots__', ())]
            found.extend(getattr(each, name, None) for name in slots)


def shown_by(client):
    """Return what a client and its parts show of themselves."""
    texts = [repr(client), str(client)]
    for each in reachable(client):
        texts += [repr(each), repr(getattr(each, '__dict__', ''))]
    return '\n'.join(texts)


def told_by(error):
    """Return what an error tells, with those behind it and the attempts."""
    texts = traceback.format_exception(type(error), error, error.__traceback__)
    attempts = getattr(error, 'attempts', ())
    return ''.join([*texts, repr(error), repr(attempts), *map(str, attempts), repr(vars(error))])


# ---------------------------------------------------------------- the clients


def produced(bootstrap, options):
    with KafkaProducer(bootstrap_servers=bootstrap, **options) as producer:
        producer.send('t', b'v').get(SECONDS)
        copy = pickle.loads(pickle.dumps(producer)) if _pickles(options) else None
        texts = shown_by(producer)
        if copy is not None:
            texts += shown_by(copy)
            copy.close()
    return texts + shown_by(producer)


def evented(bootstrap, options):
    client = Evented(bootstrap_servers=bootstrap, **options)
    (broker,) = client.cluster.brokers()
    client.await_ready(broker.nodeId, SECONDS * 1000)
    texts = shown_by(client)
    client.close()
    return texts


def connected(bootstrap, options):
    host, _, port = bootstrap.rpartition(':')
    conn = BrokerConnection(host, int(port), socket.AF_INET, **options)
    try:
        assert conn.connect_blocking(SECONDS)
        return shown_by(conn)
    finally:
        conn.close()


def of_0_9_5(face):
    def asked(bootstrap, options):
        client = face(bootstrap, **options)
        client.load_metadata_for_topics()
        texts = shown_by(client)
        if _pickles(options):
            texts += shown_by(pickle.loads(pickle.dumps(client.copy())))
        client.close()
        return texts

    return asked


def consumed(bootstrap, options):
    consumer = KafkaConsumer('t', bootstrap_servers=bootstrap, dialect='0.9.5', **options)
    texts = shown_by(consumer)
    consumer.close()
    return texts


def blocking(bootstrap, options):
    host, _, port = bootstrap.rpartition(':')
    conn = Connection(host, int(port), timeout=SECONDS, **options)
    texts = shown_by(conn)
    conn.close()
    return texts


def settings_alone(bootstrap, options):
    settings = SecuritySettings.from_options(options)
    if settings.tls is not None:
        settings.context()
    texts = shown_by(settings)
    return texts + (shown_by(pickle.loads(pickle.dumps(settings))) if _pickles(options) else '')


def _pickles(options):
    return 'ssl_context' not in options


CLIENTS = {
    'KafkaProducer': produced,
    'evented': evented,
    'BrokerConnection': connected,
    'KafkaClient': of_0_9_5(KafkaClient),
    'SimpleClient': of_0_9_5(SimpleClient),
    'KafkaConnection': blocking,
    'KafkaConsumer of 0.9.5': consumed,
}
every_client = pytest.mark.parametrize('use', CLIENTS.values(), ids=CLIENTS)


def seen_in(text):
    """Return the secrets that a text shows."""
    return [each for each in secrets if each in text]


@pytest.fixture(autouse=True)
def no_canary_in_logs(caplog):
    caplog.set_level(logging.DEBUG)
    yield
    texts = [record.getMessage() for record in caplog.get_records('call')]
    texts += [repr(record.args) for record in caplog.get_records('call')]
    for text in [*texts, caplog.text]:
        assert not seen_in(text)
    secrets.clear()
    secrets.add(CANARY)


def goes_well(use, bootstrap, options):
    texts = use(bootstrap, options)
    assert 'kafka' in texts.lower() and not seen_in(texts)


def is_refused(use, bootstrap, options):
    """Use a client that is refused; it may raise, or show nothing."""
    try:
        texts = use(bootstrap, {**options, **QUICK.get(use, {})})
    except Exception as error:
        texts = told_by(error)
    else:
        raise AssertionError('it was not refused: %s' % texts[:200])
    assert not seen_in(texts)


QUICK = {
    produced: {'bootstrap_timeout_ms': 400},
    evented: {'api_version': None, 'api_version_auto_timeout_ms': 400},
}


def options_of(cluster, mechanism='', **more):
    found = {'security_protocol': cluster.security_protocol, **more}
    if cluster.ca_file:
        found.setdefault('ssl_cafile', cluster.ca_file)
    if mechanism == 'OAUTHBEARER':
        found.setdefault('sasl_oauth_token_provider', Provider())
    elif mechanism:
        found.update(sasl_plain_username='alice', sasl_plain_password=CANARY)
    if mechanism:
        found['sasl_mechanism'] = mechanism
    return found


# ---------------------------------------------------------------- logins


@pytest.fixture(params=['good', 'wrong'])
def secured(request):
    """Whether the canary is the password, and a cluster."""
    password = CANARY if request.param == 'good' else 'another'
    with Cluster(
        sasl={'alice': password}, mechanisms=MECHANISMS, tls=True, topics={'t': 1}
    ) as cluster:
        yield request.param, cluster


@pytest.fixture
def check(secured):
    return goes_well if secured[0] == 'good' else is_refused


@every_client
@pytest.mark.parametrize('mechanism', MECHANISMS)
def test_passwords_and_tokens(secured, check, use, mechanism):
    kind, cluster = secured
    more = {}
    if mechanism == 'OAUTHBEARER':
        more['sasl_oauth_token_provider'] = Provider(600 if kind == 'good' else -600)
    check(use, cluster.bootstrap, options_of(cluster, mechanism, **more))


@every_client
def test_the_secret_of_an_identity_provider(secured, use, monkeypatch):
    monkeypatch.setattr(identity_provider, 'SECRET', CANARY)
    kind, cluster = secured

    def give(handler):
        body = identity_provider.token(access_token=Provider().token(), expires_in=600)[2]
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(body)

    refusal = 401, {}, b'{"error": "invalid_client"}'
    answer = give if kind == 'good' else refusal
    with identity_provider.Provider(answer) as provider:
        told = options_of(cluster, 'OAUTHBEARER', sasl_oauth_token_provider=provider.client())
        (goes_well if kind == 'good' else is_refused)(use, cluster.bootstrap, told)


class OfAws(Mechanism):
    """The broker's half of AWS_MSK_IAM: looks at the request."""

    accepts = True

    def step(self, token):
        """Take the signed request."""
        request = json.loads(token)
        assert request['x-amz-credential'].startswith('AKID/')
        secrets.update({request['x-amz-signature'], request['x-amz-security-token']})
        if not self.accepts:
            raise LoginFailed('Access denied')
        self.finish('alice')
        return b'{"version":"2020_10_22"}'


@every_client
def test_the_keys_of_aws(secured, check, use, monkeypatch):
    kind, cluster = secured
    secrets.add(CANARY + '-of-the-session')
    keys = types.SimpleNamespace(
        access_key='AKID', secret_key=CANARY, token=CANARY + '-of-the-session'
    )
    found = types.SimpleNamespace(get_frozen_credentials=lambda: keys)
    session = types.SimpleNamespace(
        get_credentials=lambda: found, get_config_variable=lambda name: 'eu-west-1'
    )
    module = types.ModuleType('botocore.session')
    module.Session = lambda: session
    monkeypatch.setitem(sys.modules, 'botocore', types.ModuleType('botocore'))
    monkeypatch.setitem(sys.modules, 'botocore.session', module)
    offers = cluster.state.sasl
    offers.mechanisms.append('AWS_MSK_IAM')
    monkeypatch.setattr(OfAws, 'accepts', kind == 'good')
    monkeypatch.setattr(offers, 'begin', lambda name: OfAws())
    told = options_of(cluster)
    check(use, cluster.bootstrap, {**told, 'sasl_mechanism': 'AWS_MSK_IAM'})
    assert len(secrets) > 2, 'the request has come'


# ---------------------------------------------------------------- keys


@pytest.fixture(scope='module')
def key(tmp_path_factory):
    """The files of a certificate, its key behind the canary, and the key's text."""
    folder = tmp_path_factory.mktemp('keys')
    certificate, plain = make_certificate(str(folder), 'alice', hosts=())
    locked = str(folder / 'locked.key')
    subprocess.run(
        ['openssl', 'pkcs8', '-topk8', '-in', plain, '-out', locked, '-passout', 'pass:' + CANARY],
        check=True,
        timeout=SECONDS,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with open(plain, encoding='ascii') as file:
        return certificate, locked, file.read()


@pytest.fixture
def demanding(key):
    """A cluster that wants the certificate."""
    tls = local_tls()._replace(client_ca=key[0], client_auth='required')
    with Cluster(tls=tls, topics={'t': 1}) as cluster:
        yield cluster


@every_client
def test_the_password_of_a_key(demanding, key, use):
    told = options_of(demanding, ssl_certfile=key[0], ssl_keyfile=key[1], ssl_password=CANARY)
    goes_well(use, demanding.bootstrap, told)
    is_refused(use, demanding.bootstrap, {**told, 'ssl_password': CANARY + 'x'})
    is_refused(use, demanding.bootstrap, {**told, 'ssl_keyfile': key[0]})


@every_client
def test_a_key_as_text(demanding, key, use):
    secret = max(key[2].splitlines(), key=len)
    secrets.add(secret)
    told = options_of(demanding, ssl_certfile=key[0], ssl_keyfile=key[2])
    goes_well(use, demanding.bootstrap, told)
    broken = key[2].replace(secret, secret[:-4] + '!!!!')
    secrets.add(secret[:-4])
    is_refused(use, demanding.bootstrap, {**told, 'ssl_keyfile': broken})


# ---------------------------------------------------------------- proxies


@every_client
@pytest.mark.parametrize('scheme', ['socks5', 'http'])
@pytest.mark.parametrize('name', ['proxy_url', 'socks5_proxy'])
def test_the_password_of_a_proxy(use, scheme, name):
    def refuse(data):
        if scheme == 'http':
            return b'HTTP/1.1 407 Proxy Authentication Required\r\n\r\n', CLOSE
        return (b'\x05\x02', None)[0] if data[0] == 5 else (b'\x01\x01', CLOSE)

    with Server(refuse) as server:
        url = '%s://me:%s@127.0.0.1:%d' % (scheme, CANARY, server.port)
        settings_alone('', {name: url})
        is_refused(use, '127.0.0.1:9', {name: url})
    is_refused(use, '127.0.0.1:9', {name: url})  # it is gone
    is_refused(use, '127.0.0.1:9', {name: url.replace('socks5', 'ftp').replace('http', 'ftp')})


@pytest.mark.parametrize('name', ['proxy_url', 'socks5_proxy'])
def test_settings_show_nothing(name):
    told = {
        'security_protocol': 'SASL_SSL',
        'sasl_mechanism': 'PLAIN',
        'sasl_plain_username': 'alice',
        'sasl_plain_password': CANARY,
        'ssl_password': CANARY,
        name: 'http://me:%s@proxy:8080' % CANARY,
    }
    assert CANARY not in settings_alone('', told)
