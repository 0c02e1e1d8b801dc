"""Commits and look-ups of offsets on embedded brokers of every age, and beside the 0.9.5 tower."""

from __future__ import annotations

import random

import pytest

from kafka import errors
from kafka.client import KafkaClient
from kafka.common import OffsetCommitRequest, OffsetFetchRequest
from kafka.coordinator.commits.manager import OffsetCommits
from kafka.net.pool import Pool
from kafka.net.settings import NetSettings, parse_servers
from kafka.protocol.admin.topics import DeleteTopicsRequest, DeleteTopicState
from kafka.protocol.metadata import MetadataRequest
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from kafka.testing import MemoryCluster
from kafka.testing.errors import (
    CONCURRENT_TRANSACTIONS,
    COORDINATOR_LOAD_IN_PROGRESS,
    NOT_COORDINATOR,
    UNSTABLE_OFFSET_COMMIT,
)
from kafka.testing.faults import Delay, DropResponse, Error, Hang
from test.simulation.loop import SimLoop

RELEASES = ['0.8.1.1', '0.8.2.2', '0.9.0.1', '0.11.0.3', '2.8.2', '4.4.0']
#: In which version each is asked by default, and whether text and epoch are kept.
VERSIONS = {
    '0.8.1.1': (0, 0, False, False),
    '0.8.2.2': (1, 1, True, False),
    '0.9.0.1': (2, 1, True, False),
    '0.11.0.3': (3, 3, True, False),
    '2.8.2': (8, 7, True, True),
    '4.4.0': (10, 10, True, True),
}
P0, P1 = TopicPartition('t', 0), TopicPartition('t', 1)
OFFSETS = {P0: OffsetAndMetadata(5, 'text', 2), P1: OffsetAndMetadata(6, '', -1)}


class Rig:
    """A cluster in memory, and what talks with it."""

    def __init__(self, release, brokers=3):
        self.cluster = MemoryCluster(version=release, brokers=brokers, seed=2, topics={'t': 2})
        self.cluster.start()
        self.loop = SimLoop(self.cluster)
        settings = NetSettings(servers=parse_servers(self.cluster.bootstrap), request_timeout=3.0)
        self.pool = Pool(self.loop, settings, random.Random(5))
        self.loop.run(self.pool.bootstrap(), 60)
        self.loop.run(self.pool.wait_for_topic('t', 30), 60)
        self.commits = self.made()

    def made(self, **more):
        chance = random.Random(6)
        return OffsetCommits(self.loop, self.pool, 'g', 3.0, 0.05, 0.5, chance, **more)

    def commit(self, offsets, who=None, timeout=20.0, **more):
        self.loop.run(self.commits.commit(offsets, who, timeout, **more), 60)

    def fetch(self, partitions, timeout=20.0, who=None):
        return self.loop.run(self.commits.fetch(partitions, timeout, who), 60)

    def asked(self, api):
        return [each for each in self.cluster.requests if each.api.name == api]

    def close(self):
        self.pool.close()
        self.loop.close()
        self.cluster.stop()


@pytest.fixture
def rig_of():
    rigs = []

    def make(release, **more):
        rigs.append(Rig(release, **more))
        return rigs[-1]

    yield make
    for rig in rigs:
        rig.close()


@pytest.fixture
def rig(rig_of):
    return rig_of('4.4.0')


@pytest.mark.parametrize('release', RELEASES)
def test_what_was_committed_is_found_again(rig_of, release):
    rig = rig_of(release)
    commit_version, fetch_version, keeps_text, keeps_epoch = VERSIONS[release]
    assert rig.fetch([P0, P1]) == {P0: None, P1: None}
    rig.commit(OFFSETS)
    found = rig.fetch([P0, P1])
    assert tuple(found[P0]) == (5, 'text' if keeps_text else '', 2 if keeps_epoch else -1)
    assert tuple(found[P1]) == (6, '', -1)
    assert {each.version for each in rig.asked('OFFSET_COMMIT')} == {commit_version}
    assert {each.version for each in rig.asked('OFFSET_FETCH')} == {fetch_version}


