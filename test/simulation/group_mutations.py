"""Mistakes in the consumer and its membership, each of which the simulation has to find.

Each function makes one, with a monkeypatch. Owns the mistakes; test_group_mutations.py looks for
them, and ``python -m test.simulation.group_mutations NAME ...`` tells which seed finds one.
"""

from __future__ import annotations

import sys

from kafka.consumer.fetch.completed_fetch import CompletedFetch
from kafka.consumer.fetch.manager import FetchManager
from kafka.consumer.fetch.session import FetchRequestData, FetchSession, FetchSessionOutcome
from kafka.consumer.fetch_collector import FetchCollector
from kafka.consumer.hand_out import HandOut
from kafka.consumer.modern import ModernConsumer
from kafka.consumer.partition_state import TopicPartitionState, ValidationOutcome
from kafka.consumer.rebalancing import RebalanceSteps
from kafka.consumer.subscription_state import SubscriptionState
from kafka.coordinator.assignors import adapt, cooperative_sticky
from kafka.coordinator.classic.state_machine import ClassicErrorAction, ClassicMembership
from kafka.coordinator.group_settings import StepKind
from kafka.coordinator.kip848.coordinator import ConsumerMember
from kafka.coordinator.kip848.state_machine import ConsumerMembership
from kafka.record.record_columns import RecordColumns
from kafka.structs import OffsetAndMetadata
from test.simulation.group_runs import run_group
from test.simulation.mutations import search


def commit_one_too_many(patch):
    real = TopicPartitionState.consumed_offset

    def consumed_offset(self, place=None):
        found = real(self, place)
        return found and found._replace(offset=found.offset + 1)

    patch.setattr(TopicPartitionState, 'consumed_offset', consumed_offset)


def commit_what_was_fetched_only(patch):
    def consumed_offset(self, place=None):
        return None if self._position is None else OffsetAndMetadata(self.fetch_offset, '', -1)

    patch.setattr(TopicPartitionState, 'consumed_offset', consumed_offset)


def forget_what_an_interrupted_poll_took(patch):
    def put_back(self):
        self.hand_out = HandOut()

    patch.setattr(FetchCollector, 'put_back', put_back)


def keep_fetches_after_a_seek(patch):
    real = TopicPartitionState.seek

    def seek(self, offset, epoch=-1):
        token = self.token
        real(self, offset, epoch)
        self.token = token

    patch.setattr(TopicPartitionState, 'seek', seek)


def begin_at_the_beginning(patch):
    real = TopicPartitionState.begin_at

    def begin_at(self, token, committed):
        return real(self, token, committed._replace(offset=0, leader_epoch=-1))

    patch.setattr(TopicPartitionState, 'begin_at', begin_at)


def skip_one_behind_a_fetch(patch):
    real = TopicPartitionState.fetched

    def fetched(self, next_offset, next_epoch=-1):
        real(self, next_offset + 1, next_epoch)

    patch.setattr(TopicPartitionState, 'fetched', fetched)


def hand_out_the_whole_batch(patch):
    patch.setattr(RecordColumns, 'since', lambda self, offset: self)


def show_what_was_aborted(patch):
    real = CompletedFetch.__init__

    def init(self, *args, **named):
        real(self, *args, **{**named, 'read_committed': False})

    patch.setattr(CompletedFetch, '__init__', init)


def drop_the_rest_of_a_fetch(patch):
    patch.setattr(FetchManager, 'put_back', lambda self, fetch: self.done(fetch))


def say_nothing_of_changes_to_a_session(patch):
    real = FetchSession._plan_changes

    def plan_changes(self):
        plan = real(self)
        return FetchRequestData(plan[0], plan[1], [], plan[3], plan[4])

    patch.setattr(FetchSession, '_plan_changes', plan_changes)


def go_on_with_a_session_that_is_lost(patch):
    real = FetchSession.on_response

    def on_response(self, error_code, *rest):
        if error_code:
            self._go_on(self.session_id, False)
            return FetchSessionOutcome.FAILED
        return real(self, error_code, *rest)

    patch.setattr(FetchSession, 'on_response', on_response)


def join_without_revoking(patch):
    patch.setattr(ClassicMembership, '_preparation', lambda self: None)


def keep_what_was_lost(patch):
    real = RebalanceSteps._revoke

    def revoke(self, step):
        if step.kind is StepKind.LOSE:
            self._tell('on_partitions_lost', set(step.partitions))
        else:
            real(self, step)

    patch.setattr(RebalanceSteps, '_revoke', revoke)


def tell_nobody_of_what_was_lost(patch):
    real = RebalanceSteps._tell

    def tell(self, what, partitions):
        if what != 'on_partitions_lost':
            real(self, what, partitions)

    patch.setattr(RebalanceSteps, '_tell', tell)


def assign_before_it_is_given_back(patch):
    for module in (adapt, cooperative_sticky):
        patch.setattr(module, 'withhold', lambda shares, wanted, claims: shares)


