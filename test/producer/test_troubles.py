"""What programs and clusters do to a KafkaProducer that is none of its own doing."""

from __future__ import annotations

import sys
import threading

import pytest

from kafka import KafkaProducer
from kafka.errors import KafkaTimeoutError
from kafka.future import Future
from kafka.net.pool import Pool
from kafka.net.settings import NetSettings, parse_servers
from kafka.producer.kafka import _Beginning
from kafka.testing import Cluster, MemoryCluster
from kafka.testing.faults import Delay
from test.simulation.loop import SimLoop


@pytest.fixture
def cluster():
    with Cluster(version='4.4', topics={'t': 1}) as running:
        yield running


# --- callbacks ----------------------------------------------------------------------------------


def failed_check():
    pytest.fail('as a test does in a callback')


@pytest.mark.parametrize('ends', [sys.exit, lambda: 1 / 0, failed_check])
def test_a_callback_that_raises_keeps_nothing_else_from_its_end(cluster, ends, monkeypatch, caplog):
    monkeypatch.setattr(Future, 'error_on_callbacks', True)
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, linger_ms=100_000) as producer:
        first, second = producer.send('t', b'1'), producer.send('t', b'2')
        told = threading.Event()
        first.add_callback(lambda metadata: ends())
        second.add_callback(lambda metadata: told.set())
        producer.flush(60)
        assert told.wait(60) and first.succeeded()
        assert producer.send('t', b'3').add_callback(lambda metadata: None) is not None
        producer.flush(60)
        assert producer._accumulator.is_empty() and not producer._accumulator.memory.used
    assert 'callback' in caplog.text


# --- the beginning ------------------------------------------------------------------------------


def test_transactions_find_the_cluster_when_nothing_else_did(cluster):
    with KafkaProducer(
        bootstrap_servers=cluster.bootstrap, api_version=(2, 8), transactional_id='x'
    ) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        future = producer.send('t', b'v')
        producer.commit_transaction()
        assert future.succeeded()


def test_finding_the_cluster_and_a_topic_have_one_time_limit():
    with MemoryCluster(version='4.4', seed=3, auto_create_topics=False) as cluster:
        cluster.faults.add(Delay(8.0), 'ApiVersions')
        loop = SimLoop(cluster)
        pool = Pool(loop, NetSettings(servers=parse_servers(cluster.bootstrap)))
        with pytest.raises(KafkaTimeoutError):
            loop.run(_Beginning(loop, pool).topic('nope', 10.0), 60.0)
        assert 9.9 < loop.time() < 11.0
        pool.close()
        loop.close()
