"""
A decoder of the records in a batch of magic 2, which decodes a thousand at a time into columns.

It decodes decompressed bytes into :class:`~kafka.record.record.Record` objects or columns; the
batch header is decoded by :mod:`kafka.record.default_records`.

A record is ``size, attributes, timestamp delta, offset delta, key length, key, value length, value,
header count, headers``; every number except the attributes byte is a varint. Reading varints one by
one is slow in CPython, so there are four methods, tried from the fastest on; each validates its
assumptions and leaves the rest to the next one:

* *runs* of records of equal size: their bytes are compared by columns, the fields extracted by one
  call for 64 records;
* *strides*: the sizes of a record and its key select a prepared format, which reads the rest of
  the record and the first numbers of the next one with one call;
* *layouts*: the widths of all varints are assumed; one call reads the numbers, tables with 64 Ki
  entries decode two-byte varints, slices extract the fields;
* :func:`~kafka.record.record_reader.decode_record` decodes any record.

``benchmarks/decode.py`` measures them; the oracle is the reader in ``test/record/oracle.py``.
"""

from __future__ import annotations

import struct
from itertools import accumulate, chain, repeat
from operator import add, itemgetter
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Union,
)

from kafka.errors import ProtocolError
from kafka.record.batch_layouts import (
    CHUNK,
    PADDING,
    TABLED_OFFSETS,
    WIDE_OFFSETS,
    RecordRun,
    Stride,
    Widths,
    layout,
    measure_run,
    offsets_between,
    stretches,
    stride,
    tables,
    widths_at,
)
from kafka.record.columns import Columns
from kafka.record.formats import formats
from kafka.record.header_blocks import NO_HEADERS, Headers, read_headers
from kafka.record.record import Record
from kafka.record.record_columns import Group, RecordColumns
from kafka.record.record_reader import Fields, decode_record
from kafka.record.util import Buffer, decode_varint

# The widths to start with if a record has widths without a layout.
_SMALL = Widths(1, 1, 1, 1, 1)
# The minimum number of records in batches of equal size to decode them as such.
_ALIKE = 128


class Marks(NamedTuple):
    """The fields of records that a broker checks; ``keys`` None means that all keys are null."""

    offsets: Sequence[int]
    timestamps: Sequence[int]
    keys: Optional[Sequence[Optional[bytes]]]


#: Consecutive records of one batch: the number of the first, the offset deltas of all as formats
#: return them, and the position of their end, None if more records may follow.
Section = Tuple[int, Sequence[Union[int, bytes]], Optional[int]]


class _Wanted(Dict[int, Sequence[Union[int, bytes]]]):
    """Map the number of records in a batch to their offset deltas, as formats return them."""

    def __missing__(self, count: int) -> Sequence[Union[int, bytes]]:
        wanted = offsets_between(0, count)
        if count <= 64:
            self[count] = wanted
        return wanted


_WANTED = _Wanted()


