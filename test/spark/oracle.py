"""A process with a session of its own, which does what it is asked with either connector.

``with Oracle() as oracle: oracle.do('read', KAFKA, options)`` runs a job of :mod:`test.spark.jobs`
by the JVM connector, with ``OURS`` by this package's, and returns its outcome. In a process of its
own: what stands on a JVM's class path is fixed when it starts, and the other tests have no jar
there. Nor can a program have sessions of two kinds: ``Apart`` has one of other settings, such as
``{'spark.remote': 'local[2]'}``. It ends when its standard input does, so it cannot outlive the
program. Which jars there are is the business of :mod:`servers.spark_jars`.
"""

from __future__ import annotations

import base64
import json
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Any, Dict, Mapping, Optional

from servers import spark_jars
from test.spark import jobs

ROOT = Path(__file__).resolve().parents[2]
KAFKA, OURS = 'kafka', 'kafka-py'
STOP_SECONDS = 30
NAMES = ('changing', 'executors', 'pipe', 'read', 'stream', 'tasks', 'write')
JOBS = {name: getattr(jobs, name) for name in NAMES}


class OracleError(RuntimeError):
    """The process has ended, or did not understand; the text holds the end of its log."""


def version() -> str:
    """Return the first two numbers of the PySpark that is installed."""
    from importlib.metadata import version as version_of  # late: Python 3.8's has other names

    return '.'.join(version_of('pyspark').split('.')[:2])


def problem() -> Optional[str]:
    """Return why there is no connector for this PySpark, in one line, or None."""
    return spark_jars.problem(version())


class Apart:
    """The process: started by start(), which takes seconds, and asked by do().

    Arguments: settings: those of its session, more than those of the other tests.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = settings
        self._process: Optional[subprocess.Popen[str]] = None
        self._log: Optional[IO[bytes]] = None

    def __enter__(self) -> Any:
        self.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def start(self) -> None:
        """Start Spark there. OracleError when the process ends."""
        self._log = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [sys.executable, '-m', 'test.spark.oracle', json.dumps(self.settings())],
            cwd=str(ROOT),
            env={**os.environ, 'PYTHONPATH': str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            universal_newlines=True,
            start_new_session=True,  # Ctrl-C is for the program, which then stops it in order
        )
        try:
            self._answer()
        except BaseException:
            self.stop()
            raise

    def settings(self) -> Dict[str, str]:
        """Return what its session has more."""
        return dict(self._settings)

    def stop(self) -> None:
        """End the process. May be called at any time."""
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None and process.stdout is not None
            try:
                process.stdin.close()
                process.wait(STOP_SECONDS)
            except (OSError, subprocess.TimeoutExpired):
                process.kill()
                process.wait()
            process.stdout.close()
        if self._log is not None:
            self._log.close()
            self._log = None

    def do(self, job: str, *arguments: Any) -> jobs.Outcome:
        """Run a job by its name and return its outcome."""
        if self._process is None:
            raise OracleError('the oracle was not started')
        assert self._process.stdin is not None
        self._process.stdin.write(pack((job, arguments)) + '\n')
        self._process.stdin.flush()
        return self._answer()

    def logs(self, lines: int = 40) -> str:
        """Return the last ``lines`` of the process's log."""
        if self._log is None:
            return ''
        self._log.seek(0)
        return '\n'.join(self._log.read().decode(errors='replace').splitlines()[-lines:])

    def _answer(self) -> Any:
        assert self._process is not None and self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise OracleError('the oracle has ended\n' + self.logs())
        is_good, answer = unpack(line)
        if not is_good:
            raise OracleError(answer)
        return answer


class Oracle(Apart):
    """One whose Spark has its own connector."""

    def __init__(self) -> None:
        super().__init__({})

    def settings(self) -> Dict[str, str]:
        """Return where the jars are, fetched if need be. JarsError without them."""
        return {'spark.jars': ','.join(map(str, spark_jars.jars(version())))}


def pack(value: Any) -> str:
    """Write a value on one line."""
    return base64.b64encode(pickle.dumps(value)).decode('ascii')


def unpack(line: str) -> Any:
    """Return what stands on a line of pack()."""
    return pickle.loads(base64.b64decode(line))


def main(settings: str) -> None:
    """Serve the program that started this process until its end of the pipe is closed."""
    from kafka.spark import register
    from test.spark.conftest import environment, session  # late: these load pytest

    # Spark prints on the standard output, which is for answers.
    answers = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)
    os.environ.update(environment())
    with tempfile.TemporaryDirectory() as folder, session(folder, json.loads(settings)) as spark:
        register(spark)
        answer = (True, None)
        while True:
            answers.write(pack(answer) + '\n')
            answers.flush()
            line = sys.stdin.readline()
            if not line:
                return
            try:
                job, arguments = unpack(line)
                answer = (True, JOBS[job](spark, *arguments))
            except Exception as error:  # told to the program
                answer = (False, '%s: %s' % (type(error).__name__, error))


if __name__ == '__main__':
    main(sys.argv[1])
