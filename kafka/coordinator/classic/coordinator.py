"""The driver of a member of a classic group: its requests to the coordinator, and its rebalances.

Created by the engine of a consumer. The state is in ClassicMembership; the driver sends the
requests that it needs, with backoff, and offers RebalanceSteps to the polling thread. Everything
runs in the event loop, except for `polled()` and the methods that Member marks as callable from any
thread.

One coroutine does the rebalances and waits while the member is stable; one timer serves heartbeats
and the poll interval. JoinGroup and SyncGroup use a separate connection: a broker delays their
responses, and with them those of all later requests on that connection (Pool.group_link()).
"""

from __future__ import annotations

import logging
import random
from typing import TYPE_CHECKING, Any, Callable, ContextManager, Dict, FrozenSet, Optional, Sequence

from kafka.coordinator.assignors.adapt import Assignor
from kafka.coordinator.classic.assignors import AssignorError, MemberAssignors, subscriptions_of
from kafka.coordinator.classic.heartbeats import HeartbeatSender
from kafka.coordinator.classic.leader import GroupLeader
from kafka.coordinator.classic.requests import (
    join_request,
    join_seconds,
    leave_request,
    rebalance_seconds,
    session_seconds,
    sync_request,
)
from kafka.coordinator.classic.state_machine import (
    Call,
    ClassicErrorAction,
    ClassicMembership,
    ClassicMemberState,
    Generation,
    Need,
    Reason,
    StepPlan,
    classic_error_action,
    error_of,
)
from kafka.coordinator.group_settings import GroupSettings
from kafka.coordinator.member import Member, RebalanceStep
from kafka.coordinator.rebalance_log import RebalanceLog
from kafka.errors import (
    BrokerResponseError,
    Cancelled,
    InconsistentGroupProtocolError,
    KafkaError,
    ProtocolError,
    UnsupportedVersionError,
)
from kafka.net.backoff import backoff_seconds
from kafka.net.loop.tasks import Alarm, Event, Task, Waiter
from kafka.net.node_connection import session_of
from kafka.net.routes import GROUP
from kafka.protocol.api import choose_version
from kafka.protocol.group import JoinGroupRequest, LeaveGroupRequest
from kafka.structs import ConsumerGroupMetadata, TopicPartition

if TYPE_CHECKING:
    from kafka.cluster import ClusterMetadata
    from kafka.consumer.subscription_state import SubscriptionState
    from kafka.net.loop.event_loop import EventLoop
    from kafka.net.pool import Pool

__all__ = ['AssignorError', 'ClassicMember']

log = logging.getLogger(__name__)

_STATES = {
    ClassicMemberState.UNJOINED: '<unjoined>',
    ClassicMemberState.FAILED: '<unjoined>',
    ClassicMemberState.STABLE: '<stable>',
}


