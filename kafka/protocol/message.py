"""Messages of magic 0 and 1 as objects, and sets of them, as in 1.x.

:mod:`kafka.record.legacy_records` and its decoder handle the bytes; these are the objects for
programs, one per message, without decompressing wrapper messages.
"""

from __future__ import annotations

import io
import struct
import time
from collections import deque
from itertools import repeat
from typing import Any, ClassVar, Iterable, Iterator, List, Optional, Sequence, Tuple, Union
from zlib import crc32

from kafka.codec import DEFAULT_LIMIT_BYTES, decompress
from kafka.errors import ProtocolError
from kafka.protocol.types import Bytes, Int8, Int32, Int64, Schema
from kafka.record.legacy_decoder import decode_message
from kafka.record.legacy_records import ENTRY_HEADER, encode_message
from kafka.record.legacy_run import Run
from kafka.util import text_bytes

_INT32 = struct.Struct('>i')

Entry = Tuple[Optional[int], Optional[int], Any]


def _text(name: str, value: Any) -> bytes:
    """Return a key or value that is not bytes encoded, if it is text and text mode is enabled."""
    encoded = text_bytes(value, name)
    if encoded is None:
        raise AssertionError('%s must be bytes or None, not %s' % (name, type(value).__name__))
    return encoded


class PartialMessage(bytes):
    """A truncated message at the end of a set (1.x)."""

    def __repr__(self) -> str:
        return 'PartialMessage(%s)' % super().__repr__()


_KEY_AND_VALUE = (('key', Bytes), ('value', Bytes))

# The default fields, those of a plain message without a key.
_PLAIN = {'key': None, 'magic': 0, 'attributes': 0, 'timestamp': None}


class Message:
    """A stored message (1.x); another class than the named tuple of ``kafka.structs``.

    Arguments: value, key: bytes or None; magic: 0 or 1; attributes: the codec in bits 0 to 2, the
    type of the timestamp in bit 3; crc: kept until encode(); timestamp: ms, for magic 1 only; now
    by default.

    In text mode (kafka.util.set_text_mode) value and key may be str and are encoded here.
    Raises: AssertionError for a value or key of another type, and a timestamp with magic 0.
    """

    # Slots, so that messages_of() can set a field of many messages at a time.
    __slots__ = ('__dict__', '_crc', 'attributes', 'key', 'magic', 'timestamp', 'value')

    CODEC_MASK = 0x07
    CODEC_GZIP = 0x01
    CODEC_SNAPPY = 0x02
    CODEC_LZ4 = 0x03
    TIMESTAMP_TYPE_MASK = 0x08
    HEADER_SIZE = 22  # without key and value, in magic 1
    SCHEMAS: ClassVar[List[Schema]] = [
        Schema(('crc', Int32), ('magic', Int8), ('attributes', Int8), *_KEY_AND_VALUE),
        Schema(
            ('crc', Int32),
            ('magic', Int8),
            ('attributes', Int8),
            ('timestamp', Int64),
            *_KEY_AND_VALUE,
        ),
    ]
    SCHEMA = SCHEMAS[1]

    _crc: int
    attributes: int
    key: Optional[bytes]
    magic: int
    timestamp: Optional[int]
    value: Optional[bytes]

    def __init__(
        self,
        value: Optional[bytes],
        key: Optional[bytes] = None,
        magic: int = 0,
        attributes: int = 0,
        crc: int = 0,
        timestamp: Optional[int] = None,
    ) -> None:
        self.value = value if value is None or isinstance(value, bytes) else _text('value', value)
        self.key = key if key is None or isinstance(key, bytes) else _text('key', key)
        if magic == 0 and timestamp is not None:
            raise AssertionError('messages of magic 0 have no timestamp')
        if magic and timestamp is None:
            timestamp = int(time.time() * 1000)
        self.magic = magic
        self.attributes = attributes
        self.timestamp = timestamp
        self._crc = crc

    def __getattr__(self, name: str) -> Any:
        """Return the default of a field that messages_of() did not set."""
        try:
            return _PLAIN[name]
        except KeyError:
            raise AttributeError(name) from None

    def __reduce__(self) -> Tuple[Any, ...]:
        crc, magic, attributes, timestamp, key, value = self._fields()
        return type(self), (value, key, magic, attributes, crc, timestamp)

    @property
    def crc(self) -> int:
        """The signed CRC-32 of the following fields, as it was read, given or last computed."""
        if not hasattr(self, '_crc'):
            self.encode()  # it was verified when the message was read
        return self._crc

    @crc.setter
    def crc(self, crc: int) -> None:
        """Set the CRC, which encode() overwrites."""
        self._crc = crc

    def _fields(self) -> Tuple[Any, ...]:
        return self.crc, self.magic, self.attributes, self.timestamp, self.key, self.value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Message):
            return NotImplemented
        return self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash((self.key, self.value))

    def __repr__(self) -> str:
        return 'Message(crc=%r, magic=%r, attributes=%r, timestamp=%r, key=%r, value=%r)' % (
            self._fields()
        )

    @property
    def timestamp_type(self) -> Optional[int]:
        """None for magic 0; else 0 for CreateTime, 8 for LogAppendTime."""
        return self.attributes & self.TIMESTAMP_TYPE_MASK if self.magic else None

    def encode(self) -> bytes:
        """Return the bytes, without offset and size, and store their CRC.

        Raises: ProtocolError for a number out of range, TypeError for a value that is not a number.
        """
        encoded = encode_message(
            self.key,
            self.value,
            magic=self.magic,
            attributes=self.attributes,
            timestamp=self.timestamp,
        )
        (self.crc,) = _INT32.unpack_from(encoded)
        return encoded

    @classmethod
    def decode(cls, data: Any) -> Message:
        """Decode one message from bytes or a stream; its CRC is not verified.

        Raises: ProtocolError for invalid bytes.
        """
        raw = _bytes(data)
        found = decode_message(raw, check=False)
        (crc,) = _INT32.unpack_from(raw)
        return cls(found.value, found.key, found.magic, found.attributes, crc, found.timestamp)

    def validate_crc(self) -> bool:
        """Return True if the CRC matches the other fields."""
        kept = self.crc
        try:
            return crc32(self.encode()[4:]) == kept & 0xFFFFFFFF
        finally:
            self.crc = kept

    def is_compressed(self) -> bool:
        """Return True if the value is a compressed message set."""
        return bool(self.attributes & self.CODEC_MASK)

    def decompress(self) -> List[Entry]:
        """Return the message set in the value, as MessageSet.decode() does.

        Raises: UnsupportedCodecError for a codec that is missing; ProtocolError for invalid bytes.
        """
        codec = self.attributes & self.CODEC_MASK
        if self.value is None:
            raise ProtocolError('the value of a compressed message is null')
        inner = decompress(codec, self.value, self.magic, DEFAULT_LIMIT_BYTES)
        return MessageSet.decode(inner, bytes_to_read=len(inner))


