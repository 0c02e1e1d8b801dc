"""SimpleClient of 1.x on real brokers: what its programs did with it, in text."""

from __future__ import annotations

import threading

import pytest

from kafka import (
    KeyedProducer,
    MultiProcessConsumer,
    Murmur2Partitioner,
    SimpleClient,
    SimpleConsumer,
    SimpleProducer,
    create_gzip_message,
    create_message,
)
from kafka.context import OffsetCommitContext
from kafka.errors import (
    ConsumerFetchSizeTooSmall,
    FailedPayloadsError,
    GroupCoordinatorNotAvailableError,
    KafkaTimeoutError,
    LeaderNotAvailableError,
    NotCoordinatorForGroupError,
    NotLeaderForPartitionError,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
)
from kafka.protocol import CODEC_GZIP, CODEC_SNAPPY
from kafka.protocol.message import Message, PartialMessage
from kafka.structs import (
    BrokerMetadata,
    FetchRequestPayload,
    ListOffsetRequestPayload,
    ListOffsetResponsePayload,
    OffsetCommitRequestPayload,
    OffsetFetchRequestPayload,
    OffsetRequestPayload,
    ProduceRequestPayload,
    TopicPartition,
)
from test.integration.fixtures import retry

pytestmark = [
    pytest.mark.integration,
    # One release per way of storing offsets and messages, unless asked by name.
    pytest.mark.releases(some=('0.8.0', '0.8.2.2', '0.11.0.3', '4.4.0')),
]

# What a program meets while a topic comes into being.
GONE = (LeaderNotAvailableError, FailedPayloadsError, NotLeaderForPartitionError)
NO_COORDINATOR = (GroupCoordinatorNotAvailableError, NotCoordinatorForGroupError)


@pytest.fixture
def client(cluster):
    """A client of 1.x for the cluster."""
    made = SimpleClient(cluster.bootstrap)
    yield made
    made.close()


@pytest.fixture
def consuming(client, topic):
    """Return a function that makes a SimpleConsumer of the topic; it is stopped at the end."""
    made = []

    def make(group=None, **options):
        made.append(SimpleConsumer(client, group, topic, **options))
        return made[-1]

    yield make
    for consumer in made:
        consumer.stop()


def produce(client, topic, partition, *messages, acks=1):
    """Write messages and return the one answer."""
    request = ProduceRequestPayload(topic, partition, list(messages))
    (answer,) = client.send_produce_request([request], acks=acks)
    return answer


def end_of(client, topic, partition):
    """Return the end of a partition's log."""
    (answer,) = client.send_offset_request([OffsetRequestPayload(topic, partition, -1, 1)])
    return answer.offsets[0]


def fetched(client, topic, partition, at=0, max_bytes=1 << 20):
    """Return the messages of one fetch."""
    (answer,) = client.send_fetch_request([FetchRequestPayload(topic, partition, at, max_bytes)])
    assert (answer.topic, answer.partition, answer.error) == (topic, partition, 0)
    return answer.messages


# --- the cluster --------------------------------------------------------------------------------


def test_metadata_is_text_and_leaders_are_ids(cluster, client, topic):
    client.load_metadata_for_topics(topic)
    host, port = cluster.address(0)
    assert client.brokers == {0: BrokerMetadata(0, host, port)}
    assert topic in client.topics
    assert client.topic_partitions[topic] == {0: 0, 1: 0}
    assert client.topic_partitions[topic.encode()] == {0: 0, 1: 0}
    assert client.topics_to_brokers[TopicPartition(topic, 1)] == client.brokers[0]
    assert client.get_partition_ids_for_topic(topic) == [0, 1]


def test_dead_host_among_others_is_no_obstacle(cluster, topic):
    for hosts in ('127.0.0.1:1,' + cluster.bootstrap, ['127.0.0.1:1', cluster.bootstrap]):
        client = SimpleClient(hosts)
        assert client.has_metadata_for_topic(topic)
        client.close()


