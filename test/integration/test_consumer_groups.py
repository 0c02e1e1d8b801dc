"""Members of a classic group share partitions on brokers, by each of the four assignors.

Two members in one thread, polled by turns; what becomes of members that die, stall or come back is
test_consumer_membership.py's, the next generation of the protocol test_consumer_848.py's.
"""

from __future__ import annotations

import threading

import pytest

from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import IllegalStateError
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
from test.integration.judges import BrokerOffsets
from test.integration.oracles import Confluent

pytestmark = [pytest.mark.integration, pytest.mark.releases(since='0.9')]

ASSIGNORS = {
    'range': RangePartitionAssignor,
    'roundrobin': RoundRobinPartitionAssignor,
    'sticky': StickyPartitionAssignor,
    'cooperative-sticky': CooperativeStickyAssignor,
}
each_assignor = pytest.mark.parametrize(
    'assignor', [pytest.param(n, marks=pytest.mark.column('group %s' % n)) for n in ASSIGNORS]
)


@pytest.fixture
def join(consume, wide, group):
    """Return a function that makes a member of the group that reads the topic."""

    def give(assignor='range', listener=None, topics=None, **options):
        options = {
            'session_timeout_ms': 6000,
            'heartbeat_interval_ms': 200,
            'metadata_max_age_ms': 1000,
            'enable_auto_commit': False,
            'partition_assignment_strategy': [ASSIGNORS[assignor]],
            **options,
        }
        consumer = consume(group_id=group, **options)
        consumer.subscribe(topics or [wide], listener=listener)
        return consumer

    return give


# --- every assignor -----------------------------------------------------------------------------


@each_assignor
def test_a_member_alone_reads_everything(join, wide, fill, assignor):
    fill({wide: numbered(10)})
    member = join(assignor)
    found = take(member, 10 * PARTITIONS)
    assert owned(member) == set(range(PARTITIONS))
    for partition in range(PARTITIONS):
        assert offsets(found, partition) == list(range(10))


@each_assignor
def test_a_topic_that_is_subscribed_again_goes_on_where_it_was_left(
    join, wide, topic, fill, assignor
):
    fill({wide: {0: [b'%d' % n for n in range(10)]}})
    options = {'enable_auto_commit': True, 'auto_commit_interval_ms': 3_600_000}
    member = join(assignor, topics=[wide], **options)
    assert offsets(take(member, 4, max_records=4), 0) == [0, 1, 2, 3]
    member.subscribe([topic])
    until(lambda: {each.topic for each in member.assignment()} == {topic}, member)
    member.subscribe([wide, topic])
    assert offsets(take(member, 6), 0) == [4, 5, 6, 7, 8, 9]
    assert nothing_comes(member)


@each_assignor
def test_two_members_share_and_one_takes_over_what_the_other_leaves(join, assignor):
    one, two = join(assignor), join(assignor)
    until(lambda: share(one, two), one, two)
    two.close()
    until(lambda: share(one), one)
    three = join(assignor)
    until(lambda: share(one, three), one, three)


@each_assignor
def test_members_that_come_and_go_lose_nothing_and_repeat_nothing(join, wide, fill, assignor):
    """Each commits what it got before its partitions go, so nothing is read twice."""

    class Committing(Notes):
        consumer = None

        def on_partitions_revoked(self, revoked):
            super().on_partitions_revoked(revoked)
            if revoked:
                self.consumer.commit()

    def make():
        notes = Committing()
        notes.consumer = join(assignor, notes, max_poll_records=5)
        return notes.consumer

    def read_all(total, *members):
        def done():
            return sum(map(len, came)) == total

        came = [[]]
        while not done():
            came.extend(until(lambda: True, *members))
            for member in members:
                came.extend(member.poll(50).values())
        found.extend(each for records in came for each in records)

    found = []
    fill({wide: numbered(50)})
    one = make()
    read_all(60, one)
    two = make()
    for records in until(lambda: share(one, two), one, two):
        found += records
    read_all(50 * PARTITIONS - len(found), one, two)
    fill({wide: numbered(50, 50)})
    one.commit()
    one.close()
    read_all(100 * PARTITIONS - len(found), two)
    assert sorted(places(found)) == [(p, n) for p in range(PARTITIONS) for n in range(100)]


