"""ConsumerMetadata: keeps the subscription of a consumer and the metadata of its topics in step.

It tells the pool which topics to refresh, matches a pattern against the topics of the cluster, and
assigns all partitions of the subscribed topics if the consumer has no group. A listener of the
cluster metadata; runs in turns of the loop, and changes the subscription under the consumer's lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, ContextManager, Dict, Optional, Set

from kafka.consumer.subscription_state import SubscriptionState
from kafka.coordinator.member import Member
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.cluster import ClusterMetadata
    from kafka.net.pool import Pool

__all__ = ['ConsumerMetadata']

#: How long a topic that a pattern matched may be missing in the metadata before it is dropped. A
#: broker that has just started reports no topics for a while, and the permission to describe a
#: topic may be revoked for a moment. The Java consumer drops the partitions at the first such
#: response, and continues at another position if the topic reappears without committed offsets.
MISSING_SECONDS = 10.0


class ConsumerMetadata:
    """Keeps a subscription up to date with the metadata of the cluster.

    Arguments: pool; subscription, lock: of the consumer; member: the group member, None without a
    group; look: called after each change; excludes_internal: whether patterns ignore internal
    topics.
    """

    def __init__(
        self,
        pool: Pool,
        subscription: SubscriptionState,
        lock: ContextManager[Any],
        member: Optional[Member],
        look: Callable[[], Any],
        excludes_internal: bool,
    ) -> None:
        self._pool = pool
        self._subscription = subscription
        self._lock = lock
        self._member = member
        self._look = look
        self._excludes_internal = excludes_internal
        self._wanted: Set[str] = set()
        self._counts: Dict[str, Optional[int]] = {}
        self._missing_since: Dict[str, float] = {}  # topics that a pattern matched: since when

    def __repr__(self) -> str:
        return '<ConsumerMetadata %d topics>' % len(self._wanted)

    def __call__(self, cluster: ClusterMetadata) -> None:
        """Handle new metadata."""
        self._follow(cluster)
        self._look()

    def subscribed(self) -> None:
        """Handle a changed subscription or assignment; in a turn of the loop."""
        self._follow(self._pool.cluster)
        if self._member is not None:
            self._member.subscription_changed()
        self._look()

    def _follow(self, cluster: ClusterMetadata) -> None:
        subscription = self._subscription
        with self._lock:
            if subscription.subscribed_pattern is not None:
                names = cluster.topics(exclude_internal_topics=self._excludes_internal)
                match = subscription.subscribed_pattern.match
                found = {name for name in names if match(name)}
                missing = {
                    name for name in set(subscription.subscription or ()) - found if match(name)
                }
                found |= self._kept(missing, cluster.refreshed_at)
                subscription.change_subscription(found)
            else:
                self._missing_since = {}
            is_auto = subscription.partitions_auto_assigned()
            topics = set(subscription.subscription or ()) if is_auto else set()
            wanted = topics or {str(each.topic) for each in subscription.assignment}
            wants_all = subscription.subscribed_pattern is not None
            if is_auto and self._member is None:
                self._assign_all(cluster, topics)
        self._want(wanted, wants_all)
        if not wants_all:
            self._ask_again(cluster, topics)
        elif self._missing_since:
            self._pool.topics.refresh()
        counts = {
            topic: self._counts.get(topic)
            if topic in self._missing_since
            else _count(cluster, topic)
            for topic in topics
        }
        changed, self._counts = counts != self._counts, counts
        if changed and self._member is not None:
            self._member.subscription_changed()

    def _kept(self, missing: Set[str], now: float) -> Set[str]:
        """Return the missing topics that stay subscribed: missing for less than MISSING_SECONDS."""
        since = {name: self._missing_since.get(name, now) for name in missing}
        self._missing_since = {
            name: began for name, began in since.items() if now - began < MISSING_SECONDS
        }
        return set(self._missing_since)

    def _assign_all(self, cluster: ClusterMetadata, topics: Set[str]) -> None:
        """Assign all partitions of the topics, for a consumer without a group."""
        subscription = self._subscription
        every = {
            TopicPartition(topic, number)
            for topic in topics
            for number in cluster.partitions_for_topic(topic) or ()
        }
        # A topic that is missing in the metadata for a moment keeps its partitions.
        known = {topic for topic in topics if cluster.partitions_for_topic(topic)}
        every.update(
            each
            for each in subscription.assignment
            if each.topic in topics and each.topic not in known
        )
        if every != set(subscription.assignment):
            subscription.assign_from_subscribed(sorted(every))

    def _ask_again(self, cluster: ClusterMetadata, topics: Set[str]) -> None:
        """Keep requesting subscribed topics that are missing: they may be in creation."""
        for topic in topics:
            if cluster.partitions_for_topic(topic) is None:
                error = cluster.topic_errors.get(topic)
                if error is not None and error.retriable:
                    self._pool.topics.want_still(topic)

    def _want(self, wanted: Set[Any], wants_all: bool) -> None:
        interest = self._pool.topics
        if wants_all and not interest.wants_all:
            interest.wants_all = True
            interest.refresh()
        interest.wants_all = wants_all
        for topic in self._wanted - wanted:
            interest.forget(topic)
        for topic in sorted(wanted - self._wanted):
            interest.want(topic)
        self._wanted = set(wanted)


def _count(cluster: ClusterMetadata, topic: str) -> Optional[int]:
    partitions = cluster.partitions_for_topic(topic)
    return None if partitions is None else len(partitions)
