"""What a user of an embedded cluster holds in the hands."""

from __future__ import annotations

import socket

import pytest

from kafka import KafkaClient
from kafka.errors import KafkaError
from kafka.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from kafka.protocol.negotiation import BrokerVersions
from kafka.protocol.session import NEED_DATA, Role, Session
from kafka.testing import LATER, Cluster
from kafka.testing.faults import DropRequest
from kafka.testing.memory import MemoryCluster
from kafka.testing.settings.configs import topic_config


@pytest.fixture
def cluster():
    with MemoryCluster(brokers=3, topics={'t': 3}, seed=1) as running:
        yield running


def waiting(cluster, key):
    """Return whether somebody waits for a key."""
    return key in cluster.waiting._by_key


def ask(cluster, node=0, request=None):
    """Send a request on a connection of its own."""
    sock = cluster.connect(node)
    session = Session(Role.CLIENT)
    sock.send(session.negotiate())
    cluster.run_until(lambda: sock.is_ready)
    session.receive_data(sock.recv(65536))
    while not type(session.next_event()).__name__.startswith('Versions'):
        cluster.run_until(lambda: sock.is_ready)
        session.receive_data(sock.recv(65536))
    sock.send(session.send(request or MetadataRequest(topics=[])))
    return sock


def answer(cluster, sock, session):
    """Return the next answer on a connection, in however many pieces it arrives."""
    while True:
        event = session.next_event()
        if event is not NEED_DATA:
            return event.response
        cluster.run_until(lambda: sock.is_ready)
        session.receive_data(sock.recv(65536))


@pytest.mark.parametrize(
    'arguments, error, reason',
    [
        ({'brokers': 0}, ValueError, 'brokers'),
        ({'brokers': 'three'}, ValueError, 'brokers'),
        ({'version': '7.7'}, ValueError, '7.7'),
        ({'version': 2.8}, TypeError, 'must be str'),
        ({'port': -1}, ValueError, 'port'),
        ({'port': 65535, 'brokers': 2}, ValueError, 'room for 2'),
        ({'port': '9092'}, ValueError, 'port'),
        ({'topics': {'': 1}}, ValueError, 'name'),
        ({'topics': {'a b': 1}}, ValueError, 'a b'),
        ({'topics': {'t': 0}}, ValueError, 'must have >= 1 partitions'),
        ({'num_partition': 3}, TypeError, r"'num_partition'.*: num_partitions\?"),
        ({'verion': '2.8'}, TypeError, r'verion.*: version\?'),
        ({'zzz': 1}, TypeError, "unknown setting 'zzz' of a cluster$"),
        ({'brokers': 2, 'racks': ['a']}, ValueError, 'one for each broker'),
        ({'brokers': 2, 'racks': 'ab'}, ValueError, 'one for each broker'),
        ({'topics': ['t']}, TypeError, 'must be {name: number of partitions}'),
    ],
)
def test_wrong_arguments_are_told(arguments, error, reason):
    with pytest.raises(error, match=reason):
        Cluster(**arguments)


def test_any_client_reaches_it_over_sockets():
    with Cluster(brokers=2, topics={'t': 2}) as cluster:
        client = KafkaClient(cluster.bootstrap)
        client.load_metadata_for_topics()
        assert client.get_partition_ids_for_topic('t') == [0, 1]
        client.close()


@pytest.mark.parametrize('host', ['0.0.0.0', ''])
def test_who_listens_everywhere_is_called_by_the_name_of_the_machine(host):
    with Cluster(host=host) as cluster:
        assert cluster.bootstrap.startswith(socket.gethostname() + ':')
        socket.create_connection(('127.0.0.1', cluster.state.nodes[0].port)).close()


def test_ports_follow_the_first_one():
    with socket.socket() as sock:
        sock.bind(('127.0.0.1', 0))
        port = sock.getsockname()[1]
    with Cluster(port=port) as cluster:
        assert cluster.bootstrap == '127.0.0.1:%d' % port


