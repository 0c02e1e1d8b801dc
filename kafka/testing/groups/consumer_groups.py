"""The KIP-848 groups of an embedded cluster: which there are, and what may be asked of them.

Owns the groups by their ids and the checks of a heartbeat that need no group. What one group does
is in consumer_group.py. Groups of both kinds share their names: groups.py.
"""

from __future__ import annotations

from typing import Callable, Dict, List, NamedTuple, Optional, Set

from kafka.protocol.group import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kafka.testing.errors import (
    COORDINATOR_NOT_AVAILABLE,
    FENCED_INSTANCE_ID,
    FENCED_MEMBER_EPOCH,
    GROUP_ID_NOT_FOUND,
    GROUP_MAX_SIZE_REACHED,
    INVALID_REGULAR_EXPRESSION,
    INVALID_REQUEST,
    UNKNOWN_MEMBER_ID,
    UNRELEASED_INSTANCE_ID,
    UNSUPPORTED_ASSIGNOR,
)
from kafka.testing.groups.consumer_group import (
    JOIN_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerGroup,
    ConsumerGroupRules,
)
from kafka.testing.groups.group_members import group_size
from kafka.testing.groups.regex import Pattern
from kafka.testing.groups.server_assignors import ASSIGNORS, TopicPartition

_TEXTS = {
    UNKNOWN_MEMBER_ID: 'Member %s is not in the group.',
    FENCED_MEMBER_EPOCH: 'Member %s has another epoch; it must give up its partitions and rejoin.',
    FENCED_INSTANCE_ID: 'The instance of member %s belongs to another member.',
    UNRELEASED_INSTANCE_ID: 'The instance of member %s is in use by another member.',
    GROUP_MAX_SIZE_REACHED: 'There is no room for member %s: the group is full.',
    COORDINATOR_NOT_AVAILABLE: 'There is no memory for member %s.',
}


class Refusal(NamedTuple):
    """Why a heartbeat is not taken."""

    error: int
    text: Optional[str]

    @property
    def response(self) -> ConsumerGroupHeartbeatResponse:
        """The answer that says so."""
        return ConsumerGroupHeartbeatResponse(
            throttle_time_ms=0,
            error_code=self.error,
            error_message=self.text,
            member_epoch=0,
            heartbeat_interval_ms=0,
        )


class ConsumerGroups:
    """The KIP-848 groups of a cluster.

    Arguments: rules: those of all of them; on_empty: is told the id of one that has no members.
    """

    def __init__(self, rules: ConsumerGroupRules, on_empty: Callable[[str], None]) -> None:
        self.rules = rules
        self._on_empty = on_empty
        self._groups: Dict[str, ConsumerGroup] = {}

    def __repr__(self) -> str:
        return '<ConsumerGroups: %d>' % len(self._groups)

    def get(self, group_id: str) -> Optional[ConsumerGroup]:
        """Return a group, None if there is none of this kind."""
        return self._groups.get(group_id)

    def all(self) -> List[ConsumerGroup]:
        """Return all."""
        return list(self._groups.values())

    def take_back(self, group_id: str) -> ConsumerGroup:
        """Return a group that was written down, without its members yet."""
        return self._create(group_id)

    def _create(self, group_id: str) -> ConsumerGroup:
        group = self._groups[group_id] = ConsumerGroup(group_id, self.rules, self._on_empty)
        self.rules.budget.change(group_size(group_id))
        return group

    def forget(self, group_id: str) -> None:
        """Forget a group, if there is one."""
        group = self._groups.pop(group_id, None)
        if group is not None:
            self.rules.budget.change(-group_size(group_id))
            group.die()

    def heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        version: int,
        client_id: str,
        client_host: str,
    ) -> ConsumerGroupHeartbeatResponse:
        """Take the heartbeat of a member, new or known, or let it leave."""
        refusal = heartbeat_refusal(request, version)
        if refusal is not None:
            return refusal.response
        group = self._groups.get(request.group_id)
        if group is None:
            if request.member_epoch != JOIN_EPOCH:
                text = 'There is no group %s.' % request.group_id
                return Refusal(GROUP_ID_NOT_FOUND, text).response
            if not self.rules.budget.has_room(group_size(request.group_id)):
                text = _TEXTS[COORDINATOR_NOT_AVAILABLE] % request.member_id
                return Refusal(COORDINATOR_NOT_AVAILABLE, text).response
            group = self._create(request.group_id)
        if request.member_epoch < JOIN_EPOCH:
            error = group.leave(request)
            if error:
                return Refusal(error, _TEXTS[error] % request.member_id).response
            return _answer(request.member_id, request.member_epoch, 0, None)
        if not self.rules.budget.has_room(_subscription_size(request)):
            error, member = COORDINATOR_NOT_AVAILABLE, None
        else:
            error, member = group.find(request, client_id, client_host)
        if error or member is None:
            if not group.assignment_epoch:
                self.forget(request.group_id)
            return Refusal(error, _TEXTS[error] % request.member_id).response
        assigned = group.heartbeat(member, request)
        interval_ms = self.rules.setting(request.group_id, 'consumer.heartbeat.interval.ms')
        return _answer(member.member_id, member.epoch, interval_ms, assigned)


