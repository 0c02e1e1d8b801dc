"""
A decoder of a partition's records to Arrow record batches, without a Python object per record.

It uses numpy and pyarrow, which the extra ``arrow`` installs. The wanted batches are selected by
:mod:`kafka.record.fetched_records`; the bounded reader and the consumer call this module.

Batches are read in place in the broker's response, or, if they are from several responses, joined:
fresh memory costs more than all processing. The position of each record depends on the one before,
so positions are found in Python: a run of records of equal size by comparing columns of bytes
(about a nanosecond each), others one by one (about a hundred). All numbers are then decoded by
numpy at a time, because a call costs as much for ten records as for a thousand. Keys and values are
not copied one by one either. Those of equal size are an array of all possible positions, from which
numpy picks some. For others the whole buffer is presented to Arrow as one column of binaries whose
odd items are keys and values and whose even ones are the gaps between them, and ``take`` picks the
odd ones. ``benchmarks/consumer.py`` measures it. All assumptions are verified; invalid records
raise ``ProtocolError``, and the slower decoder gives details.

Without numpy, and for messages of magic 0 and 1, columns of Python objects are passed to Arrow.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from itertools import accumulate
from operator import sub
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from kafka.errors import KafkaConfigurationError, ProtocolError
from kafka.internals.lazy_imports import import_late
from kafka.record.batch_layouts import WRONG, stretches
from kafka.record.default_records import TIMESTAMP_TYPE_MASK
from kafka.record.even_batches import FieldArrays, even_fields
from kafka.record.fetched_records import Header, RawRecords
from kafka.record.header_blocks import HEADERS, NO_HEADERS
from kafka.record.record_columns import RecordColumns
from kafka.record.util import decode_varint

#: All columns.
COLUMNS = (
    'key',
    'value',
    'topic',
    'partition',
    'offset',
    'timestamp',
    'timestamp_type',
    'headers',
)
DEFAULT_COLUMNS = COLUMNS[:-1]
UNITS = {'ms': 1, 'us': 1000, 'ns': 1000000}
#: The minimum number of records of equal size for a comparison of columns.
_LEAST_RUN = 32
#: The minimum number of records in batches of equal size for separate calls of numpy.
_ALIKE = 4000
_LONG_VARINT = 63
#: The maximum of Arrow's timestamps, in any unit.
_MOST = (1 << 63) - 1
#: Arrow's binaries have 32-bit offsets.
_MOST_BYTES = (1 << 31) - 1


class MissingArrowError(KafkaConfigurationError, ImportError):
    """Arrow batches were requested, but pyarrow is not installed."""


@lru_cache(maxsize=None)
def _package(name: str) -> Any:
    try:
        return import_late(name)
    except ImportError:
        return None


def pyarrow() -> Any:
    """Return the package. Raises MissingArrowError, which says how to install it."""
    found = _package('pyarrow')
    if found is None:
        raise MissingArrowError(
            'Arrow batches need the package pyarrow: pip install kafka-evergreen[arrow]'
        )
    return found


def pyarrow_compute() -> Any:
    """Return the functions of pyarrow, which must be installed."""
    return _package('pyarrow.compute')


def numpy() -> Any:
    """Return the package, which must be installed: see has_numpy()."""
    return _package('numpy')


def has_numpy() -> bool:
    """Return True if records can be decoded without a Python object per record."""
    return _package('numpy') is not None


def schema(columns: Sequence[str] = DEFAULT_COLUMNS, timestamp_unit: str = 'ms') -> Any:
    """
    Return the Arrow schema of some columns.

    Timestamps have the unit ``'ms'``, ``'us'`` or ``'ns'`` and the zone UTC. Raises
    ``KafkaConfigurationError`` for an unknown column or unit, ``MissingArrowError``.
    """
    pa = pyarrow()
    wrong = [name for name in columns if name not in COLUMNS]
    if wrong or not columns or len(set(columns)) < len(columns):
        raise KafkaConfigurationError(
            'columns must be some of %s, each once, not %s'
            % (', '.join(COLUMNS), ', '.join(map(str, columns)) or 'none')
        )
    if timestamp_unit not in UNITS:
        raise KafkaConfigurationError(
            'timestamp_unit must be one of %s, not %r' % (', '.join(UNITS), timestamp_unit)
        )
    types = {
        'key': pa.binary(),
        'value': pa.binary(),
        'topic': pa.string(),
        'partition': pa.int32(),
        'offset': pa.int64(),
        'timestamp': pa.timestamp(timestamp_unit, tz='UTC'),
        'timestamp_type': pa.int32(),
        'headers': _headers_type(pa),
    }
    return pa.schema([(name, types[name]) for name in columns])


def _headers_type(pa: Any) -> Any:
    fields = [pa.field('key', pa.string()), pa.field('value', pa.binary())]
    return pa.list_(pa.field('element', pa.struct(fields)))  # the name that Spark requires


class _Source(NamedTuple):
    """Batches of one partition, and the range of wanted offsets."""

    topic: str
    partition: int
    start: int
    stop: int
    raw: RawRecords

    @property
    def rows(self) -> int:
        """The number of records."""
        return sum(header[12] for header in self.raw.headers)

    @property
    def is_cut(self) -> bool:
        """Whether some offsets of the batches are not wanted."""
        return any(
            header[0] < self.start or header[0] + header[6] >= self.stop
            for header in self.raw.headers
        )


#: The remedy in the error of a time that Arrow cannot represent; kafka.spark replaces it.
WITHOUT_TIMES = 'leave out the column timestamp'


class ArrowMaker:
    """
    Creates Arrow record batches from the batches of one or several partitions.

    Batches are added, in order, until :attr:`size_bytes` is enough; :meth:`make` converts them all.
    """

    def __init__(
        self, columns: Sequence[str] = DEFAULT_COLUMNS, timestamp_unit: str = 'ms'
    ) -> None:
        """Take the columns in the requested order. Raises as :func:`schema`."""
        self.columns = tuple(columns)
        self.schema = schema(self.columns, timestamp_unit)
        self.size_bytes = 0
        self._unit = timestamp_unit
        self._sources: List[_Source] = []

    def __repr__(self) -> str:
        return '<ArrowMaker of %d sources, %d bytes>' % (len(self._sources), self.size_bytes)

    # ------------------------------------------------------------ of batches, by numpy

    def add(self, topic: str, partition: int, start: int, stop: int, raw: RawRecords) -> None:
        """Add the records of batches of a partition, from offset ``start`` up to ``stop``."""
        if raw.headers:
            self.size_bytes += sum(raw.ends) - sum(raw.begins)
            self._sources.append(_Source(topic, partition, start, stop, raw))

    def drop(self) -> None:
        """Remove what was added."""
        self.size_bytes, self._sources = 0, []

    def make(self) -> Any:
        """
        Return an Arrow record batch of everything that was added, and remove it.

        Raises ``ProtocolError`` for malformed records, and for a time that exceeds the unit.
        """
        sources, np = self._sources, _package('numpy')
        self.drop()
        if not sources:
            nothing = [pyarrow().array([], type=each.type) for each in self.schema]
            return pyarrow().RecordBatch.from_arrays(nothing, schema=self.schema)
        buf, shifts = _one_buffer(np, [each.raw.buffer for each in sources])
        if len(buf) > _MOST_BYTES:
            raise ProtocolError('%d bytes exceed the maximum of an Arrow column' % len(buf))
        try:
            parts = [
                part
                for source, shift in zip(sources, shifts)
                for part in _read(np, buf, shift, source.raw, self.columns)
            ]
        except (IndexError, struct.error):
            raise ProtocolError('the records of a batch exceed it') from None
        return self._assemble(np, buf, sources, _joined(np, parts))

    def _assemble(self, np: Any, buf: bytes, sources: List[_Source], fields: FieldArrays) -> Any:
        pa = pyarrow()
        headers = [header for each in sources for header in each.raw.headers]
        records, rows = [header[12] for header in headers], [each.rows for each in sources]

        def column(values: List[int]) -> Any:
            return np.repeat(np.array(values, dtype=np.int64), records)

        def wide(values: List[int], type_: Any = None) -> Any:
            return np.repeat(np.array(values, dtype=type_ or np.int64), rows)

        offsets = column([header[0] for header in headers])
        offsets += fields.offset_deltas
        keep = None
        if any(each.is_cut for each in sources):
            first = wide([each.start for each in sources])
            behind = wide([each.stop for each in sources])
            keep = np.flatnonzero((offsets >= first) & (offsets < behind))
            if len(keep) == len(offsets):
                keep = None

        def chosen(values: Any) -> Any:
            return values if keep is None else values[keep]

        made: Dict[str, Any] = {}
        for name in self.columns:
            if name == 'offset':
                made[name] = pa.array(chosen(offsets))
            elif name == 'partition':
                partitions = wide([each.partition for each in sources], np.int32)
                made[name] = pa.array(chosen(partitions))
            elif name == 'timestamp_type':
                made[name] = pa.array(chosen(column(_types(headers)).astype(np.int32)))
            elif name == 'timestamp':
                made[name] = self._timestamps(chosen(_timestamps(np, headers, column, fields)))
            elif name == 'topic':
                made[name] = _topics(np, pa, [each.topic for each in sources], rows, keep)
            elif name == 'headers':
                made[name] = _headers(np, pa, buf, chosen(fields.behind), chosen(fields.ends))
        made.update(_binaries(np, pa, buf, fields, keep, self.columns))
        arrays = [made[name] for name in self.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _timestamps(self, stamps: Any) -> Any:
        pa = pyarrow()
        if self._unit != 'ms':
            most = _MOST // UNITS[self._unit]
            if len(stamps) and (stamps.max() > most or stamps.min() < -most):
                raise ProtocolError('a time exceeds the unit')  # of_columns() finds the record
            stamps = stamps * UNITS[self._unit]
        return pa.array(stamps).view(pa.timestamp(self._unit, tz='UTC'))

    # ------------------------------------------------------------ of columns of objects

    def of_columns(self, topic: str, partition: int, columns: RecordColumns) -> Any:
        """
        Return an Arrow record batch of decoded records.

        Raises ``ProtocolError`` for a time that exceeds the unit.
        """
        pa, count = pyarrow(), len(columns.values)
        stamps: Sequence[Optional[int]] = [None] * count
        if columns.timestamps is not None:
            factor = UNITS[self._unit]
            stamps = [each * factor for each in columns.timestamps]
            if factor > 1 and 'timestamp' in self.columns:
                self._check_times(topic, partition, columns)
        made = {
            'key': columns.keys or [None] * count,
            'value': columns.values,
            'topic': [topic] * count,
            'partition': [partition] * count,
            'offset': list(columns.offsets),
            'timestamp': stamps,
            'timestamp_type': [-1 if columns.timestamp_type is None else columns.timestamp_type]
            * count,
            'headers': [None] * count
            if columns.headers is None
            else [_header_rows(each) for each in columns.headers],
        }
        arrays = [pa.array(made[each.name], type=each.type) for each in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _check_times(self, topic: str, partition: int, columns: RecordColumns) -> None:
        most = _MOST // UNITS[self._unit]
        for offset, stamp in zip(columns.offsets, columns.timestamps or ()):
            if abs(stamp) > most:
                raise ProtocolError(
                    'topic %s, partition %d: the record at offset %d has the time %d ms, which is'
                    ' more than a timestamp in %s can hold: %s, or begin after this record'
                    % (topic, partition, offset, stamp, self._unit, WITHOUT_TIMES)
                )


def _header_rows(headers: Any) -> Optional[List[Dict[str, Any]]]:
    """Return the headers of a record in Arrow's form; None without headers."""
    return [{'key': name, 'value': content} for name, content in headers] or None


