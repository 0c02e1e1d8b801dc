"""Numbers that groups keep: written by plain commits, or as part of a transaction."""

from __future__ import annotations

import threading
import time

import pytest

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import (
    CommitFailedError,
    GroupAuthorizationFailedError,
    KafkaTimeoutError,
    UnsupportedVersionError,
)
from kafka.producer import KafkaProducer
from kafka.producer.two_phase_commit import PreparedTransactions
from kafka.spark.marks import Mark, read_mark, write_mark
from kafka.testing import Cluster
from kafka.testing.faults import Error


@pytest.fixture(params=['2.5', '2.8', '4.4'])  # OffsetFetch 7, the last of the old ones, and 9
def cluster(request):
    with Cluster(version=request.param, topics={'t': 1, 'u': 1}) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with PreparedTransactions(bootstrap_servers=cluster.bootstrap, max_block_ms=3000) as client:
        yield client


def test_a_mark_is_kept_until_the_next(client):
    assert read_mark(client, 'g') is None
    write_mark(client, 'g', 't', Mark(0, ''))
    assert read_mark(client, 'g') == Mark(0, '')
    write_mark(client, 'g', 't', Mark(3, 'x' * 4000))
    assert read_mark(client, 'g') == Mark(3, 'x' * 4000)
    assert read_mark(client, 'other') is None


def test_of_several_topics_the_largest_number_counts(client):
    write_mark(client, 'g', 't', Mark(4, 'a'))
    write_mark(client, 'g', 'u', Mark(5, 'b'))
    assert read_mark(client, 'g') == Mark(5, 'b')


def test_a_mark_in_a_transaction_counts_when_that_is_committed(cluster, client):
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, transactional_id='x') as producer:
        producer.init_transactions()
        for number, end in ((1, producer.abort_transaction), (2, producer.commit_transaction)):
            producer.begin_transaction()
            producer.send_offsets_to_transaction({TopicPartition('t', 0): (number, '')}, 'g')
            waiting = threading.Timer(0.3, end)
            waiting.start()
            found = read_mark(client, 'g')
            waiting.join()
            assert found == (None if number == 1 else Mark(2, ''))


def test_a_transaction_that_does_not_end_is_waited_for_until_the_time_is_over(cluster):
    with KafkaProducer(
        bootstrap_servers=cluster.bootstrap, transactional_id='x'
    ) as producer, PreparedTransactions(
        bootstrap_servers=cluster.bootstrap, max_block_ms=300
    ) as client:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send_offsets_to_transaction({TopicPartition('t', 0): (1, '')}, 'g')
        began = time.monotonic()
        with pytest.raises(KafkaTimeoutError, match='group g.*0.3 s'):
            read_mark(client, 'g')
        assert time.monotonic() - began < 5
        producer.abort_transaction()


def test_a_coordinator_that_moves_is_followed(cluster, client):
    write_mark(client, 'g', 't', Mark(1, ''))
    cluster.faults.add(Error(16), 'OffsetFetch', times=2)
    assert read_mark(client, 'g') == Mark(1, '')


def test_a_group_that_may_not_be_used_is_named(cluster, client):
    cluster.faults.add(Error(30), 'OffsetFetch')
    with pytest.raises(GroupAuthorizationFailedError, match='group g'):
        read_mark(client, 'g')


def test_a_group_with_members_is_not_for_marks(cluster, client):
    with KafkaConsumer('t', bootstrap_servers=cluster.bootstrap, group_id='g') as member:
        member.poll(2000)
        with pytest.raises(CommitFailedError, match='has members'):
            write_mark(client, 'g', 't', Mark(1, ''))


def test_brokers_that_cannot_tell_what_is_settled_are_refused():
    with Cluster(version='2.4', topics={'t': 1}) as cluster, PreparedTransactions(
        bootstrap_servers=cluster.bootstrap
    ) as client:
        with pytest.raises(UnsupportedVersionError, match='exactlyOnce needs.*2.5 or later'):
            read_mark(client, 'g')
