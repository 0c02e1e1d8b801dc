"""
Message sets of magic 0 and 1 (Kafka 0.7 to 0.10; magic 1 by KIP-31 and KIP-32), encoded and
decoded.

A message set is a sequence of entries ``offset, size, message`` without a count. A message whose
attributes name a codec is a wrapper: its value is a compressed message set. Offsets inside a
wrapper are absolute in magic 0 and relative in magic 1, where the wrapper's own offset is that
of its last message.
"""

from __future__ import annotations

import struct
from collections import deque
from itertools import chain, islice, repeat
from operator import itemgetter
from typing import (
    Any,
    Dict,
    Iterable,
    Iterator,
    List,
    NoReturn,
    Optional,
    Sequence,
    Tuple,
    Union,
    cast,
)
from zlib import crc32

from kafka import codec as codecs
from kafka.errors import ProtocolError
from kafka.internals.lazy_imports import look_up
from kafka.record.columns import Columns
from kafka.record.legacy_decoder import (
    CODEC_MASK,
    RUN_MESSAGES,
    decode_message,
    entry_size,
    read_entries,
    read_run,
    unwrap,
)
from kafka.record.legacy_run import MIN_MESSAGE_BYTES, TIMESTAMP_TYPE_MASK, LegacyMessage, Run
from kafka.record.record import Record
from kafka.record.record_columns import RecordColumns
from kafka.record.util import Buffer

MessageFields = Tuple[int, Optional[int], Optional[bytes], Optional[bytes]]

#: Offset and size of an entry.
ENTRY_HEADER = struct.Struct('>qi')
# The number of runs of a wrapper that are kept until its last offset is known.
_KEPT_RUNS = 16

_INT32 = struct.Struct('>i')
_INT64 = struct.Struct('>q')


# Offset, size and CRC of an entry.
_ENTRY = struct.Struct('>qiI')
_NULL = b'\xff\xff\xff\xff'


def _sized(field: Optional[bytes]) -> bytes:
    return _NULL if field is None else b''.join((_INT32.pack(len(field)), field))


def encode_message(
    key: Optional[bytes],
    value: Optional[bytes],
    *,
    magic: int = 0,
    attributes: int = 0,
    timestamp: Optional[int] = None,
) -> bytes:
    """
    Encode one message, without the offset and size before it.

    ``timestamp`` is in ms, None means -1; magic 0 has none. Raises ``ProtocolError`` for another
    magic than 0 and 1 and for numbers out of range, ``TypeError`` naming the field of a wrong
    type.
    """
    if magic not in (0, 1):
        raise ProtocolError('the magic of a message must be 0 or 1, got %r' % magic)
    try:
        head = struct.pack('>bb', magic, attributes)
        if magic:
            head += _INT64.pack(-1 if timestamp is None else timestamp)
        body = b''.join((head, _sized(key), _sized(value)))
    except TypeError as error:
        _complain(error, key=key, value=value)
    except struct.error as error:
        if not isinstance(timestamp, (int, type(None))):
            raise TypeError(
                'timestamp of a message must be int or None, not %s' % type(timestamp).__name__
            ) from error
        raise ProtocolError('a field of the message is out of range: %s' % error) from error
    return struct.pack('>I', crc32(body)) + body


def _complain(error: TypeError, **fields: object) -> NoReturn:
    """Raise an error that names the field with the wrong type."""
    for name, field in fields.items():
        if field is not None and not isinstance(field, (bytes, bytearray, memoryview)):
            raise TypeError(
                '%s of a message must be bytes or None, not %s' % (name, type(field).__name__)
            ) from error
    raise error


def encode_message_set(
    messages: Sequence[Union[MessageFields, Record]],
    magic: int = 1,
    codec: int = 0,
    compresslevel: Optional[int] = None,
    timestamp_type: int = 0,
) -> bytes:
    """
    Encode a message set.

    ``messages`` has ``(offset, timestamp_ms, key, value)``; further items of a tuple, such as those
    of records, are ignored, and in magic 0 the timestamps too. With a codec the messages go into
    one wrapper, which gets the offset of the last one and, in magic 1, the largest timestamp;
    offsets inside are as given in magic 0 and relative to the first in magic 1. ``timestamp_type``
    is 0 for create time, 1 for log append time. Raises ``ProtocolError`` for numbers out of range,
    ``UnsupportedCodecError``.
    """
    if not messages:
        return b''
    kind = TIMESTAMP_TYPE_MASK if timestamp_type and magic else 0
    shift = messages[0][0] if codec and magic else 0
    try:
        plain = _encode_plain(messages, magic, kind, shift)
    except (TypeError, ValueError, IndexError, struct.error):
        # Again, one by one, for an error message that names the field.
        plain = b''.join(
            _entry(
                offset - shift,
                encode_message(key, value, magic=magic, attributes=kind, timestamp=timestamp),
            )
            for offset, timestamp, key, value, *_ in messages
        )
    if not codec:
        return plain
    packed = codecs.compress(codec, plain, compresslevel, magic)
    stamp = max(-1 if m[1] is None else m[1] for m in messages)
    wrapper = encode_message(None, packed, magic=magic, attributes=codec | kind, timestamp=stamp)
    return _entry(messages[-1][0], wrapper)


