"""A share group: subscriptions, assignment, and the share partitions with their start offsets.

Called by share_groups.py, which checks heartbeats first (KIP-932). A partition may be assigned to
several members. Membership is in epoch_group.py, the acquisition of records in share_partition.py.
"""

from __future__ import annotations

from typing import Callable, Dict, Iterable, Optional, Set

from kafka.protocol.share import ShareGroupHeartbeatRequest
from kafka.testing.errors import FENCED_MEMBER_EPOCH, NONE
from kafka.testing.groups.epoch_group import (
    JOIN_EPOCH,
    EpochGroup,
    EpochGroupState,
    EpochMember,
    EpochRules,
)
from kafka.testing.groups.group_members import MEMBER_BYTES
from kafka.testing.groups.server_assignors import TopicPartition, simple
from kafka.testing.groups.share_partition import NO_OFFSET, SharePartition

#: How long the share coordinator takes to initialize new share partitions.
INITIALIZE_SECONDS = 0.01


class ShareMember(EpochMember):
    """A member with its subscription and assignment."""

    def __init__(self, member_id: str, client_id: str, client_host: str) -> None:
        super().__init__(member_id, client_id, client_host)
        self.topic_names: Set[str] = set()
        self.assigned: Set[TopicPartition] = set()

    def __repr__(self) -> str:
        return '<ShareMember %s epoch=%d, %d partitions>' % (
            self.member_id,
            self.epoch,
            len(self.assigned),
        )

    @property
    def size(self) -> int:
        """The estimate of the bytes that the member takes."""
        names = 2 * len(self.member_id) + len(self.client_id)
        return MEMBER_BYTES + names + sum(map(len, self.topic_names))


class ShareGroup(EpochGroup[ShareMember, ShareGroupHeartbeatRequest, TopicPartition]):
    """One share group.

    Arguments: rules: what all groups of the type share; on_available: called with the group id and
        a partition when more of its records can be acquired.
    """

    group_type = 'share'
    assignor = 'simple'
    member_type = ShareMember

    def __init__(
        self, group_id: str, rules: EpochRules, on_available: Callable[[str, TopicPartition], None]
    ) -> None:
        super().__init__(group_id, rules)
        self.epoch = self.assignment_epoch = 1 if rules.version >= (4, 3) else 0
        #: The stored start offsets of initialized partitions, -1 if no offset is stored yet.
        self.stored: Dict[TopicPartition, int] = {}
        #: The share partitions that are being read.
        self.partitions: Dict[TopicPartition, SharePartition] = {}
        self._on_available = on_available
        self._assigned_of: Set[TopicPartition] = set()
        self._preparing: Set[TopicPartition] = set()

    def _state_of_members(self) -> EpochGroupState:
        return EpochGroupState.STABLE

    def _epoch_error(self, member: ShareMember, request: ShareGroupHeartbeatRequest) -> int:
        is_known = request.member_epoch in (JOIN_EPOCH, member.epoch, member.previous_epoch)
        return NONE if is_known else FENCED_MEMBER_EPOCH

    # ------------------------------------------------------------ heartbeat

    def heartbeat(
        self, member: ShareMember, request: ShareGroupHeartbeatRequest
    ) -> Optional[Set[TopicPartition]]:
        """Process a heartbeat; return the assignment, None if the response does not carry it."""
        self.keep_alive(member)
        size, names = member.size, member.topic_names
        if request.subscribed_topic_names is not None:
            member.topic_names = set(request.subscribed_topic_names)
        if request.rack_id is not None:
            member.rack_id = request.rack_id
        self._rules.budget.change(member.size - size)
        topics = {name for each in self.members.values() for name in each.topic_names}
        if self._count(topics) or names != member.topic_names:
            self.epoch += 1
        self._prepare()
        self._assign()
        self._set_epoch(member, self.assignment_epoch)
        before, wanted = member.assigned, self._topic_ids(member.topic_names)
        target = self.target.get(member.member_id, set())
        member.assigned = {each for each in target if each[0] in wanted}
        if request.member_epoch == JOIN_EPOCH or member.assigned != before:
            return member.assigned
        return None

    # ------------------------------------------------------------ assignment

    def _prepare(self) -> None:
        """Initialize the partitions that members subscribe to and that are not initialized yet."""
        wanted = {(topic, n) for topic, count in self._counts.values() for n in range(count)}
        missing = wanted - set(self.stored) - self._preparing
        if missing:
            there = {topic.topic_id for topic in self._rules.topics.values()}
            for gone in {topic_id for topic_id, _ in self.stored} - there:
                self.forget_topic(gone)  # the topic was deleted
            self._preparing |= missing
            self._rules.timers.later(INITIALIZE_SECONDS, lambda: self._prepared(missing))

    def _prepared(self, partitions: Set[TopicPartition]) -> None:
        self._preparing -= partitions
        if not self.is_dead:
            for each in partitions:
                self.stored.setdefault(each, NO_OFFSET)
                self._on_available(self.group_id, each)

    def _assign(self) -> None:
        """Compute a new target if epoch or partitions changed and the last one is old enough."""
        ready = {
            (topic, n)
            for topic, count in self._counts.values()
            for n in range(count)
            if (topic, n) in self.stored
        }
        if self.assignment_epoch == self.epoch and ready <= self._assigned_of:
            return
        if self._has_just_assigned():
            return
        self._assigned_at, self._assigned_of = self._rules.timers.clock.monotonic(), ready
        wanted = {name: self._topic_ids(each.topic_names) for name, each in self.members.items()}
        self.target = simple(wanted, ready, self.target)
        self.assignment_epoch = self.epoch

    # ------------------------------------------------------------ start offsets

    def stored_offset(self, partition: TopicPartition) -> int:
        """Return the stored start offset of a partition, -1 for none."""
        found = self.partitions.get(partition)
        return self.stored.get(partition, NO_OFFSET) if found is None else found.stored_offset

    def begin_at(self, partition: TopicPartition, offset: int) -> None:
        """Set the start offset of a partition; its in-flight records are forgotten."""
        self._close(partition)
        self.stored[partition] = offset

    def forget_topic(self, topic_id: bytes) -> bool:
        """Delete the offsets of a topic; return True if there were any."""
        found = [each for each in self.stored if each[0] == topic_id]
        for each in found:
            self._close(each)
            del self.stored[each]
        self._assigned_of -= set(found)
        return bool(found)

    def rest(self, partitions: Iterable[TopicPartition]) -> None:
        """Close share partitions of which no offset is stored: no member reads them now."""
        for each in partitions:
            found = self.partitions.get(each)
            if found is not None and found.stored_offset == NO_OFFSET:
                self._close(each)

    def _close(self, partition: TopicPartition) -> None:
        found = self.partitions.pop(partition, None)
        if found is not None:
            found.close()

    def die(self) -> None:
        """End the group: its members are removed and no request reaches it any more."""
        super().die()
        for partition in list(self.partitions):
            self._close(partition)

    def is_preparing(self, partition: TopicPartition) -> bool:
        """Return True if the initialization of a partition has not completed."""
        return partition in self._preparing
