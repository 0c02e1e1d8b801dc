"""The partitioner of 1.x."""

from __future__ import annotations

import pytest

from kafka.partitioner import default
from kafka.partitioner.default import DefaultPartitioner

ALL = list(range(100, 1100))


@pytest.mark.parametrize(
    'key, index', [(b'', 681), (b'a', 524), (b'abc', 107), (b'test', 879), (b'foo', 616)]
)
def test_key_chooses_as_the_java_client_does_whatever_is_available(key, index):
    assert DefaultPartitioner()(key, ALL, []) == ALL[index]
    assert DefaultPartitioner()(key, ALL, [5]) == ALL[index]


def test_without_key_any_available_partition_is_chosen():
    partitioner = DefaultPartitioner()
    assert {partitioner(None, ALL, [3, 4]) for _ in range(100)} == {3, 4}


def test_without_key_and_leaders_any_partition_is_chosen(monkeypatch):
    monkeypatch.setattr(default.random, 'choice', lambda choices: choices[-1])
    assert DefaultPartitioner()(None, [7, 8], []) == 8


@pytest.mark.parametrize('key', [None, b'key'])
def test_no_partitions_is_a_value_error(key):
    with pytest.raises(ValueError, match='no partitions'):
        DefaultPartitioner()(key, [], [])
