"""The files of the log of one partition: batches on the disk, and where they lie.

Owns the files of one folder. ``<first offset, 20 digits>.log`` holds the batches of a segment as
they are on the wire, one behind the other, as Apache Kafka's segments do; ``.index`` beside it says
of each batch which offsets it has, where it begins and how young it is, so that nobody has to walk
through the batches; ``checkpoint`` says up to where both are known to be good. What is in the
checkpoint is stored_log.py's business, who may open the folder data_folder.py's.
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

#: How many files of logs are open at once.
MOST_OPEN = 200

#: Numbers of one batch in an index: first and last offset, position, largest timestamp.
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
#: Records and the journal may hold secrets: nobody but the owner reads them.
FILE_MODE, FOLDER_MODE = 0o600, 0o700


class StorageError(Exception):
    """Files that are not what they should be; the text says which, what is wrong and what helps."""


class Head(NamedTuple):
    """What the head of a batch says, and where in its segment it lies."""

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
    """Files that are open for reading and appending; beyond a number those not used go."""

    def __init__(self, most: int = MOST_OPEN) -> None:
        self._most = most
        self._open: OrderedDict[str, int] = OrderedDict()
        self._is_abandoned = False

    def __repr__(self) -> str:
        return '<OpenFiles, %d>' % len(self._open)

    def get(self, path: str) -> int:
        """Return the descriptor of a file, made if it is not there. Raises OSError."""
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
        """Close those of a folder."""
        prefix = os.path.join(str(folder), '')
        for path in [path for path in self._open if path.startswith(prefix)]:
            self.close(path)

    def close_all(self) -> None:
        """Close all."""
        for path in list(self._open):
            self.close(path)

    def abandon(self) -> None:
        """Close all, and open none any more: this is the child of the process that they are for."""
        self.close_all()
        self._is_abandoned = True


class SegmentFiles:
    """The files of one partition. All but what says otherwise raises OSError.

    Arguments: folder: made when the first segment is; files: those of the cluster that are open.
    """

    def __init__(self, folder: Path, files: OpenFiles) -> None:
        self.folder = folder
        self._prefix = os.path.join(str(folder), '')
        self._files = files
        self._torn: Dict[int, int] = {}  # segments whose last write failed, and where they end

    def __repr__(self) -> str:
        return '<SegmentFiles %s>' % self.folder

    def path(self, base_offset: int, suffix: str = '.log') -> str:
        """Return the name of a file of a segment."""
        return '%s%020d%s' % (self._prefix, base_offset, suffix)

    # ------------------------------------------------------------ segments

    def found(self) -> List[int]:
        """Return where segments begin, in order. Raises StorageError for other files."""
        if not self.folder.is_dir():
            return []
        names = sorted(path for path in self.folder.iterdir() if path.suffix == '.log')
        for path in names:
            if not (path.stem.isdecimal() and len(path.stem) == 20):
                raise StorageError('%s is no segment of a log: move it elsewhere' % path)
        return [int(path.stem) for path in names]

    def size(self, base_offset: int) -> int:
        """Return how large a segment is, -1 if it is not there."""
        try:
            return os.stat(self.path(base_offset)).st_size
        except FileNotFoundError:
            return -1

    def create(self, base_offset: int, fsync: bool) -> None:
        """Make an empty segment; one that is there is emptied."""
        is_new = not self.folder.is_dir()
        if is_new:
            create_folder(self.folder)
        os.ftruncate(self._files.get(self.path(base_offset)), 0)
        if fsync:
            sync_folder(self.folder)
            for above in list(self.folder.parents)[:2] if is_new else ():
                sync_folder(above)

    def write(self, base_offset: int, position: int, data: bytes) -> None:
        """Write behind what is there; if that fails, nothing was written."""
        fd = self._files.get(self.path(base_offset))
        if self._torn:
            for torn, end in list(self._torn.items()):
                self.cut(torn, end)
        try:
            written = os.write(fd, data)
            while written < len(data):  # the rest tells what is wrong
                written += os.write(fd, memoryview(data)[written:])
        except OSError:
            self._torn[base_offset] = position
            self.cut(base_offset, position)
            raise

    def cut(self, base_offset: int, size: int) -> None:
        """Cut off the end of a segment."""
        os.ftruncate(self._files.get(self.path(base_offset)), size)
        self._torn.pop(base_offset, None)

    def sync(self, base_offset: int) -> None:
        """Bring a segment to the disk."""
        sync_data(self._files.get(self.path(base_offset)))

    def read(self, base_offset: int, position: int, size_bytes: int) -> bytes:
        """Return bytes of a segment. Raises StorageError if it does not hold them any more."""
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
        """Put other batches into a segment, all or nothing. Its index is not good any more."""
        path, fresh = self.path(base_offset), self.path(base_offset, '.cleaned')
        with create_file(fresh) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        for each in (path, self.path(base_offset, '.index')):
            self._files.close(each)
        os.replace(fresh, path)

    def remove_leftovers(self) -> None:
        """Delete what a process left that was killed while it wrote a file anew."""
        if self.folder.is_dir():
            for path in self.folder.iterdir():
                if path.suffix in ('.cleaned', '.new'):
                    path.unlink()

    def heads(
        self, base_offset: int, position: int, next_offset: int, checked: bool
    ) -> Iterator[Head]:
        """Yield the heads of the batches from a position on, up to the first that is not whole.

        Arguments: next_offset: the first that may be there; checked: whether checksums decide too.
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
        """Write the numbers of batches behind those of so many that are in the index already.

        A checkpoint that is on the disk believes them, so they must be too: an index of before a
        compaction may be as long.
        """
        fd = self._files.get(self.path(base_offset, '.index'))
        os.ftruncate(fd, known * COLUMNS * 8)
        data = _little(numbers).tobytes()
        if os.write(fd, data) != len(data):
            raise OSError('%s could not be written whole' % self.path(base_offset, '.index'))
        if fsync:
            sync_data(fd)

    def read_index(self, base_offset: int, count: int) -> Optional[array[int]]:
        """Return the numbers of the first batches of a segment, None if they are not there."""
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
        """Write down what is known of the log, all or nothing."""
        fresh = self._prefix + _CHECKPOINT + '.new'
        with create_file(fresh) as file:
            file.write(sealed(known))
            if fsync:
                file.flush()
                os.fsync(file.fileno())
        os.replace(fresh, self._prefix + _CHECKPOINT)

    @property
    def has_checkpoint(self) -> bool:
        """Whether there is a checkpoint, be it a broken one."""
        return os.path.exists(self._prefix + _CHECKPOINT)

    def read_checkpoint(self) -> Any:
        """Return what was written down, None if that is not there or not whole."""
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
    """Return the value of such a line, None if it is not whole."""
    if len(line) < 10 or line[-1:] != b'\n' or line[8:9] != b' ':
        return None
    text = line[9:-1]
    if line[:8] != b'%08x' % crc32(text):
        return None
    return json.loads(text)


