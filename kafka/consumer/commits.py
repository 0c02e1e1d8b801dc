"""The offset commits of a consumer: by the program, automatic, before a rebalance, and at close().

Decides which offsets are committed (the positions, or the marks of task_done() once there is one),
when automatic commits are due, and calls the callbacks. Called by the thread inside the consumer.
Coroutines of asynchronous commits run in turns of the loop; their callbacks are called later by the
thread that polls. kafka.coordinator.commits.manager sends the requests.
"""

from __future__ import annotations

import functools
import itertools
import logging
import math
import weakref
from collections import deque
from typing import (
    Any,
    Callable,
    Coroutine,
    Deque,
    Dict,
    Iterable,
    List,
    Mapping,
    Optional,
    Sequence,
)

from kafka.consumer.call_checks import (
    check_offsets,
    check_partition,
    default_seconds,
    seconds_of,
)
from kafka.consumer.engine import Engine
from kafka.consumer.fetch_collector import FetchCollector
from kafka.consumer.one_thread import OneThread
from kafka.consumer.partition_state import TopicPartitionState
from kafka.coordinator.commits.schedule import AutoCommit, AutoCommitState
from kafka.errors import IllegalStateError, KafkaError
from kafka.future import Future
from kafka.internals.cleanup import CleanUp
from kafka.internals.program_errors import log_program_error
from kafka.internals.running_calls import is_in_call
from kafka.internals.validation import ArgumentTypeError, where
from kafka.net.loop.tasks import CoroutineCall
from kafka.structs import OffsetAndMetadata, TopicPartition

__all__ = ['AGAIN_SECONDS', 'ConsumerCommits']

log = logging.getLogger(__name__)

Offsets = Dict[TopicPartition, OffsetAndMetadata]

#: The interval in which automatic commits repeat offsets that are committed already. Brokers before
#: 2.1, and all brokers for a group without members, expire offsets by the time of their commit,
#: after a minute at the earliest.
AGAIN_SECONDS = 30.0


def _nothing() -> None:
    pass


class PendingCommit:
    """An asynchronous commit."""

    __slots__ = ('began', 'future', 'number', 'offsets', 'outcome', 'tell')

    def __init__(
        self,
        offsets: Offsets,
        number: int,
        began: float,
        future: Future,
        tell: Callable[[Optional[KafkaError]], Any],
        outcome: List[Optional[KafkaError]],
    ) -> None:
        self.offsets = offsets
        self.number = number  # in the order of the calls
        self.began = began  # the loop's time in seconds
        self.future = future
        self.tell = tell  # called with the error, or None
        self.outcome = outcome  # [the error or None]; empty until it is known

    def __repr__(self) -> str:
        return '<PendingCommit %d of %s>' % (self.number, self.offsets)


