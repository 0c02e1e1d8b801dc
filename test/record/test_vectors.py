"""Arrow batches made by numpy have what the careful decoder reads, whatever the records are."""

from __future__ import annotations

import datetime
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka.errors import KafkaConfigurationError, ProtocolError
from kafka.record import vectors
from kafka.record.default_records import HEADER, DefaultRecordBatch, encode_batch
from kafka.record.fetched_records import FetchedRecords, RawRecords
from kafka.record.legacy_records import LegacyRecordBatch, encode_message_set
from kafka.record.vectors import COLUMNS, UNITS, ArrowMaker, schema

pa = pytest.importorskip('pyarrow')
pytest.importorskip('numpy')
pytest.importorskip('zoneinfo')  # without it pyarrow shows no times with a zone

NOW = 1_600_000_000_000
UTC = datetime.timezone.utc


def batch(*records, **fields):
    """Return a batch of (key, value, headers), a millisecond apart."""
    stamped = [(NOW + number, *record) for number, record in enumerate(records)]
    return DefaultRecordBatch(encode_batch(stamped, **fields))


def made(*pieces, columns=COLUMNS, unit='ms'):
    """Return an Arrow batch of (topic, partition, start, stop, batch)."""
    maker = ArrowMaker(columns, unit)
    for piece in pieces:
        maker.add(*piece[:-1], raw(piece[-1]))
    return maker.make()


def raw(*batches):
    """Return the records of batches as they lie in an answer."""
    data = b''.join(bytes(each._buffer) for each in batches)
    return FetchedRecords(data, check_crcs=False).raw(0)


def carefully(*pieces, columns=COLUMNS, unit='ms'):
    """Return the rows of the same, by way of objects."""
    maker = ArrowMaker(columns, unit)
    rows = []
    for topic, partition, start, stop, each in pieces:
        for part in each.record_columns():
            part = part.since(start)
            part = part.part(0, sum(map(stop.__gt__, part.offsets)))
            rows += maker.of_columns(topic, partition, part).to_pylist()
    return rows


def all_of(each, topic='t', partition=0):
    return topic, partition, 0, 1 << 60, each


def test_the_columns():
    rows = made(
        all_of(batch((b'k', b'v', [('h', b'1'), ('h', None)]), (None, None, ()), base_offset=7))
    ).to_pylist()
    assert rows == [
        {
            'key': b'k',
            'value': b'v',
            'topic': 't',
            'partition': 0,
            'offset': 7,
            'timestamp': datetime.datetime.fromtimestamp(NOW // 1000, UTC),
            'timestamp_type': 0,
            'headers': [{'key': 'h', 'value': b'1'}, {'key': 'h', 'value': None}],
        },
        {
            'key': None,
            'value': None,
            'topic': 't',
            'partition': 0,
            'offset': 8,
            'timestamp': datetime.datetime.fromtimestamp(NOW / 1000 + 0.001, UTC),
            'timestamp_type': 0,
            'headers': None,
        },
    ]


FIELDS = st.none() | st.binary(max_size=5) | st.sampled_from([0, 60, 130, 8300]).map(bytes)
HEADERS = st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2)
RECORDS = st.lists(st.tuples(FIELDS, FIELDS, HEADERS), min_size=1, max_size=5)


@st.composite
def pieces(draw):
    """Draw batches, with long runs of equal records among them, and what is wanted of them."""
    records = draw(RECORDS)
    if draw(st.booleans()):
        records = records[:2] * draw(st.integers(1, 20)) + records[:1] * draw(st.integers(0, 70))
    base = draw(st.integers(0, 1 << 40))
    each = batch(
        *records,
        base_offset=base,
        codec=draw(st.sampled_from([0, 1])),
        timestamp_type=draw(st.integers(0, 1)),
    )
    start = base + draw(st.integers(-2, 4))
    stop = base + len(records) - draw(st.integers(-2, 4))
    return draw(st.sampled_from('tu')), draw(st.integers(0, 1)), start, stop, each


