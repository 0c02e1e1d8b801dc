"""Transactions as tables of calls and answers, without brokers: what is asked, and what follows."""

from __future__ import annotations

import re

import pytest

from kafka import errors
from kafka.errors import IllegalStateError, KafkaConnectionError, KafkaError, KafkaTimeoutError
from kafka.producer.produce_errors import ProduceAction
from kafka.producer.transaction_errors import CallKind
from kafka.producer.transaction_state import TransactionState
from kafka.producer.transaction_table import TxnState
from test.producer.answered import MEMBER, OFFSETS, OTHER, Producer, old, v1, v2
from test.producer.numbered import PLACE, Batch, answer

__all__ = ['old', 'v1', 'v2']  # fixtures


# ---------------------------------------------------------------- init_transactions()


def test_initializing_asks_for_the_producer_id(v2):
    operation = v2.initialize()
    ask = v2.ask()
    assert ask.kind is CallKind.INIT_PRODUCER_ID
    assert (ask.request.transactional_id, ask.request.producer_id) == ('pay', -1)
    assert ask.key == 'pay' and not ask.is_of_group
    v2.respond(producer_id=7, producer_epoch=3)
    assert operation.is_done and operation.error is None
    assert v2.sequences.identity == (7, 3)
    assert v2.state is TxnState.READY and v2.is_v2


def test_repeated_call_goes_on_with_the_same_operation(v2):
    operation = v2.initialize()
    assert v2.initialize() is operation
    v2.respond()
    assert v2.initialize() is operation  # whose caller had stopped waiting
    operation.tell()
    later = v2.initialize()
    assert later.is_done and v2.ask() is None


@pytest.mark.parametrize('verb', ['begin', 'commit', 'abort'])
def test_other_calls_wait_until_the_first_was_repeated(v2, verb):
    v2.initialize()
    v2.respond()
    with pytest.raises(IllegalStateError, match=r'init_transactions\(\) was called before'):
        getattr(v2, verb)()


@pytest.mark.parametrize(('code', 'refinds'), [(51, False), (14, False), (15, True), (16, True)])
def test_initializing_is_tried_again(v2, code, refinds):
    operation = v2.initialize()
    assert v2.respond(code) == (None, refinds)
    assert not operation.is_done
    assert v2.lose() == (None, True)
    assert v2.ask().kind is CallKind.INIT_PRODUCER_ID


def test_no_right_to_initialize_is_told_each_time(v2):
    for _ in range(2):
        operation = v2.initialize()
        v2.respond(53)
        with pytest.raises(errors.TransactionalIdAuthorizationFailedError):
            operation.tell()
    v2.initialize()
    v2.respond()
    assert v2.state is TxnState.READY  # rights have come


@pytest.mark.parametrize('code', [47, 90])
def test_fenced_while_initializing_is_fatal(v2, code):
    operation = v2.initialize()
    v2.respond(code)
    with pytest.raises(errors.ProducerFencedError):
        operation.tell()
    for verb in (v2.initialize, v2.begin, v2.commit, v2.abort, v2.check_send):
        with pytest.raises(errors.ProducerFencedError, match='close the producer'):
            verb()


def test_broker_that_gives_no_producer_id_is_found_out(v2):
    operation = v2.initialize()
    v2.respond(producer_id=-1, producer_epoch=-1)
    with pytest.raises(errors.ProtocolError):
        operation.tell()


# ---------------------------------------------------------------- wrong order


def test_calls_out_of_order(v2):
    cases = [
        (v2.begin, 'init_transactions'),
        (v2.commit, 'init_transactions'),
        (v2.abort, 'init_transactions'),
        (v2.check_send, 'begin_transaction'),
    ]
    for verb, advice in cases:
        with pytest.raises(IllegalStateError, match=advice):
            verb()
    v2.initialized()
    for verb in (v2.commit, v2.abort, v2.check_send):
        with pytest.raises(IllegalStateError, match='begin_transaction'):
            verb()
    v2.begin()
    v2.check_send()
    with pytest.raises(IllegalStateError, match='commit or abort'):
        v2.begin()
    v2.commit()
    with pytest.raises(IllegalStateError):
        v2.check_send()
    with pytest.raises(IllegalStateError, match=r'commit_transaction\(\) was called'):
        v2.abort()


