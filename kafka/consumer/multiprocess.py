"""MultiProcessConsumer: the consumer of 0.9.5 that reads the partitions of a topic in processes.

It divides the partitions among the processes, runs a SimpleConsumer in each, and returns the
messages that they send. ``blocking/worker_processes.py`` starts, monitors and ends the processes
and transports the messages; ``base.py`` keeps and commits the offsets.
"""

from __future__ import annotations

import functools
import logging
import math
import multiprocessing
import os
import queue
import time
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Tuple,
)

from kafka.blocking.worker_processes import Crew, Flag, Link, check_sendable, start_method
from kafka.consumer.base import (
    AUTO_COMMIT_INTERVAL,
    AUTO_COMMIT_MSG_COUNT,
    FETCH_DEFAULT_BLOCK_TIMEOUT,
    FETCH_MAX_WAIT_TIME,
    FULL_QUEUE_WAIT_TIME_SECONDS,
    MAX_BACKOFF_SECONDS,
    Consumer,
)
from kafka.consumer.simple import SimpleConsumer, checked_settings
from kafka.errors import KafkaError
from kafka.internals.running_calls import is_in_call
from kafka.util import check_number, shown, whole_number

if TYPE_CHECKING:
    from kafka.blocking.base_client import BlockingClient

log = logging.getLogger('kafka.consumer.multiprocess')

QUEUE_SIZE = 1024
# The most messages that a process sends at once.
BATCH_SIZE = 128
# Iteration ends after this time without a message.
ITER_WAIT_SECONDS = 1.0
START_WAIT_SECONDS = 0.1
FETCH_SECONDS = FETCH_MAX_WAIT_TIME / 1000

Item = Tuple[int, Any]


class Events(NamedTuple):
    """The flags by which a MultiProcessConsumer controls its processes (0.9.5).

    start: set by the first call that wants messages; nothing is fetched before. pause: nothing is
    fetched while it is set. exit: set by stop(); the processes end.
    """

    start: Flag
    pause: Flag
    exit: Flag


def _takes_auto_commit_fourth(init: Callable[..., None]) -> Callable[..., None]:
    """Accept auto_commit as fourth argument, as the first 0.9 releases did before `partitions`."""

    @functools.wraps(init)
    def __init__(
        self: Any, client: BlockingClient, group: Any, topic: Any, *arguments: Any, **options: Any
    ) -> None:
        if arguments and isinstance(arguments[0], bool):
            arguments = (options.pop('partitions', None), *arguments)
        init(self, client, group, topic, *arguments, **options)

    return __init__


