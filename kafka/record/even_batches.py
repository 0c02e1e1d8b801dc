"""
A fast path for batches of equal size with records of equal size, decoded into numpy arrays.

The positions of fields are computed instead of searched. All assumptions are verified, by columns
of bytes through all of the batches; other batches are left to :mod:`kafka.record.vectors`, which
reads any records.
"""

from __future__ import annotations

from typing import Any, Collection, List, NamedTuple, Optional

from kafka.record.batch_layouts import TABLED_OFFSETS, WRONG, length_at, widths_at


class FieldArrays(NamedTuple):
    """The fields of records, as arrays; positions are those in the buffer, sizes are -1 for None.

    ``behind`` is where the headers begin, ``ends`` where the record does. Fields that are not
    needed may be None.
    """

    timestamp_deltas: Any
    offset_deltas: Any
    keys: Any
    key_sizes: Any
    values: Any
    value_sizes: Any
    behind: Any
    ends: Any


class _Block(NamedTuple):
    """Records of each batch, from ``start`` bytes after its beginning; positions relative to
    that."""

    timestamp_deltas: Any
    key: int
    key_size: int
    value: int
    value_size: int
    behind: int
    start: int
    size: int
    records: int


def even_fields(
    np: Any,
    buf: bytes,
    begins: List[int],
    ends: List[int],
    counts: List[int],
    wanted: Collection[str],
) -> Optional[FieldArrays]:
    """
    Read columns of batches, two or more, at these positions with these numbers of records.

    None if their sizes or distances differ: between them are their headers, or nothing. Offset
    deltas from 64 on have two bytes, so that a batch has records of two sizes.
    """
    batches, pos, records = len(ends), begins[0], counts[0]
    size, pitch = ends[0] - pos, begins[1] - pos
    if size <= 0 or pitch < size or records > TABLED_OFFSETS or counts != [records] * batches:
        return None
    if begins != list(range(pos, pos + batches * pitch, pitch)):
        return None
    if ends != list(range(pos + size, pos + size + batches * pitch, pitch)):
        return None
    rows = np.ndarray((batches, size), np.uint8, buf, pos, (pitch, 1))
    head = min(records, 64)
    cut = head * _size_at(buf, pos)
    blocks: List[_Block] = []
    for first, last, start, end in ((0, head, 0, cut), (head, records, cut, size)):
        if first < last:
            if not start < end <= size:
                return None
            block = _block(np, buf, pos, start, rows[:, start:end], first, last)
            if block is None:
                return None
            blocks.append(block)
    if blocks[-1].start + blocks[-1].size * blocks[-1].records != size:
        return None
    return _fields(np, begins, blocks, wanted)


def _fields(
    np: Any, begins: List[int], blocks: List[_Block], wanted: Collection[str]
) -> FieldArrays:
    """Return the wanted fields of batches with these beginnings and these blocks each."""
    above = np.array(begins, dtype=np.int64)[:, None]
    starts = [np.arange(each.records, dtype=np.int64) * each.size + each.start for each in blocks]

    def places(shifts: List[int]) -> Any:
        within = np.concatenate([some + shift for some, shift in zip(starts, shifts)])
        return (above + within).ravel()

    def sizes(numbers: List[int]) -> Any:
        row = np.repeat(np.array(numbers, dtype=np.int64), [each.records for each in blocks])
        return np.tile(row, len(begins))

    has_key, has_value = 'key' in wanted, 'value' in wanted
    has_headers = 'headers' in wanted
    records = np.arange(sum(each.records for each in blocks), dtype=np.int64)
    return FieldArrays(
        np.concatenate([each.timestamp_deltas for each in blocks], axis=1).ravel(),
        np.tile(records, len(begins)),
        places([each.key for each in blocks]) if has_key else None,
        sizes([each.key_size for each in blocks]) if has_key else None,
        places([each.value for each in blocks]) if has_value else None,
        sizes([each.value_size for each in blocks]) if has_value else None,
        places([each.behind for each in blocks]) if has_headers else None,
        places([each.size for each in blocks]) if has_headers else None,
    )


def _size_at(buf: bytes, pos: int) -> int:
    """Return the size of the record at ``pos``; negative if it is invalid."""
    widths = widths_at(buf, pos)
    if widths is None:
        return -1
    length = length_at(buf, pos, widths.size)
    return -1 if length == WRONG else widths.size + length


def _block(
    np: Any, buf: bytes, pos: int, start: int, rows: Any, first: int, last: int
) -> Optional[_Block]:
    """
    Check the records ``first`` up to ``last`` of all batches; None if they are not of equal size.

    ``rows`` has their bytes, a row for each batch; the batch at ``pos`` is the first.
    """
    at = pos + start
    widths, each = widths_at(buf, at), _size_at(buf, at)
    records = last - first
    if widths is None or not widths.headers or each * records != rows.shape[1]:
        return None
    delta_at = widths.size + 1
    offset_at = delta_at + widths.delta
    key_at = offset_at + widths.offset
    is_null = buf[at + key_at] == 1
    key = 0 if is_null else buf[at + key_at] >> 1
    length_at = key_at + 1 + key
    value_at = length_at + widths.length
    behind = each - widths.headers
    view = rows.reshape(len(rows), records, each)
    for place in (*range(widths.size), key_at, *range(length_at, value_at)):
        if not (view[:, :, place] == buf[at + place]).all():
            return None
    # The header count has to be the last byte if it is zero.
    counts = view[:, :, behind]
    if counts.any() if widths.headers == 1 else not counts.all():
        return None
    numbers = np.arange(first, last)
    # The second of three bytes never equals the second of two.
    for place, wanted in enumerate((numbers << 1 & 127 | (numbers > 63) << 7, numbers >> 6)):
        if place < widths.offset and not (view[:, :, offset_at + place] == wanted).all():
            return None
    low = view[:, :, delta_at]
    if widths.delta == 1:
        if (low > 127).any():
            return None
        raw = low.astype(np.int64)
    else:
        high = view[:, :, delta_at + 1]
        if (low < 128).any() or (high > 127).any():
            return None
        raw = (low & 127).astype(np.int64) | high.astype(np.int64) << 7
    return _Block(
        (raw >> 1) ^ -(raw & 1),
        length_at - key,
        -1 if is_null else key,
        value_at,
        behind - value_at,
        behind,
        start,
        each,
        records,
    )
