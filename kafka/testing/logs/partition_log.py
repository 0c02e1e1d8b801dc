"""The log of one partition in memory: batches by offset, with their indexes.

Assigns offsets, reads batches for fetches, finds offsets by timestamp; has the log start offset,
leader epochs (KIP-101), aborted transactions and the last stable offset (KIP-98), and the segments
that are deleted as a whole. Batches are validated by produced_batches.py and producer_states.py;
retention.py decides when segments roll and expire. The base of stored_log.py, whose batches are in
files.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import Dict, Iterator, List, MutableSequence, NamedTuple, Optional, Sequence, Tuple

from kafka.record.util import Buffer
from kafka.testing.logs import message_sets

NO_TIMESTAMP = -1
#: The estimated memory of a batch in Python besides its bytes.
BATCH_BYTES = 400

_START = struct.Struct('>qii').pack  # of a batch of magic 2: offset, length, leader epoch
_DISTANCE = struct.Struct('>i').unpack_from  # to its last offset
_DISTANCE_AT = 23


class Batch(NamedTuple):
    """A batch that is stored in the log, or is to be appended.

    ``data`` is the encoded batch, in magic 0 and 1 a wrapper or a sequence of plain messages. Of a
    batch to be appended the offsets count from its own first record: append() moves them.
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
    """An aborted transaction, which read_committed consumers filter."""

    producer_id: int
    first_offset: int
    last_offset: int  # of the marker that aborted it


class EpochStart(NamedTuple):
    """The start offset of a leader epoch."""

    epoch: int
    start_offset: int


class Segment:
    """A part of the log that is deleted as a whole.

    Attributes: base_offset: its first offset; place: the same in bytes since the log was created;
    first_timestamp, max_timestamp: of its first batch and of all, -1 for none; opened_ms,
    modified_ms: when it got its first batch and, once it is closed, its last.
    """

    __slots__ = (
        'base_offset',
        'first_timestamp',
        'max_timestamp',
        'modified_ms',
        'opened_ms',
        'place',
    )

    def __init__(self, base_offset: int, place: int, now_ms: int) -> None:
        self.base_offset = base_offset
        self.place = place
        self.first_timestamp = NO_TIMESTAMP
        self.max_timestamp = NO_TIMESTAMP
        self.opened_ms = now_ms
        self.modified_ms = now_ms

    def __repr__(self) -> str:
        return '<Segment from %d>' % self.base_offset


