"""Logs in files: as those in memory, and back after a start."""

from __future__ import annotations

import errno
import logging
import os
import random

import pytest

from kafka.record.default_records import encode_batch
from kafka.record.memory_records import MemoryRecords
from kafka.testing.logs.partition_log import AbortedTransaction, Batch, EpochStart, PartitionLog
from kafka.testing.logs.segments import OpenFiles, StorageError
from kafka.testing.logs.stored_log import StoredLog
from test.testing.data_requests import batch, message_set, offsets
from test.testing.logs.test_partition_log import everything, old


def stored(*values: bytes, at: int = 5, producer_id: int = -1) -> Batch:
    is_new = producer_id >= 0
    numbers = {'producer_id': producer_id, 'producer_epoch': 0, 'base_sequence': 0}
    data = batch(*values, at=at, transactional=is_new, **(numbers if is_new else {}))
    ids = (producer_id, 0, 0) if is_new else (-1, -1, -1)
    return Batch(0, len(values) - 1, at, 2, data, *ids, is_new)


def marker_batch(producer_id: int, commit: bool = False) -> Batch:
    key, value = bytes((0, 0, 0, commit)), bytes((0, 0, 0, 0, 0, 9))
    data = encode_batch(
        [(5, key, value, ())],
        producer_id=producer_id,
        producer_epoch=0,
        transactional=True,
        control=True,
    )
    return Batch(0, 0, 5, 2, data, producer_id, 0, -1, True, True)


@pytest.fixture
def opened(tmp_path):
    """Return a function that opens the log of a folder and recovers it."""
    files = OpenFiles()

    def give(name='t-0', fsync=False):
        log = StoredLog(tmp_path / name, files, fsync, lambda log, cost: None)
        log.recover()
        return log

    yield give
    files.close_all()


def fill(log, *counts, at=5):
    for count in counts:
        log.append(stored(*[b'a'] * count, at=at), 0)
        at += 1
    return log


def again(log, opened):
    """Return the log as the next process finds it, once closed and once as after a kill."""
    log.checkpoint()
    log.close()
    return opened()


def test_what_was_written_is_read_as_from_memory(opened):
    kept, memory = fill(opened(), 2, 1, 3), fill(PartitionLog(), 2, 1, 3)
    for offset in range(7):
        for end in range(offset, 7):
            for most in (0, 10, 100, 1000):
                for whole in (False, True):
                    args = offset, end, most, whole
                    assert kept.read(*args) == memory.read(*args), args
            assert kept.bytes_between(offset, end) == memory.bytes_between(offset, end)
    assert kept.batches == memory.batches
    assert [kept.batch_of(n) for n in range(7)] == [memory.batch_of(n) for n in range(7)]
    assert list(kept.batches_at(6)) == list(memory.batches_at(6))
    assert kept.size_bytes == memory.size_bytes


