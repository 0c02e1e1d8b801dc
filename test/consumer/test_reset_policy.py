"""kafka.consumer.reset_policy: what the words of auto_offset_reset mean, as times to ask for."""

from __future__ import annotations

import pytest

from kafka.consumer.reset_policy import (
    EARLIEST,
    LATEST,
    NONE,
    ByDuration,
    read_policy,
    timestamp_of,
)
from kafka.errors import InvalidOptionError
from kafka.protocol.offset import OffsetResetStrategy


@pytest.mark.parametrize(
    'word, policy',
    [
        ('earliest', EARLIEST),
        ('latest', LATEST),
        ('none', NONE),
        ('smallest', EARLIEST),
        ('largest', LATEST),
        ('Earliest', NONE),
        ('nonsense', NONE),
        ('', NONE),
        (None, NONE),
        (True, NONE),
        (OffsetResetStrategy.EARLIEST, EARLIEST),
        (OffsetResetStrategy.LATEST, LATEST),
        (OffsetResetStrategy.NONE, NONE),
        (5, NONE),
        (ByDuration(3), ByDuration(3)),
    ],
)
def test_an_unknown_word_means_none(word, policy):
    assert read_policy(word) == policy


@pytest.mark.parametrize(
    'duration, milliseconds',
    [
        ('P1D', 86_400_000),
        ('PT1H', 3_600_000),
        ('PT1M', 60_000),
        ('PT1S', 1000),
        ('P2DT3H4M5.5S', 2 * 86_400_000 + 3 * 3_600_000 + 4 * 60_000 + 5500),
        ('PT0.001S', 1),
        ('PT0,25S', 250),
        ('PT0.0019S', 1),
        ('PT0S', 0),
        ('P0D', 0),
        ('pt36h', 36 * 3_600_000),
        ('P99999999999999999999999999D', 2**62),
    ],
)
def test_durations_are_those_of_iso_8601(duration, milliseconds):
    assert read_policy('by_duration:' + duration) == ByDuration(milliseconds)


@pytest.mark.parametrize(
    'duration',
    ['', 'P', 'PT', 'P1DT', '1D', 'P-1D', '-P1D', 'P1Y', 'P1M', 'PT1', 'PT1.5H', 'P1D ', 'P1H'],
)
def test_what_is_no_duration_is_refused_with_an_example(duration):
    with pytest.raises(InvalidOptionError, match='by_duration:P7D'):
        read_policy('by_duration:' + duration)


def test_the_ends_of_the_log_are_times_of_their_own():
    assert timestamp_of(EARLIEST, 1e9) == -2
    assert timestamp_of(LATEST, 1e9) == -1


def test_a_duration_counts_back_from_now():
    assert timestamp_of(ByDuration(1500), 1000.25) == 998_750


def test_a_duration_longer_than_time_itself_is_no_special_time():
    assert timestamp_of(ByDuration(10_000), 5.0) == 0
