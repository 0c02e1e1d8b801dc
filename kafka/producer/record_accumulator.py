"""Records that wait to be sent: one open batch for each partition, closed ones behind each other.

Owns when a batch is full, lingers, is ready, expires; the limit on memory; and what is not finished
yet, for flush. Pure but for its lock: it is told the time and who leads, it calls ``wake`` when the
sender has something new to look at and ``wait`` (for futures) blocks. Follows KIP-480 and KIP-794
(sticky partitions) and KIP-91 (delivery time-out).

The lock guards everything here, in the topic queues, and in open batches. It is plain, held for
some microseconds, never while anything is called that may block; nothing else is locked for each
record.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from kafka.errors import IllegalStateError, KafkaError
from kafka.producer.buffer import BufferMemory, Ticket
from kafka.producer.encoded_batches import EncodedBatches
from kafka.producer.future import Placed
from kafka.producer.many_records import Group, Many, ends_of, padded
from kafka.producer.plans import Limits, Plan
from kafka.producer.producer_batch import BATCH_BYTES, RECORD_BYTES, Headers, ProducerBatch
from kafka.producer.topic_queue import NO_BATCH, PartitionQueue, TopicQueue

__all__ = ['Limits', 'Plan', 'RecordAccumulator']

#: What the interpreter needs for a value besides its bytes: its head and a place in a list.
OBJECT_BYTES = 48
# Nobody holds the lock for so long, but for somebody who cannot go on.
_HELD_SECONDS = 1.0


class RecordAccumulator(EncodedBatches):
    """Batches of all topics.

    Arguments: limits; wake: called, without the lock, when there is something new to send; wait:
    blocks until a condition holds: (condition, seconds) -> bool.
    """

    def __init__(
        self,
        limits: Limits,
        wake: Callable[[], None],
        wait: Callable[[Callable[[], bool], Optional[float]], bool],
    ) -> None:
        self.limits = limits
        self.memory = BufferMemory(limits.buffer_memory)
        #: Guards everything; see the module's text.
        self.lock = threading.Lock()
        #: Raises while no record may come, as between transactions. Asked under the lock: who
        #: looked before may come too late. Open batches take records meanwhile, and belong to
        #: what ends.
        self.check_send: Optional[Callable[[], None]] = None
        #: Bytes that a record needs besides key and value.
        self.overhead = RECORD_BYTES
        self._wake = wake
        self._wait = wait
        #: Whether the sender was woken and has not looked yet.
        self._woken = False
        self._topics: Dict[Any, TopicQueue] = {}
        # Queues with batches that wait or are open, in the order in which they got them.
        self._busy: Dict[PartitionQueue, None] = {}
        # Batches without an outcome, in the order in which they were opened.
        self._incomplete: Dict[ProducerBatch, None] = {}
        self._boxed = {}
        self._opened = 0
        self._flushes = 0
        self.is_closed = False
        self.sends_rest = False  # because it was closed

    def __repr__(self) -> str:
        return '<RecordAccumulator %d batches, %d of %d bytes%s>' % (
            len(self._incomplete),
            self.memory.used,
            self.memory.total,
            ', closed' if self.is_closed else '',
        )

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
        """Put a record into a batch; return the batch and its place there.

        Arguments: partition: None to choose one; headers: () for none; timestamp: ms, None for that
        of wall; wall: seconds since the epoch; now: monotonic seconds; ticket: what was returned
        before and is granted by now.
        Returns: a ticket instead when there is no memory: to be waited for, or given up by leave().
        Raises: IllegalStateError when it is closed.
        """
        size = self.overhead + len(value or b'') + len(key or b'')
        for name, content in headers:
            size += len(name) + len(content or b'') + 2
        with self.lock:
            if self.is_closed or self.check_send is not None:
                self._check_open()
            if topic.is_forgotten:
                topic = self._present(topic)
            if topic.box:
                ticket = self._sweep(topic, now, ticket)
                if ticket is not None:
                    return ticket
            if partition is None:
                queue = self._choose(topic, size)
                topic.box_until = 0.0  # what is sent next must not be boxed before this
            else:
                queue = topic.queue(partition)
            found = self._batch_for(topic, queue, size, now, ticket)
            if isinstance(found, Ticket):
                return found
            batch = found
            index = len(batch.values)
            if batch.has_columns:
                batch.cut(index)
            if key is not None:
                batch.set_key(index, key)
            if headers:
                batch.set_headers(index, headers)
            self._set_time(batch, index, timestamp, wall)
            batch.room -= size
            # Last, as everywhere: Ctrl-C before leaves nothing but what the next record cuts off.
            batch.values.append(value)
            if batch.room <= 0:
                self._close(topic, queue, True)
            elif partition is None:
                topic.batch = batch
            wake, self._woken = not self._woken, True
        if wake:
            self._wake()
        return batch, index

    def needs_batch(self, topic: TopicQueue, partition: int, size: int) -> bool:
        """Tell whether a record of a size would begin a batch of a partition."""
        with self.lock:
            return topic.queue(partition).open.room <= size

    def set_time(self, batch: ProducerBatch, wall: float) -> None:
        """Note that the records from now on have another millisecond; the lock is held."""
        self._set_time(batch, len(batch.values), None, wall)

    @staticmethod
    def _set_time(batch: ProducerBatch, index: int, timestamp: Optional[int], wall: float) -> None:
        if timestamp is not None:
            batch.set_time(index, timestamp)
            batch.tick = 0.0
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
        """Return the queue for a record without key; a full batch there means another choice."""
        queue = topic.choose()
        if queue.open is not NO_BATCH and queue.open.room <= size:
            self._close(topic, queue, True)
            queue = topic.choose()
            if queue.open is not NO_BATCH and queue.open.room <= size:
                self._close(topic, queue, None)  # filled by others: it stays the choice
        return queue

    def _batch_for(
        self,
        topic: TopicQueue,
        queue: PartitionQueue,
        size: int,
        now: float,
        ticket: Optional[Ticket],
    ) -> Union[ProducerBatch, Ticket]:
        """Return the open batch of a queue if it has room, else a new one, or a ticket."""
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
        batch = ProducerBatch(queue.topic_partition, now, limit, self.lock, self._wait)
        batch.number = (self._opened,)
        batch.reserved = reserved
        # What was left of a room that the first record exceeds would be less than nothing.
        batch.raw_size = batch.room = room
        # In this order: Ctrl-C in between leaves nothing that would be missed or never taken.
        self._busy[queue] = None
        queue.open = batch
        self._incomplete[batch] = None
        return batch

    def _close(self, topic: TopicQueue, queue: PartitionQueue, was_full: Optional[bool]) -> None:
        """Close the open batch of a queue and count what it really needs.

        Arguments: was_full: None when that says nothing about where records without key go.
        """
        batch = queue.open
        self._incomplete[batch] = None  # it is there but for Ctrl-C when it was opened
        if topic.batch is batch:
            topic.batch = NO_BATCH
        queue.open = NO_BATCH
        batch.raw_size = batch.raw_size - batch.room
        batch.close()
        is_choice = queue.topic_partition.partition == topic.sticky.partition
        if is_choice and was_full is not None:
            topic.sticky.gave(batch.raw_size, was_full)
        batch.raw_size += BATCH_BYTES
        needed = batch.raw_size + OBJECT_BYTES * batch.record_count
        difference, batch.reserved = needed - batch.reserved, needed
        queue.waiting.append(batch)
        self.memory.adjust(difference)

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
        """Sort the records of one call by where they go.

        Arguments: sizes: of key and value of each; headers: those that each of them has; timestamp:
        ms, of each; the rest as append().
        """
        many = Many(topic, headers, timestamp)
        more = self.overhead + sum(len(n) + len(c or b'') + 2 for n, c in headers)
        if keys is None or partition is not None:
            queue = None if partition is None else topic.queue(partition)
            many.groups.append(Group(queue, None, values, keys, ends_of(sizes, more)))
            return many
        with self.lock:
            groups = topic.by_keys(keys)
        for found, numbers in groups:
            many.pick(found, numbers, keys, values, sizes, more)
        return many

    def append_many(
        self, many: Many, now: float, ticket: Optional[Ticket] = None
    ) -> Optional[Ticket]:
        """Put records into batches, as far as there is memory.

        Returns: None when all are there, else a ticket as append(). Raises: as append().
        """
        with self.lock:
            self._check_open()
            if many.topic.is_forgotten:
                many.move(self._present(many.topic))
            if many.topic.box:
                ticket = self._sweep(many.topic, now, ticket)
                if ticket is not None:
                    return ticket
            while many.groups:
                ticket = self._append_group(many, many.groups[-1], now, ticket)
                if ticket is not None:
                    break
                many.groups.pop()
            wake, self._woken = not self._woken, True
        if wake:
            self._wake()
        return ticket

    def _append_group(
        self, many: Many, group: Group, now: float, ticket: Optional[Ticket]
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
            # A batch of one record may be too large, else it stays below its limit.
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
            batch.values += group.values[start:end]
            numbers = None if group.numbers is None else group.numbers[start:end]
            many.placed.append(Placed(batch, index, end - start, numbers))
            group.position = start = end
            if start < count or batch.room <= 0:
                self._close(topic, queue, True)
        return ticket

    # ------------------------------------------------------------ for the sender

    @property
    def has_work(self) -> bool:
        """Whether the sender has anything to look at but batches on the wire."""
        return bool(self._busy or self._boxed)

    def ready(self, now: float, leader_of: Callable[[Any], Optional[int]]) -> Plan:
        """Return what may be sent now; what comes from now on wakes the sender again.

        Arguments: leader_of: the node that leads a topic partition; None or -1 where unknown.
        """
        by_node: Dict[int, List[PartitionQueue]] = {}
        leaderless: List[Any] = []
        next_at: Optional[float] = None
        linger = self.limits.linger
        with self.lock:
            self._woken = False
            for oldest in self._incomplete:
                if not oldest.is_done:
                    next_at = oldest.created_at + self.limits.delivery_timeout
                    if next_at <= now:
                        return Plan(by_node, next_at, leaderless, True)
                    break
            if self._boxed:
                self._sweep_all(now)
                # One that is over holds what found no memory: there is news when there is some.
                for each in self._boxed:
                    if each.box_until > now and (next_at is None or each.box_until < next_at):
                        next_at = each.box_until
            at_once = self._flushes or self.sends_rest or self.memory.waiting
            for queue in self._busy:
                if queue.muted:
                    continue
                batch = queue.waiting[0] if queue.waiting else queue.open
                due = batch.not_before
                if linger and not (queue.waiting or at_once):
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
        return Plan(by_node, next_at, leaderless)

    def alone(self) -> Optional[PartitionQueue]:
        """Return the queue of the batch that may be all there is; looked at without the lock."""
        if len(self._incomplete) == len(self._busy) == 1 and not self._boxed:
            for queue in self._busy.copy():
                return queue
        return None

    def take_alone(self, queue: PartitionQueue) -> Optional[ProducerBatch]:
        """Do as take(), if the open batch of a queue is all there is, to be sent at once.

        Like ready(): what comes from now on wakes the sender again. Returns None if it is not.
        """
        with self.lock:
            batch = queue.open
            if batch is NO_BATCH or len(self._incomplete) != 1 or self._boxed or queue.muted:
                return None
            if self.limits.linger or queue.waiting or not batch.values:
                return None
            self._woken = False
            self._close(self._topics[queue.topic_partition.topic], queue, False)
            queue.waiting.clear()
            self._busy.pop(queue, None)
            queue.in_flight += 1
            queue.muted = self.limits.ordered
            return batch

    def peek(self, queue: PartitionQueue) -> Optional[ProducerBatch]:
        """Return the batch that take() would return, still open maybe."""
        if queue.waiting:
            return queue.waiting[0]
        return None if queue.open is NO_BATCH else queue.open

    def take(self, queue: PartitionQueue) -> Optional[ProducerBatch]:
        """Return the next batch of a queue, closed, to be sent; None if there is none.

        It belongs to the sender until put_back(), replace() or finish().
        """
        with self.lock:
            if not queue.waiting and queue.open is not NO_BATCH:
                self._close(self._topics[queue.topic_partition.topic], queue, False)
            if not queue.waiting:
                self._busy.pop(queue, None)
                return None
            batch = queue.waiting.popleft()
            if not queue.waiting and queue.open is NO_BATCH:
                del self._busy[queue]
            if batch.record_count:
                queue.in_flight += 1
                queue.muted = self.limits.ordered
                return batch
            self._drop(batch)
        batch.fail(IllegalStateError('its first record was interrupted'))  # of which nobody knows
        return None

    def encoded(self, batch: ProducerBatch) -> None:
        """Learn from the bytes of a batch how far the next ones of its topic will shrink."""
        if self.limits.compressed and batch.encoded is not None and batch.raw_size:
            topic = self._topics[batch.topic_partition.topic]
            ratio = min(1.0, len(batch.encoded) / batch.raw_size)
            # Quickly up and slowly down: a batch that became too large has to be split.
            topic.ratio = ratio if ratio > topic.ratio else 0.75 * topic.ratio + 0.25 * ratio

    def put_back(self, batch: ProducerBatch) -> None:
        """Queue a batch again that was taken, in its place."""
        with self.lock:
            queue = self._release(batch)
            queue.put_back(batch)
            self._busy[queue] = None

    def replace(self, batch: ProducerBatch, pieces: Sequence[ProducerBatch]) -> None:
        """Queue the pieces of a batch that was taken and is split, in its place."""
        with self.lock:
            queue = self._release(batch)
            self._incomplete.pop(batch, None)
            share, batch.reserved = batch.reserved, 0
            topic = self._topics[batch.topic_partition.topic]
            topic.ratio = 1.0
            for piece in pieces:
                piece.reserved = share // len(pieces)
                piece.raw_size = batch.raw_size // len(pieces)
                queue.put_back(piece)
            # They are as old as what they stand for; the oldest have to be the first.
            self._incomplete = {**dict.fromkeys(pieces), **self._incomplete}
            self.memory.release(share - sum(piece.reserved for piece in pieces))
            self._busy[queue] = None

    def finish(self, batch: ProducerBatch) -> None:
        """Forget a batch that was taken and has an outcome; its memory is free."""
        with self.lock:
            self._release(batch)
            self._drop(batch)

    def _release(self, batch: ProducerBatch) -> PartitionQueue:
        topic, partition = batch.topic_partition
        queue = self._topics[topic].queues[partition]
        queue.in_flight -= 1
        queue.muted = False
        return queue

    def _drop(self, batch: ProducerBatch) -> None:
        self._incomplete.pop(batch, None)
        size, batch.reserved = batch.reserved, 0
        self.memory.adjust(-size)

    # ------------------------------------------------------------ ends

    def remove_waiting(self, which: Callable[[ProducerBatch], bool]) -> List[ProducerBatch]:
        """Take all batches out that are not on the wire and for which `which` says so.

        They are closed and forgotten; whoever calls has to fail them.
        """
        removed: List[ProducerBatch] = []
        with self.lock:
            for queue in list(self._busy):
                if queue.open is not NO_BATCH and which(queue.open):
                    self._close(self._topics[queue.topic_partition.topic], queue, False)
                gone = [batch for batch in queue.waiting if which(batch)]
                for batch in gone:
                    queue.waiting.remove(batch)
                    self._drop(batch)
                removed += gone
                if not queue.waiting and queue.open is NO_BATCH:
                    del self._busy[queue]
        return sorted(removed, key=lambda batch: batch.number)

    def expired(self, now: float) -> List[ProducerBatch]:
        """Take the batches out whose time is over and that are not on the wire; as above."""
        with self.lock:
            oldest = next(iter(self._incomplete), None)
        # Compared as ready() computes when to look again: the difference may round otherwise, and
        # the sender would look for ever at one that is due and not expired.
        limit = self.limits.delivery_timeout
        if oldest is None or oldest.created_at + limit > now:
            return []
        return self.remove_waiting(lambda batch: batch.created_at + limit <= now)

    def begin_flush(self, now: float) -> List[ProducerBatch]:
        """End lingering until end_flush(); return the batches that have no outcome yet.

        What finds no memory stays in the boxes; who has to have all of it calls sweep() before.
        """
        with self.lock:
            self._flushes += 1
            for topic in self._boxed:
                topic.box_until = 0.0  # what comes now is not part of it
            self._sweep_all(now)
            batches = list(self._incomplete)
            self._woken = True
        self._wake()
        return batches

    def end_flush(self) -> None:
        """Let batches linger again."""
        with self.lock:
            self._flushes -= 1

    @property
    def incomplete(self) -> List[ProducerBatch]:
        """The batches that have no outcome yet."""
        with self.lock:
            return list(self._incomplete)

    @property
    def records(self) -> int:
        """How many records have no outcome yet, those in boxes included."""
        with self.lock:
            batches = sum(len(batch.values) for batch in self._incomplete)  # none once it is done
            return batches + sum(len(topic.box) for topic in self._boxed)

    def is_empty(self) -> bool:
        """Tell whether everything has an outcome."""
        return not self._incomplete and not any(topic.box for topic in self._boxed)

    def leave(self, ticket: Ticket) -> None:
        """Give up waiting for memory; those behind may have it then."""
        with self.lock:
            self.memory.leave(ticket)
        try:
            self._wake()  # no turn of the loop has made room, and those who wait look after one
        except IllegalStateError:  # the handler of a signal has closed the producer: none waits
            pass

    def abandon(self, error: KafkaError) -> None:
        """Be of no use any more, in the child of a fork, where no other thread goes on."""
        if self.lock.locked():  # by a thread that is not here
            self.lock.release()
        self.is_closed = True
        for batch in self._incomplete:
            batch.abandon(error)

    def check_held(self) -> None:
        """Raise IllegalStateError where the lock can never be had.

        That is in the handler of a signal that has interrupted the main thread while it had it:
        what it is changing can neither be waited for nor be looked at.
        """
        if self.lock.locked() and threading.current_thread() is threading.main_thread():
            if not self.is_lock_free():
                raise IllegalStateError(
                    'a signal came in the middle of a call of the producer, and its handler calls'
                    ' the producer, which would wait for itself: let the handler note the signal,'
                    ' or raise SystemExit, and flush behind'
                )

    def is_lock_free(self) -> bool:
        """Tell whether nobody has the lock, or will have given it back in a second."""
        if not self.lock.acquire(timeout=_HELD_SECONDS):
            return False
        self.lock.release()
        return True

    def close(self, sends_rest: bool = True) -> None:
        """Take no more records; what is there is ready at once, if it is to be sent at all."""
        with self.lock:
            self.is_closed = True
            self.sends_rest = sends_rest
        self._wake()
