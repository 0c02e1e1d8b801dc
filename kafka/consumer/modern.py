"""ModernConsumer: the KafkaConsumer of 1.0 and later.

KafkaConsumer delegates to it; arguments and errors are documented there. FetchCollector takes the
records, ConsumerCommits commits, RebalanceSteps performs the steps of a rebalance, ConsumerQueries
sends the requests about topics and offsets; this class combines them. For one thread at a time,
which the single-thread guard checks, except wakeup() and assignment(). The parts of the engine have
no reference to these objects, so that a consumer can be garbage collected.
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
from kafka.net.loop.tasks import CoroutineCall
from kafka.record.vectors import ArrowMaker
from kafka.structs import (
    ConsumerGroupMetadata,
    ConsumerRecord,
    OffsetAndMetadata,
    TopicPartition,
)

__all__ = ['ModernConsumer']

log = logging.getLogger('kafka.consumer.kafka')

# Iteration takes at once as many records as it returned in this time, so that a program that is
# slow with each record still polls often enough to stay in its group.
_ITERATED_SECONDS = 1.0
#: The most records that iteration takes at once: about as many are decoded at a time.
_ITERATED_RECORDS = 1000
#: The longest single wait, in seconds: another thread may have closed the consumer meanwhile.
_LONG = 3600.0
#: The time-outs of close() without an argument, in seconds: of all of it, and of leaving the group.
_CLOSE_SECONDS, _LEAVE_SECONDS = 30.0, 5.0


class ModernConsumer:
    """The KafkaConsumer of 1.0 and later.

    Arguments:
        engine: the engine, built.
        options: the options of the consumer.
        guard: the single-thread guard.
        iteration: the state of __next__().
        deserializers: kept alive with the consumer: fetches have weak references to them.
        interceptors: the interceptors of the program.

    Attributes: queries: the ConsumerQueries; has_polled: whether it has begun to read.
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
        self._closing: Any = None  # a unique object during close()
        # The time when iteration took records last, and their number.
        self._iterated_at, self._iterated_size = 0.0, 0
        # Generation and member id when poll() ran last, for group_metadata().
        self._returned_as: Optional[ConsumerGroupMetadata] = None
        self.has_polled = False

    def __repr__(self) -> str:
        return '<ModernConsumer %r>' % (self._engine,)

    # ------------------------------------------------------------ poll()

    def poll(self, timeout_ms: Any, max_records: Any, hand_out: HandOut) -> Records:
        """Return records; the caller sets hand_out.is_open to False right before it returns."""
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
                # If one raises, hand_out stays open, and the next call puts the records back.
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
            collector.hand_out = hand_out  # again, as a listener may have polled meanwhile
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
        """Return the seconds until this thread has to do something besides waiting for records."""
        # Each wait ends in time for max_poll_interval_ms: a program that waits in poll() is alive.
        longest: float = min(_LONG, self._options['max_poll_interval_ms'] / 2000)
        next_at = min(self._siblings.next_at, self._commits.next_at())
        if next_at == math.inf:
            return longest
        return min(longest, max(0.001, next_at - self._now()))

    def _attend(self) -> None:
        """Do all pending work before records are returned, and raise pending errors.

        That is wakeup(), bootstrap, rebalance steps, callbacks of commits and automatic commits.
        """
        engine = self._engine
        self.has_polled = True
        self._check_wakeup()
        if self._pid != os.getpid():  # after a fork the connections belong to the parent
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
            if identity.generation_id >= 0:  # else keep the identity of the records returned before
                self._returned_as = identity
            self._steps.run()
        if self._commits.is_telling():
            self._commits.tell_ended()  # before an error is raised here
        error = engine.next_error()
        if error is not None:
            # Every poll may raise the same error object, and each would add to its traceback.
            raise error.with_traceback(None)
        self._check_topics()
        self._commits.commit_if_due()

    def _check_topics(self) -> None:
        """Raise the errors of subscribed or assigned topics in the metadata; request it again."""
        forbidden, invalid = self._refused_topics()
        if forbidden or invalid:
            self._engine.loop.call_threadsafe(self._engine.pool.refresh)
        if forbidden:
            raise TopicAuthorizationFailedError(forbidden)
        if invalid:
            raise InvalidTopicError(', '.join(sorted(invalid)))

    def _refused_topics(self) -> Tuple[Set[str], Set[str]]:
        """Return the topics without authorization, and those with an invalid name."""
        engine, cluster = self._engine, self._engine.pool.cluster
        unauthorized, invalid = cluster.unauthorized_topics, cluster.invalid_topics
        if not unauthorized and not invalid:
            return unauthorized, invalid
        with engine.lock:
            wanted = engine.subscription.topics()
        return wanted & unauthorized, wanted & invalid

    def wakeup(self) -> None:
        """Interrupt the call that waits; from any thread."""
        engine = self._engine
        engine.is_woken = True
        try:
            if not self._guard.is_closed:
                engine.loop.call_threadsafe(lambda: None)
        except IllegalStateError:
            if not self._guard.is_closed:  # else another thread has closed it meanwhile
                raise

    def _check_wakeup(self) -> None:
        if self._engine.is_woken:
            self._engine.is_woken = False
            raise WakeupError('wakeup() was called')

    # ------------------------------------------------------------ iteration

    def refill(self) -> None:
        """Fill the iterator with the next records, at least one; called when it is exhausted.

        Raises: StopIteration after consumer_timeout_ms without records, and after close();
            IllegalStateError (an AssertionError) if nothing is subscribed or assigned and there is
            no time-out: it would wait forever.
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
        hand_out.is_open = False  # last: records count as returned when they leave the iterator
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
        """Return the number of records that iteration takes at once."""
        now, most = self._now(), int(min(self._most, _ITERATED_RECORDS))
        if self._iterated_size:
            if 'max_poll_records' not in self._options.given:
                most = _ITERATED_RECORDS  # the default of the option limits only lists of poll()
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
        """Return a RecordBatch; the caller sets hand_out.is_open to False right before it returns.

        Raises: KafkaConfigurationError if deserializers are set.
        """
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
        """Commit offsets, and wait for the response."""
        return self._commits.commit(offsets, timeout_ms)

    def commit_async(self, offsets: Any, callback: Any) -> Future:
        """Commit without waiting; return a Future."""
        return self._commits.commit_async(offsets, callback)

    def task_done(self, message: Any) -> bool:
        """Mark a record, and all before it in its partition, as done."""
        self._guard.check_open()
        return self._commits.mark(message)

    # ------------------------------------------------------------ subscription and assignment

    def subscribe(self, topics: Any = (), pattern: Any = None, listener: Any = None) -> None:
        """Subscribe to topics or a pattern; with a group_id, the group shares their partitions."""
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
            if engine.member is None:  # else a rebalance step commits before the revocation
                self._commits.commit_before_rebalance(default_seconds(self._options))
            with engine.lock:
                engine.subscription.subscribe(
                    topics=topics or (), pattern=pattern, listener=listener
                )
                self._steps.listener, engine.subscription.listener = listener, None
            self._siblings.begin(self._now())
            self._changed_subscription()

    def subscription(self) -> Optional[Set[str]]:
        """Return the subscribed topics, those that a pattern has matched; None without any."""
        topics = self._engine.subscription.subscription
        return None if topics is None else set(topics)

    def unsubscribe(self) -> None:
        """Remove the subscription or assignment, and leave the group."""
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
            # After the change: if an exception prevents the change, they must not be lost.
            self._collector.held.clear()
            self._commits.done.clear()
            self._changed_subscription()

    def assign(self, wanted: List[TopicPartition]) -> None:
        """Read exactly these partitions, at least one, without a membership in the group."""
        with self._guard:
            self._collector.stop_iterating()
            self._commits.commit_before_rebalance(default_seconds(self._options))
            engine = self._engine
            with engine.lock:
                engine.subscription.assign_from_user(wanted)
            # If a partition is assigned again later, another consumer may have read on meanwhile.
            self._commits.forget_marks(
                self._commits.done.keys() - engine.subscription.assignment.keys()
            )
            self._changed_subscription()

    def assignment(self) -> Set[TopicPartition]:
        """Return the assigned partitions; from any thread."""
        engine = self._engine
        with engine.lock:
            return engine.subscription.meant()

    def left_after(
        self, partitions: Iterable[TopicPartition], assigned: Set[TopicPartition]
    ) -> Optional[List[TopicPartition]]:
        """Return the assignment that incremental_unassign() leaves; None if it changes nothing.

        Raises: IllegalStateError after subscribe(); NotAssignedError.
        """
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
            # The change may clear the error, which the next poll() must not raise then.
            taken: List[bool] = []
            engine.loop.call_threadsafe(taken.append, True)
            engine.wait(lambda: taken, 1.0)

    def _leave(self, reason: str, seconds: float) -> None:
        member = self._engine.member
        if member is not None and self._engine.subscription.partitions_auto_assigned():
            leave = CoroutineCall(member.leave, reason, seconds)
            self._engine.loop.run(leave, seconds + 1.0)

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return group id, generation and member id as of the last poll, for transactions."""
        self._guard.check_open()
        engine = self._engine
        now, then = engine.identity(), self._returned_as
        if then is None or not engine.subscription.partitions_auto_assigned():
            return now
        return then._replace(state=now.state)

    def enforce_rebalance(self, reason: str) -> None:
        """Request a rebalance of the group, with the next poll()."""
        self._guard.check_open()
        member = self._engine.member
        if member is None or not self._engine.subscription.partitions_auto_assigned():
            raise IllegalStateError('this consumer is no member of a group')
        self._engine.loop.call_threadsafe(member.rejoin, reason or 'enforce_rebalance() was called')

    # ------------------------------------------------------------ positions

    def position(self, partition: TopicPartition, timeout_ms: Any) -> Optional[int]:
        """Return the offset of the next record to be returned; look it up if it is not known."""
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
        """Return the number of offsets from the position to the end, as of the last fetch."""
        check_partition(partition)
        self._guard.check_open()
        self._collector.sync()
        engine = self._engine
        with engine.lock:
            lag: Optional[int] = engine.subscription.state(partition).lag(self._read_committed)
        return lag

    def offsets(self, group: Optional[str]) -> Any:
        """Return the known offsets of each partition, in the maps of 0.9.5."""
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
        """Set the offset from which the next poll() reads."""
        check_partition(partition)
        target = offset
        if isinstance(offset, OffsetAndMetadata):
            check_offset(offset.offset)
        else:
            target = check_offset(offset)
        self._move([partition], lambda subscription: subscription.seek(partition, target))

    def seek_to(self, partitions: Iterable[TopicPartition], strategy: str) -> None:
        """Seek to the first offset ('earliest') or the end ('latest'), looked up when needed."""
        wanted = self._assigned(partitions)

        def move(subscription: SubscriptionState) -> None:
            for each in wanted:
                subscription.seek_to(each, strategy)

        self._move(wanted, move)

    def seek_to_committed(self, partitions: Iterable[TopicPartition]) -> None:
        """Seek to the committed offset, or according to auto_offset_reset if there is none."""
        wanted, commits = self._assigned(partitions), self._engine.commits
        if commits is None:
            raise IllegalStateError('seek_to_committed() needs the option group_id')
        with self._guard:
            seconds, identity = default_seconds(self._options), self._engine.identity()
            ask = CoroutineCall(commits.fetch, wanted, seconds, identity)
            found = self._engine.run(ask, seconds)

        def move(subscription: SubscriptionState) -> None:
            for each in wanted:
                offset = found.get(each)
                if offset is None:
                    subscription.need_offset_reset(each)
                else:
                    subscription.seek(each, offset)

        self._move(wanted, move)

    def skip_corrupt(self, partition: Optional[TopicPartition]) -> Tuple[TopicPartition, int]:
        """Skip the batch that could not be read; return its partition and the offset after it."""
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
            with self._engine.lock:  # a turn of the loop may assign topics that a pattern matched
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
        """Pause or resume partitions. Raises KeyError for one that is not assigned."""
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
        """Commit if commits are automatic, leave the group unless static, and close the engine."""
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
                with self._guard:  # raises while another thread is closing
                    self._end(0.5)
            return
        if os.getpid() != self._pid:  # in a forked child: the connections belong to the parent
            self._guard.is_closed = True
            return
        deadline = self._now() + seconds
        with contextlib.ExitStack() as at_last, self._guard:  # runs even if a callback raises
            if self._closing is not None and not self._is_interrupted_closing():
                return  # a listener called inside close() calls close() too
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
                self._iteration.last_next = None  # its frame may refer to the consumer
                self._end(max(0.5, deadline - self._now()))

    def _end(self, seconds: float) -> None:
        """Close the connections, and call the callbacks of commits without a response."""
        self._engine.close(seconds)
        text = 'the consumer was closed before the commit was answered: it may be stored or not'
        self._commits.fail_pending(ConsumerClosedError(text))
        self._closing = None
        try:
            self._commits.tell_ended()
        except Exception as error:
            log_program_error(log, error, 'a callback of a commit failed')

    def _is_interrupted_closing(self) -> bool:
        """Return True if an exception ended close() before it was complete."""
        return self._closing is not None and not is_in_call('closing', self._closing)

    def _finish(self, autocommit: bool, deadline: float, to_leave: float) -> None:
        """Commit and leave the group; errors of brokers are logged."""
        self._collector.stop_iterating()
        subscription = self._engine.subscription
        left = deadline - self._now()
        # A share of the time is kept for leaving: during a rebalance the commit may wait for the
        # other members until its time-out, and the group would then wait for a member that is gone.
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
    """Return the schedule of automatic commits; None if they are off, or offsets not stored."""
    if not options['enable_auto_commit'] or engine.commits is None:
        return None
    return AutoCommit(
        options['auto_commit_interval_ms'] / 1000,
        options['retry_backoff_ms'] / 1000,
        engine.loop.time(),
    )
