"""Embedded brokers behind the interface of real clusters: started, killed, paused, asked."""

from __future__ import annotations

import pytest

from servers import probe
from servers.brokers import ClusterError
from servers.embedded import EmbeddedCluster
from servers.releases import releases

TABLE = releases()


@pytest.fixture(scope='module')
def running():
    with EmbeddedCluster(TABLE['0.8.2.2'], 3) as started:
        started.create_topic('first')  # before that 0.8 lists no brokers
        yield started


@pytest.fixture
def cluster(running):
    yield running
    running.restart_killed()


def test_it_answers_as_its_release_with_as_many_brokers(cluster):
    assert sorted(cluster.metadata('new').brokers) == cluster.nodes == [0, 1, 2]
    assert cluster.bootstrap.count(',') == 2
    assert sorted(cluster.metadata('new').topics['new']) == [0, 1]
    with pytest.raises(OSError):
        probe.create_topic(cluster.address(0), 'by a request', 1, 1, {}, 2)  # since 0.10.1


def test_the_leader_that_is_killed_is_another_one(cluster):
    cluster.create_topic('killed')
    leader = cluster.leader('killed', 0)
    cluster.kill(leader)
    assert leader not in cluster.nodes
    assert cluster.wait_for_leader('killed', 0) != leader
    with pytest.raises(ConnectionRefusedError):
        probe.metadata(cluster.address(leader))
    cluster.restart_killed()
    assert leader in probe.metadata(cluster.address(leader)).brokers


def test_a_paused_broker_says_nothing_until_it_is_resumed(cluster):
    cluster.pause(1)
    with pytest.raises(OSError):
        probe.metadata(cluster.address(1), timeout=0.05)
    cluster.resume(1)
    assert 1 in probe.metadata(cluster.address(1)).brokers


def test_topics_have_the_partitions_copies_and_settings_that_were_asked_for(cluster):
    cluster.create_topic('made', 4, 2, {'retention.ms': '1000'})
    found = cluster.metadata('made').topics['made']
    assert {len(each.replicas) for each in found.values()} == {2}
    assert sorted(found) == [0, 1, 2, 3]
    with pytest.raises(ClusterError, match='exists'):
        cluster.create_topic('made', 4, 2)
    with pytest.raises(ClusterError, match='no.such'):
        cluster.create_topic('unmade', config={'no.such': '1'})


def test_offsets_in_zookeeper_are_stored_and_told(cluster):
    cluster.store_in_zookeeper('group', 'topic', {0: 5, 1: 6})
    assert cluster.zookeeper_offsets('group', 'topic', [0, 1, 2]) == {0: 5, 1: 6}
    assert cluster.zookeeper_offsets('others', 'topic', [0]) == {}


def test_nothing_went_wrong_inside(cluster):
    assert cluster.failures() == []


def test_it_has_one_process_which_stop_ends():
    started = EmbeddedCluster(TABLE['4.4.0'])
    started.stop()
    started.start()
    assert len(started.process_ids) == 1
    started.stop()
    started.stop()
    assert (started.process_ids, started.ports, started.nodes) == (set(), [], [])
    assert repr(started) == '<EmbeddedCluster release=4.4.0 brokers=stopped>'
    with pytest.raises(ClusterError, match='not started'):
        started.kill(0)


def test_a_process_that_ends_is_told_with_its_log():
    started = EmbeddedCluster(TABLE['4.4.0'], 0)
    with pytest.raises(ClusterError, match='brokers must be a number >= 1'):
        started.start()
    assert started.process_ids == set()
