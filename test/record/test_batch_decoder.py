"""The fast ways through a batch's records give what the obvious way gives, whatever the mixture."""

from __future__ import annotations

import random
import sys
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka.errors import ProtocolError
from kafka.record import batch_decoder, header_blocks
from kafka.record.batch_decoder import (
    CHUNK,
    decode_columns,
    decode_group,
    decode_marks,
    decode_records,
)
from kafka.record.batch_layouts import WRONG, length_at, measure_run, stretches
from kafka.record.formats import formats
from kafka.record.record import Record
from kafka.record.record_columns import Group
from kafka.record.record_reader import decode_record
from test.record import oracle
from test.record.oracle import R, varint_bytes
from test.record.strategies import EDGES, rows

TRACE = (('trace', b'0123456789abcdef'),)


def encode(records):
    """Encode records as they lie in a batch of base offset 0 and base timestamp 0."""
    return b''.join(oracle.write_record(r, 0, 0) for r in records)


def decode(data, count):
    return [record for chunk in decode_records(data, count, 0, 0, None) for record in chunk]


def columns(data, count):
    chunks = decode_columns(data, count, 0)
    return [fields for chunk in chunks for fields in chunk.fields()]


def marks(data, count):
    return [
        fields
        for offsets, timestamps, keys in decode_marks(data, count, 0, 0, None)
        for fields in zip(offsets, timestamps, [None] * len(timestamps) if keys is None else keys)
    ]


def same(records):
    """Tell whether records are read as they were written, their columns and marks with them."""
    data, count = encode(records), len(records)
    assert marks(data, count) == [(r.offset, r.timestamp, r.key) for r in records]
    assert columns(data, count) == [(r.offset, r.key, r.value) for r in records]
    return decode(data, count) == records


@given(rows(max_size=60))
def test_any_mixture(chosen):
    assert same([R(i, *row) for i, row in enumerate(chosen)])


@given(rows(max_size=30), st.lists(st.integers(1, 200), min_size=1, max_size=200))
def test_compaction_leaves_gaps_between_offsets(chosen, steps):
    offset, records = 0, []
    for number, row in enumerate(chosen):
        records.append(R(offset, *row))
        offset += steps[number % len(steps)]
    assert same(records)


