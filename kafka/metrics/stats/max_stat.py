"""The largest value in the last windows; -inf without values (1.x)."""

from __future__ import annotations

from typing import Any, List

from kafka.metrics.stats.sampled_stat import AbstractSampledStat, Sample


class Max(AbstractSampledStat[Sample]):
    """The largest value in the last windows; -inf without values (1.x)."""

    def __init__(self) -> None:
        super().__init__(float('-inf'))

    def update(self, sample: Sample, config: Any, value: float, now: float) -> None:
        """Add a value to a window."""
        sample.value = max(sample.value, value)

    def combine(self, samples: List[Sample], config: Any, now: float) -> float:
        """Return the value of all windows."""
        return max((sample.value for sample in samples), default=float('-inf'))
