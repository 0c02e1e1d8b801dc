"""The partitions of a KafkaConsumer of 0.9.5: position, high watermark, mark, committed offset.

Used by kafka.consumer.kafka_09, whose ``offsets()`` returns these four columns. Pure.
"""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Tuple

from kafka.blocking.topic_maps import TopicDict
from kafka.structs import TopicAndPartition


class PartitionRow:
    """The row of a partition.

    Attributes:
        position: the offset to fetch next: that of the last returned message, plus 1.
        highwater: the high watermark, None before a fetch.
        committed: the committed offset of the group, None if unknown or nothing is committed.
        done: the offset of the message that was marked last, None before a mark.
        hole: the last range of offsets without a message, as (first, end). Compaction and the
            control records of transactions leave such ranges.
    """

    __slots__ = ('committed', 'done', 'highwater', 'hole', 'position')

    def __init__(self, position: int, committed: Optional[int] = None) -> None:
        self.position = position
        self.committed = committed
        self.highwater: Optional[int] = None
        self.done: Optional[int] = None
        self.hole: Optional[Tuple[int, int]] = None

    def __repr__(self) -> str:
        return '<PartitionRow position=%s highwater=%s committed=%s done=%s>' % (
            self.position,
            self.highwater,
            self.committed,
            self.done,
        )

    def leaves_gap(self, offset: int) -> bool:
        """Return True if a mark at `offset` skips messages, or goes back before the last mark."""
        if self.done is None or offset == self.done + 1:
            return False
        return self.hole is None or self.hole != (self.done + 1, offset)

    def to_commit(self) -> Optional[int]:
        """Return the offset after the marked message; None if there is none or it is committed."""
        if self.done is None or self.done + 1 == self.committed:
            return None
        return self.done + 1


class PartitionTable:
    """The partitions that a consumer reads, in the order of the arguments.

    Arguments: positions: {partition: the first offset to fetch}; committed: {partition: committed
    offset of the group}.
    """

    def __init__(
        self,
        positions: Optional[Mapping[TopicAndPartition, int]] = None,
        committed: Optional[Mapping[TopicAndPartition, int]] = None,
    ) -> None:
        stored = committed or {}
        self._rows = {
            key: PartitionRow(position, stored.get(key))
            for key, position in (positions or {}).items()
        }
        self._turn = 0

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return '<PartitionTable %s>' % (self._rows,)

    def partitions(self) -> List[TopicAndPartition]:
        """Return the partitions, in order."""
        return list(self._rows)

    def get(self, key: TopicAndPartition) -> Optional[PartitionRow]:
        """Return the row of a partition, or None if it is not read."""
        return self._rows.get(key)

    def in_turn(self) -> List[Tuple[TopicAndPartition, PartitionRow]]:
        """Return all rows, beginning with another partition each time."""
        rows = list(self._rows.items())
        if rows:
            # A program that stops in the middle, after an error or by its own choice, would
            # otherwise never read the last partitions.
            first = self._turn % len(rows)
            rows = rows[first:] + rows[:first]
            self._turn = first + 1
        return rows

    def column(self, name: str) -> TopicDict:
        """Return one attribute of every row: {(topic, partition): value}, found by str or bytes."""
        return TopicDict((key, getattr(row, name)) for key, row in self._rows.items())

    def to_commit(self) -> Dict[TopicAndPartition, int]:
        """Return the offsets after marked messages, for partitions where they are not committed."""
        offsets = ((key, row.to_commit()) for key, row in self._rows.items())
        return {key: offset for key, offset in offsets if offset is not None}

    def note_committed(self, offsets: Mapping[TopicAndPartition, int]) -> None:
        """Store the committed offsets."""
        for key, offset in offsets.items():
            self._rows[key].committed = offset

    def forget_committed(self) -> None:
        """Clear the committed offsets, because they are those of another group."""
        for row in self._rows.values():
            row.committed = None
