"""A reporter that keeps metrics in dicts (1.x)."""

from __future__ import annotations

import threading
from typing import Any, Dict, Iterable

from kafka.metrics.metrics_reporter import AbstractMetricsReporter


class DictReporter(AbstractMetricsReporter):
    """Keeps metrics by category: prefix, group and tags, joined by dots."""

    def __init__(self, prefix: str = '') -> None:
        self._prefix = prefix if prefix else ''
        # Guards the dicts of dicts: metrics come from the thread of the client. Reentrant: a
        # finalizer may read them.
        self._lock = threading.RLock()
        self._store: Dict[str, Dict[str, Any]] = {}

    def snapshot(self) -> Dict[str, Dict[str, float]]:
        """Return {category: {name: present value}}."""
        with self._lock:
            found = {category: dict(metrics) for category, metrics in list(self._store.items())}
        return {
            category: {name: metric.value() for name, metric in metrics.items()}
            for category, metrics in found.items()
        }

    def init(self, metrics: Iterable[Any]) -> None:
        """Add the existing metrics."""
        for metric in metrics:
            self.metric_change(metric)

    def metric_change(self, metric: Any) -> None:
        """Add a metric."""
        category = self.get_category(metric)
        with self._lock:
            self._store.setdefault(category, {})[metric.metric_name.name] = metric

    def metric_removal(self, metric: Any) -> Any:
        """Remove a metric and return it, None if it does not exist."""
        category = self.get_category(metric)
        with self._lock:
            metrics = self._store.get(category, {})
            removed = metrics.pop(metric.metric_name.name, None)
            if not metrics:
                self._store.pop(category, None)
        return removed

    def get_category(self, metric: Any) -> str:
        """Return prefix, group and tags (``k=v``, sorted) joined by dots, without empty ones."""
        name = metric.metric_name
        tags = ','.join('%s=%s' % (key, value) for key, value in sorted(name.tags.items()))
        return '.'.join(part for part in (self._prefix, name.group, tags) if part)

    def configure(self, configs: Any) -> None:
        """Do nothing: there are no options."""

    def close(self) -> None:
        """Do nothing; the metrics stay."""
