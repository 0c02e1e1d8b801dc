"""Where partitions are asked for: leaders, nearer replicas, pauses, and what each look costs."""

from __future__ import annotations

import math

import pytest

from kafka.consumer.fetch.node_selection import NodeSelection
from kafka.consumer.subscription_state import Phase, SubscriptionState
from kafka.structs import TopicPartition
from test.consumer.fetching_by_hand import T0, T1, Pool, Rig
from test.manual_loop import ManualLoop


class Town:
    """NodeSelection of two partitions at node 1, and what they know."""

    def __init__(self):
        self.rig = Rig(0)
        self.rig.count = 2
        self.subscription = self.rig.subscription
        self.places = NodeSelection(self.subscription, self.rig.pool.cluster, 1000)
        self.rig.metadata()
        self.rig.assign([0, 1])
        self.now = 100.0
        self.look()

    def look(self):
        self.places.review(self.subscription.take_changed(), self.now)

    def metadata(self, **more):
        self.rig.metadata(**more)
        self.places.review_all(self.now)

    def at(self, node):
        session = self.places.sessions.get(node)
        return [] if session is None else sorted(session.wanted())

    def state(self, at=T0):
        return self.subscription.state(at)

    def leave_alone(self, at=T0, seconds=lambda failures: float(failures)):
        self.places.leave_alone(at, self.state(at).token, self.now, seconds)


@pytest.fixture
def town():
    return Town()


def test_the_leader_is_asked(town):
    town.rig.leaders = {1: 2}
    town.metadata()
    assert (town.at(1), town.at(2)) == ([T0], [T1])


def test_it_is_asked_for_what_is_next_by_who_knows_the_epoch(town):
    town.rig.epochs = {0: 4}
    town.metadata()
    town.subscription.seek(T0, 5)
    town.look()
    wanted = town.places.sessions[1].latest(T0)
    assert (wanted.offset, wanted.leader_epoch, wanted.max_bytes) == (5, 4, 1000)
    assert wanted.token == town.state().token


@pytest.mark.parametrize(
    'change',
    [
        lambda s: s.pause(T0),
        lambda s: s.hold([T0]),
        lambda s: s.need_offset_reset(T0),
        lambda s: s.assign_from_user([T1]),
    ],
)
def test_what_may_not_be_fetched_is_asked_for_nowhere(town, change):
    change(town.subscription)
    town.look()
    assert town.at(1) == [T1]


def test_a_new_leader_makes_it_validate(town):
    town.state().fetched(5, 3)
    town.rig.leaders, town.rig.epochs = {0: 2}, {0: 9}
    town.metadata()
    assert town.state().phase is Phase.AWAIT_VALIDATION and town.at(2) == []
    town.subscription.state(T0).spare_validation(town.state().validation())
    town.look()
    assert town.at(2) == [T0]


def test_topics_without_leader_are_told_once_per_look(town):
    town.rig.leaders = {0: -1}
    town.metadata()
    assert town.at(1) == [T1]
    assert town.places.take_leaderless() == {'t'} and town.places.take_leaderless() == set()


def test_a_look_is_due_when_a_pause_is_over_or_something_waits_to_be_told(town):
    assert not town.places.is_due(town.now)
    town.leave_alone()
    assert not town.places.is_due(town.now + 0.9) and town.places.is_due(town.now + 1.0)
    town.rig.leaders = {1: -1}
    town.metadata()
    assert town.places.is_due(town.now)
    town.places.take_leaderless()
    assert not town.places.is_due(town.now)
    town.subscription.need_offset_reset(T0)
    town.look()
    assert town.places.is_due(town.now)


def test_nobody_needs_a_leader_for_what_is_paused(town):
    town.subscription.pause(T0)
    town.rig.leaders = {0: -1}
    town.metadata()
    assert town.places.take_leaderless() == set()


def test_who_will_be_asked_once_a_position_is_found_is_told_once(town):
    assert town.places.take_expected() == set(), 'these have a position'
    town.subscription.need_offset_reset(T0)
    town.look()
    assert town.places.take_expected() == {1}
    assert town.places.take_expected() == set()


def test_nobody_is_expected_to_be_asked_for_what_is_paused_or_has_no_leader(town):
    for at in (T0, T1):
        town.subscription.need_offset_reset(at)
    town.subscription.pause(T0)
    town.rig.leaders = {1: -1}
    town.metadata()
    assert town.places.take_expected() == set()


def test_a_nearer_replica_is_asked_until_its_time_is_over(town):
    town.places.prefer(T0, town.state(), 2, 150.0)
    town.look()
    assert (town.at(1), town.at(2)) == ([T1], [T0])
    assert town.places.next_alarm == 150.0
    town.places.prefer(T0, town.state(), 2, 999.0)
    town.now = 150.0
    town.look()
    assert town.at(1) == [T0, T1], 'to be named again prolongs nothing'


