"""The types of the wire as 1.x had them: classes and objects that encode values and decode streams.

Owns these types and schemas made of them. They are the slow and forgiving way of reading and
writing: nothing is judged, bytes behind the last field are left where they are. The engine's own
messages are declared in wire.py and share nothing with this.

Every failure is a ValueError: a value that does not fit, a stream that ends too early, a wrong
number of fields. Streams are file-like objects opened for bytes.
"""

from __future__ import annotations

import struct
from typing import Any, ClassVar, Dict, List, Optional, Tuple

from kafka.protocol.abstract import AbstractType

__all__ = [
    'AbstractType',
    'Array',
    'Boolean',
    'Bytes',
    'CompactArray',
    'CompactBytes',
    'CompactString',
    'Float64',
    'Int8',
    'Int16',
    'Int32',
    'Int64',
    'Schema',
    'SecretBytes',
    'SecretString',
    'String',
    'TaggedFields',
    'UInt16',
    'UInt32',
    'UnsignedVarInt32',
    'Uuid',
    'VarInt32',
    'VarInt64',
]

SHOWN_BYTES = 100  # of a long value in a repr


def _read(data: Any, size: int) -> bytes:
    """Return exactly so many bytes of a stream. Raises ValueError if it ends before."""
    value: bytes = data.read(size)
    if len(value) != size:
        raise ValueError('the stream ends after %d of %d bytes' % (len(value), size))
    return value


class _Number(AbstractType):
    """A number of fixed width, big-endian."""

    STRUCT: ClassVar[struct.Struct]

    @classmethod
    def encode(cls, value: Any) -> bytes:
        """Return the bytes of a number. Raises ValueError for what does not fit or is none."""
        try:
            return cls.STRUCT.pack(value)
        except struct.error as error:
            raise ValueError('%r is no %s: %s' % (value, cls.__name__, error)) from error

    @classmethod
    def decode(cls, data: Any) -> Any:
        """Read a number from a stream. Raises ValueError if it ends too early."""
        return cls.STRUCT.unpack(_read(data, cls.STRUCT.size))[0]


class Int8(_Number):
    """One byte, signed."""

    STRUCT = struct.Struct('>b')


class Int16(_Number):
    """Two bytes, signed."""

    STRUCT = struct.Struct('>h')


class Int32(_Number):
    """Four bytes, signed."""

    STRUCT = struct.Struct('>i')


class Int64(_Number):
    """Eight bytes, signed."""

    STRUCT = struct.Struct('>q')


class UInt16(_Number):
    """Two bytes, unsigned."""

    STRUCT = struct.Struct('>H')


class UInt32(_Number):
    """Four bytes, unsigned."""

    STRUCT = struct.Struct('>I')


class Float64(_Number):
    """Eight bytes, floating-point."""

    STRUCT = struct.Struct('>d')


class Boolean(_Number):
    """One byte that is 0 or not."""

    STRUCT = struct.Struct('>?')


class Uuid(AbstractType):
    """Sixteen bytes, as they are."""

    @classmethod
    def encode(cls, value: Any) -> bytes:
        """Return the bytes. Raises ValueError for any other number of them."""
        if not isinstance(value, bytes) or len(value) != 16:
            raise ValueError('%r is no 16 bytes' % (value,))
        return value

    @classmethod
    def decode(cls, data: Any) -> bytes:
        """Read sixteen bytes. Raises ValueError if the stream ends too early."""
        return _read(data, 16)


class String:
    """Text behind an int16 with its length in bytes; None is the length -1. Made with an encoding.

    What is no text becomes some by ``str()``.
    """

    def __init__(self, encoding: str = 'utf-8') -> None:
        self.encoding = encoding

    def encode(self, value: Any) -> bytes:
        """Return length and text. Raises ValueError for text that is too long."""
        if value is None:
            return Int16.encode(-1)
        encoded = str(value).encode(self.encoding)
        return Int16.encode(len(encoded)) + encoded

    def decode(self, data: Any) -> Optional[str]:
        """Read length and text. Raises ValueError for a stream that ends, or other bytes."""
        length = Int16.decode(data)
        return None if length < 0 else _read(data, length).decode(self.encoding)

    def repr(self, value: Any) -> str:
        """Return how text is shown."""
        return repr(value)


