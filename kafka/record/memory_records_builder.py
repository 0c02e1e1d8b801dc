"""MemoryRecordsBuilder: a batch that is filled record by record, as programs since 1.4 do it.

Owns the filling and when a batch is full. The bytes are made at the end, as a whole, by
:mod:`kafka.record.default_records` and :mod:`kafka.record.legacy_records`.
"""

from __future__ import annotations

from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

from kafka.record.default_records import encode_batch
from kafka.record.legacy_records import encode_message_set
from kafka.record.record import Header

__all__ = ['Appended', 'MemoryRecordsBuilder']

# Bytes of a batch of magic 2 before its records; of a message of magic 0 and 1 besides key and
# value; what a record of magic 2 has besides them at most, which is what counts before it is made.
_BATCH_HEAD, _MESSAGE_HEADS, _RECORD_HEAD = 61, (26, 34), 21


class Appended(NamedTuple):
    """A record that was taken: its offset in the batch, bytes it counts for, timestamp; no CRC."""

    offset: int
    size: int
    timestamp: int
    crc: Optional[int] = None


class MemoryRecordsBuilder:
    """A batch of magic 0, 1 or 2 that takes records up to a size (1.4).

    Arguments: magic; compression_type: number of a codec, 0 for none; batch_size: bytes before
    compression, the first record always fits; offset: of the first record; the others: what a
    batch of magic 2 says of its producer.
    Raises: ValueError for another magic or codec.
    """

    def __init__(
        self,
        magic: int,
        compression_type: int,
        batch_size: int,
        offset: int = 0,
        transactional: bool = False,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
    ) -> None:
        if magic not in (0, 1, 2) or compression_type not in range(5):
            raise ValueError('magic is 0, 1 or 2, compression_type 0 to 4')
        self._magic = magic
        self._codec = compression_type
        self._limit = batch_size
        self._offset = offset
        self._producer = (transactional, producer_id, producer_epoch, base_sequence)
        self._records: List[Tuple[int, Optional[bytes], Optional[bytes], Sequence[Header]]] = []
        self._size = _BATCH_HEAD if magic == 2 else 0
        self._is_full = False
        self._buffer: Optional[bytes] = None

    def __repr__(self) -> str:
        return '<MemoryRecordsBuilder magic=%d, %d records, %d bytes%s>' % (
            self._magic,
            len(self._records),
            self.size_in_bytes(),
            '' if self._buffer is None else ', closed',
        )

    def append(
        self,
        timestamp: Optional[int],
        key: Optional[bytes],
        value: Optional[bytes],
        headers: Sequence[Header] = (),
    ) -> Optional[Appended]:
        """Take a record; None where it does not fit any more.

        Arguments: timestamp: ms, -1 for None; headers: (str, bytes or None), for magic 2 alone.
        Raises: ValueError for headers before magic 2.
        """
        if headers and self._magic < 2:
            raise ValueError('messages of magic %d have no headers' % self._magic)
        size = len(key or b'') + len(value or b'')
        size += sum(len(name.encode()) + len(content or b'') + 10 for name, content in headers)
        size += _RECORD_HEAD if self._magic == 2 else _MESSAGE_HEADS[self._magic]
        if self._buffer is not None or self._records and self._size + size > self._limit:
            self._is_full = True
            return None
        stamp = -1 if timestamp is None else timestamp
        self._records.append((stamp, key, value, headers))
        self._size += size
        return Appended(self.next_offset() - 1, size, stamp)

    def set_producer_state(
        self, producer_id: int, producer_epoch: int, base_sequence: int, is_transactional: bool
    ) -> None:
        """Say whose batch it is. Raises ValueError when it is closed."""
        if self._buffer is not None:
            raise ValueError('the batch is closed')
        self._producer = (is_transactional, producer_id, producer_epoch, base_sequence)

    def close(self) -> None:
        """Make the bytes; nothing is taken any more. Raises as the encoders do."""
        if self._buffer is not None:
            return
        self._buffer = self._encode() if self._records else b''

    def _encode(self) -> bytes:
        if self._magic < 2:
            plain: Any = [
                (number, *record[:3]) for number, record in enumerate(self._records, self._offset)
            ]
            return encode_message_set(plain, self._magic, self._codec)
        transactional, producer_id, producer_epoch, base_sequence = self._producer
        return encode_batch(
            self._records,
            base_offset=self._offset,
            codec=self._codec,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            transactional=transactional,
        )

    def buffer(self) -> bytes:
        """Return the bytes. Raises ValueError before close()."""
        if self._buffer is None:
            raise ValueError('the batch has no bytes before close()')
        return self._buffer

    @property
    def records(self) -> int:
        """How many records it has."""
        return len(self._records)

    def is_full(self) -> bool:
        """Tell whether nothing is taken any more."""
        return self._is_full or self._buffer is not None or self._size >= self._limit

    def size_in_bytes(self) -> int:
        """Return the bytes it has; before close() what they are at most, uncompressed."""
        return self._size if self._buffer is None else len(self._buffer)

    def compression_rate(self) -> float:
        """Return the bytes of a closed batch as part of what they were."""
        return len(self.buffer()) / self._size if self._size else 1.0

    def next_offset(self) -> int:
        """Return the offset of the record after the last."""
        return self._offset + len(self._records)

    def skip(self, offsets_to_skip: int) -> None:
        """Begin that much later. Raises ValueError once there are records."""
        if self._records:
            raise ValueError('a batch has no gaps')
        self._offset += offsets_to_skip
