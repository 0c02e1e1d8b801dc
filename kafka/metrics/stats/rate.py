"""The rate of a value per unit of time (1.x)."""

from __future__ import annotations

from typing import Any, List, Optional

from kafka.metrics.measurable_stat import AbstractMeasurableStat
from kafka.metrics.stats.sampled_stat import AbstractSampledStat, Sample


class TimeUnit:
    """Units of time, as numbers that programs compare."""

    NANOSECONDS = 0
    MICROSECONDS = 1
    MILLISECONDS = 2
    SECONDS = 3
    MINUTES = 4
    HOURS = 5
    DAYS = 6

    _NAMES = ('nanosecond', 'microsecond', 'millisecond', 'second', 'minute', 'hour', 'day')
    _MS = (1e-6, 1e-3, 1.0, 1000.0, 60000.0, 3600000.0, 86400000.0)

    @staticmethod
    def get_name(time_unit: int) -> str:
        """Return the name of a unit."""
        return TimeUnit._NAMES[time_unit]

    @staticmethod
    def milliseconds(time_unit: int) -> float:
        """Return the number of ms in a unit; ValueError for an unknown unit."""
        if time_unit not in range(len(TimeUnit._MS)):
            raise ValueError('unknown unit of time: %r' % (time_unit,))
        return TimeUnit._MS[time_unit]


class SampledTotal(AbstractSampledStat[Sample]):
    """The sum of values in the last windows."""

    def __init__(self, initial_value: float = 0.0) -> None:
        super().__init__(initial_value)

    def update(self, sample: Sample, config: Any, value: float, now: float) -> None:
        """Add a value to a window."""
        sample.value += value

    def combine(self, samples: List[Sample], config: Any, now: float) -> float:
        """Return the value of all windows."""
        return float(sum(sample.value for sample in samples))


class Rate(AbstractMeasurableStat):
    """Another statistic, by default the sum, per unit of time."""

    def __init__(
        self, time_unit: int = TimeUnit.SECONDS, sampled_stat: Optional[Any] = None
    ) -> None:
        TimeUnit.milliseconds(time_unit)
        self._stat: Any = sampled_stat or SampledTotal()
        self._unit = time_unit

    def unit_name(self) -> str:
        """Return the name of the unit."""
        return TimeUnit.get_name(self._unit)

    def record(self, config: Any, value: float, time_ms: float) -> None:
        """Record a value."""
        self._stat.record(config, value, time_ms)

    def measure(self, config: Any, now: float) -> float:
        """Return the value per unit of the time that the windows cover."""
        value = self._stat.measure(config, now)
        return float(value) / self.convert(self.window_size(config, now))

    def window_size(self, config: Any, now: float) -> float:
        """Return the time in ms that the windows cover; at least all but one of them.

        A rate over the first moments would be far too high: missing windows count as empty.
        """
        self._stat.purge_obsolete_samples(config, now)
        elapsed: float = now - self._stat.oldest(now).last_window_ms
        whole = int(elapsed // config.time_window_ms)
        least = config.samples - 1
        if whole < least:
            elapsed += (least - whole) * config.time_window_ms
        return elapsed

    def convert(self, time_ms: float) -> float:
        """Return ms converted to the unit."""
        return time_ms / TimeUnit.milliseconds(self._unit)

    def __repr__(self) -> str:
        return '<Rate for each %s>' % self.unit_name()