@pytest.mark.parametrize('verb', ['initialize', 'begin', 'commit', 'abort'])
def test_idempotent_producer_has_no_transactions(verb):
    with pytest.raises(IllegalStateError, match='transactional_id'):
        getattr(TransactionState(), verb)()


# ---------------------------------------------------------------- a transaction


def test_v2_sends_at_once_and_gets_its_next_epoch_with_the_end(v2):
    v2.initialized()
    v2.begin()
    batch, verdict = v2.store()
    assert verdict.action is ProduceAction.DONE
    assert batch.stamps == [(7, 0, 0)] and batch.is_transactional
    operation = v2.commit()
    ask = v2.ask()
    assert (ask.kind, ask.lowest, ask.highest) == (CallKind.END, 5, 5)
    assert ask.request.committed
    v2.respond(producer_id=7, producer_epoch=1)
    operation.tell()
    v2.begin()
    assert v2.store()[0].stamps == [(7, 1, 0)]


def test_v2_follows_to_a_new_producer_id(v2):
    v2.begun().commit()
    v2.respond(producer_id=8, producer_epoch=0)
    assert v2.sequences.identity == (8, 0)


def test_v2_end_without_a_next_producer_id_is_no_end(v2):
    operation = v2.begun().commit()
    v2.respond(0)
    with pytest.raises(errors.ProtocolError, match='producer id'):
        operation.tell()


def test_v1_adds_partitions_first_and_keeps_its_epoch(v1):
    v1.initialized()
    v1.begin()
    batch, other = Batch(), Batch(place=OTHER)
    assert not v1.may_send(batch) and not v1.may_send(other)
    ask = v1.ask()
    assert (ask.kind, ask.highest) == (CallKind.ADD_PARTITIONS, 3)
    assert ask.request.v3_and_below_topics[0].partitions == [0, 1]
    v1.respond()
    assert v1.may_send(batch) and v1.may_send(other)
    v1.store(count=2)
    operation = v1.commit()
    assert (v1.ask().kind, v1.ask().highest) == (CallKind.END, 4)
    v1.respond()
    operation.tell()
    v1.begin()
    assert v1.store()[0].stamps == [(7, 0, 2)]  # numbers go on


def test_commit_waits_for_every_batch(v2):
    v2.begun()
    batch = Batch()
    v2.stamp(batch)
    v2.commit()
    assert v2.needs(is_flushed=False) is None
    assert v2.needs(is_flushed=True) is None  # it is on the wire
    v2.on_produced(batch, answer(0, 1))
    assert v2.needs(is_flushed=False) is None  # others wait to be sent
    assert v2.needs(is_flushed=True).kind is CallKind.END


def test_nothing_is_sent_any_more_once_the_end_is_asked_for(v2):
    v2.begun().commit()
    assert v2.ask().kind is CallKind.END
    late = Batch()
    assert not v2.may_send(late)
    v2.give_up(late, KafkaTimeoutError('late'))
    assert v2.state is TxnState.COMMITTING  # it never belonged to this transaction


@pytest.mark.parametrize('verb', ['commit', 'abort'])
def test_empty_transaction_asks_nobody(v2, v1, verb):
    for producer in (v2, v1):
        producer.initialized()
        producer.begin()
        operation = getattr(producer, verb)()
        assert producer.ask() is None
        operation.tell()
        assert producer.state is TxnState.READY


@pytest.mark.parametrize('commits', [True, False])
def test_end_is_repeated_until_it_is_answered(v2, commits):
    v2.begun()
    operation = v2.commit() if commits else v2.abort()
    first = v2.ask()
    for _ in range(3):
        assert v2.lose() == (None, True)
        assert v2.respond(51).backoff_ms is None
        assert v2.respond(16).refinds
        assert v2.ask() == first  # the same call with the same epoch
        with pytest.raises(IllegalStateError):
            v2.begin()
    assert not operation.is_done
    v2.respond(producer_id=7, producer_epoch=1)
    operation.tell()


