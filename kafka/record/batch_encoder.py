"""
An encoder of the records in a batch of magic 2, which encodes a whole batch at a time.

It encodes the bytes after the batch header, before compression; the header is encoded by
:mod:`kafka.record.default_records`. Columns of records are processed by ``map``, ``zip`` and one
``join``, without Python code per record. The oracle is the writer in ``test/record/oracle.py``.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain, repeat
from typing import Any, Callable, Dict, Iterable, List, NoReturn, Optional, Sequence, Tuple

from kafka.errors import ProtocolError
from kafka.record.record import Header
from kafka.record.util import VARINTS

RecordFields = Tuple[int, Optional[bytes], Optional[bytes], Sequence[Header]]

# The maximum number of timestamps in a batch for which each has tables of its own.
_MOST_TIMES = 64
# The number of offset deltas whose varints are cached.
_KEPT = 8192


@lru_cache(maxsize=None)
def _offset_varints() -> List[bytes]:
    return [VARINTS[delta] for delta in range(_KEPT)]


def _offsets(count: int) -> List[bytes]:
    if count <= _KEPT:
        return _offset_varints()[:count]
    return list(map(VARINTS.__getitem__, range(count)))


def encode_records(records: Sequence[RecordFields], base_timestamp: int) -> bytes:
    """
    Encode the records of one batch.

    ``records`` has ``(timestamp_ms, key, value, headers)``; offset deltas count up from 0,
    timestamps are written as deltas to ``base_timestamp``. Raises ``TypeError`` naming the first
    field of a wrong type, ``ProtocolError`` for numbers out of range.
    """
    if not records:
        return b''
    try:
        timestamps, keys, values, headers = zip(*records)
        if keys.count(None) == len(keys) and not any(headers) and None not in values:
            if timestamps.count(base_timestamp) == len(timestamps):
                return _encode_alike(None, values)
        return _encode_full(timestamps, keys, values, headers, base_timestamp)
    except (TypeError, ValueError, AttributeError) as error:
        _complain(records, error)


def encode_messages(keys: Sequence[Optional[bytes]], values: Sequence[Optional[bytes]]) -> bytes:
    """
    Encode keys and values as records with the base timestamp and without headers.

    For messages of 0.9.5, many of which share one key. Raises as :func:`encode_records`.
    """
    if not values:
        return b''
    if len(values) == 1 and type(values[0]) is bytes:  # benchmarks/simple.py --only single
        if keys[0] is None or type(keys[0]) is bytes:
            return encode_one(keys[0], values[0])
    try:
        if keys.count(keys[0]) == len(keys):
            try:
                return _encode_alike(keys[0], values)  # type: ignore[arg-type]
            except TypeError:  # a check for None in advance would cost too much
                if None not in values:
                    raise
        return _encode_full(repeat(0), keys, values, [()], 0)
    except (TypeError, ValueError, AttributeError) as error:
        _complain([(0, key, value, ()) for key, value in zip(keys, values)], error)


def encode_columns(
    values: Sequence[Optional[bytes]],
    keys: Optional[Sequence[Optional[bytes]]],
    headers: Optional[Sequence[Sequence[Header]]],
    deltas: Sequence[Tuple[int, int]],
) -> bytes:
    """
    Encode columns of records, as a producer collects them.

    ``keys`` and ``headers`` None mean that all are absent. ``deltas`` has the index of the first
    record of each timestamp, and its distance (ms) to the base timestamp; the first index is 0.
    Raises as :func:`encode_records`.
    """
    if not values:
        return b''
    if len(values) == 1 and headers is None and type(values[0]) is bytes:  # one in flight
        key = None if keys is None else keys[0]
        if (key is None or type(key) is bytes) and len(deltas) == 1 and not deltas[0][1]:
            return encode_one(key, values[0])
    try:
        if headers is None and len(deltas) <= _MOST_TIMES:
            try:
                if keys is None and len(deltas) == 1 and not deltas[0][1]:
                    return _encode_alike(None, values)  # type: ignore[arg-type]
                encoded = _encode_stamped(keys, values, deltas)  # type: ignore[arg-type]
                if encoded is not None:
                    return encoded
            except TypeError:  # a check for None in advance would cost too much
                if None not in values and (keys is None or None not in keys):
                    raise
        ends = [start for start, _ in deltas[1:]] + [len(values)]
        times = chain.from_iterable(
            repeat(delta, end - start) for (start, delta), end in zip(deltas, ends)
        )
        return _encode_full(
            times, keys or [None] * len(values), values, headers or [()] * len(values), 0
        )
    except (TypeError, ValueError, AttributeError) as error:
        rows = zip(repeat(0), keys or repeat(None), values, headers or repeat(()))
        _complain(list(rows), error)


def encode_one(key: Optional[bytes], value: bytes) -> bytes:
    """Encode the only record of a batch, without headers."""
    sized = b'\x01' if key is None else VARINTS[len(key)] + key
    body = b'\x00\x00\x00' + sized + VARINTS[len(value)] + value + b'\x00'
    return VARINTS[len(body)] + body


def _complain(records: Sequence[Any], error: Exception) -> NoReturn:
    """Raise an error that names the invalid field and its record."""
    for index, record in enumerate(records):
        if not isinstance(record, (tuple, list)) or len(record) != 4:
            raise TypeError('record %d must be (timestamp, key, value, headers)' % index) from error
        timestamp, key, value, headers = record
        if not isinstance(timestamp, int):
            raise TypeError(
                'timestamp of record %d must be int, not %s' % (index, type(timestamp).__name__)
            ) from error
        for name, field in (('key', key), ('value', value)):
            if field is not None and not isinstance(field, (bytes, bytearray, memoryview)):
                raise TypeError(
                    '%s of record %d must be bytes or None, not %s'
                    % (name, index, type(field).__name__)
                ) from error
        try:
            _header_block(headers)
        except (TypeError, ValueError, AttributeError):
            raise TypeError(
                'headers of record %d must be pairs of str and bytes or None' % index
            ) from error
    raise ProtocolError('the records cannot be encoded: %s' % error) from error


class _Heads(Dict[int, bytes]):
    """
    Map a value's length to the bytes before the offset delta of a record without headers.

    These are the header count of the record before, the record's length, the attributes and the
    ``delta`` of the timestamp. ``width`` is the size of the offset delta, ``key_bytes`` that of the
    key with its length.
    """

    def __init__(self, width: int, key_bytes: int, delta: bytes = b'\x00') -> None:
        self.fixed = 1 + len(delta) + width + key_bytes + 1
        self.delta = delta
        self.most = 65536 if delta == b'\x00' else 1024

    def __missing__(self, length: int) -> bytes:
        if len(self) >= self.most:
            self.clear()
        size = self.fixed + len(VARINTS[length]) + length
        head = self[length] = b'\x00%b\x00%b' % (VARINTS[size], self.delta)
        return head


class _Middles(Dict[int, bytes]):
    """Map a value's length to the bytes before the value: a null key and the length."""

    def __missing__(self, length: int) -> bytes:
        if len(self) >= 65536:
            self.clear()
        middle = self[length] = b'\x01' + VARINTS[length]
        return middle


