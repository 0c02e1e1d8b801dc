"""Encoded batches in the queues of an accumulator: behind what is there, and within its memory."""

from __future__ import annotations

import pytest

from kafka.errors import IllegalStateError
from kafka.producer import encoded_batches
from kafka.producer.buffer import Ticket
from kafka.producer.encoded_batches import Encoded, LateColumn, ManyEncoded
from kafka.producer.producer_batch import BatchState
from kafka.producer.record_accumulator import AccumulatorConfig, RecordAccumulator
from kafka.record.batch_encoder import encode_columns
from kafka.record.default_records import DefaultRecordBatch


def part(partition, *values, keys=None, headers=None):
    records = encode_columns(values, keys, headers, [(0, 0)])
    return Encoded(partition, memoryview(records), len(values))


def accumulator_of(**limits):
    accumulator = RecordAccumulator(
        AccumulatorConfig(**limits), lambda: None, lambda done, timeout: done()
    )
    topic = accumulator.topic('t')
    accumulator.update(topic, range(3), range(3))
    return accumulator, topic


def put(accumulator, topic, *parts, ticket=None):
    many = ManyEncoded(topic, 5)
    many.parts.extend(parts)
    return many, accumulator.append_encoded(many, 0.0, ticket)


def taken(accumulator, topic, partition):
    """Return the values of all batches of a partition, batch by batch."""
    found = []
    while True:
        batch = accumulator.take(topic.queue(partition))
        if batch is None:
            return found
        encoded = DefaultRecordBatch(bytes(batch.encode(2)))
        found.append([record.value for record in encoded])


def test_a_batch_is_sent_as_it_is_and_nobody_looks_into_it(monkeypatch):
    monkeypatch.setattr(encoded_batches, 'decode_records', None)
    accumulator, topic = accumulator_of()
    many, ticket = put(accumulator, topic, part(1, b'a', b'b', keys=[b'k', None]))
    assert ticket is None and not many.parts
    (batch,) = accumulator.incomplete
    assert (batch.state, batch.record_count, batch.room) == (BatchState.CLOSED, 2, -1)
    assert [(each.batch, each.start, each.size) for each in many.placed] == [(batch, 0, 2)]
    assert accumulator.records == 2
    sent = list(DefaultRecordBatch(bytes(batch.encode(2))))
    assert [(each.key, each.value, each.timestamp) for each in sent] == [
        (b'k', b'a', 5),
        (None, b'b', 5),
    ]


def test_it_stands_behind_an_open_batch_and_before_what_follows():
    accumulator, topic = accumulator_of()
    accumulator.append(topic, 1, None, b'first', (), None, 0.0, 0.0)
    put(accumulator, topic, part(1, b'second'))
    accumulator.append(topic, 1, None, b'third', (), None, 0.0, 0.0)
    assert taken(accumulator, topic, 1) == [[b'first'], [b'second'], [b'third']]


def test_without_a_partition_each_batch_goes_to_another_one():
    accumulator, topic = accumulator_of()
    put(accumulator, topic, *[part(None, b'%d' % number) for number in range(3)])
    assert sorted(batch.topic_partition.partition for batch in accumulator.incomplete) == [0, 1, 2]


def test_what_finds_no_memory_waits_with_its_place():
    accumulator, topic = accumulator_of(buffer_memory=200)
    many, ticket = put(accumulator, topic, part(0, b'x' * 100), part(0, b'y' * 100))
    assert isinstance(ticket, Ticket) and len(many.parts) == 1
    batch = accumulator.take(topic.queue(0))
    batch.move(BatchState.IN_FLIGHT)
    batch.succeed(0)
    accumulator.finish(batch)
    assert ticket.granted
    assert accumulator.append_encoded(many, 0.0, ticket) is None
    assert taken(accumulator, topic, 0) == [[b'y' * 100]]


def test_memory_is_free_when_a_batch_has_its_outcome():
    accumulator, topic = accumulator_of()
    put(accumulator, topic, part(0, b'x'))
    assert accumulator.memory.used > 0
    batch = accumulator.take(topic.queue(0))
    batch.move(BatchState.IN_FLIGHT)
    batch.succeed(0)
    accumulator.finish(batch)
    assert accumulator.memory.used == 0
    assert batch.records is None and len(batch.values) == 0


def test_a_batch_larger_than_all_memory_is_sent_alone():
    accumulator, topic = accumulator_of(buffer_memory=50)
    assert put(accumulator, topic, part(0, b'x' * 100))[1] is None


def test_pieces_of_a_batch_have_its_records():
    accumulator, topic = accumulator_of()
    headers = [(), [('h', b'x')], [('h', None)]]
    put(accumulator, topic, part(0, b'a', None, b'c', keys=[None, b'2', b'3'], headers=headers))
    batch = accumulator.take(topic.queue(0))
    pieces = batch.split(1)
    assert [(*piece.keys, *piece.values, *piece.headers) for piece in pieces] == [
        (None, b'a', ()),
        (b'2', None, (('h', b'x'),)),
        (b'3', b'c', (('h', None),)),
    ]
    assert batch.records is None


def test_a_topic_that_was_forgotten_comes_back():
    accumulator, topic = accumulator_of()
    accumulator.forget_idle(1.0, 0.0)
    accumulator.forget_idle(2.0, 0.0)
    assert topic.is_forgotten
    put(accumulator, topic, part(0, b'a'))
    assert accumulator.topic('t') is topic and not topic.is_forgotten


def test_a_topic_that_gets_batches_is_in_use():
    accumulator, topic = accumulator_of()
    topic.is_used = False
    put(accumulator, topic, part(0, b'a'))
    assert topic.is_used


def test_a_box_goes_first():
    accumulator, topic = accumulator_of()
    accumulator.open_box(topic, 0.0, 0.0)
    topic.put_in_box(b'boxed')
    put(accumulator, topic, *[part(each, b'encoded') for each in range(3)])
    found = [taken(accumulator, topic, partition) for partition in range(3)]
    assert [[b'boxed'], [b'encoded']] in found


def test_batches_that_shrink_have_more_room():
    accumulator, topic = accumulator_of(compressed=True, batch_size=1000)
    topic.ratio = 0.25
    assert accumulator.batch_room(topic) == 4000
    topic.ratio = 0.001
    assert accumulator.batch_room(topic) == 8000
    accumulator, topic = accumulator_of(batch_size=1000)
    topic.ratio = 0.25
    assert accumulator.batch_room(topic) == 1000


def test_nothing_is_taken_when_it_is_closed():
    accumulator, topic = accumulator_of()
    accumulator.close()
    with pytest.raises(IllegalStateError, match='closed'):
        put(accumulator, topic, part(0, b'a'))


def test_a_late_column_shows_how_long_it_is_and_no_values():
    records = encode_columns([b'secret', b'a', b'b'], None, None, [(0, 0)])
    column = LateColumn(records, 3, 'value')
    assert repr(column) == '<LateColumn value of 3 records>'
    assert (column[1], column[1:], list(column)[2]) == (b'a', [b'a', b'b'], b'b')