def do_not_hear_that_the_generation_is_over(patch):
    real = ClassicMembership._on_told

    def on_told(self, verdict, code):
        if verdict not in (ClassicErrorAction.LOST, ClassicErrorAction.LOST_ID):
            real(self, verdict, code)

    patch.setattr(ClassicMembership, '_on_told', on_told)


def do_not_hear_of_rebalances(patch):
    real = ClassicMembership._on_told

    def on_told(self, verdict, code):
        if verdict is not ClassicErrorAction.REBALANCE:
            real(self, verdict, code)

    patch.setattr(ClassicMembership, '_on_told', on_told)


def acknowledge_without_revoking(patch):
    real = ConsumerMember._do

    async def do(self, kind, *rest, **named):
        if kind is not StepKind.REVOKE:
            await real(self, kind, *rest, **named)

    patch.setattr(ConsumerMember, '_do', do)


def let_a_late_program_take_what_is_over(patch):
    patch.setattr(ConsumerMember, '_retarget', lambda self: None)


def stay_after_a_fence(patch):
    patch.setattr(ConsumerMembership, '_fence', lambda self, now: self.unanswered(self.life, now))


def doubt_no_position(patch):
    patch.setattr(TopicPartitionState, 'doubt', lambda self: False)


def take_every_position_for_valid(patch):
    def judge(self, asked, end):
        self.spare_validation(asked)
        return ValidationOutcome.VALID

    patch.setattr(TopicPartitionState, 'judge', judge)


def commit_without_epochs(patch):
    real = TopicPartitionState.consumed_offset

    def consumed_offset(self, place=None):
        found = real(self, place)
        return found and found._replace(leader_epoch=-1)

    patch.setattr(TopicPartitionState, 'consumed_offset', consumed_offset)


def commit_where_a_reset_led(patch):
    def consumed_offset(self, place=None):
        if self._position is None:
            return None
        return OffsetAndMetadata(self._position, '', self.position_epoch)

    patch.setattr(TopicPartitionState, 'consumed_offset', consumed_offset)


def drop_what_is_not_subscribed_any_more_at_once(patch):
    def drop(self):
        self.revoke([each for each in self.assignment if not self.matches(str(each.topic))])

    patch.setattr(SubscriptionState, '_drop_unsubscribed', drop)


def return_what_is_not_subscribed_any_more(patch):
    patch.setattr(TopicPartitionState, 'unsubscribe', lambda self, is_unsubscribed: None)


def keep_back_what_is_subscribed_again(patch):
    real = TopicPartitionState.unsubscribe

    def unsubscribe(self, is_unsubscribed):
        real(self, is_unsubscribed or self.is_unsubscribed)

    patch.setattr(TopicPartitionState, 'unsubscribe', unsubscribe)


def look_for_topics_once(patch):
    real = SubscriptionState.change_subscription

    def change_subscription(self, topics):
        return not self.subscription and real(self, topics)

    patch.setattr(SubscriptionState, 'change_subscription', change_subscription)


def match_inside_of_names(patch):
    real = SubscriptionState.subscribe

    def subscribe(self, topics=(), pattern=None, listener=None):
        pattern = '.*' + pattern if isinstance(pattern, str) else pattern
        real(self, topics, pattern, listener)

    patch.setattr(SubscriptionState, 'subscribe', subscribe)


def poll_longer_than_allowed(patch):
    real = ModernConsumer._poll

    def poll(self, deadline, most, hand_out):
        return real(self, deadline + 0.5, most, hand_out)

    patch.setattr(ModernConsumer, '_poll', poll)


#: So many seeds a mistake has, beside the one that found it when this was written.
MOST = 150
#: Each mistake, and that seed.
MUTATIONS = {
    commit_one_too_many: 0,
    commit_what_was_fetched_only: 0,
    forget_what_an_interrupted_poll_took: 3,
    keep_fetches_after_a_seek: 5,
    begin_at_the_beginning: 0,
    skip_one_behind_a_fetch: 1,
    hand_out_the_whole_batch: 0,
    show_what_was_aborted: 0,
    drop_the_rest_of_a_fetch: 0,
    say_nothing_of_changes_to_a_session: 1,
    go_on_with_a_session_that_is_lost: 23,
    join_without_revoking: 1,
    keep_what_was_lost: 9,
    tell_nobody_of_what_was_lost: 7,
    assign_before_it_is_given_back: 2,
    do_not_hear_that_the_generation_is_over: 7,
    do_not_hear_of_rebalances: 115,
    acknowledge_without_revoking: 6,
    let_a_late_program_take_what_is_over: 2411,
    stay_after_a_fence: 210,
    doubt_no_position: 3,
    take_every_position_for_valid: 3,
    commit_without_epochs: 3,
    commit_where_a_reset_led: 38,
    drop_what_is_not_subscribed_any_more_at_once: 40,
    return_what_is_not_subscribed_any_more: 6,
    keep_back_what_is_subscribed_again: 6,
    look_for_topics_once: 43,
    match_inside_of_names: 0,
    poll_longer_than_allowed: 0,
}

if __name__ == '__main__':
    search(MUTATIONS, run_group, sys.argv[1:])
