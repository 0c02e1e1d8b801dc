"""
Zstandard frames, located without decoding them (RFC 8878, section 3.1).

It finds the end of each frame and the maximum size of its content, so that a decoder gets complete
frames and a buffer of the right size. There is no decoder.
"""

from __future__ import annotations

from typing import Iterator, NamedTuple

from kafka.errors import ProtocolError

_MAGIC = 0xFD2FB528
_MAX_BLOCK_BYTES = 1 << 17


class FrameExtent(NamedTuple):
    """The position of a frame in the data, and bounds of the size of its content."""

    start: int
    end: int
    least_bytes: int
    most_bytes: int


def walk_frames(data: bytes) -> Iterator[FrameExtent]:
    """
    Yield the extent of each frame in ``data``; skippable frames are left out.

    Raises ``ProtocolError`` if the data ends inside a frame or is not a zstd frame.
    """
    pos = 0
    while pos < len(data):
        magic = _number(data, pos, 4)
        if magic & 0xFFFFFFF0 == 0x184D2A50:
            pos += 8 + _number(data, pos + 4, 4)
            if pos > len(data):
                raise ProtocolError('the bytes end inside a zstd frame')
        elif magic == _MAGIC:
            extent = _extent(data, pos)
            yield extent
            pos = extent.end
        else:
            raise ProtocolError('not a zstd frame')


def _extent(data: bytes, start: int) -> FrameExtent:
    descriptor = _number(data, start + 4, 1)
    single_segment = descriptor & 0x20
    size_width = (1 if single_segment else 0, 2, 4, 8)[descriptor >> 6]
    pos = start + 5 + (0 if single_segment else 1) + (0, 1, 2, 4)[descriptor & 3]
    declared = _number(data, pos, size_width) + (256 if size_width == 2 else 0)
    pos += size_width
    least = most = 0
    last = 0
    while not last:
        header = _number(data, pos, 3)
        last, kind, size = header & 1, header >> 1 & 3, header >> 3
        if kind == 3 or size > _MAX_BLOCK_BYTES:
            raise ProtocolError('malformed block in a zstd frame')
        pos += 3 + (1 if kind == 1 else size)
        if kind == 2:
            most += _MAX_BLOCK_BYTES
        else:
            least += size
            most += size
    pos += 4 if descriptor & 0x04 else 0
    if pos > len(data):
        raise ProtocolError('the bytes end inside a zstd frame')
    if size_width:
        if not least <= declared <= most:
            raise ProtocolError('the content size of a zstd frame is wrong')
        least = most = declared
    return FrameExtent(start, pos, least, most)


def _number(data: bytes, pos: int, width: int) -> int:
    if pos + width > len(data):
        raise ProtocolError('the bytes end inside a zstd frame')
    return int.from_bytes(data[pos : pos + width], 'little')