@pytest.mark.parametrize('what', ['batch', 'end'])
def test_version_2_that_is_no_more_is_fatal_and_says_what_to_do(v2, what):
    if what == 'end':
        operation = v2.begun().commit()
        v2.respond(35)
        with pytest.raises(errors.UnsupportedVersionError, match='make a new producer'):
            operation.tell()
    else:
        v2.initialized()
        v2.begin()
        batch = Batch()
        v2.stamp(batch)
        verdict = v2.on_produced(batch, answer(35))
        assert verdict.action is ProduceAction.FAIL
        assert 'make a new producer' in str(verdict.error)
    assert v2.is_fatal


def test_fenced_at_a_commit_whose_answer_was_lost_is_not_known(v1):
    operation = v1.begun().commit()
    v1.lose()
    v1.respond(90)
    with pytest.raises(errors.ProducerFencedError, match='not known'):
        operation.tell()


def test_fenced_at_a_commit_that_was_answered_at_once_is_known(v1):
    operation = v1.begun().commit()
    v1.respond(90)
    with pytest.raises(errors.ProducerFencedError) as caught:
        operation.tell()
    assert 'not known' not in str(caught.value)


@pytest.mark.parametrize('what', ['end', 'partitions', 'offsets'])
def test_v1_takes_a_new_epoch_after_a_call_that_was_lost(v1, what):
    """It may still arrive, in the next transaction."""
    v1.initialized()
    v1.begin()
    if what == 'partitions':
        assert not v1.may_send(Batch())
        v1.lose()
    v1.store()
    if what == 'offsets':
        v1.send_offsets(OFFSETS, MEMBER)
        v1.lose()
        v1.respond()
        v1.respond()
    operation = v1.commit()
    if what == 'end':
        v1.lose()
    v1.respond()
    assert not operation.is_done and v1.state is TxnState.INITIALIZING
    ask = v1.ask()
    assert (ask.request.producer_id, ask.request.producer_epoch, ask.lowest) == (7, 0, 3)
    v1.respond(producer_id=7, producer_epoch=1)
    operation.tell()
    v1.begin()
    assert v1.store()[0].stamps == [(7, 1, 0)]


def test_brokers_before_2_5_have_no_epoch_to_give(old):
    operation = old.begun().commit()
    old.lose()
    old.respond()
    operation.tell()
    assert old.state is TxnState.READY


def test_from_v1_to_v2_between_two_transactions(v1):
    operation = v1.begun().commit()
    v1.set_brokers(v2=True)
    assert not v1.is_v2
    v1.respond()
    assert v1.ask().request.producer_id == 7
    v1.respond(producer_id=7, producer_epoch=1)
    operation.tell()
    assert v1.is_v2


def test_from_v2_to_v1_between_two_transactions(v2):
    v2.begun().commit()
    v2.set_brokers(v2=False)
    assert v2.is_v2
    v2.respond(producer_id=7, producer_epoch=1)
    assert not v2.is_v2 and v2.state is TxnState.READY


# ---------------------------------------------------------------- errors


def test_after_an_abortable_error_only_an_abort_leads_on(v2):
    _, verdict = v2.begun().store(code=29)
    assert verdict.action is ProduceAction.FAIL
    for verb in (v2.commit, v2.begin, v2.check_send):
        with pytest.raises(errors.TopicAuthorizationFailedError, match='abort_transaction'):
            verb()
    operation = v2.abort()
    v2.respond(producer_id=7, producer_epoch=1)
    operation.tell()
    v2.begin()
    assert v2.store()[0].stamps == [(7, 1, 0)]


def test_v1_takes_a_new_epoch_after_an_abortable_error(v1):
    v1.begun().store(code=29)
    operation = v1.abort()
    assert v1.ask().kind is CallKind.END
    v1.respond()
    assert v1.ask().kind is CallKind.INIT_PRODUCER_ID
    v1.respond(producer_id=7, producer_epoch=1)
    operation.tell()


def test_commit_under_way_fails_with_the_error_of_a_batch(v2):
    v2.begun()
    batch = Batch()
    v2.stamp(batch)
    operation = v2.commit()
    v2.on_produced(batch, answer(87))
    with pytest.raises(errors.InvalidRecordError):
        operation.tell()
    v2.abort()


