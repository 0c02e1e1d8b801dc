"""KafkaConsumer of the two 0.9 documents, run as a program would run it.

Each example makes the calls of the document with its spelling; the broker's address, the names of
topics and the ends of endless loops are the test's. Messages are written by confluent-kafka. Calls
that 1.x has too mean 0.9.5 here because KAFKA_LEGACY_DIALECT says so. Which test is which section
of the documents stands in documented.py.
"""

from __future__ import annotations

import copy
import itertools
import pickle
import signal
import threading
import time

import pytest

from kafka import KafkaConsumer
from kafka.common import (
    ConsumerTimeout,
    KafkaConfigurationError,
    KafkaMessage,
    OffsetFetchRequest,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
)
from kafka.consumer.kafka import OffsetsStruct
from test.integration.documented import program, start
from test.integration.fixtures import retry
from test.integration.oracles import Confluent

pytestmark = [
    pytest.mark.integration,
    # The interface is the same on all, and tested on all by others; by name it is on any.
    pytest.mark.releases(some=('0.8.2.2', '4.4.0')),
]

STORES_OFFSETS = pytest.mark.releases(since='0.8.1')
TEN = [b'%d' % i for i in range(10)]


@pytest.fixture(autouse=True)
def dialect(monkeypatch):
    """Let a call that both eras have mean the one of the documents."""
    monkeypatch.setenv('KAFKA_LEGACY_DIALECT', '0.9.5')


@pytest.fixture
def closing():
    """Return a function that hands a consumer on and closes it after the test."""
    made = []

    def keep(consumer):
        made.append(consumer)
        return consumer

    yield keep
    for consumer in made:
        consumer.close()


@pytest.fixture
def servers(cluster):
    """The brokers as the documents give them."""
    return cluster.bootstrap.split(',')


@pytest.fixture
def write(cluster):
    """Return a function that writes values to partition 0 of a topic."""
    return lambda topic, values: Confluent(cluster).write(
        topic, 'none', [(None, v) for v in values]
    )


@pytest.fixture
def make_topic(cluster, new_name):
    """Return a function that creates a topic with so many partitions and returns its name."""

    def make(partitions=2):
        name = new_name()
        cluster.create_topic(name, partitions)
        return name

    return make


def stored(client, topic, group, partition=0):
    """Return the group's offset, -1 for none."""
    (answer,) = client.send_offset_fetch_request(
        group.encode(), [OffsetFetchRequest(topic.encode(), partition)], fail_on_error=False
    )
    return answer.offset


# --- 3.1.4 KafkaConsumer --------------------------------------------------------------------------


@STORES_OFFSETS
def test_messages_are_printed_as_they_come(servers, topic, new_name, write, closing, capsys):
    consumer = closing(KafkaConsumer(topic, group_id=new_name(), bootstrap_servers=servers))
    write(topic, [b'one', b'two'])
    for message in itertools.islice(consumer, 2):
        print(
            '%s:%d:%d: key=%s value=%s'
            % (message.topic, message.partition, message.offset, message.key, message.value)
        )
    name = topic.encode()
    assert capsys.readouterr().out == (
        '%s:0:0: key=None value=%s\n%s:0:1: key=None value=%s\n' % (name, b'one', name, b'two')
    )


PRINTS = """\
import sys
from kafka import KafkaConsumer

consumer = KafkaConsumer(sys.argv[1],
                         group_id='my_group',
                         bootstrap_servers=[sys.argv[2]])
for message in consumer:
    print("%s:%d:%d: key=%s value=%s" % (message.topic, message.partition,
                                         message.offset, message.key,
                                         message.value), flush=True)
"""


