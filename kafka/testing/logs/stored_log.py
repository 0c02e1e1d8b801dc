"""The log of one partition in files, with checkpoint and recovery.

Called by cluster_storage.py, which decides when files are synced; segments.py has the names and
contents of the files. On recovery, batches after the checkpoint are read and verified, and an
incomplete batch is cut off; nothing else is read.

Segments are deleted after a checkpoint that does not have them any more, so that a missing file is
damage, never a deletion in progress. If the disk is too full for a checkpoint, the oldest of these
segments are truncated before it, in order, and deleted after it. A kill in between is harmless:
empty segments at the beginning of a checkpoint count as deleted, and cannot have another cause,
since a segment is on disk before the next one begins. The log begins after them then.
"""

from __future__ import annotations

import logging
import struct
from array import array
from bisect import bisect_left, bisect_right
from itertools import accumulate
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple

from kafka.record.default_records import CONTROL_MASK, TRANSACTIONAL_MASK
from kafka.record.memory_records import MemoryRecords
from kafka.record.util import Buffer
from kafka.testing.logs import message_sets, producer_states
from kafka.testing.logs.partition_log import (
    AbortedTransaction,
    Batch,
    EpochStart,
    PartitionLog,
    Segment,
)
from kafka.testing.logs.segments import (
    COLUMNS,
    Head,
    OpenFiles,
    SegmentFiles,
    StorageError,
    head_at,
    sync_folder,
)

log = logging.getLogger(__name__)

#: The cost of a batch at the next start besides its bytes, until a checkpoint covers it.
BATCH_COST = 400

_MARKER_KEY = struct.Struct('>hh')
_MARKER_VALUE = struct.Struct('>hi')
_MAGIC_AT = 16


