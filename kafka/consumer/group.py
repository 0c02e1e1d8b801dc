"""KafkaConsumer, one class for programs written for 0.9.5 and for later releases.

Its methods check the dialect and delegate to a ModernConsumer or a Consumer09. The arguments of the
constructor decide which; a method of 0.9.5 may replace the former by the latter, once, before
anything was fetched. Where a method calls another public method, which a subclass may override, the
call is made here, on the consumer itself. For one thread at a time, except wakeup() and
assignment().
"""

from __future__ import annotations

import copy
import copyreg
import functools
import logging
import os
import sys
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from kafka import config
from kafka.consumer.arguments_09 import DEFAULT_CONSUMER_CONFIG, DEPRECATED_CONFIG_KEYS
from kafka.consumer.call_checks import ConsumerClosedError, as_partitions, check_partition
from kafka.consumer.deserializers import LentDeserializer, adapt_deserializer
from kafka.consumer.engine import Engine
from kafka.consumer.fetch.completed_fetch import CompletedFetch
from kafka.consumer.hand_out import KEEPS_FRAMES, NOTHING, HandOut, Iteration, has_lost
from kafka.consumer.kafka_09 import Consumer09
from kafka.consumer.modern import ModernConsumer
from kafka.consumer.one_thread import OneThread
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.errors import IllegalStateError, KafkaConfigurationError, NoBrokersAvailable
from kafka.future import Future
from kafka.internals.cleanup import clean_up
from kafka.internals.logging_setup import be_quiet
from kafka.net.client import NetworkClient
from kafka.net.settings import NetSettings
from kafka.record.vectors import DEFAULT_COLUMNS
from kafka.structs import (
    ConsumerGroupMetadata,
    ConsumerRecord,
    KafkaMessage,
    OffsetAndTimestamp,
    TopicPartition,
)

log = logging.getLogger('kafka.consumer.kafka')

OLD, MODERN = '0.9.5', 'modern'
ENVIRONMENT_VARIABLE = 'KAFKA_LEGACY_DIALECT'

_OPTIONS = config.options_of(config.CONSUMER)
_ONLY_OLD = config.ONLY_0_9
# Options of 1.x to 3.x that 0.9.5 did not have; options of both decide nothing.
_ONLY_MODERN = (
    (_OPTIONS.keys() | {old for row in _OPTIONS.values() for old in row.old})
    - DEFAULT_CONSUMER_CONFIG.keys()
    - DEPRECATED_CONFIG_KEYS.keys()
    - {'dialect'}
)

#: The replacements of the methods of 0.9.5 that a modern consumer does not have. It does have
#: offsets() and task_done().
_SUCCESSORS = {
    'configure': 'another KafkaConsumer()',
    'set_topic_partitions': 'subscribe() or assign()',
    'fetch_messages': 'poll() or iteration',
    'get_partition_offsets': 'beginning_offsets(), end_offsets() or offsets_for_times()',
}
_HOW_TO_SAY_SO = "dialect='0.9.5' or the environment variable %s=0.9.5" % ENVIRONMENT_VARIABLE


class _NotOffered(KafkaConfigurationError, AttributeError):
    """A method of 1.0 and later was called on a consumer of 0.9.5.

    Also an AttributeError, as in 0.9.5.
    """


class _OfThePast(IllegalStateError, NotImplementedError):
    """A method of 0.9.5 was called on a modern consumer. Also a NotImplementedError, as in 1.x."""


class ConsumerDialect(NamedTuple):
    """The dialect of a consumer, ``'0.9.5'`` or ``'modern'``, and what decided it.

    told_by is None if nothing decided it: 'modern' is assumed, and a method of 0.9.5 may still
    change it.
    """

    era: str
    told_by: Optional[str]


def dialect_of(topics: Iterable[Any], configs: Mapping[str, Any]) -> ConsumerDialect:
    """Return the dialect for these arguments of KafkaConsumer.

    The first of these decides: the option ``dialect``; an option that only 0.9.5 had; a topic that
    is not a str, which only 0.9.5 accepted; an option that 0.9.5 did not have; auto_offset_reset
    ``'earliest'`` or ``'latest'``, which 0.9.5 did not know; the environment variable
    ``KAFKA_LEGACY_DIALECT``. Otherwise it is assumed to be modern.

    Raises: KafkaConfigurationError if the option or the variable names an unknown dialect.
    """
    if configs.get('dialect') is not None:
        return ConsumerDialect(_era(configs['dialect'], 'the option dialect'), 'the option dialect')
    for option in sorted(_ONLY_OLD & configs.keys()):
        return ConsumerDialect(OLD, 'the option ' + option)
    for topic in topics:
        if not isinstance(topic, str):
            return ConsumerDialect(OLD, 'a topic given as %s' % type(topic).__name__)
    for option in sorted(_ONLY_MODERN & configs.keys()):
        return ConsumerDialect(MODERN, 'the option ' + option)
    if configs.get('auto_offset_reset') in ('earliest', 'latest'):
        return ConsumerDialect(MODERN, 'auto_offset_reset=%r' % configs['auto_offset_reset'])
    variable = os.environ.get(ENVIRONMENT_VARIABLE)
    if variable:
        what = 'the environment variable ' + ENVIRONMENT_VARIABLE
        return ConsumerDialect(_era(variable, what), what)
    return ConsumerDialect(MODERN, None)


