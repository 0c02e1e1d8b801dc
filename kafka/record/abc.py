"""The names of kafka.record.abc (1.4 to 3.0): what records, batches and builders of batches have.

The classes of this package are registered with them, so that isinstance() says what it said then.
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
    """One record: timestamp, key, value, headers beside its offset."""

    @property
    @abstractmethod
    def offset(self) -> int:
        """Where it lies in the log."""


class ABCRecordBatch(ABC):
    """A batch, which is iterated for its records."""

    @abstractmethod
    def __iter__(self) -> Iterator[Any]:
        """Yield the records."""


class ABCRecordBatchBuilder(ABC):
    """What takes records and makes a batch of them."""

    @abstractmethod
    def append(self, offset: int, timestamp: int, key: Any, value: Any, headers: Any = None) -> Any:
        """Take a record; None where it does not fit any more."""

    @abstractmethod
    def size_in_bytes(self, offset: int, timestamp: int, key: Any, value: Any, headers: Any) -> int:
        """Return the bytes that a record would take."""

    @abstractmethod
    def build(self) -> Any:
        """Return the bytes."""


class ABCRecords(ABC):
    """A buffer of batches."""

    @abstractmethod
    def next_batch(self) -> Any:
        """Return the next batch, None behind the last."""

    @abstractmethod
    def has_next(self) -> bool:
        """Tell whether there is one."""


ABCRecord.register(Record)
ABCRecords.register(MemoryRecords)
for batch in (DefaultRecordBatch, LegacyRecordBatch):
    ABCRecordBatch.register(batch)
for builder in (DefaultRecordBatchBuilder, LegacyRecordBatchBuilder):
    ABCRecordBatchBuilder.register(builder)
