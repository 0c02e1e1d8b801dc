"""When a broker may be asked again, and how long it waits, by the clock of a table."""

from __future__ import annotations

import pytest

from kafka.consumer.fetch.manager import FetchPace


def waited(pace, times, max_wait=0.5):
    for _ in range(times):
        pace.answered(10.0, max_wait, False, 10.0 + max_wait)


@pytest.mark.parametrize(
    'vain, longest, wait',
    [(0, 2.0, 0.5), (1, 2.0, 1.0), (9, 2.0, 2.0), (9, 0.5, 0.5), (1, 0.7, 0.7)],
)
def test_who_waited_in_vain_waits_longer(vain, longest, wait):
    pace = FetchPace(0.5, longest)
    waited(pace, vain)
    assert pace.max_wait(False, True) == wait
    assert pace.is_long(wait) == (wait > 0.5)
    assert pace.max_wait(False, False) == 0.5
    assert pace.max_wait(True, True) == 0.01


def test_a_wait_that_was_cut_short_by_us_does_not_count():
    pace = FetchPace(0.5, 2.0)
    waited(pace, 3, max_wait=0.01)
    assert pace.max_wait(False, True) == 0.5


@pytest.mark.parametrize(
    'ends',
    [
        lambda pace: pace.answered(10.0, 2.0, True, 10.1),
        lambda pace: pace.answered(10.0, 2.0, False, 10.1),
        lambda pace: pace.failed(10.0, lambda failures: 0.1),
        lambda pace: pace.disturb(),
    ],
)
def test_what_ends_long_waits(ends):
    pace = FetchPace(0.5, 2.0)
    waited(pace, 3)
    ends(pace)
    assert pace.max_wait(False, True) == 0.5


def test_who_does_not_wait_is_left_alone_for_longer_and_longer():
    pace = FetchPace(0.5, 2.0)
    pauses = []
    for _ in range(8):
        pace.answered(10.0, 0.5, False, 10.0)
        pauses.append(round(pace.not_before - 10.0, 3))
    assert pauses == [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.5, 0.5]


def test_failures_in_a_row_are_counted():
    pace = FetchPace(0.5, 2.0)
    for _ in range(2):
        pace.failed(10.0, lambda failures: failures / 10)
    assert (pace.failures, pace.not_before) == (2, 10.2)
    pace.succeeded()
    pace.failed(10.0, lambda failures: failures / 10, is_at_once=True)
    assert (pace.failures, pace.not_before) == (1, 10.0)
