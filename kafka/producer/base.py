"""Producer, the base class of the producers of 0.9.5: options, checks, one request per call.

The path from ``send_messages`` to ``client.send_produce_request``. Subclasses choose the partition
of a message, ``kafka.protocol`` encodes messages, and the client connects to brokers. Any object
with the public methods of the client can be used as client. In asynchronous mode one background
thread sends what is queued.
"""

from __future__ import annotations

import atexit
import functools
import logging
import math
import os
import sys
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

from kafka.blocking.async_worker import STOP, SendOptions, Tally, Upstream
from kafka.blocking.message_queue import End, Full, MessageQueue
from kafka.blocking.message_set import message_set
from kafka.errors import (
    AsyncProducerQueueFull,
    IllegalStateError,
    UnknownTopicOrPartitionError,
    UnsupportedCodecError,
)
from kafka.protocol import ALL_CODECS, CODEC_NONE, create_message_set
from kafka.structs import ProduceRequest, RetryOptions, TopicAndPartition
from kafka.util import check_number, load_topic, name_for, text_bytes, whole_ms, whole_number

if TYPE_CHECKING:
    from kafka.blocking.base_client import BlockingClient

log = logging.getLogger('kafka.producer')

BATCH_SEND_DEFAULT_INTERVAL = 20
BATCH_SEND_MSG_COUNT = 20
ASYNC_QUEUE_MAXSIZE = 0
ASYNC_QUEUE_PUT_TIMEOUT = 0
ASYNC_RETRY_LIMIT = None
ASYNC_RETRY_BACKOFF_MS = 100
ASYNC_RETRY_ON_TIMEOUTS = True
ASYNC_LOG_MESSAGES_ON_ERROR = True
STOP_ASYNC_PRODUCER = STOP
ASYNC_STOP_TIMEOUT_SECS = 30
SYNC_FAIL_ON_ERROR_DEFAULT = True

# The interval in which a waiting stop() lets signal handlers run.
STOP_WAIT_SECONDS = 0.5

# Held so that only one thread of a forked process restarts a producer.
_starting = threading.RLock()  # a finalizer may send while the thread is started


