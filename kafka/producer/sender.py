"""The driver of a producer: from batches that are ready to produce requests, and from answers back.

Owns the look, whenever there is news, at which batches may go, and what is done with the answers.
It decides nothing about errors (:mod:`kafka.producer.produce_errors`), sequence numbers and
transactions (the producer's *state*: :mod:`kafka.producer.plain_state` or
:mod:`kafka.producer.transaction_state`), nor when a batch is ready (the accumulator); what a
request looks like is told in :mod:`kafka.producer.produce_request`; how a broker is reached is the
pool's. Everything here runs in turns of the loop.

For each broker there is one request with at most one batch of each partition at a time, and several
requests behind each other. Follows KIP-91 (delivery time-out), KIP-580 (back-off), KIP-951 (leader
hints).
"""

from __future__ import annotations

import logging
import random
from functools import partial
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from kafka.errors import (
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    LeaderNotAvailableError,
    ProtocolError,
    PurgedError,
    UnknownBrokerIdError,
    UnsupportedVersionError,
)
from kafka.net.attempts import unreachable_text
from kafka.net.link_parts import backoff_seconds
from kafka.net.loop.tasks import Alarm, Task
from kafka.producer.in_flight_batches import Unanswered
from kafka.producer.produce_errors import Action, Verdict
from kafka.producer.produce_request import (
    ProduceVersions,
    SenderSettings,
    answers_of,
    magic_of,
    produce_request,
)
from kafka.producer.producer_batch import ProducerBatch, State
from kafka.producer.record_accumulator import Plan, RecordAccumulator
from kafka.producer.single_batch_path import Alone
from kafka.producer.stalls import Stalls
from kafka.producer.topic_queue import PartitionQueue
from kafka.protocol.produce import PartitionProduceResponse, ProduceRequest, ProduceResponse
from kafka.protocol.wire import ZERO_UUID

log = logging.getLogger(__name__)

# How long the sender pauses after a mistake of its own, in seconds.
_PAUSE_AFTER_FAULT = 0.1
_NEVER_SENT = 'purge() dropped them before they were sent'
_MAYBE_STORED = 'purge() gave them up when they had been sent; they may be stored'


