"""Keeping a subscription in step with what is learned of the cluster.

Owns: which topics are of interest to the pool, which topics a pattern matches, what a consumer
without membership is assigned. Does not own: the table (subscription_state.py), the asking
(net/metadata_updater.py).
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Set

from kafka.consumer.subscription_state import SubscriptionState
from kafka.coordinator.member import Member
from kafka.structs import TopicPartition

__all__ = ['Following']

#: A topic that a pattern has matched is missing in the metadata for so long before it is dropped. A
#: broker that has just started names no topics for a while, and the right to see a topic may be
#: taken away for a moment; Java's consumer drops its partitions at the first such answer, and
#: without committed offsets goes on elsewhere when the topic comes back.
MISSING_SECONDS = 10.0


class Following:
    """A listener of one consumer's ClusterMetadata; to be called in turns of the loop.

    Arguments: pool; subscription, lock: of the consumer; member: None without membership; look:
    what to call after a change; excludes_internal: whether patterns pass over internal topics.
    """

    def __init__(
        self,
        pool: Any,
        subscription: SubscriptionState,
        lock: Any,
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
        self._missing_since: Dict[str, float] = {}  # of topics that a pattern has matched

    def __repr__(self) -> str:
        return '<Following %d topics>' % len(self._wanted)

    def __call__(self, cluster: Any) -> None:
        """Take note of a change of what is known."""
        self._follow(cluster)
        self._look()

    def subscribed(self) -> None:
        """Take note of a new subscription or assignment, or of none any more."""
        self._follow(self._pool.cluster)
        if self._member is not None:
            self._member.subscription_changed()
        self._look()

    def _follow(self, cluster: Any) -> None:
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
        """Return which of the topics that metadata lacks stay subscribed to for now."""
        since = {name: self._missing_since.get(name, now) for name in missing}
        self._missing_since = {
            name: began for name, began in since.items() if now - began < MISSING_SECONDS
        }
        return set(self._missing_since)

    def _assign_all(self, cluster: Any, topics: Set[str]) -> None:
        """Assign all partitions of some topics: nobody shares them."""
        subscription = self._subscription
        every = {
            TopicPartition(topic, number)
            for topic in topics
            for number in cluster.partitions_for_topic(topic) or ()
        }
        # A topic that metadata lacks for a moment keeps its partitions.
        known = {topic for topic in topics if cluster.partitions_for_topic(topic)}
        every.update(
            each
            for each in subscription.assignment
            if each.topic in topics and each.topic not in known
        )
        if every != set(subscription.assignment):
            subscription.assign_from_subscribed(sorted(every))

    def _ask_again(self, cluster: Any, topics: Set[str]) -> None:
        """Look for subscribed topics until they are there: they are made, or were just now."""
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


def _count(cluster: Any, topic: str) -> Optional[int]:
    partitions = cluster.partitions_for_topic(topic)
    return None if partitions is None else len(partitions)
