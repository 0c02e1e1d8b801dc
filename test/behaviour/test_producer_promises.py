"""Promises of the documents about KafkaProducer that a comparison with its namesakes found broken.

The comparison itself is ``python -m test.promises``.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time

import pytest

from kafka import KafkaProducer
from kafka.errors import IllegalStateError
from kafka.testing import Cluster
from test.stored import stored, stored_records


@pytest.fixture
def cluster():
    with Cluster(version='4.4', topics={'t': 1}) as running:
        yield running


@pytest.fixture
def producer(cluster):
    with KafkaProducer(bootstrap_servers=cluster.bootstrap) as made:
        yield made


def test_headers_are_a_list_and_no_tuple(producer):
    for error in (TypeError, AssertionError):
        with pytest.raises(error, match='headers must be a list'):
            producer.send('t', b'v', headers=(('name', b'value'),))
    assert producer.send('t', b'v', headers=()).get(30).serialized_header_size == -1


def test_the_value_of_a_header_may_be_none_as_readers_return_it(producer, cluster):
    """Kafka stores null; librdkafka and the Java client send it, so records read have it."""
    headers = [('a', None), ('b', b'')]
    assert producer.send('t', b'v', headers=headers).get(30).serialized_header_size == 2
    assert [each.get(30).offset for each in producer.send_many('t', [b'v'], headers=headers)] == [1]
    assert [list(record.headers) for record in stored_records(cluster)] == [headers, headers]


def test_coroutines_of_asyncio_wait_for_records(producer):
    async def send():
        first = await producer.send('t', b'1')
        others = await asyncio.gather(*(producer.send('t', b'%d' % n) for n in range(2, 6)))
        return [metadata.offset for metadata in (first, *others)]

    assert asyncio.run(send()) == [0, 1, 2, 3, 4]


def test_programs_look_at_the_cluster_of_a_producer(producer):
    producer.partitions_for('t')
    assert {broker.nodeId for broker in producer._metadata.brokers()} == {0}
    assert producer._metadata.partitions_for_topic('t') == {0} and not producer._closed


# --- what cannot be meant -----------------------------------------------------------------------


class Integer:
    """An integer that is no int, as numpy has them."""

    def __init__(self, number):
        self._number = number

    def __index__(self):
        return self._number


def test_integers_of_other_packages(producer):
    partition, time_ms = Integer(0), Integer(5)
    for metadata in (
        producer.send('t', b'v', partition=partition, timestamp_ms=time_ms).get(30),
        producer.send_many('t', [b'v'], partition=partition, timestamp_ms=time_ms).get(30)[0],
    ):
        assert (metadata.partition, metadata.timestamp) == (0, 5)
        assert type(metadata.partition) is type(metadata.timestamp) is int


@pytest.mark.parametrize(
    'headers', [b'canary' * 1000, {'h': b'canary'}, (('h', b'canary'),), [('h', 'canary')]]
)
def test_the_text_of_an_error_has_nothing_of_what_was_to_be_sent(producer, headers):
    with pytest.raises(TypeError, match='headers must be a list') as caught:
        producer.send('t', b'v', headers=headers)
    assert len(str(caught.value)) < 200 and 'canary' not in str(caught.value)


@pytest.mark.parametrize(
    'arguments, error, text',
    [
        ({'values': ['text']}, TypeError, r'value must be bytes, not str.*record 0; none was sent'),
        ({'values': [b'v', 5]}, TypeError, 'value must be bytes, not int.*record 1'),
        ({'values': 'text'}, TypeError, 'values must be a list, not str'),
        ({'values': b'bytes'}, TypeError, 'values must be a list'),
        ({'values': {'a': 1}}, TypeError, 'values must be a list'),
        ({'values': None}, TypeError, 'values must be a list'),
        ({'keys': ['k', 'k']}, TypeError, 'key must be bytes, not str.*record 0'),
        ({'keys': [b'k']}, ValueError, '1 keys for 2 values'),
        ({'partition': 99}, ValueError, 'partition 99: the topic t has 0 to 0'),
        ({'partition': '0'}, TypeError, 'partition must be int, not str'),
        ({'partition': True}, TypeError, 'partition must be int, not bool'),
        ({'timestamp_ms': -1}, ValueError, 'timestamp_ms'),
        ({'timestamp_ms': 2**63}, ValueError, 'timestamp_ms'),
        ({'timestamp_ms': math.nan}, ValueError, 'timestamp_ms'),
        ({'timestamp_ms': '5'}, TypeError, 'timestamp_ms must be int, not str'),
        ({'headers': {'h': b'x'}}, TypeError, 'headers must be a list'),
        ({'headers': [('h', 'x')]}, TypeError, 'str, str'),
        (
            {'headers': [('\ud800', b'x')]},
            ValueError,
            'the name of a header cannot be encoded in UTF-8',
        ),
        ({'topic': b't'}, TypeError, 'topic must be str'),
        ({'topic': ''}, ValueError, 'topic'),
    ],
)
def test_many_that_cannot_be_sent_are_refused_whole(cluster, producer, arguments, error, text):
    for _ in range(2):
        with pytest.raises(error, match=text) as caught:
            producer.send_many(**{'topic': 't', 'values': [b'v', b'w'], **arguments})
        assert isinstance(caught.value, AssertionError)
    producer.flush(30)
    assert stored(cluster) == []


@pytest.mark.parametrize(
    'arguments, error, text',
    [
        ((b'v', 'k'), TypeError, 'key must be bytes, not str'),
        (('text',), TypeError, 'value must be bytes, not str'),
        ((None,), ValueError, 'key or value'),
    ],
)
def test_what_cannot_be_forgotten_either(cluster, producer, arguments, error, text):
    producer.send('t', b'known').get(30)
    for _ in range(2):
        with pytest.raises(error, match=text) as caught:
            producer.send_and_forget('t', *arguments)
        assert isinstance(caught.value, AssertionError)
    producer.flush(30)
    assert stored(cluster) == [b'known']


@pytest.mark.parametrize('made', ['text', 5, ['v'], object()])
def test_a_serializer_that_makes_no_bytes(cluster, made):
    for name in ('key', 'value'):
        with KafkaProducer(
            bootstrap_servers=cluster.bootstrap, **{'%s_serializer' % name: lambda data: made}
        ) as producer:
            for send in (producer.send, producer.send_and_forget):
                with pytest.raises(TypeError, match='%s must be bytes, not' % name):
                    send('t', b'v', b'k')
            with pytest.raises(TypeError, match='%s must be bytes, not' % name):
                producer.send_many('t', [b'v'], [b'k'])
    assert stored(cluster) == []


def test_time_outs_that_are_no_numbers(cluster, producer):
    future = producer.send('t', b'v')
    for wrong in ('5', math.nan, object()):
        for call in (producer.flush, producer.close):
            with pytest.raises(TypeError, match='timeout must be a number of seconds'):
                call(wrong)
    cluster.pause(cluster.nodes[0])
    waiting = producer.send('t', b'w')
    with pytest.raises(TypeError, match='timeout must be a number of seconds'):
        waiting.get('5')
    cluster.resume(cluster.nodes[0])
    assert (future.get(30).offset, waiting.get(30).offset) == (0, 1)


def test_what_lingers_is_not_sent_by_a_close_that_does_not_wait(cluster):
    for _ in range(20):
        producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, linger_ms=60_000)
        producer.send('t', b'first')
        producer.flush(30)  # so that everything is there that sending needs
        future = producer.send('t', b'lingers')
        producer.close(timeout=0)
        with pytest.raises(IllegalStateError):
            future.get(0)
    assert set(stored(cluster)) == {b'first'}


def test_what_is_not_compressed_is_no_smaller(cluster):
    with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
        producer.send('t', b'v' * 100, b'k').get(30)
        figures = producer.metrics()
        assert figures['producer-metrics']['compression-rate-avg'] == 1
        assert figures['producer-topic-metrics.t']['compression-rate'] == 1


def test_who_finds_the_lock_held_by_another_thread_waits_for_it(producer):
    producer.send('t', b'0').get(30)
    is_held, futures = threading.Event(), []

    def hold():
        with producer._accumulator.lock:
            is_held.set()
            sending.wait(30)
            time.sleep(0.05)

    def send():
        sending.set()
        futures.append(producer.send('t', b'1'))

    sending = threading.Event()
    holder = threading.Thread(target=hold)
    holder.start()
    is_held.wait(30)
    send()
    holder.join()
    assert futures[0].get(30).offset == 1
