"""The metrics of KafkaConsumer, by the names of 1.2 to 3.0 and of the Java client.

Owns which figures there are and what they are made of. Nothing is counted for a record: what a
fetch brought, what a poll handed out, what a call of the group took is noted, and recorded some
hundred at a time or when a figure is asked for (recorder.py). Groups, behind the option
``metric_group_prefix``: ``-metrics``, ``-fetch-manager-metrics``, ``-coordinator-metrics`` and
``-node-metrics.node-<id>``, all tagged ``client-id``. Of what is fetched some figures are kept for
each topic (tag ``topic``), and of what is behind for each partition (``partition`` too).

Any thread may note something; nobody who does holds the consumer's lock, for a figure may ask for
what that guards.
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
    ('fetch-size-avg', GatheredAvg, 'bytes that a fetch brought'),
    ('fetch-size-max', GatheredMax, 'bytes of the largest fetch'),
    ('bytes-consumed-rate', gathered_rate, 'bytes a second that were fetched'),
    ('bytes-consumed-total', GatheredSum, 'bytes that were fetched'),
)
_RECORDS: Rows = (
    ('records-per-request-avg', GatheredAvg, 'records of a fetch'),
    ('records-consumed-rate', gathered_rate, 'records a second that were handed out'),
    ('records-consumed-total', GatheredSum, 'records that were handed out'),
)
#: Of what is fetched: sensor -> metrics.
_FETCHING: Dict[str, Rows] = {
    'bytes-fetched': _BYTES,
    'records-fetched': _RECORDS,
    'fetch-latency': (
        ('fetch-latency-avg', GatheredAvg, 'ms from request to answer, with the wait for records'),
        ('fetch-latency-max', GatheredMax, 'ms at most'),
        ('fetch-rate', event_rate, 'fetches a second'),
        ('fetch-total', GatheredCount, 'fetches'),
    ),
    'fetch-throttle-time': (
        ('fetch-throttle-time-avg', GatheredAvg, 'ms that brokers asked to wait'),
        ('fetch-throttle-time-max', GatheredMax, 'ms at most'),
    ),
    'records-lag': (
        ('records-lag-max', GatheredMax, 'by how many records a partition was behind at most'),
    ),
}
_OF_TOPIC = {'bytes-fetched': _BYTES, 'records-fetched': _RECORDS}
_OF_PARTITION: Dict[str, Rows] = {
    'records-lag': (
        ('records-lag-avg', GatheredAvg, 'by how many records it was behind'),
        ('records-lag-max', GatheredMax, 'by how many at most'),
    ),
}
#: Of the group: what took time -> metrics.
_GROUP: Dict[str, Rows] = {
    'commit': (
        ('commit-latency-avg', GatheredAvg, 'ms of a commit'),
        ('commit-latency-max', GatheredMax, 'ms at most'),
        ('commit-rate', event_rate, 'commits a second'),
        ('commit-total', GatheredCount, 'commits'),
    ),
    'heartbeat': (
        ('heartbeat-response-time-max', GatheredMax, 'ms that a heartbeat took at most'),
        ('heartbeat-rate', event_rate, 'heartbeats a second'),
        ('heartbeat-total', GatheredCount, 'heartbeats'),
    ),
    'join': (
        ('join-time-avg', GatheredAvg, 'ms of a JoinGroup, with the wait for the others'),
        ('join-time-max', GatheredMax, 'ms at most'),
        ('join-rate', event_rate, 'JoinGroups a second'),
        ('join-total', GatheredCount, 'JoinGroups'),
    ),
    'sync': (
        ('sync-time-avg', GatheredAvg, 'ms of a SyncGroup'),
        ('sync-time-max', GatheredMax, 'ms at most'),
        ('sync-rate', event_rate, 'SyncGroups a second'),
        ('sync-total', GatheredCount, 'SyncGroups'),
    ),
    'rebalance': (
        ('rebalance-latency-avg', GatheredAvg, 'ms of a rebalance, with what the program did'),
        ('rebalance-latency-max', GatheredMax, 'ms at most'),
        ('rebalance-latency-total', GatheredSum, 'ms of all'),
        ('rebalance-rate-per-hour', _hourly, 'rebalances an hour'),
        ('rebalance-total', GatheredCount, 'rebalances'),
    ),
    'failed-rebalance': (
        ('failed-rebalance-rate-per-hour', _hourly, 'rebalances an hour that came to nothing'),
        ('failed-rebalance-total', GatheredCount, 'rebalances that came to nothing'),
    ),
}
#: Of the program: what it does -> metrics.
_PROGRAM: Dict[str, Rows] = {
    'time-between-poll': (
        ('time-between-poll-avg', GatheredAvg, 'ms from one poll to the next'),
        ('time-between-poll-max', GatheredMax, 'ms at most'),
    ),
    'poll-idle-ratio': (
        ('poll-idle-ratio-avg', GatheredAvg, 'part of the time that the program spends in polls'),
    ),
    'requests': (
        ('request-latency-avg', GatheredAvg, 'ms from a fetch to its answer'),
        ('request-latency-max', GatheredMax, 'ms at most'),
        ('request-rate', event_rate, 'fetches a second'),
    ),
    'bytes': (('incoming-byte-rate', gathered_rate, 'bytes a second that were fetched'),),
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
    """Records what a consumer does.

    Arguments:
        metrics: the registry; client_id: the tag; prefix: of the groups.
        now: returns the seconds of the loop, which all times given here are of.
        assigned: returns how many partitions are assigned.
        metadata_age: returns the seconds since what is known of the cluster was refreshed.
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
        self._last: Dict[str, float] = {}  # what -> when it was done last
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
        self._measure('assigned-partitions', group, 'partitions that are assigned', assigned)
        self._measure('metadata-age', whole, 'seconds since metadata was refreshed', metadata_age)
        for name, what, where in (
            ('last-poll-seconds-ago', 'poll', whole),
            ('last-heartbeat-seconds-ago', 'heartbeat', group),
            ('last-rebalance-seconds-ago', 'rebalance', group),
        ):
            text = 'seconds since the last %s; -1: there was none' % what
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
        """Note a fetch that was answered: after how long, and what it brought."""
        self._note(_Fetched(node, seconds * 1000, throttle_ms, bytes_by_topic))

    def consumed(self, partition: TopicPartition, records: int, lag: Optional[int]) -> None:
        """Note records that were handed out together.

        Arguments: lag: how many are behind them (high watermark, or last stable offset, less the
        position); None if that is not known.
        """
        self._note(_Consumed(partition, records, lag))

    def polled(self, began: float, ended: float) -> None:
        """Note a poll of the program: from when to when."""
        before, last_ended = self._last.get('poll'), self._poll_ended
        self._last['poll'], self._poll_ended = began, ended
        if before is not None:
            whole = ended - last_ended
            idle = (ended - began) / whole if whole > 0 else 1.0
            self._note(_Polled((began - before) * 1000, idle))

    def assignment_changed(self, partitions: Collection[TopicPartition]) -> None:
        """Remove the figures of partitions and topics that are not among those assigned now."""
        topics = {each[0] for each in partitions}
        kept = set(partitions)
        with self._settling:
            self.settle()
            # Removed before they are forgotten: else who records would make them while they are
            # still there.
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
        """Note a commit that was answered, and how long it took."""
        self._note(_Took('commit', seconds * 1000))

    def heartbeat(self, now: float, seconds: float = 0.0) -> None:
        """Note a heartbeat that was answered at a time of the loop, and how long it took."""
        self._last['heartbeat'] = now
        self._note(_Took('heartbeat', seconds * 1000))

    def joined(self, seconds: float) -> None:
        """Note a JoinGroup that was answered, and how long it took."""
        self._note(_Took('join', seconds * 1000))

    def synced(self, seconds: float) -> None:
        """Note a SyncGroup that was answered, and how long it took."""
        self._note(_Took('sync', seconds * 1000))

    def asked(self, request: str, seconds: float) -> None:
        """Note a JoinGroup or SyncGroup by the name of its request; see joined() and synced()."""
        (self.joined if request.startswith('Join') else self.synced)(seconds)

    def rebalanced(self, seconds: float) -> None:
        """Note a rebalance that was completed, and how long it took, listeners included."""
        self._last['rebalance'] = self._now()
        self._note(_Took('rebalance', seconds * 1000))

    def rebalance_failed(self) -> None:
        """Note a rebalance that came to nothing: the member was put out, or begins anew."""
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
        # Their records are counted when they are handed out, beyond the number of fetches.
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

    # ------------------------------------------------------------ of a part

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
            'records-lag', group, 'records behind the last one', lambda: self._lag(partition), tags
        )
        return found

    def _lag(self, partition: TopicPartition) -> float:
        self.settle()
        return self._lags.get(partition, 0)
