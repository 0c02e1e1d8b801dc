"""Commits of a modern consumer: asked for, automatic, before a rebalance and at the end.

Owns what is committed (positions, or what was marked as done once anything was), when it is
committed by itself, and who is told. Does not own: requests and what brokers answer
(coordinator/commits/manager.py).
"""

from __future__ import annotations

import functools
import logging
import math
import weakref
from typing import Any, Callable, Dict, List, Mapping, Optional

from kafka.consumer.call_checks import check_offsets, check_partition, seconds_of
from kafka.consumer.shell import Shell
from kafka.coordinator.commits.schedule import AutoCommit, AutoCommitState
from kafka.errors import IllegalStateError, KafkaError
from kafka.future import Future
from kafka.internals.cleanup import CleanUp
from kafka.internals.program_errors import log_program_error
from kafka.internals.running_calls import is_in_call
from kafka.internals.validation import ArgumentTypeError, where
from kafka.structs import OffsetAndMetadata, TopicPartition

__all__ = ['Committing']

log = logging.getLogger(__name__)

Offsets = Dict[TopicPartition, OffsetAndMetadata]

#: So often offsets are committed by themselves that are stored already: brokers before 2.1, and all
#: where nobody is a member, let offsets expire by their commit, after a minute at the earliest.
AGAIN_SECONDS = 30.0


def _nothing() -> None:
    pass


