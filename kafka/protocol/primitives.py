"""Helpers of compiled messages for rare cases: long varints, tagged fields, and errors.

Unsigned varints, the tagged fields of KIP-482, and the errors of malformed lengths; common cases
are inlined by compiler.py. Counts are checked against the remaining bytes before memory is
allocated for them.
"""

from __future__ import annotations

import struct
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple, Union

from kafka.errors import BufferUnderflowError, KafkaError, ProtocolError

#: The maximum number of elements of an array, and of tagged fields of a struct, in Apache Kafka
#: since 4.4 (CVE-2026-111108, CVE-2026-111115).
MAX_ELEMENTS = 1000000
MAX_TAGS = 10000


class _NoTags(Dict[int, bytes]):
    """The immutable empty mapping that all messages without unknown tags share."""

    def _refuse(self, *_given: Any, **_named: Any) -> Any:
        raise TypeError('assign a new dict to unknown_tags')

    __setitem__ = setdefault = update = __ior__ = _refuse

    def __reduce__(self) -> str:
        return 'NO_TAGS'


NO_TAGS: Mapping[int, bytes] = _NoTags()


def uvarint(value: int) -> bytes:
    """Return an unsigned varint: seven bits per byte, lowest first, high bit on all but the last.

    Raises ProtocolError if the value does not fit 32 bits.
    """
    if not 0 <= value <= 0xFFFFFFFF:
        raise ProtocolError('%d does not fit an unsigned 32-bit varint' % value)
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


class UVarints(Dict[int, bytes]):
    """Unsigned varints by value; those of one byte are stored, longer ones are computed."""

    def __missing__(self, value: int) -> bytes:
        return uvarint(value)


class Pieces:
    """Records in several buffers, which are written one after the other without a copy.

    Arguments, and attributes: parts: the buffers, in order.
    """

    __slots__ = ('parts', 'size_bytes')

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts = parts
        self.size_bytes = sum(map(len, parts))

    def __repr__(self) -> str:
        return '<Pieces: %d, %d bytes>' % (len(self.parts), self.size_bytes)

    def __len__(self) -> int:
        return self.size_bytes

    def __bytes__(self) -> bytes:
        return b''.join(self.parts)


class Arrays(Dict[int, Callable[..., Any]]):
    """Functions of ``struct`` for arrays of numbers, by count; those of short arrays are cached."""

    _LONGEST_KEPT = 64

    def __init__(self, format: str, verb: str) -> None:
        super().__init__()
        self._format = format
        self._verb = verb

    def __missing__(self, count: int) -> Callable[..., Any]:
        layout = struct.Struct('>%d%s' % (count, self._format))
        function: Callable[..., Any] = getattr(layout, self._verb)
        if count <= self._LONGEST_KEPT:
            self[count] = function
        return function


UVARINTS = UVarints((value, bytes([value])) for value in range(128))


def long_uvarint(data: bytes, pos: int, first: int) -> Tuple[int, int]:
    """Read the rest of an unsigned varint whose first byte has its high bit set.

    Return the value and the position after it. Raises ProtocolError for more than 5 bytes or 32
    bits; IndexError if the bytes end.
    """
    value = first & 127
    for shift in (7, 14, 21, 28):
        byte = data[pos]
        pos += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value > 0xFFFFFFFF:
                raise ProtocolError('a varint has more than 32 bits')
            return value, pos
    raise ProtocolError('a varint has more than 5 bytes')


def read_uvarint(data: bytes, pos: int) -> Tuple[int, int]:
    """Read an unsigned varint; return the value and the position after it."""
    byte = data[pos]
    return (byte, pos + 1) if byte < 128 else long_uvarint(data, pos + 1, byte)


def read_tags(data: bytes, pos: int, end: int, count: int) -> Tuple[Dict[int, bytes], int]:
    """Read tagged fields, after the first byte of their count.

    Return the raw values by tag and the position after them. Raises ProtocolError for more than
    MAX_TAGS fields and for a repeated tag; BufferUnderflowError for a truncated value.
    """
    if count > 127:
        count, pos = long_uvarint(data, pos, count)
    if count > MAX_TAGS:
        raise ProtocolError('%d tagged fields; the maximum is %d' % (count, MAX_TAGS))
    tags: Dict[int, bytes] = {}
    for _ in range(count):
        tag, pos = read_uvarint(data, pos)
        size, pos = read_uvarint(data, pos)
        if size > end - pos:
            raise bad_length(size, 'tagged field %d' % tag)
        if tag in tags:
            raise ProtocolError('tagged field %d is repeated' % tag)
        tags[tag] = data[pos : pos + size]
        pos += size
    return tags, pos


def tag_section(known: Dict[int, bytes], unknown: Mapping[int, bytes]) -> bytes:
    """Return the encoding of these raw values as tagged fields, in the order of their tags."""
    tags = {**known, **unknown}
    if len(tags) != len(known) + len(unknown):
        raise ProtocolError('unknown_tags repeats a declared tag: %s' % sorted(unknown))
    out = [uvarint(len(tags))]
    for tag in sorted(tags):
        out += [uvarint(tag), uvarint(len(tags[tag])), tags[tag]]
    return b''.join(out)


def as_list(value: Any) -> List[Any]:
    """Return the elements of a value for an array field.

    Raises TypeError for strings and bytes, which are iterable but never meant as an array.
    """
    if isinstance(value, (str, bytes, bytearray, memoryview, dict)):
        raise TypeError('%s is not an array' % type(value).__name__)
    return list(value)


def as_bytes(value: Any) -> memoryview:
    """Return the bytes of any contiguous buffer. Raises TypeError for anything else."""
    return memoryview(value).cast('B')


def as_records(value: Any) -> Union[memoryview, Pieces]:
    """Return records in a form for write_records(). Raises TypeError for other objects."""
    return value if type(value) is Pieces else as_bytes(value)


def write_records(value: Union[memoryview, Pieces], write: Callable[[Any], None]) -> None:
    """Write the result of as_records()."""
    for part in value.parts if type(value) is Pieces else (value,):
        write(part)


def bad_length(length: int, path: str) -> KafkaError:
    """Return the error for a length that is negative or exceeds the remaining bytes."""
    if length < 0:
        return ProtocolError('%s has length %d' % (path, length))
    return BufferUnderflowError(
        '%s has length %d, which exceeds the remaining bytes' % (path, length)
    )


def bad_count(count: int, path: str) -> KafkaError:
    """Return the error for an array that is null or exceeds the remaining bytes."""
    if count == -1:
        return ProtocolError('%s is null' % path)
    return ProtocolError('%s has %d elements, which exceeds the remaining bytes' % (path, count))


def off_wire(path: str, version: int) -> KafkaError:
    """Return the error for a value that does not exist in a version."""
    return ProtocolError('%s cannot be written in version %d' % (path, version))


def check_end(pos: int, end: int, path: str) -> None:
    """Raise ProtocolError unless all bytes were read."""
    if pos != end:
        raise ProtocolError('%d bytes are left after %s' % (end - pos, path))
