"""A sum without windows (1.x)."""

from __future__ import annotations

from typing import Any

from kafka.metrics.measurable_stat import AbstractMeasurableStat


class Total(AbstractMeasurableStat):
    """The sum of all values since the start, and an initial one."""

    def __init__(self, value: float = 0.0) -> None:
        self._total = value

    def record(self, config: Any, value: float, now: float) -> None:
        """Add a value."""
        self._total += value

    def measure(self, config: Any, now: float) -> float:
        """Return the sum."""
        return float(self._total)
