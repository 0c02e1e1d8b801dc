"""The budget for compiled formats is kept by all readers."""

from __future__ import annotations

import random

import pytest

from kafka.record import batch_layouts, legacy_decoder
from kafka.record.default_records import DefaultRecordBatch, encode_batch
from kafka.record.formats import Formats, formats
from kafka.record.legacy_records import encode_message_set
from kafka.record.memory_records import MemoryRecords


@pytest.fixture
def few_formats(monkeypatch):
    """Let almost nothing be kept, so that everything is dropped again and again."""
    formats.kept = 0
    monkeypatch.setattr(Formats, 'MOST', 10)
    yield
    formats.kept = 0


def varied(count):
    rng = random.Random(8)
    return [
        (i, b'k' * rng.randrange(60), b'v' * rng.randrange(1200), []) for i in range(count)
    ]  # fmt: skip


def test_only_some_may_be_compiled_at_a_time():
    budget = Formats()
    assert budget.take() is False
    budget.allow(80)
    assert [budget.take() for _ in range(15)] == [True] * 14 + [False]


def test_all_are_dropped_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr(Formats, 'MOST', 3)
    budget, dropped = Formats(), []
    budget.forgetters.append(lambda: dropped.append(True))
    budget.allow(1000)
    for _ in range(4):
        budget.take()
    assert (dropped, budget.kept) == ([True], 0)


def test_lengths_that_never_repeat_are_read_all_the_same(few_formats):
    rows = varied(900)
    batch = DefaultRecordBatch(encode_batch(rows))
    assert [(r.timestamp, r.key, r.value, []) for r in batch] == rows
    for magic in (0, 1):
        data = encode_message_set([(i, t, k, v) for i, (t, k, v, _) in enumerate(rows)], magic)
        read = [(r.key, r.value) for batch in MemoryRecords(data) for r in batch]
        assert read == [row[1:3] for row in rows]


def test_dropping_reaches_every_cache():
    list(DefaultRecordBatch(encode_batch(varied(50))))
    list(MemoryRecords(encode_message_set([(i, 0, b'k', b'v') for i in range(9)])))
    for key in (b'k', None):
        for batch in MemoryRecords(encode_message_set([(i, 0, key, b'v') for i in range(9)])):
            list(batch)
    assert batch_layouts.stride.cache_info().currsize
    assert legacy_decoder._STEPS[1] and legacy_decoder._NULL_KEY_STEPS[1]
    for forget in formats.forgetters:
        forget()
    assert not batch_layouts.stride.cache_info().currsize
    assert not legacy_decoder._STEPS[1] and not legacy_decoder._NULL_KEY_STEPS[1]
