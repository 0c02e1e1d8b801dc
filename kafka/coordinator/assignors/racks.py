"""The racks of members and of replicas, for assignors that prefer near replicas (KIP-881).

Says whether racks count at all, and which member matches which partition; each assignor uses that
in its own way. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, FrozenSet, Iterable, Mapping, Optional, Sequence, Tuple

from kafka.coordinator.assignors.subscriptions import GroupSubscription

if TYPE_CHECKING:
    from kafka.cluster import ClusterMetadata

__all__ = ['Racks']

Racked = Dict[int, FrozenSet[str]]


class Racks:
    """Where the members of a group and the replicas of partitions stand.

    Arguments: cluster: its brokers' racks count, where it knows any; members; partitions: {topic:
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
        # Test doubles, and clusters of other makes, know no replicas.
        if any(self.of_members.values()) and hasattr(cluster, 'partition'):
            for topic, numbers in partitions.items():
                self._topics[topic] = _racks_of_topic(cluster, topic, numbers)

    def matter_to(self, topic: str, members: Iterable[str]) -> bool:
        """Return True if it makes a difference which of the members reads which partition."""
        racked = self._topics.get(topic)
        if not racked:
            return False
        everywhere = frozenset().union(*racked.values())
        here = {self.of_members[member] for member in members}
        return not everywhere.isdisjoint(here) and any(
            racks != everywhere for racks in racked.values()
        )

    def of_partition(self, partition: Tuple[str, int]) -> FrozenSet[str]:
        """Return the racks that keep a partition; nothing where that is not known."""
        return self._topics.get(partition[0], {}).get(partition[1], frozenset())

    def match(self, member: str, partition: Tuple[str, int]) -> bool:
        """Return True if a member need not look beyond its rack; one without rack never minds."""
        rack = self.of_members[member]
        return rack is None or rack in self.of_partition(partition)


def _racks_of_topic(cluster: ClusterMetadata, topic: str, numbers: Iterable[int]) -> Racked:
    racked: Racked = {}
    for number in numbers:
        state = cluster.partition(topic, number)
        brokers = [cluster.broker_metadata(node) for node in state.replicas] if state else []
        racked[number] = frozenset(broker.rack for broker in brokers if broker and broker.rack)
    return racked
