"""KafkaConsumer, one class for programs of 0.9.5 and of the releases after it.

Owns which of the two a consumer is: what in a call tells, what holds where nothing does, and what
becomes of a verb that the other one has; construction and the end. The verbs of 0.9.5 stand in
``dialect_09``, those of 1.x and later in ``verbs``, ``polling``, ``committing`` and
``reading_verbs``, over the parts that ``engine`` puts together. The era is read in this file alone.
"""

from __future__ import annotations

import contextlib
import copy
import copyreg
import functools
import logging
import os
import sys
from types import MethodType
from typing import Any, Callable, Dict, Iterable, Mapping, NamedTuple, Optional, Tuple

from kafka import config
from kafka.blocking.topic_maps import TopicDict
from kafka.consumer.arguments_09 import DEFAULT_CONSUMER_CONFIG, DEPRECATED_CONFIG_KEYS
from kafka.consumer.call_checks import ConsumerClosedError, seconds_of
from kafka.consumer.deserializers import LentDeserializer, adapt_deserializer
from kafka.consumer.engine import Engine
from kafka.consumer.fetch.completed_fetch import CompletedFetch
from kafka.consumer.hand_out import KEEPS_FRAMES, has_lost
from kafka.consumer.kafka_09 import Verbs09
from kafka.consumer.reading_verbs import ReadingVerbs
from kafka.consumer.rebalancing import is_of_3_0
from kafka.consumer.shell import NOTHING, Shell
from kafka.consumer.siblings import SiblingWatch
from kafka.consumer.verbs import Verbs
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.commits.schedule import AutoCommit
from kafka.errors import IllegalStateError, KafkaConfigurationError, KafkaError, NoBrokersAvailable
from kafka.internals.cleanup import CleanUp, clean_up
from kafka.internals.logging_setup import be_quiet
from kafka.internals.program_errors import log_program_error
from kafka.internals.running_calls import is_in_call
from kafka.net.client import NetworkClient
from kafka.net.settings import NetSettings

log = logging.getLogger('kafka.consumer.kafka')

OLD, MODERN = '0.9.5', 'modern'
ENVIRONMENT_VARIABLE = 'KAFKA_LEGACY_DIALECT'

_OPTIONS = config.options_of(config.CONSUMER)
_ONLY_OLD = config.ONLY_0_9
# Options of 1.x to 3.x that 0.9.5 did not have; those of both eras tell nothing.
_ONLY_MODERN = (
    (_OPTIONS.keys() | {old for row in _OPTIONS.values() for old in row.old})
    - DEFAULT_CONSUMER_CONFIG.keys()
    - DEPRECATED_CONFIG_KEYS.keys()
    - {'dialect'}
)
# What such programs call and read.
_MODERN_VERBS = frozenset(
    """
    assign assignment beginning_offsets bootstrap bootstrap_connected commit_async committed
    end_offsets enforce_rebalance group_metadata highwater incremental_assign
    incremental_unassign lag last_stable_offset metrics
    offsets_for_times partitions_for_topic pause paused poll position resume seek
    seek_to_beginning seek_to_committed seek_to_end skip_corrupt subscribe subscription topics
    unsubscribe wakeup
    """.split()
)

#: What does the work of a verb of 0.9.5 on a modern consumer, which has offsets() and task_done().
_SUCCESSORS = {
    'configure': 'another KafkaConsumer()',
    'set_topic_partitions': 'subscribe() or assign()',
    'fetch_messages': 'poll() or iteration',
    'get_partition_offsets': 'beginning_offsets(), end_offsets() or offsets_for_times()',
}
_HOW_TO_SAY_SO = "dialect='0.9.5' or the environment variable %s=0.9.5" % ENVIRONMENT_VARIABLE


class _NotOffered(KafkaConfigurationError, AttributeError):
    """An attribute that this consumer has not, because of its era; absent also for hasattr()."""


class _OfThePast(IllegalStateError, NotImplementedError):
    """A verb of 0.9.5 was called on a modern consumer; NotImplementedError is what 1.x raised."""


class ConsumerDialect(NamedTuple):
    """Which era a consumer is of, ``'0.9.5'`` or ``'modern'``, and what said so.

    told_by is None where nothing did: the era is assumed, and a verb of 0.9.5 may still change it.
    """

    era: str
    told_by: Optional[str]


