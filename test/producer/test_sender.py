"""The sender: what goes to which broker when, and what an answer does to a batch."""

from __future__ import annotations

import pytest

from kafka.errors import (
    InvalidMessageError,
    InvalidRecordError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    ProtocolError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
    UnsupportedForMessageFormatError,
)
from kafka.net.loop.tasks import Waiter
from kafka.producer.producer_batch import BatchState, ProducerBatch
from kafka.producer.sequence_numbers import Identity
from kafka.producer.transaction_state import TransactionState
from kafka.protocol.produce import BatchIndexAndErrorMessage, LeaderIdAndEpoch
from test.behaviour.test_foreign_locks import changing
from test.producer.sending_by_hand import NODE, Rig, new_topic_id

TOO_LARGE, NOT_LEADER, DENIED, CORRUPT = 10, 6, 29, 2


def outcome(future):
    assert future.is_done
    return future.exception if future.failed() else future.value.offset


def test_records_of_all_partitions_go_in_one_request():
    rig = Rig()
    futures = [rig.send(b'%d' % n, partition=n % 3) for n in range(6)]
    rig.loop.settle()
    (sent,) = rig.sent
    assert sent.values == {0: [b'0', b'3'], 1: [b'1', b'4'], 2: [b'2', b'5']}
    assert (sent.request.acks, sent.request.timeout_ms) == (1, 30000)
    sent.respond()
    rig.loop.settle()
    assert [outcome(future) for future in futures] == [10, 10, 10, 11, 11, 11]
    assert rig.accumulator.is_empty() and rig.accumulator.memory.used == 0


def test_each_leader_gets_its_own():
    rig = Rig()
    rig.pool.cluster.leaders = {1: 2}
    rig.send(b'a', partition=0)
    rig.go(b'b', partition=1)
    assert [rig.pool.link(node).sent[0].values for node in (1, 2)] == [{0: [b'a']}, {1: [b'b']}]


def test_so_many_requests_and_no_more():
    rig = Rig(max_in_flight=2)
    futures = rig.go(*[b'x' * 900] * 5)
    assert len(rig.sent) == 2
    rig.sent[0].respond()
    rig.loop.settle()
    assert len(rig.sent) == 3
    while not rig.accumulator.is_empty():
        for sent in rig.sent:
            if not sent.answer.done:
                sent.respond()
        rig.loop.settle()
    assert [outcome(future) for future in futures] == [10] * 5


def test_with_one_request_in_flight_a_partition_waits_for_its_answer():
    rig = Rig(max_in_flight=1)
    first, second = rig.go(b'x' * 900, b'y' * 900)
    assert len(rig.sent) == 1
    rig.sent[0].respond((0, CORRUPT))
    rig.loop.advance(1.0)
    assert rig.sent[1].values[0][0][:1] == b'x', 'nothing may overtake what is tried again'
    rig.sent[1].respond()
    rig.loop.settle()
    rig.sent[2].respond()
    rig.loop.settle()
    assert first.succeeded() and second.succeeded()


def test_a_batch_that_another_thread_keeps_from_being_taken_goes_soon_after(monkeypatch):
    """That thread may end its change without waking anybody."""
    rig = Rig()
    take = rig.accumulator.take

    def take_in_vain(queue):
        monkeypatch.undo()
        with changing(rig.accumulator):
            assert take(queue) is None

    monkeypatch.setattr(rig.accumulator, 'take', take_in_vain)
    rig.go(b'v')
    assert [sent.values for sent in rig.sent] == [{0: [b'v']}]


def test_a_request_has_a_size():
    rig = Rig(max_request_size=2500)
    for partition in range(4):
        rig.send(b'x' * 900, partition=partition)
    rig.loop.settle()
    assert [len(sent.values) for sent in rig.sent] == [2, 2]
    assert sorted(p for sent in rig.sent for p in sent.values) == [0, 1, 2, 3]


def test_no_partition_is_always_last():
    rig = Rig(max_request_size=1000, max_in_flight=1)
    firsts = []
    for _ in range(4):
        for partition in range(4):
            rig.send(b'x' * 900, partition=partition)
        rig.loop.settle()
        firsts.append(next(iter(rig.sent[-1].values)))
        while not rig.accumulator.is_empty():
            rig.sent[-1].respond()
            rig.loop.settle()
    assert len(set(firsts)) > 1


