"""Records without key stay with a partition until it had enough; slow partitions get less."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from kafka.partitioner.sticky import StickyPartitioner, UniformSticky


def test_the_choice_stays_until_the_partition_had_enough():
    sticky = UniformSticky(100, chance=Random(1).random)
    first = sticky.choose([0, 1, 2], lambda partition: 0)
    sticky.gave(60, was_full=False)
    assert sticky.choose([0, 1, 2], lambda partition: 0) == first == sticky.partition
    sticky.gave(40, was_full=False)
    assert sticky.partition is None


def test_a_full_batch_ends_the_choice():
    sticky = UniformSticky(100)
    sticky.choose([0], lambda partition: 0)
    sticky.gave(95, was_full=True)
    assert sticky.partition is None


def test_a_partition_without_leader_is_left():
    sticky = UniformSticky(100, chance=lambda: 0.0)
    assert sticky.choose([3, 4], lambda partition: 0) == 3
    assert sticky.choose([4], lambda partition: 0) == 4


def test_all_partitions_get_about_the_same():
    sticky = UniformSticky(1, chance=Random(7).random)
    counts = Counter()
    for _ in range(6000):
        counts[sticky.choose(range(6), lambda partition: 0)] += 1
        sticky.gave(1, was_full=True)
    assert all(850 < count < 1150 for count in counts.values())


def choices(queues, adaptive=True):
    sticky = UniformSticky(1, adaptive, Random(7).random)
    counts = Counter()
    for _ in range(4000):
        counts[sticky.choose(range(len(queues)), lambda partition: queues[partition])] += 1
        sticky.gave(1, was_full=True)
    return counts


def test_a_batch_goes_where_the_fewest_wait():
    assert set(choices([0, 3, 1])) == {0}
    assert all(abs(count - 2000) < 200 for count in choices([2, 3, 2]).values())


def test_queues_count_only_where_that_is_wanted():
    assert all(abs(count - 1333) < 200 for count in choices([0, 3, 1], adaptive=False).values())


def test_nothing_to_choose_from():
    with pytest.raises(ValueError, match='no partitions'):
        UniformSticky(1).choose([], lambda partition: 0)


class Cluster:
    """Topic t of four partitions, one without leader."""

    def partitions_for_topic(self, topic):
        return {0, 1, 2, 3} if topic == 't' else None

    def available_partitions_for_topic(self, topic):
        return {0, 1, 3} if topic == 't' else None


def test_the_class_of_3_0():
    sticky, cluster = StickyPartitioner(), Cluster()

    def ask(key=None):
        return sticky.partition('t', key, key, 'v', b'v', cluster)

    first = ask()
    assert {ask() for _ in range(20)} == {first}
    sticky.on_new_batch('t', cluster, (first + 1) % 4)  # of an older choice
    assert ask() == first
    sticky.on_new_batch('t', cluster, first)
    assert ask() in {0, 1, 3} - {first}
    assert ask(b'key') == sticky(b'key', [0, 1, 2, 3], [0, 1, 3])
    with pytest.raises(ValueError, match='nope'):
        sticky.partition('nope', None, None, None, None, cluster)
