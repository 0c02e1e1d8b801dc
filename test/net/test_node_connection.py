"""One broker: the ways to it, what flows, and what goes wrong on either."""

from __future__ import annotations

import random
import socket
import struct
import threading
import time
from types import SimpleNamespace

import pytest

from kafka.errors import (
    Cancelled,
    CorrelationIdError,
    FrameError,
    IllegalStateError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    ProtocolError,
    SaslAuthenticationFailedError,
    UnsupportedVersionError,
)
from kafka.net import mechanisms
from kafka.net.attempts import Attempt, at_stage, describe, hint_for, stage_of
from kafka.net.node_connection import TRANSITIONS, ConnectionState, NodeConnection, ReconnectBackoff
from kafka.net.sasl.mechanism import Mechanism
from kafka.net.security import SecuritySettings
from kafka.net.settings import NetSettings
from kafka.protocol.admin.groups import ListGroupsRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka.testing import Cluster, MemoryCluster
from kafka.testing.faults import Cut, DropResponse, Hang, Throttle
from test import hostile_servers
from test.hostile_servers import CLOSE, Server, raw
from test.simulation.loop import SimLoop

RELEASES = ['0.8.0', '0.8.1.1', '0.8.2.2', '0.9.0.1', '0.10.0.1', '0.11', '2.8', '4.4']
ASK = MetadataRequest(topics=[])
#: Seconds that a busy machine takes where hardly any should pass; exact times are for simulation.
BUSY = 10


class Sim:
    """A broker in memory and a link to it."""

    def __init__(self, cluster_options=(), **settings):
        options = dict(cluster_options)
        self.cluster = MemoryCluster(version='4.4', seed=2, topics={'t': 1}, **options)
        self.cluster.start()
        self.loop = SimLoop(self.cluster)
        self.lost = []
        self.link = self.make(**settings)

    def make(self, **settings):
        host, _, port = self.cluster.bootstrap.partition(':')
        return NodeConnection(
            self.loop,
            NetSettings(**settings),
            host,
            int(port),
            chance=random.Random(3),
            on_lost=self.lost.append,
        )

    def ask(self, timeout=60, **arguments):
        return self.loop.run(self.link.request(ASK, **arguments), timeout)

    def asked(self, api='METADATA'):
        return [each for each in self.cluster.requests if each.api.name == api]

    def stop(self):
        self.link.close()
        self.loop.close()
        self.cluster.stop()


@pytest.fixture
def sim():
    made = Sim()
    yield made
    made.stop()


def link_to(loop, port, **settings):
    return NodeConnection(loop, NetSettings(**settings), '127.0.0.1', port)


def port_of(cluster):
    return int(cluster.bootstrap.rpartition(':')[2])


# ---------------------------------------------------------------- every release, over sockets


@pytest.mark.parametrize('release', RELEASES)
def test_every_release_is_connected_and_asked(loop, release):
    with Cluster(version=release, topics={'t': 1}) as cluster:
        link = link_to(loop, port_of(cluster))
        answer = loop.run(link.request(MetadataRequest(topics=[])), 20)
        assert [each.node_id for each in answer.brokers] == [0]
        assert link.is_ready
        assert (18 in link.versions.ranges) == (release[:3] not in ('0.8', '0.9'))
        link.close()


def test_a_broker_whose_release_is_given_is_asked_only_whether_it_is_that_old(loop):
    with Cluster(version='0.9.0.1', topics={'t': 1}) as cluster:
        link = link_to(loop, port_of(cluster), release='0.9')
        loop.run(link.request(ListGroupsRequest()), 20)
        assert [each.api.name for each in cluster.requests] == ['METADATA', 'LIST_GROUPS']
        link.close()


@pytest.mark.parametrize('mechanism', ['PLAIN', 'SCRAM-SHA-512'])
def test_tls_and_a_login(loop, mechanism):
    with Cluster(version='4.4', sasl={'alice': 'secret'}, tls=True) as cluster:
        options = {
            'security_protocol': 'SASL_SSL',
            'sasl_mechanism': mechanism,
            'sasl_plain_username': 'alice',
            'sasl_plain_password': 'secret',
            'ssl_cafile': cluster.ca_file,
        }
        security = SecuritySettings.from_options(options)
        link = NodeConnection(loop, NetSettings(security=security), 'localhost', port_of(cluster))
        assert loop.run(link.request(ASK), 20).brokers
        link.close()