class _Columns:
    """Decoded records of some sections. ``keys`` and ``blocks`` are None if all are absent."""

    #: Whether values are needed; if not, only their number is, where values are expensive.
    takes_values = True

    def __init__(self, sections: List[Section]) -> None:
        self.sections = sections
        self.deltas: List[int] = []
        self.keys: Optional[List[Optional[bytes]]] = None
        self.values: List[Optional[bytes]] = []
        #: The encoded headers.
        self.blocks: Optional[List[bytes]] = None
        #: Indices of records without consecutive offsets, and the differences.
        self.odd_offsets: List[Tuple[int, int]] = []
        #: The number of records in runs, by the size of their values.
        self.run_sizes: Dict[int, int] = {}

    def left(self) -> List[Section]:
        """Return the sections that are not decoded yet."""
        done = len(self.values)
        if not done:
            return self.sections
        for place, (first, wanted, end) in enumerate(self.sections):
            if done < len(wanted):
                return [(first + done, wanted[done:], end), *self.sections[place + 1 :]]
            done -= len(wanted)
        return []

    def count_runs(self, sizes: Dict[int, int]) -> None:
        """Add numbers of records in runs, by the size of their values."""
        for size, count in sizes.items():
            self.run_sizes[size] = self.run_sizes.get(size, 0) + count

    def widen(self) -> None:
        """Create columns for keys and headers."""
        if self.keys is None or self.blocks is None:
            self.keys = [None] * len(self.values)
            self.blocks = [NO_HEADERS] * len(self.values)

    def append(self, fields: Fields, number: int) -> None:
        """Add a record of any form, given its number in the batch."""
        offset, delta, key, value, block = fields
        if offset != number:
            self.odd_offsets.append((len(self.values), offset - number))
        self.deltas.append(delta)
        self.values.append(value)
        if self.keys is not None and self.blocks is not None:
            self.keys.append(key)
            self.blocks.append(block)

    def take_over(self, other: _Columns, start: int, end: int) -> None:
        """Add records of others, with keys and blocks if there are such columns here."""
        self.deltas += other.deltas[start:end]
        self.values += other.values[start:end]
        if self.keys is not None and self.blocks is not None:
            assert other.keys is not None and other.blocks is not None
            self.keys += other.keys[start:end]
            self.blocks += other.blocks[start:end]

    def offsets(self, starts: List[int]) -> Sequence[int]:
        """Return the offsets of the records, given those of the sections."""
        stops = list(map(add, starts, map(len, map(itemgetter(1), self.sections))))
        if starts[1:] == stops[:-1]:
            if not self.odd_offsets:
                return range(starts[0], stops[-1])
        changed = list(chain.from_iterable(map(range, starts, stops)))
        for index, off in self.odd_offsets:
            changed[index] += off
        return changed

    def stamps(self, base: int) -> List[int]:
        """Return the timestamps of the records of one batch."""
        return list(map(base.__add__, self.deltas))

    def records(self, start: int, base: int, append_time: Optional[int]) -> Iterator[Record]:
        """Return an iterator of the records of one section, which are created on demand."""
        stamps: Any = repeat(append_time) if append_time is not None else self.stamps(base)
        keys: Any = repeat(None) if self.keys is None else self.keys
        headers: Any = repeat(()) if self.blocks is None else read_headers(self.blocks)[0]
        return map(Record, zip(self.offsets([start]), stamps, keys, self.values, headers))

    def everything(self, offsets: Sequence[int], stamps: List[int], group: Group) -> RecordColumns:
        """Return all fields of the records, with the given offsets and timestamps."""
        headers: Optional[Sequence[Headers]] = None
        sizes: Optional[Sequence[int]] = None
        if self.blocks is not None:
            headers, sizes = read_headers(self.blocks)
        value_sizes = None
        for size, count in self.run_sizes.items():
            if count == len(self.values):
                value_sizes = [size] * count
        return RecordColumns(
            offsets,
            stamps,
            1 if group.is_append_time else 0,
            self.keys,
            self.values,
            headers,
            sizes,
            None,
            group.leader_epoch,
            value_sizes,
        )


class _MarkColumns(_Columns):
    """Decoded records of some sections, without their values."""

    takes_values = False


def decode_records(
    data: Buffer, count: int, base_offset: int, base_timestamp: int, append_time: Optional[int]
) -> Iterator[Iterator[Record]]:
    """
    Decode the records of a batch, in groups of up to :data:`CHUNK`.

    ``data`` is the decompressed content of the batch; ``count`` the number of records it must have;
    ``append_time`` (ms) overrides the timestamps if it is not None. Raises ``ProtocolError`` when
    malformed bytes are reached.
    """
    for first, columns in _decode(data, count):
        yield columns.records(base_offset + first, base_timestamp, append_time)


def decode_columns(data: Buffer, count: int, base_offset: int) -> Iterator[Columns]:
    """Decode as :func:`decode_records`, but only offsets, keys and values, into columns."""
    for first, columns in _decode(data, count):
        if columns.blocks is not None:
            read_headers(columns.blocks)
        yield Columns(columns.offsets([base_offset + first]), columns.keys, columns.values)


def decode_marks(
    data: Buffer, count: int, base_offset: int, base_timestamp: int, append_time: Optional[int]
) -> Iterator[Marks]:
    """Decode as :func:`decode_records`, but without an object per record."""
    for first, columns in _decode(data, count, _MarkColumns):
        if columns.blocks is not None:
            read_headers(columns.blocks)
        stamps = columns.stamps(base_timestamp)
        if append_time is not None:
            stamps = [append_time] * len(stamps)
        yield Marks(columns.offsets([base_offset + first]), stamps, columns.keys)


