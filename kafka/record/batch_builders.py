"""DefaultRecordBatchBuilder, LegacyRecordBatchBuilder: batches built record by record (1.4 to 3.0).

They compute the size of records, and whether one fits. The bytes are encoded at the end, by
:mod:`kafka.record.default_records` and :mod:`kafka.record.legacy_records`, which also export these
classes.
"""

from __future__ import annotations

import time
from typing import Any, List, NamedTuple, Optional, Sequence
from zlib import crc32

from kafka.record.default_records import HEADER, encode_batch
from kafka.record.legacy_records import ENTRY_HEADER, encode_message, encode_message_set
from kafka.record.record import Header
from kafka.record.util import size_of_varint

__all__ = [
    'DefaultRecordBatchBuilder',
    'DefaultRecordMetadata',
    'LegacyRecordBatchBuilder',
    'LegacyRecordMetadata',
]

Bytes = Optional[bytes]

# Bytes of a message of magic 0 and 1 without key and value, including offset and size.
_MESSAGE_HEADS = (26, 34)
# The maximum size of a record of magic 2 without key, value and headers.
_MOST_OVERHEAD = 21


class DefaultRecordMetadata(NamedTuple):
    """An added record: its offset in the batch, its size, its timestamp; no CRC."""

    offset: int
    size: int
    timestamp: int
    crc: Optional[int] = None


class LegacyRecordMetadata(NamedTuple):
    """An added message: its offset in the batch, its CRC, its size, its timestamp."""

    offset: int
    crc: int
    size: int
    timestamp: int


class _Records:
    """The records of a batch so far, with consecutive offsets, up to a size."""

    def __init__(self, limit: int, size: int) -> None:
        self.first: Optional[int] = None  # offset
        self.rows: List[Any] = []
        self.size = size
        self._limit = limit

    def fits(self, size: int) -> bool:
        """Return True if another record fits."""
        return not self.rows or self.size + size <= self._limit

    def take(self, offset: int, row: Any, size: int) -> None:
        """Add a record. Raises ValueError unless its offset is the next one."""
        if self.first is None:
            self.first = offset
        elif offset != self.first + len(self.rows):
            raise ValueError('offset %d must be %d' % (offset, self.first + len(self.rows)))
        self.rows.append(row)
        self.size += size


def _checked(offset: Any, timestamp: Any, key: Any, value: Any) -> int:
    """Return the timestamp, now for None. Raises TypeError for an invalid field."""
    if timestamp is None:
        timestamp = int(time.time() * 1000)
    for name, number in (('offset', offset), ('timestamp', timestamp)):
        if type(number) is not int:
            raise TypeError('%s must be int, not %s' % (name, type(number).__name__))
    for name, text in (('key', key), ('value', value)):
        if text is not None and not isinstance(text, (bytes, bytearray, memoryview)):
            raise TypeError('%s must be bytes or None, not %s' % (name, type(text).__name__))
    return int(timestamp)


