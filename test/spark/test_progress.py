"""What a query decides: ends, waiting, and what is lost; tables with a manual clock."""

from __future__ import annotations

import json
import pickle
from typing import Any, Dict, List, Optional, Set, Tuple

import pytest

from kafka.errors import InvalidOptionError
from kafka.spark.progress import (
    DataLossError,
    Patience,
    begin_of,
    first_end,
    listed,
    next_end,
    offsets_of,
    plan,
    went_back,
)
from kafka.spark.ranges import TaskRange
from kafka.structs import TopicPartition


def at(partition: int, topic: str = 't') -> TopicPartition:
    return TopicPartition(topic, partition)


def by_partition(*offsets: Optional[int]) -> Dict[TopicPartition, int]:
    return {at(index): each for index, each in enumerate(offsets) if each is not None}


def stored(tree: Any) -> Any:
    """Return what PySpark hands back of an offset that it was given."""
    return json.loads(json.dumps(tree))


# ---------------------------------------------------------------- the checkpoint


@pytest.mark.parametrize(
    'text, offsets',
    [
        ('{"t":{"0":5,"1":7}}', by_partition(5, 7)),  # the JVM connector's
        ('{"t": {"00": 2, "0": 5, "1": 7}}', by_partition(5, 7)),  # the end of a first batch
        ('{}', {}),
    ],
)
def test_offsets_of_both_connectors_are_read(text: str, offsets: Any) -> None:
    assert offsets_of(json.loads(text)) == offsets


def test_offsets_of_another_source_are_refused() -> None:
    for tree in ({'offset': 7}, 7):  # 7 is how the source of rates has it
        with pytest.raises(InvalidOptionError, match='checkpoint.* its own checkpointLocation'):
            offsets_of(tree)


def test_the_first_batch_that_is_repeated_begins_where_it_began() -> None:
    end = stored(first_end(by_partition(3, 4), by_partition(10, 4)))
    assert begin_of({'t': {'0': 7, '1': 9}}, end) == by_partition(3, 4)
    assert offsets_of(end) == by_partition(10, 4)


def test_a_first_batch_without_records_knows_its_begin_too() -> None:
    end = stored(first_end(by_partition(3), by_partition(3)))
    assert begin_of({'t': {'0': 7}}, end) == by_partition(3)


def test_the_second_batch_begins_at_the_end_of_the_first() -> None:
    first = stored(first_end(by_partition(3), by_partition(10)))
    second = stored(next_end(first, by_partition(20)))
    assert begin_of(first, second) == by_partition(10)


def test_the_end_of_the_first_batch_is_no_batch_from_itself() -> None:
    first = stored(first_end(by_partition(3), by_partition(10)))
    assert begin_of(first, first) == by_partition(10)


def test_a_partition_added_during_the_first_batch_has_no_begin_in_it() -> None:
    end = stored(first_end(by_partition(3), by_partition(10, 5)))
    assert begin_of({'t': {'0': 3}}, end) == by_partition(3)


@pytest.mark.parametrize('text', ['{"t":{"1":7,"0":5}}', '{"t": {"00": 2, "0": 5, "1": 7}}', '{}'])
def test_without_news_the_start_comes_back_as_it_was(text: str) -> None:
    start = json.loads(text)
    assert json.dumps(next_end(start, offsets_of(start))) == json.dumps(start)


def test_a_later_end_shows_nothing_but_offsets() -> None:
    start = {'t': {'00': 2, '0': 5}}
    assert json.dumps(next_end(start, by_partition(6))) == '{"t": {"0": 6}}'


# ---------------------------------------------------------------- when a batch is due


def test_without_a_minimum_every_batch_is_due() -> None:
    patience = Patience(None, 900.0)
    assert [patience.is_due(by_partition(5), by_partition(5), now) for now in (0.0, 1.0)] == [
        True
    ] * 2


def test_the_first_batch_is_not_waited_for() -> None:
    assert Patience(100, 900.0).is_due(by_partition(0), by_partition(1), 3.0)


def test_a_batch_is_waited_for_until_it_is_worth_it() -> None:
    patience = Patience(10, 900.0)
    patience.is_due(by_partition(0), by_partition(1), 0.0)
    assert not patience.is_due(by_partition(1), by_partition(10), 5.0)
    assert patience.is_due(by_partition(1), by_partition(11), 6.0)


