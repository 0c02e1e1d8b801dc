"""
One record as every reader of this package hands it out.

Owns the record tuple only; how records lie in bytes is told by
:mod:`kafka.record.default_records` (magic 2) and :mod:`kafka.record.legacy_records` (magic 0 and
1).
"""

from __future__ import annotations

from operator import itemgetter
from typing import Optional, Tuple

Header = Tuple[str, Optional[bytes]]


class Record(tuple):  # type: ignore[type-arg]
    """
    Hold one record: ``Record((offset, timestamp, key, value, headers))``.

    ``offset`` is the absolute log offset. ``timestamp`` is in milliseconds since the epoch, -1
    where the writer gave none, ``None`` in magic 0, which has no timestamps. ``key`` and
    ``value`` are ``bytes`` or ``None``. ``headers`` is a tuple of ``(str, bytes or None)``,
    ``()`` before magic 2.

    It takes one iterable, as ``tuple`` does, because ``map(Record, zip(*columns))`` is the
    cheapest way CPython has to make many objects (a namedtuple costs a third more, a slotted
    class half more).
    """

    __slots__ = ()

    offset: int = property(itemgetter(0))  # type: ignore[assignment]
    timestamp: Optional[int] = property(itemgetter(1))  # type: ignore[assignment]
    key: Optional[bytes] = property(itemgetter(2))  # type: ignore[assignment]
    value: Optional[bytes] = property(itemgetter(3))  # type: ignore[assignment]
    headers: Tuple[Header, ...] = property(itemgetter(4))  # type: ignore[assignment]

    def __repr__(self) -> str:
        return 'Record(offset=%r, timestamp=%r, key=%r, value=%r, headers=%r)' % tuple(self)
