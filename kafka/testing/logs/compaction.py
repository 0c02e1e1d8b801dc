"""Compaction of a log by key, as by the log cleaner of brokers.

Called by retention.py. Of the closed segments of a log it retains the last record of each key,
tombstones and transaction markers until their delete horizon, and no aborted records. Offsets do
not change, batches keep codec and format, and the last batch of a producer is retained, empty if
need be, so that its sequence is known. Follows KIP-58, KIP-98 and KIP-534 (from 3.1 on
``delete.retention.ms`` counts from the first cleaning).
"""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Set, Tuple

from kafka import codec as codecs
from kafka.errors import UnsupportedCodecError
from kafka.record.crc32c import crc32c
from kafka.record.default_records import (
    ATTRIBUTES_POS,
    CODEC_MASK,
    DELETE_HORIZON_MASK,
    HEADER,
    TIMESTAMP_TYPE_MASK,
    BatchHeader,
    DefaultRecordBatch,
)
from kafka.record.memory_records import MemoryRecords
from kafka.record.record import Record
from kafka.record.util import VARINTS, decode_varint
from kafka.testing.logs import message_sets
from kafka.testing.logs.log_settings import LogSettings
from kafka.testing.logs.partition_log import Batch, PartitionLog
from kafka.testing.logs.producer_states import States

#: From this release on a batch has its delete horizon.
_HORIZON_SINCE = (3, 1)


class _Raw(NamedTuple):
    """A record of a batch of magic 2, encoded; ``rest`` begins with its offset delta."""

    offset: int
    timestamp_delta: int
    key: Optional[bytes]
    is_tombstone: bool
    attributes: bytes
    rest: bytes


class _Task(NamedTuple):
    """The parameters and findings of one run."""

    latest: Dict[bytes, int]  # of each key
    end_offset: int  # batches from here on are retained
    aborted: Dict[int, List[Tuple[int, int]]]  # by producer, first offset and that of the marker
    open_producers: Set[int]  # with records and no marker yet
    with_data: Set[Tuple[int, int]]  # producer and marker of transactions with records
    last_of_producers: Set[Tuple[int, int]]  # producer and offset of its last record
    now_ms: int
    delete_retention_ms: int
    has_horizon: bool


def is_dirty(log: PartitionLog, settings: LogSettings) -> bool:
    """Return True if more than the minimal ratio of the closed segments is not cleaned yet."""
    clean = dirty = 0
    for position in range(len(log.segments) - 1):
        size = log.segment_bytes(position)
        if log.segments[position].base_offset < log.cleaned_offset:
            clean += size
        else:
            dirty += size
    return dirty > 0 and dirty / (clean + dirty) > settings.min_cleanable_ratio


def clean(
    log: PartitionLog,
    producers: States,
    settings: LogSettings,
    now_ms: int,
    release: Tuple[int, ...],
) -> None:
    """Compact the closed segments of a log. Raises OSError."""
    end = min(log.active.base_offset, log.last_stable_offset)
    for segment in log.segments[:-1]:
        if segment.max_timestamp > now_ms - settings.min_compaction_lag_ms >= 0:
            if settings.min_compaction_lag_ms:
                end = min(end, segment.base_offset)
    compact(log, producers, end, settings.delete_retention_ms, now_ms, release)


def compact(
    log: PartitionLog,
    producers: States,
    end_offset: int,
    delete_retention_ms: int,
    now_ms: int,
    release: Tuple[int, ...],
) -> None:
    """Compact the closed segments of a log up to an offset. Raises OSError."""
    aborted: Dict[int, List[Tuple[int, int]]] = {}
    for each in log.aborted:
        aborted.setdefault(each.producer_id, []).append((each.first_offset, each.last_offset))
    task = _Task(
        latest={},
        end_offset=end_offset,
        aborted=aborted,
        open_producers=set(),
        with_data=set(),
        last_of_producers={(key, state.last_offset) for key, state in producers.items()},
        now_ms=now_ms,
        delete_retention_ms=delete_retention_ms,
        has_horizon=release >= _HORIZON_SINCE,
    )
    bases = [each.base_offset for each in log.segments[:-1] if each.base_offset < end_offset]
    for position in range(len(bases)):
        _look_at(log.batches_of(position), task)
    for base_offset in bases:
        positions = {each.base_offset: at for at, each in enumerate(log.segments)}
        segment = log.segments[positions[base_offset]]
        is_old = (
            segment.base_offset < log.cleaned_offset
            and segment.modified_ms + delete_retention_ms <= now_ms
        )
        before = log.batches_of(positions[base_offset])
        after = [kept for batch in before for kept in _cleaned(batch, task, is_old)]
        if after != before:
            log.replace(base_offset, after)
            _forget_markers(log, before, after)
    log.cleaned_offset = max(log.cleaned_offset, end_offset)


