"""The producer, client and connection examples of the 1.2.1 document, as a program would run them.

Each makes the calls of the document with its spelling; the broker's address and the names of topics
are the test's. What was written is read by confluent-kafka. Which test is which section stands in
documented.py.
"""

from __future__ import annotations

import json
import socket
import time

import pytest

from kafka import BrokerConnection, KafkaClient, KafkaProducer
from kafka.client import KafkaClient as AsyncClient
from kafka.errors import KafkaError, KafkaTimeoutError
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.produce import ProduceRequest
from test.integration.documented import program
from test.integration.fixtures import offset
from test.integration.oracles import Confluent

pytestmark = [
    pytest.mark.integration,
    pytest.mark.releases(since='0.9', some=('0.9.0.1', '4.4.0')),
]


def contents(cluster, topic, count):
    """Return (key, value) pairs of both partitions, sorted, as confluent-kafka reads them."""
    found = []
    client = KafkaClient(cluster.bootstrap)
    try:
        for partition in (0, 1):
            end = offset(client, topic, partition)
            if end:
                found += Confluent(cluster).read(topic, end, partition=partition)
    finally:
        client.close()
    assert len(found) == count
    return sorted(found, key=lambda pair: (pair[0] or b'', pair[1]))


# --- README -------------------------------------------------------------------------------------


def test_messages_in_the_background_and_one_that_is_waited_for(cluster, topic):
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap)
    for _ in range(100):
        producer.send(topic, b'some_message_bytes')
    # Block until all pending messages are sent
    producer.flush()
    # Block until a single message is sent (or timeout)
    producer.send(topic, b'another_message').get(timeout=60)
    # Use a key for hashed-partitioning
    future = producer.send(topic, key=b'foo', value=b'bar')
    producer.close()
    assert future.succeeded()
    expected = [(None, b'another_message'), *[(None, b'some_message_bytes')] * 100]
    assert contents(cluster, topic, 102) == [*expected, (b'foo', b'bar')]


def test_json_keys_and_compression(cluster, topic):
    # Serialize json messages
    producer = KafkaProducer(
        bootstrap_servers=cluster.bootstrap,
        value_serializer=lambda v: json.dumps(v).encode('utf-8'),
    )
    producer.send(topic, {'foo': 'bar'})
    producer.close()
    # Serialize string keys
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, key_serializer=str.encode)
    producer.send(topic, key='ping', value=b'1234')
    producer.close()
    # Compress messages
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, compression_type='gzip')
    for i in range(1000):
        producer.send(topic, b'msg %d' % i)
    producer.close()
    found = contents(cluster, topic, 1002)
    assert found[-1] == (b'ping', b'1234')
    assert (None, b'{"foo": "bar"}') in found
    assert {(None, b'msg %d' % i) for i in range(1000)} <= set(found)


def test_the_program_of_the_readme_may_end_without_closing(cluster, topic, tmp_path):
    """Its last line waits; what was sent before it is written."""
    done = program(
        tmp_path,
        """
        import sys
        from kafka import KafkaProducer
        producer = KafkaProducer(bootstrap_servers=sys.argv[1])
        for _ in range(100):
            producer.send(sys.argv[2], b'some_message_bytes')
        producer.flush()
        print(producer.send(sys.argv[2], b'another_message').get(timeout=60).topic)
        """,
        cluster.bootstrap,
        topic,
    )
    assert (done.returncode, done.stderr) == (0, b'')
    assert done.stdout.decode() == topic + '\n'
    assert len(contents(cluster, topic, 101)) == 101


# --- Usage: KafkaProducer -----------------------------------------------------------------------


def test_the_usage_of_a_producer(cluster, topic):
    producer = KafkaProducer(bootstrap_servers=[cluster.bootstrap])

    # Asynchronous by default
    future = producer.send(topic, b'raw_bytes')

    # Block for 'synchronous' sends
    try:
        record_metadata = future.get(timeout=10 * 6)
    except KafkaError as error:
        raise AssertionError from error

    # Successful result returns assigned partition and offset
    assert record_metadata.topic == topic
    assert record_metadata.partition in (0, 1)
    assert record_metadata.offset == 0

    # produce keyed messages to enable hashed partitioning
    producer.send(topic, key=b'foo', value=b'bar')

    # produce asynchronously
    for _ in range(100):
        producer.send(topic, b'msg')

    # block until all async messages are sent
    producer.flush()
    producer.close()
    assert (b'foo', b'bar') in contents(cluster, topic, 102)


def test_objects_through_serializers_and_retries(cluster, topic):
    msgpack = pytest.importorskip('msgpack', reason='the package msgpack is not installed')
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, value_serializer=msgpack.dumps)
    producer.send(topic, {'key': 'value'})
    producer.close()
    assert contents(cluster, topic, 1) == [(None, msgpack.dumps({'key': 'value'}))]


def test_json_for_ascii_and_configured_retries(cluster, topic):
    producer = KafkaProducer(
        bootstrap_servers=cluster.bootstrap,
        value_serializer=lambda m: json.dumps(m).encode('ascii'),
    )
    producer.send(topic, {'key': 'value'})
    producer.close()
    # configure multiple retries
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, retries=5)
    assert producer.config['retries'] == 5
    producer.send(topic, b'retried')
    producer.close()
    assert contents(cluster, topic, 2) == [(None, b'retried'), (None, b'{"key": "value"}')]


# --- API: KafkaProducer -------------------------------------------------------------------------


