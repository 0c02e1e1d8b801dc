"""Partitions for records without key: one partition for a while, then another (KIP-480, KIP-794).

UniformSticky is the default of KafkaProducer; StickyPartitioner is the class that programs of 3.0
name. The random function is an argument.
"""

from __future__ import annotations

import random
from typing import Any, Callable, Dict, Optional, Sequence

from kafka.partitioner.default import DefaultPartitioner


class UniformSticky:
    """The present partition for records without key of one topic.

    All partitions get about the same number of bytes, unless they are slow. A batch goes to a
    partition with the fewest waiting batches: a slow one gets less, which KIP-794 achieves by
    probabilities that decrease with the queue's length; and the batches of one long call are spread
    over all partitions, so that a request, which has one batch of each, carries more of them.

    Arguments: enough: bytes after which another one is chosen; adaptive: whether queues count;
    chance: returns a random number from 0 up to 1.
    """

    __slots__ = ('_adaptive', '_chance', '_enough', '_given', 'partition')

    def __init__(
        self, enough: int, adaptive: bool = True, chance: Callable[[], float] = random.random
    ) -> None:
        self._enough = enough
        self._adaptive = adaptive
        self._chance = chance
        self._given = 0
        #: The choice, None before the first one and when the last one has got enough.
        self.partition: Optional[int] = None

    def __repr__(self) -> str:
        return '<UniformSticky %s has %d of %d bytes>' % (
            self.partition,
            self._given,
            self._enough,
        )

    def gave(self, size: int, was_full: bool) -> None:
        """Note that a batch of this size was closed, and whether it was full."""
        self._given += size
        if was_full or self._given >= self._enough:
            self.partition = None

    def choose(self, choices: Sequence[int], queued: Callable[[int], int]) -> int:
        """Return the present choice, or make a new one.

        Arguments: choices: partitions with a leader, or all if none has one; queued: returns the
        number of waiting batches of a partition.
        Raises: ValueError for no choices.
        """
        if self.partition is not None and self.partition in choices:
            return self.partition
        if not choices:
            raise ValueError('there are no partitions to choose from')
        self._given = 0
        if self._adaptive:
            waiting = [queued(choice) for choice in choices]
            least = min(waiting)
            choices = [choice for choice, count in zip(choices, waiting) if count == least]
        self.partition = choices[int(self._chance() * len(choices))]
        return self.partition


class StickyPartitioner(DefaultPartitioner):
    """By the hash of the key; without one, the same partition until a batch is full (3.0).

    As an option of KafkaProducer it means the producer's default.
    """

    def __init__(self) -> None:
        self._sticky: Dict[Any, int] = {}

    def __repr__(self) -> str:
        return '<StickyPartitioner>'

    def partition(
        self,
        topic: Any,
        key: Any,
        serialized_key: Any,
        value: Any,
        serialized_value: Any,
        cluster: Any,
    ) -> int:
        """Return the partition id for a record; arguments and errors as for DefaultPartitioner."""
        if serialized_key is not None or topic not in self._sticky:
            chosen = super().partition(topic, key, serialized_key, value, serialized_value, cluster)
            if serialized_key is not None:
                return chosen
            self._sticky[topic] = chosen
        return self._sticky[topic]

    def on_new_batch(self, topic: Any, cluster: Any, prev_partition: int) -> None:
        """Choose another partition for a topic, because a batch for this one is full."""
        if self._sticky.get(topic) != prev_partition:
            return
        choices = sorted(cluster.available_partitions_for_topic(topic) or ())
        others = [choice for choice in choices if choice != prev_partition]
        if others:
            self._sticky[topic] = random.choice(others)