@STORES_OFFSETS
def test_a_program_prints_until_it_is_interrupted(cluster, topic, write, tmp_path):
    launcher = ('-m', 'kafka', 'run', '--dialect', '0.9.5')
    stop = threading.Event()

    def keep_writing():  # it begins at the end of the log as it is when it starts
        while not stop.wait(0.2):
            write(topic, [b'again'])

    writer = threading.Thread(target=keep_writing)
    with start(tmp_path, PRINTS, topic, cluster.bootstrap, launcher=launcher) as running:
        writer.start()
        try:
            lines = [running.stdout.readline() for _ in range(3)]
            running.send_signal(signal.SIGINT)
            errors = running.communicate(timeout=30)[1]
        finally:
            stop.set()
            writer.join()
            running.kill()
    offsets = [int(line.split(b':')[2]) for line in lines]
    assert offsets == list(range(offsets[0], offsets[0] + 3))
    assert [line.rpartition(b': ')[2] for line in lines] == [b"key=None value=b'again'\n"] * 3
    assert (running.returncode, errors.splitlines()[-1]) == (-signal.SIGINT, b'KeyboardInterrupt')


def test_messages_are_named_tuples(servers, topic, write, closing):
    consumer = closing(KafkaConsumer(topic, bootstrap_servers=servers))
    write(topic, [b'one'])
    m = consumer.next()
    assert m == KafkaMessage(topic.encode(), 0, 0, None, b'one')
    assert (m.topic, m.partition, m.offset, m.key, m.value) == m


@STORES_OFFSETS
def test_several_topics_with_commits(client, servers, make_topic, new_name, write, closing):
    topic1, topic2, group = make_topic(), make_topic(), new_name()
    write(topic1, TEN[:5])
    write(topic2, TEN[5:])
    consumer = closing(
        KafkaConsumer(
            topic1,
            topic2,
            bootstrap_servers=servers,
            group_id=group,
            auto_commit_enable=True,
            auto_commit_interval_ms=30 * 1000,
            auto_offset_reset='smallest',
        )
    )

    work = []
    for m in itertools.islice(consumer, 10):
        work.append(m.value)
        if m.value != b'9':  # what is not marked does not commit
            consumer.task_done(m)

    assert sorted(work) == TEN
    assert consumer.commit() is True
    assert consumer.commit() is False  # nothing was marked since
    assert (stored(client, topic1, group), stored(client, topic2, group)) == (5, 4)


@STORES_OFFSETS
def test_messages_come_in_batches(client, servers, make_topic, new_name, write, closing):
    topic, group = make_topic(), new_name()
    write(topic, TEN)
    kafka = closing(
        KafkaConsumer(
            topic, group_id=group, bootstrap_servers=servers, auto_offset_reset='smallest'
        )
    )
    processed = []
    while len(processed) < 10:
        for m in kafka.fetch_messages():
            processed.append(m.value)
            kafka.task_done(m)
    kafka.commit()
    assert processed == TEN
    assert stored(client, topic, group) == 10


SETTINGS = {
    'client_id': 'kafka.consumer.kafka',
    'group_id': None,
    'fetch_message_max_bytes': 1024 * 1024,
    'fetch_min_bytes': 1,
    'fetch_wait_max_ms': 100,
    'refresh_leader_backoff_ms': 200,
    'socket_timeout_ms': 30 * 1000,
    'auto_offset_reset': 'largest',
    'deserializer_class': lambda msg: msg,
    'auto_commit_enable': False,
    'auto_commit_interval_ms': 60 * 1000,
    'consumer_timeout_ms': -1,
}


@pytest.mark.parametrize('servers_as', ['bootstrap_servers', 'metadata_broker_list'])
@pytest.mark.parametrize('late', [{}, {'auto_commit_interval_messages': None}], ids=['', 'later'])
def test_settings_of_the_constructor(servers, topic, write, closing, servers_as, late):
    consumer = closing(KafkaConsumer(topic, **{servers_as: servers}, **SETTINGS, **late))
    write(topic, [b'one'])
    assert consumer.next().value == b'one'


