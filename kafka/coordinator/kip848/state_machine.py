"""A member of a KIP-848 group: what it tells the coordinator, and what the answers make of it.

Owns the heartbeat that is due and its fields, the epoch, what the member owns and shall own, and
what goes with each move between states. Does not own: which moves there are and what each error
code means (transitions.py), who the coordinator is and how it is asked, the names of
topics, the thread that polls and what it has to do (coordinator.py). Follows KIP-848 and
KIP-1082; pure.

A *unit* is a partition as the coordinator names it: the id of its topic and a number. What is owned
keeps the name that its topic had when it was assigned, so that a topic that was deleted, or made
anew, can be given back by that name.

A coordinator that takes back what it gave gives it to nobody else before it has a list of what this
member owns without that. So whatever the program may take up by a plan under way counts as owned in
such lists, no plan begins before a list was answered, and a target that is over is acknowledged
also where nothing of it was taken up.

Each *life* begins with a join. Answers to what an earlier one asked mean nothing any more. After an
error, or when an answer was lost, the next heartbeat tells everything anew: the coordinator sends
an assignment only when it changed, or to who tells everything.
"""

from __future__ import annotations

import math
from typing import Callable, Dict, FrozenSet, Iterable, List, NamedTuple, Optional, Tuple

from kafka.coordinator.group_settings import GroupSettings
from kafka.coordinator.kip848.transitions import (
    ADVICE,
    TAKING_PART,
    Action,
    Event,
    State,
    Verdict,
    action_of,
    following,
)
from kafka.errors import (
    BrokerResponseError,
    InvalidRegularExpressionError,
    KafkaError,
    TopicAuthorizationFailedError,
    UnsupportedVersionError,
    for_code,
)
from kafka.protocol.group import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kafka.structs import TopicPartition

__all__ = ['Heartbeat', 'Membership', 'Plan', 'Unit']

#: The id of a topic, and the number of a partition.
Unit = Tuple[bytes, int]
NameOf = Callable[[bytes], Optional[str]]

JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH = 0, -1, -2
#: From this version on subscriptions may be regular expressions, and members name themselves.
PATTERNS_FROM = 1


class Heartbeat(NamedTuple):
    """A request to send, and the life of the member that it belongs to."""

    request: ConsumerGroupHeartbeatRequest
    life: int


class Plan(NamedTuple):
    """One reconciliation: what goes, and then what comes."""

    gone: Dict[Unit, TopicPartition]
    new: Dict[Unit, TopicPartition]
    kept: Dict[Unit, TopicPartition]


class _Subscription(NamedTuple):
    """What the member wants; names: None for nothing at all."""

    names: Optional[FrozenSet[str]] = None
    pattern: Optional[str] = None


