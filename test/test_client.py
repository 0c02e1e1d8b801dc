"""KafkaClient without a broker: construction, connections, metadata, leaders."""

from __future__ import annotations

import copy
from unittest.mock import Mock, call

import pytest

import kafka.blocking.base_client
import kafka.blocking.new_topics
import kafka.client
from kafka.client import KafkaClient
from kafka.errors import (
    InvalidTopicError,
    KafkaConnectionError,
    KafkaTimeoutError,
    KafkaUnavailableError,
    LeaderNotAvailableError,
    UnknownTopicOrPartitionError,
)
from kafka.protocol.api import ApiKey
from kafka.simple_client import SimpleClient
from kafka.structs import (
    BrokerMetadata,
    MetadataResponse,
    PartitionMetadata,
    TopicAndPartition,
    TopicMetadata,
)
from test.fake_brokers import Cluster


@pytest.fixture
def cluster(monkeypatch):
    found = Cluster(2, {'one': [0], 'two': [0, 1], 'dim': [0, -1]})
    monkeypatch.setattr(kafka.client, 'KafkaConnection', found.connect)
    return found


@pytest.fixture
def clock(monkeypatch):
    """A clock that only sleeping moves; returns the list of pauses."""

    class Clock:
        def __init__(self):
            self.pauses = []

        def monotonic(self):
            return sum(self.pauses)

        def sleep(self, seconds):
            assert seconds >= 0
            self.pauses.append(seconds)

    found = Clock()
    monkeypatch.setattr(kafka.blocking.base_client, 'time', found)
    monkeypatch.setattr(kafka.blocking.new_topics, 'time', found)
    return found


# --- construction -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'hosts',
    [
        'kafka01:9092,kafka02:9092,kafka03:9092',
        'kafka01:9092 , kafka02,kafka03:9092',
        b'kafka01:9092,kafka02:9092,kafka03:9092',
        ['kafka01:9092', 'kafka02:9092', 'kafka03:9092'],
        ('kafka01', b'kafka02:9092', 'kafka03 '),
        iter(['kafka01:9092', 'kafka02:9092', 'kafka03:9092']),
    ],
    ids=['text', 'blanks', 'bytes', 'list', 'mixed', 'iterator'],
)
def test_hosts_become_pairs(hosts, monkeypatch):
    monkeypatch.setattr(KafkaClient, 'load_metadata_for_topics', lambda self: None)
    client = KafkaClient(hosts)
    assert sorted(client.hosts) == [('kafka01', 9092), ('kafka02', 9092), ('kafka03', 9092)]
    assert client.conns == {}


@pytest.mark.parametrize(
    ('arguments', 'options'),
    [
        (('kafka01', 9093), {}),
        (('kafka01', 9093, b'name', 7), {}),
        ((), {'host': 'kafka01', 'port': 9093}),
        (('kafka01', 9093), {'timeout': 7}),
    ],
)
def test_host_and_port_may_come_apart(arguments, options, monkeypatch):
    """The form of 0.8: a number was never a client id."""
    monkeypatch.setattr(KafkaClient, 'load_metadata_for_topics', lambda self: None)
    client = KafkaClient(*arguments, **options)
    assert client.hosts == [('kafka01', 9093)]
    assert client.client_id in (b'kafka-python', b'name')
    assert client.timeout in (120, 7)


@pytest.mark.parametrize('hosts', ['kafka01:9092', 'a,b', ['kafka01']])
def test_a_number_beside_hosts_that_have_ports_is_no_client_id(hosts):
    with pytest.raises(TypeError, match='client_id must be bytes or str, not int'):
        KafkaClient(hosts, 9093)


def test_constructor_loads_all_metadata_and_does_nothing_else(monkeypatch):
    calls = []
    monkeypatch.setattr(
        KafkaClient, 'load_metadata_for_topics', lambda self, *topics: calls.append(topics)
    )
    client = KafkaClient('a:1', client_id='text', timeout=None, correlation_id=5)
    assert calls == [()]
    assert (client.client_id, client.timeout, client.correlation_id) == (b'text', None, 5)
    assert (client.conns, client.brokers, client.topics) == ({}, {}, [])
    assert repr(client) == "<KafkaClient client_id=b'text'>"
    assert KafkaClient.CLIENT_ID == KafkaClient('a:1').client_id == b'kafka-python'