_MIDDLES = _Middles()
# The offset deltas at which their varint becomes longer.
_WIDENS = (0, 64, 8192, 1 << 20, 1 << 27, 1 << 31)


@lru_cache(maxsize=64)
def _heads_by_width(key_bytes: int) -> List[_Heads]:
    return [_Heads(width, key_bytes) for width in range(1, 6)]


def _heads(lengths: List[int], key_bytes: int = 1) -> Iterable[bytes]:
    by_width = _heads_by_width(key_bytes)
    return chain.from_iterable(
        map(by_width[width].__getitem__, lengths[_WIDENS[width] : _WIDENS[width + 1]])
        for width in range(5)
        if len(lengths) > _WIDENS[width]
    )


@lru_cache(maxsize=16)
def _prefixes(length: int) -> List[bytes]:
    """Return the bytes before each of the first values, if all have the same length."""
    offsets = _offset_varints()
    heads = _heads([length] * len(offsets))
    middle = _MIDDLES[length]
    return [head + offset + middle for head, offset in zip(heads, offsets)]


def _encode_alike(key: Optional[bytes], values: Sequence[bytes]) -> bytes:
    """Encode records of one key without headers, all with the base timestamp."""
    count = len(values)
    lengths = list(map(len, values))
    parts: List[bytes]
    if key is None and lengths.count(lengths[0]) == count and 16 < count <= _KEPT:
        parts = [b''] * (2 * count)
        parts[0::2] = _prefixes(lengths[0])[:count]
        parts[1::2] = values
    else:
        middles: Iterable[bytes] = map(_MIDDLES.__getitem__, lengths)
        key_bytes = 1
        if key is not None:
            sized = VARINTS[len(key)] + key
            middles = map(sized.__add__, map(VARINTS.__getitem__, lengths))
            key_bytes = len(sized)
        columns = (_heads(lengths, key_bytes), _offsets(count), middles, values)
        parts = list(chain.from_iterable(zip(*columns)))
    # Each record begins with the header count of the one before it.
    parts[0] = parts[0][1:]
    parts.append(b'\x00')
    return b''.join(parts)