@pytest.mark.parametrize('release', RELEASES[1:])
def test_the_coordinator_is_asked(rig_of, release):
    rig = rig_of(release)
    rig.cluster.move_coordinator('g', 1)
    rig.commit(OFFSETS)
    assert [each.node for each in rig.asked('OFFSET_COMMIT')] == [1]


@pytest.mark.parametrize('release', RELEASES)
def test_the_commit_of_a_topic_that_there_is_not_fails_at_once_or_is_stored(rig_of, release):
    """0.8.2 stores it. Nobody creates the topic by that, though brokers would."""
    rig = rig_of(release)
    began = rig.loop.time()
    offsets = {TopicPartition('absent', 0): OffsetAndMetadata(1, '', -1)}
    if release == '0.8.2.2':
        rig.commit(offsets)
        return
    with pytest.raises(errors.UnknownTopicOrPartitionError, match='absent-0'):
        rig.commit(offsets)
    assert rig.loop.time() - began < 1.0
    assert 'absent' not in rig.cluster.state.topics


@pytest.mark.parametrize('release', RELEASES[3:])
def test_the_commit_of_a_partition_that_there_is_not_fails_at_once(rig_of, release):
    rig = rig_of(release)
    offsets = {TopicPartition('t', 7): OffsetAndMetadata(1, '', -1), **OFFSETS}
    if release == '0.11.0.3':  # stored before 2.0
        rig.commit(offsets)
        return
    with pytest.raises(errors.UnknownTopicOrPartitionError, match='t-7'):
        rig.commit(offsets)
    assert rig.fetch([P0])[P0].offset == 5  # the others are stored


@pytest.mark.parametrize('release', RELEASES[1:])
def test_a_text_of_4096_bytes_is_stored_and_a_longer_one_is_not(rig_of, release):
    rig = rig_of(release)
    rig.commit({P0: OffsetAndMetadata(1, 'x' * 4096, -1)})
    assert len(rig.fetch([P0])[P0].metadata) == 4096
    with pytest.raises(errors.OffsetMetadataTooLargeError, match='t-0.* 4097 bytes'):
        rig.commit({P0: OffsetAndMetadata(2, 'x' * 4097, -1)})
    assert rig.fetch([P0])[P0].offset == (2 if release == '0.8.2.2' else 1)  # it keeps both


@pytest.mark.parametrize('release', RELEASES[1:])
def test_a_coordinator_that_moves_is_followed(rig_of, release):
    rig = rig_of(release)
    rig.cluster.move_coordinator('g', 0)
    rig.commit(OFFSETS)
    rig.cluster.move_coordinator('g', 2)
    rig.commit({P0: OffsetAndMetadata(9, '', -1)})
    assert rig.fetch([P0])[P0].offset == 9


@pytest.mark.parametrize('release', RELEASES)
def test_lost_answers_and_passing_errors_are_survived(rig_of, release):
    rig = rig_of(release)
    rig.cluster.faults.add(DropResponse(), 'OFFSET_COMMIT')
    rig.cluster.faults.add(Error(COORDINATOR_LOAD_IN_PROGRESS), 'OFFSET_COMMIT', skip=1)
    rig.cluster.faults.add(Error(NOT_COORDINATOR), 'OFFSET_FETCH')
    rig.commit(OFFSETS)
    assert rig.fetch([P0])[P0].offset == 5


def test_a_coordinator_that_hangs_costs_no_more_than_the_caller_gave(rig):
    rig.cluster.faults.add(Hang(), 'OFFSET_COMMIT', times=None)
    began = rig.loop.time()
    with pytest.raises(errors.KafkaTimeoutError, match='group g took longer than 5 s'):
        rig.commit(OFFSETS, timeout=5.0)
    assert rig.loop.time() - began == pytest.approx(5.0, abs=0.2)


