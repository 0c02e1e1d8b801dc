"""Fast path for a single outstanding batch: the thread blocked in get() sends it.

A program that sends one record at a time and waits for it pays for each record what a busy program
pays for hundreds: a check of all queues, a request built from objects, a response decoded into
objects. This is not needed if a single open batch is outstanding, its leader is connected and idle,
and the request to that partition is prepared. In all other cases ``try_to_send()`` returns False,
and :class:`kafka.producer.sender.Sender` sends the batch in the ordinary way. Error responses are
handled in the ordinary way too. Runs in turns of the loop. benchmarks/one_in_flight.py has the
figures.

**Attempts.** In a thread that is not the main one an asynchronous exception may be raised between
any two steps. Such a thread may take the same path, as an attempt, except what ``mend()`` could
neither complete nor undo: an attempt prepares no request, calls no callbacks, and handles no
exception, since that belongs to the program. ``mend()`` finds how far it came from the batches that
the sender has taken, from ``_answer``, and from the connection (``resume_made()``).
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

    session: of the connection; may_attempt: whether an attempt may send it: an exception in the
    middle of TLS closes the connection, so that the batch is sent again: brokers must notice that;
    states: cluster.partition_states when it was made, which is another object after each change of
    the metadata.
    """

    template: ProduceTemplate
    node: int
    link: NodeConnection
    session: Session
    may_attempt: bool
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
        self._answer: Optional[SingleBatchAnswer] = None  # of the request that is being sent
        self._is_plain = state.kind is ProducerKind.PLAIN
        self._is_off = (
            not settings.acks
            or state.kind is ProducerKind.TRANSACTIONAL
            or bool(settings.availability_timeout)
        )

    def try_to_send(self, now: float, until: float, is_attempt: bool = False) -> bool:
        """Send the only outstanding batch, and block until its response.

        Arguments: until: when to stop blocking, in the time of the loop; is_attempt: asynchronous
        exceptions may be raised in this thread: see the top of the module.
        Returns: False if more is outstanding, or the batch cannot be sent by the fast path.
        """
        accumulator, state, settings = self._accumulator, self._state, self._settings
        in_flight = self._in_flight
        queue = accumulator.alone()
        if queue is None or self._is_off:
            return False
        prepared: Optional[PreparedProduce] = queue.prepared
        if (
            prepared is None
            or prepared.states is not self._pool.cluster.partition_states
            or prepared.session is not prepared.link.session
        ):
            if is_attempt:
                return False
            prepared = queue.prepared = self._prepare(queue)
        if (
            prepared is None
            or in_flight.requests.get(prepared.node)
            or not prepared.link.is_free(now)
        ):
            return False
        if is_attempt and (queue.open.calls or state.needs_identity or not prepared.may_attempt):
            return False
        is_plain = self._is_plain
        if not is_plain and not state.may_send(queue.open):
            return False
        batch = accumulator.take_alone(queue)
        if batch is None:
            return False
        if not is_plain:
            state.stamp(batch)
        if settings.codec or batch.encode_single() is None:
            if is_attempt:
                batch.encode(2, settings.codec, settings.compresslevel)
            elif not in_flight.encode(batch, 2):
                return True
        answer = self._answer = SingleBatchAnswer(self._loop, in_flight, prepared, batch, now)
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
        except Exception as error:
            if is_attempt:
                raise
            # An internal error, not one of the blocked caller.
            log.exception('a produce request failed')
            self._fail(answer, batch, error)
        if stored is None:
            self._alarm.set(late_at)
        else:
            last_used = prepared.link.last_used
            in_flight.on_stored(prepared.node, now, last_used, batch, stored, is_attempt)
        self._answer = None
        return True

    def _fail(self, answer: SingleBatchAnswer, batch: ProducerBatch, error: Exception) -> None:
        """Handle an internal error in submit_made(): fail the batch unless it may be stored."""
        if batch.state is BatchState.IN_FLIGHT:
            answer.mend(self._settings.request_timeout)
        else:
            answer.sent()
            answer.fail(KafkaError('sending failed: %r' % error))

    def mend(self) -> None:
        """Complete or undo what an exception has left half done in an attempt.

        Called in a turn of the loop, before anything else is done there. May be called again after
        an exception.
        """
        self._accumulator.settle()
        answer = self._answer
        if answer is not None:
            answer.mend(self._settings.request_timeout)
            self._answer = None
        self._in_flight.recover()

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
        may_attempt = not (self._is_plain and link.is_encrypted)
        return PreparedProduce(template, leader, link, session, may_attempt, states)


class SingleBatchAnswer:
    """The handler of a response of the fast path that try_to_send() has not read itself."""

    __slots__ = ('_batch', '_in_flight', '_loop', '_prepared', '_sent_at', 'found')

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
        self.found: Optional[Stored] = None

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

    def mend(self, timeout: float) -> None:
        """Complete what an exception has ended; send the batch again if that is not possible."""
        node, link, batch = self._prepared.node, self._prepared.link, self._batch
        if self.found is not None:
            link.end_made(self)
            self._in_flight.restore_stored(node, batch, self.found)
            return
        if not link.is_submitting(self):
            return
        if batch.state is BatchState.CLOSED and link.end_made(self):
            return  # nothing was sent; recover() queues the batch again
        self._in_flight.restore_sent(node, batch, self._sent_at)
        is_resumed = False
        try:
            is_resumed = link.resume_made(self._prepared.template, timeout)
        finally:
            if not is_resumed:
                self._in_flight.restore_lost(node, batch)

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
