"""Fetcher: fetches records for a consumer over the evented client (1.x).

For programs that drive the KafkaClient of client.py themselves: all work is done in calls of this
object and in ``poll()`` of the client. KafkaConsumer uses consumer/fetch/manager.py instead, which
prefetches and uses newer request versions; decoding is the same
(consumer/fetch/completed_fetch.py).
"""

from __future__ import annotations

import logging
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Deque, Dict, Iterable, List, Optional, Tuple

from kafka.consumer.fetch.completed_fetch import CompletedFetch
from kafka.consumer.fetch.error_actions import out_of_range
from kafka.consumer.reset_policy import NONE, timestamp_of
from kafka.coordinator.commits.error_actions import named
from kafka.errors import (
    KafkaError,
    KafkaTimeoutError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    RecordTooLargeError,
    StaleMetadata,
    TopicAuthorizationFailedError,
    for_code,
)
from kafka.future import Future
from kafka.protocol.fetch import FetchRequest, PartitionData
from kafka.protocol.message import MessageSet
from kafka.protocol.offset import OffsetRequest
from kafka.structs import ConsumerRecord, TopicPartition

if TYPE_CHECKING:
    from kafka.client import KafkaClient

#: What programs import from here; all except Fetcher are defined elsewhere.
__all__ = ['ConsumerRecord', 'Fetcher', 'NoOffsetForPartitionError', 'RecordTooLargeError']

log = logging.getLogger('kafka.consumer.fetcher')

_OUT_OF_RANGE, _TOPIC_FORBIDDEN = OffsetOutOfRangeError.errno, TopicAuthorizationFailedError.errno
#: For each partition in a request: its token, and the requested offset.
_Asked = Dict[TopicPartition, Tuple[int, int]]


