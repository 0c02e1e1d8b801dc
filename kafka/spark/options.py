"""The options of Spark's reader and writer, parsed from text into values.

Names, defaults, precedence and checks are those of the JVM connector (spark-sql-kafka-0-10), with a
few additional options. Names are case-insensitive, as in Spark. Invalid options are refused here,
on the driver, before a job starts. Options with the prefix ``kafka.`` are converted in
client_options.py, the JSON of offsets is parsed in offsets.py, topics and offsets are looked up in
lookups.py.
"""

from __future__ import annotations

import difflib
import logging
import re
from typing import (
    Any,
    Dict,
    FrozenSet,
    Iterable,
    List,
    Mapping,
    NamedTuple,
    NoReturn,
    Optional,
    Pattern,
    Tuple,
)

from kafka.config.secrets import shown
from kafka.errors import InvalidOptionError
from kafka.internals.validation import check_topic
from kafka.spark.client_options import (
    API_TIMEOUT_MS,
    api_timeout_ms,
    consumer_config,
    is_kafka_name,
    producer_config,
)
from kafka.spark.java_patterns import JavaPatternError, compile_java
from kafka.spark.offsets import parse_assignment, parse_offsets
from kafka.structs import TopicPartition

__all__ = ['Limit', 'SinkOptions', 'SourceOptions', 'Topics']

log = logging.getLogger('kafka.spark')

EARLIEST, LATEST = -2, -1  # as offsets

_SUBJECTS = ('assign', 'subscribe', 'subscribePattern')
_TRIGGERS = ('maxOffsetsPerTrigger', 'minOffsetsPerTrigger', 'maxTriggerDelay')
_ENDS = ('endingTimestamp', 'endingOffsetsByTimestamp', 'endingOffsets')
#: All names of a source and of a sink in the JVM connector's spelling; the last lines are
#: additions.
_OF_SOURCES = (
    *_SUBJECTS, *_TRIGGERS, *_ENDS,
    'startingTimestamp', 'startingOffsetsByTimestamp', 'startingOffsets',
    'startingOffsetsByTimestampStrategy', 'failOnDataLoss', 'kafkaConsumer.pollTimeoutMs',
    'fetchOffset.numRetries', 'fetchOffset.retryIntervalMs', 'minPartitions',
    'maxRecordsPerPartition', 'includeHeaders', 'groupIdPrefix',
    'commitOffsets', 'pushdown', 'lowLatency',
)  # fmt: skip
_OF_SINKS = ('topic', 'includeHeaders', 'exactlyOnce', 'transactionalIdPrefix')

#: Prefixes, in lower case, of options that Spark itself passes on.
_OF_SPARK = ('path', 'checkpointlocation', 'queryname', 'asyncprogresstracking', '_', 'spark.')
#: The last unknown names with a warning: a query parses its options again for each micro-batch.
_told: List[str] = []
_TOLD_AT_MOST = 16

_PREFIX = 'kafka.'
_INT32_MAX, _INT64_MAX = 2**31 - 1, 2**63 - 1
_NUMBER = re.compile(r'[+-]?[0-9]{1,19}\Z')
_DELAY = re.compile(r'([0-9]{1,15})(us|ms|s|m|min|h|d|)\Z')
_SECONDS = {
    'us': 1e-6, '': 1e-3, 'ms': 1e-3, 's': 1.0, 'm': 60.0, 'min': 60.0, 'h': 3600.0, 'd': 86400.0,
}  # fmt: skip


class Limit(NamedTuple):
    """The start or end of reading.

    kind: 'earliest', 'latest', 'committed', 'offsets', 'timestamps' or 'timestamp'. offsets: for
    kind offsets, where -1 is latest and -2 earliest, and for kind timestamps, in milliseconds; else
    empty. timestamp: for kind timestamp, of all partitions, in milliseconds. is_lenient: whether a
    partition without a record at or after its time starts at its end, instead of raising an error.
    """

    kind: str
    offsets: Mapping[TopicPartition, int] = {}
    timestamp: Optional[int] = None
    is_lenient: bool = False

    def is_earliest(self, partition: TopicPartition) -> bool:
        """Return True if a partition is read from its log start offset."""
        return self.kind == 'earliest' or (
            self.kind == 'offsets' and self.offsets.get(partition) == EARLIEST
        )


