"""Calls are made at their times, in order, and cancelled ones cost nothing."""

from __future__ import annotations

import pytest

from kafka.testing.timers import CLEAN_AT, SystemClock, Timers, VirtualClock


@pytest.fixture
def timers():
    return Timers(VirtualClock())


def test_calls_are_made_in_the_order_of_their_times_each_at_its_own(timers):
    seen = []
    for seconds in (2.0, 1.0, 3.0):
        timers.later(seconds, lambda: seen.append(timers.clock.monotonic()))
    timers.advance(2.5)
    assert seen == [1.0, 2.0]
    assert timers.clock.monotonic() == 2.5


def test_calls_of_one_time_keep_their_order(timers):
    seen = []
    for name in 'abc':
        timers.at(1.0, lambda name=name: seen.append(name))
    timers.advance(1.0)
    assert seen == ['a', 'b', 'c']


def test_a_call_that_adds_one_for_now_is_followed_by_it(timers):
    seen = []
    timers.later(1.0, lambda: timers.later(0.0, lambda: seen.append(timers.clock.monotonic())))
    timers.advance(1.0)
    assert seen == [1.0]


def test_a_cancelled_call_is_not_made_and_not_waited_for(timers):
    seen = []
    timer = timers.later(1.0, lambda: seen.append(1))
    timer.cancel()
    assert not timer.waits
    assert timers.next_time() is None
    timers.advance(2.0)
    assert seen == []


def test_a_step_makes_one_call(timers):
    seen = []
    timers.later(1.0, lambda: seen.append('a'))
    timers.later(1.0, lambda: seen.append('b'))
    assert timers.step()
    assert (seen, timers.clock.monotonic()) == (['a'], 1.0)


def test_a_step_does_nothing_behind_its_end(timers):
    timers.later(1.0, lambda: pytest.fail('too early'))
    assert not timers.step(0.5)
    assert timers.clock.monotonic() == 0.0


def test_cancelled_calls_of_a_far_future_do_not_pile_up(timers):
    for _ in range(10 * CLEAN_AT):
        timers.later(1e9, lambda: None).cancel()
    assert len(timers._waiting) <= CLEAN_AT


def test_time_never_goes_back(timers):
    timers.clock.move_to(5.0)
    timers.clock.move_to(4.0)
    assert timers.clock.monotonic() == 5.0


def test_the_wall_clock_goes_with_the_other(timers):
    before = timers.clock.wall_ms()
    timers.advance(1.5)
    assert timers.clock.wall_ms() - before == 1500


@pytest.mark.parametrize('move', [lambda t: t.advance(1), lambda t: t.step()])
def test_the_clock_of_the_machine_cannot_be_moved(move):
    with pytest.raises(TypeError, match='VirtualClock'):
        move(Timers(SystemClock()))


def test_due_calls_are_made_on_the_clock_of_the_machine():
    timers, seen = Timers(SystemClock()), []
    timers.later(-1.0, lambda: seen.append(1))
    timers.later(1000.0, lambda: seen.append(2))
    timers.run_due()
    assert seen == [1]
    assert SystemClock().wall_ms() > 1_600_000_000_000