@pytest.mark.parametrize(
    'produce, version, magic', [((0, 1), 1, 0), ((0, 2), 2, 1), ((0, 7), 7, 2), ((3, 13), 12, 2)]
)
def test_the_format_is_what_the_broker_takes(produce, version, magic):
    rig = Rig(produce=produce)
    rig.go(b'v')
    (sent,) = rig.sent
    assert sent.version == version and sent.batches['t', 0][16] == magic


def test_topics_with_ids_are_named_by_id():
    rig = Rig(produce=(3, 13))
    rig.pool.cluster.ids['t'] = new_topic_id()
    (future,) = rig.go(b'v')
    (sent,) = rig.sent
    assert sent.version == 13 and sent.request.topic_data[0].topic_id == rig.pool.cluster.ids['t']
    sent.respond()
    rig.loop.settle()
    assert outcome(future) == 10


def test_answers_by_id_alone_are_understood():
    rig = Rig(produce=(3, 13))
    rig.pool.cluster.ids['t'] = new_topic_id()
    (future,) = rig.go(b'v')
    sent = rig.sent[0]
    sent.request.topic_data[0].name, name = '', sent.request.topic_data[0].name
    sent.respond()
    sent.request.topic_data[0].name = name
    rig.loop.settle()
    assert outcome(future) == 10


def test_without_acknowledgements_all_is_over_once_it_is_sent():
    rig = Rig(acks=0)
    futures = rig.go(b'a', b'b')
    assert [outcome(future) for future in futures] == [-1, -1]


def test_a_leader_that_is_not_known_is_asked_for():
    rig = Rig()
    rig.pool.cluster.leaders = {0: None}
    rig.go(b'v')
    assert rig.sent == [] and rig.pool.wanted == ['t'] and rig.pool.refreshed == 1
    rig.pool.cluster.leaders = {}
    rig.pool.cluster.refreshed()
    rig.loop.settle()
    assert len(rig.sent) == 1


def test_a_broker_that_cannot_be_reached_is_tried_again():
    rig = Rig()
    rig.pool.link(NODE).refuses = 3
    rig.go(b'v')
    assert rig.pool.link(NODE).tries == 4 and rig.pool.refreshed == 3
    assert len(rig.sent) == 1


def test_while_a_broker_is_out_of_reach_batches_keep_filling():
    rig = Rig()
    rig.pool.cluster.leaders = {0: None}
    rig.go(b'a')
    rig.go(b'b')
    rig.pool.cluster.leaders = {}
    rig.go(b'c')
    assert [sent.values for sent in rig.sent] == [{0: [b'a', b'b', b'c']}]


# --- errors -------------------------------------------------------------------------------------


def test_a_retry_waits_longer_each_time_and_sends_the_same_bytes():
    rig = Rig(retry_backoff=0.1, retry_backoff_max=1.0)
    (future,) = rig.go(b'v')
    times = []
    for tries in range(1, 7):
        rig.sent[-1].respond((0, CORRUPT))
        rig.loop.settle()
        began = rig.loop.now
        while len(rig.sent) == tries:
            rig.loop.advance(0.01)
        times.append(rig.loop.now - began)
    assert 0.07 < times[0] < 0.14 and times[0] < times[1] < times[2] and max(times) < 1.02
    assert len({bytes(sent.batches['t', 0]) for sent in rig.sent}) == 1
    assert not future.is_done


def test_retries_end():
    rig = Rig(retries=1)
    (future,) = rig.go(b'v')
    rig.sent[0].respond((0, CORRUPT))
    rig.loop.advance(1.0)
    rig.sent[1].respond((0, CORRUPT))
    rig.loop.advance(1.0)
    assert len(rig.sent) == 2 and outcome(future).errno == CORRUPT
    assert rig.accumulator.is_empty()


def test_a_lost_connection_means_once_more_with_fresh_metadata():
    rig = Rig()
    (future,) = rig.go(b'v')
    rig.sent[0].answer.fail(KafkaConnectionError('gone'))
    rig.loop.advance(1.0)
    assert rig.pool.refreshed == 1 and len(rig.sent) == 2
    rig.sent[1].respond()
    rig.loop.settle()
    assert outcome(future) == 10


