"""A streaming query in processes of its own, which can be killed: all of it, or some.

Owns starting :mod:`test.spark.copying`, knowing what belongs to it, and what is killed. Knows no
brokers and no tests. Everything that the query starts is in one session of the system, by which it
is found: Python's daemon is in a process group of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, List, Optional

ROOT = Path(__file__).resolve().parents[2]


class Query:
    """A query that copies a topic; it goes on with its checkpoint when it is started again.

    Arguments: options: of copying.main().
    """

    def __init__(self, options: Dict[str, Any]) -> None:
        self._options = options
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._log = tempfile.TemporaryFile()

    def __enter__(self) -> Query:
        return self

    def __exit__(self, *_: Any) -> None:
        self.kill_all()
        self._log.close()

    def start(self, **more: Any) -> None:
        """Start it, with some options changed."""
        text = json.dumps({**self._options, **more})
        self._process = subprocess.Popen(
            [sys.executable, '-m', 'test.spark.copying', text],
            cwd=str(ROOT),
            env={**os.environ, 'PYTHONPATH': str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )

    def is_running(self) -> bool:
        """Tell whether it runs."""
        return self._process is not None and self._process.poll() is None

    def wait(self, seconds: float) -> int:
        """Wait until it ends by itself; return its code."""
        assert self._process is not None
        return self._process.wait(seconds)

    def batches(self) -> int:
        """Return how many batches Spark holds for done."""
        folder = Path(self._options['checkpoint']) / 'commits'
        return sum(each.name.isdigit() for each in folder.glob('*')) if folder.is_dir() else 0

    def wait_for_batch(self, seconds: float) -> bool:
        """Wait for one more batch; return whether it came before the query ended."""
        known, deadline = self.batches(), time.monotonic() + seconds
        while self.batches() == known:
            if not self.is_running():
                return False
            if time.monotonic() > deadline:
                raise TimeoutError('no batch within %d s\n%s' % (seconds, self.logs()))
            time.sleep(0.05)
        return True

    def logs(self, lines: int = 60) -> str:
        """Return the last lines of what it wrote."""
        self._log.seek(0)
        text = self._log.read().decode(errors='replace')
        self._log.seek(0, os.SEEK_END)
        return '\n'.join(text.splitlines()[-lines:])

    # ------------------------------------------------------------ kills

    def kill(self, what: str, chance: random.Random) -> str:
        """Kill -9 the query, an executor, or a worker of Python; return what was found to kill."""
        found = {'worker': self._workers, 'executor': self._executors}.get(what, list)()
        if not found:
            self.kill_all()
            return 'query'
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.kill(chance.choice(sorted(found)), signal.SIGKILL)
        return what

    def kill_all(self) -> None:
        """Kill -9 all of it."""
        process, self._process = self._process, None
        if process is None:
            return
        while True:
            found = self._members(process.pid)
            if not found:
                break
            for each in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
            process.poll()
            time.sleep(0.02)
        process.wait()

    def _workers(self) -> List[int]:
        daemons = self._running('pyspark.daemon')
        return [each for each in daemons if _stat(each)[1] in daemons]

    def _executors(self) -> List[int]:
        return self._running('CoarseGrainedExecutorBackend')

    def _running(self, text: str) -> List[int]:
        assert self._process is not None
        return [each for each in self._members(self._process.pid) if text in _command(each)]

    @staticmethod
    def _members(session: int) -> List[int]:
        """Return the processes of a session that are no zombies."""
        numbers = [int(each) for each in os.listdir('/proc') if each.isdigit()]
        stats = {each: _stat(each) for each in numbers}
        return [each for each, (state, _, its) in stats.items() if its == session and state != 'Z']


def _stat(process: int) -> Any:
    """Return the state of a process, its parent and its session; nothing of one that is gone."""
    try:
        fields = Path('/proc/%d/stat' % process).read_text().rpartition(')')[2].split()
    except OSError:
        return 'Z', 0, 0
    return fields[0], int(fields[1]), int(fields[3])


def _command(process: int) -> str:
    try:
        return Path('/proc/%d/cmdline' % process).read_bytes().decode(errors='replace')
    except OSError:
        return ''
