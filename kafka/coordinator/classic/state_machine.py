"""A member of a classic group: what it is, what it has to do next, what an answer changes; pure.

Owns the state, the generation and member id, what is owned, the steps that the thread that polls
has to take, when heartbeats are due, and when the program has not polled for too long. Does not
own: the tables of states and codes (transitions.py), requests (requests.py), who sends them
and when tries are repeated (coordinator.py).

Follows KIP-62 (heartbeats go on while the program works), KIP-345 (static members), KIP-394,
KIP-429 (cooperative members) and KIP-568. The order around a rebalance:

===================  ==================================  ========================================
before JoinGroup     eager: REVOKE all                   cooperative: REVOKE what is no longer
                                                         subscribed; commit for the rest
after a lost         LOSE all, instead of that           the same
generation
after SyncGroup      eager: ASSIGN all                   cooperative: REVOKE what others get, ASSIGN
                                                         what is new; join again if any was revoked
===================  ==================================  ========================================
"""

from __future__ import annotations

import enum
import math
from typing import AbstractSet, Any, FrozenSet, NamedTuple, Optional

from kafka.coordinator.classic.transitions import (
    Call,
    Event,
    Reason,
    State,
    Verdict,
    error_of,
    following,
    verdict_of,
)
from kafka.coordinator.group_settings import GroupSettings, StepKind
from kafka.errors import KafkaError
from kafka.structs import TopicPartition

__all__ = ['NOBODY', 'Heartbeats', 'Membership', 'Need', 'StepPlan', 'Who']


class Who(NamedTuple):
    """Who a member is to its group. generation: -1 for none; member_id: '' for none."""

    generation: int
    member_id: str


NOBODY = Who(-1, '')
_NOTHING: FrozenSet[TopicPartition] = frozenset()


class StepPlan(NamedTuple):
    """What the thread that polls has to do; fields as those of member.Step."""

    kind: StepKind
    partitions: FrozenSet[TopicPartition]
    owned: FrozenSet[TopicPartition]
    commits: bool = False
    tells: bool = True


class Need(enum.Enum):
    """What has to be sent next."""

    NOTHING = 'nothing'
    JOIN = 'JoinGroup'
    SYNC = 'SyncGroup'


