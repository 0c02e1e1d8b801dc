"""The connections to the brokers of one cluster, and the selection of a node for any request.

Created by the Pool; used only by the thread that runs its loop, except for ``is_connected``.
Connections are kept in tables by node id, one table per purpose: a broker responds to the requests
of a connection in order, so requests that it may hold (Fetch, JoinGroup) use a separate connection.
"""

from __future__ import annotations

import random
from typing import Any, Callable, Coroutine, Dict, Iterable, List, Optional, Tuple

from kafka.cluster import ClusterMetadata
from kafka.errors import (
    Cancelled,
    IllegalStateError,
    KafkaError,
    NoBrokersAvailable,
    UnknownBrokerIdError,
)
from kafka.net.attempts import Attempt, describe, telling
from kafka.net.connect import Family
from kafka.net.happy_eyeballs import first_of
from kafka.net.loop.event_loop import EventLoop
from kafka.net.node_connection import ConnectionState, NodeConnection
from kafka.net.routes import is_fatal
from kafka.net.settings import NetSettings
from kafka.protocol.negotiation import BrokerVersions
from kafka.structs import BrokerMetadata

__all__ = ['INTERVAL', 'BrokerConnections', 'Table', 'with_attempts']

#: Seconds after which the next server is tried while the previous one has not responded.
INTERVAL = 1.0

#: Connections by node id.
Table = Dict[int, NodeConnection]


