"""CooperativeStickyAssignor: the sticky assignment with cooperative rebalancing (KIP-429).

Subscriptions have the owned partitions from version 1 on, and their generation from version 2 on
(KIP-792); in version 1 the generation is in the user data. A partition that changes its owner is
assigned to no member at first: its owner revokes it, and the group rebalances again.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, ClassVar, Dict, Iterable, Sequence

from kafka.coordinator.assignors.abstract import OnClassOrObject, RebalanceProtocol, assignments
from kafka.coordinator.assignors.stickiness import Claims, withhold
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor, shares_of
from kafka.coordinator.assignors.subscriptions import (
    GroupSubscription,
    by_topic,
    read_members,
)
from kafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)
from kafka.protocol.consumer_protocol import TopicPartition as TopicPartitions

if TYPE_CHECKING:
    from kafka.cluster import ClusterMetadata

__all__ = ['CooperativeStickyAssignor']

_INT32 = struct.Struct('>i')


class CooperativeStickyAssignor(StickyPartitionAssignor):
    """Balance partitions among members; only partitions that move are revoked (3.0).

    All members of the group have to use it. Attributes: see StickyPartitionAssignor.
    """

    name: ClassVar[str] = 'cooperative-sticky'
    version: ClassVar[int] = 1

    def supported_protocols(self) -> Sequence[RebalanceProtocol]:
        """Return both protocols, COOPERATIVE first."""
        return [RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER]

    @OnClassOrObject
    def assign(
        self, cluster: ClusterMetadata, members: Any
    ) -> Dict[str, ConsumerProtocolMemberAssignment]:
        """Return the assignments, see AbstractPartitionAssignor."""
        wanted = [_with_generation(member) for member in read_members(members)]
        claims = Claims.of(wanted)
        return assignments(withhold(shares_of(cluster, wanted, claims), wanted, claims))

    @OnClassOrObject
    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        """Return the subscription of a member: its topics and owned partitions."""
        told = ConsumerProtocolMemberMetadata(
            self.version, list(topics), _INT32.pack(self.generation)
        )
        told.owned_partitions = tuple(
            TopicPartitions(topic=topic, partitions=partitions)
            for topic, partitions in by_topic(self.member_assignment or ())
        )
        told.generation_id = self.generation
        return told


def _with_generation(member: GroupSubscription) -> GroupSubscription:
    """Return a subscription with the generation of its user data, if the field is missing."""
    if member.generation != -1 or member.version >= 2:
        return member
    try:
        (generation,) = _INT32.unpack_from(member.user_data or b'')
    except struct.error:
        return member
    return member._replace(generation=generation)
