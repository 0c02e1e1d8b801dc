"""One batch of magic 2: header, bytes, errors. The way of the records is test_batch_decoder's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka.codec import MissingCodecError
from kafka.errors import ChecksumError, ProtocolError, UnsupportedCodecError
from kafka.record.default_records import DefaultRecordBatch, encode_batch, encode_message_batch
from test.record import oracle
from test.record.oracle import R
from test.record.strategies import rows

VECTOR = [
    '0000000000000007',  # base offset 7
    '00000048',  # 72 bytes follow
    '00000005',  # partition leader epoch 5
    '02',  # magic 2
    '974c1c84',  # CRC-32C of everything behind it
    '0010',  # attributes: transactional
    '00000001',  # last offset delta 1
    '0000000000000064',  # base timestamp 100
    '0000000000000065',  # max timestamp 101
    '0000000000000009',  # producer id 9
    '0003',  # producer epoch 3
    '0000000b',  # base sequence 11
    '00000002',  # 2 records
    '1c',  # record of 14 bytes
    '00',  # attributes
    '00',  # timestamp delta 0
    '00',  # offset delta 0
    '02',  # key of 1 byte
    '6b',
    '04',  # value of 2 bytes
    '7676',
    '02',  # 1 header
    '02',  # name of 1 byte
    '68',
    '04',  # value of 2 bytes
    '7878',
    '0e',  # record of 7 bytes
    '00',  # attributes
    '02',  # timestamp delta 1
    '02',  # offset delta 1
    '01',  # null key
    '02',  # value of 1 byte
    '61',
    '00',  # no headers
]
BATCH = bytes.fromhex(''.join(VECTOR))
RECORDS = [(100, b'k', b'vv', [('h', b'xx')]), (101, None, b'a', [])]
KEYWORDS = {
    'base_offset': 7,
    'partition_leader_epoch': 5,
    'producer_id': 9,
    'producer_epoch': 3,
    'base_sequence': 11,
    'transactional': True,
}


def with_crc(batch):
    """Set the length and the CRC of a batch that was tampered with."""
    body = bytes(batch[21:])
    head = bytes(batch[:8]) + (len(batch) - 12).to_bytes(4, 'big') + bytes(batch[12:17])
    return head + oracle.crc32c(body).to_bytes(4, 'big') + body


def test_vector_is_written():
    assert encode_batch(RECORDS, **KEYWORDS).hex() == ''.join(VECTOR)


def test_vector_is_read():
    batch = DefaultRecordBatch(BATCH)
    batch.check_crc()
    assert batch.magic == 2
    assert (batch.base_offset, batch.last_offset, batch.next_offset) == (7, 8, 9)
    assert (batch.partition_leader_epoch, batch.codec, batch.timestamp_type) == (5, 0, 0)
    assert (batch.base_timestamp, batch.max_timestamp) == (100, 101)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (9, 3, 11)
    assert batch.is_transactional is True
    assert batch.is_control is False
    assert batch.delete_horizon_ms is None
    assert (batch.record_count, batch.size_in_bytes) == (2, len(BATCH))
    assert list(batch) == [(7, 100, b'k', b'vv', (('h', b'xx'),)), (8, 101, None, b'a', ())]


def test_records_have_names():
    record = next(iter(DefaultRecordBatch(BATCH)))
    assert (record.offset, record.timestamp, record.key) == (7, 100, b'k')
    assert (record.value, record.headers) == (b'vv', (('h', b'xx'),))
    assert repr(record) == (
        "Record(offset=7, timestamp=100, key=b'k', value=b'vv', headers=(('h', b'xx'),))"
    )


def test_each_iteration_reads_anew():
    batch = DefaultRecordBatch(BATCH)
    assert list(batch) == list(batch)


@pytest.mark.parametrize('kind', [bytes, bytearray, memoryview])
def test_takes_any_buffer_and_gives_bytes(kind):
    first = next(iter(DefaultRecordBatch(kind(BATCH))))
    assert type(first.key) is type(first.value) is bytes


@given(rows(), st.sampled_from([0, 5, 1 << 40]))
def test_agrees_with_the_obvious_writer_and_reader(records, base_offset):
    expected = [R(base_offset + i, *row) for i, row in enumerate(records)]
    encoded = encode_batch(records, base_offset=base_offset)
    assert encoded == oracle.write_batch(expected)
    assert list(DefaultRecordBatch(encoded)) == expected


@pytest.mark.parametrize('codec', [1, 2, 3, 4])
def test_compressed_records_come_back(codec):
    batch = DefaultRecordBatch(encode_batch(RECORDS * 50, codec=codec, **KEYWORDS))
    assert batch.codec == codec
    assert list(batch) == [R(7 + i, *row[:3], tuple(row[3])) for i, row in enumerate(RECORDS * 50)]


def test_log_append_time_overrides_the_timestamps():
    encoded = encode_batch(RECORDS, timestamp_type=1, max_timestamp=5000)
    batch = DefaultRecordBatch(encoded)
    assert batch.timestamp_type == 1
    assert [record.timestamp for record in batch] == [5000, 5000]
    assert [list(marks.timestamps) for marks in batch.marks()] == [[5000, 5000]]


def test_marks_begin_at_the_base_values():
    batch = DefaultRecordBatch(encode_batch(RECORDS, **KEYWORDS))
    ((offsets, timestamps, keys),) = batch.marks()
    assert (list(offsets), list(timestamps), keys) == ([7, 8], [100, 101], [b'k', None])


def test_control_batches_are_marked():
    batch = DefaultRecordBatch(
        encode_batch([(1, b'\x00\x00\x00\x01', b'\x00' * 6, [])], control=True)
    )
    assert batch.is_control is True
    assert batch.is_transactional is False


def test_the_delete_horizon_takes_the_place_of_the_base_timestamp():
    """KIP-534: deltas are then relative to the horizon, which is later than the records."""
    records = [R(3, 100, b'k', None), R(9, 105, b'l', b'v')]
    encoded = oracle.write_batch(records, attributes=0x40, base_timestamp=90000)
    batch = DefaultRecordBatch(encoded)
    assert batch.delete_horizon_ms == 90000
    assert list(batch) == records


def test_a_batch_that_compaction_emptied_keeps_its_offsets():
    encoded = oracle.write_batch([], base_offset=10, last_offset=14)
    batch = DefaultRecordBatch(encoded)
    assert (batch.next_offset, list(batch)) == (15, [])


def test_no_records_are_encoded_as_an_empty_batch():
    batch = DefaultRecordBatch(encode_batch([]))
    assert (batch.record_count, batch.next_offset, list(batch)) == (0, 0, [])


def test_a_wrong_crc_is_reported_with_the_offset():
    broken = bytearray(BATCH)
    broken[-2] ^= 1
    with pytest.raises(ChecksumError, match='offset 7'):
        DefaultRecordBatch(broken).check_crc()


@pytest.mark.parametrize('size', [0, 11, 60])
def test_too_short_for_a_header(size):
    with pytest.raises(ProtocolError, match='too short'):
        DefaultRecordBatch(BATCH[:size])


@pytest.mark.parametrize('buffer', [BATCH + b'x', BATCH[:-1], BATCH[:16] + b'\x01' + BATCH[17:]])
def test_a_buffer_that_is_not_exactly_one_batch(buffer):
    with pytest.raises(ProtocolError, match='exactly one'):
        DefaultRecordBatch(buffer)


@pytest.mark.parametrize('count', [3, 1000, 2**31 - 1, 1, 0])
def test_a_count_that_disagrees_with_the_bytes_is_malformed(count):
    """A large count is found out before anything is allocated for it."""
    tampered = with_crc(BATCH[:57] + count.to_bytes(4, 'big') + BATCH[61:])
    with pytest.raises(ProtocolError, match='offset 7'):
        list(DefaultRecordBatch(tampered))


@pytest.mark.parametrize('field', [slice(57, 61), slice(23, 27)])
def test_negative_counts_are_malformed(field):
    tampered = bytearray(BATCH)
    tampered[field] = b'\xff\xff\xff\x00'
    with pytest.raises(ProtocolError, match='negative'):
        DefaultRecordBatch(with_crc(tampered))


def test_unknown_codec():
    tampered = bytearray(BATCH)
    tampered[22] = 5
    with pytest.raises(UnsupportedCodecError, match='codec 5'):
        list(DefaultRecordBatch(with_crc(tampered)))
    with pytest.raises(UnsupportedCodecError, match='codec 7'):
        encode_batch(RECORDS, codec=7)


def test_missing_package_names_the_extra(without_wheels):
    with pytest.raises(MissingCodecError, match=r'kafka-evergreen\[zstd\]'):
        encode_batch(RECORDS, codec=4)


def test_more_than_allowed_after_decompression():
    encoded = encode_batch([(0, None, bytes(5000), [])], codec=1)
    assert len(list(DefaultRecordBatch(encoded, max_decompressed_bytes=6000))) == 1
    with pytest.raises(ProtocolError, match='more than 4000 bytes'):
        list(DefaultRecordBatch(encoded, max_decompressed_bytes=4000))


@pytest.mark.parametrize(
    'keyword',
    [{'base_offset': 1 << 63}, {'producer_epoch': 1 << 15}, {'base_sequence': -(1 << 31) - 1}],
)
def test_numbers_out_of_range(keyword):
    with pytest.raises(ProtocolError, match='out of range'):
        encode_batch(RECORDS, **keyword)


@pytest.mark.parametrize('codec', [0, 1])
@given(rows())
def test_a_batch_of_messages_is_one_of_records_without_headers(codec, records):
    keys, values = [r[1] for r in records], [r[2] for r in records]
    alike = [(7, key, value, ()) for key, value in zip(keys, values)]
    assert encode_message_batch(keys, values, 7, codec) == encode_batch(alike, codec=codec)
