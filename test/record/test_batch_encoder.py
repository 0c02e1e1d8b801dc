"""The columns of a batch become the bytes that the obvious writer writes record by record."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka.errors import ProtocolError
from kafka.record.batch_encoder import encode_columns, encode_messages, encode_records
from test.record import oracle
from test.record.oracle import R
from test.record.strategies import EDGES, rows


def obvious(records):
    base = records[0][0]
    return b''.join(oracle.write_record(R(i, *row), 0, base) for i, row in enumerate(records))


@given(rows())
def test_any_mixture(records):
    assert encode_records(records, records[0][0]) == obvious(records)


@given(st.lists(st.sampled_from(EDGES), min_size=1, max_size=90))
def test_records_without_key_and_headers_at_one_time(sizes):
    records = [(7, None, b'v' * size, ()) for size in sizes]
    assert encode_records(records, 7) == obvious(records)


@pytest.mark.parametrize('size', EDGES)
@pytest.mark.parametrize('count', [1, 16, 17, 64, 65, 100])
def test_equal_lengths(size, count):
    records = [
        (7, None, b'%0*d' % (size, i) if size > 3 else b'v' * size, ()) for i in range(count)
    ]
    assert encode_records(records, 7) == obvious(records)


def test_offsets_of_three_bytes():
    for size in (1, 70):
        records = [(7, None, b'v' * size, ()) for _ in range(8300)]
        assert encode_records(records, 7) == obvious(records)


@given(rows())
def test_messages_are_records_of_one_time_without_headers(records):
    keys, values = [r[1] for r in records], [r[2] for r in records]
    alike = [(7, key, value, ()) for key, value in zip(keys, values)]
    assert encode_messages(keys, values) == obvious(alike)


@given(
    st.one_of(st.none(), st.sampled_from(EDGES).map(lambda size: b'k' * size)),
    st.lists(st.sampled_from(EDGES), min_size=1, max_size=70),
)
def test_messages_of_one_key(key, sizes):
    values = [b'v' * size for size in sizes]
    alike = [(7, key, value, ()) for value in values]
    assert encode_messages([key] * len(values), values) == obvious(alike)


@pytest.mark.parametrize('key', [None, b'', b'key', b'k' * 70])
@pytest.mark.parametrize('count', [1, 16, 17, 64, 65, 200])
def test_messages_of_one_key_and_one_length(key, count):
    values = [b'%0100d' % number for number in range(count)]
    alike = [(7, key, value, ()) for value in values]
    assert encode_messages([key] * count, values) == obvious(alike)


@pytest.mark.parametrize('wrong', [('text', b'v'), (b'k', 'text'), (b'k', 5), (['k'], b'v')])
def test_a_wrong_type_in_a_message_is_named(wrong):
    with pytest.raises(TypeError, match='of record 0 must be bytes or None'):
        encode_messages([wrong[0]], [wrong[1]])


def test_nothing():
    assert encode_records([], 0) == b''
    assert encode_messages([], []) == b''


@pytest.mark.parametrize('kind', [bytes, bytearray, memoryview])
def test_any_buffer_can_be_key_and_value(kind):
    records = [(7, kind(b'key'), kind(b'value'), ())] * 2
    assert encode_records(records, 7) == obvious([(7, b'key', b'value', ())] * 2)


@pytest.mark.parametrize(
    'wrong, complaint',
    [
        ((0, None, 'text', ()), 'value of record 1 must be bytes or None, not str'),
        ((0, 5, b'', ()), 'key of record 1 must be bytes or None, not int'),
        (('now', None, b'', ()), 'timestamp of record 1 must be int, not str'),
        ((None, None, b'', ()), 'timestamp of record 1 must be int, not NoneType'),
        ((0, None, b'', [('h', 'text')]), 'headers of record 1 must be pairs'),
        ((0, None, b'', [(b'h', b'x')]), 'headers of record 1 must be pairs'),
        ((0, None, b'', [b'h']), 'headers of record 1 must be pairs'),
        ((0, None, b'', 5), 'headers of record 1 must be pairs'),
        ((0, None, b''), r'record 1 must be \(timestamp, key, value, headers\)'),
        (None, r'record 1 must be \(timestamp, key, value, headers\)'),
    ],
)
def test_wrong_types_are_named(wrong, complaint):
    with pytest.raises(TypeError, match=complaint):
        encode_records([(0, None, b'v', ()), wrong], 0)


def test_a_timestamp_too_far_from_the_first_is_refused():
    with pytest.raises(ProtocolError, match='64-bit'):
        encode_records([(-(1 << 62), None, b'', ()), (1 << 63, None, b'', ())], -(1 << 62))


STAMPS = st.lists(st.tuples(st.integers(0, 300), st.integers(-5, 100_000)), max_size=80)


@given(st.lists(st.integers(0, 200), min_size=1, max_size=300), STAMPS)
def test_columns_with_times_are_the_records_one_by_one(sizes, stamps):
    values = [bytes(size) for size in sizes]
    deltas = sorted({0: 0, **{start: at for start, at in stamps if start < len(values)}}.items())
    times = [next(at for start, at in reversed(deltas) if start <= n) for n in range(len(values))]
    records = [(at, None, value, ()) for at, value in zip(times, values)]
    written = b''.join(oracle.write_record(R(i, *row), 0, 0) for i, row in enumerate(records))
    assert encode_columns(values, None, None, deltas) == written


@given(st.lists(st.tuples(st.sampled_from(EDGES), st.integers(0, 70)), min_size=1), STAMPS)
def test_columns_with_keys(sizes, stamps):
    values, keys = [bytes(n) for n, _ in sizes], [b'k' * n for _, n in sizes]
    deltas = sorted({0: 0, **{start: at for start, at in stamps if start < len(values)}}.items())
    times = [next(at for start, at in reversed(deltas) if start <= n) for n in range(len(values))]
    records = zip(times, keys, values)
    written = b''.join(oracle.write_record(R(i, *row, ()), 0, 0) for i, row in enumerate(records))
    assert encode_columns(values, keys, None, deltas) == written


@given(rows())
def test_columns_of_any_mixture(records):
    times, keys, values, headers = map(list, zip(*records))
    deltas = [(n, at - times[0]) for n, at in enumerate(times)]
    assert encode_columns(values, keys, headers, deltas) == obvious(records)


def test_wrong_types_in_columns_are_named():
    with pytest.raises(TypeError, match='value of record 1 must be bytes or None, not str'):
        encode_columns([b'', ''], None, None, [(0, 0)])


def test_no_columns():
    assert encode_columns([], None, None, [(0, 0)]) == b''
