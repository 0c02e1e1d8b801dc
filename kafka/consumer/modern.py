"""The modern consumer, as of 1.0 and later: poll, iteration, poll_arrow, positions, assignment.

KafkaConsumer calls it, with the same arguments and errors, which are documented there. What it does
is divided: the FetchCollector takes records, ConsumerCommits commits, RebalanceSteps does what a
rebalance needs, ConsumerQueries asks the brokers; here is what a call does before and after that.
For one thread at a time, which the single-thread guard checks, but for wakeup() and assignment().
Nothing here is known to the parts of the engine, so that a consumer can be collected.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
from typing import Any, Callable, Iterable, Iterator, List, Optional, Sequence, Set, Tuple

from kafka.blocking.topic_maps import TopicDict
from kafka.consumer.call_checks import (
    ConsumerClosedError,
    as_partitions,
    check_offset,
    check_partition,
    check_partitions,
    check_whole,
    default_seconds,
    seconds_of,
)
from kafka.consumer.commits import ConsumerCommits
from kafka.consumer.engine import Engine
from kafka.consumer.fetch_collector import FetchCollector, IteratedRecords, Records
from kafka.consumer.hand_out import HandOut, Iteration
from kafka.consumer.listener import SubscriptionPattern
from kafka.consumer.one_thread import OneThread
from kafka.consumer.queries import ConsumerQueries
from kafka.consumer.rebalancing import RebalanceSteps
from kafka.consumer.siblings import SiblingWatch
from kafka.consumer.subscription_state import NotAssignedError, SubscriptionState
from kafka.coordinator.commits.schedule import AutoCommit
from kafka.errors import (
    IllegalStateError,
    InvalidTopicError,
    KafkaConfigurationError,
    KafkaError,
    TopicAuthorizationFailedError,
    UnsupportedVersionError,
    WakeupError,
)
from kafka.future import Future
from kafka.internals.cleanup import CleanUp
from kafka.internals.program_errors import log_program_error
from kafka.internals.running_calls import is_in_call
from kafka.internals.validation import where
from kafka.record.vectors import ArrowMaker
from kafka.structs import (
    ConsumerGroupMetadata,
    ConsumerRecord,
    OffsetAndMetadata,
    TopicPartition,
)

__all__ = ['ModernConsumer']

log = logging.getLogger('kafka.consumer.kafka')

# Iteration takes as many records at once as it returned in this time, so that a program that is
# slow with each record takes part in its group all the same.
_ITERATED_SECONDS = 1.0
#: And never more; so many are decoded together.
_ITERATED_RECORDS = 1000
#: The longest wait at a stretch: until then another thread may have closed the consumer.
_LONG = 3600.0
#: How long close() takes at most without a time-out, and leaving a group of that.
_CLOSE_SECONDS, _LEAVE_SECONDS = 30.0, 5.0


class ModernConsumer:
    """What a KafkaConsumer of 1.0 and later does.

    Arguments:
        engine: its parts, built.
        options: of the consumer.
        guard: the single-thread guard.
        iteration: where iteration takes records from.
        deserializers: kept as long as the consumer, for its fetches.
        interceptors: objects of the program.

    Attributes: queries: what can be asked of brokers; has_polled: whether it has begun to read.
    """

    def __init__(
        self,
        engine: Engine,
        options: Any,
        guard: OneThread,
        iteration: Iteration,
        deserializers: Sequence[Any] = (),
        interceptors: Sequence[Any] = (),
    ) -> None:
        read_committed: bool = options['isolation_level'] == 'read_committed'
        self._engine = engine
        self._options = options
        self._guard = guard
        self._iteration = iteration
        self._deserializers = deserializers
        self._interceptors = interceptors
        self._read_committed = read_committed
        self._most: float = options['max_poll_records']
        self._pid = os.getpid()
        self._now = engine.loop.time
        self._collector = FetchCollector(engine, iteration, interceptors, read_committed)
        self._commits = ConsumerCommits(
            engine,
            guard,
            self._collector,
            options,
            interceptors,
            _auto_commit(options, engine),
        )
        self._steps = RebalanceSteps(engine, guard, self._collector, self._commits, options)
        self.queries = ConsumerQueries(engine, guard, options)
        self._siblings = SiblingWatch(
            engine.member, options['group_id'], options['bootstrap_servers'], guard
        )
        self._closing: Any = None  # the mark of the call of close() that is under way
        # When iteration took records last, and how many.
        self._iterated_at, self._iterated_size = 0.0, 0
        # As which member it returned records last.
        self._returned_as: Optional[ConsumerGroupMetadata] = None
        self.has_polled = False

    def __repr__(self) -> str:
        return '<ModernConsumer %r>' % (self._engine,)

    # ------------------------------------------------------------ poll()

    def poll(self, timeout_ms: Any, max_records: Any, hand_out: HandOut) -> Records:
        """Return records; the caller closes the hand-out by its last step before its return."""
        seconds = seconds_of(timeout_ms, 0.0)
        most = self._most if max_records is None else check_whole(max_records, 'max_records', 1)
        with self._guard:
            self._begin_reading()
            began, figures = self._now(), self._engine.figures
            try:
                records = self._poll(began + seconds, most, hand_out)
            finally:
                if figures is not None:
                    figures.polled(began, self._now())
            if records and self._interceptors:
                # They come again where an interceptor raises.
                records = self._collector.intercepted(records)
        return records

    def _begin_reading(self) -> None:
        if self._guard.is_closed:
            self._guard.check_open()  # raises
        self._collector.begin()

    def _poll(self, deadline: float, most: float, hand_out: HandOut) -> Records:
        """Wait until there are records; {} at the deadline."""
        engine, collector, has_waited = self._engine, self._collector, False
        while True:
            self._attend()
            collector.hand_out = hand_out  # also where a listener has polled meanwhile
            hand_out.is_open = True
            records = collector.collect(most)
            if records:
                return records
            hand_out.is_open = False
            left, pause = deadline - self._now(), self._until_due()
            if left <= 0 and has_waited:
                return records
            has_waited = True
            if not engine.wait(self._has_news, max(0.0, min(left, pause))) and left <= pause:
                return records

    def _has_news(self) -> bool:
        if self._engine.is_woken or self._commits.ended or self._engine.has_news():
            return True
        forbidden, invalid = self._refused_topics()
        return bool(forbidden or invalid)

    def _until_due(self) -> float:
        """Return the seconds until something is due that only this thread does."""
        # A wait is part of a poll: the program lives.
        longest: float = min(_LONG, self._options['max_poll_interval_ms'] / 2000)
        next_at = min(self._siblings.next_at, self._commits.next_at())
        if next_at == math.inf:
            return longest
        return min(longest, max(0.001, next_at - self._now()))

    def _attend(self) -> None:
        """Do what is pending before records are returned; raise what has to be raised."""
        engine = self._engine
        self.has_polled = True
        self._check_wakeup()
        if self._pid != os.getpid():  # what a fork has inherited is the parent's
            engine.nudge()  # raises
        if not engine.has_begun:
            engine.loop.call_threadsafe(engine.search)
        member = engine.member
        if member is not None and engine.subscription.partitions_auto_assigned():
            now = self._now()
            member.polled(now)
            watch = self._siblings
            watch.polled_at = now
            if now >= watch.next_at:
                watch.check(now, member.is_stable and bool(engine.subscription.assignment))
            identity = member.identity()
            if identity.generation_id >= 0:  # else what it has was returned as an earlier member
                self._returned_as = identity
            self._steps.run()
        if self._commits.is_telling():
            self._commits.tell_ended()  # also of failed commits, before what fails is raised here
        error = engine.next_error()
        if error is not None:
            # It may stand, and be raised by every poll: each adds to its traceback.
            raise error.with_traceback(None)
        self._check_topics()
        self._commits.commit_if_due()

    def _check_topics(self) -> None:
        """Raise, each time, what brokers said about topics that are to be read."""
        forbidden, invalid = self._refused_topics()
        if forbidden or invalid:
            self._engine.loop.call_threadsafe(self._engine.pool.refresh)
        if forbidden:
            raise TopicAuthorizationFailedError(forbidden)
        if invalid:
            raise InvalidTopicError(', '.join(sorted(invalid)))

    def _refused_topics(self) -> Tuple[Set[str], Set[str]]:
        """Return which topics may not be read, and which have an invalid name."""
        engine, cluster = self._engine, self._engine.pool.cluster
        unauthorized, invalid = cluster.unauthorized_topics, cluster.invalid_topics
        if not unauthorized and not invalid:
            return unauthorized, invalid
        with engine.lock:
            wanted = engine.subscription.topics()
        return wanted & unauthorized, wanted & invalid

    def wakeup(self) -> None:
        """End the call that waits; from any thread."""
        engine = self._engine
        engine.is_woken = True
        try:
            if not self._guard.is_closed:
                engine.loop.call_threadsafe(lambda: None)
        except IllegalStateError:
            if not self._guard.is_closed:  # else its thread has closed it meanwhile
                raise

    def _check_wakeup(self) -> None:
        if self._engine.is_woken:
            self._engine.is_woken = False
            raise WakeupError('wakeup() was called')

    # ------------------------------------------------------------ iteration

    def refill(self) -> None:
        """Let iteration go on with the next records, at least one; called after the last ones.

        Raises: StopIteration after consumer_timeout_ms without any, and when closed; Illegal-
            StateError (an AssertionError) where it would wait for ever, as nothing is to be read.
        """
        if self._guard.is_closed:
            raise StopIteration
        with self._guard:
            self._check_aim()
            self._begin_reading()
            hand_out = HandOut()
            began, figures = self._now(), self._engine.figures
            deadline = began + self._options['consumer_timeout_ms'] / 1000
            most = self._iteration_limit()
            try:
                records = self._next_records(deadline, most, hand_out)
            finally:
                if figures is not None:
                    figures.polled(began, self._now())
        if records is None:
            raise StopIteration
        hand_out.is_open = False  # after all else: what leaves the iterator counts as returned
        self._iteration.records = records

    def _check_aim(self) -> None:
        subscription = self._engine.subscription
        if (
            subscription.subscription is None
            and not subscription.assignment
            and self._options['consumer_timeout_ms'] == math.inf
        ):
            raise IllegalStateError('nothing is to be read: subscribe() or assign() first')

    def _iteration_limit(self) -> int:
        """Return how many records iteration takes at once."""
        now, most = self._now(), int(min(self._most, _ITERATED_RECORDS))
        if self._iterated_size:
            if 'max_poll_records' not in self._options.given:
                most = _ITERATED_RECORDS  # its default limits lists
            seconds = max(now - self._iterated_at, 1e-6)
            allowed = self._iterated_size * _ITERATED_SECONDS / seconds
            most = max(1, min(most, int(allowed)))
        self._iterated_at = now
        return most

    def _next_records(
        self, deadline: float, most: int, hand_out: HandOut
    ) -> Optional[Iterator[ConsumerRecord]]:
        """Return an iterator over records of one partition; None at the deadline."""
        engine, collector, has_waited = self._engine, self._collector, False
        while True:
            self._attend()
            collector.hand_out = hand_out
            hand_out.is_open = True
            taken: Optional[IteratedRecords] = collector.take_for_iteration(most)
            if taken is not None:
                if not collector.is_current(taken.partition, taken.token):
                    continue
                self._iterated_size, records = collector.iterate_over(taken)
                if self._iterated_size:
                    return records
                continue
            hand_out.is_open = False
            left = deadline - self._now()
            if left <= 0 and has_waited:
                return None
            has_waited = True
            engine.wait(self._has_news, max(0.0, min(left, self._until_due())))

    # ------------------------------------------------------------ poll_arrow()

    def poll_arrow(
        self, timeout_ms: Any, columns: Sequence[str], timestamp_unit: str, hand_out: HandOut
    ) -> Any:
        """Return a RecordBatch; the caller closes the hand-out by its last step, as of poll()."""
        seconds = seconds_of(timeout_ms, 0.0)
        if self._options['key_deserializer'] or self._options['value_deserializer']:
            raise KafkaConfigurationError('Arrow batches have bytes: leave out deserializers')
        maker = ArrowMaker(columns, timestamp_unit)
        with self._guard:
            self._begin_reading()
            batch = self._poll_arrow(self._now() + seconds, maker, hand_out)
        return batch

    def _poll_arrow(self, deadline: float, maker: ArrowMaker, hand_out: HandOut) -> Any:
        engine, collector, has_waited = self._engine, self._collector, False
        while True:
            self._attend()
            collector.hand_out = hand_out
            hand_out.is_open = True
            batch = collector.collect_arrow(maker)
            while batch is not None and not batch.num_rows:
                batch = collector.collect_arrow(maker)
            if batch is not None:
                return batch
            hand_out.is_open = False
            left = deadline - self._now()
            if left <= 0 and has_waited:
                return None
            has_waited = True
            engine.wait(self._has_news, max(0.0, min(left, self._until_due())))

    # ------------------------------------------------------------ commits

    def commit(self, offsets: Any, timeout_ms: Any) -> bool:
        """Commit offsets, and wait for it."""
        return self._commits.commit(offsets, timeout_ms)

    def commit_async(self, offsets: Any, callback: Any) -> Future:
        """Commit without waiting; return a Future."""
        return self._commits.commit_async(offsets, callback)

    def task_done(self, message: Any) -> bool:
        """Mark a record, and all before it in its partition, as done."""
        self._guard.check_open()
        return self._commits.mark(message)

    # ------------------------------------------------------------ what is read

    def subscribe(self, topics: Any = (), pattern: Any = None, listener: Any = None) -> None:
        """Read topics, sharing their partitions with the group if there is a group_id."""
        with self._guard:
            self._guard.check_open()
            if isinstance(topics, str):
                topics = [topics]
            engine = self._engine
            if isinstance(pattern, SubscriptionPattern) and (
                engine.member is None or self._options['group_protocol'] != 'consumer'
            ):
                raise UnsupportedVersionError(
                    'a SubscriptionPattern is matched by brokers in a group with the option'
                    " group_protocol='consumer' only (KIP-848)"
                )
            self._collector.stop_iterating()
            if engine.member is None:  # no member does it before the partitions go
                self._commits.commit_before_rebalance(default_seconds(self._options))
            with engine.lock:
                engine.subscription.subscribe(
                    topics=topics or (), pattern=pattern, listener=listener
                )
                self._steps.listener, engine.subscription.listener = listener, None
            self._siblings.begin(self._now())
            self._changed_subscription()

    def subscription(self) -> Optional[Set[str]]:
        """Return the subscribed topics, those found so far for a pattern; None without."""
        topics = self._engine.subscription.subscription
        return None if topics is None else set(topics)

    def unsubscribe(self) -> None:
        """Read nothing any more, and leave the group."""
        with self._guard:
            self._guard.check_open()
            self._collector.stop_iterating()
            deadline = self._now() + default_seconds(self._options)
            self._commits.commit_before_rebalance(default_seconds(self._options))
            self._commits.await_pending(deadline - self._now())
            self._leave('unsubscribe() was called', default_seconds(self._options))
            engine = self._engine
            with engine.lock:
                engine.subscription.unsubscribe()
                self._steps.listener = None
            # After the change: while the old subscription stands, an exception must not lose them.
            self._collector.held.clear()
            self._commits.done.clear()
            self._changed_subscription()

    def assign(self, wanted: List[TopicPartition]) -> None:
        """Read these partitions, at least one, and no others, outside of the group."""
        with self._guard:
            self._collector.stop_iterating()
            self._commits.commit_before_rebalance(default_seconds(self._options))
            engine = self._engine
            with engine.lock:
                engine.subscription.assign_from_user(wanted)
            # Others may have read on from there when a partition comes back.
            self._commits.forget_marks(
                self._commits.done.keys() - engine.subscription.assignment.keys()
            )
            self._changed_subscription()

    def assignment(self) -> Set[TopicPartition]:
        """Return the partitions that are read now; from any thread."""
        engine = self._engine
        with engine.lock:
            return engine.subscription.meant()

    def left_after(
        self, partitions: Iterable[TopicPartition], assigned: Set[TopicPartition]
    ) -> Optional[List[TopicPartition]]:
        """Return what incremental_unassign() leaves of an assignment; None if it names nothing."""
        gone = set(as_partitions(partitions))
        if self._engine.subscription.subscription is not None:
            raise IllegalStateError('this consumer reads topics: subscribe() to others')
        for each in gone - assigned:
            raise NotAssignedError('%s is not assigned to this consumer' % where(each))
        return sorted(assigned - gone) if gone else None

    def _changed_subscription(self) -> None:
        figures = self._engine.figures
        if figures is not None:
            figures.assignment_changed(self.assignment())
        engine, member = self._engine, self._engine.member
        engine.loop.call_threadsafe(engine.following.subscribed)
        if member is not None and member.error is not None:
            # The change may cure it: the next poll is not to raise the old error.
            taken: List[bool] = []
            engine.loop.call_threadsafe(taken.append, True)
            engine.wait(lambda: taken, 1.0)

    def _leave(self, reason: str, seconds: float) -> None:
        member = self._engine.member
        if member is not None and self._engine.subscription.partitions_auto_assigned():
            self._engine.loop.run(member.leave(reason, seconds), seconds + 1.0)

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return as which member records were returned last, for transactions."""
        self._guard.check_open()
        engine = self._engine
        now, then = engine.identity(), self._returned_as
        if then is None or not engine.subscription.partitions_auto_assigned():
            return now
        return then._replace(state=now.state)

    def enforce_rebalance(self, reason: str) -> None:
        """Let the group share its partitions again with the next poll()."""
        self._guard.check_open()
        member = self._engine.member
        if member is None or not self._engine.subscription.partitions_auto_assigned():
            raise IllegalStateError('this consumer is no member of a group')
        self._engine.loop.call_threadsafe(member.rejoin, reason or 'enforce_rebalance() was called')

    # ------------------------------------------------------------ positions

    def position(self, partition: TopicPartition, timeout_ms: Any) -> Optional[int]:
        """Return the offset of the next record to be returned, looked up if it is not known."""
        check_partition(partition)
        seconds = seconds_of(timeout_ms, default_seconds(self._options))
        with self._guard:
            self._guard.check_open()
            self._collector.sync()
            engine = self._engine

            def known() -> Optional[int]:
                with engine.lock:
                    position: Optional[int] = engine.subscription.state(partition).position
                return position

            found = known()
            if found is None:
                engine.loop.call_threadsafe(engine.search)
                engine.nudge()
                error_of = engine.positions.error_of
                engine.wait(
                    lambda: known() is not None or error_of(partition) or engine.errors, seconds
                )
                found = known()
                error = error_of(partition)
                if found is None and error is None and engine.errors:
                    error = engine.errors.popleft()
                if found is None and error is not None:
                    raise error.with_traceback(None)
            return found

    def lag(self, partition: TopicPartition) -> Optional[int]:
        """Return how many offsets are after the position, as of the last fetch."""
        check_partition(partition)
        self._guard.check_open()
        self._collector.sync()
        engine = self._engine
        with engine.lock:
            lag: Optional[int] = engine.subscription.state(partition).lag(self._read_committed)
        return lag

    def offsets(self, group: Optional[str]) -> Any:
        """Return what is known of each partition, in the maps of 0.9.5."""
        self._collector.sync()
        engine, columns = self._engine, dict.fromkeys(('fetch', 'highwater', 'commit', 'task_done'))
        if group is not None and group not in columns:
            raise ValueError('group must be one of %s, not %r' % (', '.join(columns), group))
        done = self._commits.done
        with engine.lock:
            states = dict(engine.subscription.assignment)
            found = {
                'fetch': {each: state.position for each, state in states.items()},
                'highwater': {each: state.highwater for each, state in states.items()},
                'commit': {
                    each: None if state.committed is None else state.committed.offset
                    for each, state in states.items()
                },
                'task_done': {
                    each: done[each].offset - 1 if each in done else None for each in states
                },
            }
        maps = {name: TopicDict(column.items()) for name, column in found.items()}
        return maps if group is None else maps[group]

    def seek(self, partition: TopicPartition, offset: Any) -> None:
        """Go on at an offset with the next poll()."""
        check_partition(partition)
        target = offset
        if isinstance(offset, OffsetAndMetadata):
            check_offset(offset.offset)
        else:
            target = check_offset(offset)
        self._move([partition], lambda subscription: subscription.seek(partition, target))

    def seek_to(self, partitions: Iterable[TopicPartition], strategy: str) -> None:
        """Go on at the first offset or the end, 'earliest' or 'latest', looked up when needed."""
        wanted = self._assigned(partitions)

        def move(subscription: SubscriptionState) -> None:
            for each in wanted:
                subscription.seek_to(each, strategy)

        self._move(wanted, move)

    def seek_to_committed(self, partitions: Iterable[TopicPartition]) -> None:
        """Go on at the committed offset, or as the option auto_offset_reset says."""
        wanted, commits = self._assigned(partitions), self._engine.commits
        if commits is None:
            raise IllegalStateError('seek_to_committed() needs the option group_id')
        with self._guard:
            seconds, identity = default_seconds(self._options), self._engine.identity()
            found = self._engine.run(commits.fetch(wanted, seconds, identity), seconds)

        def move(subscription: SubscriptionState) -> None:
            for each in wanted:
                offset = found.get(each)
                if offset is None:
                    subscription.need_offset_reset(each)
                else:
                    subscription.seek(each, offset)

        self._move(wanted, move)

    def skip_corrupt(self, partition: Optional[TopicPartition]) -> Tuple[TopicPartition, int]:
        """Give up the batch that could not be read; return its partition and what follows it."""
        fetch, of = self._collector.failed, '' if partition is None else ' of ' + where(partition)
        if (
            fetch is None
            or partition not in (None, fetch.partition)
            or not self._collector.is_current(fetch.partition, fetch.token)
        ):
            raise IllegalStateError('no batch%s was met that cannot be read' % of)
        offset: int = fetch.skip_corrupt()
        self._collector.failed = None
        return fetch.partition, offset

    def _assigned(self, partitions: Iterable[TopicPartition]) -> List[TopicPartition]:
        wanted = check_partitions(partitions)
        self._guard.check_open()
        if not wanted:
            with self._engine.lock:  # a topic of a pattern may be assigned in a turn
                wanted = sorted(self._engine.subscription.meant())
            if not wanted:
                raise NotAssignedError('no partitions are assigned')
        return wanted

    def _move(
        self, partitions: List[TopicPartition], change: Callable[[SubscriptionState], Any]
    ) -> None:
        with self._guard:
            self._guard.check_open()
            self._collector.stop_iterating()
            engine = self._engine
            with engine.lock:
                for partition in partitions:
                    engine.subscription.state(partition)
                change(engine.subscription)
            self._collector.forget_held(partitions)
            self._commits.forget_marks(partitions)
            engine.nudge()

    # ------------------------------------------------------------ pauses

    def change_pause(self, partitions: Iterable[TopicPartition], pauses: bool) -> None:
        """Return nothing of these partitions, or return their records again."""
        wanted = check_partitions(partitions)
        with self._guard:
            self._guard.check_open()
            self._collector.stop_iterating()
            engine = self._engine
            with engine.lock:
                known = {*engine.subscription.assignment, *engine.subscription.paused_partitions()}
                missing = [each for each in wanted if each not in known]
                if missing:
                    raise KeyError(missing[0])
                for each in wanted:
                    if pauses:
                        engine.subscription.pause(each)
                    else:
                        engine.subscription.resume(each)
            engine.nudge()

    def paused(self) -> Set[TopicPartition]:
        """Return the partitions that are paused."""
        engine = self._engine
        with engine.lock:
            return set(engine.subscription.paused_partitions())

    # ------------------------------------------------------------ the end

    def close(self, autocommit: bool, timeout_ms: Any) -> None:
        """Commit if that is automatic, leave the group unless static, and end the engine."""
        if timeout_ms is None:
            self._close(
                autocommit, min(default_seconds(self._options), _CLOSE_SECONDS), _LEAVE_SECONDS
            )
        else:
            seconds = seconds_of(timeout_ms, 0.0)
            self._close(autocommit, seconds, seconds)

    def _close(self, autocommit: bool, seconds: float, to_leave: float) -> None:
        engine = self._engine
        if self._guard.is_closed:
            if self._is_interrupted_closing():
                with self._guard:  # not while another thread is at it
                    self._end(0.5)
            return
        if os.getpid() != self._pid:  # the child of a fork: everything belongs to the parent
            self._guard.is_closed = True
            return
        deadline = self._now() + seconds
        with contextlib.ExitStack() as at_last, self._guard:  # whatever a callback raises
            if self._closing is not None and not self._is_interrupted_closing():
                return  # a listener that is told of the end calls close() too
            closing = self._closing = object()  # noqa: F841 - found by _is_interrupted_closing()
            if engine.figures is not None:
                at_last.enter_context(CleanUp(engine.figures.metrics.close))
            for each in (self._options['value_deserializer'], self._options['key_deserializer']):
                if hasattr(each, 'close'):
                    at_last.enter_context(CleanUp(each.close))
            try:
                self._finish(autocommit, deadline, to_leave)
            finally:
                self._guard.is_closed = True
                self._siblings.close()
                self._iteration.records = iter(())
                self._iteration.last_next = None  # whose frame may refer to the consumer
                self._end(max(0.5, deadline - self._now()))

    def _end(self, seconds: float) -> None:
        """Close the connections, and call the callbacks of commits that were not answered."""
        self._engine.close(seconds)
        text = 'the consumer was closed before the commit was answered: it may be stored or not'
        self._commits.fail_pending(ConsumerClosedError(text))
        self._closing = None
        try:
            self._commits.tell_ended()
        except Exception as error:
            log_program_error(log, error, 'a callback of a commit failed')

    def _is_interrupted_closing(self) -> bool:
        """Return True if an exception has ended a call of close() before its end."""
        return self._closing is not None and not is_in_call('closing', self._closing)

    def _finish(self, autocommit: bool, deadline: float, to_leave: float) -> None:
        """Commit and leave the group; errors of brokers are logged.

        The commit of a member that joins has to wait for the others: leaving has its own share of
        the time, or the group would wait for a member that is gone.
        """
        self._collector.stop_iterating()
        subscription = self._engine.subscription
        left = deadline - self._now()
        kept = min(max(0.1, left / 4), _LEAVE_SECONDS)
        if autocommit:
            self._commits.commit_before_rebalance(left - kept)
        owned = set(subscription.assignment) if subscription.partitions_auto_assigned() else set()
        try:
            self._steps.tell_closed(owned)
        except KafkaError as error:
            log.error('%s', error)
        self._commits.await_pending(deadline - self._now() - kept)
        try:
            left = max(kept, deadline - self._now())
            self._leave('the consumer is closed', min(left, max(0.1, to_leave)))
        except KafkaError as error:
            log.warning('group=%s: could not be left: %s', self._options['group_id'], error)
        self._commits.tell_ended()


def _auto_commit(options: Any, engine: Engine) -> Optional[AutoCommit]:
    """Return when to commit automatically; None for never."""
    if not options['enable_auto_commit'] or engine.commits is None:
        return None
    return AutoCommit(
        options['auto_commit_interval_ms'] / 1000,
        options['retry_backoff_ms'] / 1000,
        engine.loop.time(),
    )
