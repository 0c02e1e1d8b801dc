"""What the driver asks an embedded cluster before a job starts."""

from __future__ import annotations

import pickle
import re
import time

import pytest

from kafka.errors import (
    KafkaConfigurationError,
    KafkaConnectionError,
    KafkaTimeoutError,
    NoBrokersAvailable,
    UnknownTopicOrPartitionError,
)
from kafka.protocol.metadata import MetadataResponse
from kafka.spark.lookups import Lookups
from kafka.spark.options import Limit, Topics
from kafka.structs import TopicPartition
from kafka.testing import Cluster
from test.spark.embedded import EARLIEST, LATEST, fill, options_of, without_topics

T0, T1, U0 = TopicPartition('t', 0), TopicPartition('t', 1), TopicPartition('u', 0)
BEGAN = 1_700_000_000_000


@pytest.fixture
def cluster():
    with Cluster(topics={'t': 2, 'u': 1}) as made:
        fill(made, 't', 0, [b'%d' % n for n in range(10)], timestamp_ms=BEGAN)
        fill(made, 't', 1, [b'%d' % n for n in range(5)], timestamp_ms=BEGAN + 100)
        yield made


@pytest.fixture
def lookups(cluster):
    made = []

    def give(*names, **more):
        made.append(Lookups(options_of(cluster, *names, **more)))
        return made[-1]

    yield give
    for each in made:
        each.close()


def test_topics_that_are_named_are_read_whole(lookups):
    assert lookups('u', 't').partitions() == [T0, T1, U0]


def test_partitions_that_are_assigned_are_taken_as_they_are(lookups):
    assert lookups(topics=Topics('assign', partitions=(U0, T1))).partitions() == [T1, U0]


def test_of_those_only_what_there_is(lookups, caplog):
    asked = lookups(topics=Topics('assign', partitions=(T0, TopicPartition('t', 7))))
    for _ in range(2):
        assert asked.partitions() == [T0]
    assert caplog.text.count('do not exist: t-7') == 1


def test_a_pattern_finds_topics_as_they_are_now(lookups, cluster):
    asked = lookups(topics=Topics('subscribePattern', pattern=re.compile('new.*|u')))
    assert asked.partitions() == [U0]
    cluster.create_topic('new-1', 1)
    assert asked.partitions() == [TopicPartition('new-1', 0), U0]


def test_a_pattern_that_finds_nothing_reads_nothing(lookups):
    asked = lookups(topics=Topics('subscribePattern', pattern=re.compile('none-such')))
    assert asked.partitions() == []
    assert asked.starts(EARLIEST) == {}


def test_a_topic_that_is_not_there_is_named(lookups, cluster):
    asked = lookups('t', 'missing', retry_interval_ms=1)
    with pytest.raises(UnknownTopicOrPartitionError, match='topic missing does not exist'):
        asked.partitions()
    assert 'missing' not in cluster.state.topics, 'to ask makes none'


@pytest.mark.parametrize(
    'limit, start, end',
    [
        (EARLIEST, (0, 0), (0, 0)),
        (LATEST, (10, 5), (10, 5)),
        (Limit('offsets', {T0: 3, T1: -1}), (3, 5), (3, 5)),
        (Limit('offsets', {T0: -2, T1: 4}), (0, 4), (0, 4)),
        (Limit('timestamp', timestamp=BEGAN + 4), (4, 0), (4, 0)),
        (Limit('timestamps', {T0: BEGAN + 9, T1: BEGAN + 102}), (9, 2), (9, 2)),
        (Limit('timestamp', timestamp=BEGAN + 50, is_lenient=True), (10, 0), (10, 0)),
    ],
)
def test_limits_become_offsets(lookups, limit, start, end):
    asked = lookups('t')
    assert tuple(asked.starts(limit)[each] for each in (T0, T1)) == start
    assert tuple(asked.ends(limit)[each] for each in (T0, T1)) == end


def test_a_time_that_is_too_late_is_an_error_unless_it_may_be_the_end(lookups):
    with pytest.raises(KafkaConfigurationError, match=r't-0 is as late.*Strategy=latest'):
        lookups('t').starts(Limit('timestamp', timestamp=BEGAN + 50))


@pytest.mark.parametrize(
    'kind, offsets, told',
    [
        ('offsets', {T0: 1}, 'startingOffsets must name .*: missing t-1 '),
        ('offsets', {T0: 1, T1: 1, U0: 1}, 'not read u-0'),
        ('timestamps', {T0: 1}, 'startingOffsetsByTimestamp must name .*: missing t-1'),
    ],
)
def test_offsets_are_of_the_partitions_that_are_read(lookups, kind, offsets, told):
    with pytest.raises(KafkaConfigurationError, match=told):
        lookups('t').starts(Limit(kind, offsets))


def test_what_a_group_has_committed_is_where_it_goes_on(lookups):
    asked = lookups('t', commit_offsets='g')
    assert asked.starts(Limit('committed')) == {T0: 0, T1: 0}
    asked.commit('g', {T0: 7})
    assert lookups('t', commit_offsets='g').starts(Limit('committed')) == {T0: 7, T1: 0}


