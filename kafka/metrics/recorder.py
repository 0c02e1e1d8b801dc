"""The base of the recorders of producers and consumers: events are noted, and recorded later.

It creates sensors from tables, records noted events in batches, and returns the result of a
client's ``metrics()``. The metrics and events are defined in producer_metrics.py and
consumer_metrics.py.
"""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from kafka.metrics import clock
from kafka.metrics.gathered import Gathered
from kafka.metrics.measurable import AnonMeasurable
from kafka.metrics.metrics import Metrics
from kafka.metrics.stats import Sensor

__all__ = ['Recorder', 'Row', 'put']

#: A metric, its statistic, and its description.
Row = Tuple[str, Callable[[Any], Any], str]

# The number of events after which they are recorded at the latest; the other limit is a fraction of
# the time window, because events that are recorded together belong to one window. Recording has a
# cost per call that matters if there are few events.
MOST_NOTED = 500
WINDOW_PART = 6


class Recorder:
    """Notes events, from any thread, and records them some hundred at a time.

    Arguments: metrics: the registry; client_id: the tag of all its metrics.
    """

    def __init__(self, metrics: Metrics, client_id: str) -> None:
        self.metrics = metrics
        # Ensures that noted events are recorded once, and guards all statistics: any thread may
        # measure them, which first records the noted events.
        self._settling = threading.RLock()
        self._noted: List[Any] = []
        self._noted_at = self._settled_at = 0.0
        self._longest_ms = metrics.config.time_window_ms / WINDOW_PART
        self._tags = {'client-id': client_id}

    # ------------------------------------------------------------ metrics and sensors

    def _sensor(
        self, name: str, group: str, rows: Iterable[Row], tags: Optional[Mapping[str, str]] = None
    ) -> Sensor:
        """Return a new sensor with a metric for each row."""
        sensor = self.metrics.sensor(name, lock=self._settling)
        tags = {**self._tags, **(tags or {})}
        for metric, stat, text in rows:
            sensor.add(self.metrics.metric_name(metric, group, text, tags), stat(self.settle))
        return sensor

    def _measure(
        self,
        name: str,
        group: str,
        text: str,
        measure: Callable[[], float],
        tags: Optional[Mapping[str, str]] = None,
    ) -> Any:
        """Add a metric that is computed when it is read; return its name."""
        full = self.metrics.metric_name(name, group, text, {**self._tags, **(tags or {})})
        self.metrics.add_metric(full, AnonMeasurable(lambda config, now: measure()))
        return full

    def _remove(self, sensors: Mapping[str, Sensor]) -> None:
        for sensor in sensors.values():
            self.metrics.remove_sensor(sensor.name)

    # ------------------------------------------------------------ events

    def _note(self, event: Any) -> None:
        noted = self._noted
        noted.append(event)
        self._noted_at = now = clock.milliseconds()
        if len(noted) >= MOST_NOTED or not 0 <= now - self._settled_at < self._longest_ms:
            self.settle()

    def _note_only(self, event: Any) -> None:
        """Note an event on a latency-critical path: the next event decides about recording."""
        self._noted.append(event)
        self._noted_at = clock.milliseconds()

    def settle(self) -> None:
        """Record the noted events, with the time of the last one."""
        with self._settling:  # even if none are left: another thread may be recording them
            if not self._noted:
                return
            self._settled_at = now = self._noted_at
            # Events that are appended meanwhile come after those that are copied and removed.
            noted = self._noted[:]
            del self._noted[: len(noted)]
            if noted:
                self._record(noted, now)

    def _record(self, noted: Sequence[Any], now: float) -> None:
        """Record events. now: ms, of metrics."""
        raise NotImplementedError

    # ------------------------------------------------------------ result

    def snapshot(self) -> Dict[str, Dict[str, float]]:
        """Return {group: {name: value}}, as ``metrics()`` of clients does.

        Metrics of a part, such as one topic, have a group of their own: that of the whole, followed
        by a dot and the values of the tags of the part.
        """
        self.settle()  # which also creates metrics
        found: Dict[str, Dict[str, float]] = {}
        for name, metric in list(self.metrics.metrics.items()):
            own = [value for key, value in name.tags.items() if key not in self._tags]
            group = '.'.join([name.group, *map(str, own)])
            found.setdefault(group, {})[name.name] = metric.value()
        return found


def put(sensor: Sensor, gathered: Gathered, now: Optional[float] = None) -> None:
    """Record an aggregate into a sensor with such statistics. now: ms; None for now."""
    sensor.record(gathered, now)  # type: ignore[arg-type]  # its statistics accept aggregates
