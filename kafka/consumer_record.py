"""What a consumer hands out for each record, and how many are made at once.

Owns the tuple; what is in it is read by ``kafka.consumer.fetch.completed_fetch``. Programs import
it from :mod:`kafka.structs` or ``kafka.consumer.fetcher``. The fields stand in the order of 1.4.4
to 2.0, with the leader epoch that 2.1 added at the end.
"""

from __future__ import annotations

from collections import deque
from itertools import islice, repeat
from typing import Any, Deque, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple


class ConsumerRecord(NamedTuple):
    """
    One record as a consumer hands it out: a named tuple of 13.

    ``timestamp`` is in ms since the epoch, -1 where the writer gave none; ``timestamp_type`` is 0
    for the time of the writer, 1 for that of the log; both are None in message format 0.
    ``key`` and ``value`` are what the deserializers made of them. ``headers`` is a list of
    ``(str, bytes or None)``, each record has its own. ``checksum`` is the CRC that message formats
    0 and 1 store, else None. The ``serialized_..._size`` are in bytes, -1 for a key or a value that
    is None and where there are no headers. ``leader_epoch`` is that of the leader which took the
    record, -1 if unknown. From 1.0; headers 1.4.4, leader_epoch 2.1.
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
    Make records of 13 columns, whose shortest says how many.

    No Python code is run for each of them; the call of ConsumerRecord itself takes twice as long.
    """
    return list(_made(columns))


def _made(columns: Sequence[Iterable[Any]]) -> Iterator[ConsumerRecord]:
    return map(tuple.__new__, repeat(ConsumerRecord), zip(*columns))


class RecentRecords:
    """
    The last records that were made as lists, of the sort that costs little memory.

    The cyclic collector counts how many more objects are made than let go. A program that reads
    lists lets go of many at once, which counts for nothing, just after as many were made, which
    makes it look at all of them; that takes a third of the time. While these here are held and let
    go one by one, as new ones are made, it has nothing to do.
    """

    def __init__(self, most: int = 2000, most_bytes: int = 1 << 20) -> None:
        """Hold so many records of so many bytes together at most."""
        self._kept: Deque[ConsumerRecord] = deque(maxlen=most)
        self._most_bytes = most_bytes // most

    def __len__(self) -> int:
        return len(self._kept)

    def make(
        self, columns: Sequence[Iterable[Any]], count: int, size_bytes: int
    ) -> List[ConsumerRecord]:
        """Make ``count`` records, as make_records(); their values have so many bytes together."""
        kept = self._kept
        if size_bytes > self._most_bytes * count or count > (kept.maxlen or 0) // 2:
            kept.clear()
            return make_records(columns)
        kept.extend(_made(columns))
        return list(islice(kept, len(kept) - count, None))


class LazyRecords:
    """
    Records of one partition, each made when it is asked for.

    One that is dropped before the next is made takes the place of that in memory, and the cyclic
    collector never hears of it: a list of them takes twice as long.

    Attributes: iterator: over the records, for one pass; its ``next`` is all in C.
    """

    __slots__ = ('_ahead', '_leader_epoch', '_offsets', 'iterator')

    def __init__(
        self, columns: Sequence[Iterable[Any]], offsets: Sequence[int], epoch: int
    ) -> None:
        """Take 13 columns, none shorter than ``offsets``, which tell where in them one is."""
        # It alone knows how many are left.
        self._ahead = iter(offsets)
        self._offsets = offsets
        self._leader_epoch = epoch
        self.iterator = _made([*columns[:2], self._ahead, *columns[3:]])

    def __len__(self) -> int:
        return len(self._offsets)

    def left(self) -> int:
        """Return how many were not asked for yet."""
        hint: int = self._ahead.__length_hint__()  # type: ignore[attr-defined]
        return hint

    def last(self, without: int = 0) -> Optional[Tuple[int, int]]:
        """Return offset and leader epoch of the one that was handed out last; None before that.

        Arguments: without: so many that were asked for last were not handed out.
        """
        place = len(self._offsets) - self.left() - 1 - without
        return (self._offsets[place], self._leader_epoch) if place >= 0 else None