@pytest.mark.parametrize('how', ['offline', 'unlisted', 'leader', 'avoided'])
def test_a_nearer_replica_is_given_up(town, how):
    town.places.prefer(T0, town.state(), 2, 150.0)
    town.look()
    if how == 'offline':
        town.rig.offline = {0: [2]}
        town.metadata()
    elif how == 'unlisted':
        town.metadata(brokers=(1, 3))
    elif how == 'leader':
        town.rig.epochs = {0: 1}
        town.metadata()
    else:
        town.places.avoid(2)
        town.look()
    assert town.at(1) == [T0, T1] and town.state().preferred_replica is None


def test_a_leader_is_not_avoided(town):
    town.places.avoid(1)
    town.places.avoid(77)
    town.look()
    assert town.at(1) == [T0, T1]


def test_what_failed_is_left_alone_for_longer_and_longer(town):
    town.leave_alone()
    assert town.at(1) == [T1] and town.places.next_alarm == 101.0
    town.now = 101.0
    town.look()
    assert town.at(1) == [T0, T1]
    town.leave_alone()
    town.now = 102.9
    town.look()
    assert town.at(1) == [T1]
    town.now = 103.0
    town.look()
    assert town.at(1) == [T0, T1]


def test_a_failure_long_ago_does_not_count(town):
    town.leave_alone()
    town.now = 1000.0
    town.leave_alone()
    assert min(town.places._alarms)[0] == 101.0 and max(town.places._alarms)[0] == 1001.0


def test_after_records_the_next_failure_is_the_first(town):
    town.leave_alone()
    town.now = 101.0
    town.look()
    town.state().fetched(3, 0)
    town.places.advance(1, T0, town.state())
    town.leave_alone()
    town.now = 102.0
    town.look()
    assert town.at(1) == [T0, T1]


def test_a_seek_ends_a_pause(town):
    town.leave_alone(seconds=lambda failures: math.inf)
    town.subscription.seek(T0, 9)
    town.look()
    assert town.at(1) == [T0, T1]


def test_a_new_leader_ends_a_pause_but_not_what_waits_for_the_program(town):
    town.leave_alone()
    town.leave_alone(T1, lambda failures: math.inf)
    town.rig.epochs = {0: 1, 1: 1}
    town.metadata()
    assert town.at(1) == [T0]


def test_metadata_without_change_do_not_end_a_pause(town):
    town.leave_alone()
    town.metadata()
    assert town.at(1) == [T1]


def test_what_gave_records_comes_behind_the_others(town):
    town.state().fetched(3, 0)
    town.places.advance(1, T0, town.state())
    session = town.places.sessions[1]
    assert session.wanted() == [T1, T0] and session.latest(T0).offset == 3


def test_records_of_a_node_that_is_asked_no_more_ask_nobody(town):
    town.rig.leaders = {0: 2}
    town.metadata()
    town.state().fetched(3, 0)
    town.places.advance(1, T0, town.state())
    assert town.at(1) == [T1] and town.places.sessions[2].latest(T0).offset == 0


def test_growing_ends_at_the_most(town):
    assert town.places.grow(T0, 1000, 3000) and town.places.grown(T0) == 2000
    assert town.places.grow(T0, 2000, 3000) and town.places.grown(T0) == 3000
    assert not town.places.grow(T0, 3000, 3000)
    town.subscription.seek(T0, 5)
    town.look()
    assert town.places.sessions[1].latest(T0).max_bytes == 3000
    town.subscription.assign_from_user([T1])
    town.look()
    assert town.places.grown(T0) is None


def test_a_follower_is_whoever_does_not_lead(town):
    assert town.places.is_follower(T0, 2) and not town.places.is_follower(T0, 1)


class Counted(SubscriptionState):
    """Counts the looks at states."""

    def __init__(self):
        super().__init__()
        self.looks = 0
        counted = self

        class Assignment(dict):
            def get(self, *args):
                counted.looks += 1
                return super().get(*args)

            def items(self):
                counted.looks += len(self)
                return super().items()

        self.assignment = Assignment()


@pytest.mark.parametrize('count', [10, 1000])
def test_a_look_costs_what_has_changed_and_not_what_is_assigned(count):
    pool = Pool(ManualLoop(), {})
    subscription = Counted()
    subscription.assign_from_user([TopicPartition('t', n) for n in range(count)])
    places = NodeSelection(subscription, pool.cluster, 1000)
    places.review(subscription.take_changed(), 1.0)
    subscription.pause(T0)
    subscription.looks = 0
    places.review(subscription.take_changed(), 1.0)
    places.review(subscription.take_changed(), 1.0)
    assert subscription.looks == 1


def test_it_says_what_it_is(town):
    assert repr(town.places) == '<NodeSelection 2 partitions at 1 nodes>'
