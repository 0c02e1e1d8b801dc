"""What a member of a KIP-848 group makes of assignments, of being put out and of errors."""

from __future__ import annotations

import math

import pytest

from kafka.coordinator.kip848.state_machine import HeartbeatErrorAction, MemberState
from kafka.errors import (
    FencedInstanceIdError,
    GroupAuthorizationFailedError,
    InvalidRegularExpressionError,
    KafkaError,
    UnsupportedVersionError,
)
from kafka.structs import TopicPartition
from test.coordinator.driven_membership import A0, A1, B0, Driven, stable, units
from test.coordinator.heartbeats import NAMES, A, B, C, answer

# ---------------------------------------------------------------- assignments


def test_the_epoch_is_always_the_one_of_the_answer():
    driven = stable()
    for epoch in (7, 3):
        driven.wait()
        driven.beat(epoch)
        assert driven.machine.epoch == epoch


def test_the_way_from_joining_to_stable():
    driven = Driven()
    machine = driven.machine
    machine.join()
    assert machine.state is MemberState.JOINING
    driven.beat(3, {'a': [0, 1]})
    assert machine.state is MemberState.RECONCILING
    plan = machine.reconcile(NAMES.get)
    assert (set(plan.gone), set(plan.new.values())) == (set(), {A0, A1})
    machine.revoked(plan)
    assert machine.owned == {}
    machine.assigned(plan)
    assert set(machine.owned.values()) == {A0, A1}
    assert machine.state is MemberState.ACKNOWLEDGING
    assert machine.due <= driven.now  # at once
    assert units(driven.send()) == {(A, 0), (A, 1)}
    assert machine.state is MemberState.STABLE


def test_an_empty_first_assignment_is_reconciled_too():
    driven = Driven()
    driven.join()
    plan = driven.reconcile()
    assert (plan.gone, plan.new) == ({}, {})
    assert driven.beat(1).topic_partitions == []
    assert driven.machine.state is MemberState.STABLE


def test_null_changes_nothing_and_an_empty_assignment_takes_all():
    driven = stable()
    driven.wait()
    driven.beat(1, None)
    assert driven.machine.state is MemberState.STABLE
    driven.wait()
    driven.beat(1, {})
    assert driven.machine.state is MemberState.RECONCILING
    assert set(driven.reconcile().gone.values()) == {A0, A1}
    assert driven.machine.owned == {}


def test_the_same_assignment_again_changes_nothing():
    driven = stable()
    driven.wait()
    driven.beat(1, {'a': [1, 0]})
    assert driven.machine.state is MemberState.STABLE


def test_what_goes_is_still_owned_until_it_is_revoked():
    driven = stable()
    driven.wait()
    driven.beat(1, {'a': [0], 'b': [0]})
    plan = driven.machine.reconcile(NAMES.get)
    assert (set(plan.gone.values()), set(plan.new.values())) == ({A1}, {B0})
    assert set(plan.kept.values()) == {A0}
    driven.wait()
    driven.send()
    driven.machine.unanswered(driven.life, driven.now)
    driven.wait()
    assert units(driven.send()) == {(A, 0), (A, 1), (B, 0)}  # and what may come counts
    driven.machine.revoked(plan)
    assert set(driven.machine.owned.values()) == {A0}
    driven.machine.assigned(plan)
    assert set(driven.machine.owned.values()) == {A0, B0}


def test_heartbeats_between_do_not_acknowledge():
    driven = stable()
    driven.wait()
    driven.beat(1, {'a': [0]})
    plan = driven.machine.reconcile(NAMES.get)
    driven.machine.revoked(plan)
    driven.wait()
    assert driven.beat(1).topic_partitions is None


