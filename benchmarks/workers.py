"""
Clients that are compared, each in a process of its own with its own virtual environment.

Owns the environments (under ``.cache/benchmarks``; same interpreter and same helper wheels for
all), the talk with the processes, one line of JSON for a question and one for its answer, and the
broker that they talk to. What is asked and measured stands in the benchmarks.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / '.cache' / 'benchmarks'
WHEELS = ('crc32c', 'python-snappy', 'lz4', 'xxhash', 'zstandard', 'isal')
OURS = 'kafka-evergreen'
CONFLUENT = 'confluent-kafka'
REQUIREMENTS: Dict[str, Tuple[str, ...]] = {
    OURS: ('six',),
    'kafka-python 1.4.7': ('kafka-python==1.4.7',),
    'kafka-python 3.0.12': ('kafka-python==3.0.12',),
    CONFLUENT: ('confluent-kafka==2.16.1',),
}


def environment(client: str, *more: str) -> Path:
    """Return the interpreter of a client's virtual environment; make it when it is not there.

    Arguments: more: packages that it is to have besides.
    """
    version = '%d.%d' % sys.version_info[:2]
    home = CACHE / ' '.join(['%s on %s' % (client, version), *more]).replace(' ', '-')
    python = home / ('Scripts' if os.name == 'nt' else 'bin') / 'python'
    done = home / 'complete'
    if not done.exists():
        print('making the environment of %s ...' % client, flush=True)
        venv.create(home, with_pip=True, clear=True)
        command = [str(python), '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check']
        subprocess.run(command + list(REQUIREMENTS[client] + WHEELS + more), check=True)
        done.touch()
    return python


class Worker:
    """One client in a process of its own."""

    def __init__(self, client: str, python: Path, script: str, arguments: List[str]) -> None:
        """Start ``script --worker client arguments``; -I hides this repository from it."""
        command = [str(python), '-I', script, '--worker', client, *arguments]
        self.client = client
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True
        )

    def ask(self, *command: Any) -> Any:
        """Send one command and wait for its answer."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(json.dumps(command) + '\n')
        stdin.flush()
        answer = stdout.readline()
        if not answer:
            raise SystemExit('%s ended; its message stands above' % self.client)
        return json.loads(answer)

    def close(self) -> None:
        """End the process and wait for it."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def answer(respond: Callable[..., Any]) -> None:
    """In a worker: give ``respond`` the words of each line of standard input, print its answers."""
    import gc

    for line in sys.stdin:
        gc.collect()
        print(json.dumps(respond(*json.loads(line))), flush=True)


def beside(mine: List[float], theirs: List[float]) -> str:
    """Return what a cell says of another client, rounds by rounds.

    The median of what it takes, in microseconds, and how many times as much that is: the median of
    the ratios of each round, in brackets the least and the largest.
    """
    ratios = [b / a for a, b in zip(mine, theirs)]
    return '%.3f: %.2fx (%.2f to %.2f)' % (
        statistics.median(theirs) * 1e6,
        statistics.median(ratios),
        min(ratios),
        max(ratios),
    )


def in_memory() -> int:
    """Return how many bytes of this process are in memory; Linux."""
    with open('/proc/self/statm') as numbers:
        return int(numbers.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')


@contextlib.contextmanager
def started(release_name: str) -> Iterator[Any]:
    """Yield a cluster of one broker of a release (servers.cluster.Cluster), started for this run.

    With AS_SHIPPED: what makes a broker of a test ready sooner makes it slower later.

    Raises: SystemExit, saying why, where it cannot be started.
    """
    sys.path.insert(0, str(ROOT))
    from servers.cluster import AS_SHIPPED, Cluster, stop_on_signals
    from servers.releases import chosen, problem

    (release,) = chosen(release_name)
    reason = problem(release)
    if reason:
        raise SystemExit(reason)
    stop_on_signals()
    print('starting Apache Kafka %s ...' % release.name, flush=True)
    with Cluster(release, jvm=AS_SHIPPED) as cluster:
        yield cluster