@pytest.mark.parametrize(
    'arguments, name',
    [
        ({'hosts': None}, 'hosts'),
        ({'hosts': None}, 'hosts'),
        ({'hosts': 9092}, 'hosts'),
        ({'hosts': [9092]}, 'hosts'),
        ({'hosts': [('a', 1)]}, 'hosts'),
        ({'hosts': 'a', 'client_id': 9092}, 'client_id'),
        ({'hosts': 'a', 'client_id': None}, 'client_id'),
        ({'hosts': 'a', 'timeout': '5'}, 'timeout'),
        ({'hosts': 'a', 'correlation_id': '5'}, 'correlation_id'),
        ({'hosts': 'a', 'acks': 1}, 'acks'),
    ],
)
def test_wrong_argument_is_a_type_error_that_names_it(arguments, name):
    with pytest.raises(TypeError, match=name):
        KafkaClient(**arguments)


@pytest.mark.parametrize('timeout', [-1, float('nan')])
def test_time_out_that_no_socket_takes_is_named_and_no_host_is_blamed(timeout):
    with pytest.raises(ValueError, match='timeout'):
        KafkaClient('a', timeout=timeout)


def test_metadata_after_construction(cluster):
    client = KafkaClient(cluster.hosts)
    zero, one = BrokerMetadata(0, b'host0', 9000), BrokerMetadata(1, b'host1', 9001)
    assert client.brokers == {0: zero, 1: one}
    assert sorted(client.topics) == [b'dim', b'one', b'two']
    assert client.topics_to_brokers == {
        TopicAndPartition(b'one', 0): zero,
        TopicAndPartition(b'two', 0): zero,
        TopicAndPartition(b'two', 1): one,
        TopicAndPartition(b'dim', 0): zero,
        TopicAndPartition(b'dim', 1): None,
    }
    assert client.topic_partitions[b'dim'] == {
        0: PartitionMetadata(b'dim', 0, 0, (0,), (0,), 0),
        1: PartitionMetadata(b'dim', 1, -1, (0,), (0,), 5),
    }
    assert client.topic_partitions['dim'] is client.topic_partitions[b'dim']
    assert client.topics_to_brokers['two', 1] == one
    assert cluster.sent('MetadataRequest')[0][1].topics == []
    assert len(cluster.requests) == 1


def test_connections_are_made_on_demand_with_the_timeout(cluster):
    client = KafkaClient(['host1:9001', 'host0:9000'], timeout=7)
    assert len(client.conns) == len(cluster.connections) == 1
    (conn,) = client.conns.values()
    assert conn.timeout == 7
    assert client.conns == {(conn.host, conn.port): conn}


# --- one refresh, step by step ------------------------------------------------------------------


def test_refresh_passes_on_what_each_step_returns(monkeypatch):
    """Replaced classes need nothing but these four calls, and get each other's results unseen."""
    encoded, received = object(), object()
    trace = []

    class Connection:
        def __init__(self, host, port, timeout):
            trace.append(('connect', host, port, timeout))

        def send(self, request_id, payload):
            trace.append(('send', request_id, payload))

        def recv(self, request_id):
            trace.append(('recv', request_id))
            return received

    class Protocol:
        @staticmethod
        def encode_metadata_request(client_id, correlation_id, payloads):
            trace.append(('encode', client_id, correlation_id, payloads))
            return encoded

        @staticmethod
        def decode_metadata_response(data):
            trace.append(('decode', data))
            partition = PartitionMetadata('text', 0, 7, (), (), 0)
            return MetadataResponse(
                (BrokerMetadata(7, 'h', 1),), (TopicMetadata('text', 0, (partition,)),)
            )

    monkeypatch.setattr(kafka.client, 'KafkaConnection', Connection)
    monkeypatch.setattr(kafka.client, 'KafkaProtocol', Protocol)
    client = KafkaClient('a:1', client_id=b'me', timeout=3, correlation_id=41)
    steps = [
        ('encode', b'me', 42, []),
        ('send', 42, encoded),
        ('recv', 42),
        ('decode', received),
    ]
    assert [step for step in trace if step[0] != 'connect'] == steps
    assert trace.count(('connect', 'a', 1, 3)) == 1
    assert client.topics_to_brokers == {TopicAndPartition('text', 0): BrokerMetadata(7, 'h', 1)}
    assert client.topics_to_brokers[b'text', 0] == (7, 'h', 1)
    assert client.topics == ['text']
    assert client._get_leader_for_partition('text', 0) == (7, 'h', 1)


