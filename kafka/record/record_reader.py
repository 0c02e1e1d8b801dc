"""
A decoder of one record of magic 2, of any form.

The fallback of :mod:`kafka.record.batch_decoder`.
"""

from __future__ import annotations

from typing import Optional, Tuple

from kafka.errors import ProtocolError
from kafka.record.util import decode_varint

#: Offset delta, timestamp delta, key, value, encoded headers.
Fields = Tuple[int, int, Optional[bytes], Optional[bytes], bytes]


def _small_varint(buf: bytes, pos: int) -> Tuple[int, int]:
    byte = buf[pos]
    if byte < 128:
        return (byte >> 1) ^ -(byte & 1), pos + 1
    return decode_varint(buf, pos, 5)


def _sized(buf: bytes, pos: int, end: int) -> Tuple[Optional[bytes], int]:
    size, pos = _small_varint(buf, pos)
    if size < 0:
        return None, pos
    if size > end - pos:
        raise ProtocolError('a field of %d bytes exceeds its record' % size)
    return buf[pos : pos + size], pos + size


def decode_record(buf: bytes, pos: int, stop: int) -> Tuple[Fields, int]:
    """
    Decode one record of any form, except for its headers.

    ``stop`` is where the bytes of the batch end. Returns ``(offset delta, timestamp delta, key,
    value, encoded headers)`` and the position after the record. Raises ``ProtocolError`` for
    malformed bytes.
    """
    size, pos = _small_varint(buf, pos)
    end = pos + size
    if size < 6 or end > stop:
        raise ProtocolError('a record of %d bytes does not fit into its batch' % size)
    delta, pos = decode_varint(buf, pos + 1)
    offset, pos = _small_varint(buf, pos)
    key, pos = _sized(buf, pos, end)
    value, pos = _sized(buf, pos, end)
    if pos >= end:
        raise ProtocolError('a record ends before its headers')
    return (offset, delta, key, value, buf[pos:end]), end
