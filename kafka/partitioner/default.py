"""The partitioner of 1.x to 3.x: by the key as in the Java client, random without one."""

from __future__ import annotations

import random
from typing import Any, Sequence

from kafka.partitioner.abstract import Partitioner
from kafka.partitioner.hashed import murmur2


class DefaultPartitioner(Partitioner):
    """Choose a partition by the hash of the key, or any available one (1.x).

    KafkaProducer, whose default it is, sends records without key to one partition for a while
    (KIP-794) instead of choosing for each record.
    """

    def __repr__(self) -> str:
        return '<DefaultPartitioner>'

    def __call__(self, key: Any, all_partitions: Sequence[int], available: Sequence[int]) -> int:
        """Return the partition id for a key.

        Arguments: key: the serialized key, or None; all_partitions: the ids of the topic;
        available: those with a leader, of which a message without key gets a random one.
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
        bytes or None; cluster: a ClusterMetadata.
        Raises: ValueError for an unknown topic.
        """
        partitions = cluster.partitions_for_topic(topic)
        if not partitions:
            raise ValueError('unknown topic %r' % (topic,))
        available = cluster.available_partitions_for_topic(topic) or ()
        return self(serialized_key, sorted(partitions), sorted(available))
