"""Sender: sends the ready batches of a producer in Produce requests.

It runs in turns of the loop after each event: new records, metadata, responses, the end of a pause.
The accumulator decides when a batch is ready; :mod:`kafka.producer.in_flight_batches` handles the
responses; the *state* of the producer, :mod:`kafka.producer.plain_state` or
:mod:`kafka.producer.transaction_state`, decides whether a batch may be sent and numbers it; the
pool connects to brokers.

Several requests may be in flight to each broker, each with at most one batch of a partition.
Follows KIP-91 (delivery timeout) and KIP-951 (leader discovery from Produce responses).

With acks=0 there are no responses: a record is done when the operating system has accepted its
bytes. Brokers of 0.9 and 0.10.0 drop the requests of a closed connection that they have not
started. Therefore ``settle()`` sends a request with a response on each connection before the
producer closes it. Brokers process the requests of a connection in order: when the response
arrives, the records are stored.
"""

from __future__ import annotations

import logging
import math
import random
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Dict, FrozenSet, List, Optional, Sequence, Tuple

from kafka.errors import KafkaError, PurgedError, UnknownBrokerIdError, UnsupportedVersionError
from kafka.net.attempts import unreachable_text
from kafka.net.loop.tasks import Alarm, Task
from kafka.producer.in_flight_batches import InFlightBatches, ProducerState
from kafka.producer.produce_request import (
    ProduceVersions,
    SenderSettings,
    magic_of,
    produce_request,
)
from kafka.producer.producer_batch import ProducerBatch
from kafka.producer.record_accumulator import ReadyCheckResult, RecordAccumulator
from kafka.producer.single_batch_path import SingleBatchPath
from kafka.producer.stalls import Stalls
from kafka.producer.topic_queue import PartitionQueue
from kafka.protocol.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafka.protocol.produce import ProduceRequest, ProduceResponse
from kafka.protocol.wire import ZERO_UUID
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.cluster import ClusterMetadata
    from kafka.metrics.producer_metrics import ProducerMetrics
    from kafka.net.loop.event_loop import EventLoop
    from kafka.net.node_connection import NodeConnection
    from kafka.net.pool import Pool

log = logging.getLogger(__name__)

# How many seconds the sender pauses after an internal error.
_PAUSE_AFTER_FAULT = 0.1
_NEVER_SENT = 'purge() dropped them before they were sent'
_MAYBE_STORED = 'purge() gave them up when they had been sent; they may be stored'
_LATEST = -1  # as a timestamp: the end of the log


