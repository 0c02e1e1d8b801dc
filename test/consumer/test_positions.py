"""kafka.consumer.positions: what is asked for which partitions, and what the answers lead to."""

from __future__ import annotations

import random
import threading

import pytest

from kafka.consumer.offsets import EpochEnd, OffsetLookups
from kafka.consumer.partition_state import Phase
from kafka.consumer.positions import Positions
from kafka.consumer.subscription_state import SubscriptionState
from kafka.errors import (
    CoordinatorLoadInProgressError,
    GroupAuthorizationFailedError,
    KafkaTimeoutError,
    LogTruncationError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    StaleMemberEpochError,
    TopicAuthorizationFailedError,
    UnknownMemberIdError,
    UnsupportedVersionError,
)
from kafka.net.tasks import Waiter
from kafka.protocol.api import ApiKey
from kafka.structs import OffsetAndMetadata
from test.consumer.scripted_pool import Code, ScriptedPool, questions, tp
from test.manual_loop import ManualLoop

LEADS = {'a-0': (0, 3), 'a-1': (1, 3), 'b-0': (0, 5)}
WALL = 1_600_000_000.0
A0, A1, B0 = tp('a-0'), tp('a-1'), tp('b-0')


class Lock:
    """A plain lock that tells when a turn would have to wait for itself. Attributes: held."""

    def __init__(self):
        self._lock = threading.Lock()

    @property
    def held(self):
        return self._lock.locked()

    def __enter__(self):
        assert self._lock.acquire(blocking=False), 'the lock is taken twice'

    def __exit__(self, *error):
        self._lock.release()


class Consumer:
    """The parts of a consumer that positions are about.

    Attributes: committed: {partition: offset, None}, or an error, that the group has; fetches: the
    partitions of each question for them; fetch_waiter: what the next one waits for; changes: how
    often on_change was called.
    """

    def __init__(self, policy='earliest', group=True, leads=None):
        self.loop = ManualLoop()
        self.loop.wall = lambda: WALL
        self.pool = ScriptedPool(self.loop, LEADS if leads is None else leads)
        self.subscription = SubscriptionState(policy)
        self.lock = Lock()
        self.committed, self.fetches, self.fetch_waiter = {}, [], None
        self.changes = 0
        lookups = OffsetLookups(self.loop, self.pool, False, 30.0, 0.1, 1.0, random.Random(1))
        self.positions = Positions(
            self.loop,
            self.pool,
            self.subscription,
            self.lock,
            lookups,
            self.fetch if group else None,
            self.changed,
        )

    async def fetch(self, partitions):
        self.fetches.append(sorted('%s-%d' % each for each in partitions))
        waiter, self.fetch_waiter = self.fetch_waiter, None
        if waiter is not None:
            await waiter
        if isinstance(self.committed, Exception):
            raise self.committed
        return {each: self.committed.get('%s-%d' % each) for each in partitions}

    def changed(self):
        assert not self.lock.held
        self.changes += 1

    def assign(self, *names):
        self.subscription.assign_from_user([tp(name) for name in names])
        self.look()

    def look(self, seconds=0.0):
        self.positions.look()
        self.loop.advance(seconds)

    def state(self, name):
        return self.subscription.state(tp(name))

    def seen(self):
        """Return where every partition is: its position, or its phase."""
        return {
            '%s-%d' % each: state.position if state.phase is Phase.FETCHING else state.phase
            for each, state in self.subscription.assignment.items()
        }

    def asked(self, kind=ApiKey.LIST_OFFSETS):
        return [
            (node, questions(request))
            for node, _, request in self.pool.asked
            if request.api_key == kind
        ]

    def learn(self):
        self.pool.learn()
        self.loop.settle()


def without_group(policy='earliest', leads=None):
    return Consumer(policy, False, leads)


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
    assert consumer.positions.take_error() == TopicAuthorizationFailedError('c')
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
    seen = [consumer.positions.take_error().args[0] for _ in range(4)]
    assert seen == [A0, A1, B0, A0]
    consumer.subscription.revoke([A1])
    assert [consumer.positions.take_error().args[0] for _ in range(3)] == [B0, A0, B0]


