"""Statistics that record the values of many events at once, so that an event costs next to nothing.

Used by the metrics of producer and consumer. Each statistic is made with a function that records
what was gathered so far, and calls it before it is measured: its value is then the same as that of
a statistic which records each event by itself.
"""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Sequence

from kafka.metrics.measurable_stat import AbstractMeasurableStat
from kafka.metrics.stats.avg import Avg
from kafka.metrics.stats.max_stat import Max
from kafka.metrics.stats.rate import Rate, SampledTotal, TimeUnit
from kafka.metrics.stats.sampled_stat import AbstractSampledStat, Sample

#: Makes everything that was gathered so far be recorded.
Settle = Callable[[], None]


class Gathered(NamedTuple):
    """The values of some events: their sum, how many there are, and the largest."""

    total: float
    events: int
    most: float


def gather(values: Sequence[float]) -> Gathered:
    """Put values together, one at least."""
    return Gathered(sum(values), len(values), max(values))


class _Gathering(AbstractSampledStat[Sample]):
    """What the statistics here share. Arguments: settle."""

    _settle: Settle

    def record(self, config: Any, value: Any, time_ms: float) -> None:
        """Take what was gathered; begins a new window when the one at hand is complete."""
        sample = self.current(time_ms)
        if sample.is_complete(time_ms, config):
            sample = self._advance(config, time_ms)
        self.take(sample, value)
        sample.event_count += value.events

    def take(self, sample: Sample, value: Gathered) -> None:
        """Put what was gathered into a window."""
        sample.value += value.total

    def measure(self, config: Any, now: float) -> float:
        """Return what the windows come to, with all that was gathered by now."""
        self._settle()
        return super().measure(config, now)


class GatheredAvg(_Gathering, Avg):
    """The average of all events."""

    def __init__(self, settle: Settle) -> None:
        super().__init__()
        self._settle = settle


class GatheredMax(_Gathering, Max):
    """The largest of all events."""

    def __init__(self, settle: Settle) -> None:
        super().__init__()
        self._settle = settle

    def take(self, sample: Sample, value: Gathered) -> None:
        """Put what was gathered into a window."""
        sample.value = max(sample.value, value.most)


class GatheredTotal(_Gathering, SampledTotal):
    """The sum of all events."""

    def __init__(self, settle: Settle) -> None:
        super().__init__()
        self._settle = settle


class _Number(GatheredTotal):
    """How many events there were."""

    def take(self, sample: Sample, value: Gathered) -> None:
        """Put what was gathered into a window."""
        sample.value += value.events


class _Cumulative(AbstractMeasurableStat):
    """What the statistics without a window share. Arguments: settle."""

    def __init__(self, settle: Settle) -> None:
        self._settle = settle
        self._sum = 0.0

    def measure(self, config: Any, now: float) -> float:
        """Return the value, after recording all that was gathered by now."""
        self._settle()
        return self._sum


class GatheredSum(_Cumulative):
    """The sum of all events since the start."""

    def record(self, config: Any, value: Any, now: float) -> None:
        """Add what was gathered."""
        self._sum += value.total


class GatheredCount(_Cumulative):
    """The number of events since the start."""

    def record(self, config: Any, value: Any, now: float) -> None:
        """Add what was gathered."""
        self._sum += value.events


def gathered_rate(settle: Settle) -> Rate:
    """Return the rate of the sum of all events."""
    return Rate(sampled_stat=GatheredTotal(settle))


def event_rate(settle: Settle, time_unit: int = TimeUnit.SECONDS) -> Rate:
    """Return the rate of events."""
    return Rate(time_unit, _Number(settle))


__all__ = [
    'Gathered',
    'GatheredAvg',
    'GatheredCount',
    'GatheredMax',
    'GatheredSum',
    'GatheredTotal',
    'event_rate',
    'gather',
    'gathered_rate',
]
