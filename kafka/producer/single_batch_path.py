"""The short way of a batch that is all there is: sent by who waits for it, in the turn for that.

A program that sends a record and waits for it, one behind the other, pays for each what a busy one
pays for hundreds: a look at all queues, a request built of objects, an answer decoded into some.
Where nothing else wants anything of the sender, the broker is known, connected and idle, and the
request to that partition was made before, none of this is needed. Owns when that is so, and what is
left to do. Whatever is not as it should be is left to the sender, which looks as ever; so are
answers with an error. benchmarks/one_in_flight.py has the figures. Part of
:class:`kafka.producer.sender.Sender`.
"""

from __future__ import annotations

import logging
import math
from typing import Any, Dict, List, NamedTuple, Optional

from kafka.errors import KafkaError
from kafka.producer.produce_errors import Kind, Verdict
from kafka.producer.produce_request import LAST_WITH_NAMES, ProduceVersions, SenderSettings
from kafka.producer.producer_batch import ProducerBatch, State
from kafka.producer.record_accumulator import RecordAccumulator
from kafka.producer.topic_queue import PartitionQueue
from kafka.protocol.produce import PartitionProduceResponse, ProduceResponse
from kafka.protocol.produce_template import FIRST_VERSION, ProduceTemplate, Stored
from kafka.protocol.wire import ZERO_UUID

log = logging.getLogger('kafka.producer.sender')


class Made(NamedTuple):
    """The request to a partition as its leader takes it.

    session: of the connection that it is for; states: what was known of the partitions.
    """

    template: ProduceTemplate
    node: int
    link: Any
    session: Any
    states: Any


class Alone:
    """The part of a sender that sends what is alone."""

    _loop: Any
    _pool: Any
    _accumulator: RecordAccumulator
    _state: Any
    _settings: SenderSettings
    _recorder: Any
    _is_poked: bool
    _alarm: Any
    _requests: Dict[int, int]
    _on_wire: Dict[ProducerBatch, None]
    _versions: ProduceVersions

    def look(self) -> None:
        """Send what may be sent."""
        raise NotImplementedError

    def poke(self) -> None:
        """Let the sender look again soon."""
        raise NotImplementedError

    def _recover(self) -> None:
        raise NotImplementedError

    def _encode(self, batch: ProducerBatch, magic: int) -> bool:
        raise NotImplementedError

    def _launch(self, batch: ProducerBatch, now: float) -> None:
        raise NotImplementedError

    def _apply(self, batch: Any, verdict: Verdict, answer: Any, now: float) -> None:
        raise NotImplementedError

    def _answered(
        self, node: int, sent_at: float, request: Any, batches: Any, response: Any, error: Any
    ) -> None:
        raise NotImplementedError

    def _not_understood(self, node: int, batches: List[ProducerBatch], fault: Exception) -> None:
        raise NotImplementedError

    def begin(self, until: float = -math.inf) -> None:
        """Do as look(), in the turn of a caller who waits; quicker where one batch is all.

        Arguments: until: when the caller waits no longer, in the time of the loop.
        """
        if self._loop.take_only(self.look):
            self._is_poked = False
            try:
                was_sent = self._send_alone(self._loop.time(), until)
            except Exception:  # as in look(): nobody else would hear of it
                log.exception('the sender failed, and looks again')
                self._recover()
                was_sent = False
            if not was_sent:
                self.look()
        elif self._accumulator.has_work:
            # Ctrl-C may have come between a record and the call that was to tell of it.
            self.look()

    def _send_alone(self, now: float, until: float) -> bool:
        """Send the batch that is all there is, and sleep until it is answered, at most so long.

        False if it is not all there is, or cannot go this way.
        """
        accumulator, state, settings = self._accumulator, self._state, self._settings
        queue = accumulator.alone()
        if queue is None or not settings.acks or state.is_transactional:
            return False
        made: Optional[Made] = queue.made
        if made is None or made.states is not self._pool.cluster.partition_states:
            made = queue.made = self._make(queue)
        elif made.session is not made.link.session:
            made = queue.made = self._make(queue)
        if made is None or self._requests.get(made.node) or not made.link.is_free(now):
            return False
        is_plain = state.kind is Kind.PLAIN
        if settings.availability_timeout or not (is_plain or state.may_send(queue.open)):
            return False
        batch = accumulator.take_alone(queue)
        if batch is None:
            return False
        if not is_plain:
            state.stamp(batch)
        if (settings.codec or batch.encode_single() is None) and not self._encode(batch, 2):
            return True
        answer, stored = LoneAnswer(self, made, batch, now), None
        late_at = batch.created_at + settings.delivery_timeout
        try:
            stored = made.link.submit_made(
                made.template,
                batch.encoded,
                answer,
                settings.request_timeout,
                until if until < late_at else late_at,
            )
        except Exception as error:  # a mistake of our own, of which nobody else would hear
            log.exception('a produce request failed')
            if batch.state is not State.IN_FLIGHT:
                answer.sent()
                answer.fail(KafkaError('sending failed: %r' % error))
        if stored is None:
            self._alarm.set(late_at)
        else:
            answer.take(stored)
        return True

    def _make(self, queue: PartitionQueue) -> Optional[Made]:
        """Make the request to a partition; None if its leader is not connected, or too old."""
        settings, cluster = self._settings, self._pool.cluster
        states, leader = (
            cluster.partition_states,
            cluster.leader_for_partition(queue.topic_partition),
        )
        if leader is None or leader < 0:
            return None
        topic, partition = queue.topic_partition
        topic_id = cluster.topic_id(topic)
        try:
            link = self._pool.link(leader)
            session = link.session
            if session is None or not link.is_ready:
                return None
            wanted, have_ids = self._state.produce_versions, topic_id != ZERO_UUID
            version = self._versions.choose(leader, session.versions.ranges, wanted, have_ids)
        except KafkaError:  # the sender finds out, and tells
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
        return Made(template, leader, link, session, states)


