"""What waits for the program: its order, what is stale or paused, and the bytes."""

from __future__ import annotations

import pytest

from kafka.consumer.fetch.buffer import FetchBuffer
from kafka.structs import TopicPartition

A, B, C = (TopicPartition('t', n) for n in range(3))


class State:
    def __init__(self):
        self.token = 1
        self.fetchable = True
        self.is_stuck = False

    def stick(self):
        self.is_stuck = True

    def is_fetchable(self):
        return self.fetchable


class Fetch:
    def __init__(self, partition, node_id=1, size_bytes=10, token=1):
        self.partition = partition
        self.node_id = node_id
        self.size_bytes = size_bytes
        self.token = token
        self.is_put_off = False
        self.kept_bytes = None  # of a batch that cannot be read

    def shed(self):
        if self.kept_bytes is not None:
            self.size_bytes = self.kept_bytes
        return self.kept_bytes is not None


@pytest.fixture
def states():
    return {at: State() for at in (A, B, C)}


@pytest.fixture
def parked(states):
    return FetchBuffer(100, states.get)


def test_they_come_in_the_order_in_which_they_came(parked):
    first, second, third = Fetch(A), Fetch(B), Fetch(A)
    parked.add([first, second])
    parked.add([third])
    assert [parked.next_fetch() for _ in range(4)] == [first, second, third, None]


def test_the_first_stays_until_it_is_taken(parked):
    fetch = Fetch(A)
    parked.add([fetch])
    assert parked.first() is fetch is parked.first()
    assert parked.waiting(1) == 1


def test_what_is_stale_or_gone_is_dropped_with_its_bytes(parked, states):
    parked.add([Fetch(A)])
    parked.add([Fetch(B)])
    states[A].token = 2
    del states[B]
    assert parked.next_fetch() is None and (parked.used, parked.waiting(1)) == (0, 0)


def test_what_is_paused_waits_aside_and_comes_back_first_and_in_order(parked, states):
    first, second, other = Fetch(A), Fetch(A), Fetch(B)
    parked.add([first, second, other])
    states[A].fetchable = False
    assert parked.first() is other and parked.waiting(1) == 1
    parked.restore(A)
    assert parked.first() is other, 'it is paused as before'
    states[A].fetchable = True
    parked.restore(A)
    assert [parked.next_fetch() for _ in range(4)] == [first, second, other, None]


def test_what_is_aside_and_no_longer_assigned_is_dropped(parked, states):
    parked.add([Fetch(A)])
    states[A].fetchable = False
    assert parked.first() is None and parked.used == 10
    del states[A]
    parked.restore(A)
    assert parked.first() is None and parked.used == 0


def test_what_is_put_back_is_next(parked, states):
    first, second = Fetch(A), Fetch(A)
    parked.add([first, second])
    taken = parked.next_fetch()
    parked.put_back(taken)
    assert parked.next_fetch() is first
    states[A].fetchable = False
    assert parked.first() is None
    parked.put_back(first)
    states[A].fetchable = True
    parked.restore(A)
    assert [parked.next_fetch(), parked.next_fetch()] == [first, second]


def test_what_is_put_off_goes_behind_others_once_and_stays_in_order(parked):
    first, second, other = Fetch(A), Fetch(A), Fetch(B)
    parked.add([first, second, other])
    parked.put_back(parked.next_fetch())
    first.is_put_off = True
    assert parked.first() is other is parked.first()
    assert parked.waiting(1) == 2
    assert [parked.next_fetch() for _ in range(4)] == [other, first, second, None]


def test_what_is_put_off_comes_where_there_is_nothing_else(parked):
    fetch = Fetch(A)
    parked.add([fetch])
    fetch.is_put_off = True
    assert parked.next_fetch() is fetch


def test_what_is_put_off_and_paused_waits_aside_all_the_same(parked, states):
    fetch, other = Fetch(A), Fetch(B)
    parked.add([fetch, other])
    fetch.is_put_off, states[A].fetchable = True, False
    assert parked.next_fetch() is other
    states[A].fetchable = True
    parked.restore(A)
    assert parked.next_fetch() is fetch


def test_what_cannot_be_read_keeps_no_bytes_of_its_answer(parked):
    bad, other = Fetch(A), Fetch(B)
    bad.kept_bytes = 3
    parked.add([bad, other])
    assert parked.next_fetch() is bad
    parked.put_off(bad)
    assert parked.used == 20 + 3
    assert parked.next_fetch() is other
    parked.done(other)
    assert parked.take_relief() and parked.used == 3
    assert parked.next_fetch() is bad
    parked.put_off(bad)
    assert parked.used == 3
    assert parked.next_fetch() is bad
    parked.done(bad)
    assert parked.used == 0


