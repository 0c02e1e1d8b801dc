"""An embedded Kafka for tests: a cluster of any release inside the process.

Owns what users hold in their hands: start and stop, topics, the death of brokers. Everything else
is reached by any Kafka client through the brokers' addresses. Nothing of Apache Kafka is needed.
"""

from __future__ import annotations

import random
from typing import Any, Dict, List, Optional

from kafka.testing import handlers
from kafka.testing.broker import Broker
from kafka.testing.releases import NEWEST, broker_release
from kafka.testing.server import Server
from kafka.testing.state import ClusterState, Defaults, Node
from kafka.testing.timers import SystemClock, Timers
from kafka.testing.waiting import Waiting

HOST = '127.0.0.1'


class Cluster:
    """A cluster of embedded brokers, as a context manager or between start() and stop().

    Arguments: brokers: how many; version: the release of Apache Kafka that they are, from '0.8.0'
    to '4.4'; port: of the first broker, the others follow; 0 takes any free ones; topics: created
    at the start, {name: number of partitions}; seed: of everything that is left to chance; other
    settings: fields of ``kafka.testing.state.Defaults``.

    Raises: ValueError for a release that is not there or fewer than one broker; TypeError for a
    setting that does not exist; OSError from start() when a port is taken.
    """

    def __init__(
        self,
        brokers: int = 1,
        version: str = NEWEST,
        *,
        port: int = 0,
        topics: Optional[Dict[str, int]] = None,
        seed: Optional[int] = None,
        **settings: Any,
    ) -> None:
        if not isinstance(brokers, int) or brokers < 1:
            raise ValueError('brokers must be a number from 1 on, not %r' % (brokers,))
        handlers.load()
        settings.setdefault('replication_factor', min(brokers, 3))
        timers = Timers(SystemClock())
        self.state = ClusterState(
            broker_release(version), timers, random.Random(seed), Defaults(**settings)
        )
        self.waiting = Waiting(timers)
        self._server = Server(timers)
        self._first_port = port
        self._topics = dict(topics or {})
        self._brokers: Dict[int, Broker] = {}
        for node_id in range(brokers):
            node = Node(node_id, HOST, port + node_id if port else 0)
            self.state.nodes[node_id] = node
            self._brokers[node_id] = Broker(node, self.state, self.waiting)
        self._is_started = False

    def __repr__(self) -> str:
        return '<Cluster %s at %s>' % (self.state.release.name, self.bootstrap)

    def __enter__(self) -> Cluster:
        self.start()
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.stop()

    # ------------------------------------------------------------ start and stop

    def start(self) -> None:
        """Open the ports and serve. Raises OSError when a port is taken."""
        if self._is_started:
            return
        self._is_started = True
        try:
            for broker in self._brokers.values():
                self._open(broker)
        except BaseException:
            self._server.stop()
            raise
        self.state.controller_id = min(self._brokers)
        for name, partitions in self._topics.items():
            self.state.create_topic(name, partitions)
        self._server.start()

    def stop(self) -> None:
        """Close all connections and ports and end the thread. May be called at any time."""
        if self._is_started:
            self._is_started = False
            self._server.stop()

    def _open(self, broker: Broker) -> None:
        broker.node.port = self._server.listen(broker, HOST, broker.node.port)

    # ------------------------------------------------------------ what tests ask and do

    @property
    def bootstrap(self) -> str:
        """All brokers as ``host:port``, with commas between; dead ones too."""
        nodes = self.state.nodes
        return ','.join('%s:%d' % (nodes[i].host, nodes[i].port) for i in sorted(nodes))

    @property
    def nodes(self) -> List[int]:
        """Ids of the brokers that live."""
        return self._server.call(lambda: self.state.alive)

    def create_topic(
        self, name: str, partitions: int = 1, replication_factor: Optional[int] = None
    ) -> None:
        """Create a topic. Raises ValueError when it exists."""

        def create() -> None:
            if name in self.state.topics:
                raise ValueError('topic %r exists' % name)
            self.state.create_topic(name, partitions, replication_factor)

        self._server.call(create)

    def leader(self, topic: str, partition: int) -> int:
        """Return the node that leads a partition, -1 for none. Raises KeyError, IndexError."""
        return self._server.call(lambda: self.state.topics[topic].partitions[partition].leader)

    def kill(self, node_id: int) -> None:
        """Let a broker die: its connections break, others lead. Raises KeyError."""
        broker = self._brokers[node_id]

        def die() -> None:
            self._server.deafen(broker)
            self.state.node_died(node_id)

        self._server.call(die)

    def restart(self, node_id: int) -> None:
        """Let a dead broker live again, on its port. Raises KeyError, OSError."""
        broker = self._brokers[node_id]

        def come() -> None:
            if not broker.node.is_alive:
                self._open(broker)
                self.state.node_came(node_id)

        self._server.call(come)

    def move_leader(self, topic: str, partition: int, node_id: int) -> None:
        """Let another replica lead. Raises KeyError, IndexError; ValueError if it cannot."""

        def move() -> None:
            found = self.state.topics[topic].partitions[partition]
            if node_id not in found.isr or node_id not in self.state.alive:
                raise ValueError('node %d is no replica in sync of %r' % (node_id, found))
            found.elect(self.state.alive, preferred=node_id)

        self._server.call(move)
