"""Logins of a link: brokers of 0.9, mechanisms that fail, what goes on while one is renewed."""

from __future__ import annotations

import gc
import random
import struct
import threading

import pytest

from kafka.errors import KafkaConnectionError, SaslAuthenticationFailedError
from kafka.net import mechanisms, sasl
from kafka.net.connect import Family
from kafka.net.failures import SaslError
from kafka.net.node_connection import ConnectionState, NodeConnection
from kafka.net.sasl import Mechanism
from kafka.net.sasl.plain import Plain
from kafka.net.security import SecuritySettings
from kafka.net.settings import NetSettings
from kafka.protocol.admin.groups import ListGroupsRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.testing import MemoryCluster
from test.hostile_servers import CLOSE, Server
from test.simulation.loop import SimLoop

ASK = MetadataRequest(topics=[])
GROUPS = ListGroupsRequest()
NO_GROUPS = struct.pack('>ihi', 1, 0, 0)


def security(mechanism='PLAIN', **options):
    given = {
        'security_protocol': 'SASL_PLAINTEXT',
        'sasl_mechanism': mechanism,
        'sasl_plain_username': 'alice',
        'sasl_plain_password': 'secret',
    }
    return SecuritySettings.from_options({**given, **options})


@pytest.fixture
def register(monkeypatch):
    """Return a function that registers a mechanism for a test."""
    monkeypatch.setattr(mechanisms, 'registered', dict(mechanisms.registered))
    return lambda cls: sasl.register_sasl_mechanism(cls.name, cls, overwrite=True)


# ---------------------------------------------------------------- brokers of 0.9


class Tickets(Mechanism):
    """Stands for GSSAPI: two tokens, of which old brokers answer the first."""

    name = 'GSSAPI'

    def exchange(self):
        answer = yield b'ticket'
        assert answer == b'welcome'
        self.ends_unanswered = True
        yield b'no layer'


class Old:
    """What a broker of 0.9 does: a first frame that is no token of Kerberos ends it."""

    def __init__(self, takes_tickets=True):
        self.takes_tickets = takes_tickets
        self.seen = []
        self.rest = b''

    def __call__(self, data):
        self.rest += data
        answers = b''
        while len(self.rest) >= 4:
            (size,) = struct.unpack_from('>i', self.rest)
            frame, rest = self.rest[4 : 4 + size], self.rest[4 + size :]
            if len(frame) < size:
                break
            self.rest = rest
            self.seen.append(frame if frame in (b'ticket', b'no layer') else frame[:2])
            if frame == b'ticket' and self.takes_tickets:
                answers += struct.pack('>i', 7) + b'welcome'
            elif frame[:2] == struct.pack('>h', 16):
                correlation = frame[4:8]
                body = correlation + struct.pack('>hi', 0, 0)
                answers += struct.pack('>i', len(body)) + body
            elif frame != b'no layer':
                self.rest = b''
                return CLOSE
        return answers or None


def link_to(loop, server, family=None, **settings):
    settings.setdefault('security', security('GSSAPI'))
    made = NetSettings(reconnect_backoff=0.001, reconnect_backoff_max=0.001, **settings)
    return NodeConnection(loop, made, '127.0.0.1', server.port, family=family)


def test_a_broker_of_0_9_gets_the_ticket_at_once_on_a_second_connection(loop, register):
    register(Tickets)
    old, family = Old(), Family()
    with Server(old) as server:
        link = link_to(loop, server, family)
        assert loop.run(link.request(GROUPS), 20).groups == []
        assert old.seen == [struct.pack('>h', 18), b'ticket', b'no layer', struct.pack('>h', 16)]
        assert family.lists_versions is False and 18 not in link.versions.ranges
        link.close()
        again = link_to(loop, server, family)
        loop.run(again.request(GROUPS), 20)
        assert old.seen[4:] == [b'ticket', b'no layer', struct.pack('>h', 16)]
        again.close()


def test_a_release_that_is_given_saves_the_question(loop, register):
    register(Tickets)
    old = Old()
    with Server(old) as server:
        link = link_to(loop, server, release='0.9')
        loop.run(link.request(GROUPS), 20)
        assert old.seen == [b'ticket', b'no layer', struct.pack('>h', 16)]
        link.close()


def test_a_ticket_that_is_refused_is_a_refusal_and_the_next_try_asks_again(loop, register):
    register(Tickets)
    old, family = Old(takes_tickets=False), Family()
    with Server(old) as server:
        link = link_to(loop, server, family)
        for _ in range(2):
            with pytest.raises(SaslAuthenticationFailedError, match='GSSAPI') as caught:
                loop.run(link.ready(), 20)
            assert caught.value.stage == 'SASL'
        assert old.seen == [struct.pack('>h', 18), b'ticket'] * 2
        link.close()


def test_other_mechanisms_are_not_tried_without_asking(loop):
    old = Old()
    with Server(old) as server:
        link = link_to(loop, server, security=security('PLAIN'))
        with pytest.raises(SaslError, match='belong to a broker before 0.10'):
            loop.run(link.ready(), 20)
        assert old.seen == [struct.pack('>h', 18)]
        link.close()


# ---------------------------------------------------------------- in memory


