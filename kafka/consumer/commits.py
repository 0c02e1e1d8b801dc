"""The offset commits of a consumer: requested, automatic, before a rebalance and at the end.

What is committed (positions, or what was marked as done once anything was), when that happens
automatically, and whose callbacks are called. Used by the one thread inside the consumer; the
coroutines of commits in the background run in turns of the loop and leave what follows to it.
Requests and the responses of brokers are kafka.coordinator.commits.manager's.
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
from kafka.structs import OffsetAndMetadata, TopicPartition

__all__ = ['AGAIN_SECONDS', 'ConsumerCommits']

log = logging.getLogger(__name__)

Offsets = Dict[TopicPartition, OffsetAndMetadata]

#: How often automatic commits repeat offsets that are stored already: brokers before 2.1, and all
#: where nobody is a member, let offsets expire by their commit, after a minute at the earliest.
AGAIN_SECONDS = 30.0


def _nothing() -> None:
    pass


class PendingCommit:
    """A commit in the background."""

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
        self.began = began  # in seconds of the loop
        self.future = future
        self.tell = tell  # called with the error, or None
        self.outcome = outcome  # the same; empty until it is known

    def __repr__(self) -> str:
        return '<PendingCommit %d of %s>' % (self.number, self.offsets)


class ConsumerCommits:
    """The commits of one consumer.

    Arguments:
        engine: its parts.
        guard: the single-thread guard.
        collector: of its records, which knows what was returned.
        options: of the consumer.
        interceptors: objects of the program; those with on_commit() are told of commits.
        auto: when to commit automatically; None for never.

    Attributes:
        done: what follows the records that were marked as done, by partition.
        ended: commits in the background that have ended, whose callbacks are due.
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
        #: Of the last automatic commit.
        self._auto_outcome: Optional[Future] = None
        #: When offsets that are stored are committed automatically once more.
        self._again_at = -math.inf
        self.done: Dict[TopicPartition, OffsetAndMetadata] = {}
        # Commits in the background, in the order of the calls.
        self._under_way: Deque[PendingCommit] = deque()
        # The same of those that have not begun: a turn begins them.
        self._asked: List[PendingCommit] = []
        # Commits are numbered in the order of their calls; the newest that each partition knows of.
        self._numbers = itertools.count(1)
        self._noted: Dict[TopicPartition, int] = {}
        self.ended: Deque[PendingCommit] = deque()
        # The one of them that is being told; told again if an exception came before it was.
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
            with CleanUp(self.tell_ended):  # of those in the background that were before it
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
        """Return what was returned, or what is marked as done where anything is."""
        self._collector.sync()
        engine = self._engine
        with engine.lock:
            consumed: Offsets = engine.subscription.all_consumed_offsets()
            if self._collector.hand_out.is_open:  # a callback in poll() commits: not returned yet
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
        """Commit and wait; those who hear of it hear of earlier commits before, by tell_earlier."""
        engine = self._engine
        assert engine.commits is not None
        number = next(self._numbers)
        began, standing = engine.loop.time(), engine.standing(offsets)
        engine.run(engine.commits.commit(offsets, standing, seconds), seconds)
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
        """Commit in turns; what follows is done by the thread that polls, in the order of calls."""
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
        """Send a commit; in one turn, so that nobody waits for a commit that has not begun."""
        self._under_way.append(pending)
        self._asked.remove(pending)
        self._engine.loop.spawn(commit())

    def await_pending(self, seconds: float) -> None:
        """Wait for the commits that were asked for: a member that has left commits nothing."""
        if self._asked or self._under_way:
            begun: List[bool] = []
            self._engine.loop.call_threadsafe(begun.append, True)  # after the begin of each
            self._engine.wait(lambda: begun and not self._under_way, max(0.0, seconds))

    def fail_pending(self, error: KafkaError) -> None:
        """Let the commits fail of which nothing will be heard any more."""
        for pending in (*self._under_way, *self._asked):
            pending.outcome[:] = [error]
            self.ended.append(pending)
        self._under_way.clear()
        del self._asked[:]

    def _move_ended(self) -> None:
        """Leave what follows of commits that have ended to the polling thread; in a turn."""
        while self._under_way and self._under_way[0].outcome:
            self.ended.append(self._under_way[0])
            # Last: a reader that sees none under way finds it among those that have ended.
            self._under_way.popleft()

    def _finish(self, pending: PendingCommit) -> None:
        error = pending.outcome[0]
        if error is None:
            self._note(pending.offsets, self._engine.loop.time() - pending.began, pending.number)
        try:
            pending.tell(error)
        finally:  # the outcome is known, whatever a callback of the program does with it
            if error is None:
                pending.future.success(pending.offsets)
            else:
                pending.future.failure(error)

    def _note(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], seconds: float, number: int
    ) -> None:
        """Take note of a commit, unless a later one of the same partition was noted before."""
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
        """Call the callbacks of commits that have ended: all of them, whatever one raises.

        Raises: the first of what they raise, when all were called.
        """
        errors: List[BaseException] = []
        if self._telling is not None and not is_in_call('telling', self._telling):
            self.ended.appendleft(self._telling)  # what came before it was called
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
        """Return when an automatic commit is due, in seconds of the loop; infinite for never."""
        auto = self._auto
        if auto is None or auto.state is AutoCommitState.UNDER_WAY:
            return math.inf
        return auto.next_at

    def is_telling(self) -> bool:
        """Return True if a callback is due, or an exception has ended the call of one."""
        return bool(self.ended) or self._telling is not None

    def commit_if_due(self) -> None:
        """Commit what was handed out, in the background, if it is time to."""
        auto, loop, group = self._auto, self._engine.loop, self._options['group_id']
        now = loop.time()
        if auto is None:
            return
        outcome = self._auto_outcome
        if outcome is not None and outcome.is_done and auto.state is AutoCommitState.UNDER_WAY:
            auto.ended(now, True)  # an exception in tell() came before it
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
        auto.began(now)  # last: an exception before it lets the next poll commit

    def changed(self) -> Offsets:
        """Return those of the offsets to commit that are not stored yet, as far as is known."""
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
        """Commit what was handed out before others get the partitions, if that is automatic."""
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
        """Begin the same without waiting; a failure is logged."""
        future, tell = Future(), functools.partial(_tell_uncommitted, self._options['group_id'])
        self._commit_later(
            offsets, future, tell, True, max(0.1, min(seconds, default_seconds(self._options)))
        )
        return future

    # ------------------------------------------------------------ marks (0.9.5)

    def forget_marks(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop the marks of partitions that are read from elsewhere, or no longer."""
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
        # A consumer that begins there sees by the epoch whether the log was cut below it (KIP-320).
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
            'group=%s: the automatic commit before a rebalance failed, some records will be handed'
            ' out again: %s',
            group,
            error,
        )


def _is_stored(state: Optional[TopicPartitionState], offset: OffsetAndMetadata) -> bool:
    if state is None or state.committed is None:
        return False
    # After a record of another epoch the log was cut and written again.
    return bool(state.committed._replace(metadata=offset.metadata) == offset)
