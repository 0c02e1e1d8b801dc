"""kafka.consumer.subscription_state: kinds of subscription, and what is assigned."""

from __future__ import annotations

import re

import pytest

import kafka
from kafka.consumer import subscription_state
from kafka.consumer.listener import ConsumerRebalanceListener, SubscriptionPattern
from kafka.consumer.partition_state import Phase
from kafka.consumer.reset_policy import EARLIEST, LATEST, NONE, ByDuration
from kafka.consumer.subscription_state import Mode, NotAssignedError, SubscriptionState
from kafka.errors import IllegalStateError, InvalidOptionError
from kafka.internals.validation import ArgumentTypeError, ArgumentValueError
from kafka.structs import OffsetAndMetadata, TopicPartition

A0, A1, B0 = TopicPartition('a', 0), TopicPartition('a', 1), TopicPartition('b', 0)


@pytest.fixture
def state():
    return SubscriptionState()


@pytest.fixture
def assigned(state):
    state.assign_from_user([A0, A1, B0])
    return state


@pytest.fixture
def joined(state):
    state.subscribe(['a', 'b'])
    state.assign_from_subscribed([A0, A1, B0])
    return state


def subscribed_by(kind):
    state = SubscriptionState()
    if kind is Mode.TOPICS:
        state.subscribe(['a'])
    elif kind is Mode.PATTERN:
        state.subscribe(pattern='a')
    elif kind is Mode.SERVER_PATTERN:
        state.subscribe(pattern=SubscriptionPattern('a.*'))
    elif kind is Mode.USER:
        state.assign_from_user([A0])
    assert state.mode is kind
    return state


# ------------------------------------------------------------ kinds of subscription

TO = {
    Mode.TOPICS: lambda s: s.subscribe(['b']),
    Mode.PATTERN: lambda s: s.subscribe(pattern='b'),
    Mode.SERVER_PATTERN: lambda s: s.subscribe(pattern=SubscriptionPattern('b')),
    Mode.USER: lambda s: s.assign_from_user([B0]),
    Mode.NONE: lambda s: s.unsubscribe(),
}


@pytest.mark.parametrize('after', TO)
@pytest.mark.parametrize('before', TO)
def test_topics_and_partitions_do_not_mix_before_unsubscribe(before, after):
    state = subscribed_by(before)
    is_user = {before, after} & {Mode.USER}
    if is_user and Mode.NONE not in (before, after) and before is not after:
        with pytest.raises(IllegalStateError, match='unsubscribe\\(\\) first') as caught:
            TO[after](state)
        assert before.value in str(caught.value)
        assert after.value in str(caught.value)
        assert state.mode is before
        assert state.owned() == ({A0} if before is Mode.USER else set())
    else:
        TO[after](state)
        assert state.mode is after


def test_at_first_nothing_is_read(state):
    assert state.subscription is None
    assert state.owned() == set()
    assert not state.partitions_auto_assigned()
    assert not state.needs_partition_assignment
    assert state.needs_fetch_committed_offsets
    assert state.has_all_fetch_positions()


@pytest.mark.parametrize(
    'topics', [['a', 'b'], ('b', 'a'), {'a', 'b'}, iter(['a', 'b', 'a']), {'a': 1, 'b': 2}]
)
def test_topics_come_in_any_collection(state, topics):
    state.subscribe(topics)
    assert state.subscription == {'a', 'b'}
    assert state.group_subscription() == {'a', 'b'}
    assert state.needs_partition_assignment
    assert state.partitions_auto_assigned()


def test_a_plain_str_is_one_topic(state):
    state.subscribe('topic')
    assert state.subscription == {'topic'}