class Topics(NamedTuple):
    """The topics to read.

    kind: 'assign', 'subscribe' or 'subscribePattern'. names: for kind subscribe. pattern: for kind
    subscribePattern; a topic is read if ``pattern.search(topic)`` matches. partitions: for kind
    assign.
    """

    kind: str
    names: Tuple[str, ...] = ()
    pattern: Optional[Pattern[str]] = None
    partitions: Tuple[TopicPartition, ...] = ()

    @property
    def topic_names(self) -> FrozenSet[str]:
        """The topics that are named, by subscribe or assign; empty with a pattern."""
        return frozenset((*self.names, *(str(each.topic) for each in self.partitions)))


class SourceOptions(NamedTuple):
    """The options of a reader; can be pickled, and its repr shows no secret.

    end: for batch queries only. config: for BoundedReader or KafkaConsumer, without a group.
    retries: the minimum number of attempts of a lookup, with retry_interval_ms between;
    api_timeout_ms: the minimum time of retries while brokers are unreachable. max_offsets and
    min_offsets: per micro-batch; max_delay: the longest wait for min_offsets, in seconds. group_id:
    kafka.group.id. commit_offsets: the group to commit to, if any.
    """

    topics: Topics
    start: Limit
    end: Optional[Limit]
    config: Dict[str, Any]
    fail_on_data_loss: bool = True
    poll_timeout_ms: int = 120000
    retries: int = 3
    retry_interval_ms: int = 1000
    max_offsets: Optional[int] = None
    min_offsets: Optional[int] = None
    max_delay: float = 900.0
    min_partitions: Optional[int] = None
    max_records_per_partition: Optional[int] = None
    include_headers: bool = False
    group_id: Optional[str] = None
    group_id_prefix: str = 'spark-kafka-source'
    commit_offsets: Optional[str] = None
    pushdown: bool = False
    low_latency: bool = False
    api_timeout_ms: int = API_TIMEOUT_MS

    @classmethod
    def of(cls, options: Mapping[str, str], is_streaming: bool) -> SourceOptions:
        """Return the parsed options of a DataFrameReader or DataStreamReader.

        Raises InvalidOptionError, a KafkaConfigurationError and ValueError, with the option's name,
        the given value and the allowed values.
        """
        given = _Given(options, _OF_SOURCES, _OF_SINKS)
        if is_streaming:
            for name in _ENDS:
                if given.text(name) is not None:
                    raise InvalidOptionError('%s is for batch queries: a stream has no end' % name)
        group_id = given.kafka.get('group.id')
        if group_id == '':
            raise InvalidOptionError('kafka.group.id must be text that is not empty')
        commit_offsets = _group_to_commit(given, group_id, is_streaming)
        start = _start(given, is_streaming, group_id or commit_offsets)
        end = None if is_streaming else _end(given)
        if end is not None:
            _check_order(start, end)
        return cls(
            topics=_topics(given),
            start=start,
            end=end,
            config=consumer_config(given.kafka),
            group_id=group_id,
            group_id_prefix=given.text('groupIdPrefix') or _GROUPS[is_streaming],
            commit_offsets=commit_offsets,
            **_lookups(given),
            **_sizes(given, is_streaming),
            include_headers=given.flag('includeHeaders', False),
            pushdown=given.flag('pushdown', False),
            low_latency=given.flag('lowLatency', False),
            api_timeout_ms=api_timeout_ms(given.kafka),
        )

    @staticmethod
    def check(options: Mapping[str, str]) -> None:
        """Refuse options that are valid neither for a batch query nor for a stream.

        Raises InvalidOptionError, as of() does; if the errors of the two differ, with both.
        """
        try:
            SourceOptions.of(options, True)
        except InvalidOptionError as of_stream:
            try:
                SourceOptions.of(options, False)
            except InvalidOptionError as of_batch:
                told = [str(each.args[0]) for each in (of_batch, of_stream)]
                if told[0] != told[1]:
                    told[0] = '%s (of a stream: %s)' % (told[0], told[1])
                raise InvalidOptionError(told[0]) from None

    @property
    def committed_group(self) -> Optional[str]:
        """The group of a Limit of kind committed."""
        return self.commit_offsets or self.group_id


