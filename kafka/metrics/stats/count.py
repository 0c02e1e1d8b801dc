"""How many values came in the last windows (1.x)."""

from __future__ import annotations

from typing import Any, List

from kafka.metrics.stats.sampled_stat import AbstractSampledStat, Sample


class Count(AbstractSampledStat[Sample]):
    """How many values came in the last windows (1.x)."""

    def __init__(self) -> None:
        super().__init__(0.0)

    def update(self, sample: Sample, config: Any, value: float, now: float) -> None:
        """Put a value into a window."""
        sample.value += 1.0

    def combine(self, samples: List[Sample], config: Any, now: float) -> float:
        """Return what all windows come to."""
        return float(sum(sample.value for sample in samples))
