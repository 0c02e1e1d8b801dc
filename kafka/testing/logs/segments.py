"""The segment files of one partition's log, and functions for files and batches in them.

Called by stored_log.py. ``<first offset, 20 digits>.log`` has the batches of a segment, encoded one
after another, as in Apache Kafka; ``.index`` has the offsets, position and timestamp of each
batch, so that the batches need not be read; ``checkpoint`` has the state up to which both are known
to be valid. stored_log.py defines the contents of the checkpoint; data_folder.py locks the folder.
"""

from __future__ import annotations

import errno
import json
import mmap
import os
import struct
import sys
from array import array
from collections import OrderedDict
from pathlib import Path
from typing import Any, BinaryIO, Dict, Iterator, List, NamedTuple, Optional
from zlib import crc32

from kafka.errors import ChecksumError, ProtocolError
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.legacy_decoder import decode_message

#: The limit of open log files.
MOST_OPEN = 200

#: Numbers of each batch in an index: first and last offset, position, largest timestamp.
COLUMNS = 4

_HEAD = struct.Struct('>qi')  # offset, size of what follows it
_MAGIC_AT = 16
# Of magic 2, from the epoch on: epoch, magic, crc, attributes, last offset delta, two timestamps,
# producer id and epoch, sequence, number of records.
_REST = struct.Struct('>ibIhiqqqhii')
_STAMP = struct.Struct('>q')
_LEAST_OF_2 = _HEAD.size + _REST.size
_CODEC_MASK = 0x07
_CHECKPOINT = 'checkpoint'
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, 'O_BINARY', 0)
_FRESH_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, 'O_BINARY', 0)
#: Only the owner can read the files: records and the journal may contain secrets.
FILE_MODE, FOLDER_MODE = 0o600, 0o700


class StorageError(Exception):
    """Files that are invalid or cannot be written; the message says which, why and what helps."""


class Head(NamedTuple):
    """The header of a batch, and its position in the segment."""

    base_offset: int
    last_offset: int
    max_timestamp: int
    magic: int
    leader_epoch: int
    attributes: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    position: int
    size_bytes: int


class OpenFiles:
    """Open files for reading and appending; above the limit the least recently used are closed."""

    def __init__(self, most: int = MOST_OPEN) -> None:
        self._most = most
        self._open: OrderedDict[str, int] = OrderedDict()
        self._is_abandoned = False

    def __repr__(self) -> str:
        return '<OpenFiles, %d>' % len(self._open)

    def get(self, path: str) -> int:
        """Return the descriptor of a file, created if it does not exist. Raises OSError."""
        found = self._open.get(path)
        if found is not None:
            self._open.move_to_end(path)
            return found
        if self._is_abandoned:
            raise OSError(errno.EBADF, 'it belongs to the process that has forked this one', path)
        while len(self._open) >= self._most:
            os.close(self._open.popitem(last=False)[1])
        made = self._open[path] = os.open(path, _FLAGS, FILE_MODE)
        return made

    def close(self, path: str) -> None:
        """Close a file if it is open."""
        found = self._open.pop(path, None)
        if found is not None:
            os.close(found)

    def close_in(self, folder: Path) -> None:
        """Close the files of a folder."""
        prefix = os.path.join(str(folder), '')
        for path in [path for path in self._open if path.startswith(prefix)]:
            self.close(path)

    def close_all(self) -> None:
        """Close all files."""
        for path in list(self._open):
            self.close(path)

    def abandon(self) -> None:
        """Close all files and open none any more: this process is a forked child."""
        self.close_all()
        self._is_abandoned = True


