"""The driver of a KIP-848 member: whom it asks when, and what it has the program do."""

from __future__ import annotations

import pytest

from kafka.consumer.subscription_state import SubscriptionPattern
from kafka.coordinator.member import StepKind
from kafka.errors import (
    CommitFailedError,
    GroupAuthorizationFailedError,
    IllegalStateError,
    KafkaConnectionError,
    KafkaTimeoutError,
    SaslAuthenticationFailedError,
    StaleMemberEpochError,
    UnsupportedVersionError,
)
from kafka.protocol.negotiation import BrokerVersions
from kafka.structs import TopicPartition
from test.coordinator.driven_member import A0, A1, B0, Driven, joined
from test.coordinator.heartbeats import A, C

# ---------------------------------------------------------------- joining


def test_nothing_is_asked_before_the_first_poll():
    driven = Driven()
    driven.loop.advance(100)
    assert (driven.pool.looked_up, driven.waiting) == (0, [])
    driven.poll()
    assert [each.member_epoch for each, _ in driven.waiting] == [0]


def test_a_poll_without_subscription_asks_nothing():
    driven = Driven(topics=())
    driven.poll()
    assert driven.pool.looked_up == 0
    driven.subscription.subscribe(['a'])
    driven.poll()
    assert driven.waiting


def test_partitions_chosen_by_the_program_make_no_member():
    driven = Driven(topics=())
    driven.subscription.assign_from_user([A0])
    driven.poll()
    driven.member.polled(driven.loop.now)
    assert not driven.loop.ready
    assert driven.pool.looked_up == 0


def test_the_member_names_itself():
    first, second = Driven(), Driven()
    second.member._chance.random()
    for each in (first, second):
        each.poll()
    assert len(first.waiting[0][0].member_id) == 36
    assert first.waiting[0][0].member_id == second.waiting[0][0].member_id  # of one chance


def test_the_way_to_a_stable_member():
    driven = Driven()
    member = driven.member
    assert member.identity() == ('g', -1, '', None, '<unjoined>')
    driven.poll()
    assert not member.is_stable
    driven.take(3, {'a': [0, 1]})
    assert driven.changes == 1
    assert member.step.partitions == member.step.owned == {A0, A1}
    assert not member.step.commits
    assert member.identity().generation_id == 3
    assert member.identity().state == '<rebalancing>'
    assert driven.waiting == []
    driven.step(StepKind.ASSIGN)
    assert driven.changes == 2  # stable, as far as it knows
    assert member.step is None
    assert [(t.topic_id, t.partitions) for t in driven.waiting[0][0].topic_partitions] == [
        (A, [0, 1])
    ]
    driven.take(3)
    assert member.is_stable
    assert member.rebalances == 1
    assert member.identity().state == '<stable>'
    assert member.identity().member_id == member._machine.member_id
    assert driven.pool.wanted == ['a', 'a']


def test_partitions_without_names_are_asked_about_by_id():
    driven = Driven(pattern=SubscriptionPattern('.*'))
    driven.poll()
    assert driven.waiting[0][0].subscribed_topic_regex == '.*'
    driven.take(1, {'a': [0], 'c': [0]})
    assert driven.pool.asked_names == [[C]]
    assert driven.member.step.owned == {A0, TopicPartition('c', 0)}


def test_what_nobody_can_name_is_asked_about_again_with_pauses():
    driven = Driven(pattern=SubscriptionPattern('.*'))
    driven.pool.nameable = {}
    driven.poll()
    driven.take(1, {'a': [0], 'c': [0]})
    driven.step(StepKind.ASSIGN)
    driven.take(1)
    assert not driven.member.is_stable
    for _ in range(40):
        driven.loop.advance(0.1)
    assert 3 < len(driven.pool.asked_names) < 12
    driven.pool.nameable = {C: 'c'}
    driven.loop.advance(1.5)
    assert driven.step(StepKind.ASSIGN).partitions == {TopicPartition('c', 0)}


def test_a_target_that_needs_no_name_does_not_wait_for_one():
    driven = Driven(pattern=SubscriptionPattern('.*'))
    driven.pool.nameable = {}
    driven.poll()
    driven.take(1, {'a': [0], 'c': [0]})
    driven.step(StepKind.ASSIGN)
    driven.take(1)
    driven.loop.advance(2.5)
    asked = len(driven.pool.asked_names)
    driven.beat(2, {'a': [0, 1]})
    assert driven.member.step.partitions == {A1}
    assert len(driven.pool.asked_names) <= asked + 30