class MultiProcessConsumer(Consumer):
    """Consume the partitions of a topic in several processes at once (0.9.5).

    Arguments: client, group, topic, partitions, auto_commit, auto_commit_every_n and
    auto_commit_every_t as Consumer. A bool in the place of partitions is auto_commit, as in the
    first 0.9 releases.
        num_procs: the number of processes; of n processes each reads every n-th partition.
        partitions_per_proc: the most partitions of a process; more than 0 overrides num_procs.
        simple_consumer_options: further options of the SimpleConsumers in the processes.

    Processes are forked where the platform supports it, unless the program has set another start
    method of multiprocessing; then client, topic and options are pickled. The main module is never
    imported again. Each process has its own connections and commits nothing; after an error it
    retries after 1, 2, 4 … 60 s. A process that dies is started again, at the offsets after the
    messages it has sent, when a call needs more messages; this is logged. Processes never outlive
    the program.

    Messages fetched in excess stay for the next call and are not committed, at most some hundred
    per process. If a program assigns to offsets, the processes continue there.

    Attributes: queue: the (partition, message) pairs that the processes have sent, read like a
    queue.Queue; events: the Events; size: its value is the number of messages that the current call
    wants; procs: the processes.

    Raises: TypeError or ValueError naming a wrong argument, or one that cannot be sent to a process
    that is not forked; OSError if no process can be started; otherwise as Consumer.
    """

    @_takes_auto_commit_fourth
    def __init__(
        self,
        client: BlockingClient,
        group: Any,
        topic: Any,
        partitions: Optional[Iterable[int]] = None,
        auto_commit: bool = True,
        auto_commit_every_n: Optional[int] = AUTO_COMMIT_MSG_COUNT,
        auto_commit_every_t: Optional[float] = AUTO_COMMIT_INTERVAL,
        num_procs: int = 1,
        partitions_per_proc: Optional[int] = 0,
        **simple_consumer_options: Any,
    ) -> None:
        self._options = checked_settings(**simple_consumer_options)
        self._num_procs, self._partitions_per_proc = _checked_sizes(num_procs, partitions_per_proc)
        self._method = start_method()
        self.size = multiprocessing.get_context(self._method).RawValue('i', 0)
        self._taken: List[Item] = []  # by the current call, and not counted in offsets yet
        super().__init__(
            client,
            group,
            topic,
            partitions=partitions,
            auto_commit=auto_commit,
            auto_commit_every_n=auto_commit_every_n,
            auto_commit_every_t=auto_commit_every_t,
        )

    def __repr__(self) -> str:
        return '<%s group=%s, topic=%s, consumers=%d>' % (
            type(self).__name__,
            shown(self.group),
            shown(self.topic),
            len(self.procs),
        )

    @property
    def procs(self) -> List[Any]:
        """The processes; one that died is replaced by its successor."""
        return self.queue.processes

    # ------------------------------------------------------------ the processes

    def _start_helpers(self) -> None:
        self._owner = os.getpid()
        context = multiprocessing.get_context(self._method)
        self.events = Events(Flag(context), Flag(context), Flag(context))
        known = list(self.offsets)
        count = self._num_procs
        if self._partitions_per_proc:
            count = math.ceil(len(known) / self._partitions_per_proc)
        self._shares = [known[index::count] for index in range(count)]
        # The offsets that this class has set; the program may have assigned others since.
        self._followed = dict(self.offsets)
        self.queue = Crew(
            consume, self._arguments, count, QUEUE_SIZE, self.events.exit, self._method
        )
        if self._method != 'fork':
            client = self.client.copy()
            check_sendable(self._method, {'client': client, 'topic': self.topic, **self._options})
        self.queue.start()

    def _arguments(self, index: int) -> Tuple[Any, ...]:
        """Return the arguments of consume() for a process: it starts after the messages sent."""
        with self.commit_lock:  # the timer's thread may be using the client
            client = self.client.copy()
        positions = {p: self.offsets.get(p, 0) for p in self._shares[index]}
        for partition, message in [*self._taken, *self.queue.waiting()]:
            if partition in positions:
                positions[partition] = message.offset + 1
        return client, self.topic, positions, self.events, self._options

    def _direct(self) -> None:
        """Let the processes fetch, and restart those whose offsets the program has changed."""
        if self._owner != os.getpid():
            # The program has forked: the messages of these processes belong to the parent.
            self._take_over()
            self._start_helpers()
        self.events.start.set()
        if self.offsets == self._followed:
            return
        followed = dict(self.offsets)
        moved = {p for p, o in followed.items() if self._followed.get(p) != o}
        for index, share in enumerate(self._shares):
            if moved.intersection(share):
                log.debug('topic=%s: process %d goes to new offsets', shown(self.topic), index)
                self.queue.restart(index, functools.partial(_is_of, share))
        self._followed = followed  # last: after an interruption all of this is done again

    def _put_back(self) -> None:
        """Restore the offsets of before a call that was ended by an exception."""
        former = self._before
        if former is None or is_in_call('before', former):
            return
        self._taken = []
        self.offsets.update(former)
        self._followed = {}
        self._before = None

    def stop(self) -> None:
        """End the processes and the timer, and commit once more if there was a timer.

        May be called again. In a forked process it does not end the processes of the parent.
        """
        self.queue.end()
        super().stop()

    # ------------------------------------------------------------ returning messages

    def _next(self, seconds: Optional[float]) -> Optional[Item]:
        try:
            item: Item = self.queue.get(True, seconds)
        except queue.Empty:
            return None
        return item

    def __iter__(self) -> Iterator[Any]:
        """Yield the messages, without their partitions; end after 1 s without a message.

        That second begins after each process has fetched once.
        """
        while True:
            self._put_back()
            self._direct()
            before = self._before = dict(self.offsets)  # noqa: F841 - found by is_in_call()
            starting = self.queue.is_starting()
            item = self._next(START_WAIT_SECONDS if starting else ITER_WAIT_SECONDS)
            if item is None:
                self._before = None
                if starting or self.queue.is_starting():
                    continue
                return
            partition, message = item
            self.offsets[partition] = self._followed[partition] = message.offset + 1
            self.count_since_commit += 1
            self._auto_commit()
            self._before = None  # last: after an exception before this the message is read again
            yield message

    def get_messages(
        self, count: int = 1, block: Any = True, timeout: Optional[float] = 10
    ) -> List[Any]:
        """Return up to count messages.

        Arguments: count: the most messages to return; block: True to wait for all of them, an int
        to wait for that many, False to return the available ones; timeout: seconds for the whole
        call, None for no limit.
        Raises: TypeError or ValueError naming a wrong argument. Errors of brokers are not raised:
        the processes log them and retry.
        """
        count = whole_number(count, 'count')
        if not isinstance(block, bool):
            block = whole_number(block, 'block')
        deadline = _deadline(timeout)
        self._put_back()
        self._direct()
        before = self._before = dict(self.offsets)  # noqa: F841 - found by is_in_call()
        self.size.value = max(0, min(count, 2**31 - 1))
        taken = self._taken = []
        try:
            self._collect(taken, count, block, deadline)
        finally:
            self.size.value, self._taken = 0, []
        for partition, message in dict(taken).items():  # the last message of each partition
            self.offsets[partition] = self._followed[partition] = message.offset + 1
        self.count_since_commit += len(taken)
        found = taken if self.partition_info else [message for _, message in taken]
        self._auto_commit()
        self._before = None  # the last step, as in iteration
        return found

    def _collect(
        self, taken: List[Item], count: int, block: Any, deadline: Optional[float]
    ) -> None:
        """Move up to count items from the queue to taken, waiting as block and deadline allow."""
        wanted = count if block is True else min(count, int(block))
        while len(taken) < wanted:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                break
            item = self._next(left)
            if item is None:
                break
            taken.append(item)
        if wanted <= 0 < count:
            # As long as a fetch of SimpleConsumer with block=False may take.
            starting = self.queue.is_starting()
            item = self._next(FETCH_DEFAULT_BLOCK_TIMEOUT if starting else FETCH_SECONDS)
            taken += [] if item is None else [item]
        # The messages available now, not those that arrive during this loop.
        for _ in range(min(count - len(taken), self.queue.qsize())):
            item = self._next(0.0)
            if item is None:
                break
            taken.append(item)


