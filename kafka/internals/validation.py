"""Checks of arguments common to several clients: names, partitions, offsets, whole numbers.

Their errors are AssertionErrors too, as before 3.0. Checks of records are those of the producer
(producer/record_checks.py).
"""

from __future__ import annotations

import math
import numbers
import operator
import re
import reprlib
from typing import Any, Callable, Dict, Mapping

from kafka.structs import OffsetAndMetadata, TopicPartition

__all__ = [
    'ArgumentTypeError',
    'ArgumentValueError',
    'as_int',
    'as_milliseconds',
    'as_offsets',
    'as_partition',
    'check_topic',
    'where',
]

#: Any: to type checkers float is not a subclass of it, and neither are the numbers of numpy.
_REAL: Any = numbers.Real
_TOPIC = re.compile(r'[a-zA-Z0-9._-]{1,249}\Z')


class ArgumentValueError(ValueError, AssertionError):
    """An argument has an invalid value."""


class ArgumentTypeError(TypeError, AssertionError):
    """An argument has a wrong type."""


def check_topic(topic: Any) -> None:
    """Raise ArgumentTypeError or ArgumentValueError unless brokers accept the topic name."""
    if not isinstance(topic, str):
        raise ArgumentTypeError('topic must be str, not %s' % type(topic).__name__)
    if not _TOPIC.match(topic) or topic in ('.', '..'):
        raise ArgumentValueError(
            'topic %s: a name has 1 to 249 letters, digits, dots, dashes and underscores, and is'
            ' not . or ..' % reprlib.repr(topic)  # arguments may be swapped: it may be a payload
        )


def as_int(name: str, number: Any) -> int:
    """Return a number of any integer type, such as those of numpy, as int.

    Raises: ArgumentTypeError for anything else, True and False included.
    """
    if isinstance(number, bool) or not hasattr(number, '__index__'):
        raise ArgumentTypeError('%s must be int, not %s' % (name, type(number).__name__))
    return int(operator.index(number))


def as_milliseconds(name: str, value: Any) -> int:
    """Return a time in milliseconds, a number of any type, as int; fractions are truncated.

    As in kafka-python. Raises: ArgumentTypeError for anything else, True and False included;
    ArgumentValueError for NaN and infinity.
    """
    if type(value) is int:
        return value
    if isinstance(value, bool) or not isinstance(value, _REAL):
        return as_int(name, value)
    if not math.isfinite(value):
        raise ArgumentValueError(
            '%s must be a finite number of milliseconds, not %r' % (name, value)
        )
    return int(value)


def as_partition(partition: Any) -> TopicPartition:
    """Return a partition that was given as TopicPartition or as a plain tuple of two.

    Raises: ArgumentTypeError for anything else; ArgumentValueError for an invalid topic name or a
    negative number.
    """
    if not isinstance(partition, tuple) or len(partition) != 2:
        raise ArgumentTypeError(
            'a partition must be a TopicPartition, not %s' % type(partition).__name__
        )
    topic, number = partition
    check_topic(topic)
    number = as_int('partition', number)
    if number < 0:
        raise ArgumentValueError('partition %d of topic %s: expected 0 or more' % (number, topic))
    return TopicPartition(topic, number)


def where(partition: TopicPartition) -> str:
    """Return a partition as text for an error message."""
    return 'topic %s partition %d' % (str(partition.topic), partition.partition)


def as_offsets(
    offsets: Any,
    partition_of: Callable[[Any], TopicPartition] = as_partition,
    kind: Any = tuple,
) -> Dict[TopicPartition, OffsetAndMetadata]:
    """Return checked offsets to commit. One that a request cannot carry could end the client.

    Arguments: offsets: a dict of partitions to offsets; partition_of: returns the partition of a
    key, or raises; kind: the accepted type of offsets: OffsetAndMetadata, or any tuple of two or
    three.
    Raises: ArgumentTypeError for anything else; ArgumentValueError for invalid offsets.
    """
    if not isinstance(offsets, Mapping):
        raise ArgumentTypeError(
            'offsets must be a dict of TopicPartition to OffsetAndMetadata, not %s'
            % type(offsets).__name__
        )
    found = {}
    for key, given in offsets.items():
        partition = partition_of(key)
        if not isinstance(given, kind) or len(given) not in (2, 3):
            raise ArgumentTypeError(
                '%s: an offset to commit is an OffsetAndMetadata, not %s'
                % (where(partition), reprlib.repr(given))
            )
        found[partition] = _as_offset(where(partition), *given)
    return found


def _as_offset(place: str, offset: Any, metadata: Any, epoch: Any = None) -> OffsetAndMetadata:
    offset = as_int('%s: the offset' % place, offset)
    if not 0 <= offset < 2**63:
        raise ArgumentValueError(
            '%s: the offset must be at least 0 and below 2**63, not %d' % (place, offset)
        )
    if not isinstance(metadata, (str, type(None))):
        raise ArgumentTypeError(
            '%s: metadata must be a str, not %s' % (place, type(metadata).__name__)
        )
    epoch = -1 if epoch is None else as_int('%s: the leader epoch' % place, epoch)
    if not -1 <= epoch < 2**31:
        raise ArgumentValueError(
            '%s: the leader epoch must be below 2**31, and None or -1 for none, not %d'
            % (place, epoch)
        )
    return OffsetAndMetadata(offset, metadata, epoch)
