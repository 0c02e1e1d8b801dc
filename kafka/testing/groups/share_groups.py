"""The share groups of an embedded cluster: which there are, and what may be asked of them.

Owns the groups by their ids, the checks of a heartbeat that need no group, and the way from a group
and a partition to the share partition that is read. What one group does is in share_group.py; that
an id means one group of any kind is known in groups.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Dict, List, NamedTuple, Optional, Set, Union

from kafka.protocol.share import (
    ShareGroupHeartbeatAssignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    ShareGroupHeartbeatTopicPartitions,
)
from kafka.testing.errors import (
    COORDINATOR_NOT_AVAILABLE,
    FENCED_MEMBER_EPOCH,
    GROUP_ID_NOT_FOUND,
    GROUP_MAX_SIZE_REACHED,
    INVALID_REQUEST,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_SERVER_ERROR,
)
from kafka.testing.groups.group_members import Budget, Outbox, group_size
from kafka.testing.groups.group_settings import group_config, reset_duration_ms
from kafka.testing.groups.server_assignors import TopicPartition
from kafka.testing.groups.share_group import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    ShareGroup,
    ShareGroupRules,
    ShareMember,
)
from kafka.testing.groups.share_partition import NO_OFFSET, SharePartition, ShareRules
from kafka.testing.logs.record_times import first_record_at

if TYPE_CHECKING:
    from kafka.testing.state import ClusterState, Partition, Topic

#: As ``group.share.max.size``.
MAX_SIZE = 200

_TEXTS = {
    UNKNOWN_MEMBER_ID: 'Member %s is not in the group.',
    FENCED_MEMBER_EPOCH: 'Member %s has another epoch; it must give up its partitions and rejoin.',
    GROUP_MAX_SIZE_REACHED: 'There is no room for member %s: the group is full.',
    COORDINATOR_NOT_AVAILABLE: 'There is no memory for member %s.',
}


class ShareRefusal(NamedTuple):
    """Why a heartbeat is not taken."""

    error: int
    text: Optional[str]

    @property
    def response(self) -> ShareGroupHeartbeatResponse:
        """The answer that says so."""
        return ShareGroupHeartbeatResponse(
            throttle_time_ms=0,
            error_code=self.error,
            error_message=self.text,
            member_epoch=0,
            heartbeat_interval_ms=0,
        )


class ShareGroups:
    """The share groups of a cluster. Arguments: state: the cluster's."""

    def __init__(self, state: ClusterState, outbox: Outbox, budget: Budget) -> None:
        self._state = state
        self._groups: Dict[str, ShareGroup] = {}
        #: Is called with the group and the partition in which records can be acquired again.
        self.on_available: Callable[[str, TopicPartition], None] = lambda group_id, partition: None
        self.rules = ShareGroupRules(
            version=state.release.version,
            timers=state.timers,
            outbox=outbox,
            budget=budget,
            topics=state.topics,
            max_size=MAX_SIZE,
            setting=self.setting,
            on_available=lambda group_id, partition: self.on_available(group_id, partition),
        )

    def __repr__(self) -> str:
        return '<ShareGroups: %d>' % len(self._groups)

    def get(self, group_id: str) -> Optional[ShareGroup]:
        """Return a group, None if there is none of this kind."""
        return self._groups.get(group_id)

    def all(self) -> List[ShareGroup]:
        """Return all."""
        return list(self._groups.values())

    def forget(self, group_id: str) -> None:
        """Forget a group, if there is one."""
        group = self._groups.pop(group_id, None)
        if group is not None:
            self.rules.budget.change(-group_size(group_id))
            group.die()

    def setting(self, group_id: str, name: str) -> int:
        """Return the value of a group's setting that is a number."""
        return int(group_config(self._state, group_id, name))

    # ------------------------------------------------------------ heartbeat

    def heartbeat(
        self, request: ShareGroupHeartbeatRequest, client_id: str, client_host: str
    ) -> ShareGroupHeartbeatResponse:
        """Take the heartbeat of a member, new or known, or let it leave."""
        text = _refused_text(request)
        if text is not None:
            return ShareRefusal(INVALID_REQUEST, text or None).response
        group = self._groups.get(request.group_id)
        if group is None and request.member_epoch != JOIN_EPOCH:
            text = 'There is no share group %s.' % request.group_id
            return ShareRefusal(GROUP_ID_NOT_FOUND, text).response
        if request.member_epoch == LEAVE_EPOCH:
            return self._leave(group, request)
        if not self.rules.budget.has_room(sum(map(len, request.subscribed_topic_names or []))):
            return _refusal(COORDINATOR_NOT_AVAILABLE, request)
        is_new = group is None
        if group is None:
            group = self.make(request.group_id)
        if group is None:
            return _refusal(COORDINATOR_NOT_AVAILABLE, request)
        error, member = group.find(request, client_id, client_host)
        if error or member is None:
            if is_new:
                self.forget(request.group_id)
            return _refusal(error, request)
        assigned = group.heartbeat(member, request)
        interval_ms = self.setting(request.group_id, 'share.heartbeat.interval.ms')
        return _answer(member.member_id, member.epoch, interval_ms, assigned)

    def make(self, group_id: str) -> Optional[ShareGroup]:
        """Make a group; return None when there is no room for it."""
        if not self.rules.budget.has_room(group_size(group_id)):
            return None
        group = self._groups[group_id] = ShareGroup(group_id, self.rules)
        self.rules.budget.change(group_size(group_id))
        return group

    def _leave(
        self, group: Optional[ShareGroup], request: ShareGroupHeartbeatRequest
    ) -> ShareGroupHeartbeatResponse:
        member: Optional[ShareMember] = None
        if group is not None:
            member = group.members.get(request.member_id)
        if group is None or member is None:
            return _refusal(UNKNOWN_MEMBER_ID, request)
        group.remove(member)
        return _answer(request.member_id, LEAVE_EPOCH, 0, None)

    # ------------------------------------------------------------ share partitions

    def partition(
        self, group_id: str, topic: Topic, partition: Partition
    ) -> Union[SharePartition, int, None]:
        """Return what a group reads a partition by.

        Returns: the code of an error if there is none, None if there will be in a moment.
        """
        group, key = self._groups.get(group_id), (topic.topic_id, partition.index)
        if group is not None and group.is_preparing(key):
            return None
        if group is None or key not in group.stored:
            return UNKNOWN_SERVER_ERROR
        found = group.partitions.get(key)
        if found is None:
            stored = group.stored[key]
            found = group.partitions[key] = SharePartition(
                self.rules.timers,
                lambda: self._share_rules(group_id),
                lambda: self.on_available(group_id, key),
                self._first_offset(group_id, partition) if stored == NO_OFFSET else stored,
                stored,
            )
        found.led_in(partition.leader_epoch)
        found.move_start(partition.log.start_offset)
        return found

    def known(self, group_id: str, partition: TopicPartition) -> Optional[SharePartition]:
        """Return a share partition that is being read, None for any other."""
        group = self._groups.get(group_id)
        return None if group is None else group.partitions.get(partition)

    def _share_rules(self, group_id: str) -> ShareRules:
        version = self._state.release.version
        rules = ShareRules(
            max_deliveries=5,
            max_locks=2000,
            lock_seconds=self.setting(group_id, 'share.record.lock.duration.ms') / 1000,
            can_renew=version >= (4, 2),
            throttles=version >= (4, 2),
        )
        if version < (4, 3):
            return rules
        renew = group_config(self._state, group_id, 'share.renew.acknowledge.enable')
        return rules._replace(
            max_deliveries=self.setting(group_id, 'share.delivery.count.limit'),
            max_locks=self.setting(group_id, 'share.partition.max.record.locks'),
            can_renew=renew.lower() == 'true',
        )

    def _first_offset(self, group_id: str, partition: Partition) -> int:
        """Return where a group begins that never read a partition."""
        reset = group_config(self._state, group_id, 'share.auto.offset.reset').strip()
        if reset == 'earliest':
            return partition.log.start_offset
        back_ms = reset_duration_ms(reset)
        if back_ms is None:
            return partition.high_watermark
        since = self._state.timers.clock.wall_ms() - back_ms
        found = first_record_at(partition.log, since, partition.high_watermark)
        return partition.high_watermark if found is None else found[0]


