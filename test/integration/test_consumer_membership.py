"""Members of a classic group that stall, die, come back under a name, or have rules of their own.

Members that are killed with -9 are processes of their own; the others are polled by turns. What a
rebalance does to partitions is test_consumer_groups.py's.
"""

from __future__ import annotations

import time

import pytest

from kafka import ConsumerRebalanceListener
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.errors import CommitFailedError, FencedInstanceIdError, KafkaError
from kafka.structs import OffsetAndMetadata
from test.integration.consuming import SECONDS, nothing_comes, take, until, values
from test.integration.documented import start
from test.integration.judges import BrokerOffsets

pytestmark = [pytest.mark.integration, pytest.mark.releases(since='0.9')]

SESSION_MS = 6000  # the least that brokers allow


@pytest.fixture
def join(consume, topic, group):
    """Return a function that makes a member of the group that reads the topic."""

    def give(listener=None, **options):
        options = {
            'session_timeout_ms': SESSION_MS,
            'heartbeat_interval_ms': 300,
            'enable_auto_commit': False,
            **options,
        }
        consumer = consume(group_id=group, **options)
        consumer.subscribe([topic], listener=listener)
        return consumer

    return give


def share(*members):
    parts = [each.assignment() for each in members]
    return all(parts) and sum(map(len, parts)) == len(set().union(*parts)) == 2


class Lost(ConsumerRebalanceListener):
    """Notes what it lost, and what was taken in order."""

    def __init__(self):
        self.lost, self.revoked = [], []

    def on_partitions_revoked(self, revoked):
        self.revoked.append(set(revoked))

    def on_partitions_assigned(self, assigned):
        pass

    def on_partitions_lost(self, lost):
        self.lost.append(set(lost))


# --- slow programs ------------------------------------------------------------------------------


def test_a_program_that_works_longer_than_the_session_stays_a_member(cluster, join):
    """Heartbeats go on meanwhile (KIP-62; before 0.10.1 too, the broker cannot tell)."""
    notes = Lost()
    long = {} if cluster.release.version >= (0, 10, 1) else {'session_timeout_ms': 30000}
    one, two = join(notes, **long), join(**long)
    until(lambda: share(one, two), one, two)
    notes.lost, notes.revoked = [], []
    mine = one.assignment()
    deadline = time.monotonic() + SESSION_MS / 1000 + 3
    while time.monotonic() < deadline:  # one works
        two.poll(100)
    assert two.assignment().isdisjoint(mine)
    one.poll(100)
    assert (one.assignment(), notes.lost, notes.revoked) == (mine, [], [])
    place = min(mine)
    one.commit({place: OffsetAndMetadata(0, '')})


@pytest.mark.releases(since='0.10.1')
def test_who_does_not_poll_for_too_long_is_left_out_and_comes_back_with_a_poll(join):
    notes = Lost()
    lazy = join(notes, max_poll_interval_ms=2000)
    eager = join()
    until(lambda: share(lazy, eager), lazy, eager)
    had = lazy.assignment()
    until(lambda: share(eager), eager)
    place = min(had)
    with pytest.raises(CommitFailedError):
        lazy.commit({place: OffsetAndMetadata(1, 'late')})
    until(lambda: share(lazy, eager), lazy, eager)
    assert notes.lost == [had]


def test_a_member_that_is_killed_is_replaced_after_its_session(
    cluster, join, topic, group, fill, tmp_path
):
    fill({topic: {0: [b'%d' % n for n in range(20)], 1: [b'%d' % n for n in range(20)]}})
    program = """
        import sys
        from kafka import KafkaConsumer
        hosts, topic, group = sys.argv[1:]
        consumer = KafkaConsumer(topic, bootstrap_servers=hosts, group_id=group,
            auto_offset_reset='earliest', enable_auto_commit=False, max_poll_records=5,
            session_timeout_ms=6000, heartbeat_interval_ms=300)
        count = 0
        while count < 10:
            count += sum(map(len, consumer.poll(1000).values()))
        consumer.commit()
        print({each.partition: consumer.position(each) for each in consumer.assignment()},
              flush=True)
        while True:
            consumer.poll(1000)
        """
    with start(tmp_path, program, cluster.bootstrap, topic, group) as running:
        try:
            done = eval(running.stdout.readline())
        finally:
            running.kill()
    assert sum(done.values()) >= 10
    heir = join()
    began = time.monotonic()
    found = take(heir, 40 - sum(done.values()))
    assert time.monotonic() - began < SESSION_MS / 1000 + 20
    assert sorted(values(found), key=int) == sorted(
        (b'%d' % n for p in (0, 1) for n in range(done.get(p, 0), 20)), key=int
    )


def test_a_commit_of_a_member_that_was_replaced_stores_nothing(cluster, join, topic, group):
    one, two = join(), join()
    until(lambda: share(one, two), one, two)
    place = min(one.assignment())
    one.close()
    until(lambda: share(two), two)
    old = join(session_timeout_ms=SESSION_MS)
    until(lambda: share(two, old), two, old)
    two.unsubscribe()
    with pytest.raises(KafkaError):
        # As a member of no generation, while the group has members.
        two.commit({place: OffsetAndMetadata(9, '')})
    assert BrokerOffsets(cluster).stored(group, topic, [0, 1]) == {}