class StoredLog(PartitionLog):
    """The log of one partition, in files.

    Arguments: folder: of its own; files: the open files of the cluster; fsync: whether acknowledged
    data is synced to disk; on_write: called when data waits for sync() or checkpoint(), with the
    log and the additional cost of the next start.
    """

    def __init__(
        self,
        folder: Path,
        files: OpenFiles,
        fsync: bool,
        on_write: Callable[[StoredLog, int], None],
    ) -> None:
        super().__init__()
        self.producers: producer_states.States = {}
        #: The cost of recovery: what was read, and the next one would have to read.
        self.unchecked = 0
        #: Whether a checkpoint is due ...
        self.needs_checkpoint = False
        #: ... and whether it must be written before responses are sent.
        self.has_new_start = False
        self._files = SegmentFiles(folder, files)
        self._fsync = fsync
        self._on_write = on_write
        self._bases: array[int] = array('q')
        self._lasts: array[int] = array('q')
        self._places: array[int] = array('q')
        self._stamps: array[int] = array('q')
        self._has_old = False  # has batches of magic 0 or 1
        self._has_files = False
        self._indexed: Dict[int, int] = {}  # by segment, the number of batches in its index
        self._unindexed: Set[int] = set()  # closed segments with an incomplete index
        self._unsynced: Set[int] = set()
        self._doomed: List[int] = []  # segments to be deleted after the next checkpoint
        self._failure: Optional[OSError] = None
        self._cleaning: Optional[Tuple[int, int]] = None  # the replaced segment, its new size

    @property
    def folder(self) -> Path:
        """The folder of its files."""
        return self._files.folder

    # ------------------------------------------------------------ writing

    def _keep(self, stored: Batch) -> None:
        """Write a batch. Raises OSError; nothing has changed then."""
        base_offset = self.active.base_offset
        if self._failure is not None:
            raise self._failure
        if not self._has_files:
            self._files.create(base_offset, self._fsync)
            self._has_files = True
        self._files.write(base_offset, self.active_bytes, stored.data)
        self._stamps.append(stored.max_timestamp)
        self._has_old = self._has_old or stored.magic < 2
        self._unsynced.add(base_offset)
        self._on_write(self, len(stored.data) + BATCH_COST)

    def roll(self, now_ms: int) -> None:
        """Begin a new segment, unless the active one is empty. Raises OSError."""
        if self.active.base_offset < self.end_offset:
            if self._has_files:
                self.sync()  # a closed segment must be complete
                self._files.create(self.end_offset, self._fsync)
                self._unindexed.add(self.active.base_offset)
            super().roll(now_ms)
            self._changed()

    def delete_before(self, offset: int) -> None:
        """Move the log start offset; segments that end before it are deleted."""
        self.start_offset = max(self.start_offset, min(offset, self.end_offset))
        before = list(self.segments)
        self._forget_before_start()
        gone = [each.base_offset for each in before[: len(before) - len(self.segments)]]
        self._doomed += gone
        if gone:
            count = bisect_left(self._bases, self.segments[0].base_offset)
            size = sum(map(self._size_of, range(count)))
            for column in (self._bases, self._lasts, self._places, self._stamps):
                del column[:count]
            self.size_bytes -= size
            self._tops = array('q', accumulate(self._stamps, max))
        self.has_new_start = True
        self._changed()

    def replace(self, base_offset: int, batches: List[Batch]) -> None:
        """Replace the batches of a closed segment. Raises OSError."""
        position = self._position_of(base_offset)
        first, end = self._range_of(position)
        data = b''.join(batch.data for batch in batches)
        shift = len(data) - self.segment_bytes(position)
        if batches:
            self._cleaning = base_offset, len(data)
            self.checkpoint()
            self._files.replace(base_offset, data)
        else:
            self._doomed.append(base_offset)
        self._indexed[base_offset] = 0
        self._unindexed.add(base_offset)
        place = self.segments[position].place
        sizes = [len(batch.data) for batch in batches]
        self._places[first:] = array(
            'q',
            [*accumulate([place, *sizes[:-1]])][: len(batches)]
            + [each + shift for each in self._places[end:]],
        )
        self._bases[first:end] = array('q', [batch.base_offset for batch in batches])
        self._lasts[first:end] = array('q', [batch.last_offset for batch in batches])
        self._stamps[first:end] = array('q', [batch.max_timestamp for batch in batches])
        self._tops = array('q', accumulate(self._stamps, max))
        self._move_segments(position, shift, bool(batches))
        self._cleaning = None
        self.checkpoint()

    def _changed(self) -> None:
        self.needs_checkpoint = True
        self._on_write(self, 0)

    # ------------------------------------------------------------ syncing

    def sync(self) -> None:
        """Sync written data to disk.

        Raises OSError. After that every write fails, since it is unknown what is on disk.
        """
        for base_offset in sorted(self._unsynced):
            try:
                self._files.sync(base_offset)
            except OSError as error:
                self._failure = error
                raise
        self._unsynced.clear()

    def checkpoint(self) -> None:
        """Write a checkpoint, so that the next start need not read the log.

        What it covers must be on disk if fsync matters. Raises OSError.
        """
        if not self._has_files and not self.start_offset:
            return
        try:
            self._write_down()
        except OSError:
            if not self._make_room():
                raise
            self._write_down()
        if self._doomed and self._fsync:  # or the files might be gone, but not the old checkpoint
            sync_folder(self.folder)
        for base_offset in self._doomed:
            self._files.remove(base_offset)
            self._indexed.pop(base_offset, None)
            self._unsynced.discard(base_offset)
        self._doomed.clear()

    def _make_room(self) -> bool:
        """Truncate the oldest segments that are to be deleted; return True if there were any."""
        oldest = [each for each in self._doomed if each < self.segments[0].base_offset]
        emptied = [each for each in sorted(oldest) if self._files.size(each) > 0]
        for base_offset in emptied:
            self._files.cut(base_offset, 0)
            if self._fsync:
                self._files.sync(base_offset)
        return bool(emptied)

    def _write_down(self) -> None:
        if not self._has_files:
            self._files.create(self.active.base_offset, self._fsync)
            self._has_files = True
        for base_offset in sorted(self._unsynced & self._unindexed):
            self._files.sync(base_offset)
            self._unsynced.discard(base_offset)
        for base_offset in sorted(self._unindexed | {self.active.base_offset}):
            self._write_index(base_offset)
        self._unindexed.clear()
        self._files.write_checkpoint(self._known(), self._fsync)
        self.needs_checkpoint = False

    def close(self) -> None:
        """Write and sync everything. Raises OSError."""
        if self._has_files:
            self.sync()
            self.checkpoint()
            self._files.close()

    def _write_index(self, base_offset: int) -> None:
        position = next(
            (at for at, each in enumerate(self.segments) if each.base_offset == base_offset), None
        )
        if position is None:
            return  # it is to be deleted
        first, end = self._range_of(position)
        known = self._indexed.get(base_offset, 0)
        if first + known < end or not known:
            place = self.segments[position].place
            numbers = array('q', bytes(8 * COLUMNS * (end - first - known)))
            numbers[0::COLUMNS] = self._bases[first + known : end]
            numbers[1::COLUMNS] = self._lasts[first + known : end]
            numbers[2::COLUMNS] = array(
                'q', [at - place for at in self._places[first + known : end]]
            )
            numbers[3::COLUMNS] = self._stamps[first + known : end]
            self._files.write_index(base_offset, known, numbers, self._fsync)
            self._indexed[base_offset] = end - first

    def _known(self) -> Dict[str, Any]:
        segments = []
        for position, each in enumerate(self.segments):
            first, end = self._range_of(position)
            size = self.segment_bytes(position) if end > first else 0
            times = each.first_timestamp, each.max_timestamp, each.opened_ms, each.modified_ms
            segments.append([each.base_offset, size, end - first, *times])
        return {
            'start': self.start_offset,
            'modified': self.modified_ms,
            'synced': not self._unsynced,
            'old': self._has_old,
            'segments': segments,
            'cleaning': self._cleaning,
            'cleaned': self.cleaned_offset,
            'epochs': self.epochs,
            'aborted': self.aborted,
            'open': list(self.open_transactions.items()),
            'producers': [
                [key, *producer_states.as_numbers(state)] for key, state in self.producers.items()
            ],
        }

    # ------------------------------------------------------------ recovery

    def recover(self) -> None:
        """Load the log from its files, and cut off an incomplete last batch.

        Raises: StorageError if files are missing, unknown, or damaged elsewhere than at the end:
            nothing is changed then; OSError.
        """
        found = self._files.found()
        known = self._files.read_checkpoint()
        if known is None and not found:
            return
        self._files.remove_leftovers()
        self._has_files = True
        if known is None:
            if self._files.has_checkpoint:  # otherwise none has been written yet
                log.warning('folder=%s has no whole checkpoint: all of it is read', self.folder)
            known = {'segments': []}
        rows = known['segments']
        while len(rows) > 1 and rows[0][1] and not self._files.size(rows[0][0]):
            del rows[0]  # truncated to make room
            known['start'] = max(known['start'], rows[0][0])
        bases = [row[0] for row in rows]
        for base_offset in found:
            if bases and base_offset < bases[0]:
                self._files.remove(base_offset)  # it was to be deleted
        later = [each for each in found if not bases or each > bases[-1]]
        self.segments = []
        for row in rows:
            self._load_segment(row, known, is_last=row is rows[-1])
        self._load_rest(known)
        if rows:
            self._read_tail(bases[-1], rows[-1][1], is_last=not later)
        for base_offset in later:
            self._add_segment(base_offset, known.get('modified', 1))
            self._read_tail(base_offset, 0, is_last=base_offset == later[-1])
        self._tops = array('q', accumulate(self._stamps, max))
        self.size_bytes = self._end_place
        self.start_offset = min(self.start_offset, self.end_offset)

    def _add_segment(self, base_offset: int, now_ms: int) -> Segment:
        self.active = Segment(base_offset, self._end_place, now_ms)
        self.segments.append(self.active)
        self.end_offset = max(self.end_offset, base_offset)
        if len(self.segments) > 1:
            self._unindexed.add(self.segments[-2].base_offset)
        return self.active

    def _load_segment(self, row: List[int], known: Dict[str, Any], is_last: bool) -> None:
        """Load a segment from checkpoint and index."""
        base_offset, size, count, *times = row
        segment = self._add_segment(base_offset, 1)
        segment.first_timestamp, segment.max_timestamp = times[:2]
        segment.opened_ms, segment.modified_ms = times[2:]
        there = self._files.size(base_offset)
        path = self._files.path(base_offset)
        cleaned = known.get('cleaning') == [base_offset, there] and there != size
        is_short = there < size and (not is_last or known.get('synced') or there < 0)
        if not cleaned and (is_short or (there > size and not is_last)):
            raise StorageError(
                '%s has %d bytes and should have %d: restore it, or remove the folder %s and lose'
                ' the records of this partition' % (path, there, size, self.folder)
            )
        numbers = None if cleaned or there < size else self._files.read_index(base_offset, count)
        if numbers is None:
            log.warning('file=%s has no whole index: it is read', path)
            self._walk(base_offset, 0, is_last, min(there, size) if not cleaned else there)
            row[1] = self._end_place - segment.place
            return
        self._bases += numbers[0::COLUMNS]
        self._lasts += numbers[1::COLUMNS]
        self._stamps += numbers[3::COLUMNS]
        positions = numbers[2::COLUMNS]
        if segment.place:
            positions = array('q', map(segment.place.__add__, positions))
        self._places += positions
        self._indexed[base_offset] = count
        self._end_place += size
        if count:
            self.end_offset = self._lasts[-1] + 1

    def _load_rest(self, known: Dict[str, Any]) -> None:
        self.start_offset = known.get('start', self.segments[0].base_offset if self.segments else 0)
        self.modified_ms = known.get('modified', 1)
        self._has_old = known.get('old', False)
        self.cleaned_offset = known.get('cleaned', 0)
        self.epochs = [EpochStart(*each) for each in known.get('epochs', ())]
        self.aborted = [AbortedTransaction(*each) for each in known.get('aborted', ())]
        self.open_transactions = dict(known.get('open', ()))
        for key, *numbers in known.get('producers', ()):
            self.producers[key] = producer_states.of_numbers(numbers)

    def _walk(self, base_offset: int, position: int, checked: bool, size: int) -> List[Head]:
        """Load the batches of a segment from a position on by their headers."""
        heads = []
        for head in self._files.heads(base_offset, position, self.end_offset, checked):
            if head.position + head.size_bytes > size:
                break
            self._take(head)
            heads.append(head)
        return heads

    def _read_tail(self, base_offset: int, position: int, is_last: bool) -> None:
        """Load batches after the checkpoint, and cut off an incomplete one."""
        size = self._files.size(base_offset)
        path = self._files.path(base_offset)
        place = self._end_place
        for head in self._walk(base_offset, position, is_last, size):
            self._replay(head, base_offset)
        end = position + self._end_place - place
        if end == size:
            return
        if not is_last:
            raise StorageError(
                '%s is broken at byte %d of %d: restore it, or remove the folder %s and lose the'
                ' records of this partition' % (path, end, size, self.folder)
            )
        log.warning(
            'file=%s: cut off %d bytes after offset %d, which were not written whole',
            path,
            size - end,
            self.end_offset,
        )
        self._files.cut(base_offset, end)
        self._unsynced.add(base_offset)

    def _take(self, head: Head) -> None:
        self._bases.append(head.base_offset)
        self._lasts.append(head.last_offset)
        self._stamps.append(head.max_timestamp)
        self._places.append(self._end_place)
        self._end_place += head.size_bytes
        self.end_offset = head.last_offset + 1
        self._has_old = self._has_old or head.magic < 2
        segment = self.active
        if head.max_timestamp > segment.max_timestamp:
            segment.max_timestamp = head.max_timestamp
            if segment.first_timestamp < 0:
                segment.first_timestamp = head.max_timestamp
        self.unchecked += head.size_bytes + BATCH_COST

    def _replay(self, head: Head, base_offset: int) -> None:
        """Repeat the effects of an append on epochs, producer states and transactions."""
        self.modified_ms = max(self.modified_ms, head.max_timestamp)
        if head.magic == 2 and (not self.epochs or self.epochs[-1].epoch < head.leader_epoch):
            self.epochs.append(EpochStart(head.leader_epoch, head.base_offset))
        if head.producer_id < 0:
            return
        batch = _batch(head, b'')
        if not batch.is_control:
            producer_states.remember(self.producers, batch, head.base_offset, head.max_timestamp)
            if batch.is_transactional:
                self.open_transactions.setdefault(batch.producer_id, head.base_offset)
            return
        data = self._files.read(base_offset, head.position, head.size_bytes)
        for record in next(iter(MemoryRecords(data))):
            commit = _MARKER_KEY.unpack_from(record.key or b'\0\0\0\0')[1] == 1
            value = record.value or b''
            coordinator_epoch = _MARKER_VALUE.unpack(value)[1] if len(value) == 6 else 0
            self._note_end(batch.producer_id, head.base_offset, commit)
            producer_states.remember_marker(
                self.producers,
                batch.producer_id,
                batch.producer_epoch,
                coordinator_epoch,
                head.max_timestamp,
            )

    # ------------------------------------------------------------ reading

    @property
    def batches(self) -> List[Batch]:
        """All batches, oldest first."""
        return [self._batch_at(index) for index in range(len(self._bases))]

    def batches_of(self, position: int) -> List[Batch]:
        """Return the batches of a segment, by its position."""
        return [self._batch_at(index) for index in range(*self._range_of(position))]

    def batches_from(self, offset: int, end_offset: int) -> Iterator[Batch]:
        """Yield the batches from the one that contains ``offset`` on, up to ``end_offset``."""
        index = bisect_left(self._lasts, offset)
        while index < len(self._bases) and self._bases[index] < end_offset:
            yield self._batch_at(index)
            index += 1

    def batches_at(self, timestamp: int) -> Iterator[Batch]:
        """Yield the batches whose largest timestamp reaches ``timestamp``, oldest first."""
        for index in range(bisect_left(self._tops, timestamp), len(self._bases)):
            if self._stamps[index] >= timestamp:
                yield self._batch_at(index)

    def batch_of(self, offset: int) -> Optional[Batch]:
        """Return the batch that contains an offset, or the next one; None after the last."""
        index = bisect_left(self._lasts, offset)
        return self._batch_at(index) if index < len(self._bases) else None

    def first_entry_bytes(self, offset: int, end_offset: int) -> int:
        """Return the size of the batch or message with which a read at an offset begins."""
        if self._has_old:
            return super().first_entry_bytes(offset, end_offset)
        index = bisect_left(self._lasts, offset)
        if index == len(self._bases) or self._bases[index] >= end_offset:
            return 0
        return self._size_of(index)

    def read_parts(
        self, offset: int, end_offset: int, max_bytes: int, first_whole: bool
    ) -> Sequence[Buffer]:
        """Return the bytes from an offset up to an end, as PartitionLog.read_parts() does.

        Raises: StorageError if a file cannot be read.
        """
        if first_whole:
            max_bytes = max(max_bytes, self.first_entry_bytes(offset, end_offset))
        first = bisect_left(self._lasts, offset)
        end = bisect_left(self._bases, end_offset)
        if first >= end or max_bytes <= 0:
            return []
        start = self._places[first]
        behind = self._places[end] if end < len(self._places) else self._end_place
        if self._has_old:
            batch = self._batch_at(first)
            if batch.magic < 2:
                start += message_sets.position_of(batch.data, offset)
        return [self._span(start, min(max_bytes, behind - start))]

    def _size_of(self, index: int) -> int:
        last = index + 1 == len(self._places)
        return (self._end_place if last else self._places[index + 1]) - self._places[index]

    def _batch_at(self, index: int) -> Batch:
        data = self._span(self._places[index], self._size_of(index))
        last = self._bases[index] - 1
        head = head_at(data, 0, len(data), last)
        if head is None:
            raise StorageError('%s: no batch at offset %d' % (self.folder, last + 1))
        # A sequence of plain messages is one batch; its first message has the base offset only.
        return _batch(head, data)._replace(
            base_offset=self._bases[index],
            last_offset=self._lasts[index],
            max_timestamp=self._stamps[index],
        )

    def _span(self, place: int, size: int) -> bytes:
        """Return bytes of the log, which may be in several segments."""
        starts = [segment.place for segment in self.segments]
        at = bisect_right(starts, place) - 1
        parts = []
        while size > 0:
            end = starts[at + 1] if at + 1 < len(starts) else self._end_place
            here = min(size, end - place)
            parts.append(self._files.read(self.segments[at].base_offset, place - starts[at], here))
            place += here
            size -= here
            at += 1
        return parts[0] if len(parts) == 1 else b''.join(parts)


def _batch(head: Head, data: bytes) -> Batch:
    is_new = head.magic == 2
    return Batch(
        base_offset=head.base_offset,
        last_offset=head.last_offset,
        max_timestamp=head.max_timestamp,
        magic=head.magic,
        data=data,
        producer_id=head.producer_id,
        producer_epoch=head.producer_epoch,
        base_sequence=head.base_sequence,
        is_transactional=is_new and bool(head.attributes & TRANSACTIONAL_MASK),
        is_control=is_new and bool(head.attributes & CONTROL_MASK),
    )
