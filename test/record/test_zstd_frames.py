"""Zstandard frames, walked without decoding."""

from __future__ import annotations

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from kafka.errors import ProtocolError
from kafka.record.zstd_frames import walk_frames

EMPTY = bytes.fromhex(
    '28b52ffd'  # magic number
    '00'  # no content size, no checksum, no dictionary
    '58'  # window of 2 MiB
    '010000'  # last block, raw, of 0 bytes
)


def walk(data):
    return list(walk_frames(data))


@given(st.tuples(st.binary(max_size=40), st.integers(0, 20000)), st.booleans(), st.booleans())
def test_finds_the_end_and_bounds_the_content(made, sized, checked):
    content = made[0] * made[1]
    packer = zstandard.ZstdCompressor(write_checksum=checked, write_content_size=sized)
    stream = packer.compressobj(size=len(content) if sized else -1)
    frame = stream.compress(content) + stream.flush()
    first, second = walk(frame + frame)
    assert (first.start, first.end, second.start, second.end) == (
        0,
        len(frame),
        len(frame),
        2 * len(frame),
    )
    assert first.least_bytes <= len(content) <= first.most_bytes
    if sized and content:
        assert first.least_bytes == first.most_bytes
    for end in range(1, min(len(frame), 40)):
        with pytest.raises(ProtocolError):
            walk(frame[:end])


def test_by_hand():
    assert walk(EMPTY) == [(0, 9, 0, 0)]


def test_skippable_frames_are_left_out():
    skippable = bytes.fromhex('5a2a4d18 03000000 616263')
    assert walk(skippable + EMPTY + skippable) == [(11, 20, 0, 0)]
    with pytest.raises(ProtocolError, match='end inside'):
        walk(skippable[:-1])


@pytest.mark.parametrize('size', [0, 255, 256, 300, 70000])
def test_a_declared_size_is_read_in_every_width(size):
    frame = zstandard.ZstdCompressor().compress(bytes(size))
    (extent,) = walk(frame)
    assert extent.least_bytes == extent.most_bytes == size


@pytest.mark.parametrize(
    'data, complaint',
    [
        ('1f8b0800', 'not a zstd frame'),
        ('28b52f', 'end inside'),
        ('28b52ffd', 'end inside'),
        ('28b52ffd 00 58 0100', 'end inside'),
        ('28b52ffd 00 58 090000', 'end inside'),  # raw block of a byte, not there
        ('28b52ffd 00 58 070000', 'malformed block'),  # reserved block type
        ('28b52ffd 00 58 ff ff ff', 'malformed block'),
        ('28b52ffd 00 58 090010 61', 'malformed block'),  # 128 KiB and one byte
        ('28b52ffd 04 58 010000', 'end inside'),  # checksum announced
        ('28b52ffd 20 05 010000', 'content size'),  # 5 bytes declared, none there
    ],
)
def test_malformed_frames(data, complaint):
    with pytest.raises(ProtocolError, match=complaint):
        walk(bytes.fromhex(data))
