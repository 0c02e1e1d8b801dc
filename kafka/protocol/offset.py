"""The names of ``kafka.protocol.offset`` (1.x): OffsetRequest and OffsetResponse by version.

Also the special times; struct_names.py makes the classes from the declarations in list_offsets.py.
"""

from __future__ import annotations

from kafka.internals.lazy_imports import import_late

UNKNOWN_OFFSET = -1


class OffsetResetStrategy:
    """The special times for the ends of the log (1.x)."""

    LATEST = -1
    EARLIEST = -2
    NONE = 0


def __getattr__(name: str) -> object:
    """Return OffsetRequest and OffsetResponse, and the class of each version."""
    return import_late('kafka.protocol.struct_names').look_up(__name__, name)
