"""Percentiles over the last windows, from counts of values by size (1.x)."""

from __future__ import annotations

import math
from typing import Any, Iterable, List, Optional

from kafka.metrics.compound_stat import AbstractCompoundStat, NamedMeasurable
from kafka.metrics.measurable import AnonMeasurable
from kafka.metrics.stats.histogram import Histogram
from kafka.metrics.stats.sampled_stat import AbstractSampledStat, Sample


class BucketSizing:
    """The widths of buckets: constant, or increasing linearly."""

    CONSTANT = 0
    LINEAR = 1


class HistogramSample(Sample):
    """A window that counts values by size."""

    def __init__(self, scheme: Any, now: float) -> None:
        super().__init__(0.0, now)
        self.histogram = Histogram(scheme)

    def reset(self, now: float) -> None:
        """Empty it; it starts at this time."""
        super().reset(now)
        self.histogram.clear()


class Percentiles(AbstractSampledStat[HistogramSample], AbstractCompoundStat):
    """Percentiles of the values in the last windows.

    Arguments: size_in_bytes: four for each bucket; bucketing: a BucketSizing; max_val, min_val:
        the range of the buckets; percentiles: those that become metrics.
    Raises ValueError for an unknown bucketing, and for LINEAR with a min_val other than 0.
    """

    def __init__(
        self,
        size_in_bytes: int,
        bucketing: int,
        max_val: float,
        min_val: float = 0.0,
        percentiles: Optional[Iterable[Any]] = None,
    ) -> None:
        super().__init__(0.0)
        self._percentiles = list(percentiles or [])
        self._buckets = int(size_in_bytes / 4)
        self._bin_scheme: Any
        if bucketing == BucketSizing.CONSTANT:
            self._bin_scheme = Histogram.ConstantBinScheme(self._buckets, min_val, max_val)
        elif bucketing == BucketSizing.LINEAR:
            if min_val != 0.0:
                raise ValueError('min_val of linear buckets must be 0, got %r' % (min_val,))
            self._bin_scheme = Histogram.LinearBinScheme(self._buckets, max_val)
        else:
            raise ValueError('unknown bucketing: %r' % (bucketing,))

    def stats(self) -> List[NamedMeasurable]:
        """Return a value for each percentile."""
        return [
            NamedMeasurable(each.name, AnonMeasurable(self._measure_fn(each.percentile)))
            for each in self._percentiles
        ]

    def _measure_fn(self, percentile: float) -> Any:
        return lambda config, now: self.value(config, now, percentile / 100.0)

    def value(self, config: Any, now: float, quantile: float) -> float:
        """Return the quantile, 0 to 1, of all values.

        NaN without values, infinite if all counted values are below.
        """
        self.purge_obsolete_samples(config, now)
        count = sum(sample.event_count for sample in self._samples)
        if not count:
            return math.nan
        seen = 0.0
        for bucket in range(self._buckets):
            seen += sum(sample.histogram.counts[bucket] for sample in self._samples)
            if seen / count > quantile:
                return float(self._bin_scheme.from_bin(bucket))
        return math.inf

    def combine(self, samples: List[HistogramSample], config: Any, now: float) -> float:
        """Return the median."""
        return self.value(config, now, 0.5)

    def new_sample(self, time_ms: float) -> HistogramSample:
        """Return an empty window."""
        return HistogramSample(self._bin_scheme, time_ms)

    def update(self, sample: HistogramSample, config: Any, value: float, time_ms: float) -> None:
        """Add a value to a window."""
        sample.histogram.record(value)