def test_settings_may_be_given_later(servers, topic, write, closing):
    consumer = closing(KafkaConsumer(bootstrap_servers=servers, client_id='first'))
    consumer.configure(bootstrap_servers=servers, **SETTINGS)
    consumer.set_topic_partitions(topic)
    write(topic, [b'one'])
    assert consumer.next().value == b'one'


def test_without_servers_nothing_can_be_consumed():
    for arguments in ((), ('topic1',)):
        with pytest.raises(KafkaConfigurationError):
            KafkaConsumer(*arguments)


# --- kafka.consumer 0.9 ---------------------------------------------------------------------------

TAIL = """\
import sys
from kafka import KafkaConsumer

kafka = KafkaConsumer(sys.argv[1], metadata_broker_list=[sys.argv[2]],
                      auto_offset_reset='smallest')
for m in kafka:
  print m
  if m.offset == 3:
    break

print kafka.next()

while m.offset < 9:
  for m in kafka.fetch_messages():
    print m
  print "a batch is done"
"""


def test_tail_consumer_in_the_syntax_of_its_day(cluster, make_topic, write, tmp_path):
    topic = make_topic()
    write(topic, TEN)
    done = program(tmp_path, TAIL, topic, cluster.bootstrap, launcher=('-m', 'kafka', 'run'))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    messages = [str(KafkaMessage(topic.encode(), 0, i, None, b'%d' % i)) for i in range(10)]
    assert [line for line in lines if line.startswith('KafkaMessage')] == messages
    assert set(lines) - set(messages) == {'a batch is done'}
    assert lines[-1] not in messages


@STORES_OFFSETS
def test_one_message_at_a_time(client, servers, make_topic, new_name, write, closing):
    topic1, topic2, group = make_topic(), make_topic(), new_name()
    write(topic2, [b'one', b'two'])
    kafka = closing(
        KafkaConsumer(
            topic1,
            topic2,
            metadata_broker_list=servers,
            group_id=group,
            auto_commit_enable=True,
            auto_commit_interval_ms=30 * 1000,
            auto_offset_reset='smallest',
        )
    )
    m = kafka.next()
    assert m.value == b'one'
    assert kafka.task_done(m) is True
    kafka.commit()
    assert (stored(client, topic1, group), stored(client, topic2, group)) == (-1, 1)


def test_iteration_is_next_and_ends_in_a_timeout(servers, topic, write, closing):
    consumer = closing(
        KafkaConsumer(
            topic,
            bootstrap_servers=servers,
            auto_offset_reset='smallest',
            consumer_timeout_ms=500,
        )
    )
    write(topic, TEN)
    seen = []
    with pytest.raises(ConsumerTimeout):
        for m in consumer:
            seen.append(m.value)
    assert seen == TEN
    with pytest.raises(ConsumerTimeout):
        consumer.next()
    write(topic, [b'more'])
    assert consumer.next().value == b'more'


# --- set_topic_partitions -------------------------------------------------------------------------


def test_the_three_forms_of_topics_and_partitions(servers, make_topic, write, closing, cluster):
    topic1, topic2, topic3 = make_topic(2), make_topic(3), make_topic(2)
    kafka = closing(KafkaConsumer(bootstrap_servers=servers))

    kafka.set_topic_partitions(topic1, (topic2, 2), {topic3: 0})

    assert _consumed(kafka) == {(topic1, 0), (topic1, 1), (topic2, 2), (topic3, 0)}
    judge = Confluent(cluster)
    for topic, partitions in ((topic1, 2), (topic2, 3), (topic3, 2)):
        for partition in range(partitions):
            judge.write(topic, 'none', [(None, b'%d' % partition)], partition)
    found = [(m.topic.decode(), m.partition) for m in itertools.islice(kafka, 4)]
    assert sorted(found) == sorted(_consumed(kafka))


def _consumed(kafka):
    return {(topic.decode(), partition) for topic, partition in kafka.offsets('fetch')}


