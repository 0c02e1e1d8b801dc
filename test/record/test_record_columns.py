"""Some records as columns."""

from __future__ import annotations

from kafka.record.record_columns import RecordColumns

COLUMNS = RecordColumns(
    [5, 7, 8], [50, 70, 80], 0, [b'a', None, b'c'], [b'x', b'y', None], [(), (), ()], [-1] * 3
)
BARE = RecordColumns(range(5, 8), None, None, None, [b'x', b'y', None])


def test_that_a_part_has_that_of_each_column():
    assert COLUMNS.part(1) == RecordColumns(
        [7, 8], [70, 80], 0, [None, b'c'], [b'y', None], [(), ()], [-1] * 2
    )
    assert BARE.part(0, 1) == RecordColumns(range(5, 6), None, None, None, [b'x'])
    assert BARE._replace(value_sizes=[1, 1, 0]).part(1).value_sizes == [1, 0]
    assert BARE._replace(checksums=[1, 2, 3]).part(2).checksums == [3]


def test_that_records_before_an_offset_can_be_left_out():
    assert COLUMNS.since(5) is COLUMNS
    assert COLUMNS.since(6) == COLUMNS.part(1)
    assert COLUMNS.since(9).values == []
    assert BARE.since(7) == BARE.part(2)
