"""The leader of a classic group: it watches the topics of all members.

The leader refreshes the metadata of all subscribed topics before each assignment, and triggers a
rebalance when their partitions change, or the racks of replicas if members have racks (KIP-881).
Created by ClassicMember. Runs in the event loop.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Dict, FrozenSet, Iterable, Mapping, Optional, Tuple

from kafka.coordinator.group_settings import GroupSettings
from kafka.errors import KafkaError, LeaderNotAvailableError

if TYPE_CHECKING:
    from kafka.cluster import ClusterMetadata
    from kafka.net.loop.event_loop import EventLoop
    from kafka.net.pool import Pool

__all__ = ['GroupLeader']

log = logging.getLogger(__name__)

#: Metadata requests for a topic that is being created, before it is left out of the assignment.
TRIES = 5

#: The metadata of each topic that an assignment depends on, None for a topic that does not exist.
_Seen = Dict[str, Optional[Tuple[Any, ...]]]


class GroupLeader:
    """The duties of a member while it is the leader. Used only in the event loop.

    Arguments: loop; pool; settings.
    """

    def __init__(self, loop: EventLoop, pool: Pool, settings: GroupSettings) -> None:
        self._loop = loop
        self._pool = pool
        self._settings = settings
        self._topics: FrozenSet[str] = frozenset()
        self._wanted: FrozenSet[str] = frozenset()  # topics of other members only
        self._with_racks = False
        self._seen: Optional[_Seen] = None
        self._assigned: Optional[_Seen] = None  # at the last assignment that this member has made

    def __repr__(self) -> str:
        return '<GroupLeader of %s topics=%d>' % (self._settings.group_id, len(self._topics))

    async def watch(self, members: Mapping[str, Any], own: Iterable[str]) -> None:
        """Refresh the metadata of the topics of all members, and watch them for changes.

        Arguments: members: GroupSubscription by member id; own: the topics of this member.
        """
        self._topics = frozenset(topic for each in members.values() for topic in each.topics)
        self._with_racks = any(each.rack for each in members.values())
        self._want(self._topics, frozenset(own))
        if self._topics:
            await self._refresh()
        self._seen = self._look()
        self._ask_on()

    def _want(self, topics: FrozenSet[str], own: FrozenSet[str]) -> None:
        for topic in sorted(topics):
            self._pool.want_topic(topic)
        for topic in self._wanted - topics - own:
            self._pool.topics.forget(topic)
        self._wanted = topics - own

    async def _refresh(self) -> None:
        topics = sorted(self._topics)
        for attempt in range(TRIES):
            try:
                cluster = await self._pool.metadata(topics, self._settings.request_timeout)
            except KafkaError as error:
                log.warning(
                    'group=%s: it is assigned by what was known before, because brokers could not'
                    ' be asked about its topics: %s',
                    self._settings.group_id,
                    error,
                )
                return
            if not self._are_made(cluster, topics):
                return
            await self._loop.sleep(self._settings.retry_backoff * 2**attempt)

    def _are_made(self, cluster: ClusterMetadata, topics: Iterable[str]) -> bool:
        """Return True if some of the topics are being created now."""
        errors = cluster.topic_errors
        return any(errors.get(topic) is LeaderNotAvailableError for topic in topics)

    def assigned(self) -> None:
        """Record that the assignment is based on the metadata that watch() has seen."""
        self._assigned = self._seen

    def kept(self) -> None:
        """Record that the group keeps its present assignment (KIP-814).

        The metadata of that assignment stays the reference. Otherwise a change is missed in this
        sequence: a static member assigns and stops polling; a partition is added; the member joins
        again, as the leader of an assignment without that partition.
        """
        if self._assigned is not None:
            self._seen = self._assigned

    def resign(self, own: Iterable[str]) -> None:
        """Stop watching. Arguments: own: topics of the member, whose metadata is still needed."""
        self._seen = None
        self._topics = frozenset()
        self._want(self._topics, frozenset(own))

    def is_outdated(self) -> bool:
        """Return True if the topics have changed since the last assignment."""
        if self._seen is None:
            return False
        self._ask_on()
        return self._look() != self._seen

    def _ask_on(self) -> None:
        """Request the metadata of the topics again soon, if one of them is still being created."""
        if self._are_made(self._pool.cluster, self._topics):
            self._pool.refresh()

    def _look(self) -> _Seen:
        return {topic: self._look_at(topic) for topic in self._topics}

    def _look_at(self, topic: str) -> Optional[Tuple[Any, ...]]:
        partitions = self._pool.cluster.partitions_for_topic(topic)
        if partitions is None:
            return None
        if not self._with_racks:
            return (len(partitions),)
        return tuple(self._racks(topic, each) for each in sorted(partitions))

    def _racks(self, topic: str, partition: int) -> FrozenSet[Optional[str]]:
        cluster = self._pool.cluster
        state = cluster.partition(topic, partition)
        brokers = [cluster.broker_metadata(node) for node in (state.replicas if state else ())]
        return frozenset(broker.rack for broker in brokers if broker is not None)
