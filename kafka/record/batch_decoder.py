"""
The records inside a batch of magic 2, decoded a thousand at a time into columns.

Owns the way from decompressed bytes to :class:`~kafka.record.record.Record` objects; the batch
header belongs to :mod:`kafka.record.default_records`.

A record is ``size, attributes, timestamp delta, offset delta, key length, key, value length, value,
header count, headers``; every number but the attributes byte is a varint. Reading varints one by
one is slow in CPython, so there are four ways, the fastest first. The first that fits is taken;
each checks everything it believes and hands over to the next one:

* *runs* of records of one size: their columns of bytes are compared, the fields cut out by one
  call for 64 records;
* *strides*: the size of a record and of its key choose a ready-made format, which reads the rest of
  the record and the first numbers of the next one with one call;
* *layouts*: the widths of all varints are assumed; one call fetches the numbers, tables with 64 Ki
  entries turn two-byte varints into numbers, slices fetch the fields;
* :func:`~kafka.record.record_reader.decode_record` takes any record.

``benchmarks/decode.py`` measures the whole; the oracle is the reader in ``test/record/oracle.py``.
"""

from __future__ import annotations

import struct
from itertools import repeat
from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from kafka.errors import ProtocolError
from kafka.record.batch_layouts import (
    CHUNK,
    PADDING,
    WIDE_OFFSETS,
    Widths,
    layout,
    measure_run,
    offsets_between,
    stride,
    tables,
    widths_at,
)
from kafka.record.columns import Columns
from kafka.record.formats import formats
from kafka.record.record import Record
from kafka.record.record_columns import RecordColumns
from kafka.record.record_reader import HEADERS, Fields, Headers, decode_record

# Widths to begin with where a record has some that no layout is made for.
_SMALL = Widths(1, 1, 1, 1, 1)


class Marks(NamedTuple):
    """What a broker looks at in some records; ``keys`` None means that none of them has any."""

    offsets: Sequence[int]
    timestamps: Sequence[int]
    keys: Optional[Sequence[Optional[bytes]]]


class _Columns:
    """Decoded records of one chunk. ``keys`` and ``headers`` None mean: none of them has any."""

    #: Whether values have to be right; where they are dear, their number is enough otherwise.
    takes_values = True

    def __init__(self, first: int) -> None:
        self.first = first
        self.deltas: List[int] = []
        self.keys: Optional[List[Optional[bytes]]] = None
        self.values: List[Optional[bytes]] = []
        self.headers: Optional[List[Headers]] = None
        #: The offset deltas that follow each other, as they come out of formats.
        self.wanted: Sequence[Union[int, bytes]] = ()
        #: Index and offset delta of the records whose offsets do not follow the one before.
        self.odd_offsets: List[Tuple[int, int]] = []

    def widen(self) -> None:
        """Give keys and headers columns of their own."""
        if self.keys is None or self.headers is None:
            self.keys = [None] * len(self.values)
            self.headers = [()] * len(self.values)

    def append(self, fields: Fields) -> None:
        """Add a record of any form."""
        offset, delta, key, value, headers = fields
        index = self.first + len(self.values)
        if offset != index:
            self.odd_offsets.append((index, offset))
        self.deltas.append(delta)
        self.values.append(value)
        if self.keys is not None and self.headers is not None:
            self.keys.append(key)
            self.headers.append(headers)

    def offsets(self, base_offset: int) -> Sequence[int]:
        """Return the offsets of the records."""
        start = base_offset + self.first
        offsets = range(start, start + len(self.values))
        if not self.odd_offsets:
            return offsets
        changed = list(offsets)
        for index, delta in self.odd_offsets:
            changed[index - self.first] = base_offset + delta
        return changed

    def records(
        self, base_offset: int, base_timestamp: int, append_time: Optional[int]
    ) -> Iterator[Record]:
        """Make the records, each when it is asked for; ``append_time`` overrides timestamps."""
        offsets = self.offsets(base_offset)
        stamps: Any = repeat(append_time)
        if append_time is None:
            stamps = [base_timestamp + delta for delta in self.deltas]
        keys: Any = repeat(None) if self.keys is None else self.keys
        headers: Any = repeat(()) if self.headers is None else self.headers
        return map(Record, zip(offsets, stamps, keys, self.values, headers))


class _MarkColumns(_Columns):
    """Decoded records of one chunk whose values nobody wants."""

    takes_values = False


def decode_records(
    data: bytes, count: int, base_offset: int, base_timestamp: int, append_time: Optional[int]
) -> Iterator[Iterator[Record]]:
    """
    Decode the records of a batch, in groups of up to :data:`CHUNK`.

    ``data`` is what follows the batch header, decompressed; ``count`` how many records it must
    hold; ``append_time`` (ms) overrides the timestamps where it is not None. Raises
    ``ProtocolError`` when reading reaches anything malformed.
    """
    for columns in _decode(data, count):
        yield columns.records(base_offset, base_timestamp, append_time)