def decode_batch(batch: Group) -> Iterator[RecordColumns]:
    """Decode a single batch as :func:`decode_records`, but all fields into columns."""
    (data,), (count,), (base_offset,), (time,) = batch[:4]
    for first, columns in _decode(data, count):
        offsets = columns.offsets([base_offset + first])
        stamps = [time] * len(offsets) if batch.is_append_time else columns.stamps(time)
        yield columns.everything(offsets, stamps, batch)


def decode_group(group: Group) -> RecordColumns:
    """
    Decode the records of some batches together.

    Raises ``ProtocolError`` if any of them is malformed, without saying which.
    """
    buf = b''.join([*group.data, bytes(PADDING)])
    ends = list(accumulate(map(len, group.data)))
    columns = _Columns(list(zip(repeat(0), map(_WANTED.__getitem__, group.counts), ends)))
    _decode_guarded(buf, 0, ends[-1], columns)
    stamps: Iterable[int] = chain.from_iterable(map(repeat, group.times, group.counts))
    if not group.is_append_time:
        stamps = map(add, stamps, columns.deltas)
    return columns.everything(columns.offsets(group.offsets), list(stamps), group)


def _decode(
    data: Buffer, count: int, columns_of: Callable[[List[Section]], _Columns] = _Columns
) -> Iterator[Tuple[int, _Columns]]:
    """Decode up to :data:`CHUNK` records at a time; yield them with the number of the first."""
    stop = len(data)
    # Padding, because decoding the last record reads ahead.
    buf = b''.join((data, bytes(PADDING)))
    del data  # it may be large
    pos = 0
    for first in range(0, count, CHUNK):
        last = min(count, first + CHUNK)
        columns = columns_of([(first, offsets_between(first, last), None)])
        pos = _decode_guarded(buf, pos, stop, columns)
        yield first, columns
    if pos != stop:
        raise ProtocolError('%d bytes follow the last record of a batch' % (stop - pos))


def _decode_guarded(buf: bytes, pos: int, stop: int, columns: _Columns) -> int:
    """Decode the sections of columns; return the position after them."""
    try:
        pos = _decode_sections(buf, pos, stop, columns)
    except (struct.error, IndexError):
        raise ProtocolError('the records of a batch exceed it') from None
    if pos > stop:
        raise ProtocolError('the records of a batch exceed it')
    return pos


def _decode_sections(buf: bytes, pos: int, stop: int, columns: _Columns) -> int:
    """Decode the sections of columns, the fastest method first; return the position after them."""
    sections = columns.sections
    counts = list(map(len, map(itemgetter(1), sections)))
    if sum(counts) > 2 and sections[-1][0] <= WIDE_OFFSETS - CHUNK:
        formats.allow(sum(counts))
        for last in stretches(counts, [end or 0 for _, _, end in sections], _ALIKE):
            columns.sections = sections[:last]
            pos = _decode_stretch(buf, pos, stop, columns)
        return pos
    columns.widen()
    for first, wanted, end in columns.left():
        for number in range(first, first + len(wanted)):
            fields, pos = decode_record(buf, pos, stop)
            columns.append(fields, number)
        _check_end(pos, end)
    return pos


def _decode_stretch(buf: bytes, pos: int, stop: int, columns: _Columns) -> int:
    """Decode what is left, the fastest method first; return the position after it."""
    count = sum(map(len, map(itemgetter(1), columns.sections)))
    (_, _, key, _, block), _ = decode_record(buf, pos, stop)
    if key is not None or block != NO_HEADERS:
        columns.widen()
    if len(columns.sections) > 1:
        pos = _even_batches(buf, pos, columns)
    pos = _even(buf, pos, stop, columns)
    if columns.keys is None and len(columns.values) < count:
        pos = _plain_strides(buf, pos, stop, columns)
    if len(columns.values) < count:
        columns.widen()
        pos = _full_strides(buf, pos, stop, columns)
    if len(columns.values) < count:
        pos = _layouts(buf, pos, stop, columns)
    return pos


def _check_end(pos: int, end: Optional[int]) -> None:
    if pos != end and end is not None:
        raise ProtocolError('the size of a batch differs from that of its records')


def _even(buf: bytes, pos: int, stop: int, columns: _Columns) -> int:
    """Decode runs of records of equal size, as long as there are any; return their end."""
    for first, wanted, end in columns.left():
        last = first + len(wanted)
        while first < last:
            run = measure_run(buf, pos, stop, first, last)
            if run is None or (columns.keys is None and not run.plain):
                return pos
            numbers = run.deltas(buf, pos)
            if numbers is None:
                return pos
            columns.deltas += numbers
            _add_run(buf, pos, run, columns)
            first += run.records
            pos += run.records * run.size
        _check_end(pos, end)
    return pos


