"""What the modern KafkaConsumer does with what it should not be given, on brokers.

Records that cannot be read, patterns without a topic, commits for nothing, by programs and logs
that are wrong. Second threads, seeks, positions out of range and deserializers are in
test_consumer_reading.py and test_consumer_offsets.py, listeners in test_consumer_membership.py,
permissions in test_consumer_permissions.py.
"""

from __future__ import annotations

import threading
import time

import pytest

from kafka.consumer.listener import SubscriptionPattern
from kafka.errors import (
    CorruptRecordError,
    IllegalStateError,
    InvalidRegularExpressionError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from kafka.record.default_records import encode_batch
from kafka.structs import OffsetAndMetadata, TopicPartition
from test.integration.consuming import (
    SECONDS,
    Notes,
    nothing_comes,
    share,
    take,
    until,
    values,
)
from test.integration.wire import write

pytestmark = [pytest.mark.integration]

#: Far below the time that calls are given.
AT_ONCE = 20
by_each_protocol = pytest.mark.parametrize(
    'protocol',
    ['classic', pytest.param('consumer', marks=pytest.mark.releases(since='4.0'))],
)

#: How soon a member notices: a coordinator of KIP-848 says that itself.
LIVELY = {
    'classic': {'session_timeout_ms': 6000, 'heartbeat_interval_ms': 300},
    'consumer': {},
}


def raises(consumer):
    """Poll until something cannot be read; return the error and what came before."""
    found = []
    deadline = time.monotonic() + SECONDS
    with pytest.raises(CorruptRecordError) as caught:
        while time.monotonic() < deadline:
            for records in consumer.poll(1000).values():
                found += records
    return caught.value, found


# --- what cannot be read ------------------------------------------------------------------------


@pytest.mark.real  # embedded ones have no files; the same is in test/behaviour/test_bad_records.py
@pytest.mark.parametrize('how', ['assign', 'group'])
def test_a_batch_that_a_disk_has_damaged_is_named_and_stepped_over(
    cluster, consume, topic, fill, new_name, how
):
    for value in (b'good', b'bad bad bad', b'behind'):
        fill({topic: {0: [value]}})
    segment = cluster.segment(topic, 0)
    whole = segment.read_bytes()
    with open(str(segment), 'r+b') as file:
        file.seek(whole.index(b'bad bad bad'))
        file.write(b'BAD')
    place = TopicPartition(topic, 0)
    if how == 'group' and cluster.release.version >= (0, 9):
        consumer = consume(topic, group_id=new_name())
    else:
        consumer = consume()
        consumer.assign([place])
    error, found = raises(consumer)
    assert values(found) == [b'good']
    for part in ('offset 1', 'partition 0', topic, 'skip_corrupt()'):
        assert part in str(error)
    assert error.failed_at == (place, 1)
    assert consumer.position(place) == 1
    again, found = raises(consumer)
    assert (again.failed_at, found) == (error.failed_at, [])
    assert consumer.skip_corrupt(place) == 2
    assert values(take(consumer, 1)) == [b'behind']
    with pytest.raises(IllegalStateError):
        consumer.skip_corrupt(place)


@pytest.mark.real  # embedded ones do not unpack it either, and refuse it
@pytest.mark.releases(since='2.8')
def test_a_bomb_in_a_batch_is_not_unpacked(cluster, consume, topic, fill):
    mebibyte = bytes(1 << 20)
    now = int(time.time() * 1000)
    bomb = encode_batch([(now, None, mebibyte, ())] * 140, codec=1)
    assert write(cluster, topic, bomb, 7) == 0
    fill({topic: {0: [b'behind']}})
    place = TopicPartition(topic, 0)
    consumer = consume()
    consumer.assign([place])
    error, _ = raises(consumer)
    assert 'expands to more than' in str(error)
    assert error.failed_at == (place, 0)
    assert consumer.skip_corrupt() == 140
    assert values(take(consumer, 1)) == [b'behind']


# --- what there is not --------------------------------------------------------------------------


def test_a_pattern_without_a_topic_reads_nothing_until_there_is_one(
    cluster, consume, new_name, fill
):
    name = new_name()
    consumer = consume(metadata_max_age_ms=500)
    consumer.subscribe(pattern='^%s$' % name)
    assert nothing_comes(consumer)
    assert (consumer.subscription(), consumer.assignment()) == (set(), set())
    cluster.create_topic(name, 1)
    fill({name: {0: [b'first']}})
    assert values(take(consumer, 1)) == [b'first']


@pytest.mark.releases(since='0.9')
@by_each_protocol
def test_a_pattern_without_a_topic_in_a_group(cluster, consume, new_name, group, fill, protocol):
    """The member is one all the same, with nothing, and needs no rebalance to stay it."""
    name = new_name()
    consumer = consume(group_id=group, metadata_max_age_ms=500, group_protocol=protocol)
    consumer.subscribe(pattern='^%s$' % name)
    until(lambda: consumer.group_metadata().member_id, consumer)
    assert nothing_comes(consumer)
    assert (consumer.subscription(), consumer.assignment()) == (set(), set())
    cluster.create_topic(name, 2)
    fill({name: {1: [b'first']}})
    assert values(take(consumer, 1)) == [b'first']


@pytest.mark.releases(since='0.9')
@by_each_protocol
def test_a_commit_for_a_partition_that_there_is_not(cluster, consume, topic, group, fill, protocol):
    """Brokers before 2.0 look at the topic alone."""
    fill({topic: {0: [b'0', b'1']}})
    consumer = consume(topic, group_id=group, group_protocol=protocol, enable_auto_commit=False)
    take(consumer, 2)
    began = time.monotonic()
    numbers = [7] if cluster.release.version >= (2, 0) else []
    for wrong in (TopicPartition('no-' + topic, 0), *(TopicPartition(topic, n) for n in numbers)):
        with pytest.raises(UnknownTopicOrPartitionError):
            consumer.commit({wrong: OffsetAndMetadata(1, '')})
    assert time.monotonic() - began < AT_ONCE
    consumer.commit()
    assert consumer.committed(TopicPartition(topic, 0)) == 2


# --- listeners ----------------------------------------------------------------------------------


@pytest.mark.releases(since='0.10.1')  # where members say how long they may take
@by_each_protocol
def test_a_listener_that_blocks_for_too_long_loses_its_partitions_and_comes_back(
    consume, wide, group, protocol
):
    class Blocking(Notes):
        def on_partitions_revoked(self, revoked):
            super().on_partitions_revoked(revoked)
            if revoked:
                gate.wait(SECONDS)

    def give(listener=None):
        consumer = consume(
            group_id=group, group_protocol=protocol, max_poll_interval_ms=3000, **LIVELY[protocol]
        )
        consumer.subscribe([wide], listener=listener)
        return consumer

    def poll_on():
        while not gate.is_set():
            one.poll(100)

    gate = threading.Event()
    one = give(Blocking())
    until(lambda: share(one), one)
    thread = threading.Thread(target=poll_on)
    thread.start()
    try:
        two = give()
        until(lambda: share(two), two)
    finally:
        gate.set()
        thread.join()
    until(lambda: share(one, two), one, two)


# --- patterns of brokers ------------------------------------------------------------------------


@pytest.fixture
def numbered(cluster, new_name, fill):
    """A prefix, and the topics prefix-0 to prefix-2 with a record each."""
    prefix = new_name()
    for number in range(3):
        name = '%s-%d' % (prefix, number)
        cluster.create_topic(name, 2)
        fill({name: {number % 2: [b'in %d' % number]}})
    return prefix


@pytest.fixture
def join(consume, group):
    """Return a function that makes a member whose topics brokers find by a pattern."""

    def give(pattern, **options):
        consumer = consume(group_id=group, **{'group_protocol': 'consumer', **options})
        consumer.subscribe(pattern=SubscriptionPattern(pattern))
        return consumer

    return give


@pytest.mark.releases(since='4.0')
@pytest.mark.column('KIP-848')
def test_brokers_match_a_pattern_with_whole_names(join, numbered):
    consumer = join(numbered + '-[01]')
    found = take(consumer, 2)
    assert sorted(values(found)) == [b'in 0', b'in 1']
    names = {numbered + '-0', numbered + '-1'}
    assert {each.topic for each in consumer.assignment()} == consumer.subscription() == names
    assert nothing_comes(consumer)


@pytest.mark.releases(since='4.0')
@pytest.mark.column('KIP-848')
def test_a_pattern_of_brokers_finds_topics_that_appear(cluster, join, numbered, fill):
    """They look again by themselves, up to group.consumer.regex.refresh.interval.ms apart."""
    consumer = join('%s-.*' % numbered)
    assert len(take(consumer, 3)) == 3
    name = numbered + '-late'
    cluster.create_topic(name, 1)
    fill({name: {0: [b'late']}})
    assert values(take(consumer, 1)) == [b'late']


@pytest.mark.releases(since='4.0')
@pytest.mark.column('KIP-848')
def test_members_with_patterns_of_their_own_share_what_both_have(join, numbered):
    one, two = join(numbered + '-.'), join(numbered + '-[12]')

    def is_shared():
        parts = [each.assignment() for each in (one, two)]
        return len(parts[0] | parts[1]) == sum(map(len, parts)) == 6 and all(parts)

    until(is_shared, one, two)
    assert numbered + '-0' not in {each.topic for each in two.assignment()}


@pytest.mark.releases(since='4.0')
@pytest.mark.column('KIP-848')
def test_another_subscription_takes_the_place_of_a_pattern(join, numbered):
    consumer = join(numbered + '-0')
    assert values(take(consumer, 1)) == [b'in 0']
    consumer.subscribe([numbered + '-1'])
    assert values(take(consumer, 1)) == [b'in 1']
    consumer.subscribe(pattern=SubscriptionPattern(numbered + '-2'))
    assert values(take(consumer, 1)) == [b'in 2']
    assert {each.topic for each in consumer.assignment()} == {numbered + '-2'}


@pytest.mark.releases(since='4.0')
@pytest.mark.column('KIP-848')
def test_a_pattern_of_brokers_that_matches_nothing(join, numbered, new_name):
    consumer = join(new_name() + '-none')
    until(lambda: consumer.group_metadata().member_id, consumer)
    assert nothing_comes(consumer)
    assert (consumer.subscription(), consumer.assignment()) == (set(), set())
    consumer.subscribe(pattern=SubscriptionPattern(numbered + '-2'))
    assert values(take(consumer, 1)) == [b'in 2']


@pytest.mark.releases(since='4.0')
@pytest.mark.column('KIP-848')
@pytest.mark.parametrize('pattern', ['(', '(?=a)b', 'a\\'])
def test_a_pattern_that_is_none_of_re2_is_told_and_cured_by_another(join, numbered, pattern):
    consumer = join(pattern)
    with pytest.raises(InvalidRegularExpressionError, match='RE2'):
        until(lambda: False, consumer)
    with pytest.raises(InvalidRegularExpressionError, match='RE2'):
        consumer.poll(0)
    consumer.subscribe(pattern=SubscriptionPattern(numbered + '-2'))
    assert values(take(consumer, 1)) == [b'in 2']


def test_patterns_of_brokers_need_their_protocol(join):
    with pytest.raises(UnsupportedVersionError, match='group_protocol'):
        join('a', group_protocol='classic')
