"""Batches whose records arrive encoded, from Arrow columns.

Made by :mod:`kafka.producer.arrow_rows` and queued by ``RecordAccumulator.append_encoded()``. Only
the encoded bytes are kept: if such a batch has to be split, keys and values are decoded from them.
"""

from __future__ import annotations

from collections import deque
from itertools import chain
from operator import attrgetter
from typing import Any, Deque, Iterator, List, NamedTuple, Optional, Sequence

from kafka.producer.future import Placed
from kafka.producer.topic_queue import TopicQueue
from kafka.record.batch_decoder import decode_records
from kafka.record.util import Buffer

_FIELDS = ('value', 'key', 'headers')


class LateColumn(Sequence[Any]):
    """Keys, values or headers of an encoded batch, decoded when they are read.

    Arguments: records: the bytes after the batch header; count: number of records; field: the
    attribute of a Record.
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
    """The records of one batch of magic 2: ``records`` is the rest after its header, uncompressed.

    ``partition``: None lets the accumulator choose. ``numbers``: as in Placed.
    """

    partition: Optional[int]
    records: memoryview
    record_count: int
    numbers: Optional[Sequence[int]] = None

    def columns(self) -> List[LateColumn]:
        """Return values, keys and headers, for ProducerBatch.fill()."""
        return [LateColumn(self.records, self.record_count, each) for each in _FIELDS]


class ManyEncoded:
    """The encoded batches of one call. Attributes: parts: not queued yet; placed: queued."""

    __slots__ = ('parts', 'placed', 'timestamp', 'topic')

    def __init__(self, topic: TopicQueue, timestamp: int) -> None:
        self.topic = topic
        self.timestamp = timestamp
        self.parts: Deque[Encoded] = deque()
        self.placed: List[Placed] = []
