"""Record formats: batches of magic 2, and message sets of magic 0 and 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka.internals.lazy_imports import look_up

if TYPE_CHECKING:
    from kafka.record.memory_records import MemoryRecords as MemoryRecords
    from kafka.record.memory_records_builder import MemoryRecordsBuilder as MemoryRecordsBuilder

_NAMES = {
    'MemoryRecords': 'kafka.record.memory_records',
    'MemoryRecordsBuilder': 'kafka.record.memory_records_builder',
}


def __getattr__(name: str) -> object:
    """Import the names of 1.4 and later on first use."""
    found: object = look_up(globals(), name, _NAMES)
    return found
