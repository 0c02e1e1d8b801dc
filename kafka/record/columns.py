"""
Messages of a partition as columns of offset, key and value, for the consumers of 0.9.5.

Without an object per message; :mod:`kafka.record.record` has all fields of a record.
"""

from __future__ import annotations

from itertools import repeat
from typing import Iterator, NamedTuple, Optional, Sequence, Tuple

Fields = Tuple[int, Optional[bytes], Optional[bytes]]


class Columns(NamedTuple):
    """Offsets, keys and values of messages; ``keys`` None means that all keys are null."""

    offsets: Sequence[int]
    keys: Optional[Sequence[Optional[bytes]]]
    values: Sequence[Optional[bytes]]

    def fields(self) -> Iterator[Fields]:
        """Yield offset, key and value of each message."""
        return zip(self.offsets, repeat(None) if self.keys is None else self.keys, self.values)

    def part(self, start: int, end: Optional[int] = None) -> Columns:
        """Return the messages from index ``start`` up to ``end``."""
        keys = None if self.keys is None else self.keys[start:end]
        return Columns(self.offsets[start:end], keys, self.values[start:end])

    def since(self, offset: int) -> Columns:
        """Return the messages from an offset on."""
        offsets = self.offsets[:1] if isinstance(self.offsets, range) else self.offsets
        if min(offsets, default=offset) >= offset:
            return self
        wanted = [index for index, found in enumerate(self.offsets) if found >= offset]
        return Columns(
            [self.offsets[index] for index in wanted],
            None if self.keys is None else [self.keys[index] for index in wanted],
            [self.values[index] for index in wanted],
        )

    def last_offset(self) -> int:
        """Return the largest offset, which is the last except in logs that are out of order."""
        return self.offsets[-1] if isinstance(self.offsets, range) else max(self.offsets)

    def sizes(self) -> Iterator[int]:
        """Yield the size of key and value of each message, together."""
        for _, key, value in self.fields():
            yield len(key or b'') + len(value or b'')

    def no_more_than(self, size: int) -> bool:
        """Return True if no key and value together can be larger than a size; False: check each."""
        largest = _longest(self.values) + (0 if self.keys is None else _longest(self.keys))
        return largest <= size

    def size(self) -> int:
        """Return the size of all keys and values together."""
        return _length(self.values) + (0 if self.keys is None else _length(self.keys))


def _length(fields: Sequence[Optional[bytes]]) -> int:
    return sum(map(len, filter(None, fields)))


def _longest(fields: Sequence[Optional[bytes]]) -> int:
    return max(map(len, filter(None, fields)), default=0)
