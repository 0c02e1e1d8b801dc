"""OffsetsRequestManager: finds the positions of assigned partitions.

It looks up committed offsets, resets and validates positions. The engine of a consumer makes one.
look() and all responses run in turns of the loop; the subscription and the errors are read under
the consumer's lock. Validation follows KIP-320.

At most one request of each kind at a time goes to a node, and one to the coordinator, for all
partitions that need it then: partitions assigned together get their positions together. After a
failed request each partition backs off. An error that only the program can fix is kept, and
take_error() returns it once per call; the request is retried meanwhile, and the error is cleared
when it succeeds.
"""

from __future__ import annotations

import logging
from typing import (
    TYPE_CHECKING,
    Any,
    Awaitable,
    Callable,
    ContextManager,
    Coroutine,
    Dict,
    List,
    NamedTuple,
    Optional,
    Tuple,
)

from kafka.cluster import NO_ID
from kafka.consumer.fetch.error_actions import out_of_range
from kafka.consumer.partition_state import (
    EpochEnd,
    Phase,
    TopicPartitionState,
    Validation,
    ValidationOutcome,
)
from kafka.consumer.reset_policy import LATEST, NONE, timestamp_of
from kafka.errors import (
    Cancelled,
    IllegalGenerationError,
    KafkaError,
    LogTruncationError,
    NoOffsetForPartitionError,
    RebalanceInProgressError,
    StaleMemberEpochError,
    UnknownMemberIdError,
    UnsupportedVersionError,
)
from kafka.net.loop.tasks import Task, Timer
from kafka.offsets.lookups import OffsetLookups, is_final, is_final_of_topic
from kafka.structs import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kafka.cluster import ClusterMetadata
    from kafka.consumer.subscription_state import SubscriptionState
    from kafka.coordinator.commits.manager import FetchedOffsets
    from kafka.net.loop.event_loop import EventLoop
    from kafka.net.pool import Pool

__all__ = ['OffsetsRequestManager']

log = logging.getLogger(__name__)

FetchCommitted = Callable[[List[TopicPartition]], Awaitable['FetchedOffsets']]


#: Errors that end when the member has joined again, maybe without the partition.
_OF_A_MEMBER = (
    IllegalGenerationError,
    RebalanceInProgressError,
    StaleMemberEpochError,
    UnknownMemberIdError,
)


class _Trouble(NamedTuple):
    """The back-off after a failed request; it ends when the token of the partition changes."""

    token: int
    failures: int
    not_before: float


class _Owed(NamedTuple):
    """The requests to send now."""

    committed: Dict[TopicPartition, int]  # the token of each
    resets: Dict[int, Dict[TopicPartition, Tuple[int, int]]]  # node -> token and time
    validations: Dict[int, Dict[TopicPartition, Validation]]  # by node


