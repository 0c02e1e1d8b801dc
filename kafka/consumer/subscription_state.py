"""SubscriptionState: the subscription and assignment of a consumer.

It has the kind of subscription, its topics, the assigned partitions in the order in which they are
served, and the state of each. The consumer, its fetch manager, its offsets request manager and its
group member share one; all access is guarded by the consumer's lock, except `has_changed`. The
method names are those of 1.x to 3.x. Pure.
"""

from __future__ import annotations

import enum
import operator
import re
from typing import Any, Dict, Iterable, List, Mapping, Optional, Pattern, Set, Tuple

from kafka.consumer.listener import (
    AsyncConsumerRebalanceListener,
    ConsumerRebalanceListener,
    SubscriptionPattern,
    check_listener,
)
from kafka.consumer.partition_state import Phase, TopicPartitionState
from kafka.consumer.reset_policy import NONE, ResetPolicy, read_policy
from kafka.errors import IllegalStateError
from kafka.internals.validation import (
    ArgumentTypeError,
    ArgumentValueError,
    as_partition,
    check_topic,
)
from kafka.structs import OffsetAndMetadata, TopicPartition

__all__ = [
    'AsyncConsumerRebalanceListener',
    'ConsumerRebalanceListener',
    'Mode',
    'NotAssignedError',
    'Phase',
    'SubscriptionPattern',
    'SubscriptionState',
    'TopicPartitionState',
]


class Mode(enum.Enum):
    """The kinds of subscription."""

    NONE = 'nothing'
    TOPICS = 'topics'
    PATTERN = 'a pattern'
    SERVER_PATTERN = 'a pattern of the brokers'  # KIP-848
    USER = 'partitions'  # assign()

    __hash__ = object.__hash__


_SUBSCRIBED = frozenset([Mode.TOPICS, Mode.PATTERN, Mode.SERVER_PATTERN])

#: The kinds that may follow each kind; unsubscribe() leads to NONE from all of them.
MODES: Mapping[Mode, Iterable[Mode]] = {
    Mode.NONE: frozenset(Mode),
    Mode.TOPICS: _SUBSCRIBED | {Mode.NONE},
    Mode.PATTERN: _SUBSCRIBED | {Mode.NONE},
    Mode.SERVER_PATTERN: _SUBSCRIBED | {Mode.NONE},
    Mode.USER: frozenset([Mode.USER, Mode.NONE]),
}


class NotAssignedError(IllegalStateError, ValueError, KeyError):
    """The partition is not assigned. Also a ValueError and KeyError, as in earlier releases."""

    def __str__(self) -> str:
        return 'IllegalStateError: %s' % (self.args[0] if self.args else 'not assigned')


