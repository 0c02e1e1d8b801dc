"""The network floor on brokers: the cluster found, every route gone, leaders that die."""

from __future__ import annotations

import time

import pytest

from kafka.errors import (
    KafkaError,
    NoBrokersAvailable,
    UnsupportedVersionError,
)
from kafka.net.loop.loop import Loop
from kafka.net.pool import Pool
from kafka.net.settings import NetSettings, parse_servers
from kafka.protocol.admin.groups import DescribeGroupsRequest
from kafka.protocol.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafka.protocol.metadata import MetadataRequest, MetadataRequestTopic
from kafka.protocol.transaction import InitProducerIdRequest

pytestmark = [pytest.mark.integration]

SECONDS = 60


@pytest.fixture
def loop():
    made = Loop()
    yield made
    made.close()


@pytest.fixture
def pool(loop, cluster):
    made = pool_of(loop, cluster)
    loop.run(made.bootstrap(SECONDS), SECONDS + 5)
    yield made
    loop.call_threadsafe(made.close)


def pool_of(loop, cluster, **settings):
    return Pool(loop, NetSettings(servers=parse_servers(cluster.bootstrap), **settings))


def end_offset(topic, partition):
    asked = [ListOffsetsPartition(partition_index=partition, timestamp=-1)]
    return ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=asked)]
    )


def test_the_cluster_is_found_and_a_topic_read_about(loop, pool, topic):
    loop.run(pool.wait_for_topic(topic, SECONDS), SECONDS + 5)
    assert pool.cluster.partitions_for_topic(topic)
    assert len(pool.cluster.brokers()) == 1
    answer = loop.run(pool.send(end_offset(topic, 0)), SECONDS)
    assert answer.topics[0].partitions[0].error_code == 0


def test_a_topic_comes_into_being(loop, pool, new_name):
    loop.run(pool.wait_for_topic(new_name(), SECONDS), SECONDS + 5)


@pytest.mark.releases(since='0.8.2')
def test_a_coordinator_is_found_and_asked(loop, pool, new_name):
    group = new_name()
    node = loop.run(pool.coordinator(0, group), SECONDS)
    assert pool.cluster.broker_metadata(node) is not None
    try:
        answer = loop.run(pool.send(DescribeGroupsRequest(groups=[group])), SECONDS)
    except UnsupportedVersionError:
        return  # 0.8.2 has no such groups
    assert answer.groups[0].error_code in (0, 14, 15, 16, 69)


@pytest.mark.releases(since='0.11')
def test_the_coordinator_of_a_transactional_id_answers(loop, pool, new_name):
    request = InitProducerIdRequest(transactional_id=new_name(), transaction_timeout_ms=10000)
    for _ in range(100):
        answer = loop.run(pool.send(request), SECONDS)
        if not answer.error_code:
            break
        pool.forget_coordinator(1, request.transactional_id)
        loop.wait(lambda: False, 0.2)
    assert answer.producer_id >= 0


def test_many_requests_in_one_pipeline(loop, pool, topic):
    async def ask():
        return await pool.send(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]))

    answers = loop.run(loop.gather(*[ask() for _ in range(200)]), SECONDS)
    assert [[each.name for each in answer.topics] for answer in answers] == [[topic]] * 200


def test_features_of_the_cluster(loop, pool, cluster):
    features = pool.finalized_features()
    assert ('metadata.version' in features) == (cluster.release.version >= (3, 0))


def test_an_idle_connection_is_closed_and_made_anew(loop, cluster):
    pool = pool_of(loop, cluster, idle_timeout=0.5)
    loop.run(pool.bootstrap(SECONDS), SECONDS + 5)
    loop.run(pool.send(MetadataRequest(topics=[])), SECONDS)
    assert loop.wait(
        lambda: not any(link.is_ready for link in pool._connections.common.values()), SECONDS
    )
    loop.run(pool.send(MetadataRequest(topics=[])), SECONDS)
    loop.call_threadsafe(pool.close)


def test_nobody_there(loop, cluster):
    pool = Pool(loop, NetSettings(servers=(('127.0.0.1', 1),)))
    began = time.monotonic()
    with pytest.raises(NoBrokersAvailable) as raised:
        loop.run(pool.bootstrap(1), SECONDS)
    assert time.monotonic() - began < 5
    assert raised.value.attempts[0].stage == 'TCP'


@pytest.mark.brokers(3)
@pytest.mark.thorough
@pytest.mark.releases(since='0.8.2', some=('0.9.0.1', '4.4.0'))
def test_a_leader_that_dies_is_replaced(loop, pool, cluster, new_name):
    topic = new_name()
    cluster.create_topic(topic, 3)
    loop.run(pool.wait_for_topic(topic, SECONDS), SECONDS + 5)
    for partition in range(3):
        loop.run(pool.send(end_offset(topic, partition)), SECONDS)
    old = pool.cluster.leader_for_partition((topic, 0))
    cluster.kill(old)
    try:
        deadline = time.monotonic() + SECONDS
        while True:
            assert time.monotonic() < deadline
            try:
                answer = loop.run(pool.send(end_offset(topic, 0), timeout=5), 10)
            except KafkaError:
                loop.run(pool.refreshed(), SECONDS)
                continue
            if not answer.topics[0].partitions[0].error_code:
                break
            loop.run(pool.refreshed(), SECONDS)
        assert pool.cluster.leader_for_partition((topic, 0)) != old
    finally:
        cluster.restart(old)
