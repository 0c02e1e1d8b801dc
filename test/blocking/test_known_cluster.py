"""What clients of 0.9.5 and 1.x learn of a cluster where they may not see everything."""

from __future__ import annotations

import logging
import operator
from unittest import mock

import pytest

from kafka import KafkaClient, SimpleClient
from kafka.blocking.known_cluster import KnownCluster
from kafka.errors import (
    KafkaError,
    KafkaUnavailableError,
    LeaderNotAvailableError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)
from kafka.structs import (
    BrokerMetadata,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
    TopicPartition,
)
from kafka.testing import Cluster

# 0.10.0 names topics that may not be seen when all are asked for; 0.10.1 to 0.11 deny them.
RELEASES = ['0.9', '0.10.0', '0.10.2', '4.4']


@pytest.mark.parametrize('face', [KafkaClient, SimpleClient])
@pytest.mark.parametrize('release', RELEASES)
def test_topics_of_others_are_no_error_unless_they_are_named(face, release):
    with Cluster(version=release, authorizer=True, topics={'open': 1, 'hidden': 1}) as cluster:
        cluster.allow('ANONYMOUS', 'Describe', topic='open')
        client = face(cluster.bootstrap)
        try:
            assert [str(getattr(t, 'decode', lambda t=t: t)()) for t in client.topics] == ['open']
            with pytest.raises((TopicAuthorizationFailedError, UnknownTopicOrPartitionError)):
                client.load_metadata_for_topics('hidden')
        finally:
            client.close()


@pytest.mark.parametrize('face', [KafkaClient, SimpleClient])
def test_a_constructor_that_fails_leaves_no_connection(face, monkeypatch):
    load = face.load_metadata_for_topics

    def fail(client, *topics):
        load(client, *topics)
        raise KafkaError('by the test')

    monkeypatch.setattr(face, 'load_metadata_for_topics', fail)
    with Cluster() as cluster, pytest.raises(KafkaError, match='by the test') as caught:
        face(cluster.bootstrap)  # test/conftest.py fails this test for an open socket
    assert caught.value


def test_a_leader_is_found_although_another_thread_resets_all_metadata_meanwhile(monkeypatch):
    """It has found a broker gone: nobody is to take the topic for unknown."""
    with Cluster(topics={'t': 1}) as cluster:
        client = KafkaClient(cluster.bootstrap)
        load, resets = client.load_metadata_for_topics, [True]

        def reset(*topics):
            load(*topics)
            if resets:
                resets.pop()
                client.reset_all_metadata()

        monkeypatch.setattr(client, 'load_metadata_for_topics', reset)
        client.reset_all_metadata()
        try:
            assert client._get_leader_for_partition(b't', 0).host == b'127.0.0.1'
            assert not resets
        finally:
            client.close()


def test_a_failure_that_another_thread_takes_away_meanwhile_is_none():
    """Where no host answered; each of two threads looks for leaders."""
    with Cluster(topics={'t': 1}) as cluster:
        client = KafkaClient(cluster.bootstrap)

        class Once(type(client)):
            failures = [KafkaError('by the test')]
            _unavailable = property(
                lambda self: self.failures.pop() if self.failures else None,
                lambda self, value: None,
            )

        try:
            client.reset_all_metadata()
            client.__class__ = Once
            with pytest.raises(KafkaUnavailableError, match='by the test'):
                client._get_leader_for_partition(b't', 0)
        finally:
            client.close()


# --- the tables ---------------------------------------------------------------------------------

BROKER = BrokerMetadata(1, 'one', 9)


def partition(number, leader, error=0):
    return PartitionMetadata('t', number, leader, (1,), (1,), error)


def response(*partitions, error=0):
    return MetadataResponse([BROKER], [TopicMetadata('t', error, partitions)])


@pytest.fixture
def known():
    return KnownCluster(TopicPartition, operator.attrgetter('leader'))


def test_partitions_without_leader_are_known_and_led_by_nobody(known):
    assert known.update(response(partition(0, 1), partition(1, -1), partition(2, 1, 5)), []) is None
    assert known.topic_partitions == {'t': {0: 1, 1: -1, 2: 1}}
    assert known.topics_to_brokers == {('t', 0): BROKER, ('t', 1): None, ('t', 2): None}
    assert known.partitions_with_leader(['t', 'unknown']) == [TopicPartition('t', 0)]


def test_a_leader_that_is_not_listed_has_no_address(known):
    known.update(response(partition(0, 7)), [])
    assert known.topics_to_brokers['t', 0] == known.broker(7) == BrokerMetadata(7, None, None)


@pytest.mark.parametrize(
    ('code', 'named', 'excused', 'expected'),
    [
        (5, [b't'], (), LeaderNotAvailableError),
        (5, [b't'], (5,), type(None)),
        (5, [], (), type(None)),
        (3, [b't'], (5,), UnknownTopicOrPartitionError),
        (-1, [], (), KafkaError),
    ],
)
def test_which_errors_of_topics_are_raised(known, caplog, code, named, excused, expected):
    caplog.set_level(logging.DEBUG, 'kafka.client')
    failure = known.update(response(error=code), named, excused)
    assert isinstance(failure, expected)
    assert bool(caplog.records) is (failure is None)
    assert (known.topic_partitions, known.brokers) == ({}, {1: BROKER})


def test_topics_are_forgotten_in_their_spelling_and_brokers_are_not(known):
    known.update(response(partition(0, 1)), [])
    known.forget_topic(b't')
    assert repr(known) == '<KnownCluster of 1 brokers, 1 topics>'
    known.forget_topic('t')
    assert (known.topics_to_brokers, known.topic_partitions) == ({}, {})
    known.update(response(partition(0, 1)), [])
    known.forget_topics()
    assert repr(known) == '<KnownCluster of 1 brokers, 0 topics>'


@pytest.mark.parametrize('face', [KafkaClient, SimpleClient])
def test_a_subclass_with_a_constructor_of_its_own_has_the_tables_that_it_sets(face):
    class Fake(face):
        def __init__(self):
            self.topic_partitions = {b't': {1: None, 0: None}}

    assert Fake().get_partition_ids_for_topic(b't') == [0, 1]
    with pytest.raises(AttributeError):
        face.__new__(face).topic_partitions  # noqa: B018 - that is the question


@pytest.mark.parametrize('face', [KafkaClient, SimpleClient])
@pytest.mark.parametrize('name', ['brokers', 'topics_to_brokers', 'topic_partitions'])
def test_tables_of_a_client_can_be_patched_for_a_while(face, name):
    with Cluster(topics={'t': 1}) as cluster:
        client = face(cluster.bootstrap)
        try:
            before = getattr(client, name)
            with mock.patch.object(client, name, {}):
                assert getattr(client, name) == {}
            assert getattr(client, name) is before
        finally:
            client.close()