@pytest.mark.parametrize('unit, most', [('us', 9223372036854775), ('ns', 9223372036854)])
@pytest.mark.parametrize('sign', [1, -1])
def test_a_time_that_its_unit_does_not_reach_is_refused_and_does_not_wrap(unit, most, sign):
    reached = DefaultRecordBatch(encode_batch([(sign * most, None, b'v', [])]))
    (found,) = made(all_of(reached), unit=unit).column('timestamp').cast(pa.int64()).to_pylist()
    assert found == sign * most * UNITS[unit]
    beyond = DefaultRecordBatch(encode_batch([(sign * (most + 1), None, b'v', [])]))
    with pytest.raises(ProtocolError):
        made(all_of(beyond), unit=unit)
    with pytest.raises(ProtocolError, match='partition 0: the record at offset 0 has the time'):
        carefully(all_of(beyond), unit=unit)
    assert len(made(all_of(beyond), columns=['offset'], unit=unit)) == 1
    assert len(carefully(all_of(beyond), columns=['offset'], unit=unit)) == 1


@given(st.lists(pieces(), min_size=1, max_size=3), st.sampled_from(['ms', 'us', 'ns']))
def test_every_batch_is_read_as_the_careful_decoder_does(some, unit):
    found = made(*some, unit=unit)
    found.validate(full=True)
    assert found.to_pylist() == carefully(*some, unit=unit)


@given(st.lists(pieces(), min_size=1, max_size=2), st.permutations(COLUMNS), st.integers(1, 8))
def test_columns_come_as_they_are_wanted(some, order, count):
    found = made(*some, columns=order[:count])
    assert found.schema.names == list(order[:count])
    assert found.to_pylist() == carefully(*some, columns=order[:count])


@pytest.mark.parametrize('size', [20, 62, 63, 64, 100, 8190, 8191, 8192, 9000, 300000])
@pytest.mark.parametrize('count', [1, 31, 32, 33, 63, 64, 65, 200])
def test_runs_of_every_width(size, count):
    count = min(count, 3 if size > 9000 else 33 if size > 8000 else count)
    each = all_of(batch(*[(b'k', bytes(size), ())] * count))
    assert made(each).to_pylist() == carefully(each)


def test_offsets_with_gaps():
    """As compaction leaves them: records are cut out of the middle of a batch."""
    whole = batch(*[(b'k', b'%d' % number, ()) for number in range(5)])
    payload, size = whole.payload(), len(whole.payload()) // 5
    kept = payload[:size] + payload[3 * size :]
    header = list(HEADER.unpack(encode_batch([(NOW, b'k', b'0', ())] * 5)[: HEADER.size]))
    header[1], header[12], header[6] = HEADER.size - 12 + len(kept), 3, 9
    each = DefaultRecordBatch(HEADER.pack(*header) + kept)
    assert [row['offset'] for row in made(all_of(each)).to_pylist()] == [0, 3, 4]
    assert made(all_of(each)).to_pylist() == carefully(all_of(each))


def damaged(seed):
    """Return a batch with a few wrong bytes among its records."""
    chance = random.Random(seed)
    records = [
        (chance.choice([None, b'key']), bytes(chance.randrange(90)), [('h', b'x')] * (number % 2))
        for number in range(chance.choice([3, 80]))
    ]
    data = bytearray(encode_batch([(NOW, *each) for each in records]))
    for _ in range(chance.randrange(1, 4)):
        data[chance.randrange(HEADER.size, len(data))] = chance.choice([0, 1, 127, 128, 255, 254])
    return DefaultRecordBatch(bytes(data))


def test_damaged_records_are_an_error_or_what_the_careful_decoder_makes_of_them():
    refused = 0
    for seed in range(300):
        each = all_of(damaged(seed))
        try:
            found = made(each).to_pylist()
        except ProtocolError:
            refused += 1
            continue
        except (OverflowError, ValueError):  # a time that datetime cannot show
            continue
        assert found == carefully(each)
    assert refused > 50


def test_a_field_that_reaches_into_the_next_record_is_refused():
    payload = bytearray(batch(*[(None, b'\x05' * 20, ())] * 2).payload())
    assert payload[5] == 40  # the length of the first value, 20
    payload[5] = 2 * 40
    maker = ArrowMaker(['value'])
    maker.add('t', 0, 0, 1, with_payload(bytes(payload), batch(*[(None, b'', ())] * 2)))
    with pytest.raises(ProtocolError, match='exceeds its record'):
        maker.make()


