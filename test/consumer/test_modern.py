"""Subscriptions, assignment, positions and pauses of the modern consumer, on embedded brokers."""

from __future__ import annotations

import time

import pytest

import kafka.consumer.modern
from kafka import OffsetAndMetadata, TopicPartition
from kafka.consumer.subscription_state import SubscriptionPattern
from kafka.errors import (
    IllegalStateError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    UnsupportedVersionError,
)
from kafka.testing import Cluster
from test.consumer.modern import (
    FIRST,
    SECOND,
    consumer_of,
    poll_until,
    poll_while,
    values,
    write,
)
from test.raising import Interruption, Raiser, needs_points

pytestmark = pytest.mark.once


@pytest.fixture
def cluster():
    with Cluster(version='4.4', topics={'t': 2, 'u': 1}) as made:
        write(made, 10)
        write(made, 10, partition=1)
        yield made


@pytest.fixture
def consumer(cluster):
    with consumer_of(cluster) as made:
        yield made


def test_without_group_all_partitions_of_the_topics_are_read(consumer):
    consumer.subscribe(['t'])
    assert consumer.assignment() == set()
    assert sorted(values(poll_until(consumer, 20))) == sorted([*range(10)] * 2)
    assert consumer.assignment() == {FIRST, SECOND}
    assert consumer.subscription() == {'t'}


def test_a_plain_str_is_one_topic(consumer):
    consumer.subscribe('t')
    assert consumer.subscription() == {'t'}


def test_a_pattern_finds_topics_of_today_and_of_later(cluster, consumer):
    consumer.subscribe(pattern='^(t|new)')
    poll_until(consumer, 20)
    assert consumer.subscription() == {'t'}
    cluster.create_topic('newer', partitions=1)
    write(cluster, 3, topic='newer')
    consumer.bootstrap(refresh=True)
    assert len(poll_until(consumer, 3)) == 3
    assert consumer.subscription() == {'t', 'newer'}


def test_a_pattern_that_matches_nothing_reads_nothing(consumer):
    consumer.subscribe(pattern='nothing')
    assert consumer.poll(timeout_ms=100) == {}
    assert consumer.subscription() == set()


@pytest.mark.parametrize('group', [None, 'g'])
def test_a_topic_that_there_is_not_is_read_soon_after_it_is_made(group):
    """Long before metadata_max_age_ms is over."""
    with Cluster(version='4.4', auto_create_topics=False) as cluster:
        with consumer_of(cluster, 'late', group_id=group) as consumer:
            assert consumer.poll(timeout_ms=300) == {}
            cluster.create_topic('late', partitions=1)
            write(cluster, 1, topic='late')
            assert values(poll_until(consumer, 1, seconds=10)) == [0]


def test_a_topic_is_made_for_who_subscribes_to_it_unless_told_not_to(cluster, consumer):
    with consumer_of(cluster, 'not', allow_auto_create_topics=False) as other:
        other.poll(timeout_ms=300)
    consumer.subscribe(['made'])
    poll_while(consumer, lambda: not consumer.assignment(), seconds=10)
    assert 'made' in consumer.topics()
    assert 'not' not in consumer.topics()


def test_a_pattern_for_brokers_needs_their_protocol(consumer):
    with pytest.raises(UnsupportedVersionError, match='group_protocol'):
        consumer.subscribe(pattern=SubscriptionPattern('t.*'))


def test_subscribing_to_others_drops_what_was_read(consumer):
    consumer.subscribe(['t'])
    poll_until(consumer, 20)
    consumer.subscribe(['u'])
    assert consumer.assignment() == set()
    poll_while(consumer, lambda: not consumer.assignment())
    assert consumer.assignment() == {TopicPartition('u', 0)}


def test_assign_and_subscribe_are_not_mixed(consumer):
    consumer.assign([FIRST])
    with pytest.raises(IllegalStateError):
        consumer.subscribe(['t'])
    consumer.unsubscribe()
    consumer.subscribe(['t'])
    with pytest.raises(IllegalStateError):
        consumer.assign([FIRST])
    consumer.assign([])
    assert consumer.subscription() is None
    consumer.assign([FIRST])


def test_what_stays_assigned_keeps_its_position(consumer):
    consumer.assign([FIRST])
    poll_until(consumer, 4, max_records=4)
    consumer.assign([FIRST, SECOND])
    assert consumer.position(FIRST) == 4
    assert consumer.position(SECOND) == 0


def test_partitions_may_come_and_go_one_by_one(consumer):
    consumer.incremental_assign([FIRST])
    poll_until(consumer, 4, max_records=4)
    consumer.incremental_assign([SECOND, FIRST])
    assert consumer.assignment() == {FIRST, SECOND}
    assert consumer.position(FIRST) == 4
    with pytest.raises(ValueError, match='not assigned'):
        consumer.incremental_unassign([TopicPartition('u', 0), FIRST])
    consumer.incremental_unassign([SECOND])
    assert (consumer.assignment(), consumer.position(FIRST)) == ({FIRST}, 4)
    for call in (consumer.incremental_assign, consumer.incremental_unassign):
        call([])
        with pytest.raises(TypeError):
            call(['t'])
    consumer.incremental_unassign([FIRST])
    assert consumer.assignment() == set()
    consumer.subscribe(['t'])
    for call in (consumer.incremental_assign, consumer.incremental_unassign):
        with pytest.raises(IllegalStateError):
            call([FIRST])
    assert consumer.subscription() == {'t'}


