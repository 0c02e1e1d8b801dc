"""How long members of classic groups live: heartbeats, polls, static ids, ends; what idle costs."""

from __future__ import annotations

import logging
import math

import pytest

from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.subscriptions import read_members
from kafka.coordinator.classic.assignors import AssignorError
from kafka.coordinator.classic.state_machine import ClassicMembership, Heartbeats
from kafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from kafka.errors import FencedInstanceIdError, InconsistentGroupProtocolError, ProtocolError
from kafka.net.node_connection import ConnectionState
from kafka.protocol.group import HeartbeatResponse, JoinGroupResponse, SyncGroupResponse
from kafka.testing.errors import REBALANCE_IN_PROGRESS, UNKNOWN_MEMBER_ID
from kafka.testing.faults import Error, Hang
from test.coordinator.group_world import World

ALL = [0, 1, 2, 3]
COOPERATIVE = ['cooperative-sticky']


@pytest.fixture
def world():
    with World() as made:
        yield made


def alone(world, **how):
    """Return the only member of a group, which is stable and was told of nothing since."""
    reader = world.reader(**how)
    world.settle()
    reader.told.clear()
    world.cluster.forget_requests()
    return reader


# ---------------------------------------------------------------- polls


def test_a_program_may_work_for_longer_than_the_session_time_out(world):
    reader = alone(world, session_timeout=10.0, rebalance_timeout=60.0)
    reader.polls = False
    world.run(55)
    reader.polls = True
    world.run(5)
    assert reader.told == []
    assert len(world.requests('HEARTBEAT')) in (19, 20)


def test_a_program_that_does_not_poll_in_time_leaves_and_comes_back(world, caplog):
    first, second = world.reader(rebalance_timeout=20.0), world.reader(rebalance_timeout=20.0)
    world.settle()
    first.told.clear()
    first.polls, first.is_stale = False, True
    world.until(lambda: len(second.owned) == 4, 30)
    (left,) = world.requests('LEAVE_GROUP')
    assert left.members[0].reason == 'no poll for 20 s'
    assert 'max_poll_interval_ms=20000' in caplog.text
    assert first.member.identity().generation_id == -1
    world.cluster.forget_requests()
    world.run(30)
    heard = {each.client_id for each in world.cluster.requests if each.api.name != 'METADATA'}
    assert heard == {'reader-1'}
    first.polls = True
    world.settle()
    assert [what for what, _ in first.told] == ['lose', 'assign']
    assert len(first.owned) == len(second.owned) == 2


def test_a_static_member_that_does_not_poll_stays_quiet(world):
    reader = alone(world, group_instance_id='one', rebalance_timeout=20.0)
    reader.polls = False
    world.run(25)
    assert world.requests('LEAVE_GROUP') == []
    assert reader.member.identity().generation_id == -1


def test_who_polls_on_is_never_late(world):
    reader = alone(world, rebalance_timeout=5.0)
    world.run(60)
    assert reader.told == []


# ---------------------------------------------------------------- steps


def test_a_step_that_was_not_begun_is_withdrawn_when_the_generation_is_lost(world):
    reader = alone(world)
    reader.takes_steps = False
    world.loop.call_soon(reader.member.rejoin, 'because')
    world.until(lambda: reader.member.step is not None)
    step = reader.member.step
    world.cluster.faults.add(Error(UNKNOWN_MEMBER_ID), 'Heartbeat', times=1)
    world.until(lambda: reader.member.step is not step)
    assert step.is_withdrawn
    assert not step.begin()
    reader.takes_steps = True
    world.settle()
    assert reader.told == [('lose', ALL), ('assign', ALL)]


def test_a_step_that_was_begun_is_waited_for(world):
    reader = alone(world)
    reader.takes_steps = False
    world.loop.call_soon(reader.member.rejoin, 'because')
    world.until(lambda: reader.member.step is not None)
    step = reader.member.step
    assert step.begin()
    world.cluster.faults.add(Error(UNKNOWN_MEMBER_ID), 'Heartbeat', times=1)
    world.run(5)
    assert reader.member.step is step
    reader.take(step)
    reader.takes_steps = True
    world.settle()
    assert reader.told == [('revoke', ALL), ('assign', ALL)]


