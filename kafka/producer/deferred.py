"""Records that were sent while a change of the accumulator could not be waited for.

The collector may run finalizers wherever an object is made, and Python runs the handlers of signals
between any two steps of the main thread: also where this very thread holds the accumulator's lock
and is in the middle of a change. A send() there can neither wait for the lock nor change what is
being changed. Nor can that of another thread which holds what the finalizer waits for, such as the
lock of a log handler. The record is kept here, its future belongs to a batch that stands in for the
one that takes the record, and the next thread with the lock places it before anything else.
"""

from __future__ import annotations

from collections import deque
from typing import Callable, Deque, NamedTuple, Optional, Union

from kafka.producer.many_records import Group, Many
from kafka.producer.producer_batch import Headers, ProducerBatch
from kafka.producer.topic_queue import TopicQueue
from kafka.structs import TopicPartition

__all__ = ['DeferredRecord', 'DeferredRecords']


class DeferredRecord(NamedTuple):
    """A record that is not placed yet.

    Attributes: stand_in: the batch of its future; many: the record as that of a call of its own;
    partition: None to have one chosen, by the key if there is one; size: bytes; now: monotonic
    seconds.
    """

    stand_in: ProducerBatch
    many: Many
    partition: Optional[int]
    size: int
    now: float


class DeferredRecords:
    """What is to be placed, in the order of the calls; not locked: each step is a single one.

    ``waiting`` also has topics with boxes that are to be watched.
    """

    def __init__(self) -> None:
        self.waiting: Deque[Union[DeferredRecord, TopicQueue]] = deque()

    def __repr__(self) -> str:
        return '<DeferredRecords %d>' % len(self.waiting)

    def size(self) -> int:
        """Return the bytes of all records."""
        return sum(each.size for each in tuple(self.waiting) if isinstance(each, DeferredRecord))

    def add(
        self,
        topic: TopicQueue,
        partition: Optional[int],
        key: Optional[bytes],
        value: Optional[bytes],
        headers: Headers,
        timestamp: int,
        size: int,
        now: float,
        wait: Callable[[Callable[[], bool], Optional[float]], bool],
    ) -> ProducerBatch:
        """Keep a record; return the batch that its future belongs to.

        Arguments: size: bytes that it needs; the others as RecordAccumulator.append() and
        ProducerBatch.
        """
        stand_in = ProducerBatch(
            TopicPartition(topic.topic, -1 if partition is None else partition), now, 0, wait
        )
        stand_in.set_time(0, timestamp)
        stand_in.values.append(value)
        stand_in.close()
        many = Many(topic, headers, timestamp)
        keys = None if key is None else [key]
        many.groups.append(Group(None, None, [value], keys, [size]))
        self.waiting.append(DeferredRecord(stand_in, many, partition, size, now))
        return stand_in
