"""The state machine of a member of a KIP-848 group, with its tables of states and error codes.

ConsumerMembership keeps the heartbeat that is due and its fields, the epoch, and the owned and
target partitions; ConsumerMember drives it in the event loop. Follows KIP-848 and KIP-1082.

A *unit* is a partition in the terms of the coordinator: topic id and number. An owned partition
keeps the topic name of the time of its assignment, so that it can be revoked by that name if the
topic is deleted, or created again.

A coordinator that revokes a partition assigns it to another member only after this one has sent a
list of its owned partitions without it. So these lists include all partitions that a plan in
progress may assign, no plan begins before the response to a list, and a replaced target is
acknowledged even if nothing of it was applied.

Each *life* begins with a join; responses to requests of an earlier life are ignored. After an error
or a lost response the next heartbeat has all fields again: the coordinator sends an assignment only
after a change, or to a member that sends all fields. Pure.
"""

from __future__ import annotations

import enum
import math
from typing import Callable, Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from kafka.coordinator.group_settings import GroupSettings
from kafka.errors import (
    BrokerResponseError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    FencedInstanceIdError,
    FencedMemberEpochError,
    GroupAuthorizationFailedError,
    GroupMaxSizeReachedError,
    IllegalStateError,
    InvalidRegularExpressionError,
    KafkaError,
    NotCoordinatorError,
    TopicAuthorizationFailedError,
    UnknownError,
    UnknownMemberIdError,
    UnrecognizedBrokerError,
    UnreleasedInstanceIdError,
    UnsupportedAssignorError,
    UnsupportedVersionError,
    for_code,
)
from kafka.protocol.group import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kafka.structs import TopicPartition

__all__ = [
    'ADVICE',
    'ConsumerMembership',
    'Heartbeat',
    'HeartbeatErrorAction',
    'HeartbeatOutcome',
    'MemberEvent',
    'MemberState',
    'ReconciliationPlan',
    'TAKING_PART',
    'TRANSITIONS',
    'Unit',
    'following',
    'heartbeat_error_action',
]


class MemberState(enum.Enum):
    """The states of a member of a KIP-848 group."""

    UNSUBSCRIBED = 'unsubscribed'  # not a member: it has not joined, or has left
    JOINING = 'joining'  # a heartbeat with epoch 0 is due or in flight
    RECONCILING = 'reconciling'  # the owned partitions differ from the target assignment
    ACKNOWLEDGING = 'acknowledging'  # has to send the list of owned partitions
    STABLE = 'stable'
    FENCED = 'fenced'  # removed by the coordinator; the partitions have to be dropped first
    STALE = 'stale'  # has left because the program did not poll in time; a poll joins again
    LEAVING = 'leaving'
    FATAL = 'fatal'  # ended by an error whose cause has to be fixed first


class MemberEvent(enum.Enum):
    """The events that change the state."""

    JOIN = 'join'
    RETARGET = 'reconcile'  # the target differs from the owned partitions
    SETTLE = 'settle'  # the target equals the owned partitions
    RECONCILED = 'have reconciled'
    ACKNOWLEDGED = 'have acknowledged'
    FENCE = 'be fenced'
    MISS_POLL = 'miss a poll'
    LEAVE = 'leave'
    LEFT = 'have left'
    FAIL = 'fail'


_S, _E = MemberState, MemberEvent

#: The ways out of the group: fenced, late poll, leaving, failed.
_OUT: Mapping[MemberEvent, MemberState] = {
    _E.FENCE: _S.FENCED,
    _E.MISS_POLL: _S.STALE,
    _E.LEAVE: _S.LEAVING,
    _E.FAIL: _S.FATAL,
}