@pytest.mark.parametrize('one, other', [(12, 45), (123, 456)])
@pytest.mark.parametrize('form', ['tuples', 'dict'])
def test_offsets_to_start_at(servers, make_topic, closing, cluster, form, one, other):
    topic1, topic2 = make_topic(2), make_topic(2)
    judge = Confluent(cluster)
    judge.write(topic1, 'none', [(None, b'%d' % i) for i in range(one + 1)], 0)
    judge.write(topic2, 'none', [(None, b'%d' % i) for i in range(other + 1)], 1)
    kafka = closing(KafkaConsumer(bootstrap_servers=servers))

    if form == 'tuples':
        kafka.set_topic_partitions((topic1, 0, one), (topic2, 1, other))
    else:
        kafka.set_topic_partitions({(topic1, 0): one, (topic2, 1): other})

    assert sorted((m.partition, m.offset, m.value) for m in itertools.islice(kafka, 2)) == [
        (0, one, b'%d' % one),
        (1, other, b'%d' % other),
    ]


@pytest.mark.parametrize('partitions', [[0, 1], (0, 1)], ids=['list', 'tuple'])
def test_several_partitions_of_a_topic(servers, topic, closing, partitions):
    kafka = closing(KafkaConsumer(bootstrap_servers=servers))
    kafka.set_topic_partitions({topic: partitions})
    assert _consumed(kafka) == {(topic, 0), (topic, 1)}


def test_a_partition_that_is_not_there(servers, topic, closing):
    kafka = closing(KafkaConsumer(bootstrap_servers=servers))
    with pytest.raises(UnknownTopicOrPartitionError):
        kafka.set_topic_partitions((topic, 7))


# --- what else the sections of the class promise --------------------------------------------------


@pytest.mark.parametrize(
    'moment, most, offsets', [(-1, 1, [10]), (-2, 1, [0]), (-1, 5, None)], ids=str
)
def test_offsets_of_a_partition_newest_first(
    servers, make_topic, write, closing, moment, most, offsets
):
    topic = make_topic()
    write(topic, TEN)
    consumer = closing(KafkaConsumer(topic, bootstrap_servers=servers))
    found = list(consumer.get_partition_offsets(topic, 0, moment, most))
    assert found == (offsets or sorted(found, reverse=True))
    assert found[0] == (0 if moment == -2 else 10)


def test_values_go_through_the_deserializer(servers, make_topic, write, closing):
    topic = make_topic()
    write(topic, TEN[:3])
    consumer = closing(
        KafkaConsumer(
            topic,
            bootstrap_servers=servers,
            auto_offset_reset='smallest',
            deserializer_class=lambda msg: int(msg.decode('utf-8')),
        )
    )
    assert [m.value for m in itertools.islice(consumer, 3)] == [0, 1, 2]


@pytest.mark.parametrize('policy, first', [('smallest', b'0'), ('largest', b'new')])
def test_an_offset_out_of_range_is_reset_by_policy(
    servers, make_topic, write, closing, policy, first
):
    topic = make_topic()
    write(topic, TEN)
    consumer = closing(KafkaConsumer(bootstrap_servers=servers, auto_offset_reset=policy))
    consumer.set_topic_partitions((topic, 0, 1000))
    assert list(consumer.fetch_messages()) == []  # the round that finds it out
    write(topic, [b'new'])
    assert consumer.next().value == first


def test_any_other_policy_raises(servers, make_topic, write, closing):
    topic = make_topic()
    write(topic, TEN)
    consumer = closing(KafkaConsumer(bootstrap_servers=servers, auto_offset_reset='nearest'))
    consumer.set_topic_partitions((topic, 0, 1000))
    with pytest.raises(OffsetOutOfRangeError):
        consumer.next()


def test_small_fetches_bring_everything_in_order(servers, make_topic, write, closing):
    topic = make_topic()
    for value in TEN:
        write(topic, [value * 100])
    consumer = closing(
        KafkaConsumer(
            topic,
            bootstrap_servers=servers,
            auto_offset_reset='smallest',
            fetch_message_max_bytes=250,
        )
    )
    assert len(list(consumer.fetch_messages())) < 10
    consumer.set_topic_partitions(topic)
    assert [m.value for m in itertools.islice(consumer, 10)] == [value * 100 for value in TEN]


