"""Fast path for a single outstanding batch: the thread blocked in get() sends it.

A program that sends one record at a time and waits for it pays for each record what a busy program
pays for hundreds: a check of all queues, a request built from objects, a response decoded into
objects. This is not needed if a single open batch is outstanding, its leader is connected and idle,
and the request to that partition is prepared. In all other cases ``try_to_send()`` returns False,
and :class:`kafka.producer.sender.Sender` sends the batch in the ordinary way. Error responses are
handled in the ordinary way too. Runs in turns of the loop. benchmarks/one_in_flight.py has the
figures.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from kafka.errors import KafkaError
from kafka.net.loop.tasks import Alarm
from kafka.producer.in_flight_batches import InFlightBatches, ProducerState
from kafka.producer.produce_errors import ProducerKind
from kafka.producer.produce_request import LAST_WITH_NAMES, ProduceVersions, SenderSettings
from kafka.producer.producer_batch import BatchState, ProducerBatch
from kafka.producer.record_accumulator import RecordAccumulator
from kafka.producer.topic_queue import PartitionQueue
from kafka.protocol.produce import ProduceResponse
from kafka.protocol.produce_template import FIRST_VERSION, ProduceTemplate, Stored
from kafka.protocol.wire import ZERO_UUID

if TYPE_CHECKING:
    from kafka.net.loop.event_loop import EventLoop
    from kafka.net.node_connection import NodeConnection
    from kafka.net.pool import Pool
    from kafka.protocol.session import Session

__all__ = ['PreparedProduce', 'SingleBatchAnswer', 'SingleBatchPath']

log = logging.getLogger('kafka.producer.sender')


class PreparedProduce(NamedTuple):
    """The prepared request to one partition, in the version for its leader.

    session: of the connection; states: cluster.partition_states when it was made, which is another
    object after each change of the metadata.
    """

    template: ProduceTemplate
    node: int
    link: NodeConnection
    session: Session
    states: Any


class SingleBatchPath:
    """Sends a batch that is the only outstanding one.

    Arguments: loop, pool, accumulator, state, settings: those of the Sender; versions: of Produce,
    by node; alarm: starts a pass of the sender, for the delivery timeout.
    """

    def __init__(
        self,
        loop: EventLoop,
        pool: Pool,
        accumulator: RecordAccumulator,
        state: ProducerState,
        settings: SenderSettings,
        in_flight: InFlightBatches,
        versions: ProduceVersions,
        alarm: Alarm,
    ) -> None:
        self._loop = loop
        self._pool = pool
        self._accumulator = accumulator
        self._state = state
        self._settings = settings
        self._in_flight = in_flight
        self._versions = versions
        self._alarm = alarm

    def try_to_send(self, now: float, until: float) -> bool:
        """Send the only outstanding batch, and block until its response.

        Arguments: until: when to stop blocking, in the time of the loop.
        Returns: False if more is outstanding, or the batch cannot be sent by the fast path.
        """
        accumulator, state, settings = self._accumulator, self._state, self._settings
        in_flight = self._in_flight
        queue = accumulator.alone()
        if queue is None or not settings.acks or state.kind is ProducerKind.TRANSACTIONAL:
            return False
        prepared: Optional[PreparedProduce] = queue.prepared
        if prepared is None or prepared.states is not self._pool.cluster.partition_states:
            prepared = queue.prepared = self._prepare(queue)
        elif prepared.session is not prepared.link.session:
            prepared = queue.prepared = self._prepare(queue)
        if (
            prepared is None
            or in_flight.requests.get(prepared.node)
            or not prepared.link.is_free(now)
        ):
            return False
        is_plain = state.kind is ProducerKind.PLAIN
        if settings.availability_timeout or not (is_plain or state.may_send(queue.open)):
            return False
        batch = accumulator.take_alone(queue)
        if batch is None:
            return False
        if not is_plain:
            state.stamp(batch)
        if (settings.codec or batch.encode_single() is None) and not in_flight.encode(batch, 2):
            return True
        answer = SingleBatchAnswer(self._loop, in_flight, prepared, batch, now)
        stored: Optional[Stored] = None
        late_at = batch.created_at + settings.delivery_timeout
        try:
            stored = prepared.link.submit_made(
                prepared.template,
                batch.encoded,
                answer,
                settings.request_timeout,
                until if until < late_at else late_at,
            )
        except Exception as error:  # an internal error, not one of the blocked caller
            log.exception('a produce request failed')
            if batch.state is not BatchState.IN_FLIGHT:
                answer.sent()
                answer.fail(KafkaError('sending failed: %r' % error))
        if stored is None:
            self._alarm.set(late_at)
        else:
            in_flight.on_stored(prepared.node, now, prepared.link.last_used, batch, stored)
        return True

    def _prepare(self, queue: PartitionQueue) -> Optional[PreparedProduce]:
        """Return the request to a partition; None if its leader is not connected, or too old."""
        settings, cluster = self._settings, self._pool.cluster
        states, leader = (
            cluster.partition_states,
            cluster.leader_for_partition(queue.topic_partition),
        )
        if leader is None or leader < 0:
            return None
        topic: Any
        topic, partition = queue.topic_partition
        topic_id = cluster.topic_id(topic)
        try:
            link = self._pool.link(leader)
            session = link.session
            if session is None or not link.is_ready:
                return None
            wanted, have_ids = self._state.produce_versions, topic_id != ZERO_UUID
            version = self._versions.choose(leader, session.versions.ranges, wanted, have_ids)
        except KafkaError:  # the sender gets it too, and reports it
            return None
        if version < FIRST_VERSION:
            return None
        template = ProduceTemplate(
            topic,
            partition,
            topic_id if version > LAST_WITH_NAMES else ZERO_UUID,
            version,
            settings.acks,
            int(settings.request_timeout * 1000),
            session.client_id,
        )
        return PreparedProduce(template, leader, link, session, states)


class SingleBatchAnswer:
    """The handler of a response of the fast path that try_to_send() has not read itself."""

    __slots__ = ('_batch', '_in_flight', '_loop', '_prepared', '_sent_at')

    def __init__(
        self,
        loop: EventLoop,
        in_flight: InFlightBatches,
        prepared: PreparedProduce,
        batch: ProducerBatch,
        sent_at: float,
    ) -> None:
        self._loop = loop
        self._in_flight = in_flight
        self._prepared = prepared
        self._batch = batch
        self._sent_at = sent_at

    def sent(self) -> None:
        """Note that the batch was sent."""
        self._in_flight.requests[self._prepared.node] = 1
        self._in_flight.launch(self._batch, self._sent_at)

    def take(self, stored: Stored) -> None:
        """Handle the expected response: the batch is stored."""
        prepared = self._prepared
        self._in_flight.on_stored(
            prepared.node, self._sent_at, prepared.link.last_used, self._batch, stored
        )

    def wake(self, response: ProduceResponse) -> None:
        """Handle any other response, as the sender does, in a later turn."""
        self._later(response, None)

    def fail(self, error: KafkaError) -> None:
        """Handle an error without response, as the sender does, in a later turn."""
        self._later(None, error)

    def _later(self, response: Optional[ProduceResponse], error: Optional[KafkaError]) -> None:
        prepared = self._prepared
        self._loop.call_soon(
            self._in_flight.on_response,
            prepared.node,
            self._sent_at,
            prepared.template.request,
            [self._batch],
            response,
            error,
        )