class SecretString(String):
    """Text that no repr shows."""

    def repr(self, value: Any) -> str:
        """Return that there is something."""
        return '<hidden>' if value else repr(value)


class Bytes(AbstractType):
    """Bytes behind an int32 with their number; None is the length -1."""

    @classmethod
    def encode(cls, value: Any) -> bytes:
        """Return length and bytes. Raises ValueError for what is no bytes."""
        if value is None:
            return Int32.encode(-1)
        encoded = _as_bytes(value)
        return Int32.encode(len(encoded)) + encoded

    @classmethod
    def decode(cls, data: Any) -> Optional[bytes]:
        """Read length and bytes. Raises ValueError if the stream ends too early."""
        length = Int32.decode(data)
        return None if length < 0 else _read(data, length)

    @classmethod
    def repr(cls, value: Any) -> str:
        """Return the bytes, of many the first ones."""
        if value is None or len(value) <= SHOWN_BYTES:
            return repr(value)
        return repr(value[:SHOWN_BYTES] + b'...')


class SecretBytes(Bytes):
    """Bytes that no repr shows."""

    @classmethod
    def repr(cls, value: Any) -> str:
        """Return that there is something."""
        return '<hidden>' if value else repr(value)


def _as_bytes(value: Any) -> bytes:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise ValueError('%s is no bytes' % type(value).__name__)
    return bytes(value)


class Schema:
    """Fields one behind the other, each of a name and a type: ``Schema(('id', Int32), ...)``.

    Attributes: names, fields: of the fields, in order.
    """

    names: Tuple[str, ...]
    fields: Tuple[Any, ...]

    def __init__(self, *fields: Tuple[str, Any]) -> None:
        self.names = tuple(name for name, _ in fields)
        self.fields = tuple(kind for _, kind in fields)

    def encode(self, item: Any) -> bytes:
        """Return the bytes of a sequence of values. Raises ValueError for a wrong number."""
        if len(item) != len(self.fields):
            raise ValueError('%d values for the fields %s' % (len(item), list(self.names)))
        return b''.join(kind.encode(value) for kind, value in zip(self.fields, item))

    def decode(self, data: Any) -> Tuple[Any, ...]:
        """Read a value for each field."""
        return tuple([kind.decode(data) for kind in self.fields])

    def __len__(self) -> int:
        return len(self.fields)

    def repr(self, value: Any) -> str:
        """Return the values by their names."""
        try:
            pairs = zip(self.names, self.fields, value)
            return '(%s)' % ', '.join(
                '%s=%s' % (name, kind.repr(each)) for name, kind, each in pairs
            )
        except TypeError:
            return repr(value)


class Array:
    """Elements behind an int32 with their number: ``Array(Int32)``, ``Array(('id', Int32), ...)``.

    Elements of several fields are tuples. None is the number -1; what is read is always a list.
    """

    def __init__(self, *array_of: Any) -> None:
        if not array_of:
            raise ValueError('an Array needs to know what of')
        is_fields = isinstance(array_of[0], (list, tuple))
        if len(array_of) > 1 and not is_fields:
            raise ValueError('an Array is of one type, or of fields (name, type)')
        self.array_of: Any = Schema(*array_of) if is_fields else array_of[0]

    def encode(self, items: Any) -> bytes:
        """Return number and elements. Raises ValueError for an element that does not fit."""
        if items is None:
            return Int32.encode(-1)
        encoded = [self.array_of.encode(item) for item in items]
        return Int32.encode(len(encoded)) + b''.join(encoded)

    def decode(self, data: Any) -> List[Any]:
        """Read number and elements; a negative number is none."""
        return [self.array_of.decode(data) for _ in range(max(0, Int32.decode(data)))]

    def repr(self, value: Any) -> str:
        """Return the elements in brackets."""
        if value is None:
            return 'NULL'
        return '[%s]' % ', '.join(self.array_of.repr(each) for each in value)


# ---------------------------------------------------------------- of flexible versions (KIP-482)


