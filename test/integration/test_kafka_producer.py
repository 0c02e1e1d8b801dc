"""KafkaProducer on real brokers; what it writes is read by clients that nobody here wrote."""

from __future__ import annotations

import threading

import pytest

from kafka import KafkaProducer
from kafka.errors import (
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    NotLeaderForPartitionError,
    ProducerFencedError,
)
from kafka.partitioner import Murmur2Partitioner
from kafka.structs import OffsetAndMetadata, TopicPartition
from test.integration.oracles import Confluent, console_of

pytestmark = [pytest.mark.integration, pytest.mark.releases(since='0.9')]

PAIRS = [(b'key %d' % i, b'value %d ' % i + b'and so on ' * (i % 7)) for i in range(200)]


def needs(since, *values):
    """A parameter (or several) that older releases know nothing of."""
    return pytest.param(*values, marks=pytest.mark.releases(since=since))


every_codec = pytest.mark.parametrize(
    'codec', [None, 'gzip', 'snappy', needs('0.10', 'lz4'), needs('2.1', 'zstd')]
)


@pytest.fixture
def make(cluster):
    """Return a function that makes a producer, closed at the end."""
    made = []

    def give(**options):
        made.append(KafkaProducer(bootstrap_servers=cluster.bootstrap, **options))
        return made[-1]

    yield give
    for producer in made:
        producer.close(timeout=30)


def read(cluster, topic, count, partition=0):
    return Confluent(cluster).read(topic, count, partition=partition)


@every_codec
def test_librdkafka_reads_each_codec(cluster, make, topic, codec):
    producer = make(compression_type=codec, linger_ms=5)
    futures = [producer.send(topic, value, key, partition=0) for key, value in PAIRS[:100]]
    many = producer.send_many(
        topic, [value for _, value in PAIRS[100:]], [key for key, _ in PAIRS[100:]], partition=0
    )
    producer.flush(60)
    assert [future.get(60).offset for future in futures] == list(range(100))
    assert [metadata.offset for metadata in many.get(60)] == list(range(100, 200))
    assert read(cluster, topic, 200) == PAIRS


@every_codec
def test_the_console_consumer_reads_each_codec(cluster, make, topic, codec):
    producer = make(compression_type=codec)
    for key, value in PAIRS:
        producer.send(topic, value, key)
    producer.flush(60)
    assert console_of(cluster).read(topic, len(PAIRS)) == sorted(PAIRS)


def test_keys_go_where_java_sends_them(make, topic):
    producer = make()
    partitions = [producer.send(topic, b'v', key).get(60).partition for key, _ in PAIRS[:20]]
    chosen = Murmur2Partitioner([0, 1])
    assert partitions == [chosen.partition(key) for key, _ in PAIRS[:20]]


def test_what_is_forgotten_arrives(cluster, make, topic):
    producer = make()
    values = [b'%d' % n for n in range(1000)]
    for value in values:
        producer.send_and_forget(topic, value)
    producer.flush(60)
    found = Confluent(cluster).read_all(topic, 1000)
    assert sorted(value for _, value in found) == sorted(values)


def test_a_topic_that_is_not_there_is_made(make, new_name):
    producer = make()
    assert producer.send(new_name(), b'v').get(60).offset == 0


def test_timestamps_and_headers(cluster, make, topic):
    producer = make()
    version = cluster.release.version
    headers = [('h', b'x')] if version >= (0, 11) else None
    metadata = producer.send(topic, b'v', b'k', headers, 0, 9999999).get(60)
    assert (metadata.offset, metadata.timestamp) == (0, 9999999)


def test_without_acknowledgements(cluster, make, topic):
    producer = make(acks=0)
    assert producer.send(topic, b'v', partition=0).get(60).offset == -1
    assert read(cluster, topic, 1) == [(None, b'v')]


def test_a_large_record_is_refused_by_either_side(make, topic):
    with pytest.raises(MessageSizeTooLargeError):
        make().send(topic, b'x' * 1_100_000).get(60)
    with pytest.raises(MessageSizeTooLargeError):
        make(max_request_size=5_000_000).send(topic, b'x' * 2_000_000).get(60)


