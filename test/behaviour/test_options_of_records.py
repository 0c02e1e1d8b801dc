"""Each option about records and their delivery changes what it says; brokers show it."""

from __future__ import annotations

import math
import select
import time

import pytest

from kafka import KafkaProducer
from kafka.errors import (
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    NotEnoughReplicasError,
)
from kafka.net.loop.busy_poll import BusyPoll
from kafka.producer import in_flight_batches
from kafka.record.memory_records import MemoryRecords
from kafka.testing import Cluster
from kafka.testing.faults import Error
from test.producer.shown import batches_of, received, shows
from test.stored import stored, stored_records

SECONDS = 60


@pytest.fixture
def cluster():
    with Cluster(version='4.4', topics={'t': 1, 'three': 3}) as running:
        yield running


def sent(cluster):
    """Return the batches that arrived."""
    found = []
    for each in received(cluster, 'PRODUCE'):
        for data in batches_of(each):
            found += MemoryRecords(data)
    return found


@shows('key_serializer', 'value_serializer')
def test_serializers(cluster, make):
    make(key_serializer=str.encode, value_serializer=repr_bytes).send('t', 5, 'k').get(SECONDS)
    (record,) = stored_records(cluster)
    assert (record.key, record.value) == (b'k', b'5')


def repr_bytes(value):
    return repr(value).encode()


@shows('partitioner')
def test_partitioner(make):
    producer = make(partitioner=lambda key, everything, available: everything[-1])
    assert {producer.send('three', b'v').get(SECONDS).partition for _ in range(5)} == {2}


@shows('partitioner_adaptive_partitioning_enable')
@pytest.mark.parametrize('enabled', [True, False])
def test_adaptive(make, enabled):
    """Of partitions that are used, those with more batches waiting get fewer records."""
    producer = make(
        partitioner_adaptive_partitioning_enable=enabled,
        partitioner_availability_timeout_ms=1000,
        linger_ms=10000,
    )
    producer.partitions_for('three')
    topic = producer._accumulator.topic('three')
    assert topic.sticky._adaptive is enabled
    assert bool(producer._engine.sender._stalls._limit) is enabled


@shows('partitioner_availability_timeout_ms')
def test_availability(make):
    stalls = make(partitioner_availability_timeout_ms=1500)._engine.sender._stalls
    stalls.stuck(1, 10.0)
    assert stalls.slow([1], 11.4) == (frozenset(), 11.5)
    assert stalls.slow([1], 11.5)[0] == {1}


@pytest.mark.skipif(not hasattr(select, 'epoll'), reason='busy_poll_us is for Linux')
@shows('busy_poll_us')
@pytest.mark.parametrize('microseconds', [0, 5000])
def test_busy_poll(make, microseconds, monkeypatch):
    """Who waits asks without sleeping, or sleeps, without the question whether to ask."""
    asked, wait = [], BusyPoll.wait

    def noting(poll, ask, seconds, most):
        def note(seconds, most):
            asked.append(seconds)
            return ask(seconds, most)

        return wait(poll, note, seconds, most)

    monkeypatch.setattr(BusyPoll, 'wait', noting)
    producer = make(busy_poll_us=microseconds)
    for _ in range(20):
        producer.send('t', b'v').get(SECONDS)
    assert (0 in asked) is bool(asked) is bool(microseconds)


class Louder:
    """Changes what is sent."""

    def on_send(self, record):
        """Put an exclamation mark behind it."""
        return record._replace(value=record.value + b'!')


@shows('interceptors')
def test_interceptors(cluster, make):
    make(interceptors=[Louder]).send('t', b'v').get(SECONDS)
    assert stored(cluster) == [b'v!']


@shows('acks')
@pytest.mark.parametrize(('acks', 'asked'), [(0, 0), (1, 1), ('all', -1)])
def test_acks(cluster, make, acks, asked):
    producer = make(acks=acks)
    producer.send('t', b'v').get(SECONDS)
    producer.partitions_for('three')
    assert {each.request.acks for each in received(cluster, 'PRODUCE')} <= {asked}
    if acks:
        assert received(cluster, 'PRODUCE')