def test_topic_is_created_by_asking_for_it(client, new_name):
    name = new_name()
    with pytest.raises(KafkaTimeoutError):
        client.ensure_topic_exists(name, timeout=0)
    client.ensure_topic_exists(name)
    assert client.get_partition_ids_for_topic(name) == [0, 1]
    assert produce(client, name, 0, create_message(b'first')).offset == 0


# --- produce and fetch --------------------------------------------------------------------------


@pytest.mark.parametrize('acks', [1, -1])
def test_produced_messages_are_fetched(client, topic, acks):
    messages = [
        create_message(b'plain', b'key'),
        create_gzip_message([(b'zipped', b'k'), (b'again', None)]),
        create_message(None, b'tombstone'),
    ]
    answer = produce(client, topic, 1, *messages, acks=acks)
    assert answer == (topic, 1, 0, 0)
    assert end_of(client, topic, 1) == 4
    found = fetched(client, topic, 1)
    assert [(m.message.key, m.message.value) for m in found] == [
        (b'key', b'plain'),
        (b'k', b'zipped'),
        (None, b'again'),
        (b'tombstone', None),
    ]
    assert all(type(m.message) is Message for m in found)
    assert [m.offset for m in found][0::3] == [0, 3]


def test_produce_without_acknowledgement(client, topic):
    request = ProduceRequestPayload(topic, 0, [create_message(b'unacknowledged')])
    assert client.send_produce_request([request], acks=0) == []
    # The connection is one queue: this answer comes when the message was taken.
    assert retry(lambda: one_more(client, topic), AssertionError)


def one_more(client, topic):
    assert end_of(client, topic, 0) == 1
    return True


def test_answers_come_in_the_order_of_payloads(client, topic):
    payloads = [ProduceRequestPayload(topic, p, [create_message(b'v')]) for p in (1, 0)]
    assert [answer.partition for answer in client.send_produce_request(payloads)] == [1, 0]


def test_topic_of_a_payload_may_be_bytes(client, topic):
    produce(client, topic.encode(), 0, create_message(b'v'))
    assert end_of(client, topic.encode(), 0) == 1


def test_message_that_does_not_fit_is_a_partial_message(client, topic):
    produce(client, topic, 0, create_message(b'a' * 100), create_message(b'b' * 1000))
    first, *rest = fetched(client, topic, 0, max_bytes=500)
    assert first.message.value == b'a' * 100
    assert all(isinstance(m.message, PartialMessage) for m in rest)
    (only,) = fetched(client, topic, 0, at=1, max_bytes=500)
    assert isinstance(only.message, PartialMessage)


def test_unknown_partition_fails_its_payload(client, topic):
    request = ProduceRequestPayload(topic, 7, [create_message(b'v')])
    with pytest.raises(FailedPayloadsError):
        client.send_produce_request([request])
    (failed,) = client.send_produce_request([request], fail_on_error=False)
    assert failed.payload == request
    assert isinstance(failed.__cause__, UnknownTopicOrPartitionError)


def test_offset_out_of_range(client, topic):
    with pytest.raises(OffsetOutOfRangeError):
        fetched(client, topic, 0, at=99)


# --- offsets ------------------------------------------------------------------------------------


def test_offsets_of_the_log(client, topic):
    produce(client, topic, 0, create_message(b'a'), create_message(b'b'))
    requests = [OffsetRequestPayload(topic, 0, when, 1) for when in (-2,)]
    (earliest,) = client.send_offset_request(requests)
    assert (earliest.topic, earliest.error, earliest.offsets) == (topic, 0, (0,))
    assert end_of(client, topic, 0) == 2


@pytest.mark.releases(since='0.10.1')
def test_one_offset_by_time(client, topic):
    produce(client, topic, 0, create_message(b'a'), create_message(b'b'))
    asked = [ListOffsetRequestPayload(topic, 0, -1)]
    end = ListOffsetResponsePayload(topic, 0, 0, -1, 2)
    assert client.send_list_offset_request(asked) == [end]
    asked = [ListOffsetRequestPayload(topic, 0, -2)]
    assert client.send_list_offset_request(asked, callback=lambda answer: answer.offset) == [0]


