"""The share groups of an embedded cluster, the checks of their heartbeats, and share partitions.

Called by registry.py and handlers/share_fetch.py. One group is in share_group.py, the base of this
class in epoch_groups.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Optional, Set, Union

from kafka.protocol.share import (
    ShareGroupHeartbeatAssignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    ShareGroupHeartbeatTopicPartitions,
)
from kafka.testing.errors import (
    COORDINATOR_NOT_AVAILABLE,
    GROUP_ID_NOT_FOUND,
    INVALID_REQUEST,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_SERVER_ERROR,
)
from kafka.testing.groups.epoch_group import JOIN_EPOCH, LEAVE_EPOCH, EpochRules
from kafka.testing.groups.epoch_groups import MEMBER_TEXTS, EpochGroups, numbers_by_name
from kafka.testing.groups.group_settings import group_config, reset_duration_ms
from kafka.testing.groups.server_assignors import TopicPartition
from kafka.testing.groups.share_group import ShareGroup, ShareMember
from kafka.testing.groups.share_partition import NO_OFFSET, SharePartition, ShareRules
from kafka.testing.logs.record_times import first_record_at

if TYPE_CHECKING:
    from kafka.testing.state import ClusterState, Partition, Topic

#: The default of ``group.share.max.size``.
MAX_SIZE = 200


class ShareGroups(EpochGroups[ShareGroup]):
    """The share groups of a cluster.

    Arguments: state: the state of the cluster; rules: what groups of all types share.
    """

    group_type = ShareGroup.group_type

    def __init__(self, state: ClusterState, rules: EpochRules) -> None:
        super().__init__(rules._replace(max_size=MAX_SIZE))
        self._state = state
        #: Called with group id and partition when more records can be acquired.
        self.on_available: Callable[[str, TopicPartition], None] = lambda group_id, partition: None

    def _new_group(self, group_id: str) -> ShareGroup:
        return ShareGroup(group_id, self.rules, lambda *what: self.on_available(*what))

    # ------------------------------------------------------------ heartbeat

    def heartbeat(
        self, request: ShareGroupHeartbeatRequest, client_id: str, client_host: str
    ) -> ShareGroupHeartbeatResponse:
        """Process a heartbeat: of a new member, of a known one, or of one that leaves."""
        text = _refused_text(request)
        if text is not None:
            return share_refusal(INVALID_REQUEST, text or None)
        group = self._groups.get(request.group_id)
        if group is None and request.member_epoch != JOIN_EPOCH:
            text = 'There is no share group %s.' % request.group_id
            return share_refusal(GROUP_ID_NOT_FOUND, text)
        if request.member_epoch == LEAVE_EPOCH:
            return self._leave(group, request)
        if not self.rules.budget.has_room(sum(map(len, request.subscribed_topic_names or []))):
            return _refused(COORDINATOR_NOT_AVAILABLE, request)
        is_new = group is None
        if group is None:
            group = self.make(request.group_id)
        if group is None:
            return _refused(COORDINATOR_NOT_AVAILABLE, request)
        error, member = group.find(request, client_id, client_host)
        if error or member is None:
            if is_new:
                self.forget(request.group_id)
            return _refused(error, request)
        assigned = group.heartbeat(member, request)
        return _answer(member.member_id, member.epoch, group.heartbeat_interval_ms, assigned)

    def _leave(
        self, group: Optional[ShareGroup], request: ShareGroupHeartbeatRequest
    ) -> ShareGroupHeartbeatResponse:
        member: Optional[ShareMember] = None
        if group is not None:
            member = group.members.get(request.member_id)
        if group is None or member is None:
            return _refused(UNKNOWN_MEMBER_ID, request)
        group.remove(member)
        return _answer(request.member_id, LEAVE_EPOCH, 0, None)

    # ------------------------------------------------------------ share partitions

    def partition(
        self, group_id: str, topic: Topic, partition: Partition
    ) -> Union[SharePartition, int, None]:
        """Return the share partition of a group, created if its start offset is known.

        Returns: an error code if it does not exist, None while it is being initialized.
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
        """Return a share partition that is being read, None if it is not."""
        group = self._groups.get(group_id)
        return None if group is None else group.partitions.get(partition)

    def _share_rules(self, group_id: str) -> ShareRules:
        version = self._state.release.version
        rules = ShareRules(
            max_deliveries=5,
            max_locks=2000,
            lock_seconds=self.rules.setting(group_id, 'share.record.lock.duration.ms') / 1000,
            can_renew=version >= (4, 2),
            throttles=version >= (4, 2),
        )
        if version < (4, 3):
            return rules
        renew = group_config(self._state, group_id, 'share.renew.acknowledge.enable')
        return rules._replace(
            max_deliveries=self.rules.setting(group_id, 'share.delivery.count.limit'),
            max_locks=self.rules.setting(group_id, 'share.partition.max.record.locks'),
            can_renew=renew.lower() == 'true',
        )

    def _first_offset(self, group_id: str, partition: Partition) -> int:
        """Return the start offset of a group without a stored one (``share.auto.offset.reset``)."""
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
    """Return why a heartbeat is invalid, None if it is valid."""
    if not request.member_id:
        return ''  # brokers refuse this one without a message
    if not request.group_id:
        return 'The group id is empty.'
    if request.rack_id == '':
        return 'The rack id is empty.'
    if request.member_epoch < LEAVE_EPOCH:
        return 'There is no member epoch %d.' % request.member_epoch
    if request.member_epoch == JOIN_EPOCH and not request.subscribed_topic_names:
        return 'A member that joins must subscribe.'
    return None


def share_refusal(error: int, text: Optional[str]) -> ShareGroupHeartbeatResponse:
    """Return the response to a heartbeat that is refused."""
    return ShareGroupHeartbeatResponse(
        throttle_time_ms=0,
        error_code=error,
        error_message=text,
        member_epoch=0,
        heartbeat_interval_ms=0,
    )


def _refused(error: int, request: ShareGroupHeartbeatRequest) -> ShareGroupHeartbeatResponse:
    return share_refusal(error, MEMBER_TEXTS[error] % request.member_id)


def _answer(
    member_id: str, epoch: int, interval_ms: int, assigned: Optional[Set[TopicPartition]]
) -> ShareGroupHeartbeatResponse:
    assignment = None
    if assigned is not None:
        assignment = ShareGroupHeartbeatAssignment(
            topic_partitions=[
                ShareGroupHeartbeatTopicPartitions(topic_id=topic_id, partitions=indexes)
                for topic_id, indexes in numbers_by_name(assigned).items()
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
