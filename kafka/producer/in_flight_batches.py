"""InFlightBatches: the batches that the sender has taken, and the handling of Produce responses.

Used by :mod:`kafka.producer.sender` and :mod:`kafka.producer.single_batch_path`, in turns of the
loop. The *state* of the producer, :mod:`kafka.producer.plain_state` or
:mod:`kafka.producer.transaction_state`, assigns sequence numbers and decides what an error code
means. Its verdict is carried out here: a batch succeeds, fails, is queued again after a back-off
(KIP-580) or is split. Each batch that the sender has taken gets an outcome, also after an internal
error of this package. Follows KIP-91 (delivery timeout) and KIP-951 (leader discovery from Produce
responses).
"""

from __future__ import annotations

import logging
import random
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
)

from kafka.errors import (
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    LeaderNotAvailableError,
    ProtocolError,
)
from kafka.net.backoff import backoff_seconds
from kafka.producer.plain_state import PlainState
from kafka.producer.produce_errors import ProduceAction, ProducerKind, ProduceVerdict
from kafka.producer.produce_request import SenderSettings, answers_of
from kafka.producer.producer_batch import BatchState, ProducerBatch
from kafka.producer.record_accumulator import RecordAccumulator
from kafka.producer.transaction_state import TransactionState
from kafka.protocol.produce import PartitionProduceResponse, ProduceRequest, ProduceResponse
from kafka.protocol.produce_template import Stored

if TYPE_CHECKING:
    from kafka.metrics.producer_metrics import ProducerMetrics
    from kafka.net.loop.event_loop import EventLoop
    from kafka.net.pool import Pool

__all__ = ['InFlightBatches', 'ProducerState']

log = logging.getLogger('kafka.producer.sender')

ProducerState = Union[PlainState, TransactionState]


