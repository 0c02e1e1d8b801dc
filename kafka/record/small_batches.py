"""
A fast path for batches of magic 2 with few records, which decodes many batches into columns.

For topics of programs that send one message per call: an object for each batch, and the setup of
the readers of many records, would cost more than all of its records. It only accepts regular
batches (no codec, no control records, no headers, offsets without gaps, the right CRC) and ends
before anything else, which :mod:`kafka.record.default_records` then reads, or refuses. The oracle
in the tests is that reader; benchmarks/simple.py --only single.
"""

from __future__ import annotations

import struct
from typing import Iterator, List, Optional

from kafka.record.columns import Columns
from kafka.record.crc32c import crc32c

_Column = List[Optional[bytes]]

Fields = List[Optional[bytes]]

# Batches with more records are read faster by the other readers.
MOST_RECORDS = 32
# The maximum number of records, so that memory stays bounded.
_RUN_RECORDS = 1000
_LARGEST_BATCH = 1 << 16

# Batch header: base offset, length, magic, CRC, attributes, last offset delta, record count.
_HEADER = struct.Struct('>qi4xbIhi30xi')
_HEADER_BYTES = _HEADER.size
_COMPRESSED_OR_CONTROL = 0x27


class SmallBatches:
    """
    Consecutive batches with few records, decoded.

    It has the interface that readers of columns need of a batch. ``end`` is the position after the
    last.
    """

    __slots__ = ('_columns', 'end', 'last_offset', 'size_in_bytes')

    is_control = False

    def __init__(self, columns: Columns, end: int, last_offset: int, size_in_bytes: int) -> None:
        """Take decoded columns; ``size_in_bytes`` is that of the largest batch."""
        self._columns = columns
        self.end = end
        self.last_offset = last_offset
        self.size_in_bytes = size_in_bytes

    @property
    def next_offset(self) -> int:
        """Offset of the next fetch."""
        return self.last_offset + 1

    def columns(self) -> Iterator[Columns]:
        """Yield offsets, keys and values."""
        yield self._columns


def read_small_batches(buf: bytes, pos: int) -> Optional[SmallBatches]:
    """Read the batches from ``pos`` on, as far as they are regular; None if the first is not."""
    offsets: List[int] = []
    keys: _Column = []
    values: _Column = []
    start, largest = pos, 0
    stop = len(buf) - _HEADER_BYTES
    while pos <= stop and len(values) < _RUN_RECORDS:
        base, length, magic, crc, attributes, last, count = _HEADER.unpack_from(buf, pos)
        end = pos + 12 + length
        if (
            magic != 2
            or not 0 < count <= MOST_RECORDS
            or last != count - 1
            or attributes & _COMPRESSED_OR_CONTROL
            or not _HEADER_BYTES < length + 12 <= _LARGEST_BATCH
            or end > len(buf)
            or crc32c(buf[pos + 21 : end]) != crc
        ):
            break
        before = len(values)
        try:
            at = _read(buf, pos + _HEADER_BYTES, end, count, keys, values)
        except IndexError:  # beyond the end of the buffer
            at = -1
        if at != end:
            del keys[before:], values[before:]
            break
        offsets += range(base, base + count)
        largest = max(largest, end - pos)
        pos = end
    if pos == start:
        return None
    some = keys.count(None) < len(keys)
    return SmallBatches(Columns(offsets, keys if some else None, values), pos, offsets[-1], largest)


def _read(buf: bytes, pos: int, end: int, count: int, keys: _Column, values: _Column) -> int:
    """Append the records of one batch; return the position after them, -1 if one is unusual."""
    for doubled in range(0, 2 * count, 2):
        size = buf[pos]
        if size > 127:
            high = buf[pos + 1]
            pos += 1
            if high > 127:
                pos += 1
                if buf[pos] > 3:  # larger than any batch that is read here
                    return -1
                high += (buf[pos] - 1) << 7
            size += (high - 1) << 7
        stop = pos + 1 + (size >> 1)
        if size & 1 or stop > end:
            return -1
        pos += 2  # past the attributes
        if buf[pos] > 127:  # the timestamp delta, in up to three bytes
            pos += 1
            if buf[pos] > 127:
                pos += 1
        if buf[pos] > 127 or buf[pos + 1] != doubled:
            return -1
        size = buf[pos + 2]
        pos += 3
        key = None
        if size != 1:
            if size & 0x81:
                return -1
            size >>= 1
            key = buf[pos : pos + size]
            pos += size
        size = buf[pos]
        pos += 1
        if size > 127:
            high = buf[pos]
            pos += 1
            if high > 127:
                if buf[pos] > 3:
                    return -1
                high += (buf[pos] - 1) << 7
                pos += 1
            size += (high - 1) << 7
        value = None
        if size != 1:
            if size & 1:
                return -1
            size >>= 1
            value = buf[pos : pos + size]
            pos += size
        if pos + 1 != stop or buf[pos]:
            return -1
        keys.append(key)
        values.append(value)
        pos = stop
    return pos