def dialect_of(topics: Iterable[Any], configs: Mapping[str, Any]) -> ConsumerDialect:
    """Tell the era that the arguments of KafkaConsumer mean.

    The option ``dialect`` decides. Without it: an option that only one era had, 0.9.5 if both have
    one; a topic that is no str, which only 0.9.5 took; the words ``'earliest'`` and ``'latest'``,
    which it did not know. Where nothing in the call tells, the environment variable
    ``KAFKA_LEGACY_DIALECT`` does; else it is assumed to be modern.

    Raises: KafkaConfigurationError when the option or the variable names no dialect.
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
    """Nothing said where brokers are, and none is here: a KafkaConfigurationError up to 1.0."""


class KafkaConsumer(Verbs, ReadingVerbs, Verbs09):
    """Consume topics: ``KafkaConsumer('topic', bootstrap_servers='host:9092', group_id='g')``.

    Two eras gave this name to classes with different guarantees. This one is both; the call tells
    which, as ``dialect_of`` describes.

    That of 1.x and later reads topics together with the other members of its group, if it has a
    group_id, or partitions that it is assigned. It begins with the committed offsets, or where
    auto_offset_reset says. Iterate over it, or call poll().

    That of 0.9.5 does ``configure(**configs)`` and then ``set_topic_partitions(*topics)``, so after
    the constructor its positions are numbers. Where nothing told the era, a verb that only 0.9.5
    had settles it, with a warning in the log, until the consumer has begun to read; positions are
    those of that moment.

    Arguments:
        topics: to subscribe to; none if subscribe() or assign() is called later. In 0.9.5: see
            set_topic_partitions.
        dialect: ``'0.9.5'``, ``'modern'`` or a later release, where the others do not tell.
        configs: the options (docs/options.rst).

    Not safe for use by several threads at once, but for wakeup() and assignment().

    Raises: KafkaConfigurationError for options that no era had, that cannot be meant, or that
        contradict each other; NoBrokersAvailable when api_version is None and no broker answers;
        what configure and set_topic_partitions raise, in 0.9.5.

    Attributes: config: all options, api_version as a tuple; DEFAULT_CONFIG.
    """

    _new_client = NetworkClient  # where the simulation puts its own
    DEFAULT_CONFIG = {**copy.deepcopy(DEFAULT_CONSUMER_CONFIG), **config.defaults(config.CONSUMER)}
    DEFAULT_CONFIG['partition_assignment_strategy'] = (
        RangePartitionAssignor,
        RoundRobinPartitionAssignor,
    )

    def __init__(self, *topics: Any, **configs: Any) -> None:
        Verbs09.__init__(self)
        Shell.__init__(self)
        self._dialect = dialect_of(topics, configs)
        self._topics = topics
        self._pid = os.getpid()
        given = {name: value for name, value in configs.items() if name != 'dialect'}
        self._given: Dict[str, Any] = config.hidden(given)
        if self._dialect.era == OLD:
            self._open()
        else:
            configs = config.with_changed(configs, self.DEFAULT_CONFIG, _PRISTINE)
            self._open_modern(config.hidden(configs))

    def __repr__(self) -> str:
        if self._dialect.era == OLD:
            names = [
                '%s-%d' % (_text(key.topic), key.partition) for key in self._table.partitions()
            ]
        else:
            names = [_text(topic) for topic in self._topics]
            if self.__dict__.get('_engine') is not None:
                subscription = self._engine.subscription
                names = sorted(
                    subscription.subscription
                    or (
                        '%s-%d' % (str(each.topic), each.partition)
                        for each in subscription.assignment
                    )
                )
        return '<%s %s topics=(%s)>' % (type(self).__name__, self._dialect.era, '|'.join(names))

    # ------------------------------------------------------------ one class for two eras

    def __iter__(self) -> KafkaConsumer:
        return self

    def __next__(self) -> Any:
        """Return the next record, as next(). No call stands before the iterator: it costs most.

        Nor between the iterator and the return: Python may raise after each call what came from
        outside, and the record would be in no place.
        """
        try:
            for record in self._messages:
                return record
        except BaseException:  # a record may be gone from the iterator without being returned
            self._messages, self._is_cut = NOTHING, True
            raise
        if self._dialect.era == OLD:
            return Verbs09._await_message(self)
        self._refill()
        try:
            for record in self._messages:
                return record
        except BaseException:
            self._messages, self._is_cut = NOTHING, True
            raise
        raise IllegalStateError('iteration began with records of a partition that has none')

    def _next_before_3_10(self) -> Any:
        """Return the next record as __next__(), where Python may raise right before a return too.

        So the frame is kept: the next call sees how this one has ended. A frame that referred to
        the consumer would keep it alive.
        """
        if self._last_next is not None and has_lost(self._last_next):
            self._messages, self._is_cut = NOTHING, True
        messages = self._messages
        self._last_next = sys._getframe()
        for record in messages:  # noqa: B007 - it is returned below
            break
        else:
            self._last_next = None
            if self._dialect.era == OLD:
                return Verbs09._await_message(self)
            self._refill()
            messages = self._messages
            self._last_next = sys._getframe()
            for record in messages:  # noqa: B007 - it is returned below
                break
            else:
                raise IllegalStateError('iteration began with records of a partition without any')
        del self
        return record

    if KEEPS_FRAMES:
        __next__ = _next_before_3_10

    def commit(self, offsets: Any = None, timeout_ms: Any = None) -> bool:
        """Commit offsets of the group, and wait for it, also for the end of a rebalance.

        Arguments: offsets: {TopicPartition: OffsetAndMetadata}, those of the records to be read
            next; None for what was handed out, or, once task_done() was called, for what is marked
            (1.0; 0.9.5 knows marks alone and takes no arguments); timeout_ms: None for
            request_timeout_ms (2.1).
        Returns: whether anything was committed.
        Raises: IllegalStateError (an AssertionError) without group_id; ArgumentTypeError and
            ArgumentValueError for other arguments; CommitFailedError when the group went on without
            this member, as CommitInRebalanceError when it rebalances and poll() has to take part in
            that first, or the member has given the partitions up; KafkaTimeoutError;
            UnknownTopicOrPartitionError and what else brokers say; in 0.9.5
            KafkaConfigurationError without a group_id.
        """
        if self._dialect.era == OLD:
            return Verbs09.commit(self)
        return self._commit(offsets, timeout_ms)

    def offsets(self, group: Optional[str] = None) -> Any:
        """Return what is known of each partition, as in 0.9.5; in both eras.

        Arguments: group: ``'fetch'``: the position; ``'commit'``, ``'task_done'``, ``'highwater'``;
            None for a dict of all four. Raises: ValueError for another group.
        """
        if not self._is_settled_modern():
            return Verbs09.offsets(self, group)
        self._sync()
        engine, columns = self._engine, dict.fromkeys(('fetch', 'highwater', 'commit', 'task_done'))
        if group is not None and group not in columns:
            raise ValueError('group must be one of %s, not %r' % (', '.join(columns), group))
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
                    each: self._done[each].offset - 1 if each in self._done else None
                    for each in states
                },
            }
        maps = {name: TopicDict(column.items()) for name, column in found.items()}
        return maps if group is None else maps[group]

    def task_done(self, message: Any) -> bool:
        """Mark a record, and all before it in its partition, as done, as in 0.9.5; in both eras.

        From the first mark on only what is marked is committed, automatically too.

        Returns: True; False, with a warning, when its partition is not read here.
        Raises: TypeError for what is no record.
        """
        if not self._is_settled_modern():
            return Verbs09.task_done(self, message)
        self._check_open()
        return self._mark(message)

    def close(self, autocommit: bool = True, timeout_ms: Any = None) -> None:
        """Commit if that is automatic, leave the group unless static, and let go of everything.

        May be called again. In 0.9.5 nothing is committed, and the next verb connects again.

        Arguments: autocommit: whether to commit (1.3.3); timeout_ms: for all of it (2.1.3), of
            which a part is kept for leaving the group whatever the commit takes. None for
            request_timeout_ms, 30 s at most, and 5 s of leaving: a group that does not hear it
            goes on without this member after its session time-out.
        """
        if self._dialect.era == OLD:
            Verbs09.close(self)
            return
        if timeout_ms is None:
            longest = min(self._default_timeout(), _CLOSE_SECONDS)
            self._close_modern(autocommit, longest, _LEAVE_SECONDS)
        else:
            seconds = seconds_of(timeout_ms, 0.0)
            self._close_modern(autocommit, seconds, seconds)

    # ------------------------------------------------------------ the modern one

    def _open_modern(self, configs: Mapping[str, Any]) -> None:
        be_quiet()  # as releases after 0.9.5 are
        self.config = options = config.resolve(config.CONSUMER, configs)
        self._most = options['max_poll_records']
        self._reads_committed = options['isolation_level'] == 'read_committed'
        self._interceptors = [
            each() if isinstance(each, type) else each for each in options['interceptors']
        ]
        names = ('key_deserializer', 'value_deserializer')
        self._deserializers = [adapt_deserializer(name, options[name]) for name in names]
        key, value = (each and LentDeserializer(each) for each in self._deserializers)
        make = functools.partial(
            CompletedFetch,
            read_committed=self._reads_committed,
            check_crcs=options['check_crcs'],
            key_deserializer=key,
            value_deserializer=value,
        )
        self._engine = engine = Engine(options, make, self._new_engine_client())
        try:
            self._begin(engine, configs)
            self._client = engine.pool
            self._auto = self._auto_commits()
            self._siblings = SiblingWatch(
                engine.member, options['group_id'], options['bootstrap_servers'], self._guard
            )
            if self._topics:
                Verbs.subscribe(self, list(self._topics))
        except BaseException:
            self._closed = True
            engine.close(0.5)
            raise

    def _new_engine_client(self) -> NetworkClient:
        settings = NetSettings.from_options(self.config)
        return self._new_client(settings, '%s-network-thread' % self.config['client_id'])

    def _begin(self, engine: Engine, configs: Mapping[str, Any]) -> None:
        is_configured = bool(self._topics or configs)
        try:
            engine.begin(None if is_configured else _UNASKED_SECONDS)
        except NoBrokersAvailable as error:
            if is_configured:
                raise
            text = 'the option bootstrap_servers is missing, and nobody answers here: %s' % error
            raise _NothingConfigured(text) from error

    def _auto_commits(self) -> Optional[AutoCommit]:
        options = self.config
        if not options['enable_auto_commit'] or self._engine.commits is None:
            return None
        return AutoCommit(
            options['auto_commit_interval_ms'] / 1000,
            options['retry_backoff_ms'] / 1000,
            self._engine.loop.time(),
        )

    def __enter__(self) -> KafkaConsumer:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        clean_up(functools.partial(self.close, autocommit=error is None), error)

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        # Python may collect it at any place of any thread: nothing here waits or takes a lock.
        engine = self.__dict__.get('_engine')
        if engine is not None and not self._closed:
            self._closed = True
            if not is_finalizing():
                engine.retire()

    def __reduce__(self) -> Any:
        """Pickle as configuration: what comes out is a new consumer with the same options."""
        if '_given' not in self.__dict__:
            return copyreg.__newobj__, (type(self),), dict(self.__dict__)  # type: ignore[attr-defined]
        dialect = self._dialect
        named = {} if dialect.told_by is None else {'dialect': dialect.era}
        return _remake, (type(self), self._topics, {**self._given, **named})

    def _close_modern(self, autocommit: bool, seconds: float, to_leave: float) -> None:
        engine = self._engine
        if self._closed:
            if self._is_interrupted_closing():
                with self._guard:  # not while another thread is at it
                    self._end(0.5)
            return
        if os.getpid() != self._pid:  # the child of a fork: everything belongs to the parent
            self._closed = True
            return
        deadline = self._now() + seconds
        with contextlib.ExitStack() as at_last, self._guard:  # whatever a callback raises
            if self._closing is not None and not self._is_interrupted_closing():
                return  # a listener that is told of the end calls close() too
            closing = self._closing = object()  # noqa: F841 - found by _is_interrupted_closing()
            if engine.figures is not None:
                at_last.enter_context(CleanUp(engine.figures.metrics.close))
            for each in (self.config['value_deserializer'], self.config['key_deserializer']):
                if hasattr(each, 'close'):
                    at_last.enter_context(CleanUp(each.close))
            try:
                self._finish(autocommit, deadline, to_leave)
            finally:
                self._closed = True
                self._siblings.close()
                self._messages = iter(())
                self._end(max(0.5, deadline - self._now()))

    def _end(self, seconds: float) -> None:
        """Close the connections, and tell of commits that were not answered."""
        self._engine.close(seconds)
        text = 'the consumer was closed before the commit was answered: it may be stored or not'
        self._fail_commits(ConsumerClosedError(text))
        self._closing = None
        try:
            self._tell_ended()
        except Exception as error:
            log_program_error(log, error, 'a callback of a commit failed')

    def _is_interrupted_closing(self) -> bool:
        """Return True if an exception has ended a call of close() before its end."""
        return self._closing is not None and not is_in_call('closing', self._closing)

    def _finish(self, autocommit: bool, deadline: float, to_leave: float) -> None:
        """Commit and leave the group; what brokers say against it is logged.

        The commit of a member that joins has to wait for the others: leaving has its own share of
        the time, or the group would wait for who is gone.
        """
        self._stop_course()
        subscription = self._engine.subscription
        left = deadline - self._now()
        kept = min(max(0.1, left / 4), _LEAVE_SECONDS)
        if autocommit:
            self._commit_before_rebalance(left - kept)
        owned = set(subscription.assignment) if subscription.partitions_auto_assigned() else set()
        if owned and is_of_3_0(self._listener):
            try:
                self._tell_gone(owned, False)
            except KafkaError as error:
                log.error('%s', error)
        self._await_commits(deadline - self._now() - kept)
        try:
            left = max(kept, deadline - self._now())
            self._leave('the consumer is closed', min(left, max(0.1, to_leave)))
        except KafkaError as error:
            log.warning('group=%s: could not be left: %s', self.config['group_id'], error)
        self._tell_ended()

    # ------------------------------------------------------------ which era it is

    def __getattr__(self, name: str) -> Any:
        """Tell what is missing; called for attributes that are not there."""
        if name in _MODERN_VERBS and '_dialect' in self.__dict__:
            raise _NotOffered(_not_offered(name, self._dialect))
        raise AttributeError('%r object has no attribute %r' % (type(self).__name__, name))

    def _open(self) -> None:
        """Do what the constructor of 0.9.5 did; leave no connection open when that fails."""
        try:
            self.configure(**self._given)
            self.set_topic_partitions(*self._topics)
        except BaseException:
            Verbs09.close(self)
            raise

    def _is_settled_modern(self) -> bool:
        dialect = self._dialect
        return dialect.era != OLD and (dialect.told_by is not None or self._has_polled)

    def _settle(self, verb: str) -> None:
        """Begin a verb that only 0.9.5 had: it settles what nothing has told before.

        Raises: IllegalStateError on a consumer that was said to be of another era, or has begun to
            read as such; what opening one of 0.9.5 raises, in which case nothing is settled.
        """
        dialect = self._dialect
        if dialect.era == OLD:
            return
        if self._is_settled_modern():
            raise _OfThePast(
                '%s() is of 0.9.5, and %s makes this a modern consumer, for which it is %s; pass %s'
                % (verb, dialect.told_by or 'reading', _SUCCESSORS[verb], _HOW_TO_SAY_SO)
            )
        log.warning('%s() makes this a consumer of 0.9.5; say so by %s', verb, _HOW_TO_SAY_SO)
        self._dialect = ConsumerDialect(OLD, verb + '()')
        client, self._client = self._client, None
        try:
            self._open()
        except BaseException:
            self._dialect, self._client = dialect, client
            raise
        self._engine.close(0.5)
        del self._engine

    def _defaults_09(self) -> Dict[str, Any]:
        """Return the defaults of 0.9.5, and what a program has changed in DEFAULT_CONFIG."""
        changed = config.with_changed({}, self.DEFAULT_CONFIG, _PRISTINE)
        return {name: changed.get(name, value) for name, value in DEFAULT_CONSUMER_CONFIG.items()}


_PRISTINE = copy.deepcopy(KafkaConsumer.DEFAULT_CONFIG)

#: How long a broker on this machine is looked for where nobody said where one is.
_UNASKED_SECONDS = 0.2
#: How long close() takes at most where nobody said how long, and leaving a group of that.
_CLOSE_SECONDS, _LEAVE_SECONDS = 30.0, 5.0


class _Modern:
    """A verb that a consumer of 0.9.5 has not: there it is no attribute at all."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __get__(self, consumer: Optional[KafkaConsumer], owner: Any = None) -> Any:
        if consumer is None:
            return self.function
        dialect = consumer.__dict__.get('_dialect')
        if dialect is None or dialect.era == OLD:
            raise _NotOffered(_not_offered(self.function.__name__, dialect))
        return MethodType(self.function, consumer)


for _name in _MODERN_VERBS:
    setattr(KafkaConsumer, _name, _Modern(getattr(KafkaConsumer, _name)))
del _name


def _not_offered(verb: str, dialect: Optional[ConsumerDialect]) -> str:
    told_by = None if dialect is None else dialect.told_by
    return '%s: this consumer is one of 0.9.5, by %s' % (verb, told_by)


def _remake(cls: Any, topics: Tuple[Any, ...], given: Dict[str, Any]) -> Any:
    return cls(*topics, **given)


def _text(topic: Any) -> str:
    return topic.decode('utf-8', 'replace') if isinstance(topic, bytes) else str(topic)
