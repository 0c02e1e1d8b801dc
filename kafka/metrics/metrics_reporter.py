"""The interface of metric reporters (1.x)."""

from __future__ import annotations

from typing import Any


class AbstractMetricsReporter:
    """Is notified of metrics that are added and removed; base class for custom reporters."""

    def init(self, metrics: Any) -> None:
        """Add the metrics that exist when the reporter is added."""
        raise NotImplementedError

    def metric_change(self, metric: Any) -> None:
        """Add or replace a metric."""
        raise NotImplementedError

    def metric_removal(self, metric: Any) -> None:
        """Remove a metric."""
        raise NotImplementedError

    def configure(self, configs: Any) -> None:
        """Set options."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop: the client is closed."""
        raise NotImplementedError
