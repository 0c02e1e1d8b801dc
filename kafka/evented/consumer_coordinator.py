"""ConsumerCoordinator: membership in a consumer group over the evented client (1.x).

Adds the consumer protocol, committed offsets and periodic commits to base_coordinator.py, which has
joining and heartbeats, and says which programs use it. The offset requests and the meaning of their
error codes are those of KafkaConsumer (coordinator/commits/messages.py,
coordinator/commits/error_actions.py). The program's rebalance listeners are called in calls of this
object.
"""

from __future__ import annotations

import functools
import logging
import time
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple

from kafka.coordinator.assignors.adapt import adapt_assignors, decode_subscription
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.subscriptions import decode_assignment
from kafka.coordinator.commits.error_actions import (
    OffsetErrorAction,
    Trouble,
    commit_trouble,
    fetch_trouble,
)
from kafka.coordinator.commits.messages import (
    commit_request,
    committed_codes,
    fetch_request,
    fetched,
)
from kafka.coordinator.commits.schedule import AutoCommit
from kafka.errors import (
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    NodeNotReadyError,
    UnknownMemberIdError,
)
from kafka.evented.base_coordinator import BaseCoordinator, as_struct
from kafka.future import Future
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kafka.client import KafkaClient
    from kafka.cluster import ClusterMetadata

__all__ = ['AutoCommitTask', 'ConsumerCoordinator']

log = logging.getLogger('kafka.coordinator.consumer')

Offsets = Mapping[TopicPartition, OffsetAndMetadata]


def _took_note(offsets: Any, response: Any) -> bool:
    return True


