"""MemoryRecordsBuilder: a batch that is filled record by record (1.4).

It decides when the batch is full and closed; batch_builders.py encodes it.
"""

from __future__ import annotations

from typing import Any, Optional, Sequence, Union

from kafka.record.batch_builders import (
    DefaultRecordBatchBuilder,
    DefaultRecordMetadata,
    LegacyRecordBatchBuilder,
    LegacyRecordMetadata,
)
from kafka.record.record import Header

__all__ = ['CallableInt', 'MemoryRecordsBuilder']


class CallableInt(int):
    """A number that is an attribute here, and was a method in some releases."""

    def __call__(self) -> int:
        return int(self)


class MemoryRecordsBuilder:
    """A batch of magic 0, 1 or 2 for records up to a size (1.4).

    Arguments: magic; compression_type: the number of a codec, 0 for none; batch_size: bytes before
    compression, the first record always fits; offset: of the first record; the others: the
    producer's fields of a batch of magic 2.
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
            raise ValueError('magic must be 0, 1 or 2, compression_type 0 to 4')
        self._magic = magic
        self._codec = compression_type
        self._limit = batch_size
        self._offset = offset
        self._count = 0
        self._builder: Any
        if magic < 2:
            self._builder = LegacyRecordBatchBuilder(magic, compression_type, batch_size)
        else:
            self._builder = DefaultRecordBatchBuilder(
                magic,
                compression_type,
                transactional,
                producer_id,
                producer_epoch,
                base_sequence,
                batch_size,
            )
        self._is_full = False
        self._buffer: Optional[bytes] = None

    def __repr__(self) -> str:
        return '<MemoryRecordsBuilder magic=%d, %d records, %d bytes%s>' % (
            self._magic,
            self._count,
            self.size_in_bytes(),
            '' if self._buffer is None else ', closed',
        )

    def append(
        self,
        timestamp: Optional[int],
        key: Optional[bytes],
        value: Optional[bytes],
        headers: Sequence[Header] = (),
    ) -> Union[DefaultRecordMetadata, LegacyRecordMetadata, None]:
        """Add a record; None if it does not fit any more.

        Arguments: timestamp: ms, None for now; headers: (str, bytes or None), for magic 2 only.
        Raises: ValueError for headers before magic 2, TypeError.
        """
        found: Any = None
        if self._buffer is None:
            found = self._builder.append(self.next_offset(), timestamp, key, value, headers)
        if found is None:
            self._is_full = True
        else:
            self._count += 1
        return found  # type: ignore[no-any-return]

    def set_producer_state(
        self, producer_id: int, producer_epoch: int, base_sequence: int, is_transactional: bool
    ) -> None:
        """Set the producer's fields of the batch. Raises ValueError if it is closed."""
        if self._buffer is not None:
            raise ValueError('the batch is closed')
        if self._magic == 2:
            self._builder.set_producer_state(
                producer_id, producer_epoch, base_sequence, is_transactional
            )

    def close(self) -> None:
        """Encode the batch; no more records are accepted. Raises as the encoders do."""
        if self._buffer is None:
            self._buffer = bytes(self._builder.build()) if self._count else b''

    def buffer(self) -> bytes:
        """Return the bytes. Raises ValueError before close()."""
        if self._buffer is None:
            raise ValueError('the batch has no bytes before close()')
        return self._buffer

    @property
    def records(self) -> int:
        """The number of records; may be called too, as in 2.2."""
        return CallableInt(self._count)

    def is_full(self) -> bool:
        """Return True if no more records are accepted."""
        return self._is_full or self._buffer is not None or self._builder.size() >= self._limit

    def size_in_bytes(self) -> int:
        """Return the size in bytes; before close() the uncompressed size."""
        return int(self._builder.size()) if self._buffer is None else len(self._buffer)

    def compression_rate(self) -> float:
        """Return the size of a closed batch as a fraction of the uncompressed size."""
        return len(self.buffer()) / self._builder.size() if self._count else 1.0

    def next_offset(self) -> int:
        """Return the offset of the record after the last."""
        return self._offset + self._count

    def skip(self, offsets_to_skip: int) -> None:
        """Increase the first offset. Raises ValueError once there are records."""
        if self._count:
            raise ValueError('a batch has no gaps')
        self._offset += offsets_to_skip
