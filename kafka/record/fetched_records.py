"""
The records of one partition in a fetch response, read batch by batch as columns.

It determines where the next fetch begins, skips control batches and batches of aborted transactions
(read_committed, KIP-98), and reports invalid batches. The content of a batch is decoded by
:mod:`kafka.record.default_records` and :mod:`kafka.record.legacy_records`; partition and wanted
offset are handled by ``kafka.consumer.fetch.completed_fetch``.
"""

from __future__ import annotations

import struct
from itertools import accumulate
from typing import Iterable, Iterator, List, NamedTuple, Optional, Set, Tuple, cast

from kafka.codec import DEFAULT_LIMIT_BYTES, decompress
from kafka.errors import ChecksumError, KafkaError, ProtocolError
from kafka.record.batch_decoder import decode_group
from kafka.record.crc32c import crc32c
from kafka.record.default_records import (
    ATTRIBUTES_POS,
    CODEC_MASK,
    CONTROL_MASK,
    HEADER,
    TIMESTAMP_TYPE_MASK,
    DefaultRecordBatch,
)
from kafka.record.legacy_records import LegacyRecordBatch
from kafka.record.legacy_run import MIN_MESSAGE_BYTES
from kafka.record.record_columns import Group, RecordColumns
from kafka.record.util import Buffer

#: The fields of a BatchHeader.
Header = Tuple[int, ...]

# Batches with more records are decoded separately, a thousand at a time.
_FEW_RECORDS = 500
# The maximum number of records, and the approximate bytes after decompression, to decode together.
_ENOUGH_RECORDS = 1000
_ENOUGH_BYTES = 1 << 18

_ENTRY_HEAD_BYTES = 12
_MIN_RECORD_BYTES = 7
_LEAST_BYTES = _ENTRY_HEAD_BYTES + MIN_MESSAGE_BYTES[0]
# Base offset, length, leader epoch, magic, last offset delta.
_EXTENT_AT = struct.Struct('>qiib6xi').unpack_from
# Offset, length, magic.
_HEAD_AT = struct.Struct('>qi4xb').unpack_from
_CONTROL_AT = struct.Struct('>hh').unpack_from
_ABORT = 0


class Extent(NamedTuple):
    """
    The content of the batch headers, before anything is decoded or a checksum is verified.

    ``next_offset`` is the one after the last complete batch, None without one; ``next_epoch`` the
    leader epoch of that batch, -1 if unknown. ``end`` is where the complete batches end, or where a
    batch with an invalid header begins.
    """

    next_offset: Optional[int]
    next_epoch: int
    end: int


class RawRecords(NamedTuple):
    """
    The records of some batches of a partition in encoded form, decompressed.

    Those of each batch are between one of ``begins`` and one of ``ends`` in the buffer; ``headers``
    has the fields of its BatchHeader.
    """

    buffer: Buffer
    begins: List[int]
    ends: List[int]
    headers: List[Header]


