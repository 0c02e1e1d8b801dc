"""Walking buffers of mixed batches, cut off anywhere."""

from __future__ import annotations

import pytest

from kafka.errors import ChecksumError, ProtocolError
from kafka.record.default_records import encode_batch
from kafka.record.legacy_records import encode_message_set
from kafka.record.memory_records import MemoryRecords

VALUES = [b'a' * 70, b'b', b'c' * 5]


def magic_2(offset, codec=0):
    return encode_batch([(5, None, v, []) for v in VALUES], base_offset=offset, codec=codec)


def older(offset, magic, codec=0):
    messages = [(offset + i, 5, None, v) for i, v in enumerate(VALUES)]
    return encode_message_set(messages, magic=magic, codec=codec)


PARTS = [
    magic_2(0),
    older(3, 0),
    older(6, 1),
    magic_2(9, codec=1),
    older(12, 1, codec=1),
    older(15, 0, codec=2),
    magic_2(18),
]
MIXED = b''.join(PARTS)


def offsets(buffer):
    return [record.offset for batch in MemoryRecords(buffer) for record in batch]


def test_batches_of_every_magic_in_one_buffer():
    assert offsets(MIXED) == list(range(21))
    batches = list(MemoryRecords(MIXED))
    assert [batch.magic for batch in batches] == [2, 0, 1, 2, 1, 0, 2]
    assert [batch.base_offset for batch in batches] == [0, 3, 6, 9, 12, 15, 18]
    assert [batch.next_offset for batch in batches] == [3, 6, 9, 12, 15, 18, 21]
    assert [batch.size_in_bytes for batch in batches] == [len(part) for part in PARTS]
    assert MemoryRecords(MIXED).size_in_bytes == len(MIXED)


@pytest.mark.parametrize('kind', [bytes, bytearray, memoryview])
def test_any_buffer(kind):
    assert offsets(kind(MIXED)) == list(range(21))


@pytest.mark.parametrize('empty', [None, b'', bytearray()])
def test_nothing(empty):
    records = MemoryRecords(empty)
    assert (list(records), records.partial, records.size_in_bytes) == ([], False, 0)


def test_a_buffer_may_end_anywhere():
    """What is cut off is left out; the rest is read; partial tells."""
    whole_at = {0: 0}
    position = count = 0
    for part in PARTS:
        if part in (PARTS[1], PARTS[2]):  # plain messages are complete one by one
            for value in VALUES:
                position += len(value) + (26 if part is PARTS[1] else 34)
                count += 1
                whole_at[position] = count
        else:
            position += len(part)
            count += 3
            whole_at[position] = count
    for end in range(len(MIXED) + 1):
        complete = max(count for place, count in whole_at.items() if place <= end)
        records = MemoryRecords(MIXED[:end])
        assert records.partial is (end not in whole_at)
        assert [r.offset for batch in records for r in batch] == list(range(complete))
        assert records.partial is (end not in whole_at)


def test_batches_can_be_passed_over_unread():
    assert [b.base_offset for b in MemoryRecords(MIXED) if b.magic == 2] == [0, 9, 18]


def test_a_wrong_crc_is_raised_when_the_batch_is_reached():
    broken = bytearray(MIXED)
    broken[-2] ^= 1
    batches = iter(MemoryRecords(broken))
    assert [next(batches).base_offset for _ in range(6)] == [0, 3, 6, 9, 12, 15]
    with pytest.raises(ChecksumError, match='offset 18'):
        next(batches)


def test_the_crc_of_magic_2_may_be_left_unchecked():
    broken = bytearray(magic_2(0))
    broken[-2] ^= 1
    (batch,) = MemoryRecords(broken, check_crcs=False)
    assert next(iter(batch)).value == VALUES[0]


def test_the_limit_reaches_every_kind_of_batch():
    for part in (magic_2(0, codec=1), older(0, 1, codec=1), older(0, 0, codec=2)):
        for batch in MemoryRecords(part, max_decompressed_bytes=50):
            with pytest.raises(ProtocolError, match='expands to more than'):
                list(batch)


@pytest.mark.parametrize('magic', [3, 127, 255])
def test_an_unknown_magic(magic):
    broken = bytearray(magic_2(4))
    broken[16] = magic
    with pytest.raises(ProtocolError, match='magic %d .* offset 4' % magic):
        list(MemoryRecords(broken))


@pytest.mark.parametrize('size', [-1, -(2**31)])
def test_a_negative_size(size):
    broken = PARTS[0] + bytes(8) + size.to_bytes(4, 'big', signed=True) + bytes(20)
    with pytest.raises(ProtocolError, match='%d bytes' % size):
        list(MemoryRecords(broken))
    with pytest.raises(ProtocolError, match='%d bytes' % size):
        _ = MemoryRecords(broken).partial


@pytest.mark.parametrize('size', [0, 5, 13])
def test_a_size_too_small_for_any_message(size):
    with pytest.raises(ProtocolError, match='%d bytes' % size):
        list(MemoryRecords(bytes(8) + size.to_bytes(4, 'big') + bytes(size)))


def test_a_huge_size_is_taken_as_cut_off_and_costs_nothing():
    records = MemoryRecords(bytes(8) + b'\x7f\xff\xff\xff' + bytes(100))
    assert (list(records), records.partial) == ([], True)


@pytest.mark.parametrize('check_inner_crcs', [False, True])
def test_columns_say_what_the_records_say(check_inner_crcs):
    for batch in MemoryRecords(MIXED, check_inner_crcs=check_inner_crcs):
        found = [fields for part in batch.columns() for fields in part.fields()]
        assert found == [(record.offset, record.key, record.value) for record in batch]


def test_what_is_there_as_a_whole_is_counted():
    whole = encode_batch([(5, None, b'v', [])])
    assert MemoryRecords(whole + whole[:-1]).valid_bytes() == len(whole)
    assert MemoryRecords(b'').valid_bytes() == 0
