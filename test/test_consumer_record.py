"""What a consumer hands out for each record: a named tuple of 13."""

from __future__ import annotations

import gc
import pickle
from itertools import repeat

import pytest

from kafka.consumer_record import ConsumerRecord, LazyRecords, RecentRecords, make_records
from kafka.structs import ConsumerRecord as FromStructs

VALUES = ('t', 3, 17, 1600, 0, b'k', b'v', [('h', b'1')], None, 1, 1, 2, 5)


def made() -> ConsumerRecord:
    (record,) = make_records([[value] for value in VALUES])
    return record


def test_that_structs_has_it():
    assert FromStructs is ConsumerRecord


def test_that_fields_stand_in_the_order_of_1_4_4_with_the_epoch_at_the_end():
    assert ConsumerRecord._fields == (
        'topic',
        'partition',
        'offset',
        'timestamp',
        'timestamp_type',
        'key',
        'value',
        'headers',
        'checksum',
        'serialized_key_size',
        'serialized_value_size',
        'serialized_header_size',
        'leader_epoch',
    )


def test_that_one_made_of_columns_is_one_that_was_called_for():
    assert made() == ConsumerRecord(*VALUES) and type(made()) is ConsumerRecord


def test_that_each_field_has_its_name():
    record = made()
    assert tuple(getattr(record, name) for name in record._fields) == VALUES


def test_that_it_is_a_tuple_of_13():
    record = made()
    assert isinstance(record, tuple) and len(record) == 13
    assert tuple(record) == VALUES and record == VALUES and VALUES == record
    assert record[6] == b'v' and record[-1] == 5 and record[:3] == ('t', 3, 17)
    topic, partition, *_, epoch = record
    assert (topic, partition, epoch) == ('t', 3, 5)
    assert '%r %r %r %r %r %r %r %r %r %r %r %r %r' % record == ' '.join(map(repr, VALUES))


def test_that_it_can_be_hashed_where_its_fields_can():
    hashable = made()._replace(headers=())
    assert hash(hashable) == hash(tuple(hashable)) and len({hashable, tuple(hashable)}) == 1


@pytest.mark.parametrize('protocol', range(pickle.HIGHEST_PROTOCOL + 1))
def test_that_it_can_be_pickled(protocol):
    again = pickle.loads(pickle.dumps(made(), protocol))
    assert again == made() and type(again) is ConsumerRecord


def test_that_it_has_the_calls_of_named_tuples():
    record = made()
    assert record._asdict() == dict(zip(ConsumerRecord._fields, VALUES))
    assert record._replace(value='x').value == 'x' and type(record._replace(key=1)) is type(record)
    assert ConsumerRecord._make(VALUES) == record
    assert repr(record).startswith("ConsumerRecord(topic='t', partition=3, offset=17, timestamp=")
    assert repr(record).endswith('serialized_header_size=2, leader_epoch=5)')


def test_that_what_stands_behind_the_value_may_be_left_out():
    record = ConsumerRecord('t', 0, 1, 2, 0, None, value=b'v')
    assert record[7:] == ((), None, -1, -1, -1, -1)


def test_that_it_has_no_other_attributes():
    with pytest.raises(AttributeError):
        made().other = 1


def columns_of(offsets):
    count = len(offsets)
    headers = [[] for _ in offsets]
    columns = [repeat('t'), repeat(3), offsets, *([None] * count for _ in range(4)), headers]
    return [*columns, *(repeat(-1) for _ in range(5))]


def lazy(offsets):
    return LazyRecords(columns_of(offsets), offsets, 5)


def test_that_each_is_made_when_it_is_asked_for():
    records = lazy([4, 7])
    one = next(records.iterator)
    assert type(one) is ConsumerRecord
    assert one == ConsumerRecord('t', 3, 4, None, None, None, None, [], -1, -1, -1, -1, -1)
    assert [each.offset for each in records.iterator] == [7]


@pytest.mark.parametrize('offsets', [[4, 7, 8], range(4, 7)])
def test_that_those_made_when_asked_for_know_how_far_they_are(offsets):
    records = lazy(offsets)
    assert (records.left(), records.last(), len(records)) == (3, None, 3)
    for place, offset in enumerate(offsets):
        next(records.iterator)
        assert (records.left(), records.last(), len(records)) == (2 - place, (offset, 5), 3)
    assert next(records.iterator, None) is None
    assert (records.left(), records.last()) == (0, (offset, 5))


def test_that_none_to_be_made_is_none():
    records = lazy([])
    assert (records.left(), records.last(), list(records.iterator)) == (0, None, [])


def test_that_lists_of_those_that_are_held_for_a_while_are_lists_as_others():
    recent = RecentRecords(10, 1000)
    for first in range(0, 50, 5):
        count = 1 + first % 4
        offsets = range(first, first + count)
        made = recent.make(columns_of(offsets), count, 0)
        assert made == make_records(columns_of(offsets)) and type(made) is list
        assert len(recent) <= 10


def test_that_what_takes_much_memory_is_not_held():
    recent = RecentRecords(10, 1000)
    for count, size, held in ((5, 500, 5), (5, 501, 0), (5, 500, 5), (6, 0, 0), (1, -1, 1)):
        made = recent.make(columns_of(range(count)), count, size)
        assert (len(made), len(recent)) == (count, held)


def collections_during(make):
    """Return how often the collector looked while lists were made, each held until the next."""
    seen = []
    gc.collect()
    gc.callbacks.append(lambda phase, info: seen.append(phase))
    try:
        for _ in range(40):
            records = make(columns_of(range(500)))
        assert len(records) == 500
    finally:
        gc.callbacks.pop()
    return len(seen)


@pytest.mark.skipif(gc.get_threshold()[0] > 1000, reason='the collector of 3.13 is in no hurry')
def test_that_the_collector_has_nothing_to_do_with_those_that_are_held():
    recent = RecentRecords()
    assert collections_during(lambda columns: recent.make(columns, 500, 0)) * 2 < (
        collections_during(make_records)
    )
