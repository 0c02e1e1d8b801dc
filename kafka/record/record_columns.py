"""
Records of a partition as columns, with all fields that a consumer returns.

Two tuples: batches to be decoded together, and decoded records. :mod:`kafka.record.columns` has
only offset, key and value, for the consumers of 0.9.5.
"""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Sequence

from kafka.record.header_blocks import Headers
from kafka.record.util import Buffer


class Group(NamedTuple):
    """
    Batches whose records are decoded together: data, and fields of their headers, by columns.

    ``data`` is the decompressed content after each header. ``times`` are those to which the
    records' deltas are added; if ``is_append_time``, those of all records of a batch.
    """

    data: List[Buffer]
    counts: List[int]
    offsets: List[int]
    times: List[int]
    is_append_time: bool
    leader_epoch: int


class RecordColumns(NamedTuple):
    """
    Records of one leader epoch, in the order of the log.

    ``timestamps`` is None in message format 0, in milliseconds otherwise; ``timestamp_type`` 0 for
    create time, 1 for log append time, None in format 0. ``keys`` or ``headers`` None means that
    all are absent; ``header_sizes`` (bytes of names and values together, -1 for no headers) is None
    then too. ``checksums`` are those of formats 0 and 1, else None. ``leader_epoch`` is -1 if it is
    unknown. ``value_sizes`` is None if the sizes of the values have not been computed.
    """

    offsets: Sequence[int]
    timestamps: Optional[Sequence[int]]
    timestamp_type: Optional[int]
    keys: Optional[Sequence[Optional[bytes]]]
    values: Sequence[Optional[bytes]]
    headers: Optional[Sequence[Headers]] = None
    header_sizes: Optional[Sequence[int]] = None
    checksums: Optional[Sequence[int]] = None
    leader_epoch: int = -1
    value_sizes: Optional[Sequence[int]] = None

    def part(self, start: int, end: Optional[int] = None) -> RecordColumns:
        """Return the records from index ``start`` up to ``end``."""
        chosen = slice(start, end)
        return self._replace(
            offsets=self.offsets[chosen],
            timestamps=None if self.timestamps is None else self.timestamps[chosen],
            keys=None if self.keys is None else self.keys[chosen],
            values=self.values[chosen],
            headers=None if self.headers is None else self.headers[chosen],
            header_sizes=None if self.header_sizes is None else self.header_sizes[chosen],
            checksums=None if self.checksums is None else self.checksums[chosen],
            value_sizes=None if self.value_sizes is None else self.value_sizes[chosen],
        )

    def since(self, offset: int) -> RecordColumns:
        """Return the records from an offset on; offsets must ascend."""
        if not self.offsets or self.offsets[0] >= offset:
            return self
        return self.part(sum(map(offset.__gt__, self.offsets)))