class SubscriptionState:
    """The subscription, the assigned partitions and the state of each of them.

    Arguments: offset_reset_strategy: where reading begins without a position: 'earliest', 'latest',
        'by_duration:<ISO 8601>'; any other word: the program has to seek. Raises InvalidOptionError
        for a malformed or negative duration.

    Attributes:
        assignment: {TopicPartition: TopicPartitionState}, in the order in which they are served.
        default_reset: the reset policy of the consumer.
        unsettled: assigned partitions whose position has to be found or validated.
        version: incremented by each change of the subscription or the assignment.
        mode: the kind of the subscription.
        subscription: the topics, with a pattern those found so far; None without a subscription.
        subscribed_pattern: compiled, or None; server_pattern: the one that brokers match (KIP-848).
        listener: the rebalance listener, or None.
        needs_partition_assignment: whether the group has to assign again.
        needs_fetch_committed_offsets: whether the known committed offsets may be outdated (1.x).
        defers_revocation: whether partitions of topics that were unsubscribed stay assigned, and
            return no records, until the member of a group has committed what was returned and
            removes them with revoke(). Without a member they are removed at once.
    """

    def __init__(self, offset_reset_strategy: Any = 'earliest') -> None:
        self.assignment: Dict[TopicPartition, TopicPartitionState] = {}
        self.default_reset: ResetPolicy = read_policy(offset_reset_strategy)
        self.unsettled: Set[TopicPartition] = set()
        self.version = 0
        self.defers_revocation = False
        self.mode = Mode.NONE
        self.subscription: Optional[Set[str]] = None
        self.subscribed_pattern: Optional[Pattern[str]] = None
        self.server_pattern: Optional[str] = None
        self.listener: Any = None
        self.needs_partition_assignment = False
        self.needs_fetch_committed_offsets = True
        self._changed: Set[TopicPartition] = set()
        # Partitions paused when a rebalance revoked them: paused again if they are assigned again.
        self._paused_before: Set[TopicPartition] = set()
        self._group_subscription: Set[str] = set()

    def __repr__(self) -> str:
        return '<SubscriptionState %s, %d topics, %d partitions, %d unsettled>' % (
            self.mode.value,
            len(self.subscription or ()),
            len(self.assignment),
            len(self.unsettled),
        )

    # ------------------------------------------------------------ by the program

    def subscribe(self, topics: Any = (), pattern: Any = None, listener: Any = None) -> None:
        """Subscribe to topics, or to a pattern; replaces topics and listener.

        Records of topics that are no longer subscribed are not returned; see defers_revocation.

        Arguments: topics: names, or one as a str; pattern: matched at the beginning of names, as
            str or compiled, or a SubscriptionPattern, which brokers match; listener: the rebalance
            listener.
        Raises: ArgumentValueError for neither topics nor pattern, and for an invalid name or
        pattern; ArgumentTypeError; IllegalStateError for both, and after assign_from_user().
        Nothing is changed then.
        """
        names = _topic_names(topics)
        if names and pattern is not None:
            raise IllegalStateError('subscribe to topics or to a pattern, not to both')
        if not names and pattern is None:
            raise ArgumentValueError('subscribe() needs topics or a pattern')
        check_listener(listener)
        if pattern is None:
            self._enter(Mode.TOPICS)
            self.subscribed_pattern = self.server_pattern = None
            self._change(set(names))
        else:
            self._subscribe_to(pattern)
        # Also if the topics are unchanged: the assignment may have partitions of topics that only
        # the former pattern matched.
        self._drop_unsubscribed()
        self.listener = listener

    def _subscribe_to(self, pattern: Any) -> None:
        """Subscribe to a pattern; of the former topics those that it matches stay subscribed.

        The others follow by change_subscription(), or by the assignment of the group.
        """
        is_of_brokers = isinstance(pattern, SubscriptionPattern)
        compiled = None if is_of_brokers else _compiled(pattern)
        if is_of_brokers:
            _check_text(pattern.pattern)
        self._enter(Mode.SERVER_PATTERN if is_of_brokers else Mode.PATTERN)
        self.subscribed_pattern = compiled
        self.server_pattern = pattern.pattern if is_of_brokers else None
        known = self.subscription or ()
        self._change({each for each in known if self.matches(each)} if compiled else set())
        self.needs_partition_assignment = True

    def assign_from_user(self, partitions: Iterable[Any]) -> None:
        """Assign partitions without a group; those that stay keep their state.

        Arguments: partitions: TopicPartitions, or tuples of two; empty to remove the assignment.
        Raises: IllegalStateError after subscribe(), until unsubscribe(); as as_partition().
        """
        wanted = [as_partition(each) for each in _iterated('partitions', partitions)]
        self._enter(Mode.USER)
        if not wanted:
            self._enter(Mode.NONE)
        self._assign(wanted)
        self.needs_fetch_committed_offsets = True

    def unsubscribe(self) -> None:
        """Remove subscription and assignment; any kind of subscription may follow."""
        self._enter(Mode.NONE)
        self.subscription = self.subscribed_pattern = self.server_pattern = None
        self.listener = None
        self.needs_partition_assignment = False
        self._group_subscription = set()
        self._assign(())

    def _enter(self, mode: Mode) -> None:
        if mode not in MODES[self.mode]:
            raise IllegalStateError(
                'this consumer reads %s, and cannot change to %s: unsubscribe() first'
                % (self.mode.value, mode.value)
            )
        self.mode = mode

    # ------------------------------------------------------------ by the group and the metadata

    def partitions_auto_assigned(self) -> bool:
        """Return True if topics or a pattern are subscribed, not after assign_from_user()."""
        return self.mode in _SUBSCRIBED

    def topics(self) -> Set[str]:
        """Return the topics subscribed to by name, and those of assigned partitions."""
        found = set(self.subscription or ())
        found.update(str(each.topic) for each in self.meant())
        return found

    def meant(self) -> Set[TopicPartition]:
        """Return the assigned partitions without those of unsubscribed topics."""
        return {each for each, state in self.assignment.items() if not state.is_unsubscribed}

    def matches(self, topic: str) -> bool:
        """Return True if a topic is subscribed to, by its name or by the pattern."""
        if self.subscribed_pattern is not None:
            return self.subscribed_pattern.match(topic) is not None
        return self.server_pattern is not None or topic in (self.subscription or ())

    def change_subscription(self, topics: Any) -> bool:
        """Replace the subscribed topics, for example by those that a pattern matches now.

        Returns: whether they have changed.
        Raises: IllegalStateError without a subscription; as check_topic().
        """
        self._check_subscribed()
        return self._change(set(_topic_names(topics)))

    def _change(self, topics: Set[str]) -> bool:
        if topics == self.subscription:
            return False
        self.subscription = topics
        self._group_subscription |= topics
        self.needs_partition_assignment = True
        self.version += 1
        self._drop_unsubscribed()
        return True

    def _drop_unsubscribed(self) -> None:
        """Stop returning records of unsubscribed topics."""
        if not self.defers_revocation:
            topics = self.subscription or ()
            self.revoke([each for each in self.assignment if each.topic not in topics])
            return
        for partition, state in self.assignment.items():
            state.unsubscribe(not self.matches(str(partition.topic)))

    def _check_subscribed(self) -> None:
        if self.mode not in _SUBSCRIBED:
            raise IllegalStateError(
                'no topics are subscribed to: this consumer reads %s' % self.mode.value
            )

    def group_subscribe(self, topics: Iterable[str]) -> None:
        """Add the topics of other members, for the leader.

        Raises: IllegalStateError without a subscription.
        """
        self._check_subscribed()
        self._group_subscription |= set(topics)

    def group_subscription(self) -> Set[str]:
        """Return a new set of the topics whose metadata the group member needs."""
        return set(self._group_subscription)

    def mark_for_reassignment(self) -> None:
        """Note that the group has to assign again. Raises IllegalStateError unless subscribed.

        Drops the topics of other members, until this member leads again.
        """
        self._check_subscribed()
        assert self.subscription is not None
        self._group_subscription &= self.subscription
        self.needs_partition_assignment = True

    def assign_from_subscribed(self, partitions: Iterable[TopicPartition]) -> None:
        """Replace the assignment by that of the group; partitions that stay keep their state.

        Raises: IllegalStateError without a subscription; ArgumentValueError for a topic that is
        not subscribed, unless defers_revocation; nothing is changed then.
        """
        self._check_subscribed()
        assert self.subscription is not None
        wanted = [as_partition(each) for each in partitions]
        foreign = [each for each in wanted if not self.matches(str(each.topic))]
        # With defers_revocation the topic may have been unsubscribed a moment ago; the group
        # revokes its partitions later.
        if foreign and not self.defers_revocation:
            raise ArgumentValueError(
                'the group assigned %s of topics that this consumer did not subscribe to'
                % _names(foreign)
            )
        # The leader, or the broker, may have found matching topics that this member does not know.
        if self.mode is not Mode.TOPICS:
            topics = {str(each.topic) for each in wanted} - {str(each.topic) for each in foreign}
            found = topics if self.mode is Mode.SERVER_PATTERN else self.subscription | topics
            self.subscription = found
            self._group_subscription |= found
        self._assign(wanted)
        if self.defers_revocation:
            self._drop_unsubscribed()
        self.needs_partition_assignment = False
        self.needs_fetch_committed_offsets = True

    # ------------------------------------------------------------ the assigned partitions

    def state(self, partition: TopicPartition) -> TopicPartitionState:
        """Return the state of a partition. Raises NotAssignedError if it is not assigned."""
        found = self.assignment.get(partition)
        if found is None:
            raise NotAssignedError(
                'partition %s is not assigned to this consumer; it has %s'
                % (_name(partition), _names(self.assignment))
            )
        return found

    def owned(self) -> Set[TopicPartition]:
        """Return a new set of the assigned partitions."""
        return set(self.assignment)

    def assigned_partitions(self) -> Set[TopicPartition]:
        """Return the assigned partitions (1.x)."""
        return set(self.assignment)

    def is_assigned(self, partition: TopicPartition) -> bool:
        """Return True if a partition is assigned."""
        return partition in self.assignment

    def revoke(self, partitions: Iterable[TopicPartition]) -> None:
        """Remove these partitions from the assignment; those not assigned are ignored."""
        gone = [each for each in partitions if each in self.assignment]
        for partition in gone:
            self.assignment.pop(partition).leave()
        if gone:
            self.version += 1

    def give_back(self, partitions: Iterable[TopicPartition]) -> None:
        """Remove partitions because of a rebalance; if assigned again, paused ones stay paused."""
        gone = list(partitions)
        self._paused_before.update(each for each in gone if self.is_paused(each))
        self.revoke(gone)

    def _assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Replace the assignment; partitions that stay keep their state and their order."""
        wanted = dict.fromkeys(partitions)
        self.revoke([each for each in self.assignment if each not in wanted])
        for partition in wanted:
            if partition not in self.assignment:
                state = TopicPartitionState(partition, self.unsettled, self._changed)
                self.assignment[partition] = state
                if partition in self._paused_before:
                    state.pause()
        self._paused_before.clear()
        self.version += 1

    # ------------------------------------------------------------ fetchable partitions

    def fetchable(self) -> List[TopicPartition]:
        """Return the fetchable partitions, the one served longest ago first."""
        return [each for each, state in self.assignment.items() if state.is_fetchable()]

    def fetchable_partitions(self) -> Set[TopicPartition]:
        """Return the fetchable partitions (1.x)."""
        return set(self.fetchable())

    def is_fetchable(self, partition: TopicPartition) -> bool:
        """Return True if a partition is fetchable, False if it is not assigned."""
        state = self.assignment.get(partition)
        return state is not None and state.is_fetchable()

    def rotate(self, partition: TopicPartition) -> None:
        """Move a partition that was just served to the end of the order."""
        state = self.assignment.pop(partition, None)
        if state is not None:
            self.assignment[partition] = state

    def hold(self, partitions: Iterable[TopicPartition]) -> None:
        """Fetch none of these partitions until release(): they are new, or about to be revoked."""
        self._set_held(partitions, True)

    def release(self, partitions: Iterable[TopicPartition]) -> None:
        """Undo hold() for the partitions that are still assigned."""
        self._set_held(partitions, False)

    def _set_held(self, partitions: Iterable[TopicPartition], is_held: bool) -> None:
        for partition in partitions:
            state = self.assignment.get(partition)
            if state is not None:
                state.hold(is_held)

    @property
    def has_changed(self) -> bool:
        """Whether take_changed() would return anything; may be read without the lock."""
        return bool(self._changed)

    @property
    def changed(self) -> Set[TopicPartition]:
        """The set that take_changed() would return."""
        return self._changed

    def take_changed(self) -> Set[TopicPartition]:
        """Return the partitions whose Fetch request may have changed since the last call.

        They were assigned, revoked, moved, paused or held, or have a new phase or replica; fetching
        and returning records does not count. Because of it, the fetch manager need not check all
        partitions each time.
        """
        changed = set(self._changed)
        self._changed.clear()
        return changed

    # ------------------------------------------------------------ pausing

    def pause(self, partition: TopicPartition) -> None:
        """Return no records of a partition until resume(). Raises NotAssignedError."""
        if partition not in self._paused_before:
            self.state(partition).pause()

    def resume(self, partition: TopicPartition) -> None:
        """Undo pause(), also of a partition revoked by a rebalance. Raises NotAssignedError."""
        if partition in self._paused_before:
            self._paused_before.discard(partition)
        else:
            self.state(partition).resume()

    def is_paused(self, partition: TopicPartition) -> bool:
        """Return True if a partition is paused, False if it is not assigned."""
        state = self.assignment.get(partition)
        return state is not None and state.paused

    def paused_partitions(self) -> Set[TopicPartition]:
        """Return a new set of the paused partitions.

        Partitions that a rebalance in progress has revoked are included, so that resume(*paused())
        covers them.
        """
        paused = {each for each, state in self.assignment.items() if state.paused}
        return paused | self._paused_before

    # ------------------------------------------------------------ positions

    def seek(self, partition: TopicPartition, offset: Any) -> None:
        """Move the position to an offset; records fetched before are dropped.

        Arguments: offset: a number, or an OffsetAndMetadata, whose leader epoch, if it is known,
        is validated first.
        Raises: ArgumentValueError for an invalid offset, NotAssignedError.
        """
        number, epoch = _offset_of(offset)
        self.state(partition).seek(number, epoch)

    def seek_to(self, partition: TopicPartition, strategy: Any) -> None:
        """Reset the position by a policy, on behalf of the program.

        Arguments: strategy: as read_policy(). Raises NotAssignedError.
        """
        self.state(partition).await_reset(strategy, by_program=True)

    def need_offset_reset(self, partition: TopicPartition, strategy: Any = None) -> None:
        """Drop the position and reset it by a policy. Raises NotAssignedError.

        Arguments: strategy: as read_policy(); None for that of the consumer. With 'none' the
        partition waits for the program to seek.
        """
        policy = self.default_reset if strategy is None else strategy
        self.state(partition).await_reset(policy)

    def has_default_offset_reset_policy(self) -> bool:
        """Return True if a missing position is reset automatically."""
        return self.default_reset != NONE

    def is_offset_reset_needed(self, partition: TopicPartition) -> bool:
        """Return True if an assigned partition waits for its position to be reset."""
        state = self.assignment.get(partition)
        return state is not None and state.awaiting_reset

    def has_all_fetch_positions(self) -> bool:
        """Return True if every assigned partition has a position."""
        return not self.missing_fetch_positions()

    def missing_fetch_positions(self) -> Set[TopicPartition]:
        """Return the assigned partitions without a position."""
        return {each for each in self.unsettled if not self.assignment[each].has_valid_position}

    def all_consumed_offsets(self) -> Dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets to commit, see TopicPartitionState.consumed_offset()."""
        found = {each: state.consumed_offset() for each, state in self.assignment.items()}
        return {each: offset for each, offset in found.items() if offset is not None}


