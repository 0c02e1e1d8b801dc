"""Offsets and positions on embedded brokers of old and new releases, in memory."""

from __future__ import annotations

import random
import threading

import pytest

from kafka.consumer.offsets_request_manager import OffsetsRequestManager
from kafka.consumer.partition_state import EpochEnd, Phase
from kafka.consumer.subscription_state import SubscriptionState
from kafka.coordinator.commits.manager import FetchedOffsets
from kafka.errors import KafkaTimeoutError, LogTruncationError, UnsupportedVersionError
from kafka.net.pool import Pool
from kafka.net.settings import NetSettings, parse_servers
from kafka.offsets.lookups import OffsetLookups
from kafka.protocol.admin.topics import DeleteTopicsRequest, DeleteTopicState
from kafka.protocol.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka.protocol.wire import ZERO_UUID
from kafka.record.default_records import encode_batch
from kafka.record.legacy_records import encode_message_set
from kafka.structs import OffsetAndMetadata, TopicPartition
from kafka.testing import MemoryCluster
from kafka.testing.logs.partition_log import EpochStart
from test.simulation.loop import SimLoop

T0, T1 = TopicPartition('t', 0), TopicPartition('t', 1)
NOW = 1_600_000_000_000


def release_number(release):
    return tuple(map(int, release.split('.')))


def encoded(release, times):
    """Return records of these times (ms), in the format of a release."""
    if release_number(release) >= (0, 11):
        return encode_batch([(time, None, b'value', []) for time in times])
    magic = 1 if release_number(release) >= (0, 10) else 0
    entries = [(offset, time, None, b'value') for offset, time in enumerate(times)]
    return encode_message_set(entries, magic)


class World:
    """A cluster of two brokers, and what a consumer has to find its positions in it."""

    def __init__(self, release, policy='earliest', read_committed=False):
        self.release = release
        self.cluster = MemoryCluster(version=release, brokers=2, seed=3, topics={'t': 2})
        self.cluster.start()
        self.loop = SimLoop(self.cluster)
        settings = NetSettings(servers=parse_servers(self.cluster.bootstrap), metadata_max_age=5.0)
        self.pool = Pool(self.loop, settings, random.Random(3))
        self.pool.want_topic('t')
        self.run(self.pool.bootstrap(10.0))
        self.lookups = OffsetLookups(
            self.loop, self.pool, read_committed, 10.0, 0.1, 1.0, random.Random(3)
        )
        self.subscription = SubscriptionState(policy)
        self.committed = {}
        self.positions = OffsetsRequestManager(
            self.loop,
            self.pool,
            self.subscription,
            threading.Lock(),
            self.lookups,
            self.fetch,
            lambda: None,
        )

    async def fetch(self, partitions):
        return FetchedOffsets({each: self.committed.get(each) for each in partitions}, {})

    def run(self, coroutine):
        return self.loop.run(coroutine, 60.0)

    def produce(self, times, partition=0):
        data = PartitionProduceData(index=partition, records=encoded(self.release, times))
        topics = [TopicProduceData(name='t', partition_data=[data])]
        request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics)
        (answer,) = self.run(self.pool.send(request, highest=12)).responses
        assert answer.partition_responses[0].error_code == 0

    def look_up(self, **timestamps):
        """Return the offsets of times in t-0 (p0) and t-1 (p1)."""
        asked = {TopicPartition('t', int(name[1:])): time for name, time in timestamps.items()}
        found = self.run(self.lookups.look_up(asked, 20.0))
        return [found[each] and found[each].offset for each in asked]

    def assign(self, *partitions):
        self.subscription.assign_from_user(partitions)
        self.look()

    def look(self):
        self.loop.call_soon(self.positions.look)

    def settle(self, *partitions):
        """Return the positions when nothing more is to be found."""
        assert self.loop.wait(lambda: not self.subscription.unsettled, 60.0)
        return [self.subscription.state(each).position for each in partitions]

    def close(self):
        self.positions.close()
        self.pool.close()
        self.loop.close()
        self.cluster.stop()


@pytest.fixture
def world():
    made = []

    def make(*arguments, **named):
        made.append(World(*arguments, **named))
        return made[-1]

    yield make
    for each in made:
        each.close()


RELEASES = ['0.8.2', '0.9', '0.10.0', '0.10.1', '0.11', '1.1', '2.8', '4.0', '4.4']


@pytest.mark.parametrize('release', RELEASES)
def test_the_ends_of_logs_are_found_on_every_release(world, release):
    here = world(release)
    here.produce([NOW, NOW + 1, NOW + 2])
    assert here.look_up(p0=-1, p1=-1) == [3, 0]
    assert here.look_up(p0=-2, p1=-2) == [0, 0]


