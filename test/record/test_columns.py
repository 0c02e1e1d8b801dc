"""Columns say of messages what the rows say that they stand for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafka.record.columns import Columns

fields = st.one_of(st.none(), st.binary(max_size=4))
rows = st.lists(st.tuples(st.integers(0, 9), fields, fields), max_size=6)


def columns(rows):
    offsets, keys, values = zip(*rows) if rows else ((), (), ())
    return Columns(offsets, None if not any(k is not None for k in keys) else keys, values)


def length(row):
    return len(row[1] or b'') + len(row[2] or b'')


@given(rows)
def test_fields_are_the_rows(rows):
    assert list(columns(rows).fields()) == rows


@given(rows, st.integers(0, 6), st.one_of(st.none(), st.integers(0, 6)))
def test_part_is_a_slice(rows, start, end):
    assert list(columns(rows).part(start, end).fields()) == rows[start:end]


@given(rows, st.integers(0, 10))
def test_since_leaves_out_what_stands_before_an_offset_in_the_log(rows, offset):
    assert list(columns(rows).since(offset).fields()) == [r for r in rows if r[0] >= offset]


@given(st.integers(0, 9), st.integers(0, 12))
def test_since_of_offsets_without_gaps(start, offset):
    part = Columns(range(start, start + 3), None, [b'a', b'b', b'c'])
    assert list(part.since(offset).offsets) == [o for o in range(start, start + 3) if o >= offset]


@given(rows.filter(bool))
def test_last_offset_is_the_largest(rows):
    assert columns(rows).last_offset() == max(row[0] for row in rows)


@given(rows)
def test_sizes_are_those_of_keys_and_values(rows):
    part = columns(rows)
    assert list(part.sizes()) == [length(row) for row in rows]
    assert part.size() == sum(length(row) for row in rows)


@given(rows, st.integers(0, 8))
def test_no_more_than_is_never_wrong_when_it_says_so(rows, size):
    if columns(rows).no_more_than(size):
        assert all(length(row) <= size for row in rows)


def test_no_more_than_knows_the_usual_case():
    assert Columns([0, 1], None, [b'aa', b'a']).no_more_than(2)
    assert not Columns([0, 1], None, [b'aaa', b'a']).no_more_than(2)
