"""Messages of magic 0 and 1 as objects, and sets of them: what 1.x handed out and took.

Owns ``Message``, ``PartialMessage`` and ``MessageSet`` of 1.x. Bytes are made and read by
:mod:`kafka.record.legacy_records` and its decoder; this is the form in which programs see them, one
object each, wrappers not taken apart.
"""

from __future__ import annotations

import io
import struct
import time
from functools import partial
from itertools import repeat
from operator import itemgetter
from typing import Any, Iterable, Iterator, List, Optional, Tuple, Union
from zlib import crc32

from kafka.codec import DEFAULT_LIMIT_BYTES, decompress
from kafka.errors import ProtocolError
from kafka.record.legacy_decoder import Run, decode_message
from kafka.record.legacy_records import ENTRY_HEADER, encode_message
from kafka.util import text_bytes

_INT32 = struct.Struct('>i')

Entry = Tuple[Optional[int], Optional[int], Any]


def _text(name: str, value: Any) -> bytes:
    """Return a key or value that is no bytes as such, if it is text and text mode is on."""
    encoded = text_bytes(value, name)
    if encoded is None:
        raise AssertionError('%s must be bytes or None, not %s' % (name, type(value).__name__))
    return encoded


class PartialMessage(bytes):
    """Stands for a message that was cut off at the end of a set (1.x)."""

    def __repr__(self) -> str:
        return 'PartialMessage(%s)' % super().__repr__()


