"""A KIP-848 consumer group: subscriptions, regular expressions and the target assignment.

Called by consumer_groups.py, which checks heartbeats first. Membership and reconciliation are in
handover_group.py, the assignors in server_assignors.py. Also follows KIP-1082 (member ids).
"""

from __future__ import annotations

from typing import Callable, Dict, List, Optional, Set

from kafka.protocol.group import ConsumerGroupHeartbeatRequest
from kafka.testing.groups.epoch_group import JOIN_EPOCH, EpochRules
from kafka.testing.groups.group_members import MEMBER_BYTES
from kafka.testing.groups.handover_group import HandoverGroup, HandoverMember
from kafka.testing.groups.regex import Pattern
from kafka.testing.groups.server_assignors import ASSIGNORS, DEFAULT_ASSIGNOR, TopicPartition

#: Regular expressions are matched at most once in this interval, after a short delay.
REGEX_SECONDS = 10.0
REGEX_DELAY_SECONDS = 0.01
#: From 4.1 on they are matched again after this time, since ACLs may have changed (KIP-848,
#: ``group.consumer.regex.refresh.interval.ms``).
REGEX_REFRESH_SECONDS = 600.0


class ConsumerMember(HandoverMember[TopicPartition]):
    """A member with its subscription and assignment."""

    def __init__(self, member_id: str, client_id: str, client_host: str) -> None:
        super().__init__(member_id, client_id, client_host)
        self.topic_names: Set[str] = set()
        self.regex: Optional[str] = None
        self.assignor: Optional[str] = None

    def __repr__(self) -> str:
        return '<ConsumerMember %s epoch=%d, %d partitions, %d to give back>' % (
            self.member_id,
            self.epoch,
            len(self.assigned),
            len(self.revoking),
        )

    @property
    def size(self) -> int:
        """The estimate of the bytes that the member takes."""
        names = 2 * len(self.member_id) + len(self.client_id) + 2 * len(self.instance_id or '')
        return MEMBER_BYTES + names + sum(map(len, self.topic_names)) + len(self.regex or '')

    def take_over(self, other: ConsumerMember) -> None:
        """Take over the state of a static member that left temporarily."""
        super().take_over(other)
        self.topic_names, self.regex = other.topic_names, other.regex
        self.assignor = other.assignor


