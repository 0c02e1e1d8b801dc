"""The folder in which an embedded cluster keeps what must outlive it.

Owns: that one process at a time uses the folder, that it is an embedded cluster's and no other's,
and the file of what the cluster knows besides the logs. A folder that is locked, foreign or torn is
refused with an error that names it; nothing in it is overwritten then. What is made is its owner's
alone, as a folder (0700) and as files (0600): passwords pass through topics, and what SCRAM derives
from them is in the journal. A folder that was there before keeps its mode.
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
except ImportError:  # on Windows: there the lock is a file that must not exist
    HAS_FLOCK = False

FORMAT = 2
_MARK = 'embedded-kafka.json'
_FRESH = _MARK + '.new'
_LOCK = '.lock'
_LOGS = 'logs'


class DataFolder:
    """A folder that belongs to one running cluster.

    Arguments: path: made if it is not there.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._lock: Optional[int] = None

    def __repr__(self) -> str:
        return '<DataFolder %s>' % self.path

    def open(self) -> Dict[str, Any]:
        """Lock the folder; return what the cluster knew when it was last saved, {} at first.

        Raises: StorageError when another process has it, it holds something else, or what it holds
        cannot be read; OSError.
        """
        for made in create_folder(self.path):
            sync_folder(made.parent)  # a power cut must not take it along
        mark = self.path / _MARK
        ours = (_LOCK, _FRESH)  # somebody was killed before there was more
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
        """Write down what the cluster knows, all or nothing. Raises OSError."""
        fresh = str(self.path / _FRESH)
        with create_file(fresh) as file:
            file.write(json.dumps({'format': FORMAT, 'known': known}).encode('ascii'))
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, str(self.path / _MARK))

    def log_folder(self, topic_id: str, partition: int) -> Path:
        """Return the folder of a partition's log. A topic's id names it: names come again."""
        return self.path / _LOGS / ('%s-%d' % (topic_id, partition))

    def close(self) -> None:
        """Let others use the folder."""
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
