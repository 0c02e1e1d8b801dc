"""What a cluster of brokers on 127.0.0.1 can be asked, whether real or embedded.

Owns the addresses, the questions of tests and tools (who leads, is a topic there), and waiting for
the answers. How brokers start, die and hang is :mod:`servers.cluster`'s business (Apache Kafka) and
:mod:`servers.embedded`'s (kafka.testing). Standard library only.
"""

from __future__ import annotations

import os
import socket
import time
from typing import Any, Callable, List, Optional, Set, Tuple, TypeVar

from servers import probe
from servers.releases import Release

HOST = '127.0.0.1'
START_SECONDS = float(os.environ.get('KAFKA_START_SECONDS', '90'))  # more on a slow machine

B = TypeVar('B', bound='Brokers')
T = TypeVar('T')


class ClusterError(RuntimeError):
    """The cluster did not do what was asked in time; the text holds the end of the logs."""


class Brokers:
    """Brokers of one release with node ids 0, 1, 2. As a context manager, or by start() and stop().

    Attributes: release, size: as they were given; ports: where each listens, none before start();
    start_seconds: how long anything that is waited for may take.
    """

    is_embedded = False
    start_seconds: float = START_SECONDS

    def __init__(self, release: Release, brokers: int = 1) -> None:
        self.release = release
        self.size = brokers
        self.ports: List[int] = []

    def __repr__(self) -> str:
        return '<%s release=%s brokers=%s>' % (
            type(self).__name__,
            self.release.name,
            self.bootstrap or 'stopped',
        )

    def __enter__(self: B) -> B:
        self.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    # -- what each kind does in its own way ------------------------------------------------------

    def start(self) -> None:
        """Start everything and wait until it can be used."""
        raise NotImplementedError

    def stop(self) -> None:
        """End what this cluster started. May be called at any time."""
        raise NotImplementedError

    def restart(self, *nodes: int) -> None:
        """Start killed brokers again on their old ports and wait until the cluster knows them."""
        raise NotImplementedError

    @property
    def nodes(self) -> List[int]:
        """The ids of the brokers that were started and not killed."""
        raise NotImplementedError

    @property
    def process_ids(self) -> Set[int]:
        """The ids of the processes that run now."""
        raise NotImplementedError

    def logs(self, lines: int = 40) -> str:
        """Return the last ``lines`` of each process's log."""
        raise NotImplementedError

    def _ended(self) -> List[str]:
        """Return the names of processes that have ended by themselves."""
        raise NotImplementedError

    # -- what tests ask --------------------------------------------------------------------------

    @property
    def bootstrap(self) -> str:
        """All brokers as ``host:port``, with commas between; killed ones too."""
        return ','.join('%s:%d' % (HOST, port) for port in self.ports)

    def address(self, node: int) -> Tuple[str, int]:
        """Return host and port of one broker."""
        return HOST, self.ports[node]

    def restart_killed(self) -> None:
        """Restart every broker that was killed, if any was."""
        self.restart(*sorted(set(range(self.size)) - set(self.nodes)))

    def metadata(self, *topics: str) -> probe.Metadata:
        """Return what the first running broker says of ``topics`` (none named: all)."""
        return probe.metadata(self.address(self.nodes[0]), *topics)

    def leader(self, topic: str, partition: int) -> int:
        """Return the leader's node id as the first running broker knows it, -1 for none."""
        return leader_in(self.metadata(topic), topic, partition)

    def wait_for_leader(self, topic: str, partition: int) -> int:
        """Wait until the partition's leader is a running broker; return its id."""
        return self._wait(
            'a leader of %s/%d' % (topic, partition),
            lambda: self._running_leader(topic, partition),
        )[0]

    def wait_in_sync(self, topic: str) -> None:
        """Wait until each copy of each partition may become its leader.

        One that alone is in sync, as after a restart of all, takes the partition with it.
        """
        self._wait('copies of %s in sync' % topic, lambda: self._is_in_sync(topic))

    def _is_in_sync(self, topic: str) -> bool:
        found = self.metadata(topic).topics.get(topic, {}).values()
        return bool(found) and all(sorted(each.isr) == sorted(each.replicas) for each in found)

    def _running_leader(self, topic: str, partition: int) -> List[int]:
        leader = self.leader(topic, partition)
        return [leader] if leader in self.nodes else []

    def _wait(self, what: str, condition: Callable[[], T], seconds: Optional[float] = None) -> T:
        """Poll ``condition`` until it is true; return it. ClusterError at the end of the time.

        A broker that answers a question too slowly, on a busy machine, is asked again.
        """
        seconds = self.start_seconds if seconds is None else seconds
        end = time.monotonic() + seconds
        while True:
            try:
                result = condition()
            except socket.timeout:
                result = None
            if result:
                return result
            ended = self._ended()
            if ended or time.monotonic() > end:
                why = 'ended: ' + ', '.join(ended) if ended else 'gave up after %d s' % seconds
                raise ClusterError('waiting for %s, %s\n%s' % (what, why, self.logs()))
            time.sleep(0.05)


def leader_in(told: probe.Metadata, topic: str, partition: int) -> int:
    """Return the leader of a partition in an answer, -1 for none."""
    found = told.topics.get(topic, {}).get(partition)
    return -1 if found is None else found.leader
