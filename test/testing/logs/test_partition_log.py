"""The log of one partition."""

from __future__ import annotations

from typing import List, Tuple

import pytest

from kafka.record.memory_records import MemoryRecords
from kafka.testing.logs.partition_log import AbortedTransaction, Batch, PartitionLog
from test.testing.data_requests import batch, message_set, offsets


def stored(*values: bytes, at: int = 5, producer_id: int = -1, is_control: bool = False) -> Batch:
    data = batch(*values, at=at)
    return Batch(0, len(values) - 1, at, 2, data, producer_id, 0, 0, producer_id >= 0, is_control)


def old(*values: bytes, magic: int = 0, codec: int = 0) -> Batch:
    data = message_set(*values, magic=magic, codec=codec)
    return Batch(0, len(values) - 1, -1, magic, data)


def filled(*counts: int) -> PartitionLog:
    """Return a log with batches of so many records."""
    log = PartitionLog()
    for count in counts:
        log.append(stored(*[b'a'] * count), 0)
    return log


def everything(log: PartitionLog, offset: int = 0) -> bytes:
    return log.read(offset, log.end_offset, 1 << 20, False)


def test_batches_get_offsets_and_the_leader_epoch() -> None:
    log = PartitionLog()
    assert [log.append(stored(b'a', b'b'), 3), log.append(stored(b'c'), 4)] == [0, 2]
    parts = list(MemoryRecords(everything(log)))
    assert [(part.base_offset, part.partition_leader_epoch) for part in parts] == [(0, 3), (2, 4)]


@pytest.mark.parametrize('magic', [0, 1])
@pytest.mark.parametrize('codec', [0, 1])
def test_messages_of_older_formats_get_offsets(magic: int, codec: int) -> None:
    log = PartitionLog()
    assert [log.append(old(b'a', b'b', magic=magic, codec=codec), 0) for _ in range(2)] == [0, 2]
    assert offsets(everything(log)) == [0, 1, 2, 3]
    assert log.epochs == []


def test_reading_from_each_offset() -> None:
    log = filled(2, 1, 3)
    begin = [next(iter(MemoryRecords(everything(log, offset)))).base_offset for offset in range(6)]
    assert begin == [0, 0, 2, 3, 3, 3]
    assert everything(log, 6) == b''


def test_reading_up_to_an_end() -> None:
    assert offsets(filled(2, 1, 3).read(0, 3, 1 << 20, False)) == [0, 1, 2]


def test_reading_cuts_where_the_limit_is() -> None:
    log = filled(1, 1)
    size = len(everything(log))
    assert [len(log.read(0, 2, most, False)) for most in (0, 1, size - 1, size)] == [
        0,
        1,
        size - 1,
        size,
    ]


def test_the_first_batch_can_come_whole() -> None:
    log = filled(1, 1)
    assert offsets(log.read(0, 2, 1, True)) == [0]


def test_the_first_message_of_a_row_can_come_whole() -> None:
    log = PartitionLog()
    log.append(old(b'a', b'b', b'c'), 0)
    assert offsets(log.read(1, 3, 1, True)) == [1]


def test_counting_bytes() -> None:
    log = filled(2, 1, 3)
    sizes = [len(each.data) for each in log.batches]
    assert log.bytes_between(0, 6) == sum(sizes) == log.size_bytes
    assert log.bytes_between(2, 6) == sizes[1] + sizes[2]
    assert log.bytes_between(0, 3) == sizes[0] + sizes[1]
    assert log.bytes_between(6, 6) == 0
    log.delete_before(2)
    assert log.bytes_between(2, 3) == sizes[1]
    assert log.size_bytes == sizes[1] + sizes[2]


def test_deleting_keeps_the_batch_that_holds_the_start() -> None:
    log = filled(2, 1, 3)
    log.delete_before(4)
    assert log.start_offset == 4
    assert [each.base_offset for each in log.batches] == [3]
    log.delete_before(1)
    assert log.start_offset == 4
    log.delete_before(99)
    assert (log.start_offset, log.batches) == (6, [])


@pytest.mark.parametrize(('size', 'offset'), [(1, 1), (70, 2), (1 << 20, 3)])
def test_the_offset_after_so_many_bytes(size: int, offset: int) -> None:
    assert filled(1, 1, 1).offset_after(size) == offset


def test_the_offset_behind_what_was_read() -> None:
    log = filled(2, 1, 3)
    sizes = [len(each.data) for each in log.batches]
    assert log.offset_behind(0, sizes[0]) == 2
    assert log.offset_behind(2, sizes[1] + 1) == 6
    assert log.offset_behind(1, 1) == 2


def times(log: PartitionLog, timestamp: int) -> List[int]:
    return [each.base_offset for each in log.batches_at(timestamp)]


def test_batches_that_reach_a_time() -> None:
    log = PartitionLog()
    for at in (5, 20, 10, 30):
        log.append(stored(b'a', at=at), 0)
    assert times(log, 6) == [1, 2, 3]
    assert times(log, 20) == [1, 3]
    log.delete_before(2)
    assert times(log, 6) == [2, 3]
    assert log.max_timestamp == 30


def test_the_last_stable_offset() -> None:
    log = filled(1)
    log.append(stored(b'a', producer_id=1), 0)
    log.append(stored(b'a', producer_id=2), 0)
    assert log.last_stable_offset == 1
    log.end_transaction(stored(b'm', producer_id=1, is_control=True), 0, True)
    assert log.last_stable_offset == 2
    log.end_transaction(stored(b'm', producer_id=2, is_control=True), 0, False)
    assert log.last_stable_offset == 5
    assert log.aborted == [AbortedTransaction(2, 2, 4)]
    assert log.aborted_between(0, 2) == []
    assert log.aborted_between(3, 5) == log.aborted


def test_a_marker_without_transaction_aborts_nothing() -> None:
    log = filled(1)
    log.end_transaction(stored(b'm', producer_id=1, is_control=True), 0, False)
    assert log.aborted == [] and log.last_stable_offset == 2


def test_epochs_without_records_leave_nothing() -> None:
    log = filled(1)
    log.note_epoch(1)
    log.note_epoch(2)
    assert [tuple(each) for each in log.epochs] == [(0, 0), (2, 1)]


@pytest.mark.parametrize(
    ('epoch', 'found'),
    [
        (0, (0, 0)),
        (1, (1, 1)),
        (2, (2, 2)),
        (3, (2, 2)),
        (4, (4, 3)),
        (5, (-1, -1)),
        (-1, (-1, -1)),
    ],
)
def test_where_epochs_end(epoch: int, found: Tuple[int, int]) -> None:
    log = PartitionLog()
    for written in (1, 2, 4):
        log.append(stored(b'a'), written)
    assert log.end_of_epoch(epoch) == found


def test_the_epoch_of_an_offset() -> None:
    log = PartitionLog()
    for written in (1, 1, 4):
        log.append(stored(b'a'), written)
    assert [log.epoch_at(offset) for offset in range(3)] == [1, 1, 4]


def test_the_last_stable_offset_is_never_before_the_start() -> None:
    """DeleteRecords may take the beginning of an open transaction."""
    log = PartitionLog()
    for sequence in range(3):
        log.append(stored(b'%d' % sequence, producer_id=1), 0)
    log.delete_before(2)
    assert (log.start_offset, log.last_stable_offset) == (2, 2)
