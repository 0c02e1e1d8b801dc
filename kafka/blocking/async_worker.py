"""The background half of an asynchronous producer of 0.9.5: from its queue to the brokers.

Owns batching, retrying, giving up, and the count of what became of the messages. The thread it runs
in, the queue and the checks of what comes in are ``kafka.producer.base``'s. Nothing new is taken
from the queue while requests wait to be sent again, so that the messages of a partition keep their
order. The errors that 0.9.5 knew are treated as it did; those that came later by their own flags.
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

# In place of a topic and partition, the mark in the queue that nothing more will come.
STOP = -1

# The last error code that 0.9.5 gave a meaning to; what it did about those codes stays.
LAST_CODE_OF_09 = 16


class SendOptions(NamedTuple):
    """How an asynchronous producer sends; times in seconds but for ack_timeout (ms)."""

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
    """A request that is not delivered yet; how often it was resent, how many messages it has."""

    request: ProduceRequest
    tries: int
    number: int


class Tally:
    """What became of the messages of an asynchronous producer: three numbers that grow.

    delivered: messages that brokers acknowledged (req_acks=0: that were sent).
    resent: messages sent once more, as often as that was; brokers may hold them twice or more.
    lost: messages given up, with an error in the log each time.
    """

    __slots__ = ('delivered', 'ended_with', 'lost', 'resent')

    def __init__(self) -> None:
        self.delivered = self.resent = self.lost = 0
        # How many items were left in the queue when nothing would be taken from it any more.
        self.ended_with: Optional[int] = None

    def __repr__(self) -> str:
        return '<Tally delivered=%d resent=%d lost=%d>' % (self.delivered, self.resent, self.lost)


class Upstream:
    """Send what comes through a queue, until a stop is requested and everything is sent.

    Arguments: queue: of (TopicAndPartition, message, key); client: one of its own, not connected
    yet; stop_event: set to request a stop, as the mark in the queue does too; tally: where to count
    what became of the messages.
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
        """Work until a stop is requested and done, or stop_timeout seconds after it was noticed."""
        try:
            self._connect()
            self._work()
        finally:
            self._end()
            # Connections belong to the thread that uses them: no other can close these. A client
            # that a program brought along need not have any.
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
        """Count what is left, which stays in the queue; of later messages the sender is told."""
        with self.queue.mutex:  # with which the program counts messages that come late
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
                # The second asks every host: the known connections may all be to a broker that is
                # gone for good, while others serve.
                try:
                    attempt()
                    return
                except Exception as error:
                    log.warning('no connection yet: %s', error)
            self.stop_event.wait(self.backoff)

    def _batch(self) -> List[Tuple[Any, Any, Any]]:
        """Take up to batch_size items, or as many as come within batch_time seconds."""
        batch: List[Tuple[Any, Any, Any]] = []
        deadline = time.monotonic() + self.options.batch_time
        while len(batch) < self.options.batch_size:
            items = self._waiting(self.options.batch_size - len(batch))
            if not items:
                # Once a stop is requested there is nothing to wait for.
                left = 0 if self.stop_event.is_set() else deadline - time.monotonic()
                left = min(left, threading.TIMEOUT_MAX)  # a longer one is meant as never
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
        """Take up to so many items that are in the queue, all at once, if it can do that."""
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
                # What cannot be compressed cannot be compressed later: later messages go on.
                log.exception('%d messages for %r %r are lost', len(messages), topic, partition)
                self.tally.lost += len(messages)
                continue
            if isinstance(made, list):
                made = tuple(made)
            request = ProduceRequest(topic, partition, made)
            requests.append(Pending(request, 0, len(messages)))
        return requests

    def _deliver(self) -> None:
        """Send what is pending and keep what has to be sent again."""
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
        """Tell whether the messages may go through later.

        A code that 0.9.5 did not know, as that too few replicas are in sync, it took for final.
        """
        if isinstance(error, NotEnoughReplicasAfterAppendError):
            # The leader has the messages, as after a time-out: what holds there holds here.
            return self.options.retry.retry_on_timeouts
        if _is_later(error):
            return bool(getattr(error, 'retriable', False))
        return isinstance(error, self.retriable)

    def _prepare_retry(self, errors: List[Any], again: bool) -> None:
        """Pause and refresh the metadata as the errors demand; pause when it failed before."""
        if again or any(
            isinstance(error, RETRY_BACKOFF_ERROR_TYPES) or _is_later(error) for error in errors
        ):
            # Without a pause, the retries would be used up before a new leader can be known.
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
            # A partition without a leader, or a message that cannot be encoded, fails the call for
            # all of them: one by one the others get through.
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
        """Show a request in a log line, or only a number that its retries share."""
        if self.options.log_messages:
            return repr(request)
        return 'messages with hash %d for %r %r' % (
            hash(request.messages),
            request.topic,
            request.partition,
        )


def _is_later(error: Any) -> bool:
    """Tell whether an error carries a code that 0.9.5 did not know."""
    return isinstance(error, BrokerResponseError) and (error.errno or 0) > LAST_CODE_OF_09