def test_nothing_is_told_of_partitions_that_are_held():
    consumer = Consumer('none')
    consumer.subscription.assign_from_user([A0])
    consumer.subscription.hold([A0])
    consumer.look()
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


# ------------------------------------------------------------ validation


def fetched(policy='earliest', leads=None):
    """Return a consumer that has handed out a-0 up to 10 in epoch 3, and fetched it up to 20."""
    consumer = without_group(policy, leads)
    consumer.pool.log = {'a-0': 0}
    consumer.assign('a-0')
    consumer.subscription.seek(A0, 0)
    consumer.learn()
    consumer.state('a-0').fetched(20, 3)
    consumer.state('a-0').consumed(10, 3)
    consumer.pool.asked.clear()
    consumer.pool.refreshes = 0
    return consumer


def move(consumer, node=1, epoch=4):
    consumer.pool.lead('a-0', node, epoch)
    consumer.learn()


def validations(consumer):
    return consumer.asked(ApiKey.OFFSET_FOR_LEADER_EPOCH)


def test_the_new_leader_is_asked_about_what_was_fetched():
    consumer = fetched()
    consumer.pool.log = {'a-0': EpochEnd(3, 20)}
    move(consumer)
    assert validations(consumer) == [(1, {'a-0': (4, 3)})]
    assert consumer.seen() == {'a-0': 10}
    assert consumer.state('a-0').fetch_offset == 20


def test_the_same_leader_in_the_same_epoch_is_not_asked():
    consumer = fetched()
    consumer.learn()
    consumer.learn()
    assert validations(consumer) == []


@pytest.mark.parametrize('version', [-1, 2])
def test_brokers_that_cannot_tell_are_trusted(version):
    consumer = fetched()
    consumer.pool.old(epochs=version)
    move(consumer)
    assert consumer.seen() == {'a-0': 10}
    assert consumer.positions.take_error() is None


def test_what_was_fetched_ahead_of_a_cut_is_fetched_again():
    consumer = fetched()
    consumer.pool.log = {'a-0': EpochEnd(3, 15)}
    move(consumer)
    assert len(validations(consumer)) == 2
    assert consumer.seen() == {'a-0': 10}
    assert consumer.state('a-0').fetch_offset == 10


def test_with_a_policy_a_cut_log_is_read_from_where_it_was_cut(caplog):
    consumer = fetched('latest')
    consumer.pool.log = {'a-0': EpochEnd(2, 7)}
    move(consumer)
    assert consumer.seen() == {'a-0': 7}
    assert consumer.state('a-0').position_epoch == 2
    assert consumer.asked() == []
    (record,) = caplog.records
    assert record.getMessage() == (
        'the log of a-0 was cut below the position 10 (epoch 3): it goes its own way from offset 7'
        ' on (epoch 2)'
    )


def test_without_a_policy_a_cut_log_is_told_with_position_and_divergence():
    consumer = fetched('none')
    consumer.pool.log = {'a-0': EpochEnd(2, 7)}
    move(consumer)
    error = consumer.positions.take_error()
    assert isinstance(error, LogTruncationError)
    assert error.divergent_offsets == {A0: OffsetAndMetadata(7, '', 2)}
    assert error.divergent_offsets[A0].leader_epoch == 2
    assert 'position 10' in str(error)
    assert consumer.state('a-0').position == 10
    assert not consumer.state('a-0').is_fetchable()
    assert consumer.positions.take_error() is error
    consumer.subscription.seek(A0, 7)
    assert consumer.positions.take_error() is None
    assert consumer.seen() == {'a-0': 7}


def test_a_log_that_is_whole_again_is_read_on():
    consumer = fetched('none')
    consumer.pool.log = {'a-0': EpochEnd(2, 7)}
    move(consumer)
    consumer.pool.log = {'a-0': EpochEnd(3, 30)}
    consumer.loop.advance(0.13)
    assert consumer.positions.take_error() is None
    assert consumer.seen() == {'a-0': 10}