class Sim:
    """A link to a broker in memory whose logins last ten seconds."""

    def __init__(self, given, **settings):
        self.cluster = MemoryCluster(
            version='4.4',
            seed=2,
            topics={'t': 1},
            sasl={'alice': 'secret'},
            connections_max_reauth_ms=10_000,
        )
        self.cluster.start()
        self.loop = SimLoop(self.cluster)
        self.lost = []
        host, _, port = self.cluster.bootstrap.partition(':')
        self.link = NodeConnection(
            self.loop,
            NetSettings(security=given, **settings),
            host,
            int(port),
            chance=random.Random(3),
            on_lost=self.lost.append,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.link.close()
        self.loop.close()
        self.cluster.stop()

    def ask(self):
        return self.loop.run(self.link.request(ASK), 60)

    def until(self, seconds):
        self.loop.wait(lambda: False, seconds)

    @property
    def connections(self):
        return len({each.connection for each in self.cluster.requests})

    @property
    def logins(self):
        return sum(each.api.name == 'SASL_HANDSHAKE' for each in self.cluster.requests)


def test_each_login_asks_for_the_versions_again(register):
    """What was asked before the login was version 0, which tells no features."""
    with Sim(security()) as sim:
        sim.ask()
        asked = [each for each in sim.cluster.requests if each.api.name == 'API_VERSIONS']
        assert [each.version for each in asked][0] == 0 and asked[-1].version >= 3
        assert sim.link.versions.finalized_features


class Slow(Plain):
    """Says when it is prepared; fails as often as it is told to."""

    name = 'SLOW'
    calls: list = []
    errors: list = []
    meanwhile = None

    def prepare(self):
        self.calls.append(threading.current_thread().name)
        if self.errors:
            raise self.errors.pop(0)
        if self.meanwhile is not None and len(self.calls) > 1:
            self.meanwhile()


@pytest.fixture
def slow(register):
    class Fresh(Slow):
        name = 'PLAIN'
        calls: list = []
        errors: list = []

    register(Fresh)
    return Fresh


def test_a_login_is_prepared_in_another_thread(loop, slow):
    from kafka.testing import Cluster  # late: the only test that needs sockets

    with Cluster(version='4.4', sasl={'alice': 'secret'}) as cluster:
        port = int(cluster.bootstrap.rpartition(':')[2])
        link = NodeConnection(loop, NetSettings(security=security()), '127.0.0.1', port)
        loop.run(link.ready(), 20)
        assert slow.calls == ['kafka-helper']
        link.close()


def test_a_connection_that_is_lost_while_a_login_is_prepared_is_left_alone(slow):
    with Sim(security()) as sim:
        sim.ask()
        slow.meanwhile = staticmethod(lambda: sim.link._lose(KafkaConnectionError('gone')))
        sim.until(9.8)
        slow.meanwhile = None
        assert len(slow.calls) == 2 and sim.link.state is ConnectionState.DISCONNECTED
        sim.ask()
        sim.until(30)
        assert sim.ask().brokers and sim.lost == [sim.link] and sim.connections == 2


def test_a_login_that_can_not_be_prepared_is_tried_again_before_the_old_one_ends(slow):
    with Sim(security()) as sim:
        sim.ask()
        slow.errors += [SaslError('no network'), KafkaConnectionError('no network')]
        sim.until(12)
        assert sim.ask().brokers
        assert sim.lost == [] and sim.connections == 1 and sim.logins == 2


def test_a_login_that_can_never_be_prepared_ends_the_connection(slow):
    with Sim(security()) as sim:
        sim.ask()
        slow.errors += [SaslError('no network')] * 100
        sim.until(12)
        assert sim.lost == [sim.link] and 2 < len(slow.calls) < 100
        slow.errors.clear()
        assert sim.ask().brokers


def test_a_mechanism_of_the_program_that_breaks_is_named(slow):
    with Sim(security()) as sim:
        slow.errors.append(ValueError('mine'))
        with pytest.raises(SaslError, match=r"mechanism PLAIN failed: ValueError\('mine'\)"):
            sim.ask()
        assert sim.ask().brokers
        slow.errors += [ValueError('mine')] * 100
        sim.until(12)
        assert sim.lost == [sim.link]


class Breaks(Plain):
    """A mechanism with a mistake in what it says."""

    name = 'PLAIN'

    def exchange(self):
        yield {}['token']


def test_a_mechanism_that_breaks_on_the_way_is_named(register):
    register(Breaks)
    with Sim(security()) as sim:
        with pytest.raises(SaslError, match='mechanism PLAIN failed: KeyError'):
            sim.ask()
        assert sim.link.state is ConnectionState.DISCONNECTED and sim.link.backoff > 0


class Failing:
    """A provider whose HTTP library tells all it knows."""

    def token(self):
        raise OSError('https://idp/?client_secret=canary')


def test_what_a_token_provider_says_is_neither_told_nor_logged(caplog):
    caplog.set_level(0)
    with Sim(security('OAUTHBEARER', sasl_oauth_token_provider=Failing())) as sim:
        with pytest.raises(SaslError, match='Failing, the provider of tokens, failed') as caught:
            sim.ask()
        assert 'canary' not in str(caught.value) and 'canary' in str(caught.value.__cause__)
        assert 'canary' not in repr(sim.link)
        caught = None
    gc.collect()  # tasks that nobody asked tell at their end
    assert 'canary' not in caplog.text
