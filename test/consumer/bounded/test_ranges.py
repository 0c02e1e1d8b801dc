"""What may be written for a range of offsets, and how far one is fetched."""

from __future__ import annotations

import datetime
import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka.consumer.bounded.ranges import (
    OffsetRange,
    RangeState,
    Timestamp,
    Wishes,
    as_timestamp,
    split,
)
from kafka.errors import IllegalArgumentError, KafkaTimeoutError
from kafka.structs import TopicPartition

T0, T1 = TopicPartition('t', 0), TopicPartition('t', 1)
UTC = datetime.timezone.utc


@pytest.mark.parametrize(
    'bound, timestamp',
    [
        (0, None),
        (7, None),
        ('earliest', -2),
        ('latest', -1),
        (-2, -2),
        (-1, -1),
        (Timestamp(5), 5),
        (datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), 1000),
        (datetime.datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC), 1),  # not older: the next one
    ],
)
def test_what_is_looked_up_for_a_bound(bound, timestamp):
    assert as_timestamp(bound) == timestamp


@pytest.mark.parametrize(
    'bound',
    [
        -3,
        1.5,
        None,
        True,
        'newest',
        Timestamp(-1),
        Timestamp(-0.5),
        Timestamp(math.nan),
        Timestamp('5'),
        b'earliest',
    ],
)
def test_what_is_no_bound(bound):
    with pytest.raises(IllegalArgumentError, match='a bound is an offset'):
        as_timestamp(bound)


def test_a_time_without_zone_is_refused():
    with pytest.raises(IllegalArgumentError, match='has no zone'):
        as_timestamp(datetime.datetime(2020, 1, 1))


@pytest.mark.parametrize(
    'what, partitions, topics',
    [
        ('t', {}, {'t': (1, 9)}),
        (['t', 'u'], {}, {'t': (1, 9), 'u': (1, 9)}),
        (T0, {T0: (1, 9)}, {}),
        ([T0, ('t', 1)], {T0: (1, 9), T1: (1, 9)}, {}),
        (OffsetRange('t', 0, 3, 4), {T0: (3, 4)}, {}),
        ([OffsetRange('t', 0, 3, 4), 'u'], {T0: (3, 4)}, {'u': (1, 9)}),
        ({T0: (3, 'latest'), 'u': [4, 5]}, {T0: (3, 'latest')}, {'u': (4, 5)}),
        ([], {}, {}),
    ],
)
def test_what_may_be_read(what, partitions, topics):
    assert Wishes.of(what, 1, 9) == Wishes(partitions, topics)


@pytest.mark.parametrize(
    'what, complaint',
    [
        ([5], 'can be read, not 5'),
        ([b't'], "can be read, not b't'"),
        ([('t', -1)], 'a partition is a number'),
        ([('t', True)], 'a partition is a number'),
        (['t', 't'], 'read twice'),
        ([T0, T0], 'read twice'),
        ([T0, 't'], 'read twice'),
        (['t', T0], 'read twice'),
        ({T0: 5}, 'a pair'),
        ({T0: (5, 4)}, 'begins at 5 and ends at 4'),
        ({T0: ('newest', 4)}, 'a bound is'),
    ],
)
def test_what_cannot_be_read(what, complaint):
    with pytest.raises(IllegalArgumentError, match=complaint):
        Wishes.of(what, 'earliest', 'latest')


def test_a_range_is_a_plain_value():
    made = OffsetRange('t', 0, 3, 5)
    assert pickle.loads(pickle.dumps(made)) == made
    assert (made.length, made._replace(stop=1).length) == (2, 0)


@given(
    st.lists(
        st.builds(
            OffsetRange, st.just('t'), st.integers(0, 9), st.integers(0, 50), st.integers(0, 99)
        )
    ),
    st.integers(1, 20),
)
def test_split_ranges_are_the_same_offsets(ranges, count):
    parts = split(ranges, count)
    assert all(part.length for part in parts)

    def numbers(some):
        return [(each.partition, n) for each in some for n in range(each.start, each.stop)]

    assert numbers(parts) == numbers(ranges)
    assert len(parts) >= min(count, sum(each.length for each in ranges))


# ------------------------------------------------------------ how far one is fetched


def state():
    return RangeState(OffsetRange('t', 0, 3, 10), 100)


def test_a_range_is_asked_for_until_all_has_come():
    at = state()
    assert at.may_be_asked(0.0)
    at.advance(7)
    assert (at.fetch_offset, at.is_fetched) == (7, False)
    at.advance(5)
    assert at.fetch_offset == 7
    at.advance(12)
    assert at.is_fetched
    assert not at.may_be_asked(0.0)


@pytest.mark.parametrize('name', ['is_asked', 'is_blocked'])
def test_a_range_is_not_asked_for_twice(name):
    at = state()
    setattr(at, name, True)
    assert not at.may_be_asked(0.0)


def test_a_range_that_failed_waits():
    at = state()
    at.fail(KafkaTimeoutError(), 5.0)
    assert not at.may_be_asked(4.9)
    assert at.may_be_asked(5.0)
    assert at.failures == 1
    at.advance(4)
    assert (at.failures, at.last_error) == (0, None)


def test_what_was_fetched_before_a_seek_is_not_wanted():
    at = state()
    token = at.token
    at.advance(10)
    at.is_blocked = True
    at.seek(5)
    assert at.token != token
    assert at.may_be_asked(0.0)
    assert repr(at) == '<RangeState topic t, partition 0 at 5 of 3 to 10>'
