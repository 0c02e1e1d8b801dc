"""KafkaConsumer of 0.9.5 on real brokers: every verb, restarts, resets, what 0.8.0 cannot do."""

from __future__ import annotations

import json
import random
import time

import pytest

from kafka import KafkaConsumer, create_gzip_message, create_snappy_message
from kafka.common import (
    ConsumerFetchSizeTooSmall,
    ConsumerTimeout,
    KafkaConfigurationError,
    KafkaError,
    KafkaMessage,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from test.integration.fixtures import offset, produce, retry
from test.integration.oracles import Confluent

pytestmark = [
    pytest.mark.integration,
    # One release per way of storing offsets and messages, unless asked by name.
    pytest.mark.releases(some=('0.8.0', '0.8.2.2', '0.11.0.3', '4.4.0')),
]

STORES_OFFSETS = pytest.mark.releases(since='0.8.1')


@pytest.fixture
def consume(cluster, topic):
    """Return a maker of consumers that give up after 0.3 s; each is closed."""
    made = []

    def make(*topics, **options):
        options.setdefault('bootstrap_servers', [cluster.bootstrap])
        options.setdefault('auto_offset_reset', 'smallest')
        options.setdefault('consumer_timeout_ms', 300)
        options.setdefault('socket_timeout_ms', 10000)
        made.append(KafkaConsumer(*(topics or (topic,)), **options))
        return made[-1]

    yield make
    for consumer in made:
        consumer.close()


@pytest.fixture
def filled(client, topic):
    """The topic with 0 to 99 in partition 0 and 100 to 199 in partition 1."""
    produce(client, topic, 0, [b'%d' % i for i in range(100)])
    produce(client, topic, 1, [b'%d' % i for i in range(100, 200)])
    return topic


@pytest.fixture
def group(new_name):
    """The name of a group that nobody used before."""
    return new_name()


def until_timeout(consumer):
    """Return the messages that iteration gives before ConsumerTimeout."""
    found = []
    with pytest.raises(ConsumerTimeout):
        for message in consumer:
            found.append(message)
    return found


def values(messages):
    return sorted((message.value for message in messages), key=int)


NUMBERS = [b'%d' % i for i in range(200)]


# --- reading ------------------------------------------------------------------------------------


def test_iteration_brings_every_message_once_and_ends_in_ConsumerTimeout(consume, filled):
    consumer = consume()
    found = until_timeout(consumer)
    assert values(found) == NUMBERS
    for partition in (0, 1):
        order = [m.offset for m in found if m.partition == partition]
        assert order == list(range(100))
    first = min(found)
    assert first == KafkaMessage(filled.encode(), 0, 0, None, b'0')
    assert type(first) is KafkaMessage


def test_a_loop_that_catches_ConsumerTimeout_goes_on(client, consume, topic):
    consumer = consume(consumer_timeout_ms=300)
    found, rounds = [], 0
    while rounds < 3:
        try:
            for message in consumer:
                found.append(message.value)
        except ConsumerTimeout:
            rounds += 1
            produce(client, topic, rounds % 2, [b'%d' % rounds])
    assert found == [b'1', b'2']


@pytest.mark.parametrize('timeout_ms', [0, 300, 1500])
def test_ConsumerTimeout_comes_after_that_time(consume, topic, timeout_ms):
    consumer = consume(consumer_timeout_ms=timeout_ms)
    started = time.monotonic()
    with pytest.raises(ConsumerTimeout):
        consumer.next()
    assert timeout_ms / 1000 <= time.monotonic() - started < timeout_ms / 1000 + 2


def test_fetch_messages_in_rounds(consume, filled):
    consumer = consume()
    found = []
    for _ in range(50):
        found += list(consumer.fetch_messages())
        if len(found) >= 200:
            break
    assert values(found) == NUMBERS
    assert list(consumer.fetch_messages()) == []


def test_the_position_is_fixed_in_the_constructor(client, consume, filled):
    consumer = consume(auto_offset_reset='largest')
    produce(client, filled, 0, [b'late'])
    assert consumer.next() == KafkaMessage(filled.encode(), 0, 100, None, b'late')
    with pytest.raises(ConsumerTimeout):
        consumer.next()


def test_the_deserializer_makes_the_values(client, consume, topic):
    produce(client, topic, 0, [json.dumps({'n': n}).encode() for n in range(3)])
    found = until_timeout(consume(deserializer_class=json.loads))
    assert [message.value for message in found] == [{'n': 0}, {'n': 1}, {'n': 2}]


def test_a_message_that_cannot_be_deserialized_stays_next(client, consume, topic):
    produce(client, topic, 0, [b'1', b'2', b'{', b'4'])
    consumer = consume((topic, 0), deserializer_class=json.loads)
    assert [consumer.next().value, consumer.next().value] == [1, 2]
    for _ in range(2):
        with pytest.raises(ValueError):
            consumer.next()
    (((name, partition), place),) = consumer.offsets('fetch').items()
    assert (name, partition, place) == (topic.encode(), 0, 2)
    consumer.set_topic_partitions((name, partition, place + 1))
    assert consumer.next().value == 4


def test_a_closed_consumer_can_be_used_again(consume, filled):
    consumer = consume((filled, 0))
    assert consumer.next().offset == 0
    consumer.close()
    assert consumer.next().offset == 1


@pytest.mark.parametrize('make', [create_gzip_message, create_snappy_message])
def test_reading_begins_inside_a_compressed_set(client, consume, topic, make):
    produce(client, topic, 0, [make([(b'%d' % i, None) for i in range(10)])])
    consumer = consume((topic, 0, 7))
    assert [message.offset for message in until_timeout(consumer)] == [7, 8, 9]


# --- positions ----------------------------------------------------------------------------------


def test_every_form_of_naming_partitions(consume, filled):
    name = filled.encode()
    for form in (
        [filled],
        [name],
        [(filled, 0), (name, 1)],
        [{filled: 0}, (filled, 1)],
        [{filled: [0, 1]}],
        [{filled: (1, 0)}],
        [(filled, 0, 0), (filled, 1, 0)],
        [{(filled, 0): 0, (name, 1): 0}],
    ):
        assert values(until_timeout(consume(*form))) == NUMBERS, form


def test_partitions_and_offsets_can_be_chosen_again(consume, filled):
    consumer = consume()
    consumer.next()
    consumer.set_topic_partitions({(filled, 1): 95})
    assert [m.offset for m in until_timeout(consumer)] == [95, 96, 97, 98, 99]
    assert repr(consumer) == '<KafkaConsumer 0.9.5 topics=(%s-1)>' % filled


def test_what_does_not_exist_is_an_error_and_is_not_created(cluster, client, consume, filled):
    consumer = consume()
    for wrong in ('no-such-topic', ('no-such-topic', 0), (filled, 7), {filled: [0, 7]}):
        with pytest.raises(UnknownTopicOrPartitionError):
            consumer.set_topic_partitions(wrong)
        with pytest.raises(UnknownTopicOrPartitionError):
            consume(wrong, auto_commit_enable=False)
    assert values(until_timeout(consumer)) == NUMBERS
    client.load_metadata_for_topics()
    assert 'no-such-topic' not in client.topic_partitions


@pytest.mark.parametrize('policy, expected', [('smallest', range(100)), ('largest', [])])
@pytest.mark.parametrize('wrong', [5000, -7])
def test_an_offset_out_of_range_is_reset_by_policy(consume, filled, policy, expected, wrong):
    consumer = consume((filled, 0, wrong), auto_offset_reset=policy)
    assert [m.offset for m in until_timeout(consumer)] == list(expected)
    assert consumer.offsets('fetch') == {(filled.encode(), 0): 100}


def test_without_a_policy_an_offset_out_of_range_is_an_error(consume, filled):
    with pytest.raises(OffsetOutOfRangeError):
        consume(auto_offset_reset='nowhere', deserializer_class=int)
    consumer = consume((filled, 0, 5000), auto_offset_reset='nowhere')
    with pytest.raises(OffsetOutOfRangeError, match='5000'):
        consumer.next()


def test_offsets_of_the_log(consume, filled):
    consumer = consume(auto_commit_enable=False)
    for topic in (filled, filled.encode()):
        assert consumer.get_partition_offsets(topic, 0, -1, 1) == [100]
        assert consumer.get_partition_offsets(topic, 1, -2, 1) == [0]
    with pytest.raises(UnknownTopicOrPartitionError):
        consumer.get_partition_offsets(filled, 7, -1, 1)


def test_the_four_kinds_of_offsets(client, consume, filled):
    consumer = consume((filled, 0))
    key = (filled.encode(), 0)
    assert consumer.offsets() == {
        'fetch': {key: 0},
        'highwater': {key: None},
        'commit': {key: None},
        'task_done': {key: None},
    }
    for _ in range(5):
        message = consumer.next()
    assert consumer.task_done(message) is True
    assert consumer.offsets('fetch') == {key: 5}
    assert consumer.offsets('highwater') == {key: 100}
    assert consumer.offsets('task_done') == {key: 4}
    assert consumer.offsets('commit') == {key: None}
    assert consumer.offsets('fetch')[filled, 0] == 5


# --- topics and brokers that go away --------------------------------------------------------------


@pytest.mark.releases(since='2.8')
def test_a_topic_deleted_under_the_consumer_is_told_of_once(
    cluster, client, consume, filled, new_name
):
    """Asking for it creates it anew, as it did in 0.9.5; the other topic is read throughout."""
    other = new_name()
    cluster.create_topic(other, 1)
    consumer = consume(filled, other)
    assert len(until_timeout(consumer)) == 200
    delete_topic(cluster, filled)
    with pytest.raises(UnknownTopicOrPartitionError):
        until_timeout(consumer)
    retry(lambda: client.load_metadata_for_topics(filled), KafkaError)  # until it is there anew
    produce(client, other, 0, [b'other'])
    assert consumer.next().value == b'other'
    retry(lambda: produce(client, filled, 0, [b'anew']), KafkaError)
    assert retry(consumer.next, ConsumerTimeout) == KafkaMessage(
        filled.encode(), 0, 0, None, b'anew'
    )


def delete_topic(cluster, topic):
    """Delete a topic by confluent-kafka, whose sockets are gone when this returns."""
    admin = pytest.importorskip('confluent_kafka.admin')
    judge = admin.AdminClient({'bootstrap.servers': cluster.bootstrap, 'log_level': 0})
    judge.delete_topics([topic], operation_timeout=30)[topic].result(30)


@pytest.mark.releases(some=('0.8.2.2', '4.4.0'))  # the broker's next start takes some seconds
def test_a_broker_that_is_away_ends_in_ConsumerTimeout_each_time(cluster, consume, filled):
    consumer = consume((filled, 0), consumer_timeout_ms=1000)
    assert [consumer.next().offset for _ in range(10)] == list(range(10))
    cluster.kill(0)
    assert consumer.next().offset == 10  # which was fetched before
    consumer.close()
    for _ in range(2):
        started = time.monotonic()
        with pytest.raises(ConsumerTimeout):
            consumer.next()
        assert 1 <= time.monotonic() - started < 5
    assert consumer.offsets('fetch') == {(filled.encode(), 0): 11}


# --- large messages -----------------------------------------------------------------------------


def test_a_message_larger_than_the_fetch_is_an_error_that_names_it(cluster, client, consume, topic):
    noise = random.Random(1).getrandbits(8 * 50000).to_bytes(50000, 'big')
    produce(client, topic, 0, [b'0', noise])
    produce(client, topic, 1, [b'1'])
    consumer = consume(fetch_message_max_bytes=20000)
    found, errors = [], []
    while len(errors) < 4:
        try:
            found.append(consumer.next())
        except ConsumerTimeout:
            pass
        except ConsumerFetchSizeTooSmall as error:
            errors.append(str(error))
    assert values(found) == [b'0', b'1']
    assert all('partition 0' in text and 'offset 1 ' in text for text in errors)
    consumer.set_topic_partitions((topic, 0, 1))
    consumer.configure(bootstrap_servers=cluster.bootstrap)
    assert consumer.next().value == noise


# --- marks and commits --------------------------------------------------------------------------


def test_without_a_group_there_is_nothing_to_commit_to(consume, filled):
    consumer = consume(auto_commit_enable=False)
    consumer.task_done(consumer.next())
    with pytest.raises(KafkaConfigurationError, match='group_id'):
        consumer.commit()


@pytest.mark.releases(until='0.8.0')
def test_the_release_that_stores_no_offsets_says_so(cluster, consume, filled, group):
    with pytest.raises(UnsupportedVersionError, match='group_id'):
        consume(group_id=group, auto_commit_enable=True)
    consumer = consume()
    consumer.configure(bootstrap_servers=cluster.bootstrap, group_id=group)
    consumer.task_done(consumer.next())
    with pytest.raises(UnsupportedVersionError, match='OffsetCommit'):
        consumer.commit()


@STORES_OFFSETS
def test_a_group_goes_on_where_it_committed(consume, filled, group):
    first = consume(group_id=group, auto_commit_enable=False)
    assert first.commit() is False
    for _ in range(120):
        first.task_done(first.next())
    assert (first.commit(), first.commit()) == (True, False)
    done = first.offsets('task_done')
    first.close()

    second = consume(group_id=group, auto_commit_enable=False)
    assert second.offsets('commit') == {key: place + 1 for key, place in done.items()}
    assert len(until_timeout(second)) == 80


@STORES_OFFSETS
def test_what_is_not_marked_comes_again(consume, filled, group):
    first = consume((filled, 0), group_id=group)
    for _ in range(10):
        message = first.next()
    first.commit()
    assert consume((filled, 0), group_id=group).next().offset == 0
    first.task_done(message)
    first.commit()
    assert consume((filled, 0), group_id=group).next().offset == 10


@STORES_OFFSETS
def test_marks_with_gaps_are_committed_and_warned_about(consume, filled, group, caplog):
    consumer = consume((filled, 0), group_id=group)
    messages = [consumer.next() for _ in range(10)]
    for index in (0, 1, 5, 9, 4):
        assert consumer.task_done(messages[index]) is True
    warned = [r.args[1:] for r in caplog.records if 'is marked after' in r.msg]
    assert warned == [(5, 1), (9, 5), (4, 9)]
    assert consumer.commit() is True
    assert consume((filled, 0), group_id=group).offsets('commit') == {(filled.encode(), 0): 5}
    assert consumer.task_done(messages[2]) is True
    assert 'offset 2 is marked, 5 is committed' in caplog.text
    other = messages[0]._replace(partition=1)
    assert consumer.task_done(other) is False


@STORES_OFFSETS
def test_a_given_offset_comes_before_the_stored_one(consume, filled, group):
    first = consume((filled, 0), group_id=group)
    first.task_done(first.next())
    first.commit()
    second = consume((filled, 0, 42), group_id=group)
    assert second.next().offset == 42
    assert second.offsets('commit') == {(filled.encode(), 0): 1}


@STORES_OFFSETS
def test_a_stored_offset_that_is_out_of_range_is_reset(consume, filled, group):
    first = consume((filled, 0), group_id=group)
    first.task_done(first.next()._replace(offset=9000))
    assert first.commit() is True
    second = consume((filled, 0), group_id=group)
    assert second.offsets('fetch') == {(filled.encode(), 0): 9001}
    assert second.next().offset == 0


@STORES_OFFSETS
def test_auto_commit_by_count_keeps_pace(consume, filled, group):
    options = {
        'group_id': group,
        'auto_commit_enable': True,
        'auto_commit_interval_ms': None,
        'auto_commit_interval_messages': 20,
    }
    first = consume(**options)
    for _ in range(195):
        first.task_done(first.next())
    first.close()
    second = consume(**options)
    assert sum(second.offsets('commit').values()) == 180
    assert len(until_timeout(second)) == 20


@STORES_OFFSETS
def test_auto_commit_by_time_commits_while_nothing_comes(client, consume, topic, group):
    produce(client, topic, 0, [b'%d' % i for i in range(5)])
    first = consume(
        (topic, 0), group_id=group, auto_commit_enable=True, auto_commit_interval_ms=200
    )
    with pytest.raises(ConsumerTimeout):
        for message in first:
            first.task_done(message)

    def committed():
        assert consume((topic, 0), group_id=group).offsets('commit') == {(topic.encode(), 0): 5}

    retry(committed, AssertionError, seconds=10)


@STORES_OFFSETS
def test_two_consumers_of_a_group_both_read_all_partitions(consume, filled, group):
    """0.9.5 only names where offsets are stored; it shares nothing out."""
    both = [consume(group_id=group, auto_commit_enable=False) for _ in range(2)]
    assert [len(until_timeout(consumer)) for consumer in both] == [200, 200]


# --- transactions, which 0.9.5 knew nothing of ----------------------------------------------------


@pytest.mark.releases(since='0.11')
def test_markers_of_transactions_are_no_gap(cluster, client, consume, topic, new_name, caplog):
    Confluent(cluster).transact(topic, new_name(), [([b'1', b'2'], 'commit'), ([b'3'], 'commit')])

    def ended():
        assert offset(client, topic, 0) == 5

    retry(ended, AssertionError)
    produce(client, topic, 0, [b'4'])
    consumer = consume((topic, 0))
    places = []
    for _ in range(4):
        message = consumer.next()
        places.append(message.offset)
        consumer.task_done(message)
    assert places == [0, 1, 3, 5]
    assert 'is marked' not in caplog.text