class ConsumerGroup(HandoverGroup[ConsumerMember, ConsumerGroupHeartbeatRequest, TopicPartition]):
    """One consumer group.

    Arguments: rules: what all groups of the type share; on_empty: called with the group id when
        the last member has left.
    """

    group_type = 'consumer'
    member_type = ConsumerMember

    def __init__(self, group_id: str, rules: EpochRules, on_empty: Callable[[str], None]) -> None:
        super().__init__(group_id, rules, on_empty)
        self.epoch = 1 if rules.version >= (4, 3) else 0
        self._regexes: Dict[str, Set[str]] = {}  # the topics that each matched
        self._topics_seen: Set[str] = set()  # when regular expressions were last matched
        self._matched_at: Optional[float] = None
        self._is_matching = False

    @property
    def assignor(self) -> str:
        """The assignor that most members prefer."""
        votes: Dict[str, int] = {}
        for member in self.members.values():
            if member.assignor is not None:
                votes[member.assignor] = votes.get(member.assignor, 0) + 1
        return max(votes, key=lambda name: votes[name]) if votes else DEFAULT_ASSIGNOR

    # ------------------------------------------------------------ members

    def take_back(self, members: List[ConsumerMember], regexes: Dict[str, Set[str]]) -> None:
        """Restore members that were read from disk, and the matches of their expressions."""
        for member in members:
            self._enter(member)
            self.keep_alive(member)
            if member.revoking:
                self._limit_revocation(member)
        self._regexes = regexes
        self._topics_seen = set(self._rules.topics)
        self._look_at_topics()

    @property
    def regexes(self) -> Dict[str, Set[str]]:
        """The topics that each regular expression last matched."""
        return self._regexes

    def _owns_its_own(self, member: ConsumerMember, request: ConsumerGroupHeartbeatRequest) -> bool:
        owned = _owned(request)
        return owned is not None and owned <= set(member.assigned)

    def _ended(self) -> None:
        super()._ended()
        self._regexes.clear()

    # ------------------------------------------------------------ heartbeat

    def heartbeat(
        self,
        member: ConsumerMember,
        request: ConsumerGroupHeartbeatRequest,
        may_describe: Callable[[str], bool],
    ) -> Optional[Set[TopicPartition]]:
        """Process a heartbeat; return the assignment, None if the response does not carry it.

        Arguments: may_describe: returns True if the sender may describe a topic.
        """
        self.keep_alive(member)
        assignor = self.assignor
        has_changed = self._update(member, request)
        if self._rules.version >= (4, 4):
            has_changed = has_changed or assignor != self.assignor
        self._look_at_regexes(may_describe)
        if self._look_at_topics() or has_changed:
            self.epoch += 1
        self._assign()
        before = set(member.assigned)
        self._reconcile(member, _owned(request), self._target_of(member))
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
        """Take over the values of a heartbeat; return True if the subscription has changed."""
        size = member.size
        names, regex = member.topic_names, member.regex
        # Before 4.3 the first epoch of a group is 0, which means joining.
        has_changed = member.member_id not in self.target and self._rules.version < (4, 3)
        if request.instance_id is not None:
            self._set_instance(member, request.instance_id)
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
        # A new regular expression has no effect until it has been matched.
        is_matched = member.regex is None or member.regex in self._regexes
        return has_changed or member.topic_names != names or (member.regex != regex and is_matched)

    def _look_at_topics(self) -> bool:
        """Count the partitions of subscribed topics; return True if they have changed."""
        counts = self._counted({n for each in self.members.values() for n in self._names(each)})
        before = self._counts
        has_unmatched = any(
            each.regex is not None and each.regex not in self._regexes
            for each in self.members.values()
        )
        if has_unmatched and all(before.get(name) == count for name, count in counts.items()):
            return False  # the missing topics may be among those that the new expression matches
        self._counts = counts
        return counts != before

    def _names(self, member: ConsumerMember) -> Set[str]:
        return member.topic_names | self._regexes.get(member.regex or '', set())

    # ------------------------------------------------------------ regular expressions

    def _look_at_regexes(self, may_describe: Callable[[str], bool]) -> None:
        """Schedule the match of regular expressions if expressions or topics are new."""
        wanted = {each.regex for each in self.members.values() if each.regex is not None}
        for gone in set(self._regexes) - wanted:
            del self._regexes[gone]
        if not wanted or self._is_matching:
            return
        timers = self._rules.timers
        age = None if self._matched_at is None else timers.clock.monotonic() - self._matched_at
        if wanted == set(self._regexes) and set(self._rules.topics) == self._topics_seen:
            is_old = age is None or age >= REGEX_REFRESH_SECONDS
            if not is_old or self._rules.version < (4, 1):
                return
        if age is not None and age < REGEX_SECONDS and self._regexes:
            return
        self._is_matching = True
        timers.later(REGEX_DELAY_SECONDS, lambda: self._match(may_describe))

    def _match(self, may_describe: Callable[[str], bool]) -> None:
        """Match all expressions of the group with the rights of the member that caused it."""
        self._is_matching = False
        self._matched_at = self._rules.timers.clock.monotonic()
        self._topics_seen = set(self._rules.topics)
        wanted = {each.regex for each in self.members.values() if each.regex is not None}
        topics = self._rules.topics.items()
        names = [name for name, topic in topics if not topic.is_internal]
        found = {
            pattern: set(filter(may_describe, Pattern(pattern).matching(names)))
            for pattern in sorted(wanted)
        }
        if found != self._regexes:
            self._regexes = found
            self._look_at_topics()
            self.epoch += 1

    # ------------------------------------------------------------ assignment

    def _assign(self) -> None:
        """Compute a new target if the epoch has changed and the last target is old enough."""
        if self.assignment_epoch == self.epoch or self._has_just_assigned():
            return
        self._assigned_at = self._rules.timers.clock.monotonic()
        wanted = {name: self._topic_ids(self._names(each)) for name, each in self.members.items()}
        counts = dict(self._counts.values())
        self.target = ASSIGNORS[self.assignor](wanted, counts, self.target)
        self.assignment_epoch = self.epoch

    def _target_of(self, member: ConsumerMember) -> Set[TopicPartition]:
        target = self.target.get(member.member_id, set())
        if self._rules.version < (4, 2):
            return target
        wanted = self._topic_ids(self._names(member))
        return {each for each in target if each[0] in wanted}  # unwanted topics are revoked at once

    # ------------------------------------------------------------ commits

    def _has_had(self, member: ConsumerMember, epoch: int, partition: TopicPartition) -> bool:
        return epoch >= member.assigned.get(partition, epoch + 1)

    def is_subscribed(self, topic: str) -> bool:
        """Return True if a member subscribes to a topic."""
        return any(topic in self._names(each) for each in self.members.values())


def _owned(request: ConsumerGroupHeartbeatRequest) -> Optional[Set[TopicPartition]]:
    """Return the partitions that a member reports to own, None if it reports nothing."""
    if request.topic_partitions is None:
        return None
    return {(t.topic_id, index) for t in request.topic_partitions for index in t.partitions}
