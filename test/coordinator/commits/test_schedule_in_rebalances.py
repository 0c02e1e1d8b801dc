"""Commits of members while their group rebalances: scripted, and on embedded brokers."""

from __future__ import annotations

import random
import threading
from types import SimpleNamespace

import pytest

from kafka.coordinator.classic.state_machine import ClassicMemberState
from kafka.coordinator.commits.manager import OffsetCommits
from kafka.coordinator.commits.member_commit import MemberCommit
from kafka.errors import CommitFailedError, CommitInRebalanceError, KafkaConnectionError
from kafka.net.loop.tasks import Waiter
from kafka.structs import TopicPartition
from kafka.testing.errors import ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS
from kafka.testing.faults import Delay, Error
from test.coordinator.commits.test_manager import P0, P1, Rig, at
from test.coordinator.commits.test_member_commit import NEW, OLD, Scripted
from test.coordinator.group_world import World

# ---------------------------------------------------------------- scripted


class Through:
    """Commits of a member that is what a test says, to a broker that a script has."""

    def __init__(self):
        self.rig = Rig()
        self.broker = self.rig.broker
        self.member = Scripted()
        self.assignment = {P0: object(), P1: object()}

    def begin(self, offsets, timeout=10.0):
        subscription = SimpleNamespace(assignment=self.assignment)
        lock = threading.Lock()
        standing = MemberCommit(self.rig.loop, self.member, subscription, lock, offsets)
        return self.rig.begin(offsets, standing, timeout)

    def open(self, who=NEW):
        self.member.who, self.member.can_commit = who, True
        self.member.opens.wake(True)
        self.rig.loop.settle()

    @property
    def generations(self):
        return [request.generation_id_or_member_epoch for request, _ in self.broker.asked]


@pytest.fixture
def through():
    return Through()


def test_a_commit_waits_while_the_group_takes_none(through):
    through.member.can_commit = False
    task = through.begin({P0: at(5)})
    assert through.broker.asked == []
    through.open()
    through.rig.end(task)
    assert through.generations == [4]


@pytest.mark.parametrize('code', [22, 27])
def test_what_a_rebalance_has_overtaken_is_committed_in_the_next_generation(through, code):
    through.broker.script = [code]
    task = through.begin({P0: at(5)})
    assert not task.done
    assert through.member.asked == [OLD]
    through.open()
    through.rig.end(task)
    assert through.generations == [3, 4]
    assert [who for _, who in through.member.told] == [OLD]


def test_only_what_was_not_stored_goes_to_the_next_generation(through):
    through.broker.script = [{P0: 22}]
    task = through.begin({P0: at(5), P1: at(6)})
    del through.assignment[P1]
    through.open()
    through.rig.end(task)
    assert through.broker.offsets == [{0: 5, 1: 6}, {0: 5}]


def test_a_member_that_is_thrown_out_hears_so_at_once(through):
    through.broker.script = [25]
    with pytest.raises(CommitFailedError):
        through.rig.end(through.begin({P0: at(5)}))
    assert through.member.asked == []


def test_the_refusal_is_raised_when_no_other_generation_follows(through):
    through.broker.script = [22]
    through.member.opens.wake(False)
    with pytest.raises(CommitFailedError) as raised:
        through.rig.end(through.begin({P0: at(5)}))
    assert raised.value.errno_of_group == 22


def test_all_of_it_is_bounded(through):
    through.broker.script = [27]
    task = through.begin({P0: at(5)}, timeout=2.0)
    with pytest.raises(CommitInRebalanceError):
        through.rig.end(task)
    assert through.rig.loop.now == 1002.0


def test_a_commit_that_was_overtaken_does_not_undo_a_later_one(through):
    answer = Waiter()
    through.broker.script = [answer, 0]
    first = through.begin({P0: at(5), P1: at(6)})
    through.member.who = NEW
    through.rig.end(through.begin({P0: at(8)}))
    answer.wake(22)
    through.open()
    through.rig.end(first)
    assert through.broker.offsets == [{0: 5, 1: 6}, {0: 8}, {1: 6}]


def test_a_commit_that_has_waited_does_not_undo_a_later_one(through):
    through.member.can_commit = False
    first = through.begin({P0: at(5)})
    through.member.can_commit = True
    through.rig.end(through.begin({P0: at(8)}))
    through.open()
    through.rig.end(first)
    assert through.broker.offsets == [{0: 8}]


# ---------------------------------------------------------------- on embedded brokers

RELEASES = ['0.9.0.1', '0.10.2.2', '2.3.1', '2.8.2', '4.4.0']
COOPERATIVE = ['cooperative-sticky']


class Program:
    """What commits beside a member of group_world.py."""

    def __init__(self, reader):
        self.reader = reader
        self.loop = reader.world.loop
        self.commits = OffsetCommits(self.loop, reader.pool, 'g', 3.0, 0.05, 0.5, random.Random(6))
        self.states = {}

    def begin(self, offsets, timeout=20.0):
        reader = self.reader
        self.states = {each: self.states.get(each, object()) for each in reader.owned}
        subscription = SimpleNamespace(assignment=self.states)
        standing = MemberCommit(self.loop, reader.member, subscription, threading.Lock(), offsets)
        return self.loop.spawn(self.commits.commit(offsets, standing, timeout))

    def commit(self, offsets, timeout=20.0):
        task = self.begin(offsets, timeout)
        self.loop.wait(lambda: task.done, timeout + 5)
        task.result()

    def stored(self, partition):
        found = self.loop.run(self.commits.fetch([partition], 10), 20)[partition]
        return found and found.offset


