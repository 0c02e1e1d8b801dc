"""
One record of magic 2, of any form, and the headers of a record.

Owns the careful way that :mod:`kafka.record.batch_decoder` falls back to, and the caches of
headers.
"""

from __future__ import annotations

from typing import Dict, Optional, Tuple

from kafka.errors import ProtocolError
from kafka.record.record import Header
from kafka.record.util import decode_varint

Headers = Tuple[Header, ...]
#: Offset delta, timestamp delta, key, value, headers.
Fields = Tuple[int, int, Optional[bytes], Optional[bytes], Headers]


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
        raise ProtocolError('a field of %d bytes reaches behind its record' % size)
    return buf[pos : pos + size], pos + size


def decode_record(buf: bytes, pos: int, stop: int) -> Tuple[Fields, int]:
    """
    Decode one record of any form.

    ``stop`` is where the bytes of the batch end. Returns ``(offset delta, timestamp delta, key,
    value, headers)`` and the position behind the record. Raises ``ProtocolError`` for anything
    malformed.
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
    return (offset, delta, key, value, HEADERS[buf[pos:end]]), end


class _HeaderNames(Dict[bytes, Tuple[str, int]]):
    """Map ``name length, name, value length`` (lengths of one byte) to name and length."""

    def __missing__(self, raw: bytes) -> Tuple[str, int]:
        if len(self) >= 1024:
            self.clear()
        size = raw[-1]
        if raw[0] & 0x81 or size & 0x81 or len(raw) != (raw[0] >> 1) + 2:
            raise LookupError('not a short header')
        found = self[raw] = (raw[1:-1].decode('utf-8'), size >> 1)
        return found


_NAMES = _HeaderNames()


class _HeaderBlocks(Dict[bytes, Headers]):
    """
    Map the encoded headers of a record to the decoded tuple.

    Headers repeat from record to record, and a look-up costs a twentieth of decoding them.
    """

    def __missing__(self, raw: bytes) -> Headers:
        try:
            headers = _short_headers(raw)
        except (LookupError, UnicodeDecodeError):
            headers = _any_headers(raw)
        if len(raw) <= 256:
            if len(self) >= 1024:
                self.clear()
            self[raw] = headers
        return headers


def _short_headers(raw: bytes) -> Headers:
    """Decode headers whose lengths have one byte each; LookupError when they are others."""
    headers = []
    pos = 1
    for _ in range(raw[0] >> 1):
        start = pos + 2 + (raw[pos] >> 1)
        name, size = _NAMES[raw[pos:start]]
        pos = start + size
        headers.append((name, raw[start:pos]))
    if pos != len(raw) or raw[0] & 0x81:
        raise LookupError('not short headers')
    return tuple(headers)


def _any_headers(raw: bytes) -> Headers:
    count, pos = decode_varint(raw, 0, 5)
    # The shortest header is an empty name and a null value, a byte each.
    if not 0 <= count <= (len(raw) - pos) // 2:
        raise ProtocolError('%d headers do not fit into a record' % count)
    headers = []
    for _ in range(count):
        name, pos = _sized(raw, pos, len(raw)) if pos < len(raw) else (None, pos)
        if name is None or pos >= len(raw):
            raise ProtocolError('a header has no name or no value')
        content, pos = _sized(raw, pos, len(raw))
        try:
            headers.append((name.decode('utf-8'), content))
        except UnicodeDecodeError as error:
            raise ProtocolError('the name of a header is not UTF-8') from error
    if pos != len(raw):
        raise ProtocolError('the length of a record disagrees with its headers')
    return tuple(headers)


HEADERS = _HeaderBlocks({b'\x00': ()})
