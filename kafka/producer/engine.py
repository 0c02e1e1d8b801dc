"""ProducerEngine: accumulator, sender, transactions, metrics and metadata of a producer, connected.

Used by KafkaProducer, and by any other public client. The client resolves the options, makes the
NetworkClient, and owns everything that programs see: serializers, partitioners, interceptors,
futures, and which calls block. Making an engine opens no socket, starts no thread and does not
wait; nor do its methods, except those in the section of blocking calls.

Threads: appending, flushing and closing may be called from any thread; methods that have to run in
a turn of the loop are in a section of their own. The accumulator has the only lock. No part refers
to the public client, so that one which a program drops can be collected; for the same reason the
options, which may have objects that refer to it, are read and not kept.
"""

from __future__ import annotations

import contextlib
import math
import time
from typing import Any, Callable, List, Mapping, Optional, Union

from kafka.cluster import ClusterMetadata
from kafka.errors import IllegalStateError, KafkaError, KafkaTimeoutError
from kafka.metrics.producer_metrics import ProducerMetrics
from kafka.metrics.reporting import registry_of
from kafka.net.client import NetworkClient
from kafka.net.loop.tasks import CoroutineCall
from kafka.net.pool import Pool
from kafka.producer.buffer import AGAIN, Ticket
from kafka.producer.future import FutureRecordMetadata, future_of, header_size
from kafka.producer.plain_state import PlainState
from kafka.producer.produce_request import SenderSettings
from kafka.producer.producer_batch import Headers, ProducerBatch, compression_of
from kafka.producer.record_accumulator import AccumulatorConfig, RecordAccumulator
from kafka.producer.sender import Sender
from kafka.producer.topic_queue import TopicQueue
from kafka.producer.transaction_driver import TransactionDriver
from kafka.producer.transaction_state import TransactionState

__all__ = ['OVERHEAD', 'ProducerEngine', 'TopicUpdater']

#: Bytes added to key, value and headers when the size of a record is compared with
#: max_request_size and buffer_memory, as in releases since 1.0.
OVERHEAD = 34
# The maximum number of seconds to close the connections.
_CLOSE_SECONDS = 5.0


