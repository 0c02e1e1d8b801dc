"""Batches that come with their records encoded: from columns of Arrow, no record by itself.

Owns how they get into the queues of an accumulator, behind what is there, and how their keys and
values are had should a batch have to be split: out of these bytes, nothing else is kept. Part of
:mod:`kafka.producer.record_accumulator`, whose lock is held for all of it. Who encodes them, and
decides what a batch has, is :mod:`kafka.producer.arrow_rows`.
"""

from __future__ import annotations

from collections import deque
from itertools import chain
from operator import attrgetter
from typing import Any, Callable, Deque, Dict, Iterator, List, NamedTuple, Optional, Sequence

from kafka.errors import IllegalStateError
from kafka.producer.buffer import Ticket
from kafka.producer.fire_and_forget import Boxes
from kafka.producer.future import Placed
from kafka.producer.producer_batch import BATCH_BYTES, ProducerBatch
from kafka.producer.topic_queue import NO_BATCH, PartitionQueue, TopicQueue
from kafka.record.batch_decoder import decode_records
from kafka.record.util import Buffer

# A batch that is expected to shrink when compressed takes so many times more at most.
_MOST_SHRINK = 8
_FIELDS = ('value', 'key', 'headers')


class LateColumn(Sequence[Any]):
    """Keys, values or headers of an encoded batch, which are decoded when somebody looks.

    Arguments: records: what is behind the header of the batch; count: how many records that are;
    field: of a Record.
    """

    __slots__ = ('_count', '_field', '_records')

    def __init__(self, records: Buffer, count: int, field: str) -> None:
        self._records = records
        self._count = count
        self._field = field

    def __repr__(self) -> str:
        return '<LateColumn %s of %d records>' % (self._field, self._count)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        return list(self)[index]

    def __iter__(self) -> Iterator[Any]:
        groups = decode_records(self._records, self._count, 0, 0, None)
        return map(attrgetter(self._field), chain.from_iterable(groups))


class Encoded(NamedTuple):
    """The records of one batch of magic 2: ``records`` is all behind its header, uncompressed.

    ``partition`` None leaves the choice to the accumulator. ``numbers`` as in Placed.
    """

    partition: Optional[int]
    records: memoryview
    record_count: int
    numbers: Optional[Sequence[int]] = None


class ManyEncoded:
    """Encoded batches on their way into queues. Attributes: placed: those that are there."""

    __slots__ = ('parts', 'placed', 'timestamp', 'topic')

    def __init__(self, topic: TopicQueue, timestamp: int) -> None:
        self.topic = topic
        self.timestamp = timestamp
        self.parts: Deque[Encoded] = deque()
        self.placed: List[Placed] = []


class EncodedBatches(Boxes):
    """The part of an accumulator that takes batches which are encoded."""

    _opened: int
    _busy: Dict[PartitionQueue, None]
    _incomplete: Dict[ProducerBatch, None]
    _wait: Callable[[Callable[[], bool], Optional[float]], bool]

    def _choose(self, topic: TopicQueue, size: int) -> PartitionQueue:
        raise NotImplementedError

    def _close(self, topic: TopicQueue, queue: PartitionQueue, was_full: Optional[bool]) -> None:
        raise NotImplementedError

    def batch_room(self, topic: TopicQueue) -> int:
        """Return how many bytes of records a batch takes, before compression."""
        if not self.limits.compressed:
            return self.limits.batch_size
        return int(self.limits.batch_size / max(topic.ratio, 1 / _MOST_SHRINK))

    def append_encoded(
        self, many: ManyEncoded, now: float, ticket: Optional[Ticket] = None
    ) -> Optional[Ticket]:
        """Queue encoded batches, as far as there is memory.

        Returns: None when all are there, else a ticket as append().
        Raises: as append(); KafkaTimeoutError while another thread does not release the lock.
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
        if queue.open is not NO_BATCH:  # it has records that came before
            self._close(topic, queue, None)
        self._opened += 1
        topic.is_used = True
        batch = ProducerBatch(queue.topic_partition, now, 0, self._wait)
        batch.number = (self._opened,)
        batch.reserved, batch.raw_size = ticket.size, size
        columns = [LateColumn(part.records, part.record_count, each) for each in _FIELDS]
        batch.fill(part.records, columns, many.timestamp)
        if part.partition is None:
            topic.sticky.gave(size, True)
        self._incomplete[batch] = None
        self.memory.spend(ticket)
        self._busy[queue] = None
        queue.waiting.append(batch)
        many.placed.append(Placed(batch, 0, batch.record_count, part.numbers))
        return None
