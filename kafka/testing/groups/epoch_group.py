"""A group whose members have epochs: what consumer, share and streams groups have in common.

Membership, target assignments and when a new one may be computed (KIP-848, KIP-932, KIP-1071). The
types are in consumer_group.py, share_group.py and streams_group.py; the first and the last have
handover_group.py as a further base.
"""

from __future__ import annotations

import enum
from typing import (
    TYPE_CHECKING,
    Callable,
    Dict,
    Generic,
    Hashable,
    Iterable,
    Mapping,
    NamedTuple,
    Optional,
    Set,
    Tuple,
    Type,
    TypeVar,
    Union,
)

from kafka.protocol.group import ConsumerGroupHeartbeatRequest
from kafka.protocol.share import ShareGroupHeartbeatRequest
from kafka.protocol.streams import StreamsGroupHeartbeatRequest
from kafka.testing.errors import (
    COORDINATOR_NOT_AVAILABLE,
    GROUP_MAX_SIZE_REACHED,
    NONE,
    UNKNOWN_MEMBER_ID,
)
from kafka.testing.groups.group_members import MEMBER_BYTES, Budget, Deadline, Outbox
from kafka.testing.timers import Timers

if TYPE_CHECKING:
    from kafka.testing.state import Topic

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2


class EpochGroupState(enum.Enum):
    """The state of a group; values are the names in responses that describe groups."""

    EMPTY = 'Empty'
    NOT_READY = 'NotReady'  # streams groups only
    ASSIGNING = 'Assigning'  # this one and the next: not in share groups
    RECONCILING = 'Reconciling'
    STABLE = 'Stable'
    DEAD = 'Dead'


class EpochRules(NamedTuple):
    """What all groups of a type share; ``topics`` are those of the cluster, by name.

    ``setting`` returns the value of a numeric group config, by group id and name.
    """

    version: Tuple[int, ...]
    timers: Timers
    outbox: Outbox
    budget: Budget
    topics: Mapping[str, Topic]
    max_size: int
    setting: Callable[[str, str], int]


class EpochMember:
    """A member with its epoch."""

    def __init__(self, member_id: str, client_id: str, client_host: str) -> None:
        self.member_id = member_id
        self.client_id = client_id
        self.client_host = client_host
        self.rack_id: Optional[str] = None
        self.epoch = 0
        self.previous_epoch = 0
        self.session: Optional[Deadline] = None

    @property
    def size(self) -> int:
        """The estimate of the bytes that the member takes."""
        raise NotImplementedError


M = TypeVar('M', bound=EpochMember)
#: The types of the heartbeat requests.
R = TypeVar(
    'R',
    bound=Union[
        ConsumerGroupHeartbeatRequest, ShareGroupHeartbeatRequest, StreamsGroupHeartbeatRequest
    ],
)
#: What is assigned: partitions or tasks.
Unit = TypeVar('Unit', bound=Hashable)