@shows('retries')
@pytest.mark.parametrize('retries', [0, 2])
def test_retries(cluster, make, retries):
    producer = make(retries=retries, enable_idempotence=False, retry_backoff_ms=1)
    cluster.faults.add(Error(NotEnoughReplicasError.errno), 'Produce', times=None)
    with pytest.raises(NotEnoughReplicasError):
        producer.send('t', b'v').get(SECONDS)
    assert len(received(cluster, 'PRODUCE')) == retries + 1


@shows('retry_backoff_ms', 'retry_backoff_max_ms')
def test_backoff(cluster, make, monkeypatch):
    asked = []
    monkeypatch.setattr(
        in_flight_batches,
        'backoff_seconds',
        lambda base, longest, tries, part: asked.append((base, longest, tries)) or 0.0,
    )
    producer = make(retry_backoff_ms=30, retry_backoff_max_ms=70)
    cluster.faults.add(Error(NotEnoughReplicasError.errno), 'Produce', times=2)
    producer.send('t', b'v').get(SECONDS)
    assert asked == [(0.03, 0.07, 1), (0.03, 0.07, 2)]


@shows('delivery_timeout_ms')
def test_delivery_timeout(cluster, make):
    producer = make(delivery_timeout_ms=300)
    producer.send('t', b'v').get(SECONDS)
    cluster.pause(cluster.nodes[0])
    with pytest.raises(KafkaTimeoutError, match='delivery_timeout_ms'):
        producer.send('t', b'v').get(SECONDS)


@shows('enable_idempotence')
@pytest.mark.parametrize('enabled', [True, False])
def test_idempotence(cluster, make, enabled):
    make(enable_idempotence=enabled).send('t', b'v').get(SECONDS)
    assert [batch.producer_id >= 0 for batch in sent(cluster)] == [enabled]


@shows('transactional_id', 'transaction_timeout_ms')
def test_transactions(cluster, make):
    make(transactional_id='mine', transaction_timeout_ms=1234).init_transactions()
    (asked,) = received(cluster, 'INIT_PRODUCER_ID')
    assert asked.request.transactional_id == 'mine'
    assert asked.request.transaction_timeout_ms == 1234


@shows('raise_on_too_large', 'max_request_size')
def test_too_large(make):
    size = {'max_request_size': 500}
    future = make(**size).send('t', b'x' * 500)
    with pytest.raises(MessageSizeTooLargeError, match='max_request_size is 500'):
        future.get(SECONDS)
    with pytest.raises(MessageSizeTooLargeError):
        make(raise_on_too_large=True, **size).send('t', b'x' * 500)


@shows('max_request_size')
def test_requests_stay_below_their_size(cluster, make):
    producer = make(max_request_size=1000, batch_size=800, linger_ms=10000)
    for partition in range(3):
        producer.send('three', b'x' * 600, partition=partition)
    producer.flush(SECONDS)
    assert [len(batches_of(each)) for each in received(cluster, 'PRODUCE')] == [1, 1, 1]


@shows('compression_type')
@pytest.mark.parametrize(('name', 'codec'), [('gzip', 1), ('none', 0), (None, 0)])
def test_compression(cluster, make, name, codec):
    make(compression_type=name).send('t', b'v').get(SECONDS)
    assert [batch.codec for batch in sent(cluster)] == [codec]


@shows('compression_level')
def test_level(cluster, make):
    value = b''.join(b'%d,' % (n * n) for n in range(4000))
    for level in (1, 9):
        make(compression_type='gzip', compression_level=level).send('t', value).get(SECONDS)
    quick, small = [batch.size_in_bytes for batch in sent(cluster)]
    assert small < quick


@shows('batch_size')
@pytest.mark.parametrize(('size', 'batches'), [(16384, 1), (0, 5), (300, 3)])
def test_batch_size(cluster, make, size, batches):
    producer = make(batch_size=size, linger_ms=10000)
    for _ in range(5):
        producer.send('t', b'x' * 100)
    producer.flush(SECONDS)
    assert len(sent(cluster)) == batches


