"""The tuples and futures that producers of all eras hand out."""

from __future__ import annotations

import asyncio
import traceback

import pytest

from kafka.errors import KafkaError, KafkaTimeoutError
from kafka.future import Future
from kafka.producer.future import (
    FutureProduceResult,
    FutureRecordMetadata,
    FutureRecords,
    Placed,
    RecordMetadata,
    future_of,
    header_size,
)
from kafka.producer.producer_batch import BatchState, ProducerBatch
from kafka.structs import TopicPartition

TP = TopicPartition('t', 0)


def batch_of(count):
    batch = ProducerBatch(TP, 0.0, 1000, lambda condition, timeout: condition())
    for _ in range(count):
        batch.put(b'v')
    batch.set_time(0, 1000)
    batch.close()
    batch.move(BatchState.IN_FLIGHT)
    return batch


def test_metadata_of_1_x():
    metadata = RecordMetadata(TP, 10, 123, 5)
    assert (metadata.topic, metadata.partition, metadata.topic_partition) == ('t', 0, TP)
    assert (metadata.offset, metadata.timestamp) == (15, 123)
    assert RecordMetadata(TP, -1, None, 5).offset == -1
    assert repr(metadata) == str(metadata) == 'RecordMetadata(topic=t, partition=0, offset=15)'


def test_metadata_of_2_x():
    metadata = RecordMetadata('t', 0, TP, 7, 123, None, 1, 2, 3)
    assert tuple(metadata) == ('t', 0, TP, 7, 123, None, 1, 2, 3)
    assert metadata.serialized_value_size == 2 and metadata.log_start_offset == -1


def test_the_future_of_a_record_is_a_future_without_a_lock():
    future = future_of(batch_of(1), 0, -1, 1, -1)
    assert isinstance(future, Future) and isinstance(future, FutureRecordMetadata)
    assert not future.__dict__


def test_produce_results_can_be_waited_for():
    result = FutureProduceResult(TP)
    assert result.topic_partition == TP and not result.wait(0)
    result.success((1, 2))
    assert result.wait(0)


def test_futures_of_many_are_in_the_order_of_the_call():
    one, two = batch_of(3), batch_of(2)
    placed = [Placed(one, 0, 3, [0, 2, 4]), Placed(two, 0, 2, [1, 3])]
    many = FutureRecords(placed, [1] * 5)
    assert len(many) == 5 and not many.is_done
    with pytest.raises(KafkaTimeoutError, match='0 of 5'):
        many.get(timeout=0)
    one.succeed(10)
    two.succeed(20)
    assert [metadata.offset for metadata in many.get()] == [10, 20, 11, 21, 12]
    assert many[-1].get().offset == 12 and [f.get().offset for f in many[1:3]] == [20, 11]
    with pytest.raises(IndexError):
        many[5]


def test_futures_of_many_that_follow_each_other():
    one, two = batch_of(3), batch_of(2)
    many = FutureRecords([Placed(one, 1, 2), Placed(two, 0, 2)], [1] * 4)
    one.succeed(10)
    two.fail(KafkaError('gone'))
    assert [f.value.offset for f in many[:2]] == [11, 12]
    assert many.exception() == KafkaError('gone')
    with pytest.raises(KafkaError, match='gone'):
        many.get()


def test_futures_of_many_find_records_in_pieces():
    batch = batch_of(4)
    many = FutureRecords([Placed(batch, 0, 4)], [1] * 4)
    offset = 0
    for piece in batch.split(1):
        piece.move(BatchState.IN_FLIGHT)
        piece.succeed(offset)
        offset += 100
    assert many.is_done and many.exception() is None
    assert [metadata.offset for metadata in many.get()] == [0, 100, 200, 300]


def test_callbacks_of_many():
    batch = batch_of(2)
    good, bad = [], []
    many = FutureRecords([Placed(batch, 0, 2)], [1] * 2)
    many.add_callback(good.append).add_errback(bad.append)
    batch.succeed(5)
    assert [metadata.offset for metadata in good] == [5, 6] and not bad


def test_sizes_of_headers():
    assert header_size([]) == -1
    assert header_size([('ä', b'1'), ('b', None)]) == 4


def test_the_first_error_of_records_whose_batch_was_split():
    batch = batch_of(2)
    records = FutureRecords([Placed(batch, 0, 2)], [1, 1])
    _, last = batch.split(1)
    assert records.exception() is None
    batch.pieces[0][1].move(BatchState.IN_FLIGHT)
    batch.pieces[0][1].succeed(5)
    last.move(BatchState.IN_FLIGHT)
    error = KafkaError('no')
    last.fail(error)
    assert records.exception() == error