@pytest.mark.parametrize(
    'arguments, error',
    [
        ({}, ArgumentValueError),
        ({'topics': []}, ArgumentValueError),
        ({'topics': None}, ArgumentValueError),
        ({'pattern': ''}, ArgumentValueError),
        ({'pattern': '('}, ArgumentValueError),
        ({'pattern': b'a'}, ArgumentTypeError),
        ({'pattern': re.compile(b'a')}, ArgumentTypeError),
        ({'pattern': SubscriptionPattern('')}, ArgumentValueError),
        ({'pattern': SubscriptionPattern(None)}, ArgumentTypeError),
        ({'topics': ['a'], 'pattern': 'a'}, IllegalStateError),
        ({'topics': 'a', 'pattern': 'a'}, IllegalStateError),
        ({'topics': ['a b']}, ArgumentValueError),
        ({'topics': ['..']}, ArgumentValueError),
        ({'topics': [b'a']}, ArgumentTypeError),
        ({'topics': [A0]}, ArgumentTypeError),
        ({'topics': [None]}, ArgumentTypeError),
        ({'topics': b'a'}, ArgumentTypeError),
        ({'topics': 7}, ArgumentTypeError),
        ({'topics': ['a'], 'listener': print}, ArgumentTypeError),
        ({'topics': ['a'], 'listener': ConsumerRebalanceListener}, ArgumentTypeError),
    ],
)
def test_a_subscription_that_is_refused_changes_nothing(joined, arguments, error):
    version = joined.version
    with pytest.raises(error) as caught:
        joined.subscribe(**arguments)
    assert isinstance(caught.value, AssertionError)
    assert joined.subscription == {'a', 'b'}
    assert joined.owned() == {A0, A1, B0}
    assert (joined.mode, joined.version) == (Mode.TOPICS, version)


def test_partitions_of_topics_that_are_dropped_leave_at_once(joined):
    joined.seek(A0, 5)
    joined.subscribe(['a', 'c'])
    assert joined.owned() == {A0, A1}
    assert joined.state(A0).position == 5
    assert joined.needs_partition_assignment


def test_a_subscription_replaces_the_listener(joined):
    listener = ConsumerRebalanceListener()
    joined.subscribe(['a', 'b'], listener=listener)
    assert joined.listener is listener
    joined.subscribe(['a', 'b'])
    assert joined.listener is None


def test_a_pattern_is_matched_at_the_beginning_of_names(state):
    state.subscribe(pattern='ab')
    assert [each for each in ('ab', 'abc', 'xab', 'a') if state.matches(each)] == ['ab', 'abc']
    assert state.subscription == set()
    assert state.subscribed_pattern.pattern == 'ab'


def test_a_pattern_may_be_compiled(state):
    state.subscribe(pattern=re.compile('AB', re.IGNORECASE))
    assert state.matches('abc')


def test_a_pattern_of_brokers_is_theirs_to_match(state):
    state.subscribe(pattern=SubscriptionPattern('x.*'))
    assert (state.server_pattern, state.subscribed_pattern) == ('x.*', None)
    assert state.matches('anything')
    state.subscribe(pattern='y')
    assert (state.server_pattern, state.subscribed_pattern.pattern) == (None, 'y')


def test_going_over_to_a_pattern_keeps_what_it_matches(joined):
    joined.subscribe(pattern='a')
    assert joined.subscription == {'a'}
    assert joined.owned() == {A0, A1}
    assert joined.needs_partition_assignment


def test_going_back_to_topics_forgets_the_pattern(state):
    state.subscribe(pattern='a')
    state.subscribe(['b'])
    assert state.subscribed_pattern is None
    assert not state.matches('a')


def test_a_change_of_topics_is_told(joined):
    version = joined.version
    assert not joined.change_subscription(['b', 'a'])
    assert joined.version == version
    assert joined.change_subscription({'a', 'c'})
    assert joined.version > version
    assert joined.owned() == {A0, A1}


def test_topics_cannot_be_changed_without_a_subscription(assigned):
    for call in (
        lambda: assigned.change_subscription(['a']),
        lambda: assigned.group_subscribe(['a']),
        lambda: assigned.mark_for_reassignment(),
        lambda: assigned.assign_from_subscribed([A0]),
    ):
        with pytest.raises(IllegalStateError, match='no topics are subscribed'):
            call()


def test_a_leader_is_interested_in_the_topics_of_others_until_it_leads_no_more(joined):
    joined.group_subscribe(['x', 'y'])
    assert joined.group_subscription() == {'a', 'b', 'x', 'y'}
    assert joined.subscription == {'a', 'b'}
    joined.mark_for_reassignment()
    assert joined.group_subscription() == {'a', 'b'}
    assert joined.needs_partition_assignment


def test_what_is_asked_for_is_the_callers_own(joined):
    joined.group_subscription().clear()
    joined.owned().clear()
    joined.assigned_partitions().clear()
    joined.paused_partitions().add(A0)
    assert joined.group_subscription() == {'a', 'b'}
    assert joined.assigned_partitions() == {A0, A1, B0}
    assert joined.paused_partitions() == set()


