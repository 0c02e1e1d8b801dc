"""The driver of a member of a KIP-848 group: heartbeats to the coordinator, steps for the program.

The engine of a consumer makes one. It sends the heartbeats of a ConsumerMembership, finds the names
of assigned topics, offers RebalanceSteps to the polling thread, and leaves the group when the
program does not poll in time. Everything runs in turns of the loop, except for the methods marked
otherwise.

An idle member costs one timer and one request an interval, without a coroutine. Coroutines run to
find the coordinator, to change the assignment, and to leave.
"""

from __future__ import annotations

import logging
import math
import random
import uuid
from typing import TYPE_CHECKING, Any, Callable, ContextManager, FrozenSet, Iterable, Optional

from kafka.coordinator.group_settings import GroupSettings, StepKind
from kafka.coordinator.kip848.state_machine import (
    ConsumerMembership,
    HeartbeatErrorAction,
    MemberState,
    ReconciliationPlan,
)
from kafka.coordinator.member import Member, RebalanceStep
from kafka.coordinator.rebalance_log import RebalanceLog
from kafka.errors import (
    BrokerResponseError,
    FencedMemberEpochError,
    GroupAuthorizationFailedError,
    IllegalStateError,
    KafkaError,
    StaleMemberEpochError,
    UnknownBrokerIdError,
    UnknownMemberIdError,
    UnsupportedVersionError,
    for_code,
)
from kafka.net.backoff import backoff_seconds
from kafka.net.loop.tasks import Alarm, Task
from kafka.net.node_connection import session_of
from kafka.net.routes import GROUP
from kafka.protocol.api import ApiKey
from kafka.protocol.group import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from kafka.protocol.metadata import MetadataRequest, MetadataRequestTopic
from kafka.structs import ConsumerGroupMetadata, TopicPartition

if TYPE_CHECKING:
    from kafka.consumer.subscription_state import SubscriptionState
    from kafka.net.loop.event_loop import EventLoop
    from kafka.net.pool import Pool

__all__ = ['ConsumerMember']

log = logging.getLogger(__name__)

_STATES = {
    MemberState.UNSUBSCRIBED: '<unjoined>',
    MemberState.FENCED: '<unjoined>',
    MemberState.STALE: '<unjoined>',
    MemberState.LEAVING: '<unjoined>',
    MemberState.FATAL: '<unjoined>',
    MemberState.STABLE: '<stable>',
}
#: The states in which a poll() joins the group.
_OUTSIDE = (MemberState.UNSUBSCRIBED, MemberState.STALE)
#: The errors of commits whose member or epoch is not the one that the group knows.
_OF_MEMBERS = frozenset(
    [UnknownMemberIdError.errno, FencedMemberEpochError.errno, StaleMemberEpochError.errno]
)
#: The errors of a connection closed because its broker is not listed any more.
_OF_LINKS = (IllegalStateError, UnknownBrokerIdError)


