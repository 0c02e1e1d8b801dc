"""A sensor: a set of statistics into which values are recorded (1.x)."""

from __future__ import annotations

import threading
from typing import Any, Iterable, List, Optional, Tuple

from kafka.errors import QuotaViolationError
from kafka.metrics import clock
from kafka.metrics.kafka_metric import KafkaMetric


class Sensor:
    """A set of statistics; values are recorded into each of them, and into the parents.

    Created by ``Metrics.sensor()``. Attributes: name; metrics: those that were added, a tuple.
    Thread-safe.
    """

    def __init__(
        self,
        registry: Any,
        name: str,
        parents: Optional[Iterable[Sensor]],
        config: Any,
        inactive_sensor_expiration_time_seconds: float,
        lock: Any = None,
    ) -> None:
        if not name:
            raise ValueError('a sensor needs a name, not %r' % (name,))
        #: Guards the statistics, which are not thread-safe.
        self.lock = threading.RLock() if lock is None else lock
        self._registry = registry
        self._name = name
        #: Sensors that record each value as well.
        self.parents: List[Sensor] = list(parents or [])
        self._metrics: List[KafkaMetric] = []
        self._stats: List[Any] = []
        self._config = config
        self._limit_ms = inactive_sensor_expiration_time_seconds * 1000
        self._last_record_time = clock.milliseconds()
        self.check_forest(set())

    def check_forest(self, seen: Any) -> None:
        """Ensure that no value is counted twice: no sensor may be reached in two ways."""
        if self in seen:
            raise ValueError('%s is reached twice by its parents' % self._name)
        seen.add(self)
        for parent in self.parents:
            parent.check_forest(seen)

    @property
    def name(self) -> str:
        """The name, unique in a registry."""
        return self._name

    @property
    def metrics(self) -> Tuple[KafkaMetric, ...]:
        """The metrics that were added."""
        return tuple(self._metrics)

    def record(self, value: float = 1.0, time_ms: Optional[float] = None) -> None:
        """Record a value. time_ms: its time, None for now.

        Raises QuotaViolationError if a metric then exceeds its bound; the value is recorded.
        """
        if time_ms is None:
            time_ms = clock.milliseconds()
        self._last_record_time = time_ms
        with self.lock:
            for stat in self._stats:
                stat.record(self._config, value, time_ms)
            self._check_quotas(time_ms)
        for parent in self.parents:
            parent.record(value, time_ms)

    def _check_quotas(self, time_ms: float) -> None:
        for metric in self._metrics:
            quota = metric.config.quota if metric.config is not None else None
            if quota is None:
                continue
            value = metric.value(time_ms)
            if not quota.is_acceptable(value):
                raise QuotaViolationError(
                    '%s violated quota. Actual: %s, Threshold: %s'
                    % (metric.metric_name, value, quota.bound)
                )

    def add_compound(self, compound_stat: Any, config: Any = None) -> None:
        """Add a statistic with several metrics. config: None for the sensor's.

        Raises ValueError for None, and if a name exists.
        """
        if not compound_stat:
            raise ValueError('compound stat must be non-empty')
        made = [
            KafkaMetric(named.name, named.stat, config or self._config, self.lock)
            for named in compound_stat.stats()
        ]
        with self.lock:
            for metric in made:
                self._registry.register_metric(metric)
                self._metrics.append(metric)
            self._stats.append(compound_stat)

    def add(self, metric_name: Any, stat: Any, config: Any = None) -> None:
        """Add a statistic as a metric. config: None for the sensor's.

        Raises ValueError if the name exists.
        """
        metric = KafkaMetric(metric_name, stat, config or self._config, self.lock)
        with self.lock:
            self._registry.register_metric(metric)
            self._metrics.append(metric)
            self._stats.append(stat)

    def has_expired(self) -> bool:
        """Return True if nothing was recorded for longer than the expiration time."""
        return clock.milliseconds() - self._last_record_time > self._limit_ms

    def __repr__(self) -> str:
        return '<Sensor %s of %d metrics>' % (self._name, len(self._metrics))
