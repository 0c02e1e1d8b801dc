"""Batches in older formats."""

from __future__ import annotations

from typing import List

import pytest

from kafka.testing.logs import down_conversion
from kafka.testing.logs.down_conversion import DownConverter, HeadersError, filled_up
from kafka.testing.logs.partition_log import Batch, PartitionLog
from test.differential.records import made
from test.testing.data_requests import batch, offsets, values


def log_of(*batches: bytes) -> List[Batch]:
    log = PartitionLog()
    for data in batches:
        log.append(Batch(0, 1, 5, 2, data), 0)
    return log.batches


def test_only_batches_that_fit() -> None:
    batches = log_of(batch(b'a', b'b'), batch(b'c', b'd'))
    size = len(batches[0].data)
    converter = DownConverter()
    assert converter.convert(batches, 0, size - 1, 0) is None
    assert values(converter.convert(batches, 0, size, 0)) == [b'a', b'b']


def test_it_begins_with_the_offset_unless_it_is_compressed() -> None:
    plain = DownConverter().convert(log_of(batch(b'a', b'b')), 1, 1000, 0)
    assert offsets(plain) == [1]
    packed = DownConverter().convert(log_of(batch(b'a', b'b', codec=1)), 1, 1000, 0)
    assert offsets(packed) == [0, 1]


def test_headers_are_left_out_or_refused() -> None:
    batches = log_of(made(2, 0))
    assert values(DownConverter().convert(batches, 0, 1000, 1)) == [b'one', b'two']
    with pytest.raises(HeadersError):
        DownConverter(takes_headers=False).convert(batches, 0, 1000, 1)


def test_a_batch_is_converted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = log_of(batch(b'a', b'b'))
    converter = DownConverter()
    first = converter.convert(batches, 0, 1000, 0)
    monkeypatch.setattr(down_conversion, 'MemoryRecords', None)
    assert converter.convert(batches, 0, 1000, 0) == first


def test_what_is_remembered_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(down_conversion, 'MOST_BYTES', 1000)
    converter = DownConverter()
    batches = log_of(*[batch(b'%d' % number * 50, b'') for number in range(20)])
    converter.convert(batches, 0, 1 << 20, 0)
    assert 0 < len(converter._known) < 6
    assert converter._size_bytes <= 1000


def test_converted_records_have_the_size_that_was_told_first():
    longer = filled_up(b'abc', 3 + 100)
    assert longer[:3] == b'abc'
    assert len(longer) == 103
    assert longer[3:15] == b'\xff' * 8 + (101).to_bytes(4, 'big')
    assert filled_up(b'abc', 3 + 5) == b'abc' + b'\xff' * 5
    assert filled_up(b'abc', 2) == b'ab'
