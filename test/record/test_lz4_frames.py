"""LZ4 frames, decoded in Python."""

from __future__ import annotations

import lz4.frame
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from kafka.errors import ProtocolError
from kafka.record import lz4_frames
from kafka.record.lz4_frames import decode_frames, xxh32

LIMIT = 1 << 20
FRAME = bytes.fromhex(
    '04224d18'  # magic number
    '60'  # version 1, independent blocks
    '40'  # blocks of up to 64 KiB
    '82'  # header checksum
    '0c000000'  # block of 12 bytes
    '34'  # literal of 3 bytes, then a copy of 4 + 4
    '616263'
    '0300'  # from 3 back
    '50'  # literal of 5 bytes, the last
    '767778797a'
    '00000000'  # no more blocks
)


@given(st.binary(max_size=200))
def test_xxh32_agrees_with_the_package(data):
    assert xxh32(data) == xxhash.xxh32(data, seed=0).intdigest()


def test_a_frame_by_hand():
    assert decode_frames(FRAME, LIMIT) == b'abc' + b'abcabcab' + b'vwxyz'


@pytest.mark.parametrize('block_size', [4, 5, 6, 7])
@pytest.mark.parametrize('linked', [True, False])
@pytest.mark.parametrize('extras', [True, False])
def test_reads_every_kind_of_frame(block_size, linked, extras):
    content = b''.join(b'%d,' % (i * i) for i in range(30000))
    frame = lz4.frame.compress(
        content,
        block_size=block_size,
        block_linked=linked,
        content_checksum=extras,
        block_checksum=extras,
        store_size=extras,
    )
    header = lz4_frames.read_header(frame)
    assert header.linked == (linked and len(content) > header.block_bytes)
    assert (header.block_checksums, header.content_checksum) == (extras, extras)
    assert header.content_size == (len(content) if extras else None)
    assert decode_frames(frame, LIMIT) == content


@given(st.tuples(st.binary(max_size=40), st.integers(0, 400)))
def test_reads_what_the_package_writes(made):
    content = made[0] * made[1]
    assert decode_frames(lz4.frame.compress(content), LIMIT) == content


@given(st.binary(max_size=60), st.data())
def test_agrees_with_the_package_about_damaged_frames(content, data):
    frame = bytearray(lz4.frame.compress(content * 5, content_checksum=True))
    place = data.draw(st.integers(0, len(frame) - 1))
    frame[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    try:
        found = decode_frames(bytes(frame), LIMIT)
    except ProtocolError:
        return
    assert found == lz4.frame.decompress(bytes(frame))


def test_the_limit_is_exact():
    frame = lz4.frame.compress(bytes(70000))
    assert decode_frames(frame, 70000) == bytes(70000)
    with pytest.raises(ProtocolError, match='expands to more'):
        decode_frames(frame, 69999)


def with_header(flags, block=0x40, rest=''):
    """Build the header of a frame with the right checksum."""
    head = lz4_frames.MAGIC + bytes([flags, block]) + bytes.fromhex(rest)
    return head + bytes([xxh32(head[4:]) >> 8 & 0xFF])


@pytest.mark.parametrize(
    'frame, complaint',
    [
        (b'', 'not an lz4 frame'),
        (b'\x04\x22\x4d\x18\x60', 'not an lz4 frame'),
        (b'\x1f\x8b' + bytes(20), 'not an lz4 frame'),
        (with_header(0x68), 'inside the header'),  # content size announced
        (with_header(0x20), 'version or flags'),
        (with_header(0x62), 'version or flags'),
        (with_header(0x60, 0x30), 'version or flags'),
        (with_header(0x60, 0x41), 'version or flags'),
        (with_header(0x61, rest='00000001'), 'dictionary'),
        (with_header(0x60)[:-1] + b'\x00', 'wrong checksum in the header'),
        (with_header(0x60), 'end inside'),
        (with_header(0x60) + b'\x05\x00', 'end inside'),
        (with_header(0x60) + b'\x05\x00\x00\x00\x00', 'too large'),
        (with_header(0x60) + b'\x01\x00\x01\x00' + bytes(65537), 'too large'),
        (with_header(0x60) + b'\x01\x00\x00\x00\x10' + bytes(4), 'literal is too long'),
        (with_header(0x60) + b'\x01\x00\x00\x00\xf0' + bytes(4), 'too early'),
        (with_header(0x60) + b'\x03\x00\x00\x00\x00\x01\x00' + bytes(4), 'before its beginning'),
        (with_header(0x70) + b'\x01\x00\x00\x80a' + bytes(8), 'wrong checksum in an lz4'),
        (with_header(0x64) + bytes(4) + b'\x00\x00\x00\x00', 'wrong checksum in an lz4'),
        (with_header(0x68, rest='01' + '00' * 7) + bytes(4), 'content size'),
        (with_header(0x60) + bytes(4) + b'x', 'not an lz4 frame'),
    ],
)
def test_malformed_frames(frame, complaint):
    with pytest.raises(ProtocolError, match=complaint):
        decode_frames(frame, LIMIT)


def test_a_block_may_not_refer_to_the_one_before_unless_linked():
    literal = b'\x04\x00\x00\x80abcd'
    copy = b'\x04\x00\x00\x00\x00\x04\x00\x00'  # 4 bytes from 4 back, then an empty literal
    for flags, content in ((0x40, b'abcdabcd'), (0x60, None)):
        frame = with_header(flags) + literal + copy + bytes(4)
        if content is None:
            with pytest.raises(ProtocolError, match='before its beginning'):
                decode_frames(frame, LIMIT)
        else:
            assert decode_frames(frame, LIMIT) == content


def test_both_header_checksums():
    frame = lz4.frame.compress(b'content', store_size=True)
    assert frame[14] == lz4_frames.right_checksum(frame)
    wrong = lz4_frames.with_checksum(frame, lz4_frames.wrong_checksum(frame))
    assert wrong[14] == xxhash.xxh32(frame[:14], seed=0).intdigest() >> 8 & 0xFF
    assert (wrong[:14], wrong[15:]) == (frame[:14], frame[15:])