def test_who_leads_now_gets_what_another_refused():
    rig = Rig()
    (future,) = rig.go(b'v')
    rig.sent[0].respond((0, NOT_LEADER))
    rig.pool.cluster.leaders = {0: 2}
    rig.loop.advance(1.0)
    assert rig.pool.refreshed
    rig.pool.link(2).sent[0].respond()
    rig.loop.settle()
    assert outcome(future) == 10


def test_a_broker_that_says_who_leads_spares_the_pause():
    rig = Rig()
    (future,) = rig.go(b'v')
    rig.sent[0].respond(
        (0, NOT_LEADER), current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=5)
    )
    rig.loop.settle()
    rig.pool.link(2).sent[0].respond()
    rig.loop.settle()
    assert outcome(future) == 10 and rig.loop.now == 1000.0


def test_a_mistake_on_the_way_leaves_nothing_without_an_outcome(caplog):
    rig = Rig(retries=0, acks=0)
    rig.pool.link(NODE).send = lambda request, version: 1 / 0
    (future,) = rig.go(b'v')
    assert 'ZeroDivisionError' in str(outcome(future)) and rig.accumulator.is_empty()


def test_a_mistake_with_an_answer_leaves_nothing_without_an_outcome(caplog):
    rig = Rig()
    (future,) = rig.go(b'v')
    rig.state.on_produced = lambda batch, answer: 1 / 0
    rig.sent[0].respond()
    rig.loop.settle()
    assert 'ZeroDivisionError' in str(outcome(future)) and rig.accumulator.is_empty()


def test_one_partition_fails_and_the_others_do_not():
    rig = Rig()
    futures = [rig.send(b'%d' % n, partition=n) for n in range(3)]
    rig.loop.settle()
    rig.sent[0].respond((1, DENIED))
    rig.loop.settle()
    assert [type(outcome(future)) for future in futures] == [
        int,
        TopicAuthorizationFailedError,
        int,
    ]
    assert 't-1' in str(outcome(futures[1]))


def test_guilty_records_are_told_from_their_mates():
    rig = Rig()
    futures = rig.go(b'a', b'b', b'c')
    rig.sent[0].respond(
        (0, 87),
        record_errors=[BatchIndexAndErrorMessage(batch_index=1, batch_index_error_message='bad')],
    )
    rig.loop.settle()
    errors = [outcome(future) for future in futures]
    assert isinstance(errors[1], InvalidRecordError) and 'bad' in str(errors[1])
    assert errors[0] == errors[2] and type(errors[0]) is KafkaError


def test_a_batch_that_is_too_large_is_split_until_it_fits():
    rig = Rig(batch_size=10_000, max_in_flight=1)
    futures = rig.go(*[b'%d' % n * 100 for n in range(8)])
    assert len(rig.sent) == 1
    seen = 0
    order = []
    while seen < len(rig.sent):
        sent = rig.sent[seen]
        seen += 1
        values = sent.values[0]
        sent.respond((0, TOO_LARGE if len(values) > 2 else 0))
        if len(values) <= 2:
            order += values
        rig.loop.advance(2.0)
    assert order == [b'%d' % n * 100 for n in range(8)]
    assert all(isinstance(outcome(future), int) for future in futures)
    assert rig.accumulator.is_empty() and rig.accumulator.memory.used == 0


@pytest.mark.parametrize('where', ['before', 'after'])
@pytest.mark.parametrize('step', ['state.on_split', 'accumulator.replace'])
def test_a_split_that_fails_is_finished(step, where, monkeypatch, caplog):
    state = TransactionState()
    state.sequences.begin(Identity(7, 0))
    rig = Rig(batch_size=10_000, max_in_flight=1, state=state)
    futures = rig.go(*[b'%d' % n * 100 for n in range(8)])
    part, name = step.split('.')
    owner = getattr(rig, part)
    goes_on = getattr(owner, name)

    def fail(*arguments):
        monkeypatch.undo()
        if where == 'after':
            goes_on(*arguments)
        raise MemoryError

    monkeypatch.setattr(owner, name, fail)
    rig.sent[0].respond((0, TOO_LARGE))
    rig.loop.advance(2.0)
    assert 'was not understood' in caplog.text
    seen = 1
    while seen < len(rig.sent):
        rig.sent[seen].respond((0, 0))
        rig.loop.advance(2.0)
        seen += 1
    assert seen > 2 and rig.accumulator.is_empty()
    assert all(isinstance(outcome(future), int) for future in futures)
    assert rig.accumulator.memory.used == 0


