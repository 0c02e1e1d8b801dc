"""Sending of Arrow columns in whole batches, without a Python object for each record.

Decides which rows can be sent like this, sorts them by partition and cuts them into batches. They
are encoded by :mod:`kafka.record.vector_encoder` and queued by the accumulator. All rows of a call
are sorted at once, so that the cost of a numpy call is paid once for all batches.
:mod:`kafka.producer.rows` sends the others: small numbers of rows, which are cheaper there; columns
in which some rows have neither partition nor key; and headers without a name. Called by
:mod:`kafka.spark`, in the writing thread.
"""

from __future__ import annotations

import time
from typing import Any, List, NamedTuple, Optional, Tuple

from kafka.internals.validation import check_topic
from kafka.producer.encoded_batches import Encoded, ManyEncoded
from kafka.producer.engine import OVERHEAD, ProducerEngine
from kafka.producer.future import FutureRecords
from kafka.producer.kafka import KafkaProducer
from kafka.producer.rows import RowRefusedError, find_partitions, too_large
from kafka.producer.topic_queue import TopicQueue
from kafka.record.vector_encoder import encode_headers, encode_rows, hash_keys, sizes_of
from kafka.record.vectors import has_numpy, numpy, pyarrow

__all__ = ['ArrowRows', 'send_arrow_rows']

#: With fewer rows, in total or for each partition, send_rows() is faster.
_FEWEST = 1000
_FEWEST_EACH = 100
_BATCHES_SINCE = (0, 11)


class ArrowRows(NamedTuple):
    """Arrow columns; all except ``values`` are None if no row has such a field.

    ``values`` and ``keys`` are binary (vector_encoder.as_binary), ``partitions`` are int32,
    ``headers`` are lists of structs of a string and bytes.
    """

    values: Any
    keys: Optional[Any] = None
    partitions: Optional[Any] = None
    headers: Optional[Any] = None


def send_arrow_rows(
    producer: KafkaProducer, topic: str, rows: ArrowRows
) -> Optional[FutureRecords]:
    """Send rows to one topic; return None if send_rows() has to send them.

    Returns, raises: as kafka.producer.rows.send_rows().
    """
    if len(rows.values) < _FEWEST or not has_numpy():
        return None
    if any(each is not None and each.null_count for each in (rows.keys, rows.partitions)):
        return None
    if producer.config['api_version'] < _BATCHES_SINCE:
        return None
    engine = producer.plain_engine()
    deadline = time.monotonic() + engine.max_block
    check_topic(topic)
    queue = engine.wait_for_queue(topic, deadline)
    if rows.keys is not None or rows.partitions is not None:
        if len(rows.values) < _FEWEST_EACH * len(queue.partitions):
            return None
    if rows.partitions is not None:
        _find_partitions(engine, queue, rows.partitions, deadline)
    if rows.headers is not None:
        rows = rows._replace(headers=encode_headers(rows.headers))
        if rows.headers is None:
            return None
    value_sizes = sizes_of(rows.values)
    key_sizes = None if rows.keys is None else sizes_of(rows.keys)
    sizes = numpy().maximum(value_sizes, 0)
    if key_sizes is not None:
        sizes = sizes + key_sizes
    if rows.headers is not None:
        sizes = sizes + sizes_of(rows.headers)
    if sizes.max() + OVERHEAD > engine.largest_record:
        raise too_large(producer, topic, sizes.tolist())
    accumulator = engine.accumulator
    many = ManyEncoded(queue, int(time.time() * 1000))
    _encode(many, rows, sizes + accumulator.overhead, accumulator.batch_room(queue))
    engine.append_waiting(
        lambda now, ticket: accumulator.append_encoded(many, now, ticket), deadline
    )
    return FutureRecords(
        many.placed, value_sizes.tolist(), None if key_sizes is None else key_sizes.tolist()
    )


def _find_partitions(
    engine: ProducerEngine, queue: TopicQueue, column: Any, deadline: float
) -> None:
    wanted = column.unique().to_pylist()
    try:
        find_partitions(engine, queue, wanted, deadline)
    except RowRefusedError as refused:
        row = column.index(wanted[refused.index]).as_py()
        raise RowRefusedError(row, refused.reason) from refused.reason


def _encode(many: ManyEncoded, rows: ArrowRows, sizes: Any, room: int) -> None:
    """Encode batches of at most ``room`` bytes, or of one record that is larger."""
    np, pa = numpy(), pyarrow()
    partitions = _partitions(many.topic, rows)
    columns, order = [rows.values, rows.keys, rows.headers], None
    stretches: List[Tuple[Optional[int], int]] = [(None, len(sizes))]
    if partitions is not None:
        found = np.bincount(partitions)
        ends = np.cumsum(found).tolist()
        stretches = [(int(each), ends[each]) for each in np.flatnonzero(found)]
        if len(stretches) > 1:
            order = np.argsort(partitions, kind='stable')  # a radix sort for int16
            sizes = sizes[order]
            places = pa.array(order)
            columns = [None if each is None else each.take(places) for each in columns]
    cuts = _cuts(np.cumsum(sizes), stretches, room)
    starts = [0, *(end for _, end in cuts[:-1])]
    counts = [end - start for start, (_, end) in zip(starts, cuts)]
    values, keys, headers = columns
    data, edges = encode_rows(keys, values, counts, headers)
    whole = memoryview(data)
    for start, (partition, end), left, right in zip(starts, cuts, [0, *edges], edges):
        numbers = range(start, end) if order is None else order[start:end]
        many.parts.append(Encoded(partition, whole[left:right], end - start, numbers))


def _partitions(topic: TopicQueue, rows: ArrowRows) -> Optional[Any]:
    """Return the partition of each row; None if the accumulator chooses."""
    np = numpy()
    if rows.partitions is not None:
        chosen = rows.partitions.to_numpy(zero_copy_only=False)
    elif rows.keys is not None:
        ids = np.asarray(topic.partitions, dtype=np.int32)
        chosen = ids[(hash_keys(rows.keys) & np.uint32(0x7FFFFFFF)) % np.uint32(len(ids))]
    else:
        return None
    return chosen.astype(np.int16) if chosen.max() < 1 << 15 else chosen


def _cuts(
    ends: Any, stretches: List[Tuple[Optional[int], int]], room: int
) -> List[Tuple[Optional[int], int]]:
    """Return the partition and the end (exclusive) of each batch."""
    cuts: List[Tuple[Optional[int], int]] = []
    start = 0
    for partition, stop in stretches:
        while start < stop:
            base = int(ends[start - 1]) if start else 0
            end = int(ends.searchsorted(base + room, side='right'))
            start = min(max(end, start + 1), stop)
            cuts.append((partition, start))
    return cuts
