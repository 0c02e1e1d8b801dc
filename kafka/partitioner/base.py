"""The base class of the partitioners of 0.9.5, also for custom ones."""

from __future__ import annotations

from typing import Any, Optional, Sequence


class Partitioner:
    """Choose a partition for a message by its key (0.9.5).

    Arguments: partitions: the partition ids to choose from, kept as attribute.
    """

    def __init__(self, partitions: Sequence[int]) -> None:
        self.partitions = partitions

    def __repr__(self) -> str:
        return '<%s of %d partitions>' % (type(self).__name__, len(self.partitions))

    def partition(self, key: Any, partitions: Optional[Sequence[int]] = None) -> int:
        """Return the partition id for a key.

        Arguments: key: bytes, or None; partitions: ids to choose from instead of the constructor's.
        Raises: NotImplementedError unless a subclass chooses.
        """
        raise NotImplementedError('a partitioner must define partition()')

    def _choices(self, partitions: Optional[Sequence[int]]) -> Sequence[int]:
        """Return the ids to choose from; ValueError if there are none."""
        choices = partitions or self.partitions
        if not choices:
            raise ValueError('there are no partitions to choose from')
        return choices
