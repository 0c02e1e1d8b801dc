"""AbstractPartitionAssignor: the interface of the assignors of a classic group.

The base class of the assignors of this package and of programs. adapt.py calls assignors written
for any release.
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

    EAGER = 0  # it revokes all of them
    COOPERATIVE = 1  # it keeps those that are assigned to it again


class AbstractPartitionAssignor(abc.ABC):
    """Base class of assignors, which assign partitions of topics to the members of a group.

    Methods may be class methods or instance methods. Up to 2.x on_assignment() has one argument.
    """

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The protocol name of this assignor in the group."""

    @abc.abstractmethod
    def assign(self, cluster: ClusterMetadata, members: Any) -> Dict[str, Any]:
        """Return the assignments: {member id: ConsumerProtocolMemberAssignment}.

        Arguments: cluster: its partitions_for_topic(topic) returns the partitions; members:
            {member id: ConsumerProtocolMemberMetadata}. A member id is a str with the attributes
            that 3.0 requires: member_id, group_instance_id and metadata.
        """

    @abc.abstractmethod
    def metadata(self, topics: Iterable[str]) -> Any:
        """Return the subscription of this member: a ConsumerProtocolMemberMetadata."""

    @abc.abstractmethod
    def on_assignment(self, assignment: Any, generation: int) -> Any:
        """Handle the ConsumerProtocolMemberAssignment of this member."""

    def supported_protocols(self) -> Sequence[RebalanceProtocol]:
        """Return the rebalance protocols of the assignor, the preferred one first (3.0)."""
        return [RebalanceProtocol.EAGER]


class ByClass(AbstractPartitionAssignor):
    """A stateless assignor, which may be used as a class or as an object."""

    version: ClassVar[int] = 0

    @classmethod
    def metadata(cls, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        """Return the subscription of a member: its topics."""
        return ConsumerProtocolMemberMetadata(cls.version, list(topics), b'')

    @classmethod
    def on_assignment(cls, assignment: Any, generation: int = -1) -> None:
        """Do nothing."""


def partitions_of(
    cluster: ClusterMetadata, members: Iterable[GroupSubscription]
) -> Dict[str, List[int]]:
    """Return {topic: [partition]}, ascending, of all subscribed topics in the metadata.

    Other topics are omitted, with a warning.
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
    """Return {member id: ConsumerProtocolMemberAssignment} from {member id: partitions}."""
    return {
        member: ConsumerProtocolMemberAssignment(0, by_topic(partitions), b'')
        for member, partitions in shares.items()
    }


class OnClassOrObject:
    """Makes a function a method of the class and of its objects.

    2.x kept the state of an assignor in the class, 3.0 in an object. The first argument of the
    function is the object, or the class if it is called on the class.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__

    def __get__(self, instance: Any, cls: Any) -> Callable[..., Any]:
        bound: Callable[..., Any] = self._function.__get__(cls if instance is None else instance)
        return bound