def test_unsubscribing_clears_everything(joined):
    joined.listener = ConsumerRebalanceListener()
    joined.pause(A0)
    joined.unsubscribe()
    assert joined.subscription is None
    assert joined.listener is None
    assert joined.owned() == joined.paused_partitions() == joined.unsettled == set()
    assert joined.group_subscription() == set()
    assert not joined.needs_partition_assignment


# ------------------------------------------------------------ assignments


def test_the_group_assigns_no_foreign_topics(joined):
    with pytest.raises(ValueError, match='c-0') as caught:
        joined.assign_from_subscribed([A0, TopicPartition('c', 0)])
    assert 'a-0' not in str(caught.value)
    assert joined.owned() == {A0, A1, B0}


def test_the_group_may_assign_what_the_pattern_matches_before_it_was_seen(state):
    state.subscribe(pattern='a')
    state.assign_from_subscribed([A0])
    assert (state.subscription, state.group_subscription()) == ({'a'}, {'a'})
    with pytest.raises(ValueError):
        state.assign_from_subscribed([B0])
    state.assign_from_subscribed([TopicPartition('ab', 0)])
    assert state.subscription == {'a', 'ab'}


def test_with_a_pattern_of_brokers_the_topics_are_those_assigned(state):
    state.subscribe(pattern=SubscriptionPattern('x'))
    state.assign_from_subscribed([A0, B0])
    state.assign_from_subscribed([B0])
    assert state.subscription == {'b'}


def test_what_stays_assigned_keeps_its_state(joined):
    joined.seek(A0, 5)
    joined.pause(A0)
    kept = joined.state(A0)
    joined.assign_from_subscribed([B0, A0])
    assert joined.state(A0) is kept
    assert joined.owned() == {A0, B0}
    assert not joined.needs_partition_assignment


def test_what_comes_again_begins_anew(joined):
    joined.seek(A0, 5)
    joined.pause(A0)
    token = joined.state(A0).token
    joined.revoke([A0])
    joined.assign_from_subscribed([A0, A1, B0])
    assert joined.state(A0).phase is Phase.INITIALIZING
    assert not joined.is_paused(A0)
    assert joined.state(A0).token != token


def test_what_happens_to_a_partition_that_is_gone_does_not_matter(joined):
    gone, token = joined.state(A0), joined.state(A0).token
    joined.revoke([A0])
    assert not gone.begin_at(token, OffsetAndMetadata(5, ''))
    gone.await_reset('latest')
    assert joined.unsettled == {A1, B0}
    assert joined.missing_fetch_positions() == {A1, B0}


def test_revoking_what_is_not_assigned_does_not_matter(joined):
    version = joined.version
    joined.revoke([TopicPartition('z', 9)])
    assert joined.version == version
    joined.revoke([A0, TopicPartition('z', 9)])
    assert joined.owned() == {A1, B0}
    assert joined.version > version


def test_a_program_may_assign_plain_tuples(state):
    state.assign_from_user([('a', 0), ('a', 0)])
    assert list(state.assignment) == [A0]
    assert all(isinstance(each, TopicPartition) for each in state.assignment)


@pytest.mark.parametrize('partitions', ['a', ['a'], [('a', -1)], [(b'a', 0)], 5, [None], [('a',)]])
def test_an_assignment_that_is_refused_changes_nothing(assigned, partitions):
    with pytest.raises((ArgumentTypeError, ArgumentValueError)):
        assigned.assign_from_user(partitions)
    assert assigned.owned() == {A0, A1, B0}


def test_assigning_nothing_lets_any_kind_of_subscription_follow(assigned):
    assigned.assign_from_user([])
    assert assigned.owned() == set()
    assigned.subscribe(['a'])
    assert assigned.mode is Mode.TOPICS


@pytest.mark.parametrize(
    'change',
    [
        lambda s: s.subscribe(['z']),
        lambda s: s.assign_from_subscribed([A0]),
        lambda s: s.unsubscribe(),
        lambda s: s.revoke([A0]),
    ],
)
def test_the_version_grows_with_each_change(joined, change):
    version = joined.version
    change(joined)
    assert joined.version > version


# ------------------------------------------------------------ order, holding, pausing


def test_what_was_just_served_comes_last(assigned):
    for each in (A0, A1, B0):
        assigned.seek(each, 0)
    assert assigned.fetchable() == [A0, A1, B0]
    assigned.rotate(A0)
    assert assigned.fetchable() == [A1, B0, A0]
    assigned.rotate(TopicPartition('z', 0))
    assert assigned.fetchable() == [A1, B0, A0]