def test_what_goes_does_not_wait_for_the_names_of_what_comes():
    driven = Driven(pattern=SubscriptionPattern('.*'))
    driven.join(a=[0, 1])
    driven.pool.naming_takes = 20.0
    driven.beat(2, {'a': [0], 'c': [0]})
    assert driven.member.step.kind is StepKind.REVOKE


def test_a_pattern_of_python_is_sent_as_the_names_that_it_matches():
    driven = Driven(pattern='a.*')
    driven.subscription.change_subscription(['a'])
    driven.poll()
    request = driven.waiting[0][0]
    assert (request.subscribed_topic_names, request.subscribed_topic_regex) == (['a'], None)


def test_a_pattern_that_matches_nothing_yet_joins_all_the_same():
    driven = Driven(pattern='x.*')
    driven.poll()
    assert driven.waiting[0][0].subscribed_topic_names == []


def test_new_topics_are_told_at_once():
    driven = joined()
    driven.subscription.subscribe(['a'])
    driven.member.subscription_changed()
    driven.loop.settle()
    assert driven.waiting[0][0].subscribed_topic_names == ['a']


# ---------------------------------------------------------------- the coordinator


def test_an_idle_member_has_one_timer_and_no_coroutine():
    driven = joined()
    for _ in range(5):
        driven.beat(1)
        assert len([each for each in driven.loop.timers if each[2].waits]) == 1
        assert not driven.loop.tasks
        assert not driven.loop.ready


def test_who_hurries_leaves_no_timer_behind():
    driven = joined()
    driven.beat(1)
    driven.member.rejoin('the program wishes it')
    driven.loop.settle()
    assert len([each for each in driven.loop.timers if each[2].waits]) == 1


def test_heartbeats_go_on_while_the_program_is_at_a_step():
    driven = Driven()
    driven.poll()
    driven.take(1, {'a': [0]})
    step = driven.member.step
    assert step.begin()
    for _ in range(4):
        assert driven.beat(1).member_epoch == 1
    assert driven.member.step is step


def test_a_coordinator_that_cannot_be_found_is_looked_for_after_pauses():
    driven = Driven()
    driven.pool.unreachable = [KafkaConnectionError('no')] * 3
    driven.poll()
    assert driven.pool.looked_up == 1
    driven.loop.advance(3)
    assert driven.pool.looked_up == 4
    assert driven.waiting


def test_a_lost_answer_looks_for_the_coordinator_and_tells_everything():
    driven = joined()
    driven.wait()
    driven.lose()
    assert driven.pool.node is None
    request = driven.beat(1)
    assert driven.pool.looked_up == 2
    assert request.rebalance_timeout_ms == 60000
    assert request.member_epoch == 1


def test_another_coordinator_is_found_when_this_one_is_none():
    driven = joined()
    driven.beat(code=16)
    driven.loop.advance(0.02)
    assert driven.pool.looked_up == 2
    assert driven.waiting[0][0].topic_partitions is not None


def test_a_connection_that_was_lost_is_made_again_for_the_next_heartbeat():
    driven = joined()
    driven.pool.the_link.is_ready = False
    driven.beat(1)
    assert driven.pool.looked_up == 2


def test_a_broker_that_is_listed_no_longer_ends_nothing():
    driven = Driven()
    driven.pool.unreachable = [IllegalStateError('closed')]
    driven.poll()
    driven.loop.advance(1)
    assert driven.waiting
    assert driven.member.error is None


def test_refused_credentials_are_told_and_tried_again():
    driven = Driven()
    refused = SaslAuthenticationFailedError('no')
    refused.stage = 'SASL'
    driven.pool.unreachable = [refused, refused]
    driven.poll()
    assert driven.member.errors.pop() is refused
    driven.loop.advance(2)
    assert driven.waiting
    assert driven.member.error is None


def test_brokers_without_the_protocol_are_named():
    driven = Driven()
    driven.pool.the_link.versions = BrokerVersions({})
    driven.poll()
    assert isinstance(driven.member.error, UnsupportedVersionError)
    text = str(driven.member.error)
    assert 'Kafka 4.0' in text
    assert 'h:9092' in text
    assert 'classic' in text
    assert driven.changes == 1


