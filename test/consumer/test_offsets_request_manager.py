"""OffsetsRequestManager: which requests go out for which partitions, and what responses change."""

from __future__ import annotations

import pytest

from kafka.consumer.partition_state import Phase
from kafka.errors import (
    CoordinatorLoadInProgressError,
    GroupAuthorizationFailedError,
    KafkaTimeoutError,
    NoOffsetForPartitionError,
    StaleMemberEpochError,
    TopicAuthorizationFailedError,
    UnknownMemberIdError,
    UnstableOffsetCommitError,
    UnsupportedVersionError,
)
from kafka.net.loop.tasks import Waiter
from kafka.structs import OffsetAndMetadata
from test.consumer.scripted_pool import Code
from test.consumer.settling import A0, A1, B0, WALL, Consumer, without_group

# ------------------------------------------------------------ committed offsets


def test_committed_offsets_are_asked_for_together():
    consumer = Consumer()
    consumer.committed = {'a-0': OffsetAndMetadata(5, 'x'), 'b-0': OffsetAndMetadata(7, '')}
    consumer.assign('a-0', 'b-0')
    assert consumer.fetches == [['a-0', 'b-0']]
    assert consumer.seen() == {'a-0': 5, 'b-0': 7}
    assert consumer.state('a-0').committed == OffsetAndMetadata(5, 'x')
    assert consumer.asked() == []
    assert consumer.changes == 1


def test_what_was_never_committed_begins_by_the_policy():
    consumer = Consumer()
    consumer.committed = {'a-0': OffsetAndMetadata(5, '')}
    consumer.pool.log = {'a-1': 11, 'b-0': 12}
    consumer.assign('a-0', 'a-1', 'b-0')
    assert consumer.seen() == {'a-0': 5, 'a-1': 11, 'b-0': 12}
    assert sorted(consumer.asked()) == [(0, {'b-0': -2}), (1, {'a-1': -2})]


def test_a_partition_that_is_not_told_holds_up_no_other():
    consumer = Consumer()
    denied = TopicAuthorizationFailedError({'b'})
    consumer.committed = {
        'a-0': UnstableOffsetCommitError('open'),
        'a-1': OffsetAndMetadata(7, ''),
        'b-0': denied,
    }
    consumer.assign('a-0', 'a-1', 'b-0')
    assert consumer.seen() == {'a-0': Phase.INITIALIZING, 'a-1': 7, 'b-0': Phase.INITIALIZING}
    assert consumer.positions.take_error() is denied
    consumer.committed['a-0'] = OffsetAndMetadata(8, '')
    consumer.look(1.0)
    assert consumer.seen()['a-0'] == 8


def test_without_a_group_nothing_is_asked_of_it():
    consumer = without_group()
    consumer.pool.log = {'a-0': 3}
    consumer.assign('a-0')
    assert consumer.seen() == {'a-0': 3}


def test_one_question_at_a_time_goes_to_the_group():
    consumer = Consumer()
    consumer.fetch_waiter = waiter = Waiter()
    consumer.committed = {'a-0': OffsetAndMetadata(5, ''), 'b-0': OffsetAndMetadata(6, '')}
    consumer.assign('a-0')
    consumer.assign('a-0', 'b-0')
    consumer.look(20.0)
    assert consumer.fetches == [['a-0']]
    waiter.wake()
    consumer.loop.settle()
    assert consumer.fetches == [['a-0'], ['b-0']]
    assert consumer.seen() == {'a-0': 5, 'b-0': 6}


def test_a_seek_meanwhile_counts_more_than_what_was_committed():
    consumer = Consumer()
    consumer.fetch_waiter = waiter = Waiter()
    consumer.committed = {'a-0': OffsetAndMetadata(5, '')}
    consumer.assign('a-0')
    consumer.subscription.seek(A0, 50)
    waiter.wake()
    consumer.loop.settle()
    assert consumer.seen() == {'a-0': 50}


def test_a_partition_that_went_and_came_is_asked_for_anew():
    consumer = Consumer()
    consumer.fetch_waiter = waiter = Waiter()
    consumer.committed = {'a-0': OffsetAndMetadata(5, '')}
    consumer.assign('a-0')
    consumer.assign('b-0')
    consumer.assign('a-0')
    waiter.wake()
    consumer.committed = {'a-0': OffsetAndMetadata(9, '')}
    consumer.loop.settle()
    assert consumer.fetches == [['a-0'], ['a-0']]
    assert consumer.seen() == {'a-0': 9}


