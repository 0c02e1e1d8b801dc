"""The journal of a durable embedded cluster: all state except records, by key.

Called by cluster_storage.py; keys and values are those of kept_state.py, kept_offsets.py and
kept_groups.py. A file of lines, each with a checksum, a key and its new value; the last one is
valid. It is only appended to until most of it is outdated: then it is rewritten to another file,
which replaces it.

Each write ends with a line that has its number, counted from 1 on, and its size. A write counts as
a whole or not at all. The next start has

- after a kill: every write that was finished, and nothing of the one after them;
- with fsync, after a power failure: every write that was acknowledged. Any pages of the one after
  them may be on disk: it is cut off. It is recognised as the last one if the file has no end of a
  later write, since a later write begins only after the disk has confirmed the one before;
- a file that is damaged before the end of a later write has lost acknowledged data, or was written
  without fsync before a power failure: it is refused, and not changed.

The first line of a rewritten file marks it as such. It was synced before it replaced the other
file, so its first write is complete unless the file is damaged. Damage in the last of other writes
cannot be distinguished from a power failure during that write.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Tuple

from kafka.testing.logs.segments import (
    FILE_MODE,
    StorageError,
    create_file,
    opened,
    sealed,
    sync_data,
    sync_folder,
)

log = logging.getLogger(__name__)

#: The file is rewritten from this size on, if it is this many times as large as the valid lines.
RENEW_BYTES = 1024 * 1024
RENEW_TIMES = 4

#: The first line of a rewritten file.
_ANEW = {'anew': True}

Key = Tuple[Any, ...]


class Journal:
    """A store of values by key; keys are tuples of JSON values, values are JSON values.

    Arguments: path: of the file, created if it does not exist; fsync: whether write() waits for the
    disk.
    """

    def __init__(self, path: Path, fsync: bool) -> None:
        self.path = path
        self._fsync = fsync
        self._lines: Dict[Key, bytes] = {}  # the valid ones
        self._pending: List[bytes] = []
        self._fd: Optional[int] = None
        self._size = 0
        self._number = 0  # of the last write
        self._live_bytes = 0
        self._renew_at = RENEW_BYTES
        self._is_moved = False  # replaced another file, and the folder is not synced yet

    def __repr__(self) -> str:
        return '<Journal %s, %d keys, %d bytes>' % (self.path, len(self._lines), self._size)

    def open(self) -> Dict[Key, Any]:
        """Read the file, cut off an incomplete last write, and return all values.

        Raises: StorageError if it is damaged elsewhere: it is not changed then; OSError.
        """
        data = self.path.read_bytes() if self.path.exists() else b''
        values = self._read(data.splitlines(keepends=True))
        self._live_bytes = sum(map(len, self._lines.values()))
        self._fd = os.open(str(self.path), os.O_RDWR | os.O_CREAT | os.O_APPEND, FILE_MODE)
        if self._size < len(data):
            log.warning(
                'file=%s: cut off %d bytes, which were not written whole',
                self.path,
                len(data) - self._size,
            )
            os.ftruncate(self._fd, self._size)
        if self._fsync:
            sync_folder(self.path.parent)
        return values

    def _read(self, lines: List[bytes]) -> Dict[Key, Any]:
        """Read complete writes, and return the values. Raises StorageError."""
        values: Dict[Key, Any] = {}
        pending: List[Tuple[List[Any], bytes]] = []
        size = 0  # of the pending lines
        is_anew = bool(lines) and opened(lines[0]) == _ANEW
        for position, line in enumerate(lines):
            found = opened(line)
            if is_anew and not position:
                self._size = len(line)
            elif isinstance(found, list):
                pending.append((found, line))
                size += len(line)
            elif found == _end(self._number + 1, size):
                for change, changed in pending:
                    self._take(values, change, changed)
                pending.clear()
                self._size += size + len(line)
                self._number += 1
                size = 0
            else:
                self._check_torn(lines, position)
                break
        if is_anew and not self._number:
            raise self._broken(1)
        return values

    def _take(self, values: Dict[Key, Any], change: List[Any], line: bytes) -> None:
        key = _tuple(change[0])
        if len(change) > 1:
            values[key], self._lines[key] = change[1], line
        else:
            values.pop(key, None)
            self._lines.pop(key, None)

    def _check_torn(self, lines: List[bytes], position: int) -> None:
        """Check that a damaged line belongs to the last write. Raises StorageError if not.

        What follows it may be left of an earlier attempt at this write, whose number is at most the
        same.
        """
        ends = (opened(line) for line in lines[position:])
        if any(isinstance(end, dict) and end.get('write', 0) > self._number + 1 for end in ends):
            raise self._broken(position)

    def _broken(self, position: int) -> StorageError:
        return StorageError(
            '%s is broken in line %d: restore the file, or begin with another folder'
            % (self.path, position + 1)
        )

    def put(self, key: Key, value: Any) -> None:
        """Set a value; write() writes it. A value that is unchanged is not written again."""
        line = sealed([key, value])
        before = self._lines.get(key)
        if before != line:
            self._lines[key] = line
            self._live_bytes += len(line) - len(before or b'')
            self._pending.append(line)

    def forget(self, key: Key) -> None:
        """Remove a key."""
        before = self._lines.pop(key, None)
        if before is not None:
            self._live_bytes -= len(before)
            self._pending.append(sealed([key]))

    def put_all(self, name: str, values: Dict[Key, Any]) -> None:
        """Set the values of all keys that begin with ``name``; other such keys are removed."""
        for key in [key for key in self._lines if key[0] == name and key not in values]:
            self.forget(key)
        for key, value in values.items():
            self.put(key, value)

    def write(self) -> None:
        """Append the changes to the file. Raises OSError; the next call tries again then."""
        if not self._pending:
            return
        if self._fd is None:  # it could not be opened after a rewrite
            self._fd = os.open(str(self.path), os.O_RDWR | os.O_APPEND)
        data = _ended(self._number + 1, self._pending)
        try:
            if self._is_moved:
                sync_folder(self.path.parent)
                self._is_moved = False
            os.ftruncate(self._fd, self._size)  # a failed write may have left data
            written = os.write(self._fd, data)
            while written < len(data):
                written += os.write(self._fd, memoryview(data)[written:])
            if self._fsync:
                sync_data(self._fd)
        except OSError:
            os.ftruncate(self._fd, self._size)
            raise
        self._pending.clear()
        self._size += len(data)
        self._number += 1
        if self._size > max(self._renew_at, RENEW_TIMES * self._live_bytes):
            self._renew()

    def _renew(self) -> None:
        """Rewrite the file without outdated lines; if that fails, it is kept as it is."""
        fresh = str(self.path) + '.new'
        try:
            self._size = self._put_anew(fresh)
        except OSError as error:
            log.warning('file=%s: is not compacted: %s', self.path, error)
            self._renew_at = 2 * self._size
            if os.path.exists(fresh):
                os.unlink(fresh)
        else:
            self._number = 1
            self._renew_at = RENEW_BYTES
            self._is_moved = True
        if self._fd is None:
            self._fd = os.open(str(self.path), os.O_RDWR | os.O_APPEND)

    def _put_anew(self, fresh: str) -> int:
        """Replace the file by a rewritten one; return its size. Raises OSError."""
        data = sealed(_ANEW) + _ended(1, self._lines.values())
        with create_file(fresh) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        self.close()
        os.replace(fresh, str(self.path))
        return len(data)

    def close(self) -> None:
        """Close the file."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)


def _end(number: int, size: int) -> Dict[str, int]:
    """Return the last line of a write with ``size`` bytes before that line."""
    return {'write': number, 'bytes': size}


def _ended(number: int, lines: Iterable[bytes]) -> bytes:
    """Return the lines of a write with the line that ends it."""
    data = b''.join(lines)
    return data + sealed(_end(number, len(data)))


def _tuple(value: Any) -> Any:
    """Return a key as it was before JSON: with tuples in place of lists."""
    return tuple(map(_tuple, value)) if isinstance(value, list) else value