def test_connection_is_not_asked_for_versions_on_behalf_of_a_replaced_protocol(monkeypatch):
    """It carries bytes of which it recognises none, so the broker must not be spoken to."""
    steps = []

    class Own:
        def __init__(self, host, port, timeout):
            pass

        def send(self, request_id, data):
            steps.append(data)

        def recv(self, request_id):
            return b'answer'

        def api_versions(self):
            raise AssertionError('asked for versions')

    protocol = Mock()
    protocol.encode_metadata_request.side_effect = [b'all', b'named']
    protocol.decode_metadata_response.return_value = MetadataResponse(
        [], [TopicMetadata(b'bad', 3, [])]
    )
    monkeypatch.setattr(kafka.client, 'KafkaConnection', Own)
    monkeypatch.setattr(kafka.client, '_OwnConnection', Own)
    monkeypatch.setattr(kafka.client, 'KafkaProtocol', protocol)
    client = KafkaClient('a:1')
    with pytest.raises(UnknownTopicOrPartitionError):
        client.load_metadata_for_topics('bad')
    assert steps == [b'all', b'named']


def test_replaced_method_of_kafka_protocol_takes_effect(cluster, monkeypatch):
    client = KafkaClient(cluster.hosts)
    monkeypatch.setattr(
        kafka.client.KafkaProtocol,
        'decode_metadata_response',
        lambda data: MetadataResponse([], []),
    )
    client.load_metadata_for_topics()
    assert (client.brokers, client.topics) == ({}, [])


# --- metadata -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'code, error', [(3, UnknownTopicOrPartitionError), (5, LeaderNotAvailableError)]
)
@pytest.mark.parametrize('name', ['bad', b'bad'])
def test_topic_error_is_raised_only_for_a_topic_asked_for_by_name(cluster, code, error, name):
    cluster.topic_errors['bad'] = code
    client = KafkaClient(cluster.hosts)
    assert sorted(client.topics) == [b'dim', b'one', b'two']
    with pytest.raises(error) as caught:
        client.load_metadata_for_topics(name)
    assert caught.value.args[0] == TopicMetadata(b'bad', code, [])
    with pytest.raises(error):
        client.load_metadata_for_topics('one', name)
    assert client.has_metadata_for_topic('one')
    assert 'bad' not in client.topic_partitions


def test_other_topic_errors_are_raised(cluster):
    client = KafkaClient(cluster.hosts)
    cluster.topic_errors['bad'] = 17
    with pytest.raises(InvalidTopicError):
        client.load_metadata_for_topics('bad')


def test_named_topic_that_is_not_in_the_answer_raises_nothing(cluster, monkeypatch):
    client = KafkaClient(cluster.hosts)
    monkeypatch.setattr(client, 'send_metadata_request', lambda names: MetadataResponse([], []))
    client.load_metadata_for_topics('one')
    assert client.topics == [b'dim', b'two']


@pytest.mark.parametrize('code', [1, 3, 9, 72, -1])
def test_partition_errors_do_not_raise(cluster, code):
    cluster.partition_errors['two', 1] = code
    client = KafkaClient(cluster.hosts)
    assert client.topics_to_brokers['two', 1].nodeId == 1
    assert client.topic_partitions['two'][1].error == code
    cluster.partition_errors['two', 1] = 5
    client.load_metadata_for_topics('two')
    assert client.topics_to_brokers['two', 1] is None


def test_leader_that_is_not_listed_has_no_address(cluster):
    cluster.topics['one'] = [9]
    client = KafkaClient(cluster.hosts)
    assert client.topics_to_brokers['one', 0] == BrokerMetadata(9, None, None)


def test_named_topics_are_forgotten_before_they_are_asked_for(cluster):
    client = KafkaClient('host0:9000')
    cluster.down.add(('host0', 9000))
    with pytest.raises(KafkaUnavailableError):
        client.load_metadata_for_topics('one')
    assert sorted(client.topics) == [b'dim', b'two']
    with pytest.raises(KafkaUnavailableError):
        client.load_metadata_for_topics()
    assert (client.topics, client.topics_to_brokers) == ([], {})
    assert sorted(client.brokers) == [0, 1]


