"""Records on their way into batches when something has to be looked at first.

Owns the ways of send(), send_and_forget() and send_many() that are not quick: arguments in the
order of any release, checks, interceptors, serializers, partitioners, topics that are not known
yet, and waiting for memory. The quick ways are :mod:`kafka.producer.sending`'s.
"""

from __future__ import annotations

import logging
import time
from typing import Any, Callable, List, Optional, Sequence

from kafka.errors import (
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    TopicAuthorizationFailedError,
)
from kafka.internals.program_errors import log_program_error
from kafka.partitioner.adapt import Adapted, Question
from kafka.producer.bounded_lock import LockBusyError
from kafka.producer.buffer import AGAIN, Ticket
from kafka.producer.future import (
    FutureRecordMetadata,
    FutureRecords,
    Placed,
    future_of,
    header_size,
)
from kafka.producer.producer_batch import FailedBatch, Headers
from kafka.producer.record_checks import (
    ProducerRecord,
    RecordTypeError,
    RecordValueError,
    as_bytes,
    check_chosen,
    check_column,
    check_headers,
    check_partition,
    check_record,
    check_release,
    check_timestamp,
    check_topic,
)
from kafka.producer.sending import Sending
from kafka.producer.topic_queue import TopicQueue
from kafka.structs import TopicPartition

log = logging.getLogger(__name__)

#: Bytes that every era counts for what is around key and value.
OVERHEAD = 34