def test_a_coordinator_that_dies_is_replaced(rig):
    rig.cluster.move_coordinator('g', 1)
    rig.commit(OFFSETS)
    rig.cluster.kill(1)
    rig.cluster.move_coordinator('g', 2)
    rig.commit({P0: OffsetAndMetadata(9, '', -1)}, timeout=30.0)
    assert rig.fetch([P0])[P0].offset == 9


def test_a_commit_does_not_wait_behind_a_fetch(rig):
    """A Fetch that waits for records holds up all later answers of its connection."""
    rig.cluster.move_coordinator('g', 1)
    rig.commit(OFFSETS)
    rig.loop.run(rig.pool.link(1).ready(), 10)
    rig.cluster.faults.add(Delay(10.0), 'METADATA', node=1)
    waits = rig.loop.spawn(rig.pool.link(1).request(MetadataRequest(topics=None), 30.0))
    rig.loop.wait(lambda: False, 0.1)
    rig.commit(OFFSETS, timeout=1.0)
    assert not waits.done


def test_an_offset_that_a_transaction_is_about_to_change_is_waited_for(rig):
    rig.commit(OFFSETS)
    rig.cluster.faults.add(Error(UNSTABLE_OFFSET_COMMIT), 'OFFSET_FETCH', times=4)
    assert rig.fetch([P0])[P0].offset == 5
    assert len(rig.asked('OFFSET_FETCH')) == 5


def test_codes_of_no_table_are_retried_where_they_say_so(rig):
    rig.cluster.faults.add(Error(CONCURRENT_TRANSACTIONS), 'OFFSET_COMMIT')
    rig.commit(OFFSETS)
    assert len(rig.asked('OFFSET_COMMIT')) == 2


def test_a_topic_that_was_made_anew_is_committed_by_its_new_id(rig):
    """Under the old id (v10) nobody knows it: metadata are refreshed first."""
    rig.commit(OFFSETS)
    gone = DeleteTopicsRequest(
        topics=[DeleteTopicState(name='t', topic_id=bytes(16))], timeout_ms=1000
    )
    rig.loop.run(rig.pool.send(gone), 10)
    rig.cluster.create_topic('t', 2)
    rig.commit({P0: OffsetAndMetadata(1, '', -1)})
    assert rig.fetch([P0])[P0].offset == 1


@pytest.mark.parametrize('release', RELEASES[2:])
def test_a_member_that_nobody_knows_may_not_commit(rig_of, release):
    rig = rig_of(release)
    with pytest.raises(errors.CommitFailedError, match='group g') as raised:
        rig.commit(OFFSETS, ConsumerGroupMetadata('g', 4, 'stranger', None))
    assert raised.value.errno_of_group in (22, 25, 69)


# ---------------------------------------------------------------- the 0.9.5 tower


@pytest.mark.parametrize('release', RELEASES)
def test_offsets_of_the_tower_are_gone_on_from_and_back(rig_of, release):
    """Those of 0.9.5 are in ZooKeeper where brokers have one, at the coordinator otherwise."""
    rig = rig_of(release)
    rig.commits = rig.made(is_zookeeper=True)
    with rig.cluster.patched():
        client = KafkaClient(rig.cluster.bootstrap)
        client.send_offset_commit_request(b'g', [OffsetCommitRequest(b't', 0, 42, b'')])
        assert rig.fetch([P0, P1]) == {P0: OffsetAndMetadata(42, '', -1), P1: None}
        rig.commit({P0: OffsetAndMetadata(43, '', -1)})
        (found,) = client.send_offset_fetch_request(b'g', [OffsetFetchRequest(b't', 0)])
        assert found.offset == 43
        client.close()


@pytest.mark.parametrize('release', ['0.8.2.2', '0.9.0.1', '0.11.0.3'])
def test_the_two_places_do_not_know_of_each_other(rig_of, release):
    rig = rig_of(release)
    rig.commit(OFFSETS)
    rig.commits = rig.made(is_zookeeper=True)
    assert rig.fetch([P0]) == {P0: None}