class SinkOptions(NamedTuple):
    """The options of a writer; can be pickled, and its repr shows no secret.

    topic: of all rows, None if there is a column topic. config: for KafkaProducer.
    """

    topic: Optional[str]
    include_headers: bool
    config: Dict[str, Any]
    exactly_once: bool = False
    transactional_id_prefix: Optional[str] = None

    @classmethod
    def of(cls, options: Mapping[str, str], is_streaming: bool) -> SinkOptions:
        """Return the parsed options of a DataFrameWriter or DataStreamWriter.

        Raises InvalidOptionError, as SourceOptions.of() does.
        """
        given = _Given(options, _OF_SINKS, _OF_SOURCES)
        topic = given.text('topic')
        if topic is not None:
            topic = topic.strip()
            _check_topics('topic', (topic,))
        exactly_once = given.flag('exactlyOnce', False)
        prefix = given.text('transactionalIdPrefix')
        if prefix is not None and not exactly_once:
            raise InvalidOptionError('transactionalIdPrefix needs exactlyOnce=true')
        if prefix == '':
            raise InvalidOptionError('transactionalIdPrefix must be text that is not empty')
        return cls(
            topic,
            given.flag('includeHeaders', False),
            producer_config(given.kafka, exactly_once),
            exactly_once,
            prefix,
        )


_GROUPS = {True: 'spark-kafka-source', False: 'spark-kafka-relation'}


class _Given:
    """Options as they were given: texts by case-insensitive names.

    Attributes: kafka: those with the prefix ``kafka.``, without it.
    """

    def __init__(
        self, options: Mapping[str, Any], names: Tuple[str, ...], others: Tuple[str, ...]
    ) -> None:
        texts = {str(name).lower(): _as_text(value) for name, value in options.items()}
        self._texts = {name: text for name, text in texts.items() if text is not None}
        self.kafka = {
            name[len(_PREFIX) :]: text.strip()
            for name, text in self._texts.items()
            if name.startswith(_PREFIX)
        }
        self._refuse_unknown(names, others)

    def _refuse_unknown(self, names: Tuple[str, ...], others: Tuple[str, ...]) -> None:
        """Refuse a misspelt name; any other unknown one may be Spark's, or of the other side.

        Those are logged once: a later Spark may have names that are unknown here.
        """
        known = {name.lower(): name for name in names}
        passed_over = {name.lower() for name in others}
        for name in self._texts:
            if name in known or name in passed_over or name.startswith(_PREFIX):
                continue
            hint = _PREFIX + name if is_kafka_name(name) else ''
            near = difflib.get_close_matches(name, known, 1, _NEAR)
            if hint or near:
                raise InvalidOptionError(
                    'unknown option %s: did you mean %s?' % (name, hint or known[near[0]])
                )
            if not name.startswith(_OF_SPARK) and name not in _told:
                log.warning(
                    'option %s has no effect: the options are %s', name[:60], ', '.join(names)
                )
                del _told[: 1 - _TOLD_AT_MOST]
                _told.append(name)

    def __bool__(self) -> bool:
        return bool(self._texts)

    def text(self, name: str) -> Optional[str]:
        """Return the text that was given, None if there is none."""
        return self._texts.get(name.lower())

    def refuse(self, name: str, allowed: str) -> NoReturn:
        """Raise for the value of an option."""
        raise InvalidOptionError(
            '%s must be %s, not %s' % (name, allowed, shown(self._texts[name.lower()]))
        )

    def flag(self, name: str, default: bool) -> bool:
        """Return a boolean option."""
        text = self.text(name)
        if text is None:
            return default
        if text.lower() not in ('true', 'false'):
            self.refuse(name, 'true or false')
        return text.lower() == 'true'

    def whole(self, name: str, low: int, high: int = _INT64_MAX) -> Optional[int]:
        """Return an integer option, None if it was not given."""
        text = self.text(name)
        if text is None:
            return None
        if not _NUMBER.match(text) or not low <= int(text) <= high:
            self.refuse(name, 'a whole number from %d to %d' % (low, high))
        return int(text)


#: Similarity above which a name is a misspelling: Spark's own names are below, most typos above.
_NEAR = 0.86


