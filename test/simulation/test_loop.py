"""The loop of simulations keeps the contract of the loop, and a seed replays a run."""

from __future__ import annotations

import random

import pytest

from kafka.errors import IllegalStateError, KafkaConnectionError, KafkaTimeoutError
from kafka.net.pool import Pool
from kafka.net.settings import NetSettings, parse_servers
from kafka.protocol.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka.record.default_records import encode_batch
from kafka.record.memory_records import MemoryRecords
from kafka.testing import MemoryCluster
from test.simulation.loop import SimLoop


async def returns(value):
    return value


@pytest.fixture
def cluster():
    with MemoryCluster(version='4.4', brokers=3, seed=7, topics={'t': 3}) as made:
        yield made


@pytest.fixture
def loop(cluster):
    made = SimLoop(cluster)
    yield made
    made.close()


def pool_of(loop, cluster, seed=7, **settings):
    servers = parse_servers(cluster.bootstrap)
    return Pool(loop, NetSettings(servers=servers, **settings), random.Random(seed))


def produce(topic, partition, value, acks=-1):
    records = encode_batch([(1_600_000_000_000, None, value, [])])
    data = PartitionProduceData(index=partition, records=records)
    topics = [TopicProduceData(name=topic, partition_data=[data])]
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=topics)


def values(cluster, topic, partition):
    """Return what the log of a partition holds."""
    log = cluster.state.topics[topic].partitions[partition].log
    return [
        record.value
        for batch in log.batches
        for read in MemoryRecords(batch.data)
        for record in read
    ]


def test_time_is_virtual(loop):
    began = loop.time()
    loop.run(loop.sleep(3600), 4000)
    assert loop.time() == began + 3600


def test_a_time_out_is_exact(loop):
    began = loop.time()
    with pytest.raises(KafkaTimeoutError):
        loop.run(loop.sleep(60), 10)
    assert loop.time() == began + 10


def test_results_and_errors_are_passed(loop):
    async def fail():
        raise KeyError('x')

    assert loop.run(returns(1), 1) == 1
    with pytest.raises(KeyError):
        loop.run(fail(), 1)


def test_a_call_that_blocks_inside_a_callback_is_refused(loop):
    async def outer():
        loop.wait(lambda: False, 1)

    with pytest.raises(IllegalStateError, match='in a callback'):
        loop.run(outer(), 1)


def test_every_call_after_close_is_refused(loop):
    loop.close()
    with pytest.raises(IllegalStateError, match='closed'):
        loop.wait(lambda: False, 1)
    with pytest.raises(IllegalStateError, match='closed'):
        loop.call_threadsafe(print)


def test_bootstrap_metadata_and_a_produce(loop, cluster):
    pool = pool_of(loop, cluster)
    loop.run(pool.bootstrap(), 60)
    loop.run(pool.wait_for_topic('t', 10), 20)
    assert pool.cluster.partitions_for_topic('t') == {0, 1, 2}
    answer = loop.run(pool.send(produce('t', 1, b'hello'), highest=12), 10)
    assert answer.responses[0].partition_responses[0].error_code == 0
    assert values(cluster, 't', 1) == [b'hello']
    pool.close()


def session_of(seed):
    """Return what happened in a run with brokers that die, event by event."""
    with MemoryCluster(version='4.4', brokers=3, seed=seed, topics={'t': 3}) as cluster:
        loop = SimLoop(cluster)
        pool = pool_of(loop, cluster, seed)
        loop.run(pool.bootstrap(), 60)
        loop.run(pool.wait_for_topic('t', 10), 20)
        cluster.kill(cluster.leader('t', 0))
        written = 0
        while written < 5:
            try:
                answer = loop.run(pool.send(produce('t', 0, b'%d' % written), highest=12), 10)
            except KafkaConnectionError:
                loop.run(pool.refreshed(), 10)
                continue
            if answer.responses[0].partition_responses[0].error_code:
                loop.run(pool.refreshed(), 10)
            else:
                written += 1
        pool.close()
        loop.close()
        assert values(cluster, 't', 0) == [b'0', b'1', b'2', b'3', b'4']
        return cluster.trace


def test_a_seed_replays_a_run():
    assert session_of(3) == session_of(3)
    assert session_of(3) != session_of(4)
