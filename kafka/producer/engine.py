"""The parts of a producer, put together: accumulator, sender, transactions, metrics, metadata.

A face stands on it: KafkaProducer, or another dialect. The face has the options resolved, makes the
NetworkClient, and owns everything that programs see: serializers, partitioners, interceptors,
futures, and which calls wait. Making an engine opens no socket, starts no thread and waits for
nothing; nor do its methods, but for those in the section for blocking calls.

Threads: appending, flushing and closing may be called from any thread; what has to run in a turn of
the loop says so. The accumulator has the only lock. No part holds the face, so that a face which a
program drops can be collected; for the same reason the options, which may have objects that refer
to the face, are read and not kept.
"""

from __future__ import annotations

import contextlib
import math
import time
from typing import Any, Callable, List, Mapping, Optional, Union

from kafka.cluster import ClusterMetadata
from kafka.errors import KafkaError, KafkaTimeoutError
from kafka.metrics.producer_metrics import ProducerMetrics
from kafka.metrics.reporting import registry_of
from kafka.net.client import NetworkClient
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

#: Bytes that a record counts besides key, value and headers where it is compared with
#: max_request_size and buffer_memory, as in releases since 1.0.
OVERHEAD = 34
# Most seconds to close the connections in.
_CLOSE_SECONDS = 5.0


class ProducerEngine:
    """What collects records and sends them.

    Arguments:
        network: the loop and the brokers.
        config: the resolved options of a producer (kafka.config.PRODUCER). With api_version None
            the releases of the brokers need not be known: what they cannot do fails when it is
            asked for.

    Attributes:
        network; loop; pool; accumulator; sender: the parts.
        state: a TransactionState for idempotent producers, else a PlainState.
        transactions: the driver of an idempotent producer, else None.
        metrics: what is recorded; None with metrics_enabled=False.
        topic_updater: tells the accumulator of new metadata.
        largest_record: the bytes that a record may have, OVERHEAD included.
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
        """Let the sender begin. The cluster is looked for when a topic or producer id is needed."""
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

        Arguments: queue: of a topic whose partitions are known (topic_queue()); partition: None to
        have one chosen for a batch; timestamp: ms, None for now.
        Returns: None when buffer_memory is used up.
        Raises: IllegalStateError when closed, or outside of a transaction.
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
        """Send what there is without lingering; return the batches that have no outcome yet."""
        return self.accumulator.begin_flush(self.loop.time())

    def known_queue(self, topic: str) -> TopicQueue:
        """Return the queue of a topic, with the partitions that the cluster is known to have."""
        queue = self.accumulator.topic(topic)
        if not queue.partitions:
            self._take_partitions(topic, queue)
        return queue

    def _take_partitions(self, topic: str, queue: TopicQueue) -> None:
        """Let a queue have the partitions that the cluster knows."""
        cluster, states = self.pool.cluster, None
        # Again if it has heard of others meanwhile: the queue may have been told of those before.
        while states is not cluster.partition_states:
            states = cluster.partition_states
            self.accumulator.update(
                queue,
                cluster.partitions_for_topic(topic) or (),
                cluster.available_partitions_for_topic(topic) or (),
            )

    def close(self, sends_rest: bool = True) -> None:
        """Take no more records; what there is becomes ready at once, if it is to be sent at all."""
        self.accumulator.close(sends_rest)

    def is_empty(self) -> bool:
        """Return True if every record has an outcome."""
        return self.accumulator.is_empty()

    def abandon(self, error: KafkaError) -> None:
        """Fail all futures in the child of a fork, where no thread of the parent goes on."""
        self.accumulator.abandon(error)

    # ------------------------------------------------------------ in turns of the loop

    async def topic_queue(self, topic: str, seconds: float) -> TopicQueue:
        """Return the queue of a topic once its partitions are known; bootstrap first.

        Raises: KafkaTimeoutError after so many seconds; as NetworkClient.wait_for_topic().
        """
        queue = self.accumulator.topic(topic)
        if not queue.partitions:
            await self.network.wait_for_topic(topic, seconds)
            queue = self.known_queue(topic)
        return queue

    def purge(self, in_queue: bool, in_flight: bool) -> None:
        """Give up records that were never sent or wait to be sent again, those in flight, or both.

        They fail with PurgedError.
        """
        self.sender.purge(in_queue, in_flight)

    async def settle(self) -> None:
        """Return when brokers have read the requests that they do not answer (acks=0)."""
        await self.sender.settle()

    # ------------------------------------------------------------ blocking, if a face asks for it

    def wait(self, done: Callable[[], bool], timeout: Optional[float]) -> bool:
        """Block until a condition holds; return False after so many seconds.

        The thread that waits may run the loop meanwhile, and send a single batch by itself. Raises:
        IllegalStateError inside a call of this producer, and in a turn of the loop.
        """
        accumulator = self.accumulator
        if accumulator.is_mine():
            accumulator.check_outside()
        return self.loop.wait(done, timeout, self.sender.begin)

    def wait_for_queue(self, topic: str, deadline: float) -> TopicQueue:
        """Return the queue of a topic; block until its partitions are known.

        Arguments: deadline: monotonic seconds. Raises: KafkaTimeoutError.
        """
        queue = self.accumulator.topic(topic)
        if not queue.partitions:
            self.accumulator.check_outside()
            self._find(topic, deadline)
            if not queue.partitions:
                self._take_partitions(topic, queue)
        return queue

    def _find(self, topic: str, deadline: float) -> None:
        seconds = max(0.001, deadline - time.monotonic())
        try:
            self.loop.run(self.network.wait_for_topic(topic, seconds), seconds + 1.0)
        except KafkaTimeoutError as error:
            raise KafkaTimeoutError(
                'the partitions of topic %s are not known after %.3g s (max_block_ms): %s'
                % (topic, self.max_block, error)
            ) from error

    def refresh(self, deadline: float) -> None:
        """Ask for the metadata of the cluster and block until it is there.

        Arguments: deadline: monotonic seconds. Raises: KafkaTimeoutError.
        """
        self.loop.run(self.pool.refreshed(), max(0.001, deadline - time.monotonic()))

    def append_waiting(
        self,
        attempt: Callable[[float, Optional[Ticket]], Any],
        deadline: float,
        ticket: Optional[Ticket] = None,
    ) -> Any:
        """Repeat what puts records into batches until there is memory for it; return its result.

        Arguments: attempt: called with the monotonic time and a ticket, returns a Ticket when there
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
                if placed is not AGAIN:  # else what there is in the queue is kept
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
        """Close the connections and the metrics; fail what has no outcome.

        Arguments: seconds: to close the connections in, 5 at most; 0 for one; error: of records
        without an outcome; on_lost: called with their number if there are any.
        """
        try:
            self.network.close(min(seconds, _CLOSE_SECONDS) or 1.0)
        finally:  # also where Ctrl-C ends that
            with contextlib.suppress(KeyError):  # a call that was ended in the middle had begun
                self.pool.cluster.remove_listener(self.topic_updater)
            lost = self.sender.abort(error)
            if lost:
                on_lost(lost)
            if self.metrics is not None:
                self.metrics.metrics.close()


class TopicUpdater:
    """Tells an accumulator of changes in the topics that it has, and forgets idle topics.

    A listener of ClusterMetadata, so it is called in turns of the loop.

    Arguments: metrics: what is recorded by topic, or None; idle: seconds without a record after
    which a topic is forgotten (metadata_max_idle_ms); now: returns monotonic seconds.
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
        """Take over what is known of the cluster now."""
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
    # Brokers take whole milliseconds; programs may give fractions.
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
