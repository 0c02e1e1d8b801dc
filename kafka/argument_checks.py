"""What programs of all clients may pass, checked: names of topics, partitions, whole numbers.

Owns the checks that several clients share, and their errors, which are AssertionErrors too, as they
were before 3.0. Checks of records are the producer's (producer/record_checks.py).
"""

from __future__ import annotations

import operator
import re
import reprlib
from typing import Any

from kafka.structs import TopicPartition

__all__ = [
    'ArgumentTypeError',
    'ArgumentValueError',
    'as_int',
    'as_partition',
    'check_topic',
]

_TOPIC = re.compile(r'[a-zA-Z0-9._-]{1,249}\Z')


class ArgumentValueError(ValueError, AssertionError):
    """An argument cannot be meant."""


class ArgumentTypeError(TypeError, AssertionError):
    """An argument is of a wrong type."""


def check_topic(topic: Any) -> None:
    """Raise unless it is a name that brokers take: ArgumentTypeError, ArgumentValueError."""
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


def as_partition(partition: Any) -> TopicPartition:
    """Return a partition that was given as TopicPartition or as a plain tuple of two.

    Raises: ArgumentTypeError for what is none; ArgumentValueError for a name no topic has, and for
    a negative number.
    """
    if not isinstance(partition, tuple) or len(partition) != 2:
        raise ArgumentTypeError(
            'a partition must be a TopicPartition, not %s' % type(partition).__name__
        )
    topic, number = partition
    check_topic(topic)
    number = as_int('partition', number)
    if number < 0:
        raise ArgumentValueError(
            'partition %d of topic %s: there are none below 0' % (number, topic)
        )
    return TopicPartition(topic, number)