@pytest.mark.parametrize(
    'error',
    [
        CoordinatorLoadInProgressError(),
        KafkaTimeoutError(),
        UnknownMemberIdError(),
        StaleMemberEpochError(),
    ],
)
def test_what_may_pass_is_asked_again_and_nobody_hears_of_it(error):
    consumer = Consumer()
    consumer.committed = error
    consumer.assign('a-0')
    assert consumer.positions.take_error() is None
    consumer.look()
    assert len(consumer.fetches) == 1
    consumer.committed = {'a-0': OffsetAndMetadata(5, '')}
    consumer.loop.advance(0.13)
    assert len(consumer.fetches) == 2
    assert consumer.seen() == {'a-0': 5}


def test_a_group_that_is_not_allowed_stands_until_it_is():
    consumer = Consumer()
    consumer.committed = error = GroupAuthorizationFailedError('g')
    consumer.assign('a-0')
    assert consumer.positions.take_error() is error
    assert consumer.positions.take_error() is error
    assert consumer.changes == 1
    consumer.committed = {'a-0': OffsetAndMetadata(5, '')}
    consumer.loop.advance(0.2)
    assert consumer.positions.take_error() is None
    assert consumer.seen() == {'a-0': 5}


def test_pauses_between_tries_grow():
    consumer = Consumer()
    consumer.committed = KafkaTimeoutError()
    consumer.assign('a-0')
    counts = []
    for _ in range(60):
        consumer.look(0.1)
        counts.append(len(consumer.fetches))
    assert 3 <= counts[9] <= 5
    assert counts[-1] - counts[-21] <= 3


# ------------------------------------------------------------ resets


@pytest.mark.parametrize(
    'policy, time',
    [('earliest', -2), ('latest', -1), ('by_duration:PT1H', int(WALL * 1000) - 3_600_000)],
)
def test_the_policy_says_which_time_is_asked_for(policy, time):
    consumer = without_group(policy)
    consumer.pool.log = {'a-0': 30}
    consumer.assign('a-0')
    assert consumer.asked() == [(0, {'a-0': time})]
    assert consumer.seen() == {'a-0': 30}


def test_where_nothing_is_as_young_as_wanted_reading_begins_at_the_end():
    consumer = without_group('by_duration:PT1H')
    hour_ago = int(WALL * 1000) - 3_600_000
    consumer.pool.log = {'a-0': {hour_ago: -1, -1: 44}}
    consumer.assign('a-0')
    assert consumer.asked() == [(0, {'a-0': hour_ago}), (0, {'a-0': -1})]
    assert consumer.seen() == {'a-0': 44}


def test_a_later_reset_asks_for_the_duration_again():
    consumer = without_group('by_duration:PT1H')
    hour_ago = int(WALL * 1000) - 3_600_000
    consumer.pool.log = {'a-0': {hour_ago: -1, -1: 44}}
    consumer.assign('a-0')
    consumer.pool.log = {'a-0': {hour_ago: 50, -1: 60}}
    consumer.subscription.need_offset_reset(A0)
    consumer.look()
    assert consumer.seen() == {'a-0': 50}


def test_a_reset_asked_for_while_the_end_is_asked_for_begins_with_the_duration():
    consumer = without_group('by_duration:PT1H')
    hour_ago = int(WALL * 1000) - 3_600_000
    consumer.pool.log = {'a-0': {hour_ago: -1, -1: Code(6)}}
    consumer.assign('a-0')
    consumer.pool.log = {'a-0': {hour_ago: 50, -1: 60}}
    consumer.subscription.need_offset_reset(A0)
    consumer.look()
    assert consumer.seen() == {'a-0': 50}


def test_where_there_is_no_end_either_it_is_asked_for_with_pauses():
    consumer = without_group('latest')
    consumer.pool.log = {'a-0': -1}
    consumer.assign('a-0')
    consumer.loop.advance(1.0)
    assert 3 <= len(consumer.asked()) <= 5


def test_brokers_without_times_cannot_begin_by_duration():
    consumer = without_group('by_duration:PT1H')
    consumer.pool.old(list_offsets=0)
    consumer.assign('a-0')
    assert isinstance(consumer.positions.take_error(), UnsupportedVersionError)


def test_a_reset_the_program_asks_for_has_its_own_policy():
    consumer = without_group('none')
    consumer.pool.log = {'a-0': {-1: 9, -2: 2}}
    consumer.assign('a-0')
    consumer.subscription.need_offset_reset(A0, 'latest')
    consumer.look()
    assert consumer.seen() == {'a-0': 9}
    assert consumer.positions.take_error() is None


def test_a_reset_that_the_program_asked_for_again_is_asked_for_again():
    consumer = without_group()
    consumer.pool.log = {'a-0': {-1: 9, -2: 2}}
    consumer.pool.waiting[0] = waiter = Waiter()
    consumer.assign('a-0')
    consumer.subscription.need_offset_reset(A0, 'latest')
    consumer.look(5.0)
    assert consumer.asked() == [(0, {'a-0': -2})]
    waiter.wake()
    consumer.loop.settle()
    assert consumer.asked() == [(0, {'a-0': -2}), (0, {'a-0': -1})]
    assert consumer.seen() == {'a-0': 9}


