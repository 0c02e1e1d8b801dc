"""Classic membership, by hand: what a member does next after each thing that can happen to it."""

from __future__ import annotations

import math

import pytest

from kafka.coordinator.classic.state_machine import (
    NOBODY,
    ClassicErrorAction,
    ClassicMembership,
    ClassicMemberState,
    Generation,
    Need,
    Reason,
    StepPlan,
)
from kafka.coordinator.group_settings import GroupSettings, StepKind
from kafka.errors import (
    FencedInstanceIdError,
    GroupAuthorizationFailedError,
    GroupMaxSizeReachedError,
    IllegalStateError,
)
from kafka.structs import TopicPartition

NOTHING = frozenset()
FIRST = Generation(1, 'me')


def parts(*names):
    """Return partitions of texts like 'a0'."""
    return frozenset(TopicPartition(name[0], int(name[1:])) for name in names)


class Hand:
    """A member, and the world around it."""

    def __init__(self, is_cooperative=False, **settings):
        settings = GroupSettings('g', rebalance_timeout=60.0, **settings)
        self.member = ClassicMembership(settings, is_cooperative)
        self.now = 100.0

    def begin(self, *topics):
        self.member.start()
        self.member.set_topics(set(topics or 'a'))
        self.member.poll(self.now)
        self.member.begin_if_due()
        return self

    def take(self):
        """Take the step that is up, and return it."""
        plan = self.member.next_step()
        assert plan is not None
        self.member.step_done(plan)
        return plan

    def join(self, who=FIRST, code=0):
        assert self.member.needs() is Need.JOIN
        self.member.joining()
        return self.member.on_join(code, who, self.now)

    def sync(self, *assigned, code=0):
        assert self.member.needs() is Need.SYNC
        self.member.syncing()
        return self.member.on_sync(code, parts(*assigned), self.now)

    def settle(self, *assigned, who=FIRST):
        """Go through one whole rebalance."""
        while self.member.next_step():
            self.take()
        self.join(who)
        self.sync(*assigned)
        steps = []
        while self.member.state is ClassicMemberState.ADOPTING:
            steps.append(self.take())
        return steps


@pytest.fixture
def eager():
    return Hand()


@pytest.fixture
def cooperative():
    return Hand(is_cooperative=True)


def stable(is_cooperative=False, assigned=('a0', 'a1'), **settings):
    hand = Hand(is_cooperative, **settings).begin()
    hand.settle(*assigned)
    assert hand.member.state is ClassicMemberState.STABLE
    return hand


# ---------------------------------------------------------------- the first time


def test_nothing_begins_before_the_program_polls(eager):
    eager.member.start()
    eager.member.set_topics({'a'})
    eager.member.begin_if_due()
    assert eager.member.state is ClassicMemberState.UNJOINED
    assert eager.member.waits_for_poll


def test_nothing_begins_without_a_subscription(eager):
    eager.member.start()
    eager.member.poll(1.0)
    eager.member.begin_if_due()
    assert eager.member.state is ClassicMemberState.UNJOINED


def test_nothing_begins_before_it_is_started(eager):
    eager.member.set_topics({'a'})
    eager.member.poll(1.0)
    eager.member.begin_if_due()
    assert eager.member.state is ClassicMemberState.UNJOINED
    assert not eager.member.waits_for_poll


def test_an_eager_member_goes_through_the_whole_of_it(eager):
    member = eager.begin().member
    assert eager.take() == StepPlan(StepKind.REVOKE, NOTHING, NOTHING, commits=True)
    assert eager.join() is ClassicErrorAction.GOOD
    assert (member.state, member.who) == (ClassicMemberState.COMPLETING, FIRST)
    assert eager.sync('a0', 'a1') is ClassicErrorAction.GOOD
    assert eager.take() == StepPlan(StepKind.ASSIGN, parts('a0', 'a1'), parts('a0', 'a1'))
    assert (member.state, member.owned) == (ClassicMemberState.STABLE, parts('a0', 'a1'))
    assert (member.begun, member.adopted, member.reason) == (1, 1, Reason.POLLED.value)


def test_a_member_that_gets_nothing_is_told_so(eager):
    (assigned,) = eager.begin().settle()
    assert assigned == StepPlan(StepKind.ASSIGN, NOTHING, NOTHING)


def test_nothing_is_sent_while_a_step_is_to_be_taken(eager):
    eager.begin()
    assert eager.member.needs() is Need.NOTHING
    eager.take()
    assert eager.member.needs() is Need.JOIN


