"""As whom a member commits: at once, when the group takes commits again, or not at all."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from kafka.coordinator.commits.member_commit import MemberCommit
from kafka.coordinator.group_settings import GroupSettings
from kafka.coordinator.member import Member
from kafka.errors import (
    CommitFailedError,
    CommitInRebalanceError,
    FencedInstanceIdError,
    KafkaTimeoutError,
)
from kafka.net.loop.tasks import Waiter
from kafka.structs import ConsumerGroupMetadata, TopicPartition
from test.manual_loop import ManualLoop

P0, P1 = TopicPartition('t', 0), TopicPartition('t', 1)
OLD, NEW = (ConsumerGroupMetadata('g', n, 'me', None) for n in (3, 4))


class Scripted(Member):
    """A member that is what a test says."""

    can_commit = True
    commits_held_only = True

    def __init__(self):
        super().__init__(GroupSettings('g'), lambda: None)
        self.who = OLD
        self.opens = Waiter()
        self.asked = []
        self.told = []

    def identity(self):
        return self.who

    async def until_commits(self, refused=None):
        self.asked.append(refused)
        return await self.opens

    def commit_refused(self, error, who=None):
        self.told.append((error, who))


class Rig:
    def __init__(self, *partitions):
        self.loop = ManualLoop()
        self.member = Scripted()
        self.assignment = {each: object() for each in (P0, P1)}
        self.subscription = SimpleNamespace(assignment=self.assignment)
        self.standing = self.made(P0, P1)

    def made(self, *partitions):
        lock = threading.Lock()
        return MemberCommit(self.loop, self.member, self.subscription, lock, partitions)

    def ask(self, *partitions, **how):
        task = self.loop.spawn(self.standing.later(partitions, 10.0, **how))
        self.loop.settle()
        return task

    def come_back(self, partition):
        self.assignment[partition] = object()


@pytest.fixture
def rig():
    return Rig()


def test_what_the_member_has_is_committed_at_once(rig):
    assert rig.standing.now([P0, P1]) is OLD


def test_what_it_has_not_is_refused_where_others_may_get_it(rig):
    foreign = TopicPartition('t', 7)
    with pytest.raises(CommitInRebalanceError, match='group g is being rebalanced'):
        rig.made(P0, foreign).now([P0, foreign])
    rig.member.commits_held_only = False
    assert rig.made(P0, foreign).now([P0, foreign]) is OLD


def test_what_was_given_up_and_came_back_is_not_held(rig):
    rig.come_back(P1)
    assert rig.standing.now([P0]) is OLD
    with pytest.raises(CommitInRebalanceError):
        rig.standing.now([P0, P1])


def test_where_commits_are_refused_it_has_to_be_waited(rig):
    rig.member.can_commit = False
    assert rig.standing.now([P0]) is None
    task = rig.ask(P0)
    assert not task.done
    rig.member.who = NEW
    rig.member.opens.wake(True)
    rig.loop.settle()
    assert task.result() is NEW
    assert rig.member.asked == [None]


def test_the_membership_is_told_who_was_refused(rig):
    rig.ask(P0, refused=OLD, error=CommitFailedError('no'))
    assert rig.member.asked == [OLD]


def test_what_tells_who_it_is_anew_is_nobody_who_can_be_refused(rig):
    rig.ask(P0, refused=lambda: OLD, error=CommitFailedError('no'))
    assert rig.member.asked == [None]


def test_what_takes_the_thread_that_polls_is_not_waited_for(rig):
    rig.member.opens.wake(False)
    with pytest.raises(CommitInRebalanceError):
        rig.ask(P0).result()


def test_the_error_of_the_last_try_is_what_is_raised(rig):
    error = CommitFailedError('no')
    rig.member.opens.wake(False)
    with pytest.raises(CommitFailedError) as raised:
        rig.ask(P0, refused=OLD, error=error).result()
    assert raised.value is error


def test_what_is_given_up_is_not_waited_for(rig):
    del rig.assignment[P0]
    with pytest.raises(CommitInRebalanceError):
        rig.ask(P0).result()
    assert rig.member.asked == []


def test_what_is_given_up_meanwhile_is_not_committed(rig):
    task = rig.ask(P0)
    rig.come_back(P0)
    rig.member.opens.wake(True)
    rig.loop.settle()
    with pytest.raises(CommitInRebalanceError):
        task.result()


def test_who_is_no_member_hears_why(rig):
    rig.member.error = error = FencedInstanceIdError('g')
    rig.member.opens.wake(False)
    rig.member.can_commit = False
    with pytest.raises(FencedInstanceIdError) as raised:
        rig.ask(P0).result()
    assert raised.value is error
    rig.member.can_commit = True  # it is one all the same: something was told of the group only
    rig.come_back(P0)
    with pytest.raises(CommitInRebalanceError):
        rig.standing.now([P0])


def test_waiting_is_bounded(rig):
    task = rig.ask(P0)
    rig.loop.advance(9.9)
    assert not task.done
    rig.loop.advance(0.2)
    with pytest.raises(CommitInRebalanceError):
        task.result()


@pytest.mark.parametrize(
    ('code', 'again'), [(22, True), (27, True), (25, False), (69, False), (110, False)]
)
def test_only_what_a_rebalance_has_overtaken_is_asked_again(rig, code, again):
    error = CommitFailedError('no')
    error.errno_of_group = code
    assert rig.standing.refused(error, OLD) is again
    assert rig.member.told == [(error, OLD)]


def test_what_is_no_refusal_is_told_all_the_same(rig):
    error = KafkaTimeoutError('late')
    assert not rig.standing.refused(error, lambda: OLD)
    assert rig.member.told == [(error, None)]


def test_it_tells_of_how_many_it_is(rig):
    assert repr(rig.standing) == '<MemberCommit of 2 partitions in g>'
