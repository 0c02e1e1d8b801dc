"""kafka.metrics.stats: windows, averages, rates, percentiles, without a clock."""

from __future__ import annotations

import math
import sys

import pytest

from kafka.metrics import MetricConfig, MetricName
from kafka.metrics.stats import (
    Avg,
    Count,
    Histogram,
    Max,
    Min,
    Percentile,
    Percentiles,
    Rate,
    Total,
)
from kafka.metrics.stats.percentiles import BucketSizing
from kafka.metrics.stats.rate import TimeUnit
from kafka.metrics.stats.sampled_stat import AbstractSampledStat

WINDOW = 30000
CONFIG = MetricConfig()

# Statistic, nothing recorded, 1 2 6 recorded.
FIGURES = [
    (Avg, 0.0, 3.0),
    (Count, 0.0, 3.0),
    (Max, -math.inf, 6.0),
    (Min, float(sys.maxsize), 1.0),
    (Total, 0.0, 9.0),
]


@pytest.mark.parametrize('make, empty, full', FIGURES)
def test_figures_without_a_sensor(make, empty, full):
    stat = make()
    assert stat.measure(CONFIG, 0) == empty
    for value in (1, 2, 6):
        stat.record(CONFIG, value, 0)
    assert stat.measure(CONFIG, 0) == full
    assert isinstance(stat.measure(CONFIG, 0), float)


def test_a_total_may_begin_with_something():
    assert Total(5.0).measure(CONFIG, 0) == 5.0


# Times of records, when measured, what Count says; two windows of 30 s.
WINDOWS = [
    ([0], WINDOW - 1, 1),
    ([0], 2 * WINDOW - 1, 1),
    ([0], 2 * WINDOW, 0),
    ([0, WINDOW], 2 * WINDOW - 1, 2),
    ([0, WINDOW], 2 * WINDOW, 1),
    ([0, WINDOW], 3 * WINDOW, 0),
    ([0, WINDOW - 1], 2 * WINDOW - 1, 2),
    # A third window takes the place of the first.
    ([0, WINDOW, 2 * WINDOW], 2 * WINDOW, 2),
]


@pytest.mark.parametrize('times, at, count', WINDOWS)
def test_windows_of_time(times, at, count):
    stat = Count()
    for time in times:
        stat.record(CONFIG, 1, time)
    assert stat.measure(CONFIG, at) == count


def test_windows_of_records():
    config = MetricConfig(samples=2, event_window=2)
    stat = Count()
    counts = []
    for _ in range(6):
        stat.record(config, 1, 0)
        counts.append(stat.measure(config, 0))
    assert counts == [1, 2, 3, 4, 3, 4]


def test_the_age_of_a_window_counts_from_the_measurement_that_emptied_it():
    stat = Count()
    stat.record(CONFIG, 1, 0)
    assert stat.measure(CONFIG, 2 * WINDOW) == 0
    stat.record(CONFIG, 1, 3 * WINDOW - 1)
    assert stat.measure(CONFIG, 4 * WINDOW - 1) == 1
    assert stat.measure(CONFIG, 4 * WINDOW) == 0


# Windows, records (ms), measured at, elapsed ms.
RATES = [
    (2, [0] * 10, 0, 30000),
    (2, [0] * 10, 2000, 32000),
    (3, [0, 30000, 60000], 75000, 75000),
    (3, [0], 0, 60000),
    (3, [0], 31000, 61000),
    (1, [0], 1000, 1000),
]


@pytest.mark.parametrize('samples, times, at, elapsed', RATES)
def test_rates_go_over_the_time_that_windows_cover(samples, times, at, elapsed):
    config = MetricConfig(samples=samples)
    rate = Rate()
    for time in times:
        rate.record(config, 1, time)
    assert rate.window_size(config, at) == elapsed
    assert rate.measure(config, at) == pytest.approx(len(times) / (elapsed / 1000))


@pytest.mark.parametrize(
    'unit, name, ms',
    [
        (TimeUnit.NANOSECONDS, 'nanosecond', 1e-6),
        (TimeUnit.MICROSECONDS, 'microsecond', 1e-3),
        (TimeUnit.MILLISECONDS, 'millisecond', 1),
        (TimeUnit.SECONDS, 'second', 1000),
        (TimeUnit.MINUTES, 'minute', 60000),
        (TimeUnit.HOURS, 'hour', 3600000),
        (TimeUnit.DAYS, 'day', 86400000),
    ],
)
def test_units_of_time(unit, name, ms):
    rate = Rate(unit)
    rate.record(CONFIG, 60, 0)
    assert rate.unit_name() == name
    assert rate.measure(CONFIG, 0) == pytest.approx(60 / (WINDOW / ms))