def test_heartbeats_go_on_while_a_listener_takes_its_time(world):
    reader = alone(world, rebalance_timeout=60.0)
    reader.takes_steps = False
    world.loop.call_soon(reader.member.rejoin, 'because')
    world.run(30)
    assert len(world.requests('HEARTBEAT')) == 10
    reader.takes_steps = True
    world.settle()
    assert reader.told == [('revoke', ALL), ('assign', ALL)]


# ---------------------------------------------------------------- static members


@pytest.mark.parametrize('release', ['2.8.2', '4.4.0'])
@pytest.mark.parametrize('leads', [False, True])
def test_a_static_member_that_comes_back_costs_no_rebalance(release, leads):
    with World(release) as world:
        readers = [world.reader(group_instance_id=name) for name in ('one', 'two')]
        world.settle()
        leader, follower = sorted(readers, key=lambda each: each.member._leader._seen is None)
        gone, other = (leader, follower) if leads else (follower, leader)
        share = set(gone.owned)
        gone.polls = False
        gone.leave()
        gone.close()
        other.told.clear()
        world.run(2)
        back = world.reader(group_instance_id='one' if gone is readers[0] else 'two')
        world.settle(back)
        world.run(5)
        assert back.owned == share
        assert other.told == []
        assert world.requests('LEAVE_GROUP') == []


def test_a_static_leader_that_comes_back_watches_the_topics():
    with World(topics={'t': 4, 'u': 1}) as world:
        reader = alone(world, group_instance_id='one', net={'allow_auto_create_topics': False})
        reader.polls = False
        reader.close()
        reader.owned = set()
        back = world.reader(
            't', 'v', group_instance_id='one', net={'allow_auto_create_topics': False}
        )
        back.subscription.subscription = {'t'}
        world.settle(back)
        assert back.member._answer.skip_assignment
        assert world.requests('SYNC_GROUP')[-1].assignments == []
        assert back.member._leader._seen == {'t': (4,)}


def test_who_is_replaced_loses_everything_and_is_told_so(world):
    first = alone(world, group_instance_id='one')
    first.is_stale = True
    second = world.reader(group_instance_id='one')
    world.settle(second)
    world.until(lambda: first.errors)
    assert first.told == [('lose', ALL)]
    assert isinstance(first.errors[0], FencedInstanceIdError)
    assert "group_instance_id 'one'" in str(first.errors[0])
    world.run(20)
    assert second.member.is_stable


# ---------------------------------------------------------------- leaving, closing


@pytest.mark.parametrize('release', ['0.9.0.1', '2.3', '4.4.0'])
def test_a_dynamic_member_says_that_it_leaves(release):
    with World(release) as world:
        first, second = world.reader(), world.reader()
        world.settle()
        second.leave()
        (request,) = world.requests('LEAVE_GROUP')
        if release == '4.4.0':
            assert request.members[0].reason == 'it is over'
        began = world.loop.time()
        world.until(lambda: len(first.owned) == 4)
        assert world.loop.time() - began < 4


def test_leaving_is_bounded_when_nobody_answers(world, caplog):
    caplog.set_level(logging.INFO)
    reader = alone(world)
    world.cluster.faults.add(Hang(), 'LeaveGroup', times=1)
    began = world.loop.time()
    reader.leave(2.0)
    assert world.loop.time() - began == pytest.approx(2.0, abs=0.1)
    assert 'session_timeout_ms=10000' in caplog.text
    assert reader.member.identity().state == '<unjoined>'


def test_leaving_does_not_wait_for_a_join_that_is_parked(world):
    first = world.reader()
    world.settle()
    first.takes_steps = False  # so that the group waits for it
    second = world.reader()
    world.until(lambda: second.member._membership.state.value == 'joining')
    world.until(lambda: len(world.requests('JOIN_GROUP')) >= 3)
    world.run(1)
    began = world.loop.time()
    second.leave(5.0)
    assert world.loop.time() - began < 1
    assert len(world.requests('LEAVE_GROUP')) == 1