class OffsetsRequestManager:
    """Finds, resets and validates the positions of one consumer.

    Arguments:
        loop, pool, subscription: of the consumer; lock: guards the subscription, and the errors.
        lookups: sends ListOffsets and OffsetForLeaderEpoch.
        fetch_committed: a coroutine function that returns the committed offsets, FetchedOffsets;
            None for a consumer without a group.
        on_change: called in a turn, without the lock, when a partition became fetchable or
            take_error() has an error.

    It listens to the cluster until close().
    """

    def __init__(
        self,
        loop: EventLoop,
        pool: Pool,
        subscription: SubscriptionState,
        lock: ContextManager[Any],
        lookups: OffsetLookups,
        fetch_committed: Optional[FetchCommitted],
        on_change: Callable[[], Any],
    ) -> None:
        self._loop = loop
        self._pool = pool
        self._subscription = subscription
        self._lock = lock
        self._lookups = lookups
        self._fetch_committed = fetch_committed
        self._on_change = on_change
        self._asking: Dict[Tuple[str, int], Task[None]] = {}
        self._troubles: Dict[TopicPartition, _Trouble] = {}
        self._standing: Dict[TopicPartition, Tuple[int, KafkaError]] = {}
        self._empty: Dict[
            TopicPartition, int
        ] = {}  # the token, if no record is as recent as a ByDuration policy says
        self._awaited_epochs: Dict[TopicPartition, float] = {}  # time of the last metadata then
        self._tables: Tuple[Dict[TopicPartition, Any], ...] = (
            self._troubles,
            self._standing,
            self._empty,
            self._awaited_epochs,
        )
        self._topic_ids: Dict[str, bytes] = {}
        self._seen_version = -1
        self._timer: Optional[Timer] = None
        self._is_closed = False
        self._needs_refresh = self._has_news = self._will_compare = False
        self._notes: List[Tuple[Any, ...]] = []  # log lines to write without the lock
        pool.cluster.add_listener(self._on_metadata)

    def __repr__(self) -> str:
        return '<OffsetsRequestManager unsettled=%d asking=%d errors=%d>' % (
            len(self._subscription.unsettled),
            len(self._asking),
            len(self._standing),
        )

    # ------------------------------------------------------------ for the caller, in any thread

    def take_error(self) -> Optional[KafkaError]:
        """Return an error for poll() to raise, or None.

        Successive calls return the errors of different partitions in turn. A seek, an assignment
        or a commit of the program clears the error of a partition. Errors of partitions held by a
        rebalance are not returned. Takes the lock.
        """
        with self._lock:
            found = self._first_error()
            if found is None:
                return None
            self._standing[found] = self._standing.pop(found)  # moves it to the end
            return self._standing[found][1]

    def has_error(self) -> bool:
        """Return True if take_error() would return an error; the order stays. Takes the lock."""
        if not self._standing:
            return False
        with self._lock:
            return self._first_error() is not None

    def _first_error(self) -> Optional[TopicPartition]:
        """Return the first partition with an error to raise; remove outdated errors."""
        for partition, (token, _) in list(self._standing.items()):
            state = self._subscription.assignment.get(partition)
            if state is None or state.token != token:
                del self._standing[partition]
            elif not state.held and not state.is_unsubscribed:
                return partition
        return None

    def error_of(self, partition: TopicPartition) -> Optional[KafkaError]:
        """Return the error because of which a partition has no position. Takes the lock."""
        with self._lock:
            token, error = self._standing.get(partition, (0, None))
            state = self._subscription.assignment.get(partition)
            return error if state is not None and state.token == token else None

    # ------------------------------------------------------------ in turns of the loop

    def look(self) -> None:
        """Send the requests that are needed now; cheap if none is needed."""
        if self._is_closed:
            return
        with self._lock:
            if self._seen_version != self._subscription.version:
                self._note_assignment()
            owed, next_at, leaderless = self._owed()
        for partition in leaderless:
            self._pool.want_topic(str(partition.topic))
        self._needs_refresh = self._needs_refresh or bool(leaderless)
        self._ask(owed)
        self._look_at(next_at)
        self._tell()

    def _tell(self) -> None:
        """Refresh metadata, log, and call on_change, without the lock, as decided under it."""
        if self._needs_refresh:
            self._needs_refresh = False
            self._pool.refresh()
        notes, self._notes = self._notes, []
        for note in notes:
            log.log(*note)
        if self._has_news:
            self._has_news = False
            self._on_change()

    def close(self) -> None:
        """Cancel all requests, and send no more."""
        if self._is_closed:
            return
        self._is_closed = True
        self._pool.cluster.remove_listener(self._on_metadata)
        self._look_at(None)
        for task in list(self._asking.values()):
            task.cancel()

    def _look_at(self, time: Optional[float]) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if time is not None:
            self._timer = self._loop.call_later(time - self._loop.time(), self.look)

    def _note_assignment(self) -> None:
        """Remove partitions that are not assigned any more, and store the ids of new topics."""
        assignment = self._subscription.assignment
        self._seen_version = self._subscription.version
        for table in self._tables:
            for partition in [each for each in table if each not in assignment]:
                del table[partition]
        topics = {str(partition.topic) for partition in assignment}
        self._topic_ids = {
            topic: self._topic_ids.get(topic, self._pool.cluster.topic_id(topic))
            for topic in topics
        }

    # ------------------------------------------------------------ pending requests

    def _owed(self) -> Tuple[_Owed, Optional[float], List[TopicPartition]]:
        """Return the pending requests, the time of the next, and partitions without a leader."""
        now = self._loop.time()
        owed = _Owed({}, {}, {})
        leaderless: List[TopicPartition] = []
        next_at: Optional[float] = None
        for partition in sorted(self._subscription.unsettled):
            state = self._subscription.assignment[partition]
            trouble = self._troubles.get(partition)
            if state.is_unsubscribed:
                continue
            if trouble is not None and trouble.token == state.token and trouble.not_before > now:
                next_at = min(next_at or trouble.not_before, trouble.not_before)
            elif not self._add(owed, partition, state):
                leaderless.append(partition)
        return owed, next_at, leaderless

    def _add(self, owed: _Owed, partition: TopicPartition, state: TopicPartitionState) -> bool:
        """Add the request of a partition; return False if it needs a leader that is not known."""
        if state.phase is Phase.INITIALIZING:
            if self._fetch_committed is not None:
                owed.committed[partition] = state.token
                return True
            self._begin_by_policy(partition, state)
        if state.phase is Phase.INITIALIZING:
            return True
        if state.phase is Phase.AWAIT_RESET and state.reset_strategy == NONE:
            if self._standing.get(partition, (0,))[0] != state.token:
                self._stand(partition, state.token, NoOffsetForPartitionError(partition))
            return True
        leader = self._lookups.leader(partition)
        if leader is None:
            error = self._lookups.topic_error(partition)
            if is_final_of_topic(error):
                assert error is not None
                self._stand(partition, state.token, error)
            return False
        if state.phase is Phase.AWAIT_RESET:
            owed.resets.setdefault(leader, {})[partition] = (
                state.token,
                self._time(partition, state),
            )
            return True
        return self._add_validation(owed, partition, state, leader)

    def _begin_by_policy(self, partition: TopicPartition, state: TopicPartitionState) -> None:
        if self._subscription.has_default_offset_reset_policy():
            state.await_reset(self._subscription.default_reset)
        elif self._fetch_committed is None:
            state.await_reset(NONE)
        else:  # retried: another member, or the program, may commit an offset
            self._stand(partition, state.token, NoOffsetForPartitionError(partition))

    def _time(self, partition: TopicPartition, state: TopicPartitionState) -> int:
        assert state.reset_strategy is not None
        if self._empty.get(partition) == state.token:
            return LATEST
        return timestamp_of(state.reset_strategy, self._loop.wall())

    def _add_validation(
        self, owed: _Owed, partition: TopicPartition, state: TopicPartitionState, leader: int
    ) -> bool:
        """Add a validation, or skip it if a leader epoch is unknown.

        Returns: False to refresh the metadata first.
        """
        epoch = self._pool.cluster.leader_epoch_for_partition(partition)
        if epoch is not None and epoch >= 0:
            refreshed_at = self._pool.cluster.refreshed_at
            if state.fetch_epoch > epoch:
                # The metadata are outdated: wait for one refresh. Not longer, because the epoch may
                # be that of a deleted topic of the same name.
                since = self._awaited_epochs.setdefault(partition, refreshed_at)
                if since == refreshed_at:
                    return False
            state.leader_changed(leader, epoch)
        validation = state.validation()
        assert validation is not None
        if epoch is None or epoch < 0 or state.fetch_epoch < 0:
            state.spare_validation(validation)
            self._settled(partition)
        else:
            owed.validations.setdefault(leader, {})[partition] = validation
        return True

    # ------------------------------------------------------------ sending

    def _ask(self, owed: _Owed) -> None:
        if owed.committed:
            self._begin(('committed', -1), owed.committed, self._get_committed(owed.committed))
        for node, resets in owed.resets.items():
            tokens = {each: token for each, (token, _) in resets.items()}
            self._begin(('resets', node), tokens, self._reset(node, resets))
        for node, asked in owed.validations.items():
            tokens = {each: validation.token for each, validation in asked.items()}
            self._begin(('validations', node), tokens, self._validate(node, asked))

    def _begin(
        self,
        key: Tuple[str, int],
        tokens: Dict[TopicPartition, int],
        coroutine: Coroutine[Any, Any, None],
    ) -> None:
        """Start a request, unless one of the same kind is in flight to the node.

        look() is called after each response, and then starts the one that was not started.
        """
        if key in self._asking:
            coroutine.close()
            return
        for partition, token in tokens.items():
            self._fail(partition, token)  # a back-off until a response clears it
        self._asking[key] = task = self._loop.spawn(coroutine)

        def end(task: Task[None]) -> None:
            del self._asking[key]
            error = task.exception
            if isinstance(error, Cancelled):
                return
            if error is not None:
                log.error('positions were not settled, by a mistake', exc_info=error)
            self.look()

        task.add_done_callback(end)

    def _fail(self, partition: TopicPartition, token: int) -> None:
        """Let a partition back off, longer after each failure in a row."""
        known = self._troubles.get(partition)
        failures = known.failures if known is not None and known.token == token else 0
        self._put_off(partition, token, failures + 1)

    def _put_off(self, partition: TopicPartition, token: int, failures: int) -> None:
        not_before = self._loop.time() + self._lookups.backoff(failures)
        self._troubles[partition] = _Trouble(token, failures, not_before)

    def _stand(self, partition: TopicPartition, token: int, error: KafkaError) -> None:
        """Keep an error for take_error(). If it is there already, its turn does not change."""
        known = self._standing.get(partition)
        if known is None or known[0] != token or known[1] != error:
            self._standing[partition] = token, error
            self._has_news = True

    def _settled(self, partition: TopicPartition) -> None:
        """Clear back-off and errors of a partition that has its position now."""
        for table in self._tables:
            table.pop(partition, None)
        self._has_news = True

    # ------------------------------------------------------------ responses

    def _state(self, partition: TopicPartition, token: int) -> Optional[TopicPartitionState]:
        """Return a partition's state; None if the response is stale."""
        state: Optional[TopicPartitionState] = self._subscription.assignment.get(partition)
        return state if state is not None and state.token == token else None

    def _not_answered(self, partition: TopicPartition, token: int, error: KafkaError) -> None:
        """Handle a retriable error: back off, and refresh the metadata for a new leader."""
        trouble = self._troubles.get(partition)
        if trouble is not None and trouble.token == token:
            self._put_off(partition, token, trouble.failures)
        self._needs_refresh = True
        text = 'the position of %s-%d is not known yet: %s'
        self._notes.append((logging.DEBUG, text, *partition, error))

    def _refused(self, partition: TopicPartition, token: int, error: KafkaError) -> None:
        """Handle an error that does not end by itself: retry, and keep it for the program."""
        self._not_answered(partition, token, error)
        if self._state(partition, token) is not None:
            self._stand(partition, token, error)

    async def _get_committed(self, tokens: Dict[TopicPartition, int]) -> None:
        assert self._fetch_committed is not None
        try:
            told = await self._fetch_committed(list(tokens))
        except KafkaError as error:
            with self._lock:
                for partition, token in tokens.items():
                    self._not_told(partition, token, error)
        else:
            with self._lock:
                for partition, token in tokens.items():
                    if partition in told.found:
                        self._begin_at(partition, token, told.found[partition])
                    elif partition in told.failed:
                        self._not_told(partition, token, told.failed[partition])
        self._tell()

    def _not_told(self, partition: TopicPartition, token: int, error: KafkaError) -> None:
        passes = not is_final(error) or isinstance(error, _OF_A_MEMBER)
        (self._not_answered if passes else self._refused)(partition, token, error)

    def _begin_at(
        self, partition: TopicPartition, token: int, committed: Optional[OffsetAndMetadata]
    ) -> None:
        state = self._state(partition, token)
        if state is None:
            return
        if committed is not None:
            state.begin_at(token, committed)
            self._settled(partition)
        else:
            self._begin_by_policy(partition, state)

    async def _reset(self, node: int, resets: Dict[TopicPartition, Tuple[int, int]]) -> None:
        outcome = await self._lookups.ask(node, {each: time for each, (_, time) in resets.items()})
        with self._lock:
            for partition, found in outcome.found.items():
                token, time = resets[partition]
                state = self._state(partition, token)
                if state is None:
                    continue
                if found is not None:
                    state.reset_to(token, found.offset)
                    self._settled(partition)
                    self._note_epoch(partition, found.leader_epoch)
                elif time != LATEST:
                    self._empty[partition] = token
                    self._troubles.pop(partition, None)
            for partition, error in outcome.retry.items():
                self._not_answered(partition, resets[partition][0], error)
            for partition, error in outcome.failed.items():
                self._refused(partition, resets[partition][0], error)
        self._tell()

    def _note_epoch(self, partition: TopicPartition, epoch: Optional[int]) -> None:
        """Refresh the metadata if a response has a newer leader epoch."""
        known = self._pool.cluster.leader_epoch_for_partition(partition)
        if epoch is not None and known is not None and 0 <= known < epoch:
            self._needs_refresh = True

    async def _validate(self, node: int, asked: Dict[TopicPartition, Validation]) -> None:
        questions = {
            partition: (validation.leader[1] if validation.leader else -1, validation.epoch)
            for partition, validation in asked.items()
        }
        outcome = await self._lookups.ask_epochs(node, questions)
        with self._lock:
            for partition, end in outcome.found.items():
                self._judge(partition, asked[partition], end)
            for partition, error in outcome.retry.items():
                self._not_answered(partition, asked[partition].token, error)
            for partition, error in outcome.failed.items():
                state = self._state(partition, asked[partition].token)
                if isinstance(error, UnsupportedVersionError):  # brokers before 2.3
                    if state is not None and state.spare_validation(asked[partition]):
                        self._settled(partition)
                else:
                    self._refused(partition, asked[partition].token, error)
        self._tell()

    def _judge(self, partition: TopicPartition, asked: Validation, end: EpochEnd) -> None:
        state = self._state(partition, asked.token)
        if state is None:
            return
        verdict = state.judge(asked, end)
        if verdict is ValidationOutcome.VALID:
            self._settled(partition)
        elif verdict in (ValidationOutcome.AGAIN, ValidationOutcome.STALE):
            self._troubles.pop(partition, None)
        else:
            self._cut(partition, state, asked, end, verdict)

    def _cut(
        self,
        partition: TopicPartition,
        state: TopicPartitionState,
        asked: Validation,
        end: EpochEnd,
        verdict: ValidationOutcome,
    ) -> None:
        """Handle a truncation below the position: reset by policy, or keep the error.

        With a policy, the position moves to where the logs diverge if that is known. Without one,
        LogTruncationError is kept for the program.
        """
        is_known = verdict is ValidationOutcome.TRUNCATED
        text = 'the log of %s-%d was cut below the position %d (epoch %d): it goes its own way %s'
        where = 'from offset %d on (epoch %d)' % (end.end_offset, end.epoch)
        note = text, *partition, asked.offset, asked.epoch, where if is_known else 'now'
        if not self._subscription.has_default_offset_reset_policy():
            divergence = OffsetAndMetadata(end.end_offset, '', end.epoch) if is_known else None
            error = LogTruncationError({partition: divergence}, note[0] % note[1:])
            self._stand(partition, asked.token, error)
            return
        self._notes.append((logging.WARNING, *note))
        if is_known:
            state.truncate(asked, end)
            self._settled(partition)
        else:
            state.await_reset(self._subscription.default_reset)

    # ------------------------------------------------------------ metadata

    def _on_metadata(self, cluster: ClusterMetadata) -> None:
        """Call _compare() in the next turn, once all of the new metadata is in place."""
        if not self._will_compare:
            self._will_compare = True
            self._loop.call_soon(self._compare)

    def _compare(self) -> None:
        """Note new leaders and topics that were created again; then call look()."""
        self._will_compare = False
        if self._is_closed:
            return
        cluster = self._pool.cluster
        with self._lock:
            if self._seen_version != self._subscription.version:
                self._note_assignment()
            for topic, known in self._topic_ids.items():
                topic_id = cluster.topic_id(topic)
                if topic_id != NO_ID:
                    self._topic_ids[topic] = topic_id
                    if known not in (NO_ID, topic_id):
                        self._begin_anew(topic)
            for partition, state in self._subscription.assignment.items():
                leader = cluster.partition(partition.topic, partition.partition)
                if leader is not None and leader.leader >= 0:
                    state.leader_changed(leader.leader, leader.leader_epoch)
        self.look()

    def _begin_anew(self, topic: str) -> None:
        """Reset the positions in a topic that was deleted and created again."""
        text = 'topic %s was created again: positions in the deleted topic are dropped'
        self._notes.append((logging.WARNING, text, topic))
        for partition, state in self._subscription.assignment.items():
            if partition.topic != topic or state.phase is Phase.INITIALIZING:
                continue
            offset = state.position
            state.committed = None
            state.prefer(None)
            state.await_reset(self._subscription.default_reset)
            if self._subscription.default_reset == NONE:
                self._stand(partition, state.token, out_of_range(partition, offset))
