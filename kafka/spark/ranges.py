"""The split of offsets into tasks, and into micro-batches.

It implements minPartitions, maxRecordsPerPartition, maxOffsetsPerTrigger and minOffsetsPerTrigger
with the results of the JVM connector, including rounding, so that a tuned job gets the same tasks
and batches. Called by source.py and query.py. Pure.
"""

from __future__ import annotations

import math
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence

from kafka.structs import TopicPartition

__all__ = ['TaskRange', 'is_enough', 'limit', 'split']


class TaskRange(NamedTuple):
    """The offsets that one task reads, from `start` to `stop` (exclusive).

    start_may_move: whether `start` was the log start offset: if the log starts later now, nothing
    that was requested is lost.
    """

    topic: str
    partition: int
    start: int
    stop: int
    start_may_move: bool = False

    @property
    def size(self) -> int:
        """The number of offsets; there may be fewer records."""
        return self.stop - self.start


# ---------------------------------------------------------------- tasks


def split(
    ranges: Sequence[TaskRange], min_partitions: Optional[int], max_records: Optional[int]
) -> List[TaskRange]:
    """Return the ranges of tasks that together read `ranges`, ordered by topic, partition, start.

    Arguments: ranges: of each partition at most one, those without offsets are left out;
    min_partitions: how many tasks there shall be about, large ranges are divided until there are;
    max_records: how many offsets a task reads at most. None: no such wish.
    """
    full = sorted(each for each in ranges if each.size > 0)
    if max_records is not None:
        full = [
            part
            for each in full
            for part in _divided(each, -(-each.size // max_records))
            if part.size
        ]
    if min_partitions is None or min_partitions <= len(full):
        return full
    return _divided_for(full, min_partitions)


def _divided_for(ranges: Sequence[TaskRange], count: int) -> List[TaskRange]:
    """Return about `count` ranges: small ones unchanged, large ones divided by their size."""
    total = sum(each.size for each in ranges)
    whole = [each for each in ranges if _parts(each.size, total, count) == 1]
    # A partition is not divided if one of its ranges is not: they differ by at most one offset.
    kept = {(each.topic, each.partition) for each in whole}
    others = total - sum(each.size for each in whole)
    count = max(count - len(whole), 1)
    found: List[TaskRange] = []
    for each in ranges:
        is_kept = (each.topic, each.partition) in kept
        parts = 1 if is_kept else _parts(each.size, others, count)
        found.extend(part for part in _divided(each, parts) if part.size)
    return found


def _parts(size: int, total: int, count: int) -> int:
    """Return a range's share of `count`, rounded as by Java's Math.round, at least one."""
    return max(math.floor(size / total * count + 0.5), 1)


def _divided(whole: TaskRange, parts: int) -> List[TaskRange]:
    """Return the parts of a range, smaller ones first."""
    found: List[TaskRange] = []
    start = whole.start
    for left in range(parts, 0, -1):
        stop = start + (whole.stop - start) // left
        may_move = whole.start_may_move and not found  # later parts must not skip records
        found.append(whole._replace(start=start, stop=stop, start_may_move=may_move))
        start = stop
    return found


# ---------------------------------------------------------------- micro-batches


def limit(
    start: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, int],
    new_starts: Mapping[TopicPartition, int],
    max_offsets: int,
) -> Dict[TopicPartition, int]:
    """Return where a micro-batch of about `max_offsets` offsets ends, for each key of `latest`.

    Each partition contributes in proportion to its offsets, but at least one: with many small ones
    the batch has more than `max_offsets`.

    Arguments: start: the start of the batch; latest: the ends of the partitions; new_starts: the
    starts of those that are not in `start`; max_offsets: 1 or more.
    """
    begins = {**new_starts, **start}
    sizes = {each: end - begins[each] for each, end in latest.items() if each in begins}
    total = float(sum(size for size in sizes.values() if size > 0))
    ends = dict(latest)
    for each, size in sizes.items():
        if size <= 0:
            continue
        share = max_offsets * (size / total)
        taken = math.ceil(share) if share < 1 else math.floor(share)
        ends[each] = min(latest[each], begins[each] + taken)
    return ends


def is_enough(
    start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int], min_offsets: int
) -> bool:
    """Return True if there are `min_offsets` offsets to read; new partitions count from 0."""
    return sum(end - start.get(each, 0) for each, end in latest.items()) >= min_offsets
