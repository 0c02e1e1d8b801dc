"""Requests of the driver: the partitions of a subscription, and the offsets of its limits.

It finds the partitions of a subscription, resolves a Limit to offsets, retries, and commits for a
group. Options are parsed in options.py, ranges are split in ranges.py. A Lookups has no connections
until it is used, and is pickled without them.
"""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Set, Tuple, TypeVar

from kafka import config as client_options
from kafka.consumer.bounded.client import ReaderClient
from kafka.consumer.group import KafkaConsumer
from kafka.errors import (
    KafkaConfigurationError,
    KafkaError,
    NoBrokersAvailable,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)
from kafka.net.loop.tasks import CoroutineCall
from kafka.spark.client_options import java_names
from kafka.spark.options import Limit, SourceOptions
from kafka.structs import OffsetAndMetadata, TopicPartition

__all__ = ['Lookups']

log = logging.getLogger(__name__)

T = TypeVar('T')
Offsets = Dict[TopicPartition, int]

LATEST, EARLIEST = -1, -2

#: How long a topic that was read must be unknown before it counts as deleted. A restarted broker
#: learns of the topics from the controller, usually within two seconds.
CONFIRM_SECONDS = 10.0
CONFIRM_PAUSE_SECONDS = 0.5


class Lookups:
    """Lookups for one reader. Not thread-safe.

    Arguments: options: a SourceOptions; clock, sleep: instead of the real ones.
    """

    def __init__(
        self,
        options: SourceOptions,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.options = options
        self._client: Optional[ReaderClient] = None
        self._members: Dict[str, KafkaConsumer] = {}
        self._missing: List[TopicPartition] = []  # those of the last warning
        self._seen: Set[str] = set()  # topics that existed at an earlier request
        self._clock = clock
        self._sleep = sleep

    def __repr__(self) -> str:
        return '<Lookups of %s>' % self.options.topics.kind

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.options,)

    # ------------------------------------------------------------ partitions

    def partitions(self) -> List[TopicPartition]:
        """Return all partitions to be read, as they exist now, sorted.

        Raises: UnknownTopicOrPartitionError for a named topic that does not exist;
            TopicAuthorizationFailedError; errors of connections.
        """
        topics = self.options.topics
        if topics.kind == 'assign':
            return self._assigned()
        names = None if topics.pattern is not None else sorted(topics.names)
        return self._retried(lambda: self._partitions_of(names))

    def _assigned(self) -> List[TopicPartition]:
        asked = self.options.topics.partitions
        names = sorted({str(each.topic) for each in asked})
        known = set(self._retried(lambda: self._partitions_of(names)))
        missing = [each for each in asked if each not in known]
        if missing != self._missing:  # the JVM connector omits them without a message
            self._missing = missing
            log.warning('option assign names partitions that do not exist: %s', _listed(missing))
        return sorted(known.intersection(asked))

    def _partitions_of(self, names: Optional[List[str]]) -> List[TopicPartition]:
        cluster = self._metadata(names)
        pattern = self.options.topics.pattern
        if names is None:
            assert pattern is not None
            names = [name for name in sorted(cluster.topics()) if pattern.search(name)]
        found = []
        for name in names:
            if name in cluster.internal_topics:  # the JVM connector skips them too
                continue
            numbers = cluster.partitions_for_topic(name)
            if not numbers:
                raise _no_topic(name, cluster.topic_errors.get(name))
            found += [TopicPartition(name, number) for number in numbers]
        self._seen.update(names)
        return sorted(found)

    def _metadata(self, names: Optional[List[str]]) -> Any:
        client = self._connected()
        assert client.loop is not None
        return client.loop.run(CoroutineCall(client.pool.metadata, names), None)

    def deleted(self, partitions: Iterable[TopicPartition]) -> Set[TopicPartition]:
        """Return those partitions that are definitely deleted.

        The topics are requested by name: the response then distinguishes an unknown topic from one
        that this user may not see, which a list of all topics does not. A topic counts as deleted
        when it is unknown for CONFIRM_SECONDS, because a broker that has just started knows no
        topics for a while. (Brokers before 0.11 create a topic that is requested by name, so they
        are asked for all topics: there only the time counts.)
        Raises: errors of connections.
        """
        doubtful = set(partitions)
        deadline = self._clock() + CONFIRM_SECONDS
        while doubtful:
            names = sorted({str(each.topic) for each in doubtful})
            cluster = self._retried(partial(self._metadata, names))
            doubtful = {each for each in doubtful if _is_unknown(cluster, each)}
            if self._clock() >= deadline:
                break
            if doubtful:
                self._sleep(CONFIRM_PAUSE_SECONDS)
        return doubtful

    # ------------------------------------------------------------ offsets

    def starts(
        self, limit: Limit, partitions: Optional[Iterable[TopicPartition]] = None
    ) -> Offsets:
        """Return the offsets where reading begins.

        Arguments: partitions: None for all.
        Raises: KafkaConfigurationError for offsets or times of other partitions than these, and for
            a time after the last record, unless the limit is lenient;
            as partitions(); KafkaTimeoutError.
        """
        return self._resolved(limit, self._or_all(partitions), 'startingOffsets')

    def ends(self, limit: Limit, partitions: Optional[Iterable[TopicPartition]] = None) -> Offsets:
        """Return the offsets where reading ends (exclusive), as starts()."""
        return self._resolved(limit, self._or_all(partitions), 'endingOffsets')

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Return the log start offsets."""
        return self._looked_up(dict.fromkeys(partitions, EARLIEST))[0]

    def latest(self, partitions: Optional[Iterable[TopicPartition]] = None) -> Offsets:
        """Return the ends of the logs; with read_committed the last stable offsets."""
        return self._looked_up(dict.fromkeys(self._or_all(partitions), LATEST))[0]

    def _or_all(self, partitions: Optional[Iterable[TopicPartition]]) -> List[TopicPartition]:
        return self.partitions() if partitions is None else sorted(partitions)

    def _resolved(self, limit: Limit, partitions: List[TopicPartition], name: str) -> Offsets:
        if limit.kind in ('earliest', 'latest'):
            time_of = EARLIEST if limit.kind == 'earliest' else LATEST
            return self._looked_up(dict.fromkeys(partitions, time_of))[0]
        if limit.kind == 'committed':
            return self._committed(partitions)
        if limit.kind == 'timestamp':
            assert limit.timestamp is not None
            times = dict.fromkeys(partitions, limit.timestamp)
        else:
            times = _matched(limit, partitions, name)
        if limit.kind == 'offsets':
            special = {each: offset for each, offset in times.items() if offset < 0}
            return {**times, **self._looked_up(special)[0]}
        found, missing = self._looked_up(times)
        if missing and not limit.is_lenient:
            text = 'no record of %s is as late as startingOffsetsByTimestamp or startingTimestamp'
            hint = '; startingOffsetsByTimestampStrategy=latest would start at the end there'
            raise KafkaConfigurationError(text % _listed(missing) + hint)
        return {**found, **self._looked_up(dict.fromkeys(missing, LATEST))[0]}

    def _committed(self, partitions: List[TopicPartition]) -> Offsets:
        """Return the committed offsets of the group, and the log start offset without one."""
        group = self.options.commit_offsets or self.options.group_id
        if group is None:
            text = 'startingOffsets=committed needs a group: set commitOffsets or kafka.group.id'
            raise KafkaConfigurationError(text)
        member = self._member(group)
        known = {each: member.committed(each) for each in partitions}
        found = {each: offset for each, offset in known.items() if offset is not None}
        return {**self.earliest(each for each in partitions if each not in found), **found}

    def _looked_up(self, times: Mapping[TopicPartition, int]) -> Tuple[Offsets, List[Any]]:
        """Return the offsets of times, and the partitions without a record at or after them."""
        if not times:
            return {}, []
        answers = self._retried(lambda: self._look_up(times))
        missing = [each for each in times if answers.get(each) is None]
        return {each: int(found[0]) for each, found in answers.items() if found}, missing

    def _look_up(self, times: Mapping[TopicPartition, int]) -> Any:
        client = self._connected()
        assert client.loop is not None
        seconds = client.config['request_timeout_ms'] / 1000
        ask = CoroutineCall(client.lookups.look_up, times, seconds)
        return client.loop.run(ask, None)

    # ------------------------------------------------------------ the group

    def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets for a group without members.

        Raises: as KafkaConsumer.commit().
        """
        if offsets:
            self._member(group).commit(
                {each: OffsetAndMetadata(offset, '', -1) for each, offset in offsets.items()}
            )

    def _member(self, group: str) -> KafkaConsumer:
        member = self._members.get(group)
        if member is None:
            config = {**self.options.config, 'group_id': group, 'enable_auto_commit': False}
            member = self._members[group] = KafkaConsumer(**config)
        return member

    # ------------------------------------------------------------ connections

    def _connected(self) -> ReaderClient:
        if self._client is None:
            config = client_options.resolve(client_options.CONSUMER, self.options.config)
            self._client = ReaderClient(config, 'kafka-spark-driver')
        self._client.connected()
        return self._client

    def _retried(self, ask: Callable[[], T]) -> T:
        """Call a function again after an error that may be temporary.

        For default.api.timeout.ms, as Java's clients do, and at least fetchOffset.numRetries times.
        A topic that never existed is more likely misspelt than late: it is only requested that many
        times.
        """
        with java_names():
            self._connected()  # which has its own time-out
            return self._repeated(ask)

    def _repeated(self, ask: Callable[[], T]) -> T:
        began = self._clock()
        tries = 0
        while True:
            try:
                return ask()
            except KafkaError as error:
                tries += 1
                left = began + self._patience_seconds(error) - self._clock()
                is_used_up = tries >= self.options.retries or isinstance(error, NoBrokersAvailable)
                if left <= 0 and is_used_up:
                    raise
                self._sleep(self.options.retry_interval_ms / 1000)

    def _patience_seconds(self, error: KafkaError) -> float:
        """Return how long to retry after an error. Raises it if it is not retriable."""
        if isinstance(error, UnknownTopicOrPartitionError):
            is_known = self._seen.issuperset(self.options.topics.topic_names)
            return CONFIRM_SECONDS if is_known else 0.0
        if not error.retriable:
            raise error
        return self.options.api_timeout_ms / 1000

    def close(self) -> None:
        """Close the connections; later calls connect again."""
        client, self._client = self._client, None
        if client is not None:
            client.close()
        members, self._members = self._members, {}
        for member in members.values():
            member.close(autocommit=False)


