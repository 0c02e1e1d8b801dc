"""ConsumerRecord: a record as returned by consumers, and ways to create many of them at once.

Created by ``kafka.consumer.fetch.completed_fetch``. Programs import the class from
:mod:`kafka.structs` or ``kafka.consumer.fetcher``. The order of the fields is that of 1.4.4 to 2.0,
with the leader epoch that 2.1 added at the end.
"""

from __future__ import annotations

from collections import deque
from itertools import islice, repeat
from typing import Any, Deque, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple


class ConsumerRecord(NamedTuple):
    """
    One record as returned by a consumer: a named tuple of 13.

    ``timestamp`` is in ms since the epoch, -1 if the producer set none; ``timestamp_type`` is 0 for
    CreateTime, 1 for LogAppendTime; both are None in message format 0. ``key`` and ``value`` are
    the results of the deserializers. ``headers`` is a list of ``(str, bytes or None)``, a separate
    one for each record. ``checksum`` is the CRC that message formats 0 and 1 store, else None. The
    ``serialized_..._size`` are in bytes, -1 if the key or value is None and if there are no
    headers. ``leader_epoch`` is that of the leader which appended the record, -1 if unknown. From
    1.0; headers 1.4.4, leader_epoch 2.1.
    """

    topic: Any
    partition: int
    offset: int
    timestamp: Optional[int]
    timestamp_type: Optional[int]
    key: Any
    value: Any
    headers: Sequence[Tuple[str, Optional[bytes]]] = ()
    checksum: Optional[int] = None
    serialized_key_size: int = -1
    serialized_value_size: int = -1
    serialized_header_size: int = -1
    leader_epoch: Optional[int] = -1


def make_records(columns: Sequence[Iterable[Any]]) -> List[ConsumerRecord]:
    """
    Create records from 13 columns; the shortest column determines their number.

    No Python code runs for each record; calling ConsumerRecord itself takes twice as long.
    """
    return list(_made(columns))


def _made(columns: Sequence[Iterable[Any]]) -> Iterator[ConsumerRecord]:
    return map(tuple.__new__, repeat(ConsumerRecord), zip(*columns))


class RecentRecords:
    """
    The most recently created records, kept alive to avoid work of the cyclic garbage collector.

    The collector counts allocations minus deallocations. A program that reads lists frees many
    records at once, which the count does not reflect, just after as many were created, which
    triggers a collection of all of them; that takes a third of the time. If records are kept here
    and freed one by one, as new ones are created, no collection is triggered. Only small records
    are kept.
    """

    def __init__(self, most: int = 2000, most_bytes: int = 1 << 20) -> None:
        """Keep at most `most` records with values of `most_bytes` bytes in total."""
        self._kept: Deque[ConsumerRecord] = deque(maxlen=most)
        self._most_bytes = most_bytes // most

    def __len__(self) -> int:
        return len(self._kept)

    def make(
        self, columns: Sequence[Iterable[Any]], count: int, size_bytes: int
    ) -> List[ConsumerRecord]:
        """Create ``count`` records as make_records(), with values of ``size_bytes`` in total."""
        kept = self._kept
        if size_bytes > self._most_bytes * count or count > (kept.maxlen or 0) // 2:
            kept.clear()
            return make_records(columns)
        kept.extend(_made(columns))
        return list(islice(kept, len(kept) - count, None))


class LazyRecords:
    """
    Records of one partition, each created when it is requested.

    A record that is dropped before the next is created leaves its memory to that, and the cyclic
    garbage collector is never triggered: a list of records takes twice as long.

    Attributes: iterator: over the records, for one pass; its ``next`` is implemented in C.
    """

    __slots__ = ('_ahead', '_leader_epoch', '_offsets', 'iterator')

    def __init__(
        self, columns: Sequence[Iterable[Any]], offsets: Sequence[int], epoch: int
    ) -> None:
        """Take 13 columns, none shorter than ``offsets``, which is used to find the position."""
        # This iterator is the only one that knows how many records are left.
        self._ahead = iter(offsets)
        self._offsets = offsets
        self._leader_epoch = epoch
        self.iterator = _made([*columns[:2], self._ahead, *columns[3:]])

    def __len__(self) -> int:
        return len(self._offsets)

    def left(self) -> int:
        """Return the number of records not requested yet."""
        hint: int = self._ahead.__length_hint__()  # type: ignore[attr-defined]
        return hint

    def last(self, without: int = 0) -> Optional[Tuple[int, int]]:
        """Return offset and leader epoch of the last record returned to the program, or None.

        Arguments: without: the number of records requested last that were not returned.
        """
        place = len(self._offsets) - self.left() - 1 - without
        return (self._offsets[place], self._leader_epoch) if place >= 0 else None
