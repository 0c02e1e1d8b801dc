"""Batches record by record, as 1.4 to 3.0 made them: their bytes and sizes, what does not fit."""

from __future__ import annotations

import time

import pytest

from kafka.record import MemoryRecords
from kafka.record.abc import ABCRecord, ABCRecordBatch, ABCRecordBatchBuilder, ABCRecords
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from kafka.record.legacy_records import LegacyRecordBatchBuilder


def default_builder(codec=0, batch_size=9999, producer=(-1, -1, -1)):
    return DefaultRecordBatchBuilder(2, codec, False, *producer, batch_size)


def test_a_batch_of_magic_2():
    builder = default_builder()
    first = builder.append(0, timestamp=9999999, key=b'a', value=b'b', headers=[('h', b'v')])
    second = builder.append(1, 10000199, None, b'x' * 300, [])
    assert (first.offset, first.size, first.timestamp, first.crc) == (0, 13, 9999999, None)
    assert (second.offset, second.size) == (1, 310)
    data = bytes(builder.build())
    assert len(data) == builder.size() == 61 + 13 + 310
    batch = DefaultRecordBatch(data)
    assert (batch.magic, batch.base_offset, batch.last_offset_delta) == (2, 0, 1)
    assert (batch.compression_type, batch.attributes, batch.is_control_batch) == (0, 0, False)
    assert (batch.first_timestamp, batch.max_timestamp) == (9999999, 10000199)
    assert batch.crc == int.from_bytes(data[17:21], 'big') and batch.validate_crc()
    assert [r.headers for r in batch] == [(('h', b'v'),), ()]
    assert not DefaultRecordBatch(data[:-1] + b'y').validate_crc()


def test_whose_batch_it_is():
    builder = default_builder(producer=(5, 6, 7))
    builder.append(3, 1, None, b'v')
    batch = DefaultRecordBatch(builder.build())
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (5, 6, 7)
    assert batch.base_offset == 3
    assert (builder.producer_id, builder.producer_epoch) == (5, 6)


@pytest.mark.parametrize('magic', [0, 1])
def test_a_message_set(magic):
    builder = LegacyRecordBatchBuilder(magic, 0, 9999)
    first = builder.append(0, timestamp=9999999, key=b'a', value=b'b')
    size = (28, 36)[magic]
    assert (first.offset, first.size) == (0, size)
    assert first.timestamp == (-1, 9999999)[magic]
    assert first.crc == (2762809361, 362584028)[magic]
    data = bytes(builder.build())
    assert data == (
        bytes(8)  # offset
        + (size - 12).to_bytes(4, 'big')
        + first.crc.to_bytes(4, 'big')
        + bytes([magic, 0])  # attributes
        + (b'', (9999999).to_bytes(8, 'big'))[magic]
        + b'\0\0\0\1a\0\0\0\1b'
    )
    assert builder.size() == len(data)
    assert LegacyRecordBatchBuilder.record_size(magic, b'a', b'b') == size - 12


@pytest.mark.parametrize('codec', [0, 1])
@pytest.mark.parametrize(
    'make',
    [
        lambda codec: LegacyRecordBatchBuilder(0, codec, 9999),
        lambda codec: LegacyRecordBatchBuilder(1, codec, 9999),
        default_builder,
    ],
)
def test_what_is_put_in_comes_out(make, codec):
    builder = make(codec)
    for offset in range(40):
        builder.append(offset, 1000 + offset, b'k', b'%d' % offset)
    records = [r for batch in MemoryRecords(bytes(builder.build())) for r in batch]
    assert [(r.offset, r.value) for r in records] == [(n, b'%d' % n) for n in range(40)]


@pytest.mark.parametrize(
    'builder', [default_builder(batch_size=150), LegacyRecordBatchBuilder(1, 0, 100)]
)
def test_what_does_not_fit_is_refused_and_the_first_always_fits(builder):
    assert builder.append(0, 1, None, b'x' * 60)
    assert builder.append(1, 1, None, b'x' * 60) is None
    size = builder.size()
    assert size == len(builder.build())


@pytest.mark.parametrize('builder', [default_builder(), LegacyRecordBatchBuilder(1, 0, 100)])
@pytest.mark.parametrize(
    ('arguments', 'told'),
    [
        (('0', 1, None, b'v'), 'offset must be int'),
        ((0, 'x', None, b'v'), 'timestamp must be int'),
        ((0, 1, 'k', b'v'), 'key must be bytes'),
        ((0, 1, None, 'v'), 'value must be bytes'),
    ],
)
def test_wrong_types_are_named(builder, arguments, told):
    with pytest.raises(TypeError, match=told):
        builder.append(*arguments)


def test_offsets_have_no_gaps():
    builder = default_builder()
    builder.append(5, 1, None, b'v')
    with pytest.raises(ValueError, match='offset 7 must be 6'):
        builder.append(7, 1, None, b'v')


def test_wrong_magic_and_headers():
    with pytest.raises(ValueError, match='magic'):
        DefaultRecordBatchBuilder(1, 0, False, -1, -1, -1, 100)
    with pytest.raises(ValueError, match='magic'):
        LegacyRecordBatchBuilder(2, 0, 100)
    with pytest.raises(ValueError, match='magic'):
        LegacyRecordBatchBuilder.record_overhead(2)
    with pytest.raises(ValueError, match='headers'):
        LegacyRecordBatchBuilder(1, 0, 100).append(0, 1, None, b'v', [('h', b'x')])


def test_no_timestamp_is_now(monkeypatch):
    monkeypatch.setattr(time, 'time', lambda: 77.5)
    assert default_builder().append(0, None, None, b'v').timestamp == 77500
    assert LegacyRecordBatchBuilder(1, 0, 100).append(0, None, None, b'v').timestamp == 77500
    assert LegacyRecordBatchBuilder(0, 0, 100).append(0, None, None, b'v').timestamp == -1


def test_estimates_are_bounds():
    one = default_builder()
    one.append(0, 1, b'k', b'v', [('h', None)])
    estimate = DefaultRecordBatchBuilder.estimate_size_in_bytes(b'k', b'v', [('h', None)])
    assert one.size() <= estimate
    plain, packed = (
        LegacyRecordBatchBuilder.estimate_size_in_bytes(1, codec, b'k', b'v') for codec in (0, 1)
    )
    assert (plain, packed) == (36, 70)


def test_they_are_what_the_old_base_classes_say():
    builder = default_builder()
    builder.append(0, 1, None, b'v')
    records = MemoryRecords(bytes(builder.build()))
    (batch,) = records
    (record,) = batch
    assert isinstance(builder, ABCRecordBatchBuilder)
    assert isinstance(records, ABCRecords)
    assert isinstance(batch, ABCRecordBatch)
    assert isinstance(record, ABCRecord)
    for base in (ABCRecordBatch, ABCRecordBatchBuilder, ABCRecords):
        with pytest.raises(TypeError, match='abstract'):
            base()