class ConsumerCoordinator(BaseCoordinator):
    """A member of a consumer group (1.x).

    Arguments: client: an evented KafkaClient; subscription: a SubscriptionState; metrics,
        metric_group_prefix: not used; configs: those of DEFAULT_CONFIG, others are ignored.

    Attributes: as BaseCoordinator.
    """

    DEFAULT_CONFIG: Dict[str, Any] = {
        **BaseCoordinator.DEFAULT_CONFIG,
        'enable_auto_commit': True,
        'auto_commit_interval_ms': 5000,
        'default_offset_commit_callback': _took_note,
        'assignors': (RangePartitionAssignor, RoundRobinPartitionAssignor),
    }

    def __init__(
        self,
        client: KafkaClient,
        subscription: Any,
        metrics: Any = None,
        metric_group_prefix: str = 'consumer',
        **configs: Any,
    ) -> None:
        super().__init__(client, metrics, metric_group_prefix, **configs)
        self._subscription = subscription
        self._adapted = adapt_assignors(self.config['assignors'])
        self._partitions: Dict[str, int] = {}  # number of each topic, as last seen
        self._auto_commit_task: Optional[AutoCommitTask] = None
        if self.config['enable_auto_commit'] and self._keeps_offsets():
            self._auto_commit_task = AutoCommitTask(
                self, self.config['auto_commit_interval_ms'] / 1000
            )
        cluster = client.cluster
        self._listener: Optional[_Listener] = _Listener(weakref.WeakMethod(self._note_metadata))
        cluster.add_listener(self._listener)
        cluster.request_update()

    def _keeps_offsets(self) -> bool:
        """Return True if the group can have offsets: with a group id, from 0.8.1 on."""
        return self.group_id is not None and self.config['api_version'] >= (0, 8, 1)

    # ------------------------------------------------------------ the consumer protocol

    def protocol_type(self) -> str:
        """Return the protocol type of consumer groups."""
        return 'consumer'

    def group_protocols(self) -> List[Tuple[str, Any]]:
        """Return (name, metadata struct) of each assignor.

        Raises IllegalStateError, an AssertionError, without a subscription.
        """
        return [
            (each.name, each.metadata(self._topics())) for each in self.config['assignors'] or ()
        ]

    def _topics(self) -> Any:
        if self._subscription.subscription is None:
            raise IllegalStateError('there is no subscription: nothing to tell the group')
        return set(self._subscription.subscription)

    def _protocols(self) -> Iterable[Tuple[str, Any]]:
        owned = list(self._subscription.assigned_partitions())
        topics = self._topics()
        return [
            (each.name, each.subscription(topics, owned, self.generation)) for each in self._adapted
        ]

    def _lookup_assignor(self, name: str) -> Any:
        return next((each for each in self._adapted if each.name == name), None)

    # ------------------------------------------------------------ joining

    def need_rejoin(self) -> bool:
        """Return True if the group has to assign partitions to this member again."""
        subscription = self._subscription
        return bool(
            subscription.partitions_auto_assigned()
            and (super().need_rejoin() or subscription.needs_partition_assignment)
        )

    def _on_join_prepare(self, generation: int, member_id: str) -> None:
        self._maybe_auto_commit_offsets_sync()
        subscription = self._subscription
        self._tell('on_partitions_revoked', set(subscription.assigned_partitions()))
        subscription.give_back(subscription.assigned_partitions())
        subscription.mark_for_reassignment()

    def _perform_assignment(
        self, leader_id: str, protocol: str, members: List[Tuple[str, bytes]]
    ) -> Dict[str, Any]:
        wanted = {name: decode_subscription(data, name) for name, data in members}
        topics = {topic for each in wanted.values() for topic in each.topics}
        self._subscription.group_subscribe(topics)
        self._learn(self._subscription.group_subscription())
        assignor = self._lookup_assignor(protocol)
        if assignor is None:
            raise IllegalStateError('the group chose %r, which is not known here' % (protocol,))
        shares: Dict[str, Any] = assignor.assign(self._client.cluster, wanted)
        return shares

    def _learn(self, topics: Any) -> None:
        """Load the metadata of topics into the client."""
        future = self._client.set_topics(topics)
        ends_at = time.monotonic() + self.config['request_timeout_ms'] / 1000
        while not future.is_done and time.monotonic() < ends_at:
            self._client.poll(timeout_ms=1000, future=future)
        if future.failed() and not future.exception.retriable:
            raise future.exception

    def _on_join_complete(
        self, generation: int, member_id: str, protocol: str, assignment: bytes
    ) -> None:
        subscription = self._subscription
        partitions = decode_assignment(assignment)
        try:
            subscription.assign_from_subscribed(partitions)
        except ValueError as error:  # the subscription changed meanwhile
            log.info('group %s assigned what is not wanted any more: %s', self.group_id, error)
            self.rejoin_needed = True
            return
        subscription.needs_fetch_committed_offsets = True
        assignor = self._lookup_assignor(protocol)
        if assignor is not None:
            assignor.on_assignment(assignment, generation)
        if self._auto_commit_task is not None:
            self._auto_commit_task.enable()
        self._tell('on_partitions_assigned', set(subscription.assigned_partitions()))

    def _tell(self, what: str, partitions: Any) -> None:
        """Call the program's rebalance listener; what it raises is logged (1.x)."""
        listener = self._subscription.listener
        if listener is None:
            return
        try:
            getattr(listener, what)(partitions)
        except Exception:
            log.exception('%s() of the listener of group %s failed', what, self.group_id)

    def _note_metadata(self, cluster: ClusterMetadata) -> None:
        self._handle_metadata_update(cluster)  # looked up each time: programs may replace it

    def _handle_metadata_update(self, cluster: ClusterMetadata) -> None:
        """Subscribe to topics that a pattern now matches; rejoin when partition counts change."""
        subscription = self._subscription
        if not subscription.partitions_auto_assigned():
            return
        if subscription.subscribed_pattern is not None:
            found = {each for each in cluster.topics() if subscription.matches(each)}
            if subscription.change_subscription(found):
                self._client.set_topics(subscription.group_subscription())
        counts = {
            topic: len(cluster.partitions_for_topic(topic) or ())
            for topic in subscription.group_subscription()
        }
        if counts == self._partitions:
            return
        self._partitions = counts
        if self.config['api_version'] >= (0, 9) and self.group_id is not None:
            subscription.mark_for_reassignment()
        else:  # no group, or before 0.9: this consumer gets all partitions
            subscription.assign_from_subscribed(
                [TopicPartition(topic, n) for topic, count in counts.items() for n in range(count)]
            )

    # ------------------------------------------------------------ committed offsets

    def refresh_committed_offsets_if_needed(self) -> None:
        """Request the committed offsets of the assignment, if they may have changed.

        They are stored as ``committed`` of each state. Raises as fetch_committed_offsets().
        """
        subscription = self._subscription
        if not subscription.needs_fetch_committed_offsets:
            return
        found = self.fetch_committed_offsets(subscription.assigned_partitions())
        for partition, offset in found.items():
            if subscription.is_assigned(partition):
                subscription.assignment[partition].committed = offset
        subscription.needs_fetch_committed_offsets = False

    def fetch_committed_offsets(
        self, partitions: Iterable[TopicPartition]
    ) -> Dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets of the partitions that have one.

        Raises non-retriable errors of a broker, and KafkaTimeoutError after request_timeout_ms.
        """
        left = list(partitions)
        found: Dict[TopicPartition, OffsetAndMetadata] = {}
        if left:
            self._repeat(lambda: self._fetch_once(left, found))
        return found

    def _fetch_once(
        self, asked: List[TopicPartition], found: Dict[TopicPartition, OffsetAndMetadata]
    ) -> Optional[Trouble]:
        self.ensure_coordinator_known()
        version = 1 if self.config['api_version'] >= (0, 8, 2) else 0
        request = fetch_request(self.group_id, asked, None, {}, version)
        answer = fetched(self._ask(self.coordinator_id, request, version), self.group_id, {})
        for partition, offset in answer.offsets.items():
            if offset is not None:
                found[partition] = offset
        return fetch_trouble(self.group_id, asked, answer.error_code, answer.codes)

    def commit_offsets_sync(self, offsets: Offsets) -> None:
        """Commit offsets, {TopicPartition: OffsetAndMetadata}; an empty dict has no effect.

        Raises CommitFailedError if the group has rebalanced without this member, which rejoins;
        non-retriable errors of a broker; KafkaTimeoutError after request_timeout_ms.
        """
        if offsets:
            self._repeat(lambda: self._commit_once(offsets))

    def _commit_once(self, offsets: Offsets) -> Optional[Trouble]:
        self.ensure_coordinator_known()
        request, version = self._commit_request(offsets)
        return self._judge(offsets, self._ask(self.coordinator_id, request, version))

    def _commit_request(self, offsets: Offsets) -> Tuple[Any, int]:
        release = self.config['api_version']
        version = 2 if release >= (0, 9) else 1 if release >= (0, 8, 2) else 0
        joined = version == 2 and self._subscription.partitions_auto_assigned()
        generation = self.generation if joined else -1
        who = ConsumerGroupMetadata(self.group_id, generation, self.member_id if joined else '')
        return commit_request(self.group_id, offsets, who, {}, version), version

    def _judge(self, offsets: Offsets, answer: Any) -> Optional[Trouble]:
        """Apply the response to a commit; return the trouble that it reports, if any."""
        codes = committed_codes(answer, {})
        trouble = commit_trouble(self.group_id, offsets, codes, self.generation)
        for partition, code in codes.items():
            if not code and self._subscription.is_assigned(partition):
                self._subscription.assignment[partition].committed = offsets[partition]
        if trouble is not None and trouble.action in (
            OffsetErrorAction.MOVED,
            OffsetErrorAction.FENCED,
        ):
            if trouble.code == UnknownMemberIdError.errno:
                self.member_id = ''
            self.rejoin_needed = True
            if self._subscription.partitions_auto_assigned():
                self._subscription.mark_for_reassignment()
        return trouble

    def _repeat(self, once: Callable[[], Optional[Trouble]]) -> None:
        """Repeat an exchange until it succeeds. Raises errors that no retry can cure."""
        ends_at = time.monotonic() + self.config['request_timeout_ms'] / 1000
        while True:
            try:
                trouble = once()
            except KafkaError as error:
                if not error.retriable:
                    raise
                trouble = Trouble(OffsetErrorAction.REFIND, error)
            if trouble is None:
                return
            if trouble.action is OffsetErrorAction.REFIND:
                self.coordinator_dead(trouble.error)
            if not trouble.may_repeat or trouble.action is OffsetErrorAction.WAIT_EPOCH:
                raise trouble.error
            if time.monotonic() >= ends_at:
                raise KafkaTimeoutError(
                    'group %s: nothing came of it within request_timeout_ms; the last try: %s'
                    % (self.group_id, trouble.error)
                ) from trouble.error
            self._back_off()

    def commit_offsets_async(
        self, offsets: Offsets, callback: Optional[Callable[[Any, Any], Any]] = None
    ) -> Future:
        """Commit offsets without waiting, in a single attempt.

        Arguments: callback: called in a later poll() of the client with the offsets, and True or
        the error; None for default_offset_commit_callback.
        Returns: a future of True; it fails with the error.
        """
        told = callback or self.config['default_offset_commit_callback']
        future = Future()
        future.add_both(functools.partial(told, offsets))
        if not offsets:
            return future.success(True)
        if self.coordinator_unknown():
            # An asynchronous call must not block, so the next call that may block looks it up.
            self._client.schedule(functools.partial(self._refuse, future), time.time())
            return future
        self._send_commit(offsets, future)
        return future

    def _refuse(self, future: Future) -> None:
        future.failure(
            NodeNotReadyError('the coordinator of group %s is not known' % self.group_id)
        )

    def _send_commit(self, offsets: Offsets, future: Future) -> None:
        request, version = self._commit_request(offsets)
        sent = self._client.send(self.coordinator_id, as_struct(request, version))
        sent.add_callback(self._committed, offsets, future)
        sent.add_errback(self._not_committed, future)

    def _committed(self, offsets: Offsets, future: Future, answer: Any) -> None:
        trouble = self._judge(offsets, answer.declared())
        if trouble is None:
            future.success(True)
            return
        if trouble.action is OffsetErrorAction.REFIND:
            self.coordinator_dead(trouble.error)
        future.failure(trouble.error)

    def _not_committed(self, future: Future, error: Any) -> None:
        self.coordinator_dead(error)
        future.failure(error)

    # ------------------------------------------------------------ closing

    def _maybe_auto_commit_offsets_sync(self) -> None:
        """Commit the consumed offsets if auto-commit is enabled; errors are logged."""
        if self._auto_commit_task is None:
            return
        try:
            self.commit_offsets_sync(self._subscription.all_consumed_offsets())
        except KafkaError as error:
            log.error('group %s: offsets were not committed: %s', self.group_id, error)

    def close(self) -> None:
        """Commit if auto-commit is enabled, and leave the group; broker errors are logged.

        Called again it has no effect.
        """
        if self._listener is None:
            return
        self._client.cluster.remove_listener(self._listener)
        self._listener = None
        self._maybe_auto_commit_offsets_sync()
        if self._auto_commit_task is not None:
            self._auto_commit_task.disable()
        super().close()


class AutoCommitTask:
    """Commits periodically, during the client's poll().

    Arguments: coordinator: the member; interval: seconds.
    """

    def __init__(self, coordinator: ConsumerCoordinator, interval: float) -> None:
        self._of = weakref.ref(coordinator)
        self._client = coordinator._client
        backoff = coordinator.config['retry_backoff_ms'] / 1000
        self._times = AutoCommit(interval, backoff, time.time())
        self._enabled = False

    def enable(self) -> None:
        """Start periodic commits, or restart the interval."""
        self._enabled = True
        self._times.reset(time.time())
        self._client.schedule(self, self._times.next_at)

    def disable(self) -> None:
        """Stop periodic commits."""
        self._enabled = False
        self._client.unschedule(self)

    def __call__(self) -> None:
        """Commit if it is due."""
        coordinator = self._of()
        if coordinator is None or not self._enabled:
            return
        now = time.time()
        if self._times.due(now) and not coordinator.need_rejoin():
            self._times.began(now)
            offsets = coordinator._subscription.all_consumed_offsets()
            coordinator.commit_offsets_async(offsets).add_both(self._ended)
        self._client.schedule(self, max(self._times.next_at, now + 0.05))

    def _ended(self, outcome: Any) -> None:
        is_fine = not isinstance(outcome, KafkaError) or not outcome.retriable
        self._times.ended(time.time(), ok=is_fine)
        if self._enabled:
            self._client.schedule(self, self._times.next_at)


class _Listener:
    """Calls a coordinator's method on new metadata. Arguments: tell: a weak reference to it."""

    def __init__(self, tell: weakref.WeakMethod[Callable[[ClusterMetadata], None]]) -> None:
        self._tell = tell

    def __call__(self, cluster: ClusterMetadata) -> None:
        tell = self._tell()
        if tell is not None:
            tell(cluster)
