"""What offsets and levels of isolation are called since 3.0."""

from __future__ import annotations

import kafka
from kafka.protocol.consumer import (
    IsolationLevel,
    OffsetResetStrategy,
    OffsetSpec,
    OffsetTimestamp,
)


def test_the_numbers_are_those_of_the_protocol():
    assert [int(each) for each in IsolationLevel] == [0, 1]
    assert [(each.name, int(each)) for each in OffsetSpec] == [
        ('LATEST', -1),
        ('EARLIEST', -2),
        ('MAX_TIMESTAMP', -3),
        ('EARLIEST_LOCAL', -4),
        ('LATEST_TIERED', -5),
    ]
    assert (OffsetResetStrategy.LATEST, OffsetResetStrategy.EARLIEST) == (-1, -2)


def test_a_time_is_a_number():
    assert OffsetTimestamp(5) == 5
    assert repr(OffsetTimestamp(5)) == 'OffsetTimestamp(5)'


def test_programs_of_3_0_find_them_at_the_top():
    assert kafka.IsolationLevel is IsolationLevel
    assert kafka.OffsetSpec is OffsetSpec
