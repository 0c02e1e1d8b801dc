"""A connection of one's own to whoever coordinates a group.

Owns the one connection, which node it leads to, and its exchange when the coordinator moves. Does
not own: finding out who coordinates (kafka/net/coordinators.py), what is asked.

Brokers answer the requests of a connection in their order, and let a Fetch wait for records, a
JoinGroup for the other members. What must not wait behind these goes another way: hence a
connection beside those of the pool, for each of the two kinds of talk that would hold up the other.
"""

from __future__ import annotations

import random
from typing import Any, List, Optional, Tuple

from kafka.net.broker import BrokerLink
from kafka.net.link_parts import LinkState
from kafka.net.routes import GROUP

__all__ = ['CoordinatorLink']

_Place = Tuple[Optional[int], str, int]


class CoordinatorLink:
    """Leads to the coordinator of a group, for turns of its loop only.

    Arguments: loop; pool; group_id; chance: for the jitter.
    """

    def __init__(
        self, loop: Any, pool: Any, group_id: str, chance: Optional[random.Random] = None
    ) -> None:
        self._loop = loop
        self._pool = pool
        self._group_id = group_id
        self._chance = chance
        self._link: Optional[BrokerLink] = None
        self._left: List[BrokerLink] = []  # to former coordinators, with requests in flight

    def __repr__(self) -> str:
        return '<CoordinatorLink of %s %r>' % (self._group_id, self._link)

    async def ready(self) -> BrokerLink:
        """Return the link to the coordinator, connected.

        Raises as Pool.coordinator() and BrokerLink.ready(); who cannot connect, or hears of another
        coordinator, calls forget() before the next try.
        """
        return await self._connected(await self._coordinator())

    async def ready_anywhere(self) -> BrokerLink:
        """Return a link to any broker, always the same while that is connected.

        For offsets in ZooKeeper, which any broker reaches. Raises as Pool.any_ready().
        """
        if self._link is not None and self._link.is_ready:
            return self._link
        any_link = await self._pool.any_ready()
        return await self._connected((any_link.node_id, any_link.host, any_link.port))

    def forget(self) -> None:
        """Look up who coordinates when it is needed next."""
        self._pool.forget_coordinator(GROUP, self._group_id)

    def close(self) -> None:
        """Close the connection; requests that wait fail."""
        for link in [*self._left, *([self._link] if self._link else [])]:
            link.close()
        self._left, self._link = [], None

    async def _coordinator(self) -> _Place:
        node_id = await self._pool.coordinator(GROUP, self._group_id)
        broker = self._pool.cluster.broker_metadata(node_id)
        if broker is None:  # gone from the metadata since: asking anew tells where it is
            self.forget()
            node_id = await self._pool.coordinator(GROUP, self._group_id)
            broker = self._pool.cluster.broker_metadata(node_id)
        return node_id, str(broker.host), broker.port

    async def _connected(self, place: _Place) -> BrokerLink:
        link = self._link
        if link is None or (link.node_id, link.host, link.port) != place:
            if link is not None:
                self._left.append(link)
            node_id, host, port = place
            link = self._link = BrokerLink(
                self._loop, self._pool.settings, host, port, node_id, chance=self._chance
            )
        self._close_left()
        await link.ready()
        return link

    def _close_left(self) -> None:
        """Close connections to former coordinators once nobody waits there."""
        for link in [each for each in self._left if not each.load]:
            link.close()
        self._left = [each for each in self._left if each.state is not LinkState.CLOSED]