class Sender:
    """Sends the batches of an accumulator.

    Arguments: loop, pool: of the producer; state: that of a plain, idempotent or transactional
    producer; recorder: the metrics, or None; chance: random numbers for jitter.
    """

    def __init__(
        self,
        loop: EventLoop,
        pool: Pool,
        accumulator: RecordAccumulator,
        state: ProducerState,
        settings: SenderSettings,
        recorder: Optional[ProducerMetrics] = None,
        chance: Optional[random.Random] = None,
    ) -> None:
        self._loop = loop
        self._pool = pool
        self._accumulator = accumulator
        self._state = state
        self._settings = settings
        self._is_poked = False
        self._alarm = Alarm(loop, self.poke)  # one timer for all pauses
        self._in_flight = InFlightBatches(
            loop,
            pool,
            accumulator,
            state,
            settings,
            recorder,
            chance or random.Random(),
            self.poke,
        )
        self._versions = ProduceVersions()
        self._single = SingleBatchPath(
            loop,
            pool,
            accumulator,
            state,
            settings,
            self._in_flight,
            self._versions,
            self._alarm,
        )
        # The tasks that connect to nodes.
        self._connecting: Dict[int, Task[Any]] = {}
        self._stalls = Stalls(settings.availability_timeout)
        self._slow: FrozenSet[int] = frozenset()
        # The partition of a node to begin with next (round robin).
        self._turns: Dict[int, int] = {}
        # By node: the connection of the last request with acks=0, and a partition in that request.
        self._unanswered: Dict[int, Tuple[NodeConnection, TopicPartition]] = {}

    def __repr__(self) -> str:
        return '<Sender %d batches on the wire, in %d requests>' % (
            len(self._in_flight.batches),
            self.in_flight,
        )

    @property
    def in_flight(self) -> int:
        """The number of requests without a response."""
        return sum(self._in_flight.requests.values())

    # ------------------------------------------------------------ passes

    def start(self) -> None:
        """Start sending; called in a turn of the loop."""
        self._pool.cluster.add_listener(self._on_metadata)
        self.poke()

    def poke(self) -> None:
        """Schedule a pass in one of the next turns; called in a turn of the loop."""
        if not self._is_poked:
            self._is_poked = True
            self._loop.call_soon(self.look)

    def _on_metadata(self, cluster: ClusterMetadata) -> None:
        """Schedule a pass: partitions without a leader may have one now."""
        self.poke()

    def begin(self, until: float = -math.inf) -> None:
        """Make a pass in a turn of a blocked caller, with a fast path for a single batch.

        Arguments: until: when the caller stops waiting, in the time of the loop.
        """
        if self._loop.take_only(self.look):
            self._is_poked = False
            try:
                was_sent = self._single.try_to_send(self._loop.time(), until)
            except Exception:  # as in look(): not an error of the caller
                log.exception('the sender failed, and tries again')
                self._in_flight.recover()
                was_sent = False
            if not was_sent:
                self.look()
        elif self._accumulator.has_work:
            # Ctrl-C may have come between the append of a record and the wake-up.
            self.look()

    def attempt(self, until: float) -> None:
        """Send a single batch where asynchronous exceptions may be raised: see FirstCall."""
        if self._loop.take_only(self.look):
            self._is_poked = False
            if not self._single.try_to_send(self._loop.time(), until, True):
                self.poke()

    def mend(self) -> None:
        """Repair what an interrupted attempt has left half done."""
        try:
            self._single.mend()
        except Exception:  # as in look()
            log.exception('the sender could not repair what an exception had ended, and goes on')
            self._in_flight.recover()
        self._is_poked = False
        self.poke()

    def look(self) -> None:
        """Send the batches that may be sent, and schedule the next pass."""
        self._is_poked = False
        try:
            next_at = self._look(self._loop.time())
        except Exception:
            # An internal error must not end all sending, or every batch would time out.
            log.exception('the sender failed and goes on')
            self._in_flight.recover()
            next_at = self._loop.time() + _PAUSE_AFTER_FAULT
        if next_at is not None:
            self._alarm.set(next_at)

    def _look(self, now: float) -> Optional[float]:
        """Send the batches that may be sent; return the time of the next pass, or None."""
        self._drop_unsent()
        cluster = self._pool.cluster
        plan: ReadyCheckResult = self._accumulator.ready(now, cluster.leader_for_partition)
        if plan.is_late:
            self._in_flight.expire(now)
            plan = self._accumulator.ready(now, cluster.leader_for_partition)
        for topic in dict.fromkeys(plan.leaderless):
            self._pool.need_topic(topic)
            self._pool.refresh()
        for node, queues in plan.by_node.items():
            self._serve(node, queues, now)
        slow_at = self._avoid_slow(plan, now) if self._settings.availability_timeout else None
        if slow_at is None or plan.next_at is None:
            return plan.next_at or slow_at
        return min(plan.next_at, slow_at)

    def _avoid_slow(self, plan: ReadyCheckResult, now: float) -> Optional[float]:
        """Avoid the partitions of slow brokers (KIP-794); return the time of the next check."""
        slow, ask_at = self._stalls.slow(plan.by_node, now)
        if slow or self._slow:
            self._slow = slow
            self._accumulator.avoid(slow, self._pool.cluster.leader_for_partition)
        return ask_at

    def _drop_unsent(self) -> None:
        """Fail the unsent batches of an aborted or failed transaction."""
        error = self._state.take_unsent_error()
        if error is None:
            return
        for batch in self._accumulator.remove_waiting(self._state.may_drop):
            self._in_flight.give_up(batch, error)

    def purge(self, in_queue: bool, in_flight: bool) -> None:
        """Fail batches that wait to be sent (again), those in flight, or both.

        Called in a turn of the loop. A batch that was sent before may be stored, as after a
        timeout.
        """
        batches: List[ProducerBatch] = []
        if in_queue:
            for topic, count in self._accumulator.drop_boxes():
                error = PurgedError('%d records for %s: %s' % (count, topic.topic, _NEVER_SENT))
                self._state.refuse(error)
                log.error('%s', error)
            batches += self._accumulator.remove_waiting(lambda batch: True)
        if in_flight:
            batches += self._in_flight.batches
        for batch in sorted(batches, key=lambda batch: batch.number):
            if not batch.is_done:
                fate = _MAYBE_STORED if batch.attempts else _NEVER_SENT
                text = '%d records for %s: %s' % (batch.record_count, batch.place, fate)
                self._in_flight.give_up(batch, PurgedError(text))
        self.poke()

    def abort(self, error: KafkaError) -> int:
        """Fail all records without an outcome; return their number.

        To be called when the loop does not run any more.
        """
        accumulator = self._accumulator
        accumulator.remove_waiting(lambda batch: True)  # closes them, so that they can fail
        lost = 0
        for batch in accumulator.incomplete:
            if not batch.is_done:
                self._in_flight.fail(batch, error)
                lost += batch.record_count
            accumulator.finish(batch)
        for topic, count in self._accumulator.drop_boxes():
            log.error('%d records for %s were lost: %s', count, topic.topic, error)
            lost += count
        return lost

    # ------------------------------------------------------------ one broker

    def _serve(self, node: int, queues: List[PartitionQueue], now: float) -> None:
        """Send requests to a broker, up to its maximum in flight."""
        try:
            link = self._pool.link(node)
        except UnknownBrokerIdError:
            self._pool.refresh()
            return
        versions = link.versions
        self._stalls.stuck(node, now)
        if versions is None:
            if node not in self._connecting:
                self._connecting[node] = self._loop.spawn(self._connect(node, link))
            return
        topic_id = self._pool.cluster.topic_id
        while queues and self._in_flight.requests.get(node, 0) < self._settings.max_in_flight:
            wanted, have_ids = self._state.produce_versions, self._have_ids(queues)
            try:
                version = self._versions.choose(node, versions.ranges, wanted, have_ids)
            except UnsupportedVersionError as error:
                self._refuse(queues, error)
                return
            batches: List[ProducerBatch] = []
            try:
                self._fill(node, queues, version, now, batches)
                self._stalls.moved(node)  # also without batches: then the broker is not the cause
                if not batches:
                    return
                request = produce_request(
                    batches, version, self._settings, self._state.transactional_id, topic_id
                )
                self._deliver(node, link, request, version, batches)
            except Exception as fault:
                self._in_flight.not_sent(batches, fault, now)
                raise

    def _have_ids(self, queues: Sequence[PartitionQueue]) -> bool:
        topic_id = self._pool.cluster.topic_id
        for queue in queues:
            topic: Any = queue.topic_partition.topic  # a str: send() takes no other
            if topic_id(topic) == ZERO_UUID:
                return False
        return True

    def _refuse(self, queues: Sequence[PartitionQueue], error: KafkaError) -> None:
        """Fail the batches of queues whose leader is too old."""
        places = {queue.topic_partition for queue in queues}
        for batch in self._accumulator.remove_waiting(lambda b: b.topic_partition in places):
            self._in_flight.give_up(batch, error)

    async def _connect(self, node: int, link: NodeConnection) -> None:
        try:
            await link.ready()
        except KafkaError as error:
            log.debug('node=%s cannot be reached: %s', node, error)
            self._in_flight.unreachable[node] = error, unreachable_text(node, link.attempts, error)
            self._pool.refresh()
        else:
            self._in_flight.unreachable.pop(node, None)
        finally:
            del self._connecting[node]
            self.poke()

    def _fill(
        self,
        node: int,
        queues: List[PartitionQueue],
        version: int,
        now: float,
        taken: List[ProducerBatch],
    ) -> None:
        """Take and encode the next batch of each queue, as many as fit into a request.

        Queues without further batches are removed from the list. Arguments: taken: the list to
        which the batches are added.
        """
        accumulator, state = self._accumulator, self._state
        magic = magic_of(version)
        first = self._turns.get(node, 0) % len(queues)
        room = self._settings.max_request_size
        left: List[PartitionQueue] = []
        for queue in queues[first:] + queues[:first]:
            batch = accumulator.peek(queue)
            if batch is None or queue.muted or batch.not_before > now or not state.may_send(batch):
                continue
            if taken and batch.size > room:
                left.append(queue)
                continue
            taken_batch = accumulator.take(queue)
            if taken_batch is None:  # another thread has kept the lock; its release wakes no sender
                self.poke()
                continue
            taken.append(taken_batch)  # before prepare(), which may raise
            if self._in_flight.prepare(taken_batch, magic, now):
                room -= taken_batch.size
            else:
                taken.pop()
            if queue.waiting and not queue.muted:
                left.append(queue)
        self._turns[node] = first + 1
        queues[:] = left

    # ------------------------------------------------------------ one request

    def _deliver(
        self,
        node: int,
        link: NodeConnection,
        request: ProduceRequest,
        version: int,
        batches: List[ProducerBatch],
    ) -> None:
        """Send a request; InFlightBatches.on_response() handles the response."""
        answered = partial(self._in_flight.on_response, node, self._loop.time(), request, batches)
        self._in_flight.requests[node] = self._in_flight.requests.get(node, 0) + 1
        if self._settings.acks:
            link.submit(request, answered, self._settings.request_timeout, version)
        else:
            last = batches[-1].topic_partition
            self._loop.spawn(self._send_unanswered(node, link, request, version, last, answered))

    # ------------------------------------------------------------ acks=0

    async def _send_unanswered(
        self,
        node: int,
        link: NodeConnection,
        request: ProduceRequest,
        version: int,
        partition: TopicPartition,
        answered: Callable[[Optional[ProduceResponse], Optional[KafkaError]], None],
    ) -> None:
        try:
            await link.send(request, version=version)
        except KafkaError as error:
            answered(None, error)
        except Exception as error:  # an internal error of this package
            log.exception('a produce request failed')
            answered(None, KafkaError('sending failed: %r' % error))
        else:
            self._unanswered[node] = link, partition
            answered(None, None)

    async def settle(self) -> None:
        """Return when brokers have processed the requests of acks=0, or cannot be reached."""
        asked = [
            self._loop.spawn(self._ask(node, link, *partition))
            for node, (link, partition) in self._unanswered.items()
            if link.can_send
        ]
        self._unanswered.clear()
        for answer in asked:
            await answer

    async def _ask(self, node: int, link: NodeConnection, topic: Any, partition: int) -> None:
        """Send ListOffsets for one partition: all releases support it, and it changes nothing."""
        wanted = [ListOffsetsPartition(partition_index=partition, timestamp=_LATEST)]
        topics = [ListOffsetsTopic(name=topic, partitions=wanted)]
        try:
            await link.request(ListOffsetsRequest(replica_id=-1, topics=topics))
        except KafkaError as error:
            log.warning('node=%s may not have read records sent with acks=0: %s', node, error)
