"""Classic membership, by hand: when the group takes commits, and what their refusals mean."""

from __future__ import annotations

import pytest

from kafka.coordinator.classic.state_machine import (
    ClassicErrorAction,
    ClassicMemberState,
    Generation,
    Heartbeats,
)
from test.coordinator.classic.test_state_machine import FIRST, Hand, parts, stable

SECOND = Generation(2, 'me')


def walk(hand, who):
    """Go through one rebalance; yield before each thing that happens."""
    member = hand.member
    yield
    while member.next_step():
        hand.take()
        yield
    member.joining()
    yield
    member.on_join(0, who, hand.now)
    yield
    member.syncing()
    yield
    member.on_sync(0, parts('a0'), hand.now)
    while member.state is ClassicMemberState.ADOPTING:
        yield
        hand.take()
    yield


def seen(hand, who):
    """Return in which states commits were taken, and in which they were not."""
    taken, refused = [], []
    for _ in walk(hand, who):
        (taken if hand.member.takes_commits else refused).append(hand.member.state)
    return set(taken), set(refused)


@pytest.mark.parametrize('is_cooperative', [False, True])
def test_who_has_no_generation_commits_nothing_before_it_has_an_assignment(is_cooperative):
    hand = Hand(is_cooperative).begin()
    assert seen(hand, FIRST) == (
        {ClassicMemberState.ADOPTING, ClassicMemberState.STABLE},
        {
            ClassicMemberState.PREPARING,
            ClassicMemberState.JOINING,
            ClassicMemberState.COMPLETING,
            ClassicMemberState.SYNCING,
        },
    )


@pytest.mark.parametrize('is_cooperative', [False, True])
def test_a_member_commits_but_between_the_answers_to_join_and_to_sync(is_cooperative):
    hand = stable(is_cooperative, assigned=['a0'])
    hand.member.rebalance('because')
    assert seen(hand, SECOND) == (
        {
            ClassicMemberState.PREPARING,
            ClassicMemberState.JOINING,
            ClassicMemberState.ADOPTING,
            ClassicMemberState.STABLE,
        },
        {ClassicMemberState.COMPLETING, ClassicMemberState.SYNCING},
    )


def test_while_join_is_parked_it_is_who_it_was():
    hand = stable(is_cooperative=True)
    hand.member.rebalance('because')
    hand.take()
    hand.member.joining()
    assert hand.member.who == FIRST


@pytest.mark.parametrize('code', [22, 25])
def test_who_has_lost_its_generation_commits_nothing_before_it_has_another(code):
    hand = stable(is_cooperative=True)
    hand.member.on_heartbeat(FIRST, code, hand.now)
    assert not hand.member.takes_commits
    assert not hand.member.is_asking  # the program has to hear of it first
    hand.take()
    hand.member.begin_if_due()
    assert not hand.member.takes_commits
    assert hand.member.is_asking
    hand.member.joining()
    assert not hand.member.takes_commits


def test_whether_a_rebalance_needs_the_thread_that_polls():
    hand = stable(is_cooperative=True)
    assert not hand.member.is_asking
    hand.member.rebalance('because')
    assert not hand.member.is_asking  # it has to revoke
    hand.take()
    assert hand.member.is_asking
    hand.join(SECOND)
    assert hand.member.is_asking
    hand.sync('a0')
    assert not hand.member.is_asking  # it has to take over what is assigned
    hand.member.fail(ValueError('over'))
    assert not hand.member.is_asking


@pytest.mark.parametrize('code', [22, 25, 27, 82])
def test_what_a_commit_meets_that_join_has_overtaken_is_left_to_the_answer_to_join(code):
    hand = stable(is_cooperative=True)
    member = hand.member
    member.rebalance('because')
    hand.take()
    member.joining()
    assert member.on_commit(FIRST, code) is ClassicErrorAction.IGNORE
    member.join_again()  # the answer was lost: the group may be in the next generation already
    assert member.on_commit(FIRST, code) is ClassicErrorAction.IGNORE
    assert (member.state, member.who, member.owned) == (
        ClassicMemberState.PREPARING,
        FIRST,
        parts('a0', 'a1'),
    )


def test_once_there_is_an_answer_what_commits_are_refused_with_counts_again():
    hand = stable(is_cooperative=True)
    hand.member.rebalance('because')
    hand.take()
    hand.join(SECOND)
    hand.sync('a0', 'a1')
    hand.take()
    assert hand.member.on_commit(SECOND, 22) is ClassicErrorAction.LOST


@pytest.mark.parametrize('what', ['begin', 'stop'])
def test_a_heartbeat_that_was_overtaken_counts_for_nothing(what):
    beats = Heartbeats(3.0)
    beats.begin(10.0)
    number = beats.sent(13.0)
    assert beats.counts(number)
    beats.begin(14.0) if what == 'begin' else beats.stop()
    assert not beats.counts(number)
    assert beats.counts(beats.sent(17.0))