# ---------------------------------------------------------------- the disk


def create_file(path: str) -> BinaryIO:
    """Return a new file to write to, which only its owner can read. Raises OSError."""
    fd = os.open(path, _FRESH_FLAGS, FILE_MODE)
    os.chmod(path, FILE_MODE)  # somebody may have left one that others can read
    return os.fdopen(fd, 'wb')


def create_folder(path: Path) -> List[Path]:
    """Make a folder that only its owner can enter, and those above it; return what was made.

    One that is there stays as it is. Raises OSError.
    """
    made = []
    for each in [*reversed(path.parents), path]:
        if not each.is_dir():
            each.mkdir(mode=FOLDER_MODE, exist_ok=True)
            made.append(each)
    return made


def sync_data(fd: int) -> None:
    """Bring the bytes of a file to the disk."""
    getattr(os, 'fdatasync', os.fsync)(fd)


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk, where the system has that."""
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
    """Return numbers as they lie in files, or back."""
    if sys.byteorder == 'big':
        numbers = numbers[:]
        numbers.byteswap()
    return numbers


# ---------------------------------------------------------------- batches


def head_at(data: Any, position: int, size: int, last: int = -1) -> Optional[Head]:
    """Return the head of the batch at a position, None if it is not there whole.

    Arguments: size: of the data; last: the offset before the batch, as wrappers of magic 0 and 1
        only say which is their own last one.
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
    """Tell whether a batch is as it was written, by its checksum."""
    batch = data[head.position : head.position + head.size_bytes]
    try:
        if head.magic == 2:
            DefaultRecordBatch(batch).check_crc()
        else:
            decode_message(batch[_HEAD.size :])
    except (ChecksumError, ProtocolError):
        return False
    return True
