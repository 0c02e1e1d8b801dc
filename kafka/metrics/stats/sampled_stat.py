"""Statistics over windows of time (1.x).

It decides when a window is complete, when it is obsolete, and which one is used next.
"""

from __future__ import annotations

from typing import Any, Generic, List, TypeVar

from kafka.metrics.measurable_stat import AbstractMeasurableStat


class Sample:
    """A window: its start, the number of its records, and their value."""

    def __init__(self, initial_value: float, now: float) -> None:
        self.initial_value = initial_value
        self.event_count = 0
        self.last_window_ms = now
        self.value = initial_value

    def reset(self, now: float) -> None:
        """Empty it; it starts at this time."""
        self.event_count = 0
        self.last_window_ms = now
        self.value = self.initial_value

    def is_complete(self, time_ms: float, config: Any) -> bool:
        """Return True if its time is over, or if it has the maximum number of records."""
        return bool(
            time_ms - self.last_window_ms >= config.time_window_ms
            or self.event_count >= config.event_window
        )

    def __repr__(self) -> str:
        return '<Sample value=%s events=%s>' % (self.value, self.event_count)


S = TypeVar('S', bound=Sample)


class AbstractSampledStat(AbstractMeasurableStat, Generic[S]):
    """A statistic over the records of the last windows; older ones do not count."""

    def __init__(self, initial_value: float) -> None:
        self._initial_value = initial_value
        self._samples: List[S] = []
        self._current = 0

    def update(self, sample: S, config: Any, value: float, time_ms: float) -> None:
        """Add a value to a window."""
        raise NotImplementedError

    def combine(self, samples: List[S], config: Any, now: float) -> float:
        """Return the value of all windows."""
        raise NotImplementedError

    def new_sample(self, time_ms: float) -> S:
        """Return an empty window."""
        return Sample(self._initial_value, time_ms)  # type: ignore[return-value]

    def record(self, config: Any, value: float, time_ms: float) -> None:
        """Record a value; begins a new window if the present one is complete."""
        sample = self.current(time_ms)
        if sample.is_complete(time_ms, config):
            sample = self._advance(config, time_ms)
        self.update(sample, config, float(value), time_ms)
        sample.event_count += 1

    def measure(self, config: Any, now: float) -> float:
        """Return the value of the windows that are not obsolete."""
        self.purge_obsolete_samples(config, now)
        return float(self.combine(self._samples, config, now))

    def current(self, time_ms: float) -> S:
        """Return the present window, which is created if there is none."""
        if not self._samples:
            self._samples.append(self.new_sample(time_ms))
        return self._samples[self._current]

    def oldest(self, now: float) -> S:
        """Return the window with the earliest start."""
        if not self._samples:
            self._samples.append(self.new_sample(now))
        return min(self._samples, key=lambda sample: sample.last_window_ms)

    def purge_obsolete_samples(self, config: Any, now: float) -> None:
        """Empty the windows that are older than all windows together."""
        expire_age = config.samples * config.time_window_ms
        for sample in self._samples:
            if now - sample.last_window_ms >= expire_age:
                sample.reset(now)

    def _advance(self, config: Any, time_ms: float) -> S:
        self._current = (self._current + 1) % config.samples
        if self._current >= len(self._samples):
            sample = self.new_sample(time_ms)
            self._current = len(self._samples)
            self._samples.append(sample)
            return sample
        sample = self._samples[self._current]
        sample.reset(time_ms)
        return sample

    def __repr__(self) -> str:
        return '<%s of %d windows>' % (type(self).__name__, len(self._samples))