def _is_unknown(cluster: Any, partition: TopicPartition) -> bool:
    """Return True if brokers say that a partition does not exist."""
    topic = str(partition.topic)
    error = cluster.topic_errors.get(topic)
    if error is not None and not issubclass(error, UnknownTopicOrPartitionError):
        return False
    return partition.partition not in (cluster.partitions_for_topic(topic) or ())


def _no_topic(name: str, error: Any) -> KafkaError:
    if error is TopicAuthorizationFailedError:
        return TopicAuthorizationFailedError({name})
    if error is not None and not issubclass(error, UnknownTopicOrPartitionError):
        failed: KafkaError = error('topic %s' % name)
        return failed
    return UnknownTopicOrPartitionError(
        'topic %s does not exist (options subscribe and assign)' % name
    )


def _matched(limit: Limit, partitions: Iterable[TopicPartition], name: str) -> Offsets:
    """Return the offsets of a limit by partition. It must name exactly the given partitions."""
    asked: Set[TopicPartition] = set(partitions)
    given = set(limit.offsets)
    if asked == given:
        return dict(limit.offsets)
    by_time = 'ByTimestamp' if limit.kind == 'timestamps' else ''
    told = [
        '%s %s' % (what, _listed(some))
        for what, some in (('missing', asked - given), ('not read', given - asked))
        if some
    ]
    raise KafkaConfigurationError(
        '%s%s must name each partition that is read and no other: %s%s'
        % (name, by_time, ' and '.join(told), '' if by_time else ' (-1 is latest, -2 earliest)')
    )


def _listed(partitions: Iterable[TopicPartition]) -> str:
    some = sorted(partitions)
    rest = ' and %d more' % (len(some) - 8) if len(some) > 8 else ''
    return ', '.join('%s-%d' % (str(each[0]), each[1]) for each in some[:8]) + rest
