"""Three real brokers, of which one dies: order across brokers, fail-over, nothing lost."""

from __future__ import annotations

import time

import pytest

from kafka import (
    KafkaClient,
    KafkaConsumer,
    KeyedProducer,
    SimpleClient,
    SimpleConsumer,
    SimpleProducer,
    create_message,
)
from kafka.common import (
    ConnectionError,
    FailedPayloadsError,
    FetchRequest,
    KafkaUnavailableError,
    LeaderNotAvailableError,
    NotLeaderForPartitionError,
    OffsetRequest,
    ProduceRequest,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
)
from test.integration.fixtures import fetch, retry, values

pytestmark = [
    pytest.mark.integration,
    pytest.mark.thorough,
    pytest.mark.brokers(3),
    # A fail-over takes 6 to 20 s: one release per way of electing leaders, unless asked by name.
    pytest.mark.releases(some=('0.8.2.2', '2.8.2', '4.4.0')),
]

# What a program of 2015 met while a leader was gone.
GONE = (
    FailedPayloadsError,
    ConnectionError,
    KafkaUnavailableError,
    LeaderNotAvailableError,
    NotLeaderForPartitionError,
    UnknownTopicOrPartitionError,
    RequestTimedOutError,
)


def test_metadata_names_all_three(cluster, client, topic):
    client.load_metadata_for_topics(topic)
    assert {node: (b.host, b.port) for node, b in client.brokers.items()} == {
        node: (b'127.0.0.1', cluster.address(node)[1]) for node in (0, 1, 2)
    }
    for partition in client.topic_partitions[topic].values():
        assert sorted(partition.replicas) == [0, 1, 2]


def test_responses_of_several_brokers_come_in_the_order_of_the_payloads(cluster, client, new_name):
    name = new_name()
    cluster.create_topic(name, 6)
    wanted = [4, 0, 5, 2, 1, 3]
    name = name.encode()
    requests = [ProduceRequest(name, p, [create_message(b'%d' % p)] * (p + 1)) for p in wanted]
    produced = client.send_produce_request(requests, acks=-1, timeout=10000)
    leaders = {found.leader for found in client.topic_partitions[name].values()}
    assert leaders == {0, 1, 2}
    assert [answer.partition for answer in produced] == wanted
    fetched = client.send_fetch_request([FetchRequest(name, p, 0, 4096) for p in wanted])
    assert [answer.partition for answer in fetched] == wanted
    assert [values(answer.messages) for answer in fetched] == [
        [b'%d' % p] * (p + 1) for p in wanted
    ]
    ends = client.send_offset_request([OffsetRequest(name, p, -1, 1) for p in wanted])
    assert [list(answer.offsets) for answer in ends] == [[p + 1] for p in wanted]


@pytest.mark.releases(since='0.8.2')
def test_a_cluster_commit_means_that_every_replica_has_it(client, topic):
    """What all replicas have is below the high water mark, and readable, from that moment on.

    Brokers before 0.8.2 answer a moment before they move the mark.
    """
    client.load_metadata_for_topics(topic)
    assert len(client.topic_partitions[topic][0].isr) == 3
    name = topic.encode()
    producer = SimpleProducer(
        client,
        req_acks=SimpleProducer.ACK_AFTER_CLUSTER_COMMIT,
        ack_timeout=10000,
        random_start=False,
    )
    for number in range(0, 20, 2):
        (answer,) = producer.send_messages(topic, b'%d' % number, b'%d' % (number + 1))
        producer.send_messages(topic, b'to the other partition')
        request = FetchRequest(name, 0, answer.offset, 4096)
        (fetched,) = client.send_fetch_request([request], min_bytes=0)
        assert values(fetched.messages) == [b'%d' % number, b'%d' % (number + 1)]
        assert fetched.highwaterMark == number + 2


