"""The course of a query over brokers that are played, with a manual clock."""

from __future__ import annotations

import json
import logging
import pickle
import re
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Set, Tuple

import pytest

from kafka.errors import CommitFailedError, KafkaError, KafkaTimeoutError
from kafka.spark.options import Limit, SourceOptions, Topics
from kafka.spark.progress import DataLossError
from kafka.spark.query import Query
from kafka.spark.ranges import TaskRange
from kafka.structs import TopicPartition

ALL = re.compile('')


def by_partition(*offsets: Optional[int]) -> Dict[TopicPartition, int]:
    return {
        TopicPartition('t', index): each for index, each in enumerate(offsets) if each is not None
    }


class PlayedLookups:
    """Brokers with one topic: `begins` and `ends` of its logs, and what was asked of them."""

    def __init__(self, begins: Tuple[Any, ...], ends: Tuple[Any, ...]) -> None:
        self.set(begins, ends)
        self.asked: List[str] = []
        self.committed: List[Tuple[str, Dict[TopicPartition, int]]] = []
        self.next_ends: List[Tuple[Any, ...]] = []
        self.failure: Optional[KafkaError] = None
        self.hidden: Set[TopicPartition] = set()  # missing in lists, and not deleted

    def set(self, begins: Tuple[Any, ...], ends: Tuple[Any, ...]) -> None:
        self.begins, self.ends = begins, ends

    def partitions(self) -> List[TopicPartition]:
        self.asked.append('partitions')
        return sorted(by_partition(*self.ends))

    def starts(self, limit: Limit, partitions: Any = None) -> Dict[TopicPartition, int]:
        self.asked.append('starts')
        return by_partition(*(self.ends if limit.kind == 'latest' else self.begins))

    def earliest(self, partitions: Iterable[TopicPartition]) -> Dict[TopicPartition, int]:
        self.asked.append('earliest')
        known = by_partition(*self.begins)
        unknown = [each for each in partitions if each not in known]
        if unknown:  # the real ones wait for it, and fail
            raise KafkaTimeoutError('no leader of %s' % unknown)
        return {each: known[each] for each in partitions}

    def latest(self, partitions: Any = None) -> Dict[TopicPartition, int]:
        self.asked.append('latest')
        if self.next_ends:
            self.ends = self.next_ends.pop(0)
        return by_partition(*self.ends)

    def deleted(self, partitions: Iterable[TopicPartition]) -> Set[TopicPartition]:
        self.asked.append('deleted')
        return set(partitions) - self.hidden

    def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        if self.failure is not None:
            raise self.failure
        self.committed.append((group, dict(offsets)))

    def close(self) -> None:
        self.asked.append('close')


class Stage:
    """One query over played brokers. `now` is its time, `slept` what it waited."""

    def __init__(self, begins: Tuple[Any, ...], ends: Tuple[Any, ...], **options: Any) -> None:
        kind = options.pop('start', 'earliest')
        topics = options.pop('topics', Topics('subscribe', ('t',)))
        self.options = SourceOptions(topics, Limit(kind), None, {}, **options)
        self.lookups = PlayedLookups(begins, ends)
        self.now = 0.0
        self.slept: List[float] = []
        self.on_sleep: Callable[[], Any] = lambda: None
        self.restart()

    def restart(self) -> None:
        self.query = Query(self.options, self.lookups, lambda: self.now, self.sleep)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.on_sleep()

    def initial(self) -> Any:
        return stored(self.query.initial())

    def everything(self, start: Any) -> Any:
        return stored(self.query.everything(start))

    def worthwhile(self, start: Any, max_offsets: Optional[int] = None) -> Any:
        return stored(self.query.worthwhile(start, max_offsets))

    def ranges(self, start: Any, end: Any) -> List[Tuple[int, int, int]]:
        return [tuple(each[1:4]) for each in self.query.ranges(start, end)]  # type: ignore[misc]


