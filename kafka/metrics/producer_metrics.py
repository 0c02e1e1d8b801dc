"""The metrics of KafkaProducer, by the names of 1.3 to 3.0.

Owns which figures there are and what they are made of. They are recorded once for each batch and
each request, in the turns of the loop, never for a record. Groups: ``producer-metrics``,
``producer-node-metrics.node-<id>``, ``producer-topic-metrics.<topic>``, all tagged ``client-id``;
those of nodes and topics are made when the first request or batch is.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, Tuple

from kafka.metrics.measurable import AnonMeasurable
from kafka.metrics.metrics import Metrics
from kafka.metrics.stats import Avg, Count, Max, Rate, Sensor

GROUP = 'producer-metrics'

# Sensors for the whole producer: name -> (metric, statistic, description) ...
_SENSORS: Dict[str, Tuple[Tuple[str, Callable[[], Any], str], ...]] = {
    'batch-size': (
        ('batch-size-avg', Avg, 'bytes of a batch'),
        ('batch-size-max', Max, 'bytes of the largest batch'),
    ),
    'bytes': (('byte-rate', Rate, 'bytes of batches a second'),),
    'compression-rate': (
        ('compression-rate-avg', Avg, 'size of batches compressed, as part of what it was'),
    ),
    'errors': (('record-error-rate', Rate, 'records a second that failed'),),
    'queue-time': (
        ('record-queue-time-avg', Avg, 'ms that batches waited to be sent'),
        ('record-queue-time-max', Max, 'ms that a batch waited at most'),
    ),
    'record-retries': (('record-retry-rate', Rate, 'records a second that were sent again'),),
    'records': (('record-send-rate', Rate, 'records a second'),),
    'records-per-request': (('records-per-request-avg', Avg, 'records of a request'),),
    'record-size': (
        ('record-size-avg', Avg, 'bytes of a record, on the average of its batch'),
        ('record-size-max', Max, 'bytes of the largest such record'),
    ),
    'request-latency': (
        ('request-latency-avg', Avg, 'ms from request to answer'),
        ('request-latency-max', Max, 'ms at most'),
    ),
    'produce-throttle-time': (
        ('produce-throttle-time-avg', Avg, 'ms that brokers asked to wait'),
        ('produce-throttle-time-max', Max, 'ms at most'),
    ),
}
_OF_TOPIC = {
    'bytes': ('byte-rate', Rate),
    'compression-rate': ('compression-rate', Avg),
    'errors': ('record-error-rate', Rate),
    'record-retries': ('record-retry-rate', Rate),
    'records': ('record-send-rate', Rate),
}
_OF_NODE = {
    'latency-avg': ('request-latency-avg', Avg),
    'latency-max': ('request-latency-max', Max),
    'requests': ('request-rate', lambda: Rate(sampled_stat=Count())),
}


class ProducerMetrics:
    """Records what a producer does: the recorder of a Sender, for turns of its loop.

    Arguments: metrics: the registry; client_id: the tag; in_flight: returns how many requests wait
        for their answers; metadata_age: returns the seconds since what is known was refreshed.
    """

    def __init__(
        self,
        metrics: Metrics,
        client_id: str,
        in_flight: Callable[[], float],
        metadata_age: Callable[[], float],
    ) -> None:
        self.metrics = metrics
        self._tags = {'client-id': client_id}
        self._sensors = {
            name: self._sensor(name, [(GROUP, *row) for row in rows])
            for name, rows in _SENSORS.items()
        }
        self._by_topic: Dict[str, Dict[str, Sensor]] = {}
        self._by_node: Dict[int, Dict[str, Sensor]] = {}
        for name, measure, text in (
            ('requests-in-flight', in_flight, 'requests that wait for their answers'),
            ('metadata-age', metadata_age, 'seconds since metadata was refreshed'),
        ):
            metrics.add_metric(
                metrics.metric_name(name, GROUP, text, self._tags),
                AnonMeasurable(_asking(measure)),
            )

    def _sensor(self, name: str, rows: Any) -> Sensor:
        sensor = self.metrics.sensor(name)
        for group, metric, stat, text in rows:
            sensor.add(self.metrics.metric_name(metric, group, text, self._tags), stat())
        return sensor

    def _topic(self, topic: str) -> Dict[str, Sensor]:
        found = self._by_topic.get(topic)
        if found is None:
            group = 'producer-topic-metrics.' + topic
            found = self._by_topic[topic] = {
                key: self._sensor('topic.%s.%s' % (topic, key), [(group, metric, stat, '')])
                for key, (metric, stat) in _OF_TOPIC.items()
            }
        return found

    def _node(self, node: int) -> Dict[str, Sensor]:
        found = self._by_node.get(node)
        if found is None:
            group = 'producer-node-metrics.node-%s' % node
            found = self._by_node[node] = {
                key: self._sensor('node-%s.%s' % (node, key), [(group, metric, stat, '')])
                for key, (metric, stat) in _OF_NODE.items()
            }
        return found

    # ------------------------------------------------------------ what happens

    def drained(self, batch: Any, now: float) -> None:
        """Record a batch that was encoded to be sent. now: in seconds, of the loop."""
        topic, records = batch.topic_partition[0], batch.record_count
        sensors, of_topic = self._sensors, self._topic(topic)
        sensors['batch-size'].record(batch.size)
        sensors['queue-time'].record(max(0.0, now - batch.created_at) * 1000)
        if records:
            sensors['record-size'].record(batch.raw_size / records)
        for place in (sensors, of_topic):
            place['bytes'].record(batch.size)
            place['compression-rate'].record(batch.size / (batch.raw_size or batch.size or 1))
            place['records'].record(records)

    def failed(self, batch: Any) -> None:
        """Record a batch that was given up."""
        self._sensors['errors'].record(batch.record_count)
        self._topic(batch.topic_partition[0])['errors'].record(batch.record_count)

    def retried(self, batch: Any) -> None:
        """Record a batch that will be sent again."""
        self._sensors['record-retries'].record(batch.record_count)
        self._topic(batch.topic_partition[0])['record-retries'].record(batch.record_count)

    def answered(self, node: int, seconds: float, response: Any, batches: Iterable[Any]) -> None:
        """Record a request that was answered: after how long, and for which batches."""
        latency = seconds * 1000
        self._sensors['records-per-request'].record(sum(each.record_count for each in batches))
        self._sensors['request-latency'].record(latency)
        self._sensors['produce-throttle-time'].record(response.throttle_time_ms)
        of_node = self._node(node)
        of_node['latency-avg'].record(latency)
        of_node['latency-max'].record(latency)
        of_node['requests'].record(1)

    def snapshot(self) -> Dict[str, Dict[str, float]]:
        """Return {group: {name: value}}, as ``KafkaProducer.metrics()`` does."""
        found: Dict[str, Dict[str, float]] = {}
        for name, metric in list(self.metrics.metrics.items()):
            found.setdefault(name.group, {})[name.name] = metric.value()
        return found


def _asking(measure: Callable[[], float]) -> Callable[[Any, float], float]:
    return lambda config, now: measure()
