"""A process in which Spark has its own Kafka connector, and does what it is asked with either.

``with Oracle() as oracle: oracle.do('read', KAFKA, options)`` runs a job of :mod:`test.spark.jobs`
by the JVM connector, with ``OURS`` by this package's, and returns its outcome. In a process of its
own: what stands on a JVM's class path is fixed when it starts, and the other tests have no jar
there. It ends when its standard input does, so it cannot outlive the program. Which jars there are
is the business of :mod:`servers.spark_jars`.
"""

from __future__ import annotations

import base64
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Any, Optional

from servers import spark_jars
from test.spark import jobs

ROOT = Path(__file__).resolve().parents[2]
KAFKA, OURS = 'kafka', 'kafka-py'
STOP_SECONDS = 30
JOBS = {name: getattr(jobs, name) for name in ('pipe', 'read', 'stream', 'tasks', 'write')}


class OracleError(RuntimeError):
    """The process has ended, or did not understand; the text holds the end of its log."""


def version() -> str:
    """Return the first two numbers of the PySpark that is installed."""
    from importlib.metadata import version as version_of  # late: Python 3.8's has other names

    return '.'.join(version_of('pyspark').split('.')[:2])


def problem() -> Optional[str]:
    """Return why there is no connector for this PySpark, in one line, or None."""
    return spark_jars.problem(version())


class Oracle:
    """The process: started by start(), which takes seconds, and asked by do()."""

    def __init__(self) -> None:
        self._process: Optional[subprocess.Popen[str]] = None
        self._log: Optional[IO[bytes]] = None

    def __enter__(self) -> Oracle:
        self.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def start(self) -> None:
        """Start Spark there. JarsError without its jars; OracleError when the process ends."""
        paths = ','.join(map(str, spark_jars.jars(version())))
        self._log = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [sys.executable, '-m', 'test.spark.oracle', paths],
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


def pack(value: Any) -> str:
    """Write a value on one line."""
    return base64.b64encode(pickle.dumps(value)).decode('ascii')


def unpack(line: str) -> Any:
    """Return what stands on a line of pack()."""
    return pickle.loads(base64.b64decode(line))


def main(jars: str) -> None:
    """Serve the program that started this process until its end of the pipe is closed."""
    from kafka.spark import register
    from test.spark.conftest import environment, session  # late: these load pytest

    # Spark prints on the standard output, which is for answers.
    answers = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)
    os.environ.update(environment())
    with tempfile.TemporaryDirectory() as folder, session(folder, {'spark.jars': jars}) as spark:
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
