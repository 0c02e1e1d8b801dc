"""The partitions of a KafkaConsumer of 0.9.5: positions, high watermarks, marks, stored offsets.

Used by kafka.consumer.kafka_09. The four columns are those of its ``offsets()``. Pure.
"""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Tuple

from kafka.blocking.topic_maps import TopicDict
from kafka.structs import TopicAndPartition


class PartitionRow:
    """One partition's row.

    Attributes:
        position: the offset to fetch next: that of the last message handed out, plus 1.
        highwater: the offset after the last committed message of the log, None before a fetch.
        committed: the offset that the group has stored, None for none or not known.
        done: the offset of the message that was marked as done last, None for none.
        hole: the last run of offsets, as (first, end), that holds no message. Compaction and the
            markers of transactions leave such runs.
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
        """Return True if marking a message skips messages, or repeats some marked before."""
        if self.done is None or offset == self.done + 1:
            return False
        return self.hole is None or self.hole != (self.done + 1, offset)

    def to_commit(self) -> Optional[int]:
        """Return the offset after what is done; None when there is none, or it is stored."""
        if self.done is None or self.done + 1 == self.committed:
            return None
        return self.done + 1


class PartitionTable:
    """The partitions that a consumer reads, in the order they were asked for.

    Arguments: positions: the offset to fetch first, of every partition; committed: the stored ones.
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
        """Return the partitions in their order."""
        return list(self._rows)

    def get(self, key: TopicAndPartition) -> Optional[PartitionRow]:
        """Return the row of a partition, or None if it is not read."""
        return self._rows.get(key)

    def in_turn(self) -> List[Tuple[TopicAndPartition, PartitionRow]]:
        """Return all rows, beginning with another partition each time.

        A reader that stops in the middle, because of an error or by its own choice, would else
        never get to the last ones.
        """
        rows = list(self._rows.items())
        if rows:
            first = self._turn % len(rows)
            rows = rows[first:] + rows[:first]
            self._turn = first + 1
        return rows

    def column(self, name: str) -> TopicDict:
        """Return one attribute of every row: {(topic, partition): value}, found by str or bytes."""
        return TopicDict((key, getattr(row, name)) for key, row in self._rows.items())

    def to_commit(self) -> Dict[TopicAndPartition, int]:
        """Return the offsets after what is done, of the partitions where they are not stored."""
        offsets = ((key, row.to_commit()) for key, row in self._rows.items())
        return {key: offset for key, offset in offsets if offset is not None}

    def note_committed(self, offsets: Mapping[TopicAndPartition, int]) -> None:
        """Remember what was stored."""
        for key, offset in offsets.items():
            self._rows[key].committed = offset

    def forget_committed(self) -> None:
        """Forget what was stored, because it was stored for another group."""
        for row in self._rows.values():
            row.committed = None