def measure(view: Buffer) -> Extent:
    """Read the headers of batches, up to one that is truncated or has an invalid header."""
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
    Read the records of one partition from a fetch response, from the first batch to the last.

    Batches with few records are decoded together. An invalid one raises an error each time it is
    reached: nothing after it is read. Attributes: ``extent``; ``offset``, of the invalid batch;
    ``error``, the reason, None if there is none so far.
    """

    __slots__ = (
        '_alone_until',
        '_check_crcs',
        '_chunks',
        '_end',
        '_header',
        '_isolation',
        '_limit',
        '_old',
        '_peeked',
        '_pos',
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
        Read the headers of the batches in a buffer; None is an empty one.

        ``aborted`` has producer id and first offset of each aborted transaction, for
        read_committed, None for read_uncommitted. ``check_crcs`` False skips the check of batches
        of magic 2. ``max_decompressed_bytes`` limits the decompressed size of each batch.
        """
        self._view = memoryview(b'' if buffer is None else buffer)
        self._whole = b''  # a copy of the buffer, made for messages of magic 0 or 1
        self.extent = measure(self._view)
        self._check_crcs = check_crcs
        self._limit = max_decompressed_bytes
        self._isolation = None if aborted is None else Isolation(aborted)
        self._pos = 0
        #: Of the batch at _pos, once it is known to be wanted: its end, and its header or, for
        #: magic 0 and 1, the batch itself.
        self._end = 0
        self._header: Optional[Header] = None
        self._old: Optional[LegacyRecordBatch] = None
        #: Batches before this position are not decoded together.
        self._alone_until = 0
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
        Return the next records, up to about a thousand, None after the last.

        Raises ``ChecksumError``, ``ProtocolError`` and ``UnsupportedCodecError`` for an invalid
        batch, the same one again at each call.
        """
        while self.has_more():
            if self.error is not None:
                raise self.error.with_traceback(None)  # or the traceback would grow each time
            columns, self._peeked = self._peeked, None
            if columns is not None:
                return columns
            try:
                columns = self._open()
            except KafkaError as error:
                self._fail(error)
                continue
            if columns is not None:
                return columns
        return None

    def raw(self, since: int) -> Optional[RawRecords]:
        """
        Return all wanted batches that reach offset ``since``, without decoding.

        To be used instead of :meth:`read`. Uncompressed batches are not copied. None if there are
        messages of magic 0 or 1. Raises ``ChecksumError``, ``ProtocolError`` and
        ``UnsupportedCodecError`` for an invalid batch.
        """
        begins: List[int] = []
        ends: List[int] = []
        headers: List[Header] = []
        codecs = 0
        while self._find():
            header = self._header
            if header is None:
                return None
            end = self._end
            if header[0] + header[6] >= since:
                begins.append(self._pos + HEADER.size)
                ends.append(end)
                headers.append(header)
                codecs |= header[5]
            if header[6] < -1:
                raise ProtocolError('record batch at offset %d has negative counts' % header[0])
            self._pos, self._header = end, None
        found = RawRecords(self._view, begins, ends, headers)
        if codecs & CODEC_MASK:
            found = self._decompressed(found)
        for header, begin, end in zip(headers, found.begins, found.ends):
            if header[12] * _MIN_RECORD_BYTES > end - begin:
                text = '%d records do not fit into %d bytes'
                raise ProtocolError(text % (header[12], end - begin))
        return found

    def _decompressed(self, raw: RawRecords) -> RawRecords:
        payloads = [
            decompress(header[5] & CODEC_MASK, self._view[begin:end], 2, self._limit)
            for header, begin, end in zip(raw.headers, raw.begins, raw.ends)
        ]
        ends = list(accumulate(map(len, payloads)))
        return RawRecords(b''.join(payloads), [0, *ends[:-1]], ends, raw.headers)

    def has_more(self) -> bool:
        """
        Return True if records or an invalid batch follow, and skip everything else.

        A wanted batch is not decoded for that; compaction may have removed all of its records, or
        they may be before the requested offset.
        """
        if self.error is not None or self._peeked is not None:
            return True
        try:
            if self._chunks is not None:
                self._peeked = next(self._chunks, None)
                if self._peeked is not None:
                    return True
                self._go_on(self._end if self._old is None else self._old.end)
            return self._header is not None or self._old is not None or self._find()
        except KafkaError as error:
            self._fail(error)
            return True

    def behind_error(self) -> int:
        """
        Return the offset from which to read to skip the invalid batch.

        No more than that batch is skipped, possibly only a part of it, because its header may be
        invalid. Only used for the batch of ``error``.
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

    def shed(self) -> int:
        """
        Keep only the bytes that behind_error() needs, and return them; the buffer can be released.

        To be called when ``error`` is known: nothing else will be read.
        """
        assert self.error is not None
        view, pos = self._view, self._pos
        length = _HEAD_AT(view, pos)[1]
        kept = view[pos : pos + max(HEADER.size, _ENTRY_HEAD_BYTES + length + _LEAST_BYTES)]
        self._view, self._whole = memoryview(bytes(kept)), b''
        self._pos, self._header, self._old = 0, None, None
        each: Optional[BaseException] = self.error
        while each is not None:
            each.__traceback__ = None  # which refers to parts of the buffer
            each = each.__cause__ or each.__context__
        return len(self._view)

    def _fail(self, error: KafkaError) -> None:
        """Stay at the invalid batch."""
        if self._old is not None and not self._old.codec:
            self._pos = self._old.end  # of the messages before the broken one
        self.offset = int.from_bytes(self._view[self._pos : self._pos + 8], 'big', signed=True)
        self.error, self._chunks = error, None

    def _go_on(self, pos: int) -> None:
        """Move past the batches that have been read."""
        self._pos = pos
        self._chunks = self._header = self._old = None

    def _find(self) -> bool:
        """Find the next wanted batch."""
        view = self._view
        while self._pos < self.extent.end:
            if view[self._pos + 16] < 2:
                self._whole = self._whole or bytes(view)
                self._old = LegacyRecordBatch(self._whole, self._pos, self._limit)
                return True
            self._header = self._look(self._pos)
            if self._header is not None:
                return True
            self._pos = self._end
        if not self._is_cut_off(self._pos):
            raise ProtocolError(
                'a batch of magic %d and %d bytes at offset %d' % (_HEAD_AT(view, self._pos)[::-1])
            )
        return False

    def _is_cut_off(self, pos: int) -> bool:
        """Return True if the buffer ends inside the batch at ``pos``."""
        room = len(self._view) - pos - _ENTRY_HEAD_BYTES
        length = int.from_bytes(self._view[pos + 8 : pos + 12], 'big', signed=True)
        return room < MIN_MESSAGE_BYTES[0] or length > room

    def _look(self, pos: int) -> Optional[Header]:
        """Check the batch of magic 2 at ``pos``; return its header, None if it is not wanted."""
        header = HEADER.unpack_from(self._view, pos)
        self._end = end = pos + _ENTRY_HEAD_BYTES + header[1]
        if self._check_crcs and crc32c(self._view[pos + ATTRIBUTES_POS : end]) != header[4]:
            raise ChecksumError('wrong CRC in record batch at offset %d' % header[0])
        if header[12] <= 0 or header[5] & CONTROL_MASK or self._isolation is not None:
            batch = DefaultRecordBatch(self._view[pos:end], self._limit)
            if self._isolation is not None and not self._isolation.allows(batch):
                return None
            if batch.is_control or not batch.record_count:
                return None
        return header

    # ------------------------------------------------------------ decoding

    def _open(self) -> Optional[RecordColumns]:
        """Decode the batch that was found, or start to if it may be too large to decode at a
        time."""
        if self._old is not None:
            self._chunks = self._old.record_columns()
            return None
        header = self._header
        assert header is not None
        if header[12] > _FEW_RECORDS or self._pos < self._alone_until:
            batch = DefaultRecordBatch(self._view[self._pos : self._end], self._limit)
            self._chunks = batch.record_columns()
            return None
        start = self._pos
        before = None if self._isolation is None else self._isolation.copy()
        group = self._gather(header)
        try:
            return decode_group(group)
        except ProtocolError:
            # Again, one by one, to find out which one is invalid.
            self._alone_until, self._isolation = self._pos, before
            self._go_on(start)
            return None

    def _gather(self, header: Header) -> Group:
        """Return a batch and those after it that can be decoded with it; move past them."""
        kind = header[5] & TIMESTAMP_TYPE_MASK
        group = Group([], [], [], [], bool(kind), header[2])
        records = size = 0
        pos = self._pos
        found: Optional[Header] = header
        while True:
            if found is not None:
                base, _, epoch, _, _, attributes, _, time, append_time, _, _, _, count = found
                if epoch != group.leader_epoch or attributes & TIMESTAMP_TYPE_MASK != kind:
                    break
                if records and count > min(_FEW_RECORDS, _ENOUGH_RECORDS - records):
                    break
                data: Buffer = self._view[pos + HEADER.size : self._end]
                if attributes & CODEC_MASK:
                    try:
                        data = decompress(attributes & CODEC_MASK, data, 2, self._limit)
                    except KafkaError:
                        if not records:
                            raise
                        break
                group.data.append(data)
                group.counts.append(count)
                group.offsets.append(base)
                group.times.append(append_time if kind else time)
                records += count
                size += len(data)
            pos = self._end
            found = None
            if records >= _ENOUGH_RECORDS or size >= _ENOUGH_BYTES or pos >= self.extent.end:
                break
            if self._view[pos + 16] != 2:
                break
            try:
                found = self._look(pos)
            except KafkaError:  # raised again when it is the next one
                break
        self._go_on(pos)
        self._header = found
        return group