def _is_of(partitions: List[int], item: Item) -> bool:
    return item[0] in partitions


def _checked_sizes(num_procs: Any, partitions_per_proc: Any) -> Tuple[int, int]:
    num_procs = whole_number(num_procs, 'num_procs')
    per_proc = whole_number(partitions_per_proc or 0, 'partitions_per_proc')
    if per_proc < 0:
        raise ValueError('partitions_per_proc must not be negative: %d' % per_proc)
    if not per_proc and num_procs < 1:
        raise ValueError('num_procs must be at least 1, not %d' % num_procs)
    return num_procs, per_proc


def _deadline(timeout: Optional[float]) -> Optional[float]:
    if timeout is None:
        return None
    check_number(timeout, 'timeout')
    if timeout != timeout:
        raise ValueError('timeout must be seconds or None, not NaN')
    return time.monotonic() + float(timeout)


# ---------------------------------------------------------------- in the processes


def consume(
    link: Link,
    client: BlockingClient,
    topic: Any,
    positions: Dict[int, int],
    events: Events,
    options: Dict[str, Any],
) -> None:
    """Send the messages of some partitions to the parent until the process has to end.

    Arguments: link: to the parent; client: used by this process alone; topic: of the type that the
    client uses; positions: {partition: offset to begin at}; events: those of the parent; options:
    of SimpleConsumer.
    """
    consumer: Optional[SimpleConsumer] = None
    pause = 1
    while not link.leaving():
        if not positions:
            link.say_ready()
            link.rest(MAX_BACKOFF_SECONDS)
            continue
        try:
            client.reinit()
            if consumer is None:
                consumer = _consumer(client, topic, positions, options)
            for batch in _batches(consumer, link, events):
                pause = 1
                link.send(batch)
        except KafkaError as error:
            log.error(
                'topic=%s partitions=%s cannot be fetched, trying again in %d s: %s',
                shown(topic),
                list(positions),
                pause,
                error,
            )
            link.say_ready()
            link.rest(pause)
            pause = min(2 * pause, MAX_BACKOFF_SECONDS)


def _consumer(
    client: BlockingClient, topic: Any, positions: Dict[int, int], options: Dict[str, Any]
) -> SimpleConsumer:
    """Return a consumer that begins at the positions; without a group it never commits."""
    consumer = SimpleConsumer(
        client,
        None,
        topic,
        auto_commit=False,
        partitions=list(positions),
        auto_commit_every_n=None,
        auto_commit_every_t=None,
        **options,
    )
    consumer.offsets.update(positions)
    consumer.fetch_offsets.update(positions)
    consumer.provide_partition_info()
    return consumer


def _batches(consumer: SimpleConsumer, link: Link, events: Events) -> Iterator[List[Item]]:
    """Yield a list of messages after each fetch, maybe empty, until the process has to end."""
    while not link.leaving() and not events.start.wait(1):
        pass
    block = False  # the first fetch returns at once: iteration of the parent waits for it
    while not link.leaving():
        if events.pause.is_set():
            link.rest(FULL_QUEUE_WAIT_TIME_SECONDS)
            continue
        first = consumer.get_message(block, FETCH_DEFAULT_BLOCK_TIMEOUT)
        block = True
        batch = [] if first is None else [first]
        if batch and consumer.queue:
            batch += consumer.get_messages(min(len(consumer.queue), BATCH_SIZE - 1))
        yield batch
        link.say_ready()