def _as_text(value: Any) -> Optional[str]:
    if isinstance(value, bool):
        return 'true' if value else 'false'
    return None if value is None else str(value)


# ---------------------------------------------------------------- topics


#: Spark 4.0 to 4.3 do not pass options of CREATE TABLE ... OPTIONS to a Python data source.
_NONE_AT_ALL = (
    ', and no options were given: a table in SQL passes them with CREATE TEMPORARY VIEW ... USING,'
    ' or SELECT ... WITH'
)


def _topics(given: _Given) -> Topics:
    said = [name for name in _SUBJECTS if given.text(name) is not None]
    if len(said) != 1:
        hint = ', not %s' % ' and '.join(said) if said else '' if given else _NONE_AT_ALL
        raise InvalidOptionError(
            'exactly one of the options %s is required%s' % (', '.join(_SUBJECTS), hint)
        )
    kind = said[0]
    text = str(given.text(kind)).strip()
    if kind == 'assign':
        partitions = parse_assignment(text, kind)
        _check_topics(kind, [str(each.topic) for each in partitions])
        return Topics(kind, partitions=partitions)
    if kind == 'subscribe':
        names = tuple(dict.fromkeys(each.strip() for each in text.split(',') if each.strip()))
        if not names:
            given.refuse(kind, 'topics, separated by commas')
        _check_topics(kind, names)
        return Topics(kind, names=names)
    if not text:
        given.refuse(kind, 'a pattern of Java that is not empty')
    try:
        return Topics(kind, pattern=compile_java(text))
    except JavaPatternError as error:
        given.refuse(kind, 'a pattern with the same meaning in Java and Python (%s)' % error)


def _check_topics(option: str, names: Iterable[str]) -> None:
    for name in names:
        try:
            check_topic(name)
        except ValueError as error:
            raise InvalidOptionError('%s: %s' % (option, error)) from None


# ---------------------------------------------------------------- start and end


def _start(given: _Given, is_streaming: bool, group: Optional[str]) -> Limit:
    strategy = given.text('startingOffsetsByTimestampStrategy')
    strategy = 'error' if strategy is None else strategy
    if strategy.lower() not in ('error', 'latest'):
        given.refuse('startingOffsetsByTimestampStrategy', 'error or latest')
    words = ('earliest', 'latest', 'committed') if is_streaming else ('earliest', 'committed')
    default = 'latest' if is_streaming else 'earliest'
    limit = _limit(given, 'starting', words, default, strategy.lower() == 'latest')
    if limit.kind == 'committed' and group is None:
        raise InvalidOptionError('startingOffsets=committed needs kafka.group.id')
    if not is_streaming:
        _refuse_offset(limit, 'startingOffsets', LATEST, 'latest, but a batch query must end')
    return limit


def _end(given: _Given) -> Limit:
    limit = _limit(given, 'ending', ('latest',), 'latest', True)
    _refuse_offset(limit, 'endingOffsets', EARLIEST, 'earliest, which is valid for a start only')
    return limit


def _limit(
    given: _Given, side: str, words: Tuple[str, ...], default: str, is_lenient: bool
) -> Limit:
    """Return the limit of three options: a time takes precedence, offsets come last.

    Arguments: side: 'starting' or 'ending'; words: allowed in place of offsets.
    """
    if given.text(side + 'Timestamp') is not None:
        return Limit('timestamp', {}, _timestamp(given, side + 'Timestamp'), is_lenient)
    name = side + 'OffsetsByTimestamp'
    text = given.text(name)
    if text is not None:
        times = parse_offsets(text.strip(), name)
        if any(each < 0 for each in times.values()):
            given.refuse(name, 'milliseconds since 1970, >= 0')
        return Limit('timestamps', times, None, is_lenient)
    name = side + 'Offsets'
    text = given.text(name)
    if text is None:
        return Limit(default)
    text = text.strip()
    if text.lower() in words:
        return Limit(text.lower())
    if not text.startswith('{'):
        given.refuse(name, '%s or JSON such as {"topicA":{"0":23}}' % ', '.join(words))
    offsets = parse_offsets(text, name)
    if any(each < EARLIEST for each in offsets.values()):
        given.refuse(name, 'offsets, or -1 for latest, -2 for earliest')
    return Limit('offsets', offsets)