def test_what_can_be_read_and_is_put_off_keeps_them(parked):
    fetch = Fetch(A)
    parked.add([fetch])
    parked.put_off(parked.next_fetch())
    assert (parked.used, parked.next_fetch()) == (10, fetch)


def test_what_was_let_go_of_comes_back_without_bytes(parked):
    fetch = Fetch(A)
    parked.add([fetch])
    parked.next_fetch()
    parked.clear()
    fetch.kept_bytes = 3
    parked.put_off(fetch)
    assert parked.used == 0


def test_what_is_put_back_does_not_wait_to_be_begun(parked, states):
    fetch = Fetch(A)
    parked.add([fetch])
    parked.next_fetch()
    parked.put_back(fetch)
    assert parked.waiting(1) == 0
    states[A].fetchable = False
    parked.first()
    states[A].fetchable = True
    parked.restore(A)
    assert parked.waiting(1) == 0 and parked.next_fetch() is fetch
    parked.done(fetch)
    parked.add([Fetch(A)])
    assert parked.waiting(1) == 1


def test_an_answer_counts_until_the_last_of_it_is_done_with(parked):
    fetches = [Fetch(A), Fetch(B)]
    parked.add(fetches)
    parked.reserved = 30
    assert (parked.used, parked.free) == (20, 50)
    for fetch in fetches:
        assert parked.used == 20
        parked.next_fetch()
        parked.done(fetch)
    assert (parked.used, parked.free) == (0, 70)


def test_doing_away_twice_counts_once(parked):
    one, other = Fetch(A), Fetch(B)
    parked.add([one, other])
    parked.done(one)
    parked.done(one)
    assert parked.used == 20


def test_what_waits_is_counted_by_node(parked):
    parked.add([Fetch(A), Fetch(B)])
    parked.add([Fetch(C, node_id=2)])
    assert [parked.waiting(node) for node in (1, 2, 3)] == [2, 1, 0]
    parked.next_fetch()
    assert [parked.waiting(node) for node in (1, 2, 3)] == [1, 1, 0]


def test_it_tells_when_more_may_be_asked(parked):
    fetches = [Fetch(A), Fetch(B)]
    parked.add(fetches)
    assert not parked.take_relief()
    parked.next_fetch()
    assert not parked.take_relief(), 'another one waits'
    parked.next_fetch()
    assert parked.take_relief() and not parked.take_relief()
    parked.done(fetches[0])
    assert not parked.take_relief()
    parked.done(fetches[1])
    assert parked.take_relief()


def test_it_is_quiet_only_where_neither_a_fetch_nor_relief_waits_to_be_told_of(parked):
    assert parked.is_quiet
    fetch = Fetch(A)
    parked.add([fetch])
    assert not parked.is_quiet
    parked.next_fetch()
    assert not parked.is_quiet, 'more may be asked for'
    parked.take_relief()
    assert parked.is_quiet
    parked.put_back(fetch)
    assert not parked.is_quiet


def test_what_is_aside_is_dropped_for_others(parked, states):
    parked.add([Fetch(A)])
    parked.add([Fetch(B)])
    states[A].fetchable = False
    parked.first()
    assert parked.drop_aside() == [A] and parked.used == 10
    assert parked.drop_aside() == []


def test_all_goes_at_the_end(parked):
    parked.add([Fetch(A)])
    parked.clear()
    assert parked.next_fetch() is None and parked.used == 0 and parked.waiting(1) == 0


def test_it_says_what_it_is(parked):
    parked.add([Fetch(A)])
    assert repr(parked) == '<FetchBuffer 1, 0 partitions aside, 10 of 100 bytes>'


def test_nobody_waits_for_what_is_behind_something_that_cannot_be_handed_out(parked, states):
    first, second, third, other = Fetch(A), Fetch(A), Fetch(A), Fetch(B)
    parked.add([first])
    parked.add([second])
    parked.put_off(parked.next_fetch())
    assert states[A].is_stuck and parked.waiting(1) == 0 and parked.take_relief()
    parked.add([third, other])  # it was under way
    assert parked.waiting(1) == 1
    assert parked.next_fetch() is other
    assert parked.waiting(1) == 0
    assert [parked.next_fetch() for _ in range(4)] == [first, second, third, None]
    assert parked.waiting(1) == 0
