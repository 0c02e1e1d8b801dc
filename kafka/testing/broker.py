"""One broker of an embedded cluster: it dispatches requests to the handlers of their APIs.

It also keeps its connections, and limits the time for TLS and SASL: a real broker allows an
incomplete handshake the same ten minutes as an idle connection (``connections.max.idle.ms``). Here
such a connection is closed ``handshake_timeout_ms`` after it was accepted, 30 seconds by default,
so that connections without a login do not hold memory; clients have given up by then
(``socket.connection.setup.timeout.ms`` of librdkafka, 30 seconds, includes TLS and SASL). State is
in state.py, each API in handlers/, bytes are handled by connection.py, sockets by server.py.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Union

from kafka.protocol.wire import Message
from kafka.testing import guards
from kafka.testing.calls import HANDLERS, Call
from kafka.testing.connection import Connection
from kafka.testing.guards.rules import guarded
from kafka.testing.releases import TELEMETRY
from kafka.testing.security.tls import TlsEnd
from kafka.testing.state import ClusterState, Node
from kafka.testing.timers import Timer
from kafka.testing.waiting import Waiting

#: The receiver of a client's bytes.
Endpoint = Union[Connection, TlsEnd]


class Broker:
    """One broker.

    Arguments: node: its address and id; state, waiting: those of its cluster.
    """

    def __init__(self, node: Node, state: ClusterState, waiting: Waiting) -> None:
        self.node = node
        self.state = state
        self.waiting = waiting
        # The versions that it supports, by API key.
        self.served = {key: each for key, each in state.release.served.items() if key in HANDLERS}
        if state.defaults.client_telemetry and state.release.version >= (3, 7):
            self.served.update(TELEMETRY)
        #: Called with the id of a connection that has ended, by purpose.
        self.when_closed: Dict[str, Callable[[int], None]] = {}
        #: Whether it hangs: its clients must not be disconnected for being silent.
        self.is_paused = False
        self._connections: Dict[int, Connection] = {}
        self._handshakes: Dict[int, Timer] = {}  # by connection: the limit of its handshake
        self._last_connection = 0
        if state.authorizer is not None:
            guards.load()

    def __repr__(self) -> str:
        return '<Broker %r, %d connections>' % (self.node, len(self._connections))

    @property
    def node_id(self) -> int:
        """Its id in the cluster."""
        return self.node.node_id

    def connect(self, transport: Any) -> Endpoint:
        """Accept a connection, with TLS if the listener uses TLS.

        Arguments: transport: has ``write(data)``, ``write_parts(parts)`` and ``close()``.
        """
        context = self.state.tls_context
        endpoint: Endpoint
        if context is None:
            endpoint = self._connect(transport)
        else:
            endpoint = TlsEnd(self, transport, context, self._connect)
        timeout_ms = self.state.defaults.handshake_timeout_ms
        if timeout_ms is not None and not endpoint.is_admitted:
            self._watch_handshake(self._last_connection, endpoint, timeout_ms / 1000)
        return endpoint

    def _watch_handshake(self, connection_id: int, endpoint: Endpoint, seconds: float) -> None:
        """Close a connection that has not logged in after this time."""

        def end() -> None:
            if self.is_paused:
                self._watch_handshake(connection_id, endpoint, seconds)
            else:
                del self._handshakes[connection_id]
                if not endpoint.is_admitted:
                    endpoint.close()

        self._handshakes[connection_id] = self.state.timers.later(seconds, end)

    def _connect(self, transport: Any) -> Connection:
        self._last_connection += 1
        connection = Connection(self, self._last_connection, transport)
        self._connections[self._last_connection] = connection
        return connection

    def close_connection(self, connection_id: int) -> None:
        """Close one connection, if it exists."""
        handshake = self._handshakes.pop(connection_id, None)
        if handshake is not None:
            handshake.cancel()
        connection = self._connections.pop(connection_id, None)
        if connection is not None:
            connection.close()
            for callback in list(self.when_closed.values()):
                callback(connection_id)

    def close_connections(self) -> None:
        """Close all connections."""
        for connection_id in list(self._connections):
            self.close_connection(connection_id)

    def handle(self, call: Call[Any]) -> None:
        """Let a fault, a test or the handler of the API respond, now or later."""
        try:
            if self.state.storage is not None:
                self.state.storage.note(call)
            is_open = self.state.control.meet(call)
            if is_open and (self.state.authorizer is None or guarded(call)):
                response = HANDLERS[call.header.api_key](call)
                if isinstance(response, Message):
                    call.respond(response)
        except Exception as error:
            self.note_failure(call, error)

    def note_failure(self, call: Call[Any], error: Exception) -> None:
        """Close the connection of a call that could not be answered, and store the reason."""
        self.state.control.note_failure('%r' % (call,), error)
        call.close_connection()
