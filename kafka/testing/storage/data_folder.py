"""The folder of a durable embedded cluster: its lock, its format and its file of metadata.

Called by cluster_storage.py. One process at a time can use a folder. A folder that is locked, that
has other contents or that cannot be read is refused with an error that names it, and is not
changed. Folders are created with mode 0700 and files with 0600, since topics may contain passwords
and the journal contains SCRAM credentials. An existing folder keeps its mode.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Dict, Optional

from kafka.testing.logs.segments import (
    FILE_MODE,
    StorageError,
    create_file,
    create_folder,
    sync_folder,
)

try:
    from fcntl import LOCK_EX, LOCK_NB, flock

    HAS_FLOCK = True
except ImportError:  # on Windows the lock is a file that must not exist
    HAS_FLOCK = False

FORMAT = 2
_MARK = 'embedded-kafka.json'
_FRESH = _MARK + '.new'
_LOCK = '.lock'
_LOGS = 'logs'


class DataFolder:
    """The folder of one running cluster.

    Arguments: path: created if it does not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._lock: Optional[int] = None

    def __repr__(self) -> str:
        return '<DataFolder %s>' % self.path

    def open(self) -> Dict[str, Any]:
        """Lock the folder; return the metadata that was last saved, {} for a new folder.

        Raises: StorageError if another process uses the folder, if it has other contents, or if the
        metadata cannot be read; OSError.
        """
        for made in create_folder(self.path):
            sync_folder(made.parent)  # it must survive a power failure
        mark = self.path / _MARK
        ours = (_LOCK, _FRESH)  # left if a process was killed during its first start
        others = [entry.name for entry in self.path.iterdir() if entry.name not in ours]
        if others and not mark.exists():
            raise StorageError(
                '%s is no folder of an embedded cluster: it holds %s. Choose an empty one'
                % (self.path, ', '.join(sorted(others)[:3]))
            )
        self._take_lock()
        try:
            return self._read(mark) if mark.exists() else {}
        except BaseException:
            self.close()
            raise

    def save(self, known: Dict[str, Any]) -> None:
        """Write the metadata atomically. Raises OSError."""
        fresh = str(self.path / _FRESH)
        with create_file(fresh) as file:
            file.write(json.dumps({'format': FORMAT, 'known': known}).encode('ascii'))
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, str(self.path / _MARK))

    def log_folder(self, topic_id: str, partition: int) -> Path:
        """Return the folder of a partition's log, by topic id: a name can be used again."""
        return self.path / _LOGS / ('%s-%d' % (topic_id, partition))

    def close(self) -> None:
        """Unlock the folder."""
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)
            if not HAS_FLOCK:
                (self.path / _LOCK).unlink()

    def _take_lock(self) -> None:
        path = str(self.path / _LOCK)
        try:
            if not HAS_FLOCK:
                self._lock = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
                return
            lock = os.open(path, os.O_WRONLY | os.O_CREAT, FILE_MODE)
            try:
                flock(lock, LOCK_EX | LOCK_NB)
            except OSError:
                os.close(lock)
                raise
        except (BlockingIOError, FileExistsError) as error:
            raise StorageError(
                '%s is in use by another process: stop that one, or choose another folder'
                % self.path
            ) from error
        self._lock = lock

    def _read(self, mark: Path) -> Dict[str, Any]:
        try:
            found = json.loads(mark.read_text(encoding='utf-8'))
            version, known = found['format'], found['known']
        except (ValueError, KeyError, TypeError) as error:
            raise StorageError(
                '%s cannot be read: %s. Restore the file, or choose another folder' % (mark, error)
            ) from error
        if version != FORMAT or not isinstance(known, dict):
            raise StorageError(
                '%s has format %r, this version reads %d only: choose another folder'
                % (mark, version, FORMAT)
            )
        return known
