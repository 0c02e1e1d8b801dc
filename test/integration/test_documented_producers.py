"""The producers' examples and promises of the 0.9.5 documents, run as a program would run them.

Each example makes the calls of the document with its spelling; the broker's address and the names
of topics are the test's. What was written is read by confluent-kafka. Which test is which section
of the documents stands in documented.py.
"""

from __future__ import annotations

import logging

import pytest

from kafka import (
    KafkaClient,
    KeyedProducer,
    Murmur2Partitioner,
    RoundRobinPartitioner,
    SimpleProducer,
    create_message,
)
from kafka.common import AsyncProducerQueueFull, ProduceRequest
from kafka.partitioner.base import Partitioner
from kafka.producer.base import Producer
from kafka.protocol import ALL_CODECS
from test.integration.documented import program, values_written, written
from test.integration.fixtures import offset, retry
from test.integration.oracles import Confluent

pytestmark = [
    pytest.mark.integration,
    # The interface is the same on all, and tested on all by others; by name it is on any.
    pytest.mark.releases(some=('0.8.2.2', '4.4.0')),
]


@pytest.fixture
def kafka(cluster):
    """The client as the documents call it."""
    kafka = KafkaClient(cluster.bootstrap)
    yield kafka
    kafka.close()


# --- 3.1.1 SimpleProducer -------------------------------------------------------------------------


def test_messages_are_sent_one_or_several_at_a_time(cluster, kafka, topic):
    my_topic = topic.encode()

    producer = SimpleProducer(kafka)
    producer.send_messages(my_topic, b'some message')
    producer.send_messages(my_topic, b'this method', b'is variadic')
    text = '你怎么样?'
    producer.send_messages(my_topic, text.encode('utf-8'))

    found = values_written(cluster, kafka, topic)
    one, other = found.values()
    # Partitions in turn, from any: first and third call to one, the second to the other.
    assert sorted([one, other]) == [
        [b'some message', text.encode('utf-8')],
        [b'this method', b'is variadic'],
    ]


# --- 3.1.2 Asynchronous mode ----------------------------------------------------------------------

ASYNC = """\
import sys
from kafka import SimpleProducer, KafkaClient

kafka = KafkaClient(sys.argv[1])
my_topic = sys.argv[2].encode('utf-8')
producer = SimpleProducer(kafka, async=True)
producer.send_messages(my_topic, b'async message')
"""


def test_an_asynchronous_program_may_end_at_once(cluster, kafka, topic, tmp_path):
    done = program(tmp_path, ASYNC, cluster.bootstrap, topic, launcher=('-m', 'kafka', 'run'))
    assert (done.returncode, done.stdout) == (0, b''), done.stderr
    found = values_written(cluster, kafka, topic)
    assert sorted(found.values()) == [[], [b'async message']]


@pytest.mark.parametrize('flag', [{'async': True}, {'async_send': True}], ids=['async', 'send'])
def test_asynchronous_sending_needs_no_answer(cluster, kafka, topic, flag):
    producer = SimpleProducer(kafka, **flag)
    assert producer.send_messages(topic.encode(), b'async message') == []
    producer.stop()
    found = values_written(cluster, kafka, topic)
    assert sorted(found.values()) == [[], [b'async message']]


WITH_ACKS = """\
import logging, sys
from kafka import SimpleProducer, KafkaClient
logging.basicConfig(level=logging.INFO, format='%(message)s', stream=sys.stdout)

kafka = KafkaClient(sys.argv[1])
my_topic = sys.argv[2].encode('utf-8')
producer = SimpleProducer(kafka, async=False,
                          req_acks=SimpleProducer.ACK_AFTER_LOCAL_WRITE,
                          ack_timeout=2000,
                          sync_fail_on_error=False)

responses = producer.send_messages(my_topic, b'another message')
for r in responses:
    logging.info(r.offset)
"""


def test_a_program_waits_for_acknowledgements(cluster, kafka, topic, tmp_path):
    done = program(tmp_path, WITH_ACKS, cluster.bootstrap, topic, launcher=('-m', 'kafka', 'run'))
    assert (done.returncode, done.stdout.split()[-1:]) == (0, [b'0']), done
    assert sorted(values_written(cluster, kafka, topic).values()) == [[], [b'another message']]