def _forget_markers(log: PartitionLog, before: List[Batch], after: List[Batch]) -> None:
    """Drop aborted transactions whose marker was removed."""
    left = {batch.last_offset for batch in after if batch.is_control}
    gone = {batch.last_offset for batch in before if batch.is_control} - left
    log.aborted = [each for each in log.aborted if each.last_offset not in gone]


# ---------------------------------------------------------------- first pass


def _look_at(batches: List[Batch], task: _Task) -> None:
    """Collect the last offset of each key, and the transactions that have records."""
    for batch in batches:
        if batch.is_control:
            if batch.producer_id in task.open_producers:
                task.open_producers.discard(batch.producer_id)
                task.with_data.add((batch.producer_id, batch.last_offset))
            continue
        if batch.is_transactional:
            task.open_producers.add(batch.producer_id)
        if _is_aborted(batch, task):
            continue
        for offset, key in _keys(batch):
            if key is not None and offset < task.end_offset:
                task.latest[key] = offset


def _keys(batch: Batch) -> List[Tuple[int, Optional[bytes]]]:
    try:
        if batch.magic == 2:
            return [(record.offset, record.key) for record in _records(batch)]
        parts = MemoryRecords(batch.data)
        return [(record.offset, record.key) for part in parts for record in part]
    except UnsupportedCodecError:  # the package of the codec is missing: the batch is retained
        return []


def _is_aborted(batch: Batch, task: _Task) -> bool:
    if not batch.is_transactional or batch.is_control:
        return False
    ranges = task.aborted.get(batch.producer_id, ())
    return any(first <= batch.base_offset <= last for first, last in ranges)


# ---------------------------------------------------------------- second pass


def _cleaned(batch: Batch, task: _Task, is_old: bool) -> List[Batch]:
    """Return what is retained of a batch: one batch, or none.

    Arguments: is_old: whether the segment was cleaned before and its tombstones may be removed,
        for batches without a delete horizon.
    """
    if batch.last_offset >= task.end_offset:
        return [batch]
    try:
        if batch.magic < 2:
            return _cleaned_set(batch, task, is_old)
        return _cleaned_batch(batch, task, is_old)
    except UnsupportedCodecError:
        return [batch]


def _cleaned_batch(batch: Batch, task: _Task, is_old: bool) -> List[Batch]:
    horizon = DefaultRecordBatch(batch.data).delete_horizon_ms
    is_over = is_old if not task.has_horizon else horizon is not None and horizon <= task.now_ms
    if batch.is_control:
        return _cleaned_marker(batch, task, horizon, is_over)
    records = _records(batch)
    if _is_aborted(batch, task):
        kept = []
    else:
        kept = [record for record in records if _stays(record, task, is_over)]
    is_last = (batch.producer_id, batch.last_offset) in task.last_of_producers
    if not kept and not (is_last and batch.producer_id >= 0):
        return []
    wants_horizon = (
        task.has_horizon and horizon is None and any(record.is_tombstone for record in kept)
    )
    if len(kept) == len(records) and not wants_horizon:
        return [batch]
    return [
        _rebuilt(batch, kept, task.now_ms + task.delete_retention_ms if wants_horizon else None)
    ]


def _stays(record: _Raw, task: _Task, is_over: bool) -> bool:
    if record.key is None or task.latest.get(record.key, -1) > record.offset:
        return False
    return not (record.is_tombstone and is_over)


