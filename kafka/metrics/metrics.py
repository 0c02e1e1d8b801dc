"""The registry of the metrics and sensors of one client (1.x).

It keeps them by name, notifies reporters, and removes unused sensors. The values are computed by
the statistics (``stats/``).
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
from typing import Any, Dict, Iterable, List, Optional

from kafka.metrics.kafka_metric import KafkaMetric
from kafka.metrics.measurable import AnonMeasurable
from kafka.metrics.metric_config import MetricConfig
from kafka.metrics.metric_name import MetricName
from kafka.metrics.stats.sensor import Sensor

log = logging.getLogger(__name__)

_EXPIRE_EVERY_SECONDS = 30.0


class Metrics:
    """The metrics and sensors of a client.

    Arguments: default_config: a MetricConfig for sensors without one; reporters: notified of
        metrics; enable_expiration: whether a daemon thread removes sensors that are no longer used.
    Thread-safe. close() stops that thread and the reporters.
    """

    def __init__(
        self,
        default_config: Optional[MetricConfig] = None,
        reporters: Optional[Iterable[Any]] = None,
        enable_expiration: bool = False,
    ) -> None:
        # Guards the metrics, sensors, the relation of parents and children, and the reporters.
        self._lock = threading.RLock()
        #: For threads that create an object if it does not exist yet. Not the lock above, for which
        #: a thread that adds a metric to a sensor waits while it holds the sensor's lock.
        self.making = threading.RLock()
        self._config = default_config or MetricConfig()
        self._sensors: Dict[str, Sensor] = {}
        self._metrics: Dict[MetricName, KafkaMetric] = {}
        self._children_sensors: Dict[Sensor, List[Sensor]] = {}
        self._reporters: List[Any] = list(reporters or [])
        self._closed = threading.Event()
        for reporter in self._reporters:
            reporter.init([])
        if enable_expiration:
            threading.Thread(
                target=_expire, args=(self, self._closed), name='kafka metrics', daemon=True
            ).start()
        self.add_metric(
            self.metric_name('count', 'kafka-metrics-count', 'total number of registered metrics'),
            AnonMeasurable(lambda config, now: len(self._metrics)),
        )

    @property
    def config(self) -> MetricConfig:
        """The configuration of sensors without one."""
        return self._config

    @property
    def metrics(self) -> Dict[MetricName, KafkaMetric]:
        """All metrics by name, in the dict that is updated with them."""
        return self._metrics

    def metric_name(
        self,
        name: str,
        group: str,
        description: str = '',
        tags: Optional[Dict[str, Any]] = None,
    ) -> MetricName:
        """Return a name with the tags of the configuration in addition to the given ones."""
        return MetricName(name, group, description, {**self.config.tags, **(tags or {})})

    def get_sensor(self, name: str) -> Optional[Sensor]:
        """Return a sensor by name, None if it does not exist. Raises ValueError for no name."""
        if not name:
            raise ValueError('a sensor needs a name, not %r' % (name,))
        return self._sensors.get(name)

    def sensor(
        self,
        name: str,
        config: Optional[MetricConfig] = None,
        inactive_sensor_expiration_time_seconds: float = sys.maxsize,
        parents: Optional[Iterable[Sensor]] = None,
        lock: Any = None,
    ) -> Sensor:
        """Return a sensor by name, a new one if it does not exist.

        Arguments: config: None for that of the registry; parents: record the same values, too;
            lock: guards its statistics, a reentrant one; None for one of its own.
        Raises ValueError if a sensor would be reached in two ways.
        """
        found = self.get_sensor(name)
        if found is not None:
            return found
        is_new = False
        with self._lock:
            found = self.get_sensor(name)
            if found is None:
                above = list(parents or [])
                found = Sensor(
                    self,
                    name,
                    above,
                    config or self.config,
                    inactive_sensor_expiration_time_seconds,
                    lock,
                )
                self._sensors[name] = found
                for parent in above:
                    self._children_sensors.setdefault(parent, []).append(found)
                is_new = True
        if is_new:  # without the lock, because a log handler could wait for it
            log.debug('sensor=%s added', name)
        return found

    def remove_sensor(self, name: str) -> None:
        """Remove a sensor, its metrics, and its children; nothing if it does not exist."""
        with self._lock:
            sensor = self._sensors.pop(name, None)
            if sensor is None:
                return
            # Without the sensor's lock: a thread that adds a metric to it holds that, and waits for
            # this.
            for metric in sensor.metrics:
                self.remove_metric(metric.metric_name)
            for parent in sensor.parents:
                siblings = self._children_sensors.get(parent, [])
                if sensor in siblings:
                    siblings.remove(sensor)
            children = self._children_sensors.pop(sensor, [])
        for child in children:
            self.remove_sensor(child.name)
        log.debug('sensor=%s removed', name)

    def add_metric(self, metric_name: MetricName, measurable: Any, config: Any = None) -> None:
        """Add a metric without a sensor.

        Raises ValueError if the name exists.
        """
        self.register_metric(KafkaMetric(metric_name, measurable, config or self.config))

    def remove_metric(self, metric_name: MetricName) -> Optional[KafkaMetric]:
        """Remove a metric and return it, None if it does not exist."""
        with self._lock:
            metric = self._metrics.pop(metric_name, None)
            if metric is not None:
                for reporter in self._reporters:
                    reporter.metric_removal(metric)
        return metric

    def add_reporter(self, reporter: Any) -> None:
        """Add a reporter, and pass it all existing metrics."""
        with self._lock:
            reporter.init(list(self._metrics.values()))
            self._reporters.append(reporter)

    def register_metric(self, metric: KafkaMetric) -> None:
        """Add a metric; ValueError if its name exists."""
        with self._lock:
            if metric.metric_name in self._metrics:
                raise ValueError(
                    'A metric named "%s" already exists, cannot register another one.'
                    % (metric.metric_name,)
                )
            self._metrics[metric.metric_name] = metric
            for reporter in self._reporters:
                reporter.metric_change(metric)

    class ExpireSensorTask:
        """The removal of sensors that are no longer used."""

        @staticmethod
        def run(metrics: Metrics) -> None:
            """Remove the sensors of a registry that have expired."""
            for name, sensor in list(metrics._sensors.items()):
                # The check and a recording thread must not overlap.
                with sensor.lock:
                    is_over = sensor.has_expired()
                if is_over:
                    log.debug('sensor=%s has expired', name)
                    metrics.remove_sensor(name)

    def close(self) -> None:
        """Close the reporters, and stop the removal of sensors; may be called again."""
        self._closed.set()
        with self._lock:
            reporters, self._reporters = self._reporters, []
        with contextlib.ExitStack() as closing:  # closes all of them, even if one raises
            for reporter in reversed(reporters):
                closing.callback(reporter.close)

    def __repr__(self) -> str:
        return '<Metrics of %d metrics, %d sensors>' % (len(self._metrics), len(self._sensors))


def _expire(metrics: Metrics, closed: threading.Event) -> None:
    while not closed.wait(_EXPIRE_EVERY_SECONDS):
        Metrics.ExpireSensorTask.run(metrics)
