"""A metric: a name, and what is asked for its value (1.x)."""

from __future__ import annotations

from typing import Any, Optional

from kafka.metrics import clock


class KafkaMetric:
    """A metric. Attributes: metric_name; measurable: what was added; config: a MetricConfig."""

    def __init__(self, metric_name: Any, measurable: Any, config: Any) -> None:
        self._metric_name = metric_name
        self._measurable = measurable
        self.config = config

    @property
    def metric_name(self) -> Any:
        """What it is called, a MetricName."""
        return self._metric_name

    @property
    def measurable(self) -> Any:
        """What is measured."""
        return self._measurable

    def value(self, time_ms: Optional[float] = None) -> float:
        """Return the value. time_ms: at which time, None for now."""
        now = clock.milliseconds() if time_ms is None else time_ms
        return self._measurable.measure(self.config, now)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return '<KafkaMetric %s.%s>' % (self._metric_name.group, self._metric_name.name)
