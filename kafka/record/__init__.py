"""Records as bytes: batches of magic 2, message sets of magic 0 and 1, and walking both."""

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
    """Load what 1.4 and later had here when it is asked for."""
    found: object = look_up(globals(), name, _NAMES)
    return found