@pytest.mark.releases(since='1.0')
@each_assignor
def test_partitions_that_are_added_are_shared_too(cluster, join, wide, fill, assignor):
    from confluent_kafka.admin import AdminClient, NewPartitions  # late: runs on brokers alone

    one, two = join(assignor), join(assignor)
    until(lambda: share(one, two), one, two)
    admin = AdminClient(Confluent(cluster).config)
    for future in admin.create_partitions([NewPartitions(wide, 6)]).values():
        future.result(30)
    until(lambda: share(one, two, count=6), one, two)
    fill({wide: {5: [b'there']}})
    came = []

    def has_come():
        return len(came) == 1

    while not has_come():
        for member in (one, two):
            for records in member.poll(100).values():
                came += records
    assert [(each.partition, each.value) for each in came] == [(5, b'there')]


@each_assignor
def test_listeners_hear_of_what_goes_and_what_comes(join, assignor):
    first, second = Notes(), Notes()
    one = join(assignor, first)
    until(lambda: share(one), one)
    assert [each for each in first.of('assigned') if each] == [set(range(PARTITIONS))]
    two = join(assignor, second)
    until(lambda: share(one, two), one, two)
    assert {thread for *_, thread in first.told + second.told} == {threading.current_thread()}
    assert first.of('lost') == second.of('lost') == []
    held = set()
    for kind, partitions, _ in first.told:  # never told of what it has, or has not
        assert not partitions & held if kind == 'assigned' else partitions <= held
        held = held | partitions if kind == 'assigned' else held - partitions
    assert held == owned(one)
    assert set().union(*second.of('assigned')) == owned(two)


# --- what belongs to all or to one of them -------------------------------------------------------


def test_a_cooperative_member_gives_up_only_what_moves(join):
    notes = Notes()
    one = join('cooperative-sticky', notes)
    until(lambda: share(one), one)
    two = join('cooperative-sticky')
    until(lambda: share(one, two), one, two)
    gone = set().union(*notes.of('revoked'))
    assert gone == owned(two)
    assert len(gone) == 2


def test_a_cooperative_member_reads_on_while_others_join(join, wide, fill):
    """What it keeps is fetched during the rebalance: nothing is read twice without a commit."""
    one = join('cooperative-sticky')
    until(lambda: share(one), one)
    fill({wide: numbered(20)})
    found = take(one, 20 * PARTITIONS)
    two = join('cooperative-sticky')
    again, others = until(lambda: share(one, two), one, two)
    assert again == []
    kept = owned(one)
    fill({wide: numbered(5, 20)})
    more = []
    while len(more) < 5 * len(kept):
        for records in one.poll(100).values():
            more += records
        two.poll(20)
    assert {each.partition for each in more} == kept
    assert all(each.offset >= 20 for each in more)
    assert len(found) == 20 * PARTITIONS


def test_the_first_strategy_that_all_members_have_is_taken(consume, group, wide):
    def make(*names):
        return consume(
            wide,
            group_id=group,
            session_timeout_ms=6000,
            heartbeat_interval_ms=200,
            partition_assignment_strategy=[ASSIGNORS[each] for each in names],
        )

    one, two = make('roundrobin', 'range'), make('range')
    until(lambda: share(one, two), one, two)
    assert sorted(map(sorted, (owned(one), owned(two)))) == [[0, 1], [2, 3]]


def test_members_may_read_different_topics(cluster, join, wide, new_name, fill):
    other = new_name()
    cluster.create_topic(other, PARTITIONS)
    one = join('roundrobin')
    two = join('roundrobin', topics=[wide, other])
    until(
        lambda: len(one.assignment()) + len(two.assignment()) == 2 * PARTITIONS and owned(one),
        one,
        two,
    )
    assert {each.topic for each in one.assignment()} == {wide}
    assert {each for each in two.assignment() if each.topic == other} == {
        TopicPartition(other, p) for p in range(PARTITIONS)
    }


