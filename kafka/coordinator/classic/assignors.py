"""The assignors of a member of a classic group, as its requests and responses need them.

Subscriptions for JoinGroup, the assignor that the group has chosen, the assignment by the leader,
and the assignment of this member. An error raised by an assignor becomes an AssignorError. Called
by ClassicMember in turns of the loop.
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
    """An assignor that the program brought along raised; the cause has what."""


class MemberAssignors:
    """Those of one member. Arguments: assignors: the best first.

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
        """Return what JoinGroup says for each assignor. Raises AssignorError."""
        told = sorted(owned) if self.is_cooperative else []
        return [
            (each.name, _of(each, each.subscription, sorted(topics), told, generation, rack))
            for each in self._assignors
        ]

    def chosen(self, answer: Any) -> Optional[Assignor]:
        """Return the assignor that an answer to JoinGroup names; None for one not known here."""
        if answer.protocol_type not in (None, PROTOCOL_TYPE):
            return None
        named = [each for each in self._assignors if each.name == answer.protocol_name]
        return named[0] if named else None

    def share(
        self, assignor: Assignor, cluster: ClusterMetadata, members: Dict[str, GroupSubscription]
    ) -> Dict[str, bytes]:
        """Return what each member gets. Raises AssignorError."""
        given: Dict[str, bytes] = _of(assignor, assignor.assign, cluster, members)
        return given

    def read(self, assignor: Assignor, data: bytes, generation: int) -> List[TopicPartition]:
        """Return what the leader gave this member. Raises AssignorError, ProtocolError."""
        if not data:  # the leader has forgotten this member
            return []
        assigned = decode_assignment(data)
        _of(assignor, assignor.on_assignment, data, generation)
        return assigned


def subscriptions_of(answer: Any) -> Dict[str, GroupSubscription]:
    """Return what all members said, by the answer to the leader's JoinGroup.

    Raises ProtocolError for a member whose subscription cannot be read.
    """
    return {
        each.member_id: decode_subscription(each.metadata, each.member_id, each.group_instance_id)
        for each in answer.members
    }


def _of(assignor: Assignor, call: Callable[..., Any], *args: Any) -> Any:
    """Return what an assignor returns. Raises AssignorError for whatever it raises."""
    try:
        return call(*args)
    except Exception as error:
        raise AssignorError('the assignor %s failed: %r' % (assignor.name, error)) from error
