"""RecordAccumulator: the batches of all partitions that wait to be sent, in limited memory.

Called by the sending threads, and by the sender in turns of the loop. Decides when a batch is full,
lingers, is ready or expires, and keeps the list of batches without an outcome, for flush(). The
callers pass the time and the leaders of partitions. It calls ``wake`` when there is something new
to send, and passes ``wait`` to batches, with which their futures block. Follows KIP-480 and KIP-794
(sticky partitions), KIP-91 (delivery timeout) and KIP-526 (idle topics are forgotten).

The lock guards everything here, in the topic queues, and in open batches. It is the only lock that
is taken for a record. It is held for some microseconds, never during a call that may block.

The lock is reentrant, and ``is_changing`` says whether a change is in progress. Finalizers and
signal handlers may run in the middle of a change, in the thread that holds the lock: records that
they send are deferred (:mod:`kafka.producer.deferred`), and calls that would wait raise. If the
lock is free while ``is_changing`` is set, an exception has interrupted the change: the next thread
that acquires the lock repairs the tables first (:mod:`kafka.producer.repair`). The record of the
interrupted call is then either appended as a whole or not at all.

A topic may be forgotten between the lookup of its queue and the first record for it, while the
thread waits for memory. ``is_forgotten`` is therefore checked under the lock: the queue returns to
the table, or the one that has replaced it there is used.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from bisect import bisect_left
from functools import partial
from typing import (
    Any,
    Callable,
    Collection,
    Dict,
    Iterable,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Union,
)

from kafka.errors import IllegalStateError, KafkaError, KafkaTimeoutError
from kafka.partitioner.sticky import UniformSticky
from kafka.producer.bounded_lock import LockBusyError, bounded, try_lock
from kafka.producer.buffer import AGAIN, BufferMemory, Ticket
from kafka.producer.deferred import DeferredRecord, DeferredRecords
from kafka.producer.encoded_batches import Encoded, ManyEncoded
from kafka.producer.fire_and_forget import FireAndForgetQueue
from kafka.producer.future import Placed
from kafka.producer.many_records import Many, RecordGroup, ends_of, padded, single
from kafka.producer.producer_batch import BATCH_BYTES, RECORD_BYTES, Headers, ProducerBatch
from kafka.producer.repair import remaining_batches, repair_queues
from kafka.producer.topic_queue import NO_BATCH, PartitionQueue, TopicQueue
from kafka.structs import TopicPartition

__all__ = ['AGAIN', 'AccumulatorConfig', 'ReadyCheckResult', 'RecordAccumulator']

#: Memory of a bytes object besides its content: the object header and a slot in a list.
OBJECT_BYTES = 48
# How many seconds to wait for a change of another thread before a record is deferred, and before a
# call that cannot be deferred fails. A change takes microseconds, unless a finalizer or a handler
# of the program runs in the middle of it.
_WAIT_SECONDS = 0.05
_PATIENCE_SECONDS = 5.0
# With more boxes than this, all are emptied, not only that of the topic: values in boxes are not
# counted as used memory.
_MOST_BOXES = 4
# The uncompressed size of a batch may be at most this multiple of batch_size if it compresses well.
_MOST_SHRINK = 8
# Before Python 3.10 an exception may be raised between the body of a with statement and __exit__().
_MAY_KEEP_LOCK = sys.version_info < (3, 10)
# The methods that KafkaProducer.send() calls without the lock.
_SLOW_PATHS = ('_send', '_begin_batch')


class AccumulatorConfig(NamedTuple):
    """The options of a producer about batches.

    batch_size, buffer_memory: bytes; linger, delivery_timeout: seconds; ordered: at most one batch
    of a partition in flight; compressed: whether batches are compressed; adaptive: adaptive
    partitioning (KIP-794); record_size: the size of key and value in bytes that every record may
    have.
    """

    batch_size: int = 16384
    linger: float = 0.0
    buffer_memory: int = 33554432
    delivery_timeout: float = 120.0
    ordered: bool = False
    compressed: bool = False
    adaptive: bool = True
    record_size: int = 1048576


class ReadyCheckResult(NamedTuple):
    """Which batches may be sent now.

    by_node: the ready queues, by leader node; next_at: monotonic seconds of the next check if
    nothing wakes the sender before, None for no such time; leaderless: topics with a ready
    partition that has no known leader; is_late: a batch has exceeded the delivery timeout and has
    to be expired first; nothing else was checked.
    """

    by_node: Dict[int, List[PartitionQueue]]
    next_at: Optional[float]
    leaderless: List[Any]
    is_late: bool = False


class RecordAccumulator:
    """The batches of all topics of a producer.

    Arguments: limits; wake: called without the lock when there is something new to send; wait:
    blocks until a condition holds: (condition, seconds) -> bool.
    """

    def __init__(
        self,
        limits: AccumulatorConfig,
        wake: Callable[[], None],
        wait: Callable[[Callable[[], bool], Optional[float]], bool],
    ) -> None:
        self.limits = limits
        self.memory = BufferMemory(limits.buffer_memory)
        self._make_lock()
        #: Whether a change is in progress, or was interrupted by an exception; see the module.
        self.is_changing = False
        #: Topics whose records take the fast path (kafka.producer.kafka). Replaced by another dict
        #: when a record is deferred, so that no record overtakes it.
        self.fast: Dict[Any, TopicQueue] = {}
        self.deferred = DeferredRecords()
        #: Records, boxes and calls of the sender that the next thread with the lock handles.
        self.waiting_deferred = self.deferred.waiting
        #: Raises while no record may be sent, as between transactions. Called under the lock: an
        #: earlier check may be outdated. Records that the fast path adds to open batches meanwhile
        #: belong to the transaction that ends.
        self.check_send: Optional[Callable[[], None]] = None
        #: Bytes that a record needs besides key and value.
        self.overhead = RECORD_BYTES
        self._wake = wake
        self._wait = wait
        # The number of passes of the sender, and that number at the last wake-up. It is stored
        # after the wake-up: if an exception prevents the wake-up, the next append() repeats it.
        self._looks = 0
        self._woken_at = -1
        self._topics: Dict[Any, TopicQueue] = {}
        # Queues with waiting or open batches, in the order in which they got them.
        self._busy: Dict[PartitionQueue, None] = {}
        # Batches without an outcome, in the order in which they were opened.
        self._incomplete: Dict[ProducerBatch, None] = {}
        # Those of them that the sender has taken, and whether they count as in flight.
        self._held: Dict[ProducerBatch, bool] = {}
        self._boxes = FireAndForgetQueue(limits.buffer_memory, limits.record_size)
        self._opened = 0
        #: Whether no batch lingers, as while a transaction ends.
        self.is_urgent = False
        # Batches up to this number do not linger, because a flush waits for them.
        self._flushed: Tuple[int, ...] = ()
        self.is_closed = False
        self.sends_rest = False  # after close(): whether waiting batches are sent

    def _make_lock(self) -> None:
        #: Guards everything; see the module.
        self.lock = threading.RLock()
        #: Returns True if this thread holds the lock. Condition uses it too; no public name exists.
        self.is_mine: Callable[[], bool] = self.lock._is_owned  # type: ignore[attr-defined]
        # A thread that may hold a lock of the program must not wait for this one without a limit:
        # the owner may run a finalizer, for example, that waits for that lock of the program.
        #: Acquires the lock without waiting, for the fast paths.
        self.entry = try_lock(self.lock)
        self._at_once = bounded(self.lock, 0, LockBusyError)
        # Acquires the lock within a short time, after which a record is deferred.
        self._soon = bounded(self.lock, _WAIT_SECONDS, LockBusyError)
        #: Acquires the lock for calls that cannot be deferred. Raises KafkaTimeoutError.
        self.patiently = bounded(self.lock, _PATIENCE_SECONDS, _is_stuck)

    def __repr__(self) -> str:
        return '<RecordAccumulator %d batches, %d of %d bytes%s>' % (
            len(self._incomplete),
            self.memory.used,
            self.memory.total,
            ', closed' if self.is_closed else '',
        )

    # ------------------------------------------------------------ topics

    def topic(self, name: Any) -> TopicQueue:
        """Return the queue of a topic."""
        found = self._topics.get(name)
        if found is None:
            sticky = UniformSticky(max(self.limits.batch_size, 1), self.limits.adaptive)
            made = TopicQueue(name, sticky)
            self._boxes.fit(made)
            found = self._topics.setdefault(name, made)  # atomic, so without the lock
        found.is_used = True
        return found

    def topics(self) -> List[TopicQueue]:
        """Return the queues of all topics."""
        return list(self._topics.values())

    def update(
        self, topic: TopicQueue, partitions: Iterable[int], available: Iterable[int]
    ) -> None:
        """Note which partitions a topic has, and which have a leader. Raises KafkaTimeoutError."""
        ascending, led = sorted(partitions), sorted(available)
        with self.patiently:
            self._begin()
            topic.update(ascending, led)
            self.is_changing = False

    def avoid(self, nodes: Collection[int], leader_of: Callable[[Any], Optional[int]]) -> None:
        """Prefer partitions with other leaders than these nodes for records without key."""
        with self.lock:
            self._begin()
            for topic in list(self._topics.values()):
                name = topic.topic
                topic.avoid(
                    [p for p in topic.partitions if leader_of(TopicPartition(name, p)) in nodes]
                )
            self.is_changing = False

    def forget_idle(self, now: float, idle: float) -> List[Any]:
        """Forget the topics that got no record for some time (KIP-526); return their names.

        Arguments: now: monotonic seconds; idle: seconds, counted from the first call that finds the
        topic unused, so this has to be called more often.
        """
        forgotten = []
        with self.lock:
            self._begin()
            for topic in list(self._topics.values()):
                name = topic.topic
                if topic.is_used or not _is_at_rest(topic):
                    topic.is_used, topic.idle_since = False, now
                elif topic.idle_since + idle <= now:
                    topic.is_forgotten = True
                    del self._topics[name]
                    forgotten.append(name)
            self.is_changing = False
        return forgotten

    def _present(self, topic: TopicQueue) -> TopicQueue:
        """Return the current queue of a topic, for one that was forgotten; the lock is held.

        The old queue returns to the table unless another has taken its place.
        """
        present = self._topics.setdefault(topic.topic, topic)
        present.is_forgotten = False
        if present is not topic:
            if not present.partitions:
                present.update(topic.partitions, topic.available)
            # For a value that a thread put into the old box just after it was unwatched.
            present.box_time = max(present.box_time, topic.box_time)
            count = len(topic.box)  # the thread that adds a later value calls watch_box()
            present.box += topic.box[:count]
            del topic.box[:count]
        return present

    # ------------------------------------------------------------ one record

    def append(
        self,
        topic: TopicQueue,
        partition: Optional[int],
        key: Optional[bytes],
        value: Optional[bytes],
        headers: Headers,
        timestamp: Optional[int],
        wall: float,
        now: float,
        ticket: Optional[Ticket] = None,
    ) -> Union[Tuple[ProducerBatch, int], Ticket]:
        """Append a record to a batch; return the batch and the index of the record.

        Arguments: partition: None to choose one; headers: ``()`` without headers; timestamp: ms,
        None for that of wall; wall: seconds since the epoch; now: monotonic seconds; ticket: one
        that an earlier call has returned and that is granted now.
        Returns: a Ticket instead if there is no memory: wait until it is granted, or call leave();
        AGAIN if there is no memory while another thread is in the middle of a change.
        Raises: IllegalStateError if closed.
        """
        size = self.overhead + len(value or b'') + len(key or b'')
        for name, content in headers:
            size += len(name) + len(content or b'') + 2
        placed: Union[Tuple[ProducerBatch, int], Ticket, None] = None
        if not ((self.is_changing or _MAY_KEEP_LOCK) and self.is_inside()):
            try:
                with self._soon:
                    if self.is_changing or self.waiting_deferred:
                        self._settle()
                    if self.is_closed or self.check_send is not None:
                        self._check_open()
                    self.is_changing = True
                    if topic.is_forgotten:
                        topic = self._present(topic)
                    if topic.box:
                        placed = ticket = self._sweep(topic, now, ticket)
                    if placed is None:
                        if partition is None:
                            queue = self._choose(topic, size)
                            topic.box_until = 0.0  # boxed values go into batches before this record
                        else:
                            queue = topic.queue(partition)
                        found = self._batch_for(topic, queue, size, now, ticket)
                        if isinstance(found, Ticket):
                            placed = found
                        else:
                            index = len(found.values)
                            if found.has_columns:
                                found.cut(index)
                            if key is not None:
                                found.set_key(index, key)
                            if headers:
                                found.set_headers(index, headers)
                            self._set_time(found, index, timestamp, wall)
                            found.room -= size
                            # The value last, as everywhere: after an exception before this, cut()
                            # removes the rest.
                            found.values.append(value)
                            if found.room <= 0:
                                self._close(topic, queue, True)
                            elif partition is None:
                                topic.batch = found
                            placed = found, index
                    looks, self.is_changing = self._looks, False
            except LockBusyError:
                pass
        if placed is None:
            stamp = int(wall * 1000) if timestamp is None else timestamp
            one = single(topic, key, value, headers, stamp, size)
            stand_in = self._defer(one, partition, now)
            return AGAIN if stand_in is None else (stand_in, 0)
        if looks != self._woken_at:
            self._wake()
            self._woken_at = looks
        return placed

    def needs_batch(self, topic: TopicQueue, partition: int, size: int) -> bool:
        """Return True if a record of this size needs a new batch in a partition."""
        if (self.is_changing or _MAY_KEEP_LOCK) and self.is_inside():
            return False
        try:
            with self._soon:
                self._begin()
                needs = topic.queue(partition).open.room <= size
                self.is_changing = False
                return needs
        except LockBusyError:
            return False

    def set_time(self, batch: ProducerBatch, wall: float) -> None:
        """Set the timestamp of the following records of a batch; the lock is held."""
        self._set_time(batch, len(batch.values), None, wall)

    @staticmethod
    def _set_time(batch: ProducerBatch, index: int, timestamp: Optional[int], wall: float) -> None:
        if timestamp is not None:
            batch.tick = 0.0  # first: after an exception the next record sets a time
            batch.set_time(index, timestamp)
        elif wall >= batch.tick:
            milliseconds = int(wall * 1000)
            batch.set_time(index, milliseconds)
            batch.tick = (milliseconds + 1) / 1000

    def _check_open(self) -> None:
        if self.is_closed:
            raise IllegalStateError('the producer is closed')
        if self.check_send is not None:
            self.check_send()

    def _choose(self, topic: TopicQueue, size: int) -> PartitionQueue:
        """Return the queue for a record without key; a full batch there leads to another choice."""
        queue = topic.choose()
        if queue.open is not NO_BATCH and queue.open.room <= size:
            self._close(topic, queue, True)
            queue = topic.choose()
            if queue.open is not NO_BATCH and queue.open.room <= size:
                self._close(topic, queue, None)  # filled by records with keys: keep the choice
        return queue

    def _batch_for(
        self,
        topic: TopicQueue,
        queue: PartitionQueue,
        size: int,
        now: float,
        ticket: Optional[Ticket],
    ) -> Union[ProducerBatch, Ticket]:
        """Return the open batch of a queue if it has room, else a new one, or a Ticket."""
        if queue.open.room > size:
            if ticket is not None:
                self.memory.leave(ticket)
            return queue.open
        if queue.open is not NO_BATCH:
            self._close(topic, queue, True)
        limits = self.limits
        limit = self.batch_room(topic) if limits.compressed else limits.batch_size
        room = limit if limit > size else size
        reserved = room if room < self.memory.total else self.memory.total
        if ticket is not None:
            reserved = ticket.size
        elif not self.memory.take(reserved):
            ticket = self.memory.queue_up(reserved)
        if ticket is not None and not ticket.granted:
            return ticket
        self._opened += 1
        topic.is_used = True
        batch = ProducerBatch(queue.topic_partition, now, limit, self._wait)
        batch.number = (self._opened,)
        batch.reserved = reserved
        # ``room``, not ``limit``: a first record that is larger would leave a negative room.
        batch.raw_size = batch.room = room
        self._incomplete[batch] = None
        if ticket is not None:
            self.memory.spend(ticket)
        self._busy[queue] = None
        queue.open = batch
        return batch

    def _close(self, topic: TopicQueue, queue: PartitionQueue, was_full: Optional[bool]) -> None:
        """Close the open batch of a queue and adjust its memory to the actual size.

        Arguments: was_full: for the sticky partitioner; None to report nothing to it.
        """
        batch = queue.open
        if topic.batch is batch:
            topic.batch = NO_BATCH
        queue.open = NO_BATCH
        batch.close()
        is_choice = queue.topic_partition.partition == topic.sticky.partition
        if is_choice and was_full is not None:
            topic.sticky.gave(batch.raw_size - BATCH_BYTES, was_full)
        queue.waiting.append(batch)
        needed = batch.raw_size + OBJECT_BYTES * batch.record_count
        difference, batch.reserved = needed - batch.reserved, needed
        self.memory.adjust(difference)

    def batch_room(self, topic: TopicQueue) -> int:
        """Return the limit of a batch in bytes before compression."""
        if not self.limits.compressed:
            return self.limits.batch_size
        return int(self.limits.batch_size / max(topic.ratio, 1 / _MOST_SHRINK))

    # ------------------------------------------------------------ many records

    def prepare_many(
        self,
        topic: TopicQueue,
        partition: Optional[int],
        keys: Optional[Sequence[Optional[bytes]]],
        values: Sequence[Optional[bytes]],
        sizes: Sequence[int],
        headers: Headers,
        timestamp: int,
    ) -> Many:
        """Group the records of one call by partition.

        Arguments: sizes: bytes of key and value of each record; headers: those of every record;
        timestamp: ms, of all records; the rest as append().
        """
        many = Many(topic, headers, timestamp)
        more = self.overhead + sum(len(n) + len(c or b'') + 2 for n, c in headers)
        if keys is None or partition is not None:
            queue = None if partition is None else topic.queue(partition)
            many.groups.append(RecordGroup(queue, None, values, keys, ends_of(sizes, more)))
            return many
        groups = topic.by_keys(keys)
        for found, numbers in groups:
            many.pick(found, numbers, keys, values, sizes, more)
        return many

    def append_many(
        self, many: Many, now: float, ticket: Optional[Ticket] = None
    ) -> Optional[Ticket]:
        """Append records to batches, as far as there is memory.

        Returns: None if all are appended, else a Ticket as append(). Raises: as append().
        """
        if (self.is_changing or _MAY_KEEP_LOCK) and self.is_inside():
            return self._defer_many(many, now)
        looks = None
        try:
            with self._soon:
                if self.is_changing or self.waiting_deferred:
                    self._settle()
                self._check_open()
                self.is_changing = True
                if many.topic.is_forgotten:
                    many.move(self._present(many.topic))
                has_room = True
                if many.topic.box:
                    ticket = self._sweep(many.topic, now, ticket)
                    has_room = ticket is None
                while many.groups and has_room:
                    ticket = self._append_group(many, many.groups[-1], now, ticket)
                    if ticket is None:
                        many.groups.pop()
                    has_room = ticket is None
                looks, self.is_changing = self._looks, False
        except LockBusyError:
            pass
        if looks is None:
            return self._defer_many(many, now)
        if looks != self._woken_at:
            self._wake()
            self._woken_at = looks
        return ticket

    def _append_group(
        self, many: Many, group: RecordGroup, now: float, ticket: Optional[Ticket]
    ) -> Optional[Ticket]:
        topic, ends, count = many.topic, group.ends, len(group.values)
        start = group.position
        while start < count:
            base = ends[start - 1] if start else 0
            size = ends[start] - base
            queue = self._choose(topic, size) if group.queue is None else group.queue
            found = self._batch_for(topic, queue, size, now, ticket)
            if isinstance(found, Ticket):
                return found
            batch, ticket = found, None
            # A batch of one record may exceed its limit; others stay below it.
            end = max(start + 1, bisect_left(ends, base + batch.room, start))
            index = len(batch.values)
            if batch.has_columns:
                batch.cut(index)
            if group.keys is not None:
                batch.has_columns = True
                batch.keys = padded(batch.keys, index, None)
                batch.keys += group.keys[start:end]
            if many.headers or group.headers is not None:
                batch.has_columns = True
                batch.headers = padded(batch.headers, index, ())
                column = group.headers
                batch.headers += column[start:end] if column else [many.headers] * (end - start)
            self._set_time(batch, index, many.timestamp, 0.0)
            batch.room -= ends[end - 1] - base
            numbers = None if group.numbers is None else group.numbers[start:end]
            many.placed.append(Placed(batch, index, end - start, numbers))
            group.into = batch, index, end
            batch.values += group.values[start:end]
            group.position = end
            start = end
            if start < count or batch.room <= 0:
                self._close(topic, queue, True)
        return ticket

    # ------------------------------------------------------------ encoded batches

    def append_encoded(
        self, many: ManyEncoded, now: float, ticket: Optional[Ticket] = None
    ) -> Optional[Ticket]:
        """Queue encoded batches, as far as there is memory.

        Returns: None if all are queued, else a Ticket as append().
        Raises: as append(); KafkaTimeoutError if another thread does not release the lock.
        """
        if self.is_inside():
            raise IllegalStateError(
                'rows cannot be sent from inside a call of the same producer (topic=%s), by the'
                ' handler of a signal, a finalizer or a log handler: use send()' % many.topic.topic
            )
        with self.patiently:
            if self.is_changing or self.waiting_deferred:
                self._settle()
            self._check_open()
            self.is_changing = True
            if many.topic.is_forgotten:
                many.topic = self._present(many.topic)
            has_room = True
            if many.topic.box:
                ticket = self._sweep(many.topic, now, ticket)
                has_room = ticket is None
            while many.parts and has_room:
                ticket = self._queue_encoded(many, many.parts[0], now, ticket)
                if ticket is None:
                    many.parts.popleft()
                has_room = ticket is None
            looks, self.is_changing = self._looks, False
        if looks != self._woken_at:
            self._wake()
            self._woken_at = looks
        return ticket

    def _queue_encoded(
        self, many: ManyEncoded, part: Encoded, now: float, ticket: Optional[Ticket]
    ) -> Optional[Ticket]:
        size = BATCH_BYTES + len(part.records)
        if ticket is None:
            ticket = self.memory.queue_up(min(size, self.memory.total))
        if not ticket.granted:
            return ticket
        topic = many.topic
        if part.partition is None:
            queue = self._choose(topic, len(part.records))
        else:
            queue = topic.queue(part.partition)
        if queue.open is not NO_BATCH:  # its records were sent before these
            self._close(topic, queue, None)
        self._opened += 1
        topic.is_used = True
        batch = ProducerBatch(queue.topic_partition, now, 0, self._wait)
        batch.number = (self._opened,)
        batch.reserved, batch.raw_size = ticket.size, size
        batch.fill(part.records, part.columns(), many.timestamp)
        if part.partition is None:
            topic.sticky.gave(size, True)
        self._incomplete[batch] = None
        self.memory.spend(ticket)
        self._busy[queue] = None
        queue.waiting.append(batch)
        many.placed.append(Placed(batch, 0, batch.record_count, part.numbers))
        return None

    # ------------------------------------------------------------ values without a future

    def open_box(
        self, topic: TopicQueue, wall: float, now: float, ticket: Optional[Ticket] = None
    ) -> Optional[Ticket]:
        """Open the box of a topic for values without key, for the next millisecond.

        The values that are in it go into batches first. Returns, raises: as append_many();
        LockBusyError if the record has to be deferred.
        """
        if self.is_inside():
            raise LockBusyError
        with self._soon:
            if self.is_changing or self.waiting_deferred:
                self._settle()
            self._check_open()
            self.is_changing = True
            if topic.is_forgotten:
                topic = self._present(topic)
            ticket = self._sweep_some(topic, now, ticket)
            if ticket is None:
                topic.batch = NO_BATCH  # records with a future must not overtake boxed ones
                topic.box_time = int(wall * 1000)
                topic.box_until = now + 0.001
                self._boxes.watch(topic)
            looks, self.is_changing = self._looks, False
        if looks != self._woken_at:
            self._wake()
            self._woken_at = looks
        return ticket

    def watch_box(self, topic: TopicQueue) -> None:
        """Watch a box again, after a value was put there when the box was already unwatched.

        Raises: as append_many(), in which case the value is not sent.
        """
        try:
            if self.is_inside():
                raise LockBusyError
            with self._soon:
                if self.is_changing or self.waiting_deferred:
                    self._settle()
                try:
                    self._check_open()
                except KafkaError:
                    if not topic.is_watched:
                        topic.box.clear()  # each thread that was too late raises this error
                    raise
                self.is_changing = True
                if topic.is_forgotten:
                    topic = self._present(topic)
                if topic.box:
                    self._boxes.watch(topic)
                self.is_changing = False
        except LockBusyError:
            self.waiting_deferred.append(topic)
        self._wake()

    def sweep(self, now: float, ticket: Optional[Ticket] = None) -> Optional[Ticket]:
        """Move the values of all boxes into batches. Returns: as append_many()."""
        with self.patiently:
            self._begin()
            for topic in list(self._boxes.topics):
                if topic.box:
                    ticket = self._sweep(topic, now, ticket)
                    if ticket is not None:
                        break
            else:
                if ticket is not None:
                    self.memory.leave(ticket)
                    ticket = None
            self.is_changing = False
            return ticket

    def _sweep_some(
        self, topic: TopicQueue, now: float, ticket: Optional[Ticket]
    ) -> Optional[Ticket]:
        """Move the values of a box into batches; those of all boxes if there are many boxes."""
        if len(self._boxes.topics) > _MOST_BOXES:
            for other in list(self._boxes.topics):
                if other.box and other is not topic:
                    ticket = self._sweep(other, now, ticket)
                    if ticket is not None:
                        return ticket
        return self._sweep(topic, now, ticket)

    def _sweep(
        self, topic: TopicQueue, now: float, ticket: Optional[Ticket] = None
    ) -> Optional[Ticket]:
        """Move the values of a box into batches; the lock is held."""
        if not topic.box:
            if ticket is not None:
                self.memory.leave(ticket)
            return None
        many = self._boxes.take_out(topic, self.overhead)
        ticket = self._append_group(many, many.groups[0], now, ticket)
        for placed in many.placed:
            placed.batch.is_unasked = True
        if ticket is None:
            del topic.box[0]  # the same as restore(), as all values are placed
        else:
            self._boxes.restore(topic)
        return ticket

    def _sweep_all(self, now: float) -> None:
        """Move the values of all boxes into batches if there is memory; the lock is held."""
        for topic in list(self._boxes.topics):
            while True:
                ticket = self._sweep(topic, now)
                if ticket is not None:
                    self.memory.leave(ticket)
                    break
                if topic.box_until > now or self._boxes.unwatch(topic):
                    break

    def drop_boxes(self) -> List[Tuple[TopicQueue, int]]:
        """Discard the values in all boxes; return the number of values of each topic."""
        with self.lock:
            self._begin()
            dropped = self._boxes.drop()
            self.is_changing = False
        return dropped

    # ------------------------------------------------------------ calls in the middle of a change

    def is_inside(self) -> bool:
        """Return True if this thread is in the middle of a call that holds the lock.

        Before Python 3.10 an exception may prevent the release of the lock: it is released here.
        """
        if not self.is_mine():
            return False
        if _MAY_KEEP_LOCK and not self._is_on_stack():
            while self.is_mine():
                self.lock.release()
            return False
        return True

    def _is_on_stack(self) -> bool:
        """Return True if an outer frame may hold the lock: one of this class, or a fast path."""
        inner, frame = None, sys._getframe(2)  # the caller of is_inside()
        while frame.f_back is not None:
            inner, frame = frame, frame.f_back
            if frame.f_locals.get('self') is self:
                return True
            # When it calls one of those it has released the lock. KafkaProducer.send() alone may
            # have a local of this name.
            if frame.f_code.co_name == 'send' and inner.f_code.co_name not in _SLOW_PATHS:
                if frame.f_locals.get('accumulator') is self:
                    return True
        return False

    def check_outside(self) -> None:
        """Raise IllegalStateError if a blocking call would wait for itself.

        That is inside another call of this producer, in the thread that holds the lock: the threads
        that it would wait for need the lock. KafkaTimeoutError if another thread does not release
        it.
        """
        if self.is_inside():
            raise IllegalStateError(
                'flush(), close() and get() cannot be called by a signal handler, finalizer or log'
                ' handler that runs inside send() of the same producer: they would wait for it.'
                ' Only send() can'
            )
        if self.is_changing:
            with self.patiently:
                pass

    def _defer(self, many: Many, partition: Optional[int], now: float) -> Optional[ProducerBatch]:
        """Defer a record until the change in progress has ended; return its placeholder batch.

        Arguments: many: as DeferredRecords.add().
        Returns: None if there is no memory, and this thread may wait for some.
        Raises: KafkaTimeoutError if there is no memory, and this thread must not wait.
        """
        self._check_open()
        if self.memory.used + self.deferred.size + many.groups[0].ends[0] > self.memory.total:
            if not self.is_mine():
                return None
            raise KafkaTimeoutError(
                'no room in buffer_memory for a record (topic=%s) sent from inside a call of the'
                ' same producer, which cannot wait for room: raise buffer_memory' % many.topic.topic
            )
        stand_in = self.deferred.add(many, partition, now, self._wait)
        self.fast = {}  # after the line above: see KafkaProducer._allow_fast()
        self._wake()
        return stand_in

    def _defer_many(self, many: Many, now: float) -> Optional[Ticket]:
        """Defer the records that are not in batches yet. Returns: as append_many()."""
        while many.groups:
            group = many.groups[-1]
            partition = None if group.queue is None else group.queue.topic_partition.partition
            for index in range(group.position, len(group.values)):
                key = None if group.keys is None else group.keys[index]
                headers = many.headers if group.headers is None else group.headers[index]
                size = group.ends[index] - (group.ends[index - 1] if index else 0)
                value, stamp = group.values[index], many.timestamp
                one = single(many.topic, key, value, headers, stamp, size)
                stand_in = self._defer(one, partition, now)
                if stand_in is None:
                    return AGAIN
                numbers = None if group.numbers is None else group.numbers[index : index + 1]
                many.placed.append(Placed(stand_in, 0, 1, numbers))
                group.position = index + 1
            many.groups.pop()
        return None

    def settle(self) -> None:
        """Repair an interrupted change, and move deferred records into batches.

        To be called after an exception. Does nothing while another thread holds the lock: the next
        call with the lock does it then.
        """
        if (self.is_changing or _MAY_KEEP_LOCK) and self.is_inside():
            return
        with contextlib.suppress(LockBusyError), self._at_once:
            if self.is_changing or self.waiting_deferred:
                self._settle()
        self._wake_if_open()

    def _wake_if_open(self) -> None:
        """Wake the sender, unless its loop is closed."""
        with contextlib.suppress(IllegalStateError):
            self._wake()

    def _settle(self) -> None:
        """Repair an interrupted change, and move deferred records into batches.

        The caller holds the lock and is not inside a change.
        """
        if self.is_changing:
            self._repair()
        self.is_changing = True
        while self.waiting_deferred:
            each = self.waiting_deferred[0]
            if isinstance(each, DeferredRecord):
                self._place(each)
            elif isinstance(each, partial):
                each()
            elif each.box:
                self._boxes.watch(self._present(each))
            self.deferred.drop_first()
        self.is_changing = False

    def _begin(self) -> None:
        """Begin a change, with the lock held; an interrupted change is repaired first."""
        if self.is_changing or self.waiting_deferred:
            self._settle()
        self.is_changing = True

    def _repair(self) -> None:
        topics = list(self._topics.values())
        for topic in topics:
            self._boxes.restore(topic)
            if topic.box:
                self._boxes.watch(topic)
        batches = self._incomplete = remaining_batches(self._incomplete, self._held)
        self._busy = repair_queues(topics, batches, self._held, self.limits.ordered)
        self.memory.recount(sum(batch.reserved for batch in batches))

    def _place(self, deferred: DeferredRecord) -> None:
        """Append a deferred record to a batch, and bind its future to that batch."""
        stand_in, many, partition, now = deferred
        (group,) = many.groups
        if stand_in.is_done:
            return
        if group.unplaced():  # else an exception came after it was appended
            many.topic = topic = self._present(many.topic)
            if partition is not None:
                group.queue = topic.queue(partition)
            elif group.keys is not None:
                group.queue = topic.by_key[group.keys[0] or b'']
            ticket = self.memory.exceed(max(group.ends[0], self.limits.batch_size))
            many.placed.clear()
            self._append_group(many, group, now, ticket)
        placed = many.placed[-1]
        stand_in.stand_for(placed.batch, placed.start)

    # ------------------------------------------------------------ for the sender

    @property
    def has_work(self) -> bool:
        """Whether the sender has anything to do besides batches in flight."""
        return bool(self._busy or self._boxes.topics or self.waiting_deferred)

    def ready(self, now: float, leader_of: Callable[[Any], Optional[int]]) -> ReadyCheckResult:
        """Return the batches that may be sent now; later records wake the sender again.

        Arguments: leader_of: returns the leader node of a TopicPartition; None or -1 if unknown.
        Returns: an empty result, to be repeated at once, if another thread does not release the
        lock.
        """
        try:
            with self._soon:
                self._begin()
                plan = self._plan(now, leader_of)
                self.is_changing = False
                return plan
        except LockBusyError:
            return ReadyCheckResult({}, now, [])

    def _plan(self, now: float, leader_of: Callable[[Any], Optional[int]]) -> ReadyCheckResult:
        by_node: Dict[int, List[PartitionQueue]] = {}
        leaderless: List[Any] = []
        next_at: Optional[float] = None
        linger = self.limits.linger
        self._looks += 1
        self.memory.forget_abandoned()
        for oldest in self._incomplete:
            if not oldest.is_done:
                next_at = oldest.created_at + self.limits.delivery_timeout
                if next_at <= now:
                    return ReadyCheckResult(by_node, next_at, leaderless, True)
                break
        if self._boxes.topics:
            self._sweep_all(now)
            # An expired box has values that found no memory: the release of memory wakes the
            # sender.
            for each in self._boxes.topics:
                if each.box_until > now and (next_at is None or each.box_until < next_at):
                    next_at = each.box_until
        at_once = self.is_urgent or self.sends_rest or self.memory.waiting
        for queue in self._busy:
            if queue.muted:
                continue
            batch = queue.waiting[0] if queue.waiting else queue.open
            due = batch.not_before
            if linger and not (queue.waiting or at_once or batch.number <= self._flushed):
                due = max(due, batch.created_at + linger)
            if due > now:
                if next_at is None or due < next_at:
                    next_at = due
                continue
            leader = leader_of(queue.topic_partition)
            if leader is None or leader < 0:
                leaderless.append(queue.topic_partition.topic)
            elif leader in by_node:
                by_node[leader].append(queue)
            else:
                by_node[leader] = [queue]
        return ReadyCheckResult(by_node, next_at, leaderless)

    def alone(self) -> Optional[PartitionQueue]:
        """Return the queue of a batch that seems to be the only one; called without the lock."""
        if len(self._incomplete) == len(self._busy) == 1 and not self._boxes.topics:
            for queue in self._busy.copy():
                return queue
        return None

    def take_alone(self, queue: PartitionQueue) -> Optional[ProducerBatch]:
        """Take the open batch of a queue, as take(), if it is the only batch and does not linger.

        As with ready(), later records wake the sender again. Returns None if it is not the only
        one, or if another thread has the lock.
        """
        is_held = True
        try:
            with self.entry as is_held:
                if not is_held:
                    return None
                if self.is_changing or self.waiting_deferred:
                    self._settle()
                batch = queue.open
                if (
                    batch is NO_BATCH
                    or len(self._incomplete) != 1
                    or self._boxes.topics
                    or queue.muted
                ):
                    return None
                if self.limits.linger or queue.waiting or not batch.values:
                    return None
                self.is_changing = True
                self._looks += 1
                self._close(self._topics[queue.topic_partition.topic], queue, False)
                queue.waiting.clear()
                self._busy.pop(queue, None)
                queue.in_flight += 1
                queue.muted = self.limits.ordered
                self._held[batch] = True
                self.is_changing = False
                return batch
        except RuntimeError:  # another thread has the lock: see try_lock()
            if is_held:
                raise
            return None

    def peek(self, queue: PartitionQueue) -> Optional[ProducerBatch]:
        """Return the batch that take() would return, possibly still open."""
        waiting = queue.waiting
        if waiting:
            return waiting[0]
        return None if queue.open is NO_BATCH else queue.open

    def take(self, queue: PartitionQueue) -> Optional[ProducerBatch]:
        """Return the next batch of a queue, closed, to be sent; None if there is none.

        Also None if another thread does not release the lock. The sender has the batch until
        put_back(), replace() or finish().
        """
        try:
            with self._soon:
                self._begin()
                if not queue.waiting and queue.open is not NO_BATCH:
                    self._close(self._topics[queue.topic_partition.topic], queue, False)
                batch = queue.waiting.popleft() if queue.waiting else None
                if not queue.waiting and queue.open is NO_BATCH:
                    self._busy.pop(queue, None)
                if batch is not None:
                    queue.in_flight += 1
                    queue.muted = self.limits.ordered
                    self._held[batch] = True
                self.is_changing = False
                return batch
        except LockBusyError:
            return None

    def _change_soon(self, change: Callable[[ProducerBatch], None], batch: ProducerBatch) -> None:
        """Make a change, or leave it to the next thread that acquires the lock.

        Arguments: change: may be called again after an exception.
        """
        try:
            with self._soon:
                self._begin()
                change(batch)
                self.is_changing = False
        except LockBusyError:
            self.waiting_deferred.append(partial(change, batch))

    @property
    def held(self) -> List[ProducerBatch]:
        """The batches that the sender has taken, in that order."""
        return list(self._held)

    def encoded(self, batch: ProducerBatch) -> None:
        """Update the compression ratio of a topic from an encoded batch."""
        if self.limits.compressed and batch.encoded is not None and batch.raw_size:
            topic = self._topics[batch.topic_partition.topic]
            ratio = min(1.0, len(batch.encoded) / batch.raw_size)
            # Up at once and down slowly: a batch that became too large would have to be split.
            topic.ratio = ratio if ratio > topic.ratio else 0.75 * topic.ratio + 0.25 * ratio

    def put_back(self, batch: ProducerBatch) -> None:
        """Queue a taken batch again, in the original order."""
        self._change_soon(self._put_back, batch)

    def _put_back(self, batch: ProducerBatch) -> None:
        if batch in self._held:  # else a repair has queued it
            queue = self._release(batch)
            queue.put_back(batch)
            self._busy[queue] = None

    def replace(self, batch: ProducerBatch, pieces: Sequence[ProducerBatch]) -> None:
        """Queue the pieces of a taken batch that was split, in its place."""
        with self.lock:
            self._begin()
            share = batch.reserved
            topic = self._topics[batch.topic_partition.topic]
            topic.ratio = 1.0
            for piece in pieces:
                piece.raw_size = batch.raw_size // len(pieces)
            if batch not in self._held:  # a repair has queued them since the batch was split
                self.is_changing = False
                return
            # First: the pieces are as old as the batch, and the oldest have to come first.
            self._incomplete = {**dict.fromkeys(pieces), **self._incomplete}
            queue = self._release(batch)
            self._incomplete.pop(batch, None)
            for piece in pieces:
                piece.reserved = share // len(pieces)
                queue.put_back(piece)
            batch.reserved = 0
            self.memory.release(share - sum(piece.reserved for piece in pieces))
            self._busy[queue] = None
            self.is_changing = False

    def finish(self, batch: ProducerBatch) -> None:
        """Remove a taken batch that has an outcome, and release its memory.

        Does nothing for one that was removed before.
        """
        try:  # inlined _change_soon(): for each send().get()
            with self._soon:
                if self.is_changing or self.waiting_deferred:
                    self._settle()
                self.is_changing = True
                self._finish(batch)
                self.is_changing = False
        except LockBusyError:
            self.waiting_deferred.append(partial(self._finish, batch))

    def _finish(self, batch: ProducerBatch) -> None:
        if batch in self._held:
            self._release(batch)
        self._incomplete.pop(batch, None)
        size, batch.reserved = batch.reserved, 0
        self.memory.adjust(-size)

    def _release(self, batch: ProducerBatch) -> PartitionQueue:
        topic, partition = batch.topic_partition
        queue = self._topics[topic].queues[partition]
        if self._held.pop(batch, False):
            queue.in_flight -= 1
            queue.muted = False
        return queue

    # ------------------------------------------------------------ expiry, flush, close

    def remove_waiting(self, which: Callable[[ProducerBatch], bool]) -> List[ProducerBatch]:
        """Remove all batches that wait to be sent and for which `which` returns True.

        They are closed and their memory is released; the caller has to fail and finish() them.
        """
        removed: List[ProducerBatch] = []
        with self.lock:
            self._begin()
            for queue in list(self._busy):
                if queue.open is not NO_BATCH and which(queue.open):
                    self._close(self._topics[queue.topic_partition.topic], queue, False)
                for batch in [batch for batch in queue.waiting if which(batch)]:
                    queue.waiting.remove(batch)
                    self._held[batch] = False
                    size, batch.reserved = batch.reserved, 0
                    self.memory.adjust(-size)
                    removed.append(batch)
                if not queue.waiting and queue.open is NO_BATCH:
                    del self._busy[queue]
            self.is_changing = False
        return sorted(removed, key=lambda batch: batch.number)

    def expired(self, now: float) -> List[ProducerBatch]:
        """Remove the waiting batches past the delivery timeout; as remove_waiting()."""
        with self.lock:
            self._begin()
            oldest = next(iter(self._incomplete), None)
            self.is_changing = False
        # Compared in the same way as next_at in ready(): with another rounding the sender could
        # loop on a batch that is due and not expired.
        limit = self.limits.delivery_timeout
        if oldest is None or oldest.created_at + limit > now:
            return []
        return self.remove_waiting(lambda batch: batch.created_at + limit <= now)

    def begin_flush(self, now: float) -> List[ProducerBatch]:
        """Stop lingering for all batches; return those that have no outcome yet.

        Boxed values for which there is no memory stay in their boxes: call sweep() before to move
        all.
        """
        with self.patiently:
            self._begin()
            # Otherwise a call of the sender is scheduled, or a timer, for each batch that is not
            # sent. A second call would keep a thread from the fast path (SingleBatchPath).
            is_woken = self._looks == self._woken_at or not self._busy
            may_send_more = self.limits.linger or self._boxes.topics or not is_woken
            for topic in self._boxes.topics:
                topic.box_until = 0.0  # later values are not part of this flush
            self._sweep_all(now)
            self._flushed = (self._opened,)
            batches = list(self._incomplete)
            self.is_changing = False
        if may_send_more:
            self._wake()
        return batches

    @property
    def incomplete(self) -> List[ProducerBatch]:
        """The batches that have no outcome yet."""
        return list(self._incomplete)  # atomic, so without the lock

    @property
    def records(self) -> int:
        """The number of records without an outcome, those in boxes included."""
        with self.patiently:
            self._begin()
            count = sum(len(batch.values) for batch in self._incomplete)  # none once it is done
            count += sum(len(topic.box) for topic in self._boxes.topics)
            self.is_changing = False
            return count

    def has_told_all(self) -> bool:
        """Return True if all records have an outcome and their callbacks have been called.

        Requests that are not answered yet may still hold some that failed: see is_empty().
        """
        if self.waiting_deferred or any(topic.box for topic in list(self._boxes.topics)):
            return False  # in this order, see is_empty()
        return all(batch.is_told for batch in list(self._incomplete))

    def is_empty(self) -> bool:
        """Return True if all records have an outcome, and no request holds any of them."""
        # Checked in the order in which records move: a record is in the next container before it is
        # removed from the previous one. No lock is taken, and another thread may move records
        # between these checks.
        if self.waiting_deferred or any(topic.box for topic in list(self._boxes.topics)):
            return False
        return not self._incomplete

    def leave(self, ticket: Ticket) -> None:
        """Give up waiting for memory; the next in the queue may get it."""
        if (self.is_changing or _MAY_KEEP_LOCK) and self.is_inside():
            return  # the caller drops the ticket, and forget_abandoned() releases its memory
        with contextlib.suppress(LockBusyError), self._soon:  # likewise
            self._begin()
            self.memory.leave(ticket)
            self.is_changing = False
        self._wake_if_open()  # waiting threads check their tickets after a turn of the loop

    def abandon(self, error: KafkaError) -> None:
        """Fail all records without callbacks, in the child of a fork, which has no other thread."""
        self._make_lock()  # a thread of the parent may hold the old one
        self.is_closed = True
        for batch in self._incomplete:
            batch.abandon(error)
        for each in self.waiting_deferred:
            if isinstance(each, DeferredRecord):
                each.stand_in.abandon(error)

    def close(self, sends_rest: bool = True) -> None:
        """Refuse further records.

        Arguments: sends_rest: whether waiting records are still sent, without lingering.
        """
        self.is_closed = True
        self.sends_rest = sends_rest
        # Wait for calls that have found it open, unless one is stuck in code of the program.
        with contextlib.suppress(KafkaTimeoutError), self.patiently:
            if self.is_changing or self.waiting_deferred:
                self._settle()
        self._wake_if_open()  # a closed loop raises, which is ignored


def _is_stuck() -> KafkaTimeoutError:
    also = '; or an exception was raised into that thread, which has to send again'
    return KafkaTimeoutError(
        'another thread has been in the middle of a call of this producer for %.3g s: a finalizer'
        ' or a handler that runs there may wait for this thread%s'
        % (_PATIENCE_SECONDS, also if _MAY_KEEP_LOCK else '')
    )


def _is_at_rest(topic: TopicQueue) -> bool:
    """Return True if no record of a topic waits or is in flight."""
    return not (topic.box or topic.is_watched) and all(
        queue.open is NO_BATCH and not queue.waiting and not queue.in_flight
        for queue in topic.queues.values()
    )
