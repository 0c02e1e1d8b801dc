"""The calls of a classic member to its assignors, for its requests and responses.

Subscriptions for JoinGroup, the assignor that the group has selected, the assignment by the leader,
and the assignment of this member. An error raised by an assignor becomes an AssignorError. Called
by ClassicMember in the event loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, AbstractSet, Any, Callable, Dict, List, Optional, Sequence, Tuple

from kafka.coordinator.assignors.adapt import (
    Assignor,
    GroupSubscription,
    decode_assignment,
    decode_subscription,
)
from kafka.coordinator.classic.requests import PROTOCOL_TYPE
from kafka.errors import KafkaError
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.cluster import ClusterMetadata

__all__ = ['AssignorError', 'MemberAssignors', 'subscriptions_of']


class AssignorError(KafkaError):
    """An assignor of the program has raised the exception in ``__cause__``."""


class MemberAssignors:
    """The assignors of one member. Arguments: assignors: the preferred one first.

    Attributes: is_cooperative: whether all are (KIP-429).
    """

    def __init__(self, assignors: Sequence[Assignor]) -> None:
        self.is_cooperative = all(each.is_cooperative for each in assignors)
        self._assignors = list(assignors)

    def __repr__(self) -> str:
        return '<MemberAssignors %s>' % ', '.join(each.name for each in self._assignors)

    def subscriptions(
        self,
        topics: AbstractSet[str],
        owned: AbstractSet[TopicPartition],
        generation: int,
        rack: Optional[str],
    ) -> List[Tuple[str, bytes]]:
        """Return (name, encoded subscription) of each assignor for JoinGroup.

        Raises AssignorError.
        """
        told = sorted(owned) if self.is_cooperative else []
        return [
            (each.name, _of(each, each.subscription, sorted(topics), told, generation, rack))
            for each in self._assignors
        ]

    def chosen(self, answer: Any) -> Optional[Assignor]:
        """Return the assignor that a response to JoinGroup names; None if it is unknown."""
        if answer.protocol_type not in (None, PROTOCOL_TYPE):
            return None
        named = [each for each in self._assignors if each.name == answer.protocol_name]
        return named[0] if named else None

    def share(
        self, assignor: Assignor, cluster: ClusterMetadata, members: Dict[str, GroupSubscription]
    ) -> Dict[str, bytes]:
        """Return the encoded assignment of each member. Raises AssignorError."""
        given: Dict[str, bytes] = _of(assignor, assignor.assign, cluster, members)
        return given

    def read(self, assignor: Assignor, data: bytes, generation: int) -> List[TopicPartition]:
        """Return the partitions that the leader has assigned to this member.

        Raises AssignorError, ProtocolError.
        """
        if not data:  # the leader's assignment does not have this member
            return []
        assigned = decode_assignment(data)
        _of(assignor, assignor.on_assignment, data, generation)
        return assigned


def subscriptions_of(answer: Any) -> Dict[str, GroupSubscription]:
    """Return the subscriptions of all members from the response to the leader's JoinGroup.

    Raises ProtocolError if a subscription cannot be decoded.
    """
    return {
        each.member_id: decode_subscription(each.metadata, each.member_id, each.group_instance_id)
        for each in answer.members
    }


def _of(assignor: Assignor, call: Callable[..., Any], *args: Any) -> Any:
    """Return the result of a call to an assignor. Raises AssignorError for any exception."""
    try:
        return call(*args)
    except Exception as error:
        raise AssignorError('the assignor %s failed: %r' % (assignor.name, error)) from error