def test_a_group_that_is_not_allowed_is_told_of_and_asked_for_again():
    driven = Driven()
    driven.pool.unreachable = [GroupAuthorizationFailedError('g')]
    driven.poll()
    assert isinstance(driven.member.error, GroupAuthorizationFailedError)
    driven.loop.advance(100)
    assert driven.pool.looked_up == 2


def test_polls_of_a_member_that_has_failed_wake_nobody():
    driven = Driven()
    driven.pool.unreachable = [GroupAuthorizationFailedError('g')]
    driven.poll()
    driven.member.polled(driven.loop.now)
    assert not driven.loop.ready


# ---------------------------------------------------------------- reconciliation


def test_what_goes_is_not_fetched_any_more_and_committed_first():
    driven = joined()
    driven.beat(2, {'a': [0], 'b': [0]})
    assert driven.subscription.state(A1).held
    assert not driven.subscription.state(A0).held
    step = driven.step(StepKind.REVOKE)
    assert (step.partitions, step.owned, step.commits) == ({A1}, {A0}, True)
    step = driven.step(StepKind.ASSIGN)
    assert (step.partitions, step.owned, step.commits) == ({B0}, {A0, B0}, False)
    assert driven.take(2).topic_partitions is not None
    assert driven.member.is_stable
    assert driven.member.rebalances == 2


def test_nothing_new_is_told_as_an_empty_set():
    driven = joined()
    driven.beat(2, {'a': [0]})
    driven.step(StepKind.REVOKE)
    assert driven.step(StepKind.ASSIGN).partitions == frozenset()


def test_nothing_that_goes_is_no_step():
    driven = joined()
    driven.beat(2, {'a': [0, 1], 'b': [0]})
    assert driven.member.step.kind is StepKind.ASSIGN


def test_the_newest_target_comes_after_the_one_under_way():
    driven = joined()
    driven.beat(2, {'a': [0]})
    driven.beat(3, {'b': [0]})
    assert driven.step(StepKind.REVOKE).partitions == {A1}
    driven.step(StepKind.ASSIGN)
    driven.take(3)
    assert driven.step(StepKind.REVOKE).partitions == {A0}
    assert driven.step(StepKind.ASSIGN).partitions == {B0}
    driven.take(3)
    assert driven.member.is_stable


def owned(request):
    return {(each.topic_id, n) for each in request.topic_partitions for n in each.partitions}


def test_an_assignment_that_is_taken_back_before_the_program_polls_is_none():
    driven = Driven()
    driven.poll()
    driven.take(1, {'a': [0, 1]})
    late = driven.member.step
    driven.beat(1, {'a': [0]})
    assert not late.begin()
    assert driven.member.step is None
    assert owned(driven.take(2)) == set()  # at once: a-1 waits for this
    step = driven.step(StepKind.ASSIGN)
    assert (step.partitions, step.owned) == ({A0}, {A0})
    assert owned(driven.take(2)) == {(A, 0)}
    assert driven.member.is_stable
    assert driven.member.rebalances == 1


def test_an_assignment_that_the_program_is_at_is_given_back_after_it():
    driven = Driven()
    driven.poll()
    driven.take(1, {'a': [0, 1]})
    late = driven.member.step
    assert late.begin()
    driven.beat(1, {'a': [0]})
    assert driven.member.step is late
    driven.step(StepKind.ASSIGN)
    assert owned(driven.take(1)) == {(A, 0), (A, 1)}
    assert driven.step(StepKind.REVOKE).partitions == {A1}


def test_what_the_program_may_take_up_is_not_told_to_be_given_up():
    driven = Driven()
    driven.poll()
    driven.take(1, {'a': [0]})
    driven.wait()
    driven.lose()
    assert owned(driven.beat(1, {'a': [0]})) == {(A, 0)}
    assert driven.step(StepKind.ASSIGN).owned == {A0}