def test_a_fetch_waits_for_its_least_bytes(servers, make_topic, write, closing):
    topic = make_topic()
    write(topic, TEN)
    consumer = closing(
        KafkaConsumer(
            topic,
            bootstrap_servers=servers,
            auto_offset_reset='smallest',
            fetch_min_bytes=100000,
            fetch_wait_max_ms=800,
        )
    )
    started = time.monotonic()
    assert [m.value for m in consumer.fetch_messages()] == TEN
    assert 0.7 < time.monotonic() - started < 5


@STORES_OFFSETS
def test_auto_commit_by_count(client, servers, make_topic, new_name, write, closing):
    topic, group = make_topic(), new_name()
    write(topic, TEN)
    consumer = closing(
        KafkaConsumer(
            topic,
            bootstrap_servers=servers,
            group_id=group,
            auto_offset_reset='smallest',
            auto_commit_enable=True,
            auto_commit_interval_messages=5,
        )
    )
    for m in itertools.islice(consumer, 4):
        consumer.task_done(m)
    assert stored(client, topic, group) == -1
    consumer.task_done(consumer.next())
    assert stored(client, topic, group) == 5


@STORES_OFFSETS
def test_auto_commit_by_time(client, servers, make_topic, new_name, write, closing):
    topic, group = make_topic(), new_name()
    write(topic, [b'%d' % i for i in range(1000)])
    consumer = closing(
        KafkaConsumer(
            topic,
            bootstrap_servers=servers,
            group_id=group,
            auto_offset_reset='smallest',
            auto_commit_enable=True,
            auto_commit_interval_ms=100,
        )
    )

    def committed():
        consumer.task_done(consumer.next())
        assert stored(client, topic, group) > 0

    retry(committed, AssertionError, seconds=10)


@STORES_OFFSETS
def test_a_group_goes_on_where_it_committed(servers, make_topic, new_name, write, closing):
    topic, group = make_topic(), new_name()
    write(topic, TEN)
    options = {'bootstrap_servers': servers, 'group_id': group, 'auto_offset_reset': 'smallest'}
    first = closing(KafkaConsumer(topic, **options))
    for m in itertools.islice(first, 6):
        first.task_done(m)
    assert first.commit() is True
    assert closing(KafkaConsumer(topic, **options)).next().value == b'6'


@STORES_OFFSETS
def test_the_four_groups_of_offsets(servers, make_topic, new_name, write, closing):
    topic, group = make_topic(), new_name()
    write(topic, TEN)
    consumer = closing(
        KafkaConsumer(
            topic, bootstrap_servers=servers, group_id=group, auto_offset_reset='smallest'
        )
    )
    consumer.task_done(consumer.next())
    consumer.commit()
    key = (topic.encode(), 0)
    assert {name: consumer.offsets(name)[key] for name in ('fetch', 'commit', 'task_done')} == {
        'fetch': 1,
        'commit': 1,
        'task_done': 0,
    }
    assert consumer.offsets('highwater')[key] == 10
    assert set(consumer.offsets()) == {'fetch', 'commit', 'task_done', 'highwater'}
    consumer.offsets('fetch').clear()  # a copy
    assert consumer.offsets('fetch')[key] == 1


def test_the_tuple_of_offsets_can_be_copied_and_pickled():
    made = OffsetsStruct(fetch={1: 2}, highwater={}, commit={}, task_done={})
    assert OffsetsStruct._fields == ('fetch', 'highwater', 'commit', 'task_done')
    assert copy.deepcopy(made) == made == pickle.loads(pickle.dumps(made))
    assert repr(made).startswith('OffsetsStruct(fetch={1: 2}, highwater=')