def test_what_was_added_is_forgotten():
    maker = ArrowMaker()
    *place, each = all_of(batch((None, b'v', ())))
    maker.add(*place, with_payload(b'nonsense', each))
    assert maker.size_bytes == 8
    with pytest.raises(ProtocolError):
        maker.make()
    maker.add(*place, with_payload(b'nonsense', each))
    maker.drop()
    maker.add(*place, raw(each))
    assert maker.make().num_rows == 1
    assert maker.size_bytes == 0
    assert maker.make().num_rows == 0


@pytest.mark.parametrize('count', [3, 80, 2500])
def test_batches_are_read_where_they_lie(count):
    """Of several partitions in one answer, with what lies between them, and of several answers."""
    some = [
        batch(*[(b'k', b'%06d' % number, ())] * count, base_offset=number * count)
        for number in range(5)
    ]
    pieces = [all_of(each, 'tu'[number > 2], number // 2) for number, each in enumerate(some)]
    whole = b'??'.join([b'head', *(bytes(each._buffer) for each in some), b'tail'])
    view, maker, other, pos = memoryview(whole), ArrowMaker(COLUMNS), ArrowMaker(COLUMNS), 6
    for piece in pieces:
        part = view[pos : pos + len(piece[-1]._buffer)]
        maker.add(*piece[:-1], FetchedRecords(part).raw(0))
        other.add(*piece[:-1], FetchedRecords(bytes(part)).raw(0))
        pos += len(part) + 2
    found = maker.make()
    found.validate(full=True)
    assert found.to_pylist() == carefully(*pieces) == other.make().to_pylist()


@pytest.mark.parametrize('codec', [0, 1])
@pytest.mark.parametrize('batches', [1, 2, 40])
def test_batches_of_one_size_in_a_row(batches, codec):
    some = [
        batch(*[(None, b'%090d' % number, ())] * 200, base_offset=200 * number, codec=codec)
        for number in range(batches)
    ]
    maker = ArrowMaker(COLUMNS)
    maker.add('t', 0, 150, 200 * batches - 7, raw(*some))
    found = maker.make()
    assert found.to_pylist() == carefully(
        *[('t', 0, 150, 200 * batches - 7, each) for each in some]
    )


def with_payload(payload, like):
    """Return records that are called those of a batch."""
    return RawRecords(payload, [0], [len(payload)], [tuple(like.header)])


@pytest.mark.parametrize(
    'magic, timestamp', [(0, None), (1, datetime.datetime(2020, 9, 13, 12, 26, 40, tzinfo=UTC))]
)
def test_old_messages_have_no_time_or_no_headers(magic, timestamp):
    data = encode_message_set([(0, NOW, b'k', b'v')], magic=magic)
    (columns,) = LegacyRecordBatch(data, 0, 1 << 20).record_columns()
    (row,) = ArrowMaker(COLUMNS).of_columns('t', 0, columns).to_pylist()
    assert (row['timestamp'], row['timestamp_type']) == (timestamp, -1 if magic == 0 else 0)
    assert (row['key'], row['value'], row['headers']) == (b'k', b'v', None)


# ------------------------------------------------------------ schemas and packages


def test_the_schema_is_what_spark_wants():
    fields = {each.name: each.type for each in schema(COLUMNS, 'us')}
    assert fields['timestamp'] == pa.timestamp('us', tz='UTC')
    assert str(fields['headers']) == 'list<element: struct<key: string, value: binary>>'
    assert (fields['partition'], fields['offset']) == (pa.int32(), pa.int64())


@pytest.mark.parametrize(
    'columns, unit, complaint',
    [
        (['key', 'age'], 'ms', 'columns must be some of .*, not key, age'),
        ([], 'ms', 'not none'),
        (['key', 'key'], 'ms', 'each once'),
        (['key'], 's', 'timestamp_unit must be one of ms, us, ns'),
    ],
)
def test_columns_that_there_are_not(columns, unit, complaint):
    with pytest.raises(KafkaConfigurationError, match=complaint):
        schema(columns, unit)


def test_a_package_that_is_missing_is_told_with_the_extra(monkeypatch):
    monkeypatch.setattr(vectors, '_package', lambda name: None)
    with pytest.raises(ImportError, match=r'pip install kafka-evergreen\[arrow\]') as caught:
        schema()
    assert isinstance(caught.value, KafkaConfigurationError)
    assert not vectors.has_numpy()
