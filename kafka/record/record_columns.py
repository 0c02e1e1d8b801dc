"""
Some records of a partition as columns: everything that a consumer hands out of them.

Owns two tuples: of batches that are to be read together, and of what they hold.
:mod:`kafka.record.columns` has the smaller one for the eras that know offset, key and value alone.
"""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Sequence

from kafka.record.header_blocks import Headers
from kafka.record.util import Buffer


class Group(NamedTuple):
    """
    Some batches whose records are read together: data, and what their headers say, by columns.

    ``data`` is what follows each header, decompressed. ``times`` are those that the records'
    deltas are added to; where ``is_append_time``, those of all records of a batch.
    """

    data: List[Buffer]
    counts: List[int]
    offsets: List[int]
    times: List[int]
    is_append_time: bool
    leader_epoch: int


class RecordColumns(NamedTuple):
    """
    Records that one leader took, in the order of the log.

    ``timestamps`` is None in message format 0, in milliseconds otherwise; ``timestamp_type`` 0 for
    the time of the writer, 1 for that of the log, None in format 0. ``keys`` or ``headers`` None
    means that no record has any; ``header_sizes`` (bytes of names and values together, -1 for no
    headers) is None then too. ``checksums`` are those of formats 0 and 1, else None.
    ``leader_epoch`` is -1 where it is unknown. ``value_sizes`` is None where the
    lengths of the values are not known without looking at each.
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
