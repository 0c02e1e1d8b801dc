"""A KIP-848 group: members with epochs, a target, and the way from what they have to what they get.

Owns one group: heartbeats, assignment, the hand-over of partitions from one member to another
(KIP-848; KIP-1082 for member ids, KIP-1251 for commits of earlier epochs). What may be asked at all
is checked by consumer_groups.py, who gets what is computed by server_assignors.py.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Callable, Dict, List, Mapping, NamedTuple, Optional, Set, Tuple

from kafka.protocol.group import ConsumerGroupHeartbeatRequest
from kafka.testing.errors import (
    COORDINATOR_NOT_AVAILABLE,
    FENCED_INSTANCE_ID,
    FENCED_MEMBER_EPOCH,
    GROUP_MAX_SIZE_REACHED,
    ILLEGAL_GENERATION,
    NONE,
    STALE_MEMBER_EPOCH,
    UNKNOWN_MEMBER_ID,
    UNRELEASED_INSTANCE_ID,
    UNSUPPORTED_VERSION,
)
from kafka.testing.groups.group_members import MEMBER_BYTES, Budget, Deadline, Outbox
from kafka.testing.groups.regex import Effort, Pattern
from kafka.testing.groups.server_assignors import (
    ASSIGNORS,
    DEFAULT_ASSIGNOR,
    Assignments,
    TopicPartition,
)
from kafka.testing.timers import Timers

if TYPE_CHECKING:
    from kafka.testing.state import Topic

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2

#: Regular expressions are matched at most so often, and take a moment.
REGEX_SECONDS = 10.0
REGEX_DELAY_SECONDS = 0.01


class ConsumerGroupState(enum.Enum):
    """Where a group is; values are the names that ConsumerGroupDescribe gives."""

    EMPTY = 'Empty'
    ASSIGNING = 'Assigning'
    RECONCILING = 'Reconciling'
    STABLE = 'Stable'
    DEAD = 'Dead'


class ConsumerGroupRules(NamedTuple):
    """What all groups of a cluster share; ``topics`` are those of the cluster, by name.

    ``setting`` returns the value of a group's setting in milliseconds, by group and name.
    """

    version: Tuple[int, ...]
    timers: Timers
    outbox: Outbox
    budget: Budget
    topics: Mapping[str, Topic]
    max_size: int
    setting: Callable[[str, str], int]


class ConsumerMember:
    """A member: what it wants, and what it has."""

    def __init__(self, member_id: str, client_id: str, client_host: str) -> None:
        self.member_id = member_id
        self.instance_id: Optional[str] = None
        self.rack_id: Optional[str] = None
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = 0
        self.topic_names: Set[str] = set()
        self.regex: Optional[str] = None
        self.assignor: Optional[str] = None
        self.epoch = 0
        self.previous_epoch = 0
        #: What it may use, with the epoch in which it got each; and what it shall give back.
        self.assigned: Dict[TopicPartition, int] = {}
        self.revoking: Set[TopicPartition] = set()
        #: Whether it has all of its target.
        self.is_settled = False
        self.session: Optional[Deadline] = None
        self.revocation: Optional[Deadline] = None

    def __repr__(self) -> str:
        return '<ConsumerMember %s epoch=%d, %d partitions, %d to give back>' % (
            self.member_id,
            self.epoch,
            len(self.assigned),
            len(self.revoking),
        )

    @property
    def size(self) -> int:
        """The bytes that it stands for."""
        names = 2 * len(self.member_id) + len(self.client_id) + 2 * len(self.instance_id or '')
        return MEMBER_BYTES + names + sum(map(len, self.topic_names)) + len(self.regex or '')

    @property
    def holds(self) -> Set[TopicPartition]:
        """What nobody else may have yet."""
        return self.revoking | set(self.assigned)

    def take_over(self, other: ConsumerMember) -> None:
        """Become what a static member was that has left for a while."""
        self.topic_names, self.regex = other.topic_names, other.regex
        self.rack_id, self.assignor = other.rack_id, other.assignor
        self.rebalance_timeout_ms = other.rebalance_timeout_ms
        self.assigned = other.assigned
        self.previous_epoch = other.previous_epoch


class ConsumerGroup:
    """One group.

    Arguments: rules: those of the cluster; on_empty: is told its id when the last member has gone.
    """

    group_type = 'consumer'
    protocol_type = 'consumer'

    def __init__(
        self, group_id: str, rules: ConsumerGroupRules, on_empty: Callable[[str], None]
    ) -> None:
        self.group_id = group_id
        self.epoch = 1 if rules.version >= (4, 3) else 0
        self.assignment_epoch = 0
        self.members: Dict[str, ConsumerMember] = {}
        self.target: Assignments = {}
        self.empty_since = rules.timers.clock.monotonic()
        self.is_dead = False
        self._rules = rules
        self._on_empty = on_empty
        self._instances: Dict[str, str] = {}
        self._counts: Dict[str, Tuple[bytes, int]] = {}  # subscribed topics as last seen
        self._assigned_at: Optional[float] = None
        self._regexes: Dict[str, Set[str]] = {}  # what each matches
        self._topics_seen: Set[str] = set()  # when regular expressions were last matched
        self._matched_at: Optional[float] = None
        self._is_matching = False

    def __repr__(self) -> str:
        return '<ConsumerGroup %s %s epoch=%d, %d members>' % (
            self.group_id,
            self.state.value,
            self.epoch,
            len(self.members),
        )

    @property
    def state(self) -> ConsumerGroupState:
        """Where it is."""
        if self.is_dead:
            return ConsumerGroupState.DEAD
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(m.is_settled and m.epoch == self.epoch for m in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    @property
    def assignor(self) -> str:
        """The assignor that most members prefer."""
        votes: Dict[str, int] = {}
        for member in self.members.values():
            if member.assignor is not None:
                votes[member.assignor] = votes.get(member.assignor, 0) + 1
        return max(votes, key=lambda name: votes[name]) if votes else DEFAULT_ASSIGNOR

    # ------------------------------------------------------------ members

    def find(
        self, request: ConsumerGroupHeartbeatRequest, client_id: str, client_host: str
    ) -> Tuple[int, Optional[ConsumerMember]]:
        """Return the member that sends a heartbeat, made if it joins, or an error."""
        known = self.members.get(request.member_id)
        instance = request.instance_id
        if instance is not None:
            owner = self._instances.get(instance)
            if request.member_epoch != JOIN_EPOCH and owner is None:
                return UNKNOWN_MEMBER_ID, None
            if owner is not None and owner != request.member_id:
                if request.member_epoch != JOIN_EPOCH:
                    return FENCED_INSTANCE_ID, None
                if self.members[owner].epoch != STATIC_LEAVE_EPOCH:
                    return UNRELEASED_INSTANCE_ID, None
                return NONE, self._replace(self.members[owner], request, client_id, client_host)
        if known is None and request.member_epoch != JOIN_EPOCH:
            return UNKNOWN_MEMBER_ID, None
        if known is None:
            if len(self.members) >= self._rules.max_size:
                return GROUP_MAX_SIZE_REACHED, None
            if not self._rules.budget.has_room(2 * MEMBER_BYTES + len(request.member_id)):
                return COORDINATOR_NOT_AVAILABLE, None
            return NONE, self._add(
                request, ConsumerMember(request.member_id, client_id, client_host)
            )
        return self._epoch_error(known, request), known

    def _add(
        self, request: ConsumerGroupHeartbeatRequest, member: ConsumerMember
    ) -> ConsumerMember:
        member.instance_id = request.instance_id
        return self._enter(member)

    def _enter(self, member: ConsumerMember) -> ConsumerMember:
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self._instances[member.instance_id] = member.member_id
        rules = self._rules
        rules.budget.change(member.size)
        member.session = Deadline(rules.timers, rules.outbox, lambda: self.remove(member))
        member.revocation = Deadline(rules.timers, rules.outbox, lambda: self.remove(member))
        return member

    def take_back(self, members: List[ConsumerMember], regexes: Dict[str, Set[str]]) -> None:
        """Have the members again that were written down, and what their expressions matched."""
        for member in members:
            self._enter(member)
            self.keep_alive(member)
            if member.revoking and member.revocation is not None:
                member.revocation.set(member.rebalance_timeout_ms / 1000)
        self._regexes = regexes
        self._topics_seen = set(self._rules.topics)
        self._count()

    @property
    def regexes(self) -> Dict[str, Set[str]]:
        """Which topics each regular expression matched last."""
        return self._regexes

    def _replace(
        self,
        old: ConsumerMember,
        request: ConsumerGroupHeartbeatRequest,
        client_id: str,
        client_host: str,
    ) -> ConsumerMember:
        """Let a static member that left for a while come back under another id."""
        member = ConsumerMember(request.member_id, client_id, client_host)
        member.take_over(old)
        target = self.target.pop(old.member_id, set())
        self._forget(old)
        self.target[member.member_id] = target
        return self._add(request, member)

    def _epoch_error(self, member: ConsumerMember, request: ConsumerGroupHeartbeatRequest) -> int:
        epoch = request.member_epoch
        if epoch == member.epoch or (epoch == JOIN_EPOCH and self._rules.version >= (4, 2)):
            return NONE
        owned = _owned(request)
        # Its last answer may have been lost.
        if epoch == member.previous_epoch and epoch < member.epoch:
            if owned is not None and owned <= set(member.assigned):
                return NONE
        return FENCED_MEMBER_EPOCH

    def leave(self, request: ConsumerGroupHeartbeatRequest) -> int:
        """Let a member go for good, or for a while if static; return the error."""
        member = self.members.get(request.member_id)
        if request.instance_id is not None:
            owner = self._instances.get(request.instance_id)
            if owner is not None and owner != request.member_id:
                return FENCED_INSTANCE_ID
            if owner is None:
                return UNKNOWN_MEMBER_ID
        if member is None:
            return UNKNOWN_MEMBER_ID
        if request.member_epoch == STATIC_LEAVE_EPOCH:
            member.epoch = STATIC_LEAVE_EPOCH
            member.revoking.clear()
            if member.revocation is not None:
                member.revocation.cancel()
            self.keep_alive(member)
        else:
            self.remove(member)
        return NONE

    def remove(self, member: ConsumerMember) -> None:
        """Forget a member: others get what it had."""
        self.target.pop(member.member_id, None)
        self._forget(member)
        self.epoch += 1
        if not self.members:
            if self._rules.version >= (4, 4):
                self.assignment_epoch = self.epoch
            self.empty_since = self._rules.timers.clock.monotonic()
            self._counts.clear()
            self._regexes.clear()
            self._on_empty(self.group_id)

    def _forget(self, member: ConsumerMember) -> None:
        if self.members.get(member.member_id) is not member:
            return
        del self.members[member.member_id]
        if member.instance_id is not None:
            self._instances.pop(member.instance_id, None)
        for deadline in (member.session, member.revocation):
            if deadline is not None:
                deadline.cancel()
        self._rules.budget.change(-member.size)

    def _setting(self, name: str) -> int:
        return self._rules.setting(self.group_id, name)

    def keep_alive(self, member: ConsumerMember) -> None:
        """Begin a member's session time-out anew."""
        if member.session is not None:
            member.session.set(self._setting('consumer.session.timeout.ms') / 1000)

    # ------------------------------------------------------------ heartbeat

    def heartbeat(
        self, member: ConsumerMember, request: ConsumerGroupHeartbeatRequest
    ) -> Optional[Set[TopicPartition]]:
        """Take what a member says; return its assignment, None if there is nothing to tell."""
        self.keep_alive(member)
        assignor = self.assignor
        has_changed = self._update(member, request)
        if self._rules.version >= (4, 4):
            has_changed = has_changed or assignor != self.assignor
        self._look_at_regexes()
        if self._count() or has_changed:
            self.epoch += 1
        self._assign()
        before = set(member.assigned)
        self._reconcile(member, _owned(request))
        now = set(member.assigned)
        is_full = (
            request.rebalance_timeout_ms != -1
            and (request.subscribed_topic_names is not None or bool(request.subscribed_topic_regex))
            and request.topic_partitions is not None
        )
        if request.member_epoch == JOIN_EPOCH or is_full or now != before:
            return now
        return None

    def _update(self, member: ConsumerMember, request: ConsumerGroupHeartbeatRequest) -> bool:
        """Note what a member wants; return whether that is something new."""
        size = member.size
        names, regex = member.topic_names, member.regex
        # Before 4.3 the first epoch of a group is 0, which stands for joining.
        has_changed = member.member_id not in self.target and self._rules.version < (4, 3)
        if request.rebalance_timeout_ms != -1:
            member.rebalance_timeout_ms = request.rebalance_timeout_ms
        if request.subscribed_topic_names is not None:
            member.topic_names = set(request.subscribed_topic_names)
        if request.subscribed_topic_regex is not None:
            member.regex = request.subscribed_topic_regex or None
        if request.rack_id is not None:
            member.rack_id = request.rack_id
        if request.server_assignor is not None:
            member.assignor = request.server_assignor
        self._rules.budget.change(member.size - size)
        # A new regular expression says nothing until it has been matched.
        is_matched = member.regex is None or member.regex in self._regexes
        return has_changed or member.topic_names != names or (member.regex != regex and is_matched)

    def _count(self) -> bool:
        """Count the partitions of subscribed topics; return whether they are others than before."""
        counts = {}
        for name in {name for each in self.members.values() for name in self._names(each)}:
            topic = self._rules.topics.get(name)
            if topic is not None:
                counts[name] = topic.topic_id, len(topic.partitions)
        before = self._counts
        has_unmatched = any(
            each.regex is not None and each.regex not in self._regexes
            for each in self.members.values()
        )
        if has_unmatched and all(before.get(name) == count for name, count in counts.items()):
            return False  # what is missing may be what the new expression matches
        self._counts = counts
        return counts != before

    def _names(self, member: ConsumerMember) -> Set[str]:
        return member.topic_names | self._regexes.get(member.regex or '', set())

    # ------------------------------------------------------------ regular expressions

    def _look_at_regexes(self) -> None:
        """Match regular expressions in a moment, if there are new ones or new topics."""
        wanted = {each.regex for each in self.members.values() if each.regex is not None}
        for gone in set(self._regexes) - wanted:
            del self._regexes[gone]
        if not wanted or self._is_matching:
            return
        if wanted == set(self._regexes) and set(self._rules.topics) == self._topics_seen:
            return
        timers = self._rules.timers
        if self._matched_at is not None and self._regexes:
            if timers.clock.monotonic() - self._matched_at < REGEX_SECONDS:
                return
        self._is_matching = True
        timers.later(REGEX_DELAY_SECONDS, self._match)

    def _match(self) -> None:
        self._is_matching = False
        self._matched_at = self._rules.timers.clock.monotonic()
        self._topics_seen = set(self._rules.topics)
        wanted = {each.regex for each in self.members.values() if each.regex is not None}
        topics = self._rules.topics.items()
        names = [name for name, topic in topics if not topic.is_internal]
        effort = Effort()
        found = {pattern: Pattern(pattern).matching(names, effort) for pattern in sorted(wanted)}
        if found != self._regexes:
            self._regexes = found
            self._count()
            self.epoch += 1

    # ------------------------------------------------------------ assignment

    def _assign(self) -> None:
        """Compute a new target, if there is reason and the last one is old enough."""
        if self.assignment_epoch == self.epoch:
            return
        now = self._rules.timers.clock.monotonic()
        if self._assigned_at is not None and self._rules.version >= (4, 3):
            if now - self._assigned_at < self._setting('consumer.assignment.interval.ms') / 1000:
                return
        self._assigned_at = now
        wanted = {
            each.member_id: {self._counts[n][0] for n in self._names(each) if n in self._counts}
            for each in self.members.values()
        }
        counts = dict(self._counts.values())
        self.target = ASSIGNORS[self.assignor](wanted, counts, self.target)
        self.assignment_epoch = self.epoch

    def _reconcile(self, member: ConsumerMember, owned: Optional[Set[TopicPartition]]) -> None:
        """Bring a member nearer to its target, as far as it and the others have given back."""
        if member.revoking:
            if owned is None or owned & member.revoking:
                return
            member.revoking.clear()
        target = self.target.get(member.member_id, set())
        if self._rules.version >= (4, 2):  # what it does not want any more goes at once
            wanted = {self._counts[name][0] for name in self._names(member) & set(self._counts)}
            target = {each for each in target if each[0] in wanted}
        surplus = set(member.assigned) - target
        for partition in surplus:
            del member.assigned[partition]
        # A member that has just joined owns nothing, whatever it had.
        if surplus and owned is not None:
            surplus &= owned
        if surplus and member.epoch > JOIN_EPOCH:
            member.revoking = surplus
            member.is_settled = False
            if member.revocation is not None:
                member.revocation.set(member.rebalance_timeout_ms / 1000)
            return
        if member.revocation is not None:
            member.revocation.cancel()
        self._set_epoch(member, self.assignment_epoch)
        taken: Set[TopicPartition] = set()
        for other in self.members.values():
            if other is not member:
                taken |= other.holds
        for partition in target - set(member.assigned) - taken:
            member.assigned[partition] = member.epoch
        member.is_settled = set(member.assigned) == target

    def _set_epoch(self, member: ConsumerMember, epoch: int) -> None:
        if member.epoch != epoch:
            member.previous_epoch = max(member.epoch, 0)
            member.epoch = epoch

    # ------------------------------------------------------------ commits

    def commit_error(
        self, epoch: int, member_id: str, version: int, partitions: List[TopicPartition]
    ) -> int:
        """Return why a commit is refused. version: of OffsetCommit."""
        if epoch < 0 and not self.members:
            return NONE
        member = self.members.get(member_id)
        if member is None:
            return UNKNOWN_MEMBER_ID
        if version < 9:
            return UNSUPPORTED_VERSION
        if epoch == member.epoch:
            return NONE
        if epoch > member.epoch or self._rules.version < (4, 3):
            return STALE_MEMBER_EPOCH
        # KIP-1251: an earlier epoch will do for what the member had then already.
        for partition in partitions:
            if epoch < member.assigned.get(partition, epoch + 1):
                return STALE_MEMBER_EPOCH
        return NONE

    def transactional_commit_error(self, epoch: int, member_id: str) -> int:
        """Return why offsets in a transaction are refused."""
        if epoch < 0 and (not self.members or not member_id):
            return NONE
        member = self.members.get(member_id)
        if member is None:
            return UNKNOWN_MEMBER_ID
        return NONE if epoch == member.epoch else ILLEGAL_GENERATION

    def fetch_error(self, epoch: int, member_id: Optional[str]) -> int:
        """Return why OffsetFetch is refused."""
        if member_id is None and epoch < 0:
            return NONE
        member = self.members.get(member_id or '')
        if member is None:
            return UNKNOWN_MEMBER_ID
        return NONE if epoch == member.epoch else STALE_MEMBER_EPOCH

    def is_subscribed(self, topic: str) -> bool:
        """Tell whether a member consumes a topic."""
        return any(topic in self._names(each) for each in self.members.values())

    def die(self) -> None:
        """End the group; nobody finds it any more."""
        for member in list(self.members.values()):
            self._forget(member)
        self.is_dead = True


def _owned(request: ConsumerGroupHeartbeatRequest) -> Optional[Set[TopicPartition]]:
    """Return what a member says it owns, None if it says nothing."""
    if request.topic_partitions is None:
        return None
    return {(t.topic_id, index) for t in request.topic_partitions for index in t.partitions}
