"""Read, transform, write: each record has its effect once, whatever goes wrong in between.

The consumer and the producer are stand-ins that keep the public contract of theirs and raise what a
test says.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import itertools
import logging
import pickle
import threading

import pytest

import kafka.exactly_once
from kafka import errors
from kafka.errors import (
    CommitFailedError,
    FencedEpochError,
    IllegalStateError,
    KafkaConfigurationError,
    KafkaError,
    KafkaTimeoutError,
    ProducerFencedError,
    TransactionAbortableError,
)
from kafka.exactly_once import ExactlyOnce
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata
from test.raising import Interruption, Raiser, needs_points
from test.scripted_clients import ALL, P0, P1, Consumer, Group, Producer, Record, Rig, copied


@pytest.fixture
def rig():
    return Rig()


# ---------------------------------------------------------------- the usual course


def test_a_step_commits_what_it_wrote_with_what_it_read(rig):
    assert rig.once.step(copied) == 6
    assert rig.values == ALL
    assert rig.offsets == {P0: 3, P1: 3}
    assert (rig.once.committed, rig.once.aborted) == (1, 0)


def test_offsets_carry_the_epoch_of_the_last_record(rig):
    rig.once.step(copied)
    assert [each.leader_epoch for each in rig.group.committed.values()] == [7, 7]


def test_offsets_stand_behind_what_nobody_reads(rig):
    """A mark at the end of a transaction takes an offset: the group would lag by it for ever."""
    rig.consumer.hidden = 1
    rig.once.step(copied)
    assert rig.offsets == {P0: 4, P1: 4}


def test_a_position_that_the_transform_moves_is_not_what_is_committed(rig):
    def transform(records):
        rig.consumer.seek(P0, 100)

    rig.once.step(transform)
    assert rig.offsets == {P0: 3, P1: 3}


def test_a_transform_that_wants_nothing_sent_commits_all_the_same(rig):
    assert rig.once.step(lambda records: None) == 6
    assert (rig.values, rig.offsets) == ([], {P0: 3, P1: 3})


def test_no_transaction_for_no_records():
    rig = Rig(records=0)
    assert rig.once.step(copied) == 0
    assert rig.producer.calls == ['init']


def test_the_transform_gets_each_partition_in_order_and_a_list_of_its_own(rig):
    seen = []

    def transform(records):
        seen.extend((each.partition, each.offset) for each in records)
        records.clear()

    assert rig.once.step(transform) == 6
    assert seen == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]


def test_polls_are_as_they_were_asked_for():
    rig = Rig(poll_timeout_ms=250, max_records=2)
    assert rig.once.step(copied) == 4
    assert rig.consumer.polls == [250]


@pytest.mark.parametrize('duplicate', [pickle.dumps, copy.copy, copy.deepcopy])
def test_it_cannot_be_pickled_or_copied(rig, duplicate):
    """Two of the same transactional id would fence each other."""
    with pytest.raises(IllegalStateError, match='make one where it is to run'):
        duplicate(rig.once)


def test_run_goes_on_until_it_is_told_to_stop():
    rig = Rig(max_records=1)
    assert rig.once.run(copied, stop=lambda: rig.once.committed == 2) == 4
    assert rig.offsets == {P0: 2, P1: 2}


def test_run_takes_an_event_too(rig):
    event = threading.Event()

    def transform(records):
        event.set()
        return copied(records)

    assert rig.once.run(transform, stop=event) == 6
    assert rig.once.run(transform, stop=event) == 0


@pytest.mark.parametrize(
    'item, sent',
    [
        (('out', b'v'), ('out', b'v', None, None, None, None)),
        (['out', b'v', b'k'], ('out', b'v', b'k', None, None, None)),
        (
            ('out', b'v', b'k', [('h', b'1')], 2, 99),
            ('out', b'v', b'k', [('h', b'1')], 2, 99),
        ),
        (  # the source's partition and time stay behind
            Record('out', 1, 5, b'v', b'k', headers=(('h', b'1'),)),
            ('out', b'v', b'k', (('h', b'1'),), None, None),
        ),
    ],
)
def test_what_a_transform_may_return(rig, item, sent):
    rig.once.step(lambda records: [item])
    assert rig.group.written == [sent]


class Named:
    topic, value, partition, timestamp_ms = 'out', b'v', 3, 5


def test_objects_that_name_their_fields(rig):
    rig.once.step(lambda records: [Named()])
    assert rig.group.written == [('out', b'v', None, None, 3, 5)]


@pytest.mark.parametrize('item', ['out', b'out', 5, ('out',), ('out', 1, 2, 3, 4, 5, 6), None])
def test_what_is_no_record_is_told(rig, item):
    with pytest.raises(TypeError, match='has to return records to send'):
        rig.once.step(lambda records: [item])
    assert rig.consumer.positions == {P0: 0, P1: 0}


# ---------------------------------------------------------------- the transform raises


def test_what_a_transform_raises_comes_out_and_nothing_stays_of_it(rig):
    def transform(records):
        yield 'out', b'half'
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        rig.once.step(transform)
    assert (rig.values, rig.offsets) == ([], {})
    assert rig.consumer.positions == {P0: 0, P1: 0}
    assert rig.once.step(copied) == 6
    assert rig.values == ALL


def test_an_error_of_ours_that_a_transform_raises_is_its_own_and_not_retried(rig):
    """It may have asked another cluster."""

    def transform(records):
        raise KafkaTimeoutError('of something else')

    with pytest.raises(KafkaTimeoutError, match='of something else'):
        rig.once.step(transform)
    assert rig.producer.calls == ['init', 'begin', 'abort']
    assert rig.pauses == []


def test_a_serializer_that_raises_is_like_the_transform(rig):
    def refuse():
        raise ValueError('cannot be written')

    rig.producer.script['send'] = collections.deque([refuse])
    with pytest.raises(ValueError, match='cannot be written'):
        rig.once.step(copied)
    assert rig.consumer.positions == {P0: 0, P1: 0}
    assert rig.once.step(copied) == 6


def test_an_interrupted_transform_is_aborted(rig):
    def transform(records):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rig.once.step(transform)
    assert rig.producer.state == 'ready'


def test_an_abort_that_fails_does_not_hide_what_the_transform_raised(rig, caplog):
    rig.producer.script['abort'] = collections.deque([ProducerFencedError('another has it')])
    with pytest.raises(ZeroDivisionError):
        rig.once.step(lambda records: 1 / 0)
    with pytest.raises(ProducerFencedError, match='cannot go on'):
        rig.once.step(copied)
    assert 'could not be aborted' in caplog.text


# ---------------------------------------------------------------- abortable errors


RETRIED = [
    TransactionAbortableError('x'),
    errors.OutOfOrderSequenceNumberError('x'),
    errors.UnknownProducerIdError('x'),
    FencedEpochError('the transaction took too long'),
    errors.NotEnoughReplicasError('x'),
    errors.IllegalGenerationError('x'),
    errors.UnknownMemberIdError('x'),
    errors.RebalanceInProgressError('x'),
    errors.StaleMemberEpochError('x'),
    CommitFailedError(),
]


@pytest.mark.parametrize('call', ['send', 'offsets', 'commit'])
@pytest.mark.parametrize('error', RETRIED, ids=lambda error: type(error).__name__)
def test_what_may_go_well_is_tried_again_from_where_it_began(rig, call, error):
    rig.producer.script[call] = collections.deque([error])
    assert rig.once.step(copied) == 6
    assert rig.values == ALL
    assert rig.offsets == {P0: 3, P1: 3}
    assert (rig.once.committed, rig.once.aborted) == (1, 1)
    assert rig.pauses == [0.1]


def test_a_record_that_was_not_delivered_in_time_is_tried_again(rig):
    """A producer tells it, on the calls behind it, by a KafkaError with the cause."""
    error = KafkaError('commit_transaction() is not possible, call abort_transaction()')
    error.__cause__ = KafkaTimeoutError('not delivered')
    rig.producer.script['commit'] = collections.deque([error])
    assert rig.once.step(copied) == 6
    assert rig.values == ALL


def test_a_buffer_that_is_full_for_too_long_is_tried_again(rig):
    rig.producer.script['send'] = collections.deque([None, KafkaTimeoutError('full')])
    assert rig.once.step(copied) == 6
    assert rig.values == ALL


@pytest.mark.parametrize(
    'error',
    [
        errors.TopicAuthorizationFailedError('out'),
        errors.MessageSizeTooLargeError('out'),
        errors.GroupAuthorizationFailedError('g'),
        KafkaError('something else'),
    ],
)
def test_what_no_try_cures_is_raised_with_the_consumer_back(rig, error):
    rig.producer.script['send'] = collections.deque([None, error])
    with pytest.raises(type(error)):
        rig.once.step(copied)
    assert (rig.values, rig.offsets, rig.pauses) == ([], {}, [])
    assert rig.consumer.positions == {P0: 0, P1: 0}
    assert rig.once.step(copied) == 6  # it is usable


def test_tries_are_bounded_and_further_and_further_apart():
    rig = Rig(max_tries=6, retry_backoff_max_ms=1000)
    rig.producer.script['commit'] = collections.deque([TransactionAbortableError('x')] * 100)
    with pytest.raises(TransactionAbortableError):
        rig.once.step(copied)
    assert rig.pauses == [0.1, 0.2, 0.4, 0.8, 1.0]
    assert rig.producer.calls.count('begin') == 6
    assert rig.consumer.positions == {P0: 0, P1: 0}


def test_after_a_raised_error_the_next_step_has_all_its_tries():
    rig = Rig(max_tries=2)
    rig.producer.script['commit'] = collections.deque([TransactionAbortableError('x')] * 3)
    with pytest.raises(TransactionAbortableError):
        rig.once.step(copied)
    assert rig.once.step(copied) == 6


def test_a_success_ends_the_row_of_failures():
    rig = Rig(max_tries=2, max_records=1)
    error = TransactionAbortableError('x')
    rig.producer.script['commit'] = collections.deque([error, None, error, None])
    assert rig.once.step(copied) + rig.once.step(copied) == 4
    assert rig.pauses == [0.1, 0.1]


# ---------------------------------------------------------------- rebalances


def test_a_group_that_moved_on_costs_the_transaction_and_what_is_lost_is_dropped(rig):
    """Partition 1 goes to somebody else, who has committed up to 2 meanwhile."""

    def moved():
        rig.group.generation += 1

    def rebalanced():
        rig.consumer.rebalance([P0])

    rig.producer.script['offsets'] = collections.deque([moved])
    rig.consumer.before_poll = collections.deque([lambda: None, rebalanced])
    assert rig.once.step(copied) == 3
    assert rig.values == [b'0', b'1', b'2']
    assert rig.offsets == {P0: 3}


def test_what_is_lost_before_the_transaction_is_aborted_is_not_sought(rig):
    rig.producer.script['commit'] = collections.deque([TransactionAbortableError('x')])
    rig.producer.script['abort'] = collections.deque([lambda: rig.consumer.positions.pop(P1)])
    assert rig.once.step(copied) == 3
    assert rig.values == [b'0', b'1', b'2']


def test_the_member_is_the_one_that_was_handed_the_records(rig):
    """Thrown out while it transforms, it is nobody: offsets of nobody are fenced by nobody."""

    def transform(records):
        rig.consumer.who = ConsumerGroupMetadata('g')
        rig.group.generation += 1
        return copied(records)

    rig.consumer.before_poll = collections.deque([lambda: None, lambda: rig.consumer.rebalance([])])
    assert rig.once.step(transform) == 0
    assert (rig.values, rig.offsets, rig.once.aborted) == ([], {}, 1)


def test_who_was_thrown_out_just_after_the_poll_transforms_nothing(rig):
    rig.consumer.who = ConsumerGroupMetadata('g')
    rig.consumer.before_poll = collections.deque(
        [lambda: None, lambda: rig.consumer.rebalance([P0])]
    )
    assert rig.once.step(copied) == 3
    assert rig.values == [b'0', b'1', b'2']
    assert rig.producer.calls.count('begin') == 1
    assert rig.pauses == [0.1]


def test_a_member_that_still_counts_goes_on_at_once(rig):
    """The group says so to a commit of where the transaction began."""
    rig.producer.script['offsets'] = collections.deque([errors.IllegalGenerationError('x')])
    assert rig.once.step(copied) == 6
    assert [sorted(each.values()) for each in rig.consumer.commits] == [[(0, ''), (0, '')]]
    assert (rig.pauses, rig.consumer.polls) == ([0.1], [1000, 1000])


def test_a_member_that_was_replaced_goes_on_when_it_has_heard_of_it(rig):
    def moved():
        rig.group.generation += 1

    rig.producer.script['offsets'] = collections.deque([moved])
    polls = [lambda: None] * 3 + [lambda: rig.consumer.rebalance([P0])]
    rig.consumer.before_poll = collections.deque(polls)
    assert rig.once.step(copied) == 3
    assert rig.producer.calls.count('begin') == 2
    assert rig.pauses == [0.1, 0.05, 0.05, 0.05]
    assert rig.values == [b'0', b'1', b'2']


@pytest.mark.parametrize('protocol, looks', [('classic', 13), ('consumer', 201)])
def test_two_heartbeats_are_waited_for_it_at_most(protocol, looks):
    rig = Rig(max_tries=2)
    rig.consumer.config.update(group_protocol=protocol, heartbeat_interval_ms=300)
    rig.group.generation += 1
    with pytest.raises(errors.IllegalGenerationError):
        rig.once.step(copied)
    assert len(rig.pauses) == 1 + looks
    assert rig.consumer.positions == {P0: 0, P1: 0}


def test_partitions_that_were_assigned_by_hand_need_no_generation(rig):
    rig.consumer.who = ConsumerGroupMetadata('g')
    rig.consumer.is_member = False
    assert rig.once.step(copied) == 6


# ---------------------------------------------------------------- calls that take too long


def test_a_commit_that_takes_long_is_called_again_never_aborted(rig):
    late = KafkaTimeoutError('it goes on')
    rig.producer.script['commit'] = collections.deque([late, late])
    assert rig.once.step(copied) == 6
    assert rig.producer.calls[-3:] == ['commit'] * 3
    assert 'abort' not in rig.producer.calls
    assert rig.values == ALL


def test_a_commit_that_is_never_answered_comes_out_and_goes_on_in_the_next_step():
    rig = Rig(max_tries=2, max_records=1)
    late = KafkaTimeoutError('it goes on')
    rig.producer.script['commit'] = collections.deque([late] * 3)
    with pytest.raises(KafkaTimeoutError):
        rig.once.step(copied)
    assert len(rig.consumer.polls) == 1
    assert rig.once.step(copied) == 4  # two of the first transaction, two of the second
    assert rig.values == [b'0', b'0', b'1', b'1']
    assert 'abort' not in rig.producer.calls
    assert repr(rig.once) == '<ExactlyOnce ready committed=2 aborted=0>'


def test_a_commit_that_fails_after_all_is_aborted_and_done_anew():
    rig = Rig(max_tries=2)
    rig.producer.script['commit'] = collections.deque([KafkaTimeoutError('it goes on')] * 2)
    with pytest.raises(KafkaTimeoutError):
        rig.once.step(copied)
    rig.producer.state = 'commit'
    rig.producer.script['commit'] = collections.deque([TransactionAbortableError('x')])
    assert rig.once.step(copied) == 6
    assert rig.values == ALL


def test_an_abort_that_is_never_answered_comes_out_and_goes_on_in_the_next_step():
    rig = Rig(max_tries=2)
    rig.producer.script['commit'] = collections.deque([TransactionAbortableError('x')])
    rig.producer.script['abort'] = collections.deque([KafkaTimeoutError('it goes on')] * 2)
    with pytest.raises(KafkaTimeoutError) as raised:
        rig.once.step(copied)
    assert isinstance(raised.value.__cause__, TransactionAbortableError)
    assert rig.once.step(copied) == 6
    assert rig.values == ALL


def test_offsets_that_take_long_are_sent_again_and_at_last_aborted():
    rig = Rig(max_tries=2)
    rig.producer.script['offsets'] = collections.deque([KafkaTimeoutError('it goes on')] * 3)
    assert rig.once.step(copied) == 6
    assert rig.producer.calls.count('offsets') == 4
    assert (rig.once.aborted, rig.values) == (1, ALL)


def test_getting_ready_takes_as_many_calls_as_tries(rig):
    rig.producer.script['init'] = collections.deque([KafkaTimeoutError('it goes on')] * 4)
    assert rig.once.step(copied) == 6


def test_getting_ready_in_vain_is_raised_and_tried_by_the_next_step(rig):
    rig.producer.script['init'] = collections.deque([KafkaTimeoutError('it goes on')] * 5)
    with pytest.raises(KafkaTimeoutError):
        rig.once.step(copied)
    assert rig.consumer.polls == []
    assert rig.once.step(copied) == 6


def test_an_interrupted_commit_goes_on_in_the_next_step(rig):
    def interrupt():
        raise KeyboardInterrupt

    rig.producer.script['commit'] = collections.deque([interrupt])
    with pytest.raises(KeyboardInterrupt):
        rig.once.step(copied)
    assert rig.once.step(copied) == 6
    assert 'abort' not in rig.producer.calls
    assert rig.values == ALL


# ---------------------------------------------------------------- the end


@pytest.mark.parametrize('call', ['init', 'begin', 'send', 'offsets', 'commit', 'abort'])
def test_who_is_fenced_is_finished(rig, call):
    if call == 'abort':
        rig.producer.script['commit'] = collections.deque([FencedEpochError('by a leader')])
    rig.producer.script[call] = collections.deque([ProducerFencedError('another has it')])
    with pytest.raises(ProducerFencedError):
        rig.once.step(copied)
    for _ in range(2):
        with pytest.raises(ProducerFencedError, match='make a new one with a new producer'):
            rig.once.step(copied)
    assert rig.values == []
    assert 'finished by an error' in repr(rig.once)


def test_a_fenced_member_of_the_group_is_finished_with_its_transaction_aborted(rig):
    def fence():
        rig.producer.state = 'abortable'
        raise errors.FencedInstanceIdError('another has the group_instance_id')

    rig.producer.script['offsets'] = collections.deque([fence])
    with pytest.raises(errors.FencedInstanceIdError):
        rig.once.step(copied)
    assert rig.producer.state == 'ready'
    with pytest.raises(errors.FencedInstanceIdError, match='cannot go on'):
        rig.once.step(copied)


def test_a_producer_that_cannot_abort_is_finished(rig):
    """An error that is fatal to the producer without being so by its class."""
    rig.producer.script['commit'] = collections.deque([errors.InvalidTxnStateError('x')])
    rig.producer.script['abort'] = collections.deque([errors.InvalidTxnStateError('not any more')])
    with pytest.raises(errors.InvalidTxnStateError, match='not any more'):
        rig.once.step(copied)
    with pytest.raises(KafkaError, match='cannot go on.*not any more'):
        rig.once.step(copied)


def test_after_close_nothing_is_done(rig):
    with rig.once as once:
        once.step(copied)
    with pytest.raises(IllegalStateError, match='closed'):
        rig.once.step(copied)
    rig.once.close()


def test_leaving_the_block_finishes_a_commit():
    rig = Rig(max_tries=1)
    with pytest.raises(KafkaTimeoutError), rig.once as once:
        rig.producer.script['commit'] = collections.deque([KafkaTimeoutError('it goes on')])
        once.step(copied)
    assert rig.values == ALL


def test_the_end_tries_a_commit_once_only():
    rig = Rig(max_tries=3)
    rig.producer.script['commit'] = collections.deque([KafkaTimeoutError('it goes on')] * 9)
    with pytest.raises(KafkaTimeoutError):
        rig.once.step(copied)
    with pytest.raises(KafkaTimeoutError):
        rig.once.close()
    assert rig.producer.calls.count('commit') == 4


def test_what_a_block_raises_is_not_hidden_by_its_end(caplog):
    rig = Rig(max_tries=1)
    with pytest.raises(ZeroDivisionError), rig.once as once:
        rig.producer.script['commit'] = collections.deque([KafkaTimeoutError('it goes on')] * 2)
        try:
            once.step(copied)
        finally:
            raise ZeroDivisionError
    assert 'could not be closed in order' in caplog.text


def test_one_that_is_finished_can_be_closed(rig):
    rig.producer.script['begin'] = collections.deque([ProducerFencedError('x')])
    with pytest.raises(ProducerFencedError), rig.once as once:
        once.step(copied)
    rig.once.close()


def test_what_poll_raises_comes_out_and_costs_nothing(rig):
    def refuse():
        raise errors.NoOffsetForPartitionError(P0)

    rig.consumer.before_poll.append(refuse)
    with pytest.raises(errors.NoOffsetForPartitionError):
        rig.once.step(copied)
    assert rig.once.step(copied) == 6


# ---------------------------------------------------------------- options


@pytest.mark.parametrize(
    'reads, writes, text',
    [
        ({'enable_auto_commit': True}, {}, 'enable_auto_commit=False'),
        ({'group_id': None}, {}, 'group_id'),
        ({}, {'transactional_id': None}, 'transactional_id'),
    ],
)
def test_clients_that_cannot_do_it_are_refused(reads, writes, text):
    group = Group()
    consumer, producer = Consumer(group), Producer(group)
    consumer.config.update(reads)
    producer.config.update(writes)
    with pytest.raises(KafkaConfigurationError, match=text):
        ExactlyOnce(consumer, producer)


def test_no_tries_at_all_cannot_be_meant():
    with pytest.raises(KafkaConfigurationError, match='max_tries'):
        Rig(max_tries=0)


def test_a_consumer_that_reads_uncommitted_records_is_warned_of(caplog):
    group = Group()
    consumer = Consumer(group)
    consumer.config['isolation_level'] = 'read_uncommitted'
    with caplog.at_level(logging.WARNING):
        ExactlyOnce(consumer, Producer(group))
    assert 'read_committed does not' in caplog.text


def test_offsets_are_values_of_the_contract(rig):
    rig.once.step(copied)
    assert all(type(each) is OffsetAndMetadata for each in rig.group.committed.values())


# ---------------------------------------------------------------- interrupted


def located(records):
    return [('out', b'%d' % each.offset, b'%d' % each.partition) for each in records]


def has_each_once(rig):
    """Return True if what was written for good is what is before the committed offsets."""
    written = [(int(key), int(value)) for _, value, key, *_ in rig.group.written]
    ends = rig.offsets.items()
    return sorted(written) == [(at.partition, n) for at, end in sorted(ends) for n in range(end)]


@needs_points
@pytest.mark.parametrize('is_closed', [False, True])
def test_an_exception_at_any_point_of_a_step_loses_and_doubles_no_record(is_closed):
    for at in itertools.count():
        rig = Rig(records=6, max_records=2)
        rig.once.step(located)
        raiser = Raiser(at, within=[kafka.exactly_once.__file__])
        try:
            with raiser:
                rig.once.step(located)
        except Interruption:
            pass
        else:
            break
        if is_closed:
            rig.once.close()
            assert rig.consumer.positions == rig.offsets, raiser.raised_at
        else:
            while rig.once.step(located):
                assert has_each_once(rig), raiser.raised_at
            assert rig.offsets == {P0: 6, P1: 6}, raiser.raised_at
        assert has_each_once(rig), raiser.raised_at
    assert at > 50


@pytest.mark.parametrize('call', ['begin', 'abort'])
def test_an_exception_as_a_call_of_the_producer_returns_loses_no_record(rig, call):
    """It is not known then whether there is a transaction."""
    done = getattr(rig.producer, call + '_transaction')

    def interrupted():
        setattr(rig.producer, call + '_transaction', done)
        done()
        raise Interruption

    setattr(rig.producer, call + '_transaction', interrupted)
    if call == 'abort':
        rig.producer.script['offsets'] = collections.deque([errors.UnknownProducerIdError('x')])
    with pytest.raises(Interruption):
        rig.once.step(copied)
    assert rig.once.step(copied) == 6
    assert rig.values == ALL


@pytest.mark.parametrize(
    'error', [errors.TransactionAbortableError('x'), IllegalStateError('x'), KafkaTimeoutError('x')]
)
def test_a_transaction_that_cannot_begin_loses_no_record(rig, error):
    rig.producer.script['begin'] = collections.deque([error])
    for _ in range(2):
        with contextlib.suppress(IllegalStateError):
            rig.once.step(copied)
    assert rig.values == ALL
