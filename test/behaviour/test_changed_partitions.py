"""Each reason why brokers may have to be asked for something else notes the partition."""

from __future__ import annotations

import pytest

from kafka.consumer.subscription_state import SubscriptionState
from kafka.structs import TopicPartition

A, B = TopicPartition('t', 0), TopicPartition('t', 1)


@pytest.fixture
def subscription():
    made = SubscriptionState()
    made.assign_from_user([A, B])
    made.seek(A, 5)
    made.take_changed()
    return made


CHANGES = [
    lambda s: s.seek(A, 5),
    lambda s: s.need_offset_reset(A),
    lambda s: s.pause(A),
    lambda s: s.resume(A),
    lambda s: s.hold([A]),
    lambda s: s.release([A]),
    lambda s: s.assign_from_user([B]),
    lambda s: s.state(A).rewind(),
    lambda s: s.state(A).prefer(2, 9.0),
    lambda s: s.state(A).leader_changed(1, 3),
]


@pytest.mark.parametrize('change', CHANGES)
def test_a_change_is_told_once(subscription, change):
    assert not subscription.has_changed
    change(subscription)
    assert subscription.has_changed and subscription.take_changed() == {A}
    assert not subscription.has_changed and subscription.take_changed() == set()


@pytest.mark.parametrize(
    'change', [lambda s: s.state(A).fetched(9, 1), lambda s: s.state(A).consumed(7, 1)]
)
def test_what_is_fetched_and_handed_out_is_no_change(subscription, change):
    change(subscription)
    assert subscription.take_changed() == set()


def test_what_is_new_has_changed(subscription):
    c = TopicPartition('t', 2)
    subscription.assign_from_user([A, B, c])
    assert subscription.take_changed() == {c}


def test_a_replica_is_preferred_for_a_time_and_until_the_leader_changes(subscription):
    state = subscription.state(A)
    state.prefer(2, 9.0)
    assert (state.preferred_replica, state.preferred_until) == (2, 9.0)
    state.leader_changed(1, 3)
    assert state.preferred_replica is None
