"""
Message sets of magic 0 and 1 (Kafka 0.7 to 0.10; KIP-31 and KIP-32 made magic 1): write and read.

A message set is a row of entries ``offset, size, message`` without a count. A message whose
attributes name a codec is a wrapper: its value is a compressed message set. Offsets inside a
wrapper are absolute in magic 0 and relative in magic 1, where the wrapper's own offset is that
of its last message.
"""

from __future__ import annotations

import struct
from itertools import chain
from typing import Iterator, List, NamedTuple, Optional, Sequence, Tuple
from zlib import crc32

from kafka import codec as codecs
from kafka.errors import ChecksumError, ProtocolError
from kafka.record.record import Record
from kafka.record.util import Buffer

MessageFields = Tuple[int, Optional[int], Optional[bytes], Optional[bytes]]

#: Offset and size of an entry.
ENTRY_HEADER = struct.Struct('>qi')
#: Smallest possible size of a message by magic: everything up to a null key and a null value.
MIN_MESSAGE_BYTES = (14, 22)
CODEC_MASK = 0x07
TIMESTAMP_TYPE_MASK = 0x08
#: Wrappers in wrappers: one level is normal, 0.8 brokers let writers nest deeper.
MAX_NESTING = 3

_INT32 = struct.Struct('>i')
_INT64 = struct.Struct('>q')


class Message(NamedTuple):
    """One message as stored: ``offset`` is the entry's, ``timestamp`` is None in magic 0."""

    offset: int
    magic: int
    attributes: int
    timestamp: Optional[int]
    key: Optional[bytes]
    value: Optional[bytes]


def _sized(field: Optional[bytes]) -> bytes:
    return b'\xff\xff\xff\xff' if field is None else _INT32.pack(len(field)) + field


def encode_message(
    key: Optional[bytes],
    value: Optional[bytes],
    *,
    magic: int = 0,
    attributes: int = 0,
    timestamp: Optional[int] = None,
) -> bytes:
    """
    Encode one message: CRC, magic, attributes, timestamp (ms; magic 1 only, None means -1), key,
    value.

    Raises ``ProtocolError`` for another magic than 0 and 1 and for numbers out of range.
    """
    if magic not in (0, 1):
        raise ProtocolError('messages of magic %r do not exist' % magic)
    try:
        head = struct.pack('>bb', magic, attributes)
        if magic:
            head += _INT64.pack(-1 if timestamp is None else timestamp)
        body = b''.join((head, _sized(key), _sized(value)))
    except struct.error as error:
        raise ProtocolError('a field of the message is out of range: %s' % error) from error
    return struct.pack('>I', crc32(body)) + body


def encode_message_set(
    messages: Sequence[MessageFields],
    magic: int = 1,
    codec: int = 0,
    compresslevel: Optional[int] = None,
    timestamp_type: int = 0,
) -> bytes:
    """
    Encode a message set.

    ``messages`` holds ``(offset, timestamp_ms, key, value)``; magic 0 drops the timestamps. With
    a codec the messages go into one wrapper, which gets the offset of the last one and, in magic
    1, the largest timestamp; offsets inside are as given in magic 0 and relative to the first in
    magic 1. ``timestamp_type`` is 0 for create time, 1 for log append time. Raises
    ``ProtocolError`` for numbers out of range, ``UnsupportedCodecError``.
    """
    if not messages:
        return b''
    kind = TIMESTAMP_TYPE_MASK if timestamp_type and magic else 0
    shift = messages[0][0] if codec and magic else 0
    parts: List[bytes] = []
    for offset, timestamp, key, value in messages:
        message = encode_message(key, value, magic=magic, attributes=kind, timestamp=timestamp)
        parts.append(_entry(offset - shift, message))
    if not codec:
        return b''.join(parts)
    packed = codecs.compress(codec, b''.join(parts), compresslevel, magic)
    stamp = max(-1 if m[1] is None else m[1] for m in messages)
    wrapper = encode_message(None, packed, magic=magic, attributes=codec | kind, timestamp=stamp)
    return _entry(messages[-1][0], wrapper)


