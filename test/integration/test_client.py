"""KafkaClient of 0.9.5 on real brokers: metadata, the six requests, hosts, copies and closing."""

from __future__ import annotations

import threading
import time

import pytest

from kafka import KafkaClient, create_gzip_message, create_message, create_snappy_message
from kafka.common import (
    BrokerMetadata,
    FetchRequest,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetOutOfRangeError,
    OffsetRequest,
    ProduceRequest,
    TopicAndPartition,
    UnknownTopicOrPartitionError,
)
from kafka.errors import (
    ConsumerCoordinatorNotAvailableCode,
    NotCoordinatorForConsumerCode,
    UnknownMemberIdError,
    UnsupportedVersionError,
)
from test.integration.fixtures import (
    EARLIEST,
    fetch,
    keys_and_values,
    offset,
    produce,
    retry,
    values,
)
from test.integration.oracles import Confluent

pytestmark = pytest.mark.integration

NO_COORDINATOR = (ConsumerCoordinatorNotAvailableCode, NotCoordinatorForConsumerCode)


# --- hosts, life --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'form',
    [
        lambda host: host,
        lambda host: [host],
        lambda host: '127.0.0.1:1,' + host,
        lambda host: ['127.0.0.1:1', host],
    ],
    ids=['text', 'list', 'comma text with a dead host', 'list with a dead host'],
)
def test_hosts_may_be_a_string_a_list_or_joined_by_commas(cluster, topic, form):
    client = KafkaClient(form(cluster.bootstrap))
    assert cluster.address(0) in client.hosts
    assert client.has_metadata_for_topic(topic)
    client.close()


def test_metadata_lists_the_broker_and_the_partitions(cluster, client, topic):
    client.load_metadata_for_topics(topic)
    host, port = cluster.address(0)
    broker = BrokerMetadata(0, host.encode(), port)
    assert client.brokers == {0: broker}
    assert topic.encode() in client.topics
    assert client.has_metadata_for_topic(topic)
    assert client.get_partition_ids_for_topic(topic) == [0, 1]
    assert client.topics_to_brokers[TopicAndPartition(topic.encode(), 1)] == broker
    assert client.topic_partitions[topic][0].leader == 0


def test_metadata_of_all_topics_comes_without_naming_any(client, topic):
    client.reset_all_metadata()
    client.load_metadata_for_topics()
    assert client.has_metadata_for_topic(topic)


def test_raw_metadata_response_tells_leader_replicas_and_isr(client, topic):
    response = client.send_metadata_request([topic.encode()])
    (found,) = response.topics
    assert (found.topic, found.error) == (topic.encode(), 0)
    assert sorted(p.partition for p in found.partitions) == [0, 1]
    assert {(p.leader, p.replicas, p.isr, p.error) for p in found.partitions} == {
        (0, (0,), (0,), 0)
    }


def test_ensure_topic_exists_creates_the_topic(client, new_name):
    name = new_name()
    assert not client.has_metadata_for_topic(name)
    client.ensure_topic_exists(name)
    assert client.get_partition_ids_for_topic(name) == [0, 1]


def test_ensure_topic_exists_gives_up_at_once_without_time(client, new_name):
    with pytest.raises(KafkaTimeoutError):
        client.ensure_topic_exists(new_name(), timeout=0)


def test_copy_works_in_another_thread_and_the_original_goes_on(client, topic):
    client.load_metadata_for_topics(topic)
    copied = client.copy()
    answers = []

    def work():
        copied.reinit()
        answers.append(produce(copied, topic, 0, [b'from the copy']))
        copied.close()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    copied.close()
    assert [answer.error for answer in answers] == [0]
    assert values(fetch(client, topic, 0)) == [b'from the copy']


def test_closed_client_connects_again_when_it_is_used(client, topic):
    client.load_metadata_for_topics(topic)
    client.close()
    assert client.has_metadata_for_topic(topic)
    assert produce(client, topic, 0, [b'again']).offset == 0


def test_reinit_keeps_the_client_usable(client, topic):
    produce(client, topic, 0, [b'before'])
    client.reinit()
    produce(client, topic, 0, [b'after'])
    assert values(fetch(client, topic, 0)) == [b'before', b'after']


# --- produce ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'messages, count',
    [
        ([create_message(b'plain %d' % i) for i in range(100)], 100),
        ([create_gzip_message([(b'zipped %d' % i, None) for i in range(100)])], 100),
        ([create_snappy_message([(b'snapped %d' % i, None) for i in range(100)])], 100),
        (
            [
                create_message(b'plain'),
                create_gzip_message([(b'zipped %d' % i, b'key') for i in range(100)]),
                create_snappy_message([(b'snapped %d' % i, None) for i in range(100)]),
            ],
            201,
        ),
    ],
    ids=['plain', 'gzip', 'snappy', 'mixed'],
)
def test_produce_moves_the_log_end_by_the_number_of_inner_messages(client, topic, messages, count):
    for start in (0, count):
        answer = produce(client, topic, 0, messages)
        assert (answer.topic, answer.partition) == (topic.encode(), 0)
        assert (answer.error, answer.offset) == (0, start)
        assert offset(client, topic, 0) == start + count
    assert [found.offset for found in fetch(client, topic, 0)] == list(range(2 * count))