# ------------------------------------------------------------ positions of records


@lru_cache(maxsize=None)
def _steps() -> List[int]:
    """Map the first two bytes of a record to its total size; far too large if it has more."""
    steps = []
    for raw in range(1 << 16):
        low, high = raw & 255, raw >> 8
        width = 1 if low < 128 else 2
        size = low if width == 1 else low & 127 | high << 7
        is_wrong = size & 1 or (width == 2 and high > 127)
        steps.append(WRONG if is_wrong else (size >> 1) + width)
    return steps


_TWO_BYTES_AT = struct.Struct('<H').unpack_from


def _one_buffer(np: Any, buffers: List[Any]) -> Tuple[bytes, List[int]]:
    """Return one buffer with all of the others, and the position of each in it."""
    owner = memoryview(buffers[0]).obj
    if isinstance(owner, bytes) and all(memoryview(each).obj is owner for each in buffers):
        begin = _address(np, owner)
        return owner, [_address(np, each) - begin for each in buffers]
    ends = list(accumulate(map(len, buffers)))
    return b''.join(buffers), [0, *ends[:-1]]


def _address(np: Any, buffer: Any) -> int:
    address: int = np.frombuffer(buffer, dtype=np.uint8).__array_interface__['data'][0]
    return address


def _joined(np: Any, parts: List[FieldArrays]) -> FieldArrays:
    if len(parts) == 1:
        return parts[0]
    return FieldArrays(
        *(
            None if any(each is None for each in column) else np.concatenate(column)
            for column in zip(*parts)
        )
    )


