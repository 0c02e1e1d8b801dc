"""What the recorders of producers and consumers share: noting much, recording it seldom.

Owns the registry's side of a recorder: sensors made from tables, the batches in which what was
noted is recorded, and what ``metrics()`` of a client returns. Which figures there are, and what is
noted for them, is each recorder's own (producer_metrics.py, consumer_metrics.py).
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

#: A metric, its statistic, and what it is.
Row = Tuple[str, Callable[[Any], Any], str]

# After how many events they are recorded at the latest, or after which part of a window of time:
# all that is recorded together is in the same window. To record costs more than what is recorded
# where little happens.
MOST_NOTED = 500
WINDOW_PART = 6


class Recorder:
    """Notes events, which any thread may, and records them some hundred at a time.

    Arguments: metrics: the registry; client_id: the tag that all its metrics have.
    """

    def __init__(self, metrics: Metrics, client_id: str) -> None:
        self.metrics = metrics
        # Guards that what was noted is recorded once, and all statistics: they are asked for by any
        # thread, and let what was noted be recorded first.
        self._settling = threading.RLock()
        self._noted: List[Any] = []
        self._noted_at = self._settled_at = 0.0
        self._longest_ms = metrics.config.time_window_ms / WINDOW_PART
        self._tags = {'client-id': client_id}

    # ------------------------------------------------------------ what there is

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
        """Add a metric that is asked for when it is looked at; return its name."""
        full = self.metrics.metric_name(name, group, text, {**self._tags, **(tags or {})})
        self.metrics.add_metric(full, AnonMeasurable(lambda config, now: measure()))
        return full

    def _remove(self, sensors: Mapping[str, Sensor]) -> None:
        for sensor in sensors.values():
            self.metrics.remove_sensor(sensor.name)

    # ------------------------------------------------------------ what happens

    def _note(self, event: Any) -> None:
        noted = self._noted
        noted.append(event)
        self._noted_at = now = clock.milliseconds()
        if len(noted) >= MOST_NOTED or not 0 <= now - self._settled_at < self._longest_ms:
            self.settle()

    def _note_only(self, event: Any) -> None:
        """Do as _note() while somebody waits: the next event asks whether to record."""
        self._noted.append(event)
        self._noted_at = clock.milliseconds()

    def settle(self) -> None:
        """Record what was noted, as of when the last of it happened."""
        with self._settling:  # also where nothing is left: another thread may be recording it
            if not self._noted:
                return
            self._settled_at = now = self._noted_at
            # What is appended meanwhile is behind what is copied and cut off.
            noted = self._noted[:]
            del self._noted[: len(noted)]
            if noted:
                self._record(noted, now)

    def _record(self, noted: Sequence[Any], now: float) -> None:
        """Record events. now: ms, of metrics."""
        raise NotImplementedError

    # ------------------------------------------------------------ figures

    def snapshot(self) -> Dict[str, Dict[str, float]]:
        """Return {group: {name: value}}, as ``metrics()`` of clients does.

        What is about a part only, as one topic, is in a group of its own: that of the whole, and
        behind dots the values of the tags that say which part.
        """
        self.settle()  # which makes metrics too
        found: Dict[str, Dict[str, float]] = {}
        for name, metric in list(self.metrics.metrics.items()):
            own = [value for key, value in name.tags.items() if key not in self._tags]
            group = '.'.join([name.group, *map(str, own)])
            found.setdefault(group, {})[name.name] = metric.value()
        return found


def put(sensor: Sensor, gathered: Gathered, now: Optional[float] = None) -> None:
    """Record into a sensor whose statistics take what was gathered. now: ms; None for now."""
    sensor.record(gathered, now)  # type: ignore[arg-type]  # its statistics take these