def test_a_pattern_in_a_group_finds_topics_that_appear(cluster, consume, group, new_name, fill):
    prefix = new_name()
    consumer = consume(
        group_id=group,
        session_timeout_ms=6000,
        heartbeat_interval_ms=200,
        metadata_max_age_ms=500,
    )
    consumer.subscribe(pattern='^%s-.*' % prefix)
    for n in range(2):
        name = '%s-%d' % (prefix, n)
        cluster.create_topic(name, 2)
        fill({name: {1: [b'in %d' % n]}})
        assert values(take(consumer, 1)) == [b'in %d' % n]
    assert consumer.subscription() == {prefix + '-0', prefix + '-1'}


def test_a_changed_subscription_changes_what_is_read(cluster, join, wide, new_name, fill):
    other = new_name()
    cluster.create_topic(other, PARTITIONS)
    fill({wide: numbered(3), other: numbered(4)})
    member = join()
    take(member, 3 * PARTITIONS)
    member.commit()
    member.subscribe([other])
    found = take(member, 4 * PARTITIONS)
    assert {each.topic for each in found} == {other}
    member.subscribe([wide, other])
    until(lambda: len(member.assignment()) == 2 * PARTITIONS, member)
    member.unsubscribe()
    assert member.assignment() == set()
    assert nothing_comes(member, 0.3)


def test_listeners_may_commit_seek_pause_and_ask_for_positions(join, wide, fill, cluster, group):
    fill({wide: numbered(10)})
    done = []

    class Busy(Notes):
        consumer = None

        def on_partitions_assigned(self, assigned):
            super().on_partitions_assigned(assigned)
            for each in assigned:
                done.append(self.consumer.position(each))
                self.consumer.seek(each, 4)
            self.consumer.commit({each: OffsetAndMetadata(2, 'in it') for each in assigned})
            self.consumer.pause(TopicPartition(wide, 3))

    notes = Busy()
    notes.consumer = join(listener=notes)
    found = take(notes.consumer, 6 * (PARTITIONS - 1))
    assert done == [0] * PARTITIONS
    assert min(each.offset for each in found) == 4
    assert owned(notes.consumer) == set(range(PARTITIONS))
    assert 3 not in {each.partition for each in found}
    stored = BrokerOffsets(cluster).stored(group, wide, range(PARTITIONS))
    assert stored == dict.fromkeys(range(PARTITIONS), 2)


def test_automatic_commits_come_before_a_rebalance(join, wide, fill):
    """Without them the member that joins would get everything once more."""
    fill({wide: numbered(25)})
    one = join(enable_auto_commit=True, auto_commit_interval_ms=3_600_000)
    take(one, 25 * PARTITIONS)
    two = join()
    came = until(lambda: share(one, two), one, two)
    assert came == [[], []]
    assert nothing_comes(two, 1)


@each_assignor
def test_a_rebalance_may_be_asked_for(join, assignor):
    """Of the member that leads the group: brokers tell the others what is so already."""
    one, two = join(assignor), join(assignor)
    until(lambda: share(one, two), one, two)
    before = one.group_metadata().generation_id
    for each in (one, two):
        each.enforce_rebalance()
    until(lambda: one.group_metadata().generation_id > before, one, two)
    until(lambda: share(one, two), one, two)


def test_who_has_subscribed_is_no_member_before_it_polls(join):
    one = join()
    with pytest.raises((IllegalStateError, AssertionError, ValueError)):
        one.seek(TopicPartition('any', 0), 0)
    assert one.assignment() == set()
    until(lambda: share(one), one)


def test_a_member_tells_who_it_is_to_the_group(join, group):
    member = join()
    assert member.group_metadata().group_id == group
    until(lambda: share(member), member)
    told = member.group_metadata()
    assert (told.group_id, bool(told.member_id)) == (group, True)
    assert told.generation_id >= 0


def test_three_members_of_which_one_is_too_many(join, wide, cluster, new_name):
    name = new_name()
    cluster.create_topic(name, 2)
    members = [join(topics=[name]) for _ in range(3)]

    def is_settled():
        parts = sorted(len(each.assignment()) for each in members)
        return parts == [0, 1, 1]

    until(is_settled, *members, seconds=SECONDS)
    idle = next(each for each in members if not each.assignment())
    busy = next(each for each in members if each.assignment())
    busy.close()
    rest = [each for each in members if each is not busy]
    until(lambda: all(len(each.assignment()) == 1 for each in rest), *rest)
    assert idle.assignment()