def test_topics_are_reset_by_their_exact_spelling(cluster):
    client = KafkaClient(cluster.hosts)
    client.reset_topic_metadata('one', 'unknown', b'unknown')
    assert client.has_metadata_for_topic(b'one')
    client.reset_topic_metadata(b'one', b'two')
    assert client.topics == [b'dim']
    assert sorted(client.topics_to_brokers) == [(b'dim', 0), (b'dim', 1)]
    client.reset_all_metadata()
    assert (client.topic_partitions, client.topics_to_brokers) == ({}, {})
    assert sorted(client.brokers) == [0, 1]


def test_has_metadata_needs_a_partition_but_no_leader(cluster):
    cluster.topics.update(empty=[], headless=[-1])
    client = KafkaClient(cluster.hosts)
    for spell in (str, str.encode):
        assert client.has_metadata_for_topic(spell('headless'))
        assert not client.has_metadata_for_topic(spell('empty'))
        assert not client.has_metadata_for_topic(spell('unknown'))
        assert client.get_partition_ids_for_topic(spell('two')) == [0, 1]
        assert client.get_partition_ids_for_topic(spell('unknown')) == []
    assert len(cluster.requests) == 1


@pytest.mark.parametrize(
    'method', ['has_metadata_for_topic', 'get_partition_ids_for_topic', 'ensure_topic_exists']
)
def test_topic_of_a_wrong_type_is_named(cluster, method):
    client = KafkaClient(cluster.hosts)
    for topic in (None, 5, ['one']):
        with pytest.raises(TypeError, match='topic must be str or bytes'):
            getattr(client, method)(topic)
        with pytest.raises(TypeError, match='topics must be str or bytes'):
            client.load_metadata_for_topics(topic)


# --- topics that are to exist ---------------------------------------------------------------------


def test_existing_topic_is_not_asked_for(cluster, clock):
    client = KafkaClient(cluster.hosts)
    client.ensure_topic_exists('one', timeout=0)
    assert (len(cluster.requests), clock.pauses) == (1, [])


def test_topic_is_waited_for_while_it_is_created(cluster, clock):
    client = KafkaClient(cluster.hosts)
    cluster.topic_errors['new'] = 5

    def create(node, request):
        if len(cluster.requests) == 4:
            cluster.topic_errors.clear()
            cluster.topics['new'] = [0]

    cluster.answers[ApiKey.METADATA] = create
    client.ensure_topic_exists('new')
    assert client.get_partition_ids_for_topic('new') == [0]
    assert clock.pauses == [0.5, 0.5]


def test_topic_is_looked_for_once_after_each_refresh(cluster, clock):
    """Programs replace both methods; what the first says is used up by asking."""
    client = KafkaClient(cluster.hosts)
    client.has_metadata_for_topic = Mock(side_effect=[False, False, True])
    client.load_metadata_for_topics = Mock(side_effect=[LeaderNotAvailableError, None])
    client.ensure_topic_exists('new')
    assert client.load_metadata_for_topics.mock_calls == [call('new'), call('new')]
    assert clock.pauses == [0.5]


def test_waiting_for_a_topic_ends(cluster, clock):
    client = KafkaClient(cluster.hosts)
    cluster.topic_errors['new'] = 5
    with pytest.raises(KafkaTimeoutError):
        client.ensure_topic_exists('new', timeout=1.2)
    assert sum(clock.pauses) == pytest.approx(1.2)
    for over in (0, -1, float('nan')):
        with pytest.raises(KafkaTimeoutError):
            client.ensure_topic_exists('other', timeout=over)
    assert sum(clock.pauses) == pytest.approx(1.2)
    with pytest.raises(TypeError, match='timeout'):
        client.ensure_topic_exists('new', timeout=None)


def test_topic_that_brokers_do_not_create_is_unknown(cluster, clock):
    client = KafkaClient(cluster.hosts)
    with pytest.raises(UnknownTopicOrPartitionError):
        client.ensure_topic_exists('new')
    assert clock.pauses == []