#: The next state. An event that is not listed is a bug in this package.
TRANSITIONS: Mapping[MemberState, Mapping[MemberEvent, MemberState]] = {
    _S.UNSUBSCRIBED: {_E.JOIN: _S.JOINING, _E.LEAVE: _S.LEAVING},
    _S.JOINING: {_E.RETARGET: _S.RECONCILING, **_OUT},
    _S.RECONCILING: {
        _E.RETARGET: _S.RECONCILING,
        _E.SETTLE: _S.ACKNOWLEDGING,  # the assignment was withdrawn before it was applied
        _E.RECONCILED: _S.ACKNOWLEDGING,
        **_OUT,
    },
    _S.ACKNOWLEDGING: {
        _E.RETARGET: _S.ACKNOWLEDGING,  # the owned partitions are sent first
        _E.SETTLE: _S.ACKNOWLEDGING,
        _E.ACKNOWLEDGED: _S.STABLE,
        **_OUT,
    },
    _S.STABLE: {_E.RETARGET: _S.RECONCILING, _E.SETTLE: _S.STABLE, **_OUT},
    _S.FENCED: {_E.JOIN: _S.JOINING, _E.LEAVE: _S.LEAVING},
    _S.STALE: {_E.JOIN: _S.JOINING, _E.LEAVE: _S.LEAVING},
    _S.LEAVING: {_E.LEAVE: _S.LEAVING, _E.LEFT: _S.UNSUBSCRIBED},
    _S.FATAL: {_E.JOIN: _S.JOINING, _E.LEAVE: _S.LEAVING},
}

#: The states in which the member is in the group, or about to be.
TAKING_PART = frozenset([_S.JOINING, _S.RECONCILING, _S.ACKNOWLEDGING, _S.STABLE])


def following(state: MemberState, event: MemberEvent) -> MemberState:
    """Return the state after an event. Raises IllegalStateError if it cannot happen there."""
    found = TRANSITIONS[state].get(event)
    if found is None:
        raise IllegalStateError('a group member that is %s cannot %s' % (state.value, event.value))
    return found


class HeartbeatErrorAction(enum.Enum):
    """The action for the error code of a heartbeat."""

    GO_ON = 'go on'
    RETRY = 'retry'
    REFIND = 'refind'  # another broker coordinates the group
    REJOIN = 'rejoin'  # all partitions are lost
    SURFACE = 'surface'  # raised by poll(); the membership goes on
    FAIL = 'fail'


_ACTIONS: Mapping[Optional[int], HeartbeatErrorAction] = {
    0: HeartbeatErrorAction.GO_ON,
    CoordinatorLoadInProgressError.errno: HeartbeatErrorAction.RETRY,
    CoordinatorNotAvailableError.errno: HeartbeatErrorAction.REFIND,
    NotCoordinatorError.errno: HeartbeatErrorAction.REFIND,
    UnknownMemberIdError.errno: HeartbeatErrorAction.REJOIN,
    # Surfaced, not fatal: the rights may be granted later.
    TopicAuthorizationFailedError.errno: HeartbeatErrorAction.SURFACE,
    GroupAuthorizationFailedError.errno: HeartbeatErrorAction.SURFACE,
    FencedMemberEpochError.errno: HeartbeatErrorAction.REJOIN,
    UnknownError.errno: HeartbeatErrorAction.SURFACE,
}

#: Advice for error texts, for codes that need it.
ADVICE: Mapping[Optional[int], str] = {
    GroupAuthorizationFailedError.errno: 'let its user READ the group',
    UnsupportedVersionError.errno: (
        'group_protocol="consumer" needs brokers of Kafka 4.0 or later on which it is enabled'
    ),
    GroupMaxSizeReachedError.errno: 'the group may have no more members (group.consumer.max.size)',
    FencedInstanceIdError.errno: (
        'another member has taken over its group_instance_id, which must be unique in the group'
    ),
    UnreleasedInstanceIdError.errno: 'another member has its group_instance_id, and has not left',
    UnsupportedAssignorError.errno: 'choose another group_remote_assignor',
    InvalidRegularExpressionError.errno: (
        'the pattern must be one of RE2, which the broker matches against whole names'
    ),
}


def heartbeat_error_action(code: int) -> HeartbeatErrorAction:
    """Return the action for an error code of a heartbeat; an unknown code is raised."""
    found = _ACTIONS.get(code)
    if found is not None:
        return found
    error = for_code(code)
    if issubclass(error, UnrecognizedBrokerError):
        return HeartbeatErrorAction.SURFACE
    return HeartbeatErrorAction.RETRY if error.retriable else HeartbeatErrorAction.FAIL


