"""The verbs of steps.py for aiokafka, whose loop runs in a thread of its own."""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
import threading
import time
from typing import Any, Coroutine, Dict, List, Optional, Set, Tuple

sys.path.append(os.path.dirname(os.path.abspath(__file__)))

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka import admin as admins
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from checking import Checks, Record, Steps, serve
from like_kafka_python import config_of, record_of
from steps import STEPS, group_of_one

SECONDS = 20.0
QUIET_SECONDS = 3.0

_loop = asyncio.new_event_loop()


def _do(work: Coroutine[Any, Any, Any]) -> Any:
    """Wait for a coroutine that runs in the thread of the loop."""
    return asyncio.run_coroutine_threadsafe(work, _loop).result(2 * SECONDS)


async def _made(kind: Any, *args: Any, **config: Any) -> Any:
    """Make a client inside the loop and start it."""
    made = kind(*args, **config)
    try:
        await made.start()
    except BaseException:
        await (made.close() if hasattr(made, 'close') else made.stop())
        raise
    return made


async def _assign(consumer: Any, places: List[Any]) -> None:
    consumer.assign(places)  # inside the loop, where it makes futures


def _client(cluster: Dict[str, Any]) -> Client:
    return Client(cluster)


async def _all_of(sent: List[Any]) -> None:
    await asyncio.gather(*sent)


class _Producer:
    def __init__(self, config: Dict[str, Any]) -> None:
        self.raw = _do(_made(AIOKafkaProducer, **config))
        self.sent: List[Any] = []

    def send(
        self,
        topic: str,
        value: Optional[bytes],
        key: Optional[bytes],
        partition: int,
        headers: Any = None,
        timestamp: Optional[int] = None,
    ) -> None:
        more = {'headers': headers} if headers else {}
        self.sent.append(_do(self.raw.send(topic, value, key, partition, timestamp, **more)))

    def flush(self) -> None:
        sent, self.sent = self.sent, []

        async def wait() -> None:
            await self.raw.flush()
            await _all_of(sent)

        _do(wait())

    def begin(self) -> None:
        _do(self.raw.begin_transaction())

    def commit(self) -> None:
        try:
            _do(self.raw.commit_transaction())
        except AssertionError:  # it saw in the background that it is fenced: the records say so
            _do(_all_of(self.sent))
            raise

    def abort(self) -> None:
        _do(self.raw.abort_transaction())

    def send_offsets(self, member: Any, offsets: Dict[Tuple[str, int], int]) -> None:
        places = {TopicPartition(*place): offset for place, offset in offsets.items()}
        _do(self.raw.send_offsets_to_transaction(places, member.consumer.group))

    def close(self) -> None:
        self.flush()
        _do(self.raw.stop())


class _Consumer:
    def __init__(self, config: Dict[str, Any], topic: str) -> None:
        self.group = config['group_id']
        self.raw = _do(_made(AIOKafkaConsumer, topic, **config))

    def poll(self, seconds: float) -> List[Record]:
        found = _do(self.raw.getmany(timeout_ms=int(seconds * 1000)))
        return [record_of(each) for records in found.values() for each in records]

    def assignment(self) -> Set[int]:
        return {each.partition for each in self.raw.assignment()}

    def commit(self) -> None:
        _do(self.raw.commit())

    def close(self) -> None:
        _do(self.raw.stop())


