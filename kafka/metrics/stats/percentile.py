"""A percentile and the name of its metric (1.x)."""

from __future__ import annotations

from typing import Any


class Percentile:
    """A percentile of a Percentiles. Attributes: name: a MetricName; percentile: a float."""

    def __init__(self, metric_name: Any, percentile: float) -> None:
        self._metric_name = metric_name
        self._percentile = float(percentile)

    @property
    def name(self) -> Any:
        """The name of the metric."""
        return self._metric_name

    @property
    def percentile(self) -> float:
        """The percentile, 0 to 100."""
        return self._percentile
