"""The records of one send_many() call, or of a box, grouped by partition.

A Many has the groups, and how many records of each are in batches, so that
:mod:`kafka.producer.record_accumulator` can continue when memory is available. Guarded by the lock
of the accumulator.
"""

from __future__ import annotations

from itertools import accumulate, repeat
from operator import itemgetter
from typing import Any, Callable, List, Optional, Sequence

from kafka.producer.future import Placed
from kafka.producer.producer_batch import Headers
from kafka.producer.topic_queue import PartitionQueue, TopicQueue


class RecordGroup:
    """Records of one call for one partition, or for any; no batch has those from position on."""

    __slots__ = ('ends', 'headers', 'into', 'keys', 'numbers', 'position', 'queue', 'values')

    def __init__(
        self,
        queue: Optional[PartitionQueue],
        numbers: Optional[Sequence[int]],
        values: Sequence[Optional[bytes]],
        keys: Optional[Sequence[Optional[bytes]]],
        ends: Sequence[int],
        headers: Optional[Sequence[Headers]] = None,
    ) -> None:
        self.queue = queue
        self.numbers = numbers
        self.values = values
        self.keys = keys
        self.ends = ends
        self.headers = headers  # of each record; None: those of the call
        self.position = 0
        # The batch that the next records are put into, its record count before, and the position
        # after these records: an exception may come before the position is updated.
        self.into: Any = None

    def unplaced(self) -> Sequence[Optional[bytes]]:
        """Return the values that no batch has, also after an exception during an append."""
        if self.into is not None:
            batch, index, end = self.into
            if len(batch.values) > index:
                self.position = end
        return self.values[self.position :]


class Many:
    """The records of one call. Attributes: placed: those that are in batches already."""

    __slots__ = ('groups', 'headers', 'placed', 'timestamp', 'topic')

    def __init__(self, topic: TopicQueue, headers: Headers, timestamp: int) -> None:
        self.topic = topic
        self.headers = headers
        self.timestamp = timestamp
        self.groups: List[RecordGroup] = []
        self.placed: List[Placed] = []

    def move(self, topic: TopicQueue) -> None:
        """Switch to another TopicQueue of the same topic."""
        self.topic = topic
        for group in self.groups:
            if group.queue is not None:
                group.queue = topic.queue(group.queue.topic_partition.partition)

    def pick(
        self,
        queue: Optional[PartitionQueue],
        numbers: Sequence[int],
        keys: Optional[Sequence[Optional[bytes]]],
        values: Sequence[Optional[bytes]],
        sizes: Sequence[int],
        more: int,
        headers: Optional[Sequence[Headers]] = None,
    ) -> None:
        """Add a group of the records at these positions.

        Arguments: sizes: bytes of key and value; more: bytes that each record needs besides.
        """
        pick = _one(numbers[0]) if len(numbers) == 1 else itemgetter(*numbers)
        self.groups.append(
            RecordGroup(
                queue,
                numbers,
                pick(values),
                keys and pick(keys),
                ends_of(pick(sizes), more),
                headers and pick(headers),
            )
        )


def single(
    topic: TopicQueue,
    key: Optional[bytes],
    value: Optional[bytes],
    headers: Headers,
    timestamp: int,
    size: int,
) -> Many:
    """Return a Many with one record. Arguments: timestamp: ms; size: bytes."""
    many = Many(topic, headers, timestamp)
    many.groups.append(RecordGroup(None, None, [value], None if key is None else [key], [size]))
    return many


def _one(number: int) -> Callable[[Sequence[Any]], Sequence[Any]]:
    return lambda column: (column[number],)


def ends_of(sizes: Sequence[int], more: int) -> Sequence[int]:
    """Return the cumulative sizes of the records, each with ``more`` additional bytes."""
    if sizes.count(sizes[0]) == len(sizes):
        size = sizes[0] + more
        return range(size, size * len(sizes) + 1, size)
    return list(accumulate(map(more.__add__, sizes)))


def padded(column: Optional[List[Any]], count: int, filler: Any) -> List[Any]:
    """Return a column with ``count`` entries, extended by ``filler``."""
    if column is None:
        return [filler] * count
    column.extend(repeat(filler, count - len(column)))
    return column
