"""Where records without key go: to one partition for a while, then to another (KIP-480, KIP-794).

Owns the choice and when to make a new one. UniformSticky is what KafkaProducer uses unless it is
told otherwise; StickyPartitioner is the class that programs of 3.0 name. Chance is an argument.
"""

from __future__ import annotations

import random
from typing import Any, Callable, Dict, Optional, Sequence

from kafka.partitioner.default import DefaultPartitioner


class UniformSticky:
    """The partition that records without key of one topic go to now.

    Each gets about as many bytes as any other, unless it is slow. A batch goes where the fewest
    wait: a slow partition gets less, as KIP-794 wants it, which has chances that fall with the
    queue's length; and the batches of one long call go to as many partitions as there are, so that
    a request, which has one batch of each, carries more of them.

    Arguments: enough: bytes after which another one is chosen; adaptive: whether queues count;
    chance: returns a number from 0 up to 1.
    """

    __slots__ = ('_adaptive', '_chance', '_enough', '_given', 'partition')

    def __init__(
        self, enough: int, adaptive: bool = True, chance: Callable[[], float] = random.random
    ) -> None:
        self._enough = enough
        self._adaptive = adaptive
        self._chance = chance
        self._given = 0
        #: The choice, None before the first and after the last one has had enough.
        self.partition: Optional[int] = None

    def __repr__(self) -> str:
        return '<UniformSticky %s has %d of %d bytes>' % (
            self.partition,
            self._given,
            self._enough,
        )

    def gave(self, size: int, was_full: bool) -> None:
        """Note that a batch of so many bytes is closed, and whether nothing more fitted in."""
        self._given += size
        if was_full or self._given >= self._enough:
            self.partition = None

    def choose(self, choices: Sequence[int], queued: Callable[[int], int]) -> int:
        """Return the present choice, or make a new one.

        Arguments: choices: partitions with a leader, or all where none has one; queued: how many
        batches of a partition wait.
        Raises: ValueError when there are no choices.
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

    Given to KafkaProducer it does what the producer does by itself.
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
        """Return the partition id for a record; arguments and errors as DefaultPartitioner's."""
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
