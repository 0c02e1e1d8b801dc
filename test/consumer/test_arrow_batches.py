"""The Arrow batches of a reader have the records that it would hand out, in the same order."""

from __future__ import annotations

import pytest

from kafka.consumer import arrow_batches
from kafka.errors import (
    CorruptRecordError,
    IllegalStateError,
    KafkaConfigurationError,
    ProtocolError,
)
from kafka.record.legacy_records import encode_message_set
from kafka.testing.logs.partition_log import Batch
from test.consumer.written_logs import T0, Stage, flip_last, numbered

pa = pytest.importorskip('pyarrow')
#: The first time in ms that is too late for a timestamp in ns.
FAR = (1 << 63) // 10**6 + 1


@pytest.fixture
def stage():
    made = Stage()
    yield made
    made.close()


@pytest.fixture(params=['numpy', 'objects'])
def way(request, monkeypatch):
    """With numpy, and without."""
    if request.param == 'objects':
        monkeypatch.setattr(arrow_batches, 'has_numpy', lambda: False)
    else:
        pytest.importorskip('numpy')
    return request.param


def column(batches, name):
    return [each for batch in batches for each in batch.column(name).to_pylist()]


def test_a_range_becomes_arrow_batches(stage, way):
    for start in range(0, 30, 10):
        stage.write(*numbered(10, start=start))
    batches = list(stage.reader({T0: (3, 25)}).arrow())
    assert column(batches, 'offset') == [*range(3, 25)]
    assert column(batches, 'value') == numbered(22, start=3)
    assert all(batch.num_rows for batch in batches)


def test_the_columns_are_those_that_are_wanted(stage, way):
    stage.write((b'k', b'v', [('h', b'1')]))
    batches = stage.reader('t').arrow(['value', 'headers'], timestamp_unit='us')
    assert batches.schema.names == ['value', 'headers']
    (batch,) = batches
    assert batch.schema == batches.schema
    assert batch.to_pylist() == [{'value': b'v', 'headers': [{'key': 'h', 'value': b'1'}]}]


def test_small_answers_become_one_batch(stage):
    pytest.importorskip('numpy')
    for start in range(0, 30, 10):
        stage.write(*numbered(10, start=start))
    (batch,) = stage.reader('t').arrow()
    assert batch.num_rows == 30


def test_batches_have_about_the_size_that_is_wanted(stage):
    pytest.importorskip('numpy')
    for start in range(0, 100, 10):
        stage.write(*numbered(10, 1000, start=start))
    reader = stage.reader('t', max_partition_fetch_bytes=1)
    sizes = [batch.num_rows for batch in reader.arrow(max_batch_bytes=5000)]
    assert set(sizes) == {10}


@pytest.mark.parametrize('max_bytes, sizes', [(30000, [20, 20, 10]), (1, [10] * 5)])
def test_no_more_answers_become_one_batch_than_fit(max_bytes, sizes):
    pytest.importorskip('numpy')
    stage = Stage(topics={'t': 5})
    for partition in range(5):
        stage.write(*numbered(10, 1000), partition=partition)
    batches = list(stage.reader('t').arrow(max_batch_bytes=max_bytes))
    stage.close()
    assert [batch.num_rows for batch in batches] == sizes
    assert sorted(column(batches, 'partition')) == [n for n in range(5) for _ in range(10)]
    assert column(batches, 'value') == numbered(10, 1000) * 5


def test_aborted_records_are_left_out(stage, way):
    stage.write(b'a', producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    stage.write(b'x', producer_id=2, producer_epoch=0, base_sequence=0, transactional=True)
    stage.end(2, commit=False)
    stage.end(1, commit=True)
    batches = stage.reader('t', isolation_level='read_committed').arrow()
    assert column(batches, 'value') == [b'a']


def test_old_messages_come_too(way):
    stage = Stage(version='0.10.2')
    try:
        for start in (0, 1):
            data = encode_message_set([(0, 5, b'k', b'%d' % start)], magic=1)
            stage.log().append(Batch(0, 0, 5, 1, data), 0)
        assert column(stage.reader('t').arrow(), 'value') == [b'0', b'1']
    finally:
        stage.close()


def test_a_damaged_batch_comes_after_what_is_before_it_and_may_be_given_up(stage, way):
    stage.write(*numbered(5))
    stage.write(*numbered(5), damage=flip_last)
    stage.write(*numbered(5))
    reader = stage.reader('t')
    batches = reader.arrow()
    assert column([next(batches)], 'offset') == [0, 1, 2, 3, 4]
    for _ in range(2):
        with pytest.raises(CorruptRecordError, match='offset 5 of partition 0'):
            next(batches)
    reader.skip_corrupt()
    assert column(batches, 'offset') == [10, 11, 12, 13, 14]


def test_records_that_lie_about_their_size_are_found(stage):
    """The checksum is right, the records are not: a writer is broken."""
    pytest.importorskip('numpy')

    def lie(data):
        return data[:61] + b'\x7e' + data[62:]

    stage.write(*numbered(5))
    stage.write(*numbered(5), damage=lie)
    reader = stage.reader('t', check_crcs=False)
    batches = reader.arrow()
    assert column([next(batches)], 'offset') == [0, 1, 2, 3, 4]
    with pytest.raises(CorruptRecordError, match='offset 5'):
        next(batches)


def test_a_time_that_the_unit_does_not_reach_loses_no_record(stage, way):
    stage.write(*numbered(3))
    stage.write(*numbered(3), at=FAR - 1)
    stage.write(*numbered(3))
    batches = stage.reader('t').arrow(['offset', 'timestamp'], timestamp_unit='ns')
    found = [*next(batches).column('offset').to_pylist()]
    while len(found) < 4:
        found += next(batches).column('offset').to_pylist()
    assert found == [0, 1, 2, 3]
    for _ in range(2):
        with pytest.raises(ProtocolError, match='the record at offset 4 has the time'):
            next(batches)


def test_a_reader_gives_records_or_arrow_batches(stage):
    stage.write(*numbered(5))
    reader = stage.reader('t')
    reader.read(1)
    with pytest.raises(IllegalStateError, match='gives records'):
        reader.arrow()
    other = stage.reader('t')
    other.arrow()
    with pytest.raises(IllegalStateError, match='gives Arrow batches'):
        other.read()


def test_deserializers_are_refused(stage):
    with pytest.raises(KafkaConfigurationError, match='leave out deserializers'):
        stage.reader('t', value_deserializer=bytes.decode).arrow()


def test_errors_of_fetching_come_after_what_was_fetched(stage, way):
    stage.write(*numbered(5))
    stage.write(*numbered(5))
    reader = stage.reader({T0: (0, 12)}, timeout_ms=3000)
    batches = reader.arrow()
    assert column([next(batches)], 'offset') == [*range(10)] or way == 'objects'
