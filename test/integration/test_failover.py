"""Brokers that die, topics that go, processes that fork: what programs of 0.9.5 meet then.

Three brokers, killed with SIGKILL. What is counted at full length, lost messages and duplicates, is
test_failover_figure.py's.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from kafka import KafkaClient, SimpleConsumer, SimpleProducer
from kafka.common import (
    FailedPayloadsError,
    KafkaError,
    OffsetFetchRequest,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
)
from test.integration.failover import GONE
from test.integration.fixtures import fetch, offset, retry, values
from test.sources import ROOT

pytestmark = [
    pytest.mark.integration,
    pytest.mark.thorough,
    pytest.mark.brokers(3),
    pytest.mark.releases(since='0.8.2'),
]

# Each kill costs 6 to 20 s: --all does with one or two releases a test, or with none.
first_and_last = pytest.mark.releases(some=('0.8.2.2', '4.4.0'))
last = pytest.mark.releases(some=('4.4.0',))
by_name = pytest.mark.releases(some=('only those of KAFKA_VERSION',))

# How long a fail-over may take, on a busy machine.
FAILOVER_SECONDS = 60


def numbered(*span):
    return [b'%d' % number for number in range(*span)]


def unique(found):
    """Return values without repetitions, in the order of their first occurrence."""
    return list(dict.fromkeys(found))


def stored(client, topic):
    """Return the values of both partitions; brokers may still be finding their leaders."""
    return retry(
        lambda: [values(fetch(client, topic, partition)) for partition in (0, 1)],
        (AssertionError, *GONE),
        FAILOVER_SECONDS,
    )


@pytest.fixture
def producers(cluster, client):
    """Return a function that makes an asynchronous producer, which is stopped after the test."""
    made = []

    def make(**options):
        options = {'req_acks': -1, 'async_stop_timeout': 120, **options}
        made.append(SimpleProducer(client, async_send=True, random_start=False, **options))
        return made[-1]

    yield make
    cluster.restart_killed()
    for producer in made:
        if not producer.stopped:
            producer.stop()


# --- a leader dies --------------------------------------------------------------------------------


@last
def test_a_synchronous_producer_fails_until_a_leader_is_known_and_recovers_by_itself(
    cluster, client, topic
):
    producer = SimpleProducer(client, req_acks=-1, ack_timeout=5000, random_start=False)
    for value in numbered(10):
        producer.send_messages(topic, value)
    cluster.kill(cluster.leader(topic, 0))
    delivered, errors = [], []
    deadline = time.monotonic() + FAILOVER_SECONDS
    while len(delivered) < 10 and time.monotonic() < deadline:
        try:
            producer.send_messages(topic, b'%d' % (10 + len(delivered)))
        except GONE as error:
            errors.append(type(error))
            time.sleep(0.1)
        else:
            delivered.append(b'%d' % (10 + len(delivered)))
    assert len(delivered) == 10
    assert errors[0] is FailedPayloadsError
    assert sorted(unique(sum(stored(client, topic), []))) == sorted(numbered(20))


@first_and_last
def test_an_asynchronous_producer_delivers_what_was_queued_around_it(
    cluster, client, topic, producers
):
    producer = producers()
    for value in numbered(100):
        producer.send_messages(topic, value)
    cluster.kill(cluster.leader(topic, 0))
    for value in numbered(100, 200):
        producer.send_messages(topic, value)
    producer.stop()
    assert (producer.tally.delivered, producer.tally.lost) == (200, 0)
    assert [unique(found) for found in stored(client, topic)] == [
        numbered(0, 200, 2),
        numbered(1, 200, 2),
    ]


@last
def test_iterating_over_a_consumer_goes_on_without_gap_or_repetition(cluster, client, topic):
    producer = SimpleProducer(client, req_acks=-1, ack_timeout=20000, random_start=False)
    for value in numbered(200):
        producer.send_messages(topic, value)
    consumer = SimpleConsumer(client, None, topic, auto_commit=False, iter_timeout=1)
    consumer.provide_partition_info()
    found = []

    def read_on(count):
        for partition, message in consumer:
            found.append((partition, message.offset, message.message.value))
            if len(found) == count:
                return
        raise AssertionError('%d messages so far' % len(found))

    retry(lambda: read_on(50), AssertionError)
    cluster.kill(cluster.leader(topic, 0))
    retry(lambda: read_on(200), (AssertionError, *GONE), FAILOVER_SECONDS)
    assert sorted(found) == sorted((n % 2, n // 2, b'%d' % n) for n in range(200))
    for partition in (0, 1):
        offsets = [at for where, at, _ in found if where == partition]
        assert offsets == list(range(100))


@by_name
def test_a_leader_that_hangs_holds_a_producer_for_the_timeout_of_its_client(cluster, topic):
    client = KafkaClient(cluster.bootstrap, timeout=2)
    producer = SimpleProducer(client, req_acks=-1, random_start=False)
    producer.send_messages(topic, b'before', b'before')
    leader = cluster.leader(topic, 1)
    cluster.pause(leader)
    try:
        started = time.monotonic()
        with pytest.raises(FailedPayloadsError):
            producer.send_messages(topic, b'during')
        assert time.monotonic() - started < 5

        def send_to_both():
            producer.send_messages(topic, b'after')
            producer.send_messages(topic, b'after')

        retry(send_to_both, GONE, FAILOVER_SECONDS)
    finally:
        cluster.resume(leader)
        client.close()


@by_name
def test_a_batch_that_a_restart_interrupts_is_sent_whole(cluster, client, new_name, producers):
    """The only copy is at the broker that goes: nobody else can take over."""
    name = new_name()
    cluster.create_topic(name, 2, replication=1)
    node = cluster.leader(name, 0)
    producer = producers(batch_send_every_n=50)
    for value in numbered(1000):
        producer.send_messages(name, value)
    cluster.kill(node)
    for value in numbered(1000, 2000):
        producer.send_messages(name, value)
    cluster.restart(node)
    producer.stop()
    assert (producer.tally.delivered, producer.tally.lost) == (2000, 0)
    # What a broker acknowledged and had not written to disk survives the end of its process.
    assert [unique(found) for found in stored(client, name)] == [
        numbered(0, 2000, 2),
        numbered(1, 2000, 2),
    ]


# --- all of them die ------------------------------------------------------------------------------


@by_name
def test_programs_outlive_a_stop_of_the_whole_cluster(cluster, client, topic, producers):
    """One outage for all of them: a start-up loop, both producers and a consumer."""
    sync = SimpleProducer(client, req_acks=-1, ack_timeout=5000, random_start=False)
    sync.send_messages(topic, b'before')
    producer = producers()
    producer.send_messages(topic, b'before')
    own = KafkaClient(cluster.bootstrap)
    consumer = SimpleConsumer(own, None, topic, auto_commit=False, auto_offset_reset='smallest')
    found = values(consumer.get_messages(count=2, timeout=10))
    for node in cluster.nodes:
        cluster.kill(node)

    with pytest.raises(FailedPayloadsError):
        sync.send_messages(topic, b'during')
    started = time.monotonic()
    assert consumer.get_messages(count=1, timeout=1) == []
    assert time.monotonic() - started < 5
    for value in numbered(100):
        producer.send_messages(topic, value)
    newcomers = []
    starting = threading.Thread(
        target=lambda: newcomers.append(retry(lambda: KafkaClient(cluster.bootstrap), GONE, 120))
    )
    starting.start()
    cluster.restart_killed()
    starting.join()
    newcomers[0].close()
    producer.stop()
    assert (producer.tally.delivered, producer.tally.lost) == (101, 0)
    retry(lambda: sync.send_messages(topic, b'after'), GONE, FAILOVER_SECONDS)

    def read_on():
        found.extend(values(consumer.get_messages(count=200, timeout=1)))
        assert {b'before', b'after', *numbered(100)} <= set(found)

    retry(read_on, (AssertionError, *GONE), FAILOVER_SECONDS)
    own.close()


@by_name
def test_without_any_broker_a_client_says_so_at_once(cluster):
    for node in cluster.nodes:
        cluster.kill(node)
    started = time.monotonic()
    with pytest.raises(KafkaError, match='none of the hosts answered'):
        KafkaClient(cluster.bootstrap)
    assert time.monotonic() - started < 5


# --- offsets and their keeper ---------------------------------------------------------------------


@last
@pytest.mark.releases(since='0.11')
@pytest.mark.parametrize(('policy', 'expected'), [('smallest', numbered(6, 10)), ('largest', [])])
def test_messages_deleted_under_a_consumer_are_skipped_by_its_policy(
    cluster, client, topic, policy, expected
):
    producer = SimpleProducer(client, req_acks=-1, ack_timeout=20000)
    while offset(client, topic, 0) < 10 or offset(client, topic, 1) < 10:
        producer.send_messages(topic, b'%d' % offset(client, topic, 0))
    consumer = SimpleConsumer(
        client, None, topic, auto_commit=False, partitions=[0], auto_offset_reset=policy
    )
    delete_records(cluster, topic, 6)
    found = values(consumer.get_messages(count=4, timeout=5))
    assert found == expected
    producer.send_messages(topic, b'next')
    producer.send_messages(topic, b'next')
    assert values(consumer.get_messages(count=1, timeout=10)) == [b'next']


@last
@pytest.mark.releases(since='0.11')
def test_without_a_policy_a_consumer_raises(cluster, client, topic):
    consumer = SimpleConsumer(client, None, topic, auto_commit=False, auto_offset_reset='none')
    consumer.seek(5, partition=0)
    with pytest.raises(OffsetOutOfRangeError):
        consumer.get_messages(count=1, timeout=5)


@last
def test_a_commit_outlives_the_coordinator(cluster, client, topic, new_name):
    group = new_name()
    producer = SimpleProducer(client, req_acks=-1, ack_timeout=20000, random_start=False)
    for value in numbered(20):
        producer.send_messages(topic, value)
    consumer = SimpleConsumer(client, group, topic, auto_commit=False)
    assert len(retry(lambda: consumer.get_messages(count=20, timeout=5), GONE)) == 20
    consumer.count_since_commit = 1
    assert consumer.commit() is True
    consumer.count_since_commit = 1
    keeper = retry(lambda: client._get_coordinator_for_group(group.encode()), KafkaError)
    cluster.wait_in_sync('__consumer_offsets')
    cluster.kill(keeper.nodeId)
    results = []
    deadline = time.monotonic() + FAILOVER_SECONDS
    while True not in results and time.monotonic() < deadline:
        started = time.monotonic()
        try:
            results.append(consumer.commit())
        except GONE as error:
            results.append(type(error))
        assert time.monotonic() - started < 30
        time.sleep(0.2)
    assert True in results
    assert None not in results
    requests = [OffsetFetchRequest(topic.encode(), partition) for partition in (0, 1)]
    answers = retry(
        lambda: client.send_offset_fetch_request(group.encode(), requests), GONE, FAILOVER_SECONDS
    )
    assert [answer.offset for answer in answers] == [10, 10]


# --- a topic goes ---------------------------------------------------------------------------------


@last
@pytest.mark.releases(since='2.8')
def test_a_topic_deleted_under_a_consumer(cluster, client, topic):
    producer = SimpleProducer(client, req_acks=-1, ack_timeout=20000)
    for value in numbered(10):
        producer.send_messages(topic, value)
    consumer = SimpleConsumer(client, None, topic, auto_commit=False, iter_timeout=1)
    assert len(consumer.get_messages(count=10, timeout=10)) == 10
    delete_topic(cluster, topic)
    with pytest.raises(UnknownTopicOrPartitionError):
        consumer.get_messages(count=1, timeout=5)
    # These brokers create what is asked for: the consumer goes on in the new topic.
    retry(lambda: producer.send_messages(topic, b'anew'), GONE, FAILOVER_SECONDS)

    def read_on():
        producer.send_messages(topic, b'more')
        producer.send_messages(topic, b'more')
        assert consumer.get_messages(count=1, timeout=1)

    retry(read_on, (AssertionError, *GONE), FAILOVER_SECONDS)


@last
@pytest.mark.releases(since='2.8')
def test_a_topic_deleted_under_the_producers(cluster, client, topic, producers):
    sync = SimpleProducer(client, req_acks=-1, ack_timeout=20000)
    sync.send_messages(topic, b'before')
    producer = producers()
    producer.send_messages(topic, b'before')
    delete_topic(cluster, topic)
    for value in numbered(100):
        producer.send_messages(topic, value)
    retry(lambda: sync.send_messages(topic, b'after'), GONE, FAILOVER_SECONDS)
    producer.stop()
    assert producer.tally.lost == 0
    found = retry(lambda: sum(stored(client, topic), []), GONE)
    assert {b'after', *numbered(100)} <= set(found)


def delete_topic(cluster, topic):
    """Delete a topic by confluent-kafka, and wait until it is done."""
    admin = administrator(cluster)
    admin.delete_topics([topic], operation_timeout=30)[topic].result(30)


def delete_records(cluster, topic, before):
    """Delete the messages of partition 0 below an offset."""
    from confluent_kafka import TopicPartition  # late: one of two judges, and heavy

    admin = administrator(cluster)
    for future in admin.delete_records([TopicPartition(topic, 0, before)]).values():
        future.result(30)


def administrator(cluster):
    """Return confluent-kafka's administrator, or skip. It has to outlive its futures."""
    confluent = pytest.importorskip('confluent_kafka.admin')
    return confluent.AdminClient({'bootstrap.servers': cluster.bootstrap, 'log_level': 0})


