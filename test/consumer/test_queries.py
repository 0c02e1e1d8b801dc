"""What a program can ask a modern consumer about topics and offsets, on embedded brokers."""

from __future__ import annotations

import time

import pytest

from kafka import KafkaProducer, TopicPartition
from kafka.errors import KafkaError, KafkaTimeoutError, UnsupportedVersionError
from kafka.testing import Cluster, MemoryCluster
from kafka.testing.faults import DropResponse, Hang
from test.consumer.modern import FIRST, SECOND, SECONDS, consumer_of, poll_until, write
from test.simulation.reader import SimConsumer

pytestmark = pytest.mark.once

MISSING = TopicPartition('t', 9)


@pytest.fixture
def cluster():
    with Cluster(version='4.4', topics={'t': 2, 'u': 1}) as made:
        write(made, 10)
        yield made


@pytest.fixture
def virtual():
    """A cluster on a clock of its own: on one that stands still the limit around a question may be
    over with that of the question, and does not know it.
    """
    with MemoryCluster(version='4.4', seed=1, topics={'t': 2}) as made:
        yield made


@pytest.fixture
def consumer(cluster):
    with consumer_of(cluster) as made:
        yield made


def test_the_ends_of_partitions_that_are_not_assigned(consumer):
    assert consumer.beginning_offsets([FIRST, SECOND]) == {FIRST: 0, SECOND: 0}
    assert consumer.end_offsets([FIRST, SECOND]) == {FIRST: 10, SECOND: 0}
    assert consumer.end_offsets([]) == {}


def test_who_is_not_answered_about_topics_is_told_what_was_asked(virtual):
    consumer = SimConsumer.of(virtual, [], request_timeout_ms=3000)
    assert consumer.topics() == {'t'}
    virtual.faults.add(Hang(), 'Metadata', times=None)
    with pytest.raises(KafkaTimeoutError, match='within 0.1 seconds .* about all topics'):
        consumer.topics(timeout_ms=100)
    consumer.config['request_timeout_ms'] = 100
    with pytest.raises(KafkaTimeoutError, match='within 0.1 seconds .* about topic missing'):
        consumer.partitions_for_topic('missing')
    consumer.close(timeout_ms=100)


def test_no_question_waits_behind_a_fetch_that_the_broker_keeps(cluster):
    with consumer_of(cluster, fetch_max_wait_ms=10000) as consumer:
        consumer.assign([FIRST])
        poll_until(consumer, 10)
        consumer.poll(timeout_ms=50)
        assert consumer._engine.fetcher.in_flight == 1
        began = time.monotonic()
        assert consumer.end_offsets([FIRST, SECOND]) == {FIRST: 10, SECOND: 0}
        assert time.monotonic() - began < 5


def test_partitions_that_there_are_not_are_waited_for_and_named(virtual):
    consumer = SimConsumer.of(virtual, [])
    for call in (consumer.beginning_offsets, consumer.end_offsets):
        with pytest.raises(KafkaTimeoutError, match=r'\bt\b.*\b9\b'):
            call([MISSING], timeout_ms=300)
    consumer.close(timeout_ms=100)


def test_offsets_of_times(cluster, consumer):
    with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
        for moment in (1000, 2000, 3000):
            producer.send('u', b'v', timestamp_ms=moment).get(SECONDS)
    at = TopicPartition('u', 0)
    found = consumer.offsets_for_times({at: 1500})
    assert (found[at].offset, found[at].timestamp) == (1, 2000)
    assert consumer.offsets_for_times({at: 9000}) == {at: None}
    assert consumer.offsets_for_times({}) == {}


@pytest.mark.parametrize('moment', [-1, '5', None])
def test_a_time_that_is_none_is_refused(consumer, moment):
    with pytest.raises(ValueError, match='topic t partition 0'):
        consumer.offsets_for_times({FIRST: moment})


def test_old_brokers_know_no_times():
    with Cluster(version='0.9', topics={'t': 1}) as cluster, consumer_of(cluster) as made:
        with pytest.raises(UnsupportedVersionError):
            made.offsets_for_times({FIRST: 5})


def test_topics_and_their_partitions(consumer):
    assert consumer.topics() == {'t', 'u'}
    assert consumer.partitions_for_topic('t') == {0, 1}
    assert consumer.partitions_for_topic('none') == set()


@pytest.mark.parametrize(
    'options, is_told',
    [({}, False), ({'exclude_internal_topics': False}, True), ({'dialect': '1.2.1'}, True)],
)
def test_internal_topics_are_told_of_to_who_wants_them(cluster, options, is_told):
    """As 1.2.1 did to all."""
    cluster.create_topic('__consumer_offsets', partitions=1)
    with consumer_of(cluster, **options) as consumer:
        assert ('__consumer_offsets' in consumer.topics()) is is_told


def test_topics_are_asked_for_again_when_a_connection_breaks(cluster, consumer):
    cluster.faults.add(DropResponse(), 'Metadata', times=3)
    assert consumer.topics() == {'t', 'u'}
    cluster.create_topic('new', partitions=1)
    cluster.faults.add(DropResponse(), 'Metadata', times=3)
    assert consumer.partitions_for_topic('new') == {0}
    with cluster.faults.add(DropResponse(), 'Metadata', times=None):
        began = time.monotonic()
        with pytest.raises(KafkaError):
            consumer.topics(timeout_ms=300)
        assert time.monotonic() - began < 10


def test_what_a_fetch_has_told(consumer):
    consumer.assign([FIRST])
    assert consumer.highwater(FIRST) is None
    assert consumer.lag(FIRST) is None
    poll_until(consumer, 4, max_records=4)
    assert consumer.highwater(FIRST) == consumer.last_stable_offset(FIRST) == 10
    assert consumer.lag(FIRST) == 6
    with pytest.raises(AssertionError):
        consumer.highwater(SECOND)


def test_the_client(consumer):
    assert consumer.bootstrap_connected()
    consumer.bootstrap(refresh=True)
    assert consumer._client.cluster.topics() == {'t', 'u'}
    consumer.close()
    assert not consumer.bootstrap_connected()