@pytest.mark.releases(since='0.8.1')
def test_committed_offset_is_fetched_with_empty_metadata(client, topic, new_name):
    group = new_name()
    (before,) = client.send_offset_fetch_request(
        group, [OffsetFetchRequestPayload(topic, 0)], fail_on_error=False
    )
    assert before.offset == -1
    (stored,) = client.send_offset_commit_request(
        group, [OffsetCommitRequestPayload(topic, 0, 42, 'metadata')]
    )
    assert stored == (topic, 0, 0)
    (found,) = client.send_offset_fetch_request(group, [OffsetFetchRequestPayload(topic, 0)])
    assert found == (topic, 0, 42, '', 0)


@pytest.mark.releases(since='0.8.2')
def test_coordinator_is_found_and_asked(client, topic, new_name):
    group = new_name()
    answer = retry(lambda: asked_coordinator(client, group), NO_COORDINATOR)
    assert (answer.nodeId, answer.host) == (0, client.brokers[0].host)
    (found,) = client.send_offset_fetch_request_kafka(
        group, [OffsetFetchRequestPayload(topic, 0)], fail_on_error=False
    )
    assert found.offset == -1


def asked_coordinator(client, group):
    answer = client.send_consumer_metadata_request(group)
    if answer.error:
        raise GroupCoordinatorNotAvailableError(answer)
    return answer


# --- producers and consumers --------------------------------------------------------------------


def test_producers_and_a_consumer_work_in_text(client, topic, consuming):
    simple = SimpleProducer(client, random_start=False)
    (first,) = simple.send_messages(topic, b'one', b'two')
    (second,) = simple.send_messages(topic, b'three')
    assert (first.topic, first.partition, second.partition) == (topic, 0, 1)
    keyed = KeyedProducer(client, partitioner=Murmur2Partitioner)
    (answer,) = keyed.send_messages(topic, b'key', b'four')
    (again,) = keyed.send_messages(topic.encode(), b'key', b'five')
    assert again.partition == answer.partition
    consumer = consuming()
    assert (consumer.topic, consumer.group) == (topic, None)
    messages = consumer.get_messages(5, timeout=10)
    assert sorted(m.message.value for m in messages) == sorted(
        [b'one', b'two', b'three', b'four', b'five']
    )
    assert {m.message.key for m in messages} == {None, b'key'}


def test_first_message_for_a_new_topic_creates_it(client, new_name):
    name = new_name()
    (answer,) = SimpleProducer(client).send_messages(name, b'first')
    assert (answer.topic, answer.error) == (name, 0)


def test_first_keyed_message_for_a_new_topic_gets_through_by_trying_again(client, new_name):
    name = new_name()
    keyed = KeyedProducer(client, partitioner=Murmur2Partitioner)
    (answer,) = retry(lambda: keyed.send_messages(name, b'key', b'first'), GONE)
    assert (answer.topic, answer.error) == (name, 0)


def test_asynchronous_producer_sends_everything_until_it_is_stopped(client, topic, consuming):
    producer = SimpleProducer(
        client, async_send=True, batch_send_every_n=20, batch_send_every_t=0.2
    )
    for number in range(50):
        assert producer.send_messages(topic, b'%d' % number) == []
    producer.stop()
    messages = consuming().get_messages(50, timeout=10)
    assert sorted(int(m.message.value) for m in messages) == list(range(50))


@pytest.mark.parametrize('codec', [CODEC_GZIP, CODEC_SNAPPY], ids=['gzip', 'snappy'])
def test_compressed_messages_count_as_those_inside(client, topic, consuming, codec):
    values = [b'%d' % number * 20 for number in range(50)]
    SimpleProducer(client, codec=codec, random_start=False).send_messages(topic, *values)
    assert end_of(client, topic, 0) == 50
    messages = consuming(partitions=[0]).get_messages(50, timeout=10)
    assert [m.message.value for m in messages] == values