class ClassicMember(Member):
    """A member of a classic group.

    Arguments: loop, pool: of the consumer; settings; subscription: a SubscriptionState, read under
    `lock`; assignors: the preferred one first; on_change: as Member; chance: random numbers for the
    jitter.
    """

    def __init__(
        self,
        loop: EventLoop,
        pool: Pool,
        settings: GroupSettings,
        subscription: SubscriptionState,
        lock: ContextManager[Any],
        assignors: Sequence[Assignor],
        on_change: Callable[[], Any],
        chance: Optional[random.Random] = None,
    ) -> None:
        super().__init__(settings, on_change)
        self._loop = loop
        self._pool = pool
        self._subscription = subscription
        self._lock = lock
        self._assignors = MemberAssignors(assignors)
        self._chance = chance or random.Random()
        self._membership = ClassicMembership(settings, self._assignors.is_cooperative)
        self._leader = GroupLeader(loop, pool, settings)
        self._heartbeats = HeartbeatSender(
            loop, pool, settings, self._membership, self._backoff, self._on_heartbeat
        )
        self._log = RebalanceLog(settings.group_id)
        self._begun = 0  # number of rebalances that were logged
        self._began_at = 0.0  # when the last of them began
        self._failures = 0  # consecutive failed requests, for the backoff
        self._foreign = 0  # consecutive assignments with topics that are not subscribed
        self._task: Optional[Task[None]] = None
        self._waiter: Optional[Waiter[None]] = None  # what the coroutine waits for
        self._is_woken = False
        self._is_closed = False
        self._parking: Any = None  # the connection with a JoinGroup or SyncGroup in flight
        self._moved = Event()  # set and cleared at once, to resume waiting commits
        self._alarm = Alarm(loop, self._on_timer)
        self._plan: Optional[StepPlan] = None  # of the present step
        self._answer: Any = None  # response to the last JoinGroup
        self._assignor: Optional[Assignor] = None  # the one that the group has selected

    def __repr__(self) -> str:
        return '<ClassicMember %r%s>' % (self._membership, ' closed' if self._is_closed else '')

    # ------------------------------------------------------------ from any thread

    def polled(self, now: float) -> None:
        """See Member.polled()."""
        self._membership.polled_at = now
        if self._membership.waits_for_poll and not self._is_closed:
            self._loop.call_threadsafe(self._on_poll, now)

    @property
    def is_stable(self) -> bool:
        """See Member.is_stable."""
        return self._membership.state is ClassicMemberState.STABLE

    @property
    def can_commit(self) -> bool:
        """See Member.can_commit."""
        return self._membership.takes_commits

    @property
    def commits_held_only(self) -> bool:
        """See Member.commits_held_only."""
        return not self.is_stable

    def identity(self) -> ConsumerGroupMetadata:
        """See Member.identity()."""
        who, state = self._membership.who, self._membership.state
        return ConsumerGroupMetadata(
            self.settings.group_id,
            who.generation,
            who.member_id,
            self.settings.group_instance_id,
            _STATES.get(state, '<rebalancing>'),
        )

    # ------------------------------------------------------------ in the event loop

    def start(self) -> None:
        """See Member.start()."""
        if not self._membership.is_started:
            self._pool.cluster.add_listener(self._on_metadata)
        self._membership.start()

    def subscription_changed(self) -> None:
        """See Member.subscription_changed()."""
        self._read_topics()
        self._look_at_partitions()
        self._changed()

    def rejoin(self, reason: str) -> None:
        """See Member.rejoin()."""
        self._membership.rebalance(reason)
        self._changed()

    def commit_refused(
        self, error: KafkaError, who: Optional[ConsumerGroupMetadata] = None
    ) -> None:
        """See Member.commit_refused()."""
        code = getattr(error, 'errno_of_group', None)
        if code is None:
            code = getattr(error, 'errno', None)
        if code is not None:
            sender = None if who is None else Generation(who.generation_id, who.member_id)
            self._membership.on_commit(sender, code)
            self._changed()

    async def until_commits(self, refused: Optional[ConsumerGroupMetadata] = None) -> bool:
        """See Member.until_commits()."""
        member = self._membership
        was = None if refused is None else Generation(refused.generation_id, refused.member_id)
        while not member.takes_commits or member.who == was:
            if self._is_closed or not member.is_asking:
                return False
            await self._moved.wait()
        return True

    async def leave(self, reason: str, timeout: float) -> None:
        """See Member.leave()."""
        self._end_course()
        who = self._membership.leave()
        self._drop_step()
        self._leader.resign(self._read_topics() or ())
        self._show()
        await leave_group(self._loop, self._pool, self.settings, who, reason, timeout)

    def close(self) -> None:
        """See Member.close()."""
        if self._is_closed:
            return
        self._is_closed = True
        self._end_course()
        self._drop_step()
        self._moved.set()
        if self._membership.is_started:
            self._pool.cluster.remove_listener(self._on_metadata)
        self._alarm.cancel()

    # ------------------------------------------------------------ what happens

    def _on_poll(self, now: float) -> None:
        self._read_topics()
        self._membership.poll(now)
        self._changed()

    def _read_topics(self) -> Optional[FrozenSet[str]]:
        with self._lock:
            subscribed = self._subscription.subscription
            topics = None if subscribed is None else frozenset(subscribed)
        self._membership.set_topics(topics)
        return topics

    def _on_metadata(self, cluster: ClusterMetadata) -> None:
        if self._look_at_partitions():
            self._changed()

    def _look_at_partitions(self) -> bool:
        """Begin a rebalance if this member is the leader and the partitions have changed."""
        is_outdated = self._leader.is_outdated()
        if is_outdated:
            self._membership.rebalance(Reason.PARTITIONS.value)
        return is_outdated

    def _changed(self) -> None:
        """Resume the coroutine after a change of the membership."""
        if self._is_closed:
            return
        self._is_woken = True
        self._membership.begin_if_due()
        self._show()
        if self._task is None:
            self._task = self._loop.spawn(self._course())
            self._task.add_done_callback(self._on_end)
        elif self._waiter is not None:
            self._waiter.wake()

    def _show(self) -> None:
        """Publish the state of the membership, and notify the waiting commits and the consumer."""
        member = self._membership
        if member.begun != self._begun:
            self._begun, self._began_at = member.begun, self._loop.time()
            self._log.began(self._began_at, member.who.generation, member.reason)
        if self._plan is not None and member.next_step() != self._plan:
            if self.step is not None and self.step.withdraw():
                self.step = None
        self._moved.set()
        self._moved.clear()
        has_news = member.error is not self.error or member.adopted != self.rebalances
        self.error, self.rebalances = member.error, member.adopted
        self._arm()
        if has_news:
            self._on_change()

    def _end_course(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
        link, self._parking = self._parking, None
        if link is not None:  # no response is needed, and brokers before 2.3 would never send it
            link.close()

    def _drop_step(self) -> None:
        step, self.step, self._plan = self.step, None, None
        if step is not None:
            step.withdraw()

    def _on_end(self, task: Task[None]) -> None:
        """Fail the membership if a bug has ended the coroutine, so that poll() raises."""
        error = task.exception
        if error is None or isinstance(error, Cancelled) or self._task is not task:
            return
        self._task = None
        log.error('%r ends by a mistake', self, exc_info=error)
        self._membership.fail(KafkaError('the member of the group cannot go on: %r' % error))
        self._show()

    # ------------------------------------------------------------ the course of a rebalance

    async def _course(self) -> None:
        member = self._membership
        while True:
            self._is_woken = False
            member.begin_if_due()
            self._show()
            plan, need = member.next_step(), member.needs()
            if plan is not None:
                await self._take(plan)
            elif need is Need.JOIN:
                await self._join()
            elif need is Need.SYNC:
                await self._sync()
            elif not self._is_woken:
                self._waiter = Waiter()
                try:
                    await self._waiter
                finally:
                    self._waiter = None

    async def _take(self, plan: StepPlan) -> None:
        """Offer a step, and wait until the polling thread has finished it or it is withdrawn."""
        deadline = self._loop.time() + self._membership.rebalance_timeout
        step = RebalanceStep(
            self._loop, plan.kind, plan.partitions, plan.owned, plan.commits, deadline, plan.tells
        )
        self.step, self._plan = step, plan
        self._on_change()
        await step.finished()
        self.step = self._plan = None
        if not step.is_withdrawn:
            self._membership.step_done(plan)
            if self._membership.state is ClassicMemberState.STABLE:
                self._log.joined(self._membership.who.generation, len(plan.owned))
                if self.figures is not None:
                    self.figures.rebalanced(self._loop.time() - self._began_at)

    async def _link(self) -> Any:
        """Return the connection for JoinGroup and SyncGroup.

        None if connecting has failed: the error is handled here. The caller has to check its state
        again after this call, which may take long.
        """
        try:
            link = await self._loop.within(
                self.settings.request_timeout,
                self._pool.group_link(self.settings.group_id, parks=True),
            )
        except KafkaError as error:
            await self._on_unreachable(error)
            return None
        return link if link.session is not None else None

    async def _on_unreachable(self, error: KafkaError) -> None:
        """Look up the coordinator again, or surface an error that is not retriable."""
        member, settings = self._membership, self.settings
        if error.retriable:
            self._log.failed('finding the coordinator', error)
            self._pool.forget_coordinator(GROUP, settings.group_id)
        elif member.needs() is not Need.NOTHING:
            code = error.errno if isinstance(error, BrokerResponseError) else None
            if code is None or isinstance(error, UnsupportedVersionError):
                member.refuse(error)
            elif classic_error_action(Call.JOIN, code) is ClassicErrorAction.FATAL:
                member.fail(self._error(code))
            else:
                member.refuse(self._error(code))
            self._show()
        await self._pause()

    def _error(self, code: int) -> KafkaError:
        settings = self.settings
        return error_of(
            code, settings.group_id, settings.session_timeout, settings.group_instance_id
        )

    async def _pause(self) -> None:
        """Wait for the backoff, which grows with each consecutive failure."""
        self._failures += 1
        await self._loop.sleep(self._backoff(self._failures))

    def _backoff(self, failures: int) -> float:
        base, longest = self.settings.retry_backoff, self.settings.retry_backoff_max
        return backoff_seconds(base, longest, failures, self._chance.uniform(0.8, 1.2))

    # ------------------------------------------------------------ JoinGroup

    async def _join(self) -> None:
        link = await self._link()
        member = self._membership
        if link is None or member.needs() is not Need.JOIN:
            return
        try:
            version = choose_version(JoinGroupRequest, link.versions.ranges)
            request = join_request(
                self.settings, member.who, self._subscriptions(), member.reason, version
            )
        except (AssignorError, UnsupportedVersionError) as error:
            if not isinstance(error, AssignorError):
                # The detected versions may be wrong, or the broker may be upgraded: detect again.
                link.close()
            await self._refuse(error)
            return
        self._leader.resign(member.topics or ())
        self._note_times(version)
        member.joining()
        seconds = join_seconds(self.settings, version)
        answer = await self._ask(link, request, seconds, version)
        if answer is not None:
            await self._on_join(answer)

    def _note_times(self, version: int) -> None:
        settings, member = self.settings, self._membership
        seconds = rebalance_seconds(settings, version)
        session = session_seconds(settings, version)
        if session != settings.session_timeout and seconds != member.rebalance_timeout:
            log.warning(
                'group=%s: session_timeout_ms is %d here: brokers before 0.10.1 take no more',
                settings.group_id,
                round(session * 1000),
            )
        member.rebalance_timeout = seconds

    def _subscriptions(self) -> Any:
        member, rack = self._membership, self.settings.client_rack or None
        topics, generation = member.topics or frozenset(), member.who.generation
        return self._assignors.subscriptions(topics, member.owned, generation, rack)

    async def _ask(self, link: Any, request: Any, seconds: float, version: Optional[int]) -> Any:
        """Return the response to JoinGroup or SyncGroup, None after an error, which is handled."""
        began, self._parking = self._loop.time(), link
        try:
            answer = await link.request(request, seconds, version)
            if self.figures is not None:
                self.figures.asked(type(request).__name__, self._loop.time() - began)
            return answer
        except KafkaError as error:
            self._pool.forget_coordinator(GROUP, self.settings.group_id)
            if error.retriable:
                self._log.failed(type(request).__name__, error)
                self._membership.join_again()
            else:
                self._membership.refuse(error)
            self._show()
        finally:
            if self._parking is link:
                self._parking = None
        await self._pause()
        return None

    async def _refuse(self, error: KafkaError) -> None:
        """Stop joining with an error; the next attempt follows after poll() has raised it."""
        self._membership.refuse(error)
        self._show()
        await self._pause()

    async def _on_join(self, answer: Any) -> None:
        member = self._membership
        who = Generation(answer.generation_id, answer.member_id)
        action = member.on_join(answer.error_code, who, self._loop.time())
        if action is ClassicErrorAction.GOOD:
            self._answer = answer
            self._assignor = self._assignors.chosen(answer)
            if self._assignor is None:
                text = 'group %s has the protocol %s of type %s, which this member does not know'
                told = (self.settings.group_id, answer.protocol_name, answer.protocol_type)
                member.fail(InconsistentGroupProtocolError(text % told))
        await self._follow(action, 'JoinGroup', answer.error_code)

    async def _follow(self, action: ClassicErrorAction, what: str, code: int) -> None:
        """Do what the error code of a JoinGroup or SyncGroup response requires of the driver."""
        self._show()
        if action in (
            ClassicErrorAction.GOOD,
            ClassicErrorAction.TAKE_ID,
            ClassicErrorAction.LOST,
            ClassicErrorAction.LOST_ID,
        ):
            self._failures = 0
            return
        if action is ClassicErrorAction.REFIND:
            self._pool.forget_coordinator(GROUP, self.settings.group_id)
        if action in (ClassicErrorAction.REFIND, ClassicErrorAction.RETRY):
            self._log.failed(what, self._error(code))
        if action is not ClassicErrorAction.FATAL:
            await self._pause()

    # ------------------------------------------------------------ SyncGroup

    async def _sync(self) -> None:
        member, answer, assignor = self._membership, self._answer, self._assignor
        assert assignor is not None
        who, given = member.who, {}
        if answer.leader == who.member_id:
            try:
                given = await self._lead(assignor, answer)
            except (AssignorError, ProtocolError) as error:
                if self._is_still(who):
                    await self._refuse(error)
                return
        link = await self._link()
        if link is None or not self._is_still(who):
            return
        member.syncing()
        request = sync_request(self.settings, who, assignor.name, given)
        answer = await self._ask(link, request, self.settings.request_timeout, None)
        if answer is not None:
            await self._on_sync(assignor, answer)

    def _is_still(self, who: Generation) -> bool:
        return self._membership.who == who and self._membership.needs() is Need.SYNC

    async def _lead(self, assignor: Assignor, answer: Any) -> Dict[str, bytes]:
        """Assign, or only watch the topics if the group keeps its assignment (KIP-814).

        Raises AssignorError; ProtocolError if the subscription of a member cannot be decoded.
        """
        members = subscriptions_of(answer)
        await self._leader.watch(members, self._membership.topics or ())
        if answer.skip_assignment:
            self._leader.kept()
            return {}
        self._leader.assigned()
        return self._assignors.share(assignor, self._pool.cluster, members)

    async def _on_sync(self, assignor: Assignor, answer: Any) -> None:
        member, code = self._membership, answer.error_code
        assigned: Sequence[TopicPartition] = ()
        if not code:
            try:
                generation = member.who.generation
                assigned = self._assignors.read(assignor, answer.assignment, generation)
            except (AssignorError, ProtocolError) as error:
                await self._refuse(error)
                return
        action = member.on_sync(code, set(assigned), self._loop.time())
        is_foreign = action is ClassicErrorAction.GOOD and member.needs() is Need.JOIN
        self._foreign = self._foreign + 1 if is_foreign else 0
        await self._follow(action, 'SyncGroup', code)
        # A concurrent change of the subscription causes this once, a faulty assignor repeatedly.
        if self._foreign > 1:
            await self._loop.sleep(self._backoff(self._foreign - 1))

    # ------------------------------------------------------------ time

    def _arm(self) -> None:
        """Set the timer for the next heartbeat or missed poll."""
        if not self._is_closed:
            self._alarm.set(self._membership.next_time(self._loop.time()))

    def _on_timer(self) -> None:
        member, now = self._membership, self._loop.time()
        if self._is_closed:
            return
        if member.poll_by <= now:
            self._on_late(now)
        elif member.is_beating and member.heartbeats.due <= now:
            self._heartbeats.send(now)
        self._arm()

    def _on_heartbeat(self) -> None:
        """Check what the response to a heartbeat has changed."""
        heartbeats = self._membership.heartbeats
        if self.figures is not None and heartbeats.took is not None:
            self.figures.heartbeat(heartbeats.answered_at, heartbeats.took)
            heartbeats.took = None
        if (
            self._membership.state is not ClassicMemberState.STABLE
            or self._membership.error is not self.error
        ):
            self._changed()
        self._arm()

    def _on_late(self, now: float) -> None:
        """Leave the group: the program has not polled for too long."""
        settings = self.settings
        text = 'no poll for %.0f s' % (now - self._membership.polled_at)
        log.warning(
            'group=%s: %s, so that this member leaves; poll more often, lower max_poll_records or'
            ' raise max_poll_interval_ms=%d',
            settings.group_id,
            text,
            round(settings.rebalance_timeout * 1000),
        )
        who = self._membership.expire()
        self._loop.spawn(
            leave_group(self._loop, self._pool, settings, who, text, settings.request_timeout)
        )
        self._changed()


async def leave_group(
    loop: EventLoop,
    pool: Pool,
    settings: GroupSettings,
    who: Generation,
    reason: str,
    timeout: float,
) -> None:
    """Send LeaveGroup within `timeout` seconds; errors of brokers are logged, not raised.

    Does nothing for a static member, which returns or whose session times out, nor for a member
    without an id, which has not joined.
    """
    if not who.member_id or settings.group_instance_id is not None:
        return
    try:
        await loop.within(timeout, _send_leave(pool, settings, who, reason))
    except KafkaError as error:
        log.info(
            'group=%s: the coordinator was not told that %s leaves, and notices it after'
            ' session_timeout_ms=%d: %s',
            settings.group_id,
            who.member_id,
            round(settings.session_timeout * 1000),
            error,
        )


async def _send_leave(pool: Pool, settings: GroupSettings, who: Generation, reason: str) -> None:
    link = await pool.group_link(settings.group_id)
    version = choose_version(LeaveGroupRequest, session_of(link).versions.ranges)
    await link.request(leave_request(settings, who, reason, version), None, version)