class Isolation:
    """read_committed filter: tracks aborted producer ids and hides their batches (KIP-98)."""

    def __init__(self, aborted: Iterable[Tuple[int, int]]) -> None:
        """Take producer id and first offset of each aborted transaction."""
        #: First offset and producer id of transactions not reached yet, the first one last.
        self._aborted = sorted(((first, who) for who, first in aborted), reverse=True)
        #: Ids of producers with an open aborted transaction.
        self._producers: Set[int] = set()

    def copy(self) -> Isolation:
        """Return a copy with the same state."""
        other = Isolation(())
        other._aborted, other._producers = self._aborted[:], set(self._producers)
        return other

    def allows(self, batch: DefaultRecordBatch) -> bool:
        """
        Return True if a batch may be read; must be called for each in the order of the log.

        Raises ``ProtocolError`` for an invalid control batch.
        """
        who, aborted = batch.producer_id, self._aborted
        if who >= 0:
            while aborted and aborted[-1][0] <= batch.last_offset:
                self._producers.add(aborted.pop()[1])
        if batch.is_control:
            if who in self._producers and _kind_of_control(batch) == _ABORT:
                self._producers.discard(who)
            return False
        return not (batch.is_transactional and who in self._producers)


def _kind_of_control(batch: DefaultRecordBatch) -> int:
    """Return 0 for an abort, 1 for a commit, more for markers unrelated to transactions."""
    for record in batch:
        if record.key is None or len(record.key) < 4:
            break
        return cast(int, _CONTROL_AT(record.key)[1])
    raise ProtocolError('the control batch at offset %d has no key' % batch.base_offset)
