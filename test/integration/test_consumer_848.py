"""Groups of the next generation (KIP-848) on brokers, with group_protocol='consumer'.

The coordinator shares the partitions; members are polled by turns. The classic protocol is
test_consumer_groups.py's.
"""

from __future__ import annotations

import threading
import time

import pytest

from kafka.errors import CommitFailedError, FencedInstanceIdError, KafkaError
from kafka.structs import OffsetAndMetadata, TopicPartition
from test.integration.consuming import (
    PARTITIONS,
    SECONDS,
    Notes,
    nothing_comes,
    numbered,
    offsets,
    owned,
    places,
    share,
    take,
    until,
    values,
)
from test.integration.documented import start
from test.integration.judges import BrokerOffsets
from test.integration.oracles import Confluent

pytestmark = [pytest.mark.integration, pytest.mark.releases(since='4.0')]


@pytest.fixture
def join(consume, wide, group):
    """Return a function that makes a member of the group that reads the topic."""

    def give(listener=None, topics=None, **options):
        options = {
            'group_protocol': 'consumer',
            'enable_auto_commit': False,
            'metadata_max_age_ms': 1000,
            **options,
        }
        consumer = consume(group_id=group, **options)
        consumer.subscribe(topics or [wide], listener=listener)
        return consumer

    return give


def test_a_member_alone_reads_everything(join, wide, fill):
    fill({wide: numbered(10)})
    member = join()
    found = take(member, 10 * PARTITIONS)
    assert owned(member) == set(range(PARTITIONS))
    for partition in range(PARTITIONS):
        assert offsets(found, partition) == list(range(10))


def test_a_topic_that_is_subscribed_again_goes_on_where_it_was_left(join, wide, topic, fill):
    fill({wide: {0: [b'%d' % n for n in range(10)]}})
    options = {'enable_auto_commit': True, 'auto_commit_interval_ms': 3_600_000}
    member = join(topics=[wide], **options)
    assert offsets(take(member, 4, max_records=4), 0) == [0, 1, 2, 3]
    member.subscribe([topic])
    until(lambda: {each.topic for each in member.assignment()} == {topic}, member)
    member.subscribe([wide, topic])
    assert offsets(take(member, 6), 0) == [4, 5, 6, 7, 8, 9]
    assert nothing_comes(member)


def test_two_members_share_and_one_takes_over_what_the_other_leaves(join):
    one, two = join(), join()
    until(lambda: share(one, two), one, two)
    two.close()
    until(lambda: share(one), one)
    three = join()
    until(lambda: share(one, three), one, three)


def test_nothing_is_read_twice_by_members_that_commit(join, wide, fill):
    fill({wide: numbered(50)})
    one = join(enable_auto_commit=True, auto_commit_interval_ms=3_600_000, max_poll_records=7)
    found = take(one, 70, max_records=7)
    two = join(enable_auto_commit=True, auto_commit_interval_ms=3_600_000)
    for records in until(lambda: share(one, two), one, two):
        found += records
    deadline = time.monotonic() + SECONDS
    while len(found) < 50 * PARTITIONS and time.monotonic() < deadline:
        for each in (one, two):
            for records in each.poll(50).values():
                found += records
    assert sorted(places(found)) == [(p, n) for p in range(PARTITIONS) for n in range(50)]
    one.close()
    fill({wide: numbered(1, 50)})
    assert {each.offset for each in take(two, PARTITIONS)} == {50}


def test_who_is_no_member_of_a_group_that_has_some_is_told_its_offsets(
    consume, join, wide, group, fill
):
    fill({wide: numbered(10)})
    member = join()
    until(lambda: share(member), member)
    alone = consume(group_id=group, group_protocol='consumer', enable_auto_commit=False)
    first = TopicPartition(wide, 0)
    assert alone.committed(first) is None
    alone.assign([first])
    take(alone, 10)
    member.commit({first: OffsetAndMetadata(7, '')})
    alone.seek_to_committed(first)
    assert [each.offset for each in take(alone, 3)] == [7, 8, 9]
    member.unsubscribe()
    member.assign([first])
    assert [each.offset for each in take(member, 3)] == [7, 8, 9]


def test_listeners_hear_of_what_goes_and_what_comes(join):
    first, second = Notes(), Notes()
    one = join(first)
    until(lambda: share(one), one)
    two = join(second)
    until(lambda: share(one, two), one, two)
    assert {thread for *_, thread in first.told + second.told} == {threading.current_thread()}
    assert first.of('lost') == second.of('lost') == []
    assert set().union(*first.of('revoked')) == owned(two)
    assert set().union(*second.of('assigned')) == owned(two)


def test_offsets_go_from_a_classic_group_to_one_of_the_next_generation_and_back(
    cluster, consume, join, wide, group, fill
):
    fill({wide: numbered(30)})
    found = []
    for protocol in ('classic', 'consumer', 'classic'):
        member = join(group_protocol=protocol)
        found += take(member, 10 * PARTITIONS, max_records=10)
        member.commit()
        member.close()
    assert sorted(places(found)) == [(p, n) for p in range(PARTITIONS) for n in range(30)]