# --- leaders ------------------------------------------------------------------------------------


def test_known_leader_is_not_asked_for(cluster):
    client = KafkaClient(cluster.hosts)
    assert client._get_leader_for_partition(b'two', 1) == BrokerMetadata(1, b'host1', 9001)
    assert len(cluster.requests) == 1


def test_unknown_leader_is_asked_for(cluster):
    client = KafkaClient(cluster.hosts)
    cluster.topics['dim'] = [0, 1]
    assert client._get_leader_for_partition(b'dim', 1) == BrokerMetadata(1, b'host1', 9001)
    assert [t.name for t in cluster.requests[-1][1].topics] == ['dim']


def test_missing_leader_partition_and_topic_have_their_errors(cluster):
    client = KafkaClient(cluster.hosts)
    with pytest.raises(LeaderNotAvailableError):
        client._get_leader_for_partition(b'dim', 1)
    with pytest.raises(UnknownTopicOrPartitionError):
        client._get_leader_for_partition(b'one', 1)
    with pytest.raises(UnknownTopicOrPartitionError):
        client._get_leader_for_partition(b'new', 0)
    cluster.topic_errors['new'] = 5
    with pytest.raises(LeaderNotAvailableError):
        client._get_leader_for_partition(b'new', 0)


# --- correlation ids, connections, copies -------------------------------------------------------


def test_correlation_ids_count_up_and_begin_again_at_0(cluster):
    client = KafkaClient(cluster.hosts, correlation_id=5)
    assert client.correlation_id == 6
    assert (client._next_id(), client.correlation_id) == (7, 7)
    client.correlation_id = 2**31 - 2
    assert [client._next_id() for _ in range(3)] == [2**31 - 1, 0, 1]


def test_close_closes_every_connection_and_keeps_the_maps(cluster):
    client = KafkaClient('host0:9000')
    client._get_conn('host1', 9001)
    client.close()
    assert [conn.closed for conn in cluster.connections] == [1, 1]
    assert client.topic_partitions['two'][1].leader == 1
    client.load_metadata_for_topics()
    assert len(cluster.connections) == 2


def test_copy_has_unconnected_connections_and_its_own_maps(cluster):
    client = KafkaClient('host0:9000')
    client.extra = {'of a subclass': [1]}
    copied = client.copy()
    assert type(copied) is KafkaClient
    assert list(copied.conns) == list(client.conns)
    for address, conn in copied.conns.items():
        assert conn is not client.conns[address]
        assert conn.reinits == 0
    assert copied.topic_partitions == client.topic_partitions
    assert copied.topic_partitions['one'] == client.topic_partitions['one']
    assert (copied.hosts, copied.client_id) == (client.hosts, client.client_id)
    assert copied.extra == client.extra
    assert copied.extra['of a subclass'] is not client.extra['of a subclass']
    copied.reset_all_metadata()
    assert client.has_metadata_for_topic('one')
    copied.reinit()
    assert [conn.reinits for conn in copied.conns.values()] == [1]
    assert [conn.reinits for conn in client.conns.values()] == [0]


def test_copy_while_another_thread_loads_metadata(cluster):
    class Loading:
        def __deepcopy__(self, memo):
            for known in (
                client.topics_to_brokers,
                client.topic_partitions,
                client._offsets_storage.coordinators,
            ):
                known[b'%d' % len(known)] = self
            return self

    client = KafkaClient('host0:9000')
    for known in (
        client.topics_to_brokers,
        client.topic_partitions,
        client._offsets_storage.coordinators,
    ):
        known[b'topic'] = Loading()
    copied = client.copy()
    assert copied.topic_partitions['two'][1].leader == 1


def test_a_shallow_copy_keeps_its_tables_when_those_of_the_original_are_replaced(cluster):
    client = KafkaClient('host0:9000')
    shallow = copy.copy(client)
    assert shallow.topic_partitions is client.topic_partitions and shallow.conns is client.conns
    shallow.brokers = {}
    client.topic_partitions = {b'new': {}}
    assert sorted(client.brokers) == [0, 1]
    assert shallow.get_partition_ids_for_topic('two') == [0, 1]


