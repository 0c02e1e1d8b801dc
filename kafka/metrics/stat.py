"""What values can be recorded into (1.x)."""

from __future__ import annotations

from typing import Any


class AbstractStat:
    """Something that values are recorded into, such as an average."""

    def record(self, config: Any, value: float, time_ms: float) -> None:
        """Take a value. config: a MetricConfig; time_ms: of now, since 1970."""
        raise NotImplementedError
