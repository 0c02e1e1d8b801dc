"""kafka.consumer.partition_table_09: the columns of the table and the arithmetic of marks."""

from __future__ import annotations

import pytest

from kafka.consumer.partition_table_09 import PartitionRow, PartitionTable
from kafka.structs import TopicAndPartition

ZERO, ONE, TWO = (TopicAndPartition(b'topic', number) for number in range(3))


@pytest.fixture
def table():
    return PartitionTable({ZERO: 10, ONE: 20, TWO: 30}, {ONE: 20})


def test_a_new_row_knows_its_position_and_what_is_stored(table):
    assert table.column('position') == {ZERO: 10, ONE: 20, TWO: 30}
    assert table.column('committed') == {ZERO: None, ONE: 20, TWO: None}
    assert table.column('done') == table.column('highwater') == dict.fromkeys((ZERO, ONE, TWO))


def test_a_column_is_a_copy_found_by_str_and_bytes(table):
    column = table.column('position')
    assert column[('topic', 0)] == column[(b'topic', 0)] == 10
    column[ZERO] = 99
    assert table.get(ZERO).position == 10


def test_a_partition_that_is_not_read_has_no_row(table):
    assert table.get(TopicAndPartition(b'topic', 9)) is None
    assert len(table) == 3
    assert table.partitions() == [ZERO, ONE, TWO]


def test_rows_take_turns_to_be_the_first(table):
    turns = [[key.partition for key, _ in table.in_turn()] for _ in range(4)]
    assert turns == [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2]]
    assert PartitionTable().in_turn() == []


def test_what_is_done_is_committed_with_the_next_offset(table):
    assert table.to_commit() == {}
    table.get(ZERO).done = 10
    table.get(ONE).done = 19  # which is stored: 20
    assert table.to_commit() == {ZERO: 11}
    table.note_committed({ZERO: 11})
    assert table.to_commit() == {}
    assert table.column('committed')[ZERO] == 11


def test_a_mark_that_goes_back_is_committed_too(table):
    table.get(ONE).done = 5
    assert table.to_commit() == {ONE: 6}


def test_what_another_group_stored_is_forgotten(table):
    table.get(ONE).done = 19
    table.forget_committed()
    assert table.to_commit() == {ONE: 20}


@pytest.mark.parametrize(
    'done, hole, offset, gap',
    [
        (None, None, 7, False),  # the first mark
        (6, None, 7, False),
        (6, None, 8, True),
        (6, None, 6, True),
        (6, None, 3, True),
        (6, (7, 9), 9, False),  # there are no messages 7 and 8
        (6, (7, 9), 10, True),
        (5, (7, 9), 9, True),
        (6, (4, 6), 8, True),
    ],
)
def test_a_gap_is_a_jump_over_messages_or_back(done, hole, offset, gap):
    row = PartitionRow(0)
    row.done, row.hole = done, hole
    assert row.leaves_gap(offset) is gap


def test_repr_shows_the_state(table):
    assert 'position=10' in repr(table)
    assert repr(table.get(ONE)) == (
        '<PartitionRow position=20 highwater=None committed=20 done=None>'
    )
