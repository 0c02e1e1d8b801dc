"""SimpleConsumer, MultiProcessConsumer and OffsetCommitContext of the two 0.9 documents.

Each example makes the calls of the document with its spelling; the broker's address, names and
numbers of messages are the test's. Messages are written by confluent-kafka. Which test is which
section of the documents stands in documented.py.
"""

from __future__ import annotations

import ast
import inspect
import time

import pytest

from kafka import KafkaClient, MultiProcessConsumer, SimpleConsumer
from kafka.common import OffsetFetchRequest, OffsetOutOfRangeError
from kafka.context import OffsetCommitContext
from test.integration.documented import program
from test.integration.fixtures import retry, values
from test.integration.oracles import Confluent

pytestmark = [
    pytest.mark.integration,
    # The interface is the same on all, and tested on all by others; by name it is on any.
    pytest.mark.releases(since='0.8.1', some=('0.8.2.2', '4.4.0')),  # groups store offsets
]

TEN = [b'%d' % i for i in range(10)]


@pytest.fixture
def group(new_name):
    """The name of a group that nobody used before, as the documents have it."""
    return new_name().encode()


@pytest.fixture
def stopped():
    """Return a function that hands a consumer on and stops it after the test."""
    made = []

    def keep(consumer):
        made.append(consumer)
        return consumer

    yield keep
    for consumer in made:
        consumer.stop()


@pytest.fixture(scope='module')
def filled(cluster):
    """A topic (bytes) with 0 to 9 in its one partition, which nobody changes."""
    name = 'documented-consumers'
    cluster.create_topic(name, 1)
    Confluent(cluster).write(name, 'none', [(None, value) for value in TEN])
    return name.encode()


def stored(client, topic, group, partition=0):
    """Return the group's offset, -1 for none."""
    (answer,) = client.send_offset_fetch_request(
        group, [OffsetFetchRequest(topic, partition)], fail_on_error=False
    )
    return answer.offset


# --- 3.1.5 Multiprocess consumer ------------------------------------------------------------------

MULTIPROCESS = """\
import sys
from kafka import KafkaClient, MultiProcessConsumer

kafka = KafkaClient(sys.argv[1])
my_group, my_topic = (name.encode('utf-8') for name in sys.argv[2:])

consumer = MultiProcessConsumer(kafka, my_group, my_topic, num_procs=2)
print(len(consumer.procs))

consumer = MultiProcessConsumer(kafka, my_group, my_topic,
                                partitions_per_proc=2)
print(len(consumer.procs))

seen = 0
for message in consumer:
    print(message)
    seen += 1
    if seen == 5:
        break

for message in consumer.get_messages(count=5, block=True, timeout=4):
    print(message)
"""


def test_several_processes_read_a_topic(cluster, client, new_name, group, tmp_path):
    topic = new_name()
    cluster.create_topic(topic, 5)
    Confluent(cluster).write_by_key(topic, [(value, value) for value in TEN])
    done = program(tmp_path, MULTIPROCESS, cluster.bootstrap, group.decode(), topic)
    assert (done.returncode, done.stderr) == (0, b'')
    two, three, *messages = done.stdout.decode().splitlines()
    assert (two, three) == ('2', '3')  # of five partitions 2 + 2 + 1
    assert all(line.startswith('OffsetAndMessage(') for line in messages)
    found = sorted(_value_of(line) for line in messages)
    assert found == TEN
    # What it was given is committed by the time it has ended.
    ends = [stored(client, topic.encode(), group, partition) for partition in range(5)]
    assert sum(end for end in ends if end > 0) == 10


def _value_of(line):
    """Return the value in a printed OffsetAndMessage."""
    return ast.literal_eval(line.rpartition('value=')[2].rstrip(')'))


def test_processes_of_the_first_0_9_releases(kafka_client, filled, group, stopped):
    """There auto_commit was the fourth argument."""
    consumer = stopped(MultiProcessConsumer(kafka_client, group, filled, False, num_procs=1))
    assert consumer.auto_commit is False
    assert values(consumer) == TEN