def _cleaned_marker(
    batch: Batch, task: _Task, horizon: Optional[int], is_over: bool
) -> List[Batch]:
    """Retain the marker of a transaction as long as it has records, then until its horizon."""
    if (batch.producer_id, batch.last_offset) in task.with_data:
        return [batch]
    if is_over:
        is_last = (batch.producer_id, -1) in task.last_of_producers
        return [_rebuilt(batch, [], None)] if is_last else []
    if task.has_horizon and horizon is None:
        return [_rebuilt(batch, _records(batch), task.now_ms + task.delete_retention_ms)]
    return [batch]


def _cleaned_set(batch: Batch, task: _Task, is_old: bool) -> List[Batch]:
    kept: List[Record] = []
    count = codec = timestamp_type = 0
    for part in MemoryRecords(batch.data):
        codec, timestamp_type = part.codec, part.timestamp_type or 0
        for record in part:
            count += 1
            raw = _Raw(record.offset, 0, record.key, record.value is None, b'', b'')
            if _stays(raw, task, is_old):
                kept.append(record)
    if not kept or len(kept) == count:
        return [batch] if kept else []
    messages = [record[:4] for record in kept]
    data = message_sets.encoded(messages, batch.magic, codec, timestamp_type)
    return [
        batch._replace(
            base_offset=kept[0].offset,
            last_offset=kept[-1].offset,
            max_timestamp=max(-1 if each.timestamp is None else each.timestamp for each in kept),
            data=data,
        )
    ]


# ---------------------------------------------------------------- batches of magic 2


def _records(batch: Batch) -> List[_Raw]:
    """Return the records of a batch, decoded only as far as needed."""
    header = BatchHeader._make(HEADER.unpack_from(batch.data))
    if not header.record_count:
        return []
    data = codecs.decompress(header.attributes & CODEC_MASK, batch.data[HEADER.size :], 2)
    found = []
    pos = 0
    for _ in range(header.record_count):
        size, pos = decode_varint(data, pos)
        end = pos + size
        attributes = data[pos : pos + 1]
        timestamp_delta, offset_at = decode_varint(data, pos + 1)
        offset_delta, pos = decode_varint(data, offset_at)
        key_size, pos = decode_varint(data, pos)
        key = bytes(data[pos : pos + key_size]) if key_size >= 0 else None
        value_size, _ = decode_varint(data, pos + max(0, key_size))
        found.append(
            _Raw(
                header.base_offset + offset_delta,
                timestamp_delta,
                key,
                value_size < 0,
                attributes,
                data[offset_at:end],
            )
        )
        pos = end
    return found


def _rebuilt(batch: Batch, records: List[_Raw], horizon_ms: Optional[int]) -> Batch:
    """Return a batch with only these records, and with a delete horizon if one is given.

    The horizon takes the place of the base timestamp, so that the deltas count from it then.
    """
    header = BatchHeader._make(HEADER.unpack_from(batch.data))
    attributes, base = header.attributes, header.base_timestamp
    if not records:
        attributes &= ~CODEC_MASK
    if horizon_ms is not None:
        attributes |= DELETE_HORIZON_MASK
        base = horizon_ms
    shift = header.base_timestamp - base
    parts: List[bytes] = []
    for record in records:
        stamp = VARINTS[record.timestamp_delta + shift]
        parts += (
            VARINTS[1 + len(stamp) + len(record.rest)],
            record.attributes,
            stamp,
            record.rest,
        )
    payload = codecs.compress(attributes & CODEC_MASK, b''.join(parts)) if records else b''
    stamps = [header.base_timestamp + record.timestamp_delta for record in records]
    top = header.max_timestamp
    if stamps and not attributes & TIMESTAMP_TYPE_MASK:
        top = max(stamps)
    packed = HEADER.pack(
        *header._replace(
            length=HEADER.size - 12 + len(payload),
            crc=0,
            attributes=attributes,
            base_timestamp=base,
            max_timestamp=top,
            record_count=len(records),
        )
    )
    data = bytearray(packed + payload)
    data[17:21] = crc32c(bytes(data[ATTRIBUTES_POS:])).to_bytes(4, 'big')
    return batch._replace(max_timestamp=top, data=bytes(data))