def test_a_rate_of_another_statistic():
    rate = Rate(TimeUnit.MINUTES, Count())
    for _ in range(4):
        rate.record(CONFIG, 1000, 0)
    assert rate.measure(CONFIG, 0) == pytest.approx(8)


def test_a_unit_that_there_is_not():
    with pytest.raises(ValueError):
        Rate(7)


@pytest.mark.parametrize(
    'scheme, edges',
    [
        (Histogram.ConstantBinScheme(5, 0, 30), [-math.inf, 0, 10, 20, math.inf]),
        (Histogram.LinearBinScheme(4, 12), [0, 2, 6, math.inf]),
    ],
)
def test_schemes_find_the_bin_of_a_value(scheme, edges):
    assert scheme.bins == len(edges)
    assert [scheme.from_bin(b) for b in range(scheme.bins)] == edges
    for number, edge in enumerate(edges):
        if not math.isinf(edge):
            assert scheme.to_bin(edge) == number
    assert scheme.to_bin(10**9) == scheme.bins - 1


def test_a_constant_scheme_has_bins_for_what_is_outside():
    scheme = Histogram.ConstantBinScheme(10, -5, 5)
    assert (scheme.to_bin(-6), scheme.to_bin(-5), scheme.to_bin(5), scheme.to_bin(5.1)) == (
        0,
        1,
        9,
        9,
    )


@pytest.mark.parametrize('make', [Histogram.ConstantBinScheme, Histogram.LinearBinScheme])
def test_a_scheme_needs_two_bins(make):
    with pytest.raises(ValueError):
        make(1, *([0, 1] if make is Histogram.ConstantBinScheme else [1]))


def test_a_linear_scheme_refuses_what_is_negative():
    with pytest.raises(ValueError):
        Histogram.LinearBinScheme(4, 12).to_bin(-1)


def test_a_histogram_shows_its_bins():
    histogram = Histogram(Histogram.ConstantBinScheme(4, 0, 10))
    histogram.record(7)
    assert str(histogram) == '{-inf:0,0.0000000000:0,5.0000000000:1,inf:0}'


def test_a_histogram_gives_the_value_of_a_part():
    histogram = Histogram(Histogram.ConstantBinScheme(12, 0, 10))
    assert math.isnan(histogram.value(0.5))
    for value in range(10):
        histogram.record(value)
    assert histogram.counts == [0.0] + [1.0] * 10 + [0.0]
    assert [histogram.value(part) for part in (0.05, 0.25, 0.5, 0.95)] == [0, 2, 5, 9]
    assert histogram.value(1.0) == math.inf


def percentiles(**options):
    given = {'size_in_bytes': 4 * 102, 'bucketing': 0, 'max_val': 100, 'min_val': 0}
    given.update(options)
    names = [Percentile(MetricName('p%d' % p, 'g'), p) for p in (25, 50, 75)]
    return Percentiles(percentiles=names, **given)


@pytest.mark.parametrize('bucketing', [BucketSizing.CONSTANT, BucketSizing.LINEAR])
def test_percentiles_of_the_last_windows(bucketing):
    stat = percentiles(bucketing=bucketing, size_in_bytes=4 * 1002)
    named = {each.name.name: each.stat for each in stat.stats()}
    assert math.isnan(named['p50'].measure(CONFIG, 0))
    for value in range(100):
        stat.record(CONFIG, value, 0)
    for name, wanted in (('p25', 25), ('p50', 50), ('p75', 75)):
        assert named[name].measure(CONFIG, 0) == pytest.approx(wanted, abs=1.0)
    assert stat.measure(CONFIG, 0) == named['p50'].measure(CONFIG, 0)
    assert math.isnan(named['p50'].measure(CONFIG, 2 * WINDOW))


def test_a_window_of_percentiles_is_used_again_empty():
    config = MetricConfig(samples=2, event_window=1)
    stat = percentiles()
    for value in (10, 20, 20):
        stat.record(config, value, 0)
    assert stat.value(config, 0, 0.0) == 20


def test_percentiles_that_there_are_not():
    with pytest.raises(ValueError):
        percentiles(bucketing=2)
    with pytest.raises(ValueError):
        percentiles(bucketing=BucketSizing.LINEAR, min_val=1)


def test_a_percentile_has_a_name_and_a_number():
    name = MetricName('p', 'g')
    assert (Percentile(name, 99).name, Percentile(name, 99).percentile) == (name, 99.0)


def test_windows_are_for_statistics_of_programs_too():
    class Last(AbstractSampledStat):
        def update(self, sample, config, value, time_ms):
            sample.value = value

        def combine(self, samples, config, now):
            return max(samples, key=lambda sample: sample.last_window_ms).value

    last = Last(-1.0)
    last.record(CONFIG, 3, 0)
    last.record(CONFIG, 4, WINDOW)
    assert last.measure(CONFIG, WINDOW) == 4
    assert last.measure(CONFIG, 9 * WINDOW) == -1