def test_keys_and_values_come_back_as_written(client, topic):
    written = [(None, b'no key'), (b'key', b'value'), (b'', b''), (b'tombstone', None)]
    produce(client, topic, 1, [create_message(value, key) for key, value in written])
    produce(client, topic, 1, [create_gzip_message([(value, key) for key, value in written])])
    produce(client, topic, 1, [create_snappy_message([(value, key) for key, value in written])])
    assert keys_and_values(fetch(client, topic, 1)) == 3 * written


@pytest.mark.parametrize('acks', [1, -1])
def test_produce_with_acks_is_answered(client, topic, acks):
    assert produce(client, topic, 0, [b'one'], acks=acks).error == 0
    assert offset(client, topic, 0) == 1


def test_produce_without_acks_returns_at_once_and_writes(client, topic):
    request = ProduceRequest(topic.encode(), 0, [create_message(b'one')])
    assert client.send_produce_request([request], acks=0) == []

    def written():
        assert offset(client, topic, 0) == 1

    retry(written, AssertionError)


def test_responses_come_in_the_order_of_the_payloads(cluster, client, new_name):
    topics = [new_name() for _ in range(3)]
    for name in topics:
        cluster.create_topic(name, 2)
    wanted = [(topics[i], p) for i, p in [(2, 1), (0, 0), (1, 1), (0, 1), (2, 0), (1, 0)]]
    named = [(name.encode(), p) for name, p in wanted]
    produced = client.send_produce_request(
        [ProduceRequest(name, p, [create_message(b'x')]) for name, p in named]
    )
    assert [(answer.topic, answer.partition) for answer in produced] == named
    fetched = client.send_fetch_request([FetchRequest(name, p, 0, 1024) for name, p in named])
    assert [(answer.topic, answer.partition) for answer in fetched] == named
    ends = client.send_offset_request([OffsetRequest(name, p, -1, 1) for name, p in named])
    assert [(answer.topic, answer.partition) for answer in ends] == named
    assert {tuple(answer.offsets) for answer in ends} == {(1,)}


@pytest.mark.releases(since='0.9')
def test_acks_of_a_number_of_replicas_means_all_of_them_since_0_9(client, topic):
    assert produce(client, topic, 0, [b'one'], acks=2).error == 0
    assert values(fetch(client, topic, 0)) == [b'one']


def test_a_message_above_the_brokers_limit_is_refused(client, topic):
    with pytest.raises(MessageSizeTooLargeError):
        produce(client, topic, 0, [b'x' * 1100000])
    assert offset(client, topic, 0) == 0


def test_an_unknown_partition_is_an_error_before_anything_is_sent(client, topic):
    with pytest.raises(UnknownTopicOrPartitionError):
        produce(client, topic, 7, [b'nowhere'])


def test_callback_takes_the_place_of_each_answer(client, topic):
    request = ProduceRequest(topic.encode(), 0, [create_message(b'x')])
    assert client.send_produce_request([request], callback=lambda answer: answer.offset) == [0]


# --- fetch and offsets --------------------------------------------------------------------------


def test_fetch_of_an_empty_partition_is_empty(client, topic):
    (answer,) = client.send_fetch_request([FetchRequest(topic.encode(), 0, 0, 1024)])
    assert (answer.topic, answer.partition, answer.error) == (topic.encode(), 0, 0)
    assert answer.highwaterMark == 0
    assert list(answer.messages) == []


def test_fetch_starts_at_the_offset_and_tells_the_high_water_mark(client, topic):
    produce(client, topic, 0, [b'%d' % i for i in range(10)])
    (answer,) = client.send_fetch_request([FetchRequest(topic.encode(), 0, 7, 4096)])
    assert answer.highwaterMark == 10
    wanted = [found for found in answer.messages if found.offset >= 7]
    assert values(wanted) == [b'7', b'8', b'9']


def test_fetch_beyond_the_end_is_error_1(client, topic):
    beyond = [FetchRequest(topic.encode(), 0, 100, 1024)]
    (answer,) = client.send_fetch_request(beyond, fail_on_error=False)
    assert answer.error == OffsetOutOfRangeError.errno
    with pytest.raises(OffsetOutOfRangeError):
        client.send_fetch_request(beyond)


def test_offsets_by_the_two_special_times(client, topic):
    assert (offset(client, topic, 0, EARLIEST), offset(client, topic, 0)) == (0, 0)
    produce(client, topic, 0, [b'one', b'two'])
    assert (offset(client, topic, 0, EARLIEST), offset(client, topic, 0)) == (0, 2)


