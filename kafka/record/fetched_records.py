"""
The records that a broker sent of one partition, read batch by batch as columns.

Owns the way through the batches: where the next fetch has to begin, what must not be handed out
(control batches; batches of aborted transactions, engine-semantics 4.4), and what to do where one
cannot be read. What is inside of a batch belongs to :mod:`kafka.record.default_records` and
:mod:`kafka.record.legacy_records`; whose partition it is, and from which offset on records are
wanted, to ``kafka.consumer.completed_fetch``.
"""

from __future__ import annotations

import struct
from typing import Iterable, Iterator, List, NamedTuple, Optional, Set, Tuple, Union, cast

from kafka.codec import DEFAULT_LIMIT_BYTES
from kafka.errors import ChecksumError, KafkaError, ProtocolError
from kafka.record.default_records import HEADER, DefaultRecordBatch
from kafka.record.legacy_records import LegacyRecordBatch
from kafka.record.legacy_run import MIN_MESSAGE_BYTES
from kafka.record.record_columns import RecordColumns
from kafka.record.util import Buffer

Batch = Union[DefaultRecordBatch, LegacyRecordBatch]

_ENTRY_HEAD_BYTES = 12
_LEAST_BYTES = _ENTRY_HEAD_BYTES + MIN_MESSAGE_BYTES[0]
# Base offset, length, leader epoch, magic, last offset delta.
_EXTENT_AT = struct.Struct('>qiib6xi').unpack_from
# Offset, length, magic.
_HEAD_AT = struct.Struct('>qi4xb').unpack_from
_CONTROL_AT = struct.Struct('>hh').unpack_from
_ABORT = 0


class Extent(NamedTuple):
    """
    What the heads of batches say, before anything is decoded or any checksum looked at.

    ``next_offset`` is the one behind the last batch that is there as a whole, None where there is
    none; ``next_epoch`` the leader epoch of that batch, -1 if unknown. ``end`` is where the whole
    batches end, or the one begins whose head makes no sense.
    """

    next_offset: Optional[int]
    next_epoch: int
    end: int


def measure(view: Buffer) -> Extent:
    """Walk over the heads of batches; ends at one that is cut off, or whose head makes no sense."""
    next_offset, epoch, pos, size = None, -1, 0, len(view)
    last = size - _LEAST_BYTES
    while pos <= last:
        offset, length, magic = _HEAD_AT(view, pos)
        end = pos + _ENTRY_HEAD_BYTES + length
        if length < MIN_MESSAGE_BYTES[0] or end > size or magic > 2 or magic < 0:
            break
        if magic == 2:
            if end - pos < HEADER.size:
                break
            offset, length, epoch, magic, delta = _EXTENT_AT(view, pos)
            offset += delta
        else:
            epoch = -1
        next_offset, pos = offset + 1, end
    return Extent(next_offset, epoch, pos)