class DefaultRecordBatchBuilder:
    """A batch of magic 2 for records up to a size; the first record always fits.

    Arguments: magic: 2; compression_type: the number of a codec, 0 for none; batch_size: bytes
    before compression; the others: the producer's fields of the batch, -1 for none.
    """

    def __init__(
        self,
        magic: int,
        compression_type: int,
        is_transactional: Any,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        batch_size: int,
    ) -> None:
        if magic != 2:
            raise ValueError('magic must be 2, got %r' % (magic,))
        self._codec = compression_type
        self._records = _Records(batch_size, HEADER.size)
        self.set_producer_state(producer_id, producer_epoch, base_sequence, is_transactional)

    def set_producer_state(
        self, producer_id: int, producer_epoch: int, base_sequence: int, is_transactional: Any
    ) -> None:
        """Set the producer's fields of the batch."""
        self.producer_id, self.producer_epoch = producer_id, producer_epoch
        self._producer = (bool(is_transactional), producer_id, producer_epoch, base_sequence)

    def append(
        self,
        offset: int,
        timestamp: Optional[int],
        key: Bytes,
        value: Bytes,
        headers: Sequence[Header] = (),
    ) -> Optional[DefaultRecordMetadata]:
        """Add a record; None if it does not fit any more.

        Arguments: offset: one more than the last; timestamp: ms, None for now; headers: (str, bytes
        or None).
        Raises: TypeError, ValueError.
        """
        stamp = _checked(offset, timestamp, key, value)
        size = self.size_in_bytes(offset, stamp, key, value, headers)
        if not self._records.fits(size):
            return None
        self._records.take(offset, (stamp, key, value, headers), size)
        return DefaultRecordMetadata(offset, size, stamp)

    def size_in_bytes(
        self, offset: int, timestamp: int, key: Bytes, value: Bytes, headers: Sequence[Header] = ()
    ) -> int:
        """Return the size of a record in this batch."""
        rows, first = self._records.rows, self._records.first
        stamp = timestamp - rows[0][0] if rows else 0
        delta = 0 if first is None else offset - first
        body = 1 + size_of_varint(stamp) + size_of_varint(delta) + self.size_of(key, value, headers)
        return size_of_varint(body) + body

    @classmethod
    def size_of(cls, key: Bytes, value: Bytes, headers: Sequence[Header] = ()) -> int:
        """Return the size of key, value and headers, with their lengths."""
        texts = [text for name, content in headers for text in (name.encode(), content)]
        sizes = [
            1 if text is None else size_of_varint(len(text)) + len(text)
            for text in (key, value, *texts)
        ]
        return size_of_varint(len(headers)) + sum(sizes)

    @classmethod
    def estimate_size_in_bytes(cls, key: Bytes, value: Bytes, headers: Sequence[Header]) -> int:
        """Return the maximum size of a batch with this record."""
        return HEADER.size + _MOST_OVERHEAD + cls.size_of(key, value, headers)

    def size(self) -> int:
        """Return the present size, uncompressed."""
        return self._records.size

    def build(self) -> bytearray:
        """Return the bytes. Raises as encode_batch()."""
        is_transactional, producer_id, producer_epoch, base_sequence = self._producer
        return bytearray(
            encode_batch(
                self._records.rows,
                base_offset=self._records.first or 0,
                partition_leader_epoch=0,  # as in 1.4; the leader sets it
                codec=self._codec,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                base_sequence=base_sequence,
                transactional=is_transactional,
            )
        )


class LegacyRecordBatchBuilder:
    """A message set of magic 0 or 1 for messages up to a size; the first message always fits.

    Arguments: compression_type: the number of a codec, 0 for none; batch_size: bytes uncompressed.
    """

    def __init__(self, magic: int, compression_type: int, batch_size: int) -> None:
        if magic not in (0, 1):
            raise ValueError('magic must be 0 or 1, got %r' % (magic,))
        self._magic = magic
        self._codec = compression_type
        self._records = _Records(batch_size, 0)

    def append(
        self, offset: int, timestamp: Optional[int], key: Bytes, value: Bytes, headers: Any = None
    ) -> Optional[LegacyRecordMetadata]:
        """Add a message; None if it does not fit any more.

        Arguments: offset: one more than the last; timestamp: ms, None for now, ignored in magic 0;
        headers: must be empty.
        Raises: TypeError, ValueError.
        """
        if headers:
            raise ValueError('messages of magic %d have no headers' % self._magic)
        stamp = _checked(offset, timestamp if self._magic else -1, key, value)
        size = self.size_in_bytes(offset, stamp, key, value)
        if not self._records.fits(size):
            return None
        self._records.take(offset, (offset, stamp, key, value), size)
        body = encode_message(key, value, magic=self._magic, timestamp=stamp)
        return LegacyRecordMetadata(offset, crc32(body[4:]), size, stamp)

    def size_in_bytes(
        self, offset: int, timestamp: int, key: Bytes, value: Bytes, headers: Any = None
    ) -> int:
        """Return the size of a message, with its offset and size fields."""
        return ENTRY_HEADER.size + self.record_size(self._magic, key, value)

    @classmethod
    def record_size(cls, magic: int, key: Bytes, value: Bytes) -> int:
        """Return the size of a message, without its offset and size fields."""
        return cls.record_overhead(magic) + len(key or b'') + len(value or b'')

    @classmethod
    def record_overhead(cls, magic: int) -> int:
        """Return the size of a message without key and value. Raises ValueError."""
        if magic not in (0, 1):
            raise ValueError('magic must be 0 or 1, got %r' % (magic,))
        return _MESSAGE_HEADS[magic] - ENTRY_HEADER.size

    @classmethod
    def estimate_size_in_bytes(
        cls, magic: int, compression_type: int, key: Bytes, value: Bytes
    ) -> int:
        """Return the maximum size of a message set with this message."""
        size = ENTRY_HEADER.size + cls.record_size(magic, key, value)
        return size + _MESSAGE_HEADS[magic] if compression_type else size

    def size(self) -> int:
        """Return the present size, uncompressed."""
        return self._records.size

    def build(self) -> bytearray:
        """Return the bytes. Raises as encode_message_set()."""
        return bytearray(encode_message_set(self._records.rows, self._magic, self._codec))