def stored(tree: Any) -> Any:
    """Return what PySpark hands back of an offset that it was given."""
    return json.loads(json.dumps(tree))


# ---------------------------------------------------------------- where it begins


def test_latest_is_looked_up_once_for_a_new_query() -> None:
    stage = Stage((0,), (5,), start='latest')
    assert stage.initial() == {'t': {'0': 5}, '(the first batch began at t:0=5)': {}}
    stage.lookups.set((0,), (9,))
    assert stage.initial() == {'t': {'0': 5}, '(the first batch began at t:0=5)': {}}
    assert stage.lookups.asked == ['starts']


def test_a_pattern_that_matches_nothing_for_a_moment_is_asked_again() -> None:
    """Else what comes after the first offsets would be new, and read from its beginning."""
    stage = Stage((), (), start='latest', topics=Topics('subscribePattern', pattern=ALL))
    stage.on_sleep = lambda: len(stage.slept) == 3 and stage.lookups.set((0,), (5,))
    assert stage.initial()['t'] == {'0': 5}


def test_a_pattern_that_matches_nothing_is_asked_only_for_a_while() -> None:
    stage = Stage((), (), start='latest', topics=Topics('subscribePattern', pattern=ALL))
    assert stage.initial() == {}
    assert sum(stage.slept) == 10
    assert Stage((), ()).initial() == {}


def test_the_first_batch_is_repeated_from_where_it_began() -> None:
    stage = Stage((0,), (5,), start='latest')
    start = stage.initial()
    stage.lookups.set((0,), (8,))
    end = stage.everything(start)
    assert stage.ranges(start, end) == [(0, 5, 8)]
    stage.restart()
    stage.lookups.set((0,), (20,))
    assert stage.ranges(stage.initial(), end) == [(0, 5, 8)]


def test_a_first_batch_without_records_is_repeated_as_that() -> None:
    stage = Stage((0,), (5,), start='latest')
    end = stage.everything(stage.initial())
    stage.restart()
    stage.lookups.set((0,), (20,))
    assert stage.ranges(stage.initial(), end) == []
    assert stage.ranges(end, stage.everything(end)) == [(0, 5, 20)]


def test_a_repeated_query_that_comes_to_where_it_would_begin_now_has_no_news() -> None:
    stage = Stage((0,), (8,), start='latest')
    end = stage.everything({'t': {'0': 5}})
    stage.initial()  # asked for when the first batch is repeated
    assert json.dumps(stage.everything(end)) == json.dumps(end)


def test_a_topic_that_appears_later_is_read_from_its_begin() -> None:
    stage = Stage((), (), start='latest')
    start = stage.initial()
    first = stage.everything(start)
    assert (start, first) == ({}, {})
    stage.lookups.set((0,), (7,))
    assert stage.ranges(first, stage.everything(first)) == [(0, 0, 7)]


# ---------------------------------------------------------------- how far it goes


def test_batches_follow_each_other() -> None:
    stage = Stage((0, 0), (5, 6))
    first = stage.everything(stage.initial())
    stage.lookups.set((0, 0), (9, 6))
    second = stage.everything(first)
    assert stage.ranges(first, second) == [(0, 5, 9)]
    assert second == {'t': {'0': 9, '1': 6}}


def test_without_news_the_start_comes_back() -> None:
    stage = Stage((0,), (5,))
    first = stage.everything(stage.initial())
    for start in (first, {'t': {'0': 5}}):
        assert json.dumps(stage.everything(start)) == json.dumps(start)
        assert json.dumps(stage.worthwhile(start, 3)) == json.dumps(start)


def test_a_batch_keeps_to_the_limit_and_the_next_goes_on() -> None:
    stage = Stage((0, 0), (10, 30))
    first = stage.worthwhile(stage.initial(), 20)
    assert stage.ranges(stage.initial(), first) == [(0, 0, 5), (1, 0, 15)]
    assert stage.worthwhile(first, 20) == {'t': {'0': 10, '1': 30}}