def test_an_epoch_that_the_leader_does_not_know_resets_by_the_policy(caplog):
    consumer = fetched('latest')
    consumer.pool.log = {'a-0': {3: EpochEnd(-1, -1), -1: 90}}
    move(consumer)
    assert consumer.seen() == {'a-0': 90}
    assert 'goes its own way now' in caplog.text


def test_an_epoch_that_the_leader_does_not_know_is_told_without_a_policy():
    consumer = fetched('none')
    consumer.pool.log = {'a-0': EpochEnd(-1, -1)}
    move(consumer)
    assert consumer.positions.take_error().divergent_offsets == {A0: None}


def test_an_answer_of_a_leader_that_has_gone_is_not_believed():
    consumer = fetched()
    consumer.pool.log = {'a-0': EpochEnd(2, 5)}
    consumer.pool.waiting[1] = waiter = Waiter()
    move(consumer, 1, 4)
    consumer.pool.log = {'a-0': EpochEnd(3, 20)}
    move(consumer, 2, 5)
    consumer.loop.advance(0.13)
    waiter.wake()
    consumer.loop.settle()
    assert consumer.seen() == {'a-0': 10}


def test_a_leader_that_changed_while_it_was_asked_is_asked_again_at_once():
    consumer = fetched()
    consumer.pool.log = {'a-0': EpochEnd(3, 20)}
    consumer.pool.waiting[1] = waiter = Waiter()
    move(consumer, 1, 4)
    move(consumer, 1, 5)
    waiter.wake()
    consumer.loop.settle()
    assert validations(consumer) == [(1, {'a-0': (4, 3)}), (1, {'a-0': (5, 3)})]
    assert consumer.seen() == {'a-0': 10}


def test_what_has_no_epoch_any_more_needs_no_validation():
    consumer = fetched()
    consumer.pool.waiting[1] = waiter = Waiter()
    consumer.subscription.seek(A0, 10)
    consumer.state('a-0').fetched(20, 3)
    move(consumer)
    consumer.state('a-0').rewind()
    waiter.fail(KafkaTimeoutError())
    consumer.look(0.2)
    assert len(validations(consumer)) == 1
    assert consumer.seen() == {'a-0': 10}


@pytest.mark.parametrize('code', [6, 74, 75, 3])
def test_a_validation_that_fails_is_made_again(code):
    consumer = fetched()
    consumer.pool.log = {'a-0': [Code(code), EpochEnd(3, 20)]}
    move(consumer)
    assert consumer.pool.refreshes == 1
    assert consumer.state('a-0').phase is Phase.AWAIT_VALIDATION
    consumer.loop.advance(0.13)
    assert consumer.seen() == {'a-0': 10}


def test_a_committed_epoch_is_validated_before_anything_is_fetched():
    consumer = Consumer()
    consumer.committed = {'a-0': OffsetAndMetadata(5, '', 2)}
    consumer.pool.log = {'a-0': EpochEnd(2, 5)}
    consumer.assign('a-0')
    assert validations(consumer) == [(0, {'a-0': (3, 2)})]
    assert consumer.seen() == {'a-0': 5}


def test_a_committed_epoch_that_is_newer_waits_for_one_refresh():
    consumer = Consumer()
    consumer.committed = {'a-0': OffsetAndMetadata(5, '', 9)}
    consumer.pool.log = {'a-0': EpochEnd(9, 5)}
    consumer.assign('a-0')
    consumer.look()
    assert validations(consumer) == []
    assert consumer.pool.refreshes >= 1
    consumer.loop.advance(1.0)
    move(consumer, 1, 9)
    consumer.loop.advance(1.0)
    assert validations(consumer) == [(1, {'a-0': (9, 9)})]
    assert consumer.seen() == {'a-0': 5}


def test_a_committed_epoch_of_a_topic_that_is_no_more_does_not_wait_for_ever():
    consumer = Consumer('earliest', leads={'a-0': (0, 4)})
    consumer.committed = {'a-0': OffsetAndMetadata(5, '', 9)}
    consumer.pool.log = {'a-0': {9: EpochEnd(-1, -1), -2: 1}}
    consumer.assign('a-0')
    consumer.loop.advance(1.0)
    consumer.learn()
    consumer.loop.advance(1.0)
    assert consumer.seen() == {'a-0': 1}


