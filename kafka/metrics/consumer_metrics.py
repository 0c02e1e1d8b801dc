"""The metrics of KafkaConsumer, by the names of 1.2 to 3.0 and of the Java client.

The tables define the metrics and their statistics. Nothing is recorded per record: fetches,
returned records and group requests are noted as events, and recorded some hundred at a time or when
a metric is read (recorder.py). Groups, after the option ``metric_group_prefix``: ``-metrics``,
``-fetch-manager-metrics``, ``-coordinator-metrics`` and ``-node-metrics.node-<id>``, all tagged
``client-id``. Some fetch metrics exist per topic (tag ``topic``), the lag per partition
(``partition`` too).

Any thread may note an event, but must not hold the consumer's lock, because reading a metric may
take it.
"""

from __future__ import annotations

from functools import partial
from typing import (
    Any,
    Callable,
    Collection,
    Dict,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

from kafka.metrics.gathered import (
    Gathered,
    GatheredAvg,
    GatheredCount,
    GatheredMax,
    GatheredSum,
    event_rate,
    gather,
    gathered_rate,
)
from kafka.metrics.metrics import Metrics
from kafka.metrics.recorder import Recorder, Row, put
from kafka.metrics.stats import Sensor
from kafka.metrics.stats.rate import Rate, TimeUnit
from kafka.structs import TopicPartition

__all__ = ['ConsumerMetrics']

Rows = Tuple[Row, ...]


def _hourly(settle: Callable[[], None]) -> Rate:
    return event_rate(settle, TimeUnit.HOURS)


_BYTES: Rows = (
    ('fetch-size-avg', GatheredAvg, 'bytes per fetch'),
    ('fetch-size-max', GatheredMax, 'bytes of the largest fetch'),
    ('bytes-consumed-rate', gathered_rate, 'fetched bytes per second'),
    ('bytes-consumed-total', GatheredSum, 'fetched bytes'),
)
_RECORDS: Rows = (
    ('records-per-request-avg', GatheredAvg, 'records per fetch'),
    ('records-consumed-rate', gathered_rate, 'returned records per second'),
    ('records-consumed-total', GatheredSum, 'returned records'),
)
#: Fetch metrics: sensor -> metrics.
_FETCHING: Dict[str, Rows] = {
    'bytes-fetched': _BYTES,
    'records-fetched': _RECORDS,
    'fetch-latency': (
        (
            'fetch-latency-avg',
            GatheredAvg,
            'ms from request to response, with the wait for records',
        ),
        ('fetch-latency-max', GatheredMax, 'maximum in ms'),
        ('fetch-rate', event_rate, 'fetches per second'),
        ('fetch-total', GatheredCount, 'fetches'),
    ),
    'fetch-throttle-time': (
        ('fetch-throttle-time-avg', GatheredAvg, 'throttle time in ms'),
        ('fetch-throttle-time-max', GatheredMax, 'maximum in ms'),
    ),
    'records-lag': (('records-lag-max', GatheredMax, 'maximum lag of a partition in records'),),
}
_OF_TOPIC = {'bytes-fetched': _BYTES, 'records-fetched': _RECORDS}
_OF_PARTITION: Dict[str, Rows] = {
    'records-lag': (
        ('records-lag-avg', GatheredAvg, 'average lag in records'),
        ('records-lag-max', GatheredMax, 'maximum lag in records'),
    ),
}
#: Group metrics: sensor -> metrics.
_GROUP: Dict[str, Rows] = {
    'commit': (
        ('commit-latency-avg', GatheredAvg, 'ms per commit'),
        ('commit-latency-max', GatheredMax, 'maximum in ms'),
        ('commit-rate', event_rate, 'commits per second'),
        ('commit-total', GatheredCount, 'commits'),
    ),
    'heartbeat': (
        ('heartbeat-response-time-max', GatheredMax, 'maximum time of a heartbeat in ms'),
        ('heartbeat-rate', event_rate, 'heartbeats per second'),
        ('heartbeat-total', GatheredCount, 'heartbeats'),
    ),
    'join': (
        ('join-time-avg', GatheredAvg, 'ms per JoinGroup, including the wait for other members'),
        ('join-time-max', GatheredMax, 'maximum in ms'),
        ('join-rate', event_rate, 'JoinGroups a second'),
        ('join-total', GatheredCount, 'JoinGroups'),
    ),
    'sync': (
        ('sync-time-avg', GatheredAvg, 'ms per SyncGroup'),
        ('sync-time-max', GatheredMax, 'maximum in ms'),
        ('sync-rate', event_rate, 'SyncGroups a second'),
        ('sync-total', GatheredCount, 'SyncGroups'),
    ),
    'rebalance': (
        ('rebalance-latency-avg', GatheredAvg, 'ms per rebalance, including listeners'),
        ('rebalance-latency-max', GatheredMax, 'maximum in ms'),
        ('rebalance-latency-total', GatheredSum, 'total in ms'),
        ('rebalance-rate-per-hour', _hourly, 'rebalances per hour'),
        ('rebalance-total', GatheredCount, 'rebalances'),
    ),
    'failed-rebalance': (
        ('failed-rebalance-rate-per-hour', _hourly, 'failed rebalances per hour'),
        ('failed-rebalance-total', GatheredCount, 'failed rebalances'),
    ),
}
#: Metrics of the program's calls: sensor -> metrics.
_PROGRAM: Dict[str, Rows] = {
    'time-between-poll': (
        ('time-between-poll-avg', GatheredAvg, 'ms from one poll to the next'),
        ('time-between-poll-max', GatheredMax, 'maximum in ms'),
    ),
    'poll-idle-ratio': (
        ('poll-idle-ratio-avg', GatheredAvg, 'fraction of the time spent in polls'),
    ),
    'requests': (
        ('request-latency-avg', GatheredAvg, 'ms from a fetch to its response'),
        ('request-latency-max', GatheredMax, 'maximum in ms'),
        ('request-rate', event_rate, 'fetches per second'),
    ),
    'bytes': (('incoming-byte-rate', gathered_rate, 'fetched bytes per second'),),
}
_OF_NODE = {'requests': _PROGRAM['requests'], 'bytes': _PROGRAM['bytes']}


class _Fetched(NamedTuple):
    node: int
    latency_ms: float
    throttle_ms: float
    bytes_by_topic: Mapping[str, int]


class _Consumed(NamedTuple):
    partition: TopicPartition
    records: int
    lag: Optional[int]


class _Polled(NamedTuple):
    between_ms: float
    idle: float


class _Took(NamedTuple):
    what: str  # a key of _GROUP
    ms: float


class ConsumerMetrics(Recorder):
    """Records the events of a consumer.

    Arguments:
        metrics: the registry; client_id: the tag; prefix: of the groups.
        now: returns the time of the loop in seconds, the unit of all times given here.
        assigned: returns the number of assigned partitions.
        metadata_age: returns the seconds since the last metadata refresh.
    """

    def __init__(
        self,
        metrics: Metrics,
        client_id: str,
        now: Callable[[], float],
        assigned: Callable[[], float],
        metadata_age: Callable[[], float],
        prefix: str = 'consumer',
    ) -> None:
        super().__init__(metrics, client_id)
        self._now = now
        self._prefix = prefix or 'consumer'
        self._last: Dict[str, float] = {}  # kind of event -> its last time
        self._poll_ended = 0.0
        whole, fetching = self._group('metrics'), self._group('fetch-manager-metrics')
        group = self._group('coordinator-metrics')
        self._sensors = {
            name: self._sensor(name, where, rows)
            for where, table in ((fetching, _FETCHING), (group, _GROUP), (whole, _PROGRAM))
            for name, rows in table.items()
        }
        self._by_topic: Dict[str, Dict[str, Sensor]] = {}
        self._by_partition: Dict[TopicPartition, Dict[str, Sensor]] = {}
        self._by_node: Dict[int, Dict[str, Sensor]] = {}
        self._lags: Dict[TopicPartition, int] = {}
        self._lag_names: Dict[TopicPartition, Any] = {}
        self._measure('assigned-partitions', group, 'assigned partitions', assigned)
        self._measure('metadata-age', whole, 'seconds since the metadata refresh', metadata_age)
        for name, what, where in (
            ('last-poll-seconds-ago', 'poll', whole),
            ('last-heartbeat-seconds-ago', 'heartbeat', group),
            ('last-rebalance-seconds-ago', 'rebalance', group),
        ):
            text = 'seconds since the last %s; -1 before the first' % what
            self._measure(name, where, text, partial(self._since, what))

    def _group(self, rest: str) -> str:
        return '%s-%s' % (self._prefix, rest)

    def _since(self, what: str) -> float:
        last = self._last.get(what)
        return -1.0 if last is None else max(0.0, self._now() - last)

    # ------------------------------------------------------------ reading

    def answered(
        self, node: int, seconds: float, throttle_ms: float, bytes_by_topic: Mapping[str, int]
    ) -> None:
        """Note a response to a fetch: its latency, and its content."""
        self._note(_Fetched(node, seconds * 1000, throttle_ms, bytes_by_topic))

    def consumed(self, partition: TopicPartition, records: int, lag: Optional[int]) -> None:
        """Note records that were returned together.

        Arguments: lag: the number of records after them (high watermark, or last stable offset,
        minus the position); None if it is not known.
        """
        self._note(_Consumed(partition, records, lag))

    def polled(self, began: float, ended: float) -> None:
        """Note a poll of the program, by its start and end."""
        before, last_ended = self._last.get('poll'), self._poll_ended
        self._last['poll'], self._poll_ended = began, ended
        if before is not None:
            whole = ended - last_ended
            idle = (ended - began) / whole if whole > 0 else 1.0
            self._note(_Polled((began - before) * 1000, idle))

    def assignment_changed(self, partitions: Collection[TopicPartition]) -> None:
        """Remove the metrics of partitions and topics that are no longer assigned."""
        topics = {each[0] for each in partitions}
        kept = set(partitions)
        with self._settling:
            self.settle()
            # First remove the metrics, then the entries: otherwise another thread could create them
            # while the old ones still exist.
            for partition in [each for each in self._by_partition if each not in kept]:
                self._remove(self._by_partition[partition])
                self.metrics.remove_metric(self._lag_names[partition])
                del self._by_partition[partition], self._lag_names[partition]
                self._lags.pop(partition, None)
            for topic in [each for each in self._by_topic if each not in topics]:
                self._remove(self._by_topic[topic])
                del self._by_topic[topic]

    # ------------------------------------------------------------ the group

    def committed(self, seconds: float) -> None:
        """Note the response to a commit, and its latency."""
        self._note(_Took('commit', seconds * 1000))

    def heartbeat(self, now: float, seconds: float = 0.0) -> None:
        """Note the response to a heartbeat at a time of the loop, and its latency."""
        self._last['heartbeat'] = now
        self._note(_Took('heartbeat', seconds * 1000))

    def joined(self, seconds: float) -> None:
        """Note the response to a JoinGroup, and its latency."""
        self._note(_Took('join', seconds * 1000))

    def synced(self, seconds: float) -> None:
        """Note the response to a SyncGroup, and its latency."""
        self._note(_Took('sync', seconds * 1000))

    def asked(self, request: str, seconds: float) -> None:
        """Note a JoinGroup or SyncGroup, by the name of its request; see joined() and synced()."""
        (self.joined if request.startswith('Join') else self.synced)(seconds)

    def rebalanced(self, seconds: float) -> None:
        """Note a completed rebalance, and how long it took, including listeners."""
        self._last['rebalance'] = self._now()
        self._note(_Took('rebalance', seconds * 1000))

    def rebalance_failed(self) -> None:
        """Note a failed rebalance: the member was removed from the group, or starts again."""
        self._note(_Took('failed-rebalance', 0.0))

    # ------------------------------------------------------------ recording

    def _record(self, noted: Sequence[Any], now: float) -> None:
        fetched = [each for each in noted if type(each) is _Fetched]
        consumed = [each for each in noted if type(each) is _Consumed]
        polled = [each for each in noted if type(each) is _Polled]
        if fetched:
            self._record_fetched(fetched, now)
        if consumed:
            self._record_consumed(consumed, now)
        if polled:
            put(self._sensors['time-between-poll'], gather([e.between_ms for e in polled]), now)
            put(self._sensors['poll-idle-ratio'], gather([e.idle for e in polled]), now)
        took: Dict[str, List[float]] = {}
        for each in noted:
            if type(each) is _Took:
                took.setdefault(each.what, []).append(each.ms)
        for what, times in took.items():
            put(self._sensors[what], gather(times), now)

    def _record_fetched(self, fetched: Sequence[_Fetched], now: float) -> None:
        sensors = self._sensors
        latencies = gather([each.latency_ms for each in fetched])
        put(sensors['fetch-latency'], latencies, now)
        put(sensors['requests'], latencies, now)
        put(sensors['fetch-throttle-time'], gather([each.throttle_ms for each in fetched]), now)
        sizes: List[int] = []
        by_node: Dict[int, List[Tuple[float, int]]] = {}
        by_topic: Dict[str, List[int]] = {}
        for each in fetched:
            size = sum(each.bytes_by_topic.values())
            sizes.append(size)
            by_node.setdefault(each.node, []).append((each.latency_ms, size))
            for topic, its_size in each.bytes_by_topic.items():
                by_topic.setdefault(topic, []).append(its_size)
        put(sensors['bytes'], gather(sizes), now)
        self._record_sizes(sensors, sizes, now)
        for node, pairs in by_node.items():
            own = self._by_node.get(node) or self._node(node)
            put(own['requests'], gather([latency for latency, _ in pairs]), now)
            put(own['bytes'], gather([size for _, size in pairs]), now)
        for topic, some in by_topic.items():
            self._record_sizes(self._by_topic.get(topic) or self._topic(topic), some, now)

    @staticmethod
    def _record_sizes(sensors: Mapping[str, Sensor], sizes: Sequence[int], now: float) -> None:
        put(sensors['bytes-fetched'], gather(sizes), now)
        # Records are counted when they are returned; here only the number of fetches.
        put(sensors['records-fetched'], Gathered(0, len(sizes), 0), now)

    def _record_consumed(self, consumed: Sequence[_Consumed], now: float) -> None:
        sensors = self._sensors
        by_topic: Dict[str, int] = {}
        lags: Dict[TopicPartition, List[float]] = {}
        for partition, records, lag in consumed:
            topic = str(partition[0])
            by_topic[topic] = by_topic.get(topic, 0) + records
            if lag is not None:
                lags.setdefault(partition, []).append(lag)
        put(sensors['records-fetched'], Gathered(sum(by_topic.values()), 0, 0), now)
        for topic, count in by_topic.items():
            own = self._by_topic.get(topic) or self._topic(topic)
            put(own['records-fetched'], Gathered(count, 0, 0), now)
        for partition, some in lags.items():
            self._lags[partition] = int(some[-1])
            own = self._by_partition.get(partition) or self._partition(partition)
            gathered = gather(some)
            put(own['records-lag'], gathered, now)
            put(sensors['records-lag'], gathered, now)

    # ------------------------------------------------------------ per node, topic, partition

    def _node(self, node: int) -> Dict[str, Sensor]:
        group = self._group('node-metrics.node-%s' % node)
        found = self._by_node[node] = {
            key: self._sensor('node-%s.%s' % (node, key), group, rows)
            for key, rows in _OF_NODE.items()
        }
        return found

    def _topic(self, topic: str) -> Dict[str, Sensor]:
        group = self._group('fetch-manager-metrics')
        found = self._by_topic[topic] = {
            key: self._sensor('topic.%s.%s' % (topic, key), group, rows, {'topic': topic})
            for key, rows in _OF_TOPIC.items()
        }
        return found

    def _partition(self, partition: TopicPartition) -> Dict[str, Sensor]:
        group = self._group('fetch-manager-metrics')
        topic, number = str(partition[0]), partition[1]
        tags = {'topic': topic, 'partition': str(number)}
        found = self._by_partition[partition] = {
            key: self._sensor('partition.%s-%d.%s' % (topic, number, key), group, rows, tags)
            for key, rows in _OF_PARTITION.items()
        }
        self._lag_names[partition] = self._measure(
            'records-lag', group, 'lag in records', lambda: self._lag(partition), tags
        )
        return found

    def _lag(self, partition: TopicPartition) -> float:
        self.settle()
        return self._lags.get(partition, 0)
