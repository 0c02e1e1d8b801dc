"""
Prepared formats for decoding records: tables of varints, layouts, runs and strides.

A *layout* is the widths of a record's varints. It is taken from one record and tried on the next
ones, which usually have the same; the decoder has to check that it fits, for which every table has
an impossible value for varints of another width.
"""

from __future__ import annotations

import struct
import sys
from functools import lru_cache
from itertools import groupby
from operator import sub
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union, cast

from kafka.record.formats import formats

# A number that no valid record contains, so that every comparison with it fails.
WRONG = 1 << 40
#: The maximum number of records that are decoded together; each chunk begins with a multiple of it.
CHUNK = 1000
#: The ends of the ranges of offset deltas with two and with three bytes; higher ones are left to
#: decode_record.
TABLED_OFFSETS = 8192
WIDE_OFFSETS = 1 << 20
_WIDEST = 3
if sys.flags.bytes_warning:
    # Formats return three-byte deltas as bytes; `python -b` warns when those are compared with
    # numbers.
    WIDE_OFFSETS, _WIDEST = TABLED_OFFSETS, 2
#: The bytes after the last record that may be read: the widest layout with a key of 63 bytes.
PADDING = 80


class Tables:
    """Values of one- and two-byte varints, by their byte or by both bytes as little-endian int."""

    def __init__(self) -> None:
        """Fill the tables (under a millisecond)."""
        one = [n >> 1 if n < 128 and not n & 1 else WRONG for n in range(256)]
        two, sizes = [WRONG] * 65536, [-WRONG] * 65536
        signed: List[Optional[int]] = [None] * 65536
        for high in range(1, 128):
            low = high << 8
            first, last = high << 6, (high + 1) << 6
            two[low | 0x80 : low + 0x100 : 2] = range(first, last)
            sizes[low | 0x80 : low + 0x100 : 2] = range(first + 2, last + 2)
            signed[low | 0x80 : low + 0x100 : 2] = range(first, last)
            signed[low | 0x81 : low + 0x100 : 2] = range(-first - 1, -last - 1, -1)
        small = [(n >> 1) ^ -(n & 1) if n < 128 else None for n in range(256)]
        #: Lengths of fields; sizes of records including the varint (invalid ones are negative).
        self.lengths = (one, two)
        self.sizes = ([-WRONG if n == WRONG else n + 1 for n in one], sizes)
        self.deltas = (small, signed)
        self.keys = [0 if n == 1 else one[n] for n in range(256)]
        self.offsets = [2 * n for n in range(64)]
        for n in range(64, TABLED_OFFSETS):
            self.offsets.append(2 * n & 0x7F | 0x80 | n >> 6 << 8)
        raw = struct.pack('<%dH' % TABLED_OFFSETS, *self.offsets)
        #: The first and the second byte of each offset delta.
        self.offset_bytes = (raw[0::2], raw[1::2])


@lru_cache(maxsize=None)
def tables() -> Tables:
    """Return the tables, which are created on first use."""
    return Tables()


class WideOffsets(NamedTuple):
    """Three-byte offset deltas of a chunk: each as bytes; the first bytes of all, and so on."""

    values: List[bytes]
    planes: Tuple[bytes, bytes, bytes]


@lru_cache(maxsize=64)
def wide_offsets(chunk: int) -> WideOffsets:
    """Return those from ``chunk * CHUNK`` on; librdkafka puts 10,000 records into a batch."""
    first = chunk * CHUNK
    planes = (
        bytes(2 * n & 0x7F | 0x80 for n in range(first, first + CHUNK)),
        bytes(n >> 6 & 0x7F | 0x80 for n in range(first, first + CHUNK)),
        bytes(n >> 13 & 0x7F for n in range(first, first + CHUNK)),
    )
    return WideOffsets([bytes(each) for each in zip(*planes)], planes)