def test_a_trigger_that_takes_all_knows_no_limit() -> None:
    stage = Stage((0,), (10,), max_offsets=3, min_offsets=100)
    start = stage.everything(stage.initial())
    stage.lookups.set((0,), (20,))
    assert stage.everything(start) == {'t': {'0': 20}}


def test_a_new_partition_counts_from_its_begin_for_the_limit() -> None:
    stage = Stage((0, 0), (10, 30))
    assert stage.worthwhile({'t': {'0': 0}}, 20) == {'t': {'0': 5, '1': 15}}


def test_a_batch_is_waited_for_until_it_is_worth_it_or_late() -> None:
    stage = Stage((0,), (10,), min_offsets=5, max_delay=60.0)
    start = stage.worthwhile(stage.initial())
    stage.lookups.set((0,), (14,))
    stage.now = 59.0
    assert stage.worthwhile(start) == start
    stage.now = 60.0
    assert stage.worthwhile(start) == {'t': {'0': 14}}


def test_a_bound_is_not_gone_beyond_and_ends_the_query() -> None:
    stage = Stage((0,), (10,))
    stage.query.bound()
    start = stage.initial()
    end = stage.worthwhile(start, 6)
    stage.lookups.set((0, 0), (50, 50))
    assert stage.worthwhile(end, 6) == {'t': {'0': 10}}
    assert stage.worthwhile({'t': {'0': 10}}, 6) == {'t': {'0': 10}}
    assert stage.lookups.asked == ['starts', 'latest']


def test_before_a_bound_nothing_is_waited_for() -> None:
    stage = Stage((0,), (10,), min_offsets=8)
    stage.query.bound()
    first = stage.worthwhile(stage.initial(), 6)
    assert stage.worthwhile(first, 6) == {'t': {'0': 10}}


def test_what_is_reported_was_found_before() -> None:
    stage = Stage((0,), (10,))
    assert stage.query.latest() is None
    stage.worthwhile(stage.initial(), 6)
    asked = list(stage.lookups.asked)
    assert stored(stage.query.latest()) == {'t': {'0': 10}}
    assert stage.lookups.asked == asked


def test_a_log_that_ends_too_early_is_asked_again() -> None:
    stage = Stage((0,), (10,), retries=3, retry_interval_ms=250)
    stage.lookups.next_ends = [(4,), (12,)]
    assert stage.everything({'t': {'0': 10}}) == {'t': {'0': 12}}
    assert stage.slept == [0.25]


def test_a_log_that_stays_too_early_is_asked_only_so_often() -> None:
    stage = Stage((0,), (4,), retries=3)
    assert stage.everything({'t': {'0': 10}}) == {'t': {'0': 4}}
    assert stage.lookups.asked == ['latest'] * 3


# ---------------------------------------------------------------- what is read


def test_a_partition_that_is_added_is_read_from_its_begin() -> None:
    stage = Stage((0, 0), (10, 7))
    assert stage.ranges({'t': {'0': 8}}, {'t': {'0': 10, '1': 7}}) == [(0, 8, 10), (1, 0, 7)]
    assert stage.ranges({'t': {'0': 8}}, {'t': {'0': 10, '1': 7}}) == [(0, 8, 10), (1, 0, 7)]


def test_ranges_are_cut_as_the_options_say() -> None:
    stage = Stage((0,), (10,), max_records_per_partition=5)
    assert stage.ranges({'t': {'0': 0}}, {'t': {'0': 10}}) == [(0, 0, 5), (0, 5, 10)]
    stage = Stage((0,), (9,), min_partitions=3)
    assert stage.ranges({'t': {'0': 0}}, {'t': {'0': 9}}) == [(0, 0, 3), (0, 3, 6), (0, 6, 9)]