@pytest.mark.parametrize('release', RELEASES[3:])
def test_the_first_record_at_or_after_a_time_is_found(world, release):
    here = world(release)
    here.produce([NOW, NOW + 10])
    here.produce([NOW + 20])
    assert here.look_up(p0=NOW + 5, p1=NOW) == [1, None]
    assert here.look_up(p0=NOW + 20) == [2]
    assert here.look_up(p0=NOW + 21) == [None]


@pytest.mark.parametrize('release', ['0.8.2', '0.9', '0.10.0'])
def test_before_0_10_1_no_time_is_looked_up(world, release):
    here = world(release)
    with pytest.raises(UnsupportedVersionError, match='ListOffsets up to version 0'):
        here.look_up(p0=NOW)


def test_a_partition_that_does_not_exist_takes_all_the_time_there_is(world):
    here = world('4.4')
    began = here.loop.time()
    with pytest.raises(KafkaTimeoutError, match='t-7'):
        here.run(here.lookups.look_up({TopicPartition('t', 7): -1, T0: -1}, 5.0))
    assert here.loop.time() - began == pytest.approx(5.0)


def test_a_leader_that_moves_is_followed(world):
    here = world('4.4')
    here.produce([NOW])
    assert here.look_up(p0=-1) == [1]
    here.cluster.move_leader('t', 0, 1 - here.cluster.leader('t', 0))
    assert here.look_up(p0=-1) == [1]


def test_a_broker_that_dies_is_waited_for(world):
    here = world('4.4')
    here.produce([NOW])
    leader = here.cluster.leader('t', 0)
    here.cluster.kill(leader)
    assert here.look_up(p0=-1) == [1]
    assert here.cluster.leader('t', 0) != leader


@pytest.mark.parametrize('release', RELEASES)
@pytest.mark.parametrize('policy, expected', [('earliest', [0, 0]), ('latest', [2, 0])])
def test_positions_begin_by_the_policy_on_every_release(world, release, policy, expected):
    here = world(release, policy)
    here.produce([NOW, NOW + 1])
    here.assign(T0, T1)
    assert here.settle(T0, T1) == expected


@pytest.mark.parametrize('age, expected', [(5, 1), (50, 0), (0, 2)])
def test_positions_begin_by_duration(world, age, expected):
    here = world('4.4', 'by_duration:PT%dS' % age)
    now = int(here.loop.wall() * 1000)
    here.produce([now - 20_000, now - 3000])
    here.assign(T0)
    assert here.settle(T0) == [expected]


def test_a_committed_epoch_is_validated(world):
    here = world('4.4')
    here.produce([NOW] * 5)
    here.committed[T0] = OffsetAndMetadata(4, '', 0)
    here.assign(T0)
    assert here.settle(T0) == [4]
    assert here.run(here.lookups.epoch_ends({T0: (0, 0)}, 5.0)) == {T0: EpochEnd(0, 5)}


def reading_a_log_that_is_cut(here):
    """Hand out five records of epoch 0, of which the next leader has three."""
    here.produce([NOW] * 5)
    here.assign(T0)
    here.settle(T0)
    state = here.subscription.state(T0)
    state.fetched(5, 0)
    state.consumed(5, 0)
    here.cluster.move_leader('t', 0, 1 - here.cluster.leader('t', 0))
    log = here.cluster.state.topics['t'].partitions[0].log
    log.epochs[:] = [EpochStart(0, 0), EpochStart(1, 3)]
    here.pool.refresh()
    here.loop.wait(lambda: here.subscription.unsettled, 10.0)
    return state


def test_a_log_that_was_cut_is_read_from_where_it_was_cut(world):
    here = world('4.4')
    state = reading_a_log_that_is_cut(here)
    assert here.settle(T0) == [3]
    assert state.position_epoch == 0


def test_a_log_that_was_cut_is_told_without_a_policy(world):
    here = world('4.4', 'none')
    here.committed[T0] = OffsetAndMetadata(0, '')
    state = reading_a_log_that_is_cut(here)
    found = []
    here.loop.wait(lambda: found.append(here.positions.take_error()) or found[-1], 10.0)
    assert isinstance(found[-1], LogTruncationError)
    assert found[-1].divergent_offsets == {T0: OffsetAndMetadata(3, '', 0)}
    assert (state.position, state.phase) == (5, Phase.AWAIT_VALIDATION)


def test_a_topic_made_anew_is_read_from_its_beginning(world):
    here = world('4.4')
    here.produce([NOW] * 5)
    here.assign(T0)
    here.settle(T0)
    here.subscription.seek(T0, 5)
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name='t', topic_id=ZERO_UUID)], timeout_ms=1000
    )
    (answer,) = here.run(here.pool.send(request)).responses
    assert answer.error_code == 0
    here.cluster.create_topic('t', 2)
    here.pool.refresh()
    assert here.loop.wait(lambda: here.subscription.state(T0).position != 5, 30.0)
    assert here.settle(T0) == [0]
