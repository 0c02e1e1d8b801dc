"""What is done about each error code of a partition, and what the program hears."""

from __future__ import annotations

import pickle

import pytest

from kafka.consumer.fetch.error_actions import (
    ROWS,
    FetchErrorAction,
    error_of,
    fetch_error_action,
    merged,
    out_of_range,
    too_large,
)
from kafka.errors import (
    CorruptRecordError,
    KafkaError,
    OffsetOutOfRangeError,
    RecordTooLargeError,
    TopicAuthorizationFailedError,
    kafka_errors,
)
from kafka.structs import TopicPartition

AT, OTHER = TopicPartition('t', 3), TopicPartition('u', 0)


@pytest.mark.parametrize(
    'codes, reaction',
    [
        ([0], FetchErrorAction.TAKE),
        ([1], FetchErrorAction.OUT_OF_RANGE),
        ([3, 5, 6, 9, 56, 74, 78, 100, 103], FetchErrorAction.REFRESH),
        ([-1, 75, 7], FetchErrorAction.RETRY),
        ([2, 17, 29, 76, 87, 999], FetchErrorAction.RAISE),
    ],
)
def test_each_code_has_its_reaction(codes, reaction):
    assert {fetch_error_action(code) for code in codes} == {reaction}


def test_no_row_of_the_table_hides_that_metadata_are_old():
    for code, reaction in ROWS.items():
        if kafka_errors.get(code) is not None and kafka_errors[code].refresh_metadata:
            assert reaction in (FetchErrorAction.REFRESH, FetchErrorAction.RETRY), code


def test_an_error_says_where_and_who():
    error = error_of(2, AT, 17, 4)
    assert isinstance(error, CorruptRecordError)
    assert 'topic t, partition 3, offset 17' in str(error) and 'node 4' in str(error)


def test_a_code_that_nobody_knows_is_told():
    assert error_of(999, AT, 0, 1).errno == 999


def test_the_arguments_are_those_of_1_2():
    assert error_of(29, AT, 0, 1) == TopicAuthorizationFailedError({'t'})
    assert out_of_range(AT, 5).args == ({AT: 5},)
    assert 'beginning_offsets()' in str(out_of_range(AT, 5))
    error = too_large(AT, 5, 1000)
    assert isinstance(error, RecordTooLargeError) and isinstance(error, KafkaError)
    text, places, limit = error.args
    assert (places, limit) == ({AT: 5}, 1000) and 'topic t, partition 3' in text
    assert pickle.loads(pickle.dumps(error)) == error


def test_errors_of_one_answer_that_name_places_are_one():
    denied = [error_of(29, AT, 0, 1), error_of(29, OTHER, 0, 1)]
    outside = [out_of_range(AT, 5), out_of_range(OTHER, 6)]
    corrupt = error_of(2, AT, 17, 4)
    found = merged([denied[0], outside[0], corrupt, denied[1], outside[1]])
    assert found[::2] == [TopicAuthorizationFailedError({'t', 'u'}), corrupt]
    assert isinstance(found[1], OffsetOutOfRangeError)
    assert found[1].args == ({AT: 5, OTHER: 6},)
    assert merged([]) == []
