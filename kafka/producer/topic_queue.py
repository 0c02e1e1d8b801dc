"""TopicQueue and PartitionQueue: the batches of a topic that wait to be sent, by partition.

A TopicQueue also chooses the partition of records without partition, and has the box of values sent
without a future. Used by the accumulator, whose lock guards everything here; attributes that are
read without the lock are marked.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Callable, Collection, Deque, Dict, List, Optional, Sequence, Tuple

from kafka.partitioner.keys import HotKeys
from kafka.partitioner.sticky import UniformSticky
from kafka.producer.producer_batch import BatchState, ProducerBatch
from kafka.producer.sequence_numbers import place_of
from kafka.structs import TopicPartition


def _never(condition: Callable[[], bool], timeout: Optional[float]) -> bool:
    return condition()


#: The open batch of a queue without one: it has no room, so that no test for None is needed.
NO_BATCH = ProducerBatch(TopicPartition('', 0), 0.0, -1, _never)
NO_BATCH.state = BatchState.CLOSED


class PartitionQueue:
    """The batches of one partition, the oldest first.

    Attributes: waiting: closed batches; open: the one that accepts records, or NO_BATCH; in_flight:
    the number of batches in flight; muted: whether the one in flight must be answered before the
    next is sent; prepared: the request of :mod:`kafka.producer.single_batch_path`, or None.
    """

    __slots__ = ('in_flight', 'muted', 'open', 'prepared', 'topic_partition', 'waiting')

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition = topic_partition
        self.waiting: Deque[ProducerBatch] = deque()
        self.open = NO_BATCH
        self.in_flight = 0
        self.muted = False
        self.prepared: Any = None  # a PreparedProduce, which has a connection

    def __repr__(self) -> str:
        return '<PartitionQueue %s %d wait, %d in flight%s%s>' % (
            place_of(self.topic_partition),
            len(self.waiting),
            self.in_flight,
            '' if self.open is NO_BATCH else ', one open',
            ', muted' if self.muted else '',
        )

    def put_back(self, batch: ProducerBatch) -> None:
        """Queue a batch again, in the order in which batches were opened."""
        waiting = self.waiting
        place = 0
        while place < len(waiting) and waiting[place].number < batch.number:
            place += 1
        waiting.insert(place, batch)


class TopicQueue:
    """The queues of the partitions of a topic.

    Arguments: topic; sticky: chooses the partition of records without key.

    Attributes: partitions; avoided: those whose brokers are slow; ratio: the compression ratio of
    recent batches; batch: the open batch for records without key, or NO_BATCH (read without the
    lock); box: values sent without a future, not yet in a batch; box_until: monotonic seconds, when
    the box has to be emptied (read without the lock, as is box); most_boxed, boxed_size: the
    maximum number of values in the box, and the maximum size of each in bytes; box_time: the
    timestamp (ms) of these values; is_watched: whether the sender will empty the box; by_key: the
    queue of each key; is_used: whether the topic was used since the last forget_idle(); idle_since:
    when that first found it unused; is_forgotten: whether it is removed from the table of the
    accumulator.
    """

    __slots__ = (
        '_choices',
        'available',
        'avoided',
        'batch',
        'box',
        'box_time',
        'box_until',
        'boxed_size',
        'by_key',
        'idle_since',
        'is_forgotten',
        'is_used',
        'is_watched',
        'most_boxed',
        'partitions',
        'put_in_box',
        'queues',
        'ratio',
        'sticky',
        'topic',
    )

    def __init__(self, topic: Any, sticky: UniformSticky) -> None:
        self.topic = topic
        self.sticky = sticky
        self.partitions: Sequence[int] = ()
        self.available: Sequence[int] = ()
        self.avoided: Collection[int] = ()
        self._choices: Sequence[int] = ()
        self.queues: Dict[int, PartitionQueue] = {}
        self.by_key: HotKeys[PartitionQueue] = HotKeys(())
        self.batch = NO_BATCH
        self.ratio = 1.0
        # Never replaced, or a value that another thread is about to append would be lost. Has
        # values; while some of them are moved into batches, a RecordGroup with these comes first.
        self.box: List[Any] = []
        self.put_in_box = self.box.append
        self.box_until = 0.0
        self.box_time = 0
        self.most_boxed = 1000
        self.boxed_size = 1024
        self.is_watched = False
        self.is_used = True
        self.is_forgotten = False
        self.idle_since = 0.0

    def __repr__(self) -> str:
        return '<TopicQueue %s of %d partitions>' % (self.topic, len(self.partitions))

    def update(self, partitions: Sequence[int], available: Sequence[int]) -> None:
        """Set the partitions, ascending, and those that have a leader."""
        if len(partitions) != len(self.partitions):
            self.by_key = HotKeys([self.queue(partition) for partition in partitions])
        self.available = tuple(available)
        self.avoid(self.avoided)
        # Last: a thread that reads them without the lock also sees the other attributes.
        self.partitions = tuple(partitions)

    def avoid(self, slow: Collection[int]) -> None:
        """Avoid these partitions for records without key, as long as there are others."""
        self.avoided = slow
        self._choices = [each for each in self.available if each not in slow] or self.available

    def queue(self, partition: int) -> PartitionQueue:
        """Return the queue of a partition."""
        queue = self.queues.get(partition)
        if queue is None:
            queue = PartitionQueue(TopicPartition(self.topic, partition))
            self.queues[partition] = queue
        return queue

    def choose(self) -> PartitionQueue:
        """Return the queue for records without key."""
        partition, choices = self.sticky.partition, self._choices or self.partitions
        if partition is None or partition not in choices:
            partition = self.sticky.choose(choices, self._queued)
        return self.queues.get(partition) or self.queue(partition)

    def _queued(self, partition: int) -> int:
        queue = self.queues.get(partition)
        return len(queue.waiting) if queue is not None else 0

    def by_keys(
        self, keys: Sequence[Optional[bytes]]
    ) -> List[Tuple[Optional[PartitionQueue], List[int]]]:
        """Group record positions by the queue of their key; None for records without key."""
        numbers: Dict[Optional[PartitionQueue], List[int]] = {}
        chosen: Sequence[Optional[PartitionQueue]]
        if None in keys:
            chosen = [None if key is None else self.by_key[key] for key in keys]
        else:
            chosen = self.by_key.of_many(keys)  # type: ignore[arg-type]
        for number, queue in enumerate(chosen):
            try:
                numbers[queue].append(number)
            except KeyError:
                numbers[queue] = [number]
        return list(numbers.items())
