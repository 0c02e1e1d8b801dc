"""
Decoding of the headers of records of magic 2, from the bytes at the end of each record.

The block is ``count, (name length, name, value length, value) ...``, all lengths varints. Repeated
headers are cached; headers with different values, such as trace ids, are read by columns; any
others one by one.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from itertools import repeat
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union, overload

from kafka.errors import ProtocolError
from kafka.record.record import Header, MalformedHeaderName
from kafka.record.util import decode_varint

Headers = Tuple[Header, ...]

#: The end of a record without headers.
NO_HEADERS = b'\x00'

# The minimum number of blocks to compare.
_LEAST_BLOCKS = 16


class _HeaderNames(Dict[bytes, Tuple[str, int]]):
    """Map ``name length, name, value length`` (lengths of one byte) to name and length."""

    def __missing__(self, raw: bytes) -> Tuple[str, int]:
        if len(self) >= 1024:
            self.clear()
        size = raw[-1]
        if raw[0] & 0x81 or size & 0x81 or len(raw) != (raw[0] >> 1) + 2:
            raise LookupError('not a short header')
        found = self[raw] = (_name_of(raw[1:-1]), size >> 1)
        return found


def _name_of(raw: bytes) -> str:
    """Decode the name of a header; one that is not UTF-8 keeps its bytes."""
    try:
        return raw.decode('utf-8')
    except UnicodeDecodeError:
        return MalformedHeaderName(raw)


_NAMES = _HeaderNames()


class _HeaderBlocks(Dict[bytes, Headers]):
    """
    Map the encoded headers of a record to the decoded tuple.

    The same headers often recur, and a lookup costs a twentieth of decoding them.
    """

    def __missing__(self, raw: bytes) -> Headers:
        headers = decode_headers(raw)
        if len(raw) <= 256:
            if len(self) >= 1024:
                self.clear()
            self[raw] = headers
        return headers


class _HeaderSizes(Dict[bytes, int]):
    """Map the encoded headers of a record to the size of names and values, -1 for no headers."""

    def __missing__(self, raw: bytes) -> int:
        size = size_of_headers(HEADERS[raw])
        if len(raw) <= 256:
            if len(self) >= 1024:
                self.clear()
            self[raw] = size
        return size


HEADERS = _HeaderBlocks({NO_HEADERS: ()})
HEADER_SIZES = _HeaderSizes({NO_HEADERS: -1})


def size_of_headers(headers: Sequence[Header]) -> int:
    """Return the size of names and values together in bytes, -1 for no headers."""
    if not headers:
        return -1
    return sum(
        len(name.raw if isinstance(name, MalformedHeaderName) else name.encode())
        + len(content or b'')
        for name, content in headers
    )


def decode_headers(raw: bytes) -> Headers:
    """Decode the headers of one record; raises ``ProtocolError`` for anything malformed."""
    try:
        return _short_headers(raw)
    except LookupError:
        return _any_headers(raw)


def _short_headers(raw: bytes) -> Headers:
    """Decode headers whose lengths have one byte each; LookupError for others."""
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
        name, pos = _sized(raw, pos) if pos < len(raw) else (None, pos)
        if name is None or pos >= len(raw):
            raise ProtocolError('a header has no name or no value')
        content, pos = _sized(raw, pos)
        headers.append((_name_of(name), content))
    if pos != len(raw):
        raise ProtocolError('the length of a record disagrees with its headers')
    return tuple(headers)


def _sized(raw: bytes, pos: int) -> Tuple[Optional[bytes], int]:
    size, pos = decode_varint(raw, pos, 5)
    if size < 0:
        return None, pos
    if size > len(raw) - pos:
        raise ProtocolError('a header of %d bytes exceeds its record' % size)
    return raw[pos : pos + size], pos + size


# --- many records


class EqualNames(Sequence[Headers]):
    """Headers of records that all have the same names; ``columns`` has the values of each."""

    def __init__(self, names: Sequence[str], columns: Sequence[List[bytes]]) -> None:
        self.names = names
        self.columns = columns

    def __len__(self) -> int:
        return len(self.columns[0])

    @overload
    def __getitem__(self, index: int) -> Headers: ...

    @overload
    def __getitem__(self, index: slice) -> EqualNames: ...

    def __getitem__(self, index: Union[int, slice]) -> Any:
        if isinstance(index, slice):
            return EqualNames(self.names, [column[index] for column in self.columns])
        return tuple((name, column[index]) for name, column in zip(self.names, self.columns))

    def __iter__(self) -> Iterator[Headers]:
        """Return an iterator of the headers of each record, without Python code per record."""
        return zip(*(zip(repeat(name), column) for name, column in zip(self.names, self.columns)))


def read_headers(blocks: List[bytes]) -> Tuple[Sequence[Headers], Sequence[int]]:
    """
    Decode the headers of many records, and return their sizes too, -1 for no headers.

    Raises ``ProtocolError`` for malformed bytes.
    """
    first = blocks[0] if blocks else NO_HEADERS
    if blocks and first == blocks[-1] and blocks.count(first) == len(blocks):
        return [HEADERS[first]] * len(blocks), [HEADER_SIZES[first]] * len(blocks)
    if len(blocks) < _LEAST_BLOCKS or 4 * len(set(blocks)) <= len(blocks):
        return list(map(HEADERS.__getitem__, blocks)), list(map(HEADER_SIZES.__getitem__, blocks))
    found = _equal_names(blocks)
    if found is not None:
        # Names and values are a block without its lengths.
        lengths = 1 + 2 * len(found.names)
        return found, list(map((-lengths).__add__, map(len, blocks)))
    headers = list(map(decode_headers, blocks))
    return headers, list(map(size_of_headers, headers))


def _equal_names(blocks: List[bytes]) -> Optional[EqualNames]:
    """Read the blocks by columns if all have the names of the first, and short values."""
    try:
        first = _short_headers(blocks[0])
    except LookupError:
        return None
    # The encoded text of a name is searched for, so it has to equal the stored bytes.
    if not first or any(isinstance(name, MalformedHeaderName) for name, _ in first):
        return None
    # The bytes before the length of each header's value; the count belongs to the first.
    parts = [bytes((2 * len(name.encode()),)) + name.encode() for name, _ in first]
    parts[0] = blocks[0][:1] + parts[0]
    names = [name for name, _ in first]
    sizes = [len(content or b'') for _, content in first]
    size = len(blocks[0])
    if set(map(len, blocks)) == {size}:
        columns = _equal_sizes(blocks, parts, sizes)
        if columns is not None:
            return EqualNames(names, columns)
    columns = _any_sizes(blocks, parts)
    return None if columns is None else EqualNames(names, columns)


def _equal_sizes(
    blocks: List[bytes], parts: List[bytes], sizes: List[int]
) -> Optional[List[List[bytes]]]:
    """Return the values of each header if all blocks are equal except for these."""
    text = ''.join('%ds%ds' % (len(part) + 1, size) for part, size in zip(parts, sizes))
    many, rest = divmod(len(blocks), _AT_ONCE)
    joined = b''.join(blocks)
    fields: List[bytes] = []
    step = _AT_ONCE * len(blocks[0])
    for start in range(0, many * step, step):
        fields += _fields_of_many(text)(joined, start)
    fields += struct.unpack_from('<' + rest * text, joined, many * step)
    columns = []
    for place, (part, size) in enumerate(zip(parts, sizes)):
        if fields[2 * place :: 2 * len(parts)].count(part + bytes((2 * size,))) != len(blocks):
            return None
        columns.append(fields[2 * place + 1 :: 2 * len(parts)])
    return columns


_AT_ONCE = 64


@lru_cache(maxsize=64)
def _fields_of_many(text: str) -> Any:
    return struct.Struct('<' + _AT_ONCE * text).unpack_from


# The distance from a value's length to its end, by the byte of the length; impossible if the length
# has two bytes or is null.
_ENDS = [1 + (size >> 1) if not size & 0x81 else 1 << 40 for size in range(256)]


def _any_sizes(blocks: List[bytes], parts: List[bytes]) -> Optional[List[List[bytes]]]:
    """Return the values of each header if the names are the same, and no value is long or null."""
    columns = []
    behind = list(map(len, blocks))
    ends: Sequence[int] = [0] * len(blocks)
    try:
        for part in parts:
            column: List[bytes] = []
            starts, ends = ends, []
            add_value, add_end, width = column.append, ends.append, len(part)
            for raw, start in zip(blocks, starts):
                at = start + width
                if raw[start:at] != part:
                    return None
                end = at + _ENDS[raw[at]]
                add_value(raw[at + 1 : end])
                add_end(end)
            columns.append(column)
    except IndexError:  # a block ends before the length of a value
        return None
    # There is nothing after the last one, and none exceeds its block.
    return columns if behind == ends else None
