"""Records as bytes: batches of magic 2, message sets of magic 0 and 1, and walking both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka.late_imports import import_late

if TYPE_CHECKING:
    from kafka.record.memory_records import MemoryRecords as MemoryRecords


def __getattr__(name: str) -> object:
    """Load MemoryRecords, which 1.4 and later had here, when it is asked for."""
    if name != 'MemoryRecords':
        raise AttributeError('module %r has no attribute %r' % (__name__, name))
    found: object = import_late('kafka.record.memory_records').MemoryRecords
    globals()[name] = found
    return found
