"""
An encoder of Arrow columns to many batches of magic 2, without a Python object per record.

It uses numpy and pyarrow, and also computes the hash of keys by which the Java client chooses
partitions; :mod:`kafka.record.vectors` is the decoder, and imports the two packages. Headers of
batches, compression and checksums are handled by :mod:`kafka.record.default_records`.

All bytes before the key of a record are a row of a matrix of bytes, where each varint has as
many columns as the longest one of its kind needs; a mask selects the used bytes. Arrow joins
the rows with keys and values. The oracle is :mod:`kafka.record.batch_encoder`, and for the hash
:mod:`kafka.partitioner.hashed`.
"""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

from kafka.record.vectors import numpy, pyarrow, pyarrow_compute

__all__ = ['as_binary', 'encode_headers', 'encode_rows', 'hash_keys', 'sizes_of']

_SEED = 0x9747B28C
_M = 0x5BD1E995


def as_binary(column: Any) -> Any:
    """Return a column of text or bytes as one of bytes with 32-bit offsets."""
    pa = pyarrow()
    return column if column.type.equals(pa.binary()) else column.cast(pa.binary())


def _edges(column: Any) -> Any:
    """Return the positions of the values of a column in its buffer, and the end of the last."""
    np = numpy()
    if not len(column):
        return np.zeros(1, dtype=np.int32)
    edges = np.frombuffer(column.buffers()[1], dtype=np.int32)
    return edges[column.offset : column.offset + len(column) + 1]


def sizes_of(column: Any) -> Any:
    """Return the bytes of each value of a column of binaries, -1 for null."""
    np = numpy()
    sizes = np.diff(_edges(column)).astype(np.int64)
    if column.null_count:
        sizes[column.is_null().to_numpy(zero_copy_only=False)] = -1
    return sizes


def encode_rows(
    keys: Optional[Any], values: Any, counts: Sequence[int], headers: Optional[Any] = None
) -> Tuple[Any, List[int]]:
    """
    Encode the records of some batches, which are consecutive in the columns.

    ``keys`` and ``values`` are columns of as_binary(), ``keys`` None for null keys; ``counts``
    has the number of records of each batch; ``headers`` is from encode_headers(), None without
    headers. All records have the timestamp of their batch. Returns all bytes, and the end of each
    batch in them.
    """
    np, pa = numpy(), pyarrow()
    rows = len(values)
    each = np.asarray(counts, dtype=np.int64)
    ends = np.cumsum(each)
    deltas = _zigzag(np.arange(rows, dtype=np.int64) - np.repeat(ends - each, each))
    value_sizes = sizes_of(values)
    key_sizes = np.full(rows, -1, dtype=np.int64) if keys is None else sizes_of(keys)
    coded_keys, coded_values = _zigzag(key_sizes), _zigzag(value_sizes)
    sizes = _width(deltas) + _width(coded_keys) + _width(coded_values)
    sizes += np.maximum(key_sizes, 0) + np.maximum(value_sizes, 0) + 2
    sizes += 1 if headers is None else sizes_of(headers)
    columns = [_Matrix(rows, [_zigzag(sizes), b'\x00\x00', deltas, coded_keys]).column()]
    if keys is not None:
        columns.append(keys)
    columns += [_Matrix(rows, [coded_values]).column(), values]
    columns.append(pa.scalar(b'\x00', pa.binary()) if headers is None else headers)
    joined = _joined(columns)
    return joined.buffers()[2], _edges(joined)[ends].tolist()


def _joined(columns: Sequence[Any]) -> Any:
    """Return a column with the concatenated values of each row; null is empty."""
    nothing = pyarrow().scalar(b'', pyarrow().binary())
    return pyarrow_compute().binary_join_element_wise(
        *columns, nothing, null_handling='replace', null_replacement=b''
    )


def encode_headers(column: Any) -> Optional[Any]:
    """
    Return a column of the encoded headers of each record, or None if a header has no name.

    ``column`` has lists of structs of a text and bytes; a null list means no headers.
    """
    np, pa = numpy(), pyarrow()
    names, contents = column.flatten().flatten()
    if names.null_count:
        return None
    names, contents = as_binary(names), as_binary(contents)
    rows = len(names)
    lengths = [_Matrix(rows, [_zigzag(sizes_of(each))]).column() for each in (names, contents)]
    each = _joined([lengths[0], names, lengths[1], contents])
    # Those of one row are consecutive: together they are one value, whose offsets are known.
    counts = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    ends = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
    edges = _edges(each)[ends]
    data = each.buffers()[2] if rows else pa.py_buffer(b'')
    together = pa.Array.from_buffers(
        pa.binary(), len(column), [None, pa.py_buffer(np.ascontiguousarray(edges)), data]
    )
    return _joined([_Matrix(len(column), [_zigzag(counts)]).column(), together])