def test_a_slow_node_does_not_keep_others_from_being_asked():
    consumer = without_group()
    consumer.pool.log = {'a-0': 1, 'a-1': 2, 'b-0': 3}
    consumer.pool.waiting[0] = Waiter()
    consumer.assign('a-0', 'a-1')
    consumer.assign('a-0', 'a-1', 'b-0')
    assert consumer.seen() == {'a-0': Phase.AWAIT_RESET, 'a-1': 2, 'b-0': Phase.AWAIT_RESET}


def test_a_reset_goes_to_whoever_leads_then():
    consumer = without_group()
    consumer.pool.log = {'a-0': 1}
    consumer.pool.lead('a-0', 2, 4)
    consumer.assign('a-0')
    assert consumer.seen() == {'a-0': Phase.AWAIT_RESET}
    assert consumer.pool.refreshes == 1
    consumer.learn()
    consumer.loop.advance(0.13)
    assert [node for node, _ in consumer.asked()] == [0, 2]
    assert consumer.seen() == {'a-0': 1}


def test_what_a_partition_fails_with_does_not_put_others_off():
    consumer = without_group()
    consumer.pool.log = {'a-0': [Code(6), 4], 'b-0': 3}
    consumer.assign('a-0', 'b-0')
    assert consumer.seen() == {'a-0': Phase.AWAIT_RESET, 'b-0': 3}
    consumer.subscription.need_offset_reset(B0)
    consumer.look()
    assert consumer.asked()[1:] == [(0, {'b-0': -2})]
    consumer.loop.advance(0.13)
    assert consumer.asked()[2:] == [(0, {'a-0': -2})]
    assert consumer.seen() == {'a-0': 4, 'b-0': 3}


def test_who_waits_shortest_is_asked_first():
    consumer = without_group()
    consumer.pool.log = {'a-0': Code(6), 'b-0': Code(6)}
    consumer.assign('b-0')
    consumer.loop.advance(5.0)  # by now it waits a second
    consumer.assign('a-0', 'b-0')
    consumer.pool.asked.clear()
    consumer.loop.advance(0.13)
    assert consumer.asked()[0] == (0, {'a-0': -2})


def test_the_pause_is_counted_from_the_failure():
    consumer = without_group()
    consumer.pool.log = {'a-0': 4}
    consumer.pool.waiting[0] = Waiter()
    consumer.assign('a-0')
    consumer.loop.advance(30.0)  # it times out
    consumer.loop.advance(0.07)
    assert len(consumer.asked()) == 1
    consumer.loop.advance(0.1)
    assert consumer.seen() == {'a-0': 4}


def test_an_unknown_topic_is_wanted_and_read_once_it_appears():
    consumer = without_group()
    consumer.pool.log = {'c-0': 8}
    consumer.assign('c-0')
    assert consumer.pool.wanted == ['c']
    assert consumer.pool.refreshes == 1
    assert consumer.asked() == []
    consumer.pool.lead('c-0', 2)
    consumer.learn()
    assert consumer.seen() == {'c-0': 8}


def test_a_topic_that_is_not_allowed_stands_until_it_is():
    consumer = without_group()
    consumer.pool.topic_codes['c'] = 29
    consumer.learn()
    consumer.assign('c-0')
    assert consumer.positions.take_error() == TopicAuthorizationFailedError({'c'})
    consumer.pool.lead('c-0', 2)
    consumer.pool.log = {'c-0': 8}
    del consumer.pool.topic_codes['c']
    consumer.learn()
    assert consumer.positions.take_error() is None
    assert consumer.seen() == {'c-0': 8}


def test_a_partition_that_is_not_allowed_stands_and_is_asked_again():
    consumer = without_group()
    consumer.pool.log = {'a-0': [Code(29), Code(29), Code(29), 5], 'b-0': 6}
    consumer.assign('a-0', 'b-0')
    assert isinstance(consumer.positions.take_error(), TopicAuthorizationFailedError)
    assert consumer.seen()['b-0'] == 6
    assert consumer.changes == 1
    consumer.loop.advance(2.0)
    assert consumer.seen()['a-0'] == 5
    assert consumer.changes == 2
    assert consumer.positions.take_error() is None


def test_a_newer_epoch_in_an_answer_lets_the_leaders_be_asked_for():
    consumer = without_group(leads={'a-0': (0, 2)})
    consumer.pool.log = {'a-0': 5}  # in epoch 4, the pool says
    consumer.assign('a-0')
    assert consumer.pool.refreshes == 1


def test_no_newer_epoch_is_no_reason_to_ask_for_leaders():
    consumer = without_group(leads={'a-0': (0, 4)})
    consumer.pool.log = {'a-0': 5}
    consumer.assign('a-0')
    assert consumer.pool.refreshes == 0