def test_promises_of_the_producer(cluster, topic):
    """Acks, batching off, partitioner's arguments, timestamps, limits, as the options say."""
    seen = []

    def partitioner(key_bytes, all_partitions, available_partitions):
        seen.append((key_bytes, list(all_partitions), sorted(available_partitions)))
        return all_partitions[-1]

    producer = KafkaProducer(
        bootstrap_servers=cluster.bootstrap,
        acks=0,
        batch_size=0,
        linger_ms=5,
        partitioner=partitioner,
        key_serializer=str.encode,
        client_id='documented',
    )
    assert producer.partitions_for(topic) == {0, 1}
    metadata = producer.send(topic, b'value', 'key', timestamp_ms=1460000000000).get(timeout=60)
    assert (metadata.partition, metadata.offset) == (1, -1)
    assert seen == [(b'key', [0, 1], [0, 1])]
    with pytest.raises(AssertionError):
        producer.send(topic, 'text', 'key')
    producer.close()
    ends_at = time.monotonic() + 60
    while time.monotonic() < ends_at:
        try:
            assert contents(cluster, topic, 1) == [(b'key', b'value')]
            return
        except AssertionError:
            time.sleep(0.2)
    assert contents(cluster, topic, 1) == [(b'key', b'value')]


def test_flush_ends_lingering_and_completes_what_was_sent(cluster, topic):
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, linger_ms=60000, acks='all')
    futures = [producer.send(topic, b'%d' % i, partition=0) for i in range(10)]
    assert not any(future.is_done for future in futures)
    producer.flush()
    assert [future.value.offset for future in futures] == list(range(10))
    producer.close()


def test_without_metadata_send_raises_in_time():
    with socket.socket() as nobody:
        nobody.bind(('127.0.0.1', 0))
        address = '127.0.0.1:%d' % nobody.getsockname()[1]
        producer = KafkaProducer(bootstrap_servers=address, api_version='0.9', max_block_ms=300)
        began = time.monotonic()
        with pytest.raises(KafkaTimeoutError):
            producer.send('topic', b'value')
        with pytest.raises(KafkaTimeoutError):
            producer.partitions_for('topic')
        assert 0.25 < time.monotonic() - began < 20
        producer.close(timeout=1)


# --- API: KafkaClient, BrokerConnection; Protocol -------------------------------------------------


def test_the_calls_of_the_client(cluster, topic):
    """In the order in which the document lists what a program does with one."""
    client = AsyncClient(bootstrap_servers=cluster.bootstrap)
    try:
        node_id = client.least_loaded_node()
        assert not client.connected(node_id)
        assert not client.is_disconnected(node_id)
        assert client.connection_delay(node_id) == 0
        future = client.add_topic(topic)
        client.poll(timeout_ms=60000, future=future)
        assert client.cluster.partitions_for_topic(topic) == {0, 1}
        ends_at = time.monotonic() + 60
        while not client.ready(node_id) and time.monotonic() < ends_at:
            client.poll(timeout_ms=100)
        assert client.is_ready(node_id)
        assert client.connection_delay(node_id) > 1000
        with pytest.raises(AssertionError):
            client.send(10**6, MetadataRequest[0]([]))
        future = client.send(node_id, MetadataRequest[0]([topic]))
        assert client.in_flight_request_count(node_id) == client.in_flight_request_count() == 1
        client.poll(future=future)
        assert future.value.topics[0][1] == topic
        task = client.schedule(lambda: 'done', time.time())
        client.poll(timeout_ms=0)
        assert task.value == 'done'
        client.unschedule(len)  # a no-op
        future = client.set_topics([])
        client.poll(timeout_ms=60000, future=future)
        assert topic in client.cluster.topics()
        assert client.check_version(node_id, timeout=60) >= (0, 9)
        client.close(node_id)
        assert not client.connected(node_id)
    finally:
        client.close()


def test_the_calls_of_a_connection(cluster, topic):
    host, port = cluster.bootstrap.split(',')[0].rsplit(':', 1)
    conn = BrokerConnection(host, int(port), socket.AF_INET, request_timeout_ms=60000)
    assert conn.disconnected()
    assert not conn.blacked_out()
    ends_at = time.monotonic() + 60
    while not conn.connected() and time.monotonic() < ends_at:
        conn.connect()
        time.sleep(0.005)
    assert not conn.connecting()
    future = conn.send(MetadataRequest[0]([topic]), expect_response=True)
    unanswered = conn.send(ProduceRequest[0](0, 1000, []), expect_response=False)
    assert unanswered.succeeded()
    assert conn.can_send_more()
    response = None
    while response is None and time.monotonic() < ends_at:
        response = conn.recv()
        time.sleep(0.005)
    assert future.value is response
    waiting = conn.send(MetadataRequest[0]([topic]))
    mine = KafkaError('mine')
    conn.close(mine)
    assert waiting.exception is mine
    assert conn.disconnected()


def test_a_broker_is_probed_for_its_version(cluster):
    """From the prompt: check_version() tells which release it may be."""
    host, port = cluster.bootstrap.split(',')[0].rsplit(':', 1)
    conn = BrokerConnection(host, int(port), socket.AF_INET)
    try:
        found = conn.check_version(timeout=60)
        assert isinstance(found, str)
        first = tuple(map(int, found.split('.')))[:2]
        assert (0, 9) <= first <= cluster.release.version[:2]
    finally:
        conn.close()
