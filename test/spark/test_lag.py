"""What progress reports say of how far queries are behind."""

from __future__ import annotations

import pytest

from kafka.spark.lag import lags_of
from kafka.structs import TopicPartition


def report(*sources, **fields):
    told = {'id': 'q', 'runId': 'r', 'name': None, 'batchId': 3, **fields}
    return {**told, 'sources': list(sources)}


def source(end, latest):
    return {'description': 'any', 'endOffset': end, 'latestOffset': latest}


def test_what_is_between_the_batch_and_the_ends_of_the_logs_is_behind():
    (lag,) = lags_of(report(source({'t': {'0': 5, '1': 7}}, {'t': {'0': 9, '1': 7}})))
    assert lag.behind == {TopicPartition('t', 0): 4, TopicPartition('t', 1): 0}
    assert lag.ends == {TopicPartition('t', 0): 5, TopicPartition('t', 1): 7}
    assert (lag.total, lag.most) == (4, 4)


def test_offsets_may_be_text():
    (lag,) = lags_of(report(source('{"t":{"0":5}}', '{"t":{"0":9}}')))
    assert lag.total == 4


def test_the_begin_that_the_first_batch_keeps_does_not_count():
    (lag,) = lags_of(report(source({'t': {'00': 1, '0': 5}}, {'t': {'0': 9}})))
    assert lag.total == 4


def test_a_partition_that_is_new_is_behind_with_all_it_has():
    (lag,) = lags_of(report(source({'t': {'0': 5}}, {'t': {'0': 5, '1': 8}})))
    assert lag.behind[TopicPartition('t', 1)] == 8


def test_a_log_that_went_back_is_not_ahead():
    (lag,) = lags_of(report(source({'t': {'0': 5, '1': 1}}, {'t': {'0': 2, '1': 2}})))
    assert (lag.total, lag.most) == (1, 1)


def test_the_partition_with_most_is_told():
    (lag,) = lags_of(report(source({'t': {'0': 0, '1': 0}}, {'t': {'0': 2, '1': 6}})))
    assert (lag.total, lag.most) == (8, 6)


def test_without_ends_of_the_logs_nothing_is_known_to_be_behind():
    (lag,) = lags_of(report(source({'t': {'0': 5}}, None)))
    assert (lag.behind, lag.total, lag.most) == ({}, 0, 0)


def test_sources_that_do_not_know_the_ends_of_logs_are_not_believed():
    one = {**source({'t': {'0': 5}}, {'t': {'0': 9}}), 'description': 'a.PythonMicroBatchStream@7'}
    other = {**source({'t': {'0': 5}}, {'t': {'0': 9}}), 'description': 'KafkaV2[Subscribe[t]]'}
    assert [lag.total for lag in lags_of(report(one, other), 'PythonMicroBatch')] == [0, 4]
    assert [lag.total for lag in lags_of(report(one, other))] == [4, 4]


@pytest.mark.parametrize('end', [None, 7, 'none', {'logOffset': 3}, {'t': [1]}, '17'])
def test_sources_that_are_not_of_kafka_are_left_out(end):
    (lag,) = lags_of(report(source(end, end), source({'t': {'0': 5}}, {'t': {'0': 5}})))
    assert lag.source == 1


def test_a_lag_says_whose_it_is():
    (lag,) = lags_of(report(source({'t': {'0': 5}}, {}), name='sums'))
    assert (lag.query_id, lag.run_id, lag.name, lag.batch_id, lag.source) == (
        'q',
        'r',
        'sums',
        3,
        0,
    )
