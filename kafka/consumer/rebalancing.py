"""RebalanceSteps: the part of a rebalance that runs in the polling thread.

A group member of either protocol (kafka.coordinator.member) makes one RebalanceStep at a time and
waits until it is finished. This class commits, calls the rebalance listener as its release
expects, and changes the assignment. Runs in the thread inside the consumer; the assignment is
changed under the engine's lock.
"""

from __future__ import annotations

import functools
import inspect
import logging
from typing import Any, Mapping, Optional, Set

from kafka.consumer.call_checks import default_seconds
from kafka.consumer.commits import ConsumerCommits
from kafka.consumer.engine import Engine
from kafka.consumer.fetch_collector import FetchCollector
from kafka.consumer.listener import defines_lost, is_async
from kafka.consumer.one_thread import OneThread
from kafka.coordinator.member import Member, RebalanceStep, StepKind
from kafka.errors import KafkaError, KafkaTimeoutError
from kafka.future import Future, drive_coroutine
from kafka.internals.cleanup import clean_up
from kafka.internals.program_errors import log_program_error
from kafka.internals.running_calls import is_in_call
from kafka.structs import TopicPartition

__all__ = ['ListenerError', 'RebalanceSteps']

log = logging.getLogger(__name__)

#: How long a poll() waits for the commit before a revocation, whatever its own time-out.
COMMIT_SECONDS = 0.1


class ListenerError(KafkaError):
    """A rebalance listener raised; its exception is the cause. The rebalance was not stopped."""


