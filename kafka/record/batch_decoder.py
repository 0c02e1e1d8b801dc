"""
The records inside a batch of magic 2, decoded a thousand at a time into columns.

Owns the way from decompressed bytes to :class:`~kafka.record.record.Record` objects; the batch
header belongs to :mod:`kafka.record.default_records`.

A record is ``length, attributes, timestamp delta, offset delta, key length, key, value length,
value, header count, headers``; every number but the attributes byte is a varint. Reading varints
one by one costs 2,500 ns a record in CPython, so there are three ways, the fastest one that fits
is taken and each checks everything it believes:

* runs of records of the same size: columns are compared and cut out whole (100 ns); * a
*layout*, the widths of all varints of the last record, is assumed for the next: one
``unpack_from``
  fetches all numbers and tables with 64 Ki entries turn two-byte varints into numbers (300 to
  500 ns);
* :func:`decode_record` takes any record (1,500 ns).

Measured by ``benchmarks/decode.py``; the oracle is the reader in ``test/record/oracle.py``.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from itertools import repeat
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from kafka.errors import ProtocolError
from kafka.record.record import Header, Record
from kafka.record.util import decode_varint

CHUNK = 1000

Headers = Tuple[Header, ...]
Fields = Tuple[int, int, Optional[bytes], Optional[bytes], Headers]

# A number that no valid record can hold, so that every comparison with it fails.
_WRONG = 1 << 40
# Offset deltas of at most two bytes; higher ones are left to decode_record.
_TABLED_OFFSETS = 8192
# What the fast ways may read behind the last record: the widest layout with a key of 63 bytes.
_PADDING = 80


class _Tables:
    """Numbers of one- and two-byte varints, by their byte or by both bytes as little-endian int."""

    def __init__(self) -> None:
        one = [n >> 1 if n < 128 and not n & 1 else _WRONG for n in range(256)]
        two = [_WRONG] * 65536
        signed = [None] * 65536  # type: List[Optional[int]]
        for high in range(1, 128):
            low = high << 8
            first, last = high << 6, (high + 1) << 6
            two[low | 0x80 : low + 0x100 : 2] = range(first, last)
            signed[low | 0x80 : low + 0x100 : 2] = range(first, last)
            signed[low | 0x81 : low + 0x100 : 2] = range(-first - 1, -last - 1, -1)
        small = [(n >> 1) ^ -(n & 1) if n < 128 else None for n in range(256)]
        #: Lengths of fields; sizes of records, the varint itself counted (wrong ones are negative).
        self.lengths = (one, two)
        self.sizes = tuple(
            [-_WRONG if n == _WRONG else n + width for n in table]
            for width, table in ((1, one), (2, two))
        )
        self.deltas = (small, signed)
        self.keys = [0 if n == 1 else one[n] for n in range(256)]
        self.offsets = [2 * n for n in range(64)]
        for n in range(64, _TABLED_OFFSETS):
            self.offsets.append(2 * n & 0x7F | 0x80 | n >> 6 << 8)
        raw = struct.pack('<%dH' % _TABLED_OFFSETS, *self.offsets)
        #: First and second byte of each offset delta.
        self.offset_bytes = (raw[0::2], raw[1::2])


@lru_cache(maxsize=None)
def _tables() -> _Tables:
    return _Tables()


class _Layout(NamedTuple):
    """How to read a record whose varints have the widths it was made for."""

    unpack: Any  # a function; for keyed records a list of functions by the key length's byte
    sizes: List[int]
    deltas: List[Optional[int]]
    lengths: List[int]
    head: int


@lru_cache(maxsize=None)
def _layout(keyed: bool, size: int, delta: int, offset: int, length: int) -> _Layout:
    tables = _tables()
    codes = ('', 'B', 'H')
    numbers = codes[size] + 'x' + codes[delta] + codes[offset] + 'B'
    unpack: Any
    if keyed:
        widths = [n if n < 64 else 0 for n in tables.keys]
        by_width = [
            struct.Struct('<%s%ds%s' % (numbers, width, codes[length])).unpack_from
            for width in range(64)
        ]
        unpack = [by_width[width] for width in widths]
    else:
        # One byte earlier stands the header count of the record before.
        unpack = struct.Struct('<B' + numbers + codes[length]).unpack_from
    return _Layout(
        unpack,
        tables.sizes[size - 1],
        tables.deltas[delta - 1],
        tables.lengths[length - 1],
        size + 1 + delta + offset + 1 + length,
    )


def _layout_at(buf: bytes, pos: int, keyed: bool) -> Optional[_Layout]:
    """Return the layout of the record at ``pos``, None when only ``decode_record`` can take it."""
    widths = []
    for skip in (1, 0, 0):
        width = 1 if buf[pos] < 128 else 2 if buf[pos + 1] < 128 else 3
        widths.append(width)
        pos += width + skip
    key = buf[pos]
    pos += 1 + (key >> 1 if key != 1 else 0)
    if max(widths) == 3 or key > 127 or key & 1 and key != 1 or pos + 1 >= len(buf):
        return None
    width = 1 if buf[pos] < 128 else 2 if buf[pos + 1] < 128 else 3
    return None if width == 3 else _layout(keyed, widths[0], widths[1], widths[2], width)


# --- any record


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


# --- many records


class _Columns:
    """Decoded records of one chunk. ``keys`` and ``headers`` None mean: none of them has any."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.deltas: List[int] = []
        self.keys: Optional[List[Optional[bytes]]] = None
        self.values: List[Optional[bytes]] = []
        self.headers: Optional[List[Headers]] = None
        #: Index and offset delta of the records whose offsets do not follow the one before.
        self.odd_offsets: List[Tuple[int, int]] = []

    def widen(self) -> None:
        """Give keys and headers columns of their own."""
        if self.keys is None or self.headers is None:
            self.keys = [None] * len(self.values)
            self.headers = [()] * len(self.values)

    def records(
        self, base_offset: int, base_timestamp: int, append_time: Optional[int]
    ) -> List[Record]:
        """Make the records; ``append_time`` overrides the timestamps."""
        offsets: Sequence[int]
        start = base_offset + self.first
        offsets = range(start, start + len(self.values))
        if self.odd_offsets:
            offsets = list(offsets)
            for index, delta in self.odd_offsets:
                offsets[index - self.first] = base_offset + delta
        stamps: Any = repeat(append_time)
        if append_time is None:
            stamps = map(base_timestamp.__add__, self.deltas)
        keys: Any = repeat(None) if self.keys is None else self.keys
        headers: Any = repeat(()) if self.headers is None else self.headers
        return list(map(Record, zip(offsets, stamps, keys, self.values, headers)))