# --- many futures of one batch that failed: what each raises is its own


ASKING = {
    'get': lambda future: future.get(1),
    'exception': lambda future: future.exception,
    'value': lambda future: future.value,
    'repr': repr,
}


@pytest.mark.parametrize('how', ASKING)
def test_a_record_whose_batch_is_split_while_somebody_asks_has_its_own_outcome(how, monkeypatch):
    """Another thread splits it and fails the pieces between two looks at the batch."""
    batch, slot = batch_of(2), ProducerBatch.pieces
    future = future_of(batch, 1, -1, 1, -1)

    def pieces(asked):
        found = slot.__get__(asked)
        if asked is batch and asked.state is BatchState.IN_FLIGHT:
            for piece in asked.split(1):
                piece.move(BatchState.IN_FLIGHT)
                piece.fail(KafkaError('no'))
        return found

    monkeypatch.setattr(ProducerBatch, 'pieces', property(pieces, slot.__set__))
    if how == 'get':
        with pytest.raises(KafkaError, match='no'):
            ASKING[how](future)
    else:
        told = ASKING[how](future)
        assert 'no' in str(told) if how != 'value' else told is None
    assert 'no' in str(future.exception)


def failed_batch(count, error=None):
    """Return the futures of a batch that failed after a connection did."""
    batch = batch_of(count)
    if error is None:
        error = KafkaTimeoutError('not acknowledged')
        error.__cause__ = KafkaError('the connection is gone')
    batch.fail(error)
    return [future_of(batch, index, -1, 1, -1) for index in range(count)]


def logged(call):
    """Return what logging would write about an error that a call raises, and the error."""
    try:
        call()
    except KafkaError as error:
        return traceback.format_exc(), error
    raise AssertionError('nothing was raised')


def test_each_future_of_a_batch_raises_an_error_of_its_own():
    futures = failed_batch(800)
    texts, errors = zip(*(logged(future.get) for future in futures))
    assert len({id(error) for error in errors}) == 800
    assert len(set(texts)) == 1 and len(texts[0]) < 1500
    assert 'the connection is gone' in texts[0]
    assert all(error == errors[0] and error.retriable for error in errors)


def test_a_future_that_is_asked_again_raises_an_equal_error_with_a_traceback_as_short():
    (future,) = failed_batch(1)
    texts, errors = zip(*(logged(lambda: future.get(0)) for _ in range(50)))
    assert all(error == future.exception for error in errors)
    assert len(set(texts)) == 1


def test_futures_that_are_awaited_again_raise_with_a_traceback_as_short():
    evented = Future().failure(KafkaError('x'))
    for future in [*failed_batch(1), evented]:

        async def ask(future=future):
            return await future

        texts = [logged(lambda ask=ask: asyncio.run(ask()))[0] for _ in range(5)]
        assert len(set(texts)) == 1


def test_errors_in_the_course_of_others_do_not_chain_all_of_them():
    """A handler that asks the next future has one error as the context, not all before it."""
    futures = failed_batch(50)
    for first, second in zip(futures, futures[1:]):
        try:
            first.get()
        except KafkaError as error:
            text, _ = logged(second.get)
            assert text.count('KafkaTimeoutError') <= 4 and error.__context__ is None
    assert len(logged(futures[-1].get)[0]) < 6000


def test_the_records_of_send_many_have_errors_of_their_own():
    batch = batch_of(3)
    records = FutureRecords([Placed(batch, 0, 3)], [1, 1, 1])
    batch.fail(KafkaError('x'))
    assert records.exception() == records.exception() == records[0].exception
    assert records.exception() is not records.exception()
    assert len({id(error) for error in [future.exception for future in records]}) == 3
    assert len({logged(records.get)[0] for _ in range(5)}) == 1


def test_an_error_that_is_not_the_packages_is_told_itself():
    error = ValueError('of a program')
    (future,) = failed_batch(1, error)
    assert future.exception is error


def test_callbacks_are_given_errors_of_their_own():
    batch = batch_of(3)
    futures = [future_of(batch, index, -1, 1, -1) for index in range(3)]
    given = []
    for future in futures:
        future.add_errback(given.append)
    batch.fail(KafkaError('x'))
    assert [error is future.exception for error, future in zip(given, futures)] == [True] * 3
    assert len({id(error) for error in given}) == 3
