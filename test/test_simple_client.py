"""SimpleClient without a broker: what 1.x did otherwise than 0.9.5."""

from __future__ import annotations

import pickle
import socket
from unittest.mock import MagicMock, patch

import pytest

import kafka
import kafka.client
import kafka.simple_client
from kafka import SimpleClient, create_message
from kafka.blocking.request_connection import RequestConnection
from kafka.errors import (
    FailedPayloadsError,
    KafkaConnectionError,
    KafkaTimeoutError,
    KafkaUnavailableError,
    LeaderNotAvailableError,
    UnknownTopicOrPartitionError,
    UnsupportedCodecError,
)
from kafka.future import Future
from kafka.protocol import KafkaProtocol
from kafka.protocol.versioned import MetadataResponse_v0, ProduceResponse_v0
from kafka.structs import (
    BrokerMetadata,
    ConsumerMetadataResponse,
    FetchRequestPayload,
    OffsetCommitRequestPayload,
    OffsetCommitResponsePayload,
    OffsetFetchRequestPayload,
    OffsetFetchResponsePayload,
    OffsetRequestPayload,
    OffsetResponsePayload,
    ProduceRequestPayload,
    ProduceResponsePayload,
    TopicPartition,
)
from test import fake_brokers

BROKERS = [(0, 'host0', 9000), (1, 'host1', 9001)]


@pytest.fixture
def cluster(monkeypatch):
    """Scripted brokers behind the real RequestConnection."""
    found = fake_brokers.Cluster(2, {'one': [0], 'two': [0, 1], 'dim': [0, -1]})
    monkeypatch.setattr('kafka.blocking.request_connection.KafkaConnection', Connecting(found))
    yield found
    assert found.unread() == []


class Connecting:
    """Makes connections that do what RequestConnection needs beyond sending and receiving."""

    def __init__(self, cluster):
        self.cluster = cluster

    def __call__(self, host, port, timeout=120):
        conn = self.cluster.connect(host, port, timeout)
        conn.get_connected_socket = conn._check
        conn.api_versions = dict
        return conn


@pytest.fixture
def client(cluster):
    return SimpleClient(cluster.hosts)


def produce(topic, partition, *values):
    return ProduceRequestPayload(topic, partition, [create_message(v) for v in values])


# --- construction -------------------------------------------------------------------------------


def test_one_class_under_three_names():
    assert kafka.SimpleClient is kafka.client.SimpleClient is kafka.simple_client.SimpleClient
    assert kafka.SimpleClient.__name__ == kafka.client.SimpleClient.__name__ == 'SimpleClient'
    with pytest.raises(AttributeError):
        kafka.client.NoSuchClient  # noqa: B018


def test_hosts_are_triples_with_the_address_family():
    with patch.object(SimpleClient, 'load_metadata_for_topics') as load:
        client = SimpleClient(hosts='kafka01:9092, 127.0.0.1:1,[::1]:2')
    assert sorted(client.hosts) == [
        ('127.0.0.1', 1, socket.AF_INET),
        ('::1', 2, socket.AF_INET6),
        ('kafka01', 9092, socket.AF_UNSPEC),
    ]
    assert not hasattr(client, 'conns')
    load.assert_called_once_with()


def test_constructor_keeps_its_arguments(monkeypatch):
    monkeypatch.setattr(SimpleClient, 'load_metadata_for_topics', lambda self: None)
    client = SimpleClient(['a'], 'name', 5, 7)
    assert (client.client_id, client.timeout, client.correlation_id) == ('name', 5, 7)
    assert (client.brokers, client.topics) == ({}, [])
    assert repr(client) == '<SimpleClient client_id=name>'
    assert SimpleClient(['a']).client_id == SimpleClient.CLIENT_ID == b'kafka-python'


@pytest.mark.parametrize(
    'arguments, error, name',
    [
        ({'hosts': None}, TypeError, 'hosts'),
        ({'hosts': 'a', 'client_id': 5}, TypeError, 'client_id'),
        ({'hosts': 'a', 'timeout': '5'}, TypeError, 'timeout'),
        ({'hosts': 'a', 'timeout': -1}, ValueError, 'timeout'),
        ({'hosts': 'a', 'correlation_id': '5'}, TypeError, 'correlation_id'),
    ],
)
def test_wrong_argument_is_named(arguments, error, name):
    with pytest.raises(error, match=name):
        SimpleClient(**arguments)


