"""How a KIP-848 member ends: put out, too late, by its own will; and how it comes back."""

from __future__ import annotations

import pytest

from kafka.consumer.subscription_state import SubscriptionPattern
from kafka.coordinator.member import StepKind
from kafka.errors import (
    FencedInstanceIdError,
    GroupAuthorizationFailedError,
    InvalidRegularExpressionError,
    KafkaConnectionError,
    TopicAuthorizationFailedError,
)
from test.coordinator.driven_member import A0, A1, B0, SETTINGS, Driven, joined

# ---------------------------------------------------------------- being put out


@pytest.mark.parametrize('code', [25, 110])
def test_who_is_put_out_drops_all_and_joins_with_the_same_name(code):
    driven = joined()
    name = driven.member.identity().member_id
    driven.beat(code=code)
    assert driven.member.identity() == ('g', -1, '', None, '<unjoined>')
    assert not driven.member.can_commit
    step = driven.member.step
    assert (step.kind, step.partitions, step.owned) == (StepKind.LOSE, {A0, A1}, frozenset())
    assert not step.commits
    driven.loop.advance(30)
    assert driven.waiting == []
    driven.step(StepKind.LOSE)
    request = driven.waiting[0][0]
    assert (request.member_id, request.member_epoch) == (name, 0)


def test_a_step_that_was_not_begun_is_withdrawn_when_the_member_is_put_out():
    driven = joined()
    driven.beat(2, {'a': [0]})
    revoke = driven.member.step
    driven.beat(code=110)
    assert not revoke.begin()
    assert driven.step(StepKind.LOSE).partitions == {A0, A1}


def test_a_step_that_was_begun_is_done_first_when_the_member_is_put_out():
    driven = joined()
    driven.beat(2, {'a': [0], 'b': [0]})
    revoke = driven.member.step
    assert revoke.begin()
    driven.beat(code=110)
    assert driven.member.step is revoke
    driven.subscription.revoke(revoke.partitions)
    revoke.finish()
    driven.loop.settle()
    assert driven.step(StepKind.LOSE).partitions == {A0}  # and nothing was assigned between


def test_an_assignment_that_was_begun_is_lost_with_the_rest():
    driven = Driven()
    driven.poll()
    driven.take(1, {'a': [0]})
    assign = driven.member.step
    assert assign.begin()
    driven.beat(code=110)
    assign.finish()
    driven.loop.settle()
    assert driven.member.rebalances == 0
    assert driven.step(StepKind.LOSE).partitions == {A0}


def test_who_owns_nothing_joins_again_at_once():
    driven = Driven()
    driven.poll()
    driven.take(code=110)
    assert driven.member.step is None
    assert driven.waiting[0][0].member_epoch == 0


def test_a_fatal_error_lets_all_be_dropped():
    driven = joined()
    driven.beat(code=82)
    assert isinstance(driven.member.error, FencedInstanceIdError)
    driven.step(StepKind.LOSE)
    driven.loop.advance(100)
    assert driven.waiting == []
    assert not driven.member.can_commit


def test_a_missing_right_is_told_once_for_each_answer():
    driven = joined()
    driven.beat(code=29)
    assert isinstance(driven.member.errors.pop(), TopicAuthorizationFailedError)
    assert driven.member.error is None
    assert driven.member.is_stable
    driven.beat(code=29)
    assert len(driven.member.errors) == 1


def test_who_may_not_have_its_topics_gets_others_at_once():
    driven = Driven()
    driven.poll()
    driven.take(code=29)
    assert driven.waiting == []
    driven.subscription.subscribe(['b'])
    driven.member.subscription_changed()
    request = driven.take(1, {'b': [0]})
    assert (request.member_epoch, request.subscribed_topic_names) == (0, ['b'])
    assert driven.step(StepKind.ASSIGN).owned == {B0}


def test_who_leaves_takes_along_no_error_of_its_membership():
    driven = joined()
    driven.beat(code=29)
    leave(driven)
    assert not driven.member.errors


