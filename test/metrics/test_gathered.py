"""Statistics that get the values of many events at once are those that get each by itself."""

from __future__ import annotations

import pytest

from kafka.metrics import MetricConfig
from kafka.metrics.gathered import (
    GatheredAvg,
    GatheredMax,
    event_rate,
    gather,
    gathered_rate,
)
from kafka.metrics.stats import Avg, Count, Max, Rate

PAIRS = [
    (GatheredAvg, Avg),
    (GatheredMax, Max),
    (gathered_rate, Rate),
    (event_rate, lambda: Rate(sampled_stat=Count())),
]
# When, and what happened then.
EVENTS = [(0, [3, 1, 9]), (500, [4]), (1200, [2, 2]), (2300, [7, 1]), (2400, [0])]


def nothing():
    pass


@pytest.mark.parametrize('many, single', PAIRS)
@pytest.mark.parametrize('until', range(1, len(EVENTS) + 1))
def test_it_is_the_same_as_one_by_one(many, single, until):
    config = MetricConfig(samples=2, time_window_ms=1000)
    gathering, usual = many(nothing), single()
    for now, values in EVENTS[:until]:
        gathering.record(config, gather(values), now)
        for value in values:
            usual.record(config, value, now)
        assert gathering.measure(config, now + 100) == usual.measure(config, now + 100)


@pytest.mark.parametrize('many, single', PAIRS)
def test_it_asks_for_what_was_not_recorded_yet(many, single):
    asked = []
    many(lambda: asked.append(1)).measure(MetricConfig(), 1000)
    assert asked
