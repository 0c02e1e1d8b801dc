"""Varints: zigzag, seven bits a byte, little end first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka.errors import ProtocolError
from kafka.record import util
from kafka.record.util import VarintTable, decode_varint, encode_varint, size_of_varint
from test.record.oracle import Reader, varint_bytes

VECTORS = [
    (0, '00'),
    (-1, '01'),
    (1, '02'),
    (63, '7e'),
    (-64, '7f'),
    (64, '80 01'),
    (-65, '81 01'),
    (8191, 'fe 7f'),
    (8192, '80 80 01'),
    (2**31 - 1, 'fe ff ff ff 0f'),
    (-(2**31), 'ff ff ff ff 0f'),
    (2**63 - 1, 'fe ff ff ff ff ff ff ff ff 01'),
    (-(2**63), 'ff ff ff ff ff ff ff ff ff 01'),
]


@pytest.mark.parametrize('value, encoded', VECTORS)
def test_vectors(value, encoded):
    data = bytes.fromhex(encoded)
    assert encode_varint(value) == data
    assert decode_varint(data, 0) == (value, len(data))
    assert size_of_varint(value) == len(data)


@given(st.integers(-(2**63), 2**63 - 1), st.binary(max_size=3))
def test_agrees_with_the_obvious_way(value, before):
    data = before + varint_bytes(value)
    assert before + encode_varint(value) == data
    assert decode_varint(data, len(before)) == (value, len(data))
    reader = Reader(data[len(before) :])
    assert reader.varint(64) == value


@pytest.mark.parametrize('value', [2**63, -(2**63) - 1])
def test_more_than_64_bits_are_refused(value):
    with pytest.raises(ProtocolError, match='64-bit'):
        encode_varint(value)


def test_a_cut_off_varint_is_malformed():
    with pytest.raises(ProtocolError, match='end inside a varint'):
        decode_varint(b'\x80\x80', 0)


def test_an_endless_varint_is_malformed():
    with pytest.raises(ProtocolError, match='longer than 10 bytes'):
        decode_varint(b'\x80' * 100, 0)
    with pytest.raises(ProtocolError, match='longer than 5 bytes'):
        decode_varint(b'\x80' * 100, 0, 5)


@pytest.mark.parametrize('data, limit', [(b'\xff\xff\xff\xff\x1f', 5), (b'\xff' * 9 + b'\x02', 10)])
def test_bits_beyond_the_type_are_malformed(data, limit):
    with pytest.raises(ProtocolError, match='out of range'):
        decode_varint(data, 0, limit)


def test_the_table_fills_itself_up_to_its_limit():
    table = VarintTable()
    table.LIMIT = 2
    assert [table[n] for n in (0, 64, 8192, -1)] == [b'\x00', b'\x80\x01', b'\x80\x80\x01', b'\x01']
    assert len(table) == 2


def test_bytes_are_written_one_by_one_as_in_1_4():
    out = bytearray()
    assert encode_varint(300, out.append) == 2
    assert out == encode_varint(300)
    assert decode_varint(out) == (300, 2)


def test_the_checksums_of_1_4():
    assert util.calc_crc32(b'abc') == 891568578
    assert util.calc_crc32c(b'abc') == 910901175