class Heartbeats:
    """When the next heartbeat is due; one at a time. Times are monotonic seconds.

    Attributes: due: time of the next one, infinite while none is; answered_at: when the last one
    was answered, or the group heard of this member otherwise.
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
        """Note that the group has just heard of the member."""
        self.stop()
        self.answered_at = now
        self.due = now + self._interval

    def look_at(self, now: float) -> float:
        """Return when to look next; while one is on its way, when the one behind it might be due.

        So that one timer does for each: it is set while the answer is not there yet.
        """
        if not self._is_under_way:
            return self.due
        behind = self._sent_at + self._interval
        return behind if behind > now else now + self._interval

    def sent(self, now: float) -> int:
        """Note that one is on its way: no other is due before its answer.

        Returns a number for counts().
        """
        self._is_under_way = True
        self._sent_at = now
        self.due = math.inf
        return self._stretch

    def counts(self, number: int) -> bool:
        """Tell whether the answer to one still means anything.

        JoinGroup and SyncGroup go another way, and may be answered first: what was said before them
        is of a time that is over.
        """
        return number == self._stretch

    def answered(self, now: float) -> None:
        """Note that the coordinator has heard it."""
        self._is_under_way = False
        self.answered_at, self.took = now, now - self._sent_at
        self.due = max(now, self._sent_at + self._interval)

    def failed(self, now: float, pause: float) -> None:
        """Note that it was not heard; the next is due after a pause of so many seconds."""
        self._is_under_way = False
        self.due = now + pause

    def stop(self) -> None:
        """Let none be due, and let no answer count to one that is on its way."""
        self._is_under_way = False
        self._stretch += 1
        self.due = math.inf


#: Where the member is in a generation and no call that a broker parks is on its way.
_BEATING = frozenset([State.PREPARING, State.COMPLETING, State.ADOPTING, State.STABLE])
#: Where the group takes commits of a member. Brokers refuse them from their answer to JoinGroup on
#: until the assignment is there, and while JoinGroup is parked take them as of the old generation.
_COMMITTING = frozenset([State.PREPARING, State.JOINING, State.ADOPTING, State.STABLE])
#: Where the next thing that happens is an answer of the coordinator.
_ASKING = frozenset([State.JOINING, State.COMPLETING, State.SYNCING])
#: Where another rebalance can only be noted, for the end of this one.
_REBALANCING = frozenset([State.JOINING, State.COMPLETING, State.SYNCING, State.ADOPTING])


class Membership:
    """One member. Of turns of the loop, but for what is marked.

    Arguments: settings; is_cooperative: whether all its assignors are (KIP-429).

    Attributes:
        state; who: to the group now.
        error: what the program has to know, None for nothing.
        owned: the partitions that the thread that polls reads.
        topics: what the consumer is subscribed to, None for nothing at all (set_topics()).
        is_started: whether polls let it join.
        polled_at: when the program polled last; any thread may set it.
        waits_for_poll: whether a poll would let it go on; any thread may look.
        reason: of the last rebalance; begun: how many of them this member has begun; adopted: how
            many were completed.
        rebalance_timeout: seconds that the group waits for this member. Brokers before 0.10.1 wait
            for the session time-out.
        heartbeats
    """

    def __init__(self, settings: GroupSettings, is_cooperative: bool) -> None:
        self.state = State.UNJOINED
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
        self._may_join = False  # the program has polled, and was not told of an error since
        self._is_prepared = False  # what has to be given up before JoinGroup was
        self._is_lost = False  # what is owned was that of a generation that is over
        self._has_asked = False  # to join the next generation, and not heard whether it did
        self._has_given_up = False  # the assignment took something away
        self._assigned = _NOTHING  # what is adopted now
        self._joined_topics: Optional[FrozenSet[str]] = None  # those of the last JoinGroup
        self._next_reason = Reason.POLLED.value  # of the rebalance that begins when it may
        self._again: Optional[str] = None  # why another one has to follow this one

    def __repr__(self) -> str:
        return '<Membership of %s %s generation=%d member=%r owned=%d>' % (
            self._settings.group_id,
            self.state.value,
            *self.who,
            len(self.owned),
        )

    def _move(self, event: Event) -> None:
        self.state = following(self.state, event)
        self.waits_for_poll = (
            self.is_started and self.state is State.UNJOINED and not self._may_join
        )

    # ------------------------------------------------------------ what the program does

    def start(self) -> None:
        """Let the next poll join."""
        self.is_started = True
        self.waits_for_poll = self.state is State.UNJOINED and not self._may_join

    def poll(self, now: float) -> None:
        """Take note of a poll, which lets it join unless it did."""
        self.polled_at = now
        if self.is_started:
            self._may_join = True
            self.waits_for_poll = False

    def set_topics(self, topics: Optional[AbstractSet[str]]) -> None:
        """Take note of what the consumer is subscribed to, None for nothing at all."""
        self.topics = None if topics is None else frozenset(topics)
        if self.state is State.STABLE:
            self._compare_topics()

    def _compare_topics(self) -> None:
        if self.topics is not None and self.topics != self._joined_topics:
            self.rebalance(Reason.SUBSCRIPTION.value)

    def rebalance(self, reason: str) -> None:
        """Join again: now if stable, or else once the rebalance under way has ended."""
        if self.state is State.STABLE:
            self._begin(Event.REBALANCE, reason)
        elif self.state in _REBALANCING:
            self._again = self._again or reason

    def leave(self) -> Who:
        """End the membership at once; return who it was. The next poll joins anew."""
        was = self.who
        self._forget(drops_id=True)
        self._is_lost = self._is_prepared = self._may_join = False
        self._next_reason = Reason.POLLED.value
        self.owned = _NOTHING
        self.error = None
        self._move(Event.LEAVE)
        return was

    # ------------------------------------------------------------ what has to be done

    def begin_if_due(self) -> None:
        """Begin to join if the program has polled and is subscribed."""
        if self.state is State.UNJOINED and self._may_join and self.topics is not None:
            self._begin(Event.BEGIN, self._next_reason)

    def _begin(self, event: Event, reason: str) -> None:
        self._move(event)
        self.reason = reason
        self.begun += 1

    def next_step(self) -> Optional[StepPlan]:
        """Return what the thread that polls has to do now, None for nothing."""
        if self._is_lost:
            return StepPlan(StepKind.LOSE, self.owned, _NOTHING)
        if self.state is State.PREPARING and not self._is_prepared:
            return self._preparation()
        if self.state is State.ADOPTING:
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
            # Nobody else has them before this member joins again, so that what was handed out
            # since JoinGroup can still be committed.
            return StepPlan(StepKind.REVOKE, gone, self.owned - gone, commits=True)
        return StepPlan(StepKind.ASSIGN, self._assigned - self.owned, self._assigned)

    def step_done(self, plan: StepPlan) -> None:
        """Take note that a step was taken, whatever has happened meanwhile."""
        self.owned = plan.owned
        if plan.kind is StepKind.LOSE:
            self._is_lost = False
        elif self.state is State.PREPARING and not self._is_prepared:
            self._is_prepared = True
        elif self.state is State.ADOPTING and plan.kind is StepKind.REVOKE:
            self._has_given_up = True
        elif self.state is State.ADOPTING:
            self._adopted()
        else:  # the generation was lost after the step had begun
            self._is_lost = bool(self.owned)

    def _adopted(self) -> None:
        self._is_prepared = False
        self.adopted += 1
        self._move(Event.ADOPTED)
        if self._has_given_up:
            self.rebalance(Reason.FOLLOW_UP.value)
        elif self._again is not None:
            self.rebalance(self._again)
        else:
            self._compare_topics()

    def needs(self) -> Need:
        """Return what has to be sent now."""
        if self.topics is None or self.next_step() is not None:
            return Need.NOTHING
        if self.state is State.PREPARING:
            return Need.JOIN
        return Need.SYNC if self.state is State.COMPLETING else Need.NOTHING

    # ------------------------------------------------------------ JoinGroup

    def joining(self) -> None:
        """Take note that JoinGroup is sent, with the topics that are wanted now."""
        self._move(Event.ASK_TO_JOIN)
        self._has_asked = True
        self._is_prepared = True
        self._has_given_up = False
        self._again = None
        self._joined_topics = self.topics
        self.heartbeats.stop()  # the broker takes who waits for an answer to be alive

    def on_join(self, code: int, who: Who, now: float) -> Verdict:
        """Take the answer to JoinGroup. Arguments: code; who: this member is by it."""
        verdict = verdict_of(Call.JOIN, code)
        if verdict is Verdict.GOOD:
            self.who, self.error = who, None
            self._has_asked = False
            self.heartbeats.begin(now)
            self._move(Event.JOINED)
        elif verdict is Verdict.TAKE_ID:
            self.who = Who(-1, who.member_id)
            self.join_again()
        else:
            self._on_bad(verdict, code)
        return verdict

    # ------------------------------------------------------------ SyncGroup

    def syncing(self) -> None:
        """Take note that SyncGroup is sent."""
        self._move(Event.ASK_TO_SYNC)
        self.heartbeats.stop()

    def on_sync(self, code: int, assigned: AbstractSet[TopicPartition], now: float) -> Verdict:
        """Take the answer to SyncGroup. Arguments: code; assigned: to this member by it."""
        verdict = verdict_of(Call.SYNC, code)
        if verdict is not Verdict.GOOD:
            self._on_bad(verdict, code)
        elif {each.topic for each in assigned} - (self.topics or frozenset()):
            self._join_again(Reason.FOREIGN.value)
        else:
            self.heartbeats.begin(now)
            self._assigned = frozenset(assigned)
            self._move(Event.SYNCED)
        return verdict

    def join_again(self) -> None:
        """Take note that JoinGroup or SyncGroup got no answer, or one that says to ask again.

        No heartbeats are sent meanwhile: the group may be in a generation already that this member
        has not heard of, and what it said to the old one would be misread.
        """
        self._move(Event.AGAIN)

    def _join_again(self, reason: str) -> None:
        self._begin(Event.AGAIN, reason)

    def _on_bad(self, verdict: Verdict, code: int) -> None:
        """Take an answer to JoinGroup or SyncGroup that says no."""
        if verdict is Verdict.LOST:
            self._lose(False, Reason.GENERATION.value)
        elif verdict is Verdict.LOST_ID:
            self._lose(True, Reason.UNKNOWN.value)
        elif verdict is Verdict.FATAL:
            self.fail(self._error(code))
        elif verdict is Verdict.REFUSED:
            self.refuse(self._error(code))
        elif verdict is Verdict.REBALANCE:
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
        """Whether the group takes commits of this member, as who it is now."""
        return self.state in _COMMITTING and self.who.generation >= 0

    @property
    def is_asking(self) -> bool:
        """Whether a rebalance goes on that needs nothing of the thread that polls now."""
        if self.state in _ASKING:
            return True
        return self.state is State.PREPARING and self.next_step() is None

    def on_heartbeat(self, who: Who, code: int, now: float) -> Verdict:
        """Take the answer to a heartbeat that was sent as somebody."""
        if who != self.who or not self.is_beating:
            return Verdict.IGNORE  # of a former self, or JoinGroup is on its way meanwhile
        verdict = verdict_of(Call.HEARTBEAT, code)
        if verdict in (Verdict.GOOD, Verdict.REBALANCE):
            self.error = None
        if verdict not in (Verdict.RETRY, Verdict.REFIND):
            self.heartbeats.answered(now)
        self._on_told(verdict, code)
        return verdict

    def on_commit(self, who: Optional[Who], code: int) -> Verdict:
        """Take what a commit was refused with, sent as somebody, None for who it is now."""
        if not self.is_beating or (who is not None and who != self.who):
            return Verdict.IGNORE
        if self._has_asked:  # it may be in the next generation already: the next answer tells
            return Verdict.IGNORE
        verdict = verdict_of(Call.COMMIT, code)
        self._on_told(verdict, code)
        return verdict

    def _on_told(self, verdict: Verdict, code: int) -> None:
        if verdict is Verdict.LOST:
            self._lose(False, Reason.GENERATION.value)
        elif verdict is Verdict.LOST_ID:
            self._lose(True, Reason.UNKNOWN.value)
        elif verdict is Verdict.FATAL:
            self.fail(self._error(code))
        elif verdict is Verdict.TELL:
            self.error = self._error(code)
        elif verdict is Verdict.REBALANCE and self.state in (State.ADOPTING, State.STABLE):
            self.rebalance(Reason.GROUP.value)  # before, some brokers say so all the time

    # ------------------------------------------------------------ time

    @property
    def poll_by(self) -> float:
        """When the program has to have polled at the latest; infinite if nobody waits for it."""
        if self.state not in _BEATING:
            return math.inf
        return self.polled_at + self._settings.rebalance_timeout

    def next_time(self, now: float) -> float:
        """Return when to look whether something is due, infinite for nothing."""
        due = self.heartbeats.look_at(now) if self.is_beating else math.inf
        return min(due, self.poll_by)

    def expire(self) -> Who:
        """End the membership of a program that does not poll; return who it was."""
        was = self.who
        self._may_join = False
        self._lose(True, Reason.LATE.value)
        return was

    # ------------------------------------------------------------ ends

    def _lose(self, drops_id: bool, reason: str) -> None:
        """Drop the generation: what is owned belongs to others by now."""
        self._is_lost = bool(self.owned)
        self._is_prepared = True  # what is lost cannot be revoked
        self._next_reason = reason
        self._forget(drops_id)
        self._move(Event.LOST)

    def _forget(self, drops_id: bool) -> None:
        self.who = NOBODY if drops_id else Who(-1, self.who.member_id)
        self._has_asked = False
        self.heartbeats.stop()
        self._again = None

    def refuse(self, error: KafkaError) -> None:
        """End the try to join with an error that polls raise, until one of the next succeeds."""
        self.error = error
        self._may_join = False
        self._next_reason = Reason.POLLED.value
        self.heartbeats.stop()
        self._move(Event.REFUSED)

    def fail(self, error: KafkaError) -> None:
        """End the membership with an error that polls raise from now on."""
        self.error = error
        self._is_lost = bool(self.owned)
        self._forget(drops_id=False)
        self._move(Event.FAIL)

    def _error(self, code: int) -> Any:
        settings = self._settings
        return error_of(
            code, settings.group_id, settings.session_timeout, settings.group_instance_id
        )
