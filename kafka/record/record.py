"""
The tuple of one record, as returned by all readers of this package.

Also the type of header names that are not UTF-8. The encodings are those of
:mod:`kafka.record.default_records` (magic 2) and :mod:`kafka.record.legacy_records` (magic 0 and
1).
"""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple

Header = Tuple[str, Optional[bytes]]


class MalformedHeaderName(str):
    """
    The name of a header whose bytes are not UTF-8, decoded with replacement characters (U+FFFD).

    Brokers store such names unchecked, and the Java consumer decodes them the same way. It is a
    ``str`` in every respect. Attributes: raw: the bytes as they are stored.
    """

    __slots__ = ('raw',)

    raw: bytes

    def __new__(cls, raw: bytes) -> MalformedHeaderName:
        """Decode the bytes."""
        name = super().__new__(cls, raw, 'utf-8', 'replace')
        name.raw = raw
        return name

    def __getnewargs__(self) -> Tuple[bytes]:  # type: ignore[override]
        return (self.raw,)


class _Fields(NamedTuple):
    """The field names; its descriptors read them from any tuple, faster than properties do."""

    offset: int
    timestamp: Optional[int]
    key: Optional[bytes]
    value: Optional[bytes]
    headers: Tuple[Header, ...]


class Record(Tuple[int, Optional[int], Optional[bytes], Optional[bytes], Tuple[Header, ...]]):
    """
    Hold one record: ``Record((offset, timestamp, key, value, headers))``.

    ``offset`` is the absolute log offset. ``timestamp`` is in milliseconds since the epoch, -1
    if the producer gave none, ``None`` in magic 0, which has no timestamps. ``key`` and ``value``
    are ``bytes`` or ``None``. ``headers`` is a tuple of ``(str, bytes or None)``, ``()`` before
    magic 2; a name that is not UTF-8 is a ``MalformedHeaderName``.

    It takes one iterable, as ``tuple`` does, because ``map(Record, zip(*columns))`` creates many
    objects without Python code for each of them.
    """

    __slots__ = ()

    offset = _Fields.offset
    timestamp = _Fields.timestamp
    key = _Fields.key
    value = _Fields.value
    headers = _Fields.headers

    def __repr__(self) -> str:
        return 'Record(offset=%r, timestamp=%r, key=%r, value=%r, headers=%r)' % tuple(self)
