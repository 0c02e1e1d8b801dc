"""
The batches in a buffer of any magic, as in a fetch response or a produce request.

It splits the buffer; batches are decoded by :mod:`kafka.record.default_records` and
:mod:`kafka.record.legacy_records`.
"""

from __future__ import annotations

from typing import Callable, Iterator, Optional, Union, cast

from kafka.codec import DEFAULT_LIMIT_BYTES
from kafka.errors import ProtocolError
from kafka.record.default_records import HEADER, DefaultRecordBatch
from kafka.record.legacy_decoder import entry_size
from kafka.record.legacy_records import LegacyRecordBatch
from kafka.record.legacy_run import MIN_MESSAGE_BYTES
from kafka.record.memory_records_builder import CallableInt
from kafka.record.memory_records_builder import MemoryRecordsBuilder as MemoryRecordsBuilder
from kafka.record.small_batches import SmallBatches, read_small_batches
from kafka.record.util import Buffer

RecordBatch = Union[DefaultRecordBatch, LegacyRecordBatch]
Run = Union[RecordBatch, SmallBatches]


class MemoryRecords:
    """
    Iterate over the batches in a buffer.

    An incomplete last batch is left out and reported by :attr:`partial`: brokers truncate fetch
    responses at any position. Each iteration starts from the beginning.
    """

    __slots__ = (
        '_ahead',
        '_batches',
        '_buffer',
        '_check_crcs',
        '_check_inner_crcs',
        '_limit',
        '_partial',
    )

    def __init__(
        self,
        buffer: Optional[Buffer],
        check_crcs: bool = True,
        max_decompressed_bytes: int = DEFAULT_LIMIT_BYTES,
        check_inner_crcs: bool = False,
    ) -> None:
        """
        Take a buffer; None is an empty one.

        ``check_crcs`` False skips the check of batches of magic 2 (older messages are always
        checked). ``max_decompressed_bytes`` limits the decompressed size of each batch.
        ``check_inner_crcs`` True also verifies the messages inside wrappers, whose bytes the
        wrapper's CRC covers already: for sets that no broker has verified yet, and if the messages
        will get new CRCs.
        """
        self._buffer = memoryview(b'' if buffer is None else buffer)
        self._check_crcs = check_crcs
        self._check_inner_crcs = check_inner_crcs
        self._limit = max_decompressed_bytes
        self._partial: Optional[bool] = None
        self._batches: Optional[Iterator[RecordBatch]] = None
        self._ahead: Optional[RecordBatch] = None

    @property
    def size_in_bytes(self) -> CallableInt:
        """Size of the whole buffer; may be called too, as in 1.4."""
        return CallableInt(len(self._buffer))

    def valid_bytes(self) -> int:
        """Return the size of the complete batches (1.4). Raises as partial."""
        pos = 0
        while True:
            size = self._entry_size(pos)
            if not size:
                return pos
            pos += size

    def has_next(self) -> bool:
        """Return True if there is a batch for next_batch() (1.4). Raises as iteration does."""
        if self._ahead is None:
            if self._batches is None:
                self._batches = iter(self)
            self._ahead = next(self._batches, None)
        return self._ahead is not None

    def next_batch(self) -> Optional[RecordBatch]:
        """Return the next batch, None after the last (1.4). Raises as iteration does."""
        found = self._ahead if self.has_next() else None
        self._ahead = None
        return found

    @property
    def partial(self) -> bool:
        """Whether the buffer ends inside a batch. Raises ``ProtocolError`` for invalid framing."""
        if self._partial is None:
            self._partial = self.valid_bytes() != len(self._buffer)
        return self._partial

    def _entry_size(self, pos: int) -> int:
        size = entry_size(self._buffer, pos)
        if size and size < 12 + MIN_MESSAGE_BYTES[0]:
            raise ProtocolError('an entry of %d bytes is too small for a message' % (size - 12))
        return size

    def __iter__(self) -> Iterator[RecordBatch]:
        """
        Yield the batches.

        A run of plain messages of magic 0 or 1 is one batch. Raises ``ProtocolError`` for invalid
        framing, ``ChecksumError`` for a wrong CRC of a batch of magic 2, each when it is reached.
        """
        return cast(Iterator[RecordBatch], self._walk(None))

    def runs(self) -> Iterator[Run]:
        """
        Yield the batches for readers of columns, with many consecutive small ones as one.

        CRCs are always verified. Raises as iteration does.
        """
        return self._walk(read_small_batches)

    def _walk(
        self, quick: Optional[Callable[[bytes, int], Optional[SmallBatches]]]
    ) -> Iterator[Run]:
        view = self._buffer
        whole = b''  # a copy of the buffer, made when it is first needed
        pos = 0
        while True:
            size = self._entry_size(pos)
            if not size:
                break
            is_old = view[pos + 16] < 2
            if is_old or quick is not None:
                whole = whole or bytes(view)
            small = None if is_old or quick is None else quick(whole, pos)
            if small is not None:
                yield small
                pos = small.end
            elif is_old:
                old = LegacyRecordBatch(whole, pos, self._limit, self._check_inner_crcs)
                yield old
                pos = old.end
            else:
                yield self._default(view[pos : pos + size])
                pos += size
        self._partial = pos != len(view)

    def _default(self, entry: memoryview) -> DefaultRecordBatch:
        if entry[16] != 2 or len(entry) < HEADER.size:
            offset = int.from_bytes(entry[:8], 'big')
            raise ProtocolError(
                'a batch of magic %d and %d bytes at offset %d' % (entry[16], len(entry), offset)
            )
        batch = DefaultRecordBatch(entry, self._limit)
        if self._check_crcs:
            batch.check_crc()
        return batch
