"""
LZ4 frames in pure Python: a decoder, the correct and the wrong header checksum, and xxHash-32.

Follows the LZ4 frame format 1.6 and block format descriptions. The wrong header checksum is that of
Kafka 0.8.2 and 0.9 (KAFKA-3160, KIP-57): it includes the magic number. There is no encoder.
"""

from __future__ import annotations

from typing import NamedTuple, Optional

from kafka.errors import ProtocolError
from kafka.record.snappy_blocks import repeat
from kafka.record.util import Buffer

MAGIC = b'\x04\x22\x4d\x18'

_BLOCK_BYTES = {4: 1 << 16, 5: 1 << 18, 6: 1 << 20, 7: 1 << 22}
_MASK = 0xFFFFFFFF
_P1, _P2, _P3, _P4, _P5 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1


class FrameHeader(NamedTuple):
    """The header of a frame; ``size`` is its length in bytes."""

    size: int
    block_bytes: int
    linked: bool
    block_checksums: bool
    content_checksum: bool
    content_size: Optional[int]


def _rotate(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> (32 - bits)) & _MASK


def xxh32(data: Buffer) -> int:
    """Return xxHash-32 with seed 0 of ``data``; slow, meant for frame headers."""
    pos = 0
    if len(data) >= 16:
        lanes = [_P1 + _P2 & _MASK, _P2, 0, -_P1 & _MASK]
        while pos + 16 <= len(data):
            for lane in range(4):
                word = int.from_bytes(data[pos : pos + 4], 'little')
                lanes[lane] = _rotate(lanes[lane] + word * _P2, 13) * _P1 & _MASK
                pos += 4
        acc = sum(_rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18)))
    else:
        acc = _P5
    acc += len(data)
    while pos + 4 <= len(data):
        word = int.from_bytes(data[pos : pos + 4], 'little')
        acc = _rotate(acc + word * _P3, 17) * _P4
        pos += 4
    for byte in data[pos:]:
        acc = _rotate(acc + byte * _P5, 11) * _P1
    acc &= _MASK
    acc = (acc ^ acc >> 15) * _P2 & _MASK
    acc = (acc ^ acc >> 13) * _P3 & _MASK
    return acc ^ acc >> 16


def header_size(frame: Buffer) -> int:
    """
    Return the size of a frame's header, including its checksum byte (the last).

    Raises ``ProtocolError`` if ``frame`` does not start with a complete frame header.
    """
    if frame[:4] != MAGIC or len(frame) < 7:
        raise ProtocolError('not an lz4 frame')
    size = 7 + (8 if frame[4] & 0x08 else 0) + (4 if frame[4] & 0x01 else 0)
    if len(frame) < size:
        raise ProtocolError('the bytes end inside the header of an lz4 frame')
    return size


def right_checksum(frame: Buffer) -> int:
    """Return the header checksum of the frame format: that of the descriptor only."""
    return xxh32(frame[4 : header_size(frame) - 1]) >> 8 & 0xFF


def wrong_checksum(frame: bytes) -> int:
    """Return the header checksum of Kafka 0.8.2 and 0.9: that of magic number and descriptor."""
    return xxh32(frame[: header_size(frame) - 1]) >> 8 & 0xFF


def with_checksum(frame: bytes, checksum: int) -> bytes:
    """Return ``frame`` with another header checksum byte."""
    end = header_size(frame)
    return frame[: end - 1] + bytes((checksum,)) + frame[end:]


def read_header(frame: Buffer) -> FrameHeader:
    """Read and check the header of a frame. Raises ``ProtocolError`` for anything malformed."""
    size = header_size(frame)
    flags, block = frame[4], frame[5]
    if flags >> 6 != 1 or flags & 0x02 or block & 0x8F or block >> 4 not in _BLOCK_BYTES:
        raise ProtocolError('unknown version or flags in an lz4 frame')
    if flags & 0x01:
        raise ProtocolError('lz4 frames that need a dictionary are not supported')
    if frame[size - 1] != right_checksum(frame):
        raise ProtocolError('wrong checksum in the header of an lz4 frame')
    return FrameHeader(
        size=size,
        block_bytes=_BLOCK_BYTES[block >> 4],
        linked=not flags & 0x20,
        block_checksums=bool(flags & 0x10),
        content_checksum=bool(flags & 0x04),
        content_size=int.from_bytes(frame[6:14], 'little') if flags & 0x08 else None,
    )


def decode_frames(data: bytes, limit: int) -> bytes:
    """
    Decode one lz4 frame, or several one after the other.

    ``limit`` is the maximum size of the output in bytes. Raises ``ProtocolError`` for malformed
    data and if the output would exceed the limit.
    """
    out = bytearray()
    pos = 0
    view: Buffer = memoryview(data)  # slices without copies
    while True:
        pos += _decode_frame(view[pos:], out, limit)
        if pos == len(data):
            return bytes(out)


def _decode_frame(frame: Buffer, out: bytearray, limit: int) -> int:
    header = read_header(frame)
    pos = header.size
    start = len(out)
    while True:
        word = _word(frame, pos)
        pos += 4
        if word == 0:
            break
        size = word & 0x7FFFFFFF
        if size > header.block_bytes or pos + size > len(frame):
            raise ProtocolError('an lz4 block of %d bytes is too large' % size)
        block = bytes(frame[pos : pos + size])
        pos += size
        if header.block_checksums:
            _check(block, frame, pos)
            pos += 4
        if word >> 31:
            out += block
        else:
            before = len(out)
            most = min(before + header.block_bytes, limit + 1)
            _decode_block(block, out, start if header.linked else before, most)
        if len(out) > limit:
            raise ProtocolError('lz4 data expands to more than %d bytes' % limit)
    if header.content_checksum:
        _check(bytes(out[start:]), frame, pos)
        pos += 4
    if header.content_size not in (None, len(out) - start):
        raise ProtocolError('the content size of an lz4 frame is wrong')
    return pos


def _word(data: Buffer, pos: int) -> int:
    if pos + 4 > len(data):
        raise ProtocolError('the bytes end inside an lz4 frame')
    return int.from_bytes(data[pos : pos + 4], 'little')


def _check(content: bytes, frame: Buffer, pos: int) -> None:
    if _word(frame, pos) != xxh32(content):
        raise ProtocolError('wrong checksum in an lz4 frame')


def _decode_block(block: bytes, out: bytearray, floor: int, most: int) -> None:
    """Append the content of one block; copies reach back to ``floor``, ``out`` ends by ``most``."""
    pos = 0
    end = len(block)
    try:
        while True:
            token = block[pos]
            pos += 1
            length = token >> 4
            if length == 15:
                while True:
                    more = block[pos]
                    pos += 1
                    length += more
                    if more != 255:
                        break
            if pos + length > end or len(out) + length > most:
                raise ProtocolError('an lz4 literal is too long')
            out += block[pos : pos + length]
            pos += length
            if pos == end:
                return
            offset = block[pos] | block[pos + 1] << 8
            pos += 2
            length = token & 15
            if length == 15:
                while True:
                    more = block[pos]
                    pos += 1
                    length += more
                    if more != 255:
                        break
            if len(out) + length + 4 > most:
                raise ProtocolError('lz4 data expands to more than allowed')
            repeat(out, offset, length + 4, floor)
    except IndexError:
        raise ProtocolError('an lz4 block ends too early') from None
