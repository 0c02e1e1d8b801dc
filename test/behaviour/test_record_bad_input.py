"""Whatever bytes a broker sends: records or a documented error, in bounded time and memory."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka.codec import compress
from kafka.errors import ChecksumError, ProtocolError, UnsupportedCodecError
from kafka.record.crc32c import crc32c
from kafka.record.default_records import DefaultRecordBatch, encode_batch
from kafka.record.legacy_records import decode_message, encode_message_set, iter_message_set
from kafka.record.memory_records import MemoryRecords
from test.record import oracle

DOCUMENTED = (ChecksumError, ProtocolError, UnsupportedCodecError)
MIB = 1024 * 1024

ROWS = [(1000 + i, b'k%d' % i if i % 3 else None, b'v' * (i * 9), [('h', b'x')]) for i in range(12)]
PLAIN = [(1000, None, b'v' * 70, [])] * 20
OLD = [(10 + i, 1000 + i, b'k', b'v' * (i * 9)) for i in range(12)]
GOOD = (
    [encode_batch(rows, codec=codec) for codec in range(5) for rows in (ROWS, PLAIN)]
    + [encode_message_set(OLD, magic=magic, codec=c) for magic in (0, 1) for c in range(4)]
    + [encode_batch(ROWS) + encode_message_set(OLD, magic=1) + encode_message_set(OLD, magic=0)]
)


def read_everything(data, **keywords):
    """Use all there is; return how many records came."""
    count = 0
    records = MemoryRecords(data, **keywords)
    for batch in records:
        for name in ('base_offset', 'last_offset', 'next_offset', 'codec', 'timestamp_type'):
            getattr(batch, name)
        for name in ('is_control', 'is_transactional', 'producer_id', 'size_in_bytes'):
            getattr(batch, name)
        for record in batch:
            assert type(record.offset) is int
            assert record.value is None or type(record.value) is bytes
            count += 1
    assert records.partial in (True, False)
    return count


def attempt(function, *arguments, **keywords):
    try:
        function(*arguments, **keywords)
    except DOCUMENTED:
        pass


@given(st.sampled_from(GOOD), st.data())
def test_mutated_buffers(good, data):
    damaged = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(damaged) - 1))
        damaged[place : place + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
        damaged = damaged or bytearray(1)
    attempt(read_everything, damaged, max_decompressed_bytes=MIB)
    attempt(read_everything, damaged, check_crcs=False, max_decompressed_bytes=MIB)
    attempt(list, iter_message_set(damaged, MIB))


@given(st.binary(max_size=200))
def test_random_buffers(data):
    attempt(read_everything, data)
    attempt(list, iter_message_set(data))
    attempt(decode_message, data)
    attempt(DefaultRecordBatch, data)


@given(
    st.binary(max_size=120), st.integers(-1, 60), st.sampled_from([0, 8, 16, 32, 64, 1, 2, 3, 4])
)
def test_random_records_in_a_batch_with_the_right_crc(payload, count, attributes):
    batch = oracle.write_batch(
        [], payload=payload, count=count, attributes=attributes, base_offset=0, last_offset=59
    )
    attempt(read_everything, batch)


@given(st.binary(max_size=120), st.sampled_from([0, 1]), st.sampled_from([1, 2, 3]))
def test_random_sets_in_a_wrapper_with_the_right_crc(inner, magic, codec):
    value = compress(codec, inner, magic=magic)
    message = oracle.write_message(None, value, magic, codec)
    attempt(read_everything, oracle.write_entry(5, message))


def peak_of(function):
    attempt(function)  # tables that all records share are made once
    tracemalloc.start()
    try:
        attempt(function)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize('codec', [1, 2, 3, 4])
def test_a_batch_that_is_a_bomb(codec):
    bomb = oracle.write_batch(
        [],
        payload=compress(codec, bytes(8 * MIB)),
        attributes=codec,
        base_offset=0,
        last_offset=0,
        count=1,
    )
    assert peak_of(lambda: read_everything(bomb, max_decompressed_bytes=MIB)) < 4 * MIB


@pytest.mark.parametrize('codec', [1, 2, 3])
def test_a_wrapper_that_is_a_bomb(codec):
    message = oracle.write_message(None, compress(codec, bytes(16 * MIB), magic=0), 0, codec)
    bomb = oracle.write_entry(0, message)
    assert peak_of(lambda: read_everything(bomb, max_decompressed_bytes=MIB)) < 4 * MIB


def test_a_bomb_in_every_message_of_a_wrapper():
    """Wrappers in a wrapper share one limit."""
    small = oracle.write_message(None, b'v' * MIB, 0)
    inner = oracle.write_message(None, compress(1, oracle.write_entry(0, small)), 0, 1)
    outer = oracle.write_message(None, compress(1, oracle.write_entry(0, inner) * 100), 0, 1)
    records = MemoryRecords(oracle.write_entry(0, outer), max_decompressed_bytes=4 * MIB)
    with pytest.raises(ProtocolError, match='expands to more than'):
        read_everything(records._buffer, max_decompressed_bytes=4 * MIB)


def test_a_million_records_are_announced_and_none_is_there():
    batch = oracle.write_batch([], payload=b'', count=2**31 - 1, base_offset=0, last_offset=0)
    assert peak_of(lambda: read_everything(batch)) < MIB


def test_a_million_headers_are_announced_and_none_is_there():
    body = b'\x00\x00\x00\x01\x01' + oracle.varint_bytes(2**31 - 1)
    payload = oracle.varint_bytes(len(body)) + body
    batch = oracle.write_batch([], payload=payload, count=1, base_offset=0, last_offset=0)
    assert peak_of(lambda: read_everything(batch)) < MIB


def test_many_tiny_records_do_not_become_many_objects_at_once():
    """They are made a thousand at a time: a batch costs little more than its bytes."""
    count = 20000
    payload = b''.join(
        oracle.varint_bytes(len(body)) + body
        for body in (b'\x00\x00' + oracle.varint_bytes(i) + b'\x01\x01\x00' for i in range(count))
    )
    head = bytearray(encode_batch([]))
    head[23:27] = (count - 1).to_bytes(4, 'big')
    head[57:61] = count.to_bytes(4, 'big')
    head[8:12] = (49 + len(payload)).to_bytes(4, 'big')
    batch = bytes(head) + payload
    batch = batch[:17] + crc32c(batch[21:]).to_bytes(4, 'big') + batch[21:]
    assert read_everything(batch) == count
    assert peak_of(lambda: read_everything(batch)) < 1.5 * MIB
