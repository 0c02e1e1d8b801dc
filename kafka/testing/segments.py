"""The log of one partition on disk: batches in segment files that outlive the process.

Owns the files of one folder: ``<first offset, 20 digits>.log`` holds batches as they are on the
wire, one behind the other, as Apache Kafka's segments do; ``checkpoint`` says up to where they are
known to be good and where the log begins. A batch that was not written whole is cut off at the next
start, and only there: what lies before the checkpoint is not read again, but for the heads of its
batches. What a batch means is partition_log.py's business, who may open it data_folder.py's.
"""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path
from typing import BinaryIO, Dict, Iterator, List, NamedTuple, Optional, Tuple

from kafka.errors import ChecksumError, ProtocolError
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.legacy_decoder import decode_message

SEGMENT_BYTES = 1 << 30
#: How much may lie behind the checkpoint, and so be checked at the next start.
CHECKPOINT_BYTES = 16 * 1024 * 1024

_HEAD = struct.Struct('>qi')  # offset, size of what follows
_MAGIC_AT = 16
# Of magic 2, from the epoch on: epoch, magic, crc, attributes, last offset delta, two timestamps,
# producer id and epoch, sequence, number of records.
_REST = struct.Struct('>ibIhiqqqhii')
_MAX_TIMESTAMP_OF_1 = struct.Struct('>q')
_CHECKPOINT = 'checkpoint'


class StorageError(Exception):
    """Files that are not what they should be; the text says which, and what is wrong with them."""


class Place(NamedTuple):
    """Where a batch lies: the first offset of its segment, the position there, its size."""

    segment: int
    position: int
    size_bytes: int


class Head(NamedTuple):
    """What the head of a batch says, and where it lies."""

    base_offset: int
    last_offset: int
    max_timestamp: int
    magic: int
    leader_epoch: int
    attributes: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    place: Place


