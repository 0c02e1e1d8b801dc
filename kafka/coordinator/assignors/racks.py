"""The racks of members and replicas, for rack-aware assignors (KIP-881).

Decides whether racks matter at all, and which member matches which partition; each assignor uses
that in its own way. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, FrozenSet, Iterable, Mapping, Optional, Sequence, Tuple

from kafka.coordinator.assignors.subscriptions import GroupSubscription

if TYPE_CHECKING:
    from kafka.cluster import ClusterMetadata

__all__ = ['Racks']

Racked = Dict[int, FrozenSet[str]]


class Racks:
    """The racks of the members of a group and of the replicas of partitions.

    Arguments: cluster: has the racks of brokers, if they are known; members; partitions: {topic:
        [partition]}.

    Attributes: of_members: {member id: rack or None}.
    """

    def __init__(
        self,
        cluster: ClusterMetadata,
        members: Iterable[GroupSubscription],
        partitions: Mapping[str, Sequence[int]],
    ) -> None:
        self.of_members: Dict[str, Optional[str]] = {
            member.member_id: member.rack or None for member in members
        }
        self._topics: Dict[str, Racked] = {}
        # Test doubles, and other implementations of a cluster, may not have replicas.
        if any(self.of_members.values()) and hasattr(cluster, 'partition'):
            for topic, numbers in partitions.items():
                self._topics[topic] = _racks_of_topic(cluster, topic, numbers)

    def matter_to(self, topic: str, members: Iterable[str]) -> bool:
        """Return True if racks make a difference between members for a topic."""
        racked = self._topics.get(topic)
        if not racked:
            return False
        everywhere = frozenset().union(*racked.values())
        here = {self.of_members[member] for member in members}
        return not everywhere.isdisjoint(here) and any(
            racks != everywhere for racks in racked.values()
        )

    def of_partition(self, partition: Tuple[str, int]) -> FrozenSet[str]:
        """Return the racks of the replicas of a partition; empty if unknown."""
        return self._topics.get(partition[0], {}).get(partition[1], frozenset())

    def match(self, member: str, partition: Tuple[str, int]) -> bool:
        """Return True if a member has no rack, or a replica of the partition is in its rack."""
        rack = self.of_members[member]
        return rack is None or rack in self.of_partition(partition)


def _racks_of_topic(cluster: ClusterMetadata, topic: str, numbers: Iterable[int]) -> Racked:
    racked: Racked = {}
    for number in numbers:
        state = cluster.partition(topic, number)
        brokers = [cluster.broker_metadata(node) for node in state.replicas] if state else []
        racked[number] = frozenset(broker.rack for broker in brokers if broker and broker.rack)
    return racked