class PartitionLog:
    """The log of one partition, in memory."""

    def __init__(self) -> None:
        self.start_offset = 0
        self.end_offset = 0
        self.size_bytes = 0
        #: The time of the last append, in ms; not 0 before the first.
        self.modified_ms = 1
        self.epochs: List[EpochStart] = []
        self.aborted: List[AbortedTransaction] = []
        self.open_transactions: Dict[int, int] = {}  # producer id -> its first offset
        self._batches: List[Batch] = []
        # Columns of the batches, for bisect: offsets, the position of each in bytes since the log
        # was created, and the largest timestamp up to each.
        self._bases: MutableSequence[int] = []
        self._lasts: MutableSequence[int] = []
        self._places: MutableSequence[int] = []
        self._tops: MutableSequence[int] = []
        self._end_place = 0
        #: Oldest first; the last one is active.
        self.segments: List[Segment] = [Segment(0, 0, 1)]
        self.active = self.segments[0]
        #: The offset up to which the log was compacted.
        self.cleaned_offset = 0

    def __repr__(self) -> str:
        return '<PartitionLog %d to %d, %d bytes>' % (
            self.start_offset,
            self.end_offset,
            self.size_bytes,
        )

    # ------------------------------------------------------------ writing

    def append(self, batch: Batch, leader_epoch: int) -> int:
        """Append a batch at the end and return the offset of its first record."""
        base = self.end_offset
        stored = _moved(batch, base, leader_epoch)
        self._keep(stored)
        if stored.magic == 2:
            self.note_epoch(leader_epoch)
        self._bases.append(stored.base_offset)
        self._lasts.append(stored.last_offset)
        self._places.append(self._end_place)
        stamp, active = stored.max_timestamp, self.active
        top = self._tops[-1] if self._tops else -1
        self._tops.append(max(top, stamp))
        if stamp > active.max_timestamp:
            active.max_timestamp = stamp
            if active.first_timestamp < 0:
                active.first_timestamp = stamp
        self.end_offset = stored.last_offset + 1
        self.size_bytes += len(stored.data)
        self._end_place += len(stored.data)
        if stored.is_transactional and not stored.is_control:
            self.open_transactions.setdefault(stored.producer_id, base)
        return base

    def _keep(self, stored: Batch) -> None:
        """Store a batch."""
        self._batches.append(stored)

    def note_epoch(self, leader_epoch: int) -> None:
        """Record a leader epoch that begins at the end of the log."""
        epochs = self.epochs
        if epochs and epochs[-1].epoch >= leader_epoch:
            return
        while epochs and epochs[-1].start_offset >= self.end_offset:
            epochs.pop()  # nothing was written in it
        epochs.append(EpochStart(leader_epoch, self.end_offset))

    def end_transaction(self, marker: Batch, leader_epoch: int, commit: bool) -> int:
        """Append the marker that ends a producer's transaction and return its offset."""
        offset = self.append(marker, leader_epoch)
        self._note_end(marker.producer_id, offset, commit)
        return offset

    def _note_end(self, producer_id: int, offset: int, commit: bool) -> None:
        """Record a marker at an offset."""
        first = self.open_transactions.pop(producer_id, None)
        if first is not None and not commit:
            self.aborted.append(AbortedTransaction(producer_id, first, offset))

    def delete_before(self, offset: int) -> None:
        """Move the log start offset; batches that end before it are deleted."""
        self.start_offset = max(self.start_offset, min(offset, self.end_offset))
        gone = bisect_left(self._lasts, self.start_offset)
        self.size_bytes -= sum(len(batch.data) for batch in self._batches[:gone])
        del self._batches[:gone]
        for column in (self._bases, self._lasts, self._places, self._tops):
            del column[:gone]
        if gone:
            self._tops = list(accumulate((batch.max_timestamp for batch in self._batches), max))
        self._forget_before_start()

    def _forget_before_start(self) -> None:
        """Drop segments and aborted transactions that end before the log start offset."""
        segments = self.segments
        while len(segments) > 1 and segments[1].base_offset <= self.start_offset:
            del segments[0]
        self.aborted = [each for each in self.aborted if each.last_offset >= self.start_offset]

    # ------------------------------------------------------------ segments

    def roll(self, now_ms: int) -> None:
        """Begin a new segment, unless the active one is empty."""
        if self.active.base_offset < self.end_offset:
            self.active.modified_ms = self.modified_ms
            self.active = Segment(self.end_offset, self._end_place, now_ms)
            self.segments.append(self.active)

    @property
    def memory_bytes(self) -> int:
        """The estimate of the memory that the log takes."""
        return self.size_bytes + BATCH_BYTES * len(self._batches)

    @property
    def active_bytes(self) -> int:
        """The size of the active segment."""
        return self._end_place - self.active.place

    def segment_bytes(self, position: int) -> int:
        """Return the size of a segment, by its position in ``segments``."""
        if not self._places:
            return 0
        is_active = position + 1 == len(self.segments)
        end = self._end_place if is_active else self.segments[position + 1].place
        return max(0, end - max(self.segments[position].place, self._places[0]))

    def replace(self, base_offset: int, batches: List[Batch]) -> None:
        """Replace the batches of a segment after compaction; they have their offsets.

        Arguments: base_offset: of a closed segment; batches: if there are none, the segment is
            removed.
        """
        position = self._position_of(base_offset)
        first, end = self._range_of(position)
        size = sum(len(batch.data) for batch in batches)
        shift = size - self.segment_bytes(position)
        place = self._places[first] if first < len(self._places) else self._end_place
        starts = accumulate([place, *(len(batch.data) for batch in batches)])
        behind = [each + shift for each in self._places[end:]]
        self._places[first:] = [*list(starts)[:-1], *behind]
        self._bases[first:end] = [batch.base_offset for batch in batches]
        self._lasts[first:end] = [batch.last_offset for batch in batches]
        self._batches[first:end] = batches
        self._tops = list(accumulate((batch.max_timestamp for batch in self._batches), max))
        self._move_segments(position, shift, bool(batches))

    def _position_of(self, base_offset: int) -> int:
        """Return the position of a segment. Raises IndexError for the active one."""
        for position, segment in enumerate(self.segments[:-1]):
            if segment.base_offset == base_offset:
                return position
        raise IndexError('no closed segment begins at %d' % base_offset)

    def _range_of(self, position: int) -> Tuple[int, int]:
        """Return the indexes of the first batch of a segment, and of the one after its last."""
        first = bisect_left(self._bases, self.segments[position].base_offset)
        if position + 1 == len(self.segments):
            return first, len(self._bases)
        return first, bisect_left(self._bases, self.segments[position + 1].base_offset)

    def _move_segments(self, position: int, shift: int, stays: bool) -> None:
        """Adjust sizes and positions after a segment was resized or removed."""
        self.size_bytes += shift
        self._end_place += shift
        for segment in self.segments[position + 1 :]:
            segment.place += shift
        if not stays:
            del self.segments[position]

    def batches_of(self, position: int) -> List[Batch]:
        """Return the batches of a segment, by its position."""
        first, end = self._range_of(position)
        return self._batches[first:end]

    # ------------------------------------------------------------ reading

    @property
    def last_stable_offset(self) -> int:
        """The first offset that belongs to an open transaction, or the end of the log."""
        first = min(self.open_transactions.values(), default=self.end_offset)
        return max(first, self.start_offset)  # records of open transactions can be deleted

    @property
    def batches(self) -> List[Batch]:
        """All batches, oldest first."""
        return list(self._batches)

    def batches_from(self, offset: int, end_offset: int) -> Iterator[Batch]:
        """Yield the batches from the one that contains ``offset`` on, up to ``end_offset``."""
        index = bisect_left(self._lasts, offset)
        while index < len(self._batches) and self._bases[index] < end_offset:
            yield self._batches[index]
            index += 1

    def batches_at(self, timestamp: int) -> Iterator[Batch]:
        """Yield the batches whose largest timestamp reaches ``timestamp``, oldest first."""
        for index in range(bisect_left(self._tops, timestamp), len(self._batches)):
            if self._batches[index].max_timestamp >= timestamp:
                yield self._batches[index]

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp in ms, -1 for none."""
        return self._tops[-1] if self._tops else -1

    def bytes_between(self, offset: int, end_offset: int) -> int:
        """Return the size of the batches from an offset up to an end, for ``min_bytes``."""
        lasts = self._lasts
        first = bisect_left(lasts, offset)
        end = len(lasts) if end_offset >= self.end_offset else bisect_left(self._bases, end_offset)
        if first >= end:
            return 0
        behind = self._places[end] if end < len(lasts) else self._end_place
        return behind - self._places[first]

    def offset_after(self, size_bytes: int) -> int:
        """Return the log start offset after deleting ``size_bytes`` of the oldest batches."""
        if not self._places:
            return self.end_offset
        index = bisect_left(self._places, self._places[0] + size_bytes)
        return self._bases[index] if index < len(self._bases) else self.end_offset

    def offset_behind(self, offset: int, size_bytes: int) -> int:
        """Return the offset after the batches in ``size_bytes`` from an offset on."""
        index = bisect_left(self._lasts, offset)
        if index == len(self._lasts):
            return self.end_offset
        index = bisect_left(self._places, self._places[index] + size_bytes)
        return self._bases[index] if index < len(self._bases) else self.end_offset

    def first_entry_bytes(self, offset: int, end_offset: int) -> int:
        """Return the size of the batch or message with which a read at an offset begins."""
        for batch in self.batches_from(offset, end_offset):
            if batch.magic == 2:
                return len(batch.data)
            return message_sets.entry_bytes(
                batch.data, message_sets.position_of(batch.data, offset)
            )
        return 0

    def read(self, offset: int, end_offset: int, max_bytes: int, first_whole: bool) -> bytes:
        """Return the result of read_parts() as one bytes object."""
        return b''.join(self.read_parts(offset, end_offset, max_bytes, first_whole))

    def read_parts(
        self, offset: int, end_offset: int, max_bytes: int, first_whole: bool
    ) -> Sequence[Buffer]:
        """Return the bytes from ``offset`` up to ``end_offset``, at most ``max_bytes``.

        They begin with the batch or message that contains the offset, and are cut off at the limit.

        Arguments: first_whole: return the first batch completely, however large it is (KIP-74).
        """
        if first_whole:
            max_bytes = max(max_bytes, self.first_entry_bytes(offset, end_offset))
        first = bisect_left(self._lasts, offset)
        end = bisect_left(self._bases, end_offset)
        if first >= end or max_bytes <= 0:
            return []
        batch = self._batches[first]
        skipped = message_sets.position_of(batch.data, offset) if batch.magic < 2 else 0
        behind = bisect_left(self._places, self._places[first] + skipped + max_bytes, first, end)
        parts: List[Buffer] = [batch.data for batch in self._batches[first:behind]]
        if skipped:
            parts[0] = memoryview(parts[0])[skipped:]
        excess = sum(map(len, parts)) - max_bytes
        if excess > 0:
            parts[-1] = memoryview(parts[-1])[: len(parts[-1]) - excess]
        return parts

    def aborted_between(self, offset: int, end_offset: int) -> List[AbortedTransaction]:
        """Return the aborted transactions with records in a range of offsets."""
        return [
            each
            for each in self.aborted
            if each.last_offset >= offset and each.first_offset < end_offset
        ]

    def end_of_epoch(self, epoch: int) -> Tuple[int, int]:
        """Return the largest epoch not above ``epoch``, and its end offset; -1 and -1 for none."""
        if not self.epochs or epoch < 0 or epoch > self.epochs[-1].epoch:
            return -1, -1
        index = bisect_right([each.epoch for each in self.epochs], epoch) - 1
        if index < 0:
            return epoch, self.epochs[0].start_offset
        if index + 1 < len(self.epochs):
            return self.epochs[index].epoch, self.epochs[index + 1].start_offset
        return self.epochs[index].epoch, self.end_offset

    def epoch_at(self, offset: int) -> int:
        """Return the leader epoch of an offset, -1 if it is unknown."""
        index = bisect_right([each.start_offset for each in self.epochs], offset) - 1
        return self.epochs[index].epoch if index >= 0 else -1

    def batch_of(self, offset: int) -> Optional[Batch]:
        """Return the batch that contains an offset, or the next one; None after the last."""
        index = bisect_left(self._lasts, offset)
        return self._batches[index] if index < len(self._batches) else None


def _moved(batch: Batch, base: int, leader_epoch: int) -> Batch:
    """Return the batch with offsets that begin at ``base``."""
    last = batch.last_offset + base - batch.base_offset
    if batch.magic == 2:
        # 0.11 accepted batches with a wrong last offset delta: the base offset follows from it.
        (distance,) = _DISTANCE(batch.data, _DISTANCE_AT)
        start = _START(last - distance, len(batch.data) - 12, leader_epoch)
        data = b''.join((start, memoryview(batch.data)[16:]))
    else:
        data = message_sets.renumbered(batch.data, base, last)
    return batch._replace(base_offset=base, last_offset=last, data=data)
