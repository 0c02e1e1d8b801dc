"""The state machine of a member of a classic group, with its tables of states and error codes.

ClassicMembership keeps the state, the generation and member id, the owned partitions, the steps of
a rebalance, and the times of heartbeats and polls; ClassicMember drives it in the event loop. The
evented clients use the table of error codes.

Follows the protocol guide's "Group Membership API", KIP-62 (heartbeats independent of poll()),
KIP-345 (static members), KIP-394, KIP-429 (cooperative members), KIP-568 and KIP-800 (reasons). The
order of steps in a rebalance:

===================  ==================================  ========================================
before JoinGroup     eager: REVOKE all                   cooperative: REVOKE what is no longer
                                                         subscribed; commit for the rest
after a lost         LOSE all, instead of that           the same
generation
after SyncGroup      eager: ASSIGN all                   cooperative: REVOKE what others get, ASSIGN
                                                         what is new; join again if any was revoked
===================  ==================================  ========================================

Pure.
"""

from __future__ import annotations

import enum
import math
from typing import AbstractSet, Any, Dict, FrozenSet, Mapping, NamedTuple, Optional

from kafka.coordinator.group_settings import GroupSettings, StepKind
from kafka.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    FencedInstanceIdError,
    GroupAuthorizationFailedError,
    GroupIdNotFoundError,
    GroupMaxSizeReachedError,
    IllegalGenerationError,
    IllegalStateError,
    InconsistentGroupProtocolError,
    InvalidGroupIdError,
    InvalidSessionTimeoutError,
    KafkaError,
    MemberIdRequiredError,
    NotCoordinatorError,
    RebalanceInProgressError,
    UnknownMemberIdError,
    UnsupportedVersionError,
    for_code,
)
from kafka.structs import TopicPartition

__all__ = [
    'Call',
    'ClassicErrorAction',
    'ClassicMemberEvent',
    'ClassicMemberState',
    'ClassicMembership',
    'Generation',
    'Heartbeats',
    'NOBODY',
    'Need',
    'Reason',
    'StepPlan',
    'TRANSITIONS',
    'classic_error_action',
    'error_of',
    'following',
]


class ClassicMemberState(enum.Enum):
    """The states of a member of a classic group."""

    UNJOINED = 'unjoined'  # not in the group, as far as the member knows
    PREPARING = 'preparing'  # revoking partitions and finding the coordinator
    JOINING = 'joining'  # JoinGroup in flight: the broker holds it until all members have joined
    COMPLETING = 'completing'  # in a new generation; the leader assigns
    SYNCING = 'syncing'  # SyncGroup in flight: the broker holds it until the leader has assigned
    ADOPTING = 'adopting'  # has an assignment, which the polling thread applies
    STABLE = 'stable'
    FAILED = 'failed'  # ended by an error that a retry does not cure

    __hash__ = object.__hash__


class ClassicMemberEvent(enum.Enum):
    """The events that change the state."""

    BEGIN = 'begin to join'
    ASK_TO_JOIN = 'ask to join'
    JOINED = 'join'
    AGAIN = 'join again'  # the request has to be repeated; no partitions are lost
    ASK_TO_SYNC = 'ask for its assignment'
    SYNCED = 'get its assignment'
    ADOPTED = 'adopt its assignment'
    REBALANCE = 'rebalance'
    LOST = 'lose its generation'
    REFUSED = 'be refused'  # until the program polls again
    FAIL = 'fail'
    LEAVE = 'leave'

    __hash__ = object.__hash__


_S, _E = ClassicMemberState, ClassicMemberEvent
_ALWAYS = {_E.LOST: _S.UNJOINED, _E.FAIL: _S.FAILED, _E.LEAVE: _S.UNJOINED}