@pytest.mark.parametrize('code', [47])
def test_old_epoch_at_a_leader_is_for_the_coordinator_to_decide(v2, code):
    _, verdict = v2.begun().store(code=code)
    assert isinstance(verdict.error, errors.ProducerFencedError)
    assert isinstance(verdict.error, errors.InvalidProducerEpochError)
    assert v2.state is TxnState.ABORTABLE_ERROR
    operation = v2.abort()
    v2.respond(90)
    with pytest.raises(errors.ProducerFencedError):
        operation.tell()
    assert v2.is_fatal


def test_gap_is_fatal_where_no_epoch_closes_it(old):
    _, verdict = old.begun().store(code=45)
    assert verdict.action is ProduceAction.FAIL
    assert old.is_fatal


def test_batch_of_unknown_fate_costs_the_transaction(v2, v1, old):
    for producer, state in ((v2, TxnState.ABORTABLE_ERROR), (v1, TxnState.ABORTABLE_ERROR)):
        self_given_up(producer.begun())
        assert producer.state is state
    self_given_up(old.begun())
    assert old.is_fatal


def self_given_up(producer):
    """Let the time of a batch be over that was sent and not answered."""
    batch = Batch()
    producer.stamp(batch)
    producer.on_lost(batch, KafkaConnectionError('gone'))
    producer.give_up(batch, KafkaTimeoutError('late'))


def test_batch_refused_by_an_old_broker_leaves_no_gap_in_the_next_transaction(old):
    old.begun().store(code=29)
    operation = old.abort()
    old.respond()
    operation.tell()
    old.begin()
    assert old.store()[0].stamps == [(7, 0, 1)]


def test_fatal_error_of_a_batch_ends_the_producer(v2):
    v2.begun().store(code=53)
    assert v2.is_fatal
    with pytest.raises(errors.TransactionalIdAuthorizationFailedError):
        v2.abort()


def test_error_of_another_kind_is_told_as_a_kafka_error(v2):
    v2.begun()
    v2.give_up(Batch(), KafkaTimeoutError('late'))
    with pytest.raises(KafkaError, match='late') as caught:
        v2.commit()
    assert caught.value.__cause__ is v2.error


# ---------------------------------------------------------------- what waits to be sent


def test_abort_drops_what_was_never_sent(v2):
    v2.begun()
    assert v2.take_unsent_error() is None
    sent, unsent = Batch(), Batch()
    v2.stamp(sent)
    v2.abort()
    assert isinstance(v2.take_unsent_error(), errors.TransactionAbortedError)
    assert v2.may_drop(unsent) and not v2.may_drop(sent)
    assert not v2.may_send(unsent)


def test_v1_sends_again_what_may_have_arrived(v1, v2):
    for producer, drops in ((v1, False), (v2, True)):
        producer.begun()
        batch = Batch()
        producer.stamp(batch)
        producer.abort()
        producer.on_lost(batch, KafkaConnectionError('gone'))
        assert producer.may_drop(batch) is drops
        assert producer.may_send(batch)


def test_abort_after_a_lost_adding_of_partitions_ends_what_may_be_open(v1):
    v1.initialized()
    v1.begin()
    v1.note_partition(PLACE)
    v1.lose()
    operation = v1.abort()
    assert v1.ask().kind is CallKind.END
    v1.respond(48)  # it was not carried out
    v1.respond(producer_id=7, producer_epoch=1)
    operation.tell()


def test_fatal_error_drops_everything(v2):
    v2.begun()
    batch = Batch()
    v2.stamp(batch)
    v2.on_lost(batch, KafkaConnectionError('gone'))
    v2.fail(errors.ProducerFencedError('by another'))
    assert isinstance(v2.take_unsent_error(), errors.ProducerFencedError)
    assert v2.may_drop(batch) and v2.may_drop(Batch())


# ---------------------------------------------------------------- without transactional id


def test_idempotent_producer_asks_for_an_id_when_it_has_something_to_send():
    state = Producer(None)
    assert state.ask() is None
    batch = Batch()
    assert not state.may_send(batch)
    ask = state.ask()
    assert (ask.kind, ask.key) == (CallKind.INIT_PRODUCER_ID, None)
    state.respond(producer_id=3, producer_epoch=0)
    assert state.may_send(batch)