def parked(world, **how):
    """Return a member whose JoinGroup is parked, as another one does not take its steps."""
    first, second = world.reader(**how), world.reader(**how)
    world.settle()
    first.takes_steps = False
    third = world.reader(**how)
    world.until(lambda: third.member._membership.state is ClassicMemberState.JOINING)
    world.until(lambda: second.member._membership.state is ClassicMemberState.JOINING)
    world.run(1)
    return first, second


@pytest.mark.parametrize('release', RELEASES)
def test_what_a_cooperative_member_reads_on_is_committed_while_join_is_parked(release):
    with World(release) as world:
        first, second = parked(world, assignors=COOPERATIVE)
        program, mine = Program(second), min(second.owned)
        began = world.loop.time()
        program.commit({mine: at(7)})
        assert world.loop.time() - began < 1
        assert program.stored(mine) == 7
        assert second.member._membership.state is ClassicMemberState.JOINING
        first.takes_steps = True
        world.settle()


@pytest.mark.parametrize('release', RELEASES)
def test_what_an_eager_member_has_given_up_is_not_committed_by_it(release):
    with World(release) as world:
        first, second = parked(world)
        program, given_up = Program(second), TopicPartition('t', 0)
        assert second.owned == set()
        with pytest.raises(CommitInRebalanceError):
            program.commit({given_up: at(7)})
        assert world.requests('OFFSET_COMMIT') == []


@pytest.mark.parametrize('release', RELEASES)
def test_between_join_and_sync_a_commit_waits_for_the_next_generation(release):
    with World(release) as world:
        first, second = parked(world, assignors=COOPERATIVE)
        program, mine = Program(second), min(second.owned)
        world.cluster.faults.add(Delay(2.0), 'SyncGroup', times=None)
        first.takes_steps = True
        world.until(lambda: second.member._membership.state is ClassicMemberState.SYNCING)
        task = program.begin({mine: at(7)})
        world.run(1)
        assert world.requests('OFFSET_COMMIT') == []
        world.until(lambda: task.done)
        task.result()
        (request,) = world.requests('OFFSET_COMMIT')
        assert request.generation_id_or_member_epoch == second.member.identity().generation_id
        assert program.stored(mine) == 7


@pytest.mark.parametrize('code', [ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS])
def test_a_commit_that_the_end_of_the_join_overtakes_is_made_again(code):
    """It is on its way as of the old generation when the last member joins the new one."""
    with World() as world:
        first, second = parked(world, assignors=COOPERATIVE)
        program, mine = Program(second), min(second.owned)
        world.cluster.faults.add(Error(code), 'OffsetCommit', times=1)
        task = program.begin({mine: at(7)})
        world.run(1)
        assert not task.done
        first.takes_steps = True
        world.until(lambda: task.done)
        task.result()
        generations = [
            each.generation_id_or_member_epoch for each in world.requests('OFFSET_COMMIT')
        ]
        assert generations == [generations[0], generations[0] + 1]
        assert program.stored(mine) == 7


def test_a_join_whose_answer_is_lost_costs_no_partition_by_a_commit():
    """The group is in a generation that the member has not heard of."""
    with World() as world:
        world.cluster.faults.add(Delay(1.0), 'JoinGroup', times=None)
        first, second = parked(world, assignors=COOPERATIVE)
        program, mine = Program(second), min(second.owned)
        generation = second.member.identity().generation_id
        first.takes_steps = True
        world.run(0.5)  # all have joined, and nobody has heard so
        second.member._parking._lose(KafkaConnectionError('gone'))
        program.commit({mine: at(7)})
        tries = [each.generation_id_or_member_epoch for each in world.requests('OFFSET_COMMIT')]
        assert tries == [generation, generation + 1]
        assert [what for what, _ in second.told if what == 'lose'] == []
        assert program.stored(mine) == 7


def test_a_member_that_has_lost_its_generation_commits_nothing():
    with World() as world:
        reader = world.reader(assignors=COOPERATIVE)
        world.settle()
        program, mine = Program(reader), min(reader.owned)
        reader.takes_steps = False
        reader.member._membership.on_heartbeat(reader.member._membership.who, 25, 0.0)
        began = world.loop.time()
        with pytest.raises(CommitInRebalanceError):
            program.commit({mine: at(7)})
        assert world.loop.time() - began < 1
        assert world.requests('OFFSET_COMMIT') == []


@pytest.mark.parametrize('how', ['leave', 'close'])
def test_who_waits_to_commit_hears_at_once_of_the_end_of_the_membership(how):
    with World() as world:
        first, second = parked(world, assignors=COOPERATIVE)
        program, mine = Program(second), min(second.owned)
        world.cluster.faults.add(Delay(5.0), 'SyncGroup', times=None)
        first.takes_steps = True
        world.until(lambda: second.member._membership.state is ClassicMemberState.SYNCING)
        task = program.begin({mine: at(7)})
        world.run(0.5)
        assert not task.done
        second.leave() if how == 'leave' else second.member.close()
        world.run(0.1)
        assert isinstance(task.exception, CommitInRebalanceError)