class EpochGroup(Generic[M, R, Unit]):
    """One group. Arguments: rules: what all groups of the type share."""

    #: Also the prefix of its group configs.
    group_type = ''
    member_type: Type[M]

    def __init__(self, group_id: str, rules: EpochRules) -> None:
        self.group_id = group_id
        self.epoch = 0
        self.assignment_epoch = 0
        self.members: Dict[str, M] = {}
        #: The target assignment by member id.
        self.target: Dict[str, Set[Unit]] = {}
        self.is_dead = False
        self._rules = rules
        #: The topics that members subscribe to: their ids and partition counts when last counted.
        self._counts: Dict[str, Tuple[bytes, int]] = {}
        self._assigned_at: Optional[float] = None

    def __repr__(self) -> str:
        return '<%s %s %s epoch=%d, %d members>' % (
            type(self).__name__,
            self.group_id,
            self.state.value,
            self.epoch,
            len(self.members),
        )

    @property
    def protocol_type(self) -> str:
        """The protocol type in lists of groups."""
        return self.group_type

    @property
    def assignor(self) -> str:
        """The name of the assignor that computes the target."""
        raise NotImplementedError

    @property
    def state(self) -> EpochGroupState:
        """The state of the group."""
        if self.is_dead:
            return EpochGroupState.DEAD
        return self._state_of_members() if self.members else EpochGroupState.EMPTY

    def _state_of_members(self) -> EpochGroupState:
        raise NotImplementedError

    def _setting(self, name: str) -> int:
        """Return the value of a group config; the prefix is the group type."""
        return self._rules.setting(self.group_id, '%s.%s' % (self.group_type, name))

    @property
    def heartbeat_interval_ms(self) -> int:
        """The interval of heartbeats, sent to members."""
        return self._setting('heartbeat.interval.ms')

    # ------------------------------------------------------------ members

    def find(self, request: R, client_id: str, client_host: str) -> Tuple[int, Optional[M]]:
        """Return an error code, 0 for none, and the member of a heartbeat, created if it joins."""
        known = self.members.get(request.member_id)
        if known is not None:
            return self._epoch_error(known, request), known
        if request.member_epoch != JOIN_EPOCH:
            return UNKNOWN_MEMBER_ID, None
        if len(self.members) >= self._rules.max_size:
            return GROUP_MAX_SIZE_REACHED, None
        if not self._rules.budget.has_room(2 * MEMBER_BYTES + len(request.member_id)):
            return COORDINATOR_NOT_AVAILABLE, None
        return NONE, self._enter(self._new_member(request, client_id, client_host))

    def _new_member(self, request: R, client_id: str, client_host: str) -> M:
        return self.member_type(request.member_id, client_id, client_host)

    def _epoch_error(self, member: M, request: R) -> int:
        """Return the error code for the epoch in a member's heartbeat."""
        raise NotImplementedError

    def _enter(self, member: M) -> M:
        self.members[member.member_id] = member
        self._rules.budget.change(member.size)
        member.session = self._deadline(member)
        return member

    def _deadline(self, member: M) -> Deadline:
        """Return a deadline after which the member is removed."""
        rules = self._rules
        return Deadline(rules.timers, rules.outbox, lambda: self.remove(member))

    def keep_alive(self, member: M) -> None:
        """Restart the session time-out of a member."""
        if member.session is not None:
            member.session.set(self._setting('session.timeout.ms') / 1000)

    def remove(self, member: M) -> None:
        """Remove a member: the others get its assignment."""
        self._forget(member)
        self.epoch += 1
        if not self.members:
            if self._rules.version >= (4, 4):
                self.assignment_epoch = self.epoch
                self._assigned_at = None  # the next member that joins does not wait
            self._ended()

    def _ended(self) -> None:
        """Clear what only members need: the last one has left."""
        self._counts.clear()

    def _forget(self, member: M) -> None:
        if self.members.get(member.member_id) is not member:
            return
        del self.members[member.member_id]
        self.target.pop(member.member_id, None)
        self._rules.budget.change(-member.size)
        if member.session is not None:
            member.session.cancel()

    def die(self) -> None:
        """End the group: its members are removed and no request reaches it any more."""
        for member in list(self.members.values()):
            self._forget(member)
        self.is_dead = True

    # ------------------------------------------------------------ assignment

    def _counted(self, names: Iterable[str]) -> Dict[str, Tuple[bytes, int]]:
        """Return the ids and partition counts of those topics that exist."""
        found = {name: self._rules.topics.get(name) for name in names}
        return {
            name: (topic.topic_id, len(topic.partitions))
            for name, topic in found.items()
            if topic is not None
        }

    def _count(self, names: Iterable[str]) -> bool:
        """Count the partitions of topics; return True if the counts have changed."""
        before, self._counts = self._counts, self._counted(names)
        return self._counts != before

    def _topic_ids(self, names: Iterable[str]) -> Set[bytes]:
        return {self._counts[name][0] for name in names if name in self._counts}

    def _has_just_assigned(self) -> bool:
        """Return True if the assignment interval since the last target is not over (4.3).

        In 4.3 this is also the case if the group has been empty since.
        """
        if self._assigned_at is None or self._rules.version < (4, 3):
            return False
        age = self._rules.timers.clock.monotonic() - self._assigned_at
        return age < self._setting('assignment.interval.ms') / 1000

    def _set_epoch(self, member: M, epoch: int) -> None:
        if member.epoch != epoch:
            member.previous_epoch = max(member.epoch, 0)
            member.epoch = epoch