class InFlightBatches:
    """The batches of one producer that are in flight or about to be.

    Arguments: loop, pool, accumulator: of the producer; state: that of a plain, idempotent or
    transactional producer; recorder: the metrics (kafka.metrics.producer_metrics), or None; chance:
    random numbers for jitter; poke: called when batches may be sent that could not be before.

    Attributes: batches: those in flight, in the order of sending; requests: the number of requests
    in flight, by node; unreachable: the last connection error of a node and its text, by node.
    """

    def __init__(
        self,
        loop: EventLoop,
        pool: Pool,
        accumulator: RecordAccumulator,
        state: ProducerState,
        settings: SenderSettings,
        recorder: Optional[ProducerMetrics],
        chance: random.Random,
        poke: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._pool = pool
        self._accumulator = accumulator
        self._state = state
        self._settings = settings
        self._recorder = recorder
        self._chance = chance
        self._poke = poke
        self.batches: Dict[ProducerBatch, None] = {}
        self.requests: Dict[int, int] = {}
        self.unreachable: Dict[int, Tuple[KafkaError, str]] = {}

    def __repr__(self) -> str:
        return '<InFlightBatches %d batches, in %d requests>' % (
            len(self.batches),
            sum(self.requests.values()),
        )

    # ------------------------------------------------------------ before sending

    def prepare(self, batch: ProducerBatch, magic: int, now: float) -> bool:
        """Number and encode a batch that is sent now; return False if that failed, as encode()."""
        self._state.stamp(batch)
        if not self.encode(batch, magic):
            return False
        self.launch(batch, now)
        return True

    def encode(self, batch: ProducerBatch, magic: int) -> bool:
        """Encode a numbered batch; if that fails, fail the batch and return False."""
        settings = self._settings
        try:
            batch.encode(magic, settings.codec, settings.compresslevel)
        except (KafkaError, TypeError, ValueError, NotImplementedError) as error:
            failure = error if isinstance(error, KafkaError) else ProtocolError(str(error))
            self._state.on_lost(batch, failure)  # its sequence number is missing now
            self.give_up(batch, failure)
            self._poke()  # for later batches of the partition
            return False
        return True

    def launch(self, batch: ProducerBatch, now: float) -> None:
        """Note that a batch is sent."""
        if not batch.attempts:
            if self._settings.codec:
                self._accumulator.encoded(batch)
            if self._recorder is not None:
                self._recorder.drained(batch, now)
        batch.move(BatchState.IN_FLIGHT)
        batch.attempts += 1
        batch.last_sent_at = now
        self.batches[batch] = None

    # ------------------------------------------------------------ responses

    def on_stored(
        self,
        node: int,
        sent_at: float,
        now: float,
        batch: ProducerBatch,
        stored: Stored,
        raises: bool = False,
    ) -> None:
        """Handle a successful response to a request with one batch.

        Arguments: raises: raise an exception to the caller, who then calls restore_stored(), and
        leave callbacks to a later turn.
        """
        self.requests[node] -= 1
        self.batches.pop(batch, None)
        try:
            if self._recorder is not None:
                self._recorder.stored(node, now - sent_at, batch.record_count)
            if self._state.kind is ProducerKind.PLAIN and not batch.is_done:
                batch.succeed(*stored, not raises)
                self._accumulator.finish(batch)
            else:
                offset, append_time, start_offset = stored
                answer = PartitionProduceResponse(
                    index=batch.topic_partition.partition,
                    error_code=0,
                    base_offset=offset,
                    log_append_time_ms=append_time,
                    log_start_offset=start_offset,
                )
                verdict = self._state.on_produced(batch, answer)
                self._apply(batch, verdict, answer, now, not raises)
            if batch.calls and batch.is_done:
                self._loop.call_soon(batch.complete)
        except Exception as fault:
            if raises:
                raise
            self._not_understood(node, [batch], fault)
        if self._accumulator.has_work:
            self._poke()

    def restore_stored(self, node: int, batch: ProducerBatch, stored: Stored) -> None:
        """Complete on_stored() of the only request to a node after an exception in it."""
        self.requests[node] = 0
        self.batches.pop(batch, None)
        if batch.state is not BatchState.IN_FLIGHT:
            return  # recover() does the rest
        if self._state.restore(batch):
            now = self._loop.time()
            self.requests[node] = 1
            self.on_stored(node, now, now, batch, stored)
        else:
            batch.succeed(*stored)
            self._accumulator.finish(batch)

    def restore_sent(self, node: int, batch: ProducerBatch, now: float) -> None:
        """Complete launch() of the only request to a node after an exception in it."""
        self.requests[node] = 1
        if batch.state is BatchState.CLOSED:
            self.launch(batch, now)
        batch.attempts = batch.attempts or 1
        batch.last_sent_at = now
        self.batches[batch] = None

    def restore_lost(self, node: int, batch: ProducerBatch) -> None:
        """Queue a batch again whose request, the only one to a node, was interrupted."""
        self.requests[node] = 0
        self.batches.pop(batch, None)
        error = KafkaConnectionError('an exception was raised in the thread that sent it')
        self._take_none([batch], error, self._loop.time())

    def on_response(
        self,
        node: int,
        sent_at: float,
        request: ProduceRequest,
        batches: List[ProducerBatch],
        response: Optional[ProduceResponse],
        error: Optional[KafkaError],
    ) -> None:
        """Handle the response to a request; response and error are both None with acks=0."""
        self.requests[node] -= 1
        for batch in batches:
            self.batches.pop(batch, None)
        now = self._loop.time()
        try:
            if response is not None:
                self._take_response(request, batches, response, now)
                if self._recorder is not None:
                    self._recorder.answered(node, now - sent_at, response, batches)
            else:
                self._take_none(batches, error, now)
        except Exception as fault:
            self._not_understood(node, batches, fault)
        if self._accumulator.has_work:
            self._poke()

    def _not_understood(self, node: int, batches: List[ProducerBatch], fault: Exception) -> None:
        """Fail the batches of a response after an internal error of this package."""
        log.error('node=%s an answer was not understood', node, exc_info=fault)
        for batch in batches:
            if batch.state is BatchState.IN_FLIGHT:
                failure = KafkaError('its answer was not understood: %r' % fault)
                self._state.on_lost(batch, failure)  # its sequence number may be missing now
                self.give_up(batch, failure)
        self.recover()

    def _take_none(
        self, batches: Sequence[ProducerBatch], error: Optional[KafkaError], now: float
    ) -> None:
        for batch in batches:
            verdict = (
                self._state.on_lost(batch, error) if error else ProduceVerdict(ProduceAction.DONE)
            )
            self._apply(batch, verdict, None, now)

    def _take_response(
        self,
        request: ProduceRequest,
        batches: Sequence[ProducerBatch],
        response: ProduceResponse,
        now: float,
    ) -> None:
        answers = answers_of(request, response)
        for batch in batches:
            answer = answers.pop(batch.topic_partition, None)
            if answer is None:
                error = ProtocolError(
                    'the broker did not say what became of the records for %s' % batch.place
                )
                verdict = self._state.on_lost(batch, error)
            else:
                verdict = self._state.on_produced(batch, answer)
            self._apply(batch, verdict, answer, now)
            if answer is not None and answer.error_code:
                self._take_hint(batch, answer, response, now)
        for name, index in answers:
            log.warning('topic=%s partition=%s: an answer for no batch of the request', name, index)

    def _take_hint(
        self,
        batch: ProducerBatch,
        answer: PartitionProduceResponse,
        response: ProduceResponse,
        now: float,
    ) -> None:
        """Use the leader in an error response (KIP-951): the batch may be sent there at once."""
        leader = answer.current_leader
        if leader.leader_id >= 0 and self._pool.cluster.take_hint(
            *batch.topic_partition,  # type: ignore[arg-type]  # a str: send() takes no other
            leader.leader_id,
            leader.leader_epoch,
            response.node_endpoints,
        ):
            batch.not_before = now

    def _apply(
        self,
        batch: ProducerBatch,
        verdict: ProduceVerdict,
        answer: Optional[PartitionProduceResponse],
        now: float,
        tells: bool = True,
    ) -> None:
        """Carry out the verdict about a batch. Arguments: tells: as of ProducerBatch.succeed()."""
        if verdict.refresh_metadata:
            topic: Any = batch.topic_partition.topic  # a str: send() takes no other
            self._pool.want_topic(topic)
            self._pool.refresh()
        if batch.is_done or verdict.action is ProduceAction.IGNORE:
            self._accumulator.finish(batch)
        elif verdict.action is ProduceAction.DONE:
            if answer is None:
                batch.succeed()
            else:
                start_offset = answer.log_start_offset
                batch.succeed(verdict.base_offset, answer.log_append_time_ms, start_offset, tells)
            self._accumulator.finish(batch)
        elif verdict.action is ProduceAction.RETRY:
            self._retry(batch, verdict.error or KafkaError(), now)
        elif verdict.action is ProduceAction.SPLIT:
            self._split(batch)
        else:
            self.fail(batch, verdict.error or KafkaError(), verdict.record_errors)
            self._accumulator.finish(batch)

    def _retry(self, batch: ProducerBatch, error: KafkaError, now: float) -> None:
        settings = self._settings
        is_late = now >= batch.created_at + settings.delivery_timeout
        if batch.attempts > settings.retries or is_late:
            self.give_up(batch, self._too_late(batch, now, error) if is_late else error)
            return
        batch.last_error = error
        base, longest = settings.retry_backoff, settings.retry_backoff_max
        part = self._chance.uniform(0.8, 1.2)
        batch.not_before = now + backoff_seconds(base, longest, batch.attempts, part)
        batch.move(BatchState.CLOSED)
        self._accumulator.put_back(batch)
        if self._recorder is not None:
            self._recorder.retried(batch)
        log.debug('topic=%s partition=%s again: %s', *batch.topic_partition, error)

    def _split(self, batch: ProducerBatch) -> None:
        """Replace a batch that is too large by smaller ones."""
        limit = self._settings.batch_size
        if batch.was_split or batch.raw_size <= limit:
            limit = batch.raw_size // 2
        pieces = batch.split(limit)
        self._replace(batch, pieces)
        log.debug('topic=%s partition=%s: split into %d', *batch.topic_partition, len(pieces))

    def _replace(self, batch: ProducerBatch, pieces: List[ProducerBatch]) -> None:
        """Replace a batch by its pieces, which take its sequence numbers; may be repeated."""
        self._state.on_split(batch, pieces)
        self._accumulator.replace(batch, pieces)

    # ------------------------------------------------------------ failures

    def give_up(self, batch: ProducerBatch, error: KafkaError) -> None:
        """Fail a batch that is not sent again; one in flight is kept until its response is due."""
        self._state.give_up(batch, error)
        self.fail(batch, error)
        if batch not in self.batches:
            self._accumulator.finish(batch)

    def fail(
        self,
        batch: ProducerBatch,
        error: KafkaError,
        record_errors: Optional[Mapping[int, Any]] = None,
    ) -> None:
        """Fail a batch; log the error if some of its records have no future."""
        if batch.is_unasked:
            log.error('%d records for %s were lost: %s', batch.record_count, batch.place, error)
        batch.fail(error, record_errors)
        if self._recorder is not None:
            self._recorder.failed(batch)

    def expire(self, now: float) -> None:
        """Fail the batches that have exceeded delivery_timeout_ms, waiting or in flight."""
        for batch in self._accumulator.expired(now):
            self.give_up(batch, self._too_late(batch, now))
        limit = self._settings.delivery_timeout
        for batch in self._accumulator.held:
            if not batch.is_done and now >= batch.created_at + limit:
                self.give_up(batch, self._too_late(batch, now))

    def _too_late(
        self, batch: ProducerBatch, now: float, last: Optional[KafkaError] = None
    ) -> KafkaTimeoutError:
        cause, why = self._reason(batch)
        if last is not None:
            cause, why = last, '; the last try: %s' % last
        error = KafkaTimeoutError(
            '%d records for %s were not acknowledged within %.3g s (delivery_timeout_ms); %s%s'
            % (
                batch.record_count,
                batch.place,
                now - batch.created_at,
                'they may be stored' if batch.attempts else 'they were never sent',
                why,
            )
        )
        error.__cause__ = cause
        return error

    def _reason(self, batch: ProducerBatch) -> Tuple[Optional[KafkaError], str]:
        """Return why a batch could not be sent, as an error (None if unknown) and as text."""
        cluster = self._pool.cluster
        topic: Any = batch.topic_partition.topic  # a str: send() takes no other
        leader = cluster.leader_for_partition(batch.topic_partition)
        if leader is not None and leader >= 0:
            unreachable = self.unreachable.get(leader)
            if unreachable is not None:
                return unreachable[0], '; ' + unreachable[1]
            error = batch.last_error
            return error, '' if error is None else '; the last try: %s' % error
        said = cluster.topic_errors.get(topic)
        if said is None and cluster.partitions_for_topic(topic) is None:
            return None, '; nothing is known of the topic'
        error = (said or LeaderNotAvailableError)('no leader for %s' % batch.place)
        return error, '; %s' % error

    def not_sent(self, batches: List[ProducerBatch], fault: Exception, now: float) -> None:
        """Queue batches again whose request was not sent because of an internal error."""
        lost = batches[:]
        batches.clear()  # a response that arrives all the same must not reach them
        for batch in lost:
            self.batches.pop(batch, None)
        # The others are not launched yet; recover() puts them back.
        launched = [batch for batch in lost if batch.state is BatchState.IN_FLIGHT]
        self._take_none(launched, KafkaConnectionError('a request was not sent: %r' % fault), now)

    def recover(self) -> None:
        """Queue again, or complete, the batches that were taken but unsent when the sender failed.

        Must be called in the same turn of the loop as the failure.
        """
        for batch in self._accumulator.held:
            if batch in self.batches:
                continue
            if batch.state is BatchState.CLOSED:
                self._state.restore(batch)
                if batch.base_sequence >= 0:  # it is numbered, and keeps its number
                    self._state.on_lost(batch, KafkaConnectionError('it was not sent'))
                self._accumulator.put_back(batch)
            elif batch.state in (BatchState.DONE, BatchState.FAILED):
                batch.complete()
                self._accumulator.finish(batch)
            elif batch.state is BatchState.SPLIT:
                self._replace(batch, [piece for _, piece in batch.pieces or ()])
