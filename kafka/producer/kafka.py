"""KafkaProducer: sends records to a cluster, the same class for programs of 1.x to 3.x.

Owns what a program sees: the options, the calls, their errors, and the ways of send() that are not
quick. What it sends is collected by :mod:`kafka.producer.record_accumulator` and sent by
:mod:`kafka.producer.sender`; who runs the network is told in :mod:`kafka.net.loop.threads`: a call
that blocks does it itself, otherwise one thread in the background.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import logging
import math
import os
import threading
import time
import weakref
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from kafka import config as options
from kafka.errors import IllegalStateError, KafkaTimeoutError
from kafka.internals.cleanup import CleanUp, clean_up
from kafka.internals.logging_setup import be_quiet
from kafka.internals.running_calls import is_in_call
from kafka.net.client import NetworkClient
from kafka.net.pool import Pool
from kafka.net.settings import NetSettings
from kafka.partitioner.adapt import adapt, is_default
from kafka.partitioner.default import DefaultPartitioner
from kafka.producer.collected import close_collected
from kafka.producer.figures import figures_of
from kafka.producer.placing import OVERHEAD, Placing
from kafka.producer.plain_state import PlainState
from kafka.producer.produce_request import SenderSettings
from kafka.producer.producer_batch import compression_of
from kafka.producer.record_accumulator import Limits, RecordAccumulator
from kafka.producer.record_checks import (
    FlushTimeoutError,
    ProducerClosedError,
    RecordTypeError,
    adapt_serializer,
    check_codec,
    check_timeout,
    check_topic,
)
from kafka.producer.sender import Sender
from kafka.producer.transaction_driver import TransactionDriver
from kafka.producer.transaction_operations import PreparedTxnState
from kafka.producer.transaction_state import TransactionState

log = logging.getLogger(__name__)
be_quiet()

# What closing may take beyond the time that records have.
_CLOSING_SECONDS = 5.0
# How long the end of the interpreter waits for records that were not sent.
_EXIT_SECONDS = 5.0
# How long it is waited for them when a producer is collected that was not closed, as in 2.x.
_COLLECTED_SECONDS = 1.0
# How often it is looked whether another thread that closes a producer still does.
_LOOK_SECONDS = 0.1

_numbers = itertools.count(1)
# Producers whose close() has not ended, for the end of the interpreter and for forks.
_open: weakref.WeakSet[Any] = weakref.WeakSet()
# What futures that are still there belong to, producers that are just being closed included.
_accumulators: weakref.WeakSet[RecordAccumulator] = weakref.WeakSet()


class KafkaProducer(Placing):
    """Publish records to a Kafka cluster (1.x to 3.x; the options of each release are taken).

    Safe to be shared by threads. ``send()`` puts a record into a batch and returns a future; full
    or waiting batches are sent in the background, or by whoever waits for a future.

    Options: those of the option table (docs/options.rst), the partitioner's default being what the
    Java client does: by the hash of the key; without one, to one partition for a batch, then to
    another. Programs may give a partitioner of any era, see kafka.partitioner.adapt, serializers
    of any era, and interceptors: objects with ``on_send(record)``, which returns the record to
    send, and ``on_acknowledgement(metadata, exception)``.

    Raises: KafkaConfigurationError, which is a ValueError and an AssertionError, for options that
    are unknown or cannot be meant; NoBrokersAvailable when no broker answers (only asked when
    api_version is None).

    Attributes: config: all options. ``len()`` of a producer tells how many records wait, to be sent
    or for their answers.
    """

    _new_client = NetworkClient  # where the simulation puts its own
    DEFAULT_CONFIG = {**options.defaults(options.PRODUCER), 'partitioner': DefaultPartitioner()}
    #: Options that a program had better not give; 3.0 has none either.
    DEPRECATED_CONFIGS: Tuple[str, ...] = ()

    def __init__(self, **configs: Any) -> None:
        self._closed = True  # until it is whole
        self._closing = Closing()
        self._given = options.hidden(configs)
        configs = options.with_changed(configs, self.DEFAULT_CONFIG, _PRISTINE)
        self.config = config = options.resolve(options.PRODUCER, configs)
        if config['partitioner'] is None:
            config['partitioner'] = self.DEFAULT_CONFIG['partitioner']
        check_codec(config)
        if config['client_id'] is None:
            config['client_id'] = 'kafka-python-producer-%d' % next(_numbers)
        self._key_serializer = adapt_serializer('key_serializer', config['key_serializer'])
        self._value_serializer = adapt_serializer('value_serializer', config['value_serializer'])
        self._partitioner = adapt(config['partitioner'])
        self._interceptors = [
            each() if isinstance(each, type) else each for each in config['interceptors']
        ]
        self._told = [
            each.on_acknowledgement
            for each in self._interceptors
            if hasattr(each, 'on_acknowledgement')
        ]
        self._is_default = is_default(config['partitioner'])
        self._max_block = config['max_block_ms'] / 1000
        self._largest = min(config['max_request_size'], config['buffer_memory'])
        self._forked = False
        self._client = self._new_client(
            NetSettings.from_options(config),
            '%s-network-thread' % config['client_id'],
            config['busy_poll_us'] / 1e6,
        )
        self._loop, self._pool = self._client.loop, self._client.pool
        try:
            self._begin()
            self._build()
        except BaseException:
            self._loop.close(1.0)
            raise
        self._is_plain = (
            self._key_serializer is self._value_serializer is None
            and self._is_default
            and not self._interceptors
        )
        self._closed = False
        _open.add(self)

    def _begin(self) -> None:
        """Start the thread; find out what the brokers are unless that was said."""
        config = self.config
        self._loop.start()
        if config['api_version'] is not None:
            return
        limit = next(
            (
                config[name] / 1000
                for name in ('bootstrap_timeout_ms', 'api_version_auto_timeout_ms')
                if name in config.given
            ),
            None,
        )
        self._client.connect(limit)
        options.settle_release(config, self._client.release())
        check_codec(config)

    def _build(self) -> None:
        """Make the parts that send. None knows the producer, so that it can be collected."""
        config, loop = self.config, self._loop
        limits = Limits(
            batch_size=config['batch_size'],
            linger=config['linger_ms'] / 1000,
            buffer_memory=config['buffer_memory'],
            delivery_timeout=config['delivery_timeout_ms'] / 1000,
            ordered=config['max_in_flight_requests_per_connection'] == 1,
            compressed=config['compression_type'] is not None,
            adaptive=config['partitioner_adaptive_partitioning_enable'],
            record_size=min(config['max_request_size'], config['buffer_memory']) - OVERHEAD,
        )
        settings = _settings_of(config, limits)

        def wait(done: Callable[[], bool], timeout: Optional[float]) -> bool:
            if accumulator.is_mine():
                accumulator.check_outside()
            return bool(loop.wait(done, timeout, sender.begin))

        self._accumulator = accumulator = RecordAccumulator(
            limits, lambda: loop.call_lazily(sender.look), wait
        )
        _accumulators.add(accumulator)
        self._state = self._new_state()
        if config['transactional_id'] is not None:
            accumulator.check_send = self._state.check_send
        self._figures = None
        if config['metrics_enabled']:
            cluster = self._pool.cluster
            self._figures = figures_of(
                config, lambda: sender.in_flight, lambda: loop.time() - cluster.refreshed_at
            )
        sender = Sender(loop, self._pool, accumulator, self._state, settings, self._figures)
        self._sender = sender
        if config['enable_idempotence']:
            self._transactions = TransactionDriver(
                loop,
                self._pool,
                self._state,
                accumulator,
                sender.poke,
                self._max_block,
                settings.request_timeout,
                settings.retry_backoff,
                settings.retry_backoff_max,
                begin=self._client.bootstrap,
            )
        loop.call_threadsafe(sender.start)
        self._update = _Update(accumulator, self._pool, self._figures, config)
        self._pool.cluster.add_listener(self._update)

    def _new_state(self) -> Any:
        if not self.config['enable_idempotence']:
            return PlainState()
        # Brokers take whole milliseconds; programs may give fractions.
        timeout_ms = int(self.config['transaction_timeout_ms'])
        return TransactionState(self.config['transactional_id'], timeout_ms)

    @property
    def _metadata(self) -> Any:
        """What is known of the cluster, by the name under which programs of 1.x to 3.x found it."""
        return self._pool.cluster

    @property
    def _name(self) -> str:
        return str(self.config['client_id'])

    def __repr__(self) -> str:
        state = 'forked' if self._forked else 'closed' if self._closed else 'open'
        return '<KafkaProducer client_id=%s %s>' % (self._name, state)

    def __enter__(self) -> KafkaProducer:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        clean_up(self.close, error)

    def __del__(self) -> None:
        if getattr(self, '_closed', True) or self._forked:
            return
        if not close_collected(self, self._loop, self._accumulator, _COLLECTED_SECONDS):
            _open.add(self)  # still

    def __reduce__(self) -> Tuple[Any, ...]:
        """Pickle as configuration: what comes out is a new producer with the same options."""
        return _remake, (type(self), self._given)

    @classmethod
    def max_usable_produce_magic(cls, api_version: Tuple[int, ...]) -> int:
        """Return the newest message format that brokers of a release take (2.2)."""
        return 2 if api_version >= (0, 11) else 1 if api_version >= (0, 10) else 0

    def _max_usable_produce_magic(self) -> int:
        return self.max_usable_produce_magic(self.config['api_version'] or (0, 11))

    # ------------------------------------------------------------ topics

    def partitions_for(self, topic: str) -> Set[int]:
        """Return the ids of a topic's partitions.

        Raises: KafkaTimeoutError when they are not known after max_block_ms.
        """
        self._check_open()
        self._accumulator.check_outside()
        check_topic(topic)
        return set(self._queue(topic, time.monotonic() + self._max_block).partitions)

    def bootstrap_connected(self) -> bool:
        """Tell whether a connection to the cluster of the bootstrap servers is open (1.4.7)."""
        return not self._closed and not self._forked and self._pool.is_connected

    # ------------------------------------------------------------ transactions

    def init_transactions(self) -> None:
        """Get ready for transactions: ends what an earlier producer of the same id left open (2.2).

        Raises: KafkaTimeoutError after max_block_ms, when the same call goes on with it;
        IllegalStateError without transactional_id; ProducerFencedError and what else a broker says.
        """
        self._verbs('init_transactions()').init_transactions()

    def begin_transaction(self) -> None:
        """Begin a transaction; asks nobody (2.2). Raises: KafkaError out of turn."""
        self._verbs('begin_transaction()').begin_transaction()

    def send_offsets_to_transaction(
        self, offsets: Any, group_metadata: Any = None, consumer_group_id: Any = None
    ) -> None:
        """Make offsets of a consumer's group part of the transaction (2.2).

        Arguments: offsets: {TopicPartition: OffsetAndMetadata}; group_metadata: the group's id, or
        the consumer's group_metadata() (3.0); consumer_group_id: the id, as 2.x named it.
        Raises: as commit_transaction().
        """
        group = consumer_group_id if group_metadata is None else group_metadata
        if group is None:
            raise RecordTypeError('send_offsets_to_transaction() needs the group')
        self._verbs('send_offsets_to_transaction()').send_offsets_to_transaction(offsets, group)

    def prepare_transaction(self) -> PreparedTxnState:
        """Send what is pending, wait for it, and leave the end to whoever is told of it (KIP-939).

        Nothing can be sent then. This producer may commit or abort, or be closed and leave that to
        a kafka.producer.two_phase_commit.PreparedTransactions in another process, until
        transaction_timeout_ms is over. Beyond 3.0.
        Raises: as commit_transaction(), but what took longer than delivery_timeout_ms has failed;
        IllegalStateError when nothing was sent.
        """
        verbs = self._verbs('prepare_transaction()')
        self._accumulator.fast = {}
        self.flush()
        return verbs.prepare_transaction()

    def commit_transaction(self) -> None:
        """Send what is pending, wait for it, and commit (2.2).

        Raises: KafkaTimeoutError after max_block_ms: the same call goes on with it; the error that
        makes a commit impossible, after which abort_transaction() is the way on; KafkaError out of
        turn; ProducerFencedError.
        """
        verbs = self._verbs('commit_transaction()')
        self._accumulator.fast = {}
        verbs.commit_transaction()

    def abort_transaction(self) -> None:
        """Abort, dropping what was not sent (2.2). Raises: as commit_transaction()."""
        verbs = self._verbs('abort_transaction()')
        self._accumulator.fast = {}
        verbs.abort_transaction()

    def _verbs(self, what: str) -> TransactionDriver:
        self._check_open()
        self._accumulator.check_outside()
        if self.config['transactional_id'] is None:
            raise IllegalStateError('%s needs the option transactional_id' % what)
        return self._transactions

    # ------------------------------------------------------------ waiting for what was sent

    def flush(self, timeout: Optional[float] = None) -> None:
        """Send everything at once and wait for the outcome of what was sent before.

        Arguments: timeout: seconds; None waits until delivery_timeout_ms decides.
        Raises: KafkaTimeoutError, which is an AssertionError too, when some are still under way;
        ValueError, which is one as well, for a negative timeout.
        Records that failed do not make it raise; their futures say so. While another thread closes
        the producer it is waited for.
        """
        timeout = check_timeout(timeout)
        if self._closed:
            if not self._wait_until_closed(timeout):
                raise FlushTimeoutError(
                    'flush: another thread is closing the producer, still after %s seconds'
                    % timeout
                )
            return
        if self._forked:
            raise _of_the_parent()
        self._accumulator.check_outside()
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        self._sweep(deadline)
        batches = self._accumulator.begin_flush(time.monotonic())
        done_before = [0]

        def is_done() -> bool:
            # This thread and the one that runs the loop may ask at once: neither takes a batch for
            # done that it has not seen itself.
            index = done_before[0]
            while index < len(batches) and batches[index].is_done:
                index += 1
            done_before[0] = index
            return index == len(batches)

        if not self._loop.wait(is_done, max(0.0, deadline - time.monotonic())):
            raise FlushTimeoutError(
                'flush: %d batches are still under way after %s seconds'
                % (len(batches) - done_before[0], timeout)
            )

    def purge(self, in_queue: bool = True, in_flight: bool = True) -> None:
        """Give up records that have no outcome yet: their futures fail at once with PurgedError.

        Arguments: in_queue: those that wait to be sent, the first time or again; in_flight: those
        that were sent and are not acknowledged, which may be stored or not. In a callback they
        fail right behind it. Idempotence and order hold for what is sent next, as after
        delivery_timeout_ms: the open transaction, if there is one, can only be aborted, and where
        one batch of a partition goes at a time, the next waits until the broker has answered
        the one that was given up, or request_timeout_ms is over.
        Raises: KafkaTimeoutError when callbacks keep it from that for max_block_ms. Beyond 3.0.
        """
        if self._forked:
            raise _of_the_parent()
        self._accumulator.check_outside()
        purged = threading.Event()

        def purge() -> None:
            try:
                self._sender.purge(in_queue, in_flight)
            finally:
                purged.set()

        try:
            self._loop.call_threadsafe(purge)
            if not self._loop.wait(purged.is_set, self._max_block):
                raise KafkaTimeoutError(
                    'purge: a callback has not ended for %.3g s (max_block_ms)' % self._max_block
                )
        except IllegalStateError:
            pass  # in a callback, which would wait for itself; or closed, when nothing is left

    def __len__(self) -> int:
        """Return how many records wait: to be sent, or for their answers. Beyond 3.0."""
        if self._forked:
            raise _of_the_parent()
        self._accumulator.check_outside()
        return self._accumulator.records

    def __bool__(self) -> bool:
        """Be true, however few records wait."""
        return True

    def _sweep(self, deadline: float) -> None:
        """Put what nobody asks about into batches, waiting for memory if need be."""
        try:
            self._append(self._accumulator.sweep, deadline)
        except KafkaTimeoutError as error:
            raise FlushTimeoutError('flush: %s' % error) from error

    def close(self, timeout: Optional[float] = None, null_logger: bool = False) -> None:
        """Send what is left, then end the thread and the connections.

        Arguments: timeout: seconds; None waits until everything has its outcome. What has none by
        then fails with IllegalStateError. In a callback, and with 0, nothing is waited for. With
        acks=0 it is waited until brokers have read what was sent, which those of 0.9 and 0.10.0
        forget when a connection is closed before. While another thread closes it, that is waited
        for, at most so long.
        null_logger: not looked at (2.x).
        Raises: ValueError, which is an AssertionError too, for a negative timeout.
        """
        timeout = check_timeout(timeout)
        if self._closed:
            self._wait_until_closed(timeout)
            return
        self._accumulator.check_outside()
        call = Closing.new_call()
        try:
            if self._closing.is_first(call):
                self._closed = True
                self._close(timeout)
            else:
                self._wait_until_closed(timeout)
        except BaseException:  # raised from outside, maybe, at any point: nothing else would end it
            if self._closing.is_first(call) and not self._forked:
                self._closed = True
                self._end(0.0)
            raise
        finally:
            if self._closing.is_first(call):
                self._closing.end()
                _open.discard(self)

    def _wait_until_closed(self, timeout: Optional[float]) -> bool:
        """Wait until the call that closes it has ended; return False if it has not in time.

        Returns at once where that would wait for this one.
        """
        if self._forked or not self._closing.is_elsewhere():
            return True
        if self._loop.runs_here() or self._accumulator.is_inside():
            return True
        return self._closing.wait(self._longest_close if timeout is None else timeout)

    @property
    def _longest_close(self) -> float:
        """Seconds after which everything has its outcome, and some more."""
        return float(self.config['delivery_timeout_ms'] / 1000 + _CLOSING_SECONDS)

    def _close(self, timeout: Optional[float]) -> None:
        self._accumulator.fast = {}
        if self._forked:
            return
        self._accumulator.close(sends_rest=timeout != 0)
        if timeout is None:
            timeout = self._longest_close
        deadline = time.monotonic() + timeout
        with contextlib.ExitStack() as at_last:  # whatever one of them raises
            for serializer in (self.config['value_serializer'], self.config['key_serializer']):
                if hasattr(serializer, 'close'):
                    at_last.enter_context(CleanUp(serializer.close))
            try:
                if timeout:
                    self._loop.wait(self._accumulator.is_empty, timeout)
                    if not self.config['acks']:
                        self._settle(deadline - time.monotonic())
            except IllegalStateError:  # in a callback, which would wait for itself
                deadline = 0.0
            finally:
                self._end(max(0.0, deadline - time.monotonic()))

    def _settle(self, seconds: float) -> None:
        """Wait until brokers have read what they do not answer."""
        try:
            self._loop.run(self._sender.settle(), max(0.0, seconds))
        except KafkaTimeoutError as error:
            log.warning('%r: a broker may not have read records sent with acks=0: %s', self, error)

    def _end(self, seconds: float) -> None:
        """Fail what has no outcome, and let go of everything."""
        try:
            self._loop.close(min(seconds, _CLOSING_SECONDS) or 1.0)
        finally:  # also where Ctrl-C ends that
            with contextlib.suppress(KeyError):  # a call that was ended in the middle had begun
                self._pool.cluster.remove_listener(self._update)
            lost = self._sender.abort(
                ProducerClosedError('the producer was closed before the record was acknowledged')
            )
            if lost:
                log.error('%r: %d records were not acknowledged and may be lost', self, lost)
            if self._figures is not None:
                self._figures.metrics.close()

    def _check_open(self) -> None:
        if self._forked:
            raise _of_the_parent()
        if self._closed:
            raise ProducerClosedError('the producer is closed')

    def _abandon(self) -> None:
        """Be of no use any more: this is the child of a fork."""
        self._forked = True
        self._accumulator.fast = {}

    # ------------------------------------------------------------ figures

    def metrics(self, raw: bool = False) -> Optional[Dict[Any, Any]]:
        """Return {group: {name: number}}, or, raw, the metrics themselves by their MetricName.

        Groups: ``producer-metrics``; for each broker and topic ``producer-node-metrics.node-<id>``
        and ``producer-topic-metrics.<topic>``. None with metrics_enabled=False (1.3).
        Raises: IllegalStateError in the child of a fork.
        """
        if self._forked:
            raise _of_the_parent()
        figures = self._figures
        if figures is None:
            return None
        if not raw:
            return figures.snapshot()
        figures.settle()
        return dict(figures.metrics.metrics)


def _settings_of(config: Any, limits: Limits) -> SenderSettings:
    """Return what a sender is told."""
    return SenderSettings(
        acks=config['acks'],
        request_timeout=config['request_timeout_ms'] / 1000,
        delivery_timeout=limits.delivery_timeout,
        max_request_size=config['max_request_size'],
        max_in_flight=config['max_in_flight_requests_per_connection'],
        retries=config['retries'],
        retry_backoff=config['retry_backoff_ms'] / 1000,
        retry_backoff_max=config['retry_backoff_max_ms'] / 1000,
        batch_size=config['batch_size'],
        codec=compression_of(config['compression_type']),
        compresslevel=config['compression_level'],
        availability_timeout=config['partitioner_adaptive_partitioning_enable']
        and config['partitioner_availability_timeout_ms'] / 1000,
    )


class Closing:
    """Which of the calls that close a producer does so; the others may wait until it has ended."""

    def __init__(self) -> None:
        self._calls: List[List[int]] = []
        # Not an Event, which takes a lock of its own where a signal's handler may call it again.
        self._has_ended = threading.Lock()
        self._has_ended.acquire()

    @staticmethod
    def new_call() -> List[int]:
        """Return what stands for a call in this thread."""
        return [threading.get_ident()]

    def is_first(self, call: List[int]) -> bool:
        """Note a call; return whether it is the one that has to close."""
        if not self._calls:
            self._calls.append(call)  # one step: of two threads one is the first
        return self._calls[0] is call

    def is_elsewhere(self) -> bool:
        """Return whether another thread closes, or has closed."""
        return bool(self._calls) and self._calls[0][0] != threading.get_ident()

    def end(self) -> None:
        """Let go on who waits."""
        self._has_ended.release()

    def wait(self, seconds: float) -> bool:
        """Wait until the first call has ended; return False if it has not in time.

        An exception from outside may have kept it from telling that: it is looked for, too.
        """
        deadline = time.monotonic() + seconds
        while not self._has_ended.acquire(timeout=min(_LOOK_SECONDS, max(0.0, seconds))):
            call = self._calls[0]
            if not is_in_call('call', call, call[0]):
                return True
            seconds = deadline - time.monotonic()
            if seconds <= 0:
                return False
        self._has_ended.release()  # for the next
        return True


class _Update:
    """Tells an accumulator what is new about the topics that it has, and forgets idle ones."""

    now = staticmethod(time.monotonic)

    def __init__(
        self,
        accumulator: RecordAccumulator,
        pool: Pool,
        figures: Any,
        config: Dict[str, Any],
    ) -> None:
        self._accumulator = accumulator
        self._pool = pool
        self._figures = figures
        self._idle = config['metadata_max_idle_ms'] / 1000
        self._looked_at = -math.inf

    def __call__(self, cluster: Any) -> None:
        now = self.now()
        if now >= self._looked_at + self._idle / 8:
            self._looked_at = now
            self._forget_idle(now)
        for topic in self._accumulator.topics():
            partitions = cluster.partitions_for_topic(topic.topic)
            if partitions:
                available = cluster.available_partitions_for_topic(topic.topic) or ()
                self._accumulator.update(topic, partitions, available)

    def _forget_idle(self, now: float) -> None:
        for topic in self._accumulator.forget_idle(now, self._idle):
            self._accumulator.fast.pop(topic, None)
            self._pool.topics.forget(topic)
            if self._figures is not None:
                self._figures.forget_topic(topic)


_PRISTINE = dict(KafkaProducer.DEFAULT_CONFIG)


def _remake(cls: Any, given: Dict[str, Any]) -> Any:
    return cls(**given)


def _alive(objects: weakref.WeakSet[Any]) -> List[Any]:
    """Return what is in a set.

    Its own iteration is code of Python, which raises RuntimeError where another thread adds to it.
    """
    references = list(objects.data)  # type: ignore[attr-defined]  # in one step
    return [each for each in [reference() for reference in references] if each is not None]


def _close_all() -> None:
    """Give records that were not sent some time, for all producers together."""
    deadline = time.monotonic() + _EXIT_SECONDS
    interrupted: Optional[BaseException] = None
    # All begin to send before any is waited for.
    for close in (_close_accumulator, _close_producer):
        for producer in _alive(_open):
            try:
                close(producer, deadline)
            except Exception as error:  # of one that is out of order; the others still have records
                log.error('%r could not be closed: %s', producer, error)
            except BaseException as error:  # Ctrl-C: the others are closed without waiting
                deadline, interrupted = 0.0, error
    if interrupted is not None:
        raise interrupted


def _close_accumulator(producer: KafkaProducer, deadline: float) -> None:
    producer._accumulator.close()


def _close_producer(producer: KafkaProducer, deadline: float) -> None:
    producer.close(timeout=max(0.0, deadline - time.monotonic()))
    if not producer._closing.wait(0.0):
        log.error(
            '%r: close() in another thread has not ended; %d records may be lost',
            producer,
            producer._accumulator.records,
        )


def _of_the_parent() -> IllegalStateError:
    return IllegalStateError(
        'this producer was made in the process %d was forked from and cannot be used here: make a'
        ' new one; what became of its records the other process knows' % os.getpid()
    )


def _abandon_all() -> None:
    for producer in _alive(_open):
        producer._abandon()
    _open.clear()  # the end of this process has nothing to wait for with them
    for accumulator in _alive(_accumulators):
        accumulator.abandon(_of_the_parent())


atexit.register(_close_all)
if hasattr(os, 'register_at_fork'):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_abandon_all)
