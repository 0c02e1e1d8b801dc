"""SimpleConsumer of 0.9.5 on real brokers: reading, seeking, large messages, resets, commits."""

from __future__ import annotations

import random
import time

import pytest

from kafka import SimpleConsumer, create_gzip_message, create_snappy_message
from kafka.common import (
    ConsumerFetchSizeTooSmall,
    OffsetFetchRequest,
    OffsetOutOfRangeError,
)
from kafka.context import OffsetCommitContext
from kafka.protocol.admin.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from test.integration.fixtures import offset, produce, retry, values
from test.integration.oracles import Confluent
from test.integration.wire import Wire

pytestmark = pytest.mark.integration

STORES_OFFSETS = pytest.mark.releases(since='0.8.1')


@pytest.fixture
def consume(client, topic):
    """Return a maker of consumers without a group (0.8.0 stores no offsets); each is stopped."""
    made = []

    def make(**options):
        options.setdefault('group', None)
        options.setdefault('auto_commit', False)
        options.setdefault('iter_timeout', 0.2)
        made.append(SimpleConsumer(client, topic=topic, **options))
        return made[-1]

    yield make
    for consumer in made:
        consumer.stop()


@pytest.fixture
def filled(client, topic):
    """The topic with 0 to 99 in partition 0 and 100 to 199 in partition 1."""
    produce(client, topic, 0, [b'%d' % i for i in range(100)])
    produce(client, topic, 1, [b'%d' % i for i in range(100, 200)])
    return topic


# --- reading ------------------------------------------------------------------------------------


def test_iteration_brings_every_message_of_every_partition_once(consume, filled):
    found = [message.message.value for message in consume()]
    assert sorted(found, key=int) == [b'%d' % i for i in range(200)]


def test_iteration_keeps_the_order_of_each_partition(consume, filled):
    consumer = consume()
    consumer.provide_partition_info()
    seen = {0: [], 1: []}
    for partition, message in consumer:
        seen[partition].append(message.offset)
    assert seen == {0: list(range(100)), 1: list(range(100))}


def test_only_the_given_partitions_are_read(consume, filled):
    found = [message.message.value for message in consume(partitions=[1])]
    assert found == [b'%d' % i for i in range(100, 200)]


@pytest.mark.parametrize('make', [create_gzip_message, create_snappy_message])
def test_compressed_messages_have_offsets_of_their_own(client, topic, consume, make):
    produce(client, topic, 0, [make([(b'%d' % i, None) for i in range(100)])])
    produce(client, topic, 0, [make([(b'%d' % i, None) for i in range(100, 200)])])
    found = list(consume(partitions=[0]))
    assert [message.offset for message in found] == list(range(200))
    assert values(found) == [b'%d' % i for i in range(200)]


def test_reading_may_start_inside_a_compressed_set(client, topic, consume):
    produce(client, topic, 0, [create_gzip_message([(b'%d' % i, None) for i in range(10)])])
    consumer = consume(partitions=[0])
    consumer.seek(7)
    assert [message.offset for message in consumer] == [7, 8, 9]


@pytest.mark.parametrize('make', [None, create_gzip_message, create_snappy_message])
def test_thousands_of_messages_come_complete_and_in_order(client, topic, consume, make):
    written = [b'%d ' % i + b'x' * (i % 300) for i in range(3000)]
    for at in range(0, 3000, 300):
        part = written[at : at + 300]
        produce(client, topic, 0, part if make is None else [make([(v, None) for v in part])])
    consumer = consume(partitions=[0], max_buffer_size=None)
    assert values(consumer.get_messages(count=3000, timeout=60)) == written


def test_get_message_hands_out_one_at_a_time(client, topic, consume):
    produce(client, topic, 0, [b'one', b'two'])
    consumer = consume(partitions=[0])
    assert consumer.get_message(timeout=5).message.value == b'one'
    assert consumer.offsets == {0: 1}
    partition, message = consumer.get_message(timeout=5, get_partition_info=True)
    assert (partition, message.offset, message.message.value) == (0, 1, b'two')
    assert consumer.get_message(timeout=0.2) is None
    assert consumer.get_message(block=False) is None


