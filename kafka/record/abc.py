"""The names of kafka.record.abc (1.4 to 3.0): interfaces of records, batches and builders.

The classes of this package are registered, so that isinstance() gives the same results.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Iterator

from kafka.record.batch_builders import DefaultRecordBatchBuilder, LegacyRecordBatchBuilder
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.legacy_records import LegacyRecordBatch
from kafka.record.memory_records import MemoryRecords
from kafka.record.record import Record

__all__ = ['ABCRecord', 'ABCRecordBatch', 'ABCRecordBatchBuilder', 'ABCRecords']


class ABCRecord(ABC):
    """One record: timestamp, key, value, headers and its offset."""

    @property
    @abstractmethod
    def offset(self) -> int:
        """Its offset in the log."""


class ABCRecordBatch(ABC):
    """A batch, an iterable of its records."""

    @abstractmethod
    def __iter__(self) -> Iterator[Any]:
        """Yield the records."""


class ABCRecordBatchBuilder(ABC):
    """Collects records and builds a batch."""

    @abstractmethod
    def append(self, offset: int, timestamp: int, key: Any, value: Any, headers: Any = None) -> Any:
        """Add a record; None if it does not fit any more."""

    @abstractmethod
    def size_in_bytes(self, offset: int, timestamp: int, key: Any, value: Any, headers: Any) -> int:
        """Return the size of a record in bytes."""

    @abstractmethod
    def build(self) -> Any:
        """Return the bytes of the batch."""


class ABCRecords(ABC):
    """A buffer of batches."""

    @abstractmethod
    def next_batch(self) -> Any:
        """Return the next batch, None after the last."""

    @abstractmethod
    def has_next(self) -> bool:
        """Return True if there is a next batch."""


ABCRecord.register(Record)
ABCRecords.register(MemoryRecords)
for batch in (DefaultRecordBatch, LegacyRecordBatch):
    ABCRecordBatch.register(batch)
for builder in (DefaultRecordBatchBuilder, LegacyRecordBatchBuilder):
    ABCRecordBatchBuilder.register(builder)
