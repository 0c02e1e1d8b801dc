"""StickyPartitionAssignor: a balanced assignment that moves as few partitions as possible (KIP-54).

Members send the partitions they owned to the leader in the user data of their subscriptions: v0 is
[topic, [partition]], v1 adds the generation after it. The algorithm is in stickiness.py.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, ClassVar, Dict, Iterable, List, Optional, Sequence, Tuple

from kafka.coordinator.assignors.abstract import (
    AbstractPartitionAssignor,
    OnClassOrObject,
    assignments,
    partitions_of,
)
from kafka.coordinator.assignors.racks import Racks
from kafka.coordinator.assignors.stickiness import Claims, Shares, share
from kafka.coordinator.assignors.subscriptions import (
    PARTITIONS,
    GroupSubscription,
    Partition,
    by_topic,
    flat,
    read_members,
)
from kafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)
from kafka.protocol.types import Int32
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.cluster import ClusterMetadata

__all__ = ['StickyPartitionAssignor']


class StickyPartitionAssignor(AbstractPartitionAssignor):
    """Balance partitions among members; members keep most of those that they owned (2.0).

    An object stores the last assignment of its consumer. In 2.x the class itself did, and may still
    be used like that; a consumer that is given the class creates an object of its own.

    Attributes: member_assignment: the last assignment, None before the first; generation: of that
    assignment, -1 before the first.
    """

    name: ClassVar[str] = 'sticky'
    version: ClassVar[int] = 0
    DEFAULT_GENERATION_ID: ClassVar[int] = -1

    member_assignment: Optional[List[TopicPartition]] = None
    generation: int = DEFAULT_GENERATION_ID

    def __init__(self) -> None:
        self.member_assignment = None
        self.generation = self.DEFAULT_GENERATION_ID

    def __repr__(self) -> str:
        return '<%s has %d partitions of generation %d>' % (
            type(self).__name__,
            len(self.member_assignment or ()),
            self.generation,
        )

    @OnClassOrObject
    def assign(
        self, cluster: ClusterMetadata, members: Any
    ) -> Dict[str, ConsumerProtocolMemberAssignment]:
        """Return the assignments, see AbstractPartitionAssignor."""
        wanted = [with_previous(member) for member in read_members(members)]
        return assignments(shares_of(cluster, wanted, Claims.of(wanted)))

    @OnClassOrObject
    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        """Return the subscription of a member: its topics and the partitions it owned."""
        user_data = b''
        if self.member_assignment is not None:
            user_data = encode_user_data(self.member_assignment, self.generation)
        return ConsumerProtocolMemberMetadata(self.version, list(topics), user_data)

    @OnClassOrObject
    def on_assignment(self, assignment: Any, generation: Optional[int] = None) -> None:
        """Store the assignment of this member. Arguments: generation: None in 2.x."""
        self.member_assignment = assignment.partitions()
        if generation is not None:
            self.generation = generation

    @OnClassOrObject
    def on_generation_assignment(self, generation: int) -> None:
        """Store the generation (2.x)."""
        self.generation = generation


def encode_user_data(partitions: Iterable[Partition], generation: int) -> bytes:
    """Return user data v1."""
    return PARTITIONS.encode(by_topic(partitions)) + Int32.encode(generation)


def decode_user_data(data: Optional[bytes]) -> Tuple[Sequence[Partition], int]:
    """Return previous partitions and generation; none if it cannot be decoded, as in Java."""
    stream = io.BytesIO(data or b'')
    try:
        partitions = flat(PARTITIONS.decode(stream))
    except ValueError:
        return (), -1
    try:
        return partitions, Int32.decode(stream)
    except ValueError:  # v0
        return partitions, -1


def with_previous(member: GroupSubscription) -> GroupSubscription:
    """Return a member with the owned partitions of its user data.

    The field is empty, because eager members revoke all partitions before they join.
    """
    owned, generation = decode_user_data(member.user_data)
    return member._replace(owned=owned, generation=generation)


def shares_of(
    cluster: ClusterMetadata, members: Sequence[GroupSubscription], claims: Claims
) -> Shares:
    """Return {member id: partitions} for the subscriptions and claims of members."""
    partitions = partitions_of(cluster, members)
    return share(members, claims, partitions, Racks(cluster, members, partitions))