def _read(
    np: Any, buf: bytes, shift: int, raw: RawRecords, wanted: Sequence[str]
) -> List[FieldArrays]:
    """Return the fields of all records, by parts; positions are shifted in the buffer."""
    begins, ends = ([place + shift for place in each] for each in (raw.begins, raw.ends))
    counts = [header[12] for header in raw.headers]
    parts, first = [], 0
    for last in stretches(counts, list(accumulate(map(sub, ends, begins))), _ALIKE):
        place = begins[first:last], ends[first:last], counts[first:last]
        part = even_fields(np, buf, *place, wanted) if last > first + 1 else None
        if part is None:
            part = _decode(np, buf, *_frame(np, buf, *place))
        parts.append(part)
        first = last
    return parts


def _frame(
    np: Any, buf: bytes, begins: Sequence[int], ends: Sequence[int], counts: Sequence[int]
) -> Tuple[Any, Any]:
    """Return the beginning and end of each record in batches at these positions."""
    starts = np.empty(sum(counts), dtype=np.int64)
    done = 0
    for pos, end, count in zip(begins, ends, counts):
        last = done + count
        while done < last:
            size, run = _measure(buf, pos, end, last - done)
            if run:
                starts[done : done + run] = np.arange(pos, pos + run * size, size)
                pos += run * size
            else:
                run = min(8 * _LEAST_RUN, last - done)
                found, pos = _walk(buf, pos, run)
                starts[done : done + run] = found
            done += run
        if pos != end:
            raise ProtocolError('the records of a batch do not fill it')
    stops = np.append(starts[1:], ends[-1])
    stops[np.cumsum(counts) - 1] = ends
    return starts, stops