def decode_records(
    data: bytes, count: int, base_offset: int, base_timestamp: int, append_time: Optional[int]
) -> Iterator[List[Record]]:
    """
    Decode the records of a batch, in lists of up to :data:`CHUNK`.

    ``data`` is what follows the batch header, decompressed; ``count`` how many records it must
    hold; ``append_time`` (ms) overrides the timestamps where it is not None. Raises
    ``ProtocolError`` when reading reaches anything malformed.
    """
    stop = len(data) + 1
    # One byte before for the first record's look back, some behind for the last one's look ahead.
    buf = b''.join((b'\x00', data, bytes(_PADDING)))
    pos = 1
    for first in range(0, count, CHUNK):
        columns = _Columns(first)
        last = min(count, first + CHUNK)
        try:
            pos = _decode_chunk(buf, pos, stop, last, columns)
        except (struct.error, IndexError):
            raise ProtocolError('the records of a batch reach behind its end') from None
        if pos > stop:
            raise ProtocolError('the records of a batch reach behind its end')
        yield columns.records(base_offset, base_timestamp, append_time)
    if pos != stop:
        raise ProtocolError('%d bytes follow the last record of a batch' % (stop - pos))


def _decode_chunk(buf: bytes, pos: int, stop: int, last: int, columns: _Columns) -> int:
    """Decode records up to number ``last`` into ``columns``; return the position behind them."""
    first = columns.first
    if last <= _TABLED_OFFSETS and last - first > 2:
        (_, _, key, _, headers), _ = decode_record(buf, pos, stop)
        if key is None and not headers:
            pos = _decode_plain(buf, pos, stop, last, columns)
        if first + len(columns.values) < last:
            columns.widen()
            pos = _decode_full(buf, pos, stop, last, columns)
        return pos
    columns.widen()
    while first + len(columns.values) < last:
        fields, pos = decode_record(buf, pos, stop)
        _append(columns, fields)
    return pos


