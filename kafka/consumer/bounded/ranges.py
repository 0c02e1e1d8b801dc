"""The ranges of a bounded reader: their bounds, as programs write them, and their fetch state.

Bounds are offsets, times, 'earliest' or 'latest'; the reader looks them up, the fetcher fetches the
ranges. Pure.
"""

from __future__ import annotations

import datetime
import math
import numbers
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple, Union

from kafka.errors import IllegalArgumentError, KafkaError
from kafka.structs import TopicPartition

__all__ = ['Bound', 'OffsetRange', 'RangeState', 'Timestamp', 'Wishes', 'as_timestamp']

EARLIEST, LATEST = -2, -1
_WORDS = {'earliest': EARLIEST, 'latest': LATEST}


class Timestamp(NamedTuple):
    """A bound in milliseconds since 1970: the first record that is not older."""

    ms: float


class OffsetRange(NamedTuple):
    """The offsets of a partition from `start` up to `stop`, without `stop` itself."""

    topic: str
    partition: int
    start: int
    stop: int

    @property
    def length(self) -> int:
        """The number of offsets; there may be fewer records."""
        return max(0, self.stop - self.start)


Bound = Union[int, str, Timestamp, datetime.datetime]
_Bounds = Tuple[Bound, Bound]


def as_timestamp(bound: Any) -> Optional[int]:
    """Return the timestamp for ListOffsets; None for a bound that is an offset.

    Raises: IllegalArgumentError for a value that is not a bound.
    """
    if isinstance(bound, str) and bound in _WORDS:
        return _WORDS[bound]
    if isinstance(bound, Timestamp):
        if _is_number(bound.ms) and 0 <= bound.ms < math.inf:
            return math.ceil(bound.ms)  # rounded up, as a datetime: no earlier record is wanted
    elif isinstance(bound, datetime.datetime):
        if bound.tzinfo is None:
            raise IllegalArgumentError('the time %s has no zone: say which one is meant' % bound)
        return math.ceil(bound.timestamp() * 1000)
    elif _is_whole(bound):
        if bound >= 0:
            return None
        if bound in (EARLIEST, LATEST):
            return int(bound)
    raise IllegalArgumentError(
        "a bound is an offset, 'earliest', 'latest', a Timestamp or a datetime with a zone, not %r"
        % (bound,)
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


class Wishes(NamedTuple):
    """The requested ranges: bounds of single partitions, and of topics with all partitions."""

    partitions: Dict[TopicPartition, _Bounds]
    topics: Dict[str, _Bounds]

    @classmethod
    def of(cls, what: Any, start: Bound, stop: Bound) -> Wishes:
        """Return the ranges for the arguments of a BoundedReader.

        Arguments: what: a topic; or some of topics, TopicPartitions, (topic, partition) and
            OffsetRanges; or {one of the first three: (start, stop)}; start, stop: for those
            without bounds of their own.
        Raises: IllegalArgumentError for anything else, for a range whose offsets end before they
            begin, and for partitions that are named twice.
        """
        wishes = cls({}, {})
        if isinstance(what, (str, OffsetRange, TopicPartition)):
            what = [what]
        if isinstance(what, Mapping):
            pairs = [(each, _pair(bounds)) for each, bounds in what.items()]
        else:
            pairs = [_with_bounds(each, start, stop) for each in what]
        for each, bounds in pairs:
            wishes._add(each, bounds)
        if not wishes.partitions and not wishes.topics and pairs:
            raise IllegalArgumentError('nothing is to be read')
        return wishes

    def _add(self, each: Any, bounds: _Bounds) -> None:
        first, last = (as_timestamp(bound) for bound in bounds)
        if first is None and last is None and bounds[0] > bounds[1]:  # type: ignore[operator]
            raise IllegalArgumentError(
                'the range of %r begins at %s and ends at %s' % (each, *bounds)
            )
        key: Any
        if isinstance(each, str):
            into: Dict[Any, _Bounds] = self.topics
            key = each
        elif isinstance(each, tuple) and len(each) == 2 and isinstance(each[0], str):
            if not isinstance(each[1], int) or isinstance(each[1], bool) or each[1] < 0:
                raise IllegalArgumentError('a partition is a number from 0 on, not %r' % (each[1],))
            into, key = self.partitions, TopicPartition(*each)
        else:
            raise IllegalArgumentError(
                'topics, TopicPartitions and OffsetRanges can be read, not %r' % (each,)
            )
        topic = each if isinstance(each, str) else each[0]
        if key in into or (into is self.partitions and topic in self.topics):
            raise IllegalArgumentError('%r is to be read twice' % (each,))
        if into is self.topics and any(at.topic == topic for at in self.partitions):
            raise IllegalArgumentError('partitions of %r are to be read twice' % (each,))
        into[key] = bounds


def _pair(bounds: Any) -> _Bounds:
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise IllegalArgumentError('bounds are a pair (start, stop), not %r' % (bounds,))
    return bounds[0], bounds[1]


def _with_bounds(each: Any, start: Bound, stop: Bound) -> Tuple[Any, _Bounds]:
    if isinstance(each, tuple) and len(each) == 4:
        return (each[0], each[1]), (each[2], each[3])
    return each, (start, stop)


def name_of(partition: TopicPartition) -> str:
    """Return the name of a partition for errors."""
    return 'topic %s, partition %d' % (str(partition.topic), partition.partition)


class RangeState:
    """The fetch state of a range. Times are seconds of the caller's clock.

    Attributes:
        partition; start; stop.
        fetch_offset: the offset to fetch next; at `stop` the range is fetched.
        token: changed by seek(), which makes earlier responses stale.
        is_asked: whether a request for it is in flight.
        is_blocked: whether the reader has to take its last response, or an error, before it is
            fetched again.
        limit_bytes: the most bytes to request.
        alone: whether to request no other partition with it, because the response may have no room
            for it otherwise.
        replica: the node to fetch from instead of the leader (KIP-392), None for the leader.
        failures: the number of failures in a row.
        not_before: the end of the back-off.
        waiting_since: the time since which requests brought no records, None while they do.
        last_error: the last error of these requests, None if the broker had no records.
        log_end: the end of the log in the last response without records, -1 before.
    """

    __slots__ = (
        'alone',
        'failures',
        'fetch_offset',
        'is_asked',
        'is_blocked',
        'last_error',
        'limit_bytes',
        'log_end',
        'not_before',
        'partition',
        'replica',
        'start',
        'stop',
        'token',
        'waiting_since',
    )

    def __init__(self, wanted: OffsetRange, limit_bytes: int) -> None:
        self.partition = TopicPartition(wanted.topic, wanted.partition)
        self.start = self.fetch_offset = wanted.start
        self.stop = wanted.stop
        self.limit_bytes = limit_bytes
        self.token = 0
        self.failures = 0
        self.is_asked = self.is_blocked = self.alone = False
        self.replica: Optional[int] = None
        self.not_before = -math.inf
        self.waiting_since: Optional[float] = None
        self.last_error: Optional[KafkaError] = None
        self.log_end = -1

    def __repr__(self) -> str:
        return '<RangeState %s at %d of %d to %d%s>' % (
            name_of(self.partition),
            self.fetch_offset,
            self.start,
            self.stop,
            ' blocked' if self.is_blocked else ' asked' if self.is_asked else '',
        )

    @property
    def is_fetched(self) -> bool:
        """Whether all of it is fetched."""
        return self.fetch_offset >= self.stop

    def may_be_asked(self, now: float) -> bool:
        """Return True if it may be requested now."""
        return not (self.is_fetched or self.is_asked or self.is_blocked or now < self.not_before)

    def advance(self, offset: int) -> None:
        """Note that everything before an offset is fetched."""
        self.fetch_offset = max(self.fetch_offset, offset)
        self.failures = 0
        self.waiting_since = self.last_error = None
        self.alone = False

    def seek(self, offset: int) -> None:
        """Continue at an offset; responses to earlier requests are stale."""
        self.token += 1
        self.is_blocked = False
        self.fetch_offset = offset
        self.waiting_since = self.last_error = None

    def fail(self, error: Optional[KafkaError], not_before: float) -> None:
        """Note a request without success, and when to retry."""
        self.failures += 1
        self.last_error = error
        self.not_before = not_before


def split(ranges: List[OffsetRange], at_least: int) -> List[OffsetRange]:
    """Split ranges into `at_least` ranges, or fewer if there are fewer offsets; in order.

    Large ranges are split more often than small ones; empty ones are left out.
    """
    left = [each for each in ranges if each.length]
    total = sum(each.length for each in left)
    found = []
    for each in left:
        parts = max(1, min(each.length, math.ceil(at_least * each.length / total)))
        edges = [each.start + each.length * part // parts for part in range(parts + 1)]
        found += [each._replace(start=a, stop=b) for a, b in zip(edges, edges[1:])]
    return found
