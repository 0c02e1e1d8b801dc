"""What an embedded broker has stored, read from its log and not through a client."""

from __future__ import annotations

from kafka.record.memory_records import MemoryRecords


def stored_records(cluster, topic='t', partition=0):
    """Return the records of a partition, in their order."""
    log = cluster.state.topics[topic].partitions[partition].log
    batches = MemoryRecords(log.read(0, log.end_offset, 1 << 30, True))
    return [record for batch in batches for record in batch]


def stored(cluster, topic='t', partition=0):
    """Return the values of the records of a partition, in their order."""
    return [record.value for record in stored_records(cluster, topic, partition)]
