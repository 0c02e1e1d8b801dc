"""What filters leave to be read: tables, and that with what Spark applies the rows are the same."""

from __future__ import annotations

import operator
import pickle
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, List, Optional, Tuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from kafka.spark.pushdown import MOST, Narrowing, narrow

# PySpark's filters, which 4.0 has not: only their names and attributes count.


@dataclass(frozen=True)
class Filter:
    attribute: Tuple[str, ...]
    value: Any = None


class EqualTo(Filter):
    pass


class EqualNullSafe(Filter):
    pass


class GreaterThan(Filter):
    pass


class GreaterThanOrEqual(Filter):
    pass


class LessThan(Filter):
    pass


class LessThanOrEqual(Filter):
    pass


class In(Filter):
    pass


class StringStartsWith(Filter):
    pass


class StringEndsWith(Filter):
    pass


class StringContains(Filter):
    pass


class SomethingNew(Filter):
    pass


@dataclass(frozen=True)
class IsNull:
    attribute: Tuple[str, ...]


@dataclass(frozen=True)
class IsNotNull:
    attribute: Tuple[str, ...]


@dataclass(frozen=True)
class Not:
    child: Any


TOPIC, PARTITION, OFFSET, TIMESTAMP = ('topic',), ('partition',), ('offset',), ('timestamp',)
UTC = timezone.utc