@pytest.mark.releases(since='0.8.1')
def test_group_goes_on_where_it_committed(client, topic, consuming, new_name):
    group = new_name()
    producer = SimpleProducer(client, random_start=False)
    producer.send_messages(topic, *(b'%d' % number for number in range(10)))
    consumer = consuming(group, auto_commit=False, partitions=[0])
    assert consumer.pending() == 10
    assert len(consumer.get_messages(4, timeout=10)) == 4
    assert consumer.commit()
    (stored,) = client.send_offset_fetch_request(group, [OffsetFetchRequestPayload(topic, 0)])
    assert stored.offset == 4
    other = consuming(group, auto_commit=False, partitions=[0], iter_timeout=0.5)
    assert [m.message.value for m in other] == [b'%d' % number for number in range(4, 10)]


def test_processes_read_what_is_there(client, topic):
    for partition in (0, 1):
        values = [b'%d' % number for number in range(partition, 20, 2)]
        produce(client, topic, partition, *map(create_message, values))
    consumer = MultiProcessConsumer(client, None, topic, num_procs=2)
    try:
        messages = consumer.get_messages(20, timeout=20)
    finally:
        consumer.stop()
    assert sorted(int(m.message.value) for m in messages) == list(range(20))


@pytest.mark.releases(since='0.8.1')
def test_context_commits_what_was_marked(client, topic, consuming, new_name):
    group = new_name()
    produce(client, topic, 0, *(create_message(b'%d' % n) for n in range(5)))
    consumer = consuming(group, auto_commit=False, partitions=[0])
    consumer.provide_partition_info()
    with OffsetCommitContext(consumer) as context:
        for partition, message in consumer.get_messages(3, timeout=10):
            context.mark(partition, message.offset)
    (stored,) = client.send_offset_fetch_request(group, [OffsetFetchRequestPayload(topic, 0)])
    assert stored.offset == 3


def test_iteration_seeks_and_ends(client, topic, consuming):
    produce(client, topic, 0, *(create_message(b'%d' % n) for n in range(10)))
    consumer = consuming(iter_timeout=0.5)
    consumer.seek(-3, 2, 0)
    assert [m.message.value for m in consumer] == [b'7', b'8', b'9']
    consumer.seek(2, 0, 0)
    assert consumer.get_message(timeout=5).message.value == b'2'


def test_message_larger_than_the_buffer_is_delivered(client, topic, consuming):
    produce(client, topic, 0, create_message(b's'), create_message(b'x' * 20000))
    produce(client, topic, 0, create_message(b'e'))
    consumer = consuming()
    assert [len(m.message.value) for m in consumer.get_messages(3, timeout=10)] == [1, 20000, 1]


def test_message_larger_than_the_largest_buffer_is_an_error(client, topic, consuming):
    produce(client, topic, 0, create_message(b'x' * 50000))
    with pytest.raises(ConsumerFetchSizeTooSmall):
        consuming().get_message(False, 0.1)
    unlimited = consuming(max_buffer_size=None)
    assert len(unlimited.get_message(timeout=10).message.value) == 50000


# --- life ---------------------------------------------------------------------------------------


def test_copy_works_in_another_thread_and_the_original_goes_on(client, topic):
    client.load_metadata_for_topics(topic)
    copied, answers = client.copy(), []

    def work():
        copied.reinit()
        answers.append(produce(copied, topic, 0, create_message(b'from the copy')))
        copied.close()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    copied.close()
    assert [answer.error for answer in answers] == [0]
    assert [m.message.value for m in fetched(client, topic, 0)] == [b'from the copy']


def test_closed_client_connects_again_when_it_is_used(client, topic):
    client.load_metadata_for_topics(topic)
    client.close()
    assert client.has_metadata_for_topic(topic)
    assert produce(client, topic, 0, create_message(b'again')).offset == 0