class Sender(Alone, Unanswered):
    """Sends what an accumulator collects.

    Arguments: loop, pool: of the producer; state: which kind of producer it is; recorder: gets
    figures, see kafka.metrics.producer_metrics, or None; chance: for the jitter.
    """

    def __init__(
        self,
        loop: Any,
        pool: Any,
        accumulator: RecordAccumulator,
        state: Any,
        settings: SenderSettings,
        recorder: Any = None,
        chance: Optional[random.Random] = None,
    ) -> None:
        self._loop = loop
        self._pool = pool
        self._accumulator = accumulator
        self._state = state
        self._settings = settings
        self._recorder = recorder
        self._chance = chance or random.Random()
        self._is_poked = False
        self._alarm = Alarm(loop, self.poke)  # one does for many pauses
        # Requests on the wire, by node.
        self._requests: Dict[int, int] = {}
        self._unanswered = {}
        # Nodes to which a connection is being made.
        self._connecting: Dict[int, Task[Any]] = {}
        # Why a node could not be connected last, and the text of that.
        self._unreachable: Dict[int, Tuple[KafkaError, str]] = {}
        # Batches on the wire, in the order in which they went.
        self._on_wire: Dict[ProducerBatch, None] = {}
        self._stalls = Stalls(settings.availability_timeout)
        self._slow: FrozenSet[int] = frozenset()
        self._versions = ProduceVersions()
        # Where the round of a node's partitions begins next.
        self._turns: Dict[int, int] = {}

    def __repr__(self) -> str:
        return '<Sender %d batches on the wire, in %d requests>' % (
            len(self._on_wire),
            sum(self._requests.values()),
        )

    @property
    def in_flight(self) -> int:
        """How many requests wait for their answers."""
        return sum(self._requests.values())

    # ------------------------------------------------------------ when it looks

    def start(self) -> None:
        """Begin to send; in a turn of the loop."""
        self._pool.cluster.add_listener(self._on_metadata)
        self.poke()

    def poke(self) -> None:
        """Let the sender look again soon; in a turn of the loop."""
        if not self._is_poked:
            self._is_poked = True
            self._loop.call_soon(self.look)

    def _on_metadata(self, cluster: Any) -> None:
        """Look again: what had no leader may have one now."""
        self.poke()

    def look(self) -> None:
        """Send what may be sent, and see to it that somebody looks again in time."""
        self._is_poked = False
        try:
            next_at = self._look(self._loop.time())
        except Exception:
            # A mistake here must not end all sending: batches would only time out.
            log.exception('the sender failed and goes on')
            self._recover()
            next_at = self._loop.time() + _PAUSE_AFTER_FAULT
        if next_at is not None:
            self._alarm.set(next_at)

    def _look(self, now: float) -> Optional[float]:
        """Send what may be sent; return when to look again, None: when poked."""
        self._drop_unsent()
        cluster = self._pool.cluster
        plan: Plan = self._accumulator.ready(now, cluster.leader_for_partition)
        if plan.is_late:
            self._expire(now)
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

    def _recover(self) -> None:
        """Requeue or complete batches that were taken but not sent when the sender failed.

        Call it in the turn of that failure.
        """
        for batch in self._accumulator.held:
            if batch in self._on_wire:
                continue
            if batch.state is State.CLOSED:
                if batch.base_sequence >= 0:  # it has its number, and goes with that
                    self._state.on_lost(batch, KafkaConnectionError('it was not sent'))
                self._accumulator.put_back(batch)
            elif batch.state in (State.DONE, State.FAILED):
                batch.complete()
                self._accumulator.finish(batch)
            elif batch.state is State.SPLIT:
                self._replace(batch, [piece for _, piece in batch.pieces or ()])

    def _avoid_slow(self, plan: Plan, now: float) -> Optional[float]:
        """Let records without key go where brokers take them; return when to look again."""
        slow, ask_at = self._stalls.slow(plan.by_node, now)
        if slow or self._slow:
            self._slow = slow
            self._accumulator.avoid(slow, self._pool.cluster.leader_for_partition)
        return ask_at

    def _drop_unsent(self) -> None:
        """Fail what a transaction that is over leaves behind."""
        error = self._state.take_unsent_error()
        if error is None:
            return
        for batch in self._accumulator.remove_waiting(self._state.may_drop):
            self._give_up(batch, error)

    def _give_up(self, batch: ProducerBatch, error: KafkaError) -> None:
        self._state.give_up(batch, error)
        self._fail(batch, error)
        if batch not in self._on_wire:
            self._accumulator.finish(batch)

    def _fail(
        self,
        batch: ProducerBatch,
        error: KafkaError,
        record_errors: Optional[Mapping[int, Any]] = None,
    ) -> None:
        """Tell the futures of a batch, and the log where some records have none."""
        if batch.is_unasked:
            log.error('%d records for %s were lost: %s', batch.record_count, batch.place, error)
        batch.fail(error, record_errors)
        if self._recorder is not None:
            self._recorder.failed(batch)

    def _expire(self, now: float) -> None:
        """Fail batches whose time is over, here or on the wire."""
        for batch in self._accumulator.expired(now):
            self._give_up(batch, self._too_late(batch, now))
        limit = self._settings.delivery_timeout
        for batch in self._accumulator.held:
            if not batch.is_done and now >= batch.created_at + limit:
                self._give_up(batch, self._too_late(batch, now))

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
        cluster, topic = self._pool.cluster, batch.topic_partition.topic
        leader = cluster.leader_for_partition(batch.topic_partition)
        if leader is not None and leader >= 0:
            unreachable = self._unreachable.get(leader)
            if unreachable is not None:
                return unreachable[0], '; ' + unreachable[1]
            error = batch.last_error
            return error, '' if error is None else '; the last try: %s' % error
        said = cluster.topic_errors.get(topic)
        if said is None and cluster.partitions_for_topic(topic) is None:
            return None, '; nothing is known of the topic'
        error = (said or LeaderNotAvailableError)('no leader for %s' % batch.place)
        return error, '; %s' % error

    def purge(self, in_queue: bool, in_flight: bool) -> None:
        """Give up what was never sent or waits to be sent again, what is on the wire, or both.

        In a turn of the loop. What was sent before counts as after the end of its time.
        """
        batches: List[ProducerBatch] = []
        if in_queue:
            for topic, count in self._accumulator.drop_boxes():
                error = PurgedError('%d records for %s: %s' % (count, topic.topic, _NEVER_SENT))
                self._state.refuse(error)
                log.error('%s', error)
            batches += self._accumulator.remove_waiting(lambda batch: True)
        if in_flight:
            batches += self._on_wire
        for batch in sorted(batches, key=lambda batch: batch.number):
            if not batch.is_done:
                fate = _MAYBE_STORED if batch.attempts else _NEVER_SENT
                text = '%d records for %s: %s' % (batch.record_count, batch.place, fate)
                self._give_up(batch, PurgedError(text))
        self.poke()

    def abort(self, error: KafkaError) -> int:
        """Fail everything that has no outcome; return how many records that are.

        To be called when no turns are run any more.
        """
        accumulator = self._accumulator
        accumulator.remove_waiting(lambda batch: True)  # which closes them
        lost = 0
        for batch in accumulator.incomplete:
            if not batch.is_done:
                self._fail(batch, error)
                lost += batch.record_count
            accumulator.finish(batch)
        for topic, count in self._accumulator.drop_boxes():
            log.error('%d records for %s were lost: %s', count, topic.topic, error)
            lost += count
        return lost

    # ------------------------------------------------------------ one broker

    def _serve(self, node: int, queues: List[PartitionQueue], now: float) -> None:
        """Send requests to a broker as long as it may have more."""
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
        while queues and self._requests.get(node, 0) < self._settings.max_in_flight:
            wanted, have_ids = self._state.produce_versions, self._have_ids(queues)
            try:
                version = self._versions.choose(node, versions.ranges, wanted, have_ids)
            except UnsupportedVersionError as error:
                self._refuse(queues, error)
                return
            batches: List[ProducerBatch] = []
            try:
                self._fill(node, queues, version, now, batches)
                self._stalls.moved(node)  # or it is not the broker that keeps them
                if not batches:
                    return
                request = produce_request(
                    batches, version, self._settings, self._state.transactional_id, topic_id
                )
                self._deliver(node, link, request, version, batches)
            except Exception as fault:
                self._not_sent(batches, fault, now)
                raise

    def _have_ids(self, queues: Sequence[PartitionQueue]) -> bool:
        topic_id = self._pool.cluster.topic_id
        for queue in queues:
            if topic_id(queue.topic_partition.topic) == ZERO_UUID:
                return False
        return True

    def _refuse(self, queues: Sequence[PartitionQueue], error: KafkaError) -> None:
        """Fail what a broker cannot be sent at all."""
        places = {queue.topic_partition for queue in queues}
        for batch in self._accumulator.remove_waiting(lambda b: b.topic_partition in places):
            self._give_up(batch, error)

    async def _connect(self, node: int, link: Any) -> None:
        try:
            await link.ready()
        except KafkaError as error:
            log.debug('node=%s cannot be reached: %s', node, error)
            self._unreachable[node] = error, unreachable_text(node, link.attempts, error)
            self._pool.refresh()
        else:
            self._unreachable.pop(node, None)
        finally:
            del self._connecting[node]
            self.poke()

    def _not_sent(self, batches: List[ProducerBatch], fault: Exception, now: float) -> None:
        """See to it that batches are sent again that a mistake of our own has kept back."""
        lost = batches[:]
        batches.clear()  # an answer that comes all the same is not for them
        for batch in lost:
            self._on_wire.pop(batch, None)
        # The others are only taken, and put back by _recover().
        launched = [batch for batch in lost if batch.state is State.IN_FLIGHT]
        self._take_none(launched, KafkaConnectionError('a request was not sent: %r' % fault), now)

    def _fill(
        self,
        node: int,
        queues: List[PartitionQueue],
        version: int,
        now: float,
        taken: List[ProducerBatch],
    ) -> None:
        """Take the next batch of each queue, as many as fit into a request, encoded.

        Queues that have no more are removed from the list. Arguments: taken: gets the batches.
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
            if taken_batch is None:  # another thread kept the lock, which wakes nobody
                self.poke()
                continue
            taken.append(taken_batch)  # before it is prepared: that may fail in the middle
            if self._prepare(taken_batch, magic, now):
                room -= taken_batch.size
            else:
                taken.pop()
            if queue.waiting and not queue.muted:
                left.append(queue)
        self._turns[node] = first + 1
        queues[:] = left

    def _prepare(self, batch: ProducerBatch, magic: int, now: float) -> bool:
        """Number and encode a batch that is sent now; False if it can't be, when it has failed."""
        self._state.stamp(batch)
        if not self._encode(batch, magic):
            return False
        self._launch(batch, now)
        return True

    def _encode(self, batch: ProducerBatch, magic: int) -> bool:
        """Encode a batch that is numbered; False if it can't be, when it has failed."""
        settings = self._settings
        try:
            batch.encode(magic, settings.codec, settings.compresslevel)
        except (KafkaError, TypeError, ValueError, NotImplementedError) as error:
            failure = error if isinstance(error, KafkaError) else ProtocolError(str(error))
            self._state.on_lost(batch, failure)  # it has a number, which is missing now
            self._give_up(batch, failure)
            self.poke()  # for those behind it
            return False
        return True

    def _launch(self, batch: ProducerBatch, now: float) -> None:
        """Note that a batch goes on the wire."""
        if not batch.attempts:
            if self._settings.codec:
                self._accumulator.encoded(batch)
            if self._recorder is not None:
                self._recorder.drained(batch, now)
        batch.move(State.IN_FLIGHT)
        batch.attempts += 1
        batch.last_sent_at = now
        self._on_wire[batch] = None

    # ------------------------------------------------------------ one request

    def _deliver(
        self,
        node: int,
        link: Any,
        request: ProduceRequest,
        version: int,
        batches: List[ProducerBatch],
    ) -> None:
        """Send a request; each of its batches is told what became of it."""
        answered = partial(self._answered, node, self._loop.time(), request, batches)
        self._requests[node] = self._requests.get(node, 0) + 1
        if self._settings.acks:
            link.submit(request, answered, self._settings.request_timeout, version)
        else:
            last = batches[-1].topic_partition
            self._loop.spawn(self._send_unanswered(node, link, request, version, last, answered))

    def _answered(
        self,
        node: int,
        sent_at: float,
        request: ProduceRequest,
        batches: List[ProducerBatch],
        response: Optional[ProduceResponse],
        error: Optional[KafkaError],
    ) -> None:
        """Tell batches what became of them: response and error are None when nobody answers."""
        self._requests[node] -= 1
        for batch in batches:
            self._on_wire.pop(batch, None)
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
            self.poke()

    def _not_understood(self, node: int, batches: List[ProducerBatch], fault: Exception) -> None:
        """See to it that a mistake of our own leaves no batch without an outcome."""
        log.error('node=%s an answer was not understood', node, exc_info=fault)
        for batch in batches:
            if batch.state is State.IN_FLIGHT:
                failure = KafkaError('its answer was not understood: %r' % fault)
                self._state.on_lost(batch, failure)  # its number may be missing now
                self._give_up(batch, failure)
        self._recover()

    def _take_none(
        self, batches: Sequence[ProducerBatch], error: Optional[KafkaError], now: float
    ) -> None:
        for batch in batches:
            verdict = self._state.on_lost(batch, error) if error else Verdict(Action.DONE)
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
        """Believe a broker who leads instead of it (KIP-951); the batch may go there at once."""
        leader = answer.current_leader
        if leader.leader_id >= 0 and self._pool.cluster.take_hint(
            *batch.topic_partition,
            leader.leader_id,
            leader.leader_epoch,
            response.node_endpoints,
        ):
            batch.not_before = now

    def _apply(
        self,
        batch: ProducerBatch,
        verdict: Verdict,
        answer: Optional[PartitionProduceResponse],
        now: float,
    ) -> None:
        """Do with a batch what the verdict says."""
        if verdict.refresh_metadata:
            self._pool.want_topic(batch.topic_partition.topic)
            self._pool.refresh()
        if batch.is_done or verdict.action is Action.IGNORE:
            self._accumulator.finish(batch)
        elif verdict.action is Action.DONE:
            if answer is None:
                batch.succeed()
            else:
                batch.succeed(
                    verdict.base_offset, answer.log_append_time_ms, answer.log_start_offset
                )
            self._accumulator.finish(batch)
        elif verdict.action is Action.RETRY:
            self._retry(batch, verdict.error or KafkaError(), now)
        elif verdict.action is Action.SPLIT:
            self._split(batch)
        else:
            self._fail(batch, verdict.error or KafkaError(), verdict.record_errors)
            self._accumulator.finish(batch)

    def _retry(self, batch: ProducerBatch, error: KafkaError, now: float) -> None:
        settings = self._settings
        is_late = now >= batch.created_at + settings.delivery_timeout
        if batch.attempts > settings.retries or is_late:
            self._give_up(batch, self._too_late(batch, now, error) if is_late else error)
            return
        batch.last_error = error
        base, longest = settings.retry_backoff, settings.retry_backoff_max
        part = self._chance.uniform(0.8, 1.2)
        batch.not_before = now + backoff_seconds(base, longest, batch.attempts, part)
        batch.move(State.CLOSED)
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
        """Let the pieces of a batch take its numbers and its place; may be called again."""
        self._state.on_split(batch, pieces)
        self._accumulator.replace(batch, pieces)