def test_no_tls_where_tls_is_wanted(loop):
    with Cluster(version='4.4') as cluster:
        security = SecuritySettings.from_options({'security_protocol': 'SSL'})
        link = link_to(loop, port_of(cluster), security=security)
        with pytest.raises(KafkaConnectionError):
            loop.run(link.ready(), 20)
        assert link.attempts[-1].stage == 'TLS'


def test_tls_where_none_is_wanted(loop):
    with Cluster(version='4.4', tls=True) as cluster:
        link = link_to(loop, port_of(cluster))
        with pytest.raises(KafkaError):
            loop.run(link.ready(), 20)
        assert link.attempts[-1].stage == 'ApiVersions'
        assert 'TLS' in link.attempts[-1].hint


# ---------------------------------------------------------------- bad peers


def test_a_web_server(loop):
    with Server(lambda data: b'HTTP/1.1 400 Bad Request\r\n\r\n') as server:
        link = link_to(loop, server.port)
        with pytest.raises(FrameError, match='web server'):
            loop.run(link.ready(), 20)
        attempt = link.attempts[-1]
        assert attempt.stage == 'ApiVersions'
        assert 'answered with HTTP' in attempt.hint
        assert '127.0.0.1' in str(attempt)


def test_a_peer_that_says_nothing(loop):
    with Server() as server:
        link = link_to(loop, server.port, setup_timeout=0.2)
        began = time.monotonic()
        with pytest.raises(KafkaTimeoutError):
            loop.run(link.ready(), 20)
        assert 0.2 <= time.monotonic() - began < BUSY
        assert 'said nothing' in link.attempts[-1].hint


@pytest.mark.parametrize(
    'answer, error',
    [
        (struct.pack('>i', 2**31 - 1), FrameError),
        (struct.pack('>i', -5), FrameError),
        (struct.pack('>ii', 4, 77), CorrelationIdError),
        (struct.pack('>ii', 5, -2) + b'x', ProtocolError),
        (struct.pack('>i', 0), ProtocolError),
    ],
)
def test_hostile_frames_at_first(loop, answer, error):
    with Server(lambda data: answer) as server:
        link = link_to(loop, server.port)
        with pytest.raises(KafkaError) as raised:
            loop.run(link.ready(), 20)
        assert isinstance(raised.value, (error, CorrelationIdError))
        assert not link.is_ready


@pytest.mark.parametrize(
    'answer',
    [
        lambda header, request: struct.pack('>i', header.correlation_id + 1) + bytes(20),
        raw(b'\xff' * 30),
        raw(b''),
        lambda header, request: b'',
        lambda header, request: (b'HTTP/1.1 200 OK', 'close'),
    ],
)
def test_hostile_answers_later_end_the_connection_and_the_next_one_works(loop, answer):
    with hostile_servers.Broker() as server:
        link = link_to(loop, server.port)
        loop.run(link.ready(), 20)
        honest, server.answers[3] = server.answers[3], answer
        with pytest.raises(KafkaError):
            loop.run(link.request(ASK), 20)
        assert link.state is ConnectionState.DISCONNECTED
        server.answers[3] = honest
        assert loop.run(link.request(ASK), 20).brokers
        link.close()


def test_an_answer_larger_than_the_limit(loop):
    with hostile_servers.Broker() as server:
        link = link_to(loop, server.port, max_frame_bytes=5000)
        loop.run(link.ready(), 20)
        server.answers[3] = raw(bytes(6000))
        with pytest.raises(FrameError, match='the limit is 5000'):
            loop.run(link.request(ASK), 20)
        link.close()


def test_a_peer_that_stops_reading(loop):
    """What does not go out waits here, up to the request time-out."""
    ended = threading.Event()
    data = PartitionProduceData(index=0, records=bytes(20_000_000))
    topics = [TopicProduceData(name='t', partition_data=[data])]
    big = ProduceRequest(acks=1, timeout_ms=1, topic_data=topics)
    with hostile_servers.Broker() as server:
        link = link_to(loop, server.port, request_timeout=0.5)
        loop.run(link.ready(), 20)
        server.answers[3] = lambda header, request: ended.wait(10) and CLOSE

        async def ask():
            stuck = loop.spawn(link.request(ASK, 30))
            await loop.sleep(0.05)  # until the server is in its trap
            began = loop.time()
            try:
                await link.request(big, highest=12)
            finally:
                assert 0.5 <= loop.time() - began < BUSY
                with pytest.raises(KafkaTimeoutError):
                    await stuck

        with pytest.raises(KafkaTimeoutError, match='did not answer ProduceRequest'):
            loop.run(ask(), 20)
        assert link.state is ConnectionState.DISCONNECTED
        ended.set()


# ---------------------------------------------------------------- the pipeline