def test_one_reconciliation_at_a_time_and_the_newest_target_is_the_next():
    driven = stable()
    driven.wait()
    driven.beat(1, {'a': [0]})
    plan = driven.machine.reconcile(NAMES.get)
    driven.wait()
    driven.beat(2, {'b': [0]})
    assert driven.machine.reconcile(NAMES.get) is None
    driven.machine.revoked(plan)
    driven.machine.assigned(plan)
    assert units(driven.send()) == {(A, 0)}
    assert driven.machine.state is MemberState.RECONCILING
    driven.take(2)
    assert set(driven.reconcile().new.values()) == {B0}


def test_a_target_that_comes_before_the_acknowledgement_waits_for_it():
    driven = stable()
    driven.wait()
    driven.beat(1, {'a': [0]})
    driven.wait()
    driven.send()
    driven.reconcile()
    driven.take(2, {'b': [0]})
    assert driven.machine.state is MemberState.ACKNOWLEDGING
    assert units(driven.send()) == {(A, 0)}
    assert driven.machine.state is MemberState.RECONCILING


def test_what_is_taken_back_before_anything_was_done_is_told_not_to_be_owned():
    driven = stable()
    driven.wait()
    driven.beat(2, {'a': [0, 1], 'b': [0]})
    driven.wait()
    driven.beat(2, {'a': [0, 1]})  # nobody else gets b-0 before this member says so
    assert driven.machine.state is MemberState.ACKNOWLEDGING
    assert driven.machine.due <= driven.now
    assert units(driven.beat(3)) == {(A, 0), (A, 1)}
    assert driven.machine.state is MemberState.STABLE
    driven.wait()
    assert driven.beat(3).topic_partitions is None


# ---------------------------------------------------------------- offers


def offering(**partitions):
    """Return a stable member whose program may take up a-0 and a-1, and what is said here."""
    driven = stable()
    driven.wait()
    driven.beat(2, partitions)
    plan = driven.machine.reconcile(NAMES.get)
    driven.machine.revoked(plan)
    return driven, plan


def test_no_plan_begins_before_a_list_of_what_is_owned_was_answered():
    driven, plan = offering(a=[0, 1], b=[0])
    driven.wait()
    driven.beat(2, {'a': [0, 1], 'b': [0, 1]})
    driven.machine.assigned(plan)
    driven.send()  # without b-1, which may be taken back by that
    for _ in range(2):
        assert driven.machine.state is MemberState.RECONCILING
        assert not driven.machine.can_reconcile(NAMES.get)
        assert driven.machine.reconcile(NAMES.get) is None
        driven.machine.unanswered(driven.life, driven.now)
    driven.wait()
    driven.beat(2, {'a': [0, 1], 'b': [0, 1]})
    assert driven.machine.can_reconcile(NAMES.get)
    assert list(driven.machine.reconcile(NAMES.get).new) == [(B, 1)]


def test_what_may_be_taken_up_at_any_moment_counts_as_owned_where_all_is_told():
    driven, plan = offering(a=[0, 1], b=[0])
    driven.wait()
    driven.send()
    driven.machine.unanswered(driven.life, driven.now)
    driven.wait()
    assert units(driven.send()) == {(A, 0), (A, 1), (B, 0)}
    driven.take(2, {'a': [0, 1]})
    assert driven.machine.is_overtaken
    driven.machine.dropped()
    assert units(driven.send()) == {(A, 0), (A, 1)}


def test_what_does_not_come_any_more_is_told_at_once():
    driven, plan = offering(a=[0, 1], b=[0, 1])
    assert not driven.machine.is_overtaken
    driven.wait()
    driven.beat(2, {'a': [0, 1], 'b': [1]})
    assert driven.machine.is_overtaken
    driven.machine.dropped()
    assert driven.machine.state is MemberState.ACKNOWLEDGING
    assert units(driven.beat(3)) == {(A, 0), (A, 1)}
    assert list(driven.machine.reconcile(NAMES.get).new) == [(B, 1)]


def test_more_than_was_offered_overtakes_nothing():
    driven, plan = offering(a=[0, 1], b=[0])
    driven.wait()
    driven.beat(2, {'a': [0, 1], 'b': [0, 1]})
    assert not driven.machine.is_overtaken