class ConsumerCommits:
    """The commits of one consumer.

    Arguments:
        engine: the engine of the consumer.
        guard: the single-thread guard.
        collector: the FetchCollector, which keeps the positions of returned records exact.
        options: the options of the consumer.
        interceptors: those with a method on_commit() are called after each commit.
        auto: the schedule of automatic commits; None if they are off.

    Attributes:
        done: {partition: offset after the last record marked by task_done()}.
        ended: asynchronous commits that have ended and whose callbacks are pending.
    """

    def __init__(
        self,
        engine: Engine,
        guard: OneThread,
        collector: FetchCollector,
        options: Mapping[str, Any],
        interceptors: Sequence[Any] = (),
        auto: Optional[AutoCommit] = None,
    ) -> None:
        self._engine = engine
        self._guard = guard
        self._collector = collector
        self._options = options
        self._interceptors = interceptors
        self._auto = auto
        #: The future of the last automatic commit.
        self._auto_outcome: Optional[Future] = None
        #: The time from which an automatic commit repeats offsets that are committed already.
        self._again_at = -math.inf
        self.done: Dict[TopicPartition, OffsetAndMetadata] = {}
        # Asynchronous commits in progress, in the order of the calls.
        self._under_way: Deque[PendingCommit] = deque()
        # Asynchronous commits that a turn of the loop has not started yet.
        self._asked: List[PendingCommit] = []
        # Commits are numbered in the order of their calls; the newest one noted for each partition.
        self._numbers = itertools.count(1)
        self._noted: Dict[TopicPartition, int] = {}
        self.ended: Deque[PendingCommit] = deque()
        # The commit whose callback is being called. It is called again if an exception from outside
        # came before the callback had run.
        self._telling: Optional[PendingCommit] = None

    def __repr__(self) -> str:
        return '<ConsumerCommits group=%s, %d under way>' % (
            self._options['group_id'],
            len(self._under_way),
        )

    # ------------------------------------------------------------ requested

    def commit(self, offsets: Any = None, timeout_ms: Any = None) -> bool:
        """Commit and wait; arguments, result and errors are those of KafkaConsumer.commit()."""
        seconds = seconds_of(timeout_ms, default_seconds(self._options))
        with self._guard:
            self._check_commits()
            wanted = self.to_commit() if offsets is None else check_offsets(offsets)
            if not wanted:
                return False
            with CleanUp(self.tell_ended):  # the callbacks of earlier asynchronous commits
                self._commit_now(wanted, seconds, self.tell_ended)
            return True

    def commit_async(
        self, offsets: Any = None, callback: Optional[Callable[[Any, Any], Any]] = None
    ) -> Future:
        """Commit without waiting; as KafkaConsumer.commit_async()."""
        if callback is not None and not callable(callback):
            raise ArgumentTypeError('callback must be callable, not %s' % type(callback).__name__)
        with self._guard:
            self._check_commits()
            wanted = self.to_commit() if offsets is None else check_offsets(offsets)
            future = Future()
            tell = callback or self._options['default_offset_commit_callback']
            self._commit_later(wanted, future, lambda error: tell(wanted, error), True)
            return future

    def _check_commits(self) -> None:
        self._guard.check_open()
        if self._options['group_id'] is None:
            raise IllegalStateError('commits need the option group_id')
        if self._engine.commits is None:
            raise IllegalStateError('brokers store offsets since 0.8.1, these are older')

    def to_commit(self) -> Offsets:
        """Return the offsets to commit: after the returned records, or after the marked ones.

        Once task_done() was called for any partition, only the marks count.
        """
        self._collector.sync()
        engine = self._engine
        with engine.lock:
            consumed: Offsets = engine.subscription.all_consumed_offsets()
            # A callback inside poll() commits: the records of that poll() are not returned yet.
            if self._collector.hand_out.is_open:
                for partition, offset in self._collector.hand_out.before().items():
                    if offset is None:
                        consumed.pop(partition, None)
                    else:
                        consumed[partition] = offset
            if not self.done:
                return consumed
            return {
                partition: offset
                for partition, offset in self.done.items()
                if partition in engine.subscription.assignment
            }

    def _commit_now(
        self, offsets: Offsets, seconds: float, tell_earlier: Callable[[], Any] = _nothing
    ) -> None:
        """Commit and wait. tell_earlier calls the callbacks of earlier commits before _note()."""
        engine = self._engine
        assert engine.commits is not None
        number = next(self._numbers)
        began, standing = engine.loop.time(), engine.standing(offsets)
        engine.run(CoroutineCall(engine.commits.commit, offsets, standing, seconds), seconds)
        try:
            tell_earlier()
        finally:
            self._note(offsets, engine.loop.time() - began, number)

    def _commit_later(
        self,
        offsets: Offsets,
        future: Future,
        tell: Callable[[Optional[KafkaError]], Any],
        retries: bool,
        seconds: Optional[float] = None,
    ) -> None:
        """Commit in turns of the loop; the thread that polls calls `tell`, in the order of calls.

        Arguments: retries: whether failures are retried; seconds: the time-out, None for
            request_timeout_ms.
        """
        engine, number = self._engine, next(self._numbers)
        standing, began = engine.standing(offsets), engine.loop.time()
        if seconds is None:
            seconds = default_seconds(self._options)

        # These closures hold no reference to this object, and the coroutine none to `tell`: either
        # may refer to the consumer, which a pending commit must not keep from being collected.
        begin, move_ended = weakref.WeakMethod(self._begin), weakref.WeakMethod(self._move_ended)
        outcome: List[Optional[KafkaError]] = []
        pending = PendingCommit(offsets, number, began, future, tell, outcome)

        async def commit() -> None:
            error: Optional[KafkaError] = None
            try:
                assert engine.commits is not None
                await engine.commits.commit(offsets, standing, seconds, retries)
            except KafkaError as failure:
                error = failure
            outcome.append(error)
            move = move_ended()
            if move is not None:
                move()

        def begin_in_turn() -> None:
            call = begin()
            if call is not None:
                call(pending, commit)

        self._asked.append(pending)
        engine.loop.call_threadsafe(begin_in_turn)

    def _begin(
        self, pending: PendingCommit, commit: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        """Start a commit; in one turn, so that await_pending() waits for no commit not started."""
        self._under_way.append(pending)
        self._asked.remove(pending)
        self._engine.loop.spawn(commit())

    def await_pending(self, seconds: float) -> None:
        """Wait for asynchronous commits: a member that has left the group cannot commit."""
        if self._asked or self._under_way:
            begun: List[bool] = []
            # Runs after the start of every commit, which was scheduled before.
            self._engine.loop.call_threadsafe(begun.append, True)
            self._engine.wait(lambda: begun and not self._under_way, max(0.0, seconds))

    def fail_pending(self, error: KafkaError) -> None:
        """Fail all asynchronous commits without a response; none will arrive any more."""
        for pending in (*self._under_way, *self._asked):
            # One that _move_ended() was just moving has its outcome: it may be stored.
            if pending not in self.ended:
                pending.outcome[:] = [error]
                self.ended.append(pending)
        self._under_way.clear()
        del self._asked[:]

    def _move_ended(self) -> None:
        """Move commits that have ended to `ended`, for the polling thread; in a turn of the loop.

        They are moved in the order of the calls, so one may wait for an earlier one.
        """
        while self._under_way and self._under_way[0].outcome:
            self.ended.append(self._under_way[0])
            # Last: a thread that sees _under_way empty then finds the commit in `ended`.
            self._under_way.popleft()

    def _finish(self, pending: PendingCommit) -> None:
        error = pending.outcome[0]
        if error is None:
            self._note(pending.offsets, self._engine.loop.time() - pending.began, pending.number)
        try:
            pending.tell(error)
        finally:  # the future is completed even if a callback of the program raises
            if error is None:
                pending.future.success(pending.offsets)
            else:
                pending.future.failure(error)

    def _note(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], seconds: float, number: int
    ) -> None:
        """Record committed offsets and call interceptors.

        The committed offset of a partition is kept if a commit of a later call is recorded already.
        """
        engine = self._engine
        with engine.lock:
            for partition, offset in offsets.items():
                state = engine.subscription.assignment.get(partition)
                if state is not None and number >= self._noted.get(partition, 0):
                    state.committed, self._noted[partition] = offset, number
        if engine.figures is not None:
            engine.figures.committed(seconds)
        for interceptor in self._interceptors:
            if hasattr(interceptor, 'on_commit'):
                try:
                    interceptor.on_commit(dict(offsets))
                except Exception as error:
                    log_program_error(log, error, 'on_commit() of an interceptor failed')

    def tell_ended(self) -> None:
        """Call the callbacks of all commits that have ended, even if one of them raises.

        Raises: the first error that a callback raised, after all were called.
        """
        errors: List[BaseException] = []
        if self._telling is not None and not is_in_call('telling', self._telling):
            # An exception ended the last call before the callback had run.
            self.ended.appendleft(self._telling)
            self._telling = None
        while self.ended:
            telling = self._telling = self.ended[0]
            self.ended.popleft()
            try:
                if not telling.future.is_done:
                    self._finish(telling)
            except BaseException as error:
                if not telling.future.is_done:
                    raise
                if not errors:
                    errors.append(error)
            self._telling = None
        if errors:
            raise errors.pop()

    # ------------------------------------------------------------ automatic

    @property
    def is_automatic(self) -> bool:
        """Whether offsets are committed automatically."""
        return self._auto is not None

    def next_at(self) -> float:
        """Return the loop's time, in seconds, of the next automatic commit, or infinity."""
        auto = self._auto
        if auto is None or auto.state is AutoCommitState.UNDER_WAY:
            return math.inf
        return auto.next_at

    def is_telling(self) -> bool:
        """Return True if a callback is pending, or was interrupted by an exception."""
        return bool(self.ended) or self._telling is not None

    def commit_if_due(self) -> None:
        """Commit the offsets of to_commit() asynchronously if an automatic commit is due."""
        auto, loop, group = self._auto, self._engine.loop, self._options['group_id']
        now = loop.time()
        if auto is None:
            return
        outcome = self._auto_outcome
        if outcome is not None and outcome.is_done and auto.state is AutoCommitState.UNDER_WAY:
            auto.ended(now, True)  # an exception interrupted tell() before it could do this
        if not auto.due(now):
            return
        offsets = self.to_commit()
        if not offsets or (now < self._again_at and not self._not_stored(offsets)):
            auto.reset(now)
            return
        self._again_at = now + AGAIN_SECONDS

        def tell(error: Optional[KafkaError]) -> None:
            if auto.state is AutoCommitState.UNDER_WAY:
                auto.ended(loop.time(), error is None or not error.retriable)
            if error is not None:
                log.warning('group=%s: automatic commit failed: %s', group, error)

        outcome = self._auto_outcome = Future()
        self._commit_later(offsets, outcome, tell, False)
        auto.began(now)  # last: after an exception before this line the next poll commits

    def changed(self) -> Offsets:
        """Return the offsets to commit that are not known to be committed already."""
        return self._not_stored(self.to_commit())

    def _not_stored(self, offsets: Offsets) -> Offsets:
        with self._engine.lock:
            assignment = self._engine.subscription.assignment
            return {
                partition: offset
                for partition, offset in offsets.items()
                if not _is_stored(assignment.get(partition), offset)
            }

    def commit_before_rebalance(self, seconds: float) -> None:
        """Commit and wait before partitions are given up, if commits are automatic.

        A failure is logged: another member then reads some records again.
        """
        if self._auto is None:
            return
        offsets = self.changed()
        if not offsets:
            return
        try:
            self._commit_now(offsets, max(0.1, min(seconds, default_seconds(self._options))))
        except KafkaError as error:
            _tell_uncommitted(self._options['group_id'], error)

    def commit_for_rebalance(self, offsets: Offsets, seconds: float) -> Future:
        """Start the commit before a rebalance without waiting; a failure is logged."""
        future, tell = Future(), functools.partial(_tell_uncommitted, self._options['group_id'])
        self._commit_later(
            offsets, future, tell, True, max(0.1, min(seconds, default_seconds(self._options)))
        )
        return future

    # ------------------------------------------------------------ marks (0.9.5)

    def forget_marks(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop the marks of partitions that were sought or are not read any more."""
        for partition in partitions:
            self.done.pop(partition, None)

    def mark(self, message: Any) -> bool:
        """Mark a record as done; as KafkaConsumer.task_done()."""
        try:
            partition = TopicPartition(_name(message.topic), message.partition)
        except AttributeError:
            text = 'task_done() takes a record of this consumer, not %s'
            raise ArgumentTypeError(text % type(message).__name__) from None
        check_partition(partition)
        with self._guard, self._engine.lock:
            if partition not in self._engine.subscription.assignment:
                log.warning('%s is not assigned: its record is not marked', where(partition))
                return False
        # With the leader epoch, a consumer that starts there detects a truncated log (KIP-320).
        epoch = getattr(message, 'leader_epoch', None)
        self.done[partition] = OffsetAndMetadata(
            message.offset + 1, '', -1 if epoch is None else epoch
        )
        return True


def _name(topic: Any) -> str:
    return topic.decode() if isinstance(topic, bytes) else topic


def _tell_uncommitted(group: Optional[str], error: Optional[KafkaError]) -> None:
    if error is not None:
        log.error(
            'group=%s: the automatic commit before a rebalance failed, some records will be read'
            ' again: %s',
            group,
            error,
        )


def _is_stored(state: Optional[TopicPartitionState], offset: OffsetAndMetadata) -> bool:
    if state is None or state.committed is None:
        return False
    # The same offset with another leader epoch is another record: the log was truncated.
    return bool(state.committed._replace(metadata=offset.metadata) == offset)
