"""KafkaProducer when what it knows of the cluster is no longer true.

Nobody whom it knows is there (KIP-899), a broker says that it has to begin anew (KIP-1102), leaders
move and the old one names the new one (KIP-951).
"""

from __future__ import annotations

import contextlib

import pytest

from kafka import KafkaProducer
from kafka.errors import KafkaTimeoutError, RebootstrapRequiredError
from kafka.protocol.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafka.testing import Cluster
from kafka.testing.errors import NOT_LEADER_OR_FOLLOWER
from kafka.testing.faults import Error
from test.hostile_servers import nobody

ANEW = 'asking the bootstrap servers'


@pytest.fixture
def cluster():
    with Cluster(version='4.4', brokers=2, topics={'t': 1, 'u': 1}) as running:
        yield running


@contextlib.contextmanager
def producer_on(cluster, **options):
    given = {'retry_backoff_ms': 5, 'reconnect_backoff_ms': 5, **options}
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, **given) as producer:
        yield producer


class Lies:
    """Answers Metadata in place of a cluster for as long as ``answer`` is set."""

    def __init__(self, cluster):
        self.answer = None
        self.told = 0
        cluster.control('Metadata', self._control)

    def _control(self, call):
        if self.answer is None:
            return None
        self.told += 1
        return self.answer


def somewhere_else(port):
    """Return an answer after which only a broker is known that is not there."""
    partition = MetadataResponsePartition(
        error_code=0, partition_index=0, leader_id=7, replica_nodes=[7], isr_nodes=[7]
    )
    topic = MetadataResponseTopic(error_code=0, name='t', partitions=[partition])
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=7, host='127.0.0.1', port=port)],
        controller_id=7,
        topics=[topic],
    )


@pytest.fixture(name='nobody')
def port_of_nobody():
    with nobody() as address:
        yield int(address.rsplit(':', 1)[1])


def asked(cluster):
    return [each for each in cluster.requests if each.api.name == 'METADATA']


def test_when_all_known_brokers_are_gone_the_servers_are_asked_again(cluster, nobody, caplog):
    lies = Lies(cluster)
    lies.answer = somewhere_else(nobody)
    with producer_on(cluster) as producer:
        lies.answer = None
        assert producer.send('t', b'v').get(60).offset == 0
    assert ANEW in caplog.text


def test_with_the_strategy_none_they_are_not(cluster, nobody, caplog):
    lies = Lies(cluster)
    lies.answer = somewhere_else(nobody)
    options = {
        'metadata_recovery_strategy': 'none',
        'max_block_ms': 800,
        'request_timeout_ms': 400,
        'delivery_timeout_ms': 800,
    }
    with producer_on(cluster, **options) as producer:
        lies.answer = None
        cluster.forget_requests()
        with pytest.raises(KafkaTimeoutError):
            producer.send('t', b'v').get(60)
        assert asked(cluster) == []
    assert ANEW not in caplog.text


def test_a_broker_may_send_the_client_back_to_the_servers(cluster, caplog):
    lies = Lies(cluster)
    with producer_on(cluster) as producer:
        producer.send('t', b'v').get(60)
        with cluster.faults.add(Error(RebootstrapRequiredError.errno), 'Metadata') as fault:
            assert producer.partitions_for('u') == {0}
        assert fault.hits == 1
        assert producer.send('u', b'v').get(60).offset == 0
    assert lies.told == 0
    assert ANEW in caplog.text


def test_with_the_strategy_none_that_is_an_error_each_time(cluster, caplog):
    with producer_on(cluster, metadata_recovery_strategy='none') as producer:
        producer.send('t', b'v').get(60)
        error = Error(RebootstrapRequiredError.errno)
        with cluster.faults.add(error, 'Metadata', times=None):
            for _ in range(2):
                with pytest.raises(RebootstrapRequiredError):
                    producer.partitions_for('u')
        assert producer.partitions_for('u') == {0}
    assert ANEW not in caplog.text


def as_it_was(cluster, leader):
    """Return an answer from before the leader moved."""
    partition = MetadataResponsePartition(
        error_code=0,
        partition_index=0,
        leader_id=leader,
        leader_epoch=0,
        replica_nodes=[0, 1],
        isr_nodes=[0, 1],
    )
    hosts = [each.rpartition(':') for each in cluster.bootstrap.split(',')]
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node_id, host=host, port=int(port))
            for node_id, (host, _, port) in enumerate(hosts)
        ],
        controller_id=0,
        topics=[MetadataResponseTopic(error_code=0, name='t', partitions=[partition])],
    )


def test_the_new_leader_that_an_answer_names_is_used_at_once(cluster):
    lies = Lies(cluster)
    with producer_on(cluster) as producer:
        producer.send('t', b'0').get(60)
        old = cluster.leader('t', 0)
        lies.answer = as_it_was(cluster, old)
        cluster.move_leader('t', 0, node_id=1 - old)
        cluster.forget_requests()
        assert producer.send('t', b'1').get(60).offset == 1
        produced = [each.node for each in cluster.requests if each.api.name == 'PRODUCE']
        assert produced == [old, 1 - old]


def test_without_a_hint_it_is_asked_who_leads(cluster):
    with producer_on(cluster) as producer:
        producer.send('t', b'0').get(60)
        cluster.forget_requests()
        with cluster.faults.add(Error(NOT_LEADER_OR_FOLLOWER), 'Produce') as fault:
            assert producer.send('t', b'1').get(60).offset == 1
        assert fault.hits == 1
        assert asked(cluster)
