"""How offsets are shared out over tasks and micro-batches; the tables are the JVM connector's."""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple

import pytest

from kafka.spark.ranges import TaskRange, is_enough, limit, split
from kafka.structs import TopicPartition

#: A topic of four partitions, the last one empty.
SIZES = [100, 10, 1, 0]


def of_topic(sizes: List[int]) -> List[TaskRange]:
    return [TaskRange('t', at, 0, size) for at, size in enumerate(sizes)]


def cut(ranges: List[TaskRange], partition: int) -> List[int]:
    """Return where a partition is cut, its begin and its end included."""
    own = [each for each in ranges if each.partition == partition]
    return [own[0].start] + [each.stop for each in own] if own else []


# What the calculator of spark-sql-kafka-0-10 4.2.0 answers for SIZES; its batch queries go by
# max_records only if min_partitions makes them divide at all.
SPLITS: List[Tuple[Optional[int], Optional[int], List[List[int]]]] = [
    (None, None, [[0, 100], [0, 10], [0, 1]]),
    (1, None, [[0, 100], [0, 10], [0, 1]]),
    (3, None, [[0, 100], [0, 10], [0, 1]]),
    (5, None, [[0, 33, 66, 100], [0, 10], [0, 1]]),
    (6, None, [[0, 25, 50, 75, 100], [0, 10], [0, 1]]),
    (10, None, [[0, 12, 24, 36, 48, 61, 74, 87, 100], [0, 10], [0, 1]]),
    (
        20,
        None,
        [
            [0, 5, 10, 16, 22, 28, 34, 40, 46, 52, 58, 64, 70, 76, 82, 88, 94, 100],
            [0, 5, 10],
            [0, 1],
        ],
    ),
    (111, None, [list(range(101)), list(range(11)), [0, 1]]),
    (500, None, [list(range(101)), list(range(11)), [0, 1]]),
    (10, 30, [[0, 12, 25, 37, 50, 62, 75, 87, 100], [0, 10], [0, 1]]),
    (4, 50, [[0, 50, 100], [0, 10], [0, 1]]),
    (13, 9, [[0, 8, 16, 24, 32, 40, 48, 56, 64, 73, 82, 91, 100], [0, 5, 10], [0, 1]]),
    (None, 30, [[0, 25, 50, 75, 100], [0, 10], [0, 1]]),
    (None, 1000, [[0, 100], [0, 10], [0, 1]]),
]


@pytest.mark.parametrize('min_partitions, max_records, cuts', SPLITS)
def test_ranges_are_divided_as_the_jvm_connector_divides_them(
    min_partitions: Optional[int], max_records: Optional[int], cuts: List[List[int]]
) -> None:
    found = split(of_topic(SIZES), min_partitions, max_records)
    assert [cut(found, at) for at in range(4)] == cuts + [[]]


def test_half_a_task_is_rounded_up() -> None:
    found = split(of_topic([55, 45]), 10, None)
    assert [len(cut(found, each)) - 1 for each in (0, 1)] == [6, 5]


def test_tasks_are_ordered_by_topic_partition_and_start() -> None:
    ranges = [TaskRange('b', 0, 4, 6), TaskRange('a', 11, 0, 2), TaskRange('a', 2, 7, 11)]
    found = split(ranges, None, 2)
    assert found == [
        TaskRange('a', 2, 7, 9),
        TaskRange('a', 2, 9, 11),
        TaskRange('a', 11, 0, 2),
        TaskRange('b', 0, 4, 6),
    ]


def test_a_range_that_ends_before_it_begins_is_no_task() -> None:
    assert split([TaskRange('t', 0, 9, 4), TaskRange('t', 1, 3, 3)], 5, None) == []