class ProducerEngine:
    """Collects records and sends them.

    Arguments:
        network: the loop and the connection pool.
        config: the resolved options of a producer (kafka.config.PRODUCER). With api_version None
            the releases of the brokers need not be known: what a broker does not support fails when
            it is used.

    Attributes:
        network; loop; pool; accumulator; sender: the parts.
        state: a TransactionState for idempotent producers, else a PlainState.
        transactions: the driver of an idempotent producer, else None.
        metrics: the ProducerMetrics; None with metrics_enabled=False.
        topic_updater: passes new metadata to the accumulator.
        largest_record: the maximum size of a record in bytes, OVERHEAD included.
        max_block: seconds (max_block_ms).
    """

    def __init__(self, network: NetworkClient, config: Mapping[str, Any]) -> None:
        self.network = network
        self.loop, self.pool = network.loop, network.pool
        self.max_block: float = config['max_block_ms'] / 1000
        self.largest_record: int = min(config['max_request_size'], config['buffer_memory'])
        limits = AccumulatorConfig(
            batch_size=config['batch_size'],
            linger=config['linger_ms'] / 1000,
            buffer_memory=config['buffer_memory'],
            delivery_timeout=config['delivery_timeout_ms'] / 1000,
            ordered=config['max_in_flight_requests_per_connection'] == 1,
            compressed=config['compression_type'] is not None,
            adaptive=config['partitioner_adaptive_partitioning_enable'],
            record_size=self.largest_record - OVERHEAD,
        )
        settings = _sender_settings(config, limits)
        self.accumulator = RecordAccumulator(limits, self._wake, self.wait)
        self.state = _state_of(config)
        if config['transactional_id'] is not None:
            self.accumulator.check_send = self.state.check_send
        self.metrics = self._metrics_of(config) if config['metrics_enabled'] else None
        self.sender = Sender(
            self.loop, self.pool, self.accumulator, self.state, settings, self.metrics
        )
        self.transactions: Optional[TransactionDriver] = None
        if isinstance(self.state, TransactionState):
            self.transactions = TransactionDriver(
                self.loop,
                self.pool,
                self.state,
                self.accumulator,
                self.sender.poke,
                self.max_block,
                settings.request_timeout,
                settings.retry_backoff,
                settings.retry_backoff_max,
                begin=network.bootstrap,
            )
        self.topic_updater = TopicUpdater(
            self.accumulator,
            self.pool,
            self.metrics,
            config['metadata_max_idle_ms'] / 1000,
            self.loop.time,
        )

    def __repr__(self) -> str:
        return '<ProducerEngine %r %r>' % (self.accumulator, self.pool)

    def _metrics_of(self, config: Mapping[str, Any]) -> ProducerMetrics:
        loop, cluster = self.loop, self.pool.cluster
        return ProducerMetrics(
            registry_of(config),
            config['client_id'],
            lambda: self.sender.in_flight,
            lambda: loop.time() - cluster.refreshed_at,
            config['compression_type'] is not None,
        )

    def _wake(self) -> None:
        self.loop.call_lazily(self.sender.look)

    # ------------------------------------------------------------ from any thread

    def begin(self) -> None:
        """Start the sender. Bootstrap happens when a topic or a producer id is needed."""
        self.loop.call_threadsafe(self.sender.start)
        self.pool.cluster.add_listener(self.topic_updater)

    def append(
        self,
        queue: TopicQueue,
        partition: Optional[int],
        key: Optional[bytes],
        value: Optional[bytes],
        headers: Headers = (),
        timestamp: Optional[int] = None,
    ) -> Optional[FutureRecordMetadata]:
        """Put a record into a batch; return its future, which takes callbacks.

        Arguments: queue: that of a topic whose partitions are known (topic_queue()); partition:
        None to have one chosen for a batch; timestamp: ms, None for now.
        Returns: None if buffer_memory is used up.
        Raises: IllegalStateError if closed, or outside of a transaction.
        """
        accumulator, loop = self.accumulator, self.loop
        try:
            placed = accumulator.append(
                queue, partition, key, value, headers, timestamp, loop.wall(), loop.time()
            )
        except BaseException:
            accumulator.settle()
            raise
        if isinstance(placed, Ticket):
            if placed is not AGAIN:
                accumulator.leave(placed)
            return None
        key_size = -1 if key is None else len(key)
        value_size = -1 if value is None else len(value)
        return future_of(*placed, key_size, value_size, header_size(headers))

    def begin_flush(self) -> List[ProducerBatch]:
        """Send all batches without lingering; return those that have no outcome yet."""
        return self.accumulator.begin_flush(self.loop.time())

    def known_queue(self, topic: str) -> TopicQueue:
        """Return the queue of a topic, with its partitions if they are in the cluster metadata."""
        queue = self.accumulator.topic(topic)
        if not queue.partitions:
            self._take_partitions(topic, queue)
        return queue

    def _take_partitions(self, topic: str, queue: TopicQueue) -> None:
        """Set the partitions of a queue from the cluster metadata."""
        cluster, states = self.pool.cluster, None
        # Repeat if the metadata has changed meanwhile: TopicUpdater may have set the new partitions
        # already, which the older ones must not replace.
        while states is not cluster.partition_states:
            states = cluster.partition_states
            self.accumulator.update(
                queue,
                cluster.partitions_for_topic(topic) or (),
                cluster.available_partitions_for_topic(topic) or (),
            )

    def close(self, sends_rest: bool = True) -> None:
        """Refuse further records; with ``sends_rest`` the waiting ones become ready at once."""
        self.accumulator.close(sends_rest)

    def is_empty(self) -> bool:
        """Return True if every record has an outcome."""
        return self.accumulator.is_empty()

    def abandon(self, error: KafkaError) -> None:
        """Fail all futures in the child of a fork, where the threads of the parent do not exist."""
        self.accumulator.abandon(error)

    # ------------------------------------------------------------ in turns of the loop

    async def topic_queue(self, topic: str, seconds: float) -> TopicQueue:
        """Return the queue of a topic once its partitions are known; bootstrap first.

        Arguments: seconds: the time limit.
        Raises: KafkaTimeoutError after that time; as NetworkClient.wait_for_topic().
        """
        queue = self.accumulator.topic(topic)
        if not queue.partitions:
            await self.network.wait_for_topic(topic, seconds)
            queue = self.known_queue(topic)
        return queue

    def purge(self, in_queue: bool, in_flight: bool) -> None:
        """Fail records that wait to be sent (again), those in flight, or both, with PurgedError."""
        self.sender.purge(in_queue, in_flight)

    async def settle(self) -> None:
        """Return when brokers have processed the requests that they do not answer (acks=0)."""
        await self.sender.settle()

    # ------------------------------------------------------------ blocking calls

    def wait(self, done: Callable[[], bool], timeout: Optional[float]) -> bool:
        """Block until a condition holds; return False if it does not within ``timeout`` seconds.

        The waiting thread may run the loop meanwhile, and send a single batch itself. Raises:
        IllegalStateError inside a call of this producer, and in a turn of the loop.
        """
        accumulator = self.accumulator
        if accumulator.is_mine():
            accumulator.check_outside()
        return self.loop.wait(done, timeout, self.sender)

    def wait_for_queue(self, topic: str, deadline: float) -> TopicQueue:
        """Return the queue of a topic; block until its partitions are known.

        Arguments: deadline: monotonic seconds. Raises: KafkaTimeoutError; IllegalStateError in a
        turn of the loop, which would wait for itself.
        """
        queue = self.accumulator.topic(topic)
        if not queue.partitions:
            self.accumulator.check_outside()
            self._find(topic, deadline)
            if not queue.partitions:
                self._take_partitions(topic, queue)
        return queue

    def _find(self, topic: str, deadline: float) -> None:
        if self.loop.runs_here():
            raise IllegalStateError(
                'send() in a callback or finalizer cannot wait until the partitions of topic %s'
                ' are known: call partitions_for() before' % topic
            )
        seconds = max(0.001, deadline - time.monotonic())
        try:
            ask = CoroutineCall(self.network.wait_for_topic, topic, seconds)
            self.loop.run(ask, seconds + 1.0)
        except KafkaTimeoutError as error:
            raise KafkaTimeoutError(
                'the partitions of topic %s are not known after %.3g s (max_block_ms): %s'
                % (topic, self.max_block, error)
            ) from error

    def refresh(self, deadline: float) -> None:
        """Request the metadata of the cluster and block until it has arrived.

        Arguments: deadline: monotonic seconds. Raises: KafkaTimeoutError.
        """
        ask = CoroutineCall(self.pool.refreshed)
        self.loop.run(ask, max(0.001, deadline - time.monotonic()))

    def append_waiting(
        self,
        attempt: Callable[[float, Optional[Ticket]], Any],
        deadline: float,
        ticket: Optional[Ticket] = None,
    ) -> Any:
        """Repeat an attempt to put records into batches until there is memory; return its result.

        Arguments: attempt: called with the monotonic time and a ticket, returns a Ticket if there
        is no memory; deadline: monotonic seconds; ticket: what a first attempt has returned.
        Raises: KafkaTimeoutError; what attempt raises.
        """
        accumulator = self.accumulator
        if ticket is AGAIN:
            ticket = None
        try:
            if ticket is not None:
                self._wait_for_memory(ticket, deadline)
            while True:
                placed = attempt(time.monotonic(), ticket)
                if not isinstance(placed, Ticket):
                    return placed
                if placed is not AGAIN:  # else an earlier ticket keeps its place in the queue
                    ticket = placed
                self._wait_for_memory(placed, deadline)
        except BaseException:
            if ticket is not None:
                accumulator.leave(ticket)
            accumulator.settle()
            raise

    def _wait_for_memory(self, ticket: Ticket, deadline: float) -> None:
        accumulator = self.accumulator
        seconds = deadline - time.monotonic()
        if ticket is AGAIN:
            is_over = seconds <= 0
        else:
            accumulator.check_outside()
            is_over = not self.loop.wait(
                lambda: ticket.granted or accumulator.is_closed, max(0.0, seconds)
            )
        if is_over:
            raise KafkaTimeoutError(
                'no room in buffer_memory within max_block_ms: %d records wait to be sent'
                % sum(batch.record_count for batch in accumulator.incomplete)
            )

    def end(self, seconds: float, error: KafkaError, on_lost: Callable[[int], None]) -> None:
        """Close the connections and the metrics; fail the records without an outcome.

        Arguments: seconds: the time to close the connections, at most 5; 0 means 1; error: for
        records without an outcome; on_lost: called with the number of such records if there are
        any.
        """
        try:
            self.network.close(min(seconds, _CLOSE_SECONDS) or 1.0)
        finally:  # also if Ctrl-C interrupts it
            with contextlib.suppress(KeyError):  # an interrupted earlier call may have removed it
                self.pool.cluster.remove_listener(self.topic_updater)
            lost = self.sender.abort(error)
            if lost:
                on_lost(lost)
            if self.metrics is not None:
                self.metrics.metrics.close()