def test_requests_are_answered_in_order_within_the_limit(sim):
    sim.loop.run(sim.link.ready(), 10)
    most = []

    async def ask():
        answer = await sim.link.request(ASK)
        most.append(sim.link.in_flight)
        return answer

    answers = sim.loop.run(sim.loop.gather(*[ask() for _ in range(20)]), 60)
    assert len(answers) == 20
    assert max(most) == 4  # of the other requests
    assert sim.link.load == 0


def test_requests_keep_their_order_when_the_limit_holds_them_up(sim):
    sim.loop.run(sim.link.ready(), 10)
    sim.cluster.forget_requests()

    async def ask(number):
        await sim.link.request(
            MetadataRequest(topics=None, include_topic_authorized_operations=bool(number % 2))
        )

    sim.loop.run(sim.loop.gather(*[ask(number) for number in range(30)]), 60)
    came = [each.request.include_topic_authorized_operations for each in sim.asked()]
    assert came == [bool(number % 2) for number in range(30)]


def test_a_late_comer_does_not_overtake(sim):
    """One who waits for the limit is woken; another who asks in that moment comes behind."""
    sim.link = sim.make(max_in_flight=1)
    sim.loop.run(sim.link.ready(), 10)
    sim.cluster.forget_requests()
    order = []

    async def ask(name):
        order.append(name)
        await sim.link.request(ASK)
        if name == 'first':
            sim.loop.spawn(ask('late'))
        order.append('answered ' + name)

    async def both():
        tasks = [sim.loop.spawn(ask('first')), sim.loop.spawn(ask('second'))]
        for task in tasks:
            await task
        while 'answered late' not in order:
            await sim.loop.sleep(0.01)

    sim.loop.run(both(), 60)
    assert order.index('answered second') < order.index('answered late')


def test_a_cancelled_request_leaves_the_connection_as_it_is(sim):
    async def cancel():
        task = sim.loop.spawn(sim.link.request(ASK))
        while not sim.link.in_flight:
            await sim.loop.sleep(0.001)
        task.cancel()

    sim.loop.run(cancel(), 10)
    assert sim.ask().brokers
    assert len({each.connection for each in sim.cluster.requests}) == 1


def test_what_the_broker_does_not_serve_is_refused_here(sim):
    sim.loop.run(sim.link.ready(), 10)
    with pytest.raises(UnsupportedVersionError):
        sim.loop.run(sim.link.request(ASK, highest=-1), 10)
    assert sim.ask().brokers


def test_a_produce_without_acknowledgement_waits_for_no_answer(sim):
    request = ProduceRequest(acks=0, timeout_ms=1, topic_data=[])
    sim.loop.run(sim.link.send(request, highest=12), 10)
    assert sim.link.in_flight == 0
    sim.ask()
    assert len(sim.asked('PRODUCE')) == 1


def test_a_link_to_a_broker_that_is_only_a_bootstrap_server_can_be_closed_in_mid_request(sim):
    sim.link.node_id = 'bootstrap-0'  # as ClusterMetadata calls those whose ids are not known yet
    sim.loop.run(sim.link.ready(), 10)
    asking = sim.loop.spawn(sim.link.request(ASK, 5))
    sim.loop.wait(lambda: sim.link.in_flight, 5)
    sim.link.close()
    sim.loop.wait(lambda: asking.done, 5)
    assert isinstance(asking.exception, Cancelled)
    assert 'node bootstrap-0' in repr(sim.link)


# ---------------------------------------------------------------- time


def test_a_time_out_closes_the_connection_and_fails_all_in_flight(sim):
    sim.loop.run(sim.link.ready(), 10)
    sim.cluster.faults.add(Hang(), 'Metadata', times=1)
    failed = []

    async def ask(timeout):
        try:
            await sim.link.request(ASK, timeout)
        except KafkaTimeoutError:
            failed.append(timeout)

    began = sim.loop.time()
    sim.loop.run(sim.loop.gather(ask(50), ask(3)), 60)
    assert sim.loop.time() - began == pytest.approx(3, abs=0.1)
    assert failed == [50, 3]
    assert sim.lost == [sim.link]
    assert sim.ask().brokers


def test_a_broker_that_throttles_is_left_alone(sim):
    sim.loop.run(sim.link.ready(), 10)
    sim.cluster.faults.add(Throttle(5000), 'Metadata', times=1)
    sim.ask()
    began = sim.loop.time()
    assert not sim.link.can_send
    sim.ask()
    assert sim.loop.time() - began == pytest.approx(5, abs=0.2)


