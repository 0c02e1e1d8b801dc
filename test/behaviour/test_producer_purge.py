"""purge() gives records up that have no outcome, and len() tells how many these are."""

from __future__ import annotations

import os
import threading

import pytest

from kafka import KafkaProducer
from kafka.errors import (
    IllegalStateError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    PurgedError,
)
from kafka.producer.sequence_numbers import Identity
from kafka.producer.transaction_state import TransactionState
from kafka.producer.transaction_table import TxnState
from kafka.testing import Cluster
from kafka.testing.faults import Hang
from test.behaviour.test_producer_forks import in_child
from test.producer.sending_by_hand import Rig
from test.stored import stored

NEVER_SENT, MAYBE_STORED = 'dropped them before they were sent', 'they may be stored'


# ---------------------------------------------------------------- the sender, by hand


def idempotent(**more):
    """Return a sender whose brokers know it, so that several batches are under way."""
    state = TransactionState()
    state.sequences.begin(Identity(7, 0))
    rig = Rig(produce=(3, 12), state=state, **more)
    answer(rig, *rig.go(b'first'))
    return rig


def answer(rig, *futures):
    for sent in rig.sent:
        if not sent.answer.done:
            sent.respond()
    rig.loop.settle()
    assert all(future.succeeded() for future in futures)


def purge(rig, in_queue=True, in_flight=True):
    rig.sender.purge(in_queue, in_flight)
    rig.loop.settle()


def fate(future):
    """Return what a future that purge() has failed says."""
    assert type(future.exception) is PurgedError and not future.exception.retriable
    return str(future.exception)


def test_what_was_never_sent_is_dropped_and_what_is_on_the_wire_stays():
    rig = Rig(max_in_flight=1)
    sent, waits = rig.go(b'x' * 900, b'y' * 900)
    purge(rig, in_flight=False)
    assert NEVER_SENT in fate(waits) and '1 records for t-0' in fate(waits)
    assert not sent.is_done
    answer(rig, sent)
    assert len(rig.sent) == 1 and rig.accumulator.memory.used == 0 and rig.accumulator.is_empty()


def test_what_is_on_the_wire_is_given_up_and_what_waits_is_sent_behind_it():
    rig = Rig(max_in_flight=1)
    sent, waits = rig.go(b'x' * 900, b'y' * 900)
    purge(rig, in_queue=False)
    assert MAYBE_STORED in fate(sent)
    assert len(rig.sent) == 1, 'nothing overtakes what may still arrive'
    rig.sent[0].respond((0, 7))  # an error after which it would be tried again
    rig.loop.advance(5.0)
    assert rig.sent[1].values == {0: [b'y' * 900]}
    answer(rig, waits)
    assert len(rig.sent) == 2 and rig.accumulator.memory.used == 0


def test_what_waits_to_be_sent_again_is_in_a_queue_and_may_be_stored():
    rig = Rig()
    (again,) = rig.go(b'v')
    rig.sent[0].answer.fail(KafkaConnectionError('gone'))
    rig.loop.settle()
    purge(rig, in_queue=False)
    assert not again.is_done
    purge(rig, in_flight=False)
    assert MAYBE_STORED in fate(again)
    rig.loop.advance(5.0)
    assert len(rig.sent) == 1


def test_neither_of_both_is_nothing():
    rig = Rig(max_in_flight=1)
    futures = rig.go(b'x' * 900, b'y' * 900)
    purge(rig, False, False)
    assert not any(future.is_done for future in futures)


def test_callbacks_come_in_the_order_of_sending_and_may_send():
    rig = Rig(max_in_flight=2)
    order, new = [], []
    futures = [rig.send(b'%d' % number * 900) for number in range(4)]
    for number, future in enumerate(futures):
        future.add_errback(lambda error, number=number: order.append(number))
    futures[0].add_errback(lambda error: new.append(rig.send(b'new')))
    rig.loop.settle()
    rig.sent[0].answer.fail(KafkaConnectionError('gone'))  # the first waits now, the third goes
    rig.loop.settle()
    purge(rig)
    assert order == [0, 1, 2, 3]
    rig.loop.advance(1.0)
    answer(rig, *new)
    assert rig.sent[-1].values == {0: [b'new']}


def test_whoever_is_failed_by_a_callback_is_not_failed_twice():
    rig = Rig(max_in_flight=2)
    first, second, _ = rig.go(b'x' * 900, b'y' * 900, b'z' * 900)
    assert len(rig.sent) == 2
    first.add_errback(lambda error: rig.sender.abort(KafkaError('closed')))
    purge(rig)
    assert 'closed' in str(second.exception)


def test_no_number_is_missing_where_nothing_was_sent():
    rig = idempotent(max_in_flight=1)
    sent, waits = rig.go(b'x' * 900, b'y' * 900)
    purge(rig, in_flight=False)
    answer(rig, sent)
    (behind,) = rig.go(b'z')
    batch = behind.batch
    assert (batch.producer_epoch, batch.base_sequence) == (0, 2)
    answer(rig, behind)
    assert NEVER_SENT in fate(waits)


def test_a_new_epoch_begins_behind_what_was_sent_and_is_lost():
    rig = idempotent()
    (sent,) = rig.go(b'x')
    purge(rig)
    (behind,) = rig.go(b'y')
    assert MAYBE_STORED in fate(sent) and len(rig.sent) == 2, 'its fate has to be known first'
    rig.sent[1].answer.fail(KafkaConnectionError('gone'))
    rig.loop.advance(1.0)
    batch = behind.batch
    assert (batch.producer_epoch, batch.base_sequence) == (1, 0)
    answer(rig, behind)


