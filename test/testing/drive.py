"""Requests to an embedded cluster without sockets, in one thread and on a virtual clock.

``Driver`` has one connection to each node; ``ask`` sends a request through the client's end of a
session and returns the response, so that everything passes the wire in both directions.
"""

from __future__ import annotations

import random
from typing import Any, Dict, List, Optional

from kafka.protocol.negotiation import BrokerVersions
from kafka.protocol.session import NEED_DATA, ResponseReceived, Role, Session
from kafka.protocol.wire import Message
from kafka.testing import handlers
from kafka.testing.broker import Broker
from kafka.testing.connection import Connection
from kafka.testing.releases import broker_release
from kafka.testing.state import ClusterState, Defaults, Node
from kafka.testing.timers import Timers, VirtualClock
from kafka.testing.waiting import Waiting


class Wire:
    """A connection in memory: what the broker writes is kept."""

    def __init__(self) -> None:
        self.written = bytearray()
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.written += data

    def write_parts(self, parts: List[bytes]) -> None:
        self.written += b''.join(parts)

    def close(self) -> None:
        self.is_closed = True


class Client:
    """The client's end of one connection."""

    def __init__(self, broker: Broker) -> None:
        self.wire = Wire()
        self.connection: Connection = broker.connect(self.wire)
        self.session = Session(Role.CLIENT, 'driver')
        self.session.adopt(BrokerVersions(dict(broker.served)))

    def send(self, request: Message, version: Optional[int] = None) -> None:
        """Send a request in a version, by default the best."""
        self.connection.receive_data(self.session.send(request, version=version))

    def receive(self) -> Optional[Message]:
        """Return the next response, None if it has not come yet."""
        if self.wire.written:
            self.session.receive_data(bytes(self.wire.written))
            self.wire.written.clear()
        event = self.session.next_event()
        if event is NEED_DATA:
            return None
        assert isinstance(event, ResponseReceived)
        return event.response


class Driver:
    """A cluster on a virtual clock.

    Arguments: version: the release; brokers: how many; settings: as those of Cluster, but
    that connections may be idle.
    """

    def __init__(self, version: str = '4.4', brokers: int = 1, **settings: Any) -> None:
        handlers.load()
        self.timers = Timers(VirtualClock())
        settings.setdefault('replication_factor', brokers)
        settings.setdefault('connections_max_idle_ms', None)  # so that nothing else waits
        self.state = ClusterState(
            broker_release(version), self.timers, random.Random(1), Defaults(**settings)
        )
        self.waiting = Waiting(self.timers)
        self.brokers: Dict[int, Broker] = {}
        for node_id in range(brokers):
            node = Node(node_id, '127.0.0.1', 9092 + node_id)
            self.state.nodes[node_id] = node
            self.brokers[node_id] = Broker(node, self.state, self.waiting)
        self.state.controller_id = 0
        self._clients: Dict[int, Client] = {}

    def client(self, node: int = 0) -> Client:
        """Return a connection of its own."""
        return Client(self.brokers[node])

    def ask(self, request: Message, version: Optional[int] = None, node: int = 0) -> Any:
        """Send a request and return the response, letting virtual time pass until it comes.

        AssertionError when it does not come within five minutes or the connection is closed.
        """
        client = self._clients.get(node)
        if client is None or client.connection.is_closed:
            client = self._clients[node] = self.client(node)
        client.send(request, version)
        for _ in range(300000):
            response = client.receive()
            if response is not None:
                return response
            assert not client.connection.is_closed, 'the broker closed the connection'
            when = self.timers.next_time()
            assert when is not None, 'nothing waits, and no response came'
            self.advance(max(0.0, when - self.timers.clock.monotonic()))
        raise AssertionError('no response came')

    def advance(self, seconds: float) -> None:
        """Let virtual time pass."""
        self.timers.advance(seconds)
