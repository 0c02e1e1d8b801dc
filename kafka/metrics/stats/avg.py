"""The average of values in the last windows; 0 without values (1.x)."""

from __future__ import annotations

from typing import Any, List

from kafka.metrics.stats.sampled_stat import AbstractSampledStat, Sample


class Avg(AbstractSampledStat[Sample]):
    """The average of values in the last windows; 0 without values (1.x)."""

    def __init__(self) -> None:
        super().__init__(0.0)

    def update(self, sample: Sample, config: Any, value: float, now: float) -> None:
        """Add a value to a window."""
        sample.value += value

    def combine(self, samples: List[Sample], config: Any, now: float) -> float:
        """Return the value of all windows."""
        count = sum(sample.event_count for sample in samples)
        return sum(sample.value for sample in samples) / count if count else 0.0