def test_processes_with_every_option(kafka_client, filled, group, stopped):
    consumer = stopped(
        MultiProcessConsumer(
            kafka_client,
            group,
            filled,
            partitions=[0],
            auto_commit=True,
            auto_commit_every_n=100,
            auto_commit_every_t=5000,
            num_procs=1,
            partitions_per_proc=0,
            buffer_size=8192,
        )
    )
    assert consumer.pending() == 10
    assert values(consumer.get_messages(count=10, block=True, timeout=None)) == TEN
    assert consumer.get_messages(count=1, block=False) == []
    assert consumer.commit() is True
    assert stored(kafka_client, filled, group) == 10


@pytest.fixture
def kafka_client(cluster):
    """A client for the tests whose consumer makes processes."""
    made = KafkaClient(cluster.bootstrap)
    yield made
    made.close()


# --- kafka.consumer.simple ------------------------------------------------------------------------


def test_simple_consumer_with_every_option(client, filled, group, stopped):
    consumer = stopped(
        SimpleConsumer(
            client,
            group,
            filled,
            auto_commit=True,
            partitions=None,
            auto_commit_every_n=100,
            auto_commit_every_t=5000,
            fetch_size_bytes=4096,
            buffer_size=4096,
            max_buffer_size=32768,
            iter_timeout=0.5,
            auto_offset_reset='largest',
        )
    )
    assert consumer.pending() == 10
    assert consumer.get_message(block=True, timeout=5).message.value == b'0'
    assert values(consumer.get_messages(count=4, block=True, timeout=5)) == TEN[1:5]
    consumer.provide_partition_info()
    assert [(p, m.message.value) for p, m in consumer] == [(0, value) for value in TEN[5:]]
    assert consumer.commit() is True
    assert stored(client, filled, group) == 10


def test_simple_consumer_with_the_options_in_their_places(client, filled, group, stopped):
    consumer = stopped(
        SimpleConsumer(client, group, filled, False, [0], 100, 5000, 4096, 4096, None, 0.5, None)
    )
    assert values(consumer) == TEN
    consumer.seek(100)
    with pytest.raises(OffsetOutOfRangeError):
        consumer.get_message(timeout=1)


@pytest.mark.parametrize(
    'arguments, left',
    [((4,), 6), ((2, 0), 8), ((-2, 2), 2), ((3, None, 0), 7), ((1, 0, 0), 9)],
    ids=str,
)
def test_seek_as_the_documents_count(client, filled, stopped, arguments, left):
    consumer = stopped(SimpleConsumer(client, None, filled, auto_commit=False, iter_timeout=0.5))
    consumer.seek(*arguments)
    assert values(consumer) == TEN[10 - left :]


def test_seek_relative_to_the_current_offset(client, filled, stopped):
    consumer = stopped(SimpleConsumer(client, None, filled, auto_commit=False, iter_timeout=0.5))
    consumer.get_messages(count=5, timeout=5)
    consumer.seek(-2, 1)
    assert values(consumer) == TEN[3:]


@pytest.mark.parametrize('policy, offset', [('largest', 10), ('smallest', 0)])
def test_reset_by_policy_returns_the_offset(client, filled, stopped, policy, offset):
    consumer = stopped(
        SimpleConsumer(client, None, filled, auto_commit=False, auto_offset_reset=policy)
    )
    assert consumer.reset_partition_offset(0) == offset
    assert (consumer.offsets, consumer.fetch_offsets) == ({0: offset}, {0: offset})


def test_a_manual_commit_resets_the_count(client, filled, group, stopped):
    consumer = stopped(SimpleConsumer(client, group, filled, True, None, 4, None))
    consumer.get_messages(count=3, timeout=5)
    assert consumer.commit() is True
    consumer.get_message(timeout=5)  # the fourth altogether, the first since the commit
    assert stored(client, filled, group) == 3
    for _ in range(3):
        consumer.get_message(timeout=5)
    assert stored(client, filled, group) == 7


def test_a_commit_by_count_leaves_the_timer_nothing_to_do(client, filled, group, stopped):
    consumer = stopped(SimpleConsumer(client, group, filled, True, None, 5, 200))
    consumer.get_messages(count=5, timeout=5)
    assert consumer.count_since_commit == 0
    assert stored(client, filled, group) == 5
    consumer.get_message(timeout=5)

    def by_time():
        assert stored(client, filled, group) == 6

    retry(by_time, AssertionError, seconds=10)


