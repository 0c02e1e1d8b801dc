"""Sending of table rows: many records, each with its own headers and partition.

send_many() cannot do this, because all of its records share one partition and one list of headers.
Rows are grouped by partition; those of one partition keep their order, no matter how it was chosen.
Called by :mod:`kafka.spark`, in the writing thread; programs use send().
"""

from __future__ import annotations

import time
from typing import Dict, List, NamedTuple, Optional, Sequence

from kafka.errors import KafkaError, MessageSizeTooLargeError
from kafka.internals.validation import check_topic
from kafka.producer.engine import OVERHEAD, ProducerEngine
from kafka.producer.future import FutureRecords, header_size
from kafka.producer.kafka import KafkaProducer
from kafka.producer.many_records import Many, RecordGroup, ends_of
from kafka.producer.producer_batch import Headers
from kafka.producer.record_checks import check_partition, check_release
from kafka.producer.topic_queue import PartitionQueue, TopicQueue


class Rows(NamedTuple):
    """Columns of records; all except ``values`` are None if no row has such a field.

    A key, value or header value that is ``None`` is stored as null.
    """

    values: Sequence[Optional[bytes]]
    keys: Optional[Sequence[Optional[bytes]]] = None
    headers: Optional[Sequence[Headers]] = None
    partitions: Optional[Sequence[Optional[int]]] = None


class RowRefusedError(KafkaError):
    """A row cannot be sent; no row of the call was. Attributes: index: of the row; reason."""

    def __init__(self, index: int, reason: Exception) -> None:
        super().__init__('row %d: %s' % (index, reason))
        self.index = index
        self.reason = reason


def send_rows(producer: KafkaProducer, topic: str, rows: Rows) -> FutureRecords:
    """Send rows to one topic, without serializers.

    Rows with a partition go there; the partition of the others depends on a hash of the key. For
    rows without both the accumulator chooses; these keep their order only among themselves.

    Returns: as send_many(). Raises: RowRefusedError for a partition that the topic does not have
    and for a row larger than max_request_size; KafkaTimeoutError if the metadata of the topic or
    memory are not available within max_block_ms; the other errors of send_many(); IllegalStateError
    if the producer has serializers, interceptors or a partitioner of the program, which would not
    be called.
    """
    engine = producer.plain_engine()
    deadline = time.monotonic() + engine.max_block
    check_topic(topic)
    has_headers = rows.headers is not None and any(rows.headers)
    check_release(producer.config['api_version'], None in rows.values, has_headers, None)
    if not rows.values:
        return FutureRecords([], [])
    queue = engine.wait_for_queue(topic, deadline)
    if rows.partitions is not None:
        find_partitions(engine, queue, rows.partitions, deadline)
    key_sizes = None if rows.keys is None else _sizes(rows.keys)
    value_sizes = _sizes(rows.values)
    sizes = _together(value_sizes, key_sizes, rows.headers if has_headers else None)
    if max(sizes) + OVERHEAD > engine.largest_record:
        raise too_large(producer, topic, sizes)
    many = Many(queue, (), int(time.time() * 1000))
    accumulator = engine.accumulator
    _sort(many, rows, sizes, accumulator.overhead)
    engine.append_waiting(lambda now, ticket: accumulator.append_many(many, now, ticket), deadline)
    return FutureRecords(many.placed, value_sizes, key_sizes)


def find_partitions(
    engine: ProducerEngine, queue: TopicQueue, wanted: Sequence[Optional[int]], deadline: float
) -> None:
    """Refresh the metadata once if it lacks some of these partitions. Raises: RowRefusedError."""
    new = {each for each in set(wanted) if each is not None and each not in queue.partitions}
    if new:
        engine.refresh(deadline)
    for partition in new:
        try:
            check_partition(queue.topic, partition, queue.partitions)
        except ValueError as error:
            raise RowRefusedError(wanted.index(partition), error) from error


def _sizes(fields: Sequence[Optional[bytes]]) -> List[int]:
    """Return the size of each field, -1 for None."""
    if None in fields:
        return [-1 if field is None else len(field) for field in fields]
    return list(map(len, fields))  # type: ignore[arg-type]


def _together(
    values: List[int], keys: Optional[List[int]], headers: Optional[Sequence[Headers]]
) -> List[int]:
    """Return the size of each row in bytes."""
    columns = [values] if keys is None else [values, keys]
    if headers is not None:
        columns.append(list(map(header_size, headers)))
    filled = [[max(s, 0) for s in column] if -1 in column else column for column in columns]
    sizes = filled[0]
    for column in filled[1:]:
        sizes = list(map(int.__add__, sizes, column))
    return sizes


def too_large(producer: KafkaProducer, topic: str, sizes: List[int]) -> RowRefusedError:
    """Return the error for the largest row. Arguments: sizes: bytes of each."""
    largest = max(sizes)
    return RowRefusedError(
        sizes.index(largest),
        MessageSizeTooLargeError(
            '%d bytes for topic %s, where max_request_size is %d and buffer_memory %d'
            % (
                largest + OVERHEAD,
                topic,
                producer.config['max_request_size'],
                producer.config['buffer_memory'],
            )
        ),
    )


def _sort(many: Many, rows: Rows, sizes: List[int], overhead: int) -> None:
    """Group the rows by queue. Without the lock: the queues of known partitions exist already."""
    queues = _queues(many.topic, rows)
    if queues is None:
        ends = ends_of(sizes, overhead)
        many.groups.append(RecordGroup(None, None, rows.values, None, ends, rows.headers))
        return
    numbers: Dict[Optional[PartitionQueue], List[int]] = {}
    for number, queue in enumerate(queues):
        try:
            numbers[queue].append(number)
        except KeyError:
            numbers[queue] = [number]
    for queue, some in numbers.items():
        many.pick(queue, some, rows.keys, rows.values, sizes, overhead, rows.headers)


def _queues(topic: TopicQueue, rows: Rows) -> Optional[Sequence[Optional[PartitionQueue]]]:
    """Return the queue of each row, None for any; None if all rows may go to any."""
    by_key: Optional[Sequence[Optional[PartitionQueue]]] = None
    if rows.keys is not None:
        if None in rows.keys:
            by_key = [None if key is None else topic.by_key[key] for key in rows.keys]
        else:
            by_key = topic.by_key.of_many(rows.keys)  # type: ignore[arg-type]
    if rows.partitions is None:
        return by_key
    table: Dict[Optional[int], Optional[PartitionQueue]] = {
        each: None if each is None else topic.queue(each) for each in set(rows.partitions)
    }
    chosen = list(map(table.__getitem__, rows.partitions))
    if by_key is not None and None in table:
        return [other if one is None else one for one, other in zip(chosen, by_key)]
    return chosen
