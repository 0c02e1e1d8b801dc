"""AbstractPartitionAssignor: the interface of the assignors of a classic group.

The base of this package's assignors and of those that programs write. adapt.py calls the assignors
of all releases.
"""

from __future__ import annotations

import abc
import enum
import logging
from typing import TYPE_CHECKING, Any, Callable, ClassVar, Dict, Iterable, List, Mapping, Sequence

from kafka.coordinator.assignors.subscriptions import GroupSubscription, Partition, by_topic
from kafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)

if TYPE_CHECKING:
    from kafka.cluster import ClusterMetadata

__all__ = ['AbstractPartitionAssignor', 'RebalanceProtocol']

log = logging.getLogger(__name__)


class RebalanceProtocol(enum.IntEnum):
    """What a member does with its partitions before a new assignment (3.0, KIP-429)."""

    EAGER = 0  # it gives up all of them
    COOPERATIVE = 1  # it keeps those that stay its own


class AbstractPartitionAssignor(abc.ABC):
    """Share the partitions of topics among the members of a group; a base for assignors.

    Methods may be those of the class or of its objects. Up to 2.x on_assignment() has one argument.
    """

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """What members of the group know this assignor by."""

    @abc.abstractmethod
    def assign(self, cluster: ClusterMetadata, members: Any) -> Dict[str, Any]:
        """Return who gets what: {member id: ConsumerProtocolMemberAssignment}.

        Arguments: cluster: whose partitions_for_topic(topic) tells the partitions; members:
            {member id: ConsumerProtocolMemberMetadata}. A member id is a str that has, as 3.0 wants
            it, the attributes member_id, group_instance_id and metadata.
        """

    @abc.abstractmethod
    def metadata(self, topics: Iterable[str]) -> Any:
        """Return what this member tells the group: a ConsumerProtocolMemberMetadata."""

    @abc.abstractmethod
    def on_assignment(self, assignment: Any, generation: int) -> Any:
        """Take note of the ConsumerProtocolMemberAssignment that this member got."""

    def supported_protocols(self) -> Sequence[RebalanceProtocol]:
        """Return what the assignor can do, the best first (3.0)."""
        return [RebalanceProtocol.EAGER]


class ByClass(AbstractPartitionAssignor):
    """An assignor without state, used as a class or as an object."""

    version: ClassVar[int] = 0

    @classmethod
    def metadata(cls, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        """Return what a member tells the group: its topics."""
        return ConsumerProtocolMemberMetadata(cls.version, list(topics), b'')

    @classmethod
    def on_assignment(cls, assignment: Any, generation: int = -1) -> None:
        """Do nothing."""


def partitions_of(
    cluster: ClusterMetadata, members: Iterable[GroupSubscription]
) -> Dict[str, List[int]]:
    """Return {topic: [partition]}, ascending, of all subscribed topics that are known.

    The others are left out, with a warning.
    """
    found = {}
    for topic in sorted({topic for member in members for topic in member.topics}):
        partitions = cluster.partitions_for_topic(topic)
        if partitions is None:
            log.warning('no partition of topic %s is assigned: nothing is known of it', topic)
        else:
            found[topic] = sorted(partitions)
    return found


def assignments(
    shares: Mapping[str, Iterable[Partition]],
) -> Dict[str, ConsumerProtocolMemberAssignment]:
    """Return {member id: assignment} of {member id: partitions}."""
    return {
        member: ConsumerProtocolMemberAssignment(0, by_topic(partitions), b'')
        for member, partitions in shares.items()
    }


class OnClassOrObject:
    """Makes a function a method of the class and of objects: 2.x had state in the class, 3.0 not.

    The first argument is the object, or the class if there is none.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__

    def __get__(self, instance: Any, cls: Any) -> Callable[..., Any]:
        bound: Callable[..., Any] = self._function.__get__(cls if instance is None else instance)
        return bound
