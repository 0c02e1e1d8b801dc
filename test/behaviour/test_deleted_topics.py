"""When Metadata may create a topic: for one that was never known, and for records that wait."""

from __future__ import annotations

import random

import pytest

from kafka.net.pool import Pool
from kafka.net.settings import NetSettings, parse_servers
from kafka.protocol.admin.topics import DeleteTopicsRequest, DeleteTopicState
from kafka.testing import MemoryCluster
from test.simulation.loop import SimLoop


@pytest.fixture
def sim():
    """Return a cluster in memory, a loop and a pool on it, bootstrapped."""
    with MemoryCluster(version='4.4', brokers=1, seed=1, topics={'t': 3}) as cluster:
        loop = SimLoop(cluster)
        settings = NetSettings(servers=parse_servers(cluster.bootstrap))
        pool = Pool(loop, settings, random.Random(5))
        loop.run(pool.bootstrap(), 60)
        yield cluster, loop, pool
        pool.close()
        loop.close()


def delete(loop, pool, topic):
    state = DeleteTopicState(name=topic, topic_id=bytes(16))
    loop.run(pool.send(DeleteTopicsRequest(topics=[state], timeout_ms=1000)), 10)


@pytest.mark.parametrize('refresh', ['whole', 'of one topic'])
def test_a_refresh_creates_no_deleted_topic_again(sim, refresh):
    cluster, loop, pool = sim
    cluster.create_topic('u')
    for topic in ('t', 'u'):
        loop.run(pool.wait_for_topic(topic, 30), 60)
    delete(loop, pool, 'u')
    for _ in range(3):
        loop.run(pool.refreshed() if refresh == 'whole' else pool.metadata(['u']), 10)
    assert 'u' not in cluster.state.topics
    assert pool.cluster.topics() == {'t'}
    assert pool.cluster.topic_id('u') == bytes(16)


def test_a_new_topic_is_created_beside_a_deleted_one(sim):
    cluster, loop, pool = sim
    loop.run(pool.wait_for_topic('t', 30), 60)
    delete(loop, pool, 't')
    loop.run(pool.refreshed(), 10)
    pool.want_topic('new')
    for _ in range(3):
        loop.run(pool.refreshed(), 10)
    assert set(cluster.state.topics) == {'new'}


@pytest.mark.parametrize('need', ['need_topic', 'wait_for_topic'])
def test_a_record_for_a_deleted_topic_creates_it_again(sim, need):
    cluster, loop, pool = sim
    loop.run(pool.wait_for_topic('t', 30), 60)
    delete(loop, pool, 't')
    loop.run(pool.refreshed(), 10)
    if need == 'need_topic':
        pool.need_topic('t')
        loop.run(pool.refreshed(), 10)
    else:
        loop.run(pool.wait_for_topic('t', 30), 60)
    assert set(cluster.state.topics) == {'t'}
