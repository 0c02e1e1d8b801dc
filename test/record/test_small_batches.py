"""Small batches read many at a time say what each says by itself, and unusual ones are left."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka.errors import ChecksumError, KafkaError
from kafka.record import small_batches
from kafka.record.crc32c import crc32c
from kafka.record.default_records import encode_batch
from kafka.record.legacy_records import encode_message_set
from kafka.record.memory_records import MemoryRecords
from kafka.record.small_batches import MOST_RECORDS, read_small_batches
from test.record.strategies import EDGES, rows

NOW = 1_700_000_000_000
FIELDS = [None, b'', b'k', b'k' * 63, b'k' * 64, b'v' * 8191, b'v' * 8192, b'v' * 70000]


def batch(records, base_offset=0, **options):
    return encode_batch(records, base_offset=base_offset, **options)


def plain(*values, key=None):
    return [(NOW + number, key, value, ()) for number, value in enumerate(values)]


def one_by_one(data):
    """Read with an object for each batch and each record."""
    return [(r.offset, r.key, r.value) for each in MemoryRecords(data) for r in each]


def quickly(data):
    return [
        fields
        for each in MemoryRecords(data).runs()
        for part in each.columns()
        for fields in part.fields()
    ]


def in_a_row(groups, **options):
    data, offset = b'', 0
    for records in groups:
        data += batch(records, offset, **options)
        offset += len(records)
    return data


@given(st.lists(rows(max_size=6), max_size=8))
def test_any_mixture(groups):
    data = in_a_row(groups)
    assert quickly(data) == one_by_one(data)


@pytest.mark.parametrize('size', EDGES)
@pytest.mark.parametrize('key', [None, b'', b'key', b'k' * 63, b'k' * 64])
@pytest.mark.parametrize('count', [1, 2, MOST_RECORDS, MOST_RECORDS + 1])
def test_lengths_of_every_width(size, key, count):
    data = in_a_row([plain(*[b'v' * size] * count, key=key)] * 3)
    assert quickly(data) == one_by_one(data)


@pytest.mark.parametrize('value', FIELDS)
@pytest.mark.parametrize('key', FIELDS)
def test_fields_of_every_length(key, value):
    data = in_a_row([plain(value, key=key)] * 2)
    assert quickly(data) == one_by_one(data)


@pytest.mark.parametrize('step', [0, 1, 63, 64, 8191, 8192, 1 << 20, 1 << 40, -1, -9000])
def test_timestamps_of_every_width(step):
    records = [(NOW + number * step, None, b'v', ()) for number in range(3)]
    data = in_a_row([records] * 2)
    assert quickly(data) == one_by_one(data)


def test_batches_of_one_message_are_read_at_once():
    data = in_a_row([plain(b'%d' % number) for number in range(50)])
    (run,) = MemoryRecords(data).runs()
    assert (run.end, run.last_offset, run.next_offset) == (len(data), 49, 50)
    assert run.size_in_bytes == len(batch(plain(b'10')))
    ((offsets, keys, values),) = run.columns()
    assert (list(offsets), keys, values) == (list(range(50)), None, [b'%d' % n for n in range(50)])


def test_a_run_ends_somewhere(monkeypatch):
    monkeypatch.setattr(small_batches, '_RUN_RECORDS', 10)
    data = in_a_row([plain(b'a', b'b', b'c')] * 7)
    found = list(MemoryRecords(data).runs())
    assert [len(part.values) for each in found for part in each.columns()] == [12, 9]
    assert quickly(data) == one_by_one(data)


UNUSUAL = {
    'headers': batch([(NOW, None, b'v', (('h', b'x'),))]),
    'gzip': batch(plain(b'v'), codec=1),
    'control': batch([(NOW, b'\0\0\0\1', b'\0' * 6, ())], control=True),
    'many': batch(plain(*[b'v'] * (MOST_RECORDS + 1))),
    'no records': batch([]),
    'magic 1': encode_message_set([(0, NOW, None, b'v')], magic=1),
    'cut off': batch(plain(b'v'))[:-1],
    'large': batch(plain(b'v' * 70000)),
}


@pytest.mark.parametrize('kind', UNUSUAL)
def test_what_is_unusual_is_left_to_its_reader(kind):
    data = UNUSUAL[kind]
    assert read_small_batches(data, 0) is None
    before = batch(plain(b'before'))
    assert read_small_batches(before + data, 0).end == len(before)
    if kind != 'cut off':
        mixed = before + data + before
        assert quickly(mixed) == one_by_one(mixed)


def test_what_a_compaction_left_is_read_by_offset():
    data = bytearray(batch(plain(b'a', b'b')))
    struct.pack_into('>i', data, 23, 5)  # the last offset delta is that of a record now gone
    struct.pack_into('>I', data, 17, crc(data))
    assert read_small_batches(bytes(data), 0) is None
    assert quickly(data) == one_by_one(data) == [(0, None, b'a'), (1, None, b'b')]
    (only,) = MemoryRecords(data).runs()
    assert only.next_offset == 6


def crc(data):
    return crc32c(data[21:])


def test_a_wrong_crc_is_found():
    data = bytearray(in_a_row([plain(b'a')] * 2))
    data[-1] ^= 1
    with pytest.raises(ChecksumError):
        quickly(bytes(data))


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), min_size=1, max_size=4))
def test_damage_with_a_right_crc_leads_to_what_it_leads_to_one_by_one(changes):
    data = bytearray(in_a_row([plain(b'abc', None, b'', key=b'k')]))
    for position, value in changes:
        data[61 + position % (len(data) - 61)] = value
    struct.pack_into('>I', data, 17, crc(data))
    outcomes = []
    for way in (quickly, one_by_one):
        try:
            outcomes.append(way(bytes(data)))
        except KafkaError as error:
            outcomes.append(type(error))
    assert outcomes[0] == outcomes[1]
