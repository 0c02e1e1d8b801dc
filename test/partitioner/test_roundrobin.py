"""kafka.partitioner.roundrobin: one partition after the other."""

from __future__ import annotations

import pickle

import pytest

from kafka.partitioner import RoundRobinPartitioner


def test_round_robin_takes_each_in_turn_whatever_the_key():
    partitioner = RoundRobinPartitioner([2, 0, 1])
    assert [partitioner.partition(b'same') for _ in range(7)] == [2, 0, 1, 2, 0, 1, 2]


def test_round_robin_restarts_with_a_list_that_differs():
    partitioner = RoundRobinPartitioner([0, 1])
    assert partitioner.partition(None) == 0
    assert partitioner.partition(None, [0, 1]) == 1
    assert [partitioner.partition(None, [5, 6, 7]) for _ in range(2)] == [5, 6]
    assert partitioner.partitions == [5, 6, 7]
    assert partitioner.partition(None) == 7
    assert partitioner.partition(None, []) == 5


def test_no_partitions_is_a_value_error():
    with pytest.raises(ValueError):
        RoundRobinPartitioner([]).partition(b'key')


def test_a_pickled_partitioner_goes_on_where_it_was():
    partitioner = RoundRobinPartitioner([2, 0, 1])
    partitioner.partition(None)
    copy = pickle.loads(pickle.dumps(partitioner))
    assert [copy.partition(None) for _ in range(3)] == [0, 1, 2]
    assert partitioner.partition(None) == 0