def _subscription_size(request: ConsumerGroupHeartbeatRequest) -> int:
    names = request.subscribed_topic_names or []
    return sum(map(len, names)) + len(request.subscribed_topic_regex or '')


def _answer(
    member_id: str, epoch: int, interval_ms: int, assigned: Optional[Set[TopicPartition]]
) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        throttle_time_ms=0,
        error_code=0,
        member_id=member_id,
        member_epoch=epoch,
        heartbeat_interval_ms=interval_ms,
        assignment=None if assigned is None else Assignment(topic_partitions=by_topic(assigned)),
    )


def by_topic(partitions: Set[TopicPartition]) -> List[TopicPartitions]:
    """Return partitions as messages have them, in order."""
    topics: Dict[bytes, List[int]] = {}
    for topic_id, index in sorted(partitions):
        topics.setdefault(topic_id, []).append(index)
    return [TopicPartitions(topic_id=name, partitions=each) for name, each in topics.items()]


def heartbeat_refusal(request: ConsumerGroupHeartbeatRequest, version: int) -> Optional[Refusal]:
    """Return why a heartbeat cannot be meant, None if it can."""
    text = _empty_name(request, version) or _join_text(request)
    if text is not None:
        return Refusal(INVALID_REQUEST, text)
    assignor = request.server_assignor
    if assignor is not None and assignor not in ASSIGNORS:
        known = ', '.join(ASSIGNORS)
        return Refusal(UNSUPPORTED_ASSIGNOR, 'No assignor %s; there are: %s' % (assignor, known))
    pattern = request.subscribed_topic_regex
    if pattern and not _is_expression(pattern):
        return Refusal(INVALID_REGULAR_EXPRESSION, 'Not a regular expression: %s' % pattern)
    return None


def _empty_name(request: ConsumerGroupHeartbeatRequest, version: int) -> Optional[str]:
    if not request.group_id:
        return 'The group id is empty.'
    # In version 0 the broker chooses the id of who joins.
    if not request.member_id and (version > 0 or request.member_epoch != JOIN_EPOCH):
        return 'The member id is empty.'
    if request.instance_id == '':
        return 'The instance id is empty.'
    if request.rack_id == '':
        return 'The rack id is empty.'
    return None


def _join_text(request: ConsumerGroupHeartbeatRequest) -> Optional[str]:
    epoch = request.member_epoch
    if epoch == STATIC_LEAVE_EPOCH and request.instance_id is None:
        return 'Only members with an instance id leave for a while.'
    if epoch < STATIC_LEAVE_EPOCH:
        return 'There is no member epoch %d.' % epoch
    if epoch != JOIN_EPOCH:
        return None
    if request.rebalance_timeout_ms == -1:
        return 'Who joins must tell its rebalance time-out.'
    if request.topic_partitions is None or request.topic_partitions:
        return 'Who joins owns no partitions and must say so.'
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        return 'Who joins must subscribe.'
    return None


def _is_expression(pattern: str) -> bool:
    try:
        Pattern(pattern)
    except ValueError:
        return False
    return True
