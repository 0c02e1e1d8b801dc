"""Who is told of metrics (1.x)."""

from __future__ import annotations

from typing import Any


class AbstractMetricsReporter:
    """Who is told of metrics as they come and go; base for those of programs."""

    def init(self, metrics: Any) -> None:
        """Take the metrics that are there when the reporter is added."""
        raise NotImplementedError

    def metric_change(self, metric: Any) -> None:
        """Take a metric that was added or replaced."""
        raise NotImplementedError

    def metric_removal(self, metric: Any) -> None:
        """Learn that a metric was removed."""
        raise NotImplementedError

    def configure(self, configs: Any) -> None:
        """Take options."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop: the client is closed."""
        raise NotImplementedError
