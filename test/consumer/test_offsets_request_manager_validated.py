"""OffsetsRequestManager: positions in logs that were truncated or deleted (KIP-320)."""

from __future__ import annotations

import pytest

from kafka.consumer.partition_state import Phase
from kafka.errors import (
    KafkaTimeoutError,
    LogTruncationError,
    OffsetOutOfRangeError,
)
from kafka.net.loop.tasks import Waiter
from kafka.offsets.lookups import EpochEnd
from kafka.protocol.api import ApiKey
from kafka.structs import OffsetAndMetadata
from test.consumer.scripted_pool import Code
from test.consumer.settling import A0, B0, Consumer, without_group

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
    assert 'topic a was created again' in caplog.text
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
