"""The evented KafkaClient and BrokerConnection on real brokers, as programs of 1.x and 2.x have it.

``KAFKA_VERSION`` says on which releases, else 0.9.0.1, 0.10.2.2, 2.8.2 and 4.4.0. Those on secured
listeners are in test_security_evented.py.
"""

from __future__ import annotations

import socket
import time

import pytest

from kafka import BrokerConnection
from kafka.errors import KafkaConnectionError, KafkaError, NodeNotReadyError
from kafka.evented.client import KafkaClient
from kafka.metrics import Metrics
from kafka.protocol.admin import ListGroupsRequest
from kafka.protocol.commit import (
    GroupCoordinatorRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
from kafka.protocol.fetch import FetchRequest
from kafka.protocol.message import Message
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.offset import OffsetRequest
from kafka.protocol.produce import ProduceRequest
from test.integration.oracles import Confluent

pytestmark = [
    pytest.mark.integration,
    pytest.mark.releases(since='0.9', some=('0.9.0.1', '0.10.2.2', '2.8.2', '4.4.0')),
]

SECONDS = 60
#: What a broker says of a group that it has just begun to coordinate.
NOT_YET_COORDINATOR = {14, 15, 16}


@pytest.fixture
def evented(cluster):
    made = KafkaClient(bootstrap_servers=cluster.bootstrap, client_id='evented')
    yield made
    made.close()


def until(client, is_so):
    """Poll until something is so; fail when that takes too long."""
    ends_at = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < ends_at, client
        client.poll(timeout_ms=50)


def ask(client, node_id, request):
    """Send a request when the node is ready, poll for the answer and return it."""
    until(client, lambda: client.ready(node_id))
    future = client.send(node_id, request)
    client.poll(timeout_ms=SECONDS * 1000, future=future)
    assert future.is_done
    if future.failed():
        raise future.exception
    return future.value


def leader(client, topic, partition=0):
    client.set_topics([topic])
    until(client, lambda: client.cluster.leader_for_partition((topic, partition)) not in (None, -1))
    return client.cluster.leader_for_partition((topic, partition))


def message_set(*values):
    return [(0, Message(value).encode()) for value in values]


def test_structs_of_1_x_write_and_read(cluster, evented, topic):
    """Versions that 4.x has dropped are translated; what came is what other clients read."""
    node_id = leader(evented, topic)
    produced = ask(
        evented,
        node_id,
        ProduceRequest[0](1, 10000, [(topic, [(0, message_set(b'one', b'two'))])]),
    )
    assert produced.topics == [(topic, [(0, 0, 0)])]
    unanswered = ProduceRequest[0](0, 10000, [(topic, [(0, message_set(b'three'))])])
    assert evented.send(node_id, unanswered).value is None
    offsets = OffsetRequest[0](-1, [(topic, [(0, -1, 1)])])

    def end():
        ((_, ((_, error, ends),)),) = ask(evented, node_id, offsets).topics
        assert error == 0
        return ends[0]

    until(evented, lambda: end() == 3)
    fetch = FetchRequest[0](-1, 500, 1, [(topic, [(0, 0, 1 << 20)])])
    ((_, ((_, error, high_watermark, found),)),) = ask(evented, node_id, fetch).topics
    assert (error, high_watermark) == (0, 3)
    assert [each[2].value for each in found] == [b'one', b'two', b'three']
    assert Confluent(cluster).read(topic, 3) == [(None, b'one'), (None, b'two'), (None, b'three')]


@pytest.mark.parametrize('version', [0, 1, 2])
def test_each_version_of_produce_and_fetch(evented, topic, version):
    """A class of a later version than the broker has is lowered to what it takes, too."""
    node_id = leader(evented, topic)
    magic = 1 if version == 2 else 0
    records = [(0, Message(b'value', key=b'key', magic=magic).encode())]
    request = ProduceRequest[version](-1, 10000, [(topic, [(0, records)])])
    if version == 2 and (evented.config['api_version'] or (0,)) < (0, 10):
        with pytest.raises(KafkaError):  # timestamps cannot be lowered
            ask(evented, node_id, request)
        return
    ((_, ((_, error, *_),)),) = ask(evented, node_id, request).topics
    assert error == 0
    fetch = FetchRequest[version](-1, 500, 1, [(topic, [(0, 0, 1 << 20)])])
    ((_, ((_, error, _, found),)),) = ask(evented, node_id, fetch).topics
    assert (error, [(each[2].key, each[2].value) for each in found]) == (0, [(b'key', b'value')])


def test_a_coordinator_is_found_and_keeps_offsets(evented, topic, new_name):
    group = new_name()

    def coordinator():
        answer = ask(evented, evented.least_loaded_node(), GroupCoordinatorRequest[0](group))
        if answer.error_code:
            return None
        assert evented.cluster.add_group_coordinator(group, answer)
        return answer.coordinator_id

    until(evented, lambda: coordinator() is not None)
    node_id = evented.cluster.coordinator_for_group(group)
    offsets = [(topic, [(0, 17, 'mine'), (1, 4, '')])]

    def commit():
        committed = ask(evented, node_id, OffsetCommitRequest[2](group, -1, '', -1, offsets))
        ((_, codes),) = committed.topics
        if {code for _, code in codes} & NOT_YET_COORDINATOR:
            return False
        assert sorted(codes) == [(0, 0), (1, 0)]
        return True

    until(evented, commit)
    ((_, found),) = ask(evented, node_id, OffsetFetchRequest[1](group, [(topic, [0, 1])])).topics
    assert sorted(found) == [(0, 17, 'mine', 0), (1, 4, '', 0)]
    assert ask(evented, node_id, ListGroupsRequest[0]()).error_code == 0


def test_the_release_is_told(cluster, evented):
    """By the constructor, by the client and by a connection."""
    expected = cluster.release.version[:2]
    found = evented.check_version(timeout=SECONDS)
    told = evented.config['api_version'][:2]
    assert told == found[:2]
    # Later releases that serve the same versions cannot be told apart.
    assert told <= expected
    assert told >= min(expected, (0, 9))
    node_id = evented.least_loaded_node()
    assert evented.connected(node_id)
    assert evented.api_version(MetadataRequest, max_version=1) in (0, 1)


def test_least_loaded_node_prefers_what_is_connected(evented):
    node_id = evented.least_loaded_node()
    assert node_id in {broker.nodeId for broker in evented.cluster.brokers()}
    until(evented, lambda: evented.ready(node_id))
    assert evented.least_loaded_node() == node_id
    assert evented.connection_delay(node_id) == 999999999
    assert evented.in_flight_request_count() == 0


@pytest.mark.parametrize('version', [(0, 8, 2), (0, 9), (0, 10)])
def test_a_fixed_version_older_than_what_the_broker_takes(cluster, topic, version):
    """It is a wish: nothing is asked in the constructor, and requests are translated."""
    client = KafkaClient(bootstrap_servers=cluster.bootstrap, api_version=version)
    try:
        assert client.config['api_version'] == version
        node_id = leader(client, topic)
        request = ProduceRequest[0](1, 10000, [(topic, [(0, message_set(b'value'))])])
        assert ask(client, node_id, request).topics == [(topic, [(0, 0, 0)])]
    finally:
        client.close()


def test_metrics_of_a_client(cluster):
    registry = Metrics()
    client = KafkaClient(bootstrap_servers=cluster.bootstrap, metrics=registry)
    try:
        node_id = client.least_loaded_node()
        ask(client, node_id, MetadataRequest[0]([]))
        found = {
            (name.group, name.name): metric.value() for name, metric in registry.metrics.items()
        }
        assert found['client-metrics', 'connection-count'] == 1
        assert found['client-metrics', 'request-latency-avg'] > 0
        assert found['client-node-metrics.node-%s' % node_id, 'request-latency-max'] > 0
    finally:
        client.close()


# ------------------------------------------------------------ a connection by itself


def connected(cluster, **configs):
    host, port = cluster.bootstrap.split(',')[0].rsplit(':', 1)
    conn = BrokerConnection(host, int(port), socket.AF_UNSPEC, **configs)
    ends_at = time.monotonic() + SECONDS
    while not conn.connected():
        assert time.monotonic() < ends_at
        conn.connect()
        time.sleep(0.005)
    return conn


def received(conn):
    ends_at = time.monotonic() + SECONDS
    while conn.in_flight_requests:
        assert time.monotonic() < ends_at
        if conn.recv() is None:
            time.sleep(0.005)


def test_a_connection_by_itself(cluster, topic):
    """Nothing is asked before check_version(); from then on requests are translated."""
    changes = []
    conn = connected(cluster, state_change_callback=lambda each: changes.append(each.state))
    try:
        metadata = conn.send(MetadataRequest[0]([topic]))
        received(conn)
        assert [found[1] for found in metadata.value.topics] == [topic]
        assert conn.check_version(timeout=SECONDS)[:2] <= cluster.release.version[:2]
        ask_for = FetchRequest[0](-1, 100, 1, [(topic, [(0, 0, 1 << 20)])])
        futures = [conn.send(ask_for) for _ in range(3)]
        received(conn)
        assert all(future.succeeded() for future in futures)
        conn.close()
        assert conn.disconnected()
        assert str(changes[0]) == '<connecting>'
        assert str(changes[-1]) == '<disconnected>'
        assert isinstance(conn.send(ask_for).exception, KafkaConnectionError)
    finally:
        conn.close()


def test_a_connection_as_in_2_x(cluster):
    """Blocking to connect, lists to receive, futures for the program to complete."""
    host, port = cluster.bootstrap.split(',')[0].rsplit(':', 1)
    release = cluster.release.version[:2]
    conn = BrokerConnection(host, int(port), socket.AF_UNSPEC, api_version=release)
    try:
        assert conn.connect_blocking(timeout=SECONDS)
        version = 1 if release >= (0, 10) else 0  # nothing is translated before check_version()
        future = conn.send(MetadataRequest[version]([]), blocking=True)
        ends_at = time.monotonic() + SECONDS
        answers = []
        while not answers and time.monotonic() < ends_at:
            answers = conn.recv()
            time.sleep(0.005)
        ((response, same),) = answers
        assert same is future
        same.success(response)
        assert future.value.brokers
    finally:
        conn.close()


# ------------------------------------------------------------ a broker that dies


@pytest.mark.brokers(1)
def test_a_broker_that_dies_and_comes_back(cluster, evented, topic):
    """What was asked fails, nothing hangs, and the client finds the broker again by itself."""
    node_id = leader(evented, topic)
    until(evented, lambda: evented.ready(node_id))
    waiting = evented.send(
        node_id, FetchRequest[0](-1, 30000, 1 << 20, [(topic, [(0, 0, 1 << 20)])])
    )
    cluster.kill(0)
    until(evented, lambda: waiting.is_done)
    assert isinstance(waiting.exception, (KafkaConnectionError, NodeNotReadyError))
    until(evented, lambda: not evented.connected(node_id))
    began = time.monotonic()
    evented.poll(timeout_ms=300)
    assert time.monotonic() - began < 10
    cluster.restart(0)
    request = ProduceRequest[0](1, 10000, [(topic, [(0, message_set(b'again'))])])

    def is_written():
        try:
            ((_, ((_, error, _),)),) = ask(evented, leader(evented, topic), request).topics
        except KafkaError:
            return False
        return error == 0

    until(evented, is_written)