def _entry(offset: int, message: bytes) -> bytes:
    try:
        return ENTRY_HEADER.pack(offset, len(message)) + message
    except struct.error as error:
        raise ProtocolError('offset %r is out of range' % (offset,)) from error


def decode_message(data: Buffer, offset: int = -1) -> Message:
    """
    Decode one message (without the offset and size before it); a wrapper is not unpacked.

    ``offset`` is what the result carries. The CRC is checked before anything else is believed.
    Raises ``ChecksumError``, and ``ProtocolError`` when the fields contradict the size.
    """
    message = bytes(data)
    if len(message) < 4:
        raise ProtocolError('a message of %d bytes is too short' % len(message))
    if int.from_bytes(message[:4], 'big') != crc32(message[4:]):
        raise ChecksumError('wrong CRC in message at offset %d' % offset)
    magic = message[4] if len(message) > 4 else -1
    if magic not in (0, 1) or len(message) < MIN_MESSAGE_BYTES[magic]:
        raise ProtocolError(
            'message of magic %d and %d bytes at offset %d' % (magic, len(message), offset)
        )
    timestamp = _INT64.unpack_from(message, 6)[0] if magic else None
    key, pos = _field(message, 14 if magic else 6)
    value, pos = _field(message, pos)
    if pos != len(message):
        raise ProtocolError('the size of the message at offset %d is wrong' % offset)
    return Message(offset, magic, message[5], timestamp, key, value)


def _field(message: bytes, pos: int) -> Tuple[Optional[bytes], int]:
    start = pos + 4
    if start > len(message):
        raise ProtocolError('a message ends before its last field')
    (size,) = _INT32.unpack_from(message, pos)
    if size == -1:
        return None, start
    if size < 0 or start + size > len(message):
        raise ProtocolError('a field of %d bytes does not fit into its message' % size)
    return message[start : start + size], start + size


def iter_entries(buffer: Buffer) -> Iterator[Message]:
    """
    Yield the messages of a set as stored, wrappers included; stop where the buffer ends in an
    entry.

    Raises ``ChecksumError`` and ``ProtocolError`` when the entry in question is reached.
    """
    view = memoryview(buffer)
    pos = 0
    while pos + 12 <= len(view):
        offset, size = ENTRY_HEADER.unpack_from(view, pos)
        if size < 0:
            raise ProtocolError('message size %d at offset %d' % (size, offset))
        pos += 12
        if pos + size > len(view):
            return
        yield decode_message(view[pos : pos + size], offset)
        pos += size


def iter_message_set(
    buffer: Buffer, max_decompressed_bytes: int = codecs.DEFAULT_LIMIT_BYTES
) -> Iterator[Tuple[int, int, int, Optional[bytes], Optional[bytes]]]:
    """
    Yield ``(offset, magic, attributes, key, value)`` for each message, those in wrappers included.

    Offsets inside a wrapper come as they are stored there, as 0.9.5 had it. A last entry that the
    buffer holds only in part ends the iteration. Errors are raised when the entry in question is
    reached: ``ChecksumError``, ``ProtocolError``, ``UnsupportedCodecError``.
    """
    for message in iter_entries(buffer):
        if message.attributes & CODEC_MASK:
            for inner in _unwrap(message, max_decompressed_bytes, MAX_NESTING):
                yield inner[0], inner[1], inner[2], inner[4], inner[5]
        else:
            yield message[0], message[1], message[2], message[4], message[5]