class MessageSet:
    """Encodes and decodes message sets (1.x); without state."""

    HEADER_SIZE = 12  # offset and size of an entry

    @classmethod
    def encode(cls, items: Any, size: bool = True, recalc_message_size: bool = True) -> bytes:
        """Return a message set.

        Arguments: items: (offset, encoded message) pairs; or a BytesIO with a set after its size,
        which is returned unchanged; or the bytes of a set; size: prefix the size;
        recalc_message_size: no effect.
        """
        if isinstance(items, io.BytesIO):
            return items.getvalue()
        if items is None:
            return _INT32.pack(-1) if size else b''
        if isinstance(items, (bytes, bytearray, memoryview)):
            return _INT32.pack(len(items)) + items if size else bytes(items)
        encoded = b''.join(
            ENTRY_HEADER.pack(offset, len(message)) + message for offset, message in items
        )
        return _INT32.pack(len(encoded)) + encoded if size else encoded

    @classmethod
    def decode(cls, data: Any, bytes_to_read: Optional[int] = None) -> List[Entry]:
        """Return [(offset, size, Message)]; CRCs are not verified, nothing is decompressed.

        An incomplete message ends the list as (None, None, PartialMessage()).

        Arguments: data: bytes or a stream; bytes_to_read: the size of the set, None if the size
        comes first. Raises ValueError if it is missing there.
        """
        stream = io.BytesIO(data) if isinstance(data, (bytes, bytearray, memoryview)) else data
        if bytes_to_read is None:
            bytes_to_read = Int32.decode(stream)
        return list(_entries(stream.read(max(0, bytes_to_read or 0))))

    @classmethod
    def repr(cls, messages: Any) -> str:
        """Return the representation of a set in the repr of a struct."""
        return repr(messages)


def _entries(data: bytes) -> Iterator[Entry]:
    pos = 0
    while pos < len(data):
        try:
            offset, size = ENTRY_HEADER.unpack_from(data, pos)
            start = pos + ENTRY_HEADER.size
            if size < 0 or start + size > len(data):
                raise ProtocolError('an entry of %d bytes exceeds the message set' % size)
            entry = offset, size, Message.decode(data[start : start + size])
        except (struct.error, ProtocolError):
            yield None, None, PartialMessage()
            return
        yield entry
        pos = start + size


def messages_of(
    values: Sequence[Optional[bytes]],
    keys: Optional[Iterable[Optional[bytes]]],
    magic: int,
    attributes: int,
    timestamps: Optional[Iterable[Optional[int]]],
) -> List[Message]:
    """Return messages from columns, with CRCs that were verified; None: no message has the field.

    Each field is set for all messages at a time; a Python call per message would cost more than
    decoding: benchmarks/simple.py --only consume. Fields with default values are left to
    Message.__getattr__.
    """
    messages = list(map(Message.__new__, repeat(Message, len(values))))
    columns: List[Tuple[str, Optional[Iterable[Any]]]] = [
        ('value', values),
        ('key', keys),
        ('magic', repeat(magic) if magic else None),
        ('attributes', repeat(attributes) if attributes else None),
        ('timestamp', timestamps),
    ]
    for name, column in columns:
        if column is not None:
            deque(map(vars(Message)[name].__set__, messages, column), maxlen=0)
    return messages


def messages_of_runs(runs: Iterable[Run]) -> Iterator[Tuple[int, Message]]:
    """Yield (offset, Message) for runs of decoded messages."""
    for run in runs:
        stamps = run.timestamps if run.magic else None
        messages = messages_of(run.values, run.keys, run.magic, run.attributes, stamps)
        yield from zip(run.offsets, messages)


def is_cut_off(data: bytes) -> bool:
    """Return True if a message set ends inside an entry, by the sizes of its entries alone."""
    pos = 0
    while pos + ENTRY_HEADER.size <= len(data):
        pos += ENTRY_HEADER.size + ENTRY_HEADER.unpack_from(data, pos)[1]
    return pos != len(data)


def _bytes(data: Union[bytes, Any]) -> bytes:
    return bytes(data) if isinstance(data, (bytes, bytearray, memoryview)) else data.read()
