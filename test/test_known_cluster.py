"""What clients of 0.9.5 and 1.x learn of a cluster where they may not see everything."""

from __future__ import annotations

import pytest

from kafka import KafkaClient, SimpleClient
from kafka.errors import (
    KafkaError,
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
