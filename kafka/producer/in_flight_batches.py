"""Batches that the sender has taken: numbered, encoded, on the wire; and what answers do with them.

Used by :mod:`kafka.producer.sender` and :mod:`kafka.producer.single_batch_path`, in turns of the
loop. What an error code means is decided by the *state* of the producer, which is
:mod:`kafka.producer.plain_state` or :mod:`kafka.producer.transaction_state`. The verdict is carried
out here: a batch succeeds, fails, is queued again after a back-off (KIP-580) or is split. Each
batch that the sender has taken gets an outcome, also after a fault of this package. Follows KIP-91
(delivery time-out) and KIP-951 (leader hints).
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
    """The batches of one producer that are on the wire or about to be.

    Arguments: loop, pool, accumulator: of the producer; state: which kind of producer it is;
    recorder: gets figures, see kafka.metrics.producer_metrics, or None; chance: for the jitter;
    poke: called when batches may go that could not before.

    Attributes: batches: on the wire, in the order in which they went; requests: how many are on the
    wire, by node; unreachable: why a node could not be connected last, and the text of that.
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

    # ------------------------------------------------------------ before they are sent

    def prepare(self, batch: ProducerBatch, magic: int, now: float) -> bool:
        """Number and encode a batch to be sent now; return False if that failed, as encode()."""
        self._state.stamp(batch)
        if not self.encode(batch, magic):
            return False
        self.launch(batch, now)
        return True

    def encode(self, batch: ProducerBatch, magic: int) -> bool:
        """Encode a numbered batch; return False if that failed, and the batch with it."""
        settings = self._settings
        try:
            batch.encode(magic, settings.codec, settings.compresslevel)
        except (KafkaError, TypeError, ValueError, NotImplementedError) as error:
            failure = error if isinstance(error, KafkaError) else ProtocolError(str(error))
            self._state.on_lost(batch, failure)  # its number is missing in the sequence now
            self.give_up(batch, failure)
            self._poke()  # for the batches after it
            return False
        return True

    def launch(self, batch: ProducerBatch, now: float) -> None:
        """Note that a batch goes on the wire."""
        if not batch.attempts:
            if self._settings.codec:
                self._accumulator.encoded(batch)
            if self._recorder is not None:
                self._recorder.drained(batch, now)
        batch.move(BatchState.IN_FLIGHT)
        batch.attempts += 1
        batch.last_sent_at = now
        self.batches[batch] = None

    # ------------------------------------------------------------ answers

    def on_stored(
        self, node: int, sent_at: float, now: float, batch: ProducerBatch, stored: Stored
    ) -> None:
        """Take the answer to a request with one batch, which says that it is stored."""
        self.requests[node] -= 1
        self.batches.pop(batch, None)
        try:
            if self._recorder is not None:
                self._recorder.stored(node, now - sent_at, batch.record_count)
            if self._state.kind is ProducerKind.PLAIN and not batch.is_done:
                batch.succeed(*stored)
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
                self._apply(batch, self._state.on_produced(batch, answer), answer, now)
        except Exception as fault:
            self._not_understood(node, [batch], fault)
        if self._accumulator.has_work:
            self._poke()

    def on_response(
        self,
        node: int,
        sent_at: float,
        request: ProduceRequest,
        batches: List[ProducerBatch],
        response: Optional[ProduceResponse],
        error: Optional[KafkaError],
    ) -> None:
        """Give batches their outcome; response and error are both None with acks=0."""
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
        """Fail the batches of an answer after a fault of this package."""
        log.error('node=%s an answer was not understood', node, exc_info=fault)
        for batch in batches:
            if batch.state is BatchState.IN_FLIGHT:
                failure = KafkaError('its answer was not understood: %r' % fault)
                self._state.on_lost(batch, failure)  # its number may be missing in the sequence now
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
            log.warning('topic=%s partition=%s: an answer about what was not sent', name, index)

    def _take_hint(
        self,
        batch: ProducerBatch,
        answer: PartitionProduceResponse,
        response: ProduceResponse,
        now: float,
    ) -> None:
        """Use the leader that an answer names (KIP-951): the batch may be sent there at once."""
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
    ) -> None:
        """Carry out the verdict about a batch."""
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
                batch.succeed(
                    verdict.base_offset, answer.log_append_time_ms, answer.log_start_offset
                )
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
        """Let the pieces of a batch take its numbers and its place; may be repeated."""
        self._state.on_split(batch, pieces)
        self._accumulator.replace(batch, pieces)

    # ------------------------------------------------------------ batches without success

    def give_up(self, batch: ProducerBatch, error: KafkaError) -> None:
        """Fail a batch that is not sent again; one on the wire is kept until its answer is due."""
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
        """Fail a batch; log the error where some of its records have no future."""
        if batch.is_unasked:
            log.error('%d records for %s were lost: %s', batch.record_count, batch.place, error)
        batch.fail(error, record_errors)
        if self._recorder is not None:
            self._recorder.failed(batch)

    def expire(self, now: float) -> None:
        """Fail batches whose delivery time-out has passed, waiting or on the wire."""
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
        """Return why a batch could not be sent, as far as is known, as an error and as text."""
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
        """Queue batches again whose request a fault of this package has prevented."""
        lost = batches[:]
        batches.clear()  # an answer that arrives all the same must not reach them
        for batch in lost:
            self.batches.pop(batch, None)
        # The others are only taken; recover() puts them back.
        launched = [batch for batch in lost if batch.state is BatchState.IN_FLIGHT]
        self._take_none(launched, KafkaConnectionError('a request was not sent: %r' % fault), now)

    def recover(self) -> None:
        """Queue again or complete batches that were taken but not sent when the sender failed.

        To be called in the turn of that failure.
        """
        for batch in self._accumulator.held:
            if batch in self.batches:
                continue
            if batch.state is BatchState.CLOSED:
                if batch.base_sequence >= 0:  # it has its number, and goes with that
                    self._state.on_lost(batch, KafkaConnectionError('it was not sent'))
                self._accumulator.put_back(batch)
            elif batch.state in (BatchState.DONE, BatchState.FAILED):
                batch.complete()
                self._accumulator.finish(batch)
            elif batch.state is BatchState.SPLIT:
                self._replace(batch, [piece for _, piece in batch.pieces or ()])
