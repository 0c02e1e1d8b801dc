"""The fetcher of 1.x over the evented client, on embedded brokers."""

from __future__ import annotations

import time

import pytest

from kafka import KafkaProducer, errors
from kafka.consumer.subscription_state import SubscriptionState
from kafka.evented import fetcher
from kafka.evented.client import KafkaClient
from kafka.evented.fetcher import Fetcher
from kafka.structs import ConsumerRecord, OffsetAndMetadata, TopicPartition
from kafka.testing import Cluster
from kafka.testing.errors import (
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    TOPIC_AUTHORIZATION_FAILED,
)
from kafka.testing.faults import Error

RELEASES = ['0.8.2.2', '0.9.0.1', '0.10.2.2', '2.8.2', '4.4.0']
P0, P1 = TopicPartition('t', 0), TopicPartition('t', 1)


def test_what_programs_import_from_here_is_what_others_have():
    """The module had a record and two errors of its own in 1.x."""
    assert fetcher.ConsumerRecord is ConsumerRecord
    assert fetcher.RecordTooLargeError is errors.RecordTooLargeError
    assert fetcher.NoOffsetForPartitionError is errors.NoOffsetForPartitionError


class Reader:
    """A fetcher with its client and what it reads."""

    def __init__(self, cluster, version, reset='earliest', **configs):
        release = tuple(int(part) for part in version.split('.'))[:3]
        self.client = KafkaClient(bootstrap_servers=cluster.bootstrap, api_version=release)
        self.subscriptions = SubscriptionState(reset)
        self.subscriptions.assign_from_user([P0, P1])
        self.client.poll(future=self.client.set_topics(['t']))
        self.fetcher = Fetcher(
            self.client,
            self.subscriptions,
            api_version=release,
            fetch_max_wait_ms=10,
            retry_backoff_ms=5,
            **configs,
        )

    def settle(self):
        self.fetcher.update_fetch_positions(self.subscriptions.missing_fetch_positions())

    def read(self, count, seconds=20):
        """Return so many records at least, as they came."""
        found, ends_at = [], time.monotonic() + seconds
        while len(found) < count:
            assert time.monotonic() < ends_at
            self.settle()
            self.fetcher.init_fetches()
            self.client.poll(timeout_ms=20)
            for records in self.fetcher.fetched_records().values():
                found += records
        return found

    def ask(self):
        """Let one round of requests be answered."""
        self.settle()
        ends_at = time.monotonic() + 20
        futures = []
        while not futures:
            assert time.monotonic() < ends_at
            self.client.poll(timeout_ms=5)
            futures = self.fetcher.init_fetches()
        for future in futures:
            self.client.poll(future=future)


@pytest.fixture
def reader_of():
    made = []

    def make(version='4.4.0', count=6, **options):
        cluster = Cluster(version=version, topics={'t': 2})
        cluster.start()
        made.append((cluster, None))
        with KafkaProducer(
            bootstrap_servers=cluster.bootstrap, api_version=None, linger_ms=5
        ) as producer:
            for number in range(count):
                producer.send('t', b'%d' % number, partition=number % 2)
        reader = Reader(cluster, version, **options)
        reader.cluster = cluster
        made[-1] = cluster, reader
        return reader

    yield make
    for cluster, reader in made:
        if reader is not None:
            reader.client.close()
        cluster.stop()