def test_without_epochs_of_leaders_nothing_is_validated():
    consumer = Consumer(leads={'a-0': (0, -1)})
    consumer.committed = {'a-0': OffsetAndMetadata(5, '', 2)}
    consumer.assign('a-0')
    assert consumer.seen() == {'a-0': 5}
    assert consumer.pool.asked == []


# ------------------------------------------------------------ topics made anew


def anew(consumer, topic_id=b'2' * 16):
    consumer.pool.ids['a'] = topic_id
    consumer.pool.lead('a-0', 0, 0)
    consumer.learn()


@pytest.mark.parametrize('policy, offset', [('earliest', 0), ('latest', 3)])
def test_in_a_topic_made_anew_reading_begins_by_the_policy(policy, offset, caplog):
    consumer = without_group(policy)
    consumer.pool.ids['a'] = b'1' * 16
    consumer.learn()
    consumer.assign('a-0', 'b-0')
    consumer.subscription.seek(A0, 50)
    consumer.subscription.seek(B0, 60)
    consumer.state('a-0').fetched(70, 3)
    consumer.state('a-0').preferred_replica = 2
    consumer.state('a-0').committed = OffsetAndMetadata(40, '')
    consumer.pool.log = {'a-0': {-2: 0, -1: 3}}
    anew(consumer)
    assert consumer.seen() == {'a-0': offset, 'b-0': 60}
    assert (consumer.state('a-0').fetch_epoch, consumer.state('a-0').preferred_replica) == (
        -1,
        None,
    )
    assert consumer.state('a-0').committed is None
    assert 'topic a was made anew' in caplog.text
    consumer.pool.asked.clear()
    consumer.learn()
    assert consumer.pool.asked == []


def test_without_a_policy_a_topic_made_anew_has_no_such_offset():
    consumer = without_group('none')
    consumer.pool.ids['a'] = b'1' * 16
    consumer.learn()
    consumer.assign('a-0')
    consumer.subscription.seek(A0, 50)
    anew(consumer)
    error = consumer.positions.take_error()
    assert isinstance(error, OffsetOutOfRangeError)
    assert error.args == ({A0: 50},)
    consumer.subscription.seek(A0, 0)
    assert consumer.positions.take_error() is None


def test_a_committed_offset_that_is_asked_for_may_be_one_of_the_new_topic():
    consumer = Consumer()
    consumer.pool.ids['a'] = b'1' * 16
    consumer.learn()
    consumer.fetch_waiter = waiter = Waiter()
    consumer.committed = {'a-0': OffsetAndMetadata(5, '')}
    consumer.assign('a-0')
    anew(consumer)
    waiter.wake()
    consumer.loop.settle()
    assert consumer.seen() == {'a-0': 5}


def test_an_id_that_was_not_known_before_is_no_new_topic():
    consumer = without_group()
    consumer.assign('a-0')
    consumer.subscription.seek(A0, 50)
    anew(consumer)
    assert consumer.seen() == {'a-0': 50}


def test_a_topic_that_was_away_for_a_while_is_known_by_its_id():
    consumer = without_group()
    consumer.pool.ids['a'] = b'1' * 16
    consumer.learn()
    consumer.assign('a-0')
    consumer.subscription.seek(A0, 50)
    leads, consumer.pool.leads = consumer.pool.leads, {B0: (0, 5)}
    consumer.learn()
    consumer.assign('a-0', 'b-0')
    consumer.pool.leads = leads
    consumer.pool.log = {'a-0': 1, 'b-0': 2}
    anew(consumer)
    consumer.loop.advance(0.2)
    assert consumer.seen() == {'a-0': 1, 'b-0': 2}


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
    assert not consumer.loop._tasks


def test_what_the_loop_ends_is_no_mistake(caplog):
    consumer = Consumer()
    consumer.fetch_waiter = Waiter()
    consumer.assign('a-0')
    for task in list(consumer.loop._tasks):
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
    assert repr(consumer.positions) == '<Positions unsettled=2 asking=0 errors=2>'