@pytest.mark.parametrize('acks', ['ACK_AFTER_LOCAL_WRITE', 'ACK_AFTER_CLUSTER_COMMIT'])
def test_acknowledgements_tell_the_offset(cluster, kafka, topic, caplog, acks):
    caplog.set_level(logging.INFO)
    flag = {'async': False}
    producer = SimpleProducer(
        kafka,
        **flag,
        req_acks=getattr(SimpleProducer, acks),
        ack_timeout=2000,
        sync_fail_on_error=False,
    )

    responses = producer.send_messages(topic.encode(), b'another message')
    for r in responses:
        logging.info(r.offset)

    assert caplog.messages[-1] == '0'
    # An acknowledged message can be read by anyone at once.
    assert sorted(values_written(cluster, kafka, topic).values()) == [[], [b'another message']]


@pytest.fixture
def batches(kafka):
    """The producer of the document that collects messages."""
    flag = {'async': True}
    producer = SimpleProducer(kafka, **flag, batch_send_every_n=20, batch_send_every_t=60)
    yield producer
    if not producer.stopped:
        producer.stop()


def test_messages_are_sent_after_20_or_by_stop(cluster, kafka, topic, batches):
    wanted = [b'%d' % i for i in range(25)]
    for message in wanted[:19]:
        batches.send_messages(topic.encode(), message)
    assert _ends(kafka, topic) == 0
    for message in wanted[19:]:
        batches.send_messages(topic.encode(), message)

    def first_batch():
        assert _ends(kafka, topic) == 20

    retry(first_batch, AssertionError, seconds=20)
    assert _ends(kafka, topic) == 20  # the other five wait for 60 seconds, or for this:
    batches.stop()
    assert sorted(sum(values_written(cluster, kafka, topic).values(), [])) == sorted(wanted)


def test_messages_are_sent_after_their_time(cluster, kafka, topic):
    producer = SimpleProducer(kafka, async_send=True, batch_send_every_n=20, batch_send_every_t=0.5)
    try:
        producer.send_messages(topic.encode(), b'few')

        def sent():
            assert _ends(kafka, topic) == 1

        retry(sent, AssertionError, seconds=20)
    finally:
        producer.stop()


DIES = """\
import os, sys
from kafka import SimpleProducer, KafkaClient

producer = SimpleProducer(KafkaClient(sys.argv[1]), async_send=True,
                          batch_send_every_n=20, batch_send_every_t=60)
producer.send_messages(sys.argv[2].encode('utf-8'), b'never seen')
os._exit(0)
"""


def test_what_waits_is_lost_where_the_producer_dies(cluster, kafka, topic, tmp_path):
    assert program(tmp_path, DIES, cluster.bootstrap, topic).returncode == 0
    assert _ends(kafka, topic) == 0


def _ends(kafka, topic):
    """Return how many messages the topic has."""
    return offset(kafka, topic, 0) + offset(kafka, topic, 1)


# --- 3.1.3 Keyed messages -------------------------------------------------------------------------


def test_keyed_messages_by_the_default_partitioner(cluster, kafka, topic):
    my_topic = topic.encode()

    producer = KeyedProducer(kafka)
    producer.send_messages(my_topic, b'key1', b'some message')
    producer.send_messages(my_topic, b'key2', b'this methode')

    found = written(cluster, kafka, topic)
    wanted = {0: [], 1: []}
    wanted[hash(b'key1') % 2].append((b'key1', b'some message'))
    wanted[hash(b'key2') % 2].append((b'key2', b'this methode'))
    assert found == wanted


def test_murmur2_hashes_as_the_java_client_does(cluster, kafka, new_name):
    mine, theirs = new_name(), new_name()
    for name in (mine, theirs):
        cluster.create_topic(name, 2)
    pairs = [(b'key%d' % i, b'%d' % i) for i in range(30)]

    producer = KeyedProducer(kafka, partitioner=Murmur2Partitioner)
    for key, value in pairs:
        producer.send_messages(mine.encode(), key, value)

    Confluent(cluster).write_by_key(theirs, pairs)
    found = written(cluster, kafka, mine)
    assert found == written(cluster, kafka, theirs)
    assert all(found.values())  # both partitions were hit


def test_keyed_messages_may_go_round_robin(cluster, kafka, topic):
    producer = KeyedProducer(kafka, partitioner=RoundRobinPartitioner)
    for i in range(4):
        producer.send_messages(topic.encode(), b'same key', b'%d' % i)
    found = values_written(cluster, kafka, topic)
    assert found == {0: [b'0', b'2'], 1: [b'1', b'3']}