def at(microseconds):
    """The moment that Spark counts so."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)


# ---------------------------------------------------------------- partitions

PARTITIONS = [
    (EqualTo(TOPIC, 't'), ['t-0', 't-1', 't-2']),
    (EqualTo(TOPIC, 'T'), []),
    (EqualTo(TOPIC, None), []),
    (EqualNullSafe(TOPIC, 'u'), ['u-0', 'u-1', 'u-2']),
    (EqualNullSafe(TOPIC, None), []),
    (In(TOPIC, ('u', 'v', None)), ['u-0', 'u-1', 'u-2']),
    (In(TOPIC, ()), []),
    (Not(EqualTo(TOPIC, 't')), ['u-0', 'u-1', 'u-2']),
    (Not(In(TOPIC, ('t', None))), []),
    (StringStartsWith(TOPIC, 'u'), ['u-0', 'u-1', 'u-2']),
    (StringEndsWith(TOPIC, 'x'), []),
    (StringContains(TOPIC, ''), ['t-0', 't-1', 't-2', 'u-0', 'u-1', 'u-2']),
    (Not(StringContains(TOPIC, 't')), ['u-0', 'u-1', 'u-2']),
    (GreaterThan(TOPIC, 't'), ['u-0', 'u-1', 'u-2']),
    (EqualTo(PARTITION, 1), ['t-1', 'u-1']),
    (EqualTo(PARTITION, -1), []),
    (EqualTo(PARTITION, 2**40), []),
    (EqualNullSafe(PARTITION, 2), ['t-2', 'u-2']),
    (Not(EqualNullSafe(PARTITION, None)), ['t-0', 't-1', 't-2', 'u-0', 'u-1', 'u-2']),
    (In(PARTITION, [0, 2, 7]), ['t-0', 't-2', 'u-0', 'u-2']),
    (Not(In(PARTITION, (0, 2))), ['t-1', 'u-1']),
    (LessThan(PARTITION, 1), ['t-0', 'u-0']),
    (LessThanOrEqual(PARTITION, 1), ['t-0', 't-1', 'u-0', 'u-1']),
    (GreaterThan(PARTITION, 1), ['t-2', 'u-2']),
    (GreaterThanOrEqual(PARTITION, 2), ['t-2', 'u-2']),
    (Not(GreaterThan(PARTITION, 0)), ['t-0', 'u-0']),
    (LessThan(PARTITION, None), []),
    (Not(LessThan(PARTITION, None)), []),
    (IsNull(PARTITION), []),
    (Not(IsNotNull(TOPIC)), []),
    (IsNotNull(PARTITION), ['t-0', 't-1', 't-2', 'u-0', 'u-1', 'u-2']),
    (Not(Not(EqualTo(PARTITION, 0))), ['t-0', 'u-0']),
]


@pytest.mark.parametrize('given_filter, taken', PARTITIONS)
def test_conditions_of_topics_and_partitions_choose_partitions(given_filter, taken):
    narrowing, rest = narrow([given_filter])
    assert rest == []
    found = [(topic, number) for topic in 'tu' for number in range(3)]
    assert ['%s-%d' % each for each in found if narrowing.takes(*each)] == taken
    assert narrowing.cut(3, 8) == (3, 8)


# ---------------------------------------------------------------- offsets

#: A filter, what is left of the offsets from 10 up to 20, and whether Spark need not apply it.
OFFSETS = [
    (EqualTo(OFFSET, 12), (12, 13), True),
    (EqualTo(OFFSET, 10), (10, 11), True),
    (EqualTo(OFFSET, 20), None, True),
    (EqualTo(OFFSET, 9), None, True),
    (EqualTo(OFFSET, -1), None, True),
    (EqualTo(OFFSET, None), None, True),
    (EqualNullSafe(OFFSET, 19), (19, 20), True),
    (EqualNullSafe(OFFSET, None), None, True),
    (Not(EqualNullSafe(OFFSET, None)), (10, 20), False),
    (LessThan(OFFSET, 12), (10, 12), True),
    (LessThan(OFFSET, 10), None, True),
    (LessThan(OFFSET, -(2**63)), None, True),
    (LessThanOrEqual(OFFSET, 12), (10, 13), True),
    (LessThanOrEqual(OFFSET, 2**63 - 1), (10, 20), True),
    (GreaterThan(OFFSET, 12), (13, 20), True),
    (GreaterThan(OFFSET, 2**63 - 1), None, True),
    (GreaterThanOrEqual(OFFSET, 12), (12, 20), True),
    (GreaterThanOrEqual(OFFSET, -5), (10, 20), True),
    (GreaterThanOrEqual(OFFSET, 25), None, True),
    (Not(LessThan(OFFSET, 12)), (12, 20), True),
    (Not(LessThanOrEqual(OFFSET, 12)), (13, 20), True),
    (Not(GreaterThan(OFFSET, 12)), (10, 13), True),
    (Not(GreaterThanOrEqual(OFFSET, 12)), (10, 12), True),
    (Not(GreaterThan(OFFSET, None)), None, True),
    (Not(EqualTo(OFFSET, 12)), (10, 20), False),
    (Not(In(OFFSET, (12, 13))), (10, 20), False),
    (In(OFFSET, (13, 12, 12, None)), (12, 14), True),
    (In(OFFSET, (12, 15)), (12, 16), False),
    (In(OFFSET, ()), None, True),
    (In(OFFSET, (None,)), None, True),
    (IsNull(OFFSET), None, True),
    (IsNotNull(OFFSET), (10, 20), True),
    (Not(IsNull(OFFSET)), (10, 20), True),
    (Not(IsNotNull(OFFSET)), None, True),
]


@pytest.mark.parametrize('given_filter, left, is_answered', OFFSETS)
def test_conditions_of_offsets_bound_what_is_read(given_filter, left, is_answered):
    narrowing, rest = narrow([given_filter])
    start, stop = narrowing.cut(10, 20)
    assert ((start, stop) if start != stop else None) == left
    assert 10 <= start <= stop <= 20
    assert rest == ([] if is_answered else [given_filter])
    assert narrowing.takes('t', 0)


# ---------------------------------------------------------------- times

TIMES = [
    (GreaterThanOrEqual(TIMESTAMP, at(5_000)), 5),
    (GreaterThanOrEqual(TIMESTAMP, at(4_001)), 5),
    (GreaterThan(TIMESTAMP, at(5_000)), 6),
    (GreaterThan(TIMESTAMP, at(5_999)), 6),
    (EqualTo(TIMESTAMP, at(5_000)), 5),
    (EqualNullSafe(TIMESTAMP, at(5_000)), 5),
    (Not(LessThan(TIMESTAMP, at(5_000))), 5),
    (Not(LessThanOrEqual(TIMESTAMP, at(5_000))), 6),
    (In(TIMESTAMP, (at(9_000), None, at(7_000))), 7),
    (GreaterThan(TIMESTAMP, at(-1)), None),
    (GreaterThanOrEqual(TIMESTAMP, at(-5_000_000)), None),
    (GreaterThan(TIMESTAMP, at(0).astimezone(timezone(timedelta(hours=5)))), 1),
    (GreaterThanOrEqual(TIMESTAMP, datetime.max.replace(tzinfo=UTC)), 253402300800000),
    (GreaterThanOrEqual(TIMESTAMP, datetime(2024, 1, 1)), None),
    (In(TIMESTAMP, (at(9_000), datetime(2024, 1, 1))), None),
    (In(TIMESTAMP, ()), None),
    (In(TIMESTAMP, (None,)), None),
    (GreaterThan(TIMESTAMP, None), None),
    (LessThan(TIMESTAMP, at(5_000)), None),
    (LessThanOrEqual(TIMESTAMP, at(5_000)), None),
    (Not(GreaterThan(TIMESTAMP, at(5_000))), None),
    (Not(EqualTo(TIMESTAMP, at(5_000))), None),
    (Not(In(TIMESTAMP, (at(5_000),))), None),
    (IsNull(TIMESTAMP), None),
    (IsNotNull(TIMESTAMP), None),
]


@pytest.mark.parametrize('given_filter, since_ms', TIMES)
def test_times_bound_where_reading_begins_and_are_applied_again(given_filter, since_ms):
    assert narrow([given_filter]) == (Narrowing(since_ms=since_ms), [given_filter])


# ---------------------------------------------------------------- what is not understood

FOREIGN = [
    EqualTo(('key',), b'k'),
    IsNotNull(('value',)),
    EqualTo(('timestampType',), 0),
    EqualTo(('headers', 'key'), 'k'),
    EqualTo(('topic', 'x'), 't'),
    EqualTo((), 't'),
    SomethingNew(TOPIC, 't'),
    Not(SomethingNew(OFFSET, 5)),
    EqualTo(TOPIC, 5),
    EqualTo(PARTITION, '1'),
    EqualTo(PARTITION, True),
    EqualTo(PARTITION, 1.0),
    LessThan(OFFSET, Decimal(5)),
    LessThan(OFFSET, float('nan')),
    StringStartsWith(PARTITION, '1'),
    StringContains(OFFSET, None),
    In(PARTITION, (1, 'x')),
    In(PARTITION, 5),
    In(TOPIC, 't'),
    GreaterThan(TIMESTAMP, 5),
    GreaterThan(TIMESTAMP, at(0).date()),
    object(),
]


@pytest.mark.parametrize('given_filter', FOREIGN)
def test_what_is_not_understood_goes_back_as_it_is(given_filter):
    narrowing, rest = narrow([given_filter])
    assert narrowing == Narrowing()
    assert len(rest) == 1
    assert rest[0] is given_filter


def test_equal_filters_go_back_each_as_the_object_it_was():
    pair = [EqualTo(('key',), b'k'), EqualTo(('key',), b'k')]
    _, rest = narrow([pair[0], IsNotNull(OFFSET), pair[1]])
    assert [id(each) for each in rest] == [id(each) for each in pair]


def test_conditions_narrow_together():
    filters = [
        EqualTo(TOPIC, 't'), In(PARTITION, (0, 1)), GreaterThan(PARTITION, 0),
        GreaterThan(OFFSET, 11), LessThanOrEqual(OFFSET, 15), GreaterThan(OFFSET, 3),
        GreaterThan(TIMESTAMP, at(7_000)), GreaterThan(TIMESTAMP, at(5_000)),
    ]  # fmt: skip
    narrowing, rest = narrow(filters)
    assert rest == filters[-2:]
    taken = [(topic, n) for topic in 'tu' for n in range(3) if narrowing.takes(topic, n)]
    assert taken == [('t', 1)]
    assert narrowing.cut(0, MOST) == (12, 16)
    assert narrowing.since_ms == 8


def test_without_filters_all_is_read():
    narrowing, rest = narrow([])
    assert (narrowing, rest) == (Narrowing(), [])
    assert narrowing.takes('t', 0)
    assert narrowing.cut(0, 9) == (0, 9)


def test_what_is_left_travels():
    narrowing, _ = narrow([Not(EqualTo(TOPIC, 't')), LessThan(OFFSET, 5)])
    assert pickle.loads(pickle.dumps(narrowing)) == narrowing


# ---------------------------------------------------------------- the same rows

#: One row of each offset: topic, partition, offset, time in ms, in no order of time.
LOGS = {
    (topic, number): [(topic, number, offset, (offset * 7 + number) % 11 - 1) for offset in span]
    for topic in ('t', 'tu')
    for number, span in enumerate((range(8), range(3, 9), range(0)))
}
ROWS = [row for log in LOGS.values() for row in log]
COLUMNS = ('topic', 'partition', 'offset', 'timestamp')

_SQL = {
    'EqualTo': operator.eq, 'LessThan': operator.lt, 'LessThanOrEqual': operator.le,
    'GreaterThan': operator.gt, 'GreaterThanOrEqual': operator.ge,
    'StringStartsWith': str.startswith, 'StringEndsWith': str.endswith,
    'StringContains': operator.contains,
}  # fmt: skip


def answer(asked: Any, row: Tuple[Any, ...]) -> Optional[bool]:
    """What SQL says of a filter and a row: true, false or null."""
    if isinstance(asked, Not):
        inner = answer(asked.child, row)
        return None if inner is None else not inner
    found: Any = row[COLUMNS.index(asked.attribute[0])]
    if asked.attribute == TIMESTAMP:
        found = at(found * 1000)
    if isinstance(asked, (IsNull, IsNotNull)):
        return isinstance(asked, IsNotNull)
    if isinstance(asked, EqualNullSafe):
        return asked.value is not None and bool(found == asked.value)
    if isinstance(asked, In):
        either = [answer(EqualTo(asked.attribute, each), row) for each in asked.value]
        return True if True in either else None if None in either else False
    return None if asked.value is None else bool(_SQL[type(asked).__name__](found, asked.value))


def passing(filters: List[Any], rows: List[Any]) -> List[Any]:
    return [row for row in rows if all(answer(each, row) is True for each in filters)]


def read(narrowing: Narrowing) -> List[Any]:
    """What a reader reads of the logs."""
    found = []
    for (topic, number), log in LOGS.items():
        if not log or not narrowing.takes(topic, number):
            continue
        begin, end = log[0][2], log[-1][2] + 1
        start, stop = narrowing.cut(begin, end)
        since = narrowing.since_ms
        if since is not None:
            start = max(start, next((row[2] for row in log if row[3] >= since), end))
        found += [row for row in log if start <= row[2] < stop]
    return found


VALUES = {
    TOPIC: some.sampled_from(['t', 'tu', 'u', '', 'T', None]),
    PARTITION: some.one_of(some.none(), some.integers(-2, 4), some.just(2**40)),
    OFFSET: some.one_of(some.none(), some.integers(-2, 12), some.just(2**63 - 1)),
    TIMESTAMP: some.one_of(some.none(), some.integers(-3_000, 14_000).map(at)),
}
COMPARISONS = [EqualTo, EqualNullSafe, LessThan, LessThanOrEqual, GreaterThan, GreaterThanOrEqual]
TEXTUAL = [StringStartsWith, StringEndsWith, StringContains]


@some.composite
def filters(draw):
    """A filter, as Spark may push it."""
    column = draw(some.sampled_from(list(VALUES)))
    kinds = [*COMPARISONS, *COMPARISONS, In, IsNull, IsNotNull]
    kind = draw(some.sampled_from(kinds + (TEXTUAL if column == TOPIC else [])))
    if kind is In:
        made = In(column, tuple(draw(some.lists(VALUES[column], max_size=4))))
    elif kind in (IsNull, IsNotNull):
        made = kind(column)
    else:
        made = kind(column, draw(VALUES[column]))
    for _ in range(draw(some.sampled_from([0, 0, 1, 2]))):
        made = Not(made)
    return made


@given(some.lists(filters(), max_size=4))
@settings(max_examples=60, deadline=None)
def test_what_is_read_and_filtered_is_what_would_be_filtered_of_all(asked):
    narrowing, rest = narrow(asked)
    assert passing(rest, read(narrowing)) == passing(asked, ROWS)


@given(some.lists(filters(), max_size=4))
@settings(max_examples=60, deadline=None)
def test_only_conditions_of_time_and_of_scattered_offsets_are_applied_again(asked):
    _, rest = narrow(asked)
    for each in rest:
        inner = each
        while isinstance(inner, Not):
            inner = inner.child
        assert inner.attribute == TIMESTAMP or (
            inner.attribute == OFFSET and isinstance(inner, (EqualTo, EqualNullSafe, In))
        )
