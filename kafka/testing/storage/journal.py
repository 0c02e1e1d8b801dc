"""The journal in which an embedded cluster writes down what it knows besides its logs.

Owns one file of lines, each with a checksum, a key and the value that it has from now on; the last
one counts. It grows at its end only, until most of it is old: then it is written anew beside and
put in its place. What keys and values mean is kept_state.py's and kept_groups.py's business.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from kafka.testing.logs.segments import StorageError, opened, sealed, sync_data, sync_folder

log = logging.getLogger(__name__)

#: It is written anew when it is so large, and so many times what is still true.
RENEW_BYTES = 1024 * 1024
RENEW_TIMES = 4

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
        self._live_bytes = 0
        self._renew_at = RENEW_BYTES
        self._is_moved = False  # put in the place of another, and that is not on the disk yet

    def __repr__(self) -> str:
        return '<Journal %s, %d keys, %d bytes>' % (self.path, len(self._lines), self._size)

    def open(self) -> Dict[Key, Any]:
        """Read the file, cut off a last line that was not written whole, and return all values.

        Raises: StorageError when it is broken elsewhere: nothing is changed then; OSError.
        """
        values: Dict[Key, Any] = {}
        data = self.path.read_bytes() if self.path.exists() else b''
        lines = data.splitlines(keepends=True)
        for number, line in enumerate(lines):
            found = opened(line)
            if not isinstance(found, list):
                self._check_torn(lines, number)
                break
            self._size += len(line)
            key = _tuple(found[0])
            if len(found) > 1:
                values[key], self._lines[key] = found[1], line
            else:
                values.pop(key, None)
                self._lines.pop(key, None)
        self._live_bytes = sum(map(len, self._lines.values()))
        self._fd = os.open(str(self.path), os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        if self._size < len(data):
            log.warning(
                'file=%s: cut off %d bytes of a line that was not written whole',
                self.path,
                len(data) - self._size,
            )
            os.ftruncate(self._fd, self._size)
        if self._fsync:
            sync_folder(self.path.parent)
        return values

    def _check_torn(self, lines: List[bytes], number: int) -> None:
        if any(opened(line) is not None for line in lines[number + 1 :]):
            raise StorageError(
                '%s is broken in line %d: restore the file, or begin anew with another folder'
                % (self.path, number + 1)
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
        data = b''.join(self._pending)
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
            self._renew_at = RENEW_BYTES
            self._is_moved = True
        if self._fd is None:
            self._fd = os.open(str(self.path), os.O_RDWR | os.O_APPEND)

    def _put_anew(self, fresh: str) -> int:
        """Put another file in the place of this one; return its size. Raises OSError."""
        data = b''.join(self._lines.values())
        with open(fresh, 'wb') as file:
            os.chmod(fresh, 0o600)
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


def _tuple(value: Any) -> Any:
    """Return a key as it was before it was written: lists in it are tuples."""
    return tuple(map(_tuple, value)) if isinstance(value, list) else value
