"""Compaction by key: what stays of which record, in every format."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

import pytest

from kafka.record.default_records import DefaultRecordBatch, encode_batch
from kafka.record.legacy_records import encode_message_set
from kafka.record.memory_records import MemoryRecords
from kafka.testing.logs.compaction import compact, is_dirty
from kafka.testing.logs.log_settings import LogSettings
from kafka.testing.logs.partition_log import Batch, PartitionLog
from kafka.testing.logs.producer_states import States, remember
from kafka.testing.logs.segments import OpenFiles
from kafka.testing.logs.stored_log import StoredLog

NEWEST = (4, 4)
NOW = 1_000_000
DAY = 24 * 3600 * 1000

Keyed = Tuple[Optional[bytes], Optional[bytes]]


@pytest.fixture(params=['memory', 'files'])
def log(request, tmp_path):
    if request.param == 'memory':
        yield PartitionLog()
    else:
        files = OpenFiles()
        yield StoredLog(tmp_path / 'log', files, False, lambda log, cost: None)
        files.close_all()


def append(log: PartitionLog, *records: Keyed, at: int = NOW, **more: Any) -> int:
    """Append a batch of records, of a producer if one is named; return its first offset."""
    data = encode_batch([(at, key, value, ()) for key, value in records], **more)
    ids = [more.get(name, -1) for name in ('producer_id', 'producer_epoch', 'base_sequence')]
    kinds = more.get('transactional', False), more.get('control', False)
    return log.append(Batch(0, len(records) - 1, at, 2, data, *ids, *kinds), 0)


def old(log: PartitionLog, *records: Keyed, magic: int, codec: int = 0) -> int:
    messages = [(offset, NOW, key, value) for offset, (key, value) in enumerate(records)]
    data = encode_message_set(messages, magic=magic, codec=codec)
    return log.append(Batch(0, len(records) - 1, NOW if magic else -1, magic, data), 0)


def marker(log: PartitionLog, producer_id: int, commit: bool) -> int:
    data = encode_batch(
        [(NOW, bytes((0, 0, 0, commit)), bytes(6), ())],
        producer_id=producer_id,
        producer_epoch=0,
        transactional=True,
        control=True,
    )
    batch = Batch(0, 0, NOW, 2, data, producer_id, 0, -1, True, True)
    return log.end_transaction(batch, 0, commit)


def cleaned(
    log: PartitionLog,
    producers: Optional[States] = None,
    now_ms: int = NOW,
    release: Tuple[int, ...] = NEWEST,
) -> None:
    """Compact all of a log."""
    log.roll(now_ms)
    compact(log, producers or {}, log.last_stable_offset, DAY, now_ms, release)


def there(log: PartitionLog) -> List[Tuple[int, Optional[bytes], Optional[bytes]]]:
    """Return offset, key and value of each record, read as a client reads them."""
    data = log.read(log.start_offset, log.end_offset, 1 << 20, False)
    return [(r.offset, r.key, r.value) for part in MemoryRecords(data) for r in part]


def test_of_each_key_the_last_record_stays_with_its_offset(log):
    append(log, (b'a', b'1'), (b'b', b'1'), (b'a', b'2'))
    append(log, (b'b', b'2'), (b'c', b'1'))
    append(log, (b'c', b'2'))
    cleaned(log)
    assert there(log) == [(2, b'a', b'2'), (3, b'b', b'2'), (5, b'c', b'2')]
    assert [(b.base_offset, b.last_offset) for b in log.batches] == [(0, 2), (3, 4), (5, 5)]
    assert (log.start_offset, log.end_offset) == (0, 6)
    assert log.size_bytes == sum(len(b.data) for b in log.batches)


def test_what_follows_is_not_touched(log):
    append(log, (b'a', b'1'))
    log.roll(NOW)
    append(log, (b'a', b'2'))
    append(log, (b'a', b'3'))
    compact(log, {}, 1, DAY, NOW, NEWEST)
    assert [offset for offset, _, _ in there(log)] == [0, 1, 2]


def test_several_segments(log):
    for number in range(6):
        append(log, (b'a', b'%d' % number), (b'k%d' % number, b''))
        log.roll(NOW)
    cleaned(log)
    assert [offset for offset, _, _ in there(log)] == [1, 3, 5, 7, 9, 10, 11]
    for offset in range(12):
        data = log.read(offset, log.end_offset, 1 << 20, False)
        assert max(r.offset for part in MemoryRecords(data) for r in part) == 11
    assert append(log, (b'x', b'')) == 12


def test_segments_of_which_nothing_is_left_go(log):
    append(log, (b'a', b'1'))
    log.roll(NOW)
    append(log, (b'a', b'2'))
    cleaned(log)
    assert [segment.base_offset for segment in log.segments] == [1, 2]
    assert there(log) == [(1, b'a', b'2')]
    assert log.read(0, 2, 1 << 20, True) == log.read(1, 2, 1 << 20, True)


def test_records_without_key_go(log):
    append(log, (None, b'1'), (b'a', b'1'))
    append(log, (None, b'2'))
    cleaned(log)
    assert there(log) == [(1, b'a', b'1')]


@pytest.mark.parametrize('codec', [0, 1, 2, 3, 4])
def test_codec_times_and_headers_stay(log, codec):
    if codec > 1:
        pytest.importorskip('cramjam')
    headers = [('h', b'1'), ('h', None)]
    records = [(NOW + n, b'%d' % (n % 3), b'v%d' % n, headers) for n in range(6)]
    data = encode_batch(records, codec=codec)
    log.append(Batch(0, 5, NOW + 5, 2, data), 0)
    append(log, (b'2', b'new'))
    cleaned(log)
    first, second = log.batches
    part = DefaultRecordBatch(first.data)
    part.check_crc()
    assert part.codec == codec
    assert [tuple(record) for record in part] == [
        (3, NOW + 3, b'0', b'v3', (('h', b'1'), ('h', None))),
        (4, NOW + 4, b'1', b'v4', (('h', b'1'), ('h', None))),
    ]
    assert (part.base_offset, part.last_offset, part.max_timestamp) == (0, 5, NOW + 4)
    assert first.max_timestamp == NOW + 4
    assert second.base_offset == 6


def test_the_time_of_appending_stays(log):
    records = [(NOW, b'a', b'1', ()), (NOW, b'b', b'1', ())]
    data = encode_batch(records, timestamp_type=1, max_timestamp=NOW + 77)
    log.append(Batch(0, 1, NOW + 77, 2, data), 0)
    append(log, (b'b', b'2'))
    cleaned(log)
    assert [r.timestamp for r in DefaultRecordBatch(log.batches[0].data)] == [NOW + 77]


@pytest.mark.parametrize('magic', [0, 1])
@pytest.mark.parametrize('codec', [0, 1])
def test_older_formats(log, magic, codec):
    old(log, (b'a', b'1'), (b'b', b'1'), (b'a', b'2'), magic=magic, codec=codec)
    old(log, (b'b', b'2'), (b'c', None), magic=magic, codec=codec)
    cleaned(log, release=(0, 10))
    assert there(log) == [(2, b'a', b'2'), (3, b'b', b'2'), (4, b'c', None)]
    assert {batch.magic for batch in log.batches} == {magic}
    assert [part.codec for part in MemoryRecords(log.batches[0].data)] == [codec]


# ------------------------------------------------------------ tombstones


def test_a_tombstone_stays_for_a_day_after_the_first_time(log):
    append(log, (b'a', b'1'))
    append(log, (b'a', None), at=NOW - 10 * DAY)
    cleaned(log)
    assert there(log) == [(1, b'a', None)]
    [batch] = log.batches
    assert DefaultRecordBatch(batch.data).delete_horizon_ms == NOW + DAY
    assert [r.timestamp for r in DefaultRecordBatch(batch.data)] == [NOW - 10 * DAY]
    cleaned(log, now_ms=NOW + DAY - 1)
    assert there(log) == [(1, b'a', None)]
    cleaned(log, now_ms=NOW + DAY)
    assert there(log) == []
    assert (log.start_offset, log.end_offset) == (0, 2)
    assert append(log, (b'a', b'2')) == 2


@pytest.mark.parametrize('magic', [0, 1, 2])
def test_before_3_1_the_age_of_the_segment_decides(log, magic):
    write = append if magic == 2 else old
    more = {} if magic == 2 else {'magic': magic}
    write(log, (b'a', None), **more)
    log.modified_ms = NOW
    release = (2, 8) if magic == 2 else (0, 10)
    cleaned(log, release=release)
    cleaned(log, now_ms=NOW + DAY - 1, release=release)
    assert there(log) == [(0, b'a', None)]
    cleaned(log, now_ms=NOW + DAY, release=release)
    assert there(log) == []


# ------------------------------------------------------------ producers and transactions


def test_the_last_batch_of_a_producer_stays_as_an_empty_one(log):
    producers: States = {}
    ids = {'producer_id': 7, 'producer_epoch': 0}
    for sequence in (0, 1):
        append(log, (b'a', b'%d' % sequence), base_sequence=sequence, **ids)
        remember(producers, log.batches[-1], sequence, NOW)
    append(log, (b'a', b'last'))
    cleaned(log, producers)
    assert there(log) == [(2, b'a', b'last')]
    first, _ = log.batches
    part = DefaultRecordBatch(first.data)
    part.check_crc()
    assert (part.base_offset, part.last_offset, part.record_count) == (1, 1, 0)
    assert (part.producer_id, part.base_sequence) == (7, 1)


def test_aborted_records_go_and_do_not_count(log):
    ids = {'producer_id': 7, 'producer_epoch': 0, 'base_sequence': 0, 'transactional': True}
    append(log, (b'a', b'1'))
    append(log, (b'a', b'aborted'), **ids)
    marker(log, 7, commit=False)
    cleaned(log)
    assert [entry[:2] for entry in there(log)][:1] == [(0, b'a')]
    assert [batch.base_offset for batch in log.batches] == [0, 2]
    assert [each.last_offset for each in log.aborted] == [2]


def test_a_marker_goes_when_its_records_are_gone_for_a_day(log):
    ids = {'producer_id': 7, 'producer_epoch': 0, 'base_sequence': 0, 'transactional': True}
    append(log, (b'a', b'aborted'), **ids)
    log.roll(NOW)
    marker(log, 7, commit=False)
    cleaned(log)
    assert [batch.is_control for batch in log.batches] == [True]
    cleaned(log)  # now nothing is left of the transaction
    assert DefaultRecordBatch(log.batches[0].data).delete_horizon_ms == NOW + DAY
    cleaned(log, now_ms=NOW + DAY)
    assert log.batches == []
    assert log.aborted == []


def test_a_marker_stays_as_long_as_its_records(log):
    ids = {'producer_id': 7, 'producer_epoch': 0, 'base_sequence': 0, 'transactional': True}
    append(log, (b'a', b'1'), **ids)
    marker(log, 7, commit=True)
    for now_ms in (NOW, NOW + DAY, NOW + 3 * DAY):
        cleaned(log, now_ms=now_ms)
        assert [batch.is_control for batch in log.batches] == [False, True]


def test_open_transactions_stop_it(log):
    ids = {'producer_id': 7, 'producer_epoch': 0, 'base_sequence': 0, 'transactional': True}
    append(log, (b'a', b'1'))
    append(log, (b'a', b'2'))
    append(log, (b'a', b'3'), **ids)
    append(log, (b'a', b'4'), (None, b'5'))
    cleaned(log)
    assert [offset for offset, _, _ in there(log)] == [1, 2, 3, 4]


# ------------------------------------------------------------ when


def test_half_of_it_new_is_enough(log):
    settings = LogSettings(2, 1, None, False, 1, 1, True, False, 1)
    assert not is_dirty(log, settings)
    append(log, (b'a', b'1'))
    assert not is_dirty(log, settings)  # nothing is closed
    log.roll(NOW)
    assert is_dirty(log, settings)
    cleaned(log)
    assert not is_dirty(log, settings)
    append(log, (b'b', b'1'))
    log.roll(NOW)
    assert not is_dirty(log, settings)
    append(log, (b'c', b'1'))
    log.roll(NOW)
    assert is_dirty(log, settings)