@pytest.mark.real  # embedded brokers migrate no group that has members
@pytest.mark.parametrize('is_classic_first', [True, False])
def test_members_of_both_protocols_share_a_group(join, is_classic_first):
    """The broker migrates a group online (KIP-848), by its default policy, bidirectional."""
    protocols = ('classic', 'consumer')
    if not is_classic_first:
        protocols = protocols[::-1]
    one = join(group_protocol=protocols[0])
    until(lambda: share(one), one)
    two = join(group_protocol=protocols[1])
    until(lambda: share(one, two), one, two)


def test_commits_and_who_the_member_is(join, wide, group, fill, cluster):
    fill({wide: numbered(5)})
    member = join()
    take(member, 5 * PARTITIONS)
    told = member.group_metadata()
    assert (told.group_id, bool(told.member_id)) == (group, True)
    assert told.generation_id >= 1
    member.commit()
    stored = BrokerOffsets(cluster).stored(group, wide, range(PARTITIONS))
    assert stored == dict.fromkeys(range(PARTITIONS), 5)
    place = TopicPartition(wide, 0)
    member.commit({place: OffsetAndMetadata(2, 'text', 0)})
    assert member.committed(place, metadata=True) == OffsetAndMetadata(2, 'text', 0)


def test_partitions_that_are_added_are_shared_too(cluster, join, wide):
    from confluent_kafka.admin import AdminClient, NewPartitions  # late: runs on brokers alone

    one, two = join(), join()
    until(lambda: share(one, two), one, two)
    admin = AdminClient(Confluent(cluster).config)
    for future in admin.create_partitions([NewPartitions(wide, 6)]).values():
        future.result(30)
    until(lambda: share(one, two, count=6), one, two)


def test_a_pattern_of_the_client_finds_topics_that_appear(cluster, consume, group, new_name, fill):
    prefix = new_name()
    consumer = consume(group_id=group, group_protocol='consumer', metadata_max_age_ms=500)
    consumer.subscribe(pattern='^%s-.*' % prefix)
    for n in range(2):
        name = '%s-%d' % (prefix, n)
        cluster.create_topic(name, 2)
        fill({name: {1: [b'in %d' % n]}})
        assert values(take(consumer, 1)) == [b'in %d' % n]


def test_who_does_not_poll_for_too_long_is_left_out_and_comes_back_with_a_poll(join):
    notes = Notes()
    lazy, eager = join(notes, max_poll_interval_ms=2000), join()
    until(lambda: share(lazy, eager), lazy, eager)
    had = lazy.assignment()
    until(lambda: share(eager), eager)
    with pytest.raises(CommitFailedError):
        lazy.commit({min(had): OffsetAndMetadata(1, 'late')})
    until(lambda: share(lazy, eager), lazy, eager)
    assert notes.of('lost') == [{each.partition for each in had}]


def test_a_static_member_that_comes_back_has_its_partitions_again(join):
    one, two = join(group_instance_id='one'), join(group_instance_id='two')
    until(lambda: share(one, two), one, two)
    had = one.assignment()
    one.close()
    assert nothing_comes(two, 1.5)
    assert len(two.assignment()) == PARTITIONS // 2
    one = join(group_instance_id='one')
    until(lambda: share(one, two), one, two)
    assert one.assignment() == had


def test_a_second_member_of_a_name_is_refused_or_fences_the_first(join):
    """UNRELEASED_INSTANCE_ID for the second, as long as the first lives (KIP-848)."""
    older = join(group_instance_id='same')
    until(lambda: share(older), older)
    newer = join(group_instance_id='same')
    with pytest.raises(KafkaError) as caught:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            newer.poll(100)
            older.poll(100)
    assert isinstance(caught.value, FencedInstanceIdError) or caught.value.errno == 111
    assert share(older) or share(newer)


def test_an_unsubscribed_member_is_gone_and_may_join_again(join, wide):
    one, two = join(), join()
    until(lambda: share(one, two), one, two)
    one.unsubscribe()
    until(lambda: share(two), two)
    one.subscribe([wide])
    until(lambda: share(one, two), one, two)


@pytest.mark.parametrize('end', ['close', 'kill'])
def test_a_process_that_ends_leaves_its_partitions_to_others(
    cluster, join, wide, group, tmp_path, end
):
    """Who is killed is missed after 45 s, the session that the coordinator gives."""
    program = """
        import sys
        from kafka import KafkaConsumer
        hosts, topic, group, end = sys.argv[1:]
        consumer = KafkaConsumer(topic, bootstrap_servers=hosts, group_id=group,
            group_protocol='consumer')
        while len(consumer.assignment()) < 4:
            consumer.poll(100)
        print('joined', flush=True)
        while end == 'kill':
            consumer.poll(1000)
        consumer.close()
        """
    with start(tmp_path, program, cluster.bootstrap, wide, group, end) as running:
        try:
            assert running.stdout.readline() == b'joined\n'
            if end == 'close':
                assert running.wait(SECONDS) == 0
        finally:
            running.kill()
    began = time.monotonic()
    heir = join()
    until(lambda: share(heir), heir, seconds=120)
    assert end == 'kill' or time.monotonic() - began < 20