def test_a_cooperative_member_that_owns_nothing_joins_at_once(cooperative):
    cooperative.begin()
    assert cooperative.member.next_step() is None
    assert cooperative.settle('a0') == [StepPlan(StepKind.ASSIGN, parts('a0'), parts('a0'))]


# ---------------------------------------------------------------- rebalances


def test_an_eager_member_revokes_everything_before_it_joins_again():
    hand = stable()
    hand.member.on_heartbeat(FIRST, 27, hand.now)
    assert (hand.member.state, hand.member.reason) == (
        ClassicMemberState.PREPARING,
        Reason.GROUP.value,
    )
    plan = StepPlan(StepKind.REVOKE, parts('a0', 'a1'), NOTHING, commits=True)
    assert hand.take() == plan
    assert hand.member.who == FIRST  # so that what is committed in it is accepted


def test_a_cooperative_member_keeps_what_it_has_and_commits():
    hand = stable(is_cooperative=True)
    hand.member.on_heartbeat(FIRST, 27, hand.now)
    kept = parts('a0', 'a1')
    assert hand.take() == StepPlan(StepKind.REVOKE, NOTHING, kept, commits=True, tells=False)
    assert hand.member.needs() is Need.JOIN


def test_a_cooperative_member_revokes_topics_it_no_longer_wants_before_it_joins():
    hand = Hand(is_cooperative=True).begin('a', 'b')
    hand.settle('a0', 'b0')
    hand.member.set_topics({'a'})
    assert hand.member.reason == Reason.SUBSCRIPTION.value
    assert hand.take() == StepPlan(StepKind.REVOKE, parts('b0'), parts('a0'), commits=True)


def test_a_cooperative_member_revokes_what_others_get_and_joins_again_at_once():
    hand = stable(is_cooperative=True)
    hand.member.on_heartbeat(FIRST, 27, hand.now)
    steps = hand.settle('a1', 'a2', who=Generation(2, 'me'))
    assert steps == [
        StepPlan(StepKind.REVOKE, parts('a0'), parts('a1'), commits=True),
        StepPlan(StepKind.ASSIGN, parts('a2'), parts('a1', 'a2')),
    ]
    assert (hand.member.state, hand.member.reason) == (
        ClassicMemberState.PREPARING,
        Reason.FOLLOW_UP.value,
    )
    steps = hand.settle('a1', 'a2', who=Generation(3, 'me'))
    assert steps == [StepPlan(StepKind.ASSIGN, NOTHING, parts('a1', 'a2'))]
    assert hand.member.state is ClassicMemberState.STABLE


def test_a_changed_subscription_rebalances_an_unchanged_one_does_not():
    hand = stable()
    hand.member.set_topics({'a'})
    assert hand.member.state is ClassicMemberState.STABLE
    hand.member.set_topics({'a', 'b'})
    assert hand.member.state is ClassicMemberState.PREPARING


@pytest.mark.parametrize('stage', ['joining', 'completing', 'syncing', 'adopting'])
def test_a_subscription_that_changes_during_a_rebalance_is_followed_by_another(stage, eager):
    eager.begin()
    eager.take()
    member = eager.member
    for name, step in (
        ('joining', member.joining),
        ('completing', lambda: member.on_join(0, FIRST, 1.0)),
        ('syncing', member.syncing),
        ('adopting', lambda: member.on_sync(0, parts('a0'), 1.0)),
    ):
        step()
        if name == stage:
            member.set_topics({'a', 'b'})
    eager.take()
    assert (member.state, member.reason) == (
        ClassicMemberState.PREPARING,
        Reason.SUBSCRIPTION.value,
    )


@pytest.mark.parametrize('state', ['joining', 'completing', 'syncing', 'adopting'])
def test_who_asks_for_a_rebalance_during_one_gets_another(state, eager):
    eager.begin()
    eager.take()
    member = eager.member
    for name, step in (
        ('joining', member.joining),
        ('completing', lambda: member.on_join(0, FIRST, 1.0)),
        ('syncing', member.syncing),
        ('adopting', lambda: member.on_sync(0, parts('a0'), 1.0)),
    ):
        step()
        if name == state:
            member.rebalance('because')
    eager.take()
    assert (member.state, member.reason) == (ClassicMemberState.PREPARING, 'because')


def test_who_asks_before_the_join_is_sent_is_served_by_it(eager):
    eager.begin()
    eager.member.rebalance('because')
    eager.settle('a0')
    assert eager.member.state is ClassicMemberState.STABLE


