"""The KafkaConsumer examples of the 1.2.1 document, as a program would run them.

Each makes the calls of the document with its spelling; the broker's address and the names of topics
are the test's. What is read is written by confluent-kafka. Which test is which section stands in
documented.py.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time

import pytest

from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.errors import IllegalStateError
from kafka.structs import OffsetAndMetadata
from test.integration.consuming import SECONDS, take, until, values
from test.integration.documented import start

pytestmark = [
    pytest.mark.integration,
    pytest.mark.releases(since='0.8', some=('0.8.0', '0.9.0.1', '4.4.0')),
]
IN_GROUPS = pytest.mark.releases(since='0.9', some=('0.9.0.1', '4.4.0'))


@contextlib.contextmanager
def feeding(fill, topic, value):
    """Write a value to both partitions again and again, for who begins with the latest."""
    is_over = threading.Event()

    def feed():
        while not is_over.wait(0.3):
            fill({topic: {0: [value], 1: [value]}})

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def first_line_of(running):
    """Return the first line that a program prints, as text."""
    found = []
    thread = threading.Thread(target=lambda: found.append(running.stdout.readline()))
    thread.start()
    thread.join(SECONDS)
    running.kill()
    thread.join()
    _, errors = running.communicate()
    assert found[0], errors.decode()
    return found[0].decode()


# --- README -------------------------------------------------------------------------------------


def test_messages_of_a_topic_are_printed(cluster, topic, fill, tmp_path):
    program = """
        import sys
        from kafka import KafkaConsumer
        consumer = KafkaConsumer(sys.argv[2], bootstrap_servers=sys.argv[1])
        for msg in consumer:
            print (msg)
            sys.stdout.flush()
        """
    with start(tmp_path, program, cluster.bootstrap, topic) as running:
        with feeding(fill, topic, (b'key', b'some text')):
            line = first_line_of(running)
    assert line.startswith("ConsumerRecord(topic='%s', partition=" % topic)
    assert "key=b'key', value=b'some text'" in line


def test_partitions_are_assigned_by_hand(cluster, topic, fill):
    # manually assign the partition list for the consumer
    consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap)
    consumer.assign([TopicPartition(topic, 1)])
    with feeding(fill, topic, b'v'):
        msg = next(consumer)
    assert (msg.topic, msg.partition, msg.value) == (topic, 1, b'v')
    consumer.close()


def test_msgpack_values(cluster, topic, fill):
    msgpack = pytest.importorskip('msgpack', reason='the package msgpack is not installed')
    # Deserialize msgpack-encoded values
    consumer = KafkaConsumer(value_deserializer=msgpack.loads, bootstrap_servers=cluster.bootstrap)
    consumer.subscribe([topic])
    with feeding(fill, topic, msgpack.dumps({'key': 'value'})):
        for msg in consumer:
            assert isinstance(msg.value, dict)
            break
    consumer.close()


# --- Usage: KafkaConsumer -----------------------------------------------------------------------


@IN_GROUPS
def test_latest_messages_in_a_group_that_commits(cluster, topic, fill, group, tmp_path):
    program = """
        import sys
        from kafka import KafkaConsumer

        # To consume latest messages and auto-commit offsets
        consumer = KafkaConsumer(sys.argv[2],
                                 group_id=sys.argv[3],
                                 bootstrap_servers=[sys.argv[1]])
        for message in consumer:
            # message value and key are raw bytes -- decode if necessary!
            # e.g., for unicode: `message.value.decode('utf-8')`
            print ("%s:%d:%d: key=%s value=%s" % (message.topic, message.partition,
                                                  message.offset, message.key,
                                                  message.value))
            sys.stdout.flush()
        """
    with start(tmp_path, program, cluster.bootstrap, topic, group) as running:
        with feeding(fill, topic, (b'k', b'v')):
            line = first_line_of(running)
    assert re.fullmatch(r"%s:[01]:\d+: key=b'k' value=b'v'\n" % re.escape(topic), line)


def test_earliest_messages_without_commits(cluster, topic, fill):
    fill({topic: {0: [b'first', b'second']}})
    # consume earliest available messages, dont commit offsets
    consumer = KafkaConsumer(
        auto_offset_reset='earliest',
        enable_auto_commit=False,
        bootstrap_servers=cluster.bootstrap,
    )
    consumer.subscribe([topic])
    assert values(take(consumer, 2)) == [b'first', b'second']
    consumer.close()


def test_json_values(cluster, topic, fill):
    fill({topic: {0: [json.dumps({'n': 1}).encode()]}})
    # consume json messages
    consumer = KafkaConsumer(
        value_deserializer=lambda m: json.loads(m.decode('ascii')),
        auto_offset_reset='earliest',
        bootstrap_servers=cluster.bootstrap,
    )
    consumer.subscribe([topic])
    assert values(take(consumer, 1)) == [{'n': 1}]
    consumer.close()


def test_msgpack_unpackb(cluster, topic, fill):
    msgpack = pytest.importorskip('msgpack', reason='the package msgpack is not installed')
    fill({topic: {0: [msgpack.packb([1, 'two'])]}})
    # consume msgpack
    consumer = KafkaConsumer(
        value_deserializer=msgpack.unpackb,
        auto_offset_reset='earliest',
        bootstrap_servers=cluster.bootstrap,
    )
    consumer.subscribe([topic])
    assert values(take(consumer, 1)) == [[1, 'two']]
    consumer.close()


def test_iteration_stops_after_a_second_without_a_message(cluster, topic, fill):
    fill({topic: {0: [b'only']}})
    # StopIteration if no message after 1sec
    consumer = KafkaConsumer(
        consumer_timeout_ms=1000,
        auto_offset_reset='earliest',
        bootstrap_servers=cluster.bootstrap,
    )
    consumer.subscribe([topic])
    deadline = time.monotonic() + SECONDS
    found = []
    while not found and time.monotonic() < deadline:
        found = [message.value for message in consumer]
    assert found == [b'only']
    began = time.monotonic()
    with pytest.raises(StopIteration):
        next(consumer)
    assert 0.95 <= time.monotonic() - began < 10
    consumer.close()


def test_a_regex_of_topics(cluster, fill, new_name):
    name = 'awesome-%s' % new_name()
    cluster.create_topic(name, 2)
    fill({name: {0: [b'awesome']}})
    # Subscribe to a regex topic pattern
    consumer = KafkaConsumer(auto_offset_reset='earliest', bootstrap_servers=cluster.bootstrap)
    consumer.subscribe(pattern='^awesome.*')
    deadline = time.monotonic() + SECONDS
    found = set()
    while name not in found and time.monotonic() < deadline:
        for partition in consumer.poll(100):
            found.add(partition.topic)
    assert all(each.startswith('awesome') for each in found)
    assert name in found
    consumer.close()


@IN_GROUPS
def test_two_consumers_in_parallel(cluster, topic, group):
    # Use multiple consumers in parallel w/ 0.9 kafka brokers
    # typically you would run each on a different server / process / CPU
    consumer1 = KafkaConsumer(topic, group_id=group, bootstrap_servers=cluster.bootstrap)
    consumer2 = KafkaConsumer(topic, group_id=group, bootstrap_servers=cluster.bootstrap)
    until(
        lambda: len(consumer1.assignment()) == len(consumer2.assignment()) == 1,
        consumer1,
        consumer2,
    )
    assert consumer1.assignment().isdisjoint(consumer2.assignment())
    consumer1.close()
    consumer2.close()


# --- API: KafkaConsumer -------------------------------------------------------------------------


@IN_GROUPS
def test_promises_of_the_calls_of_a_consumer(cluster, topic, fill, group):
    """In the order of the document, each with the sentence that says what it does."""
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    fill({topic: {0: [b'%d' % n for n in range(10)], 1: [b'x']}})
    consumer = KafkaConsumer(
        bootstrap_servers=cluster.bootstrap, group_id=group, auto_offset_reset='earliest'
    )
    consumer.assign([first])
    with pytest.raises(IllegalStateError):
        consumer.subscribe([topic])
    assert consumer.assignment() == {first}
    consumer.pause(first)  # or it might be fetched from ahead, on a slow machine
    assert consumer.committed(first) is None
    assert consumer.highwater(first) is None
    consumer.resume(first)
    take(consumer, 10)
    assert consumer.highwater(first) == consumer.position(first) == 10
    consumer.commit()
    assert consumer.committed(first) == 10
    told = []
    future = consumer.commit_async(
        {first: OffsetAndMetadata(5, 'text')}, lambda *answer: told.append(answer)
    )
    until(lambda: told, consumer)
    assert future.succeeded()
    assert told[0][0] == {first: OffsetAndMetadata(5, 'text')}
    assert not isinstance(told[0][1], Exception)
    assert consumer.partitions_for_topic(topic) == {0, 1}
    consumer.pause(first)
    assert consumer.paused() == {first}
    consumer.resume(first)
    assert consumer.paused() == set()
    consumer.seek(first, 7)
    assert values(take(consumer, 3)) == [b'7', b'8', b'9']
    for wrong in (-1, 'text', None):
        with pytest.raises(AssertionError):
            consumer.seek(first, wrong)
    for verb in (consumer.seek_to_beginning, consumer.seek_to_end):
        with pytest.raises(AssertionError):
            verb(second)
    consumer.seek_to_end(first)
    assert consumer.position(first) == 10
    consumer.seek_to_beginning()
    assert consumer.position(first) == 0
    assert topic in consumer.topics()
    consumer.close()


@IN_GROUPS
def test_promises_about_subscriptions_of_a_consumer(cluster, topic, fill, group):
    """In the order of the document."""
    fill({topic: {0: [b'x']}})
    first = TopicPartition(topic, 0)
    consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap, group_id=group)
    consumer.assign([first])
    consumer.unsubscribe()
    assert consumer.assignment() == set()
    with pytest.raises(AssertionError):
        consumer.seek_to_beginning()
    with pytest.raises(AssertionError):
        consumer.subscribe()
    with pytest.raises(TypeError):
        consumer.subscribe([topic], listener=object())
    listener = ConsumerRebalanceListener
    assert callable(listener.on_partitions_revoked)
    assert callable(listener.on_partitions_assigned)
    consumer.subscribe([topic])
    assert consumer.subscription() == {topic}
    with pytest.raises(IllegalStateError):
        consumer.assign([first])
    with pytest.raises(AssertionError):
        consumer.poll(-1)
    consumer.close()