def test_a_shallow_copy_is_made_as_a_subclass_wants_it(cluster):
    class Locked(KafkaClient):
        lock = None

        def __getstate__(self):
            return {**vars(self), 'lock': None}

        def __setstate__(self, state):
            vars(self).update(state, lock='another')

    client = Locked('host0:9000')
    client.lock = 'mine'
    shallow = copy.copy(client)
    shallow.brokers = {}
    assert (client.lock, shallow.lock) == ('mine', 'another') and sorted(client.brokers) == [0, 1]


LED = BrokerMetadata(7, 'host7', 9007)


@pytest.mark.parametrize('base', [KafkaClient, SimpleClient])
@pytest.mark.parametrize('kind', ['dicts', 'properties'])
def test_tables_that_a_subclass_defines_are_used_without_the_constructor(base, kind):
    topic = b't' if base is KafkaClient else 't'
    tables = {'topic_partitions': {topic: {0: 7, 1: 7}}, 'topics_to_brokers': {(topic, 0): LED}}

    def of(name):
        return tables[name] if kind == 'dicts' else property(lambda self: tables[name])

    made = type('Fake', (base,), {'__init__': lambda self: None, **{n: of(n) for n in tables}})
    client = made()
    assert client.topics == [topic]
    assert client.has_metadata_for_topic('t') and not client.has_metadata_for_topic('other')
    assert client.get_partition_ids_for_topic('t') == [0, 1]
    assert client._get_leader_for_partition(topic, 0) is LED
    if base is KafkaClient:  # that of SimpleClient has always needed a TopicDict
        client.reset_topic_metadata(topic)
        assert tables == {'topic_partitions': {}, 'topics_to_brokers': {}}


def test_metadata_goes_to_the_tables_of_a_subclass_that_was_not_constructed(cluster):
    class Fake(KafkaClient):
        hosts = [('host0', 9000)]
        client_id = b'fake'
        timeout = 1
        correlation_id = 0
        _security = None
        brokers = {}
        topics_to_brokers = {}
        topic_partitions = {}

        def __init__(self):
            self.conns = {}

    client = Fake()
    client.load_metadata_for_topics('two')
    assert client._get_leader_for_partition(b'two', 1).nodeId == 1
    assert client.topics == [b'two']
    assert sorted(client.brokers) == [0, 1] and Fake.brokers == {}
    assert Fake.topic_partitions[b'two'][1].leader == 1


def test_tables_of_a_class_are_not_those_of_a_constructed_client(cluster):
    class Mine(KafkaClient):
        brokers = {}
        topics_to_brokers = {}
        topic_partitions = {}

    client = Mine('host0:9000')
    assert client.get_partition_ids_for_topic('two') == [0, 1] and sorted(client.brokers) == [0, 1]
    assert client._get_leader_for_partition(b'two', 1).host == b'host1'
    assert Mine.brokers == Mine.topics_to_brokers == Mine.topic_partitions == {}
    assert client.copy().topic_partitions == client.topic_partitions


def test_no_thread_sees_some_of_the_partitions_of_a_topic(cluster, monkeypatch):
    client = KafkaClient('host0:9000')
    seen = []

    def kept(meta):
        seen.append(client.get_partition_ids_for_topic('two'))
        return meta

    monkeypatch.setattr(client._known_cluster, '_value_of', kept)
    client.load_metadata_for_topics('two')
    assert seen == [[], []]
    assert client.get_partition_ids_for_topic('two') == [0, 1]


def test_copy_survives_deepcopy(cluster):
    copied = copy.deepcopy(KafkaClient('host0:9000').copy())
    assert copied.topic_partitions['two'][1].leader == 1


def test_reinit_reconnects_what_can_be_reached(cluster):
    client = KafkaClient('host0:9000')
    client._get_conn('host1', 9001)
    cluster.down.add(('host0', 9000))
    client.reinit()
    assert [conn.reinits for conn in client.conns.values()] == [0, 1]
    cluster.down.add(('host1', 9001))
    with pytest.raises(KafkaConnectionError):
        client.reinit()


@pytest.mark.parametrize('name', sorted(kafka.client._HOMES))
def test_names_that_programs_of_1_x_found_here(name):
    assert getattr(kafka.client, name).__name__
    with pytest.raises(AttributeError, match='nothing'):
        kafka.client.nothing  # noqa: B018 - looked up