def test_idempotent_producer_without_right_fails_what_waits_and_tries_again_later():
    state = Producer(None)
    state.may_send(Batch())
    state.respond(31)
    assert isinstance(state.take_unsent_error(), errors.ClusterAuthorizationFailedError)
    assert state.take_unsent_error() is None
    assert state.ask() is None
    assert not state.may_send(Batch())
    assert state.ask().kind is CallKind.INIT_PRODUCER_ID


def test_idempotent_producer_may_always_send_before_an_error():
    state = Producer(None)
    state.check_send()
    state.fail(errors.ClusterAuthorizationFailedError('no'))
    with pytest.raises(errors.ClusterAuthorizationFailedError):
        state.check_send()


# ---------------------------------------------------------------- texts


def test_repr_says_who_and_where():
    assert repr(Producer().begun()) == "<Producer 'pay' in transaction, producer 7 epoch 0>"
    assert 'idempotent uninitialized' in repr(TransactionState())


# ---------------------------------------------------------------- aborted for its age

TIMED_OUT = r'timed out after transaction_timeout_ms \(60000 ms; it has been open for 60\.5 s\)'


def at_age(state, seconds):
    """Begin a transaction, send a batch in it, and let time pass."""
    state.now = lambda: 1000.0
    state.begun()
    state.now = lambda: 1000.0 + seconds
    return state


def ended(state, verb, code):
    operation = getattr(state, verb)()
    state.respond(code)
    with pytest.raises(KafkaError) as caught:
        operation.tell()
    return caught.value


def refused_offsets(state, code):
    operation = state.send_offsets(OFFSETS, MEMBER)
    state.respond(code)
    with pytest.raises(KafkaError) as caught:
        operation.tell()
    return caught.value


# What 2.8.2 (version 1) and 4.4.0 (version 2) answer after the coordinator has aborted it.
ANSWERS = [
    ('v1', lambda state: state.store(code=47)[1].error, errors.ProducerFencedError),
    ('v2', lambda state: state.store(code=47)[1].error, errors.ProducerFencedError),
    ('v1', lambda state: ended(state, 'commit', 90), errors.ProducerFencedError),
    ('v1', lambda state: ended(state, 'abort', 90), errors.ProducerFencedError),
    ('v1', lambda state: refused_offsets(state, 90), errors.ProducerFencedError),  # AddOffsetsToTxn
    ('v2', lambda state: ended(state, 'commit', 48), errors.InvalidTxnStateError),
    ('v2', lambda state: refused_offsets(state, 47), errors.ProducerFencedError),  # TxnOffsetCommit
]


@pytest.mark.parametrize('version, refuse, kind', ANSWERS)
def test_a_transaction_that_the_coordinator_aborted_for_its_age_says_so(
    version, refuse, kind, request
):
    """The answers are those that a producer gets which was replaced, so the time decides."""
    error = refuse(at_age(request.getfixturevalue(version), 60.5))
    assert type(error) is not KafkaError and isinstance(error, kind)
    assert re.search(TIMED_OUT, str(error))
    assert 'has taken over' not in str(error)


@pytest.mark.parametrize('version, refuse, kind', ANSWERS)
def test_the_same_answers_to_a_young_transaction_say_what_the_code_means(
    version, refuse, kind, request
):
    error = refuse(at_age(request.getfixturevalue(version), 59.5))
    assert isinstance(error, kind) and 'timed out' not in str(error)


@pytest.mark.parametrize('verb', ['commit', 'abort'])
def test_an_end_of_version_2_tells_a_newer_producer_from_a_time_out(v2, verb):
    """The coordinator of 4.4.0 answers PRODUCER_FENCED of a newer producer alone."""
    error = ended(at_age(v2, 60.5), verb, 90)
    assert 'A newer producer has taken over' in str(error)


def test_the_next_transaction_has_a_time_of_its_own(v2):
    at_age(v2, 60.5)
    v2.commit()
    v2.respond(producer_id=7, producer_epoch=1)
    v2.commit().tell()
    v2.begin()
    assert 'timed out' not in str(v2.store(code=47)[1].error)


def test_other_errors_of_an_old_transaction_keep_their_text(v1):
    error = ended(at_age(v1, 60.5), 'commit', 53)
    assert isinstance(error, errors.TransactionalIdAuthorizationFailedError)
    assert 'timed out' not in str(error)