def test_an_assignment_of_topics_that_are_no_longer_wanted_is_ignored(eager):
    eager.begin('a', 'b')
    eager.take()
    eager.join()
    eager.member.set_topics({'a'})
    eager.sync('a0', 'b0')
    member = eager.member
    assert (member.state, member.reason) == (ClassicMemberState.PREPARING, Reason.FOREIGN.value)
    assert member.needs() is Need.JOIN
    assert member.owned == NOTHING


def test_nothing_is_sent_once_there_is_no_subscription(eager):
    eager.begin()
    eager.take()
    eager.member.set_topics(None)
    assert eager.member.needs() is Need.NOTHING


def test_no_step_before_the_join_is_taken_twice_for_one_rebalance(eager):
    eager.begin()
    eager.take()
    eager.join(code=15)
    assert eager.member.next_step() is None
    eager.join()
    eager.sync(code=27)
    assert (eager.member.next_step(), eager.member.reason) == (None, Reason.ANOTHER.value)
    assert eager.member.begun == 2


# ---------------------------------------------------------------- answers to JoinGroup, SyncGroup


def test_a_member_id_that_is_required_is_taken(eager):
    eager.begin()
    eager.take()
    assert eager.join(Generation(-1, 'given'), 79) is ClassicErrorAction.TAKE_ID
    assert (eager.member.who, eager.member.needs()) == (Generation(-1, 'given'), Need.JOIN)


@pytest.mark.parametrize('code', [14, 15, 16, 27, 7])
def test_what_may_go_better_is_asked_again_with_the_same_id(code, eager):
    eager.begin()
    eager.take()
    eager.join(Generation(-1, 'given'), 79)
    eager.join(Generation(-1, ''), code)
    assert (eager.member.who, eager.member.needs()) == (Generation(-1, 'given'), Need.JOIN)


@pytest.mark.parametrize(('code', 'member_id'), [(22, 'me'), (25, '')])
@pytest.mark.parametrize('call', ['join', 'sync'])
def test_a_cooperative_member_whose_generation_is_over_has_lost_what_it_owned(
    call, code, member_id
):
    hand = stable(is_cooperative=True)
    hand.member.rebalance('because')
    hand.take()
    if call == 'sync':
        hand.join(Generation(2, 'me'))
        hand.sync(code=code)
    else:
        hand.join(code=code)
    hand.member.begin_if_due()
    assert hand.member.who == Generation(-1, member_id)
    assert hand.take() == StepPlan(StepKind.LOSE, parts('a0', 'a1'), NOTHING)
    assert hand.member.needs() is Need.JOIN


def test_an_eager_member_that_is_not_known_joins_as_a_new_one_without_a_step(eager):
    eager.begin()
    eager.take()
    eager.join(code=25)
    eager.member.begin_if_due()
    assert (eager.member.who, eager.member.next_step()) == (NOBODY, None)
    assert eager.member.reason == Reason.UNKNOWN.value
    assert eager.member.needs() is Need.JOIN


@pytest.mark.parametrize('code', [23, 24, 26, 81, 82])
def test_what_no_further_try_cures_ends_it(code, eager):
    eager.begin()
    eager.take()
    eager.join(code=code)
    member = eager.member
    assert (member.state, member.error.errno) == (ClassicMemberState.FAILED, code)
    member.poll(200.0)
    member.begin_if_due()
    assert (member.state, member.needs()) == (ClassicMemberState.FAILED, Need.NOTHING)


@pytest.mark.parametrize('call', ['join', 'sync'])
def test_who_is_not_allowed_tries_again_with_the_next_poll(call, eager):
    eager.begin()
    eager.take()
    member = eager.member
    if call == 'sync':
        eager.join()
        eager.sync(code=30)
    else:
        eager.join(code=30)
    member.begin_if_due()
    assert (member.state, type(member.error)) == (
        ClassicMemberState.UNJOINED,
        GroupAuthorizationFailedError,
    )
    assert member.waits_for_poll
    member.poll(eager.now)
    member.begin_if_due()
    assert member.error is not None  # until it is known to be better
    eager.join()
    assert member.error is None


def test_leaving_is_a_way_on_from_an_error(eager):
    eager.begin()
    eager.take()
    eager.join(code=81)
    assert isinstance(eager.member.error, GroupMaxSizeReachedError)
    eager.member.leave()
    eager.begin()
    assert (eager.member.error, eager.member.state) == (None, ClassicMemberState.PREPARING)


# ---------------------------------------------------------------- losing