#: The next state. An event that is not listed is a bug in this package.
TRANSITIONS: Mapping[ClassicMemberState, Mapping[ClassicMemberEvent, ClassicMemberState]] = {
    _S.UNJOINED: {_E.BEGIN: _S.PREPARING, _E.FAIL: _S.FAILED, _E.LEAVE: _S.UNJOINED},
    _S.PREPARING: {**_ALWAYS, _E.ASK_TO_JOIN: _S.JOINING, _E.REFUSED: _S.UNJOINED},
    _S.JOINING: {
        **_ALWAYS,
        _E.JOINED: _S.COMPLETING,
        _E.AGAIN: _S.PREPARING,
        _E.REFUSED: _S.UNJOINED,
    },
    _S.COMPLETING: {
        **_ALWAYS,
        _E.ASK_TO_SYNC: _S.SYNCING,
        _E.AGAIN: _S.PREPARING,
        _E.REFUSED: _S.UNJOINED,
    },
    _S.SYNCING: {
        **_ALWAYS,
        _E.SYNCED: _S.ADOPTING,
        _E.AGAIN: _S.PREPARING,
        _E.REFUSED: _S.UNJOINED,
    },
    _S.ADOPTING: {**_ALWAYS, _E.ADOPTED: _S.STABLE, _E.REFUSED: _S.UNJOINED},
    _S.STABLE: {**_ALWAYS, _E.REBALANCE: _S.PREPARING},
    _S.FAILED: {_E.FAIL: _S.FAILED, _E.LEAVE: _S.UNJOINED},
}


def following(state: ClassicMemberState, event: ClassicMemberEvent) -> ClassicMemberState:
    """Return the state after an event. Raises IllegalStateError if it cannot happen there."""
    found = TRANSITIONS[state].get(event)
    if found is None:
        raise IllegalStateError('a member that is %s cannot %s' % (state.value, event.value))
    return found


# ---------------------------------------------------------------- codes


class Call(enum.Enum):
    """The requests whose error codes concern the membership."""

    JOIN = 'JoinGroup'
    SYNC = 'SyncGroup'
    HEARTBEAT = 'Heartbeat'
    COMMIT = 'OffsetCommit'

    __hash__ = object.__hash__


class ClassicErrorAction(enum.Enum):
    """What an error code means for the membership."""

    GOOD = 'good'
    RETRY = 'again, after back-off'
    REFIND = 'again, to the current coordinator'
    TAKE_ID = 'again at once, with the member id that came'
    REBALANCE = 'the group rebalances: join again'
    LOST = 'the generation is over: join again with the same member id'
    LOST_ID = 'the member id is not known: join as a new member'
    IGNORE = 'nothing'
    TELL = 'the program has to know'  # and the membership continues
    REFUSED = 'the program has to know, and may try again'
    FATAL = 'the membership is over'


_A = ClassicErrorAction
_ERROR_ACTIONS: Dict[Call, Dict[Optional[int], ClassicErrorAction]] = {
    Call.JOIN: {
        0: _A.GOOD,
        CoordinatorLoadInProgressError.errno: _A.RETRY,
        CoordinatorNotAvailableError.errno: _A.REFIND,
        NotCoordinatorError.errno: _A.REFIND,
        IllegalGenerationError.errno: _A.LOST,
        InconsistentGroupProtocolError.errno: _A.FATAL,
        InvalidGroupIdError.errno: _A.FATAL,
        UnknownMemberIdError.errno: _A.LOST_ID,
        InvalidSessionTimeoutError.errno: _A.FATAL,
        RebalanceInProgressError.errno: _A.RETRY,
        GroupAuthorizationFailedError.errno: _A.REFUSED,
        MemberIdRequiredError.errno: _A.TAKE_ID,
        GroupMaxSizeReachedError.errno: _A.FATAL,
        FencedInstanceIdError.errno: _A.FATAL,
    },
    Call.SYNC: {
        0: _A.GOOD,
        CoordinatorLoadInProgressError.errno: _A.REBALANCE,
        CoordinatorNotAvailableError.errno: _A.REFIND,
        NotCoordinatorError.errno: _A.REFIND,
        IllegalGenerationError.errno: _A.LOST,
        InconsistentGroupProtocolError.errno: _A.FATAL,
        UnknownMemberIdError.errno: _A.LOST_ID,
        RebalanceInProgressError.errno: _A.REBALANCE,
        GroupAuthorizationFailedError.errno: _A.REFUSED,
        FencedInstanceIdError.errno: _A.FATAL,
    },
    Call.HEARTBEAT: {
        0: _A.GOOD,
        CoordinatorLoadInProgressError.errno: _A.RETRY,
        CoordinatorNotAvailableError.errno: _A.REFIND,
        NotCoordinatorError.errno: _A.REFIND,
        IllegalGenerationError.errno: _A.LOST,
        UnknownMemberIdError.errno: _A.LOST_ID,
        RebalanceInProgressError.errno: _A.REBALANCE,
        GroupAuthorizationFailedError.errno: _A.TELL,
        FencedInstanceIdError.errno: _A.FATAL,
    },
    Call.COMMIT: {
        IllegalGenerationError.errno: _A.LOST,
        UnknownMemberIdError.errno: _A.LOST_ID,
        RebalanceInProgressError.errno: _A.REBALANCE,
        GroupIdNotFoundError.errno: _A.LOST,
        FencedInstanceIdError.errno: _A.FATAL,
    },
}
#: For codes that are not in the table and not retriable.
_OTHERWISE: Dict[Call, ClassicErrorAction] = {
    Call.JOIN: _A.REFUSED,
    Call.SYNC: _A.REFUSED,
    Call.HEARTBEAT: _A.TELL,
    Call.COMMIT: _A.IGNORE,
}


