"""Repair of the accumulator's tables after an exception in the middle of a change.

Called by the accumulator, with its lock held, after an interrupted change.

A signal handler or ``PyThreadState_SetAsyncExc`` may raise between any two bytecodes of a thread,
and a MemoryError is possible anywhere. :mod:`kafka.producer.record_accumulator` therefore makes its
changes in an order that keeps these correct at any time: the batches without an outcome, which of
them the sender has taken, and the state and the records of each batch. Everything else is derived
from these.
"""

from __future__ import annotations

from collections import deque
from typing import Dict, Iterable, List, Mapping, Tuple

from kafka.producer.producer_batch import BatchState, ProducerBatch
from kafka.producer.topic_queue import NO_BATCH, PartitionQueue, TopicQueue
from kafka.structs import TopicPartition

__all__ = ['remaining_batches', 'repair_queues']


def remaining_batches(
    incomplete: Iterable[ProducerBatch], held: Dict[ProducerBatch, bool]
) -> Dict[ProducerBatch, None]:
    """Return the batches without an outcome, in order.

    Batches without records and those with an outcome are left out; those that were split are
    replaced by their pieces. Arguments: held: the batches that the sender has taken, and whether
    each counts as in flight; those that were split are removed.
    """
    before = list(incomplete)
    found: Dict[ProducerBatch, None] = {}
    for batch in before:
        if batch.state is BatchState.SPLIT:
            held.pop(batch, None)
            for _, piece in batch.pieces or ():
                if piece in before or not piece.is_done:
                    found[piece] = None
                    piece.reserved, batch.reserved = piece.reserved + batch.reserved, 0
        elif batch in held or (batch.values and not batch.is_done):
            found[batch] = None
    return found


def repair_queues(
    topics: Iterable[TopicQueue],
    batches: Iterable[ProducerBatch],
    held: Mapping[ProducerBatch, bool],
    is_ordered: bool,
) -> Dict[PartitionQueue, None]:
    """Rebuild all partition queues; return those with waiting or open batches.

    Arguments: batches, held: results of remaining_batches(); is_ordered: whether a partition has at
    most one batch in flight.
    """
    open_batches: Dict[PartitionQueue, ProducerBatch] = {}
    queues: Dict[TopicPartition, PartitionQueue] = {}
    for topic in topics:
        topic.batch = NO_BATCH
        for queue in list(topic.queues.values()):
            open_batches[queue], queue.open = queue.open, NO_BATCH
            queues[queue.topic_partition] = queue
    waiting: Dict[PartitionQueue, List[ProducerBatch]] = {queue: [] for queue in open_batches}
    in_flight = dict.fromkeys(open_batches, 0)
    for batch in batches:
        queue = queues[batch.topic_partition]
        if batch in held:
            in_flight[queue] += held[batch]
        elif batch.state is BatchState.OPEN and open_batches[queue] is batch:
            batch.has_columns = batch.keys is not None or batch.headers is not None
            batch.cut(len(batch.values))
            queue.open = batch
        else:
            if batch.state is BatchState.OPEN:
                batch.close()
            waiting[queue].append(batch)
    for queue, some in waiting.items():
        queue.waiting = deque(sorted(some, key=lambda batch: batch.number))
        queue.in_flight = in_flight[queue]
        queue.muted = is_ordered and queue.in_flight > 0
    return {
        queue: None
        for queue in sorted(open_batches, key=_oldest)
        if queue.waiting or queue.open is not NO_BATCH
    }


def _oldest(queue: PartitionQueue) -> Tuple[int, ...]:
    batch = queue.waiting[0] if queue.waiting else queue.open
    return batch.number
