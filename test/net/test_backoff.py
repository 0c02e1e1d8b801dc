"""Exponential backoff grows with the failures in a row, up to the longest."""

from __future__ import annotations

from kafka.net.backoff import backoff_seconds


def test_without_a_failure_there_is_no_wait():
    assert backoff_seconds(0.1, 1, 0, 1.0) == 0


def test_each_failure_doubles_the_wait_up_to_the_longest():
    waits = [backoff_seconds(0.1, 1, failures, 1.0) for failures in (1, 2, 3, 4, 5, 500)]
    assert waits == [0.1, 0.2, 0.4, 0.8, 1, 1]


def test_the_jitter_varies_the_wait_but_not_the_longest():
    assert backoff_seconds(0.1, 1, 1, 0.8) == 0.1 * 0.8
    assert backoff_seconds(1, 1, 3, 1.2) == 1
