"""The runner's half of the conversation with a foreign client: its process, and answers in time.

Owns the process of one client. The other half is checking.py.
"""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from pathlib import Path
from typing import Any, Dict, Optional

from test.foreign.clients import CACHE, Client, environment

HERE = Path(__file__).resolve().parent
STEP_SECONDS = 90.0


class Worker:
    """A client in a process of its own, started when it is first asked."""

    def __init__(self, client: Client) -> None:
        """Make the environment. Raises Missing."""
        self.client = client
        self.python = environment(client)
        self.log = CACHE / ('%s.log' % client.name.replace(' ', '-'))
        self._process: Optional[subprocess.Popen[str]] = None
        self._lines: Any = None
        self.log.write_text('')

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.close()

    def environment(self) -> Optional[Dict[str, str]]:
        """Return the environment of the process, None for that of this one."""
        return None

    def _start(self) -> subprocess.Popen[str]:
        command = [
            str(self.python),
            '-I',
            str(HERE / self.client.module),
        ]  # -I hides this repository
        with self.log.open('ab') as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self.environment(),
                universal_newlines=True,
            )
        lines: queue.Queue[str] = queue.Queue()

        def read() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                lines.put(line)
            lines.put('')

        self._reader = threading.Thread(target=read)
        self._reader.start()
        self._process, self._lines = process, lines
        return process

    def ask(
        self, step: str, cluster: Any = None, seconds: float = STEP_SECONDS, **how: Any
    ) -> Dict[str, Any]:
        """Let it do a step: ``{'passed': checks}``, with ``'failed'`` and why if it did."""
        process = self._process or self._start()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps({'step': step, 'cluster': cluster, 'with': how}) + '\n')
            process.stdin.flush()
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            self.close()
            return {'passed': 0, 'failed': 'no answer within %d s' % seconds}
        except BrokenPipeError:
            line = ''
        if not line:
            self.close()
            return {'passed': 0, 'failed': 'its process ended; see %s' % self.log}
        found: Dict[str, Any] = json.loads(line)
        return found

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        self._reader.join()
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            try:
                stream.close()
            except BrokenPipeError:
                pass
