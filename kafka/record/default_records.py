"""
Record batches of magic 2 (KIP-98, Kafka 0.11): encoding a whole batch, and reading one.

Several batches in a buffer are read by :mod:`kafka.record.memory_records`; message sets of magic 0
and 1 by :mod:`kafka.record.legacy_records`.
"""

from __future__ import annotations

import struct
from itertools import chain
from typing import Any, Callable, Iterator, NamedTuple, Optional, Sequence, Tuple, TypeVar

from kafka import codec as codecs
from kafka.errors import ChecksumError, ProtocolError
from kafka.internals.lazy_imports import look_up
from kafka.record.batch_decoder import (
    Marks,
    decode_batch,
    decode_columns,
    decode_marks,
    decode_records,
)
from kafka.record.batch_encoder import (
    RecordFields,
    encode_columns,
    encode_messages,
    encode_one,
    encode_records,
)
from kafka.record.columns import Columns
from kafka.record.crc32c import crc32c
from kafka.record.record import Header, Record
from kafka.record.record_columns import Group, RecordColumns
from kafka.record.util import Buffer

T = TypeVar('T')

# base offset, length of what follows it, partition leader epoch, magic, crc, attributes, last
# offset delta, base timestamp, max timestamp, producer id, producer epoch, base sequence, record
# count
HEADER = struct.Struct('>qiibIhiqqqhii')
ATTRIBUTES_POS = 21
_UNCHECKED, _CHECKED = struct.Struct('>qiibI'), struct.Struct('>hiqqqhii')  # both are HEADER
_CRC_INTO = struct.Struct('>I').pack_into
CODEC_MASK = 0x07
TIMESTAMP_TYPE_MASK = 0x08
TRANSACTIONAL_MASK = 0x10
CONTROL_MASK = 0x20
DELETE_HORIZON_MASK = 0x40

_MIN_RECORD_BYTES = 7


class BatchHeader(NamedTuple):
    """The fields of a batch's header as on the wire; ``length`` is the size of what follows it."""

    base_offset: int
    length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int


def encode_batch(
    records: Sequence[RecordFields],
    *,
    base_offset: int = 0,
    codec: int = 0,
    compresslevel: Optional[int] = None,
    timestamp_type: int = 0,
    max_timestamp: Optional[int] = None,
    partition_leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
) -> bytes:
    """
    Encode one batch of magic 2.

    ``records`` has ``(timestamp_ms, key, value, headers)``; headers are ``(str, bytes or None)``.
    Offsets count up from ``base_offset``. ``timestamp_type`` is 0 for create time, 1 for log append
    time; ``max_timestamp`` (ms) None means the largest of the records. Raises ``TypeError`` for
    records of other types, ``ProtocolError`` for numbers out of range, ``UnsupportedCodecError``.
    """
    base_timestamp = records[0][0] if records else -1
    if max_timestamp is None:
        max_timestamp = max((record[0] for record in records), default=-1)
    attributes = (
        codec
        | (TIMESTAMP_TYPE_MASK if timestamp_type else 0)
        | (TRANSACTIONAL_MASK if transactional else 0)
        | (CONTROL_MASK if control else 0)
    )
    payload = codecs.compress(codec, encode_records(records, base_timestamp), compresslevel)
    return _assemble(
        payload,
        BatchHeader(
            base_offset=base_offset,
            length=HEADER.size - 12 + len(payload),
            partition_leader_epoch=partition_leader_epoch,
            magic=2,
            crc=0,
            attributes=attributes,
            last_offset_delta=len(records) - 1,
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            record_count=len(records),
        ),
    )


def encode_message_batch(
    keys: Sequence[Optional[bytes]],
    values: Sequence[Optional[bytes]],
    timestamp: int,
    codec: int = 0,
    compresslevel: Optional[int] = None,
) -> bytes:
    """
    Encode one batch of magic 2 of keys and values that share one ``timestamp`` (ms).

    For the producers of 0.9.5. Raises as :func:`encode_batch`.
    """
    payload = encode_messages(keys, values)
    if codec:
        payload = codecs.compress(codec, payload, compresslevel)
    length, count = HEADER.size - 12 + len(payload), len(values)
    return _assemble(
        payload,
        (0, length, -1, 2, 0, codec, count - 1, timestamp, timestamp, -1, -1, -1, count),
    )