def test_no_batch_is_waited_for_longer_than_the_delay_since_the_last_one() -> None:
    patience = Patience(10, 60.0)
    patience.is_due(by_partition(0), by_partition(1), 0.0)
    patience.is_due(by_partition(1), by_partition(11), 50.0)
    assert not patience.is_due(by_partition(11), by_partition(12), 109.0)
    assert patience.is_due(by_partition(11), by_partition(12), 110.0)
    assert not patience.is_due(by_partition(12), by_partition(13), 169.0)


def test_patience_says_what_it_waits_for() -> None:
    assert repr(Patience(10, 60.0)) == '<Patience for 10 offsets, 60 s>'


# ---------------------------------------------------------------- what is read, what is lost

NO_LOSS: List[Tuple[str, str]] = []
# start, end, where new ones begin, earliest, existing -> (partition, from, to) ..., (kind, what the
# text names) ...
PLANS: List[Tuple[Any, Any, Any, Any, Optional[Set[int]], Any, Any]] = [
    ((3, 4), (10, 4), (), (), None, [(0, 3, 10), (1, 4, 4)], NO_LOSS),
    ((3,), (10, 5), (None, 0), (), None, [(0, 3, 10), (1, 0, 5)], NO_LOSS),
    (
        (3,),
        (10, 5),
        (None, 2),
        (),
        None,
        [(0, 3, 10), (1, 2, 5)],
        [('ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO', 't-1 starts from 2 instead of 0')],
    ),
    (
        (3,),
        (10, 5),
        (),
        (),
        None,
        [(0, 3, 10)],
        [('INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS', 'partitions t-1 begin')],
    ),
    ((3, 4), (10,), (), (), None, [(0, 3, 10)], [('PARTITIONS_DELETED', 't-1 .* up to 4')]),
    ((3, 4), (10, 9), (), (), {0}, [(0, 3, 10)], [('PARTITIONS_DELETED', 't-1 .* up to 4')]),
    (
        (3, 4),
        (2, 9),
        (),
        (),
        None,
        [(1, 4, 9)],
        [('PARTITION_OFFSET_CHANGED', 't-0 went back from offset 3 to 2')],
    ),
    (
        (3, 4),
        (9, 9),
        (),
        (5, 4),
        {0, 1},
        [(0, 5, 9), (1, 4, 9)],
        [('START_OFFSET_RESET', 't-0 must be read from offset 3, but its log starts at 5')],
    ),
    (
        (3,),
        (9,),
        (),
        (20,),
        {0},
        [(0, 9, 9)],
        [('START_OFFSET_RESET', 'offset 3, but its log starts at 20')],
    ),
    ((3,), (3,), (), (20,), {0}, [(0, 3, 3)], NO_LOSS),  # nothing of it was to be read
]


@pytest.mark.parametrize('start, end, new_starts, earliest, existing, ranges, losses', PLANS)
def test_a_plan_has_what_can_be_read_and_what_is_lost(
    start: Any, end: Any, new_starts: Any, earliest: Any, existing: Any, ranges: Any, losses: Any
) -> None:
    there = None if existing is None else {at(each) for each in existing}
    found = plan(
        by_partition(*start),
        by_partition(*end),
        by_partition(*new_starts),
        by_partition(*earliest),
        there,
    )
    assert found.ranges == [TaskRange('t', *each) for each in ranges]
    assert [each.kind for each in found.losses] == [kind for kind, _ in losses]
    for loss, (_, text) in zip(found.losses, losses):
        with pytest.raises(DataLossError, match=text):
            raise loss.error()


def test_an_error_of_loss_says_the_kind_and_what_to_do_and_survives_a_pickle() -> None:
    error = plan(by_partition(3), {}, {}).losses[0].error()
    assert error.kind == 'PARTITIONS_DELETED'
    assert str(error).startswith('[KAFKA_DATA_LOSS.PARTITIONS_DELETED] Partitions t-0 ')
    assert 'failOnDataLoss' in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize(
    'start, latest, verdict',
    [
        ((3, 4), (3, 9), False),
        ((3, 4), (9, 3), True),
        ((3,), (3, 0), False),
        ((3, 4), (3,), False),
    ],
)
def test_a_log_went_back_if_it_ends_before_what_was_read(
    start: Any, latest: Any, verdict: bool
) -> None:
    assert went_back(by_partition(*start), by_partition(*latest)) is verdict


def test_of_many_partitions_a_few_are_listed() -> None:
    assert listed([at(2), at(0), at(1, 'a')]) == 'a-1, t-0, t-2'
    assert listed(at(each) for each in range(11)).endswith(', t-7 and 3 more')
