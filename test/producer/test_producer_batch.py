"""A batch: which way its states go, its bytes, its pieces, and what its futures see."""

from __future__ import annotations

import itertools

import pytest

from kafka.errors import (
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    UnsupportedForMessageFormatError,
)
from kafka.producer.future import future_of
from kafka.producer.producer_batch import (
    TRANSITIONS,
    BatchState,
    FailedBatch,
    ProducerBatch,
    compression_of,
)
from kafka.record.memory_records import MemoryRecords
from kafka.structs import TopicPartition

TP = TopicPartition('t', 3)


def never(condition, timeout):
    return condition()


def batch_of(values, keys=(), headers=(), times=((0, 1000),)):
    batch = ProducerBatch(TP, 5.0, 1000, never)
    for index, value in enumerate(values):
        batch.put(value)
        if index < len(keys) and keys[index] is not None:
            batch.set_key(index, keys[index])
        if index < len(headers) and headers[index]:
            batch.set_headers(index, headers[index])
    for start, time in times:
        batch.set_time(start, time)
    return batch


def closed(*arguments, **more):
    batch = batch_of(*arguments, **more)
    batch.close()
    return batch


def records(encoded):
    return [
        (r.offset, r.timestamp, r.key, r.value, list(r.headers))
        for batch in MemoryRecords(bytes(encoded))
        for r in batch
    ]


@pytest.mark.parametrize('start, end', list(itertools.product(BatchState, BatchState)))
def test_states_go_where_the_table_says(start, end):
    batch = batch_of([b''])
    batch.state = start
    if end in TRANSITIONS[start]:
        batch.move(end)
        assert batch.state is end
    else:
        with pytest.raises(IllegalStateError) as caught:
            batch.move(end)
        assert start.value in str(caught.value) and end.value in str(caught.value)
        assert batch.state is start


def test_the_columns_become_records():
    headers = [('h', b'x')]
    batch = closed(
        [b'a', None, b'c'], [None, b'k'], [(), (), headers], times=((0, 1000), (2, 1007))
    )
    assert records(batch.encode(2)) == [
        (0, 1000, None, b'a', []),
        (1, 1000, b'k', None, []),
        (2, 1007, None, b'c', headers),
    ]


@pytest.mark.parametrize('magic', [0, 1])
@pytest.mark.parametrize('codec', [0, 1])
def test_older_formats(magic, codec):
    batch = closed([b'a', b'b'], [b'k'], times=((0, 1000), (1, 1001)))
    times = [None, None] if magic == 0 else [1000, 1001]
    got = [
        (r.timestamp, r.key, r.value)
        for b in MemoryRecords(bytes(batch.encode(magic, codec)))
        for r in b
    ]
    assert [each[1:] for each in got] == [(b'k', b'a'), (None, b'b')]
    if magic:
        assert [each[0] for each in got] == times


def test_headers_do_not_fit_into_older_formats():
    batch = closed([b'a'], headers=[[('h', None)]])
    with pytest.raises(UnsupportedForMessageFormatError, match='t-3.*headers'):
        batch.encode(1)


def test_records_are_encoded_once_for_a_format():
    batch = closed([b'a'])
    first = batch.encode(2)
    assert batch.encode(2) is first
    assert batch.encode(1) != first


@pytest.mark.parametrize('codec', [0, 1])
def test_numbers_that_come_later_give_the_same_bytes(codec):
    early, late = closed([b'a', b'b']), closed([b'a', b'b'])
    early.restamp(7, 2, 40, True)
    late.encode(2, codec)
    late.restamp(7, 2, 40, True)
    assert late.encoded == early.encode(2, codec)
    late.restamp(-1, -1, -1, False)
    assert late.encoded == closed([b'a', b'b']).encode(2, codec)


def test_offsets_count_from_the_first():
    batch = closed([b'a', b'bb'], times=((0, 1000), (1, 1005)))
    future = future_of(batch, 1, -1, 2, -1)
    assert not future.is_done and future.value is None
    batch.move(BatchState.IN_FLIGHT)
    batch.succeed(40, log_start_offset=3)
    metadata = future.get()
    assert metadata == ('t', 3, TP, 41, 1005, None, -1, 2, -1)
    assert metadata.log_start_offset == 3
    assert future.succeeded() and future.value == metadata