def test_one_record_that_is_too_large_fails():
    rig = Rig()
    (future,) = rig.go(b'v')
    rig.sent[0].respond((0, TOO_LARGE))
    rig.loop.settle()
    assert isinstance(outcome(future), MessageSizeTooLargeError)


def test_an_answer_that_is_missing_is_no_success():
    rig = Rig(retries=0)
    (future,) = rig.go(b'v')
    rig.sent[0].respond((0, None))
    rig.loop.settle()
    assert isinstance(outcome(future), ProtocolError) and 't-0' in str(outcome(future))


def test_an_answer_about_what_was_not_sent_is_reported_and_changes_nothing(caplog):
    rig = Rig()
    rig.send(b'a', partition=0)
    (future,) = rig.go(b'b', partition=1)
    sent = rig.sent[0]
    sent.request.topic_data[0].partition_data[1].index = 99
    sent.respond()
    rig.loop.settle()
    assert 'partition=99' in caplog.text
    assert not future.is_done, 'it may be stored or not, and goes again'


def test_headers_for_an_old_broker_fail_and_the_rest_goes_on():
    rig = Rig(produce=(0, 2))
    (future,) = rig.go(b'v', headers=[('h', b'x')])
    assert isinstance(outcome(future), UnsupportedForMessageFormatError)
    (other,) = rig.go(b'w')
    rig.sent[0].respond()
    rig.loop.settle()
    assert outcome(other) == 10


def test_what_cannot_be_encoded_holds_up_nothing_behind_it():
    rig = Rig(produce=(0, 2))
    bad = rig.send(b'x' * 900, headers=[('h', b'x')])
    good = rig.send(b'y' * 900)
    rig.loop.settle()
    assert isinstance(outcome(bad), UnsupportedForMessageFormatError)
    assert rig.sent[0].values == {0: [b'y' * 900]}
    rig.sent[0].respond()
    rig.loop.settle()
    assert outcome(good) == 10


def test_a_broker_without_produce_fails_records():
    rig = Rig(produce=(99, 99))
    (future,) = rig.go(b'v')
    assert 'broker' in str(outcome(future))


# --- time ---------------------------------------------------------------------------------------


def test_what_expires_says_why_the_leader_could_not_be_reached():
    rig = Rig(delivery_timeout=5.0)
    link, backs_off = rig.pool.link(NODE), Waiter()

    async def ready():
        link.tries += 1
        if link.tries > 1:
            await backs_off
        raise KafkaConnectionError('refused')

    link.ready = ready
    (future,) = rig.go(b'v')
    rig.loop.advance(5.01)
    error = outcome(future)
    backs_off.wake()
    assert isinstance(error, KafkaTimeoutError)
    assert 'node %d cannot be reached' % NODE in str(error) and 'refused' in str(error)
    assert isinstance(error.__cause__, KafkaConnectionError)


def test_what_was_never_sent_expires():
    rig = Rig(delivery_timeout=5.0)
    rig.pool.cluster.leaders = {0: None}
    (future,) = rig.go(b'v')
    rig.loop.advance(4.99)
    assert not future.is_done
    rig.loop.advance(0.02)
    assert isinstance(outcome(future), KafkaTimeoutError) and 'never sent' in str(outcome(future))


def test_a_record_for_a_deleted_topic_fails_with_what_brokers_said_last():
    rig = Rig(delivery_timeout=5.0)
    rig.pool.cluster.leaders = {0: None}
    rig.pool.cluster.topic_errors = {'t': UnknownTopicOrPartitionError}
    (future,) = rig.go(b'v')
    rig.loop.advance(5.01)
    error = outcome(future)
    assert isinstance(error, KafkaTimeoutError)
    assert 'UnknownTopicOrPartitionError: no leader for t-0' in str(error)
    assert isinstance(error.__cause__, UnknownTopicOrPartitionError)


