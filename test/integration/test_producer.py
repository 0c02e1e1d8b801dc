"""SimpleProducer and KeyedProducer (synchronous) of 0.9.5 on real brokers."""

from __future__ import annotations

import pytest

from kafka import (
    HashedPartitioner,
    KeyedProducer,
    Murmur2Partitioner,
    RoundRobinPartitioner,
    SimpleProducer,
)
from kafka.common import MessageSizeTooLargeError
from kafka.protocol import CODEC_GZIP, CODEC_NONE, CODEC_SNAPPY
from test.integration.fixtures import fetch, keys_and_values, offset, retry, values

pytestmark = pytest.mark.integration

every_codec = pytest.mark.parametrize(
    'codec', [CODEC_NONE, CODEC_GZIP, CODEC_SNAPPY], ids=['none', 'gzip', 'snappy']
)


@every_codec
def test_simple_producer_takes_one_partition_per_call_in_turn(client, topic, codec):
    producer = SimpleProducer(client, codec=codec, random_start=False)
    sent = [
        producer.send_messages(topic, b'one', b'two'),
        producer.send_messages(topic, b'three'),
        producer.send_messages(topic, b'four'),
    ]
    assert [(a.partition, a.error, a.offset) for (a,) in sent] == [(0, 0, 0), (1, 0, 0), (0, 0, 2)]
    assert values(fetch(client, topic, 0)) == [b'one', b'two', b'four']
    assert values(fetch(client, topic, 1)) == [b'three']


@pytest.mark.parametrize('acks', [SimpleProducer.ACK_AFTER_LOCAL_WRITE, -1])
@every_codec
def test_simple_producer_gets_the_offset_of_the_first_message(client, topic, codec, acks):
    producer = SimpleProducer(client, codec=codec, req_acks=acks, random_start=False)
    (answer,) = producer.send_messages(topic, *[b'%d' % i for i in range(50)])
    assert (answer.topic, answer.error, answer.offset) == (topic.encode(), 0, 0)
    assert offset(client, topic, 0) == 50


def test_simple_producer_without_acks_gets_nothing_back(client, topic):
    producer = SimpleProducer(client, req_acks=SimpleProducer.ACK_NOT_REQUIRED, random_start=False)
    assert producer.send_messages(topic, b'one', b'two') == []

    def written():
        assert values(fetch(client, topic, 0)) == [b'one', b'two']

    retry(written, AssertionError)


def test_simple_producer_takes_text_and_bytes_as_topic(client, topic):
    producer = SimpleProducer(client, random_start=False)
    producer.send_messages(topic, b'text')
    producer.send_messages(topic.encode(), b'bytes')
    assert values(fetch(client, topic, 0)) == [b'text']
    assert values(fetch(client, topic, 1)) == [b'bytes']


def test_simple_producer_finds_a_topic_that_came_after_the_client(cluster, client, new_name):
    name = new_name()
    cluster.create_topic(name, 2)
    assert not client.has_metadata_for_topic(name)
    (answer,) = SimpleProducer(client).send_messages(name, b'one')
    assert answer.error == 0


def test_simple_producer_raises_what_the_broker_refuses(client, topic):
    producer = SimpleProducer(client)
    with pytest.raises(MessageSizeTooLargeError):
        producer.send_messages(topic, b'x' * 1100000)


def test_simple_producer_can_hand_back_the_error_in_place_of_raising(client, topic):
    producer = SimpleProducer(client, sync_fail_on_error=False)
    (answer,) = producer.send_messages(topic, b'x' * 1100000)
    assert answer.error == MessageSizeTooLargeError.errno


@every_codec
def test_keyed_producer_writes_key_and_value(client, topic, codec):
    producer = KeyedProducer(client, codec=codec, partitioner=RoundRobinPartitioner)
    for key, value in [(b'k1', b'one'), (b'k2', b'two'), (b'k3', b'three'), (b'k4', None)]:
        (answer,) = producer.send_messages(topic, key, value)
        assert answer.error == 0
    assert keys_and_values(fetch(client, topic, 0)) == [(b'k1', b'one'), (b'k3', b'three')]
    assert keys_and_values(fetch(client, topic, 1)) == [(b'k2', b'two'), (b'k4', None)]


@pytest.mark.parametrize('partitioner', [HashedPartitioner, Murmur2Partitioner])
def test_keyed_producer_keeps_a_key_in_one_partition(client, topic, partitioner):
    producer = KeyedProducer(client, partitioner=partitioner)
    keys = [b'key %d' % i for i in range(10)]
    for key in keys:
        producer.send_messages(topic, key, b'first', b'second')
    homes = {}
    for partition in (0, 1):
        for found in fetch(client, topic, partition):
            homes.setdefault(found.message.key, []).append(partition)
    assert homes == {key: [partitioner([0, 1]).partition(key)] * 2 for key in keys}


@pytest.mark.parametrize(
    'message, error', [('text', TypeError), (None, TypeError), (5, TypeError), ([b'x'], TypeError)]
)
def test_what_is_not_bytes_is_refused_before_anything_is_sent(client, topic, message, error):
    producer = SimpleProducer(client, random_start=False)
    with pytest.raises(error):
        producer.send_messages(topic, b'good', message)
    assert [offset(client, topic, partition) for partition in (0, 1)] == [0, 0]
