"""The connections of groups to whoever coordinates them, two for each group at most.

Owns which node they lead to, and their exchange when the coordinator moves. Does not own: links
themselves (broker.py), finding out who coordinates (coordinators.py), what is asked.

Brokers answer the requests of a connection in their order, and let a Fetch wait for records,
JoinGroup and SyncGroup for the other members. So the calls of a member go another way than its
fetches, and what a broker parks goes another way than the rest: heartbeats, commits and LeaveGroup
never wait behind a JoinGroup.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

from kafka.errors import Cancelled, UnknownBrokerIdError
from kafka.net.broker import BrokerLink
from kafka.net.routes import GROUP

__all__ = ['GroupLinks']

#: By node; more than one only while somebody still waits at a former coordinator.
_Links = Dict[int, BrokerLink]


class GroupLinks:
    """Those of one pool, for turns of its loop only.

    Arguments: pool; link_of: returns the link to a node out of a dict, where it puts a new one.
    """

    def __init__(self, pool: Any, link_of: Callable[[_Links, int], BrokerLink]) -> None:
        self._pool = pool
        self._link_of = link_of
        self._tables: Dict[Tuple[str, bool], _Links] = {}

    def __repr__(self) -> str:
        return '<GroupLinks %d>' % len(self.links())

    async def ready(self, group_id: str, parks: bool) -> BrokerLink:
        """Return the link to the coordinator of a group, connected; as Pool.group_link()."""
        pool, links = self._pool, self._table(group_id, parks)
        node_id = await pool.coordinator(GROUP, group_id)
        try:
            link = self._link_of(links, node_id)
        except UnknownBrokerIdError:  # it was found once, and is listed no longer
            pool.forget_coordinator(GROUP, group_id)
            node_id = await pool.coordinator(GROUP, group_id)
            link = self._link_of(links, node_id)
        return await self._connected(links, link)

    def at_hand(self, group_id: str) -> Optional[BrokerLink]:
        """Return the one for what is never parked if it is known and connected, else None."""
        cluster = self._pool.cluster
        node_id = cluster.coordinator(GROUP, group_id)
        if node_id is None or cluster.broker_metadata(node_id) is None:
            return None
        link = self._link_of(self._table(group_id, False), node_id)
        return link if link.is_ready else None

    async def ready_anywhere(self, group_id: str) -> BrokerLink:
        """Return one to any broker, the same while it is connected; as Pool.any_group_link()."""
        links = self._table(group_id, False)
        for link in links.values():
            if link.is_ready:
                return link
        found: BrokerLink = await self._pool.any_ready()
        if found.node_id is None:  # a bootstrap server that knows of no broker yet
            return found
        return await self._connected(links, self._link_of(links, found.node_id))

    def _table(self, group_id: str, parks: bool) -> _Links:
        return self._tables.setdefault((group_id, parks), {})

    async def _connected(self, links: _Links, link: BrokerLink) -> BrokerLink:
        for node_id, other in list(links.items()):
            if other is not link and not other.load:  # nobody waits at that former coordinator
                links.pop(node_id).close()
        await link.ready()
        if link.session is None:  # it was closed or lost before this was heard
            raise Cancelled('%r was closed' % link)
        return link

    # ------------------------------------------------------------ for the pool

    def links(self) -> List[BrokerLink]:
        """Return all there are; may be called by any thread."""
        # Copied in one step each: a turn of the loop may change them meanwhile.
        tables = self._tables.copy().values()
        return [link for links in tables for link in links.copy().values()]

    def tables(self) -> List[_Links]:
        """Return the dicts that hold them, by node."""
        return list(self._tables.values())

    def close(self) -> None:
        """Close all; requests that wait fail. Whoever needs one gets a new one."""
        links, self._tables = self.links(), {}
        for link in links:
            link.close()
