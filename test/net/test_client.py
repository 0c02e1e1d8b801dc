"""NetworkClient: one loop, one pool, one bootstrap, whoever asks for it first."""

from __future__ import annotations

import threading

import pytest

from kafka.errors import KafkaConnectionError, KafkaTimeoutError, NoBrokersAvailable
from kafka.net.client import NetworkClient
from kafka.net.settings import NetSettings, parse_servers
from kafka.testing.faults import Cut, Delay
from kafka.testing.memory import MemoryCluster
from test.simulation.loop import SimLoop


@pytest.fixture
def network():
    """Return a client of a cluster of 0.9 in memory, that cluster, a loop and a pool."""
    with MemoryCluster(version='0.9', seed=1, topics={'t': 1}) as cluster:
        loop = SimLoop(cluster)
        client = NetworkClient(NetSettings(servers=parse_servers(cluster.bootstrap)), loop=loop)
        yield client, cluster, loop, client.pool
        client.pool.close()
        loop.close()


@pytest.mark.parametrize('question', ['Heartbeat', 'ListGroups'])
def test_a_connection_that_breaks_while_a_release_is_found_out_makes_it_no_older(network, question):
    client, cluster, loop, _ = network
    fault = cluster.faults.add(Cut(0), question, times=1)
    loop.run(client.bootstrap(30), 60)
    assert client.release()[:2] == (0, 9) and fault.hits == 1


def test_the_release_is_known_when_all_connections_are_lost_by_then(network):
    client, _, loop, pool = network
    loop.run(client.bootstrap(30), 60)
    for link in pool.candidates():
        link._lose(KafkaConnectionError('gone'))
    assert not pool.is_connected and client.release()[:2] == (0, 9)


def test_finding_the_cluster_and_a_topic_have_one_time_limit():
    with MemoryCluster(version='4.4', seed=3, auto_create_topics=False) as cluster:
        cluster.faults.add(Delay(8.0), 'ApiVersions')
        loop = SimLoop(cluster)
        client = NetworkClient(NetSettings(servers=parse_servers(cluster.bootstrap)), loop=loop)
        with pytest.raises(KafkaTimeoutError):
            loop.run(client.wait_for_topic('nope', 10.0), 60.0)
        assert 9.9 < loop.time() < 11.0
        client.pool.close()
        loop.close()


def test_the_cluster_is_looked_for_once(network):
    client, cluster, _, _ = network
    client.connect(30)
    asked = len(cluster.requests)
    client.connect(30)
    assert client.is_bootstrapped and len(cluster.requests) == asked


def test_a_cluster_that_was_not_found_is_looked_for_again(network):
    client, cluster, _, _ = network
    cluster.kill(0)
    with pytest.raises(NoBrokersAvailable):
        client.connect(2)
    cluster.restart(0)
    client.connect(30)
    assert client.is_bootstrapped


def test_making_one_starts_no_thread_and_opens_nothing():
    before = threading.active_count()
    client = NetworkClient(NetSettings())
    assert threading.active_count() == before and not client.loop.poller.is_open
    client.close()
    client.close()