def test_a_record_whose_time_ends_between_two_tries_fails_with_the_last_error():
    rig = Rig(delivery_timeout=5.0, retry_backoff=60.0, retry_backoff_max=60.0)
    (future,) = rig.go(b'v')
    rig.sent[0].respond((0, NOT_LEADER))
    rig.loop.settle()
    rig.loop.advance(5.01)
    assert 'the last try: [Error 6]' in str(outcome(future))


def test_what_is_on_the_wire_expires_and_a_late_answer_changes_nothing():
    rig = Rig(delivery_timeout=5.0)
    (future,) = rig.go(b'v')
    rig.loop.advance(5.01)
    assert 'may be stored' in str(outcome(future))
    assert not rig.accumulator.is_empty(), 'its memory is in use'
    rig.sent[0].respond()
    rig.loop.settle()
    assert isinstance(outcome(future), KafkaTimeoutError) and rig.accumulator.is_empty()


def test_retries_end_with_the_delivery_time():
    rig = Rig(delivery_timeout=5.0)
    (future,) = rig.go(b'v')
    while not future.is_done:
        for sent in rig.sent:
            if not sent.answer.done:
                sent.respond((0, CORRUPT))
        rig.loop.advance(0.1)
    assert 5.0 <= rig.loop.now - 1000.0 < 5.2
    rig.loop.advance(10.0)
    assert rig.accumulator.is_empty()


def test_a_last_try_in_the_moment_in_which_the_time_is_over_fails_as_too_late():
    rig = Rig(delivery_timeout=5.0)
    (future,) = rig.go(b'v')
    rig.loop.now += 5.0
    rig.sent[0].respond((0, CORRUPT))
    rig.loop.settle()
    error = outcome(future)
    assert isinstance(error, KafkaTimeoutError) and 'the last try: ' in str(error)
    assert isinstance(error.__cause__, InvalidMessageError)


def test_closing_fails_everything():
    rig = Rig()
    on_wire, waiting = rig.go(b'x' * 900)[0], None
    rig.pool.cluster.leaders = {0: None}
    waiting = rig.go(b'y')[0]
    rig.sender.abort(KafkaError('closed'))
    assert [str(outcome(future)) for future in (on_wire, waiting)] == ['KafkaError: closed'] * 2


def test_what_nobody_asks_about_is_missed_in_the_log(caplog):
    rig = Rig()

    def put(value):
        rig.accumulator.open_box(rig.topic, rig.loop.now, rig.loop.now)
        rig.topic.put_in_box(value)

    put(b'1')
    rig.loop.advance(0.01)
    (partition,) = rig.sent[0].values
    rig.sent[0].respond((partition, DENIED))
    rig.loop.settle()
    assert '1 records for t-%d were lost' % partition in caplog.text
    put(b'2')
    rig.sender.abort(KafkaError('closed'))
    assert '1 records for t were lost: KafkaError: closed' in caplog.text
    assert rig.accumulator.is_empty()


def test_a_mistake_of_the_sender_is_logged_and_sending_goes_on(caplog):
    rig = Rig()
    leader = rig.pool.cluster.leader_for_partition
    rig.pool.cluster.leader_for_partition = lambda place: 1 / 0
    rig.go(b'v')
    assert 'the sender failed' in caplog.text
    rig.pool.cluster.leader_for_partition = leader
    rig.loop.advance(0.2)
    assert len(rig.sent) == 1


def test_sent_batches_are_in_flight():
    rig = Rig()
    (future,) = rig.go(b'v')
    assert future.batch.state is BatchState.IN_FLIGHT and rig.sender.in_flight == 1
    assert '1 batches on the wire' in repr(rig.sender)


def test_numbers_of_what_cannot_be_encoded_hold_up_nothing_behind_it(monkeypatch):
    state = TransactionState()
    state.sequences.begin(Identity(7, 0))
    rig = Rig(produce=(3, 12), state=state)

    def fail(*arguments):
        raise ValueError('no')

    with monkeypatch.context() as patched:
        patched.setattr(ProducerBatch, 'encode', fail)
        (bad,) = rig.go(b'x')
    assert isinstance(outcome(bad), ProtocolError)
    (good,) = rig.go(b'y')
    rig.sent[0].respond()
    rig.loop.settle()
    assert outcome(good) == 10