def test_get_messages_blocks_for_as_long_as_it_was_told(consume):
    consumer = consume()
    started = time.monotonic()
    assert consumer.get_messages(block=True, timeout=1) == []
    assert 0.9 < time.monotonic() - started < 4


def test_get_messages_without_blocking_returns_what_is_there(client, topic, consume):
    consumer = consume()
    started = time.monotonic()
    assert consumer.get_messages(block=False) == []
    assert time.monotonic() - started < 3
    produce(client, topic, 0, [b'%d' % i for i in range(5)])
    produce(client, topic, 1, [b'%d' % i for i in range(5, 10)])
    assert len(consumer.get_messages(count=10, block=True, timeout=5)) == 10


def test_get_messages_returns_early_when_it_has_the_count(client, topic, consume):
    produce(client, topic, 0, [b'%d' % i for i in range(10)])
    started = time.monotonic()
    assert values(consume().get_messages(count=5, block=True, timeout=30)) == [
        b'%d' % i for i in range(5)
    ]
    assert time.monotonic() - started < 10


def test_get_messages_gives_what_came_when_the_time_is_over(client, topic, consume):
    produce(client, topic, 0, [b'%d' % i for i in range(5)])
    consumer = consume()
    assert len(consumer.get_messages(count=10, block=True, timeout=1)) == 5


def test_get_messages_with_a_number_blocks_only_for_the_first_ones(client, topic, consume):
    produce(client, topic, 0, [b'%d' % i for i in range(5)])
    started = time.monotonic()
    assert len(consume().get_messages(count=10, block=1, timeout=30)) >= 1
    assert time.monotonic() - started < 10


def test_messages_written_while_the_consumer_waits_arrive(client, topic, consume):
    consumer = consume()
    assert consumer.get_message(block=False) is None
    produce(client, topic, 1, [b'late'])
    assert consumer.get_message(timeout=10).message.value == b'late'


# --- seeking and pending ------------------------------------------------------------------------


def test_pending_counts_what_was_not_handed_out(client, topic, filled, consume):
    consumer = consume()
    assert consumer.pending() == 200
    assert (consumer.pending(partitions=[0]), consumer.pending(partitions=[1])) == (100, 100)
    consumer.get_messages(count=30, timeout=5)
    assert consumer.pending() == 170
    produce(client, topic, 0, [b'more'])
    assert consumer.pending() == 171
    consumer.seek(0, 2)
    assert consumer.pending() == 0


@pytest.mark.parametrize(
    'delta, whence, left',
    [
        (-10, 2, 10),
        (-13, 2, 13),
        (0, 0, 200),
        (10, 0, 190),
        (13, 0, 187),
        (0, 2, 0),
        (70, None, 60),
    ],
)
def test_seek_leaves_this_many(consume, filled, delta, whence, left):
    consumer = consume()
    consumer.seek(delta, whence)
    assert consumer.pending() == left
    assert len(list(consumer)) == left


def test_seek_relative_to_the_present_place(consume, filled):
    consumer = consume()
    consumer.seek(50)
    consumer.seek(-20, 1)
    assert consumer.offsets == {0: 30, 1: 30}
    consumer.seek(5, 1, partition=1)
    assert consumer.offsets == {0: 30, 1: 35}
    assert len(list(consumer)) == 70 + 65


def test_seek_of_one_partition_leaves_the_other(consume, filled):
    consumer = consume()
    consumer.seek(-3, 2, partition=1)
    assert consumer.offsets == {0: 0, 1: 97}
    assert len(list(consumer)) == 103


def test_seek_to_the_last_message_of_two_partitions_gives_one(consume, filled):
    consumer = consume()
    consumer.seek(-1, 2)
    assert len(consumer.get_messages(count=2, timeout=1)) == 1


