"""What clients of 0.9.5 and 1.x learn of a cluster where they may not see everything."""

from __future__ import annotations

import pytest

from kafka import KafkaClient, SimpleClient
from kafka.errors import (
    KafkaError,
    KafkaUnavailableError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
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
