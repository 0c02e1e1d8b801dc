"""The engine of a consumer: network client, subscription, fetch manager, group member and commits.

It makes these parts according to the options and the release of the brokers, starts and closes
them. A public class is built on it: kafka.consumer.modern, for KafkaConsumer, adds the methods that
programs call, the deserializers and the blocking. No part refers to that class, so that it can be
garbage collected.

Turns of the loop and the thread of the program both use the subscription and the fetch buffer;
``lock`` guards them.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import threading
from collections import deque
from typing import Any, Callable, Deque, Iterable, List, Optional, TypeVar

from kafka import config as options
from kafka.consumer.fetch.completed_fetch import CompletedFetch
from kafka.consumer.fetch.manager import FetchManager, FetchSettings
from kafka.consumer.figures import figures_of
from kafka.consumer.metadata import ConsumerMetadata
from kafka.consumer.offsets_request_manager import OffsetsRequestManager
from kafka.consumer.subscription_state import SubscriptionState
from kafka.coordinator.assignors.adapt import adapt_assignors
from kafka.coordinator.classic.coordinator import ClassicMember
from kafka.coordinator.commits.manager import FetchedOffsets, OffsetCommits
from kafka.coordinator.commits.member_commit import MemberCommit
from kafka.coordinator.kip848.coordinator import ConsumerMember
from kafka.coordinator.member import GroupSettings, Member
from kafka.errors import IllegalStateError, KafkaError, TopicAuthorizationFailedError
from kafka.net.client import NetworkClient
from kafka.net.loop.tasks import CoroutineCall, Task
from kafka.offsets.lookups import OffsetLookups
from kafka.structs import ConsumerGroupMetadata, TopicPartition

__all__ = ['Engine']

log = logging.getLogger(__name__)

T = TypeVar('T')

#: The longest wait of a Fetch, in seconds, at a broker that had no records for a while, unless the
#: program sets it. Records are not delayed by it: an idle consumer only sends fewer requests.
IDLE_WAIT = 5.0
#: The time-out for leaving the group of a consumer that was garbage collected.
_LEAVE_SECONDS = 5.0
#: The first releases with groups, with offsets stored in Kafka, and with stored offsets at all.
_GROUPS_SINCE, _KAFKA_SINCE, _ZOOKEEPER_SINCE = (0, 9), (0, 8, 2), (0, 8, 1)


class Engine:
    """The parts of one consumer.

    Arguments:
        config: the Options of the consumer.
        make: makes a CompletedFetch of a partition's data in a Fetch response.
        client: the network client, with its loop.

    Attributes:
        lock; client; loop and pool: those of the client.
        subscription; fetcher; positions; lookups; following: its parts, the last four once built.
        commits: None without group_id, and on brokers that store no offsets.
        member: the member of the group; None without group_id, and on brokers before 0.9.
        errors: for the next poll() to raise.
        figures: the metrics, None with metrics_enabled=False.
        is_woken: whether wakeup() was called and no call has raised WakeupError for it yet; set and
            cleared by the class built on the engine.
    """

    def __init__(
        self, config: Any, make: Callable[..., CompletedFetch], client: NetworkClient
    ) -> None:
        # Dropped once the parts are built: objects of the program in it may refer to the consumer.
        self._config = config
        # Guards the subscription and the fetch buffer; no other lock is taken while it is held.
        # Reentrant: the garbage collector may run a finalizer inside, which may call the consumer.
        self.lock = threading.RLock()
        self.errors: Deque[KafkaError] = deque()
        self.subscription = SubscriptionState(config['auto_offset_reset'])
        self._group_id = config['group_id']
        self._request_timeout = config['request_timeout_ms'] / 1000
        self.client = client
        self.loop, self.pool = client.loop, client.pool
        self.figures: Any = None
        self.commits: Optional[OffsetCommits] = None
        self.member: Optional[Member] = None
        self.is_woken = False
        self._search: Optional[Task[None]] = None
        self._make = make
        self._is_built = False

    def __repr__(self) -> str:
        return '<Engine %r%s>' % (self.pool, '' if self._is_built else ' not built')

    # ------------------------------------------------------------ beginning

    def begin(self, limit: Optional[float] = None) -> None:
        """Start the thread of the loop and build the parts.

        Blocks until a broker has responded if api_version is None.

        Arguments: limit: seconds for the bootstrap; None for the option bootstrap_timeout_ms or
            api_version_auto_timeout_ms.
        Raises: NoBrokersAvailable if no broker responds; InvalidOptionError for options that
            brokers of that release do not support.
        """
        self.loop.start()
        if self._config['api_version'] is None:
            self.client.connect(self._limit() if limit is None else limit)
        self._build_for_release()

    async def begin_in_turns(self, limit: Optional[float] = None) -> None:
        """Bootstrap and build the parts as begin(), for a class that must not block.

        Starts no thread: the caller drives the loop.
        """
        await self.client.bootstrap(self._limit() if limit is None else limit)
        self._build_for_release()

    def _limit(self) -> Optional[float]:
        names = ('bootstrap_timeout_ms', 'api_version_auto_timeout_ms')
        given = (self._config[name] / 1000 for name in names if name in self._config.given)
        return next(given, None)

    @property
    def has_begun(self) -> bool:
        """Whether the cluster has been bootstrapped."""
        return self.client.is_bootstrapped

    def search(self) -> None:
        """Start to bootstrap, with retries, unless that is in progress; in a turn of the loop."""
        if not self.has_begun and (self._search is None or self._search.done):
            self._search = self.loop.spawn(self._find())

    async def _find(self) -> None:
        while not self.has_begun:
            try:
                await self.client.bootstrap(None)
            except KafkaError as error:
                if not error.retriable:
                    self.errors.append(error)
                    return
                log.warning('the cluster is not found yet: %s', error)
        self.look()

    def _build_for_release(self) -> None:
        if self._config['api_version'] is None:
            options.settle_release(self._config, self.client.release())
        self._build()

    def _build(self) -> None:
        config, loop, pool = self._config, self.loop, self.pool
        seconds: Any = {
            name[:-3]: config[name] / 1000
            for name in ('request_timeout_ms', 'retry_backoff_ms', 'retry_backoff_max_ms')
        }
        read_committed = config['isolation_level'] == 'read_committed'
        if config['metrics_enabled']:
            assignment, cluster = self.subscription.assigned_partitions, pool.cluster
            self.figures = figures_of(
                config,
                loop.time,
                lambda: len(assignment()),
                lambda: loop.time() - cluster.refreshed_at,
            )
        self._build_group(seconds)
        self.lookups = OffsetLookups(loop, pool, read_committed, **seconds)
        self.positions = OffsetsRequestManager(
            loop,
            pool,
            self.subscription,
            self.lock,
            self.lookups,
            functools.partial(self._committed, self.commits) if self.commits else None,
            on_change=self.look,
        )
        settings = FetchSettings(
            min_bytes=config['fetch_min_bytes'],
            max_wait=config['fetch_max_wait_ms'] / 1000,
            idle_wait=_idle_wait(config),
            max_bytes=config['fetch_max_bytes'],
            max_partition_bytes=config['max_partition_fetch_bytes'],
            max_buffered_bytes=config['fetch_max_buffered_bytes'],
            check_crcs=config['check_crcs'],
            read_committed=read_committed,
            client_rack=config['client_rack'],
            use_sessions=config['enable_incremental_fetch_sessions'],
            metadata_max_age=config['metadata_max_age_ms'] / 1000,
            **seconds,
        )
        self.fetcher = FetchManager(
            loop, pool, self.subscription, self.lock, settings, self._make, self.look, self.figures
        )
        self.following = ConsumerMetadata(
            pool, self.subscription, self.lock, self.member, self.look,
            config['exclude_internal_topics'],
        )  # fmt: skip
        pool.cluster.add_listener(self.following)
        self._is_built = True
        self._config = None

    def _build_group(self, seconds: Any) -> None:
        config, release = self._config, self._config['api_version']
        if config['group_id'] is None or (release is not None and release < _ZOOKEEPER_SINCE):
            return
        self.commits = OffsetCommits(
            self.loop,
            self.pool,
            config['group_id'],
            is_zookeeper=release is not None and release < _KAFKA_SINCE,
            **seconds,
        )
        if release is not None and release < _GROUPS_SINCE:
            return
        settings = GroupSettings(
            group_id=config['group_id'],
            group_instance_id=config['group_instance_id'],
            session_timeout=config['session_timeout_ms'] / 1000,
            rebalance_timeout=config['max_poll_interval_ms'] / 1000,
            heartbeat_interval=config['heartbeat_interval_ms'] / 1000,
            client_rack=config['client_rack'],
            remote_assignor=config['group_remote_assignor'],
            **seconds,
        )
        self.subscription.defers_revocation = True
        common = self.loop, self.pool, settings, self.subscription, self.lock
        if config['group_protocol'] == 'consumer':
            self.member = ConsumerMember(*common, self.look)
        else:
            assignors = adapt_assignors(config['partition_assignment_strategy'])
            self.member = ClassicMember(*common, assignors, self.look)
        self.member.figures = self.figures
        self.member.start()

    async def _committed(
        self, commits: OffsetCommits, partitions: List[TopicPartition]
    ) -> FetchedOffsets:
        who = self.member.identity if isinstance(self.member, ConsumerMember) else None
        return await commits.fetch_each(partitions, self._request_timeout, who)

    def standing(self, partitions: Iterable[TopicPartition]) -> Any:
        """Return the identity for a commit of these partitions: generation and member id.

        For OffsetCommits.commit(): a MemberCommit if the group assigned the partitions, else a
        ConsumerGroupMetadata.
        """
        if self.member is None or not self.subscription.partitions_auto_assigned():
            return self.identity()
        return MemberCommit(self.loop, self.member, self.subscription, self.lock, partitions)

    def identity(self) -> ConsumerGroupMetadata:
        """Return group id, generation and member id of this consumer."""
        if self.member is None:
            return ConsumerGroupMetadata(self._group_id)
        return self.member.identity()

    # ------------------------------------------------------------ turns

    def look(self) -> None:
        """Send the position lookups and fetches that are needed now; in a turn of the loop."""
        if self.has_begun and self._is_built:
            self.positions.look()
            self.fetcher.look()

    def nudge(self) -> None:
        """Call look() in the next turn; from any thread."""
        self.loop.call_threadsafe(self.look)

    def nudge_if_open(self) -> None:
        """Call look() in the next turn unless the loop is closed; for clean-up: must not raise."""
        try:
            self.nudge()
        except IllegalStateError:  # a signal handler has closed the consumer
            pass

    def has_news(self) -> bool:
        """Return True if poll() has something to do: records, an error, a rebalance step."""
        member = self.member
        if member is not None:
            step = member.step
            if (step and not step.is_begun) or member.error or member.errors:
                return True
        if self.errors or self.fetcher.has_news():
            return True
        return self.positions.has_error()

    def next_error(self) -> Optional[KafkaError]:
        """Return the error that poll() has to raise now, or None."""
        if self.errors:
            return self.errors.popleft()
        error = self._error_of_fetches() or self._error_of_member()
        return error or self.positions.take_error()

    def _error_of_fetches(self) -> Optional[KafkaError]:
        """Return an error of the fetch manager; topics that are not read any more are left out."""
        errors: Deque[KafkaError] = self.fetcher.errors
        while errors:
            error = errors.popleft()
            if not isinstance(error, TopicAuthorizationFailedError):
                return error
            with self.lock:
                denied = error.args[0] & self.subscription.topics()
            if denied:
                return TopicAuthorizationFailedError(denied)
        return None

    def _error_of_member(self) -> Optional[KafkaError]:
        member = self.member
        if member is None:
            return None
        error = member.errors.popleft() if member.errors else None
        if isinstance(error, TopicAuthorizationFailedError):
            error = self._denial(error)
        return error or member.error

    def _denial(self, error: KafkaError) -> Optional[KafkaError]:
        """Return the coordinator's authorization error; None if other topics are subscribed now."""
        topics = error.args[0]
        if not all(map(self.subscription.matches, topics)):
            return None
        # The error names all topics of the request; metadata may show which are not authorized.
        denied = topics & self.pool.cluster.unauthorized_topics
        return TopicAuthorizationFailedError(denied) if denied else error

    # ------------------------------------------------------------ blocking calls

    def wait(self, is_done: Callable[[], Any], seconds: float) -> bool:
        """Block until is_done() is true; return False on time-out, in seconds."""
        return bool(self.loop.wait(is_done, seconds if seconds < math.inf else None))

    def run(self, call: CoroutineCall[T], seconds: float) -> T:
        """Bootstrap if needed, make a call of a coroutine, and block for its result.

        Arguments: seconds: the time-out, bootstrap included.
        Raises: KafkaTimeoutError; what the coroutine raises.
        """
        begin = CoroutineCall(self._after_beginning, call, seconds)
        found: T = self.loop.run(begin, seconds * 1.1 + 1.0)
        return found

    async def _after_beginning(self, call: CoroutineCall[T], seconds: float) -> T:
        if not self.has_begun:
            await self.client.bootstrap(seconds)
        # Slightly longer than the time-out of the coroutine itself, whose error says more.
        return await self.loop.within(seconds * 1.05 + 0.1, call)

    def close(self, seconds: float) -> None:
        """Close all parts and the loop within `seconds`; does not leave the group."""
        if self._is_built:
            with contextlib.suppress(KeyError):  # removed by a close() that was interrupted
                self.pool.cluster.remove_listener(self.following)
            try:
                self.loop.call_threadsafe(self._end)
            except IllegalStateError:  # after a fork, or closed by another thread
                pass
        self.loop.close(max(0.1, min(seconds, 5.0)))

    def retire(self) -> None:
        """Leave the group without a commit, and close, in turns of the loop.

        Called by the finalizer of a consumer that was collected without close().
        """
        self.loop.call_from_finalizer(self._begin_to_retire)

    def _begin_to_retire(self) -> None:
        self.loop.spawn(self._retire())

    async def _retire(self) -> None:
        try:
            if self.member is not None and self.subscription.partitions_auto_assigned():
                log.info('group=%s: a consumer was collected that was not closed', self._group_id)
                await self.member.leave('the consumer was collected', _LEAVE_SECONDS)
            if self.figures is not None:
                self.figures.metrics.close()
        finally:
            self._end()
            self.loop.close()  # takes effect after this turn

    def _end(self) -> None:
        for part in (self.member, self.positions, self.fetcher):
            if part is not None:
                part.close()


def _idle_wait(config: Any) -> float:
    """Return the seconds that a Fetch of an idle consumer may wait at the broker.

    0 if the program sets fetch_max_wait_ms, and if fetch_min_bytes is more than 1: a long wait for
    more bytes would delay the records that have arrived.
    """
    is_ours = 'fetch_max_wait_ms' not in config.given and config['fetch_min_bytes'] <= 1
    return IDLE_WAIT if is_ours else 0.0