def test_what_it_knew_is_still_there_after_a_stop():
    cluster = Cluster(topics={'a': 1})
    cluster.start()
    cluster.start()  # which is nothing
    cluster.create_topic('b')
    port = cluster.state.nodes[0].port
    cluster.stop()
    cluster.stop()
    cluster.start()
    assert sorted(cluster.state.topics) == ['a', 'b']
    assert cluster.state.nodes[0].port == port
    cluster.stop()


def test_topics_are_created(cluster):
    cluster.create_topic('u', 2, 3)
    assert len(cluster.state.topics['u'].partitions[1].replicas) == 3
    with pytest.raises(ValueError, match='exists'):
        cluster.create_topic('u')
    with pytest.raises(ValueError, match='replicas'):
        cluster.create_topic('v', replication_factor=4)
    with pytest.raises(ValueError, match='name'):
        cluster.create_topic('/')


def test_a_topic_is_created_with_settings_that_there_are(cluster):
    cluster.create_topic('u', configs={'retention.ms': '1000'})
    assert topic_config(cluster.state, 'u', 'retention.ms') == '1000'
    for name, value in (('retention.mss', '1000'), ('retention.ms', 'long')):
        with pytest.raises(ValueError, match=name):
            cluster.create_topic('v', configs={name: value})
    assert 'v' not in cluster.state.topics


def test_a_dead_broker_leads_nothing_until_it_is_asked_to(cluster):
    leader = cluster.leader('t', 0)
    cluster.kill(leader)
    assert cluster.leader('t', 0) != leader
    assert leader not in cluster.nodes
    with pytest.raises(ConnectionRefusedError):
        cluster.connect(leader)
    cluster.restart(leader)
    cluster.restart(leader)
    assert cluster.nodes == [0, 1, 2]
    cluster.connect(leader).close()
    cluster.move_leader('t', 0, leader)
    assert cluster.leader('t', 0) == leader


def test_a_dead_broker_stays_dead_over_a_stop(cluster):
    cluster.kill(1)
    cluster.stop()
    cluster.start()
    assert cluster.nodes == [0, 2]
    with pytest.raises(ConnectionRefusedError):
        cluster.connect(1)


def test_a_paused_broker_is_given_up_and_comes_back(cluster):
    leader = cluster.leader('t', 0)
    sock = ask(cluster, leader)
    cluster.pause(leader)
    cluster.pause(leader)
    cluster.advance(8.9)
    assert (cluster.leader('t', 0), sock.is_ready) == (leader, False)
    cluster.advance(0.2)
    assert cluster.leader('t', 0) != leader
    assert leader not in cluster.nodes
    assert not sock.is_ready
    cluster.resume(leader)
    cluster.run_until(lambda: sock.is_ready)
    assert cluster.nodes == [0, 1, 2]


def test_a_paused_broker_that_goes_on_in_time_stays_leader(cluster):
    leader = cluster.leader('t', 0)
    cluster.pause(leader)
    cluster.advance(8)
    cluster.resume(leader)
    cluster.resume(leader)
    cluster.advance(60)
    assert cluster.leader('t', 0) == leader


def test_a_paused_broker_can_be_killed_and_restarted(cluster):
    sock = cluster.connect(1)
    cluster.pause(1)
    cluster.kill(1)
    with pytest.raises(ConnectionResetError):
        sock.recv(1)
    with pytest.raises(ValueError, match='is not running'):
        cluster.pause(1)
    cluster.restart(1)
    cluster.pause(1)
    cluster.restart(1)
    cluster.advance(60)
    assert cluster.nodes == [0, 1, 2]
    assert ask(cluster, 1) is not None


def test_a_broker_that_hangs_when_all_stop_runs_at_the_next_start(cluster):
    cluster.pause(1)
    cluster.advance(60)
    cluster.stop()
    cluster.start()
    assert cluster.nodes == [0, 1, 2]
    assert ask(cluster, 1) is not None


def test_only_a_live_replica_can_lead(cluster):
    cluster.create_topic('single', 1, 1)
    leader = cluster.leader('single', 0)
    with pytest.raises(ValueError, match='not an in-sync replica'):
        cluster.move_leader('single', 0, (leader + 1) % 3)
    cluster.kill(2)
    with pytest.raises(ValueError):
        cluster.move_leader('t', 0, 2)
    with pytest.raises(KeyError):
        cluster.move_leader('nothing', 0, 0)