def _era(name: Any, what: str) -> str:
    release = config.dialect_of(name) if isinstance(name, str) else None
    if release is None and name != MODERN:
        raise KafkaConfigurationError(
            "%s must be '0.9.5' or 'modern', or a release such as '2.0.2', not %r" % (what, name)
        )
    return OLD if release == OLD else MODERN


class _NothingConfigured(KafkaConfigurationError, NoBrokersAvailable):
    """No option names a broker, and no broker responds on this machine.

    Also a KafkaConfigurationError, as in releases up to 1.0.
    """


class KafkaConsumer:
    """Consume topics: ``KafkaConsumer('topic', bootstrap_servers='host:9092', group_id='g')``.

    Releases up to 0.9.5 and from 1.0 on gave this name to classes with different guarantees. This
    class has both dialects; the arguments decide which one is used, as ``dialect_of`` describes.

    The modern dialect (1.0 and later) subscribes to topics, sharing their partitions with the other
    members of its group if it has a group_id, or reads the partitions that assign() names. It
    starts at the committed offsets, or according to auto_offset_reset. Iterate over it, or call
    poll().

    The dialect of 0.9.5 calls ``configure(**configs)`` and then ``set_topic_partitions(*topics)``,
    so its positions are known after the constructor. If the arguments do not decide the dialect, a
    call of a method that only 0.9.5 had switches to it, with a warning in the log, as long as the
    consumer has not begun to read; positions are looked up at that moment.

    Arguments:
        topics: to subscribe to; none if subscribe() or assign() is called later. In 0.9.5: see
            set_topic_partitions.
        dialect: ``'0.9.5'``, ``'modern'`` or a later release, if the other arguments do not decide.
        configs: the options (docs/options.rst).

    Not safe for use by several threads at once, except wakeup() and assignment().

    Raises: KafkaConfigurationError for unknown options, invalid values, and options that contradict
        each other; NoBrokersAvailable if api_version is None and no broker responds; in 0.9.5 what
        configure and set_topic_partitions raise.

    Attributes: config: all options, api_version as a tuple; DEFAULT_CONFIG.
    """

    _new_client = NetworkClient  # replaced in simulations
    DEFAULT_CONFIG = {**copy.deepcopy(DEFAULT_CONSUMER_CONFIG), **config.defaults(config.CONSUMER)}
    DEFAULT_CONFIG['partition_assignment_strategy'] = (
        RangePartitionAssignor,
        RoundRobinPartitionAssignor,
    )
    # One of the two does the work; the engine belongs to the first.
    _modern: Optional[ModernConsumer] = None
    _old: Optional[Consumer09] = None
    _engine: Optional[Engine] = None

    def __init__(self, *topics: Any, **configs: Any) -> None:
        self._guard = OneThread()
        self._iteration = Iteration()
        self._dialect = dialect_of(topics, configs)
        self._topics = topics
        given = {name: value for name, value in configs.items() if name != 'dialect'}
        self._given: Dict[str, Any] = config.hidden(given)
        if self._dialect.era == OLD:
            self._old = Consumer09(self._iteration)
            self._open_09(self._old)
        else:
            configs = config.with_changed(configs, self.DEFAULT_CONFIG, _PRISTINE)
            self._open_modern(config.hidden(configs))

    def __repr__(self) -> str:
        if self._old is not None:
            names = [
                '%s-%d' % (_text(key.topic), key.partition) for key in self._old.table.partitions()
            ]
        else:
            names = [_text(topic) for topic in self._topics]
            if self._engine is not None:
                subscription = self._engine.subscription
                names = sorted(
                    subscription.subscription
                    or (
                        '%s-%d' % (str(each.topic), each.partition)
                        for each in subscription.assignment
                    )
                )
        return '<%s %s topics=(%s)>' % (type(self).__name__, self._dialect.era, '|'.join(names))

    # ------------------------------------------------------------ reading

    def poll(
        self, timeout_ms: Any = 0, max_records: Any = None, update_offsets: bool = True
    ) -> Dict[TopicPartition, List[ConsumerRecord]]:
        """Return the fetched records by partition, as soon as there are any (1.0).

        Arguments: timeout_ms: how long to wait for records, in ms; max_records: the most records
            to return, None for the option max_poll_records (1.3); update_offsets: ignored (2.0).
        Returns: {TopicPartition: [ConsumerRecord, ...]}, {} after timeout_ms without records.
        Raises: WakeupError after wakeup(); IllegalStateError after close(), and while another
            thread is inside; NoOffsetForPartitionError, OffsetOutOfRangeError, LogTruncationError
            if auto_offset_reset is 'none'; TopicAuthorizationFailedError,
            GroupAuthorizationFailedError, InvalidTopicError; FencedInstanceIdError and other errors
            that end the membership; ArgumentValueError, ArgumentTypeError for arguments.
            CorruptRecordError, naming the offset, for a batch that cannot be read, and what a
            deserializer raises: both have an attribute ``failed_at``, (TopicPartition, offset), and
            are raised repeatedly until the program seeks or, for a batch, calls skip_corrupt();
            calls in between return the records of other partitions.
        """
        modern, hand_out = self._as_modern('poll'), HandOut()
        records = modern.poll(timeout_ms, max_records, hand_out)
        hand_out.is_open = False  # the last step: from here on the records count as returned
        return records

    def poll_arrow(
        self,
        timeout_ms: Any = 0,
        columns: Sequence[str] = DEFAULT_COLUMNS,
        timestamp_unit: str = 'ms',
    ) -> Any:
        """Return fetched records as a pyarrow.RecordBatch, as soon as there are any.

        The batch has the records of one partition in one Fetch response, at most about
        max_partition_fetch_bytes; max_poll_records and interceptors have no effect. Positions move
        as in poll().

        Arguments: timeout_ms: how long to wait for records, in ms; columns: the columns, in their
            order: some of key, value, topic, partition, offset, timestamp, timestamp_type and
            headers; by default all except headers. Keys and values are bytes; headers are null for
            a record without headers; timestamp_unit: 'ms', 'us' or 'ns', the time zone is UTC.
        Returns: None after timeout_ms without records, never a batch without rows.
        Raises: as poll(); ProtocolError for a record whose timestamp does not fit the unit, in the
            way poll() raises for one that cannot be read; KafkaConfigurationError for an unknown
            column or unit, and if deserializers are set; MissingArrowError, an ImportError, without
            the extra ``arrow``.
        """
        modern, hand_out = self._as_modern('poll_arrow'), HandOut()
        batch = modern.poll_arrow(timeout_ms, columns, timestamp_unit, hand_out)
        hand_out.is_open = False  # the last step, as in poll()
        return batch

    def __iter__(self) -> KafkaConsumer:
        return self

    def __next__(self) -> Any:
        """Return the next record; next() is the same (0.9.5).

        Blocks until there is a record, at most for consumer_timeout_ms from each call on. In 0.9.5
        it calls fetch_messages().

        Raises: StopIteration after consumer_timeout_ms and after close(), otherwise as poll(); in
            0.9.5 ConsumerTimeout, otherwise as fetch_messages().
        """
        # No call comes before the iterator, because a call is the most expensive part. None comes
        # between the iterator and the return either: Python may raise an exception from outside
        # after any call, and the record would be lost.
        try:
            for record in self._iteration.records:
                return record
        except BaseException:  # a record may have left the iterator without being returned
            self._iteration.records, self._iteration.is_cut = NOTHING, True
            raise
        if self._old is not None:
            return self._old.next_message(self.fetch_messages)
        self._as_modern('__next__').refill()
        try:
            for record in self._iteration.records:
                return record
        except BaseException:
            self._iteration.records, self._iteration.is_cut = NOTHING, True
            raise
        raise IllegalStateError('iteration began with records of a partition that has none')

    def _next_before_3_10(self) -> Any:
        """Return the next record; as __next__(), for Pythons that may raise right before a return.

        The frame is stored, so that the next call can check how this one ended; `self` is deleted
        from it, because the frame would keep the consumer alive.
        """
        iteration = self._iteration
        if iteration.last_next is not None and has_lost(iteration.last_next):
            iteration.records, iteration.is_cut = NOTHING, True
        records = iteration.records
        iteration.last_next = sys._getframe()
        for record in records:  # noqa: B007 - it is returned below
            break
        else:
            iteration.last_next = None
            if self._old is not None:
                return self._old.next_message(self.fetch_messages)
            self._as_modern('__next__').refill()
            records = iteration.records
            iteration.last_next = sys._getframe()
            for record in records:  # noqa: B007 - it is returned below
                break
            else:
                raise IllegalStateError('iteration began with records of a partition without any')
        del self, iteration
        return record

    if KEEPS_FRAMES:
        __next__ = _next_before_3_10
    next = __next__

    def wakeup(self) -> None:
        """Interrupt a poll(), poll_arrow() or iteration that waits; may be called by any thread.

        That call raises WakeupError, or the next one if none is in progress. No records are lost.
        Other calls, such as commit(), are not interrupted.
        """
        self._as_modern('wakeup').wakeup()

    # ------------------------------------------------------------ what is read

    def subscribe(self, topics: Any = (), pattern: Any = None, listener: Any = None) -> None:
        """Subscribe to topics; with a group_id, the group shares their partitions (1.0).

        Replaces the former subscription: no more records are returned of topics that are not in the
        new one. The next poll() or iteration commits the offsets of their returned records, if
        commits are automatic, calls the listener, and begins to join the group.

        Arguments:
            topics: names; a plain str is one name.
            pattern: instead of topics: a regular expression, as str or compiled, matched at the
                start of names, or a SubscriptionPattern, which brokers match (KIP-848).
            listener: an object with on_partitions_revoked(set) and on_partitions_assigned(set),
                optionally on_partitions_lost(set), called inside poll() and iteration.
        Raises: ArgumentValueError (a ValueError and AssertionError) without topics and pattern;
            ArgumentTypeError for other types of names and listeners; IllegalStateError for both
            topics and pattern, and after assign().
        """
        self._as_modern('subscribe').subscribe(topics, pattern, listener)

    def subscription(self) -> Optional[Set[str]]:
        """Return the subscribed topics; None without a subscription (1.0).

        With a pattern: the topics that it has matched so far.
        """
        return self._as_modern('subscription').subscription()

    def unsubscribe(self) -> None:
        """Remove the subscription or assignment, and leave the group (1.0).

        With enable_auto_commit, the offsets of returned records are committed first.
        """
        self._as_modern('unsubscribe').unsubscribe()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions, without a membership in the group (1.0).

        Partitions that were assigned before keep their positions. With enable_auto_commit, the
        offsets of returned records are committed first. An empty list is unsubscribe().

        Raises: ArgumentTypeError for anything but TopicPartitions; IllegalStateError after
            subscribe().
        """
        modern = self._as_modern('assign')
        with self._guard:
            self._guard.check_open()
            wanted = as_partitions(partitions)
            if wanted:
                modern.assign(wanted)
            else:
                self.unsubscribe()

    def incremental_assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Add these partitions to the assignment; the others keep their positions.

        Raises: as assign().
        """
        self._as_modern('incremental_assign')
        with self._guard:
            self._guard.check_open()
            more = as_partitions(partitions)
            if more:
                self.assign(sorted(self.assignment().union(more)))

    def incremental_unassign(self, partitions: Iterable[TopicPartition]) -> None:
        """Remove these partitions from the assignment; the others keep their positions.

        Raises: ArgumentTypeError for anything but TopicPartitions; IllegalStateError for one
            that is not assigned, and after subscribe().
        """
        modern = self._as_modern('incremental_unassign')
        with self._guard:
            self._guard.check_open()
            left = modern.left_after(partitions, self.assignment())
            if left is not None:
                self.assign(left)

    def assignment(self) -> Set[TopicPartition]:
        """Return the assigned partitions; may be called by any thread (1.0)."""
        return self._as_modern('assignment').assignment()

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return group id, generation and member id, for transactions of a producer (3.0).

        They are those of the last poll: if the group has removed this member since, brokers reject
        the offsets of the records returned before. Without a generation they would accept them
        (KIP-447).
        """
        return self._as_modern('group_metadata').group_metadata()

    def enforce_rebalance(self, reason: str = '') -> None:
        """Request a rebalance of the group, with the next poll() (KIP-568).

        Brokers rebalance the group if the leader requests it; another member only gets its
        assignment again.

        Arguments: reason: for the logs of the brokers.
        Raises: IllegalStateError if the consumer is not a member of a group.
        """
        self._as_modern('enforce_rebalance').enforce_rebalance(reason)

    def pause(self, *partitions: TopicPartition) -> None:
        """Return no records of these partitions until resume(); they stay assigned (1.0).

        A partition stays paused if a rebalance assigns it to this member again. After it was lost
        or assigned to another member, it is not paused.

        Raises: KeyError for a partition that is not assigned.
        """
        self._as_modern('pause').change_pause(partitions, True)

    def resume(self, *partitions: TopicPartition) -> None:
        """Return records of paused partitions again (1.0). Raises: as pause()."""
        self._as_modern('resume').change_pause(partitions, False)

    def paused(self) -> Set[TopicPartition]:
        """Return the partitions that are paused (1.0)."""
        return self._as_modern('paused').paused()

    # ------------------------------------------------------------ positions

    def position(self, partition: TopicPartition, timeout_ms: Any = None) -> Optional[int]:
        """Return the offset of the next record to be returned (1.0).

        If it is not known yet it is looked up.

        Arguments: timeout_ms: for the lookup, None for request_timeout_ms.
        Returns: None if it is not known in time.
        Raises: IllegalStateError (an AssertionError) for a partition that is not assigned;
            NoOffsetForPartitionError and others, as poll().
        """
        return self._as_modern('position').position(partition, timeout_ms)

    def seek(self, partition: TopicPartition, offset: Any) -> None:
        """Set the offset from which the next poll() reads (1.0).

        Arguments: offset: a number, or an OffsetAndMetadata, whose leader epoch is used to detect
            a truncation of the log (KIP-320).
        Raises: ArgumentValueError (a ValueError and AssertionError) for an invalid offset;
            IllegalStateError (an AssertionError) for a partition that is not assigned.
        """
        self._as_modern('seek').seek(partition, offset)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Seek to the first available offset, which is looked up when it is needed (1.0).

        Arguments: partitions: none for all that are assigned.
        Raises: as seek(); IllegalStateError if nothing is assigned.
        """
        self._as_modern('seek_to_beginning').seek_to(partitions, 'earliest')

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Seek to the end of the log; otherwise as seek_to_beginning() (1.0)."""
        self._as_modern('seek_to_end').seek_to(partitions, 'latest')

    def seek_to_committed(self, *partitions: TopicPartition) -> None:
        """Seek to the committed offset, or according to auto_offset_reset if there is none.

        The committed offsets are looked up at once. Arguments and errors as seek_to_beginning();
        IllegalStateError also without group_id; what the lookup raises.
        """
        self._as_modern('seek_to_committed').seek_to_committed(partitions)

    def skip_corrupt(self, partition: Optional[TopicPartition] = None) -> int:
        """Skip the batch that poll() could not read; its records are lost to the program.

        For a record that a deserializer refuses, use seek().

        Arguments: partition: of the batch; None for the batch that was met last.
        Returns: the offset of the next record to be returned.
        Raises: IllegalStateError unless poll() or iteration has raised for a batch of this
            partition that cannot be read, and the position has not changed since.
        """
        modern = self._as_modern('skip_corrupt')
        if partition is not None:
            check_partition(partition)
        with self._guard:
            self._guard.check_open()
            skipped, offset = modern.skip_corrupt(partition)
            self.seek(skipped, offset)
            return offset

    def highwater(self, partition: TopicPartition) -> Optional[int]:
        """Return the high watermark as of the last fetch, None before (1.0).

        That is the offset after the last record that consumers can see.

        Raises: IllegalStateError (an AssertionError) for a partition that is not assigned.
        """
        return self._as_modern('highwater').queries.highwater(partition)

    def last_stable_offset(self, partition: TopicPartition) -> Optional[int]:
        """Return the last stable offset as of the last fetch.

        That is the first offset of the oldest open transaction. None before a fetch, and on brokers
        before 0.11. Raises: as highwater().
        """
        return self._as_modern('last_stable_offset').queries.last_stable_offset(partition)

    def lag(self, partition: TopicPartition) -> Optional[int]:
        """Return the number of offsets from the position to the end, as of the last fetch.

        None while either is unknown. Raises: as highwater().
        """
        return self._as_modern('lag').lag(partition)

    # ------------------------------------------------------------ commits

    def commit(self, offsets: Any = None, timeout_ms: Any = None) -> bool:
        """Commit offsets of the group, and wait for the response; also for the end of a rebalance.

        Arguments: offsets: {TopicPartition: OffsetAndMetadata}, the offsets of the next records to
            read; None for the offsets after the returned records or, once task_done() was called,
            after the marked ones (1.0; 0.9.5 commits only marks and takes no arguments);
            timeout_ms: None for request_timeout_ms (2.1).
        Returns: whether anything was committed.
        Raises: IllegalStateError (an AssertionError) without group_id; ArgumentTypeError and
            ArgumentValueError for other arguments; CommitFailedError if the group has removed this
            member; CommitInRebalanceError, a CommitFailedError, if the group rebalances and poll()
            has to take part in that first, or the member has given the partitions up;
            KafkaTimeoutError; UnknownTopicOrPartitionError and other errors of brokers; in 0.9.5
            KafkaConfigurationError without a group_id.
        """
        if self._old is not None:
            return self._old.commit()
        return self._as_modern('commit').commit(offsets, timeout_ms)

    def commit_async(
        self, offsets: Any = None, callback: Optional[Callable[[Any, Any], Any]] = None
    ) -> Future:
        """Commit without waiting (1.0).

        Commits are sent, and their callbacks called, in the order of the calls.

        Arguments: offsets: as commit(); callback: called as callback(offsets, error or None) inside
            a later poll() or commit(), which raises what the callback raises; None for the option
            default_offset_commit_callback.
        Returns: a Future, which is completed at the same time.
        Raises: as commit(), except errors of brokers; ArgumentTypeError for a callback that is not
            callable.
        """
        return self._as_modern('commit_async').commit_async(offsets, callback)

    def committed(
        self, partition: TopicPartition, metadata: bool = False, timeout_ms: Any = None
    ) -> Any:
        """Return the committed offset of the group, None if it has committed nothing (1.0).

        Arguments: metadata: return an OffsetAndMetadata (2.0); timeout_ms: None for
            request_timeout_ms.
        Raises: IllegalStateError (an AssertionError) without group_id; KafkaTimeoutError; what
            brokers report.
        """
        return self._as_modern('committed').queries.committed(partition, metadata, timeout_ms)

    def offsets(self, group: Optional[str] = None) -> Any:
        """Return the known offsets of each partition, as in 0.9.5; in both dialects.

        Arguments: group: ``'fetch'``: the position; ``'commit'``, ``'task_done'``, ``'highwater'``;
            None for a dict of all four. Raises: ValueError for another group.
        """
        if self._is_settled_modern():
            return self._as_modern('offsets').offsets(group)
        return self._settle('offsets').offsets(group)

    def task_done(self, message: Any) -> bool:
        """Mark a record, and all before it in its partition, as done; in both dialects (0.9.5).

        From the first mark on only the marks are committed, by automatic commits too.

        Returns: True; False, with a warning, if its partition is not assigned.
        Raises: TypeError for anything but a record.
        """
        if self._is_settled_modern():
            return self._as_modern('task_done').task_done(message)
        return self._settle('task_done').task_done(message, self.commit)

    # ------------------------------------------------------------ topics and the cluster

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: Any = None
    ) -> Dict[TopicPartition, int]:
        """Return the first offset of each partition, assigned or not (1.3.4).

        Raises: KafkaTimeoutError, which names the partitions without a response; also for
            partitions that do not exist.
        """
        queries = self._as_modern('beginning_offsets').queries
        return queries.beginning_offsets(partitions, timeout_ms)

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: Any = None
    ) -> Dict[TopicPartition, int]:
        """Return the offset after the last record of each partition (1.3.4).

        With isolation_level='read_committed' it is the last stable offset.
        Raises: as beginning_offsets().
        """
        return self._as_modern('end_offsets').queries.end_offsets(partitions, timeout_ms)

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, float], timeout_ms: Any = None
    ) -> Dict[TopicPartition, Optional[OffsetAndTimestamp]]:
        """Return offset and timestamp of the first record at or after a time (1.3.4).

        Arguments: timestamps: {TopicPartition: ms since the epoch}; fractions are cut off.
        Returns: {TopicPartition: OffsetAndTimestamp}; None for a partition without such a record.
        Raises: ArgumentValueError for a negative time; UnsupportedVersionError on brokers before
            0.10.1; KafkaTimeoutError as beginning_offsets().
        """
        queries = self._as_modern('offsets_for_times').queries
        return queries.offsets_for_times(timestamps, timeout_ms)

    def topics(self, timeout_ms: Any = None) -> Set[str]:
        """Request and return the names of all topics that this client may describe (1.0).

        Internal topics are included unless exclude_internal_topics is set.
        Raises: KafkaTimeoutError, NoBrokersAvailable.
        """
        return self._as_modern('topics').queries.topics(timeout_ms)

    def partitions_for_topic(self, topic: str) -> Set[int]:
        """Return the ids of a topic's partitions; sends a request if they are unknown (1.4.7).

        Returns: an empty set for a topic that does not exist.
        Raises: TopicAuthorizationFailedError; KafkaTimeoutError, NoBrokersAvailable.
        """
        return self._as_modern('partitions_for_topic').queries.partitions_for_topic(topic)

    @property
    def _closed(self) -> bool:
        """Whether close() was called, under the private name of 1.x to 3.x."""
        return self._guard.is_closed

    def bootstrap_connected(self) -> bool:
        """Return True if a connection to the cluster is open (1.4.7)."""
        self._as_modern('bootstrap_connected')
        engine = self._engine
        return engine is not None and not self._guard.is_closed and engine.pool.is_connected

    def bootstrap(self, timeout_ms: Any = None, refresh: bool = False) -> None:
        """Wait until a broker has responded with the metadata of the cluster (3.0).

        Arguments: timeout_ms: None for bootstrap_timeout_ms; refresh: request metadata again.
        Raises: NoBrokersAvailable, which is a KafkaTimeoutError.
        """
        queries = self._as_modern('bootstrap').queries
        if timeout_ms is None:
            timeout_ms = self.config['bootstrap_timeout_ms']
        queries.bootstrap(timeout_ms, refresh)

    def metrics(self, raw: bool = False) -> Optional[Dict[Any, Any]]:
        """Return the metrics as {group: {name: number}}; None with metrics_enabled=False (1.3).

        Groups begin with the option metric_group_prefix: ``consumer-metrics``, ``consumer-fetch-
        manager-metrics``, ``consumer-coordinator-metrics``, ``consumer-node-metrics.node-<id>``.

        Arguments: raw: return {MetricName: metric} instead.
        """
        self._as_modern('metrics')
        figures = None if self._engine is None else self._engine.figures
        if figures is None:
            return None
        if not raw:
            found: Dict[Any, Any] = figures.snapshot()
            return found
        figures.settle()
        return dict(figures.metrics.metrics)

    # ------------------------------------------------------------ methods of 0.9.5

    def configure(self, **configs: Any) -> None:
        """Replace all options and connect; options that are not given get their defaults (0.9.5).

        The consumed partitions and their positions stay. If it raises, the former options stay too.

        Arguments:
            bootstrap_servers: ``'host:port'``, or a list of them: the brokers to connect to first.
            client_id: the name in the logs of the brokers.
            group_id: the group whose offsets are committed; None commits and looks up nothing.
            fetch_message_max_bytes: the most bytes to fetch of each partition in one request.
            fetch_min_bytes: how many bytes a broker waits for before it responds to a fetch.
            fetch_wait_max_ms: how long it waits for them at most; never more than half of
                socket_timeout_ms.
            refresh_leader_backoff_ms: the pause, give or take 10 %, before metadata is reloaded.
            socket_timeout_ms: the time-out for connecting and for each response.
            auto_offset_reset: where to start without a committed offset, and where to continue if
                the position is out of range: ``'smallest'``, ``'largest'``; anything else raises
                OffsetOutOfRangeError.
            deserializer_class: a callable that gets the value of a message as bytes; its result is
                returned.
            auto_commit_enable: commit the marks of task_done() automatically.
            auto_commit_interval_ms, auto_commit_interval_messages: how often; None or 0 for never.
            consumer_timeout_ms: after how long without a message next() raises ConsumerTimeout;
                None or negative for never.

        The security options are accepted too (docs/options.rst). The other keys of DEFAULT_CONFIG
        have no effect; metadata_broker_list is an old name of bootstrap_servers.

        Raises: KafkaConfigurationError for an unknown key, an invalid value, auto_commit_enable
            without group_id, no bootstrap_servers; TypeError for a client_id or group_id that
            is not text; KafkaUnavailableError if no broker responds.
        """
        old = self._settle('configure')
        changed = config.with_changed({}, self.DEFAULT_CONFIG, _PRISTINE)
        defaults = {
            name: changed.get(name, value) for name, value in DEFAULT_CONSUMER_CONFIG.items()
        }
        old.configure(configs, defaults)
        # The private names that they had in 0.9.5.
        self._client, self._config = old.client, old.options

    def set_topic_partitions(self, *topics: Any) -> None:
        """Set the partitions to consume, and optionally their offsets (0.9.5).

        Metadata of all topics is loaded first. Each partition starts at the given offset, otherwise
        at the committed offset of the group, otherwise where auto_offset_reset says, which is
        looked up now. Messages fetched before and not returned are dropped. If this raises, the
        former partitions and positions stay.

        Arguments: topics: any number of ``'topic'`` (all its partitions), ``('topic', partition)``,
            ``('topic', partition, offset)``, ``{'topic': partition}``,
            ``{'topic': [partition, ...]}``, ``{('topic', partition): offset}``; topics are str or
            bytes.
        Raises: UnknownTopicOrPartitionError for a topic or partition that does not exist;
            KafkaConfigurationError for any other argument; OffsetOutOfRangeError if there is no
            offset to start from; UnsupportedVersionError with a group_id on 0.8.0, which stores no
            offsets; errors of brokers.
        """
        self._settle('set_topic_partitions').set_topic_partitions(topics)

    def fetch_messages(self) -> Iterator[KafkaMessage]:
        """Fetch once from all partitions; return a generator of the messages (0.9.5).

        A partition's position moves past a message after it was deserialized and before it is
        returned. If deserializer_class raises, the generator raises the same, and the next call
        begins with that message; ``set_topic_partitions((topic, partition, offset + 1))`` skips
        it. Messages that are not taken from the generator are fetched again.

        Partitions whose leader has moved or is unavailable are left out: metadata is loaded again
        at the end, repeatedly while no broker responds. An offset that is out of range is replaced
        according to auto_offset_reset, which is logged. A request that timed out is sent again by
        the next call.

        Raises: KafkaConfigurationError if nothing is consumed; ConsumerFetchSizeTooSmall for a
            message larger than fetch_message_max_bytes; OffsetOutOfRangeError without a policy;
            ConsumerTimeout if no broker responded for consumer_timeout_ms; any other error of a
            broker.
        """
        return self._settle('fetch_messages').fetch_messages(self.commit)

    def get_partition_offsets(
        self, topic: Any, partition: int, request_time_ms: int, max_num_offsets: int
    ) -> List[int]:
        """Request offsets of a partition's log from its leader, the latest first (0.9.5).

        Arguments: topic: str or bytes; request_time_ms: -1 for the end of the log (the offset of
            the next message), -2 for its start, one offset each; otherwise offsets of messages
            before that time; max_num_offsets: how many at most.
        Raises: TypeError naming a wrong argument; UnknownTopicOrPartitionError,
            LeaderNotAvailableError, and other errors of the broker.
        """
        return self._settle('get_partition_offsets').get_partition_offsets(
            topic, partition, request_time_ms, max_num_offsets
        )

    # ------------------------------------------------------------ the end

    def close(self, autocommit: bool = True, timeout_ms: Any = None) -> None:
        """Commit if commits are automatic, leave the group unless static, and close connections.

        May be called again. In 0.9.5 nothing is committed, and the next call connects again.

        Arguments: autocommit: whether to commit (1.3.3); timeout_ms: for all of it (2.1.3); a part
            of it is reserved for leaving the group, however long the commit takes. None for
            request_timeout_ms, 30 s at most, of which leaving takes 5 s at most. If the coordinator
            cannot be reached, the group removes this member after its session time-out.
        """
        if self._old is not None:
            self._old.close()
        elif self._modern is not None:
            self._modern.close(autocommit, timeout_ms)

    def __enter__(self) -> KafkaConsumer:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        clean_up(functools.partial(self.close, autocommit=error is None), error)

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        # Python may run this at any point of any thread: nothing here waits or takes a lock.
        engine = self._engine
        if engine is not None and not self._guard.is_closed:
            self._guard.is_closed = True
            if not is_finalizing():
                engine.retire()

    def __reduce__(self) -> Any:
        """Pickle the arguments of the constructor: unpickling makes a new consumer."""
        if '_given' not in self.__dict__:
            return copyreg.__newobj__, (type(self),), dict(self.__dict__)  # type: ignore[attr-defined]
        dialect = self._dialect
        named = {} if dialect.told_by is None else {'dialect': dialect.era}
        return _remake, (type(self), self._topics, {**self._given, **named})

    # ------------------------------------------------------------ construction

    def _open_modern(self, configs: Mapping[str, Any]) -> None:
        be_quiet()  # as releases after 0.9.5 do
        self.config = options = config.resolve(config.CONSUMER, configs)
        interceptors = [
            each() if isinstance(each, type) else each for each in options['interceptors']
        ]
        names = ('key_deserializer', 'value_deserializer')
        deserializers = [adapt_deserializer(name, options[name]) for name in names]
        key, value = (each and LentDeserializer(each) for each in deserializers)
        make = functools.partial(
            CompletedFetch,
            read_committed=options['isolation_level'] == 'read_committed',
            check_crcs=options['check_crcs'],
            key_deserializer=key,
            value_deserializer=value,
        )
        settings = NetSettings.from_options(options)
        client = self._new_client(settings, '%s-network-thread' % options['client_id'])
        self._engine = engine = Engine(options, make, client)
        try:
            self._begin(engine, bool(self._topics or configs))
            self._client = engine.pool
            self._modern = ModernConsumer(
                engine, options, self._guard, self._iteration, deserializers, interceptors
            )
            if self._topics:
                self._modern.subscribe(list(self._topics))
        except BaseException:
            self._guard.is_closed = True
            engine.close(0.5)
            raise

    def _begin(self, engine: Engine, is_configured: bool) -> None:
        try:
            engine.begin(None if is_configured else _UNASKED_SECONDS)
        except NoBrokersAvailable as error:
            if is_configured:
                raise
            text = (
                'the option bootstrap_servers is missing, and no broker answers on this machine: %s'
                % error
            )
            raise _NothingConfigured(text) from error

    def _open_09(self, old: Consumer09) -> None:
        """Do the work of the constructor of 0.9.5; close the client on failure."""
        try:
            self.configure(**self._given)
            self.set_topic_partitions(*self._topics)
        except BaseException:
            old.close()
            raise

    # ------------------------------------------------------------ dialect

    def _as_modern(self, method: str) -> ModernConsumer:
        """Return the ModernConsumer, for a method of 1.0 and later.

        Raises: KafkaConfigurationError (an AttributeError) on a consumer of 0.9.5;
            ConsumerClosedError if the constructor has failed.
        """
        modern = self._modern
        if modern is None or self._old is not None:
            if self._old is None:
                raise ConsumerClosedError('the consumer could not be opened')
            raise _NotOffered(
                '%s: this consumer is one of 0.9.5, by %s' % (method, self._dialect.told_by)
            )
        return modern

    def _is_settled_modern(self) -> bool:
        if self._old is not None:
            return False
        return self._dialect.told_by is not None or self._as_modern('offsets').has_polled

    def _settle(self, verb: str) -> Consumer09:
        """Return the Consumer09, for a method that only 0.9.5 had.

        Switches the dialect to 0.9.5 if nothing has decided it before.

        Raises: IllegalStateError if the modern dialect was chosen, or the consumer has begun to
            read; what configure() and set_topic_partitions() raise, and the dialect stays open.
        """
        if self._old is not None:
            return self._old
        dialect = self._dialect
        if self._is_settled_modern():
            raise _OfThePast(
                '%s() is of 0.9.5, and %s makes this a modern consumer, for which it is %s; pass %s'
                % (verb, dialect.told_by or 'reading', _SUCCESSORS[verb], _HOW_TO_SAY_SO)
            )
        log.warning('%s() makes this a consumer of 0.9.5; say so by %s', verb, _HOW_TO_SAY_SO)
        engine, client = self._engine, self._client
        told, old = ConsumerDialect(OLD, verb + '()'), Consumer09(self._iteration)
        self._dialect, self._old, self._client = told, old, None
        try:
            self._open_09(old)
        except BaseException:
            self._dialect, self._old, self._client = dialect, None, client
            raise
        if engine is not None:
            engine.close(0.5)
        self._engine = self._modern = None
        return old


_PRISTINE = copy.deepcopy(KafkaConsumer.DEFAULT_CONFIG)

#: The time-out for a broker on this machine, in seconds, if no option names one.
_UNASKED_SECONDS = 0.2


def _remake(cls: Any, topics: Tuple[Any, ...], given: Dict[str, Any]) -> Any:
    return cls(*topics, **given)


def _text(topic: Any) -> str:
    return topic.decode('utf-8', 'replace') if isinstance(topic, bytes) else str(topic)