class Segments:
    """The segment files of one partition.

    Arguments: folder: made if it is not there; segment_bytes: how large a segment gets; fsync:
    whether an append is on the disk when it returns.
    """

    def __init__(
        self, folder: Path, segment_bytes: int = SEGMENT_BYTES, fsync: bool = False
    ) -> None:
        self.folder = folder
        self.start_offset = 0
        self._segment_bytes = segment_bytes
        self._fsync = fsync
        self._sizes: Dict[int, int] = {}  # first offset of a segment -> its size, in order
        self._last = -1  # the first offset of the last segment
        self._file: Optional[BinaryIO] = None  # that segment, open for appending
        self._readers: Dict[int, BinaryIO] = {}
        self._unchecked_bytes = 0

    def __repr__(self) -> str:
        return '<Segments %s, %d files>' % (self.folder, len(self._sizes))

    # ------------------------------------------------------------ start

    def recover(self) -> List[Head]:
        """Read what is there, cut off a torn end, and return the heads of all batches in order.

        Raises: StorageError when files are no segments, or broken before their end: nothing is
        changed then.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        names = sorted(path for path in self.folder.iterdir() if path.suffix == '.log')
        self.start_offset, good = self._read_checkpoint()
        heads: List[Head] = []
        for path in names:
            first = _first_offset(path)
            found, end = self._walk(path, first, good.get(first, 0), path is names[-1])
            heads += found
            self._sizes[first] = end
        if names:
            self._cut(names[-1], self._sizes[_first_offset(names[-1])])
            self._last = _first_offset(names[-1])
            self._file = names[-1].open('ab')
        self.checkpoint()
        return heads

    def _walk(self, path: Path, first: int, good: int, is_last: bool) -> Tuple[List[Head], int]:
        """Return the heads of a segment's batches, and where the last whole one ends."""
        size = path.stat().st_size
        if not size:
            return [], 0
        heads: List[Head] = []
        pos = 0
        with path.open('rb') as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            while pos < size:
                head = _head(data, pos, size, first)
                if head is not None and pos >= good and not _is_whole(data, head.place):
                    head = None
                if head is None:
                    if not is_last or pos < good:
                        raise StorageError('%s is broken at byte %d of %d' % (path, pos, size))
                    break
                heads.append(head)
                pos += head.place.size_bytes
        return heads, pos

    def _cut(self, path: Path, end: int) -> None:
        if path.stat().st_size > end:
            with path.open('r+b') as file:
                file.truncate(end)
                os.fsync(file.fileno())

    # ------------------------------------------------------------ writing

    def append(self, data: bytes, base_offset: int) -> Place:
        """Write a batch behind the last one. Raises OSError; the log ends before it then."""
        if self._file is None or self._sizes[self._last] + len(data) > self._segment_bytes:
            self._roll(base_offset)
        assert self._file is not None
        segment = self._last
        position = self._sizes[segment]
        try:
            self._file.write(data)
            self._file.flush()
            if self._fsync:
                os.fsync(self._file.fileno())
        except OSError:
            self._file.truncate(position)
            raise
        self._sizes[segment] += len(data)
        self._unchecked_bytes += len(data)
        if self._unchecked_bytes >= CHECKPOINT_BYTES:
            self.checkpoint()
        return Place(segment, position, len(data))

    def _roll(self, base_offset: int) -> None:
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
        self._file = self._path(base_offset).open('ab')
        self._last = base_offset
        self._sizes[base_offset] = 0
        self.checkpoint()

    def delete_before(self, offset: int, next_of: Dict[int, int]) -> List[int]:
        """Let the log begin at an offset; delete the segments that end before it.

        Arguments: next_of: for each segment the offset behind its last batch.
        Returns: the first offsets of the segments that are gone.
        """
        self.start_offset = max(self.start_offset, offset)
        gone = [
            first
            for first in list(self._sizes)[:-1]
            if next_of.get(first, first) <= self.start_offset
        ]
        self.checkpoint()
        for first in gone:
            reader = self._readers.pop(first, None)
            if reader is not None:
                reader.close()
            self._path(first).unlink()
            del self._sizes[first]
        return gone

    def checkpoint(self) -> None:
        """Bring everything to the disk and note that it is good."""
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
        self._unchecked_bytes = 0
        lines = ['start %d' % self.start_offset]
        lines += ['good %d %d' % segment for segment in self._sizes.items()]
        fresh = self.folder / (_CHECKPOINT + '.new')
        with fresh.open('w') as file:
            file.write('\n'.join(lines) + '\n')
            file.flush()
            os.fsync(file.fileno())
        os.replace(str(fresh), str(self.folder / _CHECKPOINT))

    def _read_checkpoint(self) -> Tuple[int, Dict[int, int]]:
        path = self.folder / _CHECKPOINT
        if not path.exists():
            return 0, {}
        start, good = 0, {}
        try:
            for line in path.read_text().splitlines():
                word, *numbers = line.split()
                if word == 'start':
                    (start,) = map(int, numbers)
                elif word == 'good':
                    first, size = map(int, numbers)
                    good[first] = size
                else:
                    raise ValueError(word)
        except ValueError as error:
            raise StorageError('%s is no checkpoint: %s' % (path, error)) from error
        return start, good

    # ------------------------------------------------------------ reading

    def read(self, place: Place) -> bytes:
        """Return a batch. Raises StorageError if the file does not hold it any more."""
        reader = self._readers.get(place.segment)
        if reader is None:
            reader = self._path(place.segment).open('rb')
            self._readers[place.segment] = reader
        data = os.pread(reader.fileno(), place.size_bytes, place.position)
        if len(data) != place.size_bytes:
            raise StorageError('%s ends inside a batch' % reader.name)
        return data

    def _path(self, first: int) -> Path:
        return self.folder / ('%020d.log' % first)

    def segments(self) -> Iterator[Tuple[int, int]]:
        """Yield first offset and size in bytes of each segment, oldest first."""
        return iter(list(self._sizes.items()))

    def close(self) -> None:
        """Bring everything to the disk and close the files."""
        self.checkpoint()
        if self._file is not None:
            self._file.close()
            self._file = None
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()


def _first_offset(path: Path) -> int:
    if not (path.stem.isdecimal() and len(path.stem) == 20):
        raise StorageError('%s is no segment of a log' % path)
    return int(path.stem)


def _head(data: mmap.mmap, pos: int, size: int, segment: int) -> Optional[Head]:
    """Return the head of the batch at a position, None if it is not there whole."""
    if pos + _MAGIC_AT + 2 > size:
        return None
    offset, length = _HEAD.unpack_from(data, pos)
    whole = _HEAD.size + length
    magic = data[pos + _MAGIC_AT]
    if length < 14 or pos + whole > size or magic > 2:
        return None
    place = Place(segment, pos, whole)
    if magic < 2:
        stamp = _MAX_TIMESTAMP_OF_1.unpack_from(data, pos + 18)[0] if magic else -1
        attributes = data[pos + 17]
        return Head(offset, offset, stamp, magic, -1, attributes, -1, -1, -1, place)
    if whole < _HEAD.size + _REST.size:
        return None
    rest = _REST.unpack_from(data, pos + _HEAD.size)
    epoch, _, _, attributes, delta, _, stamp, producer, producer_epoch, sequence, _ = rest
    last = offset + delta
    ids = producer, producer_epoch, sequence
    return Head(offset, last, stamp, 2, epoch, attributes, *ids, place)


def _is_whole(data: mmap.mmap, place: Place) -> bool:
    """Tell whether a batch is as it was written, by its checksum."""
    batch = data[place.position : place.position + place.size_bytes]
    try:
        if batch[_MAGIC_AT] == 2:
            DefaultRecordBatch(batch).check_crc()
        else:
            decode_message(batch[_HEAD.size :])
    except (ChecksumError, ProtocolError):
        return False
    return True