def test_the_time_of_the_broker_counts_where_there_is_one():
    batch = closed([b'a'])
    batch.move(BatchState.IN_FLIGHT)
    batch.succeed(0, log_append_time=77)
    assert future_of(batch, 0, -1, 1, -1).get().timestamp == 77


def test_without_an_acknowledgement_the_offset_is_unknown():
    batch = closed([b'a', b'b'])
    batch.move(BatchState.IN_FLIGHT)
    batch.succeed()
    assert future_of(batch, 1, -1, 1, -1).get().offset == -1


def test_a_record_of_its_own_error():
    batch = closed([b'a', b'b'])
    future, mate = future_of(batch, 0, -1, 1, -1), future_of(batch, 1, -1, 1, -1)
    own, others = KafkaError('own'), KafkaError('others')
    batch.fail(others, {0: own})
    for each, error in ((future, own), (mate, others)):
        with pytest.raises(KafkaError) as caught:
            each.get()
        assert caught.value == each.exception == error
        assert each.failed() and each.value is None


def test_callbacks_run_once_in_order_and_late_ones_at_once():
    batch = closed([b'a'])
    future = future_of(batch, 0, -1, 1, -1)
    calls = []
    future.add_callback(calls.append)
    future.add_errback(lambda error: calls.append('error'))
    future.add_callback(lambda extra, value: calls.append(extra), 'second')
    batch.move(BatchState.IN_FLIGHT)
    batch.succeed(5)
    future.add_both(lambda value: calls.append('late'))
    assert [getattr(call, 'offset', call) for call in calls] == [5, 'second', 'late']


def test_a_callback_that_raises_does_not_keep_the_others(caplog):
    batch = closed([b'a'])
    future, calls = future_of(batch, 0, -1, 1, -1), []
    future.add_callback(lambda value: 1 / 0)
    future.add_callback(calls.append)
    batch.move(BatchState.IN_FLIGHT)
    batch.succeed(5)
    assert len(calls) == 1 and future.get().offset == 5
    assert 'a callback failed' in caplog.text


def test_a_future_is_completed_by_its_batch_alone():
    future = future_of(closed([b'a']), 0, -1, 1, -1)
    with pytest.raises(AssertionError):
        future.success(1)
    with pytest.raises(AssertionError):
        future.failure(KafkaError())


def test_get_says_what_is_still_under_way():
    future = future_of(closed([b'a']), 0, -1, 1, -1)
    with pytest.raises(KafkaTimeoutError, match='t-3.*may still'):
        future.get(timeout=0)


def test_pieces_have_all_records_once_and_numbers_in_order():
    values = [b'%d' % n * 10 for n in range(7)]
    keys = [None, b'k1', None, b'k3']
    batch = closed(values, keys, times=((0, 1), (3, 2), (5, 3)))
    batch.restamp(9, 1, 2**31 - 3, False)
    batch.move(BatchState.IN_FLIGHT)
    pieces = batch.split(150)
    assert [piece.record_count for piece in pieces] == [3, 3, 1]
    assert [piece.base_sequence for piece in pieces] == [2**31 - 3, 0, 3]
    assert [piece.created_at for piece in pieces] == [5.0] * 3
    found = [row for piece in pieces for row in records(piece.encode(2))]
    assert [row[1:4] for row in found] == [
        (time, key, value)
        for time, key, value in zip([1, 1, 1, 2, 2, 3, 3], keys + [None] * 3, values)
    ]