def decode_columns(data: bytes, count: int, base_offset: int) -> Iterator[Columns]:
    """Decode as :func:`decode_records`, but offsets, keys and values alone, without objects."""
    for columns in _decode(data, count):
        yield Columns(columns.offsets(base_offset), columns.keys, columns.values)


def decode_record_columns(
    data: bytes,
    count: int,
    base_offset: int,
    base_timestamp: int,
    append_time: Optional[int],
    leader_epoch: int,
) -> Iterator[RecordColumns]:
    """Decode as :func:`decode_records`, but without an object for each record."""
    for columns in _decode(data, count):
        stamps = [append_time or 0] * len(columns.deltas)
        if append_time is None:
            stamps = list(map(base_timestamp.__add__, columns.deltas))
        yield RecordColumns(
            columns.offsets(base_offset),
            stamps,
            0 if append_time is None else 1,
            columns.keys,
            columns.values,
            columns.headers,
            None if columns.headers is None else [_size(each) for each in columns.headers],
            None,
            leader_epoch,
        )


def _size(headers: Headers) -> int:
    if not headers:
        return -1
    return sum(len(name.encode()) + len(content or b'') for name, content in headers)


def decode_marks(
    data: bytes, count: int, base_offset: int, base_timestamp: int, append_time: Optional[int]
) -> Iterator[Marks]:
    """Decode as :func:`decode_records`, but without an object for each record."""
    for columns in _decode(data, count, _MarkColumns):
        if append_time is None:
            stamps = [base_timestamp + delta for delta in columns.deltas]
        else:
            stamps = [append_time] * len(columns.deltas)
        yield Marks(columns.offsets(base_offset), stamps, columns.keys)


def _decode(
    data: bytes, count: int, columns_of: Callable[[int], _Columns] = _Columns
) -> Iterator[_Columns]:
    """Decode up to :data:`CHUNK` records at a time."""
    stop = len(data)
    # Some bytes behind for the last record's look ahead.
    buf = b''.join((data, bytes(PADDING)))
    del data  # it may be large, and one copy is enough
    pos = 0
    for first in range(0, count, CHUNK):
        columns = columns_of(first)
        last = min(count, first + CHUNK)
        try:
            pos = _decode_chunk(buf, pos, stop, last, columns)
        except (struct.error, IndexError):
            raise ProtocolError('the records of a batch reach behind its end') from None
        if pos > stop:
            raise ProtocolError('the records of a batch reach behind its end')
        yield columns
    if pos != stop:
        raise ProtocolError('%d bytes follow the last record of a batch' % (stop - pos))


def _decode_chunk(buf: bytes, pos: int, stop: int, last: int, columns: _Columns) -> int:
    """Decode records up to number ``last`` into ``columns``; return the position behind them."""
    first, values = columns.first, columns.values
    if last <= WIDE_OFFSETS and last - first > 2:
        columns.wanted = offsets_between(first, last)
        formats.allow(last - first)
        (_, _, key, _, headers), _ = decode_record(buf, pos, stop)
        if key is not None or headers:
            columns.widen()
        pos = _even(buf, pos, stop, last, columns)
        if columns.keys is None and first + len(values) < last:
            pos = _plain_strides(buf, pos, stop, last, columns)
        if first + len(values) < last:
            columns.widen()
            pos = _full_strides(buf, pos, stop, last, columns)
        if first + len(values) < last:
            pos = _layouts(buf, pos, stop, last, columns)
        return pos
    columns.widen()
    while first + len(values) < last:
        fields, pos = decode_record(buf, pos, stop)
        columns.append(fields)
    return pos


def _even(buf: bytes, pos: int, stop: int, last: int, columns: _Columns) -> int:
    """Decode runs of records of one size, as long as there are any; return where the last ends."""
    while True:
        first = columns.first + len(columns.values)
        run = measure_run(buf, pos, stop, first, last)
        if run is None or (columns.keys is None and not run.plain):
            return pos
        numbers = run.deltas(buf, pos)
        if numbers is None:
            return pos
        columns.deltas += numbers
        if columns.keys is None and not columns.takes_values:
            columns.values += [None] * run.records
            pos += run.records * run.size
            continue
        fields = run.fields(buf, pos)
        if columns.keys is None or columns.headers is None:
            columns.values += fields
        elif run.plain:
            columns.values += fields
            columns.keys += [None] * run.records
            columns.headers += [()] * run.records
        else:
            columns.keys += [None] * run.records if run.null_keys else fields[0::3]
            columns.values += fields[1::3]
            columns.headers += map(HEADERS.__getitem__, fields[2::3])
        pos += run.records * run.size


