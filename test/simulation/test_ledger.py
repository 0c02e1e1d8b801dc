"""What readers have to be handed out once a log was cut, by hand and on the log of a broker."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from kafka.testing import MemoryCluster
from test.simulation.ledger import Hold, Ledger, Place
from test.simulation.truncation import lose_the_end
from test.simulation.world import World


class Log:
    start_offset, end_offset = 0, 10


@pytest.fixture
def place():
    made = Place(Log(), is_loose=False)
    for offset in range(10):
        made.wrote(offset, b'%d' % offset)
    return made


def test_readers_behind_a_cut_have_to_come_back(place):
    before, behind = Hold(0), Hold(0)
    before.next, behind.next = 3, 9
    place.holds = {'a': before, 'b': behind}
    place.cut(Log(), 6, epoch=2)
    assert (before.next, behind.next) == (3, 6)
    assert place.lost == {b'6', b'7', b'8', b'9'}
    assert place.offsets == [0, 1, 2, 3, 4, 5]


def test_what_was_handed_out_or_committed_behind_a_cut_does_not_count(place):
    place.handed, place.skipped, place.commits = {4, 5, 6}, {7}, [2, 7]
    place.cut(Log(), 6, epoch=2)
    assert (place.handed, place.skipped, place.commits) == ({4, 5}, set(), [2, 6])
    place.wrote(6, b'another')
    assert place.unread(7) == [0, 1, 2, 3, 6]


@pytest.mark.parametrize(
    'offset, epoch, stands_for', [(8, 0, 3), (8, 2, 3), (8, 4, 8), (5, 3, 3), (2, 0, 2)]
)
def test_an_offset_stands_for_where_the_log_was_cut_since_its_epoch(
    place, offset, epoch, stands_for
):
    place.cut(Log(), 6, epoch=2)
    place.cut(Log(), 3, epoch=4)
    assert place.stands_for(offset, epoch) == stands_for


class Member(SimpleNamespace):
    def may_be_passed_over(self):
        return False

    __hash__ = object.__hash__


@pytest.mark.parametrize(
    'is_anew, listed, is_wrong',
    [(False, 'new', True), (True, 'new', True), (True, 'none', True), (True, 'old', False)],
)
def test_a_late_assignment_of_a_topic_that_was_deleted_takes_nothing_from_another(
    is_anew, listed, is_wrong
):
    """The coordinator knows it by its id, and still lists the old one for that member."""
    with MemoryCluster(version='4.4', seed=1, topics={'x': 1}) as cluster:
        ledger, topic = Ledger(cluster, 'g', ()), cluster.state.topics['x']
        one, late = Member(member_id='one'), Member(member_id='late')
        units = {'new': {(topic.topic_id, 0): 2}, 'old': {(b'former', 0): 2}, 'none': {}}
        members = {
            'one': SimpleNamespace(epoch=2, assigned=units['new']),
            'late': SimpleNamespace(epoch=2, assigned=units[listed]),
        }
        ledger.broker_group = lambda: SimpleNamespace(members=members)
        ledger.add('x', 0)
        if is_anew:
            ledger.made_anew('x', 0)
        ledger.assigned(one, [('x', 0)])
        ledger.assigned(late, [('x', 0)])
        assert bool(ledger.wrongs) is is_wrong


class Writer(World):
    def wrote(self, partition, first_offset, values):
        pass


@pytest.mark.parametrize('seed', range(5))
def test_a_log_loses_its_last_batches(seed):
    with MemoryCluster(version='3.9', topics={'t': 1}, seed=seed) as cluster:
        world = Writer(seed, random.Random(seed), verbose=False)
        world.cluster = cluster
        partition = cluster.state.topics['t'].partitions[0]
        for _ in range(6):
            world.append(partition, world.values(2))
        partition.log.delete_before(3)
        before = partition.log
        end, epoch = lose_the_end(cluster, partition, world.chance)
        log = partition.log
        assert (end % 2, epoch, partition.leader_epoch) == (0, 1, 1)
        assert 4 <= end < 12
        assert (log.start_offset, log.end_offset) == (3, end)
        assert log.batches == [each for each in before.batches if each.base_offset < end]
        world.append(partition, world.values(3))
        assert log.end_of_epoch(0) == (0, end)
        assert log.end_of_epoch(1) == (1, end + 3)


def test_a_log_without_records_loses_nothing():
    with MemoryCluster(version='3.9', topics={'t': 1}, seed=1) as cluster:
        partition = cluster.state.topics['t'].partitions[0]
        assert lose_the_end(cluster, partition, random.Random(1)) is None
        assert partition.leader_epoch == 0
