"""Asking without sleeping, on a clock moved by hand: when that is done, and when it is not."""

from __future__ import annotations

import math

import pytest

from kafka.net.loop.busy_poll import LENT, LONGEST, SHORTEST, BusyPoll

LIMIT = 0.0003
NEWS = [(7, 1)]
#: What asking takes.
ASK = 0.000005


class World:
    """An answer that comes at its time, and a processor that others may want.

    Attributes: now; asked: the seconds of each call; answer_in: how long the next answer takes;
    lent: seconds that others have the processor for, each time it is offered.
    """

    def __init__(self, longest=LIMIT, answer_in=0.0001, lent=0.0):
        self.now = 100.0
        self.asked = []
        self.answer_in, self.lent = answer_in, lent
        self.poll = BusyPoll(longest, lambda: self.now, self.give_way)

    def give_way(self):
        self.now += self.lent

    def ask(self, seconds, most):
        assert most == 3
        self.asked.append(seconds)
        self.now += ASK
        if not seconds:
            return NEWS if self.now >= self.due else []
        self.now = max(self.now, self.due)
        return NEWS

    def wait(self, seconds=-1):
        """Wait for an answer; return what was asked."""
        del self.asked[:]
        self.due = self.now + self.answer_in
        assert self.poll.wait(self.ask, seconds, 3) is NEWS
        return list(self.asked)

    def sleeps(self, seconds=-1):
        """Wait; tell whether it slept at once."""
        return self.wait(seconds) == [seconds]


@pytest.fixture
def world():
    return World()


def test_an_answer_that_comes_soon_is_not_slept_for(world):
    asked = world.wait()
    assert set(asked) == {0} and 15 < len(asked) < 25


def test_one_that_takes_longer_is_slept_for_after_the_limit(world):
    world.answer_in = 10.0
    asked = world.wait()
    assert asked[-1] == -1 and set(asked[:-1]) == {0}
    assert len(asked) * ASK == pytest.approx(LIMIT, rel=0.1)


def test_where_answers_take_long_it_sleeps_at_once_until_they_do_not(world):
    world.answer_in = 0.002
    waits = [world.sleeps() for _ in range(20)]
    assert not waits[0] and all(waits[10:])
    world.answer_in = 0.0001
    waits = [world.sleeps() for _ in range(40)]
    assert waits[0] and not any(waits[30:])


def test_one_answer_that_takes_for_ever_does_not_keep_it_from_asking(world):
    world.wait()
    world.answer_in = 3600.0
    world.wait()
    world.answer_in = 0.0001
    assert not world.sleeps()


@pytest.mark.parametrize('longest, give_way', [(0.0, int), (LIMIT, None)])
def test_without_a_limit_or_a_way_to_offer_the_processor_it_sleeps(longest, give_way):
    calls = []
    poll = BusyPoll(longest, float, give_way)
    assert poll.wait(lambda *told: calls.append(told) or NEWS, 5, 3) is NEWS
    assert calls == [(5, 3)]


@pytest.mark.parametrize('seconds, sleeps', [(0, True), (LIMIT, True), (0.001, False), (-1, False)])
def test_who_wants_to_sleep_for_less_than_the_limit_does(world, seconds, sleeps):
    world.wait()
    world.answer_in = 0.0
    assert world.sleeps(seconds) is sleeps


def test_while_others_want_the_processor_it_sleeps_longer_and_longer(world):
    world.lent = 2 * LENT
    tries, began = [], world.now
    while world.now < began + 60:
        if not world.sleeps():
            tries.append(world.now)
    pauses = [after - before for before, after in zip(tries, tries[1:])]
    assert SHORTEST <= pauses[0] < 1.5 * SHORTEST
    growing = [each for each in pauses if each < LONGEST]
    assert all(after > 1.7 * before for before, after in zip(growing, growing[1:]))
    assert len(growing) < 10 and len(tries) < 50
    assert all(LONGEST <= each < 1.1 * LONGEST for each in pauses[len(growing) :])
    lost = len(tries) * world.lent
    assert lost < 0.001 * (world.now - began)


def test_when_they_want_it_no_longer_it_asks_again_soon(world):
    world.lent = 2 * LENT
    end = world.now + 30
    while world.now < end:
        world.wait()
    world.lent = 0.0
    began = world.now
    while world.sleeps():
        assert world.now < began + 2 * LONGEST
    for _ in range(1500):  # which takes 0.15 s
        assert not world.sleeps()
    world.lent, world.answer_in = 2 * LENT, 0.01
    assert not world.sleeps()
    world.lent, world.answer_in, began = 0.0, 0.0001, world.now
    while world.sleeps():
        pass
    assert world.now - began < 2 * SHORTEST, 'it has not forgotten how busy it was'


@pytest.mark.parametrize('lent', [0.0, 2.0])
def test_it_takes_no_longer_than_it_may(lent):
    """What it asks, and lends, is part of that."""
    world = World(longest=0.5, answer_in=math.inf, lent=lent)
    began, answer = world.now, []

    def ask(seconds, most):
        world.asked.append(seconds)
        world.now += seconds or ASK
        return answer

    assert world.poll.wait(ask, 0.8, 3) is answer
    assert world.asked[0] == 0 and world.now - began == pytest.approx(max(0.8, lent), abs=0.001)


def test_what_is_lent_for_a_moment_is_no_reason_to_sleep(world):
    world.lent = LENT / 10
    assert not any(world.sleeps() for _ in range(50))


def test_it_shows_what_it_has_learned(world):
    world.wait()
    assert repr(world.poll) == '<BusyPoll of 300 us, answers take 12 us>'