def test_correlation_ids_begin_again_behind_the_largest():
    with patch.object(SimpleClient, 'load_metadata_for_topics'):
        client = SimpleClient(hosts=(), correlation_id=2**31 - 3)
    assert [client._next_id() for _ in range(4)] == [2**31 - 2, 2**31 - 1, 0, 1]


def test_no_host_is_an_unavailable_cluster():
    with pytest.raises(KafkaUnavailableError):
        SimpleClient(hosts=())


def test_metadata_after_construction(client):
    zero, one = (BrokerMetadata(*broker) for broker in BROKERS)
    assert client.brokers == {0: zero, 1: one}
    assert sorted(client.topics) == ['dim', 'one', 'two']
    assert client.topic_partitions == {
        'one': {0: 0},
        'two': {0: 0, 1: 1},
        'dim': {0: 0, 1: -1},
    }
    assert client.topics_to_brokers == {
        TopicPartition('one', 0): zero,
        TopicPartition('two', 0): zero,
        TopicPartition('two', 1): one,
        TopicPartition('dim', 0): zero,
        TopicPartition('dim', 1): None,
    }
    assert {type(key) for key in client.topics_to_brokers} == {TopicPartition}


@pytest.mark.parametrize('spell', [str, str.encode], ids=['str', 'bytes'])
def test_topics_are_found_by_str_and_bytes(client, spell):
    assert client.has_metadata_for_topic(spell('two'))
    assert client.get_partition_ids_for_topic(spell('two')) == [0, 1]
    assert client.topic_partitions[spell('two')] == {0: 0, 1: 1}
    assert client.topics_to_brokers[TopicPartition(spell('two'), 1)].nodeId == 1
    client.reset_topic_metadata(spell('two'))
    assert not client.has_metadata_for_topic('two')
    client.load_metadata_for_topics(spell('two'))
    assert client.topics[-1] == 'two'


@pytest.mark.parametrize('wrong', [None, 5, ['one']])
def test_topic_that_is_no_name_is_a_type_error(client, wrong):
    for call in (
        client.has_metadata_for_topic,
        client.get_partition_ids_for_topic,
        client.load_metadata_for_topics,
        client.ensure_topic_exists,
    ):
        with pytest.raises(TypeError, match='topic'):
            call(wrong)


# --- metadata -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'code, error', [(3, UnknownTopicOrPartitionError), (5, LeaderNotAvailableError)]
)
def test_error_of_a_topic_raises_only_when_it_is_named(cluster, client, code, error):
    cluster.topic_errors['new'] = code
    client.load_metadata_for_topics()
    for name in ('new', b'new'):
        with pytest.raises(error):
            client.load_metadata_for_topics(name)


def test_topic_that_is_being_created_can_be_ignored(cluster, client, caplog):
    cluster.topic_errors.update(new=5, missing=3)
    caplog.clear()
    client.load_metadata_for_topics('new', ignore_leadernotavailable=True)
    assert caplog.records == []
    assert not client.has_metadata_for_topic('new')
    with pytest.raises(UnknownTopicOrPartitionError):
        client.load_metadata_for_topics('missing', ignore_leadernotavailable=True)


def test_ensure_topic_exists_ignores_that_it_is_being_created(cluster, client, monkeypatch):
    calls = []
    load = client.load_metadata_for_topics

    def note(*topics, **options):
        calls.append((topics, options))
        cluster.topics['new'] = [0]
        cluster.topic_errors.pop('new', None)
        return load(*topics, **options)

    cluster.topic_errors['new'] = 5
    monkeypatch.setattr(client, 'load_metadata_for_topics', note)
    client.ensure_topic_exists('new')
    assert calls == [(('new',), {'ignore_leadernotavailable': True})]
    with pytest.raises(KafkaTimeoutError):
        client.ensure_topic_exists('other', timeout=0)


def test_brokers_of_the_metadata_are_asked_too(cluster):
    client = SimpleClient(cluster.hosts[:1])
    cluster.down.add(('host0', 9000))
    client.load_metadata_for_topics()
    assert client.has_metadata_for_topic('one')
    assert set(client._hosts_to_ask()) == {
        ('host0', 9000, socket.AF_UNSPEC),
        ('host1', 9001, socket.AF_UNSPEC),
    }