class ByLength(Partitioner):
    """A program's own partitioner, derived from Partitioner as the documents ask for."""

    def partition(self, key, partitions=None):
        return self.partitions[len(key) % len(self.partitions)]


def test_a_partitioner_of_ones_own(cluster, kafka, topic):
    producer = KeyedProducer(kafka, partitioner=ByLength)
    producer.send_messages(topic.encode(), b'odd', b'one')
    producer.send_messages(topic.encode(), b'even', b'two')
    assert values_written(cluster, kafka, topic) == {0: [b'two'], 1: [b'one']}


# --- 3.1.6 Low level ------------------------------------------------------------------------------


def test_low_level_produce_request(cluster, client, topic):
    my_topic = topic.encode()
    kafka = KafkaClient(cluster.bootstrap)
    req = ProduceRequest(topic=my_topic, partition=1, messages=[create_message(b'some message')])
    resps = kafka.send_produce_request(payloads=[req], fail_on_error=True)
    kafka.close()

    assert resps[0].topic == my_topic
    assert resps[0].partition == 1
    assert resps[0].error == 0
    assert resps[0].offset == 0
    assert values_written(cluster, client, topic) == {0: [], 1: [b'some message']}


# --- 3.4.1 kafka.producer.base.Producer -----------------------------------------------------------


def test_the_base_producer_sends_without_key_to_the_partition_it_is_told(cluster, kafka, topic):
    unicode_message = 'größer'
    producer = Producer(kafka)
    answers = producer.send_messages(topic, 1, unicode_message.encode('utf-8'), b'second')
    assert [(a.topic, a.partition, a.error, a.offset) for a in answers] == [
        (topic.encode(), 1, 0, 0)
    ]
    assert written(cluster, kafka, topic) == {
        0: [],
        1: [(None, 'größer'.encode()), (None, b'second')],
    }
    with pytest.raises(TypeError):
        producer.send_messages(topic, 1, unicode_message)


@pytest.mark.parametrize('codec', ALL_CODECS)
def test_every_codec_the_options_name(cluster, kafka, topic, codec):
    producer = Producer(
        kafka,
        req_acks=Producer.ACK_AFTER_CLUSTER_COMMIT,
        ack_timeout=Producer.DEFAULT_ACK_TIMEOUT,
        codec=codec,
        codec_compresslevel=1,
    )
    messages = [b'%d' % i * 50 for i in range(10)]
    (answer,) = producer.send_messages(topic, 0, *messages)
    assert answer.error == 0
    assert values_written(cluster, kafka, topic) == {0: messages, 1: []}


def test_every_option_of_the_asynchronous_mode(cluster, kafka, topic):
    flag = {'async': True}
    producer = SimpleProducer(
        kafka,
        **flag,
        batch_send=False,
        batch_send_every_n=20,
        batch_send_every_t=20,
        async_retry_limit=None,
        async_retry_backoff_ms=100,
        async_retry_on_timeouts=True,
        async_queue_maxsize=0,
        async_queue_put_timeout=0,
        async_log_messages_on_error=True,
        async_stop_timeout=30,
        random_start=False,
    )
    producer.send_messages(topic, b'one')
    producer.send_messages(topic, b'two')
    producer.stop()  # blocks until the thread has sent what was queued
    assert values_written(cluster, kafka, topic) == {0: [b'one'], 1: [b'two']}


def test_a_full_queue_fails_at_once_and_tells_what_was_not_queued(kafka, topic):
    flag = {'async': True}
    producer = SimpleProducer(
        kafka, **flag, batch_send_every_n=1000, batch_send_every_t=60, async_queue_maxsize=2
    )
    messages = [b'%d' % i for i in range(2000)]
    try:
        with pytest.raises(AsyncProducerQueueFull) as caught:
            producer.send_messages(topic, *messages)
    finally:
        producer.stop()
    left = list(caught.value.failed_msgs)
    assert left
    assert left == messages[-len(left) :]
    assert _ends(kafka, topic) == len(messages) - len(left)


def test_the_old_name_of_sending_with_a_key(cluster, kafka, topic):
    producer = KeyedProducer(kafka, partitioner=RoundRobinPartitioner)
    with pytest.warns(DeprecationWarning, match='send_messages'):
        producer.send(topic, b'key', b'value')
    assert written(cluster, kafka, topic) == {0: [(b'key', b'value')], 1: []}