def test_who_is_held_up_by_throttling_is_not_timed_out(sim):
    sim.link = sim.make(request_timeout=2.0)
    sim.loop.run(sim.link.ready(), 10)
    sim.cluster.faults.add(Throttle(5000), 'Metadata', times=1)
    sim.loop.run(sim.loop.gather(sim.link.request(ASK), sim.link.request(ASK)), 60)
    assert sim.lost == []


def with_logins_that_end(mechanism):
    """Return a Sim whose broker wants a new login every ten seconds."""
    options = {
        'security_protocol': 'SASL_PLAINTEXT',
        'sasl_mechanism': mechanism,
        'sasl_plain_username': 'alice',
        'sasl_plain_password': 'secret',
    }
    return Sim(
        {'sasl': {'alice': 'secret'}, 'connections_max_reauth_ms': 10000},
        security=SecuritySettings.from_options(options),
    )


def test_a_login_is_renewed_on_the_same_connection_and_requests_wait_meanwhile():
    sim = with_logins_that_end('SCRAM-SHA-256')
    end = sim.loop.time() + 60
    while sim.loop.time() < end:
        assert sim.ask().brokers
        sim.loop.wait(lambda: False, 0.1)
    assert len({each.connection for each in sim.cluster.requests}) == 1
    assert 7 <= len(sim.asked('SASL_HANDSHAKE')) <= 9
    sim.stop()


def test_a_login_that_cannot_be_renewed_ends_the_connection():
    sim = with_logins_that_end('PLAIN')
    sim.ask()
    sim.cluster.faults.add(DropResponse(), 'SaslAuthenticate', times=1)
    sim.loop.wait(lambda: False, 20)
    assert sim.lost == [sim.link]
    assert sim.ask().brokers
    sim.stop()


@pytest.mark.parametrize('renewal', [False, True])
def test_a_mechanism_of_the_program_that_raises_is_a_failed_connection(monkeypatch, renewal):
    class Broken(Mechanism):
        name = 'PLAIN'
        calls = 0

        def exchange(self):
            Broken.calls += 1
            if Broken.calls == 1 + renewal:
                raise ZeroDivisionError('mine')
            yield b'\0alice\0secret'

    monkeypatch.setitem(mechanisms.registered, 'PLAIN', Broken)
    options = {'security_protocol': 'SASL_PLAINTEXT', 'sasl_mechanism': 'PLAIN'}
    options.update(sasl_plain_username='alice', sasl_plain_password='secret')
    sim = Sim(
        {'sasl': {'alice': 'secret'}, 'connections_max_reauth_ms': 10000},
        security=SecuritySettings.from_options(options),
    )
    if renewal:
        sim.ask()
        sim.loop.wait(lambda: False, 20)
        assert sim.lost == [sim.link]
    else:
        with pytest.raises(KafkaConnectionError, match="ZeroDivisionError.'mine'.") as caught:
            sim.ask()
        assert caught.value.stage == 'SASL' and sim.link.backoff > 0
        assert sim.link.attempts[0].stage == 'SASL'
    assert sim.ask().brokers
    sim.stop()


def test_an_idle_connection_is_closed_and_made_anew(sim):
    sim.link = sim.make(idle_timeout=60.0)
    sim.ask()
    sim.loop.wait(lambda: False, 50)
    sim.ask()
    sim.loop.wait(lambda: False, 50)
    assert sim.link.is_ready
    sim.loop.wait(lambda: False, 70)
    assert sim.link.state is ConnectionState.DISCONNECTED
    assert sim.lost == []
    assert sim.link.backoff == 0
    sim.ask()
    assert len({each.connection for each in sim.cluster.requests}) == 2


def test_the_back_off_grows_with_each_failure_and_begins_anew_at_success(sim):
    sim.cluster.kill(0)
    pauses = []
    for _ in range(7):
        with pytest.raises(KafkaConnectionError):
            sim.loop.run(sim.link.ready(), 60)
        pauses.append(sim.link.backoff)
    for number, pause in enumerate(pauses):
        assert 0.8 * 0.05 * 2**number <= pause <= 1.0 or pause == 1.0
    assert len(sim.link.attempts) == 7
    sim.cluster.restart(0)
    sim.loop.run(sim.link.ready(), 60)
    sim.cluster.faults.add(DropResponse(), 'Metadata', times=1)
    with pytest.raises(KafkaConnectionError, match='closed the connection while MetadataRequest'):
        sim.ask()
    assert 0.04 <= sim.link.backoff <= 0.06


def test_who_asks_meanwhile_shares_the_try(sim):
    sim.loop.run(sim.loop.gather(*[sim.link.ready() for _ in range(5)]), 10)
    assert len({each.connection for each in sim.cluster.requests}) == 1