@pytest.mark.parametrize('magic, codec', [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_old_formats_are_read_as_from_memory(opened, magic, codec):
    kept, memory = opened(), PartitionLog()
    for log in (kept, memory):
        for _ in range(2):
            log.append(old(b'a', b'b', magic=magic, codec=codec), 0)
    for offset in range(5):
        assert everything(kept, offset) == everything(memory, offset)
        assert kept.first_entry_bytes(offset, 4) == memory.first_entry_bytes(offset, 4)
    found = again(kept, opened)
    assert found.batches == memory.batches
    assert everything(found, 3) == everything(memory, 3)


def test_a_wrapper_behind_the_checkpoint_begins_where_it_began(opened):
    log = opened()
    log.append(old(b'a', b'b', magic=1, codec=1), 0)
    log.checkpoint()
    log.append(old(b'c', b'd', magic=1, codec=1), 0)
    assert [each.base_offset for each in opened().batches] == [0, 2]


@pytest.mark.parametrize('is_closed', [True, False])
def test_everything_comes_back(opened, is_closed):
    log = fill(opened(), 2, 1)
    log.append(stored(b'x', b'y', producer_id=7), 3)
    log.append(stored(b'z', producer_id=8), 3)
    log.end_transaction(marker_batch(7), 3, commit=False)
    if is_closed:
        log.close()
    found = opened()
    assert (found.start_offset, found.end_offset) == (0, 7)
    assert found.batches == log.batches
    assert found.epochs == [EpochStart(0, 0), EpochStart(3, 3)]
    assert found.aborted == [AbortedTransaction(7, 3, 6)]
    assert found.open_transactions == {8: 5}
    assert found.last_stable_offset == 5
    assert found.size_bytes == log.size_bytes
    if not is_closed:  # otherwise they were written down by those who know them
        assert found.producers[7].last_sequence == 1
        assert found.producers[7].first_offset == -1
        assert found.producers[8].first_offset == 5


def test_producers_come_back_from_the_checkpoint_and_from_behind_it(opened):
    log = opened()
    log.append(stored(b'a', b'b', producer_id=7), 0)
    found = opened()  # as after a kill
    found.checkpoint()
    found.append(stored(b'a', producer_id=9), 0)
    last = opened()
    assert [(key, state.last_sequence) for key, state in last.producers.items()] == [(7, 1), (9, 0)]


def test_what_a_checkpoint_covers_is_not_read_again(opened, monkeypatch):
    log = fill(opened(), 1, 1)
    log.checkpoint()
    fill(log, 1)
    walked = []
    heads = log._files.__class__.heads
    monkeypatch.setattr(
        log._files.__class__, 'heads', lambda *args: walked.append(args[2]) or heads(*args)
    )
    assert opened().end_offset == 3
    assert walked == [2 * log.size_bytes // 3]


@pytest.mark.parametrize('left', [1, 11, 16, 60, 68])
@pytest.mark.parametrize('is_covered', [True, False])
def test_a_torn_end_is_cut_off_and_told(opened, left, is_covered, caplog):
    log = fill(opened(), 1, 2)
    if is_covered:
        log.checkpoint()
    path = log.folder / ('%020d.log' % 0)
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:left])
    with caplog.at_level(logging.WARNING):
        found = opened()
    assert found.end_offset == 3
    assert 'cut off %d bytes after offset 3' % left in caplog.text
    assert path.read_bytes() == whole
    fill(found, 1)
    assert opened().end_offset == 4


def test_an_end_whose_checksum_is_wrong_is_cut_off(opened):
    log = fill(opened(), 1, 1)
    path = log.folder / ('%020d.log' % 0)
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1
    path.write_bytes(damaged)
    assert opened().end_offset == 1


def test_a_checkpoint_that_is_not_whole_costs_time_only(opened, caplog):
    log = fill(opened(), 1, 2)
    log.close()
    (log.folder / 'checkpoint').write_bytes(b'torn')
    assert opened().batches == log.batches
    assert 'has no whole checkpoint' in caplog.text


def test_a_log_that_never_had_a_checkpoint_is_no_news(opened, caplog):
    log = fill(opened(), 1, 2)
    assert opened().batches == log.batches
    assert caplog.text == ''


def test_an_index_that_is_not_whole_costs_time_only(opened, caplog):
    log = fill(opened(), 1, 2)
    log.roll(1)
    fill(log, 1)
    log.close()
    (log.folder / ('%020d.index' % 0)).write_bytes(b'torn')
    assert opened().batches == log.batches
    assert 'has no whole index' in caplog.text


def test_segments_come_back(opened):
    log = fill(opened(), 2, 3)
    log.modified_ms = 77
    log.roll(100)
    fill(log, 1, at=9)
    log.roll(200)
    found = again(log, opened)
    assert [each.base_offset for each in found.segments] == [0, 5, 6]
    assert [each.max_timestamp for each in found.segments] == [6, 9, -1]
    assert [each.modified_ms for each in found.segments][:1] == [77]
    assert found.batches == log.batches
    assert offsets(everything(found, 4)) == offsets(everything(log, 4))
    assert fill(found, 1).end_offset == 7
    assert offsets(everything(opened(), 5)) == [5, 6]


def test_a_segment_that_no_checkpoint_knows_comes_back(opened):
    """The process was killed between the new file and the checkpoint."""
    log = fill(opened(), 2)
    log.checkpoint()
    log.roll(100)
    fill(log, 3)
    found = opened()
    assert [each.base_offset for each in found.segments] == [0, 2]
    assert found.end_offset == 5
    assert [each.base_offset for each in again(found, opened).segments] == [0, 2]


def test_records_before_the_start_go_with_their_segment(opened):
    log = fill(opened(), 2, 2)
    log.roll(1)
    fill(log, 2)
    log.roll(1)
    fill(log, 2)
    log.delete_before(3)
    log.checkpoint()
    assert [each.base_offset for each in log.segments] == [0, 4, 6]
    log.delete_before(5)
    log.checkpoint()
    assert sorted(path.name for path in log.folder.glob('*.log')) == [
        '%020d.log' % 4,
        '%020d.log' % 6,
    ]
    found = again(log, opened)
    assert (found.start_offset, found.end_offset) == (5, 8)
    assert offsets(everything(found, 5)) == [4, 5, 6, 7]
    assert found.size_bytes == log.size_bytes == sum(len(each.data) for each in log.batches)


def test_files_that_were_to_be_deleted_go_at_the_next_start(opened):
    log = fill(opened(), 2)
    log.roll(1)
    fill(log, 2)
    first = log.folder / ('%020d.log' % 0)
    data = first.read_bytes()
    log.delete_before(2)
    log.close()
    first.write_bytes(data)
    assert opened().start_offset == 2
    assert not first.exists()


def on_a_full_disk(log, monkeypatch, room):
    """Let no checkpoint be written while segments take more than so many bytes."""
    write = log._files.write_checkpoint

    def refuse(*args):
        if sum(path.stat().st_size for path in log.folder.glob('*.log')) > room:
            raise OSError(errno.ENOSPC, 'No space left on device')
        write(*args)

    monkeypatch.setattr(log._files, 'write_checkpoint', refuse)


def three_closed(opened, fsync):
    log = fill(opened(fsync=fsync), 2, 2)
    for _ in range(3):
        log.roll(1)
        fill(log, 2)
    log.checkpoint()
    assert [each.base_offset for each in log.segments] == [0, 4, 6, 8]
    return log


@pytest.mark.parametrize('fsync', [False, True])
def test_what_retention_deletes_makes_room_on_a_full_disk(opened, monkeypatch, fsync):
    log = three_closed(opened, fsync)
    size = log.size_bytes
    on_a_full_disk(log, monkeypatch, size - 1)
    with pytest.raises(OSError, match='No space'):
        log.checkpoint()  # there is nothing to give up
    assert log.size_bytes == size
    log.delete_before(6)
    log.checkpoint()
    assert sorted(path.name for path in log.folder.glob('*.log')) == [
        '%020d.log' % 6,
        '%020d.log' % 8,
    ]
    found = again(log, opened)
    assert (found.start_offset, found.end_offset) == (6, 10)


@pytest.mark.parametrize('start', [4, 5, 6])
def test_a_kill_between_making_room_and_the_checkpoint(opened, monkeypatch, start):
    """Segments of which nothing is wanted are empty then, and the last checkpoint has them."""
    log = three_closed(opened, fsync=True)
    wanted = [each for each in offsets(everything(log, 0)) if each >= (6 if start == 6 else 4)]
    on_a_full_disk(log, monkeypatch, 0)
    log.delete_before(start)
    with pytest.raises(OSError, match='No space'):
        log.checkpoint()
    found = opened()
    assert (found.start_offset, found.end_offset) == (wanted[0], 10)
    assert offsets(everything(found, found.start_offset)) == wanted
    assert found.size_bytes == sum(len(each.data) for each in found.batches)
    assert fill(found, 1).end_offset == 11
    found.close()
    assert opened().start_offset == wanted[0]


@pytest.mark.parametrize('empty', [[4], [6], [4, 6], [0, 6]])
def test_segments_that_are_empty_elsewhere_than_at_the_beginning_are_damage(opened, empty):
    log = three_closed(opened, fsync=True)
    log.close()
    for base_offset in empty:
        (log.folder / ('%020d.log' % base_offset)).write_bytes(b'')
    with pytest.raises(StorageError, match='has 0 bytes and should have'):
        opened()


def test_all_may_be_gone(opened):
    log = fill(opened(), 2)
    log.roll(1)
    log.delete_before(2)
    found = again(log, opened)
    assert (found.start_offset, found.end_offset, found.size_bytes) == (2, 2, 0)
    assert found.read(2, 2, 100, True) == b''
    assert fill(found, 1).end_offset == 3
    assert opened().end_offset == 3


@pytest.mark.parametrize('change', [b'more', None])
def test_a_closed_segment_of_another_size_is_an_error_that_changes_nothing(opened, change):
    log = fill(opened(), 2)
    log.roll(1)
    fill(log, 1)
    log.close()
    path = log.folder / ('%020d.log' % 0)
    if change:
        path.write_bytes(path.read_bytes() + change)
    else:
        path.unlink()
    before = sorted((each.name, each.read_bytes()) for each in log.folder.iterdir())
    with pytest.raises(StorageError, match=r'00\.log has -?\d+ bytes and should have \d+: restore'):
        opened()
    assert sorted((each.name, each.read_bytes()) for each in log.folder.iterdir()) == before


def test_an_active_segment_that_lacks_what_was_on_the_disk_is_an_error(opened):
    log = fill(opened(), 2)
    log.close()
    (log.folder / ('%020d.log' % 0)).write_bytes(b'')
    with pytest.raises(StorageError, match='has 0 bytes'):
        opened()


def test_an_active_segment_that_was_not_on_the_disk_may_lack_some(opened, caplog):
    """Without fsync that is what a power cut leaves."""
    log = fill(opened(), 2, 1)
    log.checkpoint()
    path = log.folder / ('%020d.log' % 0)
    path.write_bytes(path.read_bytes()[:-5])
    found = opened()
    assert found.end_offset == 2
    assert 'cut off' in caplog.text


def test_damage_in_the_middle_of_what_is_read_is_an_error(opened):
    log = fill(opened(), 1, 1)
    log.roll(1)
    fill(log, 1)
    path = log.folder / ('%020d.log' % 0)
    damaged = bytearray(path.read_bytes())
    damaged[16] = 99
    path.write_bytes(damaged)
    with pytest.raises(StorageError, match='is broken at byte 0 of'):
        opened()
    assert path.read_bytes() == damaged


def test_a_segment_is_on_the_disk_before_the_next_one_is_there(opened, monkeypatch):
    """Otherwise a power cut leaves a torn one that is not the last, which is an error."""
    log = fill(opened(fsync=True), 1)
    path = log.folder / ('%020d.log' % 0)
    events = []
    monkeypatch.setattr(
        'kafka.testing.logs.segments.sync_data', lambda fd: events.append(os.fstat(fd).st_ino)
    )
    create = log._files.create
    monkeypatch.setattr(
        log._files, 'create', lambda *args: (events.append('create'), create(*args))
    )
    log.roll(9)
    assert events == [path.stat().st_ino, 'create']


def test_an_index_is_on_the_disk_before_the_checkpoint_that_believes_it(opened, monkeypatch):
    log = fill(opened(fsync=True), 1, 2)
    log.sync()
    events = []
    monkeypatch.setattr(
        'kafka.testing.logs.segments.sync_data', lambda fd: events.append(os.fstat(fd).st_ino)
    )
    replace = os.replace
    monkeypatch.setattr(os, 'replace', lambda *args: (events.append('replace'), replace(*args)))
    log.checkpoint()
    assert events == [(log.folder / ('%020d.index' % 0)).stat().st_ino, 'replace']


def test_a_segment_is_replaced(opened):
    log = fill(opened(), 2, 2)
    log.roll(1)
    fill(log, 1)
    kept = log.batches_of(0)[1:]
    log.replace(0, kept)
    assert [each.base_offset for each in log.batches] == [2, 4]
    assert offsets(everything(log)) == [2, 3, 4]
    found = again(log, opened)
    assert found.batches == log.batches
    assert found.size_bytes == log.size_bytes
    assert list(MemoryRecords(everything(found, 4)))[0].base_offset == 4


def test_a_segment_of_which_nothing_is_left_goes(opened):
    log = fill(opened(), 2)
    log.roll(1)
    fill(log, 1)
    log.replace(0, [])
    found = again(log, opened)
    assert [each.base_offset for each in found.segments] == [2]
    assert (found.start_offset, found.end_offset) == (0, 3)
    assert offsets(everything(found)) == [2]


@pytest.mark.parametrize('is_replaced', [True, False])
def test_a_kill_while_a_segment_is_replaced(opened, is_replaced):
    log = fill(opened(), 2, 2)
    log.roll(1)
    fill(log, 1)
    kept = log.batches_of(0)[1:]
    log._cleaning = 0, len(kept[0].data)
    log.checkpoint()
    if is_replaced:
        log._files.replace(0, kept[0].data)
    found = opened()
    assert [each.base_offset for each in found.batches] == ([2, 4] if is_replaced else [0, 2, 4])
    assert again(found, opened).batches == found.batches


# ------------------------------------------------------------ histories


def write_some(chance, *logs):
    """Append the same to several logs."""
    kind = chance.randrange(10)
    count, at = chance.randrange(1, 4), chance.randrange(50)
    if kind < 6:
        made = stored(*[b'v' * chance.randrange(1, 50)] * count, at=at)
    elif kind < 8:
        # A row of plain messages would come back as several batches.
        magic, codec = chance.randrange(2), 1 if count > 1 else chance.randrange(2)
        data = message_set(*[b'v'] * count, magic=magic, codec=codec, at=at)
        made = Batch(0, count - 1, at if magic else -1, magic, data)
    else:
        producer_id = chance.randrange(3)
        if kind == 8:
            made = stored(b'v', at=at, producer_id=producer_id)
        else:
            commit = chance.random() < 0.5
            for log in logs:
                log.end_transaction(marker_batch(producer_id, commit), 1, commit)
            return
    for log in logs:
        log.append(made, 1)


def assert_alike(kept, memory, chance):
    facts = [
        (
            log.start_offset,
            log.end_offset,
            log.last_stable_offset,
            log.epochs,
            log.aborted,
            log.open_transactions,
        )
        for log in (kept, memory)
    ]
    assert facts[0] == facts[1]
    for _ in range(5):
        offset = chance.randrange(memory.start_offset, memory.end_offset + 1)
        end = chance.randrange(offset, memory.end_offset + 1)
        most, whole = chance.randrange(400), chance.random() < 0.5
        assert kept.read(offset, end, most, whole) == memory.read(offset, end, most, whole)
        assert kept.bytes_between(offset, end) == memory.bytes_between(offset, end)
        assert kept.offset_behind(offset, most) == memory.offset_behind(offset, most)
        assert kept.batch_of(offset) == memory.batch_of(offset)
        at = chance.randrange(60)
        wanted = [b for b in memory.batches_at(at) if b.last_offset >= memory.start_offset]
        assert [b for b in kept.batches_at(at) if b.last_offset >= kept.start_offset] == wanted


@pytest.mark.parametrize('seed', range(12))
def test_a_history_leaves_what_it_leaves_in_memory(opened, seed):
    """Whatever is written, deleted, replaced, and however often the process ends."""
    chance = random.Random(seed)
    kept, memory = opened(), PartitionLog()
    for _ in range(60):
        step = chance.randrange(20)
        if step < 12:
            write_some(chance, kept, memory)
        elif step < 14:
            for log in (kept, memory):
                log.roll(1)
        elif step == 14 and memory.end_offset:
            offset = chance.randrange(memory.end_offset + 1)
            for log in (kept, memory):
                log.delete_before(offset)
            kept.checkpoint()  # as a commit does
        elif step == 15 and len(memory.segments) > 1:
            position = chance.randrange(len(memory.segments) - 1)
            base_offset = memory.segments[position].base_offset
            left = [each for each in memory.batches_of(position) if chance.random() < 0.7]
            places = {each.base_offset for each in left}
            of_kept = [
                each
                for each in kept.batches_of(kept._position_of(base_offset))
                if each.base_offset in places or each.last_offset < memory.start_offset
            ]
            memory.replace(base_offset, left)
            kept.replace(base_offset, of_kept)
        elif step == 16:
            kept.checkpoint()
        elif step == 17:
            kept.close()
            kept = opened()
        elif step == 18:
            kept = opened()
        assert_alike(kept, memory, chance)