class Placing(Sending):
    """The slow ways of KafkaProducer.

    config, _loop, _pool, _state and the rest are made by its constructor.
    """

    config: Any
    _loop: Any
    _pool: Any
    _client: Any
    _state: Any
    _key_serializer: Any
    _value_serializer: Any
    _interceptors: List[Any]
    _told: List[Callable[..., Any]]
    _partitioner: Adapted
    _is_default: bool
    _is_plain: bool
    _closed: bool
    _max_block: float
    _largest: int

    def _check_open(self) -> None:
        raise NotImplementedError

    # ------------------------------------------------------------ sending

    def _send(
        self, topic: Any, value: Any, key: Any, headers: Any, partition: Any, timestamp_ms: Any
    ) -> FutureRecordMetadata:
        """Send a record for which something has to be looked at, or a batch begun."""
        deadline = time.monotonic() + self._max_block
        if headers is None and partition is None and timestamp_ms is None:
            if type(value) is bytes and (key is None or type(key) is bytes):
                queue = self._accumulator.fast.get(topic)
                size = OVERHEAD + len(value) + len(key or b'')
                if queue is not None and size <= self._largest:
                    return self._begin_batch(queue, value, key, deadline)
        if type(headers) is int:  # the fourth argument was the partition up to 1.4.3
            if partition is not None:
                timestamp_ms = partition
            headers, partition = None, headers
        record = ProducerRecord(topic, value, key, headers, partition, timestamp_ms)
        self._check_open()
        for interceptor in self._interceptors:
            if hasattr(interceptor, 'on_send'):
                record = check_record(interceptor, interceptor.on_send(record))
        try:
            future = self._place(record, deadline)
        except Exception as error:
            for told in self._told:
                _tell_refused(told, error)
            raise
        for told in self._told:
            future.add_callback(_tell_stored, told)
            future.add_errback(_tell_error, told)
        return future

    def _begin_batch(
        self, queue: TopicQueue, value: bytes, key: Optional[bytes], deadline: float
    ) -> FutureRecordMetadata:
        """Put a record into a batch, most likely a new one, with nothing to be looked at."""
        partition = None if key is None else queue.by_key[key].topic_partition.partition
        accumulator = self._accumulator
        now = deadline - self._max_block
        try:
            placed = accumulator.append(queue, partition, key, value, (), None, time.time(), now)
        except BaseException:
            accumulator.settle()
            raise
        if isinstance(placed, Ticket):
            placed = self._append(
                lambda now, ticket: accumulator.append(
                    queue, partition, key, value, (), None, time.time(), now, ticket
                ),
                deadline,
                placed,
            )
        batch, index = placed
        return future_of(batch, index, -1 if key is None else len(key), len(value), -1)

    def _place(self, record: ProducerRecord, deadline: float) -> FutureRecordMetadata:
        """Check and serialize a record and put it into a batch."""
        topic = record.topic
        check_topic(topic)
        if record.value is None and record.key is None:
            raise RecordValueError('Need at least one: key or value')
        timestamp = check_timestamp(record.timestamp_ms)
        headers = check_headers(record.headers)
        key = self._serialized('key', self._key_serializer, record, record.key)
        value = self._serialized('value', self._value_serializer, record, record.value)
        check_release(self.config['api_version'], value is None, headers, timestamp)
        self._state.check_send()
        try:
            queue = self._queue(topic, deadline)
        except TopicAuthorizationFailedError as error:
            return self._failed(record, error)
        partition = self._chosen(queue, record, key, value, deadline)
        size = OVERHEAD + len(key or b'') + len(value or b'') + max(header_size(headers), 0)
        if size > self._largest:
            return self._too_large(record, size)
        tell = self._partitioner.on_new_batch
        if tell is not None and record.partition is None and partition is not None:
            if self._accumulator.needs_batch(queue, partition, size) and not self._is_default:
                tell(topic, self._pool.cluster, partition)
                partition = self._chosen(queue, record, key, value, deadline)
        placed = self._append(
            lambda now, ticket: self._accumulator.append(
                queue, partition, key, value, headers, timestamp, time.time(), now, ticket
            ),
            deadline,
        )
        self._allow_fast(topic, queue)
        batch, index = placed
        return future_of(
            batch,
            index,
            -1 if key is None else len(key),
            -1 if value is None else len(value),
            header_size(headers),
        )

    def _serialized(
        self, name: str, serializer: Any, record: ProducerRecord, data: Any
    ) -> Optional[bytes]:
        if serializer is not None:
            data = serializer(record.topic, record.headers, data)
        return as_bytes(name, data)

    def _serialized_all(
        self, name: str, serializer: Any, record: ProducerRecord, column: Sequence[Any]
    ) -> List[Optional[bytes]]:
        found: List[Optional[bytes]] = []
        try:
            for data in column:
                found.append(self._serialized(name, serializer, record, data))
        except RecordTypeError as error:
            raise RecordTypeError('%s (record %d; none was sent)' % (error, len(found))) from None
        return found

    def _allow_fast(self, topic: Any, queue: TopicQueue) -> None:
        """Let the quick ways send to a topic now, if nothing of the program's takes part."""
        accumulator = self._accumulator
        # Taken first: a thread that closes, or defers a record, says so and then puts another in
        # its place, so what is added here comes too late. The end of a transaction does it before;
        # what is sent then is checked under the lock, or belongs to a batch of what ends.
        fast = accumulator.fast
        if self._is_plain and not self._closed and not self._state.refuses_send:
            if not accumulator.waiting_deferred:  # which nothing may overtake
                fast[topic] = queue

    def _append(self, attempt: Any, deadline: float, ticket: Optional[Ticket] = None) -> Any:
        """Repeat what puts records into batches until there is memory for it.

        Arguments: ticket: what a first attempt has returned.
        """
        accumulator = self._accumulator
        if ticket is AGAIN:
            ticket = None
        try:
            if ticket is not None:
                self._wait_for_memory(ticket, deadline)
            while True:
                placed = attempt(time.monotonic(), ticket)
                if not isinstance(placed, Ticket):
                    return placed
                if placed is not AGAIN:  # else what there is in the queue is kept
                    ticket = placed
                self._wait_for_memory(placed, deadline)
        except BaseException:
            if ticket is not None:
                accumulator.leave(ticket)
            accumulator.settle()
            raise

    def _wait_for_memory(self, ticket: Ticket, deadline: float) -> None:
        accumulator = self._accumulator
        seconds = deadline - time.monotonic()
        if ticket is AGAIN:
            is_over = seconds <= 0
        else:
            accumulator.check_outside()
            is_over = not self._loop.wait(
                lambda: ticket.granted or accumulator.is_closed, max(0.0, seconds)
            )
        if is_over:
            raise KafkaTimeoutError(
                'no room in buffer_memory within max_block_ms: %d records wait to be sent'
                % sum(batch.record_count for batch in accumulator.incomplete)
            )

    def _failed(self, record: ProducerRecord, error: KafkaError) -> FutureRecordMetadata:
        if self._state.is_transactional:
            self._loop.call_threadsafe(self._state.refuse, error)
        partition = record.partition if record.partition is not None else -1
        place = TopicPartition(record.topic, partition)
        timestamp = record.timestamp_ms
        if timestamp is None:
            timestamp = int(time.time() * 1000)
        batch = FailedBatch(place, error, timestamp)
        return future_of(batch, 0, -1, -1, -1)

    def _too_large(self, record: ProducerRecord, size: int) -> FutureRecordMetadata:
        error = MessageSizeTooLargeError(
            'a record of %d bytes for %s: max_request_size is %d, buffer_memory %d'
            % (size, record.topic, self.config['max_request_size'], self.config['buffer_memory'])
        )
        if self.config['raise_on_too_large']:
            raise error
        return self._failed(record, error)

    # ------------------------------------------------------------ topics and partitions

    def _queue(self, topic: str, deadline: float) -> TopicQueue:
        """Return the queue of a topic; ask for its partitions if they are not known."""
        queue = self._accumulator.topic(topic)
        if not queue.partitions:
            self._accumulator.check_outside()
            self._find(topic, deadline)
            if not queue.partitions:
                self._take_partitions(topic, queue)
        return queue

    def _take_partitions(self, topic: str, queue: TopicQueue) -> None:
        """Let a queue have the partitions that the cluster knows."""
        cluster, states = self._pool.cluster, None
        # Again if it has heard of others meanwhile: the queue may have been told of those before.
        while states is not cluster.partition_states:
            states = cluster.partition_states
            self._accumulator.update(
                queue,
                cluster.partitions_for_topic(topic) or (),
                cluster.available_partitions_for_topic(topic) or (),
            )

    def _find(self, topic: str, deadline: float) -> None:
        seconds = max(0.001, deadline - time.monotonic())
        try:
            self._loop.run(self._client.wait_for_topic(topic, seconds), seconds + 1.0)
        except KafkaTimeoutError as error:
            raise KafkaTimeoutError(
                'the partitions of topic %s are not known after %.3g s (max_block_ms): %s'
                % (topic, self._max_block, error)
            ) from error

    def _chosen(
        self,
        queue: TopicQueue,
        record: ProducerRecord,
        key: Optional[bytes],
        value: Optional[bytes],
        deadline: float,
    ) -> Optional[int]:
        """Return the partition of a record, None where it is chosen for a batch."""
        if record.partition is not None:
            return check_partition(record.topic, record.partition, queue.partitions)
        if self._is_default:
            return None if key is None else queue.by_key[key].topic_partition.partition
        asked = Question(
            record.topic,
            record.key,
            key,
            record.value,
            value,
            queue.partitions,
            queue.available,
            self._pool.cluster,
        )
        chosen = self._partitioner.choose(asked)
        return check_chosen(record.topic, chosen, queue.partitions)

    # ------------------------------------------------------------ many, and without a future

    def _forget(self, topic: Any, value: Any, key: Any) -> None:
        queue = self._accumulator.fast.get(topic) if key is None and type(value) is bytes else None
        accumulator = self._accumulator
        if queue is None or len(value) > queue.boxed_size:
            self.send(topic, value, key).add_errback(_log_lost, topic)
            return
        found = queue
        deadline = time.monotonic() + self._max_block
        try:
            self._append(
                lambda now, ticket: accumulator.open_box(found, time.time(), now, ticket), deadline
            )
        except LockBusyError:
            self._begin_batch(found, value, None, deadline).add_errback(_log_lost, topic)
            return
        found.put_in_box(value)
        if not found.is_watched:
            accumulator.watch_box(found)

    def _send_many(
        self,
        topic: Any,
        values: Sequence[Any],
        keys: Optional[Sequence[Any]],
        headers: Any,
        partition: Any,
        timestamp_ms: Any,
    ) -> FutureRecords:
        """Send a list of records for which everything has to be looked at first."""
        deadline = time.monotonic() + self._max_block
        values = check_column('values', values)
        keys = None if keys is None else check_column('keys', keys)
        if keys is not None and len(keys) != len(values):
            raise RecordValueError('%d keys for %d values' % (len(keys), len(values)))
        self._check_open()
        check_topic(topic)
        timestamp = check_timestamp(timestamp_ms)
        checked = check_headers(headers)
        self._state.check_send()
        record = ProducerRecord(topic, None, None, headers, partition, timestamp_ms)
        column = self._serialized_all('value', self._value_serializer, record, values)
        key_column: Optional[List[Optional[bytes]]] = None
        if keys is not None:
            key_column = self._serialized_all('key', self._key_serializer, record, keys)
        for number, field in enumerate(column):
            if field is None and (key_column is None or key_column[number] is None):
                raise RecordValueError('Need at least one: key or value (record %d)' % number)
        check_release(self.config['api_version'], None in column, checked, timestamp)
        if self._interceptors or not (self._is_default or partition is not None):
            futures = [
                self._send(topic, value, key, headers, partition, timestamp_ms)
                for value, key in zip(values, keys or [None] * len(values))
            ]
            placed = [Placed(future._batch, future._index, 1) for future in futures]
            key_sizes = None if key_column is None else _sizes(key_column)
            return FutureRecords(placed, _sizes(column), key_sizes, header_size(checked))
        queue = self._queue(topic, deadline)
        if partition is not None:
            partition = check_partition(topic, partition, queue.partitions)
        self._allow_fast(topic, queue)
        return self._put_many(queue, column, key_column, checked, partition, timestamp, deadline)

    def _put_many(
        self,
        queue: TopicQueue,
        values: Sequence[Optional[bytes]],
        keys: Optional[Sequence[Optional[bytes]]],
        headers: Headers,
        partition: Optional[int],
        timestamp: Optional[int],
        deadline: float,
    ) -> FutureRecords:
        """Put serialized records into batches."""
        accumulator = self._accumulator
        if not values:
            return FutureRecords([], [])
        value_sizes, key_sizes = _sizes(values), None if keys is None else _sizes(keys)
        sizes = value_sizes
        if -1 in value_sizes:
            sizes = [max(size, 0) for size in value_sizes]
        if key_sizes is not None:
            more = [max(size, 0) for size in key_sizes] if -1 in key_sizes else key_sizes
            sizes = list(map(int.__add__, sizes, more))
        around = max(header_size(headers), 0)
        self._check_sizes(queue.topic, sizes, OVERHEAD + around)
        if timestamp is None:
            timestamp = int(time.time() * 1000)
        many = accumulator.prepare_many(queue, partition, keys, values, sizes, headers, timestamp)
        self._append(lambda now, ticket: accumulator.append_many(many, now, ticket), deadline)
        return FutureRecords(many.placed, value_sizes, key_sizes, around or -1)

    def _check_sizes(self, topic: Any, sizes: Sequence[int], more: int) -> None:
        largest = max(sizes) + more
        if largest > self._largest:
            raise MessageSizeTooLargeError(
                'record %d of %d has %d bytes, for %s; max_request_size is %d, buffer_memory %d;'
                ' none was sent'
                % (
                    sizes.index(max(sizes)),
                    len(sizes),
                    largest,
                    topic,
                    self.config['max_request_size'],
                    self.config['buffer_memory'],
                )
            )


def _sizes(fields: Sequence[Optional[bytes]]) -> List[int]:
    """Return the size of each field, -1 for None."""
    try:
        return list(map(len, fields))  # type: ignore[arg-type]
    except TypeError:
        return [-1 if field is None else len(field) for field in fields]


def _tell_stored(told: Callable[..., Any], metadata: Any) -> None:
    told(metadata, None)


def _tell_error(told: Callable[..., Any], error: BaseException) -> None:
    told(None, error)


def _tell_refused(told: Callable[..., Any], error: BaseException) -> None:
    try:
        told(None, error)
    except Exception as failure:  # the program is to get the error of the record
        log_program_error(log, failure, 'an interceptor failed: %r', told)


def _log_lost(topic: Any, error: BaseException) -> None:
    log.error('topic=%s: a record that nobody asks about was not stored: %s', topic, error)
