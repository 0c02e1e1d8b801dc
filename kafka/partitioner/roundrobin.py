"""The partitioner that uses one partition after the other."""

from __future__ import annotations

from typing import Any, Optional, Sequence

from kafka.partitioner.base import Partitioner


class RoundRobinPartitioner(Partitioner):
    """Choose each partition in turn, in the order of the list, whatever the key (0.9.5)."""

    # A number, because itertools.cycle cannot be pickled from Python 3.14 on. A class attribute,
    # because older pickles do not contain it.
    _turn = 0

    def partition(self, key: Any, partitions: Optional[Sequence[int]] = None) -> int:
        """Return the next partition id.

        Arguments: key: ignored; partitions: ids to choose from; a list that differs from the
        last one starts from its beginning, an empty one or None continues with the last one.
        Raises: ValueError when there are no partitions at all.
        """
        choices = self._choices(partitions)
        if choices is not self.partitions and list(choices) != list(self.partitions):
            self.partitions = choices
            self._turn = 0
        chosen = choices[self._turn % len(choices)]
        self._turn += 1
        return chosen