def test_who_was_told_what_goes_is_told_of_the_next_assignment_though_it_brings_nothing():
    driven, plan = offering(a=[0], b=[0])
    driven.wait()
    driven.beat(2, {'a': [0]})
    driven.machine.dropped()
    assert units(driven.beat(3)) == {(A, 0)}
    assert driven.machine.state is MemberState.RECONCILING
    assert driven.machine.reconcile(NAMES.get) == ({}, {}, {(A, 0): A0})


def test_an_offer_of_a_former_life_is_not_told():
    driven, plan = offering(a=[0, 1], b=[0])
    driven.machine.miss_poll()
    driven.machine.lost()
    driven.machine.join()
    assert driven.send().topic_partitions == []


def test_a_target_that_comes_back_while_something_is_done_about_it_waits_for_the_end():
    driven = stable()
    driven.wait()
    driven.beat(1, {'a': [0]})
    plan = driven.machine.reconcile(NAMES.get)
    driven.wait()
    driven.beat(1, {'a': [0, 1]})
    assert driven.machine.state is MemberState.RECONCILING
    driven.machine.revoked(plan)
    driven.machine.assigned(plan)
    assert units(driven.beat(1)) == {(A, 0)}
    assert set(driven.reconcile().new.values()) == {A1}


def test_what_has_no_name_yet_is_left_for_later():
    driven = Driven(pattern='.*')
    driven.join(a=[0], c=[0])
    assert driven.machine.unknown(NAMES.get) == {C}
    assert set(driven.reconcile().new.values()) == {A0}
    assert units(driven.beat(1)) == {(A, 0)}
    assert driven.machine.state is MemberState.RECONCILING
    assert driven.machine.reconcile(NAMES.get) is None
    names = {**NAMES, C: 'c'}
    plan = driven.machine.reconcile(names.get)
    assert list(plan.new.values()) == [TopicPartition('c', 0)]


def test_what_is_not_subscribed_any_more_is_not_begun_with():
    driven = Driven()
    driven.join(a=[0], b=[0])
    driven.machine.subscribe(['a'], None)
    assert set(driven.reconcile().new.values()) == {A0}


def test_a_topic_that_was_made_anew_is_given_back_and_taken():
    driven = stable()
    driven.wait()
    driven.beat(2, {'a': [1], 'c': [0]})
    plan = driven.machine.reconcile({A: None, C: 'a'}.get)
    assert (plan.gone, plan.new) == ({(A, 0): A0}, {(C, 0): A0})
    driven.machine.revoked(plan)
    driven.machine.assigned(plan)
    assert driven.machine.owned == {(A, 1): A1, (C, 0): A0}


def test_whether_something_is_wanted_elsewhere():
    driven = stable()
    assert not driven.machine.gives_back
    driven.wait()
    driven.beat(1, {'a': [0], 'c': [0]})
    assert driven.machine.gives_back


# ---------------------------------------------------------------- fenced


@pytest.mark.parametrize('code', [25, 110])
def test_who_is_put_out_loses_all_and_joins_with_the_same_name(code):
    driven = stable()
    driven.wait()
    driven.send()
    assert driven.take(code=code).action is HeartbeatErrorAction.REJOIN
    machine = driven.machine
    assert (machine.state, machine.epoch, machine.due) == (MemberState.FENCED, 0, math.inf)
    assert set(machine.owned.values()) == {A0, A1}
    machine.lost()
    assert (machine.state, machine.owned) == (MemberState.JOINING, {})
    request = driven.beat(5, {'a': [0, 1]})
    assert (request.member_id, request.member_epoch, request.topic_partitions) == ('m', 0, [])
    assert request.rack_id == 'r1'
    assert set(driven.reconcile().new.values()) == {A0, A1}


