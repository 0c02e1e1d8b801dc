"""The plan of a query's micro-batches: where they end, and what each of them reads.

It decides how long to wait for small batches, converts offsets of Spark's checkpoint, and detects
lost records; the decisions and the kinds of loss are those of the JVM connector. Called by
query.py, which sends the requests; ranges.py splits a batch into tasks. Pure: `now` is an argument,
in monotonic seconds.
"""

from __future__ import annotations

import json
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Set, Tuple

from kafka.errors import InvalidOptionError, KafkaError
from kafka.spark.offsets import embedded_start, offset_tree, parse_offsets
from kafka.spark.ranges import TaskRange, is_enough
from kafka.structs import TopicPartition

__all__ = [
    'DataLossError', 'Loss', 'Patience', 'Plan', 'begin_of', 'first_end', 'listed', 'next_end',
    'offsets_of', 'plan', 'went_back',
]  # fmt: skip

Offsets = Mapping[TopicPartition, int]
#: Offsets as PySpark passes them: the result of json.loads() on those in the checkpoint.
Tree = Dict[str, Any]

_MOST_LISTED = 8


class DataLossError(KafkaError):
    """Records that a query has not read are gone, and failOnDataLoss is true.

    Arguments: kind: as in the JVM connector's KAFKA_DATA_LOSS.kind, kept as an attribute; text: a
    description of the loss.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(kind, text)
        self.kind = kind
        self.text = text

    def __str__(self) -> str:
        return (
            '[KAFKA_DATA_LOSS.%s] %s. Some data may have been lost: Kafka has aged it out, or the'
            ' topic was deleted before all of it was read. To continue without it, set'
            ' failOnDataLoss to false' % (self.kind, self.text)
        )


# ---------------------------------------------------------------- the checkpoint


def offsets_of(tree: Tree) -> Dict[TopicPartition, int]:
    """Return the offsets in a checkpoint of either connector.

    Raises InvalidOptionError unless they are offsets of this source.
    """
    try:
        return parse_offsets(json.dumps(tree), 'the offset in the checkpoint of the query')
    except InvalidOptionError as error:
        raise InvalidOptionError(
            '%s: if it belongs to a query with another source, this query needs its own'
            ' checkpointLocation' % error.args[0]
        ) from None


def begin_of(start: Tree, end: Tree) -> Dict[TopicPartition, int]:
    """Return where a batch begins: at `start`, unless the end of the first batch contains its
    start.

    Spark asks for the start of the first batch again when it repeats that batch, and "latest" has
    changed by then: therefore the end of the first batch contains its start.
    """
    begin = None if start == end else embedded_start(json.dumps(end))
    return offsets_of(start) if begin is None else begin


def first_end(start: Offsets, end: Offsets) -> Tree:
    """Return the end of the first batch, which contains its start."""
    return offset_tree(end, start)


def next_end(start: Tree, end: Offsets) -> Tree:
    """Return the end of a later batch: `start` itself if there is nothing new.

    Spark compares offsets as text.
    """
    return start if offsets_of(start) == end else offset_tree(end)


# ---------------------------------------------------------------- when a batch is due


class Patience:
    """The wait for batches of a minimum size (minOffsetsPerTrigger, maxTriggerDelay).

    Arguments: min_offsets: None for any size; max_delay: seconds since the last batch after which
    it is due in any case. The first batch is due at once.
    """

    def __init__(self, min_offsets: Optional[int], max_delay: float) -> None:
        self._min_offsets = min_offsets
        self._max_delay = max_delay
        self._last: Optional[float] = None

    def __repr__(self) -> str:
        return '<Patience for %s offsets, %g s>' % (self._min_offsets, self._max_delay)

    def is_due(self, start: Offsets, latest: Offsets, now: float) -> bool:
        """Return True if a batch from `start` is due; it then counts as the last one."""
        if self._min_offsets is None:
            return True
        is_late = self._last is None or now - self._last >= self._max_delay
        if not is_late and not is_enough(start, latest, self._min_offsets):
            return False
        self._last = now
        return True


# ---------------------------------------------------------------- ranges and losses


class Loss(NamedTuple):
    """Records that a batch should have read but cannot: see DataLossError."""

    kind: str
    partitions: Tuple[TopicPartition, ...]
    text: str

    def error(self) -> DataLossError:
        """Return the loss as an error."""
        return DataLossError(self.kind, self.text)


class Plan(NamedTuple):
    """The ranges that are read for a batch, and the losses in it."""

    ranges: List[TaskRange]
    losses: List[Loss]


def plan(
    start: Offsets,
    end: Offsets,
    new_starts: Offsets,
    earliest: Optional[Offsets] = None,
    existing: Optional[Set[TopicPartition]] = None,
) -> Plan:
    """Return the ranges between two offsets, and the losses.

    Arguments: new_starts: the start of those partitions of `end` that are not in `start`, without
    partitions that no longer exist; earliest: the log start offsets, if they were requested;
    existing: the partitions that exist, if they were requested.
    """
    losses = _of_new(start, end, new_starts)
    known = {**start, **new_starts}
    gone = {each for each in start if each not in end}
    if existing is not None:
        gone.update(each for each in start if each not in existing)
    if gone:
        text = 'Partitions %s have been deleted after offsets up to %s were read'
        told = ', '.join(str(start[each]) for each in sorted(gone)[:_MOST_LISTED])
        losses.append(Loss('PARTITIONS_DELETED', tuple(sorted(gone)), text % (listed(gone), told)))
    ranges = []
    for at in sorted(each for each in end if each in known and each not in gone):
        first, stop = known[at], end[at]
        if stop < first:
            losses.append(_changed(at, first, stop))
            continue
        begin = (earliest or {}).get(at, first)
        if first < min(begin, stop):
            losses.append(_aged_out(at, first, begin))
            first = min(begin, stop)
        ranges.append(TaskRange(str(at.topic), at.partition, first, stop))
    return Plan(ranges, losses)


def _of_new(start: Offsets, end: Offsets, new_starts: Offsets) -> List[Loss]:
    """Return the losses of partitions that were added: each is read from offset 0."""
    losses = []
    unknown = sorted(each for each in end if each not in start and each not in new_starts)
    if unknown:
        text = 'Cannot find where partitions %s begin: they have been deleted' % listed(unknown)
        losses.append(Loss('INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS', tuple(unknown), text))
    for at, first in sorted(new_starts.items()):
        if first != 0:
            text = 'Added partition %s starts from %d instead of 0' % (listed([at]), first)
            losses.append(Loss('ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO', (at,), text))
    return losses


def _changed(at: TopicPartition, first: int, stop: int) -> Loss:
    text = (
        'The end of partition %s went back from offset %d to %d: the query starts after the end, or'
        ' the topic was deleted and created again'
    )
    return Loss('PARTITION_OFFSET_CHANGED', (at,), text % (listed([at]), first, stop))


def _aged_out(at: TopicPartition, first: int, begin: int) -> Loss:
    text = 'Partition %s must be read from offset %d, but its log starts at %d'
    return Loss('START_OFFSET_RESET', (at,), text % (listed([at]), first, begin))


def went_back(start: Offsets, latest: Offsets) -> bool:
    """Return True if a log ends before the read offset, which a new leader may report for a
    moment."""
    return any(end < start.get(each, end) for each, end in latest.items())


def listed(partitions: Iterable[TopicPartition]) -> str:
    """Return the first partitions as text."""
    some = sorted(partitions)
    rest = ' and %d more' % (len(some) - _MOST_LISTED) if len(some) > _MOST_LISTED else ''
    return ', '.join('%s-%d' % (str(each[0]), each[1]) for each in some[:_MOST_LISTED]) + rest
