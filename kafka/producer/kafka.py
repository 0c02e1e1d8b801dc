"""KafkaProducer: sends records to a cluster, with the interface of 1.x to 3.x.

The public client of :class:`kafka.producer.engine.ProducerEngine`: options, public methods, their
errors, and which of them block. Serializers, partitioners and interceptors of the program are
called by :mod:`kafka.producer.record_preparation`. A blocking call runs the network loop itself
where possible; otherwise the background thread runs it (:mod:`kafka.net.loop.loop`).

send(), send_and_forget() and send_many() are called millions of times. Each begins with a fast path
for records that only have to be appended to a batch: bytes for a topic in ``fast`` of the
accumulator. A topic is there only while the producer is open and has no serializer, interceptor or
partitioner of the program, no transaction has to be checked, and no record is deferred, which no
other may overtake. The fast path does no work per record that can be done per batch, has its code
inline instead of in functions (benchmarks/producer_path.py has the figures), and waits for no lock.

The slow path (``_send()``, ``_forget()``, ``_send_many()``) is taken while a change of the
accumulator is in progress: in another thread; in this thread, if a finalizer or signal handler
sends in the middle of it; or after an exception has interrupted it, which is repaired first. It is
also taken while the box of the topic has records: they may be from the same thread, and go into
batches first.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import logging
import math
import os
import threading
import time
import weakref
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

from kafka import config as options
from kafka.cluster import ClusterMetadata
from kafka.errors import (
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    TopicAuthorizationFailedError,
)
from kafka.internals.cleanup import CleanUp, clean_up
from kafka.internals.logging_setup import be_quiet
from kafka.internals.running_calls import is_in_call
from kafka.net.client import NetworkClient
from kafka.net.loop.tasks import CoroutineCall
from kafka.net.settings import NetSettings
from kafka.partitioner.default import DefaultPartitioner
from kafka.producer.bounded_lock import LockBusyError
from kafka.producer.buffer import Ticket
from kafka.producer.engine import OVERHEAD, ProducerEngine
from kafka.producer.future import (
    FutureOfMore,
    FutureRecordMetadata,
    FutureRecords,
    Placed,
    future_of,
    header_size,
)
from kafka.producer.producer_batch import FailedBatch, Headers
from kafka.producer.record_accumulator import RecordAccumulator
from kafka.producer.record_checks import (
    FlushTimeoutError,
    ProducerClosedError,
    ProducerRecord,
    RecordTypeError,
    RecordValueError,
    check_codec,
    check_column,
    check_headers,
    check_partition,
    check_release,
    check_timeout,
    check_timestamp,
    check_topic,
)
from kafka.producer.record_preparation import ProducerInterceptors, RecordPreparation
from kafka.producer.sender import Sender as Sender  # importable from here in 1.x to 3.x
from kafka.producer.topic_queue import TopicQueue
from kafka.producer.transaction_driver import TransactionDriver
from kafka.producer.transaction_operations import PreparedTxnState
from kafka.structs import TopicPartition

log = logging.getLogger(__name__)
be_quiet()

# Seconds that close() may take beyond the time limit of the records.
_CLOSING_SECONDS = 5.0
# How many seconds interpreter exit waits for unsent records.
_EXIT_SECONDS = 5.0
# How many seconds the records of an unclosed producer have when it is garbage-collected, as in 2.x;
# and the pause between two checks whether they all have an outcome.
_COLLECTED_SECONDS = 1.0
_COLLECTED_LOOK_SECONDS = 0.01
# The pause between two checks whether another thread is still closing a producer.
_LOOK_SECONDS = 0.1

# Module-level names: looking these up as attributes of modules would take longer than the calls.
_wall = time.time
_now = time.monotonic
_Future = FutureRecordMetadata
_ONLY_BYTES = {bytes}
_LISTS = (list, tuple)

_numbers = itertools.count(1)
# Producers whose close() has not returned, for interpreter exit and for forks.
_open: weakref.WeakSet[KafkaProducer] = weakref.WeakSet()
# All accumulators that futures may still refer to, also of producers that are being closed.
_accumulators: weakref.WeakSet[RecordAccumulator] = weakref.WeakSet()


class KafkaProducer:
    """Publish records to a Kafka cluster (1.x to 3.x; accepts the options of each release).

    Safe to be shared by threads. ``send()`` puts a record into a batch and returns a future; ready
    batches are sent in the background, or by the thread that waits for a future.

    Options: those of the option table (docs/options.rst). The default partitioner works like that
    of the Java client: the partition of a record with a key depends on a hash of the key; records
    without a key fill a batch of one partition, then one of another. A partitioner may have the
    interface of any release (kafka.partitioner.adapt), and so may serializers. Interceptors are
    objects with ``on_send(record)``, which returns the record to send, and
    ``on_acknowledgement(metadata, exception)``.

    Raises: KafkaConfigurationError, which is a ValueError and an AssertionError, for an unknown
    option or an invalid value; NoBrokersAvailable if no broker can be reached (the constructor
    connects only if api_version is None).

    Attributes: config: all options. ``len()`` of a producer is the number of records without an
    outcome: to be sent, or not acknowledged yet.
    """

    _new_client = NetworkClient  # replaced by simulations
    DEFAULT_CONFIG = {**options.defaults(options.PRODUCER), 'partitioner': DefaultPartitioner()}
    #: Empty, as in 3.0.
    DEPRECATED_CONFIGS: Tuple[str, ...] = ()

    def __init__(self, **configs: Any) -> None:
        self._closed = True  # until the constructor has succeeded
        self._closing = Closing()
        self._given = options.hidden(configs)
        configs = options.with_changed(configs, self.DEFAULT_CONFIG, _PRISTINE)
        self.config = config = options.resolve(options.PRODUCER, configs)
        if config['partitioner'] is None:
            config['partitioner'] = self.DEFAULT_CONFIG['partitioner']
        check_codec(config)
        if config['client_id'] is None:
            config['client_id'] = 'kafka-python-producer-%d' % next(_numbers)
        self._preparation = RecordPreparation(
            config['key_serializer'], config['value_serializer'], config['partitioner']
        )
        interceptors = list(config['interceptors'])
        self._interceptors = ProducerInterceptors(interceptors) if interceptors else None
        self._max_block = config['max_block_ms'] / 1000
        self._forked = False
        network = self._new_client(
            NetSettings.from_options(config),
            '%s-network-thread' % config['client_id'],
            config['busy_poll_us'] / 1e6,
        )
        self._loop = network.loop
        try:
            self._find_release(network)
            self._engine = ProducerEngine(network, config)
            self._accumulator = self._engine.accumulator
            _accumulators.add(self._accumulator)
            self._engine.begin()
        except BaseException:
            self._loop.close(1.0)
            raise
        self._is_plain = self._preparation.is_plain and self._interceptors is None
        self._closed = False
        _open.add(self)

    def _find_release(self, network: NetworkClient) -> None:
        """Start the thread; find out the release of the brokers unless api_version is set."""
        config = self.config
        self._loop.start()
        if config['api_version'] is not None:
            return
        limit = next(
            (
                config[name] / 1000
                for name in ('bootstrap_timeout_ms', 'api_version_auto_timeout_ms')
                if name in config.given
            ),
            None,
        )
        network.connect(limit)
        options.settle_release(config, network.release())
        check_codec(config)

    @property
    def _sender(self) -> Sender:
        """The sender, under the private name that it had in 1.x to 3.x."""
        return self._engine.sender

    @property
    def _metadata(self) -> ClusterMetadata:
        """The cluster metadata, under the private name that programs of 1.x to 3.x use."""
        return self._engine.pool.cluster

    @property
    def _name(self) -> str:
        return str(self.config['client_id'])

    def __repr__(self) -> str:
        state = 'forked' if self._forked else 'closed' if self._closed else 'open'
        return '<KafkaProducer client_id=%s %s>' % (self._name, state)

    def __enter__(self) -> KafkaProducer:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        clean_up(self.close, error)

    def __del__(self) -> None:
        if getattr(self, '_closed', True) or self._forked:
            return
        # Python collects cycles in any thread that creates an object, at that place: also in a turn
        # of this loop, where a call that waits for the loop would wait for itself, and while the
        # lock of the accumulator is held. Then the following turns close the producer.
        if self._loop.runs_here() or self._accumulator.is_mine():
            self._loop.call_threadsafe(self._begin_to_close, _COLLECTED_SECONDS)
            _open.add(self)  # again: collecting a cycle clears weak references before __del__
        else:
            self.close(timeout=_COLLECTED_SECONDS)

    def _begin_to_close(self, seconds: float) -> None:
        self._loop.spawn(self._close_in_turns(self._loop.time() + seconds))

    async def _close_in_turns(self, deadline: float) -> None:
        self._accumulator.close()
        while not self._accumulator.has_told_all() and self._loop.time() < deadline:
            await self._loop.sleep(_COLLECTED_LOOK_SECONDS)
        self.close(timeout=0)

    def __reduce__(self) -> Tuple[Any, ...]:
        """Pickle as configuration: unpickling makes a new producer with the same options."""
        return _remake, (type(self), self._given)

    @classmethod
    def max_usable_produce_magic(cls, api_version: Tuple[int, ...]) -> int:
        """Return the newest message format (magic) that brokers of a release support (2.2)."""
        return 2 if api_version >= (0, 11) else 1 if api_version >= (0, 10) else 0

    def _max_usable_produce_magic(self) -> int:
        return self.max_usable_produce_magic(self.config['api_version'] or (0, 11))

    # ------------------------------------------------------------ sending

    def send(
        self,
        topic: Any,
        value: Any = None,
        key: Any = None,
        headers: Any = None,
        partition: Any = None,
        timestamp_ms: Any = None,
    ) -> FutureRecordMetadata:
        """Send a record; return the future of its RecordMetadata.

        Arguments: value, key: bytes, or an input of the serializers; headers: a list of (str, bytes
        or None), or the partition (up to 1.4.3); partition: None to have one chosen; timestamp_ms:
        since 1970.
        Raises: KafkaTimeoutError if the metadata of the topic or memory are not available within
        max_block_ms; ValueError or TypeError, which are AssertionErrors too, for invalid arguments;
        IllegalStateError if closed, or outside of a transaction; what serializers and partitioners
        raise; ValueError for a value of None with brokers before 0.8.1,
        UnsupportedForMessageFormatError for headers with brokers before 0.11.
        """
        if headers is None and partition is None and timestamp_ms is None and type(value) is bytes:
            accumulator = self._accumulator
            queue = accumulator.fast.get(topic)
            if queue is not None:
                wall = _wall()
                # Objects are created before the lock is taken: the garbage collector may run
                # finalizers there. The sender needs no wake-up: the append() that opened the batch
                # has woken it.
                size = len(value)
                is_held = True
                try:
                    if key is None:
                        future: FutureRecordMetadata = _Future()
                        with accumulator.entry as is_held:
                            if is_held and not accumulator.is_changing:
                                accumulator.is_changing = True
                                batch = queue.batch
                                room = batch.room - size - accumulator.overhead
                                if room > 0 and not queue.box:
                                    future.batch = batch
                                    future.index = index = len(batch.values)
                                    if wall >= batch.tick:
                                        accumulator.set_time(batch, wall)
                                    if batch.has_columns:
                                        batch.cut(index)
                                    batch.room = room
                                    future.value_size = size
                                    batch.put(value)
                                    accumulator.is_changing = False
                                    return future
                                accumulator.is_changing = False
                    elif type(key) is bytes:
                        place, key_size, future = queue.by_key[key], len(key), FutureOfMore()
                        with accumulator.entry as is_held:
                            if is_held and not accumulator.is_changing:
                                accumulator.is_changing = True
                                batch = place.open
                                room = batch.room - size - key_size - accumulator.overhead
                                if room > 0 and not queue.box:
                                    future.batch = batch
                                    future.index = index = len(batch.values)
                                    if wall >= batch.tick:
                                        accumulator.set_time(batch, wall)
                                    keys = batch.keys
                                    if keys is None or len(keys) != index or batch.headers:
                                        batch.set_key(index, key)
                                    else:
                                        keys.append(key)
                                    batch.room = room
                                    future.key_size = key_size
                                    future.header_size = -1
                                    future.value_size = size
                                    batch.put(value)
                                    accumulator.is_changing = False
                                    return future
                                accumulator.is_changing = False
                except RuntimeError:  # another thread has the lock: see try_lock()
                    if is_held:
                        raise
                if key is None or type(key) is bytes:
                    return self._begin_batch(queue, value, key)
        return self._send(topic, value, key, headers, partition, timestamp_ms)

    def send_and_forget(self, topic: Any, value: Any, key: Any = None) -> None:
        """Send a record without a future. Not in other clients.

        A record that could not be stored is logged. Arguments and errors: as send().
        """
        if key is None and type(value) is bytes:
            queue = self._accumulator.fast.get(topic)
            if (
                queue is not None
                and _now() < queue.box_until
                and len(value) <= queue.boxed_size
                and len(queue.box) < queue.most_boxed
            ):
                queue.put_in_box(value)
                if not queue.is_watched:
                    self._accumulator.watch_box(queue)
                return
        self._forget(topic, value, key)

    def send_many(
        self,
        topic: Any,
        values: Sequence[Any],
        keys: Optional[Sequence[Any]] = None,
        headers: Any = None,
        partition: Any = None,
        timestamp_ms: Any = None,
    ) -> FutureRecords:
        """Send a list of records to one topic; cheaper than one by one. Not in other clients.

        Arguments: values: of the records, serialized like those of send(); keys: the same number of
        keys, or None; headers, partition, timestamp_ms: the same for all records, as send().
        Returns: a sequence of futures, which are made on access, with ``get()`` for all.
        Raises: as send(), before anything is sent, also for a record that is too large;
        KafkaTimeoutError if memory is not available within max_block_ms: the records before that
        are sent.
        """
        if headers is None and partition is None and timestamp_ms is None:
            queue = self._accumulator.fast.get(topic)
            if queue is not None and _are_bytes(values):
                if keys is None or _are_bytes(keys) and len(keys) == len(values):
                    deadline = _now() + self._max_block
                    return self._put_many(queue, values, keys, (), None, None, deadline)
        return self._send_many(topic, values, keys, headers, partition, timestamp_ms)

    # ------------------------------------------------------------ the slow path of send()

    def _send(
        self, topic: Any, value: Any, key: Any, headers: Any, partition: Any, timestamp_ms: Any
    ) -> FutureRecordMetadata:
        """Send a record that the fast path cannot append to an open batch."""
        deadline = time.monotonic() + self._max_block
        if type(headers) is int:  # the fourth argument was the partition up to 1.4.3
            if partition is not None:
                timestamp_ms = partition
            headers, partition = None, headers
        record = ProducerRecord(topic, value, key, headers, partition, timestamp_ms)
        self._check_open()
        interceptors = self._interceptors
        if interceptors is None:
            return self._place(record, deadline)
        record = interceptors.on_send(record)
        try:
            future = self._place(record, deadline)
        except Exception as error:
            interceptors.on_send_error(error)
            raise
        interceptors.watch(future)
        return future

    def _begin_batch(
        self, queue: TopicQueue, value: bytes, key: Optional[bytes]
    ) -> FutureRecordMetadata:
        """Put a record that needs no preparation into a batch, usually a new one."""
        if OVERHEAD + len(value) + len(key or b'') > self._engine.largest_record:
            return self._send(queue.topic, value, key, None, None, None)
        partition = None if key is None else queue.by_key[key].topic_partition.partition
        accumulator, now = self._accumulator, _now()
        try:
            placed = accumulator.append(queue, partition, key, value, (), None, _wall(), now)
        except BaseException:
            accumulator.settle()
            raise
        if isinstance(placed, Ticket):
            placed = self._engine.append_waiting(
                lambda now, ticket: accumulator.append(
                    queue, partition, key, value, (), None, _wall(), now, ticket
                ),
                now + self._max_block,
                placed,
            )
        batch, index = placed
        return future_of(batch, index, -1 if key is None else len(key), len(value), -1)

    def _place(self, record: ProducerRecord, deadline: float) -> FutureRecordMetadata:
        """Check and serialize a record and put it into a batch."""
        topic, engine = record.topic, self._engine
        preparation = self._preparation
        key, value, headers, timestamp = preparation.prepare(record, self.config['api_version'])
        engine.state.check_send()
        try:
            queue = engine.wait_for_queue(topic, deadline)
        except TopicAuthorizationFailedError as error:
            return self._failed(record, error)
        partition = preparation.partition(queue, record, key, value, engine.pool.cluster)
        size = OVERHEAD + len(key or b'') + len(value or b'') + max(header_size(headers), 0)
        if size > engine.largest_record:
            return self._too_large(record, size)
        tell = preparation.on_new_batch
        if tell is not None and record.partition is None and partition is not None:
            needs_batch = self._accumulator.needs_batch(queue, partition, size)
            if needs_batch and not preparation.is_default:
                tell(topic, engine.pool.cluster, partition)
                partition = preparation.partition(queue, record, key, value, engine.pool.cluster)
        placed = engine.append_waiting(
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

    def _allow_fast(self, topic: Any, queue: TopicQueue) -> None:
        """Add a topic to ``fast`` if its records only have to be appended to a batch."""
        accumulator = self._accumulator
        # Read first: a thread that closes the producer, or defers a record, sets its flag and then
        # replaces the dict, so that a topic added to the old dict has no effect. The end of a
        # transaction replaces the dict first; what is sent then is checked under the lock, or goes
        # into a batch of the transaction that ends.
        fast = accumulator.fast
        if self._is_plain and not self._closed and not self._engine.state.refuses_send:
            if not accumulator.waiting_deferred:  # no record may overtake deferred ones
                fast[topic] = queue

    def _failed(self, record: ProducerRecord, error: KafkaError) -> FutureRecordMetadata:
        state = self._engine.state
        if state.is_transactional:
            self._loop.call_threadsafe(state.refuse, error)
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

    # ------------------------------------------------------------ send_many(), send_and_forget()

    def _forget(self, topic: Any, value: Any, key: Any) -> None:
        queue = self._accumulator.fast.get(topic) if key is None and type(value) is bytes else None
        accumulator = self._accumulator
        if queue is None or len(value) > queue.boxed_size:
            self.send(topic, value, key).add_errback(_log_forgotten, topic)
            return
        found = queue
        deadline = time.monotonic() + self._max_block
        try:
            self._engine.append_waiting(
                lambda now, ticket: accumulator.open_box(found, time.time(), now, ticket), deadline
            )
        except LockBusyError:
            self._begin_batch(found, value, None).add_errback(_log_forgotten, topic)
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
        """Check, serialize and send a list of records."""
        deadline = time.monotonic() + self._max_block
        values = check_column('values', values)
        keys = None if keys is None else check_column('keys', keys)
        if keys is not None and len(keys) != len(values):
            raise RecordValueError('%d keys for %d values' % (len(keys), len(values)))
        self._check_open()
        check_topic(topic)
        timestamp = check_timestamp(timestamp_ms)
        checked = check_headers(headers)
        self._engine.state.check_send()
        record = ProducerRecord(topic, None, None, headers, partition, timestamp_ms)
        preparation = self._preparation
        column = preparation.serialize_values(record, values)
        key_column: Optional[List[Optional[bytes]]] = None
        if keys is not None:
            key_column = preparation.serialize_keys(record, keys)
        for number, field in enumerate(column):
            if field is None and (key_column is None or key_column[number] is None):
                raise RecordValueError('Need at least one: key or value (record %d)' % number)
        check_release(self.config['api_version'], None in column, checked, timestamp)
        is_default = preparation.is_default or partition is not None
        if self._interceptors is not None or not is_default:
            futures = [
                self._send(topic, value, key, headers, partition, timestamp_ms)
                for value, key in zip(values, keys or [None] * len(values))
            ]
            placed = [Placed(future.batch, future.index, 1) for future in futures]
            key_sizes = None if key_column is None else _sizes(key_column)
            return FutureRecords(placed, _sizes(column), key_sizes, header_size(checked))
        queue = self._engine.wait_for_queue(topic, deadline)
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
        self._engine.append_waiting(
            lambda now, ticket: accumulator.append_many(many, now, ticket), deadline
        )
        return FutureRecords(many.placed, value_sizes, key_sizes, around or -1)

    def _check_sizes(self, topic: Any, sizes: Sequence[int], more: int) -> None:
        largest = max(sizes) + more
        if largest > self._engine.largest_record:
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

    def plain_engine(self) -> ProducerEngine:
        """Return the engine, to send records as bytes without preparation. Not in other clients.

        For connectors that have columns of records (kafka.producer.rows and arrow_rows).
        Raises: IllegalStateError if closed, outside of a transaction, or if the producer has
        serializers, interceptors or a partitioner, which would not be called.
        """
        self._check_open()
        if not self._is_plain:
            raise IllegalStateError(
                'rows are sent as they are: the producer must have no serializer, interceptor or'
                ' partitioner'
            )
        self._engine.state.check_send()
        return self._engine

    # ------------------------------------------------------------ topics

    def partitions_for(self, topic: str) -> Set[int]:
        """Return the partition ids of a topic.

        Raises: KafkaTimeoutError if they are unknown after max_block_ms.
        """
        self._check_open()
        self._accumulator.check_outside()
        check_topic(topic)
        deadline = time.monotonic() + self._max_block
        return set(self._engine.wait_for_queue(topic, deadline).partitions)

    def bootstrap_connected(self) -> bool:
        """Return True if a connection to a broker of the cluster is open (1.4.7)."""
        return not self._closed and not self._forked and self._engine.pool.is_connected

    # ------------------------------------------------------------ transactions

    def init_transactions(self) -> None:
        """Get a producer id; ends a transaction that an earlier producer left open (2.2).

        Raises: KafkaTimeoutError after max_block_ms: a repeated call continues; IllegalStateError
        without transactional_id; ProducerFencedError and other errors of brokers.
        """
        self._verbs('init_transactions()').init_transactions()

    def begin_transaction(self) -> None:
        """Begin a transaction, without a request (2.2). Raises: KafkaError in a wrong state."""
        self._verbs('begin_transaction()').begin_transaction()

    def send_offsets_to_transaction(
        self, offsets: Any, group_metadata: Any = None, consumer_group_id: Any = None
    ) -> None:
        """Add offsets of a consumer group to the transaction (2.2).

        Arguments: offsets: {TopicPartition: OffsetAndMetadata}; group_metadata: the group's id, or
        the consumer's group_metadata() (3.0); consumer_group_id: the id, as 2.x named it.
        Raises: as commit_transaction().
        """
        group = consumer_group_id if group_metadata is None else group_metadata
        if group is None:
            raise RecordTypeError('send_offsets_to_transaction() needs the group')
        self._verbs('send_offsets_to_transaction()').send_offsets_to_transaction(offsets, group)

    def prepare_transaction(self) -> PreparedTxnState:
        """Flush, and refuse further records in this transaction (KIP-939).

        Returns: what another process needs to end the transaction, by
        kafka.producer.two_phase_commit.PreparedTransactions, until transaction_timeout_ms is over.
        This producer may commit or abort it, too, or be closed. Not in 3.0.
        Raises: as commit_transaction(), except that records have failed after delivery_timeout_ms;
        IllegalStateError if the transaction is empty.
        """
        verbs = self._verbs('prepare_transaction()')
        self._accumulator.fast = {}
        self.flush()
        return verbs.prepare_transaction()

    def commit_transaction(self) -> None:
        """Flush, and commit the transaction (2.2).

        Raises: KafkaTimeoutError after max_block_ms: a repeated call continues; the error that
        makes a commit impossible: call abort_transaction() then; KafkaError in a wrong state;
        ProducerFencedError.
        """
        verbs = self._verbs('commit_transaction()')
        self._accumulator.fast = {}
        verbs.commit_transaction()

    def abort_transaction(self) -> None:
        """Abort the transaction, and drop unsent records (2.2). Raises: as commit_transaction()."""
        verbs = self._verbs('abort_transaction()')
        self._accumulator.fast = {}
        verbs.abort_transaction()

    def _verbs(self, what: str) -> TransactionDriver:
        self._check_open()
        self._accumulator.check_outside()
        if self.config['transactional_id'] is None:
            raise IllegalStateError('%s needs the option transactional_id' % what)
        transactions = self._engine.transactions
        assert transactions is not None  # a transactional_id requires idempotence
        return transactions

    # ------------------------------------------------------------ flush, purge, close

    def flush(self, timeout: Optional[float] = None) -> None:
        """Send all records without lingering, and wait until they have an outcome.

        Arguments: timeout: seconds; None waits for at most delivery_timeout_ms.
        Raises: KafkaTimeoutError, which is an AssertionError too, if some are still pending after
        that; ValueError, which is an AssertionError as well, for a negative timeout.
        Failed records do not raise here; their futures have the errors. If another thread is
        closing the producer, the call waits for it.
        """
        timeout = check_timeout(timeout)
        if self._closed:
            if not self._wait_until_closed(timeout):
                raise FlushTimeoutError(
                    'flush: another thread is closing the producer, still after %s seconds'
                    % timeout
                )
            return
        if self._forked:
            raise _of_the_parent()
        self._accumulator.check_outside()
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        self._sweep(deadline)
        batches = self._accumulator.begin_flush(time.monotonic())
        done_before = [0]

        def is_done() -> bool:
            # This thread and the one that runs the loop may call this at the same time. Each checks
            # every batch from the stored index on itself, so a lost update only repeats checks.
            index = done_before[0]
            while index < len(batches) and batches[index].is_done:
                index += 1
            done_before[0] = index
            return index == len(batches)

        if not self._engine.wait(is_done, max(0.0, deadline - time.monotonic())):
            raise FlushTimeoutError(
                'flush: %d batches are still under way after %s seconds'
                % (len(batches) - done_before[0], timeout)
            )

    def purge(self, in_queue: bool = True, in_flight: bool = True) -> None:
        """Fail records that have no outcome yet, at once, with PurgedError.

        Arguments: in_queue: those that wait to be sent, the first time or again; in_flight: those
        that were sent and are not acknowledged, which may be stored or not. If called in a
        callback, they fail right after it. Idempotence and order hold for later records, as after
        delivery_timeout_ms: an open transaction can only be aborted; and with one batch of a
        partition in flight at a time, the next waits until the broker has answered the purged one,
        or request_timeout_ms is over.
        Raises: KafkaTimeoutError if a callback blocks the loop for max_block_ms. Not in 3.0.
        """
        if self._forked:
            raise _of_the_parent()
        self._accumulator.check_outside()
        purged = threading.Event()

        def purge() -> None:
            try:
                self._engine.purge(in_queue, in_flight)
            finally:
                purged.set()

        try:
            self._loop.call_threadsafe(purge)
            if not self._loop.wait(purged.is_set, self._max_block):
                raise KafkaTimeoutError(
                    'purge: a callback has not ended for %.3g s (max_block_ms)' % self._max_block
                )
        except IllegalStateError:
            pass  # called in a callback, which cannot wait for itself; or closed and empty

    def __len__(self) -> int:
        """Return the number of records without an outcome. Not in 3.0."""
        if self._forked:
            raise _of_the_parent()
        self._accumulator.check_outside()
        return self._accumulator.records

    def __bool__(self) -> bool:
        """Return True, also if ``len()`` is 0."""
        return True

    def _sweep(self, deadline: float) -> None:
        """Move the records of send_and_forget() into batches; wait for memory."""
        try:
            self._engine.append_waiting(self._accumulator.sweep, deadline)
        except KafkaTimeoutError as error:
            raise FlushTimeoutError('flush: %s' % error) from error

    def close(self, timeout: Optional[float] = None, null_logger: bool = False) -> None:
        """Send the remaining records, then end the thread and close the connections.

        Arguments: timeout: seconds; None waits until all records have an outcome. Those without an
        outcome by then fail with IllegalStateError. With 0, and in a callback, the call does not
        wait. With acks=0 it waits until brokers have processed the records, because brokers of 0.9
        and 0.10.0 drop requests of a closed connection. If another thread is closing the producer,
        the call waits for that, for at most the same time.
        null_logger: ignored (2.x).
        Raises: ValueError, which is an AssertionError too, for a negative timeout.
        """
        timeout = check_timeout(timeout)
        if self._closed:
            self._wait_until_closed(timeout)
            return
        self._accumulator.check_outside()
        call = Closing.new_call()
        try:
            if self._closing.is_first(call):
                self._closed = True
                self._close(timeout)
            else:
                self._wait_until_closed(timeout)
        except BaseException:  # also an asynchronous one, at any point: no other call would end it
            if self._closing.is_first(call) and not self._forked:
                self._closed = True
                self._end(0.0)
            raise
        finally:
            if self._closing.is_first(call):
                self._closing.end()
                _open.discard(self)

    def _wait_until_closed(self, timeout: Optional[float]) -> bool:
        """Wait until the call that closes the producer has ended; return False if not in time.

        Return True at once if that call would wait for this one.
        """
        if self._forked or not self._closing.is_elsewhere():
            return True
        if self._loop.runs_here() or self._accumulator.is_inside():
            return True
        return self._closing.wait(self._longest_close if timeout is None else timeout)

    @property
    def _longest_close(self) -> float:
        """Seconds after which all records have an outcome, plus the time for closing."""
        return float(self.config['delivery_timeout_ms'] / 1000 + _CLOSING_SECONDS)

    def _close(self, timeout: Optional[float]) -> None:
        self._accumulator.fast = {}
        if self._forked:
            return
        self._accumulator.close(sends_rest=timeout != 0)
        if timeout is None:
            timeout = self._longest_close
        deadline = time.monotonic() + timeout
        with contextlib.ExitStack() as at_last:  # close the serializers whatever is raised
            for serializer in (self.config['value_serializer'], self.config['key_serializer']):
                if hasattr(serializer, 'close'):
                    at_last.enter_context(CleanUp(serializer.close))
            try:
                if timeout:
                    self._loop.wait(self._accumulator.has_told_all, timeout)
                    if not self.config['acks']:
                        self._settle(deadline - time.monotonic())
            except IllegalStateError:  # called in a callback, which cannot wait for itself
                deadline = 0.0
            finally:
                self._end(max(0.0, deadline - time.monotonic()))

    def _settle(self, seconds: float) -> None:
        """Wait until brokers have processed the requests of acks=0."""
        try:
            self._loop.run(CoroutineCall(self._engine.settle), max(0.0, seconds))
        except KafkaTimeoutError as error:
            log.warning('%r: a broker may not have read records sent with acks=0: %s', self, error)

    def _end(self, seconds: float) -> None:
        """Fail the records without an outcome, and close the engine."""
        error = ProducerClosedError('the producer was closed before the record was acknowledged')
        self._engine.end(seconds, error, self._log_lost)

    def _log_lost(self, count: int) -> None:
        log.error('%r: %d records were not acknowledged and may be lost', self, count)

    def _check_open(self) -> None:
        if self._forked:
            raise _of_the_parent()
        if self._closed:
            raise ProducerClosedError('the producer is closed')

    def _abandon(self) -> None:
        """Refuse every further call: this process is the child of a fork."""
        self._forked = True
        self._accumulator.fast = {}

    # ------------------------------------------------------------ metrics

    def metrics(self, raw: bool = False) -> Optional[Dict[Any, Any]]:
        """Return {group: {name: number}}, or, with ``raw``, {MetricName: metric}.

        Groups: ``producer-metrics``; for each broker and topic ``producer-node-metrics.node-<id>``
        and ``producer-topic-metrics.<topic>``. None with metrics_enabled=False (1.3).
        Raises: IllegalStateError in the child of a fork.
        """
        if self._forked:
            raise _of_the_parent()
        recorded = self._engine.metrics
        if recorded is None:
            return None
        if not raw:
            return recorded.snapshot()
        recorded.settle()
        return dict(recorded.metrics.metrics)


class Closing:
    """Decides which of several close() calls closes; the others may wait until it has ended."""

    def __init__(self) -> None:
        self._calls: List[List[int]] = []
        # Not an Event: a signal handler may interrupt it while it holds its lock, and call it
        # again.
        self._has_ended = threading.Lock()
        self._has_ended.acquire()

    @staticmethod
    def new_call() -> List[int]:
        """Return the token of a call in this thread."""
        return [threading.get_ident()]

    def is_first(self, call: List[int]) -> bool:
        """Register a call; return True if it is the one that has to close."""
        if not self._calls:
            self._calls.append(call)  # atomic: of two threads one is the first
        return self._calls[0] is call

    def is_elsewhere(self) -> bool:
        """Return True if another thread is closing, or has closed."""
        return bool(self._calls) and self._calls[0][0] != threading.get_ident()

    def end(self) -> None:
        """Wake the calls that wait."""
        self._has_ended.release()

    def wait(self, seconds: float) -> bool:
        """Wait until the first call has ended; return False if it has not in time.

        An asynchronous exception may have prevented end(), so the stack of that thread is checked,
        too.
        """
        deadline = time.monotonic() + seconds
        while not self._has_ended.acquire(timeout=min(_LOOK_SECONDS, max(0.0, seconds))):
            call = self._calls[0]
            if not is_in_call('call', call, call[0]):
                return True
            seconds = deadline - time.monotonic()
            if seconds <= 0:
                return False
        self._has_ended.release()  # for the next call that waits
        return True


_PRISTINE = dict(KafkaProducer.DEFAULT_CONFIG)


def _remake(cls: Any, given: Dict[str, Any]) -> Any:
    return cls(**given)


def _are_bytes(column: Sequence[Any]) -> bool:
    return type(column) in _LISTS and set(map(type, column)) == _ONLY_BYTES


def _sizes(fields: Sequence[Optional[bytes]]) -> List[int]:
    """Return the size of each field, -1 for None."""
    try:
        return list(map(len, fields))  # type: ignore[arg-type]
    except TypeError:
        return [-1 if field is None else len(field) for field in fields]


def _log_forgotten(topic: Any, error: BaseException) -> None:
    log.error('topic=%s: a record without a future was not stored: %s', topic, error)


def _alive(objects: weakref.WeakSet[Any]) -> List[Any]:
    """Return the live objects of a set.

    Iterating a WeakSet runs Python code, and raises RuntimeError if another thread adds to it.
    """
    references = list(objects.data)  # type: ignore[attr-defined]  # atomic
    return [each for each in [reference() for reference in references] if each is not None]


def _close_all() -> None:
    """Close all open producers, with one time limit for the records of all of them."""
    deadline = time.monotonic() + _EXIT_SECONDS
    interrupted: Optional[BaseException] = None
    # All producers start sending their rest before the first wait.
    for close in (_close_accumulator, _close_producer):
        for producer in _alive(_open):
            try:
                close(producer, deadline)
            except Exception as error:  # the others still have records
                log.error('%r could not be closed: %s', producer, error)
            except BaseException as error:  # Ctrl-C: close the others without waiting
                deadline, interrupted = 0.0, error
    if interrupted is not None:
        raise interrupted


def _close_accumulator(producer: KafkaProducer, deadline: float) -> None:
    producer._accumulator.close()


def _close_producer(producer: KafkaProducer, deadline: float) -> None:
    producer.close(timeout=max(0.0, deadline - time.monotonic()))
    if not producer._closing.wait(0.0):
        log.error(
            '%r: close() in another thread has not ended; %d records may be lost',
            producer,
            producer._accumulator.records,
        )


def _of_the_parent() -> IllegalStateError:
    return IllegalStateError(
        'this producer was made in the process %d was forked from and cannot be used here: make a'
        ' new one; what became of its records the other process knows' % os.getpid()
    )


def _abandon_all() -> None:
    for producer in _alive(_open):
        producer._abandon()
    _open.clear()  # the exit of this process does not wait for them
    for accumulator in _alive(_accumulators):
        accumulator.abandon(_of_the_parent())


atexit.register(_close_all)
if hasattr(os, 'register_at_fork'):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_abandon_all)
