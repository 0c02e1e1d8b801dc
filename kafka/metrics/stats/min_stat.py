"""The smallest value in the last windows; sys.maxsize without values (1.x)."""

from __future__ import annotations

import sys
from typing import Any, List

from kafka.metrics.stats.sampled_stat import AbstractSampledStat, Sample


class Min(AbstractSampledStat[Sample]):
    """The smallest value in the last windows; sys.maxsize without values (1.x)."""

    def __init__(self) -> None:
        super().__init__(float(sys.maxsize))

    def update(self, sample: Sample, config: Any, value: float, now: float) -> None:
        """Add a value to a window."""
        sample.value = min(sample.value, value)

    def combine(self, samples: List[Sample], config: Any, now: float) -> float:
        """Return the value of all windows."""
        return min((sample.value for sample in samples), default=float(sys.maxsize))
