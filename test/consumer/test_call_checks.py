"""What may be passed to the calls of a modern consumer."""

from __future__ import annotations

import math

import pytest

from kafka.consumer.call_checks import (
    as_partitions,
    check_offset,
    check_offsets,
    check_partition,
    check_partitions,
    check_whole,
    seconds_of,
)
from kafka.structs import OffsetAndMetadata, TopicPartition

PARTITION = TopicPartition('t', 3)


@pytest.mark.parametrize('thing', [('t', 3), 't', None, 3, ['t', 3]])
def test_a_partition_is_a_topic_partition(thing):
    with pytest.raises(TypeError, match='TopicPartition') as caught:
        check_partition(thing)
    assert isinstance(caught.value, AssertionError)
    assert check_partition(PARTITION) is PARTITION


@pytest.mark.parametrize('thing, text', [
    (TopicPartition(b't', 3), 'topic must be str, not bytes'),
    (TopicPartition('t', '3'), 'partition must be int, not str'),
    (TopicPartition('t', None), 'partition must be int, not NoneType'),
])  # fmt: skip
def test_a_partition_has_a_name_and_a_number(thing, text):
    with pytest.raises(TypeError, match=text) as caught:
        check_partition(thing)
    assert isinstance(caught.value, AssertionError)


@pytest.mark.parametrize('check', [as_partitions, check_partitions])
@pytest.mark.parametrize('thing', [None, 3, 't', PARTITION])
def test_partitions_are_a_list_and_not_one_of_them(check, thing):
    with pytest.raises(TypeError, match='partitions must be a list of TopicPartition') as caught:
        check(thing)
    assert isinstance(caught.value, AssertionError)
    assert check(iter([PARTITION])) == [PARTITION]


@pytest.mark.parametrize('offset', [-1, None, '5', 1.5, True])
def test_an_offset_is_a_whole_number_from_0(offset):
    with pytest.raises(ValueError, match='offset'):
        check_offset(offset)
    assert check_offset(7) == 7


def test_whole_numbers_have_a_least():
    assert check_whole(1, 'it', 1) == 1
    with pytest.raises(ValueError, match='it must be at least 1, not 0'):
        check_whole(0, 'it', 1)


@pytest.mark.parametrize(
    'offsets, error, text',
    [
        ([], TypeError, 'must be a dict'),
        ({('t', 3): OffsetAndMetadata(1, '')}, TypeError, 'TopicPartition'),
        ({PARTITION: 1}, TypeError, 'topic t partition 3.*OffsetAndMetadata'),
        ({PARTITION: OffsetAndMetadata(-1, '')}, ValueError, 'topic t partition 3: the offset'),
        ({PARTITION: OffsetAndMetadata('1', '')}, TypeError, 'topic t partition 3: the offset'),
        ({PARTITION: OffsetAndMetadata(1, b'')}, TypeError, 'topic t partition 3: metadata'),
        ({PARTITION: OffsetAndMetadata(2**63, '')}, ValueError, 'the offset must be'),
        ({PARTITION: OffsetAndMetadata(1, '', 2**31)}, ValueError, 'the leader epoch must be'),
        ({PARTITION: OffsetAndMetadata(1, '', -2)}, ValueError, 'the leader epoch must be'),
        ({PARTITION: OffsetAndMetadata(1, '', 'new')}, TypeError, 'the leader epoch'),
        ({PARTITION: (1, '')}, TypeError, 'OffsetAndMetadata'),
    ],
)
def test_what_cannot_be_committed_is_named(offsets, error, text):
    with pytest.raises(error, match=text) as caught:
        check_offsets(offsets)
    assert isinstance(caught.value, AssertionError)


def test_offsets_to_commit_are_the_callers_own_dict_no_more():
    offsets = {PARTITION: OffsetAndMetadata(1, None)}
    checked = check_offsets(offsets)
    assert checked == offsets
    assert checked is not offsets


@pytest.mark.parametrize('given, seconds', [(None, 7.0), (0, 0.0), (1500, 1.5), (math.inf, 1e9)])
def test_times_are_seconds(given, seconds):
    assert seconds_of(given, 7.0) == seconds


@pytest.mark.parametrize(
    'given, error', [(-1, ValueError), (math.nan, ValueError), ('1', TypeError), (True, TypeError)]
)
def test_a_time_that_is_none_is_refused(given, error):
    with pytest.raises(error, match='timeout_ms'):
        seconds_of(given, 7.0)
