"""
Snappy in pure Python: a decoder of raw blocks, and the uncompressed size in a block.

Follows google/snappy ``format_description.txt``. Xerial frames are handled in :mod:`kafka.codec`;
there is no encoder.
"""

from __future__ import annotations

from typing import Tuple

from kafka.errors import ProtocolError

# Three bytes of input (a copy with a two-byte offset) make at most 64 bytes of output.
_MAX_RATIO = 64 // 3 + 1


def declared_size(block: bytes) -> Tuple[int, int]:
    """
    Read the uncompressed size at the start of a raw block.

    Returns the size in bytes and the position after it. Raises ``ProtocolError`` if the number is
    malformed or the block is too short for this size, so that no memory is allocated because of a
    forged size.
    """
    size = 0
    for pos in range(min(5, len(block))):
        size |= (block[pos] & 0x7F) << 7 * pos
        if block[pos] < 0x80:
            if size > _MAX_RATIO * len(block):
                raise ProtocolError(
                    'a snappy block of %d bytes cannot hold %d bytes' % (len(block), size)
                )
            return size, pos + 1
    raise ProtocolError('the size of a snappy block is malformed')


def decode_block(block: bytes) -> bytes:
    """
    Decode one raw snappy block.

    Memory is bounded by :func:`declared_size`. Raises ``ProtocolError`` for anything malformed.
    """
    size, pos = declared_size(block)
    out = bytearray()
    end = len(block)
    while pos < end:
        tag = block[pos]
        kind = tag & 3
        if kind == 0:
            length, pos = _literal_length(block, pos)
            if pos + length > end:
                raise ProtocolError('a snappy literal exceeds its block')
            out += block[pos : pos + length]
            pos += length
        else:
            width = (0, 1, 2, 4)[kind]
            if pos + 1 + width > end:
                raise ProtocolError('a snappy block ends inside a copy')
            offset = int.from_bytes(block[pos + 1 : pos + 1 + width], 'little')
            if kind == 1:
                length = 4 + (tag >> 2 & 7)
                offset |= (tag & 0xE0) << 3
            else:
                length = 1 + (tag >> 2)
            pos += 1 + width
            repeat(out, offset, length, 0)
        if len(out) > size:
            raise ProtocolError('a snappy block has more than the %d bytes it declares' % size)
    if len(out) != size:
        raise ProtocolError('a snappy block has %d bytes, but declares %d' % (len(out), size))
    return bytes(out)


def _literal_length(block: bytes, pos: int) -> Tuple[int, int]:
    length = block[pos] >> 2
    pos += 1
    if length >= 60:
        width = length - 59
        if pos + width > len(block):
            raise ProtocolError('a snappy block ends inside the length of a literal')
        length = int.from_bytes(block[pos : pos + width], 'little')
        pos += width
    return length + 1, pos


def repeat(out: bytearray, offset: int, length: int, floor: int) -> None:
    """
    Append ``length`` bytes that start ``offset`` bytes before the end of ``out``.

    Source and destination may overlap, which repeats a pattern. Raises ``ProtocolError`` when the
    offset is zero or points before ``floor``.
    """
    start = len(out) - offset
    if offset == 0 or start < floor:
        raise ProtocolError('compressed data refers to bytes before its beginning')
    if offset >= length:
        out += out[start : start + length]
    else:
        pattern = out[start:]
        out += (pattern * (length // offset + 1))[:length]
