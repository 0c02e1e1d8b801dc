"""The log of one partition: batches in the order of their offsets, and what is known about them.

Owns: giving offsets to batches, finding and cutting them for a fetch, finding offsets by timestamp,
the start of the log, leader epochs (KIP-101), aborted transactions and the last stable offset
(KIP-98). Does not own: whether a batch may be appended (produced_batches.py, producer_states.py),
who leads the partition, and how format is converted. Batches lie in memory; segments on disk are
another room.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from typing import Dict, Iterable, List, NamedTuple, Optional, Tuple

NO_TIMESTAMP = -1

_OFFSET = struct.Struct('>q').pack_into
_EPOCH = struct.Struct('>i').pack_into
_EPOCH_AT = 12  # in a batch of magic 2, behind its offset and its length


class Batch(NamedTuple):
    """A batch as it lies in the log, or is about to.

    ``data`` is the batch on the wire. Of one that is about to be appended the first offset is that
    of its first record in its own counting: the log moves it.
    """

    base_offset: int
    last_offset: int
    max_timestamp: int  # ms, -1 for none
    magic: int
    data: bytes
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    is_transactional: bool = False
    is_control: bool = False


class AbortedTransaction(NamedTuple):
    """What a reader of committed records has to leave out."""

    producer_id: int
    first_offset: int
    last_offset: int  # of the marker that aborted it


class EpochStart(NamedTuple):
    """Where a leader epoch begins."""

    epoch: int
    start_offset: int


class Found(NamedTuple):
    """An offset that was looked for by time; -1 and -1 where there is none."""

    offset: int
    timestamp: int


class PartitionLog:
    """The log of one partition, in memory."""

    def __init__(self) -> None:
        self.start_offset = 0
        self.end_offset = 0
        self.size_bytes = 0
        self.epochs: List[EpochStart] = []
        self.aborted: List[AbortedTransaction] = []
        self.open_transactions: Dict[int, int] = {}  # producer id -> its first offset
        self._batches: List[Batch] = []
        self._bases: List[int] = []  # of the batches, for bisect
        self._lasts: List[int] = []

    def __repr__(self) -> str:
        return '<PartitionLog %d to %d, %d bytes>' % (
            self.start_offset,
            self.end_offset,
            self.size_bytes,
        )

    # ------------------------------------------------------------ writing

    def append(self, batch: Batch, leader_epoch: int) -> int:
        """Append a batch behind the last one and return the offset that its first record got."""
        base = self.end_offset
        stored = _moved(batch, base, leader_epoch)
        if not self.epochs or self.epochs[-1].epoch < leader_epoch:
            self.epochs.append(EpochStart(leader_epoch, base))
        self._batches.append(stored)
        self._bases.append(stored.base_offset)
        self._lasts.append(stored.last_offset)
        self.end_offset = stored.last_offset + 1
        self.size_bytes += len(stored.data)
        if stored.is_transactional and not stored.is_control:
            self.open_transactions.setdefault(stored.producer_id, base)
        return base

    def end_transaction(self, marker: Batch, leader_epoch: int, commit: bool) -> int:
        """Append the marker that ends a producer's transaction and return its offset."""
        offset = self.append(marker, leader_epoch)
        first = self.open_transactions.pop(marker.producer_id, None)
        if first is not None and not commit:
            self.aborted.append(AbortedTransaction(marker.producer_id, first, offset))
        return offset

    def delete_before(self, offset: int) -> None:
        """Let the log begin at an offset; batches that end before it go."""
        self.start_offset = max(self.start_offset, min(offset, self.end_offset))
        gone = bisect_left(self._lasts, self.start_offset)
        self.size_bytes -= sum(len(batch.data) for batch in self._batches[:gone])
        for column in (self._batches, self._bases, self._lasts):
            del column[:gone]
        self.aborted = [each for each in self.aborted if each.last_offset >= self.start_offset]

    # ------------------------------------------------------------ reading

    @property
    def last_stable_offset(self) -> int:
        """The first offset that belongs to an open transaction, or the end of the log."""
        return min(self.open_transactions.values(), default=self.end_offset)

    @property
    def batches(self) -> List[Batch]:
        """All batches, oldest first."""
        return list(self._batches)

    def batches_from(self, offset: int, end_offset: int) -> Iterable[Batch]:
        """Yield the batches from the one that holds ``offset`` on, up to an end."""
        index = bisect_left(self._lasts, offset)
        while index < len(self._batches) and self._bases[index] < end_offset:
            yield self._batches[index]
            index += 1

    def read(self, offset: int, end_offset: int, max_bytes: int, first_whole: bool) -> bytes:
        """Return what lies from ``offset`` up to ``end_offset``, at most ``max_bytes`` of it.

        It begins with the batch that holds the offset and ends wherever the limit cuts it.

        Arguments: first_whole: the first batch comes whole, however large it is (KIP-74).
        """
        parts: List[bytes] = []
        size = 0
        for batch in self.batches_from(offset, end_offset):
            room = max_bytes - size
            if parts or not first_whole:
                if room <= 0:
                    break
                parts.append(batch.data[:room])
            else:
                parts.append(batch.data)
            size += len(parts[-1])
        return b''.join(parts)

    def aborted_between(self, offset: int, end_offset: int) -> List[AbortedTransaction]:
        """Return the aborted transactions that have records in a range of offsets."""
        return [
            each
            for each in self.aborted
            if each.last_offset >= offset and each.first_offset < end_offset
        ]

    def end_of_epoch(self, epoch: int) -> Tuple[int, int]:
        """Return the largest epoch not above the one asked for, and its end; -1 and -1 for none."""
        index = bisect_right([each.epoch for each in self.epochs], epoch) - 1
        if index < 0:
            return -1, -1
        if index + 1 < len(self.epochs):
            return self.epochs[index].epoch, self.epochs[index + 1].start_offset
        return self.epochs[index].epoch, self.end_offset

    def epoch_at(self, offset: int) -> int:
        """Return the leader epoch under which an offset was written, -1 if that is not known."""
        index = bisect_right([each.start_offset for each in self.epochs], offset) - 1
        return self.epochs[index].epoch if index >= 0 else -1

    def batch_of(self, offset: int) -> Optional[Batch]:
        """Return the batch that holds an offset, or the next one; None behind the last."""
        index = bisect_left(self._lasts, offset)
        return self._batches[index] if index < len(self._batches) else None


def _moved(batch: Batch, base: int, leader_epoch: int) -> Batch:
    """Return the batch with offsets that begin at ``base``."""
    shift = base - batch.base_offset
    data = bytearray(batch.data)
    if batch.magic == 2:
        _OFFSET(data, 0, base)
        _EPOCH(data, _EPOCH_AT, leader_epoch)
    else:
        # One entry of a message set: the offset of a wrapper is that of its last message.
        _OFFSET(data, 0, batch.last_offset + shift)
    return batch._replace(base_offset=base, last_offset=batch.last_offset + shift, data=bytes(data))
