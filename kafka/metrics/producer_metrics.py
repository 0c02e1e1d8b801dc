"""The metrics of KafkaProducer, by the names of 1.3 to 3.0.

The tables define the metrics and their statistics. Nothing is recorded per record: events of
batches and requests are noted in the thread of the loop, and recorded some hundred at a time or
when a metric is read (gathered.py). Groups: ``producer-metrics``,
``producer-node-metrics.node-<id>``, ``producer-topic-metrics.<topic>``, all tagged ``client-id``;
those of nodes and topics are created with the first request or batch.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

from kafka.metrics.gathered import (
    GatheredAvg,
    GatheredMax,
    event_rate,
    gather,
    gathered_rate,
)
from kafka.metrics.metrics import Metrics
from kafka.metrics.recorder import Recorder, put
from kafka.metrics.stats import Sensor

GROUP = 'producer-metrics'

# Sensors for the whole producer: name -> (metric, statistic, description) ...
_SENSORS: Dict[str, Tuple[Tuple[str, Callable[[Any], Any], str], ...]] = {
    'batch-size': (
        ('batch-size-avg', GatheredAvg, 'bytes per batch'),
        ('batch-size-max', GatheredMax, 'bytes of the largest batch'),
    ),
    'bytes': (('byte-rate', gathered_rate, 'bytes of batches per second'),),
    'compression-rate': (
        ('compression-rate-avg', GatheredAvg, 'compressed size as a fraction of the original size'),
    ),
    'errors': (('record-error-rate', gathered_rate, 'failed records per second'),),
    'queue-time': (
        ('record-queue-time-avg', GatheredAvg, 'ms that batches waited to be sent'),
        ('record-queue-time-max', GatheredMax, 'maximum in ms'),
    ),
    'record-retries': (('record-retry-rate', gathered_rate, 'retried records per second'),),
    'records': (('record-send-rate', gathered_rate, 'records per second'),),
    'records-per-request': (('records-per-request-avg', GatheredAvg, 'records per request'),),
    'record-size': (
        ('record-size-avg', GatheredAvg, 'bytes per record, averaged over its batch'),
        ('record-size-max', GatheredMax, 'maximum of these averages'),
    ),
    'request-latency': (
        ('request-latency-avg', GatheredAvg, 'ms from request to response'),
        ('request-latency-max', GatheredMax, 'maximum in ms'),
    ),
    'produce-throttle-time': (
        ('produce-throttle-time-avg', GatheredAvg, 'throttle time in ms'),
        ('produce-throttle-time-max', GatheredMax, 'maximum in ms'),
    ),
}
_OF_TOPIC: Dict[str, Tuple[str, Callable[[Any], Any]]] = {
    'bytes': ('byte-rate', gathered_rate),
    'compression-rate': ('compression-rate', GatheredAvg),
    'errors': ('record-error-rate', gathered_rate),
    'record-retries': ('record-retry-rate', gathered_rate),
    'records': ('record-send-rate', gathered_rate),
}
_OF_NODE: Dict[str, Tuple[str, Callable[[Any], Any]]] = {
    'latency-avg': ('request-latency-avg', GatheredAvg),
    'latency-max': ('request-latency-max', GatheredMax),
    'requests': ('request-rate', event_rate),
}


class _Batch(NamedTuple):
    topic: str
    records: int
    size: int
    raw_size: int
    waited_ms: float


class _AnsweredRequest(NamedTuple):
    node: int
    latency_ms: float
    throttle_ms: float
    records: int


_new = tuple.__new__  # creates a NamedTuple without a Python call


class ProducerMetrics(Recorder):
    """Records the events of a producer: the recorder of a Sender, in the thread of the loop.

    Arguments: metrics: the registry; client_id: the tag; in_flight: returns the number of requests
        in flight; metadata_age: returns the seconds since the last metadata refresh;
        compresses: whether batches are compressed.
    """

    def __init__(
        self,
        metrics: Metrics,
        client_id: str,
        in_flight: Callable[[], float],
        metadata_age: Callable[[], float],
        compresses: bool = True,
    ) -> None:
        super().__init__(metrics, client_id)
        self._compresses = compresses
        self._sensors = {name: self._sensor(name, GROUP, rows) for name, rows in _SENSORS.items()}
        self._by_topic: Dict[str, Dict[str, Sensor]] = {}
        self._by_node: Dict[int, Dict[str, Sensor]] = {}
        self._measure('requests-in-flight', GROUP, 'requests without a response', in_flight)
        self._measure('metadata-age', GROUP, 'seconds since the metadata refresh', metadata_age)

    def _topic(self, topic: str) -> Dict[str, Sensor]:
        group = 'producer-topic-metrics.' + topic
        found = self._by_topic[topic] = {
            key: self._sensor('topic.%s.%s' % (topic, key), group, [(metric, stat, '')])
            for key, (metric, stat) in _OF_TOPIC.items()
        }
        return found

    def forget_topic(self, topic: str) -> None:
        """Remove the metrics of a topic; a later record creates them again."""
        with self._settling:
            self.settle()
            self._remove(self._by_topic.get(topic, {}))  # first: they could be created again
            self._by_topic.pop(topic, None)

    def _node(self, node: int) -> Dict[str, Sensor]:
        group = 'producer-node-metrics.node-%s' % node
        found = self._by_node[node] = {
            key: self._sensor('node-%s.%s' % (node, key), group, [(metric, stat, '')])
            for key, (metric, stat) in _OF_NODE.items()
        }
        return found

    # ------------------------------------------------------------ events

    def drained(self, batch: Any, now: float) -> None:
        """Note a batch that was encoded for sending. now: in seconds, of the loop."""
        topic = batch.topic_partition[0]
        if topic not in self._by_topic:
            self._topic(topic)
        waited = max(0.0, now - batch.created_at) * 1000
        # The size before compression is estimated as that in the oldest format.
        size = batch.size
        raw_size = batch.raw_size if self._compresses else size
        self._note(_new(_Batch, (topic, batch.record_count, size, raw_size, waited)))

    def answered(self, node: int, seconds: float, response: Any, batches: Iterable[Any]) -> None:
        """Note the response to a request: its latency, and the batches of the request."""
        if node not in self._by_node:
            self._node(node)
        records = sum([each.record_count for each in batches])
        self._note(
            _new(_AnsweredRequest, (node, seconds * 1000, response.throttle_time_ms, records))
        )

    def stored(self, node: int, seconds: float, count: int) -> None:
        """Note the same as answered(), for a request with this number of records, all stored."""
        if node not in self._by_node:
            self._node(node)
        self._note_only(_new(_AnsweredRequest, (node, seconds * 1000, 0, count)))

    def failed(self, batch: Any) -> None:
        """Record a batch that failed."""
        self._happened('errors', batch)

    def retried(self, batch: Any) -> None:
        """Record a batch that will be sent again."""
        self._happened('record-retries', batch)

    def _happened(self, name: str, batch: Any) -> None:
        topic = batch.topic_partition[0]
        found = self._by_topic.get(topic) or self._topic(topic)
        for sensor in (self._sensors[name], found[name]):
            put(sensor, gather([batch.record_count]))

    # ------------------------------------------------------------ recording

    def _record(self, noted: Sequence[Any], now: float) -> None:
        batches = [each for each in noted if type(each) is _Batch]
        answers = [each for each in noted if type(each) is _AnsweredRequest]
        if batches:
            self._record_batches(batches, now)
        if answers:
            self._record_answers(answers, now)

    def _record_batches(self, batches: Sequence[_Batch], now: float) -> None:
        sensors = self._sensors
        put(sensors['batch-size'], gather([each.size for each in batches]), now)
        put(sensors['queue-time'], gather([each.waited_ms for each in batches]), now)
        sizes = [each.raw_size / each.records for each in batches if each.records]
        if sizes:
            put(sensors['record-size'], gather(sizes), now)
        _record_sums(sensors, batches, now)
        by_topic: Dict[str, List[_Batch]] = {}
        for each in batches:
            by_topic.setdefault(each.topic, []).append(each)
        for topic, some in by_topic.items():
            _record_sums(self._by_topic[topic], some, now)

    def _record_answers(self, answers: Sequence[_AnsweredRequest], now: float) -> None:
        sensors = self._sensors
        put(sensors['records-per-request'], gather([each.records for each in answers]), now)
        put(sensors['request-latency'], gather([each.latency_ms for each in answers]), now)
        put(sensors['produce-throttle-time'], gather([each.throttle_ms for each in answers]), now)
        by_node: Dict[int, List[float]] = {}
        for each in answers:
            by_node.setdefault(each.node, []).append(each.latency_ms)
        for node, latencies in by_node.items():
            gathered = gather(latencies)
            for sensor in self._by_node[node].values():
                put(sensor, gathered, now)


def _record_sums(sensors: Mapping[str, Sensor], batches: Sequence[_Batch], now: float) -> None:
    """Record the metrics that both the whole producer and each topic have."""
    put(sensors['bytes'], gather([each.size for each in batches]), now)
    shares = [each.size / (each.raw_size or each.size or 1) for each in batches]
    put(sensors['compression-rate'], gather(shares), now)
    put(sensors['records'], gather([each.records for each in batches]), now)