# --- forks ----------------------------------------------------------------------------------------

FORKS = """
import multiprocessing, os, sys, threading, warnings
warnings.simplefilter('ignore', DeprecationWarning)  # 3.12 on: a fork with threads
from kafka import KafkaClient, SimpleProducer, create_message
from kafka.common import ConnectionError, FetchRequest, ProduceRequest

bootstrap, topic = sys.argv[1], sys.argv[2].encode()
client = KafkaClient(bootstrap)

def converse(partition, count):
    # Answers of the other process would be of its partition, or bring its messages.
    mine = b'partition %d' % partition
    for number in range(count):
        (answer,) = client.send_produce_request(
            [ProduceRequest(topic, partition, [create_message(mine)])], acks=-1, timeout=20000
        )
        assert (answer.partition, answer.error) == (partition, 0), answer
        (answer,) = client.send_fetch_request(
            [FetchRequest(topic, partition, answer.offset, 4096)], min_bytes=1
        )
        assert answer.partition == partition, answer
        assert {found.message.value for found in answer.messages} == {mine}
"""


def run_program(cluster, topic, program):
    """Run a program of its own process; what it wrote to standard output."""
    done = subprocess.run(
        [sys.executable, '-c', FORKS + textwrap.dedent(program), cluster.bootstrap, topic],
        cwd=ROOT,
        env={**os.environ, 'PYTHONPATH': ROOT},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b'')
    return done.stdout