@pytest.mark.releases(until='3')
def test_offsets_before_the_end_as_a_list_newest_first(client, topic):
    produce(client, topic, 0, [b'one', b'two'])
    (answer,) = client.send_offset_request([OffsetRequest(topic.encode(), 0, -1, 10)])
    assert list(answer.offsets) == [2, 0]


@pytest.mark.releases(since='4.0')
def test_offsets_by_time_are_one_where_the_list_was_removed(client, topic):
    """The first message that is not older, the end after all of them, nothing before them."""
    started = int(time.time() * 1000) - 1000
    produce(client, topic, 0, [b'one', b'two'])
    time.sleep(0.05)
    between = int(time.time() * 1000)
    time.sleep(0.05)
    produce(client, topic, 0, [b'three'])

    def at(moment):
        (answer,) = client.send_offset_request([OffsetRequest(topic.encode(), 0, moment, 10)])
        return list(answer.offsets)

    assert (at(-1), at(-2)) == ([3], [0])
    assert at(between) == [2]
    assert at(between + 60000) == [3]
    assert at(started) == []


# --- groups -------------------------------------------------------------------------------------


@pytest.mark.releases(since='0.8.1')
def test_a_committed_offset_is_fetched_back(client, topic, new_name):
    group = new_name().encode()
    request = [OffsetCommitRequest(topic.encode(), 0, 42, b'metadata')]
    (answer,) = client.send_offset_commit_request(group, request)
    assert (answer.topic, answer.partition, answer.error) == (topic.encode(), 0, 0)
    (stored,) = client.send_offset_fetch_request(group, [OffsetFetchRequest(topic.encode(), 0)])
    assert (stored.topic, stored.partition, stored.error) == (topic.encode(), 0, 0)
    assert stored.offset == 42
    assert stored.metadata == b''  # version 0 has never given it back


@pytest.mark.releases(since='0.8.1')
def test_no_stored_offset_is_error_3_and_minus_one(client, topic, new_name):
    request = [OffsetFetchRequest(topic.encode(), 0)]
    (stored,) = client.send_offset_fetch_request(new_name().encode(), request, fail_on_error=False)
    assert (stored.offset, stored.error) == (-1, 3)


@pytest.mark.releases(since='0.8.1')
def test_commits_of_one_group_do_not_show_in_another(client, topic, new_name):
    mine, other = new_name().encode(), new_name().encode()
    requests = [OffsetCommitRequest(topic.encode(), p, 5 + p, b'') for p in (0, 1)]
    answers = client.send_offset_commit_request(mine, requests)
    assert [(answer.partition, answer.error) for answer in answers] == [(0, 0), (1, 0)]
    asked = [OffsetFetchRequest(topic.encode(), p) for p in (1, 0)]
    stored = client.send_offset_fetch_request(mine, asked)
    assert [(answer.partition, answer.offset) for answer in stored] == [(1, 6), (0, 5)]
    stored = client.send_offset_fetch_request(other, asked, fail_on_error=False)
    assert [answer.offset for answer in stored] == [-1, -1]


@pytest.mark.releases(since='4.0')
def test_a_commit_is_refused_while_members_are_active(cluster, client, topic, new_name):
    """Offsets of a group are at its coordinator there, which lets members alone commit."""
    group = new_name()
    with Confluent(cluster).member(group, topic):
        request = [OffsetCommitRequest(topic.encode(), 0, 42, b'')]
        (answer,) = client.send_offset_commit_request(group.encode(), request, fail_on_error=False)
        assert answer.error == UnknownMemberIdError.errno


@pytest.mark.releases(until='0.8.0')
def test_offsets_of_groups_are_refused_in_words_where_the_release_stores_none(client, topic):
    with pytest.raises(UnsupportedVersionError, match='OffsetCommit'):
        client.send_offset_commit_request(
            b'group', [OffsetCommitRequest(topic.encode(), 0, 1, b'')]
        )
    with pytest.raises(UnsupportedVersionError, match='OffsetFetch'):
        client.send_offset_fetch_request(b'group', [OffsetFetchRequest(topic.encode(), 0)])
    assert produce(client, topic, 0, [b'goes on']).error == 0


@pytest.mark.releases(since='0.8.2')
def test_the_coordinator_of_a_group_is_named(cluster, client, new_name):
    def found():
        answer = client.send_consumer_metadata_request(new_name().encode())
        assert answer.error == 0
        return answer

    answer = retry(found, AssertionError)
    host, port = cluster.address(0)
    assert (answer.nodeId, answer.host, answer.port) == (0, host.encode(), port)


@pytest.mark.releases(since='0.8.2')
def test_offsets_stored_in_kafka_are_minus_one_at_first(client, topic, new_name):
    request = [OffsetFetchRequest(topic.encode(), 0)]
    (stored,) = retry(
        lambda: client.send_offset_fetch_request_kafka(new_name().encode(), request),
        NO_COORDINATOR,
    )
    assert stored.offset == -1
