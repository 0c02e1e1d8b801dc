"""Checks of the arguments of a modern KafkaConsumer.

1.x raised an AssertionError for most wrong arguments, later releases a more precise error; the
errors raised here are instances of both. Pure.
"""

from __future__ import annotations

import numbers
import reprlib
from typing import Any, Dict, Iterable, List, Mapping

from kafka.errors import IllegalStateError
from kafka.internals.validation import (
    ArgumentTypeError,
    ArgumentValueError,
    as_int,
    as_offsets,
    as_partition,
)
from kafka.structs import OffsetAndMetadata, TopicPartition

__all__ = [
    'ConsumerClosedError',
    'as_partitions',
    'check_offset',
    'check_offsets',
    'check_partition',
    'check_partitions',
    'check_whole',
    'default_seconds',
    'seconds_of',
]


class ConsumerClosedError(IllegalStateError):
    """The consumer is closed."""


def check_partition(partition: Any) -> TopicPartition:
    """Return a TopicPartition. Raises ArgumentTypeError for anything else, a plain tuple too."""
    if not isinstance(partition, TopicPartition):
        raise ArgumentTypeError(
            'a partition is named by a TopicPartition, not by %s' % reprlib.repr(partition)
        )
    if not isinstance(partition.topic, str):
        raise ArgumentTypeError('topic must be str, not %s' % type(partition.topic).__name__)
    as_int('partition', partition.partition)
    return partition


def check_partitions(partitions: Iterable[Any]) -> List[TopicPartition]:
    """Return TopicPartitions as a list.

    Raises: as check_partition(); ArgumentTypeError for a single partition or a str.
    """
    return [check_partition(each) for each in _several(partitions)]


def as_partitions(partitions: Iterable[Any]) -> List[TopicPartition]:
    """Return TopicPartitions or plain tuples, as passed to assign(), as a list of TopicPartitions.

    Raises: as as_partition(); ArgumentTypeError for a single partition, a str, or a value that is
        not iterable.
    """
    return [as_partition(each) for each in _several(partitions)]


def _several(partitions: Any) -> Iterable[Any]:
    if isinstance(partitions, (str, TopicPartition)) or not hasattr(partitions, '__iter__'):
        raise ArgumentTypeError(
            'partitions must be a list of TopicPartition, not %s' % reprlib.repr(partitions)
        )
    found: Iterable[Any] = partitions
    return found


def check_whole(value: Any, name: str, least: int = 0) -> int:
    """Return an integer. Raises ArgumentTypeError; ArgumentValueError if it is below `least`."""
    number = as_int(name, value)
    if number < least:
        raise ArgumentValueError('%s must be at least %d, not %d' % (name, least, number))
    return number


def check_offset(offset: Any) -> int:
    """Return an offset. Raises ArgumentValueError for any invalid one, as 2.x and 3.x did."""
    try:
        return check_whole(offset, 'offset')
    except ArgumentTypeError as error:
        raise ArgumentValueError(*error.args) from None


def check_offsets(offsets: Any) -> Dict[TopicPartition, OffsetAndMetadata]:
    """Return the offsets to commit: {TopicPartition: OffsetAndMetadata}. Raises as as_offsets().

    Plain tuples are refused: an offset cannot be distinguished from a partition in them.
    """
    return as_offsets(offsets, check_partition, OffsetAndMetadata)


#: numbers.Real includes the numbers of numpy; int and float come first because they match faster.
_NUMBERS: Any = (int, float, numbers.Real)


def seconds_of(timeout_ms: Any, default: float, name: str = 'timeout_ms') -> float:
    """Return a time-out of milliseconds in seconds; `default`, in seconds, for None.

    Raises: ArgumentTypeError if it is not a number; ArgumentValueError if it is negative or NaN.
    """
    if timeout_ms is None:
        return default
    if isinstance(timeout_ms, bool) or not isinstance(timeout_ms, _NUMBERS):
        raise ArgumentTypeError(
            '%s must be a number of milliseconds, not %s' % (name, reprlib.repr(timeout_ms))
        )
    if not timeout_ms >= 0:
        raise ArgumentValueError('%s must be at least 0, not %r' % (name, timeout_ms))
    return min(float(timeout_ms) / 1000, _LONGEST)


def default_seconds(options: Mapping[str, Any]) -> float:
    """Return the option request_timeout_ms in seconds.

    It is read at each call, because a program may change it.
    """
    seconds: float = options['request_timeout_ms'] / 1000
    return seconds


#: Longer than any program waits; the system calls that wait accept no infinity.
_LONGEST = 1e9