@needs_points
def test_an_interrupted_unsubscribe_skips_no_record(consumer):
    """As long as the partition is assigned, what follows the last record returned comes next."""
    for at in range(100):
        consumer.assign([FIRST])
        consumer.seek(FIRST, 0)
        assert next(consumer).offset == 0
        raiser = Raiser(at, within=[kafka.consumer.modern.__file__])
        try:
            with raiser:
                consumer.unsubscribe()
        except Interruption:
            pass
        else:
            break
        if consumer.assignment():
            assert poll_until(consumer, 1, 5)[0].offset == 1, raiser.raised_at
            consumer.unsubscribe()
    assert at > 5


def test_a_consumer_goes_back_to_what_is_committed(cluster):
    with consumer_of(cluster, group_id='g', enable_auto_commit=False) as made:
        made.assign([FIRST, SECOND])
        poll_until(made, 20)
        made.commit({FIRST: OffsetAndMetadata(7, '')})
        made.seek_to_committed(FIRST)
        assert (made.position(FIRST), made.position(SECOND)) == (7, 10)
        assert values(poll_until(made, 3)) == [7, 8, 9]
        made.seek_to_committed()
        assert (made.position(FIRST), made.position(SECOND)) == (7, 0)  # by auto_offset_reset
        with pytest.raises(IllegalStateError):
            made.seek_to_committed(TopicPartition('u', 0))
    with consumer_of(cluster) as made:
        made.assign([FIRST])
        with pytest.raises(IllegalStateError, match='group_id'):
            made.seek_to_committed()


def test_a_position_is_looked_up(cluster):
    with consumer_of(cluster, auto_offset_reset='latest') as made:
        made.assign([FIRST])
        assert made.position(FIRST) == 10
        with pytest.raises(AssertionError):
            made.position(SECOND)


def test_a_position_that_is_not_found_in_time_is_none(cluster):
    with consumer_of(cluster) as made:
        made.assign([TopicPartition('t', 9)])
        began = time.monotonic()
        assert made.position(TopicPartition('t', 9), timeout_ms=200) is None
        assert time.monotonic() - began < 5


def test_seeks_are_followed(consumer):
    consumer.assign([FIRST, SECOND])
    consumer.seek(FIRST, 8)
    consumer.seek_to_end(SECOND)
    assert values(poll_until(consumer, 2)) == [8, 9]
    assert consumer.position(SECOND) == 10
    consumer.seek_to_beginning()
    assert consumer.position(FIRST) == consumer.position(SECOND) == 0
    consumer.seek(FIRST, OffsetAndMetadata(5, ''))
    consumer.pause(SECOND)
    assert values(poll_until(consumer, 5)) == [5, 6, 7, 8, 9]


@pytest.mark.parametrize('offset', [-1, '5', None, 1.5])
def test_an_offset_that_is_none_is_refused(consumer, offset):
    consumer.assign([FIRST])
    with pytest.raises(ValueError) as caught:
        consumer.seek(FIRST, offset)
    assert isinstance(caught.value, AssertionError)


def test_what_is_not_assigned_cannot_be_moved_or_paused(consumer):
    consumer.assign([FIRST])
    for call in (
        lambda: consumer.seek(SECOND, 1),
        lambda: consumer.seek_to_end(SECOND),
        lambda: consumer.position(SECOND),
    ):
        with pytest.raises(AssertionError):
            call()
    for call in (lambda: consumer.pause(SECOND), lambda: consumer.resume(SECOND)):
        with pytest.raises(KeyError):
            call()
    with pytest.raises(TypeError):
        consumer.seek(('t', 0), 1)


def test_nothing_can_be_moved_where_nothing_is_assigned(consumer):
    for call in (consumer.seek_to_beginning, consumer.seek_to_end):
        with pytest.raises(AssertionError, match='no partitions are assigned') as caught:
            call()
        assert isinstance(caught.value, ValueError)


def test_paused_partitions_keep_their_position(consumer):
    consumer.assign([FIRST, SECOND])
    consumer.pause(FIRST)
    assert consumer.paused() == {FIRST}
    assert {record.partition for record in poll_until(consumer, 10)} == {1}
    assert consumer.poll(timeout_ms=100) == {}
    consumer.resume(FIRST)
    assert consumer.paused() == set()
    assert values(poll_until(consumer, 10)) == list(range(10))


def test_without_a_policy_an_offset_out_of_range_is_told_until_somebody_seeks(cluster):
    with consumer_of(cluster, auto_offset_reset='none') as made:
        made.assign([FIRST])
        made.seek(FIRST, 99)
        with pytest.raises(OffsetOutOfRangeError) as caught:
            poll_until(made, 1)
        assert caught.value.args[0] == {FIRST: 99}
        made.seek(FIRST, 9)
        assert values(poll_until(made, 1)) == [9]


def test_without_a_policy_and_a_commit_there_is_no_position(cluster):
    with consumer_of(cluster, auto_offset_reset='none', group_id='g') as made:
        made.assign([FIRST])
        for _ in range(2):
            with pytest.raises(NoOffsetForPartitionError):
                poll_until(made, 1)
        made.seek(FIRST, 9)
        assert values(poll_until(made, 1)) == [9]


def test_an_offset_out_of_range_is_reset_by_the_policy(consumer):
    consumer.assign([FIRST])
    consumer.seek(FIRST, 99)
    assert values(poll_until(consumer, 10)) == list(range(10))