def test_the_epoch_stays_where_what_was_purged_turns_out_to_be_stored():
    rig = idempotent()
    rig.go(b'x')
    purge(rig)
    (behind,) = rig.go(b'y')
    answer(rig)
    answer(rig, behind)
    batch = behind.batch
    assert (batch.producer_epoch, batch.base_sequence) == (0, 2)


def in_transaction():
    state = TransactionState('x')
    state.set_brokers(v2=True)
    operation = state.initialize()
    rig = Rig(produce=(3, 12), state=state, max_in_flight=1)
    state._on_identity(Identity(7, 0))
    operation.tell()
    state.begin()
    return rig, state


@pytest.mark.parametrize('ends', [False, True])
def test_nothing_is_committed_without_a_purged_record(ends):
    rig, state = in_transaction()
    rig.go(b'x' * 900, b'y' * 900)
    operation = state.commit() if ends else None
    purge(rig, in_flight=False)
    assert state.state is TxnState.ABORTABLE_ERROR and type(state.error) is PurgedError
    with pytest.raises(KafkaError, match='before they were sent'):
        (operation or state.commit()).tell()


def test_what_waits_in_a_transaction_fails_with_what_was_purged_on_the_wire():
    rig, _ = in_transaction()
    sent, waits = rig.go(b'x' * 900, b'y' * 900)
    purge(rig, in_queue=False)
    assert waits.exception == sent.exception and MAYBE_STORED in fate(sent)


@pytest.mark.parametrize('ends', [False, True])
def test_nothing_is_committed_without_a_purged_value_of_a_box(ends, caplog):
    rig, state = in_transaction()
    rig.accumulator.open_box(rig.topic, rig.loop.now, rig.loop.now)
    rig.topic.put_in_box(b'forgotten')
    assert rig.accumulator.records == 1
    if ends:
        state.commit()
    rig.sender.purge(True, False)
    assert state.state is TxnState.ABORTABLE_ERROR and rig.accumulator.is_empty()
    assert '1 records for t: purge() dropped them' in caplog.text and 'forgotten' not in caplog.text


# ---------------------------------------------------------------- the producer


@pytest.fixture
def cluster():
    with Cluster(version='4.4', topics={'t': 1}) as running:
        yield running


@pytest.fixture
def producer(cluster):
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, linger_ms=100_000) as made:
        yield made


def test_len_counts_records_until_they_have_their_outcome(producer, cluster):
    assert len(producer) == 0 and bool(producer)
    producer.send('t', b'1')
    producer.send_many('t', [b'2', b'3'])
    producer.send_and_forget('t', b'4')
    assert len(producer) == 4
    producer.flush()
    assert len(producer) == 0 and bool(producer) and len(stored(cluster)) == 4


def test_len_counts_what_is_on_the_wire(producer, cluster):
    arrived = threading.Event()
    cluster.faults.add(Hang(), 'Produce', where=lambda call: arrived.set() or True)
    future = producer.send('t', b'v')
    with pytest.raises(AssertionError):
        producer.flush(0.05)
    assert arrived.wait(20) and len(producer) == 1
    assert producer.purge() is None
    assert MAYBE_STORED in fate(future) and len(producer) == 0
    producer.flush(20)
    producer.close(0)


def test_what_is_purged_has_failed_when_the_call_returns(producer, cluster):
    told = []
    future = producer.send('t', b'v').add_errback(told.append)
    producer.purge()
    assert NEVER_SENT in fate(future) and told == [future.exception]
    with pytest.raises(PurgedError):
        future.get()
    kept = producer.send('t', b'kept')
    producer.flush()
    assert kept.get(20).offset == 0 and stored(cluster) == [b'kept']


def test_purging_in_a_callback_comes_behind_it(producer):
    seen = []
    later = []

    def again(metadata):
        later.append(producer.send('t', b'later'))
        producer.purge()
        seen.append(later[0].is_done)

    producer.send('t', b'v').add_callback(again)
    producer.flush()
    with pytest.raises(PurgedError):
        later[0].get(20)
    assert seen == [False]


def test_nobody_has_to_be_there_to_purge():
    with KafkaProducer(
        bootstrap_servers='127.0.0.1:1', api_version=(2, 8), max_block_ms=50
    ) as producer:
        producer.purge()
        assert len(producer) == 0


def test_a_closed_producer_has_nothing_to_purge(producer):
    producer.close()
    producer.purge()
    assert len(producer) == 0 and producer


def test_whoever_keeps_the_loop_keeps_purge_for_a_bounded_time(cluster):
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, max_block_ms=20_000) as producer:
        inside, goes_on = threading.Event(), threading.Event()

        def stay(metadata):
            inside.set()
            goes_on.wait(20)

        producer.send('t', b'v').add_callback(stay)
        assert inside.wait(20)
        producer._max_block = 0.05
        try:
            with pytest.raises(KafkaTimeoutError, match='callback has not'):
                producer.purge()
        finally:
            goes_on.set()


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='this system has no fork')
def test_the_child_of_a_fork_has_nothing_to_count_or_purge(producer):
    def work():
        for verb in (producer.purge, producer.__len__):
            with pytest.raises(IllegalStateError, match='forked'):
                verb()
        return producer and 'refused'

    assert in_child(work) == 'refused'