def _refused_text(request: ShareGroupHeartbeatRequest) -> Optional[str]:
    """Return what is wrong with a heartbeat, None if nothing is."""
    if not request.member_id:
        return ''  # brokers refuse this one without a word
    if not request.group_id:
        return 'The group id is empty.'
    if request.rack_id == '':
        return 'The rack id is empty.'
    if request.member_epoch < LEAVE_EPOCH:
        return 'There is no member epoch %d.' % request.member_epoch
    if request.member_epoch == JOIN_EPOCH and not request.subscribed_topic_names:
        return 'Who joins must subscribe.'
    return None


def _refusal(error: int, request: ShareGroupHeartbeatRequest) -> ShareGroupHeartbeatResponse:
    return ShareRefusal(error, _TEXTS[error] % request.member_id).response


def _answer(
    member_id: str, epoch: int, interval_ms: int, assigned: Optional[Set[TopicPartition]]
) -> ShareGroupHeartbeatResponse:
    assignment = None
    if assigned is not None:
        topics: Dict[bytes, List[int]] = {}
        for topic_id, index in sorted(assigned):
            topics.setdefault(topic_id, []).append(index)
        assignment = ShareGroupHeartbeatAssignment(
            topic_partitions=[
                ShareGroupHeartbeatTopicPartitions(topic_id=topic_id, partitions=each)
                for topic_id, each in topics.items()
            ]
        )
    return ShareGroupHeartbeatResponse(
        throttle_time_ms=0,
        error_code=0,
        member_id=member_id,
        member_epoch=epoch,
        heartbeat_interval_ms=interval_ms,
        assignment=assignment,
    )
