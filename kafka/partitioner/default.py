"""The partitioner of 1.x to 3.x: by the key as the Java client chooses, at random without one."""

from __future__ import annotations

import random
from typing import Any, Sequence

from kafka.partitioner.abstract import Partitioner
from kafka.partitioner.hashed import murmur2


class DefaultPartitioner(Partitioner):
    """Choose a partition by the hash of the key, or any that is available (1.x).

    Given to KafkaProducer, which has one unless it is told otherwise, records without key go to one
    partition for a while (KIP-794) instead of each to another.
    """

    def __repr__(self) -> str:
        return '<DefaultPartitioner>'

    def __call__(self, key: Any, all_partitions: Sequence[int], available: Sequence[int]) -> int:
        """Return the partition id for a key.

        Arguments: key: the serialized key, or None; all_partitions: the ids of the topic;
        available: those that have leaders, of which a message without key goes to any.
        Raises: ValueError when there are no partitions at all.
        """
        if not all_partitions and (key is not None or not available):
            raise ValueError('there are no partitions to choose from')
        if key is None:
            return random.choice(available or all_partitions)
        return all_partitions[(murmur2(key) & 0x7FFFFFFF) % len(all_partitions)]

    def partition(
        self,
        topic: Any,
        key: Any,
        serialized_key: Any,
        value: Any,
        serialized_value: Any,
        cluster: Any,
    ) -> int:
        """Return the partition id for a record (3.0).

        Arguments: topic; key, value: as the program gave them; serialized_key, serialized_value:
        bytes or None; cluster: what is known of the cluster, a ClusterMetadata.
        Raises: ValueError when the topic is not known.
        """
        partitions = cluster.partitions_for_topic(topic)
        if not partitions:
            raise ValueError('the topic %r is not known' % (topic,))
        available = cluster.available_partitions_for_topic(topic) or ()
        return self(serialized_key, sorted(partitions), sorted(available))
