"""Lookup of the first record with a timestamp, inside the batches of a log.

Called by handlers/list_offsets.py and groups/share_groups.py.
"""

from __future__ import annotations

from typing import Optional, Tuple

from kafka.record.memory_records import MemoryRecords
from kafka.testing.logs.partition_log import PartitionLog


def first_record_at(
    log: PartitionLog, timestamp: int, end_offset: int
) -> Optional[Tuple[int, int]]:
    """Return the first record below ``end_offset`` with this timestamp or a later one.

    Returns: offset and timestamp; None if there is no such record.
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
