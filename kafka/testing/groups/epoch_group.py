"""A group whose members have epochs: what consumer, share and streams groups have in common.

Owns who is a member and for how long, what each shall have, and when that may be computed anew
(KIP-848, KIP-932, KIP-1071). What members tell and are told is each kind's own business; those that
hand over what they have are in handover_group.py.
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
    """Where a group is; values are the names that descriptions give."""

    EMPTY = 'Empty'
    NOT_READY = 'NotReady'  # streams groups only
    ASSIGNING = 'Assigning'  # these two not in share groups
    RECONCILING = 'Reconciling'
    STABLE = 'Stable'
    DEAD = 'Dead'


class EpochRules(NamedTuple):
    """What all groups of a kind share; ``topics`` are those of the cluster, by name.

    ``setting`` returns the value of a group's setting that is a number, by group and name.
    """

    version: Tuple[int, ...]
    timers: Timers
    outbox: Outbox
    budget: Budget
    topics: Mapping[str, Topic]
    max_size: int
    setting: Callable[[str, str], int]


class EpochMember:
    """A member, and which epoch it is in."""

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
        """The bytes that it stands for."""
        raise NotImplementedError


M = TypeVar('M', bound=EpochMember)
#: The heartbeats of members.
R = TypeVar(
    'R',
    bound=Union[
        ConsumerGroupHeartbeatRequest, ShareGroupHeartbeatRequest, StreamsGroupHeartbeatRequest
    ],
)
#: What members are given: partitions or tasks.
Unit = TypeVar('Unit', bound=Hashable)


class EpochGroup(Generic[M, R, Unit]):
    """One group. Arguments: rules: those of its kind."""

    #: Also what the names of its settings begin with.
    group_type = ''
    member_type: Type[M]

    def __init__(self, group_id: str, rules: EpochRules) -> None:
        self.group_id = group_id
        self.epoch = 0
        self.assignment_epoch = 0
        self.members: Dict[str, M] = {}
        #: What each member shall have.
        self.target: Dict[str, Set[Unit]] = {}
        self.is_dead = False
        self._rules = rules
        #: Topics that members read, as last seen: their ids and how many partitions they had.
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
        """What lists of groups tell beside the kind."""
        return self.group_type

    @property
    def assignor(self) -> str:
        """The name of what computes who gets what."""
        raise NotImplementedError

    @property
    def state(self) -> EpochGroupState:
        """Where it is."""
        if self.is_dead:
            return EpochGroupState.DEAD
        return self._state_of_members() if self.members else EpochGroupState.EMPTY

    def _state_of_members(self) -> EpochGroupState:
        raise NotImplementedError

    def _setting(self, name: str) -> int:
        """Return the value of one of its settings, all of which begin with the kind of group."""
        return self._rules.setting(self.group_id, '%s.%s' % (self.group_type, name))

    @property
    def heartbeat_interval_ms(self) -> int:
        """How often members shall send heartbeats."""
        return self._setting('heartbeat.interval.ms')

    # ------------------------------------------------------------ members

    def find(self, request: R, client_id: str, client_host: str) -> Tuple[int, Optional[M]]:
        """Return the member that sends a heartbeat, made if it joins, or an error."""
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
        """Return what is wrong with the epoch in which a member believes to be."""
        raise NotImplementedError

    def _enter(self, member: M) -> M:
        self.members[member.member_id] = member
        self._rules.budget.change(member.size)
        member.session = self._deadline(member)
        return member

    def _deadline(self, member: M) -> Deadline:
        """Return a deadline after which a member is out."""
        rules = self._rules
        return Deadline(rules.timers, rules.outbox, lambda: self.remove(member))

    def keep_alive(self, member: M) -> None:
        """Begin a member's session time-out anew."""
        if member.session is not None:
            member.session.set(self._setting('session.timeout.ms') / 1000)

    def remove(self, member: M) -> None:
        """Forget a member: others get what it had."""
        self._forget(member)
        self.epoch += 1
        if not self.members:
            if self._rules.version >= (4, 4):
                self.assignment_epoch = self.epoch
                self._assigned_at = None  # who joins next does not wait
            self._ended()

    def _ended(self) -> None:
        """Forget what only members needed: the last one has gone."""
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
        """End the group; nobody finds it any more."""
        for member in list(self.members.values()):
            self._forget(member)
        self.is_dead = True

    # ------------------------------------------------------------ assignment

    def _counted(self, names: Iterable[str]) -> Dict[str, Tuple[bytes, int]]:
        """Return the ids and the numbers of partitions of those topics that there are."""
        found = {name: self._rules.topics.get(name) for name in names}
        return {
            name: (topic.topic_id, len(topic.partitions))
            for name, topic in found.items()
            if topic is not None
        }

    def _count(self, names: Iterable[str]) -> bool:
        """Count the partitions of topics; return whether they are others than before."""
        before, self._counts = self._counts, self._counted(names)
        return self._counts != before

    def _topic_ids(self, names: Iterable[str]) -> Set[bytes]:
        return {self._counts[name][0] for name in names if name in self._counts}

    def _has_just_assigned(self) -> bool:
        """Tell whether the last assignment is too young for another one (4.3).

        In 4.3 also that of a group that has become empty since.
        """
        if self._assigned_at is None or self._rules.version < (4, 3):
            return False
        age = self._rules.timers.clock.monotonic() - self._assigned_at
        return age < self._setting('assignment.interval.ms') / 1000

    def _set_epoch(self, member: M, epoch: int) -> None:
        if member.epoch != epoch:
            member.previous_epoch = max(member.epoch, 0)
            member.epoch = epoch