def test_a_batch_without_offsets_asks_nobody() -> None:
    stage = Stage((0,), (10,))
    assert stage.ranges({'t': {'0': 5}}, {'t': {'0': 5}}) == []
    assert stage.lookups.asked == []


def test_only_the_first_plan_looks_at_the_logs() -> None:
    stage = Stage((0,), (10,))
    stage.ranges({'t': {'0': 5}}, {'t': {'0': 7}})
    assert stage.lookups.asked == ['partitions', 'earliest']
    stage.ranges({'t': {'0': 7}}, {'t': {'0': 10}})
    assert stage.lookups.asked == ['partitions', 'earliest']


LOSSES = [
    # logs' begins and ends, the batch, the kind, what is read nevertheless
    ((0,), (9,), (3, 4), (9,), 'PARTITIONS_DELETED', [(0, 3, 9)]),
    ((0,), (9,), (3, 4), (9, 6), 'PARTITIONS_DELETED', [(0, 3, 9)]),
    ((0, 0), (9, 2), (3, 4), (9, 2), 'PARTITION_OFFSET_CHANGED', [(0, 3, 9)]),
    ((5,), (9,), (3,), (9,), 'START_OFFSET_RESET', [(0, 5, 9)]),
    (
        (0, 2),
        (9, 6),
        (3,),
        (9, 6),
        'ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO',
        [(0, 3, 9), (1, 2, 6)],
    ),
    ((0,), (9,), (3,), (9, 6), 'INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS', [(0, 3, 9)]),
]


def tree(offsets: Tuple[int, ...]) -> Any:
    return {'t': {str(index): each for index, each in enumerate(offsets)}}


@pytest.mark.parametrize('begins, ends, start, end, kind, ranges', LOSSES)
def test_a_loss_fails_the_query(
    begins: Any, ends: Any, start: Any, end: Any, kind: str, ranges: Any
) -> None:
    stage = Stage(begins, ends)
    with pytest.raises(DataLossError) as caught:
        stage.ranges(tree(start), tree(end))
    assert caught.value.kind == kind


@pytest.mark.parametrize('begins, ends, start, end, kind, ranges', LOSSES)
def test_a_loss_that_is_allowed_is_warned_of_and_the_rest_is_read(
    begins: Any, ends: Any, start: Any, end: Any, kind: str, ranges: Any, caplog: Any
) -> None:
    stage = Stage(begins, ends, fail_on_data_loss=False)
    with caplog.at_level(logging.WARNING, 'kafka.spark'):
        assert stage.ranges(tree(start), tree(end)) == ranges
    assert ['kind=%s' % kind in each.getMessage() for each in caplog.records] == [True]


def test_the_same_loss_is_warned_of_once(caplog: Any) -> None:
    stage = Stage((0, 0), (9, 2), fail_on_data_loss=False)
    with caplog.at_level(logging.WARNING, 'kafka.spark'):
        for _ in range(3):
            stage.ranges(tree((3, 4)), tree((9, 2)))
    assert len(caplog.records) == 1


# ---------------------------------------------------------------- what is missing for a moment


@pytest.mark.parametrize('fails', [True, False])
@pytest.mark.parametrize('seen', [(), (7,)])
def test_a_topic_that_is_missing_for_a_moment_keeps_its_offset(seen: Any, fails: bool) -> None:
    """An end without it would have it read from its begin again, or fail for ever."""
    stage = Stage((0, 0), (5, 6), fail_on_data_loss=fails)
    first = stage.everything(stage.initial())
    assert stage.ranges(stage.initial(), first) == [(0, 0, 5), (1, 0, 6)]
    stage.lookups.hidden = set(by_partition(5, 6))
    stage.lookups.set((0,) * len(seen), seen)
    during = stage.everything(first)
    assert during == {'t': {'0': 7 if seen else 5, '1': 6}} if seen else first
    stage.ranges(first, during)
    stage.lookups.set((0, 0), (9, 8))
    after = stage.everything(during)
    assert stage.ranges(during, after) == [(0, 7 if seen else 5, 9), (1, 6, 8)]