def test_hosts_are_asked_in_random_order(client, monkeypatch):
    monkeypatch.setattr(kafka.simple_client.random, 'shuffle', lambda hosts: hosts.sort())
    assert [host for host, _, _ in client._hosts_to_ask()] == ['host0', 'host1']
    monkeypatch.setattr(
        kafka.simple_client.random, 'shuffle', lambda hosts: hosts.sort(reverse=True)
    )
    assert [host for host, _, _ in client._hosts_to_ask()] == ['host1', 'host0']


@pytest.mark.parametrize(
    'host, family',
    [('h', socket.AF_UNSPEC), ('10.0.0.1', socket.AF_INET), ('::1', socket.AF_INET6)],
)
def test_broker_of_the_metadata_has_the_family_of_its_host(client, host, family):
    client.hosts, client.brokers = [], {5: BrokerMetadata(5, host, 9)}
    assert client._hosts_to_ask() == [(host, 9, family)]


# --- sending ------------------------------------------------------------------------------------


def test_requests_go_to_their_leaders_and_answers_come_in_payload_order(cluster, client):
    payloads = [produce('two', 1, b'a'), produce('one', 0, b'b'), produce('two', 0, b'c')]
    assert client.send_produce_request(payloads) == [
        ProduceResponsePayload('two', 1, 0, 101),
        ProduceResponsePayload('one', 0, 0, 0),
        ProduceResponsePayload('two', 0, 0, 0),
    ]
    assert sorted(node for node, _ in cluster.sent('ProduceRequest')) == [0, 1]
    whats = [what for what, host, name in cluster.trace[-4:]]
    assert whats == ['send', 'send', 'recv', 'recv']


def test_topics_of_payloads_may_be_bytes(client):
    assert client.send_produce_request([produce(b'one', 0, b'a')]) == [
        ProduceResponsePayload('one', 0, 0, 0)
    ]


def test_offsets_and_groups(client):
    assert client.send_offset_request([OffsetRequestPayload('one', 0, -1, 1)]) == [
        OffsetResponsePayload('one', 0, 0, (9,))
    ]
    assert client.send_offset_commit_request(
        'g', [OffsetCommitRequestPayload('one', 0, 42, 'metadata')]
    ) == [OffsetCommitResponsePayload('one', 0, 0)]
    asked = [OffsetFetchRequestPayload('one', 0)]
    assert client.send_offset_fetch_request('g', asked) == [
        OffsetFetchResponsePayload('one', 0, 40, '', 0)
    ]
    assert client.send_offset_fetch_request_kafka('g', asked) == [
        OffsetFetchResponsePayload('one', 0, 41, '', 0)
    ]
    assert client.send_consumer_metadata_request('g') == ConsumerMetadataResponse(
        0, 1, 'host1', 9001
    )


def test_fetched_messages_are_a_list(client):
    (response,) = client.send_fetch_request([FetchRequestPayload('one', 0, 0, 4096)])
    assert response == ('one', 0, 0, 7, [])


def test_metadata_response_has_plain_tuples(client):
    response = client.send_metadata_request(['one'])
    assert response.brokers == BROKERS
    assert response.topics == [(0, 'one', [(0, 0, 0, [0], [0])])]


def test_acks_0_reads_nothing(cluster, client):
    assert client.send_produce_request([produce('one', 0, b'a')], acks=0) == []
    assert cluster.trace[-1] == ('send', 'host0', 'ProduceRequest')


@pytest.mark.parametrize('topic, partition', [('nowhere', 0), ('one', 7), ('dim', 1)])
def test_leader_that_cannot_be_found_fails_the_payload(cluster, client, topic, partition):
    lost, found = produce(topic, partition, b'a'), produce('one', 0, b'b')
    with pytest.raises(FailedPayloadsError) as raised:
        client.send_produce_request([lost])
    assert raised.value.payload == lost
    first, second = client.send_produce_request([lost, found], fail_on_error=False)
    assert isinstance(first, FailedPayloadsError)
    assert first.payload == lost
    assert isinstance(first.__cause__, (UnknownTopicOrPartitionError, LeaderNotAvailableError))
    assert second == ProduceResponsePayload('one', 0, 0, 0)


def test_leader_that_cannot_be_found_fails_a_commit_too(client):
    (failed,) = client.send_offset_commit_request(
        'g', [OffsetCommitRequestPayload('nowhere', 0, 1, None)], fail_on_error=False
    )
    assert isinstance(failed, FailedPayloadsError)