def _zigzag(numbers: Any) -> Any:
    np = numpy()
    return ((numbers << 1) ^ (numbers >> 63)).astype(np.uint32)


def _width(numbers: Any) -> Any:
    """Return the size of each number's varint."""
    np = numpy()
    widths = np.ones(len(numbers), dtype=np.int64)
    for bits in (7, 14, 21, 28):
        more = numbers >> np.uint32(bits)
        if not more.any():
            break
        widths += more > 0
    return widths


class _Matrix:
    """Bytes of some fields of all records, one row per record.

    Arguments: fields: columns of numbers, written as varints, or constant bytes.
    """

    def __init__(self, rows: int, fields: Sequence[Any]) -> None:
        np = numpy()
        widths = [
            len(f) if isinstance(f, bytes) else int(_width(f.max(initial=0, keepdims=True))[0])
            for f in fields
        ]
        self.data = np.empty((rows, sum(widths)), dtype=np.uint8)
        self.mask: Any = None
        at = 0
        for field, width in zip(fields, widths):
            if isinstance(field, bytes):
                self.data[:, at : at + width] = np.frombuffer(field, dtype=np.uint8)
            else:
                self._put(at, field, width)
            at += width

    def _put(self, at: int, numbers: Any, width: int) -> None:
        np = numpy()
        for index in range(width):
            rest = numbers >> np.uint32(7 * index)
            self.data[:, at + index] = rest & np.uint32(127)
            if index:
                is_there = rest > 0
                self.data[:, at + index - 1] |= is_there.astype(np.uint8) << 7
                if not is_there.all():
                    if self.mask is None:
                        self.mask = np.ones(self.data.shape, dtype=bool)
                    self.mask[:, at + index] = is_there

    def column(self) -> Any:
        """Return the rows as a column of binaries."""
        np, pa = numpy(), pyarrow()
        rows, width = self.data.shape
        edges = np.zeros(rows + 1, dtype=np.int32)
        if self.mask is None:
            edges[:] = np.arange(0, (rows + 1) * width, width)
            data = self.data
        else:
            np.cumsum(self.mask.sum(axis=1), out=edges[1:])
            data = self.data[self.mask]
        return pa.Array.from_buffers(
            pa.binary(), rows, [None, pa.py_buffer(edges), pa.py_buffer(data)]
        )


def hash_keys(column: Any) -> Any:
    """Return the murmur2 hash of each key, as partitioners use it, in a column without nulls."""
    np = numpy()
    edges = _edges(column)
    sizes = np.diff(edges)
    # The longest first, so that keys with further bytes always come first.
    is_even = bool((sizes == sizes[:1]).all())
    order = None if is_even else np.argsort(-sizes, kind='stable')
    starts = edges[:-1].astype(np.int64)
    if order is not None:
        starts, sizes = starts[order], sizes[order]
    data = np.frombuffer(column.buffers()[2] or b'', dtype=np.uint8)
    words = np.ndarray((max(0, len(data) - 3),), '<u4', data, 0, (1,))
    state = np.uint32(_SEED) ^ sizes.astype(np.uint32)
    m = np.uint32(_M)
    for at in range(0, int(sizes[0]) - 3 if len(sizes) else 0, 4):
        more = len(sizes) if is_even else int(np.searchsorted(-sizes, -(at + 4), side='right'))
        word = words[starts[:more] + at] * m
        word ^= word >> np.uint32(24)
        state[:more] = (state[:more] * m) ^ (word * m)
    _hash_tails(data, starts, sizes, state, m)
    state ^= state >> np.uint32(13)
    state *= m
    state ^= state >> np.uint32(15)
    if order is None:
        return state
    hashes = np.empty_like(state)
    hashes[order] = state
    return hashes


def _hash_tails(data: Any, starts: Any, sizes: Any, state: Any, m: Any) -> None:
    """Process the last bytes of each key, up to three."""
    np = numpy()
    left = sizes & 3
    for byte in (2, 1, 0):
        some = np.flatnonzero(left > byte)
        if len(some):
            found = data[starts[some] + sizes[some] - left[some] + byte].astype(np.uint32)
            state[some] ^= found << np.uint32(8 * byte)
    some = np.flatnonzero(left)
    state[some] *= m