needs_fork = pytest.mark.skipif(not hasattr(os, 'fork'), reason='this system has no fork')


@last
@needs_fork
def test_parent_and_child_use_one_client_at_the_same_time(cluster, topic):
    program = """
        converse(0, 5)
        child = os.fork()
        converse(1 if child else 0, 30)
        if not child:
            client.close()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        converse(0, 5)
        sys.exit(status)
    """
    assert run_program(cluster, topic, program) == b''


@by_name
@needs_fork
def test_a_fork_while_another_thread_waits_for_an_answer(cluster, topic):
    program = """
        failures = []
        def talk():
            try:
                converse(0, 200)
            except BaseException as error:
                failures.append(error)
        thread = threading.Thread(target=talk)
        thread.start()
        children = []
        while thread.is_alive() and len(children) < 3:
            process = multiprocessing.get_context('fork').Process(target=converse, args=(1, 20))
            process.start()
            children.append(process)
        for process in children:
            process.join()
        thread.join()
        assert [process.exitcode for process in children] == [0] * len(children)
        assert failures == [], failures
    """
    assert run_program(cluster, topic, program) == b''


@last
@needs_fork
def test_a_fork_between_a_request_and_its_answer(cluster, topic):
    program = """
        from kafka.protocol import KafkaProtocol
        (conn,) = client.conns.values()
        conn.send(7, KafkaProtocol.encode_metadata_request(b'me', 7, [topic]))
        child = os.fork()
        if not child:
            try:
                conn.recv(7)
            except ConnectionError:
                converse(0, 5)
                os._exit(0)
            os._exit(1)
        _, status = os.waitpid(child, 0)
        answer = KafkaProtocol.decode_metadata_response(conn.recv(7))
        assert [found.topic for found in answer.topics] == [topic]
        converse(0, 5)
        sys.exit(status)
    """
    assert run_program(cluster, topic, program) == b''


@last
@needs_fork
def test_an_asynchronous_producer_in_parent_and_child(cluster, client, topic):
    program = """
        producer = SimpleProducer(
            client, async_send=True, req_acks=-1, ack_timeout=20000, random_start=False
        )
        for number in range(50):
            producer.send_messages(topic, b'parent %d' % number)
        child = os.fork()
        name = b'parent' if child else b'child'
        for number in range(50, 100):
            producer.send_messages(topic, b'%s %d' % (name, number))
        if child:
            _, status = os.waitpid(child, 0)
            sys.exit(status)
    """
    assert run_program(cluster, topic, program) == b''
    expected = [b'parent %d' % n for n in range(100)] + [b'child %d' % n for n in range(50, 100)]
    assert sorted(sum(stored(client, topic), [])) == sorted(expected)