def _timestamp(given: _Given, name: str) -> int:
    text = str(given.text(name)).strip()
    if not _NUMBER.match(text) or not 0 <= int(text) <= _INT64_MAX:
        given.refuse(name, 'milliseconds since 1970, >= 0')
    return int(text)


def _refuse_offset(limit: Limit, name: str, offset: int, what: str) -> None:
    if limit.kind != 'offsets':
        return
    for each, value in sorted(limit.offsets.items()):
        if value == offset:
            raise InvalidOptionError(
                '%s of topic %s partition %d must not be %d: that is %s'
                % (name, str(each.topic), each.partition, offset, what)
            )


def _check_order(start: Limit, end: Limit) -> None:
    """Refuse a start after an end, if both are given for each partition."""
    if start.kind != end.kind or start.kind not in ('offsets', 'timestamps'):
        return
    names = ('startingOffsets', 'endingOffsets')
    if start.kind == 'timestamps':
        names = ('startingOffsetsByTimestamp', 'endingOffsetsByTimestamp')
    differing = sorted(start.offsets.keys() ^ end.offsets.keys())
    if differing:
        raise InvalidOptionError(
            '%s and %s must name the same partitions, but only one of them has topic %s partition'
            ' %d' % (*names, str(differing[0].topic), differing[0].partition)
        )
    for each, first in sorted(start.offsets.items()):
        last = end.offsets[each]
        if first > last >= 0:
            raise InvalidOptionError(
                '%s must not be more than %s, and in topic %s partition %d they are %d and %d'
                % (*names, str(each.topic), each.partition, first, last)
            )


# ---------------------------------------------------------------- other options


def _group_to_commit(given: _Given, group_id: Optional[str], is_streaming: bool) -> Optional[str]:
    text = given.text('commitOffsets')
    if text is None or text.lower() == 'false':
        return None
    if not is_streaming:
        raise InvalidOptionError('commitOffsets is for streaming queries only')
    if text.lower() != 'true':
        return text.strip() or given.refuse('commitOffsets', 'a group, or true for kafka.group.id')
    if group_id is None:
        raise InvalidOptionError('commitOffsets=true needs kafka.group.id; or give the group in it')
    return group_id


def _lookups(given: _Given) -> Dict[str, Any]:
    found = {
        'poll_timeout_ms': given.whole('kafkaConsumer.pollTimeoutMs', 1),
        'retries': given.whole('fetchOffset.numRetries', 1, _INT32_MAX),
        'retry_interval_ms': given.whole('fetchOffset.retryIntervalMs', 0),
    }
    values: Dict[str, Any] = {name: value for name, value in found.items() if value is not None}
    values['fail_on_data_loss'] = given.flag('failOnDataLoss', True)
    return values


def _sizes(given: _Given, is_streaming: bool) -> Dict[str, Any]:
    """Return the limits of batches and tasks."""
    found: Dict[str, Any] = {
        'min_partitions': given.whole('minPartitions', 1, _INT32_MAX),
        'max_records_per_partition': given.whole('maxRecordsPerPartition', 1),
    }
    least = given.whole('minOffsetsPerTrigger', 0)
    most = given.whole('maxOffsetsPerTrigger', 1)
    delay = _delay(given, 'maxTriggerDelay')
    if least is not None and most is not None and least > most:
        raise InvalidOptionError(
            'minOffsetsPerTrigger must not be more than maxOffsetsPerTrigger, %d > %d'
            % (least, most)
        )
    if not is_streaming:
        for name in _TRIGGERS:
            if given.text(name) is not None:
                log.warning('option %s has no effect in a batch query', name)
        return found
    found.update(min_offsets=least, max_offsets=most)
    if delay is not None:
        found['max_delay'] = delay
    return found


def _delay(given: _Given, name: str) -> Optional[float]:
    """Return a time in Spark's notation, in seconds."""
    text = given.text(name)
    if text is None:
        return None
    found = _DELAY.match(text.strip().lower())
    if found is None:
        given.refuse(name, 'a time such as 500ms, 10s, 15m, 1h or 1d')
    return int(found.group(1)) * _SECONDS[found.group(2)]