class LoneAnswer:
    """Waits for what becomes of a batch that was sent alone."""

    __slots__ = ('_batch', '_made', '_sender', '_sent_at')

    def __init__(self, sender: Alone, made: Made, batch: ProducerBatch, sent_at: float) -> None:
        self._sender = sender
        self._made = made
        self._batch = batch
        self._sent_at = sent_at

    def sent(self) -> None:
        """Note that the batch is on the wire."""
        self._sender._requests[self._made.node] = 1
        self._sender._launch(self._batch, self._sent_at)

    def take(self, stored: Stored) -> None:
        """Take the answer that was expected: the batch is stored."""
        sender, batch, node = self._sender, self._batch, self._made.node
        sender._requests[node] -= 1
        sender._on_wire.pop(batch, None)
        now = self._made.link.last_used
        try:
            if sender._recorder is not None:
                sender._recorder.stored(node, now - self._sent_at, batch.record_count)
            if sender._state.kind is Kind.PLAIN and not batch.is_done:
                batch.succeed(*stored)
                sender._accumulator.finish(batch)
            else:
                offset, append_time, start_offset = stored
                answer = PartitionProduceResponse(
                    index=batch.topic_partition.partition,
                    error_code=0,
                    base_offset=offset,
                    log_append_time_ms=append_time,
                    log_start_offset=start_offset,
                )
                sender._apply(batch, sender._state.on_produced(batch, answer), answer, now)
        except Exception as fault:
            sender._not_understood(node, [batch], fault)
        if sender._accumulator.has_work:
            sender.poke()

    def wake(self, response: ProduceResponse) -> None:
        """Take another answer, as the sender does, soon."""
        self._later(response, None)

    def fail(self, error: KafkaError) -> None:
        """Take what was there in place of an answer, as the sender does, soon."""
        self._later(None, error)

    def _later(self, response: Optional[ProduceResponse], error: Optional[KafkaError]) -> None:
        made, sender = self._made, self._sender
        sender._loop.call_soon(
            sender._answered,
            made.node,
            self._sent_at,
            made.template.request,
            [self._batch],
            response,
            error,
        )