def test_what_is_taken_back_during_a_revocation_is_not_assigned_after_it():
    driven = joined()
    driven.beat(2, {'a': [0], 'b': [0]})
    driven.beat(2, {'a': [0]})
    assert driven.step(StepKind.REVOKE).partitions == {A1}
    assert driven.member.step is None
    assert owned(driven.take(3)) == {(A, 0)}
    step = driven.step(StepKind.ASSIGN)
    assert (step.partitions, step.owned) == (set(), {A0})
    driven.take(3)
    assert driven.member.is_stable


def test_what_is_not_subscribed_any_more_keeps_nobody_busy():
    driven = joined()
    driven.subscription.subscribe(['a'])
    driven.member._machine.subscribe(['a'], None)
    driven.wait()
    driven.take(2, {'a': [0, 1], 'b': [0]})
    assert driven.member.step is None
    assert not driven.loop.tasks
    assert not driven.loop.ready


def test_more_than_is_offered_comes_after_it():
    driven = Driven()
    driven.poll()
    driven.take(1, {'a': [0]})
    driven.beat(1, {'a': [0, 1]})
    assert driven.step(StepKind.ASSIGN).partitions == {A0}
    driven.take(1)
    assert driven.step(StepKind.ASSIGN).partitions == {A1}


def test_steps_have_as_long_as_a_rebalance():
    driven = Driven()
    driven.poll()
    driven.take(1, {'a': [0]})
    assert driven.member.step.deadline == driven.loop.now + 60


def test_an_assignment_that_never_rests_is_warned_of(caplog):
    driven = joined()
    for epoch in range(2, 8):
        driven.beat(epoch, {'a': [0, 1], 'b': [0]} if epoch % 2 else {'a': [0, 1]})
        if driven.member.step is not None and driven.member.step.kind is StepKind.REVOKE:
            driven.step(StepKind.REVOKE)
        if driven.member.step is not None:
            driven.step(StepKind.ASSIGN)
            driven.take(epoch)
        driven.loop.advance(1)
    warned = [each for each in caplog.records if 'rebalances within' in each.getMessage()]
    assert len(warned) == 1


# ---------------------------------------------------------------- commits


def test_a_member_commits_while_it_reconciles():
    driven = Driven()
    assert not driven.member.can_commit
    driven.poll()
    driven.take(1, {'a': [0]})
    assert driven.member.can_commit
    assert not driven.member.is_stable


def refused(code):
    error = CommitFailedError('no')
    error.errno_of_group = code
    return error


@pytest.mark.parametrize('error', [refused(113), refused(25), StaleMemberEpochError('no')])
def test_a_refused_commit_has_the_coordinator_asked_and_nothing_lost(error):
    driven = joined()
    driven.loop.advance(0.3)
    driven.member.commit_refused(error)
    driven.loop.settle()
    assert driven.waiting
    assert driven.member.is_stable


def test_other_troubles_of_commits_do_not_concern_the_member():
    driven = joined()
    driven.loop.advance(0.3)
    driven.member.commit_refused(KafkaTimeoutError('late'))
    driven.member.commit_refused(refused(22))
    driven.loop.settle()
    assert driven.waiting == []


def test_rejoining_asks_soon():
    driven = joined()
    driven.loop.advance(0.3)
    driven.member.rejoin('the program wishes it')
    driven.loop.settle()
    assert driven.waiting


class Figures:
    """Keeps what it is told."""

    def __init__(self):
        self.told = []

    def heartbeat(self, now, seconds):
        self.told.append(('heartbeat', round(seconds, 3)))

    def rebalanced(self, seconds):
        self.told.append(('rebalanced', round(seconds, 3)))

    def rebalance_failed(self):
        self.told.append('failed')


def test_figures_are_told_of_heartbeats_and_rebalances():
    driven = Driven(figures=Figures())
    driven.poll()
    driven.loop.advance(0.25)
    driven.take(1, {'a': [0]})
    driven.loop.advance(0.5)
    driven.step(StepKind.ASSIGN)
    assert driven.member.figures.told == [('heartbeat', 0.26), ('rebalanced', 0.5)]


def test_figures_are_told_of_rebalances_that_come_to_nothing():
    driven = Driven(figures=Figures())
    driven.poll()
    driven.take(1, {'a': [0]})
    driven.beat(code=110)
    assert driven.member.figures.told.count('failed') == 1


def test_it_shows_what_it_is():
    assert repr(Driven().member).startswith('<ConsumerMember <ConsumerMembership of ')