class _Lengths(Dict[int, bytes]):
    """Map lengths to four bytes, with 4096 cached; a lookup takes half the time of packing."""

    def __missing__(self, length: int) -> bytes:
        packed = _INT32.pack(length)
        if len(self) < 4096:
            self[length] = packed
        return packed


_LENGTHS = _Lengths()


def _pieces(fields: Sequence[Optional[bytes]]) -> List[Iterable[bytes]]:
    """Return columns of bytes that make nullable fields when they are joined."""
    if None not in fields:
        present = cast(Sequence[bytes], fields)
        return [map(_LENGTHS.__getitem__, map(len, present)), present]
    if fields.count(None) == len(fields):
        return [repeat(_NULL)]
    return [map(_sized, fields)]


def _encode_plain(
    messages: Sequence[Union[MessageFields, Record]], magic: int, kind: int, shift: int
) -> bytes:
    """Encode messages without wrapper, by columns."""
    if magic not in (0, 1):
        raise ValueError('the magic must be 0 or 1')
    columns: List[Iterable[bytes]] = [[bytes((magic, kind))] * len(messages)]
    if magic:
        times = map(itemgetter(1), messages)
        columns.append([_INT64.pack(-1 if time is None else time) for time in times])
    columns += _pieces(list(map(itemgetter(2), messages)))
    columns += _pieces(list(map(itemgetter(3), messages)))
    bodies = list(map(b''.join, zip(*columns)))
    offsets: Iterable[int] = map(itemgetter(0), messages)
    if shift:
        offsets = map((-shift).__add__, offsets)
    sizes = map((4).__add__, map(len, bodies))  # including the CRC
    entries = map(_ENTRY.pack, offsets, sizes, map(crc32, bodies))
    return b''.join(chain.from_iterable(zip(entries, bodies)))


def _entry(offset: int, message: bytes) -> bytes:
    try:
        return ENTRY_HEADER.pack(offset, len(message)) + message
    except struct.error as error:
        raise ProtocolError('offset %r is out of range' % (offset,)) from error


def iter_runs(
    buffer: Buffer, max_decompressed_bytes: int = codecs.DEFAULT_LIMIT_BYTES
) -> Iterator[Run]:
    """
    Yield the messages of a set in runs of equal magic and attributes, including those in wrappers.

    Offsets inside a wrapper are those stored there, as in 0.9.5, and every CRC is verified. An
    incomplete last entry ends the iteration. Errors are raised when the invalid entry is reached:
    ``ChecksumError``, ``ProtocolError``, ``UnsupportedCodecError``.
    """
    for entry in read_entries(bytes(buffer)):
        if isinstance(entry, LegacyMessage):
            yield from unwrap(entry, max_decompressed_bytes)
        else:
            yield entry


def iter_message_set(
    buffer: Buffer, max_decompressed_bytes: int = codecs.DEFAULT_LIMIT_BYTES
) -> Iterator[Tuple[int, int, int, Optional[bytes], Optional[bytes]]]:
    """
    Yield ``(offset, magic, attributes, key, value)`` for each message of :func:`iter_runs`.

    It raises the same errors.
    """
    for run in iter_runs(buffer, max_decompressed_bytes):
        kind = repeat(run.magic), repeat(run.attributes)
        yield from zip(run.offsets, kind[0], kind[1], run.keys, run.values)