class ConsumerMember(Member):
    """One member.

    Arguments:
        loop, pool: of the consumer; settings.
        subscription: a SubscriptionState, whose topics or pattern it joins with, and whose
            partitions it holds back before they are taken away.
        lock: guards the subscription.
        on_change: as Member.
        chance: of the jitter and of the member's id.
    """

    def __init__(
        self,
        loop: EventLoop,
        pool: Pool,
        settings: GroupSettings,
        subscription: SubscriptionState,
        lock: ContextManager[Any],
        on_change: Callable[[], Any],
        chance: Optional[random.Random] = None,
    ) -> None:
        super().__init__(settings, on_change)
        self._loop = loop
        self._pool = pool
        self._subscription = subscription
        self._lock = lock
        self._chance = chance or random.Random()
        # Chosen here, so that a join whose response was lost can be repeated (KIP-1082).
        name = str(uuid.UUID(int=self._chance.getrandbits(128), version=4))
        self._machine = ConsumerMembership(settings, name, self._pause)
        self._log = RebalanceLog(settings.group_id)
        self._identity = ConsumerGroupMetadata(
            settings.group_id, group_instance_id=settings.group_instance_id
        )
        self._is_started = self._is_closed = self._was_stable = False
        self._polled_at = -math.inf
        self._out_since = -math.inf  # a poll() after this time joins again
        self._alarm = Alarm(loop, self._look)
        self._finding: Optional[Task[None]] = None  # of the coordinator, for a heartbeat
        self._work: Optional[Task[None]] = None  # a change that needs the program
        self._farewell: Optional[Task[None]] = None

    def __repr__(self) -> str:
        return '<ConsumerMember %r>' % self._machine

    # ------------------------------------------------------------ from any thread

    def polled(self, now: float) -> None:
        """Note that the program has polled; costs nothing while the member is in the group."""
        self._polled_at = now
        if self._machine.state in _OUTSIDE and self._is_started:
            # Read without the lock: the member reads it again under the lock.
            if self._subscription.subscription is not None:
                self._loop.call_threadsafe(self._look)

    @property
    def is_stable(self) -> bool:
        """Whether it owns its target assignment, as far as it knows."""
        return self._machine.state is MemberState.STABLE

    @property
    def can_commit(self) -> bool:
        """Whether it is in the group: offsets are stored during a rebalance too."""
        return self._identity.generation_id > 0

    def identity(self) -> ConsumerGroupMetadata:
        """Return its identity; the epoch is in the place of the generation of classic groups."""
        return self._identity

    def commits_as(self) -> Callable[[], ConsumerGroupMetadata]:
        """Return a function: a commit with an old epoch is tried again with the next one."""
        return self.identity

    # ------------------------------------------------------------ for the engine

    def start(self) -> None:
        """Let the membership begin with the next poll."""
        self._is_started = True
        self._look()

    def subscription_changed(self) -> None:
        """Send the subscription, if it has changed."""
        if self._read_subscription() and self._machine.can_be_cured() and self._work is None:
            self.error = None
            self._join()
        self._look()

    def rejoin(self, reason: str) -> None:
        """Send a heartbeat soon: the coordinator assigns, there is no request for a rebalance."""
        log.info('group=%s asks what it shall own now: %s', self.settings.group_id, reason)
        self._machine.hurry()
        self._look()

    def commit_refused(
        self, error: KafkaError, who: Optional[ConsumerGroupMetadata] = None
    ) -> None:
        """Send a heartbeat soon, to learn whether it is still a member, and the epoch.

        A commit says nothing of the membership by itself: it may have been sent in another epoch.
        """
        code = getattr(error, 'errno_of_group', None)
        if code is None and isinstance(error, BrokerResponseError):
            code = error.errno
        if code in _OF_MEMBERS and self._machine.takes_part:
            self._machine.hurry()
            self._look()

    async def leave(self, reason: str, timeout: float) -> None:
        """Leave the group; a static member may return within its session, to its partitions."""
        self._stop()
        machine = self._machine
        if machine.state is MemberState.UNSUBSCRIBED:
            return
        log.info('group=%s member=%s leaves: %s', self.settings.group_id, machine.member_id, reason)
        machine.leave()
        self._note_identity()
        try:
            await self._loop.within(timeout, self._say_farewell())
        except KafkaError as error:
            log.debug('group=%s was not told: %s', self.settings.group_id, error)
        finally:
            machine.left()
            self.error = None
            self.errors.clear()
            self._out_since = self._polled_at
            self._note_identity()

    def close(self) -> None:
        """End everything at once, without leaving the group."""
        self._is_closed = True
        self._stop()
        self._alarm.cancel()

    def _stop(self) -> None:
        """End what is under way, also a step that the program is at: it is the one who goes."""
        for task in (self._work, self._finding, self._farewell):
            if task is not None:
                task.cancel()
        self._work = self._finding = self._farewell = self.step = None

    # ------------------------------------------------------------ what is due

    def _look(self) -> None:
        """Do what is due, and set the timer for the next time."""
        if self._is_closed or not self._is_started:
            return
        now = self._loop.time()
        machine = self._machine
        if machine.takes_part:
            if now >= self._polled_at + self.settings.rebalance_timeout:
                self._miss_poll(now)
        elif self._may_join():
            self._join()
        if machine.due <= now:
            self._beat(now)
        self._begin_work()
        self._set_timer()
        was_stable, self._was_stable = self._was_stable, self.is_stable
        if self._was_stable and not was_stable:
            self._on_change()

    def _set_timer(self) -> None:
        """Set the timer for the next heartbeat or missed poll."""
        machine = self._machine
        when = machine.due
        if when == math.inf or self._finding is not None:
            return  # the work under way calls this at its end
        self._alarm.set(min(when, self._polled_at + self.settings.rebalance_timeout))

    def _may_join(self) -> bool:
        """Return True if a member outside the group should join."""
        machine = self._machine
        if machine.state not in _OUTSIDE or machine.owned:
            return False
        self._read_subscription()
        has_polled = self._polled_at > self._out_since
        return machine.is_subscribed and has_polled and self._farewell is None

    def _join(self) -> None:
        self._machine.join()
        self._note_identity()

    def _read_subscription(self) -> bool:
        with self._lock:
            topics, pattern = self._subscription.subscription, self._subscription.server_pattern
            names = None if topics is None else frozenset(topics)
        return self._machine.subscribe(names, pattern)

    def _miss_poll(self, now: float) -> None:
        """Leave the group, because the program does not poll any more."""
        log.warning(
            'group=%s member=%s leaves: the program has not polled for %.3g s. Poll more often, let'
            ' a poll return fewer records (max_poll_records), or allow more time'
            ' (max_poll_interval_ms)',
            self.settings.group_id,
            self._machine.member_id,
            now - self._polled_at,
        )
        self._end_work()
        self._machine.miss_poll()
        self._out_since = self._polled_at
        self._note_identity()
        self._farewell = self._loop.spawn(self._part())
        self._farewell.add_done_callback(self._parted)

    async def _part(self) -> None:
        timeout = self.settings.request_timeout
        try:
            await self._loop.within(timeout, self._say_farewell())
        except KafkaError as error:
            log.debug('group=%s was not told: %s', self.settings.group_id, error)

    def _parted(self, task: Task[None]) -> None:
        if self._farewell is task:
            self._farewell = None
            self._look()

    def _pause(self, failures: int) -> float:
        settings = self.settings
        longest = max(settings.retry_backoff, settings.retry_backoff_max)
        part = self._chance.uniform(0.8, 1.2)
        return backoff_seconds(settings.retry_backoff, longest, failures, part)

    def _note_identity(self) -> None:
        """Publish the identity for other threads."""
        machine = self._machine
        is_in = machine.epoch > 0
        self._identity = ConsumerGroupMetadata(
            self.settings.group_id,
            machine.epoch if is_in else -1,
            machine.member_id if is_in else '',
            self.settings.group_instance_id,
            _STATES.get(machine.state, '<rebalancing>'),
        )

    # ------------------------------------------------------------ heartbeats

    def _beat(self, now: float) -> None:
        """Send the heartbeat that is due, or find the coordinator first."""
        if self._finding is not None:
            return
        link = self._pool.group_link_at_hand(self.settings.group_id)
        if link is None:
            self._finding = self._loop.spawn(self._find())
            self._finding.add_done_callback(self._found)
            return
        machine = self._machine
        try:
            heartbeat = machine.heartbeat(now, self._version(link))
        except UnsupportedVersionError as error:
            self._fail(error)
            return
        self._note_identity()
        life = heartbeat.life
        link.submit(
            heartbeat.request,
            lambda response, error: self._on_answer(life, now, response, error),
            self.settings.request_timeout,
        )

    def _version(self, link: Any) -> int:
        """Return the version of heartbeats to a broker. Raises UnsupportedVersionError."""
        lowest, highest = link.versions.ranges.get(ApiKey.CONSUMER_GROUP_HEARTBEAT, (0, -1))
        highest = min(highest, ConsumerGroupHeartbeatRequest.max_version)
        if highest < max(lowest, 0):
            raise UnsupportedVersionError(
                '%s:%s does not know consumer groups of KIP-848: group_protocol="consumer" needs'
                ' brokers of Kafka 4.0 or later; with older ones use group_protocol="classic"'
                % (link.host, link.port)
            )
        return int(highest)

    async def _find(self) -> None:
        """Find the coordinator and connect to it."""
        machine, life = self._machine, self._machine.life
        group_id = self.settings.group_id
        try:
            await self._loop.within(self.settings.request_timeout, self._pool.group_link(group_id))
        except KafkaError as error:
            if life == machine.life:
                self._on_silence(error)

    def _found(self, task: Task[None]) -> None:
        if self._finding is task:
            self._finding = None
            self._look()

    def _on_answer(
        self,
        life: int,
        sent_at: float,
        response: Optional[ConsumerGroupHeartbeatResponse],
        error: Optional[KafkaError],
    ) -> None:
        """Handle the response to a heartbeat, or its error."""
        if self._is_closed or life != self._machine.life:
            return
        now = self._loop.time()
        if response is None:
            assert error is not None
            self._on_silence(error)
        else:
            if self.figures is not None:
                self.figures.heartbeat(now, now - sent_at)
            self._on_response(life, response, now)
        self._look()

    def _on_silence(self, error: KafkaError) -> None:
        """Go on without a response: it is unknown whether the membership has ended."""
        group_id = self.settings.group_id
        if error.stage is not None and not error.retriable:
            self.errors.append(error)  # credentials and certificates may be replaced
            self._on_change()
        elif isinstance(error, GroupAuthorizationFailedError):
            self._denied(error)
        elif not error.retriable and not isinstance(error, _OF_LINKS):
            self._fail(error)
            return
        log.debug('group=%s hears nothing of its coordinator: %s', group_id, error)
        self._pool.forget_coordinator(GROUP, group_id)
        self._machine.unanswered(self._machine.life, self._loop.time())

    def _on_response(self, life: int, response: ConsumerGroupHeartbeatResponse, now: float) -> None:
        machine = self._machine
        target = machine.target
        outcome = machine.answered(life, response, now)
        self._note_identity()
        action, error = outcome.action, outcome.error
        if action is HeartbeatErrorAction.GO_ON:
            self.error = None
        if action is HeartbeatErrorAction.REFIND:
            self._pool.forget_coordinator(GROUP, self.settings.group_id)
        elif action is HeartbeatErrorAction.REJOIN:
            log.warning(
                'group=%s: %s: all partitions are lost (%d times without a rest)',
                self.settings.group_id,
                error,
                machine.fences,
            )
            if self.figures is not None and not self._was_stable:
                self.figures.rebalance_failed()
            self._end_work()
            self._on_change()
        elif action is HeartbeatErrorAction.SURFACE:
            assert error is not None
            if isinstance(error, GroupAuthorizationFailedError):
                self._denied(error)
            else:
                self.errors.append(error)
                self._on_change()
        elif action is HeartbeatErrorAction.FAIL:
            assert error is not None
            self._failed(error)
        elif target != machine.target:
            self._retarget()

    def _retarget(self) -> None:
        """End what is under way for a target that is over, as far as the program is not at it.

        An assignment that waits for a late program would let it take what the coordinator gives to
        another member meanwhile. What is to be revoked is so whatever comes next.
        """
        machine, step = self._machine, self.step
        if machine.plan is None:
            self._end_work()  # the names that it waits for may not be needed any more
        elif machine.is_overtaken and step is not None and step.kind is StepKind.ASSIGN:
            if step.withdraw():
                self._end_work()
                machine.dropped()

    def _denied(self, error: KafkaError) -> None:
        """Raise by poll() that the group is not authorized, which may change."""
        if self._machine.epoch > 0:
            self.errors.append(error)
        else:
            self.error = error
        self._on_change()

    def _fail(self, error: KafkaError) -> None:
        if self._machine.takes_part:
            self._machine.fail(error)
        self._failed(error)

    def _failed(self, error: KafkaError) -> None:
        """Let every poll() raise an error, after the program has dropped its partitions."""
        log.error('group=%s: the membership is over: %s', self.settings.group_id, error)
        self.error = error
        self._end_work()
        self._note_identity()
        self._on_change()

    # ------------------------------------------------------------ steps for the program

    def _begin_work(self) -> None:
        """Offer the steps that the state of the membership demands, one at a time."""
        if self._work is not None:
            return
        machine = self._machine
        if machine.can_reconcile(self._name_of):
            self._spawn_work(self._reconcile())
        elif machine.state in (MemberState.FENCED, MemberState.STALE, MemberState.FATAL):
            if machine.owned:
                self._spawn_work(self._lose())
            elif machine.state is MemberState.FENCED:
                machine.lost()

    def _spawn_work(self, work: Any) -> None:
        self._work = task = self._loop.spawn(work)
        task.add_done_callback(self._worked)

    def _worked(self, task: Task[None]) -> None:
        if self._work is task:
            self._work = None
            self._look()

    def _end_work(self) -> None:
        """Cancel the work under way, unless its step was begun: then it ends by itself."""
        if self._work is None or (self.step is not None and not self.step.withdraw()):
            return
        work, self._work, self.step = self._work, None, None
        work.cancel()

    async def _do(
        self,
        kind: StepKind,
        partitions: Iterable[TopicPartition],
        owned: Iterable[TopicPartition],
        commits: bool = False,
    ) -> None:
        """Offer a step to the polling thread, and wait until it is finished."""
        deadline = self._loop.time() + self.settings.rebalance_timeout
        step = self.step = RebalanceStep(self._loop, kind, partitions, owned, commits, deadline)
        self._on_change()
        try:
            await step.finished()
        finally:
            if self.step is step:
                self.step = None

    async def _lose(self) -> None:
        """Let the program drop all partitions, which others may own by now."""
        await self._do(StepKind.LOSE, self._machine.owned.values(), ())
        if self._machine.state in (MemberState.FENCED, MemberState.STALE, MemberState.FATAL):
            self._machine.lost()
            self._note_identity()

    async def _reconcile(self) -> None:
        """Go from the owned partitions to the target assignment, and acknowledge it."""
        machine = self._machine
        began, failures = self._loop.time(), 0
        while machine.state is MemberState.RECONCILING:
            unknown = machine.unknown(self._name_of)
            if unknown and not machine.gives_back:
                if failures:
                    await self._loop.sleep(self._pause(failures))
                failures += 1
                await self._learn(unknown)
            plan = machine.reconcile(self._name_of)
            if plan is not None:
                await self._carry_out(plan, began)
            elif not machine.unknown(self._name_of):
                return  # unsubscribed topics are left out

    async def _carry_out(self, plan: ReconciliationPlan, began: float) -> None:
        machine = self._machine
        life = machine.life
        counts = len(plan.gone), len(plan.new), len(plan.kept)
        text = 'the coordinator takes %d partitions, gives %d, leaves %d' % counts
        self._log.began(began, machine.epoch, text)
        if plan.gone:
            with self._lock:
                self._subscription.hold(plan.gone.values())
            await self._do(StepKind.REVOKE, plan.gone.values(), plan.kept.values(), commits=True)
            machine.revoked(plan)
        if life != machine.life:
            return
        if machine.is_overtaken:
            machine.dropped()
            return
        for place in plan.new.values():
            self._pool.want_topic(str(place.topic))
        owned = [*plan.kept.values(), *plan.new.values()]
        await self._do(StepKind.ASSIGN, plan.new.values(), owned)
        machine.assigned(plan)
        if life != machine.life:
            return
        self.rebalances += 1
        self._log.joined(machine.epoch, len(owned))
        self._note_identity()
        if self.figures is not None:
            self.figures.rebalanced(self._loop.time() - began)

    # ------------------------------------------------------------ names of topics

    def _name_of(self, topic_id: bytes) -> Optional[str]:
        name: Optional[str] = self._pool.cluster.topic_of_id(topic_id)
        return name

    async def _learn(self, topic_ids: FrozenSet[bytes]) -> None:
        """Request the names of topic ids; the response may not have them."""
        asked = [MetadataRequestTopic(topic_id=each, name=None) for each in sorted(topic_ids)]
        request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
        try:
            link = await self._pool.any_ready()
            version = session_of(link).choose_version(request)
            response = await link.request(request, version=version)
            self._pool.cluster.merge(response, version)
        except KafkaError as error:
            log.debug('the names of %d topics are not known: %s', len(topic_ids), error)

    # ------------------------------------------------------------ the end

    async def _say_farewell(self) -> None:
        """Send the leaving heartbeat until the coordinator has responded."""
        request = self._machine.farewell()
        failures = 0
        while request is not None:
            try:
                link = await self._pool.group_link(self.settings.group_id)
                response = await link.request(request)
            except KafkaError as error:
                if not error.retriable:
                    raise
            else:
                error_class = for_code(response.error_code)
                if not response.error_code or not error_class.retriable:
                    return
            self._pool.forget_coordinator(GROUP, self.settings.group_id)
            failures += 1
            await self._loop.sleep(self._pause(failures))
