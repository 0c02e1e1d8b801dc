"""
Decoded plain messages of magic 0 and 1: a single one, or many as columns.

They are the results of :mod:`kafka.record.legacy_decoder`.
"""

from __future__ import annotations

import struct
from itertools import accumulate, chain, islice, repeat
from operator import add
from typing import Iterable, Iterator, List, NamedTuple, Optional, Sequence, cast

from kafka.errors import KafkaError
from kafka.record.columns import Columns
from kafka.record.record import Record
from kafka.record.record_columns import RecordColumns

#: Smallest possible size of a message by magic: everything up to a null key and a null value.
MIN_MESSAGE_BYTES = (14, 22)
TIMESTAMP_TYPE_MASK = 0x08

_UINT32_AT = struct.Struct('>I').unpack_from


class LegacyMessage(NamedTuple):
    """One message as stored: ``offset`` is the entry's, ``timestamp`` is None in magic 0."""

    offset: int
    magic: int
    attributes: int
    timestamp: Optional[int]
    key: Optional[bytes]
    value: Optional[bytes]


class Run:
    """
    Consecutive plain messages of one magic and one attributes byte, as columns.

    ``end`` is the position after the last one. ``error`` is the error of the message after it, to
    be raised when the messages before have been returned.
    """

    __slots__ = (
        '_buf',
        '_start',
        'attributes',
        'end',
        'error',
        'keys',
        'magic',
        'offsets',
        'timestamps',
        'values',
    )

    def __init__(self, buf: bytes, pos: int) -> None:
        """Start a run with the entry at ``pos``, which is not read yet."""
        self.magic = buf[pos + 16]
        self.attributes = buf[pos + 17]
        self.offsets: Sequence[int] = ()
        self.timestamps: List[int] = []  # stays empty in magic 0
        self.keys: List[Optional[bytes]] = []
        self.values: List[Optional[bytes]] = []
        self.end = pos
        self._buf, self._start = buf, pos
        self.error: Optional[KafkaError] = None

    def add_offsets(self, offsets: Sequence[int]) -> None:
        """Append offsets; a ``range`` is kept as long as nothing is added to it."""
        if not self.offsets:
            self.offsets = offsets
        elif isinstance(self.offsets, list):
            self.offsets += offsets
        else:
            self.offsets = [*self.offsets, *offsets]

    def shifted(self, shift: int) -> Sequence[int]:
        """Return the offsets with ``shift`` added to each."""
        offsets = self.offsets
        if not shift:
            return offsets
        if isinstance(offsets, range):
            return range(offsets.start + shift, offsets.stop + shift)
        return list(map(shift.__add__, offsets))

    def records(self, shift: int = 0, append_time: Optional[int] = None) -> Iterator[Record]:
        """
        Return an iterator of records, created on demand; ``append_time`` overrides timestamps.

        ``shift`` is added to the offsets. A record that is released before the next one is created
        is never traversed by the cyclic garbage collector, which takes as long as creating it.
        """
        stamps: Iterable[Optional[int]] = self.timestamps
        if not self.magic or append_time is not None:
            stamps = repeat(append_time)
        columns = self.shifted(shift), stamps, self.keys, self.values, repeat(())
        return map(Record, zip(*columns))

    def columns(self, shift: int = 0) -> Columns:
        """Return offset, key and value of each message; ``shift`` is added to the offsets."""
        return Columns(self.shifted(shift), self.keys, self.values)

    def record_columns(self, shift: int = 0, append_time: Optional[int] = None) -> RecordColumns:
        """Return all fields as columns; arguments as for :meth:`records`."""
        stamps: Optional[List[int]] = self.timestamps if self.magic else None
        kind = None if stamps is None else 1 if self.attributes & TIMESTAMP_TYPE_MASK else 0
        if append_time is not None:
            stamps, kind = [append_time] * len(self.values), 1
        return RecordColumns(
            self.shifted(shift),
            stamps,
            kind,
            None if self.keys.count(None) == len(self.keys) else self.keys,
            self.values,
            checksums=self.checksums(),
        )

    def checksums(self) -> List[int]:
        """Return the stored CRC of each message."""
        fixed = 12 + MIN_MESSAGE_BYTES[self.magic]
        sizes = map(add, _lengths(self.keys), _lengths(self.values))
        starts = accumulate(map(fixed.__add__, sizes), initial=self._start + 12)
        fields = map(_UINT32_AT, repeat(self._buf), islice(starts, len(self.values)))
        return list(chain.from_iterable(fields))


def _lengths(fields: List[Optional[bytes]]) -> Iterable[int]:
    if None in fields:
        return [0 if field is None else len(field) for field in fields]
    return map(len, cast(List[bytes], fields))