# --- static members -----------------------------------------------------------------------------


@pytest.mark.releases(since='2.3')
def test_a_static_member_that_comes_back_in_time_has_its_partitions_again(join):
    notes = Lost()
    one = join(group_instance_id='one', session_timeout_ms=20000)
    two = join(notes, group_instance_id='two', session_timeout_ms=20000)
    until(lambda: share(one, two), one, two)
    had, revoked = one.assignment(), list(notes.revoked)
    one.close()
    assert nothing_comes(two, 1.5)
    assert (notes.revoked, len(two.assignment())) == (revoked, 1)
    one = join(group_instance_id='one', session_timeout_ms=20000)
    until(lambda: share(one, two), one, two)
    assert one.assignment() == had
    assert notes.revoked == revoked


@pytest.mark.releases(since='2.3')
def test_the_older_of_two_members_of_a_name_is_fenced(join):
    older = join(group_instance_id='same')
    until(lambda: share(older), older)
    newer = join(group_instance_id='same')
    until(lambda: share(newer), newer)
    with pytest.raises(FencedInstanceIdError):
        until(lambda: False, older, seconds=20)
    newer.commit({place: OffsetAndMetadata(0, '') for place in newer.assignment()})
    assert share(newer)


# --- assignors that programs write --------------------------------------------------------------


class EverythingToTheLast(RangePartitionAssignor):
    """Written as those of 1.x and 2.x were: class methods, all to the member with the last id."""

    name = 'everything-to-the-last'
    version = 0
    told = []

    @classmethod
    def assign(cls, cluster, members):
        from kafka.coordinator.protocol import ConsumerProtocolMemberAssignment  # where it was

        topics = sorted({topic for each in members.values() for topic in each.subscription})
        everything = [
            (topic, sorted(cluster.partitions_for_topic(topic) or ())) for topic in topics
        ]
        return {
            member: ConsumerProtocolMemberAssignment(
                cls.version, everything if member == max(members) else [], b''
            )
            for member in members
        }

    @classmethod
    def on_assignment(cls, assignment):
        cls.told.append(assignment)


def test_an_assignor_that_a_program_wrote(join):
    strategy = {'partition_assignment_strategy': [EverythingToTheLast, RoundRobinPartitionAssignor]}
    one, two = join(**strategy), join(**strategy)

    def is_settled():
        return sorted([len(one.assignment()), len(two.assignment())]) == [0, 2] and is_joined()

    def is_joined():
        generations = {each.group_metadata().generation_id for each in (one, two)}
        return len(generations) == 1 and min(generations) >= 0

    until(is_settled, one, two)
    assert EverythingToTheLast.told


# --- listeners that go wrong --------------------------------------------------------------------


def test_a_listener_that_raises_leaves_a_consumer_that_can_be_used(join, topic, fill):
    class Raising(Lost):
        def on_partitions_assigned(self, assigned):
            self.count = getattr(self, 'count', 0) + 1
            raise RuntimeError('of the program')

    notes = Raising()
    member = join(notes)
    fill({topic: {0: [b'v']}})
    found, deadline = [], time.monotonic() + SECONDS
    while not found:
        assert time.monotonic() < deadline
        try:
            found = take(member, 1, seconds=5)
        except RuntimeError:
            pass  # told once, or logged
    assert notes.count >= 1
    assert values(found) == [b'v']


def test_a_listener_that_takes_its_time_holds_up_nobody_for_ever(join):
    class Slow(Lost):
        def on_partitions_revoked(self, revoked):
            super().on_partitions_revoked(revoked)
            time.sleep(2)

    one = join(Slow())
    until(lambda: share(one), one)
    two = join()
    until(lambda: share(one, two), one, two)


# --- coordinators -------------------------------------------------------------------------------


@pytest.mark.brokers(3)
@pytest.mark.thorough
@pytest.mark.releases(some=('0.11.0.3', '4.4.0'))
def test_a_coordinator_that_is_killed_costs_no_member_its_partitions(
    cluster, consume, fill, new_name, group
):
    from test.integration.group_wire import group_coordinator_of  # late: asks by hand

    name = new_name()
    cluster.create_topic(name, 2, 3)
    notes = Lost()

    def make(listener=None):
        consumer = consume(group_id=group, enable_auto_commit=False, session_timeout_ms=30000)
        consumer.subscribe([name], listener=listener)
        return consumer

    one, two = make(notes), make()
    until(lambda: share(one, two), one, two)
    revoked = list(notes.revoked)
    # Before 0.11 a broker that takes over reads groups up to what it, as a follower, knew of the
    # high watermark, which is behind by a fetch: it loses a group that is younger than that.
    ripe = time.monotonic() + 2
    until(lambda: time.monotonic() > ripe, one, two)
    cluster.kill(group_coordinator_of(cluster, group))
    place = min(one.assignment())
    one.commit({place: OffsetAndMetadata(0, 'after')})
    fill({name: {0: [b'0'], 1: [b'1']}})
    found = []

    def has_all():
        return len(found) >= 2

    deadline = time.monotonic() + SECONDS
    while not has_all():
        assert time.monotonic() < deadline
        for each in (one, two):
            for records in each.poll(100).values():
                found += records
    assert sorted(values(found)) == [b'0', b'1']
    assert (notes.lost, notes.revoked) == ([], revoked)