def test_a_broken_answer(sim):
    sim.loop.run(sim.link.ready(), 10)
    sim.cluster.faults.add(Cut(5), 'Metadata', times=1)
    with pytest.raises(KafkaConnectionError, match='in the middle of an answer'):
        sim.ask()


def test_closing_fails_what_waits(sim):
    sim.loop.run(sim.link.ready(), 10)
    sim.cluster.faults.add(Hang(), 'Metadata', times=1)
    sim.loop.call_later(1, sim.link.close)
    with pytest.raises(Cancelled):
        sim.ask()
    with pytest.raises(IllegalStateError):
        sim.ask()
    assert repr(sim.link).startswith('<NodeConnection bootstrap ')


@pytest.mark.parametrize('state', list(ConnectionState))
@pytest.mark.parametrize('target', list(ConnectionState))
def test_only_the_moves_of_the_table_are_made(sim, state, target):
    link = sim.make()
    link.state = state
    if target in TRANSITIONS[state]:
        link._move(target)
        assert link.state is target
    else:
        with pytest.raises(IllegalStateError, match='%s cannot become' % state.value):
            link._move(target)


def test_each_failed_attempt_may_take_longer_and_delays_the_next():
    backoff = ReconnectBackoff(
        NetSettings(reconnect_backoff=0.1, reconnect_backoff_max=0.3, setup_timeout=1),
        SimpleNamespace(uniform=lambda low, high: 1.0),
    )
    assert backoff.setup_seconds() == 1
    waits = []
    for backoff.failures in (1, 2, 3):
        backoff.wait_from(100.0, backoff.failures)
        waits.append(round(backoff.until - 100.0, 3))
    assert waits == [0.1, 0.2, 0.3]
    assert backoff.setup_seconds() == 8
    assert repr(backoff) == '<ReconnectBackoff failures=3>'


# ---------------------------------------------------------------- attempts


def test_an_attempt_says_where_when_and_why():
    error = at_stage(KafkaConnectionError('refused'), 'TCP')
    attempt = Attempt('broker:9092', '10.0.0.1', stage_of(error, 'DNS'), 0.25, error, 'hint')
    assert str(attempt) == (
        'broker:9092 (10.0.0.1): TCP after 0.25 s: ConnectionError: refused; hint'
    )
    others = [attempt._replace(address='broker:%d' % port) for port in range(9)]
    assert describe(others).count('refused') == 5


def test_the_first_stage_that_is_noted_counts():
    error = at_stage(at_stage(KafkaConnectionError('x'), 'DNS'), 'TLS')
    assert stage_of(error, 'SASL') == 'DNS'
    assert stage_of(KafkaConnectionError('x'), 'SASL') == 'SASL'


def test_a_hint_where_the_cause_is_known():
    error = KafkaConnectionError('the peer sent an HTTP answer; this is a web server')
    assert 'web server' in hint_for('ApiVersions', error)
    assert hint_for('ApiVersions', KafkaConnectionError('closed')) == ''


def test_all_addresses_of_a_name_are_tried(loop, monkeypatch):
    with Cluster(version='4.4') as cluster:
        port = port_of(cluster)

        def look_up(host, port, *rest):
            ends = [('127.0.0.2', port), ('127.0.0.1', port)]
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, '', end) for end in ends]

        monkeypatch.setattr(socket, 'getaddrinfo', look_up)
        link = NodeConnection(loop, NetSettings(), 'broker', port)
        loop.run(link.ready(), 20)
        link.close()


def test_wrong_credentials_are_tried_at_one_address_only(loop, monkeypatch):
    with Cluster(version='4.4', sasl={'alice': 'right'}) as cluster:
        port = port_of(cluster)
        ends = [(socket.AF_INET, socket.SOCK_STREAM, 6, '', ('127.0.0.1', port))]
        ends += [(socket.AF_INET6, socket.SOCK_STREAM, 6, '', ('::1', port, 0, 0))]
        monkeypatch.setattr(socket, 'getaddrinfo', lambda *_: ends)
        security = SecuritySettings.from_options(
            {
                'security_protocol': 'SASL_PLAINTEXT',
                'sasl_mechanism': 'PLAIN',
                'sasl_plain_username': 'alice',
                'sasl_plain_password': 'wrong',
            }
        )
        link = NodeConnection(loop, NetSettings(security=security), 'broker', port)
        with pytest.raises(SaslAuthenticationFailedError):
            loop.run(link.ready(), 20)
        assert [each.ip for each in link.attempts] == ['127.0.0.1']