def test_the_order_survives_an_assignment(joined):
    for each in (A0, A1, B0):
        joined.seek(each, 0)
    joined.rotate(A0)
    joined.assign_from_subscribed([A0, A1, B0])
    assert joined.fetchable() == [A1, B0, A0]


def test_only_partitions_with_a_position_are_fetchable(assigned):
    assigned.seek(A0, 0)
    assigned.need_offset_reset(A1)
    assert assigned.fetchable_partitions() == {A0}
    assert [assigned.is_fetchable(each) for each in (A0, A1, B0)] == [True, False, False]
    assert not assigned.is_fetchable(TopicPartition('z', 0))


def test_what_is_held_is_not_fetched_until_it_is_released(assigned):
    assigned.seek(A0, 0)
    assigned.hold([A0, TopicPartition('gone', 0)])
    assert assigned.fetchable() == []
    assert assigned.paused_partitions() == set()
    assigned.release([A0, TopicPartition('gone', 0)])
    assert assigned.fetchable() == [A0]


def test_pausing_keeps_the_position(assigned):
    assigned.seek(A0, 7)
    assigned.pause(A0)
    assert (assigned.is_paused(A0), assigned.paused_partitions()) == (True, {A0})
    assert assigned.fetchable() == []
    assigned.resume(A0)
    assert assigned.fetchable() == [A0]
    assert assigned.state(A0).position == 7
    assert not assigned.is_paused(TopicPartition('z', 0))


# ------------------------------------------------------------ positions


def test_seeking_in_an_epoch_asks_for_validation(assigned):
    assigned.seek(A0, OffsetAndMetadata(5, '', 3))
    assigned.seek(A1, OffsetAndMetadata(5, '', None))
    assert assigned.state(A0).validation().epoch == 3
    assert assigned.state(A1).phase is Phase.FETCHING


@pytest.mark.parametrize(
    'offset', [-1, 1.5, '1', None, True, (5, ''), 2**63, OffsetAndMetadata(-1, '')]
)
def test_what_is_no_offset_is_refused(assigned, offset):
    with pytest.raises(ArgumentValueError, match='offset'):
        assigned.seek(A0, offset)
    assert assigned.state(A0).phase is Phase.INITIALIZING


@pytest.mark.parametrize(
    'call',
    [
        lambda s, tp: s.state(tp),
        lambda s, tp: s.seek(tp, 0),
        lambda s, tp: s.pause(tp),
        lambda s, tp: s.resume(tp),
        lambda s, tp: s.need_offset_reset(tp),
    ],
)
def test_a_partition_that_is_not_assigned_is_named_with_those_that_are(assigned, call):
    with pytest.raises(NotAssignedError) as caught:
        call(assigned, TopicPartition('z', 9))
    assert str(caught.value) == (
        'IllegalStateError: partition z-9 is not assigned to this consumer; it has a-0, a-1, b-0'
    )
    for each in (IllegalStateError, ValueError, KeyError, AssertionError):
        assert isinstance(caught.value, each)


def test_of_many_partitions_some_are_named(state):
    state.assign_from_user([('t', number) for number in range(1000)])
    with pytest.raises(NotAssignedError, match='and 992 others'):
        state.state(A0)


@pytest.mark.parametrize(
    'word, policy, has',
    [
        ('earliest', EARLIEST, True),
        ('latest', LATEST, True),
        ('by_duration:PT2S', ByDuration(2000), True),
        ('none', NONE, False),
        ('nonsense', NONE, False),
    ],
)
def test_a_position_that_is_missing_is_found_by_the_policy(word, policy, has):
    state = SubscriptionState(word)
    state.assign_from_user([A0])
    state.need_offset_reset(A0)
    assert state.state(A0).reset_strategy == policy
    assert state.has_default_offset_reset_policy() is has
    assert state.is_offset_reset_needed(A0)


def test_a_reset_may_have_a_strategy_of_its_own(assigned):
    assigned.need_offset_reset(A0, 'latest')
    assigned.need_offset_reset(A1, 0)
    assert assigned.state(A0).reset_strategy == LATEST
    assert assigned.state(A1).reset_strategy == NONE
    assert not assigned.is_offset_reset_needed(B0)
    assert not assigned.is_offset_reset_needed(TopicPartition('z', 0))


def test_a_policy_that_is_no_duration_is_refused():
    with pytest.raises(InvalidOptionError):
        SubscriptionState('by_duration:soon')