def _plain_strides(buf: bytes, pos: int, stop: int, last: int, columns: _Columns) -> int:
    """Decode records without key and headers; stop early where that or the strides do not fit."""
    add_value, add_delta = columns.values.append, columns.deltas.append
    widths = widths_at(buf, pos) or _SMALL
    this = other = stride(widths._replace(length=0, headers=1), False)
    ahead, ahead_bytes, deltas, by_key = this
    steps = by_key[1]
    pos += ahead_bytes
    size, delta, offset, key = ahead(buf, pos - ahead_bytes)
    misses = 0
    for wanted in columns.wanted[len(columns.values) :]:
        tries = 0
        while True:
            delta = deltas[delta]
            if offset == wanted and key == 1 and delta is not None:
                unpack, raw, step = steps[size]
                length, value, count, size, delta_, offset, key = unpack(buf, pos)
                if length == raw and not count:
                    add_value(value)
                    add_delta(delta)
                    delta = delta_
                    pos += step
                    break
            pos -= ahead_bytes
            tries += 1
            if tries == 3:
                fields, end = decode_record(buf, pos, stop)
                if fields[2] is not None or fields[4]:
                    return pos
                columns.append(fields)
                pos = end
            else:
                this, other = other, this
            if tries == 2:
                misses += 1
                if misses > 8 + (len(columns.values) >> 3):
                    return pos
                widths = widths_at(buf, pos) or _SMALL
                this = stride(widths._replace(length=0, headers=1), False)
            ahead, ahead_bytes, deltas, by_key = this
            steps = by_key[1]
            pos += ahead_bytes
            size, delta, offset, key = ahead(buf, pos - ahead_bytes)
            if tries == 3:
                break
    return pos - ahead_bytes


def _full_strides(buf: bytes, pos: int, stop: int, last: int, columns: _Columns) -> int:
    """Decode records of any kind; stop early where strides do not fit."""
    assert columns.keys is not None and columns.headers is not None
    add_value, add_delta = columns.values.append, columns.deltas.append
    add_key, add_headers = columns.keys.append, columns.headers.append
    blocks = HEADERS
    widths = widths_at(buf, pos)
    if widths is None or not widths.headers:
        return pos
    this = other = stride(widths._replace(length=0), True)
    ahead, ahead_bytes, deltas, by_key = this
    pos += ahead_bytes
    size, delta, offset, key_size = ahead(buf, pos - ahead_bytes)
    misses = 0
    for wanted in columns.wanted[len(columns.values) :]:
        tries = 0
        while True:
            delta = deltas[delta]
            if offset == wanted and delta is not None:
                null_key = key_size == 1
                unpack, raw, step = by_key[key_size][size]
                key, length, value, block, size, delta_, offset, key_size = unpack(buf, pos)
                if length == raw:
                    add_headers(blocks[block])
                    add_key(None if null_key else key)
                    add_value(value)
                    add_delta(delta)
                    delta = delta_
                    pos += step
                    break
            pos -= ahead_bytes
            tries += 1
            if tries == 3:
                fields, pos = decode_record(buf, pos, stop)
                columns.append(fields)
            else:
                this, other = other, this
            if tries == 2:
                misses += 1
                if misses > 8 + (len(columns.values) >> 3):
                    return pos
                widths = widths_at(buf, pos)
                if widths is not None and widths.headers:
                    this = stride(widths._replace(length=0), True)
            ahead, ahead_bytes, deltas, by_key = this
            pos += ahead_bytes
            size, delta, offset, key_size = ahead(buf, pos - ahead_bytes)
            if tries == 3:
                break
    return pos - ahead_bytes


def _layouts(buf: bytes, pos: int, stop: int, last: int, columns: _Columns) -> int:
    """Decode records of any kind."""
    assert columns.keys is not None and columns.headers is not None
    add_value, add_delta = columns.values.append, columns.deltas.append
    add_key, add_headers = columns.keys.append, columns.headers.append
    key_sizes, blocks = tables().keys, HEADERS
    this = other = layout((widths_at(buf, pos) or _SMALL)[:4])
    unpack, sizes, deltas, lengths, head, key_at = this
    for wanted in columns.wanted[len(columns.values) :]:
        tries = 0
        while True:
            key_size = buf[pos + key_at]
            size, delta, offset, key_size, key, length = unpack[key_size](buf, pos)
            start = pos + head + key_sizes[key_size]
            stop_value = start + lengths[length]
            end = pos + sizes[size]
            delta = deltas[delta]
            if offset == wanted and stop_value < end and delta is not None:
                add_headers(blocks[buf[stop_value:end]])
                add_value(buf[start:stop_value])
                add_delta(delta)
                add_key(None if key_size == 1 else key)
                pos = end
                break
            tries += 1
            if tries == 3:
                fields, pos = decode_record(buf, pos, stop)
                columns.append(fields)
                break
            this, other = other, this
            if tries == 2:
                widths = widths_at(buf, pos)
                if widths is not None:
                    this = layout(widths[:4])
            unpack, sizes, deltas, lengths, head, key_at = this
    return pos