@pytest.mark.parametrize('when', ['send', 'recv'])
def test_failed_connection_fails_its_payloads_and_metadata_is_forgotten(cluster, client, when):
    cluster.breaking['host1', when] = KafkaConnectionError('gone')
    one, two = produce('two', 0, b'a'), produce('two', 1, b'b')
    first, second = client.send_produce_request([one, two], fail_on_error=False)
    assert first == ProduceResponsePayload('two', 0, 0, 0)
    assert isinstance(second, FailedPayloadsError)
    assert second.payload == two
    assert client.topics == []
    assert client.send_produce_request([two]) == [ProduceResponsePayload('two', 1, 0, 101)]


def test_error_that_would_come_again_is_raised(cluster, client):
    cluster.breaking['host1', 'recv'] = UnsupportedCodecError('no zstd')
    with pytest.raises(UnsupportedCodecError):
        client.send_produce_request([produce('two', 0, b'a'), produce('two', 1, b'b')])
    assert client.has_metadata_for_topic('two')


def test_what_cannot_be_encoded_is_told_before_anything_is_sent(cluster, client):
    with pytest.raises(TypeError):
        client.send_produce_request([produce('one', 0, 'text')])
    with pytest.raises(ValueError, match='acks'):
        client.send_produce_request([produce('one', 0, b'a')], acks=2)
    assert cluster.sent('ProduceRequest') == []


def test_error_in_an_answer_forgets_the_topic(cluster, client):
    cluster.answers[0] = lambda node, request: ProduceResponse_v0(
        [('one', [(0, 6, -1)])]
    ).declared()
    with pytest.raises(kafka.common.NotLeaderForPartitionError):
        client.send_produce_request([produce(b'one', 0, b'a')])
    assert not client.has_metadata_for_topic('one')


# --- life ---------------------------------------------------------------------------------------


def test_closed_client_knows_what_it_knew_and_connects_again(cluster, client):
    client.close()
    assert client.has_metadata_for_topic('one')
    assert client.send_produce_request([produce('one', 0, b'a')])


def test_copy_has_connections_of_its_own(cluster, client):
    client.send_produce_request([produce('two', 0, b'a'), produce('two', 1, b'a')])
    copied = client.copy()
    assert type(copied) is SimpleClient
    assert copied.topic_partitions == client.topic_partitions
    assert copied.topic_partitions is not client.topic_partitions
    assert sorted(copied._conns) == sorted(client._conns)
    for key, conn in copied._conns.items():
        assert conn is not client._conns[key]
        assert not conn._conn
    before = len(cluster.connections)
    copied.reinit()
    assert len(cluster.connections) == before + 2
    assert copied.send_produce_request([produce(b'one', 0, b'a')])


def test_client_can_be_pickled_without_its_connections(cluster, client):
    with patch('kafka.blocking.request_connection.KafkaConnection', kafka.conn.KafkaConnection):
        copied = pickle.loads(pickle.dumps(client))
    assert copied.topic_partitions == client.topic_partitions
    assert copied.get_partition_ids_for_topic(b'two') == [0, 1]


# --- the hooks of its time ----------------------------------------------------------------------


def connection(*answers):
    """Return a connection whose futures are these, or come to be these by recv()."""
    conn = MagicMock()
    conn.send.side_effect = list(answers)
    return conn


def test_any_request_is_sent_to_one_host_after_the_other(monkeypatch):
    future = Future()
    good = connection(future)
    good.recv.side_effect = lambda: future.success('valid')
    conns = {
        ('bad1', 9092): connection(Future().failure(Exception('refused'))),
        ('bad2', 9092): connection(Future().failure(KafkaConnectionError())),
        ('good', 9092): good,
    }
    monkeypatch.setattr(kafka.simple_client.random, 'shuffle', lambda hosts: hosts.sort())
    encoder, asked = MagicMock(return_value='encoded'), []
    with patch.object(SimpleClient, 'load_metadata_for_topics'):
        client = SimpleClient('bad1,bad2,good')

    def get_conn(host, port, afi):
        asked.append((host, port, afi))
        return conns[host, port]

    monkeypatch.setattr(client, '_get_conn', get_conn)
    assert client._send_broker_unaware_request(['payload'], encoder, str.upper) == 'VALID'
    assert [host for host, port, afi in asked] == ['bad1', 'bad2', 'good']
    assert {afi for host, port, afi in asked} == {socket.AF_UNSPEC}
    encoder.assert_called_with(payloads=['payload'])
    for conn in conns.values():
        conn.send.assert_called_once_with('encoded')
    good.recv.assert_called_once_with()