def test_who_may_not_join_is_told_by_every_poll_and_joins_when_it_may():
    driven = Driven()
    driven.poll()
    driven.take(code=30)
    assert isinstance(driven.member.error, GroupAuthorizationFailedError)
    assert not driven.member.can_commit
    driven.loop.advance(10)
    assert driven.waiting[0][0].member_epoch == 0
    driven.take(1, {'a': [0]})
    assert driven.member.error is None
    assert driven.step(StepKind.ASSIGN).owned == {A0}


def test_a_member_that_may_read_its_group_no_more_is_told_once_for_each_answer():
    driven = joined()
    driven.beat(code=30)
    assert isinstance(driven.member.errors.pop(), GroupAuthorizationFailedError)
    assert driven.member.error is None
    assert driven.member.can_commit


def test_who_may_not_find_the_coordinator_finds_it_when_it_may():
    driven = Driven()
    driven.pool.unreachable = [GroupAuthorizationFailedError('g')]
    driven.poll()
    assert isinstance(driven.member.error, GroupAuthorizationFailedError)
    driven.loop.advance(10)
    driven.take(1, {'a': [0]})
    assert driven.member.error is None


def test_another_pattern_cures_a_bad_one():
    driven = Driven(pattern=SubscriptionPattern('('))
    driven.poll()
    driven.take(code=128)
    assert isinstance(driven.member.error, InvalidRegularExpressionError)
    driven.member.subscription_changed()
    assert driven.member.error is not None
    driven.subscription.subscribe(pattern=SubscriptionPattern('a'))
    driven.member.subscription_changed()
    driven.loop.settle()
    assert driven.member.error is None
    assert driven.waiting[0][0].subscribed_topic_regex == 'a'


# ---------------------------------------------------------------- polls that do not come


def gone_stale(*at_farewell):
    """Return a member whose program has not polled for too long."""
    driven = joined()
    driven.pool.the_link.at_farewell = list(at_farewell)
    for _ in range(100):
        driven.loop.advance(1)
        if driven.waiting:
            driven.take(1)
        if driven.pool.the_link.farewells:
            return driven
    raise AssertionError('it does not leave')


def test_a_program_that_does_not_poll_leaves_the_group(caplog):
    driven = gone_stale()
    assert 60 <= driven.loop.now - driven.member._polled_at <= 61
    assert [each.member_epoch for each in driven.pool.the_link.farewells] == [-1]
    assert 'max_poll_interval_ms' in caplog.text
    assert driven.member.step.kind is StepKind.LOSE
    assert driven.member.identity().generation_id == -1
    driven.loop.advance(100)
    assert len(driven.pool.the_link.farewells) == 1


def test_the_next_poll_drops_all_and_joins_anew():
    driven = gone_stale()
    driven.poll()
    assert driven.waiting == []
    driven.step(StepKind.LOSE)
    assert driven.waiting[0][0].member_epoch == 0
    driven.take(5, {'a': [0]})
    assert driven.step(StepKind.ASSIGN).owned == {A0}


def test_who_comes_back_does_not_join_before_it_has_left():
    driven = gone_stale(*[KafkaConnectionError('gone')] * 3)
    driven.poll()
    driven.step(StepKind.LOSE)
    driven.loop.advance(0.1)
    assert driven.waiting == []
    driven.loop.advance(2)
    assert len(driven.pool.the_link.farewells) == 4
    assert driven.waiting[0][0].member_epoch == 0


def test_a_coordinator_that_does_not_hear_the_farewell_is_left_alone_after_a_while():
    driven = gone_stale(*[KafkaConnectionError('gone')] * 1000)
    driven.loop.advance(30)
    tries = len(driven.pool.the_link.farewells)
    driven.loop.advance(30)
    assert len(driven.pool.the_link.farewells) == tries
    driven.poll()
    driven.step(StepKind.LOSE)
    driven.loop.advance(0.02)
    assert driven.waiting[0][0].member_epoch == 0


def test_who_had_nothing_does_not_come_back_without_a_poll():
    driven = Driven()
    driven.poll()
    driven.take(1, {})
    driven.step(StepKind.ASSIGN)
    driven.take(1)
    for _ in range(70):
        driven.loop.advance(1)
        if driven.waiting:
            driven.take(1)
    assert len(driven.pool.the_link.farewells) == 1
    assert driven.waiting == []
    driven.poll()
    assert driven.waiting[0][0].member_epoch == 0


