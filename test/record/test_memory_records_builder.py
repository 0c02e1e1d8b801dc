"""Batches that are filled record by record are read back, and have a size."""

from __future__ import annotations

import pytest

from kafka.record import MemoryRecords, MemoryRecordsBuilder
from kafka.record.memory_records import MemoryRecordsBuilder as ByTheLongerWay


def test_it_is_where_programs_of_1_4_import_it_from():
    assert ByTheLongerWay is MemoryRecordsBuilder


@pytest.mark.parametrize('codec', [0, 1])
@pytest.mark.parametrize('magic', [0, 1, 2])
def test_what_is_put_in_comes_out(magic, codec):
    builder = MemoryRecordsBuilder(magic=magic, compression_type=codec, batch_size=10_000)
    headers = [('h', b'x'), ('n', None)] if magic == 2 else []
    assert builder.append(timestamp=5, key=b'k', value=b'v', headers=headers).offset == 0
    assert builder.append(6, None, b'w').offset == 1
    assert builder.records == builder.next_offset() == 2
    bound = builder.size_in_bytes()
    builder.close()
    builder.close()
    assert builder.size_in_bytes() == len(builder.buffer()) <= bound or codec
    records = MemoryRecords(builder.buffer())
    assert records.size_in_bytes() == records.size_in_bytes == len(builder.buffer())
    assert records.has_next()
    found = list(records.next_batch())
    if magic < 2 and codec == 0 and records.has_next():
        found += records.next_batch()
    assert not records.has_next() and records.next_batch() is None
    assert [(r.offset, r.key, r.value) for r in found] == [(0, b'k', b'v'), (1, None, b'w')]
    assert [r.timestamp for r in found] == ([5, 6] if magic else [None, None])
    assert list(found[0].headers) == headers


@pytest.mark.parametrize('magic', [0, 1, 2])
def test_it_takes_records_up_to_its_size_and_one_in_any_case(magic):
    builder = MemoryRecordsBuilder(magic, 0, 300)
    assert builder.append(1, None, b'x' * 1000) is not None
    assert builder.is_full() and builder.append(1, None, b'y') is None
    builder = MemoryRecordsBuilder(magic, 0, 300)
    while builder.append(1, b'key', b'value') is not None:
        assert builder.size_in_bytes() <= 300
    assert builder.is_full() and builder.records > 2
    builder.close()
    assert len(builder.buffer()) <= 300
    assert builder.append(1, None, b'late') is None


def test_what_says_whose_batch_it_is():
    builder = MemoryRecordsBuilder(2, 0, 1000, offset=3)
    builder.skip(4)
    builder.append(1, None, b'v')
    builder.set_producer_state(7, 1, 5, True)
    builder.close()
    (batch,) = MemoryRecords(builder.buffer())
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (7, 1, 5)
    assert batch.is_transactional and batch.base_offset == 7
    for call in (lambda: builder.skip(1), lambda: builder.set_producer_state(7, 1, 5, True)):
        with pytest.raises(ValueError):
            call()


def test_wrong_arguments():
    for wrong in ((3, 0), (2, 5), (2, -1)):
        with pytest.raises(ValueError, match='magic'):
            MemoryRecordsBuilder(*wrong, 100)
    with pytest.raises(ValueError, match='headers'):
        MemoryRecordsBuilder(1, 0, 100).append(1, None, b'v', [('h', b'x')])
    with pytest.raises(ValueError, match='close'):
        MemoryRecordsBuilder(1, 0, 100).buffer()
    empty = MemoryRecordsBuilder(2, 0, 100)
    empty.close()
    assert empty.buffer() == b''