class FetchedRecords:
    """
    Read the records of one partition out of a fetch response, from the first batch to the last.

    A batch that cannot be read is an error each time it is come to: nothing behind it is read.
    Attributes: ``extent``; ``offset``, where the batch begins that is being read; ``error``, why
    that cannot be read, None as far as is known.
    """

    __slots__ = (
        '_aborted',
        '_batch',
        '_check_crcs',
        '_chunks',
        '_limit',
        '_peeked',
        '_pos',
        '_producers',
        '_view',
        '_whole',
        'error',
        'extent',
        'offset',
    )

    def __init__(
        self,
        buffer: Optional[Buffer],
        *,
        aborted: Optional[Iterable[Tuple[int, int]]] = None,
        check_crcs: bool = True,
        max_decompressed_bytes: int = DEFAULT_LIMIT_BYTES,
    ) -> None:
        """
        Look at the heads of the batches in a buffer; None is taken as empty.

        ``aborted`` holds producer id and first offset of each transaction that was aborted, for
        readers of committed records, None for those who read all. ``check_crcs`` False leaves out
        the check of batches of magic 2. ``max_decompressed_bytes`` bounds what each batch may
        expand to.
        """
        self._view = memoryview(b'' if buffer is None else buffer)
        self._whole = b''  # a copy of the buffer, made when messages of magic 0 or 1 are met
        self.extent = measure(self._view)
        self._check_crcs = check_crcs
        self._limit = max_decompressed_bytes
        #: Transactions whose first offset has not been reached, the first one last.
        self._aborted: Optional[List[Tuple[int, int]]] = None
        if aborted is not None:
            self._aborted = sorted(((first, who) for who, first in aborted), reverse=True)
        #: Ids of the producers that are inside of an aborted transaction.
        self._producers: Set[int] = set()
        self._pos = 0
        #: What begins at _pos, once it is known that it is wanted.
        self._batch: Optional[Batch] = None
        self._chunks: Optional[Iterator[RecordColumns]] = None
        self._peeked: Optional[RecordColumns] = None
        self.offset = -1
        self.error: Optional[KafkaError] = None

    @property
    def is_too_small(self) -> bool:
        """Whether there are bytes, but not enough for the first batch."""
        return bool(self._view) and not self.extent.end and self._is_cut_off(0)

    def read(self) -> Optional[RecordColumns]:
        """
        Return the next records, up to a thousand or so, None behind the last.

        Raises ``ChecksumError``, ``ProtocolError`` and ``UnsupportedCodecError`` where a batch
        cannot be read, the same one again at each call.
        """
        while self.has_more():
            if self.error is not None:
                raise self.error
            columns, self._peeked = self._peeked, None
            if columns is not None:
                return columns
            assert self._batch is not None
            self._chunks = self._batch.record_columns()
        return None

    def has_more(self) -> bool:
        """
        Tell whether records follow, or a batch that cannot be read, and step over what is neither.

        A batch that is wanted is not decoded for that; its records may all have been compacted
        away, or lie before the offset that was asked for.
        """
        if self.error is not None or self._peeked is not None:
            return True
        try:
            if self._chunks is not None:
                self._peeked = next(self._chunks, None)
                if self._peeked is not None:
                    return True
                self._close()
            return self._batch is not None or self._find()
        except KafkaError as error:
            self._fail(error)
            return True

    def behind_error(self) -> int:
        """
        Return from which offset on to read to leave out the batch that cannot be read.

        No more than that batch is left out, if need be a part of it only: its head may be what is
        broken. Never used on anything but the batch that ``error`` is about.
        """
        view, pos = self._view, self._pos
        offset, length, magic = _HEAD_AT(view, pos)
        if magic < 2 or len(view) - pos < HEADER.size:
            return int(offset) + 1
        header = HEADER.unpack_from(view, pos)
        last, count = header[6], header[12]
        end = pos + _ENTRY_HEAD_BYTES + length
        behind = offset + max(last, 0) + 1
        if length > 0 and end + _LEAST_BYTES <= len(view) and view[end + 16] == 2:
            following = _HEAD_AT(view, end)[0]
            if following > offset:
                return int(min(behind, following) if last >= 0 else following)
        if isinstance(self.error, ChecksumError):
            return int(min(behind, offset + max(count, 1)))
        return int(behind)

    def _fail(self, error: KafkaError) -> None:
        """Stay at the batch that cannot be read."""
        if isinstance(self._batch, LegacyRecordBatch) and not self._batch.codec:
            self._pos = self._batch.end  # of the messages before the broken one
        self.offset = self._offset_at(self._pos)
        self.error, self._chunks = error, None

    def _offset_at(self, pos: int) -> int:
        return int.from_bytes(self._view[pos : pos + 8], 'big', signed=True)

    def _close(self) -> None:
        """Go behind the batch that has been read."""
        batch = self._batch
        assert batch is not None
        if isinstance(batch, LegacyRecordBatch):
            self._pos = batch.end
        else:
            self._pos += batch.size_in_bytes
        self._batch = self._chunks = None

    def _find(self) -> bool:
        """Find the next batch that is wanted."""
        view = self._view
        while self._pos < self.extent.end:
            pos = self._pos
            self.offset = self._offset_at(pos)
            if view[pos + 16] < 2:
                self._whole = self._whole or bytes(view)
                self._batch = LegacyRecordBatch(self._whole, pos, self._limit)
                return True
            end = pos + _ENTRY_HEAD_BYTES + int.from_bytes(view[pos + 8 : pos + 12], 'big')
            batch = DefaultRecordBatch(view[pos:end], self._limit)
            if self._check_crcs:
                batch.check_crc()
            if self._is_wanted(batch):
                self._batch = batch
                return True
            self._pos = end
        self._check_rest()
        return False

    def _check_rest(self) -> None:
        """Raise ``ProtocolError`` if what begins here was not just cut off."""
        if not self._is_cut_off(self._pos):
            raise ProtocolError(
                'a batch of magic %d and %d bytes at offset %d'
                % (_HEAD_AT(self._view, self._pos)[::-1])
            )

    def _is_cut_off(self, pos: int) -> bool:
        """Tell whether the buffer ends inside of the batch at ``pos``."""
        room = len(self._view) - pos - _ENTRY_HEAD_BYTES
        length = int.from_bytes(self._view[pos + 8 : pos + 12], 'big', signed=True)
        return room < MIN_MESSAGE_BYTES[0] or length > room

    def _is_wanted(self, batch: DefaultRecordBatch) -> bool:
        """Tell whether the records of a batch are handed out (engine-semantics 4.4)."""
        who, aborted = batch.producer_id, self._aborted
        if aborted is not None and who >= 0:
            while aborted and aborted[-1][0] <= batch.last_offset:
                self._producers.add(aborted.pop()[1])
        if batch.is_control:
            if who in self._producers and _kind_of_control(batch) == _ABORT:
                self._producers.discard(who)
            return False
        if batch.is_transactional and who in self._producers:
            return False
        return batch.record_count > 0


def _kind_of_control(batch: DefaultRecordBatch) -> int:
    """Return 0 for an abort, 1 for a commit, more for what has nothing to do with transactions."""
    for record in batch:
        if record.key is None or len(record.key) < 4:
            break
        return cast(int, _CONTROL_AT(record.key)[1])
    raise ProtocolError('the control batch at offset %d has no key' % batch.base_offset)