class Client:
    """aiokafka, on one cluster."""

    def __init__(self, cluster: Dict[str, Any]) -> None:
        self.cluster, self.version = cluster, cluster['version']
        self.has_times = self.version >= [0, 10, 1]
        self.config = config_of(cluster)
        if 'login' in cluster:
            context = ssl.create_default_context(cafile=cluster['login']['ca'])
            self.config['ssl_context'] = context

    def producer(
        self, codec: str, idempotent: bool = False, transactional_id: Optional[str] = None
    ) -> Any:
        config = {
            **self.config,
            'compression_type': None if codec == 'none' else codec,
            'linger_ms': 20,
            'acks': 'all',
        }
        if idempotent:
            config['enable_idempotence'] = True
        if transactional_id is not None:
            config['transactional_id'] = transactional_id
        return _Producer(config)

    def _config(self, group: Optional[str], **more: Any) -> Dict[str, Any]:
        return {
            **self.config,
            'group_id': group,
            'auto_offset_reset': 'earliest',
            'enable_auto_commit': False,
            **more,
        }

    def consumer(self, group: str, topic: str, protocol: str) -> Any:
        config = self._config(group, session_timeout_ms=6000, heartbeat_interval_ms=300)
        return _Consumer(config, topic)

    def _assigned(self, topic: str, partitions: List[int], **more: Any) -> Any:
        consumer = _do(_made(AIOKafkaConsumer, **self._config(None, **more)))
        _do(_assign(consumer, [TopicPartition(topic, each) for each in partitions]))
        return consumer

    def read(
        self, topic: str, partitions: List[int], committed: bool = False, start: int = 0
    ) -> List[Record]:
        more = {'isolation_level': 'read_committed'} if committed else {}
        consumer = self._assigned(topic, partitions, **more)
        places = list(consumer.assignment())
        ends = _do(consumer.end_offsets(places))
        for place in places:
            consumer.seek(place, start)
        found: List[Record] = []
        last = time.monotonic()
        while any(_do(consumer.position(place)) < ends[place] for place in places):
            for records in _do(consumer.getmany(timeout_ms=100)).values():
                found += map(record_of, records)
                last = time.monotonic()
            if time.monotonic() > last + QUIET_SECONDS:
                break  # the comparison tells what is missing
        _do(consumer.stop())
        return sorted(found, key=lambda record: record[:2])

    def committed(self, group: str, topic: str, partitions: List[int]) -> Dict[int, Optional[int]]:
        consumer = _do(_made(AIOKafkaConsumer, **self._config(group)))
        places = [TopicPartition(topic, each) for each in partitions]
        _do(_assign(consumer, places))
        found = {each.partition: _do(consumer.committed(each)) for each in places}
        _do(consumer.stop())
        return found

    def bounds(self, topic: str, partitions: List[int]) -> Dict[int, Tuple[int, int]]:
        consumer = self._assigned(topic, partitions)
        places = [TopicPartition(topic, each) for each in partitions]
        starts, ends = (_do(consumer.beginning_offsets(places)), _do(consumer.end_offsets(places)))
        _do(consumer.stop())
        return {each.partition: (starts[each], ends[each]) for each in places}

    def at_time(self, topic: str, partition: int, ms: int) -> Optional[int]:
        consumer, place = self._assigned(topic, [partition]), TopicPartition(topic, partition)
        found = _do(consumer.offsets_for_times({place: ms}))[place]
        _do(consumer.stop())
        return found.offset if found is not None else None

    def admin(self, checks: Checks, topic: str) -> None:
        raw = _do(_made(admins.AIOKafkaAdminClient, **self.config))
        try:
            _admin(self, raw, checks, topic)
        finally:
            _do(raw.close())


def _admin(client: Client, raw: Any, checks: Checks, topic: str) -> None:
    new = admins.NewTopic(topic, 2, 3, topic_configs={'retention.ms': '1234567'})

    def partitions() -> List[Any]:
        (found,) = _do(raw.describe_topics([topic]))
        return [len(each['isr']) for each in found['partitions']]

    def error_of_creation() -> int:
        return _do(raw.create_topics([new])).topic_errors[0][1]

    checks.equal('creating a topic', error_of_creation(), 0)
    checks.equal('creating it again', error_of_creation(), 36)
    checks.equal('partitions', partitions(), [3, 3])
    checks.equal('listed', topic in _do(raw.list_topics()), True)
    checks.equal('brokers', len(_do(raw.describe_cluster())['brokers']), 3)
    if client.version >= [1, 0]:
        _do(raw.create_partitions({topic: admins.NewPartitions(4)}))
        checks.equal('partitions then', partitions(), [3, 3, 3, 3])
    if client.version >= [0, 11]:

        def retention() -> Any:
            resource = ConfigResource(ConfigResourceType.TOPIC, topic)
            (answer,) = _do(raw.describe_configs([resource]))
            return {entry[0]: entry[1] for entry in answer.resources[0][4]}['retention.ms']

        checks.equal('a config', retention(), '1234567')
        changed = ConfigResource(ConfigResourceType.TOPIC, topic, {'retention.ms': '7654321'})
        _do(raw.alter_configs([changed]))
        checks.equal('a config then', retention(), '7654321')
    name, place = 'group of ' + topic, TopicPartition(topic, 0)
    group_of_one(client, topic, name)
    listed = [each[0] for each in _do(raw.list_consumer_groups())]
    checks.equal('listed groups', name in listed, True)
    (answer,) = _do(raw.describe_consumer_groups([name]))
    checks.equal('a group', tuple(answer.groups[0][1:3]), (name, 'Empty'))
    offsets = _do(raw.list_consumer_group_offsets(name, partitions=[place]))
    checks.equal('its offsets', offsets[place].offset, 10)
    if client.version >= [0, 11]:
        _do(raw.delete_records({place: admins.RecordsToDelete(4)}))
        checks.equal('bounds', client.bounds(topic, [0]), {0: (4, 10)})
    _do(raw.delete_topics([topic]))
    checks.equal('the topic is there', topic in _do(raw.list_topics()), False)


if __name__ == '__main__':
    threading.Thread(target=_loop.run_forever, daemon=True).start()
    serve(Steps(aiokafka.__version__, _client, STEPS))
