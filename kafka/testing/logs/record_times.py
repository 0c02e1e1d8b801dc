"""Which record of a log was the first at a time.

Owns the look into the batches; which batches reach a time is known in partition_log.py.
"""

from __future__ import annotations

from typing import Optional, Tuple

from kafka.record.memory_records import MemoryRecords
from kafka.testing.logs.partition_log import PartitionLog


def first_record_at(
    log: PartitionLog, timestamp: int, end_offset: int
) -> Optional[Tuple[int, int]]:
    """Return the first record before an end whose timestamp is not before the one given.

    Returns: offset and timestamp; None if there is none.
    """
    for batch in log.batches_at(timestamp):
        if batch.base_offset >= end_offset:
            break
        for part in MemoryRecords(batch.data, check_crcs=False):
            for record in part:
                stamp = -1 if record.timestamp is None else record.timestamp
                if stamp >= timestamp and record.offset >= log.start_offset:
                    return (record.offset, stamp) if record.offset < end_offset else None
    return None