@pytest.mark.parametrize(('code', 'member_id'), [(22, 'me'), (25, '')])
@pytest.mark.parametrize('by', ['heartbeat', 'commit'])
def test_a_lost_generation_loses_what_is_owned_before_it_joins_again(by, code, member_id):
    hand = stable()
    if by == 'commit':
        hand.member.on_commit(None, code)
    else:
        hand.member.on_heartbeat(FIRST, code, hand.now)
    assert (hand.member.state, hand.member.who) == (
        ClassicMemberState.UNJOINED,
        Generation(-1, member_id),
    )
    hand.member.begin_if_due()
    assert hand.take() == StepPlan(StepKind.LOSE, parts('a0', 'a1'), NOTHING)
    assert hand.member.next_step() is None  # what is lost is not revoked too
    assert hand.member.needs() is Need.JOIN
    assert hand.settle('a0') == [StepPlan(StepKind.ASSIGN, parts('a0'), parts('a0'))]


def test_a_revocation_that_was_not_taken_yet_becomes_a_loss():
    hand = stable()
    hand.member.rebalance('because')
    before = hand.member.next_step()
    hand.member.on_heartbeat(FIRST, 25, hand.now)
    assert hand.member.next_step() != before
    assert hand.member.next_step().kind is StepKind.LOSE


def test_nothing_is_lost_after_a_revocation_that_was_under_way():
    hand = stable()
    hand.member.rebalance('because')
    plan = hand.member.next_step()
    hand.member.on_heartbeat(FIRST, 25, hand.now)
    hand.member.step_done(plan)
    hand.member.begin_if_due()
    assert (hand.member.next_step(), hand.member.needs()) == (None, Need.JOIN)


def test_what_was_assigned_in_a_generation_that_ended_meanwhile_is_lost(eager):
    eager.begin()
    eager.take()
    eager.join()
    eager.sync('a0')
    plan = eager.member.next_step()
    eager.member.on_heartbeat(FIRST, 22, eager.now)
    eager.member.step_done(plan)
    # It was begun before the loss and nobody has told the program of that yet.
    assert eager.member.owned == parts('a0')
    assert eager.take() == StepPlan(StepKind.LOSE, parts('a0'), NOTHING)


def test_a_cooperative_member_loses_only_what_a_revocation_under_way_leaves():
    hand = Hand(is_cooperative=True).begin('a', 'b')
    hand.settle('a0', 'b0')
    hand.member.set_topics({'a'})
    plan = hand.member.next_step()
    hand.member.on_heartbeat(FIRST, 22, hand.now)
    hand.member.step_done(plan)
    assert hand.take() == StepPlan(StepKind.LOSE, parts('a0'), NOTHING)


@pytest.mark.parametrize('by', ['heartbeat', 'commit'])
def test_who_was_replaced_loses_everything_for_good(by):
    hand = stable(group_instance_id='one')
    if by == 'commit':
        hand.member.on_commit(FIRST, 82)
    else:
        hand.member.on_heartbeat(FIRST, 82, hand.now)
    assert isinstance(hand.member.error, FencedInstanceIdError)
    assert hand.take() == StepPlan(StepKind.LOSE, parts('a0', 'a1'), NOTHING)
    assert hand.member.needs() is Need.NOTHING


@pytest.mark.parametrize('code', [22, 25, 27, 82])
def test_what_is_said_to_a_former_self_changes_nothing(code):
    hand = stable()
    before = Generation(0, 'me')
    assert hand.member.on_heartbeat(before, code, hand.now) is ClassicErrorAction.IGNORE
    assert hand.member.on_commit(before, code) is ClassicErrorAction.IGNORE
    assert hand.member.state is ClassicMemberState.STABLE


@pytest.mark.parametrize('code', [22, 25, 27])
def test_while_the_group_is_asked_its_answer_counts_and_no_other(code):
    hand = stable()
    hand.member.rebalance('because')
    hand.take()
    hand.member.joining()
    assert hand.member.on_heartbeat(FIRST, code, hand.now) is ClassicErrorAction.IGNORE
    assert hand.member.on_commit(FIRST, code) is ClassicErrorAction.IGNORE
    assert hand.member.state is ClassicMemberState.JOINING


def test_a_rebalance_heard_of_while_completing_is_nothing_new_and_a_good_heartbeat(eager):
    eager.begin()
    eager.take()
    eager.join()
    eager.member.heartbeats.sent(eager.now + 3)
    eager.member.on_heartbeat(FIRST, 27, eager.now + 4)
    eager.sync('a0')
    eager.take()
    assert eager.member.state is ClassicMemberState.STABLE