@lru_cache(maxsize=128)
def _heads_at(width: int, delta: int) -> _Heads:
    return _Heads(width, 1, VARINTS[delta])


class _KeyedHeads(Dict[int, bytes]):
    """As _Heads, by the length of key and value together; ``fixed`` is the rest of the record."""

    def __init__(self, fixed: int, delta: bytes) -> None:
        self.fixed = fixed + len(delta)
        self.delta = delta

    def __missing__(self, length: int) -> bytes:
        if len(self) >= 1024:
            self.clear()
        head = self[length] = b'\x00%b\x00%b' % (VARINTS[self.fixed + length], self.delta)
        return head


@lru_cache(maxsize=256)
def _keyed_heads_at(widths: int, delta: int) -> _KeyedHeads:
    # In addition to the varints of offset, key and value: attributes, header count.
    return _KeyedHeads(2 + widths, VARINTS[delta])


def _encode_stamped(
    keys: Optional[Sequence[bytes]], values: Sequence[bytes], deltas: Sequence[Tuple[int, int]]
) -> Optional[bytes]:
    """
    Encode records without headers, many of which have the same timestamp.

    None if the varints of key or value lengths have different widths.
    """
    count = len(values)
    lengths = list(map(len, values))
    table: Callable[[int, int], Dict[int, bytes]] = _heads_at
    totals, more = lengths, 0
    middles: List[Iterable[bytes]] = [map(_MIDDLES.__getitem__, lengths)]
    if keys is not None:
        key_lengths = list(map(len, keys))
        more = 1 + len(VARINTS[max(lengths)])
        if max(key_lengths) > 63 or len(VARINTS[min(lengths)]) != more - 1:
            return None
        table, totals = _keyed_heads_at, list(map(int.__add__, key_lengths, lengths))
        varint = VARINTS.__getitem__
        middles = [map(varint, key_lengths), keys, map(varint, lengths)]
    cuts = sorted({*(start for start, _ in deltas), *(at for at in _WIDENS if at < count), count})
    by_start = dict(deltas)
    width, current = 0, 0
    heads: List[Iterable[bytes]] = []
    for start, end in zip(cuts, cuts[1:]):
        width += start in _WIDENS
        current = by_start.get(start, current)
        heads.append(map(table(width + more, current).__getitem__, totals[start:end]))
    columns = (chain.from_iterable(heads), _offsets(count), *middles, values)
    parts = list(chain.from_iterable(zip(*columns)))
    parts[0] = parts[0][1:]
    parts.append(b'\x00')
    return b''.join(parts)


def _encode_full(
    timestamps: Iterable[int],
    keys: Sequence[Optional[bytes]],
    values: Sequence[Optional[bytes]],
    headers: Sequence[Sequence[Header]],
    base_timestamp: int,
) -> bytes:
    """Encode records of any kind."""
    varint = VARINTS.__getitem__
    deltas = map(varint, map((-base_timestamp).__add__, timestamps))
    columns: List[Iterable[bytes]] = [repeat(b'\x00'), deltas, _offsets(len(keys))]
    for column in (keys, values):
        if None in column:
            columns.append([varint(-1 if field is None else len(field)) for field in column])
            columns.append([b'' if field is None else field for field in column])
        else:
            columns.append(map(varint, map(len, column)))  # type: ignore[arg-type]
            columns.append(column)  # type: ignore[arg-type]
    if headers.count(headers[0]) == len(headers):
        columns.append(repeat(_header_block(headers[0])))
    else:
        columns.append(map(_header_block, headers))
    bodies = list(map(b''.join, zip(*columns)))
    return b''.join(chain.from_iterable(zip(map(varint, map(len, bodies)), bodies)))


def _header_block(headers: Sequence[Header]) -> bytes:
    if not headers:
        return b'\x00'
    parts = [VARINTS[len(headers)]]
    for name, content in headers:
        raw = name.encode('utf-8')
        parts += (VARINTS[len(raw)], raw)
        parts += (b'\x01',) if content is None else (VARINTS[len(content)], content)
    return b''.join(parts)
