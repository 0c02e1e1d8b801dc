"""When a consumer commits by itself, and which of two commits stands."""

from __future__ import annotations

import pytest

from kafka.coordinator.commits.schedule import AutoCommit, AutoCommitState, CommitOrder
from kafka.errors import IllegalStateError
from kafka.structs import TopicPartition

P0, P1 = TopicPartition('t', 0), TopicPartition('t', 1)


@pytest.fixture
def auto():
    return AutoCommit(interval=5.0, retry_backoff=0.1, now=100.0)


def test_the_first_commit_is_due_after_an_interval(auto):
    assert not auto.due(104.9)
    assert auto.due(105.0)


def test_none_is_due_while_one_is_under_way(auto):
    auto.began(105.0)
    assert not auto.due(200.0)


def test_the_next_one_is_due_an_interval_after_the_begin_of_the_last(auto):
    auto.began(105.0)
    auto.ended(107.0, ok=True)
    assert not auto.due(109.9)
    assert auto.due(110.0)


def test_what_may_succeed_later_is_tried_again_soon_and_less_often_each_time(auto):
    now, pauses = 105.0, []
    for _ in range(8):
        auto.began(now)
        auto.ended(now, ok=False)
        pauses.append(round(auto.next_at - now, 3))
        now = auto.next_at
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]  # never rarer than usual


def test_a_success_ends_the_back_off(auto):
    for _ in range(3):
        auto.began(105.0)
        auto.ended(105.0, ok=False)
    auto.began(106.0)
    auto.ended(106.0, ok=True)
    auto.began(111.0)
    auto.ended(111.0, ok=False)
    assert auto.next_at == pytest.approx(111.1)


def test_many_failures_do_not_overflow(auto):
    for _ in range(3000):
        auto.began(105.0)
        auto.ended(105.0, ok=False)
    assert auto.next_at == 110.0


def test_a_commit_of_everything_begins_the_interval_anew(auto):
    auto.reset(104.0)
    assert not auto.due(108.9)
    assert auto.due(109.0)


def test_a_commit_of_everything_leaves_the_one_under_way(auto):
    auto.began(105.0)
    auto.reset(106.0)
    assert auto.state is AutoCommitState.UNDER_WAY
    auto.ended(107.0, ok=True)
    assert auto.next_at == 111.0


def test_two_at_once_are_a_mistake(auto):
    auto.began(105.0)
    with pytest.raises(IllegalStateError, match='under way cannot become under way'):
        auto.began(106.0)


def test_an_end_without_a_begin_is_a_mistake(auto):
    with pytest.raises(IllegalStateError, match='waiting cannot become waiting'):
        auto.ended(106.0, ok=True)


# ---------------------------------------------------------------- the order of commits


def test_a_later_call_about_the_same_partition_is_seen_while_it_is_under_way():
    order = CommitOrder()
    first, second = order.begin([P0]), order.begin([P0, P1])
    assert order.later(first, [P0]) == [second]
    assert order.later(second, [P0]) == []
    order.end(second)
    assert order.later(first, [P0]) == []


def test_a_later_call_about_another_partition_is_nothing_to_wait_for():
    order = CommitOrder()
    first = order.begin([P0])
    order.begin([P1])
    assert order.later(first, [P0]) == []


def test_what_a_later_call_has_stored_is_left_out():
    order = CommitOrder()
    first, second = order.begin([P0, P1]), order.begin([P1])
    order.stored(second, [P1])
    order.end(second)
    assert order.left(first, {P0: 1, P1: 2}) == {P0: 1}


def test_what_an_earlier_call_has_stored_is_not():
    order = CommitOrder()
    first, second = order.begin([P0]), order.begin([P0])
    order.stored(second, [P0])
    order.stored(first, [P0])  # its answer was read later
    assert order.left(second, {P0: 1}) == {P0: 1}
    assert order.left(first, {P0: 1}) == {}


def test_nothing_is_remembered_when_nobody_is_under_way():
    order = CommitOrder()
    number = order.begin([P0])
    order.stored(number, [P0])
    order.end(number)
    assert order._stored == {}
    assert repr(order) == '<CommitOrder under_way=0>'
