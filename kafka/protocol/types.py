"""The wire types of 1.x: classes and objects that encode values and decode streams.

Types, and schemas of them. They are slow and lenient: values are hardly checked, and bytes after
the last field are left in the stream. The messages that this package itself uses are declared with
wire.py and share nothing with these.

Every failure is a ValueError: a value out of range, a stream that ends too early, a wrong number of
fields. Streams are file-like objects opened for bytes.
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
    """Return this number of bytes of a stream. Raises ValueError if it ends before."""
    value: bytes = data.read(size)
    if len(value) != size:
        raise ValueError('the stream ends after %d of %d bytes' % (len(value), size))
    return value


class _Number(AbstractType):
    """A number of fixed width, big-endian."""

    STRUCT: ClassVar[struct.Struct]

    @classmethod
    def encode(cls, value: Any) -> bytes:
        """Return the bytes of a number. Raises ValueError for one out of range and other types."""
        try:
            return cls.STRUCT.pack(value)
        except struct.error as error:
            raise ValueError('%r is not an %s: %s' % (value, cls.__name__, error)) from error

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
    """One byte; any value but 0 is True."""

    STRUCT = struct.Struct('>?')


class Uuid(AbstractType):
    """Sixteen bytes, unchanged."""

    @classmethod
    def encode(cls, value: Any) -> bytes:
        """Return the bytes. Raises ValueError unless there are 16."""
        if not isinstance(value, bytes) or len(value) != 16:
            raise ValueError('a Uuid must be 16 bytes, got %r' % (value,))
        return value

    @classmethod
    def decode(cls, data: Any) -> bytes:
        """Read sixteen bytes. Raises ValueError if the stream ends too early."""
        return _read(data, 16)


class String:
    """Text after an int16 with its length in bytes; None has the length -1. Takes an encoding.

    Other types are converted by ``str()``.
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
        """Read length and text. Raises ValueError if the stream ends or the text is invalid."""
        length = Int16.decode(data)
        return None if length < 0 else _read(data, length).decode(self.encoding)

    def repr(self, value: Any) -> str:
        """Return the representation of text."""
        return repr(value)


class SecretString(String):
    """Text that no repr shows."""

    def repr(self, value: Any) -> str:
        """Return '<hidden>' for text that is not empty."""
        return '<hidden>' if value else repr(value)


class Bytes(AbstractType):
    """Bytes after an int32 with their number; None has the length -1."""

    @classmethod
    def encode(cls, value: Any) -> bytes:
        """Return length and bytes. Raises ValueError for other types."""
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
        """Return the representation of the bytes, truncated if they are long."""
        if value is None or len(value) <= SHOWN_BYTES:
            return repr(value)
        return repr(value[:SHOWN_BYTES] + b'...')


class SecretBytes(Bytes):
    """Bytes that no repr shows."""

    @classmethod
    def repr(cls, value: Any) -> str:
        """Return '<hidden>' for bytes that are not empty."""
        return '<hidden>' if value else repr(value)


def _as_bytes(value: Any) -> bytes:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise ValueError('expected bytes, got %s' % type(value).__name__)
    return bytes(value)


class Schema:
    """A sequence of fields, each with a name and a type: ``Schema(('id', Int32), ...)``.

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
        """Return the values with their names."""
        try:
            pairs = zip(self.names, self.fields, value)
            return '(%s)' % ', '.join(
                '%s=%s' % (name, kind.repr(each)) for name, kind, each in pairs
            )
        except TypeError:
            return repr(value)


class Array:
    """Elements after an int32 with their number: ``Array(Int32)``, ``Array(('id', Int32), ...)``.

    Elements of several fields are tuples. None has the number -1; decoding always returns a list.
    """

    def __init__(self, *array_of: Any) -> None:
        if not array_of:
            raise ValueError('an Array needs a type, or fields (name, type)')
        is_fields = isinstance(array_of[0], (list, tuple))
        if len(array_of) > 1 and not is_fields:
            raise ValueError('an Array must have one type, or fields (name, type)')
        self.array_of: Any = Schema(*array_of) if is_fields else array_of[0]

    def encode(self, items: Any) -> bytes:
        """Return number and elements. Raises ValueError for an invalid element."""
        if items is None:
            return Int32.encode(-1)
        encoded = [self.array_of.encode(item) for item in items]
        return Int32.encode(len(encoded)) + b''.join(encoded)

    def decode(self, data: Any) -> List[Any]:
        """Read number and elements; a negative number means none."""
        return [self.array_of.decode(data) for _ in range(max(0, Int32.decode(data)))]

    def repr(self, value: Any) -> str:
        """Return the elements in brackets."""
        if value is None:
            return 'NULL'
        return '[%s]' % ', '.join(self.array_of.repr(each) for each in value)


# ---------------------------------------------------------------- flexible versions (KIP-482)


class UnsignedVarInt32(AbstractType):
    """An unsigned number with seven bits per byte, in as few bytes as possible."""

    @classmethod
    def encode(cls, value: Any) -> bytes:
        """Return the bytes of a number. Raises ValueError unless it fits 32 bits."""
        return _varint(value, 32)

    @classmethod
    def decode(cls, data: Any) -> int:
        """Read a number. Raises ValueError if it has more than 32 bits."""
        return _read_varint(data, 32)


class VarInt32(AbstractType):
    """A signed number, zigzag-encoded, in as few bytes as possible."""

    BITS: ClassVar[int] = 32

    @classmethod
    def encode(cls, value: Any) -> bytes:
        """Return the bytes of a number. Raises ValueError for one out of range."""
        if not isinstance(value, int):
            raise ValueError('expected a number, got %r' % (value,))
        return _varint(value * 2 if value >= 0 else -value * 2 - 1, cls.BITS)

    @classmethod
    def decode(cls, data: Any) -> int:
        """Read a number. Raises ValueError if it is too large."""
        value = _read_varint(data, cls.BITS)
        return value >> 1 ^ -(value & 1)


class VarInt64(VarInt32):
    """As VarInt32, with 64 bits."""

    BITS = 64


def _varint(value: Any, bits: int) -> bytes:
    if not isinstance(value, int) or not 0 <= value < 1 << bits:
        raise ValueError('%r does not fit %d bits' % (value, bits))
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
    raise ValueError('a varint has more than %d bits' % bits)


class CompactString(String):
    """Text after a varint with its length plus 1; None is 0."""

    def encode(self, value: Any) -> bytes:
        """Return length and text."""
        encoded = None if value is None else str(value).encode(self.encoding)
        return CompactBytes.encode(encoded)

    def decode(self, data: Any) -> Optional[str]:
        """Read length and text. Raises ValueError if the stream ends or the text is invalid."""
        value = CompactBytes.decode(data)
        return None if value is None else value.decode(self.encoding)


class CompactBytes(Bytes):
    """Bytes after a varint with their number plus 1; None is 0."""

    @classmethod
    def encode(cls, value: Any) -> bytes:
        """Return length and bytes. Raises ValueError for other types."""
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
    """Elements after a varint with their number plus 1; None is 0, decoded as an empty list."""

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
        """Return number, tags and bytes. Raises ValueError for other types."""
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