class Producer:
    """Send messages to a partition given by the caller (0.9.5); base of the other producers.

    Arguments:
        client: a KafkaClient, or any object with its public methods.
        req_acks: the number of replicas that must have a message: one of the ACK_ constants, or a
            number above 1 (brokers 0.8 only).
        ack_timeout: the time in ms that the broker may wait for them.
        codec: None or one of kafka.protocol.ALL_CODECS.
        codec_compresslevel: the gzip level; None means the best, 9.
        sync_fail_on_error: raise errors (True) or return them in the list of responses.
        async_send: send from a background thread; also accepted as ``async`` in expanded keywords.
        batch_send: accepted and ignored, as in 0.9.5.
        batch_send_every_n, batch_send_every_t: a batch is sent after this number of messages or
            seconds.
        async_retry_limit: how often a failed request is sent again; None for no limit.
        async_retry_backoff_ms: the pause before a retry.
        async_retry_on_timeouts: whether RequestTimedOutError is retried.
        async_queue_maxsize: the maximum number of queued messages; 0 for no limit.
        async_queue_put_timeout: seconds to wait for room in the queue.
        async_log_messages_on_error: log failed messages themselves, or only their hash().
        async_stop_timeout: the maximum number of seconds that stop() goes on sending.

    Raises: UnsupportedCodecError for an unknown codec; AssertionError for a batch or queue size
    below its minimum in asynchronous mode; ValueError for a negative async_retry_backoff_ms;
    TypeError, which names the option, for an unknown option and for one of a wrong type.

    In asynchronous mode a thread sends what send_messages puts into ``queue``, through a copy of
    the client. stop(), interpreter exit and garbage collection of the producer flush the queue and
    stop the thread. In a forked process the first message creates a new queue and starts a new
    thread; messages queued before the fork are sent by the parent only.

    Attributes: tally: in asynchronous mode, counters of messages: ``delivered``, ``resent`` and
    ``lost``. The other attributes are the arguments, or those of 0.9.5.
    """

    ACK_NOT_REQUIRED = 0
    ACK_AFTER_LOCAL_WRITE = 1
    ACK_AFTER_CLUSTER_COMMIT = -1
    DEFAULT_ACK_TIMEOUT = 1000

    # When to stop waiting for the thread: only garbage collection has a limit.
    _collected_until = math.inf

    def __init__(
        self,
        client: BlockingClient,
        req_acks: int = ACK_AFTER_LOCAL_WRITE,
        ack_timeout: int = DEFAULT_ACK_TIMEOUT,
        codec: Optional[int] = None,
        codec_compresslevel: Optional[int] = None,
        sync_fail_on_error: bool = SYNC_FAIL_ON_ERROR_DEFAULT,
        async_send: bool = False,
        batch_send: bool = False,
        batch_send_every_n: int = BATCH_SEND_MSG_COUNT,
        batch_send_every_t: float = BATCH_SEND_DEFAULT_INTERVAL,
        async_retry_limit: Optional[int] = ASYNC_RETRY_LIMIT,
        async_retry_backoff_ms: int = ASYNC_RETRY_BACKOFF_MS,
        async_retry_on_timeouts: bool = ASYNC_RETRY_ON_TIMEOUTS,
        async_queue_maxsize: int = ASYNC_QUEUE_MAXSIZE,
        async_queue_put_timeout: float = ASYNC_QUEUE_PUT_TIMEOUT,
        async_log_messages_on_error: bool = ASYNC_LOG_MESSAGES_ON_ERROR,
        async_stop_timeout: float = ASYNC_STOP_TIMEOUT_SECS,
        **kwargs: Any,
    ) -> None:
        if 'async' in kwargs:
            log.warning('the option async is deprecated, its name is async_send now')
            async_send = kwargs.pop('async')
        for name in kwargs:
            raise TypeError('%s has no option %r' % (type(self).__name__, name))
        self.client = client
        self.async_send = async_send
        # The name in 0.9.5, which is a keyword since Python 3.7.
        setattr(self, 'async', async_send)
        self.req_acks = whole_number(req_acks, 'req_acks')
        self.ack_timeout = whole_ms(ack_timeout, 'ack_timeout')
        self.codec = _known_codec(codec)
        self.codec_compresslevel = codec_compresslevel
        self.stopped = False
        if not async_send:
            self.sync_fail_on_error = sync_fail_on_error
            return
        _check_async_options(
            batch_send_every_n=batch_send_every_n,
            batch_send_every_t=batch_send_every_t,
            async_queue_maxsize=async_queue_maxsize,
            async_queue_put_timeout=async_queue_put_timeout,
            async_retry_limit=async_retry_limit,
            async_retry_backoff_ms=async_retry_backoff_ms,
            async_stop_timeout=async_stop_timeout,
        )
        self.async_queue_put_timeout = async_queue_put_timeout
        retry = RetryOptions(async_retry_limit, async_retry_backoff_ms, async_retry_on_timeouts)
        self._queue_maxsize = async_queue_maxsize
        self._send_options = (batch_send_every_t, batch_send_every_n, req_acks, ack_timeout, retry)
        self._end_options: Dict[str, Any] = {
            'log_messages_on_error': async_log_messages_on_error,
            'stop_timeout': async_stop_timeout,
            'codec_compresslevel': codec_compresslevel,
        }
        self._start()
        self._cleanup_func = _stop_unless_stopped
        self._exit_hook = functools.partial(_at_exit, weakref.ref(self))
        _call_at_exit(self._exit_hook)

    def _start(self) -> None:
        """Create the queue and start the thread that sends its messages."""
        self.queue: Any = MessageQueue(self._queue_maxsize)
        self.thread_stop_event = threading.Event()
        self.tally = Tally()
        self._process = os.getpid()
        self._ended = End(self.queue.mutex)
        arguments = (self.queue, self.client.copy(), self.codec, *self._send_options)
        send = functools.partial(
            _send_upstream,
            *arguments,
            self.thread_stop_event,
            **self._end_options,
            tally=self.tally,
        )
        self.thread = threading.Thread(
            target=_run, args=(send, self._ended), name='kafka producer', daemon=True
        )
        self.thread.start()

    def _start_here(self) -> None:
        """Start again in a forked process, where the thread of the parent does not exist."""
        with _starting:
            if self._process != os.getpid() and not self.stopped:
                self._start()
                _call_at_exit(self._exit_hook)

    def __repr__(self) -> str:
        return '<%s batch=%s>' % (type(self).__name__, self.async_send)

    def send_messages(self, topic: Any, partition: int, *msg: Optional[bytes]) -> List[Any]:
        """Send messages without keys to one partition, in one request.

        Arguments: topic: str or bytes; partition: int; msg: bytes each, or str in text mode
        (kafka.util.set_text_mode).
        Returns: what client.send_produce_request returned, a list with one ProduceResponse; an
        empty list in asynchronous mode, with req_acks=0, and without messages.
        Raises: TypeError, which names the argument of a wrong type, before anything is sent; with
        sync_fail_on_error any KafkaError that the broker or the connection reports; in asynchronous
        mode AsyncProducerQueueFull if the queue is full, with the messages that were not queued,
        and IllegalStateError after stop().
        """
        return self._send_messages(topic, partition, *msg)

    def _send_messages(
        self, topic: Any, partition: int, *msg: Optional[bytes], key: Optional[bytes] = None
    ) -> List[Any]:
        """Check the arguments, then send messages that share a key; otherwise as send_messages."""
        topic = name_for(self.client, topic)
        msg, key = self._as_bytes(msg, key)
        return self._send_checked(topic, whole_number(partition, 'partition'), msg, key)

    def _send_checked(
        self, topic: Any, partition: int, msg: Any, key: Optional[bytes]
    ) -> List[Any]:
        """Send messages whose arguments were checked; otherwise as send_messages."""
        if self.async_send:
            self._enqueue(TopicAndPartition(topic, partition), msg, key)
            return []
        return self._send_now(topic, partition, msg, key) if msg else []

    def _enqueue(self, target: TopicAndPartition, msg: Any, key: Optional[bytes]) -> None:
        if self._process != os.getpid():
            self._start_here()
        if self.thread_stop_event.is_set():
            raise IllegalStateError('the producer is stopped')
        timeout = min(self.async_queue_put_timeout, threading.TIMEOUT_MAX)
        items = [(target, m, key) for m in msg]
        queued = self.queue.put_all(items) if isinstance(self.queue, MessageQueue) else 0
        for number in range(queued, len(items)):
            try:
                # With a timeout of 0, an error at once.
                self.queue.put(items[number], timeout > 0, timeout if timeout > 0 else None)
            except Full:
                raise AsyncProducerQueueFull(
                    msg[number:],
                    'the queue is full: %d messages wait, %d were not queued'
                    % (self.queue.qsize(), len(msg) - number),
                ) from None
        if self.tally.ended_with is not None:
            self._take_back(self.tally.ended_with)

    def _take_back(self, end: int) -> None:
        """Remove and report the messages that were queued after the thread had ended.

        Sequence: a program checks ``thread_stop_event``; another thread stops the producer, and
        everything is sent; the program queues its message. Or the thread has died.
        """
        with self.queue.mutex:
            waiting = self.queue.queue
            taken = [waiting.pop() for _ in range(len(waiting) - end)]
            late = sum(item[0] != STOP for item in taken)
            self.tally.lost += late
        if late:
            log.error('%d messages came when the producer had stopped: they are lost', late)
        if taken or end:  # else the thread sent it before it ended
            raise IllegalStateError('the producer has stopped meanwhile')

    def _send_now(self, topic: Any, partition: int, msg: Any, key: Optional[bytes]) -> List[Any]:
        messages = message_set(
            create_message_set,
            self.client,
            msg,
            [key] * len(msg),
            self.codec,
            key,
            self.codec_compresslevel,
        )
        request = ProduceRequest(topic, partition, messages)
        try:
            responses: List[Any] = self.client.send_produce_request(
                [request],
                acks=self.req_acks,
                timeout=self.ack_timeout,
                fail_on_error=self.sync_fail_on_error,
            )
        except Exception:
            log.exception('could not send %d messages to %r %r', len(msg), topic, partition)
            raise
        return responses

    @staticmethod
    def _as_bytes(msg: Any, key: Any) -> Tuple[Any, Optional[bytes]]:
        """Return messages and key unchanged, except that a str is encoded in text mode.

        Raises: TypeError unless messages are bytes (or None with a key), the key bytes or None.
        """
        if key is not None and not isinstance(key, bytes):
            key = _bytes_of(key, 'key', 'bytes or None')
        if set(map(type, msg)) == {bytes}:  # faster than isinstance(): benchmarks/simple.py
            return msg, key
        allowed = bytes if key is None else (bytes, type(None))
        if all(isinstance(m, allowed) for m in msg):
            return msg, key
        encoded = [
            m if isinstance(m, allowed) else _bytes_of(m, 'msg %d' % number, 'bytes')
            for number, m in enumerate(msg, 1)
        ]
        return tuple(encoded), key

    def _partitions_of(self, topic: Any) -> List[int]:
        """Return the sorted partition ids of a topic; load its metadata if they are unknown.

        Raises: UnknownTopicOrPartitionError or LeaderNotAvailableError as the client reports them;
        the former also for a topic without partitions.
        """
        if not self.client.has_metadata_for_topic(topic):
            self._load_topic(topic)
        partitions = sorted(self.client.get_partition_ids_for_topic(topic))
        if not partitions:
            raise UnknownTopicOrPartitionError('topic %r has no partitions' % (topic,))
        return partitions

    def _load_topic(self, topic: Any) -> None:
        """Load the metadata of an unknown topic."""
        load_topic(self.client, topic)

    def stop(self, timeout: Optional[float] = None) -> None:
        """Stop the background thread once it has sent what is queued.

        In synchronous mode, and after an earlier stop(), this only logs a warning.
        Arguments: timeout: obsolete and ignored; async_stop_timeout bounds the wait, except that a
        request in flight may take the timeout of the client. Messages that are left then are
        logged, counted in ``tally.lost``, and remain in ``queue``.
        """
        if timeout is not None:
            log.warning('the timeout of stop() is ignored, async_stop_timeout bounds the wait')
        if not self.async_send:
            log.warning('producer.stop() has nothing to stop: %r is not asynchronous', self)
            return
        if self.stopped:
            log.warning('producer.stop() was called before')
            return
        if self._process != os.getpid() or sys.is_finalizing():
            # In a fork, thread and queue belong to the parent. At finalization threads do not run
            # any more: Ctrl-C ended the wait at exit, and now the producer is collected.
            self.thread_stop_event = threading.Event()
            self.thread_stop_event.set()
        else:
            self._stop_thread()
        atexit.unregister(self._exit_hook)
        self.stopped = True

    def _stop_thread(self) -> None:
        self.thread_stop_event.set()
        try:
            # A thread that waits for messages wakes up. With a full queue it does not wait.
            self.queue.put_nowait((STOP_ASYNC_PRODUCER, None, None))
        except Full:
            pass
        # The thread itself may collect the producer; it cannot join itself, and ends anyway.
        if self.thread is not threading.current_thread():
            # In Python 3.8 to 3.12 a join() that Ctrl-C interrupts marks the thread as ended, and
            # the next join() does not wait: the rest would be lost at exit. A Ctrl-C right before a
            # wait is handled only after it, so wait in steps. The lock of the queue is free
            # meanwhile: this may run in a signal handler that interrupted send_messages().
            while not self._ended.wait(STOP_WAIT_SECONDS):
                if time.monotonic() >= self._collected_until:
                    log.error('collected, but not stopped yet: some messages may be lost')
                    _call_at_exit(self.thread.join)
                    return
            self.thread.join()

    def __del__(self) -> None:
        # The constructor may have failed before it started a thread.
        if getattr(self, 'async_send', False) and hasattr(self, '_exit_hook'):
            # Limit the wait. Sequence: the program logs something, and a producer is collected
            # while the lock of a log handler is held; the thread of the producer logs, too, and
            # waits for that lock.
            patience = self._end_options['stop_timeout'] + 2 * STOP_WAIT_SECONDS
            self._collected_until = time.monotonic() + patience
            _stop_unless_stopped(self)


