"""Start, stop and break a cluster of embedded brokers, as if it were one of Apache Kafka.

Owns the process that the brokers live in, and the way to it: a line of JSON for each wish, and one
for each answer. A process of its own, because tests count their threads and sockets, fork, and
measure time. It ends when its standard input does, so it cannot outlive the program. What the
brokers do is ``kafka.testing``'s, the other end of the way :mod:`servers.embedded_process`'s.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from typing import IO, Any, Dict, List, Optional, Set

from servers.brokers import Brokers, ClusterError
from servers.releases import SERVERS, Release

ROOT = SERVERS.parent
STOP_SECONDS = 20
#: In the real clusters here it is 6 s; the tests wait for it.
SESSION_TIMEOUT_MS = 3000


class EmbeddedCluster(Brokers):
    """Embedded brokers of one release with node ids 0, 1, 2, in a process of their own."""

    is_embedded = True

    def __init__(self, release: Release, brokers: int = 1) -> None:
        super().__init__(release, brokers)
        self._process: Optional[subprocess.Popen[str]] = None
        self._log: Optional[IO[bytes]] = None
        self._killed: Set[int] = set()

    # -- life ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start everything. ClusterError with the log when the process ends."""
        self._log = tempfile.TemporaryFile()
        command = [sys.executable, '-m', 'servers.embedded_process']
        self._process = subprocess.Popen(
            [*command, self.release.name, str(self.size), str(SESSION_TIMEOUT_MS)],
            cwd=str(ROOT),
            env={**os.environ, 'PYTHONPATH': str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            universal_newlines=True,
            start_new_session=True,  # Ctrl-C is for the program, which then stops it in order
        )
        try:
            self.ports = self._answer()
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
        self._log, self.ports, self._killed = None, [], set()

    def kill(self, node: int) -> None:
        """Let one broker die: its connections break."""
        self._do('kill', node)
        self._killed.add(node)

    def pause(self, node: int) -> None:
        """Let one broker hang: it does nothing, and its connections stay. A kill still ends it."""
        self._do('pause', node)

    def resume(self, node: int) -> None:
        """Let a paused broker go on."""
        self._do('resume', node)

    def restart(self, *nodes: int) -> None:
        """Start killed brokers again on their old ports."""
        for node in nodes:
            self._do('restart', node)
            self._killed.discard(node)

    # -- what tests ask --------------------------------------------------------------------------

    @property
    def nodes(self) -> List[int]:
        """The ids of the brokers that were started and not killed."""
        return sorted(set(range(len(self.ports))) - self._killed)

    @property
    def process_ids(self) -> Set[int]:
        """The id of the process, if it runs now."""
        return set() if self._process is None else {self._process.pid}

    def create_topic(
        self,
        topic: str,
        partitions: int = 2,
        replication: Optional[int] = None,
        config: Optional[Dict[str, str]] = None,
    ) -> None:
        """Create a topic. ClusterError when it is refused.

        ``replication`` defaults to the number of brokers.
        """
        self._do('create_topic', topic, partitions, replication or self.size, config or {})

    def zookeeper_offsets(self, group: str, topic: str, partitions: List[int]) -> Dict[int, int]:
        """Return {partition: offset} of a group in ZooKeeper, without those that it has not."""
        return dict(self._do('zookeeper_offsets', group, topic, partitions))

    def store_in_zookeeper(self, group: str, topic: str, offsets: Dict[int, int]) -> None:
        """Write {partition: offset} of a group into ZooKeeper."""
        self._do('store_in_zookeeper', group, topic, list(offsets.items()))

    def failures(self) -> List[str]:
        """Return what went wrong inside the brokers since the last call, one text each."""
        return list(self._do('failures'))

    def logs(self, lines: int = 40) -> str:
        """Return the last ``lines`` of the process's log."""
        if self._log is None:
            return ''
        self._log.seek(0)
        tail = self._log.read().decode(errors='replace').splitlines()[-lines:]
        return '--- embedded %s\n%s' % (self.release.name, '\n'.join(tail))

    # -- the way to the process ------------------------------------------------------------------

    def _ended(self) -> List[str]:
        ended = self._process is None or self._process.poll() is not None
        return ['the embedded brokers'] if ended else []

    def _do(self, wish: str, *arguments: Any) -> Any:
        """Have something done and return the answer. ClusterError when it is refused."""
        if self._process is None:
            raise ClusterError('%r was not started' % (self,))
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps([wish, *arguments]) + '\n')
            self._process.stdin.flush()
        except OSError:
            pass  # it has ended: there is no answer either
        return self._answer()

    def _answer(self) -> Any:
        assert self._process is not None and self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait(STOP_SECONDS)
            raise ClusterError('the embedded brokers have ended\n' + self.logs())
        refused, answer = json.loads(line)
        if refused:
            raise ClusterError(refused)
        return answer
