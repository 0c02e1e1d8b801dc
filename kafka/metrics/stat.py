"""The interface of statistics (1.x)."""

from __future__ import annotations

from typing import Any


class AbstractStat:
    """A statistic into which values are recorded, such as an average."""

    def record(self, config: Any, value: float, time_ms: float) -> None:
        """Record a value. config: a MetricConfig; time_ms: the present time, since 1970."""
        raise NotImplementedError