class Committing(Shell):
    """A base of the modern KafkaConsumer, of no use alone."""

    _auto: Optional[AutoCommit]
    #: Of the last automatic commit.
    _auto_outcome: Optional[Future] = None
    #: When offsets that are stored are committed by themselves once more.
    _again_at = -math.inf

    # ------------------------------------------------------------ asked for

    def _commit(self, offsets: Any = None, timeout_ms: Any = None) -> bool:
        seconds = seconds_of(timeout_ms, self._default_timeout())
        with self._guard:
            self._check_commits()
            wanted = self._to_commit() if offsets is None else check_offsets(offsets)
            if not wanted:
                return False
            with CleanUp(self._tell_ended):  # of those in the background that were before it
                self._commit_now(wanted, seconds, self._tell_ended)
            return True

    def commit_async(
        self, offsets: Any = None, callback: Optional[Callable[[Any, Any], Any]] = None
    ) -> Future:
        """Commit without waiting (1.0).

        Commits are sent, and their callbacks called, in the order of the calls.

        Arguments: offsets: as commit(); callback: called with the offsets and None, or the error,
            in a later poll() or commit(), which raises what it raises; without one the option
            default_offset_commit_callback is.
        Returns: a Future, which is completed at the same time.
        Raises: as commit(), but for what a broker says; ArgumentTypeError for a callback that is
            none.
        """
        if callback is not None and not callable(callback):
            raise ArgumentTypeError('callback must be callable, not %s' % type(callback).__name__)
        with self._guard:
            self._check_commits()
            wanted = self._to_commit() if offsets is None else check_offsets(offsets)
            future = Future()
            tell = callback or self.config['default_offset_commit_callback']
            self._commit_later(wanted, future, lambda error: tell(wanted, error), True)
            return future

    def _check_commits(self) -> None:
        self._check_open()
        if self.config['group_id'] is None:
            raise IllegalStateError('commits need the option group_id')
        if self._engine.commits is None:
            raise IllegalStateError('brokers store offsets since 0.8.1, these are older')

    def _to_commit(self) -> Offsets:
        """Return what is handed out, or marked as done where anything is."""
        self._sync()
        engine = self._engine
        with engine.lock:
            consumed: Offsets = engine.subscription.all_consumed_offsets()
            if self._hand_out.is_open:  # a callback inside of poll() commits: nobody has these yet
                for partition, offset in self._hand_out.before().items():
                    if offset is None:
                        consumed.pop(partition, None)
                    else:
                        consumed[partition] = offset
            if not self._done:
                return consumed
            return {
                partition: behind
                for partition, behind in self._done.items()
                if partition in engine.subscription.assignment
            }

    def _commit_now(
        self, offsets: Offsets, seconds: float, tell_earlier: Callable[[], Any] = _nothing
    ) -> None:
        """Commit and wait; those who hear of it hear of earlier commits before, by tell_earlier."""
        engine = self._engine
        assert engine.commits is not None
        number = next(self._commit_numbers)
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
        engine, number = self._engine, next(self._commit_numbers)
        standing, began = engine.standing(offsets), engine.loop.time()
        if seconds is None:
            seconds = self._default_timeout()

        # These closures hold no reference to the consumer: a pending commit must not keep it from
        # being collected.
        def finish(owner: Committing, error: Optional[KafkaError]) -> None:
            if error is None:
                owner._note(offsets, engine.loop.time() - began, number)
            try:
                tell(error)
            finally:  # the outcome is known, whatever a callback of the program does with it
                if error is None:
                    future.success(offsets)
                else:
                    future.failure(error)

        async def commit() -> None:
            error: Optional[KafkaError] = None
            try:
                assert engine.commits is not None
                await engine.commits.commit(offsets, standing, seconds, retries)
            except KafkaError as failure:
                error = failure
            outcome.append(error)
            owner = consumer()
            if owner is not None:
                owner._move_ended()

        consumer = weakref.ref(self)
        outcome: List[Optional[KafkaError]] = []  # empty until it has ended
        commit_of_call = outcome, future, finish

        def begin() -> None:  # in one turn: nobody waits for a commit that was not begun
            owner = consumer()
            if owner is not None:
                owner._under_way.append(commit_of_call)
                owner._asked.remove(commit_of_call)
                engine.loop.spawn(commit())

        self._asked.append(commit_of_call)
        engine.loop.call_threadsafe(begin)

    def _await_commits(self, seconds: float) -> None:
        """Wait for the commits that were asked for: a member that has left commits nothing."""
        if self._asked or self._under_way:
            begun: List[bool] = []
            self._engine.loop.call_threadsafe(begun.append, True)  # behind the begin() of each
            self._engine.wait(lambda: begun and not self._under_way, max(0.0, seconds))

    def _fail_commits(self, error: KafkaError) -> None:
        """Leave an error to those who wait for commits of which nothing will be heard any more."""
        for _, future, finish in (*self._under_way, *self._asked):
            self._ended.append((future, functools.partial(finish, self, error)))
        self._under_way.clear()
        del self._asked[:]

    def _move_ended(self) -> None:
        """Leave what follows of commits that have ended to the thread that polls; in a turn."""
        while self._under_way and self._under_way[0][0]:
            (error,), future, finish = self._under_way[0]
            self._ended.append((future, functools.partial(finish, self, error)))
            # Last: whoever sees that none is under way finds it among those that have ended.
            self._under_way.popleft()

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

    _interceptors: Any = ()

    def _tell_ended(self) -> None:
        """Call the callbacks of commits that have ended: all of them, whatever one raises.

        Raises: the first of what they raise, when all were called.
        """
        errors: List[BaseException] = []
        if self._telling is not None and not is_in_call('telling', self._telling):
            self._ended.appendleft(self._telling)  # what came before it was called
            self._telling = None
        while self._ended:
            telling = self._telling = self._ended[0]
            self._ended.popleft()
            future, finish = telling
            try:
                if not future.is_done:
                    finish()
            except BaseException as error:
                if not future.is_done:
                    raise
                if not errors:
                    errors.append(error)
            self._telling = None
        if errors:
            raise errors.pop()

    # ------------------------------------------------------------ automatic

    def _commit_if_due(self) -> None:
        """Commit what was handed out, in the background, if it is time to."""
        auto, loop, group = self._auto, self._engine.loop, self.config['group_id']
        now = loop.time()
        if auto is None:
            return
        outcome = self._auto_outcome
        if outcome is not None and outcome.is_done and auto.state is AutoCommitState.UNDER_WAY:
            auto.ended(now, True)  # an exception in tell() came before it
        if not auto.due(now):
            return
        offsets = self._to_commit()
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

    def _changed(self) -> Offsets:
        """Return those of the offsets to commit that are not stored yet, as far as is known."""
        return self._not_stored(self._to_commit())

    def _not_stored(self, offsets: Offsets) -> Offsets:
        with self._engine.lock:
            assignment = self._engine.subscription.assignment
            return {
                partition: offset
                for partition, offset in offsets.items()
                if not _is_stored(assignment.get(partition), offset)
            }

    def _commit_before_rebalance(self, seconds: float) -> None:
        """Commit what was handed out before others get the partitions, if that is automatic."""
        if self._auto is None:
            return
        offsets = self._changed()
        if not offsets:
            return
        try:
            self._commit_now(offsets, max(0.1, min(seconds, self._default_timeout())))
        except KafkaError as error:
            _tell_uncommitted(self.config['group_id'], error)

    def _commit_for_rebalance(self, offsets: Offsets, seconds: float) -> Future:
        """Begin the same without waiting; a failure is logged."""
        future, tell = Future(), functools.partial(_tell_uncommitted, self.config['group_id'])
        self._commit_later(
            offsets, future, tell, True, max(0.1, min(seconds, self._default_timeout()))
        )
        return future

    # ------------------------------------------------------------ marks (0.9.5)

    def _mark(self, message: Any) -> bool:
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
        # With the epoch whoever begins there finds out whether the log was cut below it (KIP-320).
        epoch = getattr(message, 'leader_epoch', None)
        self._done[partition] = OffsetAndMetadata(
            message.offset + 1, '', -1 if epoch is None else epoch
        )
        return True


def _name(topic: Any) -> str:
    return topic.decode() if isinstance(topic, bytes) else topic


def _tell_uncommitted(group: str, error: Optional[KafkaError]) -> None:
    if error is not None:
        log.error(
            'group=%s: the automatic commit before a rebalance failed, some records will be handed'
            ' out again: %s',
            group,
            error,
        )


def _is_stored(state: Any, offset: OffsetAndMetadata) -> bool:
    if state is None or state.committed is None:
        return False
    # Behind a record of another epoch the log was cut and written anew.
    return bool(state.committed._replace(metadata=offset.metadata) == offset)