@pytest.mark.parametrize('size', EDGES)
@pytest.mark.parametrize('key', [None, b'', b'key', b'k' * 63, b'k' * 64])
@pytest.mark.parametrize('headers', [(), TRACE])
def test_streaks_of_one_size(size, key, headers):
    """Lengths of fields and of the record change their widths here, and offsets at 64."""
    assert same([R(i, i // 9, key, b'v' * size, headers) for i in range(80)])


@pytest.mark.parametrize('odd', [None, b'', b'v' * 20, b'v' * 60, b'v' * 64, b'v' * 9000])
@pytest.mark.parametrize('key', [None, b'key'])
def test_the_odd_one_out_does_not_derail_a_streak(odd, key):
    for place in (0, 1, 2, 40, 63, 64, 65, 78, 79):
        records = [R(i, i, key, b'v' * 100) for i in range(80)]
        records[place] = records[place]._replace(value=odd)
        assert same(records)


def test_keys_and_headers_may_come_late():
    """A streak of records without key and headers is left for good when one has any."""
    for change in ({'key': b'k'}, {'headers': TRACE}, {'key': b''}):
        records = [R(i, i, None, b'v' * 100) for i in range(80)]
        for place in (50, 51, 70):
            records[place] = records[place]._replace(**change)
        assert same(records)


@pytest.mark.parametrize('step', [1, 63, 64, 100, 8191, 8192, 1 << 21, -1, -65, -9000])
def test_timestamps_of_every_width(step):
    assert same([R(i, i * step, None, b'v' * 70) for i in range(80)])
    assert same([R(i, i * step, b'k%d' % i, b'v' * 70, TRACE) for i in range(80)])


def test_more_records_than_a_chunk_and_than_the_offset_tables():
    rng = random.Random(5)
    records = [R(i, i // 50, None, b'v' * rng.randrange(50, 70)) for i in range(9000)]
    assert same(records)
    chunks = decode_records(encode(records), len(records), 0, 0, None)
    assert [len(list(chunk)) for chunk in chunks] == [CHUNK] * 9


KINDS = {
    'runs': lambda i: (None, b'%060d' % i, ()),
    'runs with keys': lambda i: (b'%05d' % i, b'%020d' % i, TRACE),
    'values of any length': lambda i: (None, b'v' * (i % 90), ()),
    'keys of any length': lambda i: (b'k' * (i % 30), b'v' * (i % 40), TRACE if i % 7 else ()),
}


@pytest.mark.parametrize('kind', sorted(KINDS))
def test_offsets_of_three_bytes(kind):
    """librdkafka puts 10,000 records into a batch; a byte more comes with the 8,193th."""
    records = [R(i, i // 30, *KINDS[kind](i)) for i in range(9100)]
    assert same(records)


@pytest.mark.parametrize('kind', ['runs', 'keys of any length'])
def test_gaps_between_offsets_of_three_bytes(kind):
    records = [R(i, 0, *KINDS[kind](i)) for i in range(8400)]
    start = encode(records[:8100])
    for place in (8191, 8192, 8193, 8399):
        changed = [record._replace(offset=record.offset + 1) for record in records[place:]]
        data = start + encode(records[8100:place] + changed)
        assert decode(data, len(records)) == records[:place] + changed


#: Offsets of three bytes are read the slow way then, as formats give them as bytes.
without_flag = pytest.mark.skipif(sys.flags.bytes_warning > 0, reason='python -b is careful')


@without_flag
@pytest.mark.parametrize('kind', sorted(KINDS))
def test_offsets_of_three_bytes_need_no_slow_way(monkeypatch, kind):
    records = [R(i, 0, *KINDS[kind](i)) for i in range(9000)]
    data, slow = encode(records), []

    def counted(buf, pos, stop):
        slow.append(pos)
        return decode_record(buf, pos, stop)

    # How many formats there are by now, and may be made, depends on what was read before.
    for forget in formats.forgetters:
        forget()
    decode(data, len(records))
    monkeypatch.setattr(batch_decoder, 'decode_record', counted)
    assert decode(data, len(records)) == records
    assert len(slow) < 100


@without_flag
def test_offsets_of_four_bytes_are_read_the_slow_way(monkeypatch):
    monkeypatch.setattr(batch_decoder, 'WIDE_OFFSETS', 9000)
    records = [R(i, 0, None, b'v' * (i % 9)) for i in range(9500)]
    assert decode(encode(records), len(records)) == records


def test_base_values_are_added_and_append_time_overrides():
    data = encode([R(i, i, None, b'v') for i in range(5)])
    (chunk,) = decode_records(data, 5, 1 << 40, 1600000000000, None)
    assert list(chunk)[4] == ((1 << 40) + 4, 1600000000004, None, b'v', ())
    (chunk,) = decode_records(data, 5, 0, 0, 77)
    assert [record.timestamp for record in chunk] == [77] * 5


def test_records_are_made_lazily():
    """What is malformed is reported when it is reached; a thousand records before it come first."""
    data = encode([R(i, 0, None, b'v' * 70) for i in range(CHUNK)]) + b'\x0e' * 10
    chunks = decode_records(data, CHUNK + 1, 0, 0, None)
    assert len(list(next(chunks))) == CHUNK
    with pytest.raises(ProtocolError):
        next(chunks)


@given(rows(max_size=12), st.data())
def test_damaged_records_read_as_the_obvious_way_reads_them(chosen, data):
    """Any byte changed, anything cut off or put in: same records or both refuse."""
    good = bytearray(encode([R(i, *row) for i, row in enumerate(chosen)]))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(good) - 1))
        good[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
        good = good or bytearray(b'\x00')
    count = len(chosen) + data.draw(st.sampled_from([0, 0, 0, 1, -1]))
    reader = oracle.Reader(bytes(good))
    try:
        expected = [oracle.read_record(reader, 0, 0, None) for _ in range(count)]
        if reader.left():
            raise oracle.Malformed('bytes behind')
    except oracle.Malformed:
        with pytest.raises(ProtocolError):
            decode(bytes(good), count)
    else:
        assert decode(bytes(good), count) == expected


streaks = st.tuples(
    st.integers(60, 140),
    st.sampled_from([1, 9, 200]),
    st.sampled_from([None, b'', b'key']),
    st.sampled_from([0, 20, 55, 58, 100]),
    st.sampled_from([(), TRACE]),
)


@given(streaks, st.data())
def test_damaged_streaks_read_as_the_obvious_way_reads_them(streak, data):
    """As above for many records of one size, which are read all at once."""
    count, pace, key, size, headers = streak
    values = [b'%0*d' % (size, i) if size else b'' for i in range(count)]
    good = bytearray(encode([R(i, i // pace, key, v, headers) for i, v in enumerate(values)]))
    for _ in range(data.draw(st.integers(0, 3))):
        place = data.draw(st.integers(0, len(good) - 1))
        good[place : place + data.draw(st.sampled_from([1, 1, 1, 0, 2]))] = data.draw(
            st.sampled_from([b'\x00', b'\x01', b'\x02', b'\x7f', b'\x80', b'\xff'])
        )
    reader = oracle.Reader(bytes(good))
    try:
        expected = [oracle.read_record(reader, 0, 0, None) for _ in range(count)]
        if reader.left():
            raise oracle.Malformed('bytes behind')
    except oracle.Malformed:
        with pytest.raises(ProtocolError):
            decode(bytes(good), count)
    else:
        assert decode(bytes(good), count) == expected


@pytest.mark.parametrize('headers', [(), TRACE])
@pytest.mark.parametrize('key', [None, b'key'])
def test_records_of_one_size_are_read_as_runs(headers, key):
    """The first 64 have an offset delta of one byte, the others of two, so there are two runs."""
    records = [R(i, 0, key, b'%050d' % i, headers) for i in range(200)]
    data = encode(records) + bytes(100)
    stop = len(data) - 100
    first = measure_run(data, 0, stop, 0, 200)
    second = measure_run(data, first.records * first.size, stop, 64, 200)
    assert (first.records, second.records) == (64, 136)
    assert first.size + 1 == second.size
    assert first.plain is second.plain is (key is None and not headers)
    assert measure_run(data, 0, stop, 0, 63) is None
    assert same(records)


@pytest.mark.parametrize(
    'record, complaint',
    [
        ('', 'does not fit'),  # no bytes at all
        ('00', 'does not fit'),  # size 0
        ('7e 00', 'does not fit'),  # size 63, one byte there
        ('01', 'does not fit'),  # size -1
        ('0c 00 00 00 01 01 80', 'end inside'),  # header count cut off
        ('0c 00 00 00 01 01 01', 'headers do not fit'),  # -1 headers
        ('0c 00 00 00 01 01 02', 'headers do not fit'),  # 1 header, no byte for it
        ('10 00 00 00 01 01 02 01 00', 'no name'),  # header with a null name
        ('0e 00 00 00 01 01 00 00', 'disagrees'),  # a byte behind the headers
        ('0c 00 00 00 01 04 00', 'exceeds its record'),  # value of 2 bytes, one there
        ('0c 00 00 00 80 80 80', 'longer than|end inside|exceeds'),
    ],
)
def test_malformed_records(record, complaint):
    data = bytes.fromhex(record)
    with pytest.raises(ProtocolError, match=complaint):
        decode(data, 1)


def test_a_record_that_announces_headers_in_a_streak_of_plain_ones():
    """The fast way looks at a record's header count together with the next record."""
    records = [R(i, i, None, b'v' * 100) for i in range(80)]
    single = [encode([r]) for r in records]
    for place in (10, 79):
        damaged = b''.join(single[:place]) + single[place][:-1] + b'\x02'
        damaged += b''.join(single[place + 1 :])
        with pytest.raises(ProtocolError, match='headers'):
            decode(damaged, 80)


# --- several batches at once


def group(*batches):
    """Decode batches, each the records that its data hold and how many it says there are."""
    data = [encode(records) for records, _ in batches]
    counts = [count for _, count in batches]
    starts = [sum(counts[:place]) for place in range(len(counts))]
    return decode_group(Group(data, counts, starts, [0] * len(counts), False, 5))


SHAPES = {
    'plain': lambda i: (i, None, b'v' * (i % 70), ()),
    'with keys and headers': lambda i: (i, b'k' * (i % 9), b'v' * (i % 70), TRACE),
    'of one size': lambda i: (i % 60, None, b'%09d' % i, ()),
    'of one size with keys': lambda i: (i % 60, b'k%09d' % i, b'v', TRACE),
    'with anything': lambda i: (
        (-1) ** i * i**5,
        None if i % 3 else b'k' * i,
        b'v' * (i * i),
        TRACE[: i % 2],
    ),
}


def shaped(shape, count, first=0):
    return [R(first + i, *SHAPES[shape](i)) for i in range(count)]


@pytest.mark.parametrize('shape', sorted(SHAPES))
@pytest.mark.parametrize(
    'counts', [(1,), (1, 1), (1, 2, 1), (3,) * 40, (70, 64, 200, 1), (100,) * 9]
)
def test_batches_that_are_read_together(shape, counts):
    batches = [shaped(shape, count) for count in counts]
    columns = group(*((records, len(records)) for records in batches))
    records = [record for records in batches for record in records]
    assert list(columns.offsets) == list(range(len(records)))
    assert list(columns.timestamps) == [r.timestamp for r in records]
    assert list(columns.values) == [r.value for r in records]
    keys = [None] * len(records) if columns.keys is None else columns.keys
    assert list(keys) == [r.key for r in records]
    headers = [()] * len(records) if columns.headers is None else columns.headers
    assert list(headers) == [r.headers for r in records]
    if columns.value_sizes is not None:
        assert list(columns.value_sizes) == [len(r.value) for r in records]


def test_the_sizes_of_values_are_known_where_all_are_of_one_size():
    rows = [R(i, 0, b'k', b'%050d' % i, ()) for i in range(200)]
    odd = rows[5]._replace(value=b'short')
    for counts in ((200,), (200, 200), (64, 128)):
        some = [(rows[:count], count) for count in counts]
        assert list(group(*some).value_sizes or ()) == [50] * sum(counts)
        for place in range(len(some) + 1):
            other = [*some[:place], ([odd._replace(offset=0)], 1), *some[place:]]
            assert group(*other).value_sizes is None
    longer = [each._replace(value=each.value + b'!') for each in rows]
    assert group((rows, 200), (longer, 200)).value_sizes is None


@pytest.mark.parametrize('shape', sorted(SHAPES))
@pytest.mark.parametrize('count', [1, 40, 70, 127])
def test_a_batch_that_takes_records_of_the_next_one_is_refused(shape, count):
    """What lies there would make sense if the border between them were one record further."""
    one, other = shaped(shape, count), [*shaped(shape, 1, count), *shaped(shape, 80)]
    with pytest.raises(ProtocolError, match='differs from|exceed'):
        group((one, count + 1), (other, 80))
    assert len(group((one, count), (shaped(shape, 80), 80)).values) == count + 80


@pytest.mark.parametrize('shape', ['of one size', 'of one size with keys'])
def test_equal_batches_are_refused_if_one_holds_more_than_it_says(shape):
    one = shaped(shape, 64)
    with pytest.raises(ProtocolError, match='differs from that of its records'):
        group((one, 64), ([*one, one[0]], 64))
    # From number 64 on, the records would make sense were the border one record further.
    first = shaped(shape, 100)
    late = [*first, first[64]]
    early = [*first[:64], *first[65:], first[0], first[0]]
    pad = len(encode(late)) - len(encode(early))
    early[-1] = early[-1]._replace(value=early[-1].value + b'v' * pad)
    assert len(encode(early)) == len(encode(late))
    with pytest.raises(ProtocolError, match='differs from that of its records'):
        group((late, 100), (early, 100))


@pytest.mark.parametrize('shape', ['of one size', 'of one size with keys'])
def test_equal_batches_of_which_one_has_another_record_are_read(shape):
    for place in (0, 5, 63, 64, 99):
        changed = shaped(shape, 100)
        odd = changed[place]
        changed[place] = odd._replace(value=odd.value[:-1], timestamp=odd.timestamp + 4000)
        assert len(encode(changed)) == len(encode(shaped(shape, 100)))
        batches = [shaped(shape, 100), changed, shaped(shape, 100)]
        columns = group(*((records, 100) for records in batches))
        records = [record for records in batches for record in records]
        assert list(columns.values) == [r.value for r in records]
        assert list(columns.timestamps) == [r.timestamp for r in records]


@pytest.mark.parametrize('shape', ['of one size', 'of one size with keys'])
def test_equal_batches_are_read_as_runs_whatever_stands_between_them(shape, monkeypatch):
    found = []

    def counted(buf, pos, columns):
        before = len(columns.values)
        end = way(buf, pos, columns)
        found.append(len(columns.values) - before)
        return end

    way = batch_decoder._even_batches
    monkeypatch.setattr(batch_decoder, '_even_batches', counted)
    odd = [shaped('with anything', 9), shaped('with anything', 7)]
    one, other = shaped(shape, 100), shaped(shape, 130)
    batches = [one, one, *odd, other, other, other, one, odd[0]]
    columns = group(*((records, len(records)) for records in batches))
    assert list(columns.values) == [r.value for records in batches for r in records]
    assert [each for each in found if each] == [200, 390]


@pytest.mark.parametrize(
    'sizes, ends',
    [
        ([(9, 50)], [1]),
        ([(9, 50)] * 14, [14]),
        ([(9, 50)] * 15, [15]),
        ([(70, 500)] * 2 + [(70, 501)] * 2, [2, 4]),
        ([(70, 500), (70, 501), (71, 501), (9, 50), (9, 50)], [5]),
        ([(70, 500), (70, 501), (70, 501), (9, 50), (9, 51)], [1, 3, 5]),
    ],
)
def test_stretches_of_equal_batches(sizes, ends):
    counts, bytes_ = zip(*sizes)
    assert stretches(counts, list(accumulate(bytes_)), 128) == ends


def test_a_single_record_too_many_is_refused():
    with pytest.raises(ProtocolError, match='differs from that of its records'):
        group(([R(0, 0, None, b'v'), R(0, 0, None, b'w')], 1), ([], 1))


def test_gaps_in_batches_that_are_read_together():
    one = [R(i * 3, i, None, b'v' * 70) for i in range(30)]
    columns = group((one, 30), (one, 30), (shaped('plain', 5), 5))
    gaps = [r.offset for r in one]
    assert list(columns.offsets) == [*gaps, *(30 + each for each in gaps), *range(60, 65)]


def test_long_varints_are_read_too():
    """A writer may use more bytes for a number than it needs."""
    body = b'\x00' + b'\x80\x00' + b'\x80\x00' + b'\x81\x00' + b'\x82\x80\x00' + b'v' + b'\x80\x00'
    data = varint_bytes(len(body)) + body
    (_, delta, key, value, headers), end = decode_record(data, 0, len(data))
    assert (delta, key, value, headers, end) == (0, None, b'v', b'\x80\x00', len(data))
    assert decode(data, 1) == [R(0, 0, None, b'v')]


def test_the_header_caches_are_bounded():
    for number in range(5000):
        name = 'h%d' % number
        record = R(0, 0, b'k', b'v', ((name, b'x'),))
        assert decode(encode([record]), 1) == [record]
    assert len(header_blocks.HEADERS) <= 1024
    assert len(header_blocks._NAMES) <= 1024


def test_repeated_headers_are_shared():
    records = decode(encode([R(i, 0, b'k', b'v', TRACE) for i in range(3)]), 3)
    assert records[0].headers is records[2].headers
    assert type(records[0]) is Record


@pytest.mark.parametrize(
    'data, length',
    [
        (b'\x00', 0),
        (b'\x7e', 63),
        (b'\x01', WRONG),
        (b'\x80\x01', 64),
        (b'\xfe\x7f', 8191),
        (b'\x81\x01', WRONG),
        (b'\x80\x00', WRONG),
    ],
)
def test_that_lengths_of_one_and_two_bytes_are_read(data, length):
    assert length_at(b'?' + data + b'?', 1, len(data)) == length