@pytest.mark.parametrize('verb', ['kill', 'restart', 'pause', 'resume'])
def test_a_broker_that_there_is_not_cannot_die_or_live(cluster, verb):
    with pytest.raises(KeyError):
        getattr(cluster, verb)(7)


def test_a_coordinator_moves_as_long_as_the_node_lives(cluster):
    other = (cluster.coordinator('g') + 1) % 3
    cluster.move_coordinator('g', other)
    assert cluster.coordinator('g') == other
    cluster.kill(other)
    assert cluster.coordinator('g') != other
    with pytest.raises(ValueError, match='is not running'):
        cluster.move_coordinator('g', other)


@pytest.mark.parametrize(
    'move',
    [
        lambda cluster, leader: cluster.kill(leader),
        lambda cluster, leader: cluster.move_leader('t', 0, (leader + 1) % 3),
    ],
)
def test_who_waits_at_a_partition_learns_of_a_new_leader(cluster, move):
    attempts = []
    leader = cluster.leader('t', 0)

    def wait(call):
        call.wait(1000, [('partition', 't', 0)], lambda last: attempts.append(last))
        return LATER

    cluster.control('Metadata', wait)
    ask(cluster, (leader + 1) % 3)
    cluster.advance(1)
    assert (attempts, waiting(cluster, ('partition', 't', 0))) == ([False], True)
    move(cluster, leader)
    assert attempts == [False, False]


def test_faults_controls_and_the_log_are_within_reach(cluster):
    cluster.faults.add(DropRequest(), 'Metadata')
    dropped = ask(cluster)
    cluster.run_until(lambda: dropped.is_ready)
    assert dropped.recv(1) == b''
    cluster.control('Metadata', lambda call: MetadataResponse(brokers=[], topics=[]))
    answered = ask(cluster)
    cluster.run_until(lambda: answered.is_ready)
    assert [each.api.name for each in cluster.requests] == ['API_VERSIONS', 'METADATA'] * 2
    cluster.forget_requests()
    assert cluster.requests == []


def test_what_a_control_raises_is_raised_by_the_end():
    cluster = MemoryCluster()
    cluster.start()

    def check(call):
        raise AssertionError('unexpected')

    cluster.control('Metadata', check)
    ask(cluster)
    cluster.advance(1)
    with pytest.raises(AssertionError, match='unexpected'):
        cluster.stop()
    cluster.start()
    cluster.stop()  # it was said


def test_an_error_of_the_block_itself_goes_first():
    def check(call):
        raise AssertionError('in the broker')

    with pytest.raises(KafkaError), MemoryCluster() as cluster:
        cluster.control('Metadata', check)
        ask(cluster)
        cluster.advance(1)
        raise KafkaError('in the test')


def test_a_seed_is_made_up_where_none_is_given():
    first = Cluster()
    again = Cluster(seed=first.seed)
    assert first.state.cluster_id == again.state.cluster_id
    assert Cluster().seed != first.seed


def test_it_shows_what_it_is(cluster):
    assert repr(cluster) == ('<MemoryCluster 4.4 at 127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094>')


def test_readers_are_sent_to_a_replica_in_their_rack():
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topic = FetchTopic(topic='t', partitions=[asked])
    with MemoryCluster(2, '2.8', racks=['north', 'south'], topics={'t': 1}) as cluster:
        leader = cluster.leader('t', 0)
        for node, rack in enumerate(['north', 'south']):
            session = Session(Role.CLIENT)
            session.adopt(BrokerVersions(dict(cluster._brokers[leader].served)))
            sock = cluster.connect(leader)
            sock.send(
                session.send(FetchRequest(max_wait_ms=0, min_bytes=0, topics=[topic], rack_id=rack))
            )
            data = answer(cluster, sock, session).responses[0].partitions[0]
            assert data.preferred_read_replica == (-1 if node == leader else node)