class BrokerConnections:
    """All connections of one Pool.

    Arguments: loop; settings; cluster: the cached metadata; chance: random numbers for the jitter
    and the order of brokers; on_lost: called with a connection that was ready and has ended.

    Attributes: common: the connections for requests that brokers do not hold; fetches: those for
    Fetch; cluster; family: what is known about all brokers of the cluster; is_closed; spare: the
    connection to a bootstrap server whose metadata lists no broker, or None; seen_versions: those
    of the broker that was connected last, None before the first.
    """

    def __init__(
        self,
        loop: EventLoop,
        settings: NetSettings,
        cluster: ClusterMetadata,
        chance: random.Random,
        on_lost: Callable[[NodeConnection], Any],
    ) -> None:
        self.common: Table = {}
        self.fetches: Table = {}
        self.cluster = cluster
        self.family = Family()
        self.is_closed = False
        self.spare: Optional[NodeConnection] = None
        self.seen_versions: Optional[BrokerVersions] = None
        self._loop = loop
        self._settings = settings
        self._chance = chance
        self._on_lost = on_lost
        self._groups: Dict[Tuple[str, bool], Table] = {}
        self._features: Tuple[int, Dict[str, int]] = (-1, {})

    def __repr__(self) -> str:
        return '<BrokerConnections %d, ready=%d>' % (len(self.all()), self.ready_count)

    # ------------------------------------------------------------ one connection

    def make(self, host: str, port: int, node_id: Optional[int] = None) -> NodeConnection:
        """Return a new connection that is in no table and not connected yet."""
        return NodeConnection(
            self._loop,
            self._settings,
            host,
            port,
            node_id,
            self.family,
            self._chance,
            self._on_ready,
            self._on_lost,
        )

    def of_group(self, group_id: str, parks: bool) -> Table:
        """Return the connections of a group.

        Arguments: parks: True for those of JoinGroup and SyncGroup, False for the others.
        """
        return self._groups.setdefault((group_id, parks), {})

    def of_node(self, table: Table, node_id: int) -> NodeConnection:
        """Return the connection to a node from a table; create it if it is absent.

        Raises UnknownBrokerIdError for an unknown node, IllegalStateError after close().
        """
        if self.is_closed:
            raise IllegalStateError('the client is closed')
        broker = self.cluster.broker_metadata(node_id)
        if broker is None or not isinstance(broker.port, int):
            raise UnknownBrokerIdError('no broker has the node id %r' % (node_id,))
        known = table.get(node_id)
        if known is not None and (known.host, known.port) != (broker.host, broker.port):
            known.close()
        if known is None or known.state is ConnectionState.CLOSED:
            known = table[node_id] = self.make(str(broker.host), broker.port, node_id)
        return known

    def keep_or_close(self, server: NodeConnection) -> None:
        """Keep a bootstrap connection as that to the broker of its address, or close it."""
        if server is self.spare:
            return
        for broker in self.brokers():
            known = self.common.get(broker.nodeId)
            same = (broker.host, broker.port) == (server.host, server.port)
            if same and server.is_ready and (known is None or not known.is_ready):
                if known is not None:
                    known.close()
                server.node_id = broker.nodeId
                self.common[broker.nodeId] = server
                return
        server.close()

    def take_spare(self) -> Optional[NodeConnection]:
        """Return ``spare`` and set it to None."""
        spare, self.spare = self.spare, None
        return spare

    def _on_ready(self, connection: NodeConnection) -> None:
        versions = connection.versions
        self.seen_versions = versions or self.seen_versions
        if versions is not None and versions.finalized_features_epoch > self._features[0]:
            self._features = (versions.finalized_features_epoch, versions.finalized_features)

    # ------------------------------------------------------------ all of them

    def brokers(self) -> List[BrokerMetadata]:
        """Return the brokers sorted by node id: the order of a set differs between processes."""
        return sorted(self.cluster.brokers(), key=lambda broker: broker.nodeId)

    def all(self) -> List[NodeConnection]:
        """Return all connections; may be called by any thread."""
        spare = self.spare  # read once: the thread that runs the loop may change it concurrently
        # Each dict is copied in one step, for the same reason.
        tables = self._groups.copy().values()
        of_groups = [each for table in tables for each in table.copy().values()]
        beside = [*self.fetches.values(), *of_groups]
        return [*self.common.values(), *beside, *([] if spare is None else [spare])]

    @property
    def is_connected(self) -> bool:
        """Whether any connection is ready; may be read by any thread."""
        return not self.is_closed and any(each.is_ready for each in self.all())

    @property
    def ready_count(self) -> int:
        """The number of nodes whose common connection is ready."""
        return sum(each.is_ready for each in self.common.values())

    def versions(self, node_id: int) -> Optional[BrokerVersions]:
        """Return the API versions of a node; None while it is not connected."""
        known = self.common.get(node_id)
        return None if known is None else known.versions

    def finalized_features(self) -> Dict[str, int]:
        """Return {feature: level} of the newest finalized features of the cluster (KIP-584)."""
        return self._features[1]

    # ------------------------------------------------------------ any of them

    def candidates(self) -> List[NodeConnection]:
        """Return the connections to all brokers, the least loaded first.

        First those that are ready, by the number of their requests; then the others, by the time of
        their last attempt; those in backoff come last.
        """
        found = [
            self.of_node(self.common, broker.nodeId)
            for broker in self.brokers()
            if not self.cluster.is_bootstrap(broker.nodeId)
        ]
        if not found and self.spare is not None:
            return [self.spare]
        self._chance.shuffle(found)
        return sorted(
            found,
            key=lambda each: (
                not each.is_ready,
                each.load if each.is_ready else 0,
                each.backoff > 0,
                each.last_attempt,
            ),
        )

    async def any_ready(self) -> NodeConnection:
        """Return a ready connection to any broker; connect if necessary.

        Raises NoBrokersAvailable, with ``attempts``, if no broker can be reached.
        """
        found = self.candidates()
        if found and found[0].is_ready:
            return found[0]
        if not found:
            raise self.no_brokers([], 0)

        def connecting(each: NodeConnection) -> Callable[[], Coroutine[Any, Any, NodeConnection]]:
            async def get_ready() -> NodeConnection:
                if each.state is ConnectionState.CLOSED:  # by a bootstrap since then
                    raise Cancelled('%r was closed' % each)
                await each.ready()
                return each

            return get_ready

        try:
            return await first_of(self._loop, [connecting(each) for each in found], INTERVAL)
        except KafkaError as error:
            attempts = [attempt for each in found for attempt in each.attempts]
            if is_fatal(error):
                raise with_attempts(error, attempts) from None
            text = 'no broker can be reached: ' + describe(attempts)
            raise with_attempts(NoBrokersAvailable(text), attempts) from error

    def no_brokers(self, attempts: Iterable[Attempt], timeout: float) -> NoBrokersAvailable:
        """Return the error of a bootstrap in which no server responded, with its attempts."""
        attempts = telling(attempts)
        text = 'no bootstrap server of %s answered within %.3g seconds' % (
            ', '.join('%s:%s' % server for server in self._settings.servers) or '(none)',
            timeout,
        )
        shown = describe(attempts)
        error = NoBrokersAvailable('%s: %s' % (text, shown) if shown else text)
        with_attempts(error, attempts)
        return error

    # ------------------------------------------------------------ closing

    def close_replaced(self, before: Table) -> None:
        """Close all connections that existed before a bootstrap.

        Arguments: before: the common ones; connections that replaced them in the bootstrap are
        kept.
        """
        for node_id, connection in before.items():
            if self.common.get(node_id) is connection:
                del self.common[node_id]
            connection.close()
        groups, self._groups = self._groups, {}
        for table in (*groups.values(), self.fetches):
            for connection in table.copy().values():
                connection.close()
        self.fetches.clear()

    def close_gone(self) -> None:
        """Close idle connections to brokers that are no longer listed in the metadata."""
        known = {broker.nodeId for broker in self.cluster.brokers()}
        for table in (self.common, self.fetches, *self._groups.values()):
            for node_id in [each for each in table if each not in known]:
                if not table[node_id].load:
                    table.pop(node_id).close()

    def close(self) -> None:
        """Close all connections; outstanding requests fail."""
        self.is_closed = True
        for connection in self.all():
            connection.close()
        self.common.clear()
        self.fetches.clear()


def with_attempts(error: Any, attempts: Iterable[Attempt]) -> Any:
    """Set the ``attempts`` of an error; return the error."""
    error.attempts = list(attempts)
    return error