def test_who_left_while_its_join_was_parked_comes_back_on_another_connection(world):
    """Brokers before 2.3 never answer the JoinGroup of a member that has left."""
    world.cluster.faults.add(Hang(), 'JoinGroup', times=1)
    reader = world.reader()
    world.until(lambda: reader.member._membership.state.value == 'joining')
    link = reader.member._parking
    reader.leave()
    assert link.state is ConnectionState.CLOSED
    reader.polls = True
    began = world.loop.time()
    world.settle()
    assert world.loop.time() - began < 5


def links_of_groups(pool):
    """Return the connections that are there for groups alone."""
    others = [*pool._connections.common.values(), *pool._connections.fetches.values()]
    return [each for each in pool._connections.all() if each not in others]


def test_a_member_has_two_connections_to_its_coordinator(world):
    reader = alone(world)
    world.run(5)
    assert len(links_of_groups(reader.pool)) == 2
    world.loop.call_soon(reader.member.rejoin, 'because')
    world.until(lambda: reader.member.rebalances == 2)
    reader.leave()
    assert len(links_of_groups(reader.pool)) == 2
    assert world.requests('LEAVE_GROUP')


def test_an_answer_to_a_heartbeat_that_sync_overtook_costs_no_rebalance(world):
    """It was given before, comes over another connection, and is of the same generation."""
    readers = [world.reader(), world.reader()]
    world.settle()
    (reader,) = (
        each for each in readers if each.member._answer.leader != each.member.identity().member_id
    )
    generation, rebalances = reader.member.identity().generation_id, reader.member.rebalances
    sender, held = reader.member._heartbeats, []
    hear = sender._on_outcome
    sender._on_outcome = lambda *outcome: held.append(outcome)
    world.until(lambda: held)
    sender._on_outcome = hear
    world.loop.call_soon(reader.member.rejoin, 'because')
    world.until(lambda: reader.member.rebalances == rebalances + 1)
    assert reader.member.identity().generation_id == generation
    response, error = HeartbeatResponse(error_code=REBALANCE_IN_PROGRESS), None
    hear(*held[0][:3], response, error)
    world.run(5)
    assert reader.member.rebalances == rebalances + 1


def test_who_has_left_may_come_back_with_a_poll(world):
    reader = alone(world)
    reader.leave()
    reader.polls = True
    world.settle()
    assert reader.told == [('revoke', []), ('assign', ALL)]


def test_who_has_left_without_subscription_stays_away(world):
    reader = alone(world)
    reader.subscription.subscription = None
    reader.leave()
    reader.polls = True
    world.run(10)
    assert world.requests('JOIN_GROUP') == []


@pytest.mark.parametrize('when', ['before', 'joining', 'stable'])
def test_close_ends_everything(world, when):
    reader = world.reader(start=when != 'before')
    if when == 'joining':
        world.until(lambda: world.requests('JOIN_GROUP'))
    elif when == 'stable':
        world.settle()
    reader.close()
    reader.close()
    reader.member.polled(1.0)
    assert reader.member._on_metadata not in reader.pool.cluster._listeners
    world.run(0.1)  # until what was on its way has arrived
    world.cluster.forget_requests()
    world.run(20)
    assert world.cluster.requests == []
    assert not [task for task in world.loop.tasks if 'Member' in task.name]


# ---------------------------------------------------------------- assignors


class Broken(RangePartitionAssignor):
    name = 'broken'

    @classmethod
    def assign(cls, cluster, members):
        raise ZeroDivisionError('oh')


def test_an_assignor_that_raises_is_told_of_and_tried_again_with_the_next_poll(world):
    reader = world.reader(assignors=[Broken])
    world.until(lambda: len(reader.errors) > 5)
    assert isinstance(reader.errors[0], AssignorError)
    assert isinstance(reader.errors[0].__cause__, ZeroDivisionError)
    assert 'broken' in str(reader.errors[0])


class Foreign(RangePartitionAssignor):
    name = 'foreign'

    @classmethod
    def assign(cls, cluster, members):
        unwanted = ConsumerProtocolMemberAssignment(cls.version, [('unwanted', [0])], b'')
        return {each.member_id: unwanted for each in read_members(members)}


