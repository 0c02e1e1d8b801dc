"""RoundRobinPartitionAssignor: partitions are assigned to the members in turn."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any, Dict, List

from kafka.coordinator.assignors.abstract import ByClass, assignments, partitions_of
from kafka.coordinator.assignors.subscriptions import Partition, read_members
from kafka.coordinator.protocol import ConsumerProtocolMemberAssignment

if TYPE_CHECKING:
    from kafka.cluster import ClusterMetadata

__all__ = ['RoundRobinPartitionAssignor']


class RoundRobinPartitionAssignor(ByClass):
    """Assign the partitions of all topics in turn to the members that are subscribed (1.x).

    With two members and two topics of three partitions the first gets 0 and 2 of the first topic
    and 1 of the second.
    """

    name = 'roundrobin'

    @classmethod
    def assign(
        cls, cluster: ClusterMetadata, members: Any
    ) -> Dict[str, ConsumerProtocolMemberAssignment]:
        """Return the assignments, see AbstractPartitionAssignor."""
        wanted = read_members(members)
        shares: Dict[str, List[Partition]] = {each.member_id: [] for each in wanted}
        turns = cycle([(each.member_id, frozenset(each.topics)) for each in wanted])
        for topic, partitions in partitions_of(cluster, wanted).items():
            for partition in partitions:
                member_id, topics = next(turns)
                while topic not in topics:
                    member_id, topics = next(turns)
                shares[member_id].append((topic, partition))
        return assignments(shares)
