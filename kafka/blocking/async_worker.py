"""Background half of an asynchronous producer of 0.9.5: sends queued messages to the brokers.

``kafka.producer.base`` provides the thread that runs it, the queue, and the checks of the messages.
Batches, retries, gives up, and counts delivered, resent and lost messages. Takes no new messages
from the queue while requests wait to be resent, so that the messages of a partition keep their
order. Errors known to 0.9.5 are treated as in 0.9.5, later ones by their own ``retriable`` and
``refresh_metadata``.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Tuple

from kafka.blocking.message_queue import Empty, MessageQueue
from kafka.blocking.message_set import message_set
from kafka.errors import (
    RETRY_BACKOFF_ERROR_TYPES,
    RETRY_ERROR_TYPES,
    RETRY_REFRESH_ERROR_TYPES,
    BrokerResponseError,
    FailedPayloadsError,
    NotEnoughReplicasAfterAppendError,
    RequestTimedOutError,
    error_for_code,
)
from kafka.protocol import create_message_set
from kafka.structs import ProduceRequest, RetryOptions, TopicAndPartition

if TYPE_CHECKING:
    from kafka.blocking.base_client import BlockingClient

log = logging.getLogger('kafka.producer')

# In place of a topic and partition in a queue item: no more messages follow.
STOP = -1

# The highest error code known to 0.9.5; up to it, errors are treated as in 0.9.5.
LAST_CODE_OF_09 = 16


class SendOptions(NamedTuple):
    """How an asynchronous producer sends; times in seconds, ack_timeout in milliseconds."""

    codec: int
    codec_compresslevel: Optional[int]
    batch_time: float
    batch_size: int
    req_acks: int
    ack_timeout: int
    retry: RetryOptions
    log_messages: bool
    stop_timeout: float


class Pending(NamedTuple):
    """A request that is not delivered yet, the number of its retries and of its messages."""

    request: ProduceRequest
    tries: int
    number: int


class Tally:
    """Counts of delivered, resent and lost messages of an asynchronous producer; they only grow.

    delivered: messages that brokers acknowledged (with req_acks=0: that were sent).
    resent: messages sent again, counted once per retry; brokers may hold duplicates of them.
    lost: messages given up, each time with an error in the log.
    """

    __slots__ = ('delivered', 'ended_with', 'lost', 'resent')

    def __init__(self) -> None:
        self.delivered = self.resent = self.lost = 0
        # The number of items left in the queue when the worker stopped taking from it.
        self.ended_with: Optional[int] = None

    def __repr__(self) -> str:
        return '<Tally delivered=%d resent=%d lost=%d>' % (self.delivered, self.resent, self.lost)


class Upstream:
    """Send the messages of a queue until a stop is requested and everything is sent.

    Arguments: queue: of (TopicAndPartition, message, key); client: a client of its own, not
    connected yet; stop_event: set to request a stop, as the mark STOP in the queue does too; tally:
    where delivered, resent and lost messages are counted.
    """

    def __init__(
        self,
        queue: Any,
        client: BlockingClient,
        stop_event: Any,
        options: SendOptions,
        tally: Tally,
    ) -> None:
        self.queue = queue
        self.client = client
        self.stop_event = stop_event
        self.options = options
        self.tally = tally
        self.backoff = options.retry.backoff_ms / 1000.0
        retriable = RETRY_ERROR_TYPES
        if options.retry.retry_on_timeouts:
            retriable += (RequestTimedOutError,)
        self.retriable = retriable
        self.pending: List[Pending] = []

    def run(self) -> None:
        """Send until a stop is requested and done, or stop_timeout seconds after it was noticed."""
        try:
            self._connect()
            self._work()
        finally:
            self._end()
            # Connections belong to the thread that uses them: no other thread can close these. A
            # client that the program passed in need not have close().
            close = getattr(self.client, 'close', None)
            if close is not None:
                close()

    def _work(self) -> None:
        give_up_at: Optional[float] = None
        while True:
            if self.stop_event.is_set():
                if not self.pending and self.queue.empty():
                    return
                now = time.monotonic()
                if give_up_at is None:
                    give_up_at = now + self.options.stop_timeout
                elif now >= give_up_at:
                    return
            if not self.pending:
                self.pending = self._requests(self._batch())
            if self.pending:
                self._deliver()

    def _end(self) -> None:
        """Count the unsent messages as lost; the items stay in the queue.

        A thread that puts a message later finds `ended_with` set, and raises.
        """
        with self.queue.mutex:  # the program counts late messages under the same lock
            left = list(self.queue.queue)
            self.tally.ended_with = len(left)
            queued = sum(item[0] != STOP for item in left)
            self.tally.lost += queued + sum(pending.number for pending in self.pending)
        if not self.pending and not queued:
            return
        for pending in self.pending:
            log.error('lost at the end: %s', self._shown(pending.request))
        log.error(
            'stopped before everything was sent: %d requests and %d queued messages are lost, '
            '%d messages in all',
            len(self.pending),
            queued,
            self.tally.lost,
        )

    def _connect(self) -> None:
        while not self.stop_event.is_set():
            for attempt in (self.client.reinit, self.client.load_metadata_for_topics):
                # load_metadata_for_topics() asks every host: the known connections may all be to a
                # broker that is gone permanently, while others serve.
                try:
                    attempt()
                    return
                except Exception as error:
                    log.warning('no connection yet: %s', error)
            self.stop_event.wait(self.backoff)

    def _batch(self) -> List[Tuple[Any, Any, Any]]:
        """Take up to batch_size items from the queue, or those that arrive within batch_time s."""
        batch: List[Tuple[Any, Any, Any]] = []
        deadline = time.monotonic() + self.options.batch_time
        while len(batch) < self.options.batch_size:
            items = self._waiting(self.options.batch_size - len(batch))
            if not items:
                # Once a stop is requested, do not wait for more messages.
                left = 0 if self.stop_event.is_set() else deadline - time.monotonic()
                left = min(left, threading.TIMEOUT_MAX)  # a longer time means "forever"
                try:
                    items = [self.queue.get(timeout=left) if left > 0 else self.queue.get_nowait()]
                except Empty:
                    break
            if items[-1][0] == STOP:
                batch += items[:-1]
                self.stop_event.set()
                break
            batch += items
        return batch

    def _waiting(self, most: int) -> List[Tuple[Any, Any, Any]]:
        """Take up to `most` items that are already queued, under one lock; [] for other queues."""
        return self.queue.take(most, STOP) if isinstance(self.queue, MessageQueue) else []

    def _requests(self, batch: List[Tuple[Any, Any, Any]]) -> List[Pending]:
        """Return one request per partition, its messages in the order of the queue."""
        grouped: Dict[TopicAndPartition, List[Any]] = {}
        for target, message, key in batch:
            grouped.setdefault(target, []).append((message, key))
        requests = []
        for (topic, partition), messages in grouped.items():
            values, keys = zip(*messages)
            try:
                made = message_set(
                    create_message_set,
                    self.client,
                    values,
                    keys,
                    self.options.codec,
                    None,
                    self.options.codec_compresslevel,
                )
            except Exception:
                # Compression would fail again: give these up, so that later messages are sent.
                log.exception('%d messages for %r %r are lost', len(messages), topic, partition)
                self.tally.lost += len(messages)
                continue
            if isinstance(made, list):
                made = tuple(made)
            request = ProduceRequest(topic, partition, made)
            requests.append(Pending(request, 0, len(messages)))
        return requests

    def _deliver(self) -> None:
        """Send the pending requests and keep those that have to be resent."""
        failed = self._send([pending.request for pending in self.pending])
        retried, errors = [], []
        for pending in self.pending:
            error = failed.get(pending.request[:2])
            if error is None:
                self.tally.delivered += pending.number
                continue
            log.warning('failed: %s: %s', self._shown(pending.request), error)
            if not self._is_retriable(error):
                self._lose(pending, 'lost')
                continue
            errors.append(error)
            retried.append(pending)
        if retried:
            self._prepare_retry(errors, any(pending.tries for pending in retried))
        limit = self.options.retry.limit
        self.pending = []
        for pending in retried:
            if limit is None or pending.tries < limit:
                self.pending.append(pending._replace(tries=pending.tries + 1))
                self.tally.resent += pending.number
            else:
                self._lose(pending, 'lost after %d retries' % pending.tries)

    def _lose(self, pending: Pending, how: str) -> None:
        """Count and log messages that are given up."""
        self.tally.lost += pending.number
        log.error('%s: %s', how, self._shown(pending.request))

    def _is_retriable(self, error: Exception) -> bool:
        """Return True if the messages may be delivered by a retry.

        Codes that 0.9.5 did not know, such as "not enough replicas", were final in 0.9.5; here
        their own `retriable` decides.
        """
        if isinstance(error, NotEnoughReplicasAfterAppendError):
            # The leader has appended the messages, as it may have after a time-out: same rule.
            return self.options.retry.retry_on_timeouts
        if _is_later(error):
            return bool(getattr(error, 'retriable', False))
        return isinstance(error, self.retriable)

    def _prepare_retry(self, errors: List[Any], again: bool) -> None:
        """Pause and refresh the metadata if the errors require it; `again`: always pause."""
        if again or any(
            isinstance(error, RETRY_BACKOFF_ERROR_TYPES) or _is_later(error) for error in errors
        ):
            # Without a pause, the retries would be used up before a new leader is known.
            time.sleep(self.backoff)
        if any(
            isinstance(error, RETRY_REFRESH_ERROR_TYPES)
            or (_is_later(error) and error.refresh_metadata)
            for error in errors
        ):
            try:
                self.client.load_metadata_for_topics()
            except Exception as error:
                log.warning('metadata could not be refreshed: %s', error)

    def _send(self, requests: List[ProduceRequest]) -> Dict[Any, Exception]:
        """Send requests in one call. Return {(topic, partition): error} of those that failed."""
        try:
            responses = self.client.send_produce_request(
                requests,
                acks=self.options.req_acks,
                timeout=self.options.ack_timeout,
                fail_on_error=False,
            )
        except Exception as error:
            # A partition without a leader, or a message that cannot be encoded, fails the whole
            # call: sent one by one, the other requests succeed.
            if len(requests) == 1:
                return {requests[0][:2]: error}
            failed: Dict[Any, Exception] = {}
            for request in requests:
                failed.update(self._send([request]))
            return failed
        return self._failures(requests, responses)

    @staticmethod
    def _failures(requests: List[ProduceRequest], responses: Any) -> Dict[Any, Exception]:
        """Return the errors among the responses, which come in the order of the requests."""
        failed: Dict[Any, Exception] = {}
        for request, response in zip(requests, responses):
            if isinstance(response, FailedPayloadsError) and isinstance(response.payload, tuple):
                failed[response.payload[:2]] = response
            elif isinstance(response, Exception):
                failed[request[:2]] = response
            elif response.error:
                failed[request[:2]] = error_for_code(response.error)(response)
        return failed

    def _shown(self, request: ProduceRequest) -> str:
        """Return a request as text for the log: in full, or as a number that its retries share."""
        if self.options.log_messages:
            return repr(request)
        return 'messages with hash %d for %r %r' % (
            hash(request.messages),
            request.topic,
            request.partition,
        )


def _is_later(error: Any) -> bool:
    """Return True if an error carries a code that 0.9.5 did not know."""
    return isinstance(error, BrokerResponseError) and (error.errno or 0) > LAST_CODE_OF_09