def test_an_assignor_that_gives_what_nobody_wants_does_not_keep_the_group_busy(world):
    """It was 1,500 rebalances a second; topics that have just changed are such a case once."""
    world.reader(assignors=[Foreign])
    world.run(60)
    assert 20 < len(world.requests('JOIN_GROUP')) < 100


def test_a_member_that_the_leader_has_forgotten_has_nothing(world):
    world.cluster.control('SyncGroup', lambda call: SyncGroupResponse(error_code=0, assignment=b''))
    told = []
    reader = world.reader()
    reader.member._assignors._assignors[0].on_assignment = lambda *args: told.append(args)
    world.settle()
    assert reader.told == [('revoke', []), ('assign', [])]
    assert told == []


def test_an_assignment_that_cannot_be_read_is_told(world):
    world.cluster.control(
        'SyncGroup', lambda call: SyncGroupResponse(error_code=0, assignment=b'?')
    )
    reader = world.reader()
    world.until(lambda: reader.errors)
    assert isinstance(reader.errors[0], ProtocolError)


@pytest.mark.parametrize('kind, name', [('connect', 'range'), ('consumer', 'unheard')])
def test_a_group_of_another_kind_is_told(world, kind, name):
    world.cluster.control(
        'JoinGroup',
        lambda call: JoinGroupResponse(
            error_code=0,
            generation_id=1,
            protocol_type=kind,
            protocol_name=name,
            leader='other',
            member_id='me',
            members=[],
        ),
    )
    reader = world.reader()
    world.until(lambda: reader.errors)
    assert isinstance(reader.errors[0], InconsistentGroupProtocolError)
    assert name in str(reader.errors[0])


def test_members_without_a_common_assignor_are_told_so(world):
    world.reader(assignors=['range'])
    world.settle()
    other = world.reader(assignors=['roundrobin'])
    world.until(lambda: other.errors)
    assert isinstance(other.errors[0], InconsistentGroupProtocolError)
    assert 'partition_assignment_strategy' in str(other.errors[0])


def test_a_mistake_of_this_package_is_told_and_not_waited_for(world, monkeypatch, caplog):
    reader = alone(world)
    monkeypatch.setattr(ClassicMembership, 'needs', lambda self: 1 / 0)
    world.loop.call_soon(reader.member.rejoin, 'because')
    world.until(lambda: reader.errors)
    assert 'ZeroDivisionError' in str(reader.errors[0])
    caplog.clear()


# ---------------------------------------------------------------- heartbeats, and their cost


def test_one_heartbeat_at_a_time():
    beats = Heartbeats(3.0)
    beats.begin(10.0)
    assert beats.due == 13.0
    assert beats.look_at(10.0) == 13.0
    beats.sent(13.5)
    assert beats.due == math.inf
    assert (beats.look_at(13.5), beats.look_at(16.5)) == (16.5, 19.5)
    beats.answered(14.0)
    assert (beats.due, beats.answered_at) == (16.5, 14.0)
    beats.sent(16.5)
    beats.answered(30.0)
    assert beats.due == 30.0
    beats.sent(30.0)
    beats.failed(31.0, 0.5)
    assert (beats.due, beats.answered_at) == (31.5, 30.0)
    beats.stop()
    assert beats.due == math.inf


def test_an_idle_member_starts_no_coroutine_and_one_timer_for_each_heartbeat(world, monkeypatch):
    reader = alone(world)
    world.run(4)  # the first one connects
    world.cluster.forget_requests()
    began = []
    monkeypatch.setattr(world.loop, 'spawn', lambda coroutine: began.append(coroutine))
    timers = []
    later = world.loop.call_later

    def call_later(seconds, call, *args):
        if call.__name__ == '_on_timer':
            timers.append(seconds)
        return later(seconds, call, *args)

    monkeypatch.setattr(world.loop, 'call_later', call_later)
    world.run(300)
    assert began == []
    assert len(timers) in (99, 100, 101)
    assert len(world.requests('HEARTBEAT')) in (100, 101)
    assert reader.member.is_stable