def test_seek_forgets_what_was_fetched_ahead(consume, filled):
    consumer = consume(partitions=[0])
    consumer.get_message(timeout=5)
    consumer.seek(90)
    assert [message.offset for message in consumer] == list(range(90, 100))


# --- large messages -----------------------------------------------------------------------------


def test_the_buffer_grows_for_a_large_message(client, topic, consume):
    small = [b'%d' % i for i in range(10)]
    large = [b'x' * 5000 + b'%d' % i for i in range(10)]
    produce(client, topic, 0, small)
    produce(client, topic, 1, large)
    found = values(consume(max_buffer_size=60000))
    assert sorted(found) == sorted(small + large)


@pytest.mark.parametrize('make', [None, create_gzip_message, create_snappy_message])
def test_a_message_above_the_largest_buffer_is_an_error(client, topic, consume, make):
    huge = _noise(300000)
    produce(client, topic, 0, [huge if make is None else make([(huge, None)])])
    consumer = consume(max_buffer_size=256000, partitions=[0])
    with pytest.raises(ConsumerFetchSizeTooSmall):
        consumer.get_message(False, 0.1)


@pytest.mark.parametrize('make', [None, create_gzip_message])
def test_without_a_largest_buffer_any_message_is_delivered(client, topic, consume, make):
    huge = _noise(300000)
    produce(client, topic, 0, [huge if make is None else make([(huge, None)]), b'after'])
    consumer = consume(max_buffer_size=None, partitions=[0])
    assert values(consumer.get_messages(count=2, timeout=30)) == [huge, b'after']


def _noise(size):
    """Return bytes that no codec makes smaller; the same in every run."""
    return random.Random(1).getrandbits(8 * size).to_bytes(size, 'big')


# --- an offset that is not there ----------------------------------------------------------------


@pytest.mark.parametrize('policy, expected', [('largest', []), ('smallest', list(range(100)))])
def test_an_offset_out_of_range_is_reset_by_policy(consume, filled, policy, expected):
    consumer = consume(partitions=[0], auto_offset_reset=policy)
    consumer.seek(5000)
    assert [message.offset for message in consumer] == expected
    assert consumer.offsets == {0: 100}


def test_without_a_policy_the_error_comes_out(consume, filled):
    consumer = consume(partitions=[0], auto_offset_reset=None)
    consumer.seek(5000)
    with pytest.raises(OffsetOutOfRangeError):
        consumer.get_message(timeout=1)


@pytest.mark.releases(since='0.11')
def test_a_log_may_start_late(cluster, client, consume, filled):
    partition = DeleteRecordsPartition(partition_index=0, offset=40)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=filled, partitions=[partition])], timeout_ms=10000
    )
    with Wire(cluster.address(0)) as wire:
        ((answer,),) = [found.partitions for found in wire.ask(request, 0).topics]
    assert (answer.error_code, answer.low_watermark) == (0, 40)
    consumer = consume(partitions=[0], auto_offset_reset='smallest')
    assert [message.offset for message in consumer] == list(range(40, 100))
    consumer.seek(5, 0)
    assert consumer.offsets == {0: 45}


# --- transactions, which 0.9.5 knew nothing of ----------------------------------------------------


@pytest.mark.releases(since='0.11')
def test_markers_of_transactions_are_stepped_over(cluster, client, topic, consume, new_name):
    """What was aborted is read too, as every client of 0.9.5's day reads it."""
    Confluent(cluster).transact(topic, new_name(), [([b'1', b'2'], 'commit'), ([b'3'], 'abort')])
    _wait_for_end(client, topic, 5)
    produce(client, topic, 0, [b'4'])
    consumer = consume(partitions=[0])
    found = list(consumer)
    assert values(found) == [b'1', b'2', b'3', b'4']
    assert [message.offset for message in found] == [0, 1, 3, 5]