def test_one_of_three_brokers_is_enough_to_consume_from_all(cluster, client, new_name):
    name = new_name()
    cluster.create_topic(name, 6)
    requests = [ProduceRequest(name.encode(), p, [create_message(b'%d' % p)]) for p in range(6)]
    client.send_produce_request(requests, acks=-1, timeout=10000)
    consumer = KafkaConsumer(
        name,
        bootstrap_servers=[cluster.bootstrap.split(',')[1]],
        auto_offset_reset='smallest',
        dialect='0.9.5',
    )
    found = {consumer.next().value for _ in range(6)}
    consumer.close()
    assert found == {b'%d' % p for p in range(6)}
    assert len({meta.leader for meta in client.topic_partitions[name].values()}) == 3


@pytest.mark.parametrize('kind', [KafkaClient, SimpleClient])
def test_the_producer_fails_then_recovers_when_the_leader_is_killed(cluster, topic, kind):
    client = kind(cluster.bootstrap)
    producer = SimpleProducer(client, req_acks=-1, ack_timeout=5000, random_start=False)
    for i in range(10):
        producer.send_messages(topic, b'before %d' % i)
    leader = cluster.leader(topic, 0)
    cluster.kill(leader)

    delivered, failures = [], 0
    deadline = time.monotonic() + 90
    while len(delivered) < 10 and time.monotonic() < deadline:
        value = b'after %d' % len(delivered)
        try:
            producer.send_messages(topic, value)
        except GONE:
            failures += 1
            time.sleep(0.2)
        else:
            delivered.append(value)
    assert len(delivered) == 10
    assert failures >= 1

    # A send that failed may have been written all the same: at least once, never lost.
    found = values(fetch(client, topic, 0) + fetch(client, topic, 1))
    assert set(found) == {b'before %d' % i for i in range(10)} | set(delivered)
    client.close()


def test_the_consumer_goes_on_when_the_leader_is_killed(cluster, client, topic):
    producer = KeyedProducer(client, req_acks=-1, ack_timeout=20000)
    for i in range(20):
        producer.send_messages(topic, b'%d' % i, b'%d' % i)
    consumer = SimpleConsumer(client, None, topic, auto_commit=False)
    found = values(consumer.get_messages(count=5, timeout=10))
    assert len(found) == 5
    cluster.kill(cluster.leader(topic, 1))
    cluster.wait_for_leader(topic, 0)
    cluster.wait_for_leader(topic, 1)

    def read_on():
        found.extend(values(consumer.get_messages(count=20 - len(found), timeout=2)))
        assert len(found) == 20

    retry(read_on, (AssertionError, *GONE), seconds=60)
    assert sorted(found) == sorted(b'%d' % i for i in range(20))
    consumer.stop()


@pytest.mark.releases(since='0.8.1')  # groups store offsets
def test_the_kafka_consumer_waits_for_new_leaders_and_raises_nothing(
    cluster, client, topic, new_name
):
    """Nor do its automatic commits, which are made up for; each message comes once, in order."""
    producer = KeyedProducer(client, req_acks=-1, ack_timeout=20000)
    for i in range(200):
        producer.send_messages(topic, b'%d' % i, b'%d' % i)
    options = {
        'bootstrap_servers': cluster.bootstrap,
        'group_id': new_name(),
        'auto_offset_reset': 'smallest',
        'auto_commit_enable': True,
        'auto_commit_interval_messages': 10,
        'fetch_message_max_bytes': 300,  # so that there are many rounds
        'consumer_timeout_ms': 60000,
    }
    consumer = KafkaConsumer(topic, **options)
    found = [consumer.next() for _ in range(20)]
    cluster.kill(cluster.leader(topic, 1))
    while len(found) < 200:
        found.append(consumer.next())
        consumer.task_done(found[-1])
    assert sorted(int(message.value) for message in found) == list(range(200))
    for partition in (0, 1):
        places = [message.offset for message in found if message.partition == partition]
        assert places == list(range(len(places)))
    consumer.commit()
    consumer.close()
    second = KafkaConsumer(topic, **options)
    assert sum(second.offsets('commit').values()) == 200
    second.close()


def test_a_client_starts_with_the_first_host_dead(cluster, topic):
    cluster.kill(0)
    client = KafkaClient([cluster.bootstrap.split(',')[0], cluster.bootstrap.split(',')[1]])
    assert client.has_metadata_for_topic(topic)
    client.close()
