"""The modern KafkaConsumer on three brokers: leaders die, logs are cut off, replicas are near.

One broker is enough for the rest: test_consumer_reading.py and its neighbours.
"""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from kafka import KafkaConsumer
from kafka.errors import LogTruncationError
from kafka.protocol.api import ApiKey
from kafka.structs import TopicPartition
from kafka.testing import Cluster as Embedded
from test.integration.consuming import SECONDS, nothing_comes, offsets, take, until, values
from test.integration.judges import Topics
from test.integration.oracles import Confluent

pytestmark = [
    pytest.mark.integration,
    pytest.mark.thorough,
    pytest.mark.brokers(3),
    pytest.mark.releases(since='0.9', some=('0.11.0.3', '4.4.0')),
]

COPIES = {'min.insync.replicas': '1', 'unclean.leader.election.enable': 'true'}


@pytest.fixture
def copied(cluster, new_name):
    """The name of a topic with three partitions of three copies."""
    name = new_name()
    cluster.create_topic(name, 3, 3)
    return name


def numbers(count, first=0):
    return [b'%d' % n for n in range(first, first + count)]


def everything(topic):
    return [TopicPartition(topic, p) for p in range(3)]


def test_partitions_of_three_leaders_are_read(consume, copied, fill):
    fill({copied: {p: numbers(50) for p in range(3)}})
    consumer = consume()
    consumer.assign(everything(copied))
    found = take(consumer, 150)
    assert all(values(found, p) == numbers(50) for p in range(3))
    assert consumer.end_offsets(everything(copied)) == dict.fromkeys(everything(copied), 50)


def test_a_leader_that_is_killed_costs_no_record_and_repeats_none(cluster, consume, copied, fill):
    fill({copied: {p: numbers(50) for p in range(3)}})
    consumer = consume(request_timeout_ms=5000, max_poll_records=10)
    consumer.assign(everything(copied))
    found = take(consumer, 30, max_records=10)
    node = cluster.wait_for_leader(copied, 0)
    cluster.kill(node)
    found += take(consumer, 120, max_records=10)
    cluster.wait_for_leader(copied, 0)
    fill({copied: {0: numbers(10, 50)}})
    found += take(consumer, 10, max_records=10)
    assert values(found, 0) == numbers(60)
    assert values(found, 1) == values(found, 2) == numbers(50)


@pytest.mark.releases(since='0.10')  # on 0.9 librdkafka, which writes here, waits for who hangs
def test_a_leader_that_hangs_is_left(cluster, consume, copied, fill):
    leaders = {p: cluster.wait_for_leader(copied, p) for p in range(3)}
    # Not the one that is asked who leads.
    at, node = next(each for each in leaders.items() if each[1] != cluster.nodes[0])
    fill({copied: {at: numbers(20)}})
    consumer = consume(request_timeout_ms=3000)
    consumer.assign([TopicPartition(copied, at)])
    take(consumer, 20)
    cluster.pause(node)
    try:
        deadline = time.monotonic() + SECONDS
        while cluster.wait_for_leader(copied, at) == node and time.monotonic() < deadline:
            time.sleep(0.2)
        fill({copied: {at: numbers(5, 20)}})
        assert offsets(take(consumer, 5), at) == list(range(20, 25))
    finally:
        cluster.resume(node)


@pytest.mark.embedded
def test_a_reader_with_a_rack_reads_from_the_replica_there():
    """Embedded, because that can be asked who served the records."""
    with Embedded(3, '4.4', racks=('a', 'b', 'c')) as racked:
        racked.create_topic('near', 1, 3)
        found = SimpleNamespace(
            bootstrap=racked.bootstrap, release=SimpleNamespace(version=(4, 4, 0))
        )
        Topics(found).fill({'near': {0: numbers(100)}})
        leader, _ = leader_and_follower(found, 'near')
        near = (leader + 1) % 3
        consumer = KafkaConsumer(
            bootstrap_servers=racked.bootstrap,
            group_id=None,
            auto_offset_reset='earliest',
            client_rack='abc'[near],
        )
        try:
            consumer.assign([TopicPartition('near', 0)])
            assert values(take(consumer, 100)) == numbers(100)
            racked.forget_requests()
            assert nothing_comes(consumer, 1.5)
            asked = [each.node for each in racked.requests if each.api == ApiKey.FETCH]
            assert set(asked) == {near}
        finally:
            consumer.close()


@pytest.mark.real
@pytest.mark.releases(since='2.4', some=('4.4.0',))
def test_a_rack_that_no_replica_is_in_changes_nothing(consume, copied, fill):
    fill({copied: {p: numbers(20) for p in range(3)}})
    consumer = consume(client_rack='nowhere')
    consumer.assign(everything(copied))
    assert len(take(consumer, 60)) == 60


def leader_and_follower(cluster, topic):
    """Return the leader of partition 0 and another replica."""
    from confluent_kafka.admin import AdminClient  # late: runs on brokers alone

    told = AdminClient(Confluent(cluster).config).list_topics(topic, 30).topics[topic]
    partition = told.partitions[0]
    return partition.leader, next(each for each in partition.replicas if each != partition.leader)


@pytest.mark.real  # embedded brokers elect no leader that missed something by themselves
@pytest.mark.releases(since='2.3', some=('4.4.0',))
@pytest.mark.parametrize('policy', ['earliest', 'none'])
def test_a_log_that_was_cut_off_is_noticed(cluster, consume, new_name, fill, policy):
    """A follower that missed records becomes the leader: the reader is ahead of the new log."""
    name = new_name()
    cluster.create_topic(name, 1, 2, config=COPIES)
    place = TopicPartition(name, 0)
    fill({name: {0: numbers(20)}})
    consumer = consume(auto_offset_reset=policy, request_timeout_ms=5000)
    consumer.assign([place])
    consumer.seek(place, 0)
    take(consumer, 20)
    first, second = leader_and_follower(cluster, name)
    cluster.kill(second)
    fill({name: {0: [b'lost %d' % n for n in range(10)]}})
    assert len(take(consumer, 10)) == 10
    cluster.kill(first)
    cluster.restart(second)
    assert cluster.wait_for_leader(name, 0) == second
    fill({name: {0: [b'instead %d' % n for n in range(15)]}})
    if policy == 'none':
        with pytest.raises(LogTruncationError) as caught:
            until(lambda: False, consumer, seconds=SECONDS)
        assert caught.value.divergent_offsets[place].offset == 20
        consumer.seek(place, 20)
    assert values(take(consumer, 15)) == [b'instead %d' % n for n in range(15)]