class LegacyRecordBatch:
    """
    Read one wrapper, or a run of up to a thousand plain messages of one magic and attributes.

    A run is read as a batch because an object per message would cost more than decoding it.
    """

    __slots__ = ('_buffer', '_check_inner', '_extent', '_limit', '_start', 'attributes', 'magic')

    is_control = False
    is_transactional = False
    producer_id = -1
    producer_epoch = -1
    base_sequence = -1
    partition_leader_epoch = -1
    delete_horizon_ms = None

    def __init__(
        self,
        buffer: bytes,
        start: int = 0,
        max_decompressed_bytes: int = codecs.DEFAULT_LIMIT_BYTES,
        check_inner_crcs: bool = False,
    ) -> None:
        """
        Read the batch that begins at ``start`` with a complete entry; more may follow it.

        ``max_decompressed_bytes`` limits the content of a wrapper; ``check_inner_crcs`` says
        whether the CRCs of the messages in it are verified in addition to the wrapper's. Raises
        ``ProtocolError`` without a complete entry of magic 0 or 1.
        """
        size = entry_size(buffer, start)
        if size < 12 + MIN_MESSAGE_BYTES[0] or buffer[start + 16] > 1:
            raise ProtocolError('not a message of magic 0 or 1')
        self._buffer = buffer
        self._start = start
        self._limit = max_decompressed_bytes
        self._check_inner = check_inner_crcs
        self.magic: int = buffer[start + 16]
        self.attributes: int = buffer[start + 17]
        self._extent: Optional[Tuple[int, int]] = None
        if self.codec:
            self._extent = start + size, _INT64.unpack_from(buffer, start)[0]

    @property
    def codec(self) -> int:
        """Compression: 0 none (a run of plain messages), 1 gzip, 2 snappy, 3 lz4."""
        return self.attributes & CODEC_MASK

    compression_type = codec  # its name in 1.4 to 3.0

    @property
    def end(self) -> int:
        """Position after the batch in the buffer."""
        return self._measure()[0]

    @property
    def size_in_bytes(self) -> int:
        """Size on the wire, entry heads included."""
        return self.end - self._start

    @property
    def base_offset(self) -> int:
        """Offset of the first message; a wrapper is decompressed to find it."""
        if self.codec:
            for record in self:
                return record.offset
        return int(_INT64.unpack_from(self._buffer, self._start)[0])

    @property
    def last_offset(self) -> int:
        """Offset of the last message."""
        return self._measure()[1]

    @property
    def next_offset(self) -> int:
        """Offset of the next fetch."""
        return self.last_offset + 1

    @property
    def timestamp_type(self) -> Optional[int]:
        """0 for create time, 1 for log append time, None in magic 0."""
        if not self.magic:
            return None
        return 1 if self.attributes & TIMESTAMP_TYPE_MASK else 0

    def _measure(self) -> Tuple[int, int]:
        """Return the end of the batch and its last offset, from the first bytes of its entries."""
        if self._extent is None:
            buf = self._buffer
            kind = buf[self._start + 16 : self._start + 18]
            pos = last = self._start
            for _ in range(RUN_MESSAGES):
                if pos + 26 > len(buf):
                    break
                size = int.from_bytes(buf[pos + 8 : pos + 12], 'big', signed=True)
                end = pos + 12 + size
                if size < 14 or end > len(buf) or buf[pos + 16 : pos + 18] != kind:
                    break
                last, pos = pos, end
            self._extent = pos, _INT64.unpack_from(buf, last)[0]
        return self._extent

    def __iter__(self) -> Iterator[Record]:
        """
        Decode the messages.

        The CRC of a wrapper is verified, those of the messages inside only on demand: it covers the
        same bytes, and the broker verified them when it received them (:func:`iter_message_set`
        verifies them all, as 0.9.5 did). Raises ``ChecksumError``, ``ProtocolError`` or
        ``UnsupportedCodecError`` when the invalid message is reached.
        """
        return chain.from_iterable(
            run.records(shift, append_time) for run, shift, append_time in self._runs()
        )

    def columns(self) -> Iterator[Columns]:
        """Decode as iteration does, but only offsets, keys and values, into columns."""
        for run, shift, _ in self._runs():
            yield run.columns(shift)

    def record_columns(self) -> Iterator[RecordColumns]:
        """Decode as iteration does, but without an object per message."""
        for run, shift, append_time in self._runs():
            yield run.record_columns(shift, append_time)

    def _runs(self) -> Iterator[Tuple[Run, int, Optional[int]]]:
        """Yield runs, the number to add to their offsets, and the time that overrides their own."""
        if self.codec:
            yield from self._inner()
            return
        run = read_run(self._buffer, self._start)
        # An error, if any, is at the end of the run.
        self._extent = run.end, run.offsets[-1] if run.offsets else self.base_offset - 1
        if run.offsets:
            yield run, 0, None
        if run.error:
            raise run.error

    def _inner(self) -> Iterator[Tuple[Run, int, Optional[int]]]:
        wrapper = decode_message(
            self._buffer[self._start + 12 : self.end],
            _INT64.unpack_from(self._buffer, self._start)[0],
        )
        append_time = wrapper.timestamp if self.timestamp_type else None
        runs = unwrap(wrapper, self._limit, self._check_inner)
        if not self.magic:
            for run in runs:
                yield run, 0, None
            return
        # Relative offsets count back from the last message, so it has to be read first. A few runs
        # are kept in the meantime, many are read twice: memory stays bounded.
        found = list(islice(runs, _KEPT_RUNS))
        if not found:
            raise ProtocolError('the wrapper at offset %d is empty' % wrapper.offset)
        last = deque(runs, maxlen=1) or found[-1:]
        shift = wrapper.offset - last[0].offsets[-1]
        kept: Iterable[Run] = found
        if last[0] is not found[-1]:
            del found
            kept = unwrap(wrapper, self._limit, self._check_inner)
        for run in kept:
            yield run, shift, append_time


def __getattr__(name: str) -> Any:
    """Return the builder that 1.4 had here."""
    homes = ('LegacyRecordBatchBuilder', 'LegacyRecordMetadata')
    return look_up(globals(), name, dict.fromkeys(homes, 'kafka.record.batch_builders'))
