"""
Walk a buffer of batches of any magic, as a fetch response or a produce request carries them.

Owns the framing only; what is inside belongs to :mod:`kafka.record.default_records` and
:mod:`kafka.record.legacy_records`.
"""

from __future__ import annotations

from typing import Iterator, Optional, Union

from kafka.codec import DEFAULT_LIMIT_BYTES
from kafka.errors import ProtocolError
from kafka.record.default_records import HEADER, DefaultRecordBatch
from kafka.record.legacy_records import (
    CODEC_MASK,
    ENTRY_HEADER,
    MIN_MESSAGE_BYTES,
    LegacyRecordBatch,
)
from kafka.record.util import Buffer

RecordBatch = Union[DefaultRecordBatch, LegacyRecordBatch]

_RUN = 1000


class MemoryRecords:
    """
    Iterate over the batches in a buffer.

    A last batch that the buffer holds only in part is left out and shows in :attr:`partial`:
    brokers cut fetch responses anywhere. Each iteration starts anew.
    """

    __slots__ = ('_buffer', '_check_crcs', '_limit', '_partial')

    def __init__(
        self,
        buffer: Optional[Buffer],
        check_crcs: bool = True,
        max_decompressed_bytes: int = DEFAULT_LIMIT_BYTES,
    ) -> None:
        """
        Take a buffer; None is taken as empty.

        ``check_crcs`` False leaves out the check of batches of magic 2 (older messages are always
        checked). ``max_decompressed_bytes`` bounds what each batch may expand to.
        """
        self._buffer = memoryview(b'' if buffer is None else buffer)
        self._check_crcs = check_crcs
        self._limit = max_decompressed_bytes
        self._partial: Optional[bool] = None

    @property
    def size_in_bytes(self) -> int:
        """Size of the whole buffer."""
        return len(self._buffer)

    @property
    def partial(self) -> bool:
        """Whether the buffer ends inside a batch."""
        if self._partial is None:
            pos = 0
            for end in self._ends():
                pos = end
            self._partial = pos != len(self._buffer)
        return self._partial

    def _ends(self) -> Iterator[int]:
        pos = 0
        view = self._buffer
        while pos + 12 <= len(view):
            offset, size = ENTRY_HEADER.unpack_from(view, pos)
            if size < MIN_MESSAGE_BYTES[0]:
                raise ProtocolError('a batch of %d bytes at offset %d' % (size, offset))
            pos += 12 + size
            if pos > len(view):
                return
            yield pos

    def __iter__(self) -> Iterator[RecordBatch]:
        """
        Yield the batches.

        A run of plain messages of magic 0 or 1 comes as one batch. Raises ``ProtocolError`` for
        broken framing, ``ChecksumError`` for a wrong CRC of a batch of magic 2, each when it is
        reached.
        """
        view = self._buffer
        run = -1
        start = entry = count = offset = 0
        for end in self._ends():
            magic = view[entry + 16]
            plain = magic < 2 and not view[entry + 17] & CODEC_MASK
            if run >= 0 and (not plain or magic != run or count == _RUN):
                yield LegacyRecordBatch(view[start:entry], offset, self._limit)
                run, count = -1, 0
            if run < 0:
                start = entry
            offset = ENTRY_HEADER.unpack_from(view, entry)[0]
            if plain:
                run, count = magic, count + 1
            else:
                yield self._single(entry, end, magic, offset)
            entry = end
        if run >= 0:
            yield LegacyRecordBatch(view[start:entry], offset, self._limit)

    def _single(self, start: int, end: int, magic: int, offset: int) -> RecordBatch:
        entry = self._buffer[start:end]
        if magic > 2:
            raise ProtocolError('a batch of unknown magic %d at offset %d' % (magic, offset))
        if end - start < (12 + MIN_MESSAGE_BYTES[magic] if magic < 2 else HEADER.size):
            raise ProtocolError('a batch of %d bytes at offset %d' % (end - start, offset))
        if magic < 2:
            return LegacyRecordBatch(entry, offset, self._limit)
        batch = DefaultRecordBatch(entry, self._limit)
        if self._check_crcs:
            batch.check_crc()
        return batch
