"""The names of kafka.protocol.consumer (3.0): isolation levels, and specifications of offsets."""

from __future__ import annotations

from enum import IntEnum

from kafka.protocol.offset import OffsetResetStrategy

__all__ = ['IsolationLevel', 'OffsetResetStrategy', 'OffsetSpec', 'OffsetTimestamp']


class IsolationLevel(IntEnum):
    """Whether records of open and aborted transactions are returned."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class OffsetSpec(IntEnum):
    """A well-known offset of a partition; the numbers are those of ListOffsets."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5


class OffsetTimestamp(int):
    """The offset of the first record at or after a time, in ms since the epoch."""

    def __repr__(self) -> str:
        return 'OffsetTimestamp(%d)' % self