class SegmentFiles:
    """The files of one partition. All methods raise OSError unless they say otherwise.

    Arguments: folder: created with the first segment; files: the open files of the cluster.
    """

    def __init__(self, folder: Path, files: OpenFiles) -> None:
        self.folder = folder
        self._prefix = os.path.join(str(folder), '')
        self._files = files
        self._torn: Dict[int, int] = {}  # by segment whose last write failed, its valid size

    def __repr__(self) -> str:
        return '<SegmentFiles %s>' % self.folder

    def path(self, base_offset: int, suffix: str = '.log') -> str:
        """Return the path of a file of a segment."""
        return '%s%020d%s' % (self._prefix, base_offset, suffix)

    # ------------------------------------------------------------ segments

    def found(self) -> List[int]:
        """Return the base offsets of segments, sorted. Raises StorageError for other files."""
        if not self.folder.is_dir():
            return []
        names = sorted(path for path in self.folder.iterdir() if path.suffix == '.log')
        for path in names:
            if not (path.stem.isdecimal() and len(path.stem) == 20):
                raise StorageError('%s is not a segment of a log: move it elsewhere' % path)
        return [int(path.stem) for path in names]

    def size(self, base_offset: int) -> int:
        """Return the size of a segment, -1 if it does not exist."""
        try:
            return os.stat(self.path(base_offset)).st_size
        except FileNotFoundError:
            return -1

    def create(self, base_offset: int, fsync: bool) -> None:
        """Create an empty segment; an existing one is truncated."""
        is_new = not self.folder.is_dir()
        if is_new:
            create_folder(self.folder)
        os.ftruncate(self._files.get(self.path(base_offset)), 0)
        if fsync:
            sync_folder(self.folder)
            for above in list(self.folder.parents)[:2] if is_new else ():
                sync_folder(above)

    def write(self, base_offset: int, position: int, data: bytes) -> None:
        """Append data at the end of a segment; if that fails, the segment is unchanged."""
        fd = self._files.get(self.path(base_offset))
        if self._torn:
            for torn, end in list(self._torn.items()):
                self.cut(torn, end)
        try:
            written = os.write(fd, data)
            while written < len(data):  # the next call raises what is wrong
                written += os.write(fd, memoryview(data)[written:])
        except OSError:
            self._torn[base_offset] = position
            self.cut(base_offset, position)
            raise

    def cut(self, base_offset: int, size: int) -> None:
        """Truncate a segment."""
        os.ftruncate(self._files.get(self.path(base_offset)), size)
        self._torn.pop(base_offset, None)

    def sync(self, base_offset: int) -> None:
        """Sync a segment to disk."""
        sync_data(self._files.get(self.path(base_offset)))

    def read(self, base_offset: int, position: int, size_bytes: int) -> bytes:
        """Return bytes of a segment. Raises StorageError if they cannot be read."""
        try:
            fd = self._files.get(self.path(base_offset))
            data = _read_at(fd, size_bytes, position)
        except OSError as error:
            raise StorageError('%s: %s' % (self.path(base_offset), error)) from error
        if len(data) != size_bytes:
            raise StorageError('%s ends inside a batch' % self.path(base_offset))
        return data

    def remove(self, base_offset: int) -> None:
        """Delete a segment and its index."""
        for suffix in ('.log', '.index'):
            path = self.path(base_offset, suffix)
            self._files.close(path)
            if os.path.exists(path):
                os.unlink(path)

    def replace(self, base_offset: int, data: bytes) -> None:
        """Replace the batches of a segment atomically. Its index is invalid then."""
        path, fresh = self.path(base_offset), self.path(base_offset, '.cleaned')
        with create_file(fresh) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        for each in (path, self.path(base_offset, '.index')):
            self._files.close(each)
        os.replace(fresh, path)

    def remove_leftovers(self) -> None:
        """Delete the temporary files of a process that was killed."""
        if self.folder.is_dir():
            for path in self.folder.iterdir():
                if path.suffix in ('.cleaned', '.new'):
                    path.unlink()

    def heads(
        self, base_offset: int, position: int, next_offset: int, checked: bool
    ) -> Iterator[Head]:
        """Yield the headers of the batches from a position on, up to the first incomplete one.

        Arguments: next_offset: the first possible offset; checked: whether checksums are verified.
        """
        path = self.path(base_offset)
        size = os.stat(path).st_size
        if position >= size:
            return
        with open(path, 'rb') as file:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                last = next_offset - 1
                while position < size:
                    head = head_at(data, position, size, last)
                    if head is None or (checked and not _is_whole(data, head)):
                        return
                    yield head
                    last = head.last_offset
                    position += head.size_bytes

    # ------------------------------------------------------------ indexes

    def write_index(self, base_offset: int, known: int, numbers: array[int], fsync: bool) -> None:
        """Write the numbers of batches to an index, after those of ``known`` batches.

        With fsync, since a synced checkpoint relies on the index: one from before a compaction may
        have the same length.
        """
        fd = self._files.get(self.path(base_offset, '.index'))
        os.ftruncate(fd, known * COLUMNS * 8)
        data = _little(numbers).tobytes()
        if os.write(fd, data) != len(data):
            raise OSError('%s could not be written whole' % self.path(base_offset, '.index'))
        if fsync:
            sync_data(fd)

    def read_index(self, base_offset: int, count: int) -> Optional[array[int]]:
        """Return the numbers of the first ``count`` batches of a segment, None if incomplete."""
        try:
            with open(self.path(base_offset, '.index'), 'rb') as file:
                data = file.read(count * COLUMNS * 8)
        except FileNotFoundError:
            return None
        if len(data) != count * COLUMNS * 8:
            return None
        numbers = array('q')
        numbers.frombytes(data)
        return _little(numbers)

    # ------------------------------------------------------------ checkpoint

    def write_checkpoint(self, known: Any, fsync: bool) -> None:
        """Write the checkpoint atomically."""
        fresh = self._prefix + _CHECKPOINT + '.new'
        with create_file(fresh) as file:
            file.write(sealed(known))
            if fsync:
                file.flush()
                os.fsync(file.fileno())
        os.replace(fresh, self._prefix + _CHECKPOINT)

    @property
    def has_checkpoint(self) -> bool:
        """Whether there is a checkpoint, valid or not."""
        return os.path.exists(self._prefix + _CHECKPOINT)

    def read_checkpoint(self) -> Any:
        """Return the contents of the checkpoint, None if it is missing or damaged."""
        try:
            with open(self._prefix + _CHECKPOINT, 'rb') as file:
                return opened(file.read())
        except FileNotFoundError:
            return None

    def close(self) -> None:
        """Close the files of the partition."""
        for base_offset in self.found():
            for suffix in ('.log', '.index'):
                self._files.close(self.path(base_offset, suffix))