class Membership:
    """One member.

    Arguments:
        settings: of the consumer's group.
        member_id: the name that it gives itself, for the life of the process; '' to take the one
            that brokers choose, as those before Kafka 4.0 do.
        pause: seconds to wait after so many failures in a row.

    Attributes:
        state; epoch: 0 unless it is in the group; member_id; interval: seconds between heartbeats,
            as the coordinator wants it.
        owned: {unit: TopicPartition}, what it owns now; target: the units that it shall own.
        plan: the reconciliation under way, None without one.
        error: why it is FATAL; fences: how often it was put out since it was stable.
        life: grows with each beginning and each end of a membership.
    """

    def __init__(
        self, settings: GroupSettings, member_id: str, pause: Callable[[int], float]
    ) -> None:
        self.state = State.UNSUBSCRIBED
        self.epoch = JOIN_EPOCH
        self.member_id = member_id
        self.interval = settings.heartbeat_interval
        self.owned: Dict[Unit, TopicPartition] = {}
        self.target: FrozenSet[Unit] = frozenset()
        self.plan: Optional[Plan] = None
        self.error: Optional[KafkaError] = None
        self.fences = 0
        self.life = 0
        self._settings = settings
        self._pause = pause
        self._wants = _Subscription()
        self._told: Optional[_Subscription] = None  # None: everything has to be told anew
        self._telling = _Subscription()
        self._may_have_pattern = settings.group_instance_id is not None  # of an earlier process
        self._is_known = False  # whether the coordinator may take it for a member
        self._has_listed = False  # whether a list of what is owned was not answered yet
        self._owes_step = True  # whether the program is to be told of an assignment, even of none
        self._is_asking = False
        self._asked_at = -math.inf
        self._next_at = -math.inf  # when the interval is over
        self._not_before = -math.inf  # when the pause after a failure is
        self._hurries = False
        self._is_denied = False  # whether it may not have what it wanted at the last heartbeat
        self._failures = 0

    def __repr__(self) -> str:
        return '<Membership of %s in %s %s epoch=%d, %d owned>' % (
            self.member_id or '(nobody)',
            self._settings.group_id,
            self.state.value,
            self.epoch,
            len(self.owned),
        )

    def _move(self, event: Event) -> None:
        self.state = following(self.state, event)

    # ------------------------------------------------------------ what the program wants

    def subscribe(self, names: Optional[Iterable[str]], pattern: Optional[str]) -> bool:
        """Note what the member wants; return whether that is something else than before.

        Arguments: names: of topics, None for nothing; pattern: of RE2, matched by the broker, in
        place of names.
        """
        if pattern is not None:
            wants = _Subscription(frozenset(), pattern)
        else:
            wants = _Subscription(None if names is None else frozenset(names))
        before, self._wants = self._wants, wants
        if wants != before and self._is_denied:
            self._not_before = -math.inf  # what was denied is not wanted any more
        return wants != before

    @property
    def is_subscribed(self) -> bool:
        """Whether it wants anything."""
        return self._wants.names is not None

    @property
    def takes_part(self) -> bool:
        """Whether it is in the group, or on its way there."""
        return self.state in TAKING_PART

    def join(self) -> None:
        """Begin a membership: of who was none, has dropped what it had, or can be cured."""
        self._move(Event.JOIN)
        self._begin_life()
        self.error = None

    def can_be_cured(self) -> bool:
        """Tell whether another subscription may end what is FATAL."""
        return self.state is State.FATAL and isinstance(self.error, InvalidRegularExpressionError)

    def hurry(self) -> None:
        """Let the next heartbeat be sent soon, to hear what the coordinator thinks."""
        self._hurries = True
        self._not_before = max(self._not_before, self._asked_at + self._pause(1))

    def miss_poll(self) -> None:
        """End the membership of a program that does not poll; it is to be told with farewell()."""
        self._move(Event.MISS_POLL)
        self._begin_life()

    def leave(self) -> None:
        """End the membership as the program wishes, which has dropped all by now."""
        self._move(Event.LEAVE)
        self._begin_life()
        self.owned = {}

    def left(self) -> None:
        """Note that the coordinator knows, or cannot be told."""
        self._move(Event.LEFT)
        self._is_known = False
        self.error = None

    def fail(self, error: KafkaError) -> None:
        """End the membership for good."""
        self._move(Event.FAIL)
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
        """When the next heartbeat is to be sent: -inf for at once, inf for not before an event."""
        if self._is_asking or not self.takes_part:
            return math.inf
        is_urgent = (
            self._hurries
            or self.state in (State.JOINING, State.ACKNOWLEDGING)
            or self._told != self._wants
        )
        return self._not_before if is_urgent else max(self._not_before, self._next_at)

    def heartbeat(self, now: float, version: int) -> Heartbeat:
        """Return the heartbeat that is due, in a version; it has to be sent.

        Raises UnsupportedVersionError if that version cannot say what the member wants.
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
        if is_full or self.state is State.ACKNOWLEDGING:
            may_be_taken = () if self.plan is None else self.plan.new
            request.topic_partitions = _by_topic([*self.owned, *may_be_taken])
            self._has_listed = True
        self._telling = wants
        self._is_asking = self._is_known = True
        self._asked_at = now
        self._hurries = False
        if self.state is State.ACKNOWLEDGING:
            self._move(Event.ACKNOWLEDGED)
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
            request.subscribed_topic_regex = ''  # which removes the one before

    def farewell(self) -> Optional[ConsumerGroupHeartbeatRequest]:
        """Return what tells the coordinator that the member goes, None if it knows of none."""
        if not self._is_known or not self.member_id:
            return None
        is_static = self._settings.group_instance_id is not None
        return self._request(STATIC_LEAVE_EPOCH if is_static else LEAVE_EPOCH)

    def unanswered(self, life: int, now: float, is_other: bool = False) -> None:
        """Note that a heartbeat got no answer, or one that says nothing: it is told anew.

        Arguments: life: of the heartbeat; is_other: whether the next one goes to another broker, or
        is about another subscription, and so at once if it is the first failure.
        """
        if life != self.life:
            return
        self._is_asking = self._is_denied = False
        self._told = None
        self._hurries = True
        self._failures += 1
        failures = self._failures - (1 if is_other else 0)
        self._not_before = now + self._pause(failures) if failures else now

    def answered(self, life: int, response: ConsumerGroupHeartbeatResponse, now: float) -> Verdict:
        """Take the answer to a heartbeat; return what it demands beyond what is done here."""
        if life != self.life:
            return Verdict(Action.GO_ON)
        action = action_of(response.error_code)
        if action is Action.GO_ON:
            self._take(response)
            return Verdict(action)
        error = self._error(response)
        is_denied = isinstance(error, TopicAuthorizationFailedError)
        if is_denied and self._telling != self._wants:
            action = Action.RETRY
            self.unanswered(life, now, True)
        elif action in (Action.RETRY, Action.REFIND):
            self.unanswered(life, now, action is Action.REFIND)
        elif action is Action.SURFACE:
            self.unanswered(life, now)
            self._not_before = max(self._not_before, now + self.interval)
            self._is_denied = is_denied
        elif action is Action.REJOIN:
            self._fence(now)
        else:
            self.fail(error)
        return Verdict(action, error)

    def _error(self, response: ConsumerGroupHeartbeatResponse) -> BrokerResponseError:
        code = response.error_code
        if code == TopicAuthorizationFailedError.errno:  # it does not say which
            owned = (place.topic for place in self.owned.values())
            return TopicAuthorizationFailedError(set(self._telling.names or owned))
        text = 'member %s of group %s' % (self.member_id, self._settings.group_id)
        for more in (response.error_message, ADVICE.get(code)):
            if more:
                text += ': ' + more
        return for_code(code)(text)

    def _fence(self, now: float) -> None:
        self._move(Event.FENCE)
        self._begin_life()
        self._is_known = False
        self.fences += 1
        if self.fences > 1:  # the first time it joins again at once
            self._not_before = now + self._pause(self.fences - 1)

    def _take(self, response: ConsumerGroupHeartbeatResponse) -> None:
        """Take what the coordinator says of the member."""
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
        self._move(Event.SETTLE if is_settled else Event.RETARGET)

    @property
    def gives_back(self) -> bool:
        """Whether something that it owns is wanted elsewhere."""
        return any(unit not in self.target for unit in self.owned)

    def unknown(self, name_of: NameOf) -> FrozenSet[bytes]:
        """Return the ids of topics that it shall own partitions of, and whose names are not known.

        Arguments: name_of: returns the name of a topic by its id, None if it is not known.
        """
        ids = {unit[0] for unit in self.target if unit not in self.owned}
        return frozenset(topic_id for topic_id in ids if name_of(topic_id) is None)

    def can_reconcile(self, name_of: NameOf) -> bool:
        """Tell whether a reconciliation can begin now, or names have to be learnt for one."""
        if self.state is not State.RECONCILING or self.plan is not None or self._has_listed:
            return False
        missing = [unit for unit in self.target if unit not in self.owned]
        return (
            self._owes_step
            or self.gives_back
            or bool(self.unknown(name_of) or self._named(missing, name_of))
        )

    def reconcile(self, name_of: NameOf) -> Optional[Plan]:
        """Begin a reconciliation as far as names are known; None if nothing can be done now.

        One at a time: the next is asked for when assigned() or dropped() was called. What is not
        subscribed any more is not begun with; the coordinator will soon not want it either.
        """
        if self.state is not State.RECONCILING or self.plan is not None or self._has_listed:
            return None
        gone = {unit: place for unit, place in self.owned.items() if unit not in self.target}
        kept = {unit: place for unit, place in self.owned.items() if unit in self.target}
        new = self._named([unit for unit in self.target if unit not in self.owned], name_of)
        if not gone and not new and not self._owes_step:
            return None
        self.plan = Plan(gone, new, kept)
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

    def revoked(self, plan: Plan) -> None:
        """Note that what goes is given up, whether or not the plan still holds."""
        for unit in plan.gone:
            self.owned.pop(unit, None)

    @property
    def is_overtaken(self) -> bool:
        """Whether something that the plan lets come is not the member's to take any more."""
        return self.plan is not None and not self.target.issuperset(self.plan.new)

    def dropped(self) -> None:
        """Note that the program will not get what comes: it is told what is owned without that."""
        assert self.plan is not None
        # Who was told of what goes is told of what comes, as ever, even if that is nothing.
        self._owes_step = self._owes_step or bool(self.plan.gone)
        self._end_plan()

    def assigned(self, plan: Plan) -> None:
        """Note that what comes is there; if the plan still holds, it is to be acknowledged."""
        self.owned.update(plan.new)
        if plan is self.plan:
            self._owes_step = False
            self._end_plan()

    def _end_plan(self) -> None:
        self.plan = None
        self._move(Event.RECONCILED)

    def lost(self) -> None:
        """Note that the program has dropped all it had; who was fenced joins anew."""
        self.owned = {}
        if self.state is State.FENCED:
            pause = self._not_before
            self.join()
            self._not_before = pause


def _by_topic(units: Iterable[Unit]) -> List[TopicPartitions]:
    """Return units as they are sent."""
    topics: Dict[bytes, List[int]] = {}
    for topic_id, number in sorted(units):
        topics.setdefault(topic_id, []).append(number)
    return [TopicPartitions(topic_id=each, partitions=numbers) for each, numbers in topics.items()]