def encode_column_batch(
    values: Sequence[Optional[bytes]],
    keys: Optional[Sequence[Optional[bytes]]],
    headers: Optional[Sequence[Sequence[Header]]],
    stamps: Sequence[Tuple[int, int]],
    *,
    records: Optional[Buffer] = None,
    codec: int = 0,
    compresslevel: Optional[int] = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
) -> bytearray:
    """
    Encode one batch of magic 2 of columns, as a producer collects them.

    ``keys`` and ``headers`` None mean that all are absent; ``stamps`` has the index of the first
    record of each timestamp, and the timestamp (ms), the first index is 0. ``records`` are the
    encoded columns if they were encoded before. Raises as :func:`encode_batch`.
    """
    base = stamps[0][1]
    if records is None:
        deltas = [(start, timestamp - base) for start, timestamp in stamps]
        payload: Buffer = encode_columns(values, keys, headers, deltas)
    else:
        payload = records
    if codec:
        payload = codecs.compress(codec, payload, compresslevel)
    attributes = codec | (TRANSACTIONAL_MASK if transactional else 0)
    length, count = HEADER.size - 12 + len(payload), len(values)
    latest = base if len(stamps) == 1 else max(timestamp for _, timestamp in stamps)
    return _assembled(
        payload,
        (
            0,
            length,
            -1,
            2,
            0,
            attributes,
            count - 1,
            base,
            latest,
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        ),
    )