def _even_batches(buf: bytes, pos: int, columns: _Columns) -> int:
    """
    Decode the next batches that differ only in the content of their records.

    Return where the last ends, ``pos`` if there are none. A record is larger from number 64 on,
    because its offset delta is, so there are two runs, each through all of the batches.
    """
    (_, wanted, end), *others = columns.left()
    batches, many, size = 1, len(wanted), (end or 0) - pos
    for _, other, end in others:
        if len(other) != many or end != pos + (batches + 1) * size:
            break
        batches += 1
    if batches < 2 or size <= 0 or many > TABLED_OFFSETS:
        return pos
    length, behind = decode_varint(buf, pos, 5)
    head = min(many, 64)
    cut, stop = head * (behind - pos + length), pos + batches * size
    if not 0 < cut <= size:
        return pos
    runs = []
    for first, last, start, end in ((0, head, 0, cut), (head, many, cut, size)):
        if first < last:
            data = b''.join([buf[at + start : at + end] for at in range(pos, stop, size)])
            found = _repeated_run(data, first, last, batches, columns)
            if found is None:
                return pos
            runs.append((last - first, found))
    for _, found in runs:
        columns.count_runs(found.run_sizes)
    for batch in range(batches):
        for count, found in runs:
            columns.take_over(found, batch * count, (batch + 1) * count)
    return stop


def _repeated_run(
    data: bytes, first: int, last: int, times: int, like: _Columns
) -> Optional[_Columns]:
    """Decode records with repeated numbers; None if they are not all of equal size."""
    buf = data + bytes(PADDING)
    run = measure_run(buf, 0, len(data), first, last, times)
    deltas = None if run is None else run.deltas(buf, 0)
    if run is None or deltas is None or (like.keys is None and not run.plain):
        return None
    found = _Columns([])
    if like.keys is not None:
        found.widen()
    found.deltas = deltas
    _add_run(buf, 0, run, found)
    return found


def _add_run(buf: bytes, pos: int, run: RecordRun, columns: _Columns) -> None:
    """Add keys, values and headers of a run that begins at ``pos``."""
    if columns.keys is None and not columns.takes_values:
        columns.values += [None] * run.records
        return
    fields = run.fields(buf, pos)
    columns.count_runs({run.value_bytes: run.records})
    if columns.keys is None or columns.blocks is None:
        columns.values += fields
    elif run.plain:
        columns.values += fields
        columns.keys += [None] * run.records
        columns.blocks += [NO_HEADERS] * run.records
    else:
        columns.keys += [None] * run.records if run.null_keys else fields[0::3]
        columns.values += fields[1::3]
        columns.blocks += fields[2::3]


def _plain_strides(buf: bytes, pos: int, stop: int, columns: _Columns) -> int:
    """Decode records without key and headers; stop early at others."""
    values = columns.values
    add_value, add_delta = values.append, columns.deltas.append
    widths = widths_at(buf, pos) or _SMALL
    this = other = stride(widths._replace(length=0, headers=1), False)
    ahead, ahead_bytes, deltas, by_key = this
    steps = by_key[1]
    pos += ahead_bytes
    size, delta, offset, key = ahead(buf, pos - ahead_bytes)
    misses = 0
    for first, offsets, end in columns.left():
        first -= len(values)  # the number of a record is this plus its index
        for wanted in offsets:
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
                    fields, behind = decode_record(buf, pos, stop)
                    if fields[2] is not None or fields[4] != NO_HEADERS:
                        return pos
                    columns.append(fields, first + len(values))
                    pos = behind
                else:
                    this, other = other, this
                if tries == 2:
                    misses += 1
                    if misses > 8 + (len(values) >> 3):
                        return pos
                    widths = widths_at(buf, pos) or _SMALL
                    this = stride(widths._replace(length=0, headers=1), False)
                ahead, ahead_bytes, deltas, by_key = this
                steps = by_key[1]
                pos += ahead_bytes
                size, delta, offset, key = ahead(buf, pos - ahead_bytes)
                if tries == 3:
                    break
        _check_end(pos - ahead_bytes, end)
    return pos - ahead_bytes


