"""Creation by asking, as brokers from 2.8 on do it: behind their answer."""

from __future__ import annotations

import pytest

import kafka.blocking.base_client
import kafka.blocking.new_topics
import kafka.client
from kafka.blocking.new_topics import CREATION_SECONDS
from kafka.client import KafkaClient
from kafka.errors import (
    KafkaConnectionError,
    LeaderNotAvailableError,
    UnknownTopicOrPartitionError,
)
from kafka.protocol import list_offsets
from kafka.protocol.api import ApiKey
from test.fake_brokers import Cluster


class Clock:
    """Only sleeping moves it."""

    def __init__(self):
        self.pauses = []

    def monotonic(self):
        return sum(self.pauses)

    def sleep(self, seconds):
        self.pauses.append(seconds)


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(kafka.blocking.base_client, 'time', found)
    monkeypatch.setattr(kafka.blocking.new_topics, 'time', found)
    return found


@pytest.fixture
def cluster(clock):
    found = Cluster(2, {'old': [0]})
    yield found
    assert found.unread() == []


@pytest.fixture
def versions(cluster, monkeypatch):
    """Let brokers tell versions; those of 2.8 and later have DescribeCluster."""
    told = {ApiKey.DESCRIBE_CLUSTER: (0, 1)}

    class Own:
        def __init__(self, host, port, timeout):
            fake = cluster.connect(host, port, timeout)
            self.send, self.recv, self.close = fake.send, fake.recv, fake.close

        def api_versions(self):
            return told

    monkeypatch.setattr(kafka.client, 'KafkaConnection', Own)
    monkeypatch.setattr(kafka.client, '_OwnConnection', Own)
    return told


def creating(cluster, at, name='new', leaders=(1, 0), error=0):
    """Make a topic appear with the metadata request of that number."""

    def create(node, request):
        if len(cluster.sent('MetadataRequest')) >= at:
            cluster.topics.setdefault(name, list(leaders))
            cluster.topic_errors[name] = error

    cluster.answers[ApiKey.METADATA] = create


def offset_errors(cluster, *codes):
    """Answer ListOffsets with these error codes, one after the other, then with 0."""
    left = list(codes)

    def answer(node, request):
        if not left:
            return None
        code = left.pop(0)
        if isinstance(code, Exception):
            raise code
        return list_offsets.ListOffsetsResponse(
            topics=[
                list_offsets.ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        list_offsets.ListOffsetsPartitionResponse(
                            partition_index=p.partition_index, error_code=code
                        )
                        for p in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    cluster.answers[ApiKey.LIST_OFFSETS] = answer
    return left


def test_topic_that_is_being_created_is_asked_for_again(cluster, clock, versions):
    client = KafkaClient(cluster.hosts)
    creating(cluster, at=4)
    client.load_metadata_for_topics('new', 'old')
    assert client.get_partition_ids_for_topic('new') == [0, 1]
    assert client.has_metadata_for_topic('old')
    assert len(clock.pauses) == 2


@pytest.mark.parametrize('code', [3, 5, 6])
def test_leaders_of_a_created_topic_are_waited_for(cluster, clock, versions, code):
    client = KafkaClient(cluster.hosts)
    creating(cluster, at=3)
    left = offset_errors(cluster, 0, code, code, 0)
    client.load_metadata_for_topics('new')
    assert left == []
    asked = [node for node, _ in cluster.sent('ListOffsetsRequest')]
    assert asked == [1, 0] * 3


def test_leaders_that_never_take_requests_are_not_waited_for_without_end(cluster, clock, versions):
    client = KafkaClient(cluster.hosts)
    creating(cluster, at=3)
    offset_errors(cluster, *[6] * 1000)
    client.load_metadata_for_topics('new')
    assert sum(clock.pauses) == pytest.approx(CREATION_SECONDS, abs=0.2)
    assert client.has_metadata_for_topic('new')


def test_leader_that_cannot_be_asked_leaves_metadata_known(cluster, versions):
    client = KafkaClient('host0:9000')
    creating(cluster, at=3)
    offset_errors(cluster, KafkaConnectionError('gone'))
    client.load_metadata_for_topics('new')
    assert client.has_metadata_for_topic('new')


def test_known_topic_and_its_leaders_are_not_waited_for(cluster, clock, versions):
    client = KafkaClient(cluster.hosts)
    client.load_metadata_for_topics('old')
    client.load_metadata_for_topics()
    assert (clock.pauses, cluster.sent('ListOffsetsRequest')) == ([], [])


def test_broker_that_creates_nothing_is_not_asked_for_ever(cluster, clock, versions):
    client = KafkaClient(cluster.hosts)
    for ask in (client.load_metadata_for_topics, client.ensure_topic_exists):
        clock.pauses.clear()
        with pytest.raises(UnknownTopicOrPartitionError):
            ask('new')
        assert sum(clock.pauses) == pytest.approx(CREATION_SECONDS, abs=0.2)


def test_topic_that_appears_without_leader_has_the_old_error(cluster, clock, versions):
    client = KafkaClient(cluster.hosts)
    creating(cluster, at=3, error=5)
    with pytest.raises(LeaderNotAvailableError):
        client.load_metadata_for_topics('new')


@pytest.mark.parametrize('known', [{}, {ApiKey.METADATA: (0, 8)}])
def test_broker_that_creates_before_it_answers_is_asked_once(cluster, clock, versions, known):
    versions.clear()
    versions.update(known)
    client = KafkaClient(cluster.hosts)
    with pytest.raises(UnknownTopicOrPartitionError):
        client.load_metadata_for_topics('new')
    assert (clock.pauses, len(cluster.requests)) == ([], 2)


def test_replaced_connections_are_not_asked_for_versions(cluster, clock, monkeypatch):
    monkeypatch.setattr(kafka.client, 'KafkaConnection', cluster.connect)
    client = KafkaClient(cluster.hosts)
    with pytest.raises(UnknownTopicOrPartitionError):
        client.load_metadata_for_topics('new')
    assert (clock.pauses, len(cluster.requests)) == ([], 2)