def test_polls_let_it_stay():
    driven = joined()
    for _ in range(30):
        driven.beat(1)
    assert driven.member.is_stable


# ---------------------------------------------------------------- leaving


def leave(driven, timeout=5.0):
    task = driven.loop.spawn(driven.member.leave('the program closes it', timeout))
    driven.loop.advance(timeout)
    assert task.done
    task.result()


@pytest.mark.parametrize(('instance', 'epoch'), [(None, -1), ('i', -2)])
def test_who_leaves_tells_the_coordinator(instance, epoch):
    driven = joined(SETTINGS._replace(group_instance_id=instance))
    leave(driven)
    assert [each.member_epoch for each in driven.pool.the_link.farewells] == [epoch]
    assert driven.member.identity() == ('g', -1, '', instance, '<unjoined>')
    driven.loop.advance(100)
    assert driven.waiting == []


def test_who_never_joined_tells_nobody():
    driven = Driven()
    leave(driven)
    assert driven.pool.looked_up == 0


def test_a_poll_after_leaving_joins_anew():
    driven = joined()
    leave(driven)
    driven.poll()
    assert driven.waiting[0][0].member_epoch == 0


def test_leaving_does_not_wait_for_the_heartbeat_on_its_way():
    driven = joined()
    driven.wait()
    leave(driven)
    assert driven.pool.the_link.farewells
    driven.take(9, {'a': [0]})
    assert driven.member.step is None
    assert driven.member.identity().generation_id == -1


@pytest.mark.parametrize('trouble', [16, 14, KafkaConnectionError('gone')])
def test_a_farewell_is_repeated_until_it_is_heard(trouble):
    driven = joined()
    driven.pool.the_link.at_farewell = [trouble]
    leave(driven)
    assert len(driven.pool.the_link.farewells) == 2


@pytest.mark.parametrize('trouble', [25, 69, 82, GroupAuthorizationFailedError('g')])
def test_a_farewell_that_is_refused_is_none_the_less_one(trouble):
    driven = joined()
    driven.pool.the_link.at_farewell = [trouble]
    leave(driven)
    assert len(driven.pool.the_link.farewells) == 1
    driven.poll()
    assert driven.waiting[0][0].member_epoch == 0


def test_leaving_takes_no_longer_than_it_may():
    driven = joined()
    driven.pool.the_link.at_farewell = [KafkaConnectionError('gone')] * 1000
    began = driven.loop.now
    task = driven.loop.spawn(driven.member.leave('', 2.0))
    driven.loop.advance(2.0)
    assert task.done
    assert driven.loop.now == began + 2.0


def test_a_leave_inside_of_a_step_ends_the_step():
    driven = joined()
    driven.beat(2, {'a': [0], 'b': [0]})
    step = driven.member.step
    assert step.begin()
    leave(driven)
    step.finish()
    driven.loop.settle()
    assert driven.member.step is None
    assert driven.member._machine.owned == {}


def test_an_assignment_that_the_program_was_at_when_it_left_is_not_owned():
    driven = Driven()
    driven.poll()
    driven.take(1, {'a': [0]})
    step = driven.member.step
    assert step.begin()
    leave(driven)
    step.finish()
    driven.loop.settle()
    assert driven.member._machine.owned == {}
    driven.poll()
    assert driven.waiting[0][0].member_epoch == 0


def test_what_fails_of_a_former_life_lets_nothing_be_asked_twice():
    driven = joined()
    driven.wait()
    leave(driven)
    driven.poll()
    assert [each.member_epoch for each, _ in driven.waiting] == [1, 0]
    driven.lose()
    driven.loop.advance(5)
    assert [each.member_epoch for each, _ in driven.waiting] == [0]


def test_leaving_forgets_what_was_fatal():
    driven = joined()
    driven.beat(code=82)
    leave(driven)
    assert driven.member.error is None
    driven.poll()
    assert driven.waiting[0][0].member_epoch == 0


def test_closing_ends_everything_and_tells_nobody():
    driven = joined()
    driven.beat(2, {'a': [0]})
    driven.member.close()
    driven.loop.advance(200)
    assert driven.waiting == []
    assert driven.pool.the_link.farewells == []
    assert not driven.loop.tasks
    assert driven.member.step is None
