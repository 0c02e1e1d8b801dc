"""What a program can ask a modern consumer about topics, offsets, and itself.

Owns these calls. None of them changes what is read.
"""

from __future__ import annotations

from typing import Any, Awaitable, Callable, Dict, Iterable, List, Mapping, Optional, Set

from kafka.consumer.call_checks import (
    check_partition,
    check_partitions,
    seconds_of,
)
from kafka.consumer.shell import Shell
from kafka.errors import (
    IllegalStateError,
    KafkaConnectionError,
    KafkaTimeoutError,
    NoBrokersAvailable,
)
from kafka.internals.validation import ArgumentTypeError, ArgumentValueError, as_milliseconds, where
from kafka.structs import OffsetAndTimestamp, TopicPartition

__all__ = ['ReadingVerbs']

#: What ListOffsets calls the end and the start of a log.
_LATEST, _EARLIEST = -1, -2


class ReadingVerbs(Shell):
    """A base of the modern KafkaConsumer, of no use alone."""

    def _run(self, make: Callable[[float], Awaitable[Any]], timeout_ms: Any) -> Any:
        seconds = seconds_of(timeout_ms, self._default_timeout())
        with self._guard:
            self._check_open()
            return self._engine.run(make(seconds), seconds)  # type: ignore[arg-type]

    # ------------------------------------------------------------ offsets

    def committed(
        self, partition: TopicPartition, metadata: bool = False, timeout_ms: Any = None
    ) -> Any:
        """Return the committed offset of the group, None for none (1.0).

        Arguments: metadata: return an OffsetAndMetadata (2.0); timeout_ms: None for
            request_timeout_ms.
        Raises: IllegalStateError (an AssertionError) without group_id; KafkaTimeoutError; what
            brokers say.
        """
        check_partition(partition)
        self._check_open()
        commits = self._engine.commits
        if commits is None:
            raise IllegalStateError('committed() needs the option group_id')
        identity = self._engine.identity()
        found = self._run(
            lambda seconds: commits.fetch([partition], seconds, identity), timeout_ms
        ).get(partition)
        return found if metadata or found is None else found.offset

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: Any = None
    ) -> Dict[TopicPartition, int]:
        """Return the first offset of each partition, assigned or not (1.3.4).

        Raises: KafkaTimeoutError, naming them, also for partitions that do not exist.
        """
        return self._ends(partitions, _EARLIEST, timeout_ms)

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: Any = None
    ) -> Dict[TopicPartition, int]:
        """Return the offset behind the last record of each partition (1.3.4).

        With read_committed: behind the last of a transaction that has ended. Raises: as
        beginning_offsets().
        """
        return self._ends(partitions, _LATEST, timeout_ms)

    def _ends(
        self, partitions: Iterable[TopicPartition], moment: int, timeout_ms: Any
    ) -> Dict[TopicPartition, int]:
        wanted = dict.fromkeys(check_partitions(partitions), moment)
        if not wanted:
            return {}
        found = self._run(lambda seconds: self._engine.lookups.look_up(wanted, seconds), timeout_ms)
        return {partition: offset.offset for partition, offset in found.items()}

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, float], timeout_ms: Any = None
    ) -> Dict[TopicPartition, Optional[OffsetAndTimestamp]]:
        """Return the first record at or after a time, for each partition (1.3.4).

        Arguments: timestamps: {TopicPartition: ms since the epoch}; fractions are cut off.
        Returns: {TopicPartition: OffsetAndTimestamp}, None where there is no such record.
        Raises: ArgumentValueError for a negative time; UnsupportedVersionError on brokers before
            0.10.1; KafkaTimeoutError as beginning_offsets().
        """
        if not isinstance(timestamps, Mapping):
            raise ArgumentTypeError('timestamps must be a dict of TopicPartition to milliseconds')
        wanted = {}
        for partition, timestamp in timestamps.items():
            check_partition(partition)
            name = '%s: the time' % where(partition)
            try:
                wanted[partition] = as_milliseconds(name, timestamp)
            except ArgumentTypeError as error:
                raise ArgumentValueError(*error.args) from None
            if wanted[partition] < 0:
                raise ArgumentValueError('%s must be at least 0, not %r' % (name, timestamp))
        if not wanted:
            return {}
        found: Dict[TopicPartition, Optional[OffsetAndTimestamp]] = self._run(
            lambda seconds: self._engine.lookups.look_up(wanted, seconds), timeout_ms
        )
        return found

    def highwater(self, partition: TopicPartition) -> Optional[int]:
        """Return the offset behind the last record that consumers can see; None before a fetch.

        As of the last fetch. Raises: IllegalStateError (an AssertionError) unless assigned (1.0).
        """
        return self._of(partition, 'highwater')

    def last_stable_offset(self, partition: TopicPartition) -> Optional[int]:
        """Return the first offset of the oldest open transaction, as of the last fetch.

        None before a fetch, and on brokers before 0.11. Raises: as highwater().
        """
        return self._of(partition, 'last_stable_offset')

    def lag(self, partition: TopicPartition) -> Optional[int]:
        """Return how many offsets are behind the position, as of the last fetch.

        None while that or the position is not known. Raises: as highwater().
        """
        check_partition(partition)
        self._check_open()
        self._sync()
        engine, is_committed = self._engine, self.config['isolation_level'] == 'read_committed'
        with engine.lock:
            lag: Optional[int] = engine.subscription.state(partition).lag(is_committed)
        return lag

    def _of(self, partition: TopicPartition, name: str) -> Optional[int]:
        check_partition(partition)
        self._check_open()
        engine = self._engine
        with engine.lock:
            value: Optional[int] = getattr(engine.subscription.state(partition), name)
        return value

    # ------------------------------------------------------------ topics

    def topics(self, timeout_ms: Any = None) -> Set[str]:
        """Return the names of all topics that may be seen; asks the brokers (1.0).

        Internal ones are among them unless exclude_internal_topics is set. Raises:
            KafkaTimeoutError, NoBrokersAvailable.
        """
        cluster = self._run(lambda seconds: self._metadata(None, seconds), timeout_ms)
        names: Set[str] = cluster.topics(
            exclude_internal_topics=self.config['exclude_internal_topics']
        )
        return names

    def partitions_for_topic(self, topic: str) -> Set[int]:
        """Return the ids of a topic's partitions; asks if they are not known (1.4.7).

        Returns: an empty set for a topic that does not exist.
        Raises: TopicAuthorizationFailedError; KafkaTimeoutError, NoBrokersAvailable.
        """
        self._check_open()
        if not isinstance(topic, str):
            raise ArgumentTypeError('a topic is named by a str, not by %r' % (topic,))
        cluster = self._engine.pool.cluster
        known = cluster.partitions_for_topic(topic)
        if known is None:
            cluster = self._run(lambda seconds: self._metadata([topic], seconds), None)
            known = cluster.partitions_for_topic(topic)
        if known is None and topic in cluster.unauthorized_topics:
            raise cluster.topic_errors[topic]({topic})
        return set(known or ())

    async def _metadata(self, topics: Optional[List[str]], seconds: float) -> Any:
        """Ask brokers about topics, None for all, until one answers."""
        engine = self._engine
        deadline, failures = engine.loop.time() + seconds, 0
        while True:
            left = deadline - engine.loop.time()
            try:
                return await engine.pool.metadata(topics, left)
            except NoBrokersAvailable:
                raise
            except KafkaTimeoutError as error:
                what = 'all topics' if topics is None else 'topic ' + ', '.join(topics)
                text = 'no broker answered within %.3g seconds when it was asked about %s'
                raise KafkaTimeoutError(text % (seconds, what)) from error
            except KafkaConnectionError:  # another may answer, or the same one once it is back
                failures += 1
                pause = engine.lookups.backoff(failures)
                if pause >= left:
                    raise
            await engine.loop.sleep(pause)

    # ------------------------------------------------------------ the client

    def bootstrap_connected(self) -> bool:
        """Tell whether a connection to the cluster is open (1.4.7)."""
        return not self._closed and self._engine.pool.is_connected

    def bootstrap(self, timeout_ms: Any = None, refresh: bool = False) -> None:
        """Wait until the cluster is found (3.0).

        Arguments: timeout_ms: None for bootstrap_timeout_ms; refresh: ask for metadata anew.
        Raises: NoBrokersAvailable, which is a KafkaTimeoutError.
        """
        if timeout_ms is None:
            timeout_ms = self.config['bootstrap_timeout_ms']

        async def begun() -> None:
            if refresh:
                await self._metadata(None, seconds_of(timeout_ms, 0.0))

        self._run(lambda seconds: begun(), timeout_ms)

    def metrics(self, raw: bool = False) -> Optional[Dict[Any, Any]]:
        """Return {group: {name: number}}, or, raw, the metrics by their MetricName (1.3).

        Groups begin with the option metric_group_prefix: ``consumer-metrics``, ``consumer-fetch-
        manager-metrics``, ``consumer-coordinator-metrics``, ``consumer-node-metrics.node-<id>``.
        None with metrics_enabled=False.
        """
        figures = self._engine.figures
        if figures is None:
            return None
        if not raw:
            found: Dict[Any, Any] = figures.snapshot()
            return found
        figures.settle()
        return dict(figures.metrics.metrics)
