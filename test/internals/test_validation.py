"""kafka.internals.validation: what programs may name."""

from __future__ import annotations

import pytest

from kafka.internals.validation import (
    ArgumentTypeError,
    ArgumentValueError,
    as_int,
    as_partition,
    check_topic,
)
from kafka.structs import TopicPartition


class Whole:
    """A number of another package's."""

    def __index__(self):
        return 7


@pytest.mark.parametrize('topic', ['a', 'A-b_c.9', '__consumer_offsets', '...', 'x' * 249])
def test_a_name_that_brokers_take_passes(topic):
    check_topic(topic)


@pytest.mark.parametrize('topic', ['', '.', '..', 'x' * 250, 'a b', 'a/b', 'ü', 'a\n'])
def test_a_name_that_no_broker_takes_is_a_value_error_and_an_assertion_error(topic):
    with pytest.raises(ArgumentValueError, match='a name has 1 to 249') as caught:
        check_topic(topic)
    assert isinstance(caught.value, (ValueError, AssertionError))
    assert isinstance(caught.value, AssertionError)


@pytest.mark.parametrize('topic', [None, b'bytes', 1, ['t']])
def test_a_name_that_is_no_str_is_a_type_error_and_an_assertion_error(topic):
    with pytest.raises(ArgumentTypeError, match='must be str') as caught:
        check_topic(topic)
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, AssertionError)


def test_a_long_name_is_shown_in_part():
    with pytest.raises(ArgumentValueError) as caught:
        check_topic('a payload' * 100_000)
    assert len(str(caught.value)) < 200
    assert str(caught.value).count('payload') <= 2


def test_whole_numbers_of_other_types_are_taken():
    assert as_int('it', Whole()) == 7
    assert type(as_int('it', Whole())) is int


@pytest.mark.parametrize('number', [True, 1.0, '1', None])
def test_what_is_no_whole_number_is_named(number):
    with pytest.raises(ArgumentTypeError, match='it must be int, not %s' % type(number).__name__):
        as_int('it', number)


def test_a_plain_tuple_is_a_partition():
    found = as_partition(('t', Whole()))
    assert found == ('t', 7)
    assert isinstance(found, TopicPartition)


@pytest.mark.parametrize(
    'thing, error',
    [
        ('t', ArgumentTypeError),
        (None, ArgumentTypeError),
        (('t',), ArgumentTypeError),
        (('t', 0, 1), ArgumentTypeError),
        ((b't', 0), ArgumentTypeError),
        (('t', '0'), ArgumentTypeError),
        (('t', -1), ArgumentValueError),
        (('', 0), ArgumentValueError),
    ],
)
def test_what_is_no_partition_is_refused(thing, error):
    with pytest.raises(error):
        as_partition(thing)