class Message(tuple):  # type: ignore[type-arg]  # not subscriptable in Python 3.8
    """A message as it is stored (1.x); another class than the value tuple of ``kafka.structs``.

    Arguments: value, key: bytes or None; magic: 0 or 1; attributes: the codec in bits 0 to 2, the
    type of the timestamp in bit 3; crc: kept as it is until encode(); timestamp: ms, for magic 1
    only, whose default is now.

    In text mode (kafka.util.set_text_mode) value and key may be str, and become bytes here.
    Raises: AssertionError for a value or key of another type, and a timestamp with magic 0.

    That it is a tuple of its fields but the CRC only serves to make many in no time.
    """

    CODEC_MASK = 0x07
    CODEC_GZIP = 0x01
    CODEC_SNAPPY = 0x02
    CODEC_LZ4 = 0x03
    TIMESTAMP_TYPE_MASK = 0x08
    HEADER_SIZE = 22  # everything but key and value, in magic 1

    value = property(itemgetter(0), doc='Bytes or None.')
    key = property(itemgetter(1), doc='Bytes or None.')
    magic = property(itemgetter(2), doc='The format: 0 or 1.')
    attributes = property(itemgetter(3), doc='Codec and type of the timestamp.')
    timestamp = property(itemgetter(4), doc='In ms; None with magic 0.')

    def __new__(
        cls,
        value: Optional[bytes],
        key: Optional[bytes] = None,
        magic: int = 0,
        attributes: int = 0,
        crc: int = 0,
        timestamp: Optional[int] = None,
    ) -> Message:
        """Check the arguments; what is read comes about by messages_of() and read()."""
        value = value if value is None or isinstance(value, bytes) else _text('value', value)
        key = key if key is None or isinstance(key, bytes) else _text('key', key)
        if magic == 0 and timestamp is not None:
            raise AssertionError('messages of magic 0 have no timestamp')
        if magic and timestamp is None:
            timestamp = int(time.time() * 1000)
        message = cls.read(value, key, magic, attributes, timestamp)
        message.crc = crc
        return message

    def __reduce__(self) -> Tuple[Any, ...]:
        value, key, magic, attributes, timestamp = self
        return type(self), (value, key, magic, attributes, self.crc, timestamp)

    @classmethod
    def read(
        cls,
        value: Optional[bytes],
        key: Optional[bytes],
        magic: int,
        attributes: int,
        timestamp: Optional[int] = None,
    ) -> Message:
        """Return a message whose CRC was found right; what it is, is worked out when asked for."""
        return tuple.__new__(cls, (value, key, magic, attributes, timestamp))

    @property
    def crc(self) -> int:
        """The CRC-32 of what follows it, signed, as it was read, given or last computed."""
        if 'crc' not in vars(self):
            self.encode()
        crc: int = vars(self)['crc']
        return crc

    @crc.setter
    def crc(self, crc: int) -> None:
        """Set the CRC, which encode() computes anew."""
        vars(self)['crc'] = crc

    def _fields(self) -> Tuple[Any, ...]:
        return self.crc, self.magic, self.attributes, self.timestamp, self.key, self.value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Message):
            return NotImplemented
        return self._fields() == other._fields()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.key, self.value))

    def __repr__(self) -> str:
        return 'Message(crc=%r, magic=%r, attributes=%r, timestamp=%r, key=%r, value=%r)' % (
            self._fields()
        )

    @property
    def timestamp_type(self) -> Optional[int]:
        """None for magic 0; else 0 for the time of creation, 8 for that of the log."""
        return self.attributes & self.TIMESTAMP_TYPE_MASK if self.magic else None

    def encode(self) -> bytes:
        """Return the bytes, without offset and size, and keep the CRC computed for them.

        Raises: ProtocolError for a number that does not fit, TypeError for what is no number.
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
        """Read one message from bytes or a stream; its CRC is not compared.

        Raises: ProtocolError when the bytes are no message.
        """
        raw = _bytes(data)
        found = decode_message(raw, check=False)
        message = cls.read(found.value, found.key, found.magic, found.attributes, found.timestamp)
        (message.crc,) = _INT32.unpack_from(raw)
        return message

    def validate_crc(self) -> bool:
        """Tell whether the CRC belongs to the other fields."""
        kept = self.crc
        try:
            return crc32(self.encode()[4:]) == kept & 0xFFFFFFFF
        finally:
            self.crc = kept

    def is_compressed(self) -> bool:
        """Tell whether the value is a compressed message set."""
        return bool(self.attributes & self.CODEC_MASK)

    def decompress(self) -> List[Entry]:
        """Return the message set inside, as MessageSet.decode() does.

        Raises: UnsupportedCodecError for a codec that is missing; ProtocolError for damaged bytes.
        """
        codec = self.attributes & self.CODEC_MASK
        if self.value is None:
            raise ProtocolError('a compressed message has no value')
        inner = decompress(codec, self.value, self.magic, DEFAULT_LIMIT_BYTES)
        return MessageSet.decode(inner, bytes_to_read=len(inner))


class MessageSet:
    """Encode and decode rows of messages (1.x); without state."""

    HEADER_SIZE = 12  # offset and size of an entry

    @classmethod
    def encode(cls, items: Any, size: bool = True, recalc_message_size: bool = True) -> bytes:
        """Return a message set.

        Arguments: items: (offset, encoded message) pairs, or a BytesIO that holds a set with its
        size in front, which is returned as it is; size: write the size in front;
        recalc_message_size: without effect.
        """
        if isinstance(items, io.BytesIO):
            return items.getvalue()
        encoded = b''.join(
            ENTRY_HEADER.pack(offset, len(message)) + message for offset, message in items
        )
        return _INT32.pack(len(encoded)) + encoded if size else encoded

    @classmethod
    def decode(cls, data: Any, bytes_to_read: Optional[int] = None) -> List[Entry]:
        """Return [(offset, size, Message)]; CRCs are not compared, wrappers not taken apart.

        What does not fit into the bytes ends the list as (None, None, PartialMessage()).

        Arguments: data: bytes or a stream; bytes_to_read: the size of the set, None where it
        stands in front.
        """
        stream = io.BytesIO(data) if isinstance(data, (bytes, bytearray, memoryview)) else data
        if bytes_to_read is None:
            (bytes_to_read,) = _INT32.unpack(stream.read(4))
        return list(_entries(stream.read(max(0, bytes_to_read or 0))))


def _entries(data: bytes) -> Iterator[Entry]:
    pos = 0
    while pos < len(data):
        try:
            offset, size = ENTRY_HEADER.unpack_from(data, pos)
            start = pos + ENTRY_HEADER.size
            if size < 0 or start + size > len(data):
                raise ProtocolError('an entry of %d bytes does not fit' % size)
            entry = offset, size, Message.decode(data[start : start + size])
        except (struct.error, ProtocolError):
            yield None, None, PartialMessage()
            return
        yield entry
        pos = start + size


def messages_of(
    values: Iterable[Optional[bytes]],
    keys: Iterable[Optional[bytes]],
    magic: int,
    attributes: int,
    timestamps: Iterable[Optional[int]],
) -> Iterator[Message]:
    """Yield what was read as columns, whose CRCs were found right."""
    return map(_new, zip(values, keys, repeat(magic), repeat(attributes), timestamps))


# Without a call of Python each, which would be dear beside decoding.
_new = partial(tuple.__new__, Message)


def messages_of_runs(runs: Iterable[Run]) -> Iterator[Tuple[int, Message]]:
    """Yield (offset, Message) for what was decoded by runs."""
    for run in runs:
        stamps: Iterable[Optional[int]] = run.timestamps if run.magic else repeat(None)
        messages = messages_of(run.values, run.keys, run.magic, run.attributes, stamps)
        yield from zip(run.offsets, messages)


def is_cut_off(data: bytes) -> bool:
    """Tell whether a message set ends inside an entry, by the sizes of its entries alone."""
    pos = 0
    while pos + ENTRY_HEADER.size <= len(data):
        pos += ENTRY_HEADER.size + ENTRY_HEADER.unpack_from(data, pos)[1]
    return pos != len(data)


def _bytes(data: Union[bytes, Any]) -> bytes:
    return bytes(data) if isinstance(data, (bytes, bytearray, memoryview)) else data.read()
