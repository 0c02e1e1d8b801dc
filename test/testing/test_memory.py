"""Client and brokers in one thread: every run is that of its seed."""

from __future__ import annotations

import random
import socket
import threading
import time

import pytest

from kafka import KafkaClient, SimpleConsumer, SimpleProducer
from kafka.errors import IllegalStateError, KafkaUnavailableError
from kafka.protocol.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker
from kafka.protocol.session import NEED_DATA, Role, Session
from kafka.testing.faults import Delay, Hang, Slow
from kafka.testing.memory import MAX_UNREAD_BYTES, MemoryCluster


@pytest.fixture
def cluster():
    with MemoryCluster(brokers=2, topics={'t': 2}, seed=1) as running:
        yield running


def versions():
    return Session(Role.CLIENT).negotiate()


def run(seed, faults=()):
    """Return what a blocking client saw, and what happened."""
    with MemoryCluster(brokers=3, topics={'t': 4}, seed=seed) as cluster, cluster.patched():
        for fault in faults:
            cluster.faults.schedule([fault], 0.3)
        began = time.time()
        client = KafkaClient(cluster.bootstrap)
        for _ in range(5):
            client.load_metadata_for_topics()
        found = client.topic_partitions
        client.close()
        return found, time.time() - began, cluster.trace


# --- blocking clients ---------------------------------------------------------------------------


def test_a_blocking_client_runs_without_sockets(cluster):
    with cluster.patched():
        client = KafkaClient(cluster.bootstrap)
        assert client.has_metadata_for_topic('t')
        client.close()


@pytest.mark.parametrize('seed', range(5))
def test_a_seed_repeats_its_run_event_by_event(seed):
    assert run(seed, [Delay(0.5)]) == run(seed, [Delay(0.5)])


def test_another_seed_is_another_run():
    assert len({tuple(run(seed)[2]) for seed in range(10)}) == 10


def test_time_is_that_of_the_cluster(cluster):
    with cluster.patched():
        before = time.monotonic(), time.time()
        time.sleep(100)
        assert time.monotonic() - before[0] == pytest.approx(100)
        assert time.time() - before[1] == pytest.approx(100)


def test_everything_is_put_back(cluster):
    before = socket.create_connection, time.sleep, time.monotonic, time.time
    chance = random.getstate()
    with pytest.raises(ZeroDivisionError), cluster.patched():
        random.random()
        raise ZeroDivisionError
    assert (socket.create_connection, time.sleep, time.monotonic, time.time) == before
    assert random.getstate() == chance


def test_other_threads_have_the_time_of_the_machine(cluster):
    seen = []
    with cluster.patched():
        thread = threading.Thread(target=lambda: seen.append(time.time()))
        thread.start()
        thread.join()
        assert time.time() < 1_700_000_000 < seen[0]


def test_a_silent_broker_costs_virtual_time_only(cluster):
    cluster.faults.add(Hang(), times=None)
    began = time.monotonic()
    with cluster.patched(), pytest.raises(KafkaUnavailableError):
        KafkaClient(cluster.bootstrap, timeout=50)
    assert cluster.timers.clock.monotonic() >= 100
    assert time.monotonic() - began < 5


def test_no_broker_no_connection(cluster):
    cluster.kill(0)
    cluster.kill(1)
    with cluster.patched():
        with pytest.raises(KafkaUnavailableError):
            KafkaClient(cluster.bootstrap)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(('127.0.0.1', 1))


def test_a_client_survives_the_death_of_a_broker(cluster):
    with cluster.patched():
        client = KafkaClient(cluster.bootstrap)
        cluster.kill(0)
        client.load_metadata_for_topics()
        assert {each.nodeId for each in client.topics_to_brokers.values()} == {1}
        client.close()


def write_and_read(seed):
    with MemoryCluster(brokers=3, topics={'t': 3}, seed=seed) as cluster, cluster.patched():
        cluster.faults.schedule([Delay(0.2), Slow(5000)], 0.2)
        client = KafkaClient(cluster.bootstrap)
        producer = SimpleProducer(client)
        for number in range(30):
            producer.send_messages('t', b'%d' % number)
        consumer = SimpleConsumer(client, 'g', 't', auto_commit=False)
        found = [each.message.value for each in consumer.get_messages(30, timeout=30)]
        client.close()
        return found, cluster.trace


def test_what_is_written_is_read_and_all_of_it_repeats():
    found, trace = write_and_read(5)
    assert sorted(found, key=int) == [b'%d' % number for number in range(30)]
    assert write_and_read(5) == (found, trace)
    assert write_and_read(6)[1] != trace


# --- sockets ------------------------------------------------------------------------------------


def test_a_read_waits_until_something_arrives(cluster):
    sock = cluster.connect()
    sock.settimeout(5)
    sock.sendall(versions())
    assert sock.recv(4)
    assert cluster.timers.clock.monotonic() < 1


def test_a_read_ends_with_its_timeout(cluster):
    sock = cluster.connect()
    sock.settimeout(5)
    assert sock.gettimeout() == 5
    before = cluster.timers.clock.monotonic()
    with pytest.raises(socket.timeout):
        sock.recv(1)
    assert cluster.timers.clock.monotonic() - before == pytest.approx(5)


def test_a_read_that_would_wait_for_ever_is_a_mistake(cluster):
    sock = cluster.connect()
    sock.setblocking(True)
    with pytest.raises(IllegalStateError, match='forever'):
        sock.recv(1)