class TopicUpdater:
    """Passes metadata changes of an accumulator's topics to it, and forgets idle topics.

    A listener of ClusterMetadata, called in turns of the loop.

    Arguments: metrics: has metrics for each topic, or None; idle: seconds without a record after
    which a topic is forgotten (metadata_max_idle_ms, KIP-526); now: returns monotonic seconds.
    """

    def __init__(
        self,
        accumulator: RecordAccumulator,
        pool: Pool,
        metrics: Optional[ProducerMetrics],
        idle: float,
        now: Callable[[], float],
    ) -> None:
        self.now = now
        self._accumulator = accumulator
        self._pool = pool
        self._metrics = metrics
        self._idle = idle
        self._looked_at = -math.inf

    def __call__(self, cluster: ClusterMetadata) -> None:
        """Update the partitions of each topic, and forget idle topics from time to time."""
        now = self.now()
        if now >= self._looked_at + self._idle / 8:
            self._looked_at = now
            self._forget_idle(now)
        for topic in self._accumulator.topics():
            partitions = cluster.partitions_for_topic(topic.topic)
            if partitions:
                available = cluster.available_partitions_for_topic(topic.topic) or ()
                self._accumulator.update(topic, partitions, available)

    def _forget_idle(self, now: float) -> None:
        for topic in self._accumulator.forget_idle(now, self._idle):
            self._accumulator.fast.pop(topic, None)
            self._pool.topics.forget(topic)
            if self._metrics is not None:
                self._metrics.forget_topic(topic)


def _state_of(config: Mapping[str, Any]) -> Union[PlainState, TransactionState]:
    if not config['enable_idempotence']:
        return PlainState()
    # The protocol has whole milliseconds; programs may set fractions.
    timeout_ms = int(config['transaction_timeout_ms'])
    return TransactionState(config['transactional_id'], timeout_ms)


def _sender_settings(config: Mapping[str, Any], limits: AccumulatorConfig) -> SenderSettings:
    return SenderSettings(
        acks=config['acks'],
        request_timeout=config['request_timeout_ms'] / 1000,
        delivery_timeout=limits.delivery_timeout,
        max_request_size=config['max_request_size'],
        max_in_flight=config['max_in_flight_requests_per_connection'],
        retries=config['retries'],
        retry_backoff=config['retry_backoff_ms'] / 1000,
        retry_backoff_max=config['retry_backoff_max_ms'] / 1000,
        batch_size=config['batch_size'],
        codec=compression_of(config['compression_type']),
        compresslevel=config['compression_level'],
        availability_timeout=config['partitioner_adaptive_partitioning_enable']
        and config['partitioner_availability_timeout_ms'] / 1000,
    )