def test_commit_of_chosen_partitions_only(cluster, client, topic, group, stopped):
    Confluent(cluster).write_by_key(topic, [(value, value) for value in TEN])
    name = topic.encode()
    consumer = stopped(SimpleConsumer(client, group, name, auto_commit=False))
    assert len(consumer.get_messages(count=10, timeout=5)) == 10
    assert consumer.commit(partitions=[1]) is True
    assert stored(client, name, group, 1) == consumer.offsets[1] > 0
    assert stored(client, name, group, 0) == -1
    consumer.offsets.update({0: 0, 1: 0})
    consumer.fetch_last_known_offsets(partitions=[1])
    assert consumer.offsets[1] == stored(client, name, group, 1)


# --- 3.4.1 kafka.context --------------------------------------------------------------------------


def test_offset_commit_context(client, filled, group, stopped):
    topic, count, delay = filled, 4, 0
    can_process = _Moody(refuses=b'6', times=2).can_process
    turns, sleeps, marked = range(8), [], []
    consumer = stopped(SimpleConsumer(client, group, topic, auto_commit=False))
    consumer.provide_partition_info()
    consumer.fetch_last_known_offsets()

    for _ in turns:
        with OffsetCommitContext(consumer) as context:
            messages = consumer.get_messages(count, block=False)

            for partition, message in messages:
                if can_process(message):
                    context.mark(partition, message.offset)
                else:
                    break

            if not context:
                sleeps.append(delay)
        marked.append(stored(client, topic, group))

    # 4 and 5 of the second turn count; 6 comes again until it can be processed.
    assert marked == [4, 6, 6, 10, 10, 10, 10, 10]
    assert len(sleeps) == 5


class _Moody:
    """The program's own judgement: one value is refused some times, then taken."""

    def __init__(self, refuses, times):
        self.refuses, self.times = refuses, times

    def can_process(self, message):
        if message.message.value == self.refuses and self.times:
            self.times -= 1
            return False
        return True


def test_a_failure_inside_the_context_rolls_back(client, filled, group, stopped):
    consumer = stopped(SimpleConsumer(client, group, filled, auto_commit=False))
    consumer.provide_partition_info()
    with pytest.raises(KeyError), OffsetCommitContext(consumer) as context:
        for partition, message in consumer.get_messages(3, timeout=5):
            context.mark(partition, message.offset)
        raise KeyError('the program failed')
    assert stored(client, filled, group) == -1
    assert consumer.get_message(timeout=5)[1].message.value == b'0'


def test_out_of_range_inside_the_context_goes_to_the_beginning(client, filled, group, stopped):
    consumer = stopped(
        SimpleConsumer(client, group, filled, auto_commit=False, auto_offset_reset=None)
    )
    consumer.seek(1000)
    with OffsetCommitContext(consumer):
        consumer.get_message(timeout=1)
    assert consumer.get_message(timeout=5).message.value == b'0'


def test_the_helpers_of_the_context(client, filled, group, stopped):
    consumer = stopped(SimpleConsumer(client, group, filled, auto_commit=False))
    with OffsetCommitContext(consumer) as context:
        context.commit_partition_offsets({0: 7})
        assert stored(client, filled, group) == 7
        context.update_consumer_offsets({0: 5})
        assert consumer.get_message(timeout=5).message.value == b'5'
        context.rollback()
        assert consumer.get_message(timeout=5).message.value == b'0'
        context.mark(0, 2)
        context.commit()
        assert stored(client, filled, group) == 3
        context.handle_out_of_range()
        assert consumer.offsets == {0: 0}
        context.mark(0, 4)
    assert consumer.get_message(timeout=5).message.value == b'5'


# --- FetchContext ---------------------------------------------------------------------------------


def test_fetch_context_is_a_context_manager_of_the_three_arguments():
    from kafka.consumer.simple import FetchContext  # the name as the documents have it

    assert list(inspect.signature(FetchContext).parameters) == ['consumer', 'block', 'timeout']


def test_messages_that_arrive_later_are_waited_for(cluster, client, topic, stopped):
    """timeout is how long the call may take, in seconds; None waits for ever."""
    consumer = stopped(SimpleConsumer(client, None, topic, auto_commit=False))
    started = time.monotonic()
    assert consumer.get_messages(count=1, block=True, timeout=0.5) == []
    assert 0.4 < time.monotonic() - started < 5
    Confluent(cluster).write(topic, 'none', [(None, b'late')])
    assert values(consumer.get_messages(count=1, block=True, timeout=None)) == [b'late']
