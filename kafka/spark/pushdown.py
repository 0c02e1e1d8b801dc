"""Which filters of a query narrow what is read, and how (option pushdown).

Owns what a filter means for topics, partitions and offsets, which of them are answered by that and
which Spark has to apply to the rows all the same. All conditions together have to be met, as Spark
hands them over. Does not own: what offset a time is (lookups.py), what PySpark calls (source.py).
Filters are PySpark's, of 4.1 and later, told by the names of their classes: this is pure.

A filter is answered here only if a row that is read meets it for certain. A bound of time narrows,
and goes back to Spark: the records behind the first one that is young enough may be older. What is
not understood, an operator, a column or a type, narrows nothing and goes back as it is.
"""

from __future__ import annotations

import operator
from datetime import datetime, timedelta, timezone
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple

__all__ = ['Condition', 'Narrowing', 'narrow']

Span = Tuple[int, int]

MOST = 2**63  # no offset is as large
_EVERY: Span = (0, MOST)
_NONE: Span = (0, 0)

#: Operators between a column, which is never null, and a value that is not null either.
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
    """A filter of one column. operator: the name of its class, without a Not around it."""

    column: str
    operator: str
    value: Any
    is_negated: bool

    def is_met(self, actual: Any) -> bool:
        """Tell whether a value of the column meets it: neither false nor null."""
        truth = self._truth(actual)
        return truth is not None and truth is not self.is_negated

    def _truth(self, actual: Any) -> Optional[bool]:
        """Return what SQL answers, None for null."""
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
    """What of a query's partitions is to be read.

    conditions: that the topic and the number of a partition meet. start, stop: the offsets that are
    wanted of each, `stop` not. since_ms: only what is behind the first record as young as this, in
    milliseconds since 1970; None: whatever its age.
    """

    conditions: Tuple[Condition, ...] = ()
    start: int = 0
    stop: int = MOST
    since_ms: Optional[int] = None

    def takes(self, topic: str, partition: int) -> bool:
        """Tell whether anything of a partition is to be read."""
        actual = {'topic': topic, 'partition': partition}
        return all(each.is_met(actual[each.column]) for each in self.conditions)

    def cut(self, start: int, stop: int) -> Span:
        """Return what is to be read of the offsets from `start` up to `stop`, maybe nothing."""
        start = min(max(start, self.start), stop)
        return start, max(start, min(stop, self.stop))

    def _within(self, span: Span) -> Narrowing:
        return self._replace(start=max(self.start, span[0]), stop=min(self.stop, span[1]))

    def _young(self, since_ms: int) -> Narrowing:
        return self._replace(since_ms=max(since_ms, self.since_ms or 0))

    def given(self, condition: Condition) -> Tuple[Narrowing, bool]:
        """Return it narrowed by one more, and whether that answers the condition."""
        if condition.column in ('topic', 'partition'):
            return self._replace(conditions=(*self.conditions, condition)), True
        if condition.column == 'offset':
            span, is_all = _span(condition)
            return self._within(span), is_all
        since = _since_ms(condition)
        return self if since is None else self._young(since), False


def narrow(filters: Iterable[Any]) -> Tuple[Narrowing, List[Any]]:
    """Return what filters leave to be read, and those of them that Spark has yet to apply.

    Arguments: filters: of pyspark.sql.datasource; what comes back are the same objects.
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
    """Return what a filter of Spark says, None if that is not understood."""
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
    """Tell whether an operator is understood, for a column."""
    return name in _OF_ALL or (column == 'topic' and name in _OF_TEXT)


def _fits(value: Any, column: str) -> bool:
    """Tell whether a value is null or of the type of a column; a bool is no number here."""
    return value is None or type(value) is _TYPES[column]


# ---------------------------------------------------------------- offsets


def _span(condition: Condition) -> Tuple[Span, bool]:
    """Return the offsets that may meet a condition, and whether these all do."""
    name, value, is_negated = condition.operator, condition.value, condition.is_negated
    if is_negated and name in _OPPOSITES:
        name, is_negated = _OPPOSITES[name], False
    if name in _OF_NULL:
        return (_EVERY if name == 'IsNotNull' else _NONE), True
    if is_negated:  # all but some
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
    """Return the smallest span with all values, and whether it has no others."""
    wanted = {each for each in values if each is not None}
    if not wanted:
        return _NONE, True
    span = min(wanted), max(wanted) + 1
    return span, span[1] - span[0] == len(wanted)


# ---------------------------------------------------------------- times


def _since_ms(condition: Condition) -> Optional[int]:
    """Return the earliest time, in milliseconds, that meets a condition; None if there is no bound.

    Brokers take no times before 1970. Records without a time have -1 ms, as everything before that.
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
    """Return a time as Spark counts it, None for one without a zone: which moment is not known."""
    if value.tzinfo is None:
        return None
    return (value - _EPOCH) // timedelta(microseconds=1)