class Fetcher:
    """Fetches the fetchable partitions of a subscription (1.x).

    Arguments: client: an evented KafkaClient; subscriptions: a SubscriptionState; metrics,
    metric_group_prefix: not used; configs: those of DEFAULT_CONFIG, others are ignored.
    """

    DEFAULT_CONFIG: Dict[str, Any] = {
        'key_deserializer': None,
        'value_deserializer': None,
        'fetch_min_bytes': 1,
        'fetch_max_wait_ms': 500,
        'max_partition_fetch_bytes': 1048576,
        'check_crcs': True,
        'request_timeout_ms': 40000,
        'retry_backoff_ms': 100,
        'api_version': (0, 9),
    }

    def __init__(
        self,
        client: KafkaClient,
        subscriptions: Any,
        metrics: Any = None,
        metric_group_prefix: str = 'consumer',
        **configs: Any,
    ) -> None:
        self.config = {
            name: configs.get(name, default) for name, default in self.DEFAULT_CONFIG.items()
        }
        self._client = client
        self._subscriptions = subscriptions
        self._parked: Deque[CompletedFetch] = deque()
        self._in_flight: Dict[Any, Future] = {}
        self._errors: Deque[KafkaError] = deque()

    def __repr__(self) -> str:
        return '<Fetcher parked=%d in_flight=%d>' % (
            len(self._parked),
            len(self._in_flight),
        )

    # ------------------------------------------------------------ requests

    def init_fetches(self) -> List[Future]:
        """Send a fetch to each leader without one in flight; return the futures of these requests.

        While records of partitions that are not paused are buffered, nothing is sent.
        """
        if self._not_paused():
            return []
        asked: Dict[Any, _Asked] = {}
        for partition in self._subscriptions.fetchable():
            state = self._subscriptions.state(partition)
            leader = self._client.cluster.leader_for_partition(partition)
            if leader is None or leader == -1:
                self._client.cluster.request_update()
            else:
                asked.setdefault(leader, {})[partition] = state.token, state.position
        return [
            self._send(node_id, places)
            for node_id, places in asked.items()
            if node_id not in self._in_flight and self._client.ready(node_id)
        ]

    def in_flight_fetches(self) -> bool:
        """Return True if a fetch is in flight."""
        return bool(self._in_flight)

    def _send(self, node_id: Any, asked: _Asked) -> Future:
        release = self.config['api_version']
        version = 2 if release >= (0, 10) else 1 if release >= (0, 9) else 0
        topics: Dict[str, List[Tuple[int, int, int]]] = {}
        for (topic, number), (_, offset) in asked.items():
            limit = self.config['max_partition_fetch_bytes']
            topics.setdefault(str(topic), []).append((number, offset, limit))
        request: Any = FetchRequest[version](  # type: ignore[misc]
            -1,
            self.config['fetch_max_wait_ms'],
            self.config['fetch_min_bytes'],
            list(topics.items()),
        )
        future: Future = self._client.send(node_id, request)
        self._in_flight[node_id] = future
        future.add_callback(self._answered, node_id, asked)
        future.add_errback(self._failed, node_id)
        return future

    def _failed(self, node_id: Any, error: BaseException) -> None:
        self._in_flight.pop(node_id, None)
        log.debug('a fetch from node %s failed: %s', node_id, error)

    def _answered(self, node_id: Any, asked: _Asked, answer: Any) -> None:
        self._in_flight.pop(node_id, None)
        for topic, partitions in answer.topics:
            for number, code, highwater, messages in partitions:
                partition = TopicPartition(topic, number)
                if partition in asked and self._is_current(partition, *asked[partition]):
                    self._take_in(partition, asked[partition], code, highwater, messages, node_id)

    def _is_current(self, partition: TopicPartition, token: int, offset: int) -> bool:
        if not self._subscriptions.is_assigned(partition):
            return False
        state = self._subscriptions.state(partition)
        return bool(state.token == token and state.position == offset)

    def _take_in(
        self,
        partition: TopicPartition,
        asked: Tuple[int, int],
        code: int,
        highwater: int,
        messages: Any,
        node_id: Any,
    ) -> None:
        token, offset = asked
        if code:
            self._refused(partition, offset, code)
            return
        self._subscriptions.state(partition).highwater = highwater
        whole = [(at, message.encode()) for at, _, message in messages if at is not None]
        if messages and not whole:
            self._errors.append(
                RecordTooLargeError(
                    'a record is larger than max_partition_fetch_bytes allows',
                    {partition: offset},
                    self.config['max_partition_fetch_bytes'],
                )
            )
            return
        data = PartitionData(
            partition_index=partition.partition,
            error_code=0,
            high_watermark=highwater,
            records=MessageSet.encode(whole, size=False),
        )
        fetch = CompletedFetch(
            partition,
            offset,
            data,
            token=token,
            node_id=node_id,
            read_committed=False,
            check_crcs=self.config['check_crcs'],
            key_deserializer=self.config['key_deserializer'],
            value_deserializer=self.config['value_deserializer'],
        )
        if not fetch.is_done:
            self._parked.append(fetch)

    def _refused(self, partition: TopicPartition, offset: int, code: int) -> None:
        """Handle an error code of a partition."""
        error = for_code(code)
        if code == _OUT_OF_RANGE and self._subscriptions.has_default_offset_reset_policy():
            self._subscriptions.need_offset_reset(partition)
        elif code == _OUT_OF_RANGE:
            self._errors.append(out_of_range(partition, offset))
        elif code == _TOPIC_FORBIDDEN:
            self._errors.append(TopicAuthorizationFailedError({partition.topic}))
        elif error.refresh_metadata:
            self._client.cluster.request_update()
        else:
            log.warning('%s cannot be fetched: %s', named([partition]), error.__name__)

    # ------------------------------------------------------------ records

    def fetched_records(self) -> Dict[TopicPartition, List[ConsumerRecord]]:
        """Return the buffered records, by partition, and advance the positions past them.

        Raises: OffsetOutOfRangeError, TopicAuthorizationFailedError, RecordTooLargeError, each
        once; CorruptRecordError and what a deserializer raises, with the position left there.
        """
        self._raise_errors()
        found: Dict[TopicPartition, List[ConsumerRecord]] = {}
        for fetch in self._not_paused():
            try:
                records = self._taken(fetch, None)
            except Exception:
                if found:
                    break  # the records before it are returned first; the next call raises this
                raise
            if records:
                found.setdefault(fetch.partition, []).extend(records)
        return found

    def _not_paused(self) -> List[CompletedFetch]:
        is_paused = self._subscriptions.is_paused
        return [fetch for fetch in self._parked if not is_paused(fetch.partition)]

    def _taken(self, fetch: CompletedFetch, most: Optional[int]) -> List[ConsumerRecord]:
        """Return records of a fetch, none if the position has changed since."""
        records: List[ConsumerRecord] = []
        if self._is_current(fetch.partition, fetch.token, fetch.position):
            records = fetch.take(most)
            state = self._subscriptions.state(fetch.partition)
            (state.consumed if records else state.passed_over)(fetch.position, fetch.last_epoch)
        if not records or fetch.is_done:
            self._parked.remove(fetch)
        return records

    def _raise_errors(self) -> None:
        if self._errors:
            raise self._errors.popleft()

    def __iter__(self) -> Fetcher:
        return self

    def __next__(self) -> ConsumerRecord:
        """Return the next buffered record, and advance the position past it.

        Raises: StopIteration if none is buffered; as fetched_records().
        """
        self._raise_errors()
        for fetch in self._not_paused():
            records = self._taken(fetch, 1)
            if records:
                return records[0]
        raise StopIteration

    # ------------------------------------------------------------ positions

    def update_fetch_positions(self, partitions: Iterable[TopicPartition]) -> None:
        """Set the position of each partition without one: the committed offset, or by policy.

        Raises: NoOffsetForPartitionError if there is neither; non-retriable errors of a broker;
        KafkaTimeoutError after request_timeout_ms.
        """
        for partition in partitions:
            if not self._subscriptions.is_assigned(partition):
                log.warning('%s is not assigned and has no position', named([partition]))
                continue
            state = self._subscriptions.state(partition)
            if state.has_valid_position:
                continue
            if state.committed is not None and not state.awaiting_reset:
                self._subscriptions.seek(partition, state.committed.offset)
                continue
            policy = state.reset_strategy
            if policy is None:
                policy = self._subscriptions.default_reset
            if policy == NONE:
                raise NoOffsetForPartitionError(partition)
            timestamp = timestamp_of(policy, time.time())
            self._subscriptions.seek(partition, self._offset(partition, timestamp))

    def _offset(self, partition: TopicPartition, timestamp: int) -> int:
        """Look up an offset by time; retry until a broker returns it."""
        ends_at = time.monotonic() + self.config['request_timeout_ms'] / 1000
        while True:
            try:
                return self._ask_offset(partition, timestamp)
            except KafkaError as error:
                if not error.retriable:
                    raise
                if time.monotonic() >= ends_at:
                    raise KafkaTimeoutError(
                        'no broker tells where %s begins: %s' % (named([partition]), error)
                    ) from error
                self._client.poll(future=self._client.cluster.request_update())
                time.sleep(self.config['retry_backoff_ms'] / 1000)

    def _ask_offset(self, partition: TopicPartition, timestamp: int) -> int:
        leader = self._client.cluster.leader_for_partition(partition)
        if leader is None or leader == -1:
            raise StaleMetadata('%s has no leader that is known' % named([partition]))
        asked = [(partition.topic, [(partition.partition, timestamp, 1)])]
        request: Any = OffsetRequest
        answer = self._client.send_and_receive(leader, request[0](-1, asked))
        _, ((_, code, offsets),) = answer.topics[0]
        if code:
            raise for_code(code)('the offsets of ' + named([partition]))
        found: Optional[int] = offsets[0] if offsets else None
        if found is None:
            raise NoOffsetForPartitionError(partition)
        return found