@pytest.mark.parametrize('min_partitions', [None, 1, 3, 7, 50, 1000])
@pytest.mark.parametrize('max_records', [None, 1, 4, 33, 5000])
def test_parts_are_together_the_whole(
    min_partitions: Optional[int], max_records: Optional[int]
) -> None:
    sizes = [97, 1, 0, 13, 255]
    found = split(of_topic(sizes), min_partitions, max_records)
    for partition, size in enumerate(sizes):
        own = [each for each in found if each.partition == partition]
        assert [each for part in own for each in range(part.start, part.stop)] == list(range(size))
        assert all(0 < each.size <= (max_records or size) for each in own)


def test_only_the_first_part_of_a_range_may_begin_later() -> None:
    whole = TaskRange('t', 0, 0, 90, start_may_move=True)
    parts = split([whole], 3, None)
    assert [each[2:] for each in parts] == [(0, 30, True), (30, 60, False), (60, 90, False)]


def test_a_partition_whose_parts_would_round_differently_is_divided_no_further() -> None:
    # 7 offsets by 2 are 1, 2, 2, 2; of 5 tasks 1/7 is one and 2/7 would be one, too.
    assert cut(split([TaskRange('t', 0, 0, 7)], 5, 2), 0) == [0, 1, 3, 5, 7]
    # Of 9 tasks 2/7 would be three, but the first part is one: so is each.
    assert cut(split([TaskRange('t', 0, 0, 7)], 9, 2), 0) == [0, 1, 3, 5, 7]


# ---------------------------------------------------------------- micro-batches


def by_partition(*offsets: Optional[int]) -> Dict[TopicPartition, int]:
    return {TopicPartition('t', at): each for at, each in enumerate(offsets) if each is not None}


LIMITS = [
    # start, latest, starts of new ones, limit, end
    ((0, 0), (100, 300), (), 40, (10, 30)),
    ((5, 7), (105, 307), (), 40, (15, 37)),
    ((0, 0), (10, 10), (), 20, (10, 10)),
    ((0, 0), (10, 10), (), 1000, (10, 10)),
    ((0, 0, 0), (1, 1, 1000), (), 10, (1, 1, 9)),  # none starves, the large one is rounded down
    ((0, 0), (0, 0), (), 10, (0, 0)),
    ((4, 0), (4, 50), (), 10, (4, 10)),
    ((0,), (100, 300), (None, 100), 30, (10, 120)),  # a new one counts from where it begins
    ((0,), (100, 300), (), 30, (30, 300)),  # deleted meanwhile: whoever plans it will say so
    ((50, 0), (20, 100), (), 10, (20, 10)),  # it went backwards: whoever plans it will say so
    ((0,), (2**62,), (), 2**61, (2**61,)),
    ((0, 0, 0), (1, 1, 1), (), 1, (1, 1, 1)),
]


@pytest.mark.parametrize('start, latest, new_starts, max_offsets, ends', LIMITS)
def test_a_limit_is_shared_in_proportion_to_what_there_is(
    start: Tuple[int, ...],
    latest: Tuple[int, ...],
    new_starts: Tuple[int, ...],
    max_offsets: int,
    ends: Tuple[int, ...],
) -> None:
    found = limit(
        by_partition(*start), by_partition(*latest), by_partition(*new_starts), max_offsets
    )
    assert found == by_partition(*ends)


def test_a_deleted_partition_has_no_end() -> None:
    assert limit(by_partition(3, 4), by_partition(9), {}, 2) == by_partition(5)


@pytest.mark.parametrize(
    'start, latest, min_offsets, verdict',
    [
        ((0, 0), (5, 5), 10, True),
        ((0, 0), (5, 4), 10, False),
        ((3, 5), (5, 5), 2, True),
        ((3, 5), (5, 5), 3, False),
        ((3,), (5, 5), 7, True),
        ((3, 5), (5,), 2, True),
        ((8, 0), (0, 10), 3, False),
    ],
)
def test_enough_are_so_many_offsets_of_all_partitions_together(
    start: Tuple[int, ...], latest: Tuple[int, ...], min_offsets: int, verdict: bool
) -> None:
    assert is_enough(by_partition(*start), by_partition(*latest), min_offsets) is verdict
