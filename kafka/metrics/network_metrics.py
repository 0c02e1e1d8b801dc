"""The metrics of connections and of the evented client, by the names of 1.3 to 2.3.

The tables define the metrics and their statistics. Groups: ``<prefix>-metrics``, and
``<prefix>-node-metrics.node-<id>`` for each broker, where the prefix is the option
``metric_group_prefix``, or ``client``. Tags are those of the registry's configuration.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Tuple

from kafka.metrics.measurable import AnonMeasurable
from kafka.metrics.metrics import Metrics
from kafka.metrics.stats import Avg, Count, Max, Rate, Sensor
from kafka.metrics.stats.rate import TimeUnit

__all__ = ['ClientMetrics', 'ConnectionMetrics']

Rows = Tuple[Tuple[str, Callable[[], Any], str], ...]


def _times() -> Rate:
    return Rate(sampled_stat=Count())


# Traffic: sensor -> (metric, statistic, description) ...
_TRAFFIC: Dict[str, Rows] = {
    'bytes-sent': (
        ('outgoing-byte-rate', Rate, 'sent bytes per second'),
        ('request-rate', _times, 'requests per second'),
        ('request-size-avg', Avg, 'bytes per request'),
        ('request-size-max', Max, 'bytes of the largest request'),
    ),
    'bytes-received': (
        ('incoming-byte-rate', Rate, 'received bytes per second'),
        ('response-rate', _times, 'responses per second'),
    ),
    'request-latency': (
        ('request-latency-avg', Avg, 'ms from request to response'),
        ('request-latency-max', Max, 'maximum in ms'),
    ),
}
# For all brokers together only.
_TOGETHER: Dict[str, Rows] = {
    'bytes-sent-received': (('network-io-rate', _times, 'requests and responses per second'),),
    'throttle-time': (
        ('throttle-time-avg', Avg, 'throttle time in ms'),
        ('throttle-time-max', Max, 'maximum in ms'),
    ),
}
_CLIENT: Dict[str, Rows] = {
    'connections-closed': (('connection-close-rate', _times, 'closed connections per second'),),
    'connections-created': (('connection-creation-rate', _times, 'new connections per second'),),
    'select-time': (
        ('select-rate', _times, 'waits for sockets per second'),
        ('io-wait-time-ns-avg', Avg, 'ns per wait for sockets'),
        ('io-wait-ratio', lambda: Rate(time_unit=TimeUnit.NANOSECONDS), 'fraction of time waiting'),
    ),
    'io-time': (
        ('io-time-ns-avg', Avg, 'ns of reading and writing after a wait'),
        ('io-ratio', lambda: Rate(time_unit=TimeUnit.NANOSECONDS), 'fraction of time for that'),
    ),
}


def _group(prefix: str) -> str:
    return (prefix or 'client') + '-metrics'


def _sensors(
    metrics: Metrics, table: Dict[str, Rows], group: str, before: str
) -> Dict[str, Sensor]:
    """Return the sensors of a table, which are created unless they exist."""
    found = {}
    with metrics.making:
        for name, rows in table.items():
            known = metrics.get_sensor(before + name)
            sensor = metrics.sensor(before + name)
            if known is None:
                for metric, stat, text in rows:
                    sensor.add(metrics.metric_name(metric, group, text), stat())
            found[name] = sensor
    return found


class ConnectionMetrics:
    """Records the traffic of one connection.

    Arguments: metrics: the registry; prefix: of the groups; node_id: of the broker; one of a
    bootstrap server begins with ``bootstrap`` and has no node metrics.
    """

    def __init__(self, metrics: Metrics, prefix: str, node_id: Any) -> None:
        own = '%s-node-metrics.node-%s' % (prefix or 'client', node_id)
        together = {**_TRAFFIC, **_TOGETHER}
        self._all = _sensors(metrics, together, _group(prefix), prefix + '.')
        self._places = [self._all]
        if not str(node_id).startswith('bootstrap'):
            node = _sensors(metrics, _TRAFFIC, own, '%s.node-%s.' % (prefix, node_id))
            self._places.append(node)

    def _each(self, name: str) -> List[Sensor]:
        return [place[name] for place in self._places]

    def sent(self, size: int) -> None:
        """Record a request of this size."""
        self._all['bytes-sent-received'].record(size)
        for sensor in self._each('bytes-sent'):
            sensor.record(size)

    def answered(self, size: int, seconds: float, throttle_ms: Any) -> None:
        """Record a response: its size, its latency, and the throttle time."""
        self._all['bytes-sent-received'].record(size)
        for sensor in self._each('bytes-received'):
            sensor.record(size)
        for sensor in self._each('request-latency'):
            sensor.record(seconds * 1000)
        if throttle_ms is not None:
            self._all['throttle-time'].record(throttle_ms)


class ClientMetrics:
    """Records the events of an evented client.

    Arguments: metrics: the registry; prefix: of the groups; count: returns the number of open
    connections.
    """

    def __init__(self, metrics: Metrics, prefix: str, count: Callable[[], int]) -> None:
        group = _group(prefix)
        self._sensors = _sensors(metrics, _CLIENT, group, prefix + '.')
        self._metrics = metrics
        self._count = metrics.metric_name('connection-count', group, 'open connections')
        with metrics.making:
            metrics.remove_metric(self._count)  # of an earlier client that was closed
            metrics.add_metric(self._count, AnonMeasurable(lambda config, now: count()))

    def connected(self) -> None:
        """Record a new connection."""
        self._sensors['connections-created'].record()

    def disconnected(self) -> None:
        """Record a closed connection."""
        self._sensors['connections-closed'].record()

    def waited(self, ns: int) -> None:
        """Record a wait for sockets."""
        self._sensors['select-time'].record(ns)

    def worked(self, ns: int) -> None:
        """Record the reading and writing after it."""
        self._sensors['io-time'].record(ns)