def test_a_batch_that_is_too_large_is_split(cluster, make, topic):
    producer = make(batch_size=3_000_000, max_request_size=5_000_000, linger_ms=200)
    futures = [producer.send(topic, b'%03d' % n * 10_000, partition=0) for n in range(80)]
    assert [future.get(60).offset for future in futures] == list(range(80))
    assert [value[:3] for _, value in read(cluster, topic, 80)] == [b'%03d' % n for n in range(80)]


def test_many_threads(cluster, make, topic):
    producer = make()

    def send(thread):
        for n in range(500):
            producer.send(topic, b'%d-%d' % (thread, n), partition=thread % 2)

    threads = [threading.Thread(target=send, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    producer.flush(60)
    for partition in (0, 1):
        found = [value for _, value in read(cluster, topic, 1000, partition)]
        for thread in (partition, partition + 2):
            mine = [value for value in found if value.startswith(b'%d-' % thread)]
            assert mine == [b'%d-%d' % (thread, n) for n in range(500)]


@pytest.mark.releases(since='0.11')
def test_transactions(cluster, make, topic):
    producer = make(transactional_id='x-%s' % topic)
    producer.init_transactions()
    for end in ('abort', 'commit', 'abort', 'commit'):
        producer.begin_transaction()
        for n in range(10):
            producer.send(topic, b'%s %d' % (end.encode(), n), partition=0)
        if end == 'commit':
            offsets = {TopicPartition(topic, 1): OffsetAndMetadata(5, 'text')}
            producer.send_offsets_to_transaction(offsets, 'group-%s' % topic)
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    found = [value for _, value in read(cluster, topic, 20)]
    assert found == [b'commit %d' % n for n in range(10)] * 2


@pytest.mark.releases(since='0.11')
def test_the_older_producer_of_an_id_is_fenced(make, topic):
    older, newer = (make(transactional_id='y-%s' % topic) for _ in range(2))
    older.init_transactions()
    older.begin_transaction()
    older.send(topic, b'v').get(60)
    newer.init_transactions()
    with pytest.raises(ProducerFencedError):
        older.send(topic, b'v')
        older.commit_transaction()
    newer.begin_transaction()
    newer.send(topic, b'w').get(60)
    newer.commit_transaction()


@pytest.mark.brokers(3)
@pytest.mark.thorough
@pytest.mark.releases(some=('0.11.0.3', '4.4.0'))
def test_a_leader_that_is_killed_costs_nothing(cluster, make, new_name):
    name = new_name()
    cluster.create_topic(name, 1, 3)
    producer = make(request_timeout_ms=5000)
    futures = [producer.send(name, b'%d' % n, partition=0) for n in range(500)]
    futures[0].get(60)
    leader = producer._engine.pool.cluster.leader_for_partition(TopicPartition(name, 0))
    assert leader is not None, NotLeaderForPartitionError
    cluster.kill(leader)
    futures += [producer.send(name, b'%d' % n, partition=0) for n in range(500, 1000)]
    offsets = [future.get(90).offset for future in futures]
    if cluster.release.version >= (0, 11):
        assert offsets == list(range(1000))
        found = [value for _, value in read(cluster, name, 1000)]
        assert found == [b'%d' % n for n in range(1000)]
    else:  # not idempotent: what was stored and not acknowledged is there again, in its order
        assert offsets == sorted(set(offsets))
        found = [value for _, value in read(cluster, name, offsets[-1] + 1)]
        assert [found[offset] for offset in offsets] == [b'%d' % n for n in range(1000)]


def test_closing_at_once_loses_nothing_that_is_not_answered(cluster, new_name):
    name = new_name()
    cluster.create_topic(name, 1, 1)
    for number in range(50):
        options = {'bootstrap_servers': cluster.bootstrap, 'acks': 0, 'enable_idempotence': False}
        with KafkaProducer(**options) as producer:
            producer.send(name, b'%d' % number, partition=0)
    assert [value for _, value in read(cluster, name, 50)] == [b'%d' % n for n in range(50)]


def test_an_unknown_partition(make, topic):
    with pytest.raises(ValueError, match='partition 7'):
        make().send(topic, b'v', partition=7)


def test_max_block_ms_is_obeyed(cluster, make, new_name):
    producer = make(max_block_ms=500, allow_auto_create_topics=False)
    if cluster.release.version >= (0, 11):
        with pytest.raises(KafkaTimeoutError):
            producer.send(new_name(), b'v')