def test_futures_follow_their_records_into_pieces():
    batch = closed([b'a' * 100, b'b' * 100, b'c' * 100])
    futures = [future_of(batch, n, -1, 100, -1) for n in range(3)]
    calls = []
    futures[2].add_callback(calls.append)
    batch.move(BatchState.IN_FLIGHT)
    first, second, third = batch.split(1)
    futures[1].add_errback(calls.append)
    third.move(BatchState.IN_FLIGHT)
    third.succeed(70)
    assert futures[2].get().offset == 70 and not futures[0].is_done
    second.fail(KafkaError('gone'))
    assert not batch.is_done
    first.move(BatchState.IN_FLIGHT)
    first.succeed(9)
    assert batch.is_done
    assert [getattr(call, 'offset', str(call)) for call in calls] == [70, 'KafkaError: gone']
    assert futures[0].get().offset == 9


def test_a_callback_that_is_taken_back_while_another_batch_takes_over_is_kept_once():
    """Its thread sees the other batch as soon as it has added the callback, and adds it there."""
    batch, other, told = closed([b'v']), batch_of([b'0', b'v']), []
    future = future_of(batch, 0, -1, 1, -1)
    future.add_callback(told.append)
    future.add_callback(told.append)
    assert len(batch.calls) == 2

    class Calls(list):
        def pop(self, index):
            entry = super().pop(index)
            if self:
                other.calls.append(super().pop(index))
            return entry

    batch.calls = Calls(batch.calls)
    batch.stand_for(other, 1)
    assert not batch.calls and len(other.calls) == 2
    other.close()
    other.move(BatchState.IN_FLIGHT)
    other.succeed(5)
    assert [metadata.offset for metadata in told] == [6, 6]


def test_a_piece_can_be_split_again():
    batch = closed([b'a' * 100, b'b' * 100, b'c' * 100, b'd' * 100])
    futures = [future_of(batch, n, -1, 100, -1) for n in range(4)]
    batch.move(BatchState.IN_FLIGHT)
    halves = batch.split(300)
    quarters = [quarter for half in halves for quarter in half.split(1)]
    assert [piece.number for piece in quarters] == sorted(piece.number for piece in quarters)
    for offset, piece in enumerate(quarters):
        piece.move(BatchState.IN_FLIGHT)
        piece.succeed(offset * 10)
    assert [future.get().offset for future in futures] == [0, 10, 20, 30]
    assert batch.is_done


def test_a_batch_that_is_over_keeps_no_records():
    batch = closed([b'a'], [b'k'], [[('h', b'')]])
    batch.encode(2)
    batch.fail(KafkaError())
    assert (batch.values, batch.keys, batch.headers, batch.encoded) == ([], None, None, None)


def test_a_record_that_was_never_taken_has_a_future_that_failed():
    error = KafkaError('too large')
    future = future_of(FailedBatch(TP, error, 123), 0, -1, 5, -1)
    assert future.is_done and future.exception == error and future.timestamp_ms == 123
    with pytest.raises(KafkaError):
        future.get(timeout=1)


def test_codecs_have_names():
    assert [compression_of(name) for name in (None, 'none', 'gzip', 'zstd')] == [0, 0, 1, 4]
    with pytest.raises(ValueError, match='no codec .*rar'):
        compression_of('rar')


def test_reprs_name_place_and_state():
    batch = batch_of([b'a'])
    assert 't-3 open, 1 record' in repr(batch)
    batch.close()
    batch.restamp(1, 2, 3, False)
    assert 'closed' in repr(batch) and 'sequence 3' in repr(batch)
    future = future_of(batch, 0, -1, 1, -1)
    assert 'pending' in repr(future)
    batch.fail(KafkaError('x'))
    assert 'failed' in repr(future) and "'x'" in repr(future)


def test_pieces_are_missed_in_the_log_as_their_batch_would_be():
    batch = closed([b'a', b'b'])
    batch.is_unasked = True
    assert [piece.is_unasked for piece in batch.split(1)] == [True, True]


def test_a_key_whose_value_never_came_is_forgotten():
    """Ctrl-C may end send() between the two."""
    batch = batch_of([b'0'], [b'zero'])
    batch.set_key(1, b'lost')
    batch.set_key(1, b'one')
    batch.put(b'1')
    batch.set_key(2, b'lost')
    batch.close()
    assert batch.keys == [b'zero', b'one']