def test_a_group_is_needed_for_that(lookups):
    with pytest.raises(KafkaConfigurationError, match='commitOffsets'):
        lookups('t').starts(Limit('committed'))


def test_it_travels_as_a_description_and_connects_again_after_close(lookups):
    asked = lookups('t')
    assert asked.latest() == {T0: 10, T1: 5}
    copy = pickle.loads(pickle.dumps(asked))
    assert copy.earliest([T1]) == {T1: 0}
    copy.close()
    asked.close()
    assert asked.latest([T1]) == {T1: 5}


def test_nobody_who_answers_is_told_in_time(lookups):
    config = {'bootstrap_servers': '127.0.0.1:1', 'bootstrap_timeout_ms': 300}
    began = time.monotonic()
    with pytest.raises((NoBrokersAvailable, KafkaTimeoutError)):
        lookups('t', config=config, retries=100, retry_interval_ms=1).partitions()
    assert time.monotonic() - began < 5


# ---------------------------------------------------------------- brokers that are away, or new


class Time:
    """A clock that sleeping moves on; `then` are pairs of a time and what to call then."""

    def __init__(self, then=()):
        self.now = 0.0
        self.then = sorted(then, key=lambda each: each[0])

    def clock(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        while self.then and self.then[0][0] <= self.now:
            self.then.pop(0)[1]()


def of_time(cluster, time, *names, **more):
    return Lookups(options_of(cluster, *names, **more), time.clock, time.sleep)


def played(answers):
    """Return a function that raises or returns what it is given, the last one for ever."""

    def ask():
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return ask


def test_a_cluster_that_is_away_is_waited_for_as_long_as_java_does(cluster):
    time = Time()
    asked = of_time(cluster, time, 't')
    try:
        away = NoBrokersAvailable('away')
        assert asked._retried(played([away] * 25 + [7])) == 7
        assert time.now == 25.0
        with pytest.raises(NoBrokersAvailable):
            asked._retried(played([away]))
        assert time.now == 85.0
    finally:
        asked.close()


@pytest.mark.parametrize('error', [NoBrokersAvailable, KafkaConnectionError, KafkaTimeoutError])
def test_how_long_is_said_by_the_name_that_java_has(cluster, error):
    time = Time()
    asked = of_time(cluster, time, 't', api_timeout_ms=5000)
    try:
        with pytest.raises(error):
            asked._retried(played([error('away')]))
        assert time.now == 5.0
    finally:
        asked.close()


def test_a_topic_that_was_seen_is_waited_for_and_a_misspelt_one_is_not(cluster):
    time = Time()
    asked = of_time(cluster, time, 't')
    try:
        unknown = UnknownTopicOrPartitionError('t')
        with pytest.raises(UnknownTopicOrPartitionError):
            asked._retried(played([unknown]))
        assert time.now == 2.0
        asked.partitions()
        assert asked._retried(played([unknown] * 8 + [7])) == 7
        assert time.now == 10.0
    finally:
        asked.close()


def test_a_broker_that_has_just_started_deletes_no_topic(cluster):
    time = Time([(3.0, lambda: cluster.control('Metadata', None))])
    asked = of_time(cluster, time, topics=Topics('subscribePattern', pattern=re.compile('t')))
    try:
        cluster.control('Metadata', without_topics(cluster))
        assert asked.partitions() == []
        assert asked.deleted([T0, T1]) == set()
        assert 3.0 <= time.now < 4.0
    finally:
        asked.close()


def test_a_topic_is_deleted_when_it_is_unknown_for_ten_seconds(cluster):
    time = Time()
    asked = of_time(cluster, time, topics=Topics('subscribePattern', pattern=re.compile('t')))
    gone = TopicPartition('gone', 0)
    try:
        assert asked.deleted([T0, gone, TopicPartition('t', 7)]) == {gone, TopicPartition('t', 7)}
        assert 10.0 <= time.now < 11.0
    finally:
        asked.close()


def test_a_topic_that_may_not_be_seen_is_not_deleted():
    with Cluster(topics={'t': 1}, authorizer=True, sasl={'u': 'p'}) as cluster:
        cluster.allow('u', 'Read', topic='other')
        login = {'security_protocol': cluster.security_protocol, 'sasl_mechanism': 'PLAIN'}
        login.update(sasl_plain_username='u', sasl_plain_password='p')
        time = Time()
        pattern = Topics('subscribePattern', pattern=re.compile('t'))
        asked = of_time(cluster, time, topics=pattern, config=login)
        try:
            assert asked.partitions() == []
            assert asked.deleted([T0]) == set()
            assert time.now == 0.0, 'that is known at once'
        finally:
            asked.close()


def test_an_answer_without_brokers_is_not_taken_for_an_empty_cluster(lookups, cluster):
    answers = [MetadataResponse(brokers=[], controller_id=-1, topics=[]) for _ in range(2)]
    cluster.control('Metadata', lambda call: answers.pop() if answers else None)
    pattern = Topics('subscribePattern', pattern=re.compile('u'))
    assert lookups(topics=pattern, retry_interval_ms=1).partitions() == [U0]
