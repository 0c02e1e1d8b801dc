"""Hashes in bulk are those one by one, and hot keys stay few."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka.partitioner import keys as module
from kafka.partitioner.hashed import murmur2
from kafka.partitioner.keys import HotKeys, murmur2_many


@given(st.lists(st.binary(max_size=40), max_size=40))
def test_any_keys(keys):
    assert murmur2_many(keys) == [murmur2(key) for key in keys]


@pytest.mark.parametrize('length', range(13))
@pytest.mark.parametrize('count', [7, 8, 600])
def test_keys_of_one_length(length, count):
    keys = [bytes((n * 37 + i * 11) % 256 for i in range(length)) for n in range(count)]
    assert murmur2_many(keys) == [murmur2(key) for key in keys]


def test_extreme_bytes():
    keys = [b'\xff' * 12] * 4 + [b'\x00' * 12] * 4 + [b'\x80' * 12] * 4
    assert murmur2_many(keys) == [murmur2(key) for key in keys]


def test_hot_keys_are_the_partitions_of_java():
    hot = HotKeys(range(1000))
    assert [hot[key] for key in (b'a', b'123456789', b'')] == [524, 566, 681]
    assert hot.of_many([b'a', b'new', b'', b'new']) == [524, hot[b'new'], 681, hot[b'new']]


def test_hot_keys_are_bounded(monkeypatch):
    monkeypatch.setattr(module, 'KEPT_KEYS', 10)
    hot = HotKeys(range(6))
    for n in range(100):
        hot[b'%d' % n]
        assert len(hot) <= 10
    hot.of_many([b'x%d' % n for n in range(8)])
    hot.of_many([b'y%d' % n for n in range(100)])
    assert len(hot) <= 10


def test_long_keys_are_not_kept():
    hot = HotKeys(range(6))
    long = b'k' * 10_000
    assert hot[long] == hot.of_many([long])[0] == (murmur2(long) & 0x7FFFFFFF) % 6
    assert not hot


def test_no_partitions():
    with pytest.raises(ValueError, match='no partitions'):
        HotKeys(())[b'k']