def _topic_names(topics: Any) -> List[str]:
    """Return the names of a collection, or of a single str, without duplicates."""
    if isinstance(topics, str):
        topics = (topics,)
    names = list(dict.fromkeys(_iterated('topics', topics or ())))
    for name in names:
        check_topic(name)
    return names


def _iterated(what: str, things: Any) -> List[Any]:
    if isinstance(things, (str, bytes)) or not hasattr(things, '__iter__'):
        raise ArgumentTypeError('%s must be a list, not %s' % (what, type(things).__name__))
    found = list(things)
    for each in found:
        if not isinstance(each, (str, tuple)):
            raise ArgumentTypeError('%s: one is %s' % (what, type(each).__name__))
    return found


def _check_text(pattern: Any) -> None:
    if not isinstance(pattern, str):
        raise ArgumentTypeError('pattern must be str, not %s' % type(pattern).__name__)
    if not pattern:
        raise ArgumentValueError('pattern must not be empty')


def _compiled(pattern: Any) -> Pattern[str]:
    _check_text(getattr(pattern, 'pattern', pattern))
    try:
        compiled: Pattern[str] = re.compile(pattern)
    except re.error as error:
        raise ArgumentValueError(
            'pattern %.200r is not a regular expression: %s' % (pattern, error)
        ) from error
    return compiled


def _offset_of(offset: Any) -> Tuple[int, int]:
    """Return an offset and the leader epoch before it, -1 for unknown."""
    epoch = -1
    if isinstance(offset, OffsetAndMetadata):
        epoch = -1 if offset.leader_epoch is None else offset.leader_epoch
        offset = offset.offset
    if isinstance(offset, bool) or not hasattr(offset, '__index__'):
        raise ArgumentValueError('an offset is a whole number, not %s' % type(offset).__name__)
    number = operator.index(offset)
    if not 0 <= number < 2**63:
        raise ArgumentValueError('offset %d: they are from 0 to 2**63 - 1' % number)
    return number, epoch


def _name(partition: Any) -> str:
    if isinstance(partition, tuple) and len(partition) == 2:
        return '%s-%s' % partition
    return repr(partition)


def _names(partitions: Iterable[TopicPartition], most: int = 8) -> str:
    """Return the names of partitions for an error, at most `most` of them."""
    names = sorted(map(_name, partitions))
    if len(names) > most:
        return '%s and %d others' % (', '.join(names[:most]), len(names) - most)
    return ', '.join(names) or 'none'