def test_a_rebalance_heard_of_while_adopting_follows():
    hand = Hand().begin()
    hand.take()
    hand.join()
    hand.sync('a0')
    hand.member.on_heartbeat(FIRST, 27, hand.now)
    hand.take()
    assert (hand.member.state, hand.member.reason) == (
        ClassicMemberState.PREPARING,
        Reason.GROUP.value,
    )


def test_a_commit_that_meets_a_rebalance_lets_it_begin():
    hand = stable()
    hand.member.on_commit(FIRST, 27)
    assert hand.member.state is ClassicMemberState.PREPARING


def test_an_error_of_a_heartbeat_is_told_until_one_is_good():
    hand = stable()
    hand.member.on_heartbeat(FIRST, 30, hand.now)
    assert isinstance(hand.member.error, GroupAuthorizationFailedError)
    assert hand.member.state is ClassicMemberState.STABLE
    hand.member.on_heartbeat(FIRST, 0, hand.now)
    assert hand.member.error is None


# ---------------------------------------------------------------- times


def test_heartbeats_begin_with_the_generation_and_pause_while_the_broker_parks_a_call(eager):
    eager.begin()
    eager.take()
    assert not eager.member.is_beating
    eager.join()
    assert eager.member.next_time(eager.now) == eager.now + 3
    eager.member.syncing()
    assert eager.member.next_time(eager.now) == math.inf
    eager.member.on_sync(0, parts('a0'), eager.now + 1)
    assert eager.member.next_time(eager.now + 1) == eager.now + 4


def test_heartbeats_go_on_while_a_revocation_is_waited_for():
    hand = stable()
    hand.member.rebalance('because')
    assert (hand.member.is_beating, hand.member.next_time(hand.now)) == (True, hand.now + 3)


def test_no_heartbeats_while_the_join_is_repeated():
    hand = stable()
    hand.member.rebalance('because')
    hand.take()
    hand.join(code=15)
    assert hand.member.heartbeats.due == math.inf


def test_a_program_that_does_not_poll_is_taken_out_and_loses_what_it_has():
    hand = stable()
    assert hand.member.poll_by == 160.0
    assert hand.member.expire() == FIRST
    hand.member.begin_if_due()
    assert (hand.member.state, hand.member.who) == (ClassicMemberState.UNJOINED, NOBODY)
    assert hand.member.waits_for_poll
    assert hand.member.poll_by == math.inf
    assert hand.take() == StepPlan(StepKind.LOSE, parts('a0', 'a1'), NOTHING)
    hand.member.poll(500.0)
    hand.member.begin_if_due()
    assert (hand.member.state, hand.member.reason) == (
        ClassicMemberState.PREPARING,
        Reason.LATE.value,
    )
    assert hand.member.needs() is Need.JOIN


def test_each_poll_gives_it_more_time():
    hand = stable()
    hand.member.poll(150.0)
    assert hand.member.poll_by == 210.0


@pytest.mark.parametrize('state', ['preparing', 'completing', 'adopting'])
def test_a_program_has_to_poll_during_a_rebalance_too(state, eager):
    eager.begin()
    if state != 'preparing':
        eager.take()
        eager.join()
    if state == 'adopting':
        eager.sync('a0')
    assert (eager.member.state.value, eager.member.poll_by) == (state, 160.0)


# ---------------------------------------------------------------- leaving


def test_who_leaves_is_nobody_and_may_come_back_with_the_next_poll():
    hand = stable()
    assert hand.member.leave() == FIRST
    member = hand.member
    assert (member.who, member.owned, member.next_step()) == (NOBODY, NOTHING, None)
    member.begin_if_due()
    assert (member.state, member.waits_for_poll) == (ClassicMemberState.UNJOINED, True)
    hand.begin()
    assert hand.take() == StepPlan(StepKind.REVOKE, NOTHING, NOTHING, commits=True)


def test_who_leaves_in_the_middle_of_a_rebalance_begins_from_the_start(eager):
    eager.begin()
    eager.take()
    eager.member.joining()
    eager.member.leave()
    eager.begin()
    assert eager.take() == StepPlan(StepKind.REVOKE, NOTHING, NOTHING, commits=True)


def test_who_has_left_has_lost_nothing():
    hand = stable()
    hand.member.on_heartbeat(FIRST, 25, hand.now)
    hand.member.leave()
    assert hand.member.next_step() is None


def test_a_call_out_of_turn_is_a_mistake(eager):
    with pytest.raises(IllegalStateError, match='unjoined cannot ask to join'):
        eager.member.joining()


def test_it_shows_who_it_is():
    assert repr(stable().member) == (
        "<ClassicMembership of g stable generation=1 member='me' owned=2>"
    )
