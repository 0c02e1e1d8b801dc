"""A metric: a name, and a measurable that returns its value (1.x)."""

from __future__ import annotations

import contextlib
from typing import Any, ContextManager, Optional

from kafka.metrics import clock

_NO_LOCK: ContextManager[Any] = contextlib.nullcontext()


class KafkaMetric:
    """A metric.

    Arguments: lock: of the sensor that records into the measurable, None if there is none.
    Attributes: metric_name; measurable: as it was added; config: a MetricConfig.
    """

    def __init__(
        self,
        metric_name: Any,
        measurable: Any,
        config: Any,
        lock: Optional[ContextManager[Any]] = None,
    ) -> None:
        self._metric_name = metric_name
        self._measurable = measurable
        self.config = config
        self._lock = _NO_LOCK if lock is None else lock

    @property
    def metric_name(self) -> Any:
        """The name, a MetricName."""
        return self._metric_name

    @property
    def measurable(self) -> Any:
        """The measurable."""
        return self._measurable

    def value(self, time_ms: Optional[float] = None) -> float:
        """Return the value. time_ms: the time of the measurement, None for now."""
        now = clock.milliseconds() if time_ms is None else time_ms
        with self._lock:
            return self._measurable.measure(self.config, now)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return '<KafkaMetric %s.%s>' % (self._metric_name.group, self._metric_name.name)