@pytest.mark.parametrize('version', RELEASES)
def test_what_was_written_is_read(reader_of, version):
    reader = reader_of(version)
    found = sorted((each.partition, each.offset, each.value) for each in reader.read(6))
    assert found == [(n % 2, n // 2, b'%d' % n) for n in (0, 2, 4, 1, 3, 5)]
    assert reader.subscriptions.state(P0).position == 3
    assert reader.subscriptions.state(P0).highwater == 3


def test_nobody_is_asked_while_records_wait_or_twice_at_once(reader_of):
    reader = reader_of()
    reader.settle()
    while not reader.fetcher.init_fetches():
        reader.client.poll(timeout_ms=5)
    assert reader.fetcher.in_flight_fetches()
    assert reader.fetcher.init_fetches() == []
    while reader.fetcher.in_flight_fetches():
        reader.client.poll(timeout_ms=5)
    assert reader.fetcher.init_fetches() == []
    assert reader.fetcher.fetched_records()
    assert reader.fetcher.init_fetches() != []


def test_iteration_hands_out_one_by_one(reader_of):
    reader = reader_of()
    reader.ask()
    assert sorted(int(each.value) for each in reader.fetcher) == [0, 1, 2, 3, 4, 5]


def test_the_position_is_behind_what_was_handed_out_never_ahead(reader_of):
    reader = reader_of()
    reader.ask()
    reader.subscriptions.pause(P1)
    next(reader.fetcher)
    assert reader.subscriptions.state(P0).position == 1
    reader.subscriptions.seek(P0, 2)
    assert list(reader.fetcher) == []
    assert [each.offset for each in reader.read(1)] == [2]


def test_what_came_for_another_position_is_dropped(reader_of):
    reader = reader_of()
    reader.ask()
    reader.subscriptions.seek(P0, 2)
    assert list(reader.fetcher.fetched_records()) == [P1]
    assert [each.offset for each in reader.read(1)] == [2]


def test_what_is_paused_is_kept(reader_of):
    reader = reader_of()
    reader.ask()
    reader.subscriptions.pause(P0)
    assert list(reader.fetcher.fetched_records()) == [P1]
    reader.subscriptions.resume(P0)
    assert list(reader.fetcher.fetched_records()) == [P0]


def test_a_committed_offset_is_where_it_begins(reader_of):
    reader = reader_of()
    reader.subscriptions.state(P0).committed = OffsetAndMetadata(2, '', -1)
    reader.settle()
    assert reader.subscriptions.state(P0).position == 2
    assert reader.subscriptions.state(P1).position == 0


@pytest.mark.parametrize('version', RELEASES)
def test_the_end_is_where_the_policy_says(reader_of, version):
    reader = reader_of(version, reset='latest')
    reader.settle()
    assert reader.subscriptions.state(P0).position == 3


def test_without_a_policy_it_is_told(reader_of):
    reader = reader_of(reset='none')
    with pytest.raises(errors.NoOffsetForPartitionError):
        reader.settle()


def test_out_of_range_goes_by_the_policy(reader_of):
    reader = reader_of()
    reader.subscriptions.seek(P0, 100)
    reader.subscriptions.seek(P1, 3)
    assert [each.offset for each in reader.read(3)] == [0, 1, 2]


@pytest.mark.parametrize(
    'code, kind, argument',
    [
        (OFFSET_OUT_OF_RANGE, errors.OffsetOutOfRangeError, {P0: 1}),
        (TOPIC_AUTHORIZATION_FAILED, errors.TopicAuthorizationFailedError, {'t'}),
    ],
)
def test_errors_come_out_of_the_next_call_once(reader_of, code, kind, argument):
    reader = reader_of(reset='none')
    reader.subscriptions.seek(P0, 1)
    reader.cluster.faults.add(Error(code), 'FETCH')
    reader.fetcher.update_fetch_positions([P0])
    while not reader.fetcher.init_fetches():
        reader.client.poll(timeout_ms=5)
    while reader.fetcher.in_flight_fetches():
        reader.client.poll(timeout_ms=5)
    with pytest.raises(kind) as raised:
        reader.fetcher.fetched_records()
    assert raised.value.args[0] == argument
    assert reader.fetcher.fetched_records() == {}


def test_a_leader_that_moved_is_found(reader_of):
    reader = reader_of()
    reader.cluster.faults.add(Error(NOT_LEADER_OR_FOLLOWER), 'FETCH')
    assert len(reader.read(6)) == 6


def test_a_record_that_does_not_fit_is_told(reader_of):
    reader = reader_of('0.9.0.1', max_partition_fetch_bytes=20)
    reader.ask()
    with pytest.raises(errors.RecordTooLargeError) as raised:
        reader.fetcher.fetched_records()
    assert raised.value.args[2] == 20


def test_a_deserializer_that_raises_leaves_the_position_there(reader_of):
    def refuse(data):
        if data == b'2':
            raise ZeroDivisionError
        return data

    reader = reader_of(value_deserializer=refuse)
    reader.subscriptions.pause(P1)
    assert [each.value for each in reader.read(1)] == [b'0']
    with pytest.raises(ZeroDivisionError):
        reader.read(1)
    assert reader.subscriptions.state(P0).position == 1
    reader.subscriptions.seek(P0, 2)
    assert [each.value for each in reader.read(1)] == [b'4']
