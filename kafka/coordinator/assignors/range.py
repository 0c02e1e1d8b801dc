"""RangePartitionAssignor: every subscriber of a topic gets a range of its partitions.

With racks (KIP-881) each member first gets, up to its quota, partitions with a replica in its rack;
topics with the same subscribers and number of partitions stay co-partitioned.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Sequence, Tuple

from kafka.coordinator.assignors.abstract import ByClass, partitions_of
from kafka.coordinator.assignors.racks import Racks
from kafka.coordinator.assignors.subscriptions import read_members
from kafka.coordinator.protocol import ConsumerProtocolMemberAssignment

if TYPE_CHECKING:
    from kafka.cluster import ClusterMetadata

__all__ = ['RangePartitionAssignor']


class RangePartitionAssignor(ByClass):
    """Assign a range of each topic to each of its subscribers; the first may get one more (1.x).

    With two members and two topics of three partitions the first gets 0 and 1 of both.
    """

    name = 'range'

    @classmethod
    def assign(
        cls, cluster: ClusterMetadata, members: Any
    ) -> Dict[str, ConsumerProtocolMemberAssignment]:
        """Return the assignments, see AbstractPartitionAssignor."""
        wanted = read_members(members)
        partitions = partitions_of(cluster, wanted)
        racks = Racks(cluster, wanted, partitions)
        subscribers: Dict[str, List[str]] = {topic: [] for topic in partitions}
        for member in wanted:
            for topic in set(member.topics) & partitions.keys():
                subscribers[topic].append(member.member_id)
        sharings = [
            _Sharing(topic, partitions[topic], subscribers[topic]) for topic in sorted(partitions)
        ]
        _share_by_racks(sharings, racks)
        shares: Dict[str, List[Tuple[str, List[int]]]] = {each.member_id: [] for each in wanted}
        for sharing in sharings:
            sharing.share()
            for member_id, taken in sharing.taken.items():
                shares[member_id].append((sharing.topic, sorted(taken)))
        return {
            member_id: ConsumerProtocolMemberAssignment(cls.version, share, b'')
            for member_id, share in shares.items()
        }


class _Sharing:
    """The state of assigning one topic: unassigned partitions, and how many each may still take."""

    def __init__(self, topic: str, partitions: Sequence[int], members: Sequence[str]) -> None:
        self.topic = topic
        self.numbers = tuple(partitions)
        self.taken: Dict[str, List[int]] = {member: [] for member in members}
        self._left = dict.fromkeys(partitions)  # an ordered set
        self._quota, self._one_more = divmod(len(partitions), len(members))

    def room(self, member: str) -> int:
        """Return how many partitions a member may still take."""
        return max(0, self._quota + (self._one_more > 0) - len(self.taken[member]))

    def take(self, member: str, partitions: Sequence[int]) -> None:
        """Assign partitions to a member."""
        before = len(self.taken[member])
        self.taken[member] += partitions
        if before <= self._quota < len(self.taken[member]):
            self._one_more -= 1
        for partition in partitions:
            del self._left[partition]

    def share(self, may: Callable[[str, int], bool] = lambda member, partition: True) -> None:
        """Assign to each member in turn the unassigned partitions that `may` allows."""
        for member in self.taken:
            fitting = (partition for partition in self._left if may(member, partition))
            self.take(member, list(islice(fitting, self.room(member))))


def _share_by_racks(sharings: Iterable[_Sharing], racks: Racks) -> None:
    """Assign to members partitions with replicas in their racks, if racks make a difference."""
    by_racks = [each for each in sharings if racks.matter_to(each.topic, each.taken)]
    if not by_racks:
        return
    together: Dict[Tuple[Any, ...], List[_Sharing]] = {}
    for sharing in sharings:
        together.setdefault((sharing.numbers, *sharing.taken), []).append(sharing)
    for some in together.values():
        if len(some) > 1:
            _share_together(some, racks)
        elif some[0] in by_racks:
            topic = some[0].topic
            some[0].share(lambda member, number, topic=topic: racks.match(member, (topic, number)))  # type: ignore[misc]


def _share_together(sharings: Sequence[_Sharing], racks: Racks) -> None:
    """Assign each partition number of all topics to the first member whose rack has all of them."""
    for number in sharings[0].numbers:
        for member in sharings[0].taken:
            if all(
                sharing.room(member) and racks.match(member, (sharing.topic, number))
                for sharing in sharings
            ):
                for sharing in sharings:
                    sharing.take(member, [number])
                break