def classic_error_action(call: Call, code: int) -> ClassicErrorAction:
    """Return what an error code in the response to a request means."""
    found = _ERROR_ACTIONS[call].get(code)
    if found is not None:
        return found
    error = for_code(code)
    if call is not Call.COMMIT and error.retriable:
        return ClassicErrorAction.REFIND if error.refind_coordinator else ClassicErrorAction.RETRY
    return _OTHERWISE[call]


_ADVICE: Dict[Optional[int], str] = {
    InconsistentGroupProtocolError.errno: (
        'its members share no partition_assignment_strategy with this one, or are not consumers'
    ),
    InvalidGroupIdError.errno: 'the broker does not take that group id',
    InvalidSessionTimeoutError.errno: (
        'the broker does not take session_timeout_ms=%(session_ms)d: it has to be within its'
        ' group.min.session.timeout.ms and group.max.session.timeout.ms'
    ),
    GroupAuthorizationFailedError.errno: (
        'this user may not read the group: it needs the permission READ'
    ),
    UnsupportedVersionError.errno: (
        'the broker cannot do this; classic groups need brokers from 0.9 on'
    ),
    GroupMaxSizeReachedError.errno: 'it has as many members as group.max.size of the broker allows',
    FencedInstanceIdError.errno: (
        'another consumer has joined with group_instance_id %(instance)r; each needs its own'
    ),
}


def error_of(code: int, group_id: str, session_timeout: float, instance: object) -> KafkaError:
    """Return the error of a code, with the group and the remedy in its text."""
    told = {'session_ms': round(session_timeout * 1000), 'instance': instance}
    advice = _ADVICE.get(code)
    text = 'group %s' % group_id
    return for_code(code)('%s: %s' % (text, advice % told) if advice else text)


# ---------------------------------------------------------------- reasons


class Reason(enum.Enum):
    """Why a member joins again: for the client's logs and, from JoinGroup v8 on, the broker's."""

    POLLED = 'the consumer begins to poll'
    GROUP = 'the group is rebalancing'
    ANOTHER = 'the group began another rebalance before this one had ended'
    SUBSCRIPTION = 'the topics of the consumer have changed'
    FOREIGN = 'the assignment has topics that the consumer no longer wants'
    PARTITIONS = 'the partitions of the topics have changed'
    FOLLOW_UP = 'partitions that were given up can be taken over'
    GENERATION = 'the group went on without this member: its generation is over'
    UNKNOWN = 'the group does not know this member any more'
    LATE = 'the consumer did not poll in time'


class Generation(NamedTuple):
    """Generation and id of a member; -1 and '' before it has joined."""

    generation: int
    member_id: str


NOBODY = Generation(-1, '')
_NOTHING: FrozenSet[TopicPartition] = frozenset()


class StepPlan(NamedTuple):
    """A step for the polling thread; fields as those of member.RebalanceStep."""

    kind: StepKind
    partitions: FrozenSet[TopicPartition]
    owned: FrozenSet[TopicPartition]
    commits: bool = False
    tells: bool = True


class Need(enum.Enum):
    """The request to send next."""

    NOTHING = 'nothing'
    JOIN = 'JoinGroup'
    SYNC = 'SyncGroup'


