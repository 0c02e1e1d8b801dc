"""The journal in which an embedded cluster writes down what it knows besides its logs.

Owns one file of lines, each with a checksum, a key and the value that it has from now on; the last
one counts. It grows at its end only, until most of it is old: then it is written anew beside and
put in its place. What keys and values mean is kept_state.py's and kept_groups.py's business.

What is written at once ends in a line with its number, counted from 1 on, and its size. It counts
as a whole or not at all: what is guaranteed at the next start is

- after a kill: everything up to the last write that was finished, and nothing of the one after it;
- with fsync after a power cut: everything up to the last write that was acknowledged. The one after
  it may be on the disk in part, in whichever of its pages: it is cut off. It is known for the last
  one by this, that no end of a later write is in the file: a later one begins when the disk has
  confirmed the one before;
- a file in which something is broken before the end of a later write lost what was acknowledged, or
  was of a journal without fsync when the power went: it is refused, and nothing is changed.

A file that was written anew says so in its first line. It was on the disk before it was put in its
place, so its first write is whole, or was damaged. Damage to the very last of other writes cannot
be told from a power cut in the middle of it.
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

#: It is written anew when it is so large, and so many times what is still true.
RENEW_BYTES = 1024 * 1024
RENEW_TIMES = 4

#: The first line of a file that was written anew.
_ANEW = {'anew': True}

Key = Tuple[Any, ...]


class Journal:
    """What is known, by key; keys are tuples of what JSON has, values anything that it has.

    Arguments: path: of the file, made if it is not there; fsync: whether write() waits for the
    disk.
    """

    def __init__(self, path: Path, fsync: bool) -> None:
        self.path = path
        self._fsync = fsync
        self._lines: Dict[Key, bytes] = {}  # what is true
        self._pending: List[bytes] = []
        self._fd: Optional[int] = None
        self._size = 0
        self._number = 0  # of the last write
        self._live_bytes = 0
        self._renew_at = RENEW_BYTES
        self._is_moved = False  # put in the place of another, and that is not on the disk yet

    def __repr__(self) -> str:
        return '<Journal %s, %d keys, %d bytes>' % (self.path, len(self._lines), self._size)

    def open(self) -> Dict[Key, Any]:
        """Read the file, cut off a last write that is not there whole, and return all values.

        Raises: StorageError when it is broken elsewhere: nothing is changed then; OSError.
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
        """Take what was written whole, and return its values. Raises StorageError."""
        values: Dict[Key, Any] = {}
        pending: List[Tuple[List[Any], bytes]] = []
        size = 0  # of what is pending
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
        """Make sure that a line that is not whole belongs to the last write. Raises StorageError.

        What lies behind it may also be left of an earlier attempt at the same write: so it has the
        same number at most.
        """
        ends = (opened(line) for line in lines[position:])
        if any(isinstance(end, dict) and end.get('write', 0) > self._number + 1 for end in ends):
            raise self._broken(position)

    def _broken(self, position: int) -> StorageError:
        return StorageError(
            '%s is broken in line %d: restore the file, or begin anew with another folder'
            % (self.path, position + 1)
        )

    def put(self, key: Key, value: Any) -> None:
        """Note a value; it is in the file after write(). One that is known already is not noted."""
        line = sealed([key, value])
        before = self._lines.get(key)
        if before != line:
            self._lines[key] = line
            self._live_bytes += len(line) - len(before or b'')
            self._pending.append(line)

    def forget(self, key: Key) -> None:
        """Note that a key has no value any more."""
        before = self._lines.pop(key, None)
        if before is not None:
            self._live_bytes -= len(before)
            self._pending.append(sealed([key]))

    def put_all(self, name: str, values: Dict[Key, Any]) -> None:
        """Note all values whose keys begin with a name; other such keys have none any more."""
        for key in [key for key in self._lines if key[0] == name and key not in values]:
            self.forget(key)
        for key, value in values.items():
            self.put(key, value)

    def write(self) -> None:
        """Write down what was noted. Raises OSError; it is tried again the next time then."""
        if not self._pending:
            return
        if self._fd is None:  # it could not be opened when it was written anew
            self._fd = os.open(str(self.path), os.O_RDWR | os.O_APPEND)
        data = _ended(self._number + 1, self._pending)
        try:
            if self._is_moved:
                sync_folder(self.path.parent)
                self._is_moved = False
            os.ftruncate(self._fd, self._size)  # something may be left of a write that failed
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
        """Write the file anew, without what is old; if that fails it goes on as it is."""
        fresh = str(self.path) + '.new'
        try:
            self._size = self._put_anew(fresh)
        except OSError as error:
            log.warning('file=%s: is not written anew: %s', self.path, error)
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
        """Put another file in the place of this one; return its size. Raises OSError."""
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
    """Return what the last line of a write says, of which so many bytes are before it."""
    return {'write': number, 'bytes': size}


def _ended(number: int, lines: Iterable[bytes]) -> bytes:
    """Return the lines of a write with its end."""
    data = b''.join(lines)
    return data + sealed(_end(number, len(data)))


def _tuple(value: Any) -> Any:
    """Return a key as it was before it was written: lists in it are tuples."""
    return tuple(map(_tuple, value)) if isinstance(value, list) else value
