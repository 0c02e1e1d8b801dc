"""Sequence numbers, rule by rule."""

from __future__ import annotations

from kafka.producer.sequences import advance


def test_after_the_last_number_comes_zero():
    assert advance(2**31 - 1, 1) == 0
