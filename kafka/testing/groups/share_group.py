"""A share group: members with epochs, who reads which partitions, and where each partition stands.

Owns one group (KIP-932): membership, the spreading of partitions, of which several members may read
one, and its share partitions. What may be asked at all is checked by share_groups.py; which records
a member gets is share_partition.py's business.
"""

from __future__ import annotations

import enum
from typing import (
    TYPE_CHECKING,
    Callable,
    Dict,
    Iterable,
    Mapping,
    NamedTuple,
    Optional,
    Set,
    Tuple,
)

from kafka.protocol.share import ShareGroupHeartbeatRequest
from kafka.testing.errors import (
    COORDINATOR_NOT_AVAILABLE,
    FENCED_MEMBER_EPOCH,
    GROUP_MAX_SIZE_REACHED,
    NONE,
    UNKNOWN_MEMBER_ID,
)
from kafka.testing.groups.group_members import MEMBER_BYTES, Budget, Deadline, Outbox
from kafka.testing.groups.server_assignors import Assignments, TopicPartition, simple
from kafka.testing.groups.share_partition import NO_OFFSET, SharePartition
from kafka.testing.timers import Timers

if TYPE_CHECKING:
    from kafka.testing.state import Topic

JOIN_EPOCH = 0
LEAVE_EPOCH = -1

#: So long the share coordinator takes to prepare partitions that nobody read before.
INITIALIZE_SECONDS = 0.01


class ShareGroupState(enum.Enum):
    """Where a group is; values are the names that ShareGroupDescribe gives."""

    EMPTY = 'Empty'
    STABLE = 'Stable'
    DEAD = 'Dead'


class ShareGroupRules(NamedTuple):
    """What all share groups of a cluster have in common; ``topics`` are those of the cluster.

    ``setting`` returns the value of a group's setting in milliseconds, by group and name;
    ``on_available`` is told of what can be read that could not.
    """

    version: Tuple[int, ...]
    timers: Timers
    outbox: Outbox
    budget: Budget
    topics: Mapping[str, Topic]
    max_size: int
    setting: Callable[[str, str], int]
    on_available: Callable[[str, TopicPartition], None]


class ShareMember:
    """A member: what it wants, and what it has."""

    def __init__(self, member_id: str, client_id: str, client_host: str) -> None:
        self.member_id = member_id
        self.client_id = client_id
        self.client_host = client_host
        self.rack_id: Optional[str] = None
        self.topic_names: Set[str] = set()
        self.epoch = 0
        self.previous_epoch = 0
        self.assigned: Set[TopicPartition] = set()
        self.session: Optional[Deadline] = None

    def __repr__(self) -> str:
        return '<ShareMember %s epoch=%d, %d partitions>' % (
            self.member_id,
            self.epoch,
            len(self.assigned),
        )

    @property
    def size(self) -> int:
        """The bytes that it stands for."""
        names = 2 * len(self.member_id) + len(self.client_id)
        return MEMBER_BYTES + names + sum(map(len, self.topic_names))