@pytest.mark.releases(since='0.11')
def test_a_marker_at_the_end_does_not_hold_up_what_comes_later(
    cluster, client, topic, consume, new_name
):
    Confluent(cluster).transact(topic, new_name(), [([b'1'], 'commit')])
    _wait_for_end(client, topic, 2)
    consumer = consume(partitions=[0])
    assert values(consumer) == [b'1']
    started = time.monotonic()
    assert consumer.get_message(timeout=0.5) is None
    assert 0.4 < time.monotonic() - started < 5
    produce(client, topic, 0, [b'2'])
    assert consumer.get_message(timeout=10).message.value == b'2'


def _wait_for_end(client, topic, end):
    """A transaction's end is answered before its marker is written."""

    def check():
        assert offset(client, topic, 0) == end

    retry(check, AssertionError)


# --- commits ------------------------------------------------------------------------------------


@pytest.fixture
def group(new_name):
    """The name of a group that nobody used before."""
    return new_name()


def stored(client, topic, group):
    """Return the group's offsets of partitions 0 and 1; -1 for none."""
    answers = client.send_offset_fetch_request(
        group.encode(),
        [OffsetFetchRequest(topic.encode(), partition) for partition in (0, 1)],
        fail_on_error=False,
    )
    return [answer.offset for answer in answers]


@STORES_OFFSETS
def test_a_group_goes_on_where_it_committed(client, consume, filled, group):
    first = consume(group=group)
    assert len(first.get_messages(count=120, timeout=5)) == 120
    assert first.commit() is True
    assert first.commit() is None  # nothing since then
    second = consume(group=group)
    assert second.offsets == first.offsets
    assert len(list(second)) == 80


@STORES_OFFSETS
def test_a_group_without_a_commit_starts_at_the_beginning(consume, filled, group):
    consumer = consume(group=group)
    assert consumer.offsets == {0: 0, 1: 0}


@STORES_OFFSETS
def test_auto_commit_by_count_keeps_pace(client, consume, filled, group):
    first = consume(group=group, auto_commit=True, auto_commit_every_n=20, auto_commit_every_t=None)
    for _ in range(195):
        assert first.get_message(timeout=5) is not None
    assert sum(stored(client, filled, group)) == 180
    second = consume(group=group, auto_commit=False)
    assert len(list(second)) == 20


@STORES_OFFSETS
def test_auto_commit_by_time_commits_without_being_asked(client, consume, filled, group):
    consumer = consume(
        group=group, auto_commit=True, auto_commit_every_n=None, auto_commit_every_t=100
    )
    consumer.get_messages(count=50, timeout=5)

    def committed():
        assert sum(stored(client, filled, group)) == 50

    retry(committed, AssertionError, seconds=10)


@STORES_OFFSETS
def test_stop_commits_what_was_handed_out(client, consume, filled, group):
    consumer = consume(group=group, auto_commit=True)
    consumer.get_messages(count=30, timeout=5)
    consumer.stop()
    assert sum(stored(client, filled, group)) == 30


@STORES_OFFSETS
def test_a_commit_context_stores_what_was_marked_and_hands_out_the_rest_again(
    client, consume, filled, group
):
    consumer = consume(group=group, partitions=[0])
    consumer.provide_partition_info()
    with OffsetCommitContext(consumer) as context:
        for partition, message in consumer.get_messages(count=30, timeout=5)[:20]:
            context.mark(partition, message.offset)
    assert stored(client, filled, group)[0] == 20
    with pytest.raises(ZeroDivisionError), OffsetCommitContext(consumer) as context:
        for partition, message in consumer.get_messages(count=30, timeout=5):
            context.mark(partition, message.offset)
        raise ZeroDivisionError
    assert stored(client, filled, group)[0] == 20
    assert [message.offset for _, message in consumer] == list(range(20, 100))


@STORES_OFFSETS
def test_a_commit_context_leads_from_an_offset_out_of_range_to_the_beginning(
    consume, filled, group
):
    consumer = consume(group=group, partitions=[0], auto_offset_reset=None)
    consumer.seek(5000)
    with OffsetCommitContext(consumer):
        consumer.get_messages(count=1, timeout=5)
    assert [message.offset for message in consumer] == list(range(100))
