"""Raw snappy blocks, decoded in Python."""

from __future__ import annotations

import pytest
import snappy
from hypothesis import given
from hypothesis import strategies as st

from kafka.errors import ProtocolError
from kafka.record.snappy_blocks import declared_size, decode_block


def test_every_kind_of_element():
    block = bytes.fromhex(
        '1a'  # 26 bytes of content
        '0c61626364'  # literal of 4 bytes: abcd
        '0104'  # copy of 4 bytes from 4 back, offset in 11 bits
        '0e0200'  # copy of 4 bytes from 2 back, offset in 16 bits: cdcd
        '0f0c000000'  # copy of 4 bytes from 12 back, offset in 32 bits: abcd
        'f009'  # literal whose length, 10 bytes, stands in one byte of its own
        '30313233343536373839'
    )
    assert decode_block(block) == b'abcdabcdcdcdabcd0123456789'


@pytest.mark.parametrize('width', [1, 2, 3, 4])
def test_literals_with_long_lengths(width):
    content = b'x' * (256 if width > 1 else 200)
    element = bytes([59 + width << 2]) + (len(content) - 1).to_bytes(width, 'little') + content
    size = bytes([len(content) % 128 + 128, len(content) // 128])
    assert decode_block(size + element) == content


def test_copies_may_overlap_themselves():
    assert decode_block(bytes.fromhex('0a 00 61 22 0100')) == b'a' * 10


@given(st.tuples(st.binary(min_size=1, max_size=40), st.integers(1, 3000)))
def test_reads_what_the_package_writes(made):
    content = made[0] * made[1]
    assert decode_block(snappy.compress(content)) == content


@given(st.binary(max_size=60), st.data())
def test_agrees_with_the_package_about_damaged_blocks(content, data):
    block = bytearray(snappy.compress(content * 5))
    place = data.draw(st.integers(0, len(block) - 1))
    block[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    try:
        expected = snappy.uncompress(bytes(block))
    except snappy.UncompressError:
        expected = None
    try:
        found = decode_block(bytes(block))
    except ProtocolError:
        found = None
    # Ours refuses more: a size that so few bytes cannot reach, and bits a reader may overlook.
    assert found is None or found == expected


@pytest.mark.parametrize(
    'block, complaint',
    [
        ('', 'malformed'),
        ('80', 'malformed'),
        ('ffffffffff01', 'malformed'),
        ('ffffffff07', 'cannot hold'),  # 2 GiB out of 5 bytes
        ('0a', 'has 0 bytes'),
        ('04 0c6162', 'exceeds its block'),
        ('01 0061 0061', 'more than'),
        ('05 0061 01', 'inside a copy'),
        ('05 0061 0102', 'before its beginning'),  # 2 back, 1 there
        ('05 0061 0100', 'before its beginning'),  # 0 back
        ('05 f4', 'inside the length'),
    ],
)
def test_malformed_blocks(block, complaint):
    with pytest.raises(ProtocolError, match=complaint):
        decode_block(bytes.fromhex(block))


def test_declared_size():
    assert declared_size(bytes.fromhex('ac02') + bytes(20)) == (300, 2)