# ---------------------------------------------------------------- lines with a checksum


def sealed(value: Any) -> bytes:
    """Return a value as one line of text, with a checksum before it."""
    text = json.dumps(value, separators=(',', ':')).encode('ascii')
    return b'%08x %b\n' % (crc32(text), text)


def opened(line: bytes) -> Any:
    """Return the value of such a line, None if it is damaged."""
    if len(line) < 10 or line[-1:] != b'\n' or line[8:9] != b' ':
        return None
    text = line[9:-1]
    if line[:8] != b'%08x' % crc32(text):
        return None
    return json.loads(text)


# ---------------------------------------------------------------- files


def create_file(path: str) -> BinaryIO:
    """Return a new file for writing that only its owner can read. Raises OSError."""
    fd = os.open(path, _FRESH_FLAGS, FILE_MODE)
    os.chmod(path, FILE_MODE)  # an existing file may have another mode
    return os.fdopen(fd, 'wb')


def create_folder(path: Path) -> List[Path]:
    """Create a folder with mode 0700, and its parents; return those that were created.

    An existing one is not changed. Raises OSError.
    """
    made = []
    for each in [*reversed(path.parents), path]:
        if not each.is_dir():
            each.mkdir(mode=FOLDER_MODE, exist_ok=True)
            made.append(each)
    return made


def sync_data(fd: int) -> None:
    """Sync the contents of a file to disk."""
    getattr(os, 'fdatasync', os.fsync)(fd)


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder to disk, if the operating system supports it."""
    if os.name == 'posix':
        fd = os.open(str(folder), os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _read_at(fd: int, size_bytes: int, position: int) -> bytes:
    if hasattr(os, 'pread'):
        return os.pread(fd, size_bytes, position)
    os.lseek(fd, position, os.SEEK_SET)
    return os.read(fd, size_bytes)


def _little(numbers: array[int]) -> array[int]:
    """Convert numbers between the byte order of the machine and that of files."""
    if sys.byteorder == 'big':
        numbers = numbers[:]
        numbers.byteswap()
    return numbers


# ---------------------------------------------------------------- batches


def head_at(data: Any, position: int, size: int, last: int = -1) -> Optional[Head]:
    """Return the header of the batch at a position, None if the batch is incomplete.

    Arguments: size: of the data; last: the offset before the batch, since wrappers of magic 0 and
        1 have their own last offset only.
    """
    if position + _MAGIC_AT + 2 > size:
        return None
    offset, length = _HEAD.unpack_from(data, position)
    whole = _HEAD.size + length
    magic = data[position + _MAGIC_AT]
    if length < 14 or position + whole > size or magic > 2 or offset < 0:
        return None
    if magic < 2:
        stamp = _STAMP.unpack_from(data, position + 18)[0] if magic else -1
        attributes = data[position + 17]
        first = last + 1 if attributes & _CODEC_MASK else offset
        return Head(first, offset, stamp, magic, -1, attributes, -1, -1, -1, position, whole)
    if whole < _LEAST_OF_2:
        return None
    rest = _REST.unpack_from(data, position + _HEAD.size)
    epoch, _, _, attributes, delta, _, stamp, producer, producer_epoch, sequence, _ = rest
    ids = producer, producer_epoch, sequence
    return Head(offset, offset + delta, stamp, 2, epoch, attributes, *ids, position, whole)


def _is_whole(data: mmap.mmap, head: Head) -> bool:
    """Return True if the checksum of a batch is right."""
    batch = data[head.position : head.position + head.size_bytes]
    try:
        if head.magic == 2:
            DefaultRecordBatch(batch).check_crc()
        else:
            decode_message(batch[_HEAD.size :])
    except (ChecksumError, ProtocolError):
        return False
    return True
