"""ConsumerQueries: the methods of a modern consumer that look up topics, offsets and metadata.

Called by the thread inside the consumer; requests are sent in turns of the loop. No call changes
the subscription or a position.
"""

from __future__ import annotations

from typing import Any, Callable, Coroutine, Dict, Iterable, List, Mapping, Optional, Set, TypeVar

from kafka.cluster import ClusterMetadata
from kafka.consumer.call_checks import (
    check_partition,
    check_partitions,
    default_seconds,
    seconds_of,
)
from kafka.consumer.engine import Engine
from kafka.consumer.one_thread import OneThread
from kafka.errors import (
    IllegalStateError,
    KafkaConnectionError,
    KafkaTimeoutError,
    NoBrokersAvailable,
)
from kafka.internals.validation import ArgumentTypeError, ArgumentValueError, as_milliseconds, where
from kafka.net.loop.tasks import CoroutineCall
from kafka.structs import OffsetAndTimestamp, TopicPartition

__all__ = ['ConsumerQueries']

T = TypeVar('T')

#: The timestamps of ListOffsets that mean the end and the start of a log.
_LATEST, _EARLIEST = -1, -2


class ConsumerQueries:
    """The lookups of one consumer; arguments, results and errors as in KafkaConsumer.

    Arguments:
        engine: the engine of the consumer.
        guard: the single-thread guard.
        options: the options of the consumer.
    """

    def __init__(self, engine: Engine, guard: OneThread, options: Mapping[str, Any]) -> None:
        self._engine = engine
        self._guard = guard
        self._options = options

    def __repr__(self) -> str:
        return '<ConsumerQueries %r>' % (self._engine,)

    def _run(self, make: Callable[[float], Coroutine[Any, Any, T]], timeout_ms: Any) -> T:
        seconds = seconds_of(timeout_ms, default_seconds(self._options))
        with self._guard:
            self._guard.check_open()
            return self._engine.run(CoroutineCall(make, seconds), seconds)

    # ------------------------------------------------------------ offsets

    def committed(
        self, partition: TopicPartition, metadata: bool = False, timeout_ms: Any = None
    ) -> Any:
        """Return the committed offset of the group."""
        check_partition(partition)
        self._guard.check_open()
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
        """Return the first offset of each partition."""
        return self._ends(partitions, _EARLIEST, timeout_ms)

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: Any = None
    ) -> Dict[TopicPartition, int]:
        """Return the offset after the last record of each partition."""
        return self._ends(partitions, _LATEST, timeout_ms)

    def _ends(
        self, partitions: Iterable[TopicPartition], moment: int, timeout_ms: Any
    ) -> Dict[TopicPartition, int]:
        wanted = dict.fromkeys(check_partitions(partitions), moment)
        if not wanted:
            return {}
        found: Dict[TopicPartition, Any] = self._run(
            lambda seconds: self._engine.lookups.look_up(wanted, seconds), timeout_ms
        )
        return {partition: offset.offset for partition, offset in found.items()}

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, float], timeout_ms: Any = None
    ) -> Dict[TopicPartition, Optional[OffsetAndTimestamp]]:
        """Return offset and timestamp of the first record at or after a time, by partition."""
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
        """Return the high watermark of a partition, as of the last fetch."""
        return self._of(partition, 'highwater')

    def last_stable_offset(self, partition: TopicPartition) -> Optional[int]:
        """Return the last stable offset of a partition, as of the last fetch."""
        return self._of(partition, 'last_stable_offset')

    def _of(self, partition: TopicPartition, name: str) -> Optional[int]:
        check_partition(partition)
        self._guard.check_open()
        engine = self._engine
        with engine.lock:
            value: Optional[int] = getattr(engine.subscription.state(partition), name)
        return value

    # ------------------------------------------------------------ topics

    def topics(self, timeout_ms: Any = None) -> Set[str]:
        """Return the names of all topics that this client may describe."""
        cluster = self._run(lambda seconds: self._metadata(None, seconds), timeout_ms)
        names: Set[str] = cluster.topics(
            exclude_internal_topics=self._options['exclude_internal_topics']
        )
        return names

    def partitions_for_topic(self, topic: str) -> Set[int]:
        """Return the ids of a topic's partitions."""
        self._guard.check_open()
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

    async def _metadata(self, topics: Optional[List[str]], seconds: float) -> ClusterMetadata:
        """Request metadata of topics, None for all, until a broker responds."""
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
            except KafkaConnectionError:  # another broker may respond, or the same one later
                failures += 1
                pause = engine.lookups.backoff(failures)
                if pause >= left:
                    raise
            await engine.loop.sleep(pause)

    # ------------------------------------------------------------ the client

    def bootstrap(self, timeout_ms: Any, refresh: bool = False) -> None:
        """Wait until the cluster is bootstrapped; with `refresh` request metadata again."""

        async def begun() -> None:
            if refresh:
                await self._metadata(None, seconds_of(timeout_ms, 0.0))

        self._run(lambda seconds: begun(), timeout_ms)
