"""The KIP-848 consumer groups of an embedded cluster, and the checks of their heartbeats.

Called by registry.py. One group is in consumer_group.py, the base of this class in epoch_groups.py.
"""

from __future__ import annotations

from typing import Callable, Optional, Set

from kafka.protocol.group import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kafka.testing.errors import (
    COORDINATOR_NOT_AVAILABLE,
    GROUP_ID_NOT_FOUND,
    INVALID_REGULAR_EXPRESSION,
    INVALID_REQUEST,
    UNSUPPORTED_ASSIGNOR,
)
from kafka.testing.groups.consumer_group import ConsumerGroup
from kafka.testing.groups.epoch_group import JOIN_EPOCH, EpochRules
from kafka.testing.groups.epoch_groups import MEMBER_TEXTS, EpochGroups, epoch_text, numbers_by_name
from kafka.testing.groups.regex import Pattern
from kafka.testing.groups.server_assignors import ASSIGNORS, TopicPartition


class ConsumerGroups(EpochGroups[ConsumerGroup]):
    """The KIP-848 groups of a cluster.

    Arguments: rules: what all of them share; on_empty: called with the id of a group whose last
        member has left.
    """

    group_type = ConsumerGroup.group_type

    def __init__(self, rules: EpochRules, on_empty: Callable[[str], None]) -> None:
        super().__init__(rules)
        self._on_empty = on_empty

    def _new_group(self, group_id: str) -> ConsumerGroup:
        return ConsumerGroup(group_id, self.rules, self._on_empty)

    def take_back(self, group_id: str) -> ConsumerGroup:
        """Create a group that was read from disk; the caller adds its members."""
        return self._create(group_id)

    def heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        version: int,
        client_id: str,
        client_host: str,
        may_describe: Callable[[str], bool],
    ) -> ConsumerGroupHeartbeatResponse:
        """Process a heartbeat: of a new member, of a known one, or of one that leaves."""
        refusal = _refusal_without_group(request, version)
        if refusal is not None:
            return refusal
        group = self._groups.get(request.group_id)
        if group is None:
            if request.member_epoch != JOIN_EPOCH:
                text = 'There is no group %s.' % request.group_id
                return consumer_refusal(GROUP_ID_NOT_FOUND, text)
            group = self.make(request.group_id)
        if group is None:
            return _refused(COORDINATOR_NOT_AVAILABLE, request)
        if request.member_epoch < JOIN_EPOCH:
            error = group.leave(request)
            if error:
                return _refused(error, request)
            return _answer(request.member_id, request.member_epoch, 0, None)
        if not self.rules.budget.has_room(_subscription_size(request)):
            error, member = COORDINATOR_NOT_AVAILABLE, None
        else:
            error, member = group.find(request, client_id, client_host)
        if error or member is None:
            if not group.assignment_epoch:
                self.forget(request.group_id)
            return _refused(error, request)
        assigned = group.heartbeat(member, request, may_describe)
        return _answer(member.member_id, member.epoch, group.heartbeat_interval_ms, assigned)


def consumer_refusal(error: int, text: Optional[str]) -> ConsumerGroupHeartbeatResponse:
    """Return the response to a heartbeat that is refused."""
    return ConsumerGroupHeartbeatResponse(
        throttle_time_ms=0,
        error_code=error,
        error_message=text,
        member_epoch=0,
        heartbeat_interval_ms=0,
    )


def _refused(error: int, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
    return consumer_refusal(error, MEMBER_TEXTS[error] % request.member_id)


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
        assignment=None if assigned is None else _assignment(assigned),
    )


def _assignment(partitions: Set[TopicPartition]) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=indexes)
            for topic_id, indexes in numbers_by_name(partitions).items()
        ]
    )


def _refusal_without_group(
    request: ConsumerGroupHeartbeatRequest, version: int
) -> Optional[ConsumerGroupHeartbeatResponse]:
    """Return the response to an invalid heartbeat, None if it is valid."""
    wrong_epoch = epoch_text(request.member_epoch, request.instance_id)
    text = _empty_name(request, version) or wrong_epoch or _join_text(request)
    if text is not None:
        return consumer_refusal(INVALID_REQUEST, text)
    assignor = request.server_assignor
    if assignor is not None and assignor not in ASSIGNORS:
        text = 'No assignor %s; there are: %s' % (assignor, ', '.join(ASSIGNORS))
        return consumer_refusal(UNSUPPORTED_ASSIGNOR, text)
    pattern = request.subscribed_topic_regex
    try:
        Pattern(pattern or '')
    except ValueError as error:
        return consumer_refusal(INVALID_REGULAR_EXPRESSION, str(error))
    return None


def _empty_name(request: ConsumerGroupHeartbeatRequest, version: int) -> Optional[str]:
    if not request.group_id:
        return 'The group id is empty.'
    # In version 0 the broker assigns the id of a member that joins.
    if not request.member_id and (version > 0 or request.member_epoch != JOIN_EPOCH):
        return 'The member id is empty.'
    if request.instance_id == '':
        return 'The instance id is empty.'
    if request.rack_id == '':
        return 'The rack id is empty.'
    return None


def _join_text(request: ConsumerGroupHeartbeatRequest) -> Optional[str]:
    if request.member_epoch != JOIN_EPOCH:
        return None
    if request.rebalance_timeout_ms == -1:
        return 'A member that joins must give its rebalance time-out.'
    if request.topic_partitions is None or request.topic_partitions:
        return 'A member that joins owns no partitions: expected an empty list of them.'
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        return 'A member that joins must subscribe.'
    return None