def _measure(buf: bytes, pos: int, end: int, left: int) -> Tuple[int, int]:
    """Return the size of a record, and how many records of that size begin here: 0 for few."""
    size = _steps()[_TWO_BYTES_AT(buf, pos)[0]]
    count = min(left, (end - pos) // size)
    if count < _LEAST_RUN or buf[pos : pos + 2] != buf[pos + size : pos + size + 2]:
        return size, 0
    for at in (pos, pos + 1) if buf[pos] & 128 else (pos,):
        column = buf[at : pos + count * size : size]
        count = len(column) - len(column.lstrip(column[:1]))
    return size, count if count >= _LEAST_RUN else 0


def _walk(buf: bytes, pos: int, count: int) -> Tuple[List[int], int]:
    """Return the beginnings of this number of records, and the end of the last."""
    steps, at = _steps(), _TWO_BYTES_AT
    found: List[int] = []
    add, begin = found.append, pos
    try:
        for _ in range(count):
            add(pos)
            pos += steps[at(buf, pos)[0]]
        if pos <= len(buf):
            return found, pos
    except struct.error:  # a size of more than two bytes, mapped to an impossible position
        pass
    found, pos = [], begin
    for _ in range(count):
        found.append(pos)
        size, behind = decode_varint(buf, pos, 5)
        if size < 0 or behind + size > len(buf):
            raise ProtocolError('a record of %d bytes does not fit into its batch' % size)
        pos = behind + size
    return found, pos


# ------------------------------------------------------------ fields


def _decode(np: Any, buf: bytes, starts: Any, ends: Any) -> FieldArrays:
    """Read the numbers of all records. Raises ProtocolError, IndexError for malformed bytes."""
    data = np.frombuffer(buf, dtype=np.uint8)
    _, pos = _varints(np, data, starts)
    stamps, pos = _varints(np, data, pos + 1)
    offsets, pos = _varints(np, data, pos)
    key_sizes, keys = _varints(np, data, pos)
    value_sizes, values = _varints(np, data, _behind(np, keys, key_sizes, ends))
    behind = _behind(np, values, value_sizes, ends)
    has_none = data[behind] == 0
    if not (behind[has_none] + 1 == ends[has_none]).all():
        raise ProtocolError('a record continues after its last field')
    return FieldArrays(stamps, offsets, keys, key_sizes, values, value_sizes, behind, ends)


def _behind(np: Any, pos: Any, sizes: Any, ends: Any) -> Any:
    """Return the ends of fields, which have to be before the ends of their records."""
    behind = pos + np.maximum(sizes, 0)
    if (sizes < -1).any() or (behind >= ends).any() or (behind < pos).any():
        raise ProtocolError('a field exceeds its record')
    return behind


def _varints(np: Any, data: Any, pos: Any) -> Tuple[Any, Any]:
    """Return the numbers at some positions, and the positions after them."""
    first = data[pos]
    raw = (first & 127).astype(np.uint64)
    pos = pos + 1
    more = np.flatnonzero(first & 128)
    shift = 7
    while len(more):
        if shift > _LONG_VARINT:
            raise ProtocolError('a varint has too many bytes')
        following = data[pos[more]]
        raw[more] |= (following & 127).astype(np.uint64) << np.uint64(shift)
        pos[more] += 1
        more = more[following >= 128]
        shift += 7
    one = np.uint64(1)
    return (raw >> one).view(np.int64) ^ -(raw & one).view(np.int64), pos


def _types(headers: List[Header]) -> List[int]:
    """Return 1 for batches with log append time, 0 for others."""
    return [int(header[5] & TIMESTAMP_TYPE_MASK > 0) for header in headers]


def _timestamps(np: Any, headers: List[Header], column: Any, fields: FieldArrays) -> Any:
    appended = _types(headers)
    # The largest timestamp of a batch is that of all its records if it is the log append time.
    stamps = column([header[8 if by_broker else 7] for header, by_broker in zip(headers, appended)])
    if not any(appended):
        return stamps + fields.timestamp_deltas
    return stamps + np.where(column(appended), 0, fields.timestamp_deltas)


# ------------------------------------------------------------ columns of Arrow


def _binaries(
    np: Any, pa: Any, buf: bytes, fields: FieldArrays, keep: Any, columns: Sequence[str]
) -> Dict[str, Any]:
    """Return the columns of keys and values."""
    made: Dict[str, Any] = {}
    uneven = {}
    for name, places, sizes in (
        ('key', fields.keys, fields.key_sizes),
        ('value', fields.values, fields.value_sizes),
    ):
        if name not in columns:
            continue
        if (sizes == sizes[0]).all():
            chosen = places if keep is None else places[keep]
            made[name] = _of_one_size(np, pa, buf, chosen, int(sizes[0]))
        else:
            uneven[name] = places, sizes
    if uneven:
        made.update(_of_any_size(np, pa, buf, uneven, keep))
    return made


def _of_one_size(np: Any, pa: Any, buf: bytes, places: Any, size: int) -> Any:
    """Return a column of binaries at these positions with the same size, -1 for None."""
    rows = len(places)
    if size < 0:
        return pa.nulls(rows, pa.binary())
    if not size:
        return pa.array([b''], pa.binary()).take(pa.array(np.zeros(rows, dtype=np.int64)))
    # All possible binaries; only those that are picked are copied.
    every = np.ndarray((len(buf) - size + 1,), 'V%d' % size, buf, 0, (1,))
    edges = np.arange(0, size * rows + 1, size, dtype=np.int32)
    buffers = [None, pa.py_buffer(edges), pa.py_buffer(every[places])]
    return pa.Array.from_buffers(pa.binary(), rows, buffers)


def _of_any_size(
    np: Any, pa: Any, buf: bytes, wanted: Dict[str, Tuple[Any, Any]], keep: Any
) -> Dict[str, Any]:
    """Return columns of binaries, each given by positions and sizes, in order, all at a time."""
    rows, step = len(next(iter(wanted.values()))[0]), 2 * len(wanted)
    edges = np.zeros(step * rows + 1, dtype=np.int32)
    for number, (starts, sizes) in enumerate(wanted.values()):
        edges[1 + 2 * number :: step] = starts
        edges[2 + 2 * number :: step] = starts + np.maximum(sizes, 0)
    whole = pa.Array.from_buffers(
        pa.binary(), step * rows, [None, pa.py_buffer(edges), pa.py_buffer(buf)]
    )
    first = np.arange(rows, dtype=np.int64) if keep is None else keep
    made = {}
    for number, (name, (_, sizes)) in enumerate(wanted.items()):
        is_null = (sizes if keep is None else sizes[keep]) < 0
        at = pa.array(first * step + (1 + 2 * number), mask=is_null if is_null.any() else None)
        made[name] = whole.take(at)
    return made


def _topics(np: Any, pa: Any, topics: List[str], rows: List[int], keep: Any) -> Any:
    names = sorted(set(topics))
    if len(names) == 1:
        return pa.repeat(pa.scalar(names[0], pa.string()), sum(rows) if keep is None else len(keep))
    which = np.repeat(np.array([names.index(each) for each in topics]), rows)
    return pa.array(names, type=pa.string()).take(pa.array(which if keep is None else which[keep]))


def _headers(np: Any, pa: Any, buf: bytes, starts: Any, ends: Any) -> Any:
    """Return the column of headers; each different block is decoded once."""
    some = np.flatnonzero(np.frombuffer(buf, dtype=np.uint8)[starts])
    if not len(some):
        return pa.nulls(len(starts), _headers_type(pa))
    blocks: Dict[bytes, int] = {NO_HEADERS: 0}
    number = blocks.setdefault
    places = zip(starts[some].tolist(), ends[some].tolist())
    which = np.zeros(len(starts), dtype=np.int64)
    which[some] = [number(buf[start:end], len(blocks)) for start, end in places]
    rows = [_header_rows(HEADERS[block]) for block in blocks]
    return pa.array(rows, type=_headers_type(pa)).take(pa.array(which))
