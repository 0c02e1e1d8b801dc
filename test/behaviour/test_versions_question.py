"""Brokers that do not answer the versions of ApiVersions that they do not know, and all clients."""

from __future__ import annotations

import contextlib

import pytest

from kafka import KafkaConsumer, KafkaProducer
from kafka.client import KafkaClient
from kafka.conn import KafkaConnection
from kafka.errors import KafkaError, NoBrokersAvailable
from kafka.net import connect as conversation
from kafka.net.connect import Family
from kafka.net.loop.loop import Loop
from kafka.net.node_connection import NodeConnection
from kafka.net.opening import Opening
from kafka.net.security import SecuritySettings
from kafka.net.settings import NetSettings
from kafka.protocol import probe
from kafka.protocol.metadata import MetadataRequest
from kafka.testing import LATER, Cluster
from test.hostile_servers import CLOSE, Broker

SILENT = None


@pytest.fixture(autouse=True)
def short_silence(monkeypatch):
    monkeypatch.setattr(conversation, 'SILENT_SECONDS', 0.05)


class Picky(Broker):
    """A broker that answers ApiVersions up to a version, and does something else above."""

    def __init__(self, limit, above):
        answer = lambda header, _: self.versions() if header.api_version <= limit else above  # noqa: E731
        super().__init__({18: answer})

    @property
    def asked_in(self):
        return [version for key, version in self.requests if key == 18]


class Closing(Broker):
    """Closes the connection at each request."""

    def __init__(self):
        super().__init__(dict.fromkeys(range(100), lambda *_: CLOSE))


def connect_producer(broker, **options):
    KafkaProducer(bootstrap_servers=broker.address, **options).close()


def connect_consumer(broker, **options):
    with KafkaConsumer(bootstrap_servers=broker.address, **options) as consumer:
        assert consumer.topics() == {'t'}


def connect_old(broker):
    with contextlib.closing(KafkaConnection('127.0.0.1', broker.port, timeout=5)) as conn:
        conn._learn()


def connect_evented(broker):
    with contextlib.closing(KafkaClient(bootstrap_servers=broker.address)) as client:
        assert client.config['api_version'] >= (4, 0)


CLIENTS = [connect_producer, connect_consumer, connect_old, connect_evented]


@pytest.mark.parametrize('connect', CLIENTS)
@pytest.mark.parametrize('above', [CLOSE, SILENT])
@pytest.mark.parametrize('limit', [0, 3, 4])
def test_a_lower_version_is_asked_in_where_one_is_not_answered(connect, above, limit):
    with Picky(limit, above) as broker:
        connect(broker)
        first, *rest = broker.asked_in
        assert first == 5
        assert rest == sorted(rest, reverse=True)
        assert rest[-1] == (3 if limit >= 3 else 0)


@pytest.mark.parametrize('connect', [connect_producer, connect_consumer])
def test_the_error_says_which_versions_were_tried(connect):
    with Picky(-1, CLOSE) as broker, pytest.raises(NoBrokersAvailable) as raised:
        connect(broker, bootstrap_timeout_ms=200)
    tried = ', '.join('version %d (connection closed)' % version for version in (5, 3, 0))
    assert 'to ApiVersions: ' + tried in str(raised.value)
    assert 'TLS' not in str(raised.value)  # it has answered Metadata


@pytest.mark.parametrize('connect', [connect_producer, connect_consumer])
@pytest.mark.parametrize('release, asks', [((2, 1), 0), ((3, 9), 0), ((0, 11), 4)])
def test_a_release_that_is_given_is_obeyed(connect, release, asks):
    """Where that is safe on later releases (KIP-896) nobody is asked, else if nobody answers."""
    with Picky(-1, CLOSE) as broker:
        if connect is connect_producer:
            producer = KafkaProducer(bootstrap_servers=broker.address, api_version=release)
            assert producer.partitions_for('t') == {0}
            producer.close()
        else:
            connect(broker, api_version=release)
        assert broker.count(18) <= asks
        assert bool(broker.count(18)) is bool(asks)


@pytest.mark.parametrize('release', [(0, 10, 2), None])
def test_a_port_that_takes_and_closes_connections_for_a_moment_teaches_nothing(release):
    """As a load balancer whose broker restarts: the broker is asked again in full afterwards."""
    loop, family = Loop(), Family()
    family.lists_versions = True
    with contextlib.closing(loop), Closing() as broker:
        round_ = Opening(loop, NetSettings(api_version=release), '127.0.0.1', broker.port, family)
        try:
            loop.run(round_.run(3.0), 5)
        except KafkaError:
            assert release is None
        assert broker.requests
    assert (family.is_mute, family.versions_version) == (False, probe.VERSIONS_TRIED[0])


@pytest.mark.parametrize('dies', [False, True])
def test_a_broker_counts_as_mute_once_it_has_answered_something_else(dies):
    loop, family = Loop(), Family()
    settings = NetSettings(api_version=(0, 11))
    with contextlib.closing(loop), Closing() if dies else Picky(-1, CLOSE) as broker:
        link = NodeConnection(loop, settings, '127.0.0.1', broker.port, family=family)
        loop.run(link.ready(), 5)
        assert not family.is_mute
        try:
            loop.run(link.request(MetadataRequest(topics=None)), 5)
        except KafkaError:
            assert dies
        assert family.is_mute is not dies
        link.close()


def test_what_is_tried_falls_down_to_0():
    assert probe.VERSIONS_TRIED[0] == 5
    assert probe.VERSIONS_TRIED[-1] == 0
    assert probe.versions_to_try(3) == (3, 0)


def test_the_release_of_the_options_is_kept_for_connections():
    options = {'api_version': (2, 8), 'bootstrap_servers': 'h:1', 'security_protocol': 'PLAINTEXT'}
    assert NetSettings.from_options(options).api_version == (2, 8)
    assert NetSettings.from_options({}).security == SecuritySettings()
    assert issubclass(probe.VersionsUnanswered, KafkaError)


@pytest.mark.parametrize('mechanism', ['PLAIN', 'SCRAM-SHA-256'])
@pytest.mark.parametrize('answers', [False, True])
def test_a_broker_behind_a_login_is_asked_in_lower_versions_too(mechanism, answers):
    """Before the login the question is in version 0; where only that is known it is the last."""

    def answer(call):
        if call.version > (3 if answers else 0):
            call.close_connection()
            return LATER
        return None

    login = {'sasl_mechanism': mechanism, 'sasl_plain_username': 'a', 'sasl_plain_password': 'b'}
    with Cluster(sasl={'a': 'b'}, mechanisms=[mechanism], topics={'t': 1}) as cluster:
        cluster.control('ApiVersions', answer)
        with KafkaProducer(
            bootstrap_servers=cluster.bootstrap, security_protocol='SASL_PLAINTEXT', **login
        ) as producer:
            producer.send('t', b'v').get(10)
        asked = [each.version for each in cluster.requests if each.api.name == 'API_VERSIONS']
    assert asked[:2] == [0, 5]
    assert asked[-1] == (3 if answers else 0)
    assert asked.count(5) == 1