def _append(columns: _Columns, fields: Fields) -> None:
    offset, delta, key, value, headers = fields
    index = columns.first + len(columns.values)
    if offset != index:
        columns.odd_offsets.append((index, offset))
    columns.deltas.append(delta)
    columns.values.append(value)
    if columns.keys is not None and columns.headers is not None:
        columns.keys.append(key)
        columns.headers.append(headers)


def _decode_plain(buf: bytes, pos: int, stop: int, last: int, columns: _Columns) -> int:
    """Decode records without key and headers; stop early at the first that has any."""
    add_value, add_delta = columns.values.append, columns.deltas.append
    layout = other = _layout_at(buf, pos, False) or _layout(False, 1, 1, 1, 1)
    unpack, sizes, deltas, lengths, head = layout
    checked = pos  # up to here the header counts are right
    for wanted in _tables().offsets[columns.first : last]:
        tries = 0
        while True:
            count, size, delta, offset, key, length = unpack(buf, pos - 1)
            start = pos + head
            end = start + lengths[length] + 1
            delta = deltas[delta]
            if (
                offset == wanted
                and key == 1
                and pos + sizes[size] == end
                and delta is not None
                and (not count or pos == checked)
            ):
                add_value(buf[start : end - 1])
                add_delta(delta)
                pos = end
                break
            if buf[pos - 1] and pos != checked:
                raise ProtocolError('a record announces headers that it does not have')
            tries += 1
            if tries == 3:
                fields, end = decode_record(buf, pos, stop)
                if fields[2] is not None or fields[4]:
                    return pos
                _append(columns, fields)
                checked = pos = end
                break
            layout, other = other, layout
            if tries == 2:
                layout = _layout_at(buf, pos, False) or layout
            unpack, sizes, deltas, lengths, head = layout
    if buf[pos - 1] and pos != checked:
        raise ProtocolError('a record announces headers that it does not have')
    return pos


def _decode_full(buf: bytes, pos: int, stop: int, last: int, columns: _Columns) -> int:
    """Decode records of any kind."""
    assert columns.keys is not None and columns.headers is not None
    add_value, add_delta = columns.values.append, columns.deltas.append
    add_key, add_headers = columns.keys.append, columns.headers.append
    key_sizes, blocks, one_byte = _tables().keys, HEADERS, _tables().lengths[0]
    layout = other = _layout_at(buf, pos, True) or _layout(True, 1, 1, 1, 1)
    unpack, sizes, deltas, lengths, head = layout
    key_at = head - (1 if lengths is one_byte else 2) - 1
    for wanted in _tables().offsets[columns.first + len(columns.values) : last]:
        tries = 0
        while True:
            key_size = buf[pos + key_at]
            size, delta, offset, key_size, key, length = unpack[key_size](buf, pos)
            start = pos + head + key_sizes[key_size]
            stop_value = start + lengths[length]
            end = pos + sizes[size]
            delta = deltas[delta]
            if offset == wanted and stop_value < end and delta is not None:
                add_value(buf[start:stop_value])
                add_delta(delta)
                add_key(None if key_size == 1 else key)
                add_headers(blocks[buf[stop_value:end]])
                pos = end
                break
            tries += 1
            if tries == 3:
                fields, pos = decode_record(buf, pos, stop)
                _append(columns, fields)
                break
            layout, other = other, layout
            if tries == 2:
                layout = _layout_at(buf, pos, True) or layout
            unpack, sizes, deltas, lengths, head = layout
            key_at = head - (1 if lengths is one_byte else 2) - 1
    return pos