def _known_codec(codec: Optional[int]) -> int:
    if codec is None:
        return CODEC_NONE
    if codec not in ALL_CODECS:
        raise UnsupportedCodecError('codec %r is not one of %r' % (codec, ALL_CODECS))
    return codec


def _check_async_options(**options: Any) -> None:
    """Check the options that would otherwise fail in the thread; errors as Producer."""
    for name, value in options.items():
        if value is not None or name != 'async_retry_limit':
            check_number(value, name)
    sizes = [options[name] for name in ('batch_send_every_n', 'batch_send_every_t')]
    if not (all(size > 0 for size in sizes) and options['async_queue_maxsize'] >= 0):
        raise AssertionError(
            'batch_send_every_n and batch_send_every_t must be more than 0 and '
            'async_queue_maxsize not less: %r, %r, %r' % (*sizes, options['async_queue_maxsize'])
        )
    if not options['async_retry_backoff_ms'] >= 0:  # also false for NaN
        raise ValueError(
            'async_retry_backoff_ms: expected 0 ms or more, got %r'
            % (options['async_retry_backoff_ms'],)
        )


def _stop_unless_stopped(producer: Producer) -> None:
    if not producer.stopped:
        producer.stop()


def _at_exit(reference: Any) -> None:
    """Stop a producer that still exists: programs may end right after send_messages."""
    producer = reference()
    if producer is not None:
        try:
            producer._cleanup_func(producer)
        except BaseException:  # Ctrl-C, because it takes too long
            log.error('not stopped in order: about %d messages are lost', producer.queue.qsize())
            raise


