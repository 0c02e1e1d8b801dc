"""What raises at chosen points of a call meets each of them, and no other."""

from __future__ import annotations

import threading

import pytest

from test.raising import Interruption, Raiser, needs_points, points

HERE = (__file__,)

pytestmark = [pytest.mark.once, needs_points]


class Locked:
    def __init__(self):
        self.lock = threading.Lock()
        self.steps = []

    def step(self, number):
        self.steps.append(number)

    def run(self):
        for number in range(3):
            with self.lock:
                self.step(number)


def run_with(at):
    target = Locked()
    raiser = Raiser(at, within=HERE)
    try:
        with raiser:
            target.run()
    except Interruption:
        pass
    return target, raiser


def test_points_are_counted_without_raising():
    target, raiser = run_with(None)
    assert target.steps == [0, 1, 2]
    assert raiser.count >= 9  # the start of run(), and of each step(), and what each of them calls
    assert raiser.raised_at is None


def test_each_point_raises_once_and_says_where():
    _, raiser = run_with(None)
    for at in range(raiser.count):
        _, raised = run_with(at)
        assert raised.raised_at is not None and 'test_raising.py:' in raised.raised_at
        assert raised.count == at + 1


def test_a_point_never_leaves_a_lock_that_with_holds():
    _, raiser = run_with(None)
    for at in range(raiser.count):
        target, _ = run_with(at)
        assert not target.lock.locked()


def test_each_step_is_met_before_and_after_it():
    _, raiser = run_with(None)
    done = {tuple(run_with(at)[0].steps) for at in range(raiser.count)}
    assert done == {(), (0,), (0, 1), (0, 1, 2)}


def test_code_of_others_is_left_alone():
    raiser = Raiser(0)
    with raiser:
        Locked().run()
    assert raiser.count == 0


@pytest.mark.parametrize('count', [0, 1, 5, 6, 1000])
def test_a_part_of_the_points_has_the_first_and_the_last(count):
    chosen = points(count, 6)
    assert len(chosen) == min(count, 6) == len(set(chosen))
    assert not count or (chosen[0], chosen[-1]) == (0, count - 1)
