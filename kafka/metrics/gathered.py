"""Statistics that are updated with the values of many events at a time, at a low cost per event.

Before they are measured they call ``settle``, which records pending events, so that the result is
the same as if each event was recorded separately.
"""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Sequence

from kafka.metrics.measurable_stat import AbstractMeasurableStat
from kafka.metrics.stats.avg import Avg
from kafka.metrics.stats.max_stat import Max
from kafka.metrics.stats.rate import Rate, SampledTotal, TimeUnit
from kafka.metrics.stats.sampled_stat import AbstractSampledStat, Sample

#: Records all pending events.
Settle = Callable[[], None]


class Gathered(NamedTuple):
    """The values of some events: their sum, number, and maximum."""

    total: float
    events: int
    most: float


def gather(values: Sequence[float]) -> Gathered:
    """Aggregate values, at least one."""
    return Gathered(sum(values), len(values), max(values))


class _Gathering(AbstractSampledStat[Sample]):
    """The part that these statistics share. Arguments: settle."""

    _settle: Settle

    def record(self, config: Any, value: Any, time_ms: float) -> None:
        """Add an aggregate; begins a new window if the present one is complete."""
        sample = self.current(time_ms)
        if sample.is_complete(time_ms, config):
            sample = self._advance(config, time_ms)
        self.take(sample, value)
        sample.event_count += value.events

    def take(self, sample: Sample, value: Gathered) -> None:
        """Add an aggregate to a window."""
        sample.value += value.total

    def measure(self, config: Any, now: float) -> float:
        """Return the value of the windows, including all pending events."""
        self._settle()
        return super().measure(config, now)


class GatheredAvg(_Gathering, Avg):
    """The average of all events."""

    def __init__(self, settle: Settle) -> None:
        super().__init__()
        self._settle = settle


class GatheredMax(_Gathering, Max):
    """The maximum of all events."""

    def __init__(self, settle: Settle) -> None:
        super().__init__()
        self._settle = settle

    def take(self, sample: Sample, value: Gathered) -> None:
        """Add an aggregate to a window."""
        sample.value = max(sample.value, value.most)


class GatheredTotal(_Gathering, SampledTotal):
    """The sum of all events."""

    def __init__(self, settle: Settle) -> None:
        super().__init__()
        self._settle = settle


class _Number(GatheredTotal):
    """The number of events."""

    def take(self, sample: Sample, value: Gathered) -> None:
        """Add an aggregate to a window."""
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