def test_idle_connections_are_closed_where_that_is_wanted():
    with MemoryCluster(connections_max_idle_ms=600000, seed=1) as cluster:
        sock = cluster.connect()
        sock.setblocking(True)
        assert sock.recv(1) == b''
        assert 600 <= cluster.timers.clock.monotonic() < 601


def test_a_read_beside_a_timer_that_never_ends_is_a_mistake(cluster, monkeypatch):
    monkeypatch.setattr('kafka.testing.memory.MAX_STEPS', 100)

    def again():
        cluster.timers.later(1, again)

    again()
    sock = cluster.connect()
    sock.setblocking(True)
    with pytest.raises(IllegalStateError, match='nothing arrives'):
        sock.recv(1)


def test_a_socket_that_does_not_block_says_so(cluster):
    sock = cluster.connect()
    with pytest.raises(BlockingIOError):
        sock.recv(1)
    sock.send(versions())
    assert not sock.is_ready
    cluster.run_until(lambda: sock.is_ready)
    assert sock.recv(1)


def test_a_socket_tells_when_something_has_arrived(cluster):
    sock, told = cluster.connect(), []
    sock.on_ready = lambda: told.append(sock.is_ready)
    sock.sendall(versions())
    assert told == []
    cluster.run_until(lambda: told)
    while not sock.recv(1000):
        pass
    del told[:]
    cluster.kill(0)
    assert told == [True]
    sock.close()


def test_bytes_are_read_into_a_buffer(cluster):
    sock = cluster.connect()
    sock.settimeout(5)
    sock.sendall(versions())
    buffer = bytearray(3)
    assert sock.recv_into(buffer) == 3
    assert sock.recv_into(buffer, 1) == 1


def test_the_end_of_the_stream_comes_behind_the_bytes(cluster):
    sock = cluster.connect()
    sock.settimeout(5)
    sock.sendall(versions())
    sock.shutdown(socket.SHUT_WR)
    data = b''
    while True:
        piece = sock.recv(65536)
        if not piece:
            break
        data += piece
    assert len(data) == 4 + int.from_bytes(data[:4], 'big')
    assert sock.recv(1) == b''
    with pytest.raises(BrokenPipeError):
        sock.sendall(b'x')


def test_a_dead_broker_resets_its_connections(cluster):
    sock = cluster.connect(1)
    sock.sendall(versions())
    cluster.kill(1)
    for use in (lambda: sock.recv(1), lambda: sock.sendall(b'x')):
        with pytest.raises(ConnectionResetError):
            use()
    assert sock.is_ready


def test_a_closed_socket_cannot_be_used(cluster):
    with cluster.connect() as sock:
        assert sock.getpeername() == ('127.0.0.1', 9092)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.close()
    for use in (lambda: sock.recv(1), lambda: sock.sendall(b'x'), lambda: sock.shutdown(2)):
        with pytest.raises(OSError, match='closed'):
            use()


def test_a_connection_that_both_have_closed_is_forgotten(cluster):
    cluster.connect().close()
    cluster.advance(1)
    assert repr(cluster.network) == '<Network of 2 brokers, 0 connections>'
    assert cluster._brokers[0]._connections == {}


def test_a_client_that_reads_nothing_gets_no_more_than_a_bound(cluster):
    broker = MetadataResponseBroker(node_id=0, host='h' * 30000, port=1)
    response = MetadataResponse(brokers=[broker] * 20, topics=[])
    cluster.control('Metadata', lambda call: response)
    sock, session = cluster.connect(), Session(Role.CLIENT)
    sock.send(session.negotiate())
    cluster.run_until(lambda: sock.is_ready)
    cluster.advance(1)
    while True:
        session.receive_data(sock.recv(65536))
        if session.next_event() is not NEED_DATA:
            break
    for _ in range(20):
        sock.send(session.send(MetadataRequest(topics=[])))
    cluster.advance(10)
    assert sock._unread_bytes < MAX_UNREAD_BYTES + 700000
    found = 0
    while found < 20:
        cluster.run_until(lambda: sock.is_ready)
        session.receive_data(sock.recv(65536))
        found += session.next_event() is not NEED_DATA


# --- simulations --------------------------------------------------------------------------------


def interleaving(seed):
    """Return the order in which two clients that speak at once are heard."""
    with MemoryCluster(seed=seed) as cluster:
        sockets = [cluster.connect() for _ in range(2)]
        for sock in sockets:
            sock.send(versions())
        while cluster.step():
            pass
        return [each.connection for each in cluster.trace if each.what == 'broker receives']


def test_which_of_two_clients_is_heard_first_is_up_to_the_seed():
    orders = {interleaving(seed)[0] for seed in range(20)}
    assert orders == {1, 2}


def test_bytes_are_cut_but_stay_in_order():
    for seed in range(30):
        with MemoryCluster(seed=seed) as cluster:
            sock = cluster.connect()
            for byte in versions():
                sock.send(bytes([byte]))
            cluster.run_until(lambda sock=sock: sock.is_ready)
            assert cluster.requests[0].api == 18
            assert not cluster.state.control.failures


def test_waiting_for_what_does_not_happen_ends(cluster):
    with pytest.raises(TimeoutError, match='7 seconds'):
        cluster.run_until(lambda: False, 7)


def test_a_cluster_that_was_not_started_has_no_network():
    with pytest.raises(IllegalStateError, match='not started'):
        MemoryCluster().connect()