def _call_at_exit(hook: Any) -> None:
    """Register a hook for the end of this process, also if it is a child of multiprocessing.

    A forked child of multiprocessing does not run atexit hooks.
    """
    atexit.register(hook)
    processes = sys.modules.get('multiprocessing.process')
    if processes is not None and processes.parent_process() is not None:
        sys.modules['multiprocessing.util'].Finalize(None, hook, exitpriority=0)


def _run(send: Any, ended: End) -> None:
    """Run the work of the thread, and set ``ended`` when it has ended or failed."""
    try:
        send()
    finally:
        ended.set()


def _send_upstream(
    queue: Any,
    client: BlockingClient,
    codec: int,
    batch_time: float,
    batch_size: int,
    req_acks: int,
    ack_timeout: int,
    retry_options: RetryOptions,
    stop_event: Any,
    log_messages_on_error: bool = ASYNC_LOG_MESSAGES_ON_ERROR,
    stop_timeout: float = ASYNC_STOP_TIMEOUT_SECS,
    codec_compresslevel: Optional[int] = None,
    tally: Optional[Tally] = None,
) -> None:
    """Send messages from the queue until stopped: the function of the thread, named as in 0.9.5."""
    options = SendOptions(
        codec=codec,
        codec_compresslevel=codec_compresslevel,
        batch_time=batch_time,
        batch_size=batch_size,
        req_acks=req_acks,
        ack_timeout=ack_timeout,
        retry=retry_options,
        log_messages=log_messages_on_error,
        stop_timeout=stop_timeout,
    )
    Upstream(queue, client, stop_event, options, tally or Tally()).run()


def _bytes_of(value: Any, argument: str, wanted: str) -> bytes:
    """Return a str as bytes in text mode; raise TypeError for anything else."""
    encoded = text_bytes(value, argument)
    if encoded is None:
        kind = type(value).__name__
        if isinstance(value, str):
            kind += ' (encode it first, or see kafka.util.set_text_mode)'
        raise TypeError('%s must be %s, not %s' % (argument, wanted, kind))
    return encoded