class Heartbeats:
    """The time of the next heartbeat; at most one is in flight. Times are monotonic seconds.

    Attributes: due: time of the next one, infinite if none is due; answered_at: time of the last
    response to a heartbeat or another request of the member.
    """

    def __init__(self, interval: float) -> None:
        self.due = math.inf
        self.answered_at = -math.inf
        self._interval = interval
        self._sent_at = -math.inf
        self._is_under_way = False
        self._stretch = 0
        self.took: Optional[float] = None

    def begin(self, now: float) -> None:
        """Start the interval: the coordinator has just received a request of the member."""
        self.stop()
        self.answered_at = now
        self.due = now + self._interval

    def look_at(self, now: float) -> float:
        """Return when to check next; while a heartbeat is in flight, when the next one may be due.

        So the timer need not be set again when the response is received.
        """
        if not self._is_under_way:
            return self.due
        behind = self._sent_at + self._interval
        return behind if behind > now else now + self._interval

    def sent(self, now: float) -> int:
        """Record that a heartbeat is in flight: no other one is due before its response.

        Returns a number for counts().
        """
        self._is_under_way = True
        self._sent_at = now
        self.due = math.inf
        return self._stretch

    def counts(self, number: int) -> bool:
        """Return True if the response to a heartbeat is not stale.

        JoinGroup and SyncGroup use another connection, so their responses may overtake those of
        earlier heartbeats, which then describe an old state.
        """
        return number == self._stretch

    def answered(self, now: float) -> None:
        """Record the response."""
        self._is_under_way = False
        self.answered_at, self.took = now, now - self._sent_at
        self.due = max(now, self._sent_at + self._interval)

    def failed(self, now: float, pause: float) -> None:
        """Record a failure; the next heartbeat is due after a pause in seconds."""
        self._is_under_way = False
        self.due = now + pause

    def stop(self) -> None:
        """Stop sending, and ignore the response to a heartbeat in flight."""
        self._is_under_way = False
        self._stretch += 1
        self.due = math.inf


#: The states in a generation without a JoinGroup or SyncGroup in flight.
_BEATING = frozenset(
    [
        ClassicMemberState.PREPARING,
        ClassicMemberState.COMPLETING,
        ClassicMemberState.ADOPTING,
        ClassicMemberState.STABLE,
    ]
)
#: The states in which the group accepts commits of a member. Brokers reject them from the response
#: to JoinGroup until the assignment is made, and accept those of the old generation before.
_COMMITTING = frozenset(
    [
        ClassicMemberState.PREPARING,
        ClassicMemberState.JOINING,
        ClassicMemberState.ADOPTING,
        ClassicMemberState.STABLE,
    ]
)
#: The states that a response of the coordinator ends.
_ASKING = frozenset(
    [ClassicMemberState.JOINING, ClassicMemberState.COMPLETING, ClassicMemberState.SYNCING]
)
#: The states in which another rebalance has to wait for the end of this one.
_REBALANCING = frozenset(
    [
        ClassicMemberState.JOINING,
        ClassicMemberState.COMPLETING,
        ClassicMemberState.SYNCING,
        ClassicMemberState.ADOPTING,
    ]
)


