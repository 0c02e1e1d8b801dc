"""Filter pushdown: which filters of a query reduce what is read, and how (option pushdown).

It converts filters to conditions on topics and partitions, ranges of offsets, and a lower bound of
time, and returns the filters that Spark still has to apply. All filters must be met, as in
PySpark's API (4.1 and later); they are recognised by the names of their classes, so that this
module is pure.

A filter is handled completely here only if each row that is read is certain to meet it. A lower
bound of time reduces the range, but is returned to Spark as well: records after the first one that
meets it may be older. A filter with an unknown operator, column or type has no effect and is
returned. Called by source.py; lookups.py finds the offset of a time.
"""

from __future__ import annotations

import operator
from datetime import datetime, timedelta, timezone
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple

__all__ = ['Condition', 'Narrowing', 'narrow']

Span = Tuple[int, int]

MOST = 2**63  # above all offsets
_EVERY: Span = (0, MOST)
_NONE: Span = (0, 0)

#: Operators between a column, which is never null, and a value that is not null.
_COMPARISONS: Dict[str, Callable[[Any, Any], bool]] = {
    'EqualTo': operator.eq,
    'EqualNullSafe': operator.eq,
    'LessThan': operator.lt,
    'LessThanOrEqual': operator.le,
    'GreaterThan': operator.gt,
    'GreaterThanOrEqual': operator.ge,
}
_OF_TEXT: Dict[str, Callable[[Any, Any], bool]] = {
    'StringStartsWith': str.startswith,
    'StringEndsWith': str.endswith,
    'StringContains': operator.contains,
}
_OF_NULL = ('IsNull', 'IsNotNull')
_OF_ALL = (*_COMPARISONS, *_OF_NULL, 'In')
_OPPOSITES = {
    'LessThan': 'GreaterThanOrEqual',
    'LessThanOrEqual': 'GreaterThan',
    'GreaterThan': 'LessThanOrEqual',
    'GreaterThanOrEqual': 'LessThan',
    'IsNull': 'IsNotNull',
    'IsNotNull': 'IsNull',
}
_TYPES: Dict[str, type] = {
    'topic': str, 'partition': int, 'offset': int, 'timestamp': datetime,
}  # fmt: skip
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Condition(NamedTuple):
    """A filter of one column. operator: the name of its class, without a surrounding Not."""

    column: str
    operator: str
    value: Any
    is_negated: bool

    def is_met(self, actual: Any) -> bool:
        """Return True if a value of the column meets the condition: neither false nor null."""
        truth = self._truth(actual)
        return truth is not None and truth is not self.is_negated

    def _truth(self, actual: Any) -> Optional[bool]:
        """Return the result in SQL, None for null."""
        if self.operator in _OF_NULL:
            return self.operator == 'IsNotNull'
        if self.operator == 'In':
            if actual in self.value:
                return True
            return None if None in self.value else False
        if self.value is None:
            return False if self.operator == 'EqualNullSafe' else None
        compare = _COMPARISONS.get(self.operator) or _OF_TEXT[self.operator]
        return compare(actual, self.value)


class Narrowing(NamedTuple):
    """What remains to be read of a query's partitions.

    conditions: on the topic and the number of a partition. start, stop: the offsets to read of each
    partition, `stop` exclusive. since_ms: skip what precedes the first record at or after this
    time, in milliseconds since 1970; None: no bound.
    """

    conditions: Tuple[Condition, ...] = ()
    start: int = 0
    stop: int = MOST
    since_ms: Optional[int] = None

    def takes(self, topic: str, partition: int) -> bool:
        """Return True if a part of a partition is to be read."""
        actual = {'topic': topic, 'partition': partition}
        return all(each.is_met(actual[each.column]) for each in self.conditions)

    def cut(self, start: int, stop: int) -> Span:
        """Return the part of the range from `start` to `stop` that is to be read; it may be
        empty."""
        start = min(max(start, self.start), stop)
        return start, max(start, min(stop, self.stop))

    def _within(self, span: Span) -> Narrowing:
        return self._replace(start=max(self.start, span[0]), stop=min(self.stop, span[1]))

    def _young(self, since_ms: int) -> Narrowing:
        return self._replace(since_ms=max(since_ms, self.since_ms or 0))

    def given(self, condition: Condition) -> Tuple[Narrowing, bool]:
        """Return it reduced by one more condition, and whether that handles it completely."""
        if condition.column in ('topic', 'partition'):
            return self._replace(conditions=(*self.conditions, condition)), True
        if condition.column == 'offset':
            span, is_all = _span(condition)
            return self._within(span), is_all
        since = _since_ms(condition)
        return self if since is None else self._young(since), False