def test_metadata_is_read_by_the_places_of_its_values(monkeypatch):
    """The answer of a replaced protocol class goes by unexamined but for these."""
    answer = MagicMock(
        brokers=[(1, 'broker_1', 4567), (2, 'broker_2', 5678)],
        topics=[
            (0, 'topic_1', [(0, 0, 1, [1, 2], [1, 2])]),
            (0, 'no_leader', [(5, 0, -1, [], []), (5, 1, 1, [], [])]),
            (5, 'no_partitions', []),
            (3, 'unknown', []),
            (0, 'odd', [(0, 0, 2, [2], [2]), (9, 1, 7, [], [])]),
        ],
    )
    conn = MagicMock()
    conn.send.return_value = Future().success(True)
    with patch('kafka.client.KafkaProtocol') as protocol, patch.object(
        SimpleClient, '_get_conn', return_value=conn
    ) as get_conn:
        protocol.decode_metadata_response.return_value = answer
        client = SimpleClient(['broker_1:4567'])
        get_conn.assert_called_once_with('broker_1', 4567, socket.AF_UNSPEC)
        protocol.encode_metadata_request.assert_called_once_with(payloads=[])
        protocol.decode_metadata_response.assert_called_once_with(True)
        with pytest.raises(LeaderNotAvailableError):
            client.load_metadata_for_topics('no_partitions')
        with pytest.raises(UnknownTopicOrPartitionError):
            client.load_metadata_for_topics('unknown')
        client.load_metadata_for_topics('no_leader')
        client.load_metadata_for_topics(b'no_leader')
    one, two = BrokerMetadata(1, 'broker_1', 4567), BrokerMetadata(2, 'broker_2', 5678)
    assert client.topics_to_brokers == {
        TopicPartition('topic_1', 0): one,
        TopicPartition('no_leader', 0): None,
        TopicPartition('no_leader', 1): None,
        TopicPartition('odd', 0): two,
        TopicPartition('odd', 1): BrokerMetadata(7, None, None),
    }


def test_leader_is_looked_up_anew_only_when_it_is_not_known(cluster, client):
    assert client._get_leader_for_partition('one', 0) == BrokerMetadata(*BROKERS[0])
    assert len(cluster.sent('MetadataRequest')) == 1
    cluster.topics['new'] = [1]
    assert client._get_leader_for_partition('new', 0) == BrokerMetadata(*BROKERS[1])
    assert len(cluster.sent('MetadataRequest')) == 2
    with pytest.raises(LeaderNotAvailableError):
        client._get_leader_for_partition('dim', 1)
    with pytest.raises(UnknownTopicOrPartitionError):
        client._get_leader_for_partition('new', 5)


def test_coordinator_is_looked_up(client):
    assert client._get_coordinator_for_group('g') == BrokerMetadata(*BROKERS[1])


def test_hook_by_leader_takes_encoder_and_decoder(client):
    payloads = [produce('one', 0, b'a')]
    assert client._send_broker_aware_request(
        payloads, KafkaProtocol.encode_produce_request, KafkaProtocol.decode_produce_response
    ) == [ProduceResponsePayload('one', 0, 0, 0)]
    assert client._send_broker_aware_request(
        payloads, lambda payloads: KafkaProtocol.encode_produce_request(payloads, acks=0), None
    ) == [None]


def test_connection_of_the_hook_is_connected(cluster, client):
    conn = client._get_conn('host1', 9001, socket.AF_UNSPEC)
    assert type(conn) is RequestConnection
    assert conn is client._get_conn('host1', 9001, socket.AF_UNSPEC)
    future = conn.send(KafkaProtocol.encode_metadata_request(['one']))
    assert not future.is_done
    assert conn.recv() is future.value
    assert isinstance(future.value, MetadataResponse_v0)
    cluster.down.add(('host9', 9))
    with pytest.raises(KafkaConnectionError):
        client._get_conn('host9', 9, socket.AF_UNSPEC)