def test_it_is_known_which_positions_are_missing(assigned):
    assigned.seek(A0, 5)
    assigned.seek(A1, OffsetAndMetadata(5, '', 3))
    assert assigned.missing_fetch_positions() == {B0}
    assert assigned.unsettled == {A1, B0}
    assert not assigned.has_all_fetch_positions()
    assigned.revoke([B0])
    assert assigned.has_all_fetch_positions()
    assert assigned.unsettled == {A1}


def test_positions_that_are_known_may_be_committed(assigned):
    assigned.seek(A0, 5)
    assigned.state(A0).fetched(9, 4)
    assigned.state(A0).consumed(7, 4)
    assigned.need_offset_reset(A1)
    found = assigned.all_consumed_offsets()
    assert found == {A0: OffsetAndMetadata(7, '', 4)}
    assert tuple(found[A0]) == (7, '', 4)


# ------------------------------------------------------------ pauses over a rebalance


def test_what_a_rebalance_gives_back_is_paused_as_it_was(joined):
    joined.pause(A0)
    joined.pause(A1)
    joined.give_back([A0, A1, B0])
    assert joined.paused_partitions() == {A0, A1}
    joined.assign_from_subscribed([A0, B0])
    assert joined.paused_partitions() == {A0}
    joined.assign_from_subscribed([A0, A1, B0])
    assert joined.paused_partitions() == {A0}, 'the other was with somebody else'


def test_what_is_resumed_while_a_rebalance_has_it_comes_back_so(joined):
    joined.pause(A0)
    joined.give_back([A0, A1, B0])
    joined.pause(A0)
    joined.resume(A0)
    joined.assign_from_subscribed([A0, A1, B0])
    assert joined.paused_partitions() == set()


def test_what_was_lost_comes_back_without_its_pause(joined):
    joined.pause(A0)
    joined.revoke([A0])
    joined.assign_from_subscribed([A0, A1, B0])
    assert joined.paused_partitions() == set()


# ------------------------------------------------------------ revocation that is deferred


def test_where_a_member_revokes_what_is_not_subscribed_any_more_stays_and_is_not_fetched(joined):
    joined.defers_revocation = True
    joined.seek(A0, 5)
    joined.subscribe(['b'])
    assert A0 in joined.assignment
    assert A0 not in joined.meant()
    assert not joined.is_fetchable(A0)
    assert joined.topics() == {'b'}
    assert joined.all_consumed_offsets()[A0].offset == 5
    joined.subscribe(['a', 'b'])
    assert joined.is_fetchable(A0)


def test_what_matches_no_pattern_any_more_stays_too(joined):
    joined.defers_revocation = True
    joined.subscribe(pattern='b')
    assert {each.topic for each in joined.meant()} == {'b'}
    joined.subscribe(pattern='[ab]')
    assert joined.meant() == joined.owned()


def test_what_a_pattern_matched_is_not_meant_by_the_names_it_has_now(state):
    state.defers_revocation = True
    state.subscribe(pattern='[ab]')
    state.change_subscription(['a', 'b'])
    state.assign_from_subscribed([A0, B0])
    state.change_subscription(['a'])  # the other is missing in the metadata
    state.subscribe(['a'])
    assert state.meant() == {A0}


def test_what_brokers_match_is_read_until_they_take_it(joined):
    joined.defers_revocation = True
    joined.subscribe(pattern=SubscriptionPattern('b.*'))
    assert joined.meant() == joined.owned()


def test_a_group_may_assign_for_a_moment_what_was_subscribed_a_moment_ago(joined):
    joined.defers_revocation = True
    joined.subscribe(['b'])
    joined.assign_from_subscribed([A0, A1])
    assert joined.owned() == {A0, A1}
    assert joined.meant() == set()


# ------------------------------------------------------------ names


@pytest.mark.parametrize(
    'name', ['SubscriptionState', 'TopicPartitionState', 'ConsumerRebalanceListener']
)
def test_the_names_of_1_x_are_here(name):
    assert isinstance(getattr(subscription_state, name), type)


def test_the_listeners_are_those_of_the_package():
    assert subscription_state.ConsumerRebalanceListener is kafka.ConsumerRebalanceListener
    assert subscription_state.AsyncConsumerRebalanceListener is kafka.AsyncConsumerRebalanceListener


def test_it_shows_what_is_read(joined):
    joined.seek(A0, 1)
    assert repr(joined) == '<SubscriptionState topics, 2 topics, 3 partitions, 2 unsettled>'