class RebalanceSteps:
    """The steps of the rebalances of one consumer.

    Arguments:
        engine: the engine of the consumer.
        guard: the single-thread guard, which knows whether the consumer is closed.
        collector: the FetchCollector.
        commits: the ConsumerCommits.
        options: the options of the consumer.

    Attributes: listener: the rebalance listener or None. It is kept here and not in the engine,
        because it often refers to the consumer, which must stay collectable.
    """

    def __init__(
        self,
        engine: Engine,
        guard: OneThread,
        collector: FetchCollector,
        commits: ConsumerCommits,
        options: Mapping[str, Any],
    ) -> None:
        self._engine = engine
        self._guard = guard
        self._collector = collector
        self._commits = commits
        self._options = options
        self.listener: Any = None

    def __repr__(self) -> str:
        return '<RebalanceSteps member=%r>' % (self._engine.member,)

    def run(self) -> None:
        """Do the steps that the member waits for. Raises: ListenerError, for listeners of 3.0."""
        member = self._engine.member
        while member is not None:
            step = member.step  # read once: a turn in the background may withdraw it
            if step is None:
                return
            self._collector.stop_iterating()
            if not step.begin():
                if member.step is not step:
                    continue  # withdrawn, and replaced by another step or none
                if step.is_withdrawn or step.is_finished or is_in_call('begun', step):
                    return  # finished already, or this is a poll() inside the listener it calls
                # An exception ended the call that began it before the step was finished.
            begun = step
            if not self._is_ready_for(step):
                return  # poll() calls this again when the commit has ended
            try:
                self._do(begun)
            except ListenerError as error:  # the rest of the step was done
                clean_up(functools.partial(self._finish_step, member, step), error)
                raise
            # Any other exception came from outside and leaves the step unfinished. The next poll()
            # repeats it: a listener that was not called may be the one that sets positions.
            self._finish_step(member, step)

    def tell_closed(self, owned: Set[TopicPartition]) -> None:
        """Call on_partitions_revoked() for a consumer that closes, if the listener is one of 3.0.

        Raises: ListenerError, as run().
        """
        if owned and _is_of_3_0(self.listener):
            self._tell('on_partitions_revoked', owned)

    def _finish_step(self, member: Member, step: RebalanceStep) -> None:
        """Finish the step, and wait up to 50 ms until the member has continued."""
        if self._guard.is_closed:  # by the listener or a signal handler
            return
        step.finish()
        if member.step is step:
            # The member continues in a turn of the loop. If it takes longer, the next poll() finds
            # the step that follows.
            self._engine.wait(functools.partial(_is_over, member, step), 0.05)

    def _is_ready_for(self, step: RebalanceStep) -> bool:
        """Return True once the offsets of partitions to be revoked are committed."""
        if step.kind is StepKind.ASSIGN:
            return True
        # The commit is awaited for COMMIT_SECONDS at most: an unavailable coordinator must neither
        # prolong a poll() beyond its time-out, nor stop the partitions that stay.
        with self._engine.lock:
            self._engine.subscription.hold(step.partitions)
        return not step.commits or step.kind is StepKind.LOSE or self._has_committed(step)

    def _has_committed(self, step: RebalanceStep) -> bool:
        """Commit if commits are automatic; return True once that has ended, well or not."""
        if not self._commits.is_automatic:
            return True
        while True:
            if self._commits.is_telling():
                self._commits.tell_ended()
            commit = step.commit
            if commit is not None and (not commit.is_done or commit.failed()):
                return commit.is_done
            offsets, left = self._commits.changed(), step.deadline - self._engine.loop.time()
            if commit is not None:
                # Partitions that stay are read meanwhile: only the revoked ones count, whose
                # offsets may have changed by a mark or a seek.
                offsets = {each: offsets[each] for each in step.partitions & offsets.keys()}
                if left <= 0 or offsets.items() <= commit.value.items():
                    return True
            if not offsets:
                return True
            step.commit = self._commits.commit_for_rebalance(offsets, left)
            self._engine.wait(self._has_ended, COMMIT_SECONDS)

    def _has_ended(self) -> bool:
        return self._engine.is_woken or bool(self._commits.ended)

    def _do(self, step: RebalanceStep) -> None:
        if step.kind is StepKind.ASSIGN:
            self._assign(step)
        else:
            self._revoke(step)

    def _revoke(self, step: RebalanceStep) -> None:
        """Call the listener and remove the partitions; may be repeated from the start.

        Raises: ListenerError, after the partitions were removed.
        """
        is_lost = step.kind is StepKind.LOSE
        error = self._tell_once(step, 'on_partitions_lost' if is_lost else 'on_partitions_revoked')
        self._give_up(step, is_lost)
        if error is not None:
            raise error

    def _give_up(self, step: RebalanceStep, is_lost: bool) -> None:
        """Remove the partitions of a step from the assignment."""
        subscription = self._engine.subscription
        with self._engine.lock:
            if is_lost:
                subscription.revoke(step.partitions)
            else:
                subscription.give_back(step.partitions)
        self._collector.forget_held(step.partitions)
        self._commits.forget_marks(step.partitions)

    def _assign(self, step: RebalanceStep) -> None:
        """Assign partitions; the new ones are held until the listener was called.

        Raises: ListenerError, after the partitions were released.
        """
        engine = self._engine
        with engine.lock:
            engine.subscription.assign_from_subscribed(sorted(step.owned))
            engine.subscription.hold(step.partitions)
        engine.nudge()  # their positions are looked up meanwhile
        if engine.figures is not None:
            engine.figures.assignment_changed(step.owned)
        error = self._tell_once(step, 'on_partitions_assigned')
        with engine.lock:
            engine.subscription.release(step.partitions)
        engine.nudge_if_open()
        if error is not None:
            raise error

    # ------------------------------------------------------------ listeners

    def _tell_once(self, step: RebalanceStep, what: str) -> Optional[ListenerError]:
        """Call the listener for a step, unless it was called already; return its error or None."""
        error: Optional[ListenerError] = None
        if step.tells and not step.has_told:
            try:
                self._tell(what, set(step.partitions))
            except ListenerError as raised:
                error = raised
            step.has_told = True
        return error

    def _tell(self, what: str, partitions: Set[TopicPartition]) -> None:
        listener = self.listener
        if listener is None:
            return
        try:
            outcome = getattr(listener, what)(partitions)
            if inspect.iscoroutine(outcome):
                drive_coroutine(outcome, self._await)
        except Exception as error:
            if not _is_of_3_0(listener):
                log_program_error(log, error, '%s() of a rebalance listener failed', what)
                return
            text = '%s() of a rebalance listener failed: %r' % (what, error)
            raise ListenerError(text) from error

    def _await(self, future: Future) -> None:
        """Return when a future that a listener awaits is done. Raises: KafkaTimeoutError."""
        seconds = default_seconds(self._options)
        deadline = self._engine.loop.time() + seconds
        while not future.is_done:
            left = deadline - self._engine.loop.time()
            if left <= 0:
                raise KafkaTimeoutError('what a listener awaits took longer than %g s' % seconds)
            # The future may be that of commit_async(), which this thread itself completes.
            self._engine.wait(lambda: future.is_done or self._commits.ended, min(left, 0.05))
            self._commits.tell_ended()


def _is_over(member: Member, step: RebalanceStep) -> bool:
    return member.step is not step


def _is_of_3_0(listener: Any) -> bool:
    """Return True if a listener is called by close() and its errors are raised, as in 3.0.

    That is so for listeners that are asynchronous or define on_partitions_lost(), which earlier
    releases did not have.
    """
    return listener is not None and (is_async(listener) or defines_lost(listener))