def offsets_between(first: int, last: int) -> Sequence[Union[int, bytes]]:
    """Return the offset deltas of a chunk, or of its beginning, as formats return them."""
    if last <= TABLED_OFFSETS:
        return tables().offsets[first:last]
    start = first % CHUNK
    wide = wide_offsets(first // CHUNK).values[start : start + last - first]
    return [*tables().offsets[first:TABLED_OFFSETS], *wide[max(0, TABLED_OFFSETS - first) :]]


def _width(buf: bytes, pos: int) -> int:
    """Return the size of the varint at ``pos``; 3 means 3 or more."""
    return 1 if buf[pos] < 128 else 2 if buf[pos + 1] < 128 else 3


def length_at(buf: bytes, pos: int, width: int) -> int:
    """Return the length in a varint of one or two bytes, WRONG if it is invalid."""
    raw, high = buf[pos], 1 if width == 1 else buf[pos + 1]
    if width == 2:
        raw = raw & 127 | high << 7
    return WRONG if raw & 1 or not high else raw >> 1


class Widths(NamedTuple):
    """The widths of a record's varints and the size of its header block, 0 if unknown."""

    size: int
    delta: int
    offset: int
    length: int
    headers: int


def widths_at(buf: bytes, pos: int) -> Optional[Widths]:
    """Measure the record at ``pos``; None if there is no layout for its widths."""
    start = pos
    size = _width(buf, pos)
    pos += size + 1
    delta = _width(buf, pos)
    pos += delta
    offset = _width(buf, pos)
    pos += offset
    key = buf[pos]
    if max(size, delta) > 2 or offset > _WIDEST or key > 127 or key & 1 and key != 1:
        return None
    pos += 1 + (key >> 1 if key != 1 else 0)
    if pos + 1 >= len(buf):
        return None
    length = _width(buf, pos)
    if length > 2:
        return None
    whole = length_at(buf, start, size)
    end = -1 if whole == WRONG else start + size + whole
    headers = end - pos - length - length_at(buf, pos, length)
    return Widths(size, delta, offset, length, headers if 0 < headers < 256 else 0)


# --- layouts: one unpack for the numbers, slices for the fields


class Layout(NamedTuple):
    """The format of records with certain widths: one call reads everything up to the value."""

    unpack: List[Any]  # functions by the byte of the key's length
    sizes: List[int]
    deltas: List[Optional[int]]
    lengths: List[int]
    head: int
    key_at: int


@lru_cache(maxsize=None)
def layout(widths: Tuple[int, int, int, int]) -> Layout:
    """Return the layout of records with these widths (size, delta, offset, length)."""
    size, delta, offset, length = widths
    codes = ('', 'B', 'H', '3s')
    numbers = '<' + codes[size] + 'x' + codes[delta] + codes[offset] + 'B'
    by_width = [
        struct.Struct('%s%ds%s' % (numbers, width, codes[length])).unpack_from
        for width in range(64)
    ]
    known = tables()
    head = size + 1 + delta + offset + 1 + length
    return Layout(
        [by_width[width if width < 64 else 0] for width in known.keys],
        known.sizes[size - 1],
        known.deltas[delta - 1],
        known.lengths[length - 1],
        head,
        head - length - 1,
    )


# --- runs: records of one size


class RecordRun(NamedTuple):
    """
    A run of ``records`` records of ``size`` bytes whose varints are equal except for the deltas.

    ``text`` is a struct format for key, value and header block of one record, for the value alone
    if ``plain`` is true: neither keys nor headers exist. The timestamp delta is at
    ``delta_at`` bytes after the start of the record and has ``delta_bytes``.
    """

    records: int
    size: int
    text: str
    delta_at: int
    delta_bytes: int
    null_keys: bool
    plain: bool
    value_bytes: int

    def deltas(self, buf: bytes, pos: int) -> Optional[List[int]]:
        """Return the timestamp deltas of a run that begins at ``pos``; None if one is too wide."""
        start, end = pos + self.delta_at, pos + self.records * self.size
        numbers = cast(List[int], tables().deltas[self.delta_bytes - 1]).__getitem__
        first = buf[start : end : self.size]
        if self.delta_bytes == 1:
            if not first.translate(None, _EVEN):  # none is negative or longer than a byte
                return list(first.translate(_HALVES))
            return list(map(numbers, first)) if first.isascii() else None
        second = buf[start + 1 : end : self.size]
        if first.translate(None, _FROM_128) or not second.isascii() or 0 in second:
            return None
        both = bytearray(2 * self.records)
        both[0::2], both[1::2] = first, second
        return list(map(numbers, struct.unpack('<%dH' % self.records, both)))

    def fields(self, buf: bytes, pos: int) -> List[bytes]:
        """Return the fields of ``text`` of all records of a run that begins at ``pos``, in one
        list."""
        # One tuple for 64 records: a tuple per record would take twice the time, and that of the
        # garbage collector.
        found: List[bytes] = []
        many, rest = divmod(self.records, _AT_ONCE)
        for _ in range(many):
            found += _fields_of_many(self.text)(buf, pos)
            pos += _AT_ONCE * self.size
        found += struct.unpack_from('<' + rest * self.text, buf, pos)
        return found


_AT_ONCE = 64
_FROM_128 = bytes(range(128, 256))
_EVEN = bytes(range(0, 128, 2))
_HALVES = bytes(number >> 1 for number in range(256))


@lru_cache(maxsize=64)
def _fields_of_many(text: str) -> Any:
    return struct.Struct('<' + _AT_ONCE * text).unpack_from


# The minimum length of a run.
_LEAST_RUN = 64


def measure_run(
    buf: bytes, pos: int, stop: int, first: int, last: int, times: int = 1
) -> Optional[RecordRun]:
    """
    Find out how many records from ``pos`` on have the same size and lengths, and consecutive
    offsets.

    ``first`` is the number of the record at ``pos``, ``last`` that of the record at which to stop.
    None if there are fewer than 64. With ``times`` the numbers are repeated that many times, none
    of them may be 64 or 8192 in between, and the result has all records up to ``stop`` or is None.
    A column of bytes is a slice with a step; different bytes are found by stripping equal ones,
    without Python code per record.
    """
    if (last - first) * times < _LEAST_RUN:
        return None
    widths = widths_at(buf, pos)
    if widths is None or not widths.headers:
        return None
    known = tables()
    raw = buf[pos] if widths.size == 1 else buf[pos] | buf[pos + 1] << 8
    size = known.sizes[widths.size - 1][raw]
    end = 64 if first < 64 else TABLED_OFFSETS if first < TABLED_OFFSETS else last
    count = whole = min((stop - pos) // size, (min(end, last) - first) * times)
    offset_at = pos + widths.size + 1 + widths.delta
    key_at = offset_at + widths.offset
    key = known.keys[buf[key_at]]
    length_at = key_at + 1 + key
    value = size - (length_at - pos) - widths.length - widths.headers
    equal = [*range(pos, pos + widths.size), key_at, *range(length_at, length_at + widths.length)]
    if buf[pos : pos + 8 * size : size].count(buf[pos : pos + 1]) < 8:
        return None
    null_keys = buf[key_at] == 1
    plain = null_keys and widths.headers == 1
    if plain:
        equal.append(length_at + widths.length + value)
    for start in equal:
        column = buf[start : pos + count * size : size]
        count = len(column) - len(column.lstrip(column[:1]))
    if count < _LEAST_RUN or (times > 1 and (count < whole or pos + count * size != stop)):
        return None
    planes: Sequence[bytes] = known.offset_bytes
    start = first
    if widths.offset == 3:
        planes, start = wide_offsets(first // CHUNK).planes, first % CHUNK
    for place in range(widths.offset):
        column = buf[offset_at + place : pos + count * size : size]
        if column != planes[place][start : start + count // times] * times:
            return None
    skipped = key_at + 1 - pos
    if plain:
        text = '%dx%dsx' % (skipped + widths.length, value)
    else:
        text = '%dx%ds%dx%ds%ds' % (skipped, key, widths.length, value, widths.headers)
    return RecordRun(count, size, text, widths.size + 1, widths.delta, null_keys, plain, value)


# --- stretches: batches of equal size


def stretches(counts: Sequence[int], ends: Sequence[int], least: int) -> List[int]:
    """
    Return the ends of stretches of batches: of those of one size and number of records, and of
    others.

    ``counts`` has the number of records of each batch, ``ends`` the position after it. Batches of
    equal size are not treated separately if they have fewer records together than ``least``.
    """
    found = [0]
    was_alike, place = True, 0
    for (records, _), some in groupby(zip(counts, map(sub, ends, [0, *ends]))):
        batches = len(list(some))
        place += batches
        is_alike = batches > 1 and batches * records >= least
        if is_alike or was_alike:
            found.append(place)
        else:
            found[-1] = place
        was_alike = is_alike
    return found[1:]


# --- strides: one unpack for the fields of a record and the numbers of the next one


class Stride(NamedTuple):
    """
    The format of records with certain widths, for reading them one after the other.

    ``ahead`` reads the four numbers at the beginning of a record: size, timestamp delta, offset
    delta and key length. ``steps[key length][size]`` then has the format of the rest of that
    record, which also reads the same four numbers of the next record.
    """

    ahead: Any
    ahead_bytes: int
    deltas: List[Optional[int]]
    steps: Dict[int, Dict[int, Tuple[Any, int, int]]]


class _Steps(Dict[int, Tuple[Any, int, int]]):
    """
    Map the raw size of a record to a function, the raw length of its value, and its total size.

    The function reads key, value length, value, header block and the next record's numbers. An
    impossible size is mapped to a format that never fits.
    """

    def __init__(self, widths: Widths, key: int, ahead: str) -> None:
        self.widths = widths
        self.key = key
        self.ahead = ahead
        nothing = '<%sB0s0s' % ('' if key < 0 else '0s')
        self.never = (struct.Struct(nothing + ahead).unpack_from, -1, 0)

    def __missing__(self, raw: int) -> Tuple[Any, int, int]:
        widths = self.widths
        whole = tables().sizes[widths.size - 1][raw]
        fixed = widths.size + 1 + widths.delta + widths.offset + 1
        room = whole - fixed - max(self.key, 0) - widths.headers
        length = 1 if room <= 64 else 2
        value = room - length
        if value < 0 or value > 1024 or (length == 2 and value < 64) or not formats.take():
            return self.never
        if self.key < 0:  # the header count as a number, which is compared faster
            text = '<%s%dsB%s' % ('BH'[length - 1], value, self.ahead)
        else:
            form = '<%ds%s%ds%ds%s'
            text = form % (self.key, 'BH'[length - 1], value, widths.headers, self.ahead)
        encoded = 2 * value if length == 1 else 2 * value & 0x7F | 0x80 | value >> 6 << 8
        step = self[raw] = (struct.Struct(text).unpack_from, encoded, whole)
        return step


class _StepsByKey(Dict[int, Dict[int, Tuple[Any, int, int]]]):
    """Map the byte of the key's length to :class:`_Steps`."""

    def __init__(self, widths: Widths, ahead: str) -> None:
        self.widths = widths
        self.ahead = ahead

    def __missing__(self, raw: int) -> Dict[int, Tuple[Any, int, int]]:
        size = tables().keys[raw] if raw < 256 else WRONG
        found = _Steps(self.widths, size if size < 64 else 0, self.ahead)
        if size >= 64:  # never fits
            found.widths = found.widths._replace(headers=WRONG)
        self[raw] = found
        return found


@lru_cache(maxsize=64)
def stride(widths: Widths, keyed: bool) -> Stride:
    """Return the format for records of these widths; ``widths.headers`` must be known."""
    codes = ('', 'B', 'H', '3s')
    ahead = codes[widths.size] + 'x' + codes[widths.delta] + codes[widths.offset] + 'B'
    head = struct.Struct('<' + ahead)
    steps: Dict[int, Dict[int, Tuple[Any, int, int]]]
    steps = _StepsByKey(widths, ahead) if keyed else {1: _Steps(widths, -1, ahead)}
    return Stride(head.unpack_from, head.size, tables().deltas[widths.delta - 1], steps)


formats.forgetters.append(stride.cache_clear)