class ShareGroup:
    """One group. Arguments: rules: those of the cluster."""

    group_type = 'share'
    protocol_type = 'share'
    assignor = 'simple'

    def __init__(self, group_id: str, rules: ShareGroupRules) -> None:
        self.group_id = group_id
        self.epoch = self.assignment_epoch = 1 if rules.version >= (4, 3) else 0
        self.members: Dict[str, ShareMember] = {}
        self.is_dead = False
        #: Stored starts of the partitions that are prepared, -1 where nothing is stored yet.
        self.stored: Dict[TopicPartition, int] = {}
        #: Those that are being read.
        self.partitions: Dict[TopicPartition, SharePartition] = {}
        self._rules = rules
        self._target: Assignments = {}
        self._counts: Dict[str, Tuple[bytes, int]] = {}  # subscribed topics as last seen
        self._assigned_at: Optional[float] = None
        self._assigned_of: Set[TopicPartition] = set()
        self._preparing: Set[TopicPartition] = set()

    def __repr__(self) -> str:
        return '<ShareGroup %s %s epoch=%d, %d members>' % (
            self.group_id,
            self.state.value,
            self.epoch,
            len(self.members),
        )

    @property
    def state(self) -> ShareGroupState:
        """Where it is."""
        if self.is_dead:
            return ShareGroupState.DEAD
        return ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY

    # ------------------------------------------------------------ members

    def find(
        self, request: ShareGroupHeartbeatRequest, client_id: str, client_host: str
    ) -> Tuple[int, Optional[ShareMember]]:
        """Return the member that sends a heartbeat, made if it joins, or an error."""
        member, epoch = self.members.get(request.member_id), request.member_epoch
        if member is not None:
            is_known = epoch in (JOIN_EPOCH, member.epoch, member.previous_epoch)
            return (NONE, member) if is_known else (FENCED_MEMBER_EPOCH, None)
        if epoch != JOIN_EPOCH:
            return UNKNOWN_MEMBER_ID, None
        rules = self._rules
        if len(self.members) >= rules.max_size:
            return GROUP_MAX_SIZE_REACHED, None
        if not rules.budget.has_room(2 * MEMBER_BYTES + len(request.member_id)):
            return COORDINATOR_NOT_AVAILABLE, None
        member = ShareMember(request.member_id, client_id, client_host)
        self.members[member.member_id] = member
        rules.budget.change(member.size)
        gone = member
        member.session = Deadline(rules.timers, rules.outbox, lambda: self.remove(gone))
        return NONE, member

    def remove(self, member: ShareMember) -> None:
        """Forget a member; others read what it read."""
        self._forget(member)
        self._target.pop(member.member_id, None)
        self.epoch += 1
        if not self.members:
            if self._rules.version >= (4, 4):
                self.assignment_epoch = self.epoch
            self._counts.clear()

    def _forget(self, member: ShareMember) -> None:
        if self.members.pop(member.member_id, None) is not None:
            self._rules.budget.change(-member.size)
        if member.session is not None:
            member.session.cancel()

    # ------------------------------------------------------------ heartbeat

    def heartbeat(
        self, member: ShareMember, request: ShareGroupHeartbeatRequest
    ) -> Optional[Set[TopicPartition]]:
        """Take what a member says; return its assignment, None if there is nothing to tell."""
        if member.session is not None:
            member.session.set(self._setting('share.session.timeout.ms') / 1000)
        size, names = member.size, member.topic_names
        if request.subscribed_topic_names is not None:
            member.topic_names = set(request.subscribed_topic_names)
        if request.rack_id is not None:
            member.rack_id = request.rack_id
        self._rules.budget.change(member.size - size)
        if self._count() or names != member.topic_names:
            self.epoch += 1
        self._prepare()
        self._assign()
        if member.epoch != self.assignment_epoch:
            member.previous_epoch, member.epoch = member.epoch, self.assignment_epoch
        before, wanted = member.assigned, self._topic_ids(member)
        target = self._target.get(member.member_id, set())
        member.assigned = {each for each in target if each[0] in wanted}
        if request.member_epoch == JOIN_EPOCH or member.assigned != before:
            return member.assigned
        return None

    def _setting(self, name: str) -> int:
        return self._rules.setting(self.group_id, name)

    def _count(self) -> bool:
        """Count the partitions of subscribed topics; return whether they are others than before."""
        counts = {}
        for name in {name for each in self.members.values() for name in each.topic_names}:
            topic = self._rules.topics.get(name)
            if topic is not None:
                counts[name] = topic.topic_id, len(topic.partitions)
        before, self._counts = self._counts, counts
        return counts != before

    def _topic_ids(self, member: ShareMember) -> Set[bytes]:
        return {self._counts[name][0] for name in member.topic_names if name in self._counts}

    # ------------------------------------------------------------ assignment

    def _prepare(self) -> None:
        """Have the partitions prepared that members want and nobody wanted before."""
        wanted = {(topic, n) for topic, count in self._counts.values() for n in range(count)}
        missing = wanted - set(self.stored) - self._preparing
        if missing:
            there = {topic.topic_id for topic in self._rules.topics.values()}
            for gone in {topic_id for topic_id, _ in self.stored} - there:
                self.forget_topic(gone)  # it was deleted
            self._preparing |= missing
            self._rules.timers.later(INITIALIZE_SECONDS, lambda: self._prepared(missing))

    def _prepared(self, partitions: Set[TopicPartition]) -> None:
        self._preparing -= partitions
        if not self.is_dead:
            for each in partitions:
                self.stored.setdefault(each, NO_OFFSET)
                self._rules.on_available(self.group_id, each)

    def _assign(self) -> None:
        """Compute a new target, if there is reason and the last one is old enough."""
        ready = {
            (topic, n)
            for topic, count in self._counts.values()
            for n in range(count)
            if (topic, n) in self.stored
        }
        if self.assignment_epoch == self.epoch and ready <= self._assigned_of:
            return
        now = self._rules.timers.clock.monotonic()
        if self._assigned_at is not None and self._rules.version >= (4, 3):
            if now - self._assigned_at < self._setting('share.assignment.interval.ms') / 1000:
                return
        self._assigned_at, self._assigned_of = now, ready
        wanted = {name: self._topic_ids(each) for name, each in self.members.items()}
        self._target = simple(wanted, ready, self._target)
        self.assignment_epoch = self.epoch

    # ------------------------------------------------------------ where it stands

    def stored_offset(self, partition: TopicPartition) -> int:
        """Return the stored start of a partition, -1 for none."""
        found = self.partitions.get(partition)
        return self.stored.get(partition, NO_OFFSET) if found is None else found.stored_offset

    def begin_at(self, partition: TopicPartition, offset: int) -> None:
        """Let the group begin at an offset, whatever it has read."""
        self._close(partition)
        self.stored[partition] = offset

    def forget_topic(self, topic_id: bytes) -> bool:
        """Forget where the group stands in a topic; return whether that was known."""
        found = [each for each in self.stored if each[0] == topic_id]
        for each in found:
            self._close(each)
            del self.stored[each]
        self._assigned_of -= set(found)
        return bool(found)

    def rest(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget where partitions begin of which nothing was stored: nobody reads them now."""
        for each in partitions:
            found = self.partitions.get(each)
            if found is not None and found.stored_offset == NO_OFFSET:
                self._close(each)

    def _close(self, partition: TopicPartition) -> None:
        found = self.partitions.pop(partition, None)
        if found is not None:
            found.close()

    def die(self) -> None:
        """End the group; nobody finds it any more."""
        for member in list(self.members.values()):
            self._forget(member)
        for partition in list(self.partitions):
            self._close(partition)
        self.is_dead = True

    def is_preparing(self, partition: TopicPartition) -> bool:
        """Tell whether a partition can be read in a moment."""
        return partition in self._preparing
