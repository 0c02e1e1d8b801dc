"""The names of ``kafka.protocol.offset`` (1.x): OffsetRequest and OffsetResponse by version.

Owns the special times; the classes are made of what list_offsets.py declares (struct_names.py).
"""

from __future__ import annotations

from kafka.internals.lazy_imports import import_late

UNKNOWN_OFFSET = -1


class OffsetResetStrategy:
    """Times that stand for an end of the log, and none (1.x)."""

    LATEST = -1
    EARLIEST = -2
    NONE = 0


def __getattr__(name: str) -> object:
    """Find OffsetRequest and OffsetResponse, and the class of each version."""
    return import_late('kafka.protocol.struct_names').look_up(__name__, name)