class ClassicMembership:
    """The state of one member. Methods are called in the event loop, unless marked.

    Arguments: settings; is_cooperative: whether all its assignors are (KIP-429).

    Attributes:
        state; who: the present identity in the group.
        error: the error that poll() has to raise, or None.
        owned: the partitions that the polling thread reads.
        topics: the subscribed topics, None without a subscription (set_topics()).
        is_started: whether a poll may begin to join.
        polled_at: when the program polled last; any thread may set it.
        waits_for_poll: whether the member needs a poll to continue; any thread may read it.
        reason: of the last rebalance; begun: the number of rebalances that this member has begun;
            adopted: the number of completed ones.
        rebalance_timeout: seconds that the group waits for this member. Brokers before 0.10.1 wait
            for the session timeout.
        heartbeats
    """

    def __init__(self, settings: GroupSettings, is_cooperative: bool) -> None:
        self.state = ClassicMemberState.UNJOINED
        self.who = NOBODY
        self.error: Optional[KafkaError] = None
        self.owned = _NOTHING
        self.topics: Optional[FrozenSet[str]] = None
        self.is_started = False
        self.polled_at = -math.inf
        self.waits_for_poll = False
        self.reason = ''
        self.begun = self.adopted = 0
        self.rebalance_timeout = settings.rebalance_timeout
        self.heartbeats = Heartbeats(settings.heartbeat_interval)
        self._settings = settings
        self._is_cooperative = is_cooperative
        self._may_join = False  # the program has polled, and no error was raised since then
        self._is_prepared = False  # the partitions to revoke before JoinGroup are revoked
        self._is_lost = False  # the owned partitions are of an earlier generation
        self._has_asked = False  # a JoinGroup has no response: maybe it is in the next generation
        self._has_given_up = False  # the assignment has revoked partitions
        self._assigned = _NOTHING  # the assignment that is being applied
        self._joined_topics: Optional[FrozenSet[str]] = None  # those of the last JoinGroup
        self._next_reason = Reason.POLLED.value  # of the next rebalance
        self._again: Optional[str] = None  # reason for another rebalance after this one, or None

    def __repr__(self) -> str:
        return '<ClassicMembership of %s %s generation=%d member=%r owned=%d>' % (
            self._settings.group_id,
            self.state.value,
            *self.who,
            len(self.owned),
        )

    def _move(self, event: ClassicMemberEvent) -> None:
        self.state = following(self.state, event)
        self.waits_for_poll = (
            self.is_started and self.state is ClassicMemberState.UNJOINED and not self._may_join
        )

    # ------------------------------------------------------------ what the program does

    def start(self) -> None:
        """Allow the member to join at the next poll."""
        self.is_started = True
        self.waits_for_poll = self.state is ClassicMemberState.UNJOINED and not self._may_join

    def poll(self, now: float) -> None:
        """Record a poll(), after which the member may join."""
        self.polled_at = now
        if self.is_started:
            self._may_join = True
            self.waits_for_poll = False

    def set_topics(self, topics: Optional[AbstractSet[str]]) -> None:
        """Set the subscribed topics of the consumer, None without a subscription."""
        self.topics = None if topics is None else frozenset(topics)
        if self.state is ClassicMemberState.STABLE:
            self._compare_topics()

    def _compare_topics(self) -> None:
        if self.topics is not None and self.topics != self._joined_topics:
            self.rebalance(Reason.SUBSCRIPTION.value)

    def rebalance(self, reason: str) -> None:
        """Join again: now if stable, otherwise after the rebalance in progress."""
        if self.state is ClassicMemberState.STABLE:
            self._begin(ClassicMemberEvent.REBALANCE, reason)
        elif self.state in _REBALANCING:
            self._again = self._again or reason

    def leave(self) -> Generation:
        """End the membership at once; return its last identity. The next poll() joins again."""
        was = self.who
        self._forget(drops_id=True)
        self._is_lost = self._is_prepared = self._may_join = False
        self._next_reason = Reason.POLLED.value
        self.owned = _NOTHING
        self.error = None
        self._move(ClassicMemberEvent.LEAVE)
        return was

    # ------------------------------------------------------------ what to do next

    def begin_if_due(self) -> None:
        """Begin to join if the program has polled and is subscribed."""
        if self.state is ClassicMemberState.UNJOINED and self._may_join and self.topics is not None:
            self._begin(ClassicMemberEvent.BEGIN, self._next_reason)

    def _begin(self, event: ClassicMemberEvent, reason: str) -> None:
        self._move(event)
        self.reason = reason
        self.begun += 1

    def next_step(self) -> Optional[StepPlan]:
        """Return the step for the polling thread, or None."""
        if self._is_lost:
            return StepPlan(StepKind.LOSE, self.owned, _NOTHING)
        if self.state is ClassicMemberState.PREPARING and not self._is_prepared:
            return self._preparation()
        if self.state is ClassicMemberState.ADOPTING:
            return self._adoption()
        return None

    def _preparation(self) -> Optional[StepPlan]:
        if not self._is_cooperative:
            return StepPlan(StepKind.REVOKE, self.owned, _NOTHING, commits=True)
        if not self.owned:
            return None
        wanted = self.topics or ()
        gone = frozenset(each for each in self.owned if each.topic not in wanted)
        return StepPlan(StepKind.REVOKE, gone, self.owned - gone, commits=True, tells=bool(gone))

    def _adoption(self) -> StepPlan:
        gone = self.owned - self._assigned
        if gone:
            # No other member gets them before this one joins again, so records returned since
            # JoinGroup can still be committed.
            return StepPlan(StepKind.REVOKE, gone, self.owned - gone, commits=True)
        return StepPlan(StepKind.ASSIGN, self._assigned - self.owned, self._assigned)

    def step_done(self, plan: StepPlan) -> None:
        """Record that a step was done, even if the state has changed meanwhile."""
        self.owned = plan.owned
        if plan.kind is StepKind.LOSE:
            self._is_lost = False
        elif self.state is ClassicMemberState.PREPARING and not self._is_prepared:
            self._is_prepared = True
        elif self.state is ClassicMemberState.ADOPTING and plan.kind is StepKind.REVOKE:
            self._has_given_up = True
        elif self.state is ClassicMemberState.ADOPTING:
            self._adopted()
        else:  # the generation was lost after the step had begun
            self._is_lost = bool(self.owned)

    def _adopted(self) -> None:
        self._is_prepared = False
        self.adopted += 1
        self._move(ClassicMemberEvent.ADOPTED)
        if self._has_given_up:
            self.rebalance(Reason.FOLLOW_UP.value)
        elif self._again is not None:
            self.rebalance(self._again)
        else:
            self._compare_topics()

    def needs(self) -> Need:
        """Return the request to send now."""
        if self.topics is None or self.next_step() is not None:
            return Need.NOTHING
        if self.state is ClassicMemberState.PREPARING:
            return Need.JOIN
        return Need.SYNC if self.state is ClassicMemberState.COMPLETING else Need.NOTHING

    # ------------------------------------------------------------ JoinGroup

    def joining(self) -> None:
        """Record that JoinGroup is sent, with the present topics."""
        self._move(ClassicMemberEvent.ASK_TO_JOIN)
        self._has_asked = True
        self._is_prepared = True
        self._has_given_up = False
        self._again = None
        self._joined_topics = self.topics
        self.heartbeats.stop()  # the broker knows that a member with a JoinGroup in flight is alive

    def on_join(self, code: int, who: Generation, now: float) -> ClassicErrorAction:
        """Handle the response to JoinGroup. Arguments: code; who: its generation and member id."""
        action = classic_error_action(Call.JOIN, code)
        if action is ClassicErrorAction.GOOD:
            self.who, self.error = who, None
            self._has_asked = False
            self.heartbeats.begin(now)
            self._move(ClassicMemberEvent.JOINED)
        elif action is ClassicErrorAction.TAKE_ID:
            self.who = Generation(-1, who.member_id)
            self.join_again()
        else:
            self._on_bad(action, code)
        return action

    # ------------------------------------------------------------ SyncGroup

    def syncing(self) -> None:
        """Record that SyncGroup is sent."""
        self._move(ClassicMemberEvent.ASK_TO_SYNC)
        self.heartbeats.stop()

    def on_sync(
        self, code: int, assigned: AbstractSet[TopicPartition], now: float
    ) -> ClassicErrorAction:
        """Handle the response to SyncGroup. Arguments: code; assigned: its partitions."""
        action = classic_error_action(Call.SYNC, code)
        if action is not ClassicErrorAction.GOOD:
            self._on_bad(action, code)
        elif {each.topic for each in assigned} - (self.topics or frozenset()):
            self._join_again(Reason.FOREIGN.value)
        else:
            self.heartbeats.begin(now)
            self._assigned = frozenset(assigned)
            self._move(ClassicMemberEvent.SYNCED)
        return action

    def join_again(self) -> None:
        """Record that JoinGroup or SyncGroup has to be repeated, or got no response.

        No heartbeats are sent until then: the group may already be in a new generation, and an
        error for the old one would be misinterpreted.
        """
        self._move(ClassicMemberEvent.AGAIN)

    def _join_again(self, reason: str) -> None:
        self._begin(ClassicMemberEvent.AGAIN, reason)

    def _on_bad(self, action: ClassicErrorAction, code: int) -> None:
        """Handle an error of JoinGroup or SyncGroup."""
        if action is ClassicErrorAction.LOST:
            self._lose(False, Reason.GENERATION.value)
        elif action is ClassicErrorAction.LOST_ID:
            self._lose(True, Reason.UNKNOWN.value)
        elif action is ClassicErrorAction.FATAL:
            self.fail(self._error(code))
        elif action is ClassicErrorAction.REFUSED:
            self.refuse(self._error(code))
        elif action is ClassicErrorAction.REBALANCE:
            self._join_again(Reason.ANOTHER.value)
        else:
            self.join_again()

    # ------------------------------------------------------------ heartbeats and commits

    @property
    def is_beating(self) -> bool:
        """Whether the group expects heartbeats now."""
        return self.state in _BEATING and self.who.generation >= 0

    @property
    def takes_commits(self) -> bool:
        """Whether the group accepts commits of this member with its present identity."""
        return self.state in _COMMITTING and self.who.generation >= 0

    @property
    def is_asking(self) -> bool:
        """Whether a rebalance is in progress that needs no step of the polling thread now."""
        if self.state in _ASKING:
            return True
        return self.state is ClassicMemberState.PREPARING and self.next_step() is None

    def on_heartbeat(self, who: Generation, code: int, now: float) -> ClassicErrorAction:
        """Handle the response to a heartbeat; who: the identity it was sent with."""
        if who != self.who or not self.is_beating:
            return (
                ClassicErrorAction.IGNORE
            )  # for an earlier identity, or JoinGroup is in flight now
        action = classic_error_action(Call.HEARTBEAT, code)
        if action in (ClassicErrorAction.GOOD, ClassicErrorAction.REBALANCE):
            self.error = None
        if action not in (ClassicErrorAction.RETRY, ClassicErrorAction.REFIND):
            self.heartbeats.answered(now)
        self._on_told(action, code)
        return action

    def on_commit(self, who: Optional[Generation], code: int) -> ClassicErrorAction:
        """Handle the error of a commit; who: its identity, None for the present one."""
        if not self.is_beating or (who is not None and who != self.who):
            return ClassicErrorAction.IGNORE
        if self._has_asked:  # maybe in the next generation already: the next response decides
            return ClassicErrorAction.IGNORE
        action = classic_error_action(Call.COMMIT, code)
        self._on_told(action, code)
        return action

    def _on_told(self, action: ClassicErrorAction, code: int) -> None:
        if action is ClassicErrorAction.LOST:
            self._lose(False, Reason.GENERATION.value)
        elif action is ClassicErrorAction.LOST_ID:
            self._lose(True, Reason.UNKNOWN.value)
        elif action is ClassicErrorAction.FATAL:
            self.fail(self._error(code))
        elif action is ClassicErrorAction.TELL:
            self.error = self._error(code)
        elif action is ClassicErrorAction.REBALANCE and self.state in (
            ClassicMemberState.ADOPTING,
            ClassicMemberState.STABLE,
        ):
            self.rebalance(
                Reason.GROUP.value
            )  # in earlier states some brokers send it all the time

    # ------------------------------------------------------------ time

    @property
    def poll_by(self) -> float:
        """The latest time of the next poll(); infinite while the group does not wait for one."""
        if self.state not in _BEATING:
            return math.inf
        return self.polled_at + self._settings.rebalance_timeout

    def next_time(self, now: float) -> float:
        """Return the time of the next heartbeat or missed poll, infinite if there is none."""
        due = self.heartbeats.look_at(now) if self.is_beating else math.inf
        return min(due, self.poll_by)

    def expire(self) -> Generation:
        """End the membership of a program that does not poll; return its last identity."""
        was = self.who
        self._may_join = False
        self._lose(True, Reason.LATE.value)
        return was

    # ------------------------------------------------------------ ends

    def _lose(self, drops_id: bool, reason: str) -> None:
        """Drop the generation: its partitions may have other owners."""
        self._is_lost = bool(self.owned)
        self._is_prepared = True  # lost partitions are not revoked
        self._next_reason = reason
        self._forget(drops_id)
        self._move(ClassicMemberEvent.LOST)

    def _forget(self, drops_id: bool) -> None:
        self.who = NOBODY if drops_id else Generation(-1, self.who.member_id)
        self._has_asked = False
        self.heartbeats.stop()
        self._again = None

    def refuse(self, error: KafkaError) -> None:
        """Stop joining with an error that polls raise until a later attempt succeeds."""
        self.error = error
        self._may_join = False
        self._next_reason = Reason.POLLED.value
        self.heartbeats.stop()
        self._move(ClassicMemberEvent.REFUSED)

    def fail(self, error: KafkaError) -> None:
        """End the membership with an error that polls raise from now on."""
        self.error = error
        self._is_lost = bool(self.owned)
        self._forget(drops_id=False)
        self._move(ClassicMemberEvent.FAIL)

    def _error(self, code: int) -> Any:
        settings = self._settings
        return error_of(
            code, settings.group_id, settings.session_timeout, settings.group_instance_id
        )
