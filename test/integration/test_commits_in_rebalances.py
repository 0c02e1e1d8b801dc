"""Commits in the middle of a rebalance, while a member in a long handler keeps the others waiting.

What was handed out is committed: by commit() at once, and by close() before it leaves. What brokers
store is read by another client (judges.py).
"""

from __future__ import annotations

import time

import pytest

from kafka.coordinator.classic.state_machine import ClassicMemberState
from kafka.errors import CommitInRebalanceError
from kafka.structs import OffsetAndMetadata, TopicPartition
from test.integration.consuming import SECONDS
from test.integration.judges import BrokerOffsets
from test.integration.test_consumer_groups import (
    ASSIGNORS,
    PARTITIONS,
    numbered,
    owned,
    share,
)

pytestmark = [pytest.mark.integration, pytest.mark.releases(since='0.9')]


class Member:
    """A consumer, and what it handed out: by partition the offset behind it."""

    def __init__(self, consumer):
        self.consumer = consumer
        self.behind = {}

    def poll(self):
        for partition, records in self.consumer.poll(20).items():
            self.behind[partition.partition] = records[-1].offset + 1

    @property
    def is_parked(self):
        """Whether its JoinGroup waits at the broker for the others."""
        return self.consumer._engine.member._membership.state is ClassicMemberState.JOINING


@pytest.fixture
def join(consume, cluster, new_name, group):
    """Return a function that makes a member; all of one topic with four partitions."""
    topic = new_name()
    cluster.create_topic(topic, PARTITIONS)

    def give(assignor, **options):
        consumer = consume(
            topic,
            group_id=group,
            session_timeout_ms=20000,
            heartbeat_interval_ms=200,
            auto_commit_interval_ms=3_600_000,
            max_poll_records=10,
            partition_assignment_strategy=[ASSIGNORS[assignor]],
            **options,
        )
        return Member(consumer)

    give.topic = topic
    return give


@pytest.fixture
def stored(cluster, group, join):
    """Return a function that tells {partition: offset} of the group."""
    return lambda: BrokerOffsets(cluster).stored(group, join.topic, range(PARTITIONS))


def go_on(*members, until):
    deadline = time.monotonic() + SECONDS
    while not until():
        assert time.monotonic() < deadline, [each.consumer for each in members]
        for each in members:
            each.poll()


def parked(join, fill, assignor, **options):
    """Return three members: one that does not poll, one whose join is parked, one that is new."""
    slow, middle = join(assignor, **options), join(assignor, **options)
    go_on(slow, middle, until=lambda: share(slow.consumer, middle.consumer))
    fill({join.topic: numbered(40)})  # not before: the first of them would read it all
    for each in slow, middle:
        go_on(each, until=lambda each=each: each.behind.keys() >= owned(each.consumer))
    third = join(assignor, **options)
    go_on(middle, third, until=lambda: middle.is_parked and third.is_parked)
    return slow, middle, third


each_kind = pytest.mark.parametrize(
    'assignor',
    [
        pytest.param(name, marks=pytest.mark.column('group %s' % name))
        for name in ('range', 'cooperative-sticky')
    ],
)


@each_kind
def test_who_closes_has_committed_all_it_handed_out(join, fill, stored, assignor):
    slow, middle, third = parked(join, fill, assignor)
    if assignor == 'cooperative-sticky':  # it reads on
        fill({join.topic: numbered(5, 40)})
        mine = owned(middle.consumer)
        go_on(middle, until=lambda: all(middle.behind[p] == 45 for p in mine))
        assert middle.is_parked
    handed, began = dict(middle.behind), time.monotonic()
    middle.consumer.close()
    assert time.monotonic() - began < 5
    found = stored()
    assert {p: found.get(p) for p in handed} == handed
    go_on(slow, third, until=lambda: share(slow.consumer, third.consumer))
    last = dict(handed)
    for each in slow, third:
        each.consumer.close()
        for partition, offset in each.behind.items():
            last[partition] = max(offset, last.get(partition, 0))
    assert stored() == last


@pytest.mark.column('group cooperative-sticky')
def test_what_is_kept_is_committed_at_once_and_what_was_given_up_is_not(join, fill, stored):
    _, middle, _ = parked(join, fill, 'cooperative-sticky', enable_auto_commit=False)
    began = time.monotonic()
    assert middle.consumer.commit()
    assert time.monotonic() - began < 5
    assert middle.is_parked
    handed = {p: middle.behind[p] for p in owned(middle.consumer)}
    assert {p: offset for p, offset in stored().items() if p in handed} == handed


@pytest.mark.column('group range')
def test_an_eager_member_commits_nothing_of_what_it_has_given_up(join, fill, stored):
    _, middle, _ = parked(join, fill, 'range', enable_auto_commit=False)
    before = stored()
    partition, offset = min(middle.behind.items())
    offsets = {TopicPartition(join.topic, partition): OffsetAndMetadata(offset, '')}
    with pytest.raises(CommitInRebalanceError):
        middle.consumer.commit(offsets)
    assert stored() == before