class HeartbeatOutcome(NamedTuple):
    """The result of a heartbeat: the action, and the error that caused it."""

    action: HeartbeatErrorAction
    error: Optional[BrokerResponseError] = None


#: The id of a topic, and the number of a partition.
Unit = Tuple[bytes, int]
NameOf = Callable[[bytes], Optional[str]]

JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH = 0, -1, -2
#: From this version on subscriptions may be regular expressions, and clients generate member ids.
PATTERNS_FROM = 1


class Heartbeat(NamedTuple):
    """A request, and the life of the member that sends it."""

    request: ConsumerGroupHeartbeatRequest
    life: int


class ReconciliationPlan(NamedTuple):
    """One reconciliation: the partitions to revoke, to assign, and to keep."""

    gone: Dict[Unit, TopicPartition]
    new: Dict[Unit, TopicPartition]
    kept: Dict[Unit, TopicPartition]


class _Subscription(NamedTuple):
    """The subscription of the member; names: None without one."""

    names: Optional[FrozenSet[str]] = None
    pattern: Optional[str] = None


class ConsumerMembership:
    """The state of one member.

    Arguments:
        settings: of the consumer's group.
        member_id: generated by the client, for the life of the process; '' to use an id generated
            by the broker, as before Kafka 4.0.
        pause: returns the seconds to wait after a number of consecutive failures.

    Attributes:
        state; epoch: 0 unless it is in the group; member_id; interval: seconds between heartbeats,
            set by the coordinator.
        owned: {unit: TopicPartition}, the owned partitions; target: the units of the target
            assignment.
        plan: the reconciliation in progress, or None.
        error: the cause of FATAL; fences: how often it was fenced since it was stable.
        life: a counter, incremented at each start and each end of a membership.
    """

    def __init__(
        self, settings: GroupSettings, member_id: str, pause: Callable[[int], float]
    ) -> None:
        self.state = MemberState.UNSUBSCRIBED
        self.epoch = JOIN_EPOCH
        self.member_id = member_id
        self.interval = settings.heartbeat_interval
        self.owned: Dict[Unit, TopicPartition] = {}
        self.target: FrozenSet[Unit] = frozenset()
        self.plan: Optional[ReconciliationPlan] = None
        self.error: Optional[KafkaError] = None
        self.fences = 0
        self.life = 0
        self._settings = settings
        self._pause = pause
        self._wants = _Subscription()
        self._told: Optional[_Subscription] = None  # None: send all fields
        self._telling = _Subscription()
        self._may_have_pattern = (
            settings.group_instance_id is not None
        )  # sent by an earlier process
        self._is_known = False  # whether the coordinator may know it as a member
        self._has_listed = False  # whether a list of owned partitions has no response yet
        self._owes_step = True  # whether the next assignment is reported, even an empty one
        self._is_asking = False
        self._asked_at = -math.inf
        self._next_at = -math.inf  # the end of the interval
        self._not_before = -math.inf  # the end of the back-off
        self._hurries = False
        self._is_denied = False  # whether the last subscription was not authorized
        self._failures = 0

    def __repr__(self) -> str:
        return '<ConsumerMembership of %s in %s %s epoch=%d, %d owned>' % (
            self.member_id or '(nobody)',
            self._settings.group_id,
            self.state.value,
            self.epoch,
            len(self.owned),
        )

    def _move(self, event: MemberEvent) -> None:
        self.state = following(self.state, event)

    # ------------------------------------------------------------ subscription

    def subscribe(self, names: Optional[Iterable[str]], pattern: Optional[str]) -> bool:
        """Set the subscription; return True if it has changed.

        Arguments: names: of topics, None for no subscription; pattern: an RE2 expression that the
        broker matches, in place of names.
        """
        if pattern is not None:
            wants = _Subscription(frozenset(), pattern)
        else:
            wants = _Subscription(None if names is None else frozenset(names))
        before, self._wants = self._wants, wants
        if wants != before and self._is_denied:
            self._not_before = -math.inf  # the denied topics are not subscribed any more
        return wants != before

    @property
    def is_subscribed(self) -> bool:
        """Whether it has a subscription."""
        return self._wants.names is not None

    @property
    def takes_part(self) -> bool:
        """Whether it is in the group, or joining it."""
        return self.state in TAKING_PART

    def join(self) -> None:
        """Begin to join: for the first time, after an end, or to recover from a fatal error."""
        self._move(MemberEvent.JOIN)
        self._begin_life()
        self.error = None

    def can_be_cured(self) -> bool:
        """Return True if another subscription may fix the fatal error."""
        return self.state is MemberState.FATAL and isinstance(
            self.error, InvalidRegularExpressionError
        )

    def hurry(self) -> None:
        """Send the next heartbeat soon, to learn the state at the coordinator."""
        self._hurries = True
        self._not_before = max(self._not_before, self._asked_at + self._pause(1))

    def miss_poll(self) -> None:
        """End the membership of a program that does not poll; farewell() has the request."""
        self._move(MemberEvent.MISS_POLL)
        self._begin_life()

    def leave(self) -> None:
        """Leave the group; the program has dropped its partitions before."""
        self._move(MemberEvent.LEAVE)
        self._begin_life()
        self.owned = {}

    def left(self) -> None:
        """Record that the coordinator has confirmed the leave, or is unreachable."""
        self._move(MemberEvent.LEFT)
        self._is_known = False
        self.error = None

    def fail(self, error: KafkaError) -> None:
        """End the membership with an error."""
        self._move(MemberEvent.FAIL)
        self._begin_life()
        self.error = error

    def _begin_life(self) -> None:
        self.life += 1
        self.epoch = JOIN_EPOCH
        self.target = frozenset()
        self.plan = None
        self._told = None
        self._has_listed = False
        self._owes_step = True
        self._is_asking = self._is_denied = False
        self._hurries = False
        self._failures = 0
        self._next_at = self._not_before = -math.inf

    # ------------------------------------------------------------ heartbeats

    @property
    def due(self) -> float:
        """The time of the next heartbeat: -inf for at once, inf for not before an event."""
        if self._is_asking or not self.takes_part:
            return math.inf
        is_urgent = (
            self._hurries
            or self.state in (MemberState.JOINING, MemberState.ACKNOWLEDGING)
            or self._told != self._wants
        )
        return self._not_before if is_urgent else max(self._not_before, self._next_at)

    def heartbeat(self, now: float, version: int) -> Heartbeat:
        """Return the heartbeat that is due, in a version; the caller has to send it.

        Raises UnsupportedVersionError if that version does not support the subscription.
        """
        wants = self._wants
        if wants.pattern is not None and version < PATTERNS_FROM:
            raise UnsupportedVersionError(
                'the brokers of group %s cannot match topics by a pattern: that needs'
                ' Kafka 4.0; subscribe with a pattern of Python instead' % self._settings.group_id
            )
        request = self._request(self.epoch)
        is_full = self._told is None
        if is_full:
            self._tell_all(request)
        if is_full or self._told != wants:
            self._tell_subscription(request, version)
        if is_full or self.state is MemberState.ACKNOWLEDGING:
            may_be_taken = () if self.plan is None else self.plan.new
            request.topic_partitions = _by_topic([*self.owned, *may_be_taken])
            self._has_listed = True
        self._telling = wants
        self._is_asking = self._is_known = True
        self._asked_at = now
        self._hurries = False
        if self.state is MemberState.ACKNOWLEDGING:
            self._move(MemberEvent.ACKNOWLEDGED)
            self.fences = 0
            self._look_at_target()
        return Heartbeat(request, self.life)

    def _request(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id=self._settings.group_id,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self._settings.group_instance_id,
        )

    def _tell_all(self, request: ConsumerGroupHeartbeatRequest) -> None:
        request.rebalance_timeout_ms = round(self._settings.rebalance_timeout * 1000)
        request.server_assignor = self._settings.remote_assignor
        if self.epoch == JOIN_EPOCH:
            request.rack_id = self._settings.client_rack or None

    def _tell_subscription(self, request: ConsumerGroupHeartbeatRequest, version: int) -> None:
        wants = self._wants
        request.subscribed_topic_names = sorted(wants.names or ())
        if wants.pattern is not None:
            request.subscribed_topic_regex = wants.pattern
            self._may_have_pattern = True
        elif self._may_have_pattern and version >= PATTERNS_FROM:
            request.subscribed_topic_regex = ''  # removes an earlier one

    def farewell(self) -> Optional[ConsumerGroupHeartbeatRequest]:
        """Return the heartbeat that leaves the group, None if the coordinator has no member."""
        if not self._is_known or not self.member_id:
            return None
        is_static = self._settings.group_instance_id is not None
        return self._request(STATIC_LEAVE_EPOCH if is_static else LEAVE_EPOCH)

    def unanswered(self, life: int, now: float, is_other: bool = False) -> None:
        """Record a heartbeat without a usable response: the next one has all fields.

        Arguments: life: of the heartbeat; is_other: whether the next one is for another broker or
        another subscription, so that the first failure has no backoff.
        """
        if life != self.life:
            return
        self._is_asking = self._is_denied = False
        self._told = None
        self._hurries = True
        self._failures += 1
        failures = self._failures - (1 if is_other else 0)
        self._not_before = now + self._pause(failures) if failures else now

    def answered(
        self, life: int, response: ConsumerGroupHeartbeatResponse, now: float
    ) -> HeartbeatOutcome:
        """Handle the response to a heartbeat; return the action for the driver."""
        if life != self.life:
            return HeartbeatOutcome(HeartbeatErrorAction.GO_ON)
        action = heartbeat_error_action(response.error_code)
        if action is HeartbeatErrorAction.GO_ON:
            self._take(response)
            return HeartbeatOutcome(action)
        error = self._error(response)
        is_denied = isinstance(error, TopicAuthorizationFailedError)
        if is_denied and self._telling != self._wants:
            action = HeartbeatErrorAction.RETRY
            self.unanswered(life, now, True)
        elif action in (HeartbeatErrorAction.RETRY, HeartbeatErrorAction.REFIND):
            self.unanswered(life, now, action is HeartbeatErrorAction.REFIND)
        elif action is HeartbeatErrorAction.SURFACE:
            self.unanswered(life, now)
            self._not_before = max(self._not_before, now + self.interval)
            self._is_denied = is_denied
        elif action is HeartbeatErrorAction.REJOIN:
            self._fence(now)
        else:
            self.fail(error)
        return HeartbeatOutcome(action, error)

    def _error(self, response: ConsumerGroupHeartbeatResponse) -> BrokerResponseError:
        code = response.error_code
        if code == TopicAuthorizationFailedError.errno:  # the response does not name the topics
            owned = (place.topic for place in self.owned.values())
            return TopicAuthorizationFailedError(set(self._telling.names or owned))
        text = 'member %s of group %s' % (self.member_id, self._settings.group_id)
        for more in (response.error_message, ADVICE.get(code)):
            if more:
                text += ': ' + more
        return for_code(code)(text)

    def _fence(self, now: float) -> None:
        self._move(MemberEvent.FENCE)
        self._begin_life()
        self._is_known = False
        self.fences += 1
        if self.fences > 1:  # no backoff after the first time
            self._not_before = now + self._pause(self.fences - 1)

    def _take(self, response: ConsumerGroupHeartbeatResponse) -> None:
        """Apply epoch, member id, interval and assignment of a response."""
        self._is_asking = self._has_listed = self._is_denied = False
        self._failures = 0
        self._told = self._telling
        self.epoch = response.member_epoch
        self.member_id = self.member_id or response.member_id or ''
        if response.heartbeat_interval_ms > 0:
            self.interval = response.heartbeat_interval_ms / 1000
        self._next_at = self._asked_at + self.interval
        if response.assignment is not None:
            self.target = frozenset(
                (topic.topic_id, number)
                for topic in response.assignment.topic_partitions
                for number in topic.partitions
            )
        self._look_at_target()

    # ------------------------------------------------------------ reconciliation

    def _look_at_target(self) -> None:
        is_settled = not self._owes_step and self.plan is None and self.target == set(self.owned)
        self._move(MemberEvent.SETTLE if is_settled else MemberEvent.RETARGET)

    @property
    def gives_back(self) -> bool:
        """Whether an owned partition has to be revoked."""
        return any(unit not in self.target for unit in self.owned)

    def unknown(self, name_of: NameOf) -> FrozenSet[bytes]:
        """Return the ids of target topics whose names are unknown.

        Arguments: name_of: returns the name of a topic id, None if it is unknown.
        """
        ids = {unit[0] for unit in self.target if unit not in self.owned}
        return frozenset(topic_id for topic_id in ids if name_of(topic_id) is None)

    def can_reconcile(self, name_of: NameOf) -> bool:
        """Return True if a reconciliation can begin now, or needs topic names first."""
        if self.state is not MemberState.RECONCILING or self.plan is not None or self._has_listed:
            return False
        missing = [unit for unit in self.target if unit not in self.owned]
        return (
            self._owes_step
            or self.gives_back
            or bool(self.unknown(name_of) or self._named(missing, name_of))
        )

    def reconcile(self, name_of: NameOf) -> Optional[ReconciliationPlan]:
        """Begin a reconciliation of the topics with known names; None if there is nothing to do.

        Only one at a time: call this again after assigned() or dropped(). Topics that are no longer
        subscribed are not assigned; the coordinator will soon remove them from the target.
        """
        if self.state is not MemberState.RECONCILING or self.plan is not None or self._has_listed:
            return None
        gone = {unit: place for unit, place in self.owned.items() if unit not in self.target}
        kept = {unit: place for unit, place in self.owned.items() if unit in self.target}
        new = self._named([unit for unit in self.target if unit not in self.owned], name_of)
        if not gone and not new and not self._owes_step:
            return None
        self.plan = ReconciliationPlan(gone, new, kept)
        return self.plan

    def _named(self, units: Iterable[Unit], name_of: NameOf) -> Dict[Unit, TopicPartition]:
        found: Dict[Unit, TopicPartition] = {}
        names: Dict[bytes, Optional[str]] = {}
        wanted = None if self._wants.pattern is not None else self._wants.names or frozenset()
        for unit in sorted(units):
            topic_id, number = unit
            if topic_id not in names:
                names[topic_id] = name_of(topic_id)
            name = names[topic_id]
            if name is not None and (wanted is None or name in wanted):
                found[unit] = TopicPartition(name, number)
        return found

    def revoked(self, plan: ReconciliationPlan) -> None:
        """Record that the plan's revocations are done, even if the plan was replaced."""
        for unit in plan.gone:
            self.owned.pop(unit, None)

    @property
    def is_overtaken(self) -> bool:
        """Whether a partition to assign was withdrawn from the plan."""
        return self.plan is not None and not self.target.issuperset(self.plan.new)

    def dropped(self) -> None:
        """Record that the new partitions are not assigned: the next list is without them."""
        assert self.plan is not None
        # After a revocation the assignment is reported too, as always, even an empty one.
        self._owes_step = self._owes_step or bool(self.plan.gone)
        self._end_plan()

    def assigned(self, plan: ReconciliationPlan) -> None:
        """Record that the new partitions are assigned; acknowledge the plan if it still applies."""
        self.owned.update(plan.new)
        if plan is self.plan:
            self._owes_step = False
            self._end_plan()

    def _end_plan(self) -> None:
        self.plan = None
        self._move(MemberEvent.RECONCILED)

    def lost(self) -> None:
        """Record that the program has dropped all partitions; a fenced member joins again."""
        self.owned = {}
        if self.state is MemberState.FENCED:
            pause = self._not_before
            self.join()
            self._not_before = pause


def _by_topic(units: Iterable[Unit]) -> List[TopicPartitions]:
    """Return units as fields of a request."""
    topics: Dict[bytes, List[int]] = {}
    for topic_id, number in sorted(units):
        topics.setdefault(topic_id, []).append(number)
    return [TopicPartitions(topic_id=each, partitions=numbers) for each, numbers in topics.items()]
