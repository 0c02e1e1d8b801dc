"""Records that were sent while the lock of the accumulator could not be waited for.

Python may run a finalizer wherever an object is created, and a signal handler between any two
bytecodes of the main thread, even where that thread holds the lock of the accumulator in the middle
of a change. A send() in such code can neither wait for the lock nor change the tables. Neither can
a send() of another thread that holds a lock for which the finalizer waits, such as that of a log
handler. The record is kept here, with a placeholder batch for its future, and the next thread that
acquires the lock moves the record into a real batch before it does anything else.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import Callable, Deque, NamedTuple, Optional, Union

from kafka.producer.many_records import Many
from kafka.producer.producer_batch import ProducerBatch
from kafka.producer.topic_queue import TopicQueue
from kafka.structs import TopicPartition

__all__ = ['DeferredRecord', 'DeferredRecords']


class DeferredRecord(NamedTuple):
    """A record that is not in a batch yet.

    Attributes: stand_in: the placeholder batch of its future; many: the record, as the only one of
    a call; partition: None to have one chosen, by the key if there is one; now: monotonic seconds.
    """

    stand_in: ProducerBatch
    many: Many
    partition: Optional[int]
    now: float


class DeferredRecords:
    """Deferred records in the order of the calls. Without a lock: each change is atomic.

    ``waiting`` also has topics whose boxes are to be watched, and calls of the sender. ``size`` is
    the total size of the records in bytes; if threads add records at the same time, it may be wrong
    until all are in batches.
    """

    def __init__(self) -> None:
        self.waiting: Deque[Union[DeferredRecord, TopicQueue, partial[None]]] = deque()
        self.size = 0

    def __repr__(self) -> str:
        return '<DeferredRecords %d>' % len(self.waiting)

    def add(
        self,
        many: Many,
        partition: Optional[int],
        now: float,
        wait: Callable[[Callable[[], bool], Optional[float]], bool],
    ) -> ProducerBatch:
        """Keep a record; return the placeholder batch for its future.

        Arguments: many: from many_records.single(); the others as in RecordAccumulator.append() and
        ProducerBatch.
        """
        (group,) = many.groups
        place = TopicPartition(many.topic.topic, -1 if partition is None else partition)
        stand_in = ProducerBatch(place, now, 0, wait)
        stand_in.set_time(0, many.timestamp)
        stand_in.values.append(group.values[0])
        stand_in.close()
        self.waiting.append(DeferredRecord(stand_in, many, partition, now))
        self.size += group.ends[0]
        return stand_in

    def drop_first(self) -> None:
        """Remove the first entry, once it is done; the lock of the accumulator is held."""
        first = self.waiting.popleft()
        if isinstance(first, DeferredRecord):
            self.size -= first.many.groups[0].ends[0]
        if not self.waiting:
            self.size = 0