def _stride_at(buf: bytes, pos: int) -> Optional[Stride]:
    """Return the format for records like the one at ``pos``, None for an unusual one."""
    widths = widths_at(buf, pos)
    if widths is None or not widths.headers:
        return None
    return stride(widths._replace(length=0), True)


def _full_strides(buf: bytes, pos: int, stop: int, columns: _Columns) -> int:
    """Decode records of any kind; stop early if no stride fits."""
    assert columns.keys is not None and columns.blocks is not None
    values = columns.values
    add_value, add_delta = values.append, columns.deltas.append
    add_key, add_block = columns.keys.append, columns.blocks.append
    key_sizes, lengths = tables().keys, tables().lengths
    this = other = _stride_at(buf, pos)
    if this is None or other is None:
        return pos
    ahead, ahead_bytes, deltas, by_key = this
    pos += ahead_bytes
    size, delta, offset, key_size = ahead(buf, pos - ahead_bytes)
    misses = 0
    for first, offsets, end_of_section in columns.left():
        first -= len(values)  # the number of a record is this plus its index
        for wanted in offsets:
            tries = 0
            while True:
                delta = deltas[delta]
                if offset == wanted and delta is not None:
                    null_key, key_raw = key_size == 1, key_size
                    unpack, raw, step = by_key[key_size][size]
                    key, length, value, block, size, delta_, offset, key_size = unpack(buf, pos)
                    if length == raw:
                        add_block(block)
                        add_key(None if null_key else key)
                        add_value(value)
                        add_delta(delta)
                        delta = delta_
                        pos += step
                        break
                    # Usually only the length of the headers differs, and all fields before them are
                    # right.
                    start = pos + key_sizes[key_raw] + (1 if raw < 256 else 2)
                    behind, end = start + lengths[raw >= 256][length], pos + step - ahead_bytes
                    if behind < end:
                        add_block(buf[behind:end])
                        add_key(None if null_key else key)
                        add_value(buf[start:behind])
                        add_delta(delta)
                        pos += step
                        size, delta, offset, key_size = ahead(buf, pos - ahead_bytes)
                        break
                pos -= ahead_bytes
                tries += 1
                if tries == 3:
                    fields, pos = decode_record(buf, pos, stop)
                    columns.append(fields, first + len(values))
                else:
                    this, other = other, this
                if tries == 2:
                    misses += 1
                    if misses > 8 + (len(values) >> 3):
                        return pos
                    this = _stride_at(buf, pos) or this
                ahead, ahead_bytes, deltas, by_key = this
                pos += ahead_bytes
                size, delta, offset, key_size = ahead(buf, pos - ahead_bytes)
                if tries == 3:
                    break
        _check_end(pos - ahead_bytes, end_of_section)
    return pos - ahead_bytes


def _layouts(buf: bytes, pos: int, stop: int, columns: _Columns) -> int:
    """Decode records of any kind."""
    assert columns.keys is not None and columns.blocks is not None
    values = columns.values
    add_value, add_delta = values.append, columns.deltas.append
    add_key, add_block = columns.keys.append, columns.blocks.append
    key_sizes = tables().keys
    this = other = layout((widths_at(buf, pos) or _SMALL)[:4])
    unpack, sizes, deltas, lengths, head, key_at = this
    for first, offsets, end_of_section in columns.left():
        first -= len(values)  # the number of a record is this plus its index
        for wanted in offsets:
            tries = 0
            while True:
                key_size = buf[pos + key_at]
                size, delta, offset, key_size, key, length = unpack[key_size](buf, pos)
                start = pos + head + key_sizes[key_size]
                stop_value = start + lengths[length]
                end = pos + sizes[size]
                delta = deltas[delta]
                if offset == wanted and stop_value < end and delta is not None:
                    add_block(buf[stop_value:end])
                    add_value(buf[start:stop_value])
                    add_delta(delta)
                    add_key(None if key_size == 1 else key)
                    pos = end
                    break
                tries += 1
                if tries == 3:
                    fields, pos = decode_record(buf, pos, stop)
                    columns.append(fields, first + len(values))
                    break
                this, other = other, this
                if tries == 2:
                    widths = widths_at(buf, pos)
                    if widths is not None:
                        this = layout(widths[:4])
                unpack, sizes, deltas, lengths, head, key_at = this
        _check_end(pos, end_of_section)
    return pos
