"""The number of values in the last windows (1.x)."""

from __future__ import annotations

from typing import Any, List

from kafka.metrics.stats.sampled_stat import AbstractSampledStat, Sample


class Count(AbstractSampledStat[Sample]):
    """The number of values in the last windows (1.x)."""

    def __init__(self) -> None:
        super().__init__(0.0)

    def update(self, sample: Sample, config: Any, value: float, now: float) -> None:
        """Count a value in a window."""
        sample.value += 1.0

    def combine(self, samples: List[Sample], config: Any, now: float) -> float:
        """Return the value of all windows."""
        return float(sum(sample.value for sample in samples))