def test_a_thousand_partitions_are_one_question_to_each_node():
    leads = {'t-%d' % number: (number % 3, 4) for number in range(1000)}
    consumer = without_group(leads=leads)
    consumer.pool.log = dict.fromkeys(leads, 7)
    consumer.assign(*leads)
    assert len(consumer.pool.asked) == 3
    assert set(consumer.seen().values()) == {7}
    assert consumer.changes <= 4


# ------------------------------------------------------------ without a policy


def test_without_a_policy_a_partition_without_commit_waits_for_a_seek():
    consumer = Consumer('none')
    consumer.assign('a-0')
    for _ in range(3):
        error = consumer.positions.take_error()
        assert isinstance(error, NoOffsetForPartitionError)
        assert error.args == (A0,)
        assert 'auto_offset_reset' in str(error)
    consumer.subscription.seek(A0, 4)
    assert consumer.positions.take_error() is None
    assert consumer.positions.error_of(A0) is None
    assert consumer.asked() == []


def test_without_a_policy_a_commit_of_another_cures_it():
    consumer = Consumer('none')
    consumer.assign('a-0')
    consumer.committed = {'a-0': OffsetAndMetadata(5, '')}
    consumer.loop.advance(0.13)
    assert consumer.positions.take_error() is None
    assert consumer.seen() == {'a-0': 5}


def test_without_a_policy_and_without_a_group_nothing_is_asked():
    consumer = without_group('none')
    consumer.assign('a-0')
    consumer.look(10.0)
    assert isinstance(consumer.positions.take_error(), NoOffsetForPartitionError)
    assert (consumer.pool.asked, consumer.changes) == ([], 1)


def test_each_poll_begins_with_another_partition():
    consumer = without_group('none')
    consumer.assign('a-0', 'a-1', 'b-0')
    seen = []
    for _ in range(4):
        assert consumer.positions.has_error()  # which is nobody's turn
        seen.append(consumer.positions.take_error().args[0])
    assert seen == [A0, A1, B0, A0]
    consumer.subscription.revoke([A1])
    assert [consumer.positions.take_error().args[0] for _ in range(3)] == [B0, A0, B0]


def test_nothing_is_told_of_partitions_that_are_held():
    consumer = Consumer('none')
    consumer.subscription.assign_from_user([A0])
    consumer.subscription.hold([A0])
    consumer.look()
    assert not consumer.positions.has_error()
    assert consumer.positions.take_error() is None
    assert isinstance(consumer.positions.error_of(A0), NoOffsetForPartitionError)
    consumer.subscription.release([A0])
    assert isinstance(consumer.positions.take_error(), NoOffsetForPartitionError)


def test_held_partitions_get_their_positions_all_the_same():
    consumer = Consumer()
    consumer.pool.log = {'a-0': 3}
    consumer.subscription.assign_from_user([A0])
    consumer.subscription.hold([A0])
    consumer.look()
    assert consumer.state('a-0').position == 3


# ------------------------------------------------------------ beginning and end


def test_looking_costs_nothing_when_all_is_settled():
    consumer = Consumer()
    consumer.committed = {'a-0': OffsetAndMetadata(5, '')}
    consumer.assign('a-0')
    for _ in range(5):
        consumer.look(1.0)
    assert (consumer.changes, consumer.pool.refreshes, len(consumer.fetches)) == (1, 0, 1)


def test_closed_it_asks_nothing_more():
    consumer = Consumer()
    consumer.fetch_waiter = Waiter()
    consumer.assign('a-0', 'b-0')
    consumer.positions.close()
    consumer.positions.close()
    consumer.learn()
    consumer.look(10.0)
    assert len(consumer.fetches) == 1
    assert consumer.pool.cluster._listeners == []
    assert not consumer.loop.tasks


def test_what_the_loop_ends_is_no_mistake(caplog):
    consumer = Consumer()
    consumer.fetch_waiter = Waiter()
    consumer.assign('a-0')
    for task in list(consumer.loop.tasks):
        task.cancel()
    consumer.loop.settle()
    assert caplog.records == []


def test_a_mistake_is_logged_and_does_not_end_the_upkeep(caplog):
    consumer = Consumer()
    consumer.committed = ZeroDivisionError('oops')
    consumer.assign('a-0')
    assert 'by a mistake' in caplog.text
    consumer.look()
    assert len(consumer.fetches) == 1
    consumer.committed = {'a-0': OffsetAndMetadata(5, '')}
    consumer.loop.advance(0.13)
    assert consumer.seen() == {'a-0': 5}


def test_it_shows_what_is_left_to_do():
    consumer = Consumer('none')
    consumer.assign('a-0', 'b-0')
    assert repr(consumer.positions) == '<OffsetsRequestManager unsettled=2 asking=0 errors=2>'