def _unwrap(wrapper: Message, limit: int, depth: int) -> Iterator[Message]:
    """Yield what is inside a wrapper, offsets as stored, deeper wrappers taken apart too."""
    if not depth:
        raise ProtocolError('compressed message sets are nested too deeply')
    codec = wrapper.attributes & CODEC_MASK
    if wrapper.value is None:
        raise ProtocolError('the wrapper at offset %d has no value' % wrapper.offset)
    data = codecs.decompress(codec, wrapper.value, wrapper.magic, limit)
    limit -= len(data)
    seen = 0
    for message in iter_entries(data):
        seen += 12 + MIN_MESSAGE_BYTES[message.magic] + len(message.key or b'')
        seen += len(message.value or b'')
        if message.magic != wrapper.magic:
            raise ProtocolError('magic %d inside magic %d' % (message.magic, wrapper.magic))
        if message.attributes & CODEC_MASK:
            yield from _unwrap(message, limit, depth - 1)
        else:
            yield message
    if seen != len(data):
        raise ProtocolError('the set inside the wrapper at offset %d is cut off' % wrapper.offset)


class LegacyRecordBatch:
    """
    Read one wrapper, or a run of plain messages of one magic, out of a buffer that holds exactly
    it.

    A run is read as a batch because one object per message would cost more than decoding it.
    """

    __slots__ = ('_buffer', '_limit', 'attributes', 'base_entry_offset', 'last_offset', 'magic')

    is_control = False
    is_transactional = False
    producer_id = -1
    producer_epoch = -1
    base_sequence = -1
    partition_leader_epoch = -1
    delete_horizon_ms = None

    def __init__(
        self,
        buffer: Buffer,
        last_offset: int,
        max_decompressed_bytes: int = codecs.DEFAULT_LIMIT_BYTES,
    ) -> None:
        """
        Take the buffer; ``last_offset`` is the offset of its last entry.

        ``max_decompressed_bytes`` bounds what a wrapper may hold.
        """
        self._buffer = memoryview(buffer)
        self._limit = max_decompressed_bytes
        self.base_entry_offset: int = _INT64.unpack_from(self._buffer)[0]
        self.magic: int = self._buffer[16]
        self.attributes: int = self._buffer[17]
        self.last_offset = last_offset

    @property
    def codec(self) -> int:
        """Compression: 0 none (a run of plain messages), 1 gzip, 2 snappy, 3 lz4."""
        return self.attributes & CODEC_MASK

    @property
    def base_offset(self) -> int:
        """Offset of the first message; a wrapper is decompressed to learn it."""
        if not self.codec:
            return self.base_entry_offset
        for record in self:
            return record.offset
        return self.last_offset

    @property
    def next_offset(self) -> int:
        """Offset from which to fetch on."""
        return self.last_offset + 1

    @property
    def timestamp_type(self) -> Optional[int]:
        """0 for create time, 1 for log append time, None in magic 0."""
        if not self.magic:
            return None
        return 1 if self.attributes & TIMESTAMP_TYPE_MASK else 0

    @property
    def size_in_bytes(self) -> int:
        """Size on the wire, entry headers included."""
        return len(self._buffer)

    def __iter__(self) -> Iterator[Record]:
        """
        Decode the messages.

        Raises ``ChecksumError``, ``ProtocolError`` or ``UnsupportedCodecError`` when the message in
        question is reached.
        """
        return chain.from_iterable(self._chunks())

    def _chunks(self) -> Iterator[List[Record]]:
        for entry in iter_entries(self._buffer):
            if not entry.attributes & CODEC_MASK:
                yield [Record((entry[0], entry[3], entry[4], entry[5], ()))]
                continue
            inner = list(_unwrap(entry, self._limit, MAX_NESTING))
            if not inner:
                raise ProtocolError('the wrapper at offset %d is empty' % entry.offset)
            shift = entry.offset - inner[-1].offset if entry.magic else 0
            append = entry.magic and entry.attributes & TIMESTAMP_TYPE_MASK
            yield [
                Record((m[0] + shift, entry.timestamp if append else m[3], m[4], m[5], ()))
                for m in inner
            ]