class UnsignedVarInt32(AbstractType):
    """A number in as few bytes as it needs, seven bits each."""

    @classmethod
    def encode(cls, value: Any) -> bytes:
        """Return the bytes of a number. Raises ValueError for what does not fit into 32 bits."""
        return _varint(value, 32)

    @classmethod
    def decode(cls, data: Any) -> int:
        """Read a number. Raises ValueError for one beyond 32 bits."""
        return _read_varint(data, 32)


class VarInt32(AbstractType):
    """A signed number in as few bytes as it needs, zigzag."""

    BITS: ClassVar[int] = 32

    @classmethod
    def encode(cls, value: Any) -> bytes:
        """Return the bytes of a number. Raises ValueError for what does not fit."""
        if not isinstance(value, int):
            raise ValueError('%r is no number' % (value,))
        return _varint(value * 2 if value >= 0 else -value * 2 - 1, cls.BITS)

    @classmethod
    def decode(cls, data: Any) -> int:
        """Read a number. Raises ValueError for one that is too large."""
        value = _read_varint(data, cls.BITS)
        return value >> 1 ^ -(value & 1)


class VarInt64(VarInt32):
    """As VarInt32, of 64 bits."""

    BITS = 64


def _varint(value: Any, bits: int) -> bytes:
    if not isinstance(value, int) or not 0 <= value < 1 << bits:
        raise ValueError('%r does not fit into %d bits' % (value, bits))
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _read_varint(data: Any, bits: int) -> int:
    value = shift = 0
    while shift < bits:
        (byte,) = _read(data, 1)
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> bits:
                break
            return value
        shift += 7
    raise ValueError('a number of more than %d bits' % bits)


class CompactString(String):
    """Text behind a varint with its length plus 1; None is 0."""

    def encode(self, value: Any) -> bytes:
        """Return length and text."""
        encoded = None if value is None else str(value).encode(self.encoding)
        return CompactBytes.encode(encoded)

    def decode(self, data: Any) -> Optional[str]:
        """Read length and text. Raises ValueError for a stream that ends, or other bytes."""
        value = CompactBytes.decode(data)
        return None if value is None else value.decode(self.encoding)


class CompactBytes(Bytes):
    """Bytes behind a varint with their number plus 1; None is 0."""

    @classmethod
    def encode(cls, value: Any) -> bytes:
        """Return length and bytes. Raises ValueError for what is no bytes."""
        if value is None:
            return b'\0'
        encoded = _as_bytes(value)
        return UnsignedVarInt32.encode(len(encoded) + 1) + encoded

    @classmethod
    def decode(cls, data: Any) -> Optional[bytes]:
        """Read length and bytes. Raises ValueError if the stream ends too early."""
        length = UnsignedVarInt32.decode(data) - 1
        return None if length < 0 else _read(data, length)


class CompactArray(Array):
    """Elements behind a varint with their number plus 1; None is 0, and read as an empty list."""

    def encode(self, items: Any) -> bytes:
        """Return number and elements."""
        if items is None:
            return b'\0'
        encoded = [self.array_of.encode(item) for item in items]
        return UnsignedVarInt32.encode(len(encoded) + 1) + b''.join(encoded)

    def decode(self, data: Any) -> List[Any]:
        """Read number and elements."""
        return [self.array_of.decode(data) for _ in range(UnsignedVarInt32.decode(data) - 1)]


class TaggedFields(AbstractType):
    """{tag: bytes}, in the order of the tags."""

    @classmethod
    def encode(cls, value: Any) -> bytes:
        """Return number, tags and bytes. Raises ValueError for what is no bytes."""
        tags = sorted((value or {}).items())
        encoded = [UnsignedVarInt32.encode(tag) + cls._sized(data) for tag, data in tags]
        return UnsignedVarInt32.encode(len(encoded)) + b''.join(encoded)

    @staticmethod
    def _sized(data: Any) -> bytes:
        encoded = _as_bytes(data)
        return UnsignedVarInt32.encode(len(encoded)) + encoded

    @classmethod
    def decode(cls, data: Any) -> Dict[int, bytes]:
        """Read the tagged fields."""
        tags = {}
        for _ in range(UnsignedVarInt32.decode(data)):
            tag = UnsignedVarInt32.decode(data)
            tags[tag] = _read(data, UnsignedVarInt32.decode(data))
        return tags
