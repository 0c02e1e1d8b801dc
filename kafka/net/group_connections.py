"""The connections of groups to their coordinators, at most two per group.

Used by the Pool, in the thread that runs the loop.

A broker responds to the requests of a connection in order. It holds Fetch until records are
available, and JoinGroup and SyncGroup until the other members have joined. So group requests do not
share a connection with fetches, and JoinGroup and SyncGroup do not share one with the other group
requests: heartbeats, commits and LeaveGroup never wait for a JoinGroup.
"""

from __future__ import annotations

from typing import Optional

from kafka.errors import Cancelled, UnknownBrokerIdError
from kafka.net.broker_connections import BrokerConnections, Table
from kafka.net.coordinators import Coordinators
from kafka.net.node_connection import NodeConnection
from kafka.net.routes import GROUP

__all__ = ['GroupConnections']


class GroupConnections:
    """Provides the connections of groups, and replaces them when a coordinator moves.

    Arguments: connections: all of the pool, those of groups included; coordinators: the lookup.
    """

    def __init__(self, connections: BrokerConnections, coordinators: Coordinators) -> None:
        self._connections = connections
        self._coordinators = coordinators

    def __repr__(self) -> str:
        return '<GroupConnections of %r>' % self._connections

    async def ready(self, group_id: str, parks: bool) -> NodeConnection:
        """Return a ready connection to the coordinator of a group; see Pool.group_link()."""
        table = self._connections.of_group(group_id, parks)
        node_id = await self._coordinators.find(GROUP, group_id)
        try:
            found = self._connections.of_node(table, node_id)
        except UnknownBrokerIdError:  # the cached coordinator is no longer in the metadata
            self._connections.cluster.forget_coordinator(GROUP, group_id)
            node_id = await self._coordinators.find(GROUP, group_id)
            found = self._connections.of_node(table, node_id)
        return await self._connected(table, found)

    def at_hand(self, group_id: str) -> Optional[NodeConnection]:
        """Return the connection for all requests except JoinGroup and SyncGroup.

        None if it is not connected.
        """
        cluster = self._connections.cluster
        node_id = cluster.coordinator(GROUP, group_id)
        if node_id is None or cluster.broker_metadata(node_id) is None:
            return None
        table = self._connections.of_group(group_id, False)
        found = self._connections.of_node(table, node_id)
        return found if found.is_ready else None

    async def ready_anywhere(self, group_id: str) -> NodeConnection:
        """Return a ready connection to any broker; see Pool.any_group_link()."""
        table = self._connections.of_group(group_id, False)
        for known in table.values():
            if known.is_ready:
                return known
        found = await self._connections.any_ready()
        if found.node_id is None:  # a bootstrap server whose metadata lists no broker yet
            return found
        return await self._connected(table, self._connections.of_node(table, found.node_id))

    async def _connected(self, table: Table, found: NodeConnection) -> NodeConnection:
        for node_id, other in list(table.items()):
            if other is not found and not other.load:  # the former coordinator, without requests
                table.pop(node_id).close()
        await found.ready()
        if found.session is None:  # closed or lost before this coroutine was resumed
            raise Cancelled('%r was closed' % found)
        return found