def encode_single(
    key: Optional[bytes],
    value: bytes,
    timestamp: int,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytearray:
    """Encode one batch of magic 2 with one record, without headers, and not compressed.

    The same bytes as from encode_column_batch(), for bytes only. Arguments: timestamp: ms.
    Raises: struct.error for a number out of range.
    """
    rest = _CHECKED.pack(
        0, 0, timestamp, timestamp, producer_id, producer_epoch, base_sequence, 1
    ) + encode_one(key, value)
    return bytearray(_UNCHECKED.pack(0, len(rest) + 9, -1, 2, crc32c(rest)) + rest)


def _assemble(payload: bytes, header: Tuple[int, ...]) -> bytes:
    return bytes(_assembled(payload, header))


def _assembled(payload: Buffer, header: Tuple[int, ...]) -> bytearray:
    """Join header (a BatchHeader's fields) and records, and insert the checksum."""
    try:
        batch = bytearray(HEADER.pack(*header))
    except struct.error as error:
        raise ProtocolError('a field of the batch header is out of range: %s' % error) from error
    batch += payload
    with memoryview(batch) as view:
        crc = crc32c(view[ATTRIBUTES_POS:])
    _CRC_INTO(batch, 17, crc)
    return batch


class DefaultRecordBatch:
    """
    Read one batch of magic 2 from a buffer with exactly this batch.

    The header is read by the constructor, records when the batch is iterated (each time).
    """

    __slots__ = ('_buffer', '_limit', 'header')

    magic = 2

    def __init__(
        self, buffer: Buffer, max_decompressed_bytes: int = codecs.DEFAULT_LIMIT_BYTES
    ) -> None:
        """
        Read the header.

        ``max_decompressed_bytes`` limits the size of the records after decompression. Raises
        ``ProtocolError`` if the header is incomplete or contradicts the buffer.
        """
        self._buffer = memoryview(buffer)
        self._limit = max_decompressed_bytes
        if len(self._buffer) < HEADER.size:
            raise ProtocolError('a record batch of %d bytes is too short' % len(self._buffer))
        self.header = header = BatchHeader._make(HEADER.unpack_from(self._buffer))
        if header.length != len(self._buffer) - 12 or header.magic != 2:
            raise ProtocolError('not exactly one record batch of magic 2')
        if header.record_count < 0 or header.last_offset_delta < -1:
            raise ProtocolError(
                'record batch at offset %d has negative counts' % header.base_offset
            )

    @property
    def base_offset(self) -> int:
        """Offset of the first record as written (compaction may have removed it)."""
        return self.header.base_offset

    @property
    def last_offset(self) -> int:
        """Offset of the last record as written (compaction may have removed it)."""
        return self.header.base_offset + self.header.last_offset_delta

    @property
    def next_offset(self) -> int:
        """Offset of the next fetch."""
        return self.last_offset + 1

    @property
    def codec(self) -> int:
        """Compression: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
        return self.header.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> int:
        """0 for create time, 1 for log append time."""
        return 1 if self.header.attributes & TIMESTAMP_TYPE_MASK else 0

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return bool(self.header.attributes & TRANSACTIONAL_MASK)

    @property
    def is_control(self) -> bool:
        """Whether the batch contains an end-of-transaction marker, not user data."""
        return bool(self.header.attributes & CONTROL_MASK)

    @property
    def delete_horizon_ms(self) -> Optional[int]:
        """When tombstones of this batch may be removed (KIP-534), None if it is not set."""
        if self.header.attributes & DELETE_HORIZON_MASK:
            return self.header.base_timestamp
        return None

    @property
    def partition_leader_epoch(self) -> int:
        """Epoch of the leader that appended the batch, -1 if unknown."""
        return self.header.partition_leader_epoch

    @property
    def base_timestamp(self) -> int:
        """Timestamp (ms) to which the records' deltas are added."""
        return self.header.base_timestamp

    @property
    def max_timestamp(self) -> int:
        """Largest timestamp (ms) of the batch, or its append time."""
        return self.header.max_timestamp

    @property
    def producer_id(self) -> int:
        """Producer's id, -1 for a producer without idempotence."""
        return self.header.producer_id

    @property
    def producer_epoch(self) -> int:
        """Producer's epoch, -1 without idempotence."""
        return self.header.producer_epoch

    @property
    def base_sequence(self) -> int:
        """Sequence number of the first record, -1 without idempotence."""
        return self.header.base_sequence

    @property
    def record_count(self) -> int:
        """The number of records in the header."""
        return self.header.record_count

    @property
    def size_in_bytes(self) -> int:
        """Size of the batch on the wire, header included."""
        return len(self._buffer)

    @property
    def crc(self) -> int:
        """The stored checksum."""
        return self.header.crc

    @property
    def attributes(self) -> int:
        """The attributes, as on the wire."""
        return self.header.attributes

    @property
    def last_offset_delta(self) -> int:
        """The offset of the last record as written, minus the base offset."""
        return self.header.last_offset_delta

    # The names in 1.4 to 3.0.
    compression_type, is_control_batch, first_timestamp = codec, is_control, base_timestamp
    leader_epoch, records_count = partition_leader_epoch, record_count

    def validate_crc(self) -> bool:
        """Return True if the checksum is right (1.4)."""
        return crc32c(self._buffer[ATTRIBUTES_POS:]) == self.header.crc

    def check_crc(self) -> None:
        """Raise ``ChecksumError``, which names the offset, if the checksum is wrong."""
        if not self.validate_crc():
            raise ChecksumError('wrong CRC in record batch at offset %d' % self.base_offset)

    def __iter__(self) -> Iterator[Record]:
        """
        Decode the records, a thousand at a time.

        Raises ``ProtocolError`` if the bytes are malformed or their number disagrees with the
        header, ``UnsupportedCodecError``.
        """
        append_time = self.header.max_timestamp if self.timestamp_type else None
        offset, timestamp = self.base_offset, self.base_timestamp
        return chain.from_iterable(
            self._chunks(
                lambda data, count: decode_records(data, count, offset, timestamp, append_time)
            )
        )

    def columns(self) -> Iterator[Columns]:
        """Decode as iteration does, but only offsets, keys and values, into columns."""
        return self._chunks(lambda data, count: decode_columns(data, count, self.base_offset))

    def record_columns(self) -> Iterator[RecordColumns]:
        """Decode as iteration does, but without an object per record."""
        is_append_time = bool(self.timestamp_type)
        time = self.max_timestamp if is_append_time else self.base_timestamp
        offset, epoch = self.base_offset, self.partition_leader_epoch
        return self._chunks(
            lambda data, count: decode_batch(
                Group([data], [count], [offset], [time], is_append_time, epoch)
            )
        )

    def marks(self) -> Iterator[Marks]:
        """Decode as iteration does, but only the fields that a broker checks, without objects."""
        append_time = self.header.max_timestamp if self.timestamp_type else None
        offset, timestamp = self.base_offset, self.base_timestamp
        return self._chunks(
            lambda data, count: decode_marks(data, count, offset, timestamp, append_time)
        )

    def payload(self) -> bytes:
        """
        Return the records in encoded form, decompressed.

        Raises ``ProtocolError`` if the number of records is impossible, ``UnsupportedCodecError``.
        """
        count = self.header.record_count
        data = codecs.decompress(self.codec, self._buffer[HEADER.size :], 2, self._limit)
        if count * _MIN_RECORD_BYTES > len(data):
            raise ProtocolError('%d records do not fit into %d bytes' % (count, len(data)))
        return data

    def _chunks(self, decode: Callable[[bytes, int], Iterator[T]]) -> Iterator[T]:
        count = self.header.record_count
        try:
            data = self.payload()
            chunks = decode(data, count)
            del data  # it may be large, and the decoder makes a copy
            yield from chunks
        except ProtocolError as error:
            raise ProtocolError(
                'batch at offset %d: %s' % (self.base_offset, error.args[0])
            ) from error


def __getattr__(name: str) -> Any:
    """Return the builder that 1.4 had here."""
    homes = ('DefaultRecordBatchBuilder', 'DefaultRecordMetadata')
    return look_up(globals(), name, dict.fromkeys(homes, 'kafka.record.batch_builders'))