@shows('linger_ms')
def test_linger(cluster, make):
    producer = make(linger_ms=600_000, delivery_timeout_ms=1_000_000)
    future = producer.send('t', b'v')
    producer.partitions_for('three')  # a round trip to the same broker
    assert not future.is_done and not received(cluster, 'PRODUCE')
    quick = make(linger_ms=1)
    began = time.monotonic()
    quick.send('t', b'v').get(SECONDS)
    assert time.monotonic() - began < 50


@shows('buffer_memory', 'max_block_ms')
def test_memory(cluster, make):
    producer = make(buffer_memory=40_000, max_block_ms=50)
    producer.send('t', b'v').get(SECONDS)
    cluster.pause(cluster.nodes[0])
    with pytest.raises(KafkaTimeoutError, match='buffer_memory within max_block_ms'):
        for _ in range(100):
            producer.send('t', b'x' * 900)
    began = time.monotonic()
    with pytest.raises(KafkaTimeoutError, match=r'0.05 s \(max_block_ms\)'):
        producer.partitions_for('new')
    assert time.monotonic() - began < 30
    cluster.resume(cluster.nodes[0])


@shows('metadata_max_idle_ms')
def test_idle_topics(make):
    assert make(metadata_max_idle_ms=7000)._engine.topic_updater._idle == 7.0
    # That it forgets them then: test_record_accumulator_topics.py.


@shows('max_in_flight_requests_per_connection')
@pytest.mark.parametrize('most', [1, 3])
def test_in_flight(cluster, make, most):
    producer = make(
        max_in_flight_requests_per_connection=most, batch_size=0, enable_idempotence=False
    )
    producer.send('t', b'v').get(SECONDS)
    cluster.pause(cluster.nodes[0])
    futures = [producer.send('t', b'v') for _ in range(8)]
    sender = producer._engine.sender
    assert producer._loop.wait(lambda: sender.in_flight == most, SECONDS)
    producer._loop.wait(lambda: sender.in_flight > most, 0.05)
    assert sender.in_flight == most
    cluster.resume(cluster.nodes[0])
    assert [future.get(SECONDS).offset for future in futures] == list(range(1, 9))


@shows('dialect')
def test_dialect(cluster, make):
    producer = make(dialect='2.0')
    producer.send('t', b'v').get(SECONDS)
    assert (producer.config['acks'], producer.config['retries']) == (1, 0)
    assert [each.request.acks for each in received(cluster, 'PRODUCE')] == [1]
    assert make().config['retries'] == math.inf


@shows('request_timeout_ms')
def test_request_timeout(cluster, make):
    producer = make(request_timeout_ms=300, retries=0)
    producer.send('t', b'v').get(SECONDS)
    cluster.pause(cluster.nodes[0])
    began = time.monotonic()
    with pytest.raises(KafkaError, match='0.3'):
        producer.send('t', b'v').get(SECONDS)
    assert time.monotonic() - began < 25
    assert received(cluster, 'PRODUCE')[0].request.timeout_ms == 300


@shows('metrics_enabled', 'metric_reporters', 'metrics_num_samples', 'metrics_sample_window_ms')
def test_metrics(make):
    told = []

    class Reporter:
        def init(self, metrics):
            told.extend(metrics)

        def metric_change(self, metric):
            told.append(metric)

        def metric_removal(self, metric):
            pass

        def configure(self, configs):
            pass

        def close(self):
            pass

    assert make(metrics_enabled=False).metrics() is None
    producer = make(
        metric_reporters=[Reporter], metrics_num_samples=7, metrics_sample_window_ms=1500
    )
    producer.send('t', b'v').get(SECONDS)
    assert 'record-send-rate' in {metric.metric_name.name for metric in told}
    windows = producer._engine.metrics.metrics.config
    assert (windows.samples, windows.time_window_ms) == (7, 1500)


def test_a_class_may_have_other_defaults(cluster):
    class Ours(KafkaProducer):
        DEFAULT_CONFIG = dict(
            KafkaProducer.DEFAULT_CONFIG, bootstrap_servers=cluster.bootstrap, linger_ms=7
        )

    with Ours(acks='all') as producer:
        assert (producer.config['linger_ms'], producer.config['acks']) == (7, -1)
        producer.send('t', b'v').get(SECONDS)
    assert [each.value for each in stored_records(cluster)] == [b'v']