@pytest.mark.parametrize('fails', [True, False])
def test_a_query_that_starts_while_topics_are_missing_goes_on_behind_it(fails: bool) -> None:
    stage = Stage((), (), fail_on_data_loss=fails)
    stage.lookups.hidden = set(by_partition(5, 6))
    start = {'t': {'0': 5, '1': 6}}
    assert stage.ranges(start, stage.everything(start)) == []
    assert stage.everything(start) == start
    stage.lookups.set((0, 0), (9, 8))
    assert stage.ranges(start, stage.everything(start)) == [(0, 5, 9), (1, 6, 8)]


def test_a_topic_that_is_deleted_for_certain_is_told() -> None:
    stage = Stage((0,), (5,))
    start = {'t': {'0': 3, '1': 6}}
    end = stage.everything(start)
    assert end == {'t': {'0': 5}}
    with pytest.raises(DataLossError, match='PARTITIONS_DELETED'):
        stage.ranges(start, end)


def test_when_all_topics_are_deleted_the_last_offsets_stay_as_in_the_jvm_connector() -> None:
    stage = Stage((), ())
    start = {'t': {'0': 3}}
    for _ in range(3):
        assert stage.everything(start) == start
    assert stage.lookups.asked.count('deleted') == 1, 'what is known is not asked again'
    stage.lookups.set((0,), (5,))
    assert stage.everything(start) == {'t': {'0': 5}}
    stage.lookups.set((), ())
    assert stage.everything(start) == start
    assert stage.lookups.asked.count('deleted') == 2, 'it came back, and went again'


def test_what_is_missing_and_kept_is_warned_of_once(caplog: Any) -> None:
    stage = Stage((), ())
    stage.lookups.hidden = set(by_partition(3))
    with caplog.at_level(logging.WARNING, 'kafka.spark'):
        for _ in range(3):
            stage.everything({'t': {'0': 3}})
    (record,) = caplog.records
    assert 'partitions t-0 are missing from metadata' in record.getMessage()
    assert record.getMessage().endswith('keeping their offsets')


# ---------------------------------------------------------------- when it is done


def test_offsets_are_committed_only_if_a_group_was_named() -> None:
    stage = Stage((0,), (9,))
    stage.query.commit({'t': {'0': 9}})
    assert stage.lookups.committed == []
    stage = Stage((0,), (9,), commit_offsets='g')
    stage.query.commit({'t': {'00': 2, '0': 9}})
    assert stage.lookups.committed == [('g', by_partition(9))]


def test_a_commit_that_may_go_well_later_does_not_stop_the_query(caplog: Any) -> None:
    stage = Stage((0,), (9,), commit_offsets='g')
    stage.lookups.failure = KafkaTimeoutError('no coordinator')
    with caplog.at_level(logging.WARNING, 'kafka.spark'):
        stage.query.commit({'t': {'0': 9}})
    assert 'group=g' in caplog.text


def test_a_commit_that_is_refused_stops_the_query() -> None:
    stage = Stage((0,), (9,), commit_offsets='g')
    stage.lookups.failure = CommitFailedError()
    with pytest.raises(CommitFailedError):
        stage.query.commit({'t': {'0': 9}})


def test_closing_closes_the_lookups() -> None:
    stage = Stage((0,), (9,))
    stage.query.close()
    assert stage.lookups.asked == ['close']


def test_a_query_travels_as_a_pickle() -> None:
    options = Stage((0,), (9,)).options
    assert repr(pickle.loads(pickle.dumps(Query(options)))) == '<Query of subscribe, new>'


def test_ranges_are_those_of_tasks() -> None:
    stage = Stage((0,), (9,))
    assert stage.query.ranges(tree((0,)), tree((9,))) == [TaskRange('t', 0, 0, 9)]