def test_who_is_put_out_again_and_again_joins_after_pauses():
    driven = stable()
    driven.wait()
    driven.send()
    for pause in (0, 0.1, 0.2):
        driven.take(code=110)
        driven.machine.lost()
        assert max(driven.machine.due, driven.now) == pytest.approx(driven.now + pause)
        driven.wait()
        driven.send()
    assert driven.machine.fences == 3
    driven.take(1, {})
    driven.reconcile()
    driven.beat(1)
    assert driven.machine.fences == 0


def test_a_plan_of_a_former_life_changes_what_is_owned_and_nothing_else():
    driven = stable()
    driven.wait()
    driven.beat(1, {'a': [0], 'b': [0]})
    plan = driven.machine.reconcile(NAMES.get)
    driven.wait()
    driven.send()
    driven.take(code=110)
    driven.machine.revoked(plan)
    driven.machine.assigned(plan)
    assert driven.machine.state is MemberState.FENCED
    assert set(driven.machine.owned.values()) == {A0, B0}


def test_answers_to_a_former_life_mean_nothing():
    driven = stable()
    driven.wait()
    driven.send()
    life = driven.life
    driven.machine.miss_poll()
    driven.machine.lost()
    driven.machine.join()
    driven.send()
    for code in (0, 14, 110, 112):
        driven.machine.answered(life, answer(9, {'a': [0]}, code=code), driven.now)
    driven.machine.unanswered(life, driven.now)
    assert (driven.machine.state, driven.machine.epoch) == (MemberState.JOINING, 0)
    assert driven.machine.due == math.inf


# ---------------------------------------------------------------- errors that end it


@pytest.mark.parametrize('code', [24, 35, 42, 69, 81, 82, 111, 112, 128])
def test_errors_that_end_the_membership(code):
    driven = stable()
    driven.wait()
    driven.send()
    verdict = driven.take(code=code, text='because')
    machine = driven.machine
    assert verdict.action is HeartbeatErrorAction.FAIL
    assert machine.state is MemberState.FATAL
    assert machine.error is verdict.error
    assert verdict.error.errno == code
    assert 'because' in str(verdict.error)
    assert 'group g' in str(verdict.error)
    assert machine.due == math.inf
    assert set(machine.owned.values()) == {A0, A1}  # until they were dropped
    machine.lost()
    assert (machine.state, machine.owned) == (MemberState.FATAL, {})


@pytest.mark.parametrize(
    ('code', 'class_', 'text'),
    [
        (30, GroupAuthorizationFailedError, 'READ'),
        (35, UnsupportedVersionError, 'Kafka 4.0'),
        (82, FencedInstanceIdError, 'group_instance_id'),
        (128, InvalidRegularExpressionError, 'RE2'),
    ],
)
def test_errors_say_what_to_do(code, class_, text):
    driven = stable()
    driven.wait()
    driven.send()
    error = driven.take(code=code).error
    assert isinstance(error, class_)
    assert text in str(error)


@pytest.mark.parametrize(
    ('options', 'topics'), [({}, {'a', 'b'}), ({'topics': None, 'pattern': 'a'}, {'a'})]
)
def test_a_missing_right_names_the_topics_that_were_subscribed_or_are_owned(options, topics):
    driven = stable(**options)
    driven.wait()
    driven.send()
    assert driven.take(code=29).error.args == (topics,)


def test_only_a_bad_pattern_is_cured_by_another_subscription():
    for code, can_be_cured in ((128, True), (112, False)):
        driven = stable(pattern='(')
        driven.wait()
        driven.send()
        driven.take(code=code)
        assert driven.machine.can_be_cured() is can_be_cured
    driven.machine.join()
    assert driven.machine.error is None


def test_what_fails_before_a_heartbeat_ends_it_too():
    driven = Driven()
    driven.machine.join()
    error = KafkaError('no')
    driven.machine.fail(error)
    assert (driven.machine.state, driven.machine.error) == (MemberState.FATAL, error)