def narrow(filters: Iterable[Any]) -> Tuple[Narrowing, List[Any]]:
    """Return what remains to be read, and the filters that Spark still has to apply.

    Arguments: filters: of pyspark.sql.datasource; those that are returned are the same objects.
    """
    narrowing, rest = Narrowing(), []
    for each in filters:
        condition = _condition(each)
        is_answered = False
        if condition is not None:
            narrowing, is_answered = narrowing.given(condition)
        if not is_answered:
            rest.append(each)
    return narrowing, rest


# ---------------------------------------------------------------- filters of Spark


def _condition(given: Any) -> Optional[Condition]:
    """Return a filter of Spark as a condition, None if it is not supported."""
    is_negated = False
    while type(given).__name__ == 'Not':
        given, is_negated = given.child, not is_negated
    name = type(given).__name__
    path: Tuple[str, ...] = getattr(given, 'attribute', ())
    value: Any = getattr(given, 'value', None)
    if len(path) != 1 or path[0] not in _TYPES or not _is_known(name, path[0]):
        return None
    if name != 'In':
        is_typed = _fits(value, path[0])
    else:
        is_typed = isinstance(value, (tuple, list)) and all(_fits(each, path[0]) for each in value)
    return Condition(path[0], name, value, is_negated) if is_typed else None


def _is_known(name: str, column: str) -> bool:
    """Return True if an operator is supported for a column."""
    return name in _OF_ALL or (column == 'topic' and name in _OF_TEXT)


def _fits(value: Any, column: str) -> bool:
    """Return True if a value is null or of the column's type; a bool is not a number here."""
    return value is None or type(value) is _TYPES[column]


# ---------------------------------------------------------------- offsets


def _span(condition: Condition) -> Tuple[Span, bool]:
    """Return the offsets that may meet a condition, and whether all of them do."""
    name, value, is_negated = condition.operator, condition.value, condition.is_negated
    if is_negated and name in _OPPOSITES:
        name, is_negated = _OPPOSITES[name], False
    if name in _OF_NULL:
        return (_EVERY if name == 'IsNotNull' else _NONE), True
    if is_negated:  # all except some
        return _EVERY, False
    if name == 'In':
        return _span_of(value)
    if value is None:
        return _NONE, True
    return _SPANS[name](value), True


_SPANS: Dict[str, Callable[[int], Span]] = {
    'EqualTo': lambda value: (value, value + 1),
    'EqualNullSafe': lambda value: (value, value + 1),
    'LessThan': lambda value: (0, value),
    'LessThanOrEqual': lambda value: (0, value + 1),
    'GreaterThan': lambda value: (value + 1, MOST),
    'GreaterThanOrEqual': lambda value: (value, MOST),
}


def _span_of(values: Iterable[Optional[int]]) -> Tuple[Span, bool]:
    """Return the smallest range with all values, and whether it contains no others."""
    wanted = {each for each in values if each is not None}
    if not wanted:
        return _NONE, True
    span = min(wanted), max(wanted) + 1
    return span, span[1] - span[0] == len(wanted)


# ---------------------------------------------------------------- times


def _since_ms(condition: Condition) -> Optional[int]:
    """Return the earliest time, in milliseconds, that meets a condition; None if there is no bound.

    Brokers accept no times before 1970. Records without a time have -1 ms, as anything before 1970.
    """
    name, value = condition.operator, condition.value
    if condition.is_negated:
        name = _OPPOSITES.get(name, '')
    if name == 'In':
        times = [_microseconds(each) for each in value if each is not None]
        if not times or None in times:
            return None
        found: Optional[int] = min(each for each in times if each is not None)
    elif name in ('EqualTo', 'EqualNullSafe', 'GreaterThan', 'GreaterThanOrEqual'):
        found = None if value is None else _microseconds(value)
    else:
        return None
    if found is None:
        return None
    if name == 'GreaterThan':
        found += 1
    since = -(-found // 1000)  # the times of records are whole milliseconds
    return since if since > 0 else None


def _microseconds(value: datetime) -> Optional[int]:
    """Return a time in Spark's unit, None without a time zone, because it is ambiguous."""
    if value.tzinfo is None:
        return None
    return (value - _EPOCH) // timedelta(microseconds=1)
