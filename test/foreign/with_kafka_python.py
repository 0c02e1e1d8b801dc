"""The verbs of steps.py for the kafka-pythons of others: 2.0 and 3.0."""

from __future__ import annotations

import os
import sys
import time
from typing import Any, Dict, List, Optional, Set, Tuple

sys.path.append(os.path.dirname(os.path.abspath(__file__)))

from checking import Checks, Record, Steps, serve
from like_kafka_python import config_of, record_of
from steps import STEPS, group_of_one

import kafka
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka import admin as admins
from kafka.structs import OffsetAndMetadata

SECONDS = 20.0
QUIET_SECONDS = 3.0
IS_LATER = int(kafka.__version__.split('.')[0]) >= 3


def _client(cluster: Dict[str, Any]) -> Client:
    return Client(cluster)


class _Producer:
    def __init__(self, raw: Any, is_transactional: bool) -> None:
        self.raw = raw
        self.sent: List[Any] = []
        if is_transactional:
            raw.init_transactions()

    def send(
        self,
        topic: str,
        value: Optional[bytes],
        key: Optional[bytes],
        partition: int,
        headers: Any = None,
        timestamp: Optional[int] = None,
    ) -> None:
        self.sent.append(
            self.raw.send(
                topic,
                value,
                key=key,
                partition=partition,
                headers=headers or [],
                timestamp_ms=timestamp,
            )
        )

    def flush(self) -> None:
        self.raw.flush(SECONDS)
        for each in self.sent:
            each.get(SECONDS)
        del self.sent[:]

    def begin(self) -> None:
        self.raw.begin_transaction()

    def commit(self) -> None:
        self.raw.commit_transaction()

    def abort(self) -> None:
        self.raw.abort_transaction()

    def send_offsets(self, member: Any, offsets: Dict[Tuple[str, int], int]) -> None:
        places = {
            TopicPartition(*place): OffsetAndMetadata(offset, '', -1)
            for place, offset in offsets.items()
        }
        metadata = member.do(member.consumer.raw.group_metadata)
        self.raw.send_offsets_to_transaction(places, metadata)

    def close(self) -> None:
        self.flush()
        self.raw.close(SECONDS)


class _Consumer:
    def __init__(self, raw: Any, topic: str) -> None:
        self.raw = raw
        self.raw.subscribe([topic])
        self.parts: Set[int] = set()

    def poll(self, seconds: float) -> List[Record]:
        found = self.raw.poll(int(seconds * 1000))
        self.parts = {each.partition for each in self.raw.assignment()}
        return [record_of(each) for records in found.values() for each in records]

    def assignment(self) -> Set[int]:
        return self.parts

    def commit(self) -> None:
        self.raw.commit()

    def close(self) -> None:
        self.raw.close()


class Client:
    """kafka-python, on one cluster."""

    def __init__(self, cluster: Dict[str, Any]) -> None:
        self.cluster, self.version = cluster, cluster['version']
        self.has_times = self.version >= [0, 10, 1]
        self.config = config_of(cluster)
        if IS_LATER and self.version < [0, 10]:  # these cannot be asked for their versions
            self.config['api_version'] = tuple(self.version)
        if 'login' in cluster:
            self.config['ssl_cafile'] = cluster['login']['ca']

    def producer(
        self, codec: str, idempotent: bool = False, transactional_id: Optional[str] = None
    ) -> Any:
        config = {
            **self.config,
            'compression_type': None if codec == 'none' else codec,
            'linger_ms': 20,
            'acks': 'all',
            'retries': 20,
        }
        if IS_LATER:
            config['enable_idempotence'] = idempotent or transactional_id is not None
            if transactional_id is not None:
                config['transactional_id'] = transactional_id
        return _Producer(KafkaProducer(**config), transactional_id is not None)

    def _consumer(self, group: Optional[str], **more: Any) -> Any:
        if IS_LATER:
            more['bootstrap_timeout_ms'] = 5000  # it tries a wrong password that long
        return KafkaConsumer(
            **self.config,
            group_id=group,
            auto_offset_reset='earliest',
            enable_auto_commit=False,
            **more,
        )

    def consumer(self, group: str, topic: str, protocol: str) -> Any:
        raw = self._consumer(group, session_timeout_ms=6000, heartbeat_interval_ms=300)
        return _Consumer(raw, topic)

    def read(
        self, topic: str, partitions: List[int], committed: bool = False, start: int = 0
    ) -> List[Record]:
        more = {'isolation_level': 'read_committed'} if committed else {}
        consumer = self._consumer(None, **more)
        places = [TopicPartition(topic, each) for each in partitions]
        consumer.assign(places)
        ends = self._bounds(consumer, places)
        for place in places:
            consumer.seek(place, start)
        found: List[Record] = []
        last = time.monotonic()
        while any(consumer.position(place) < ends[place][1] for place in places):
            for records in consumer.poll(100).values():
                found += map(record_of, records)
                last = time.monotonic()
            if time.monotonic() > last + QUIET_SECONDS:
                break  # the comparison tells what is missing
        consumer.close()
        return sorted(found, key=lambda record: record[:2])

    def committed(self, group: str, topic: str, partitions: List[int]) -> Dict[int, Optional[int]]:
        consumer = self._consumer(group)
        found = {each: consumer.committed(TopicPartition(topic, each)) for each in partitions}
        consumer.close()
        return found

    @staticmethod
    def _bounds(consumer: Any, places: List[Any]) -> Dict[Any, Tuple[int, int]]:
        starts, ends = consumer.beginning_offsets(places), consumer.end_offsets(places)
        return {each: (starts[each], ends[each]) for each in places}

    def bounds(self, topic: str, partitions: List[int]) -> Dict[int, Tuple[int, int]]:
        consumer = self._consumer(None)
        found = self._bounds(consumer, [TopicPartition(topic, each) for each in partitions])
        consumer.close()
        return {place.partition: each for place, each in found.items()}

    def at_time(self, topic: str, partition: int, ms: int) -> Optional[int]:
        consumer, place = self._consumer(None), TopicPartition(topic, partition)
        found = consumer.offsets_for_times({place: ms})[place]
        consumer.close()
        return found.offset if found is not None else None

    def admin(self, checks: Checks, topic: str) -> None:
        raw = KafkaAdminClient(**self.config)
        try:
            (_admin_later if IS_LATER else _admin)(self, raw, checks, topic)
        finally:
            raw.close()


def _admin(client: Client, raw: Any, checks: Checks, topic: str) -> None:
    """Use the admin client of 2.0."""
    new = admins.NewTopic(topic, 2, 3, topic_configs={'retention.ms': '1234567'})
    raw.create_topics([new])
    checks.raises('a topic that is there', 'TopicAlreadyExists', lambda: raw.create_topics([new]))
    (found,) = raw.describe_topics([topic])
    checks.equal('partitions', [len(each['isr']) for each in found['partitions']], [3, 3])
    checks.equal('listed', topic in raw.list_topics(), True)
    checks.equal('brokers', len(raw.describe_cluster()['brokers']), 3)
    if client.version >= [1, 0]:
        raw.create_partitions({topic: admins.NewPartitions(4)})
        (found,) = raw.describe_topics([topic])
        checks.equal('partitions then', len(found['partitions']), 4)
    if client.version >= [0, 11]:
        resource = admins.ConfigResource(admins.ConfigResourceType.TOPIC, topic)

        def retention() -> Any:
            (answer,) = raw.describe_configs([resource])
            return {entry[0]: entry[1] for entry in answer.resources[0][4]}['retention.ms']

        checks.equal('a config', retention(), '1234567')
        changed = admins.ConfigResource(
            admins.ConfigResourceType.TOPIC, topic, configs={'retention.ms': '7654321'}
        )
        raw.alter_configs([changed])
        checks.equal('a config then', retention(), '7654321')
    name = 'group of ' + topic
    group_of_one(client, topic, name)
    checks.equal('listed groups', (name, 'consumer') in raw.list_consumer_groups(), True)
    (found,) = raw.describe_consumer_groups([name])
    checks.equal('a group', (found.group, found.state), (name, 'Empty'))
    if client.version >= [0, 10, 2]:
        offsets = raw.list_consumer_group_offsets(name)
        checks.equal('its offsets', offsets[TopicPartition(topic, 0)].offset, 10)
    if client.version >= [1, 1]:
        ((_, error),) = raw.delete_consumer_groups([name])
        checks.equal('deleting it', error.errno, 0)
        checks.equal('offsets then', client.committed(name, topic, [0]), {0: None})
    raw.delete_topics([topic])
    checks.equal('the topic is there', topic in raw.list_topics(), False)


def _admin_later(client: Client, raw: Any, checks: Checks, topic: str) -> None:
    """Use the admin client of 3.0."""
    new = {
        topic: {
            'num_partitions': 2,
            'replication_factor': 3,
            'configs': {'retention.ms': '1234567'},
        }
    }
    raw.create_topics(new)
    checks.raises('a topic that is there', 'TopicAlreadyExists', lambda: raw.create_topics(new))
    (found,) = raw.describe_topics([topic])
    checks.equal('partitions', [len(each['isr_nodes']) for each in found['partitions']], [3, 3])
    checks.equal('listed', topic in raw.list_topics(), True)
    if not [2, 8] <= client.version < [3, 7]:  # it takes DescribeCluster v0 for v1: KeyError
        checks.equal('brokers', len(raw.describe_cluster()['brokers']), 3)
    if client.version >= [1, 0]:
        raw.create_partitions({topic: 4})
        (found,) = raw.describe_topics([topic])
        checks.equal('partitions then', len(found['partitions']), 4)
    if client.version >= [0, 11]:
        _configs_later(raw, checks, topic)
    name = 'group of ' + topic
    group_of_one(client, topic, name)
    place = TopicPartition(topic, 0)
    if client.version >= [0, 11]:
        raw.delete_records({place: 4})
        checks.equal('bounds', client.bounds(topic, [0]), {0: (4, 10)})
    _groups_later(client, raw, checks, name, place)
    if client.version >= [2, 7]:
        _users_later(raw, checks, 'user of ' + topic)
    raw.delete_topics([topic])
    checks.equal('the topic is there', topic in raw.list_topics(), False)


def _configs_later(raw: Any, checks: Checks, topic: str) -> None:
    def retention() -> Any:
        resource = admins.ConfigResource(admins.ConfigResourceType.TOPIC, topic)
        (by_name,) = raw.describe_configs([resource]).values()
        return by_name[topic]['retention.ms']['value']

    checks.equal('a config', retention(), '1234567')
    changed = {'retention.ms': '7654321'}
    raw.alter_configs([admins.ConfigResource(admins.ConfigResourceType.TOPIC, topic, changed)])
    checks.equal('a config then', retention(), '7654321')


def _groups_later(client: Client, raw: Any, checks: Checks, name: str, place: Any) -> None:
    listed = [each['group_id'] for each in raw.list_groups()]
    checks.equal('listed groups', name in listed, True)
    found = raw.describe_groups([name])[name]
    checks.equal('a group', found['group_state'], 'Empty')
    if client.version >= [0, 10, 2]:
        offsets = raw.list_group_offsets([name])[name]
        checks.equal('its offsets', offsets[place].offset, 10)
    raw.alter_group_offsets(name, {place: OffsetAndMetadata(5, '', -1)})
    checks.equal('moved', client.committed(name, place.topic, [0]), {0: 5})
    if client.version >= [2, 4]:
        raw.delete_group_offsets(name, [place])
        checks.equal('offsets then', client.committed(name, place.topic, [0]), {0: None})
    if client.version >= [1, 1]:
        raw.delete_groups([name])
        listed = [each['group_id'] for each in raw.list_groups()]
        checks.equal('listed groups then', name in listed, False)


def _users_later(raw: Any, checks: Checks, user: str) -> None:
    mechanism = admins.ScramMechanism.SCRAM_SHA_256
    upsertion = admins.UserScramCredentialUpsertion(user, mechanism, b'secret', iterations=5000)
    # It asks any broker, and takes NOT_CONTROLLER, which has no text, for success.
    for _ in range(20):
        done = raw.alter_user_scram_credentials([upsertion])
        found = raw.describe_user_scram_credentials([user])
        if '5000' in repr(found[user]):
            break
    checks.equal('adding a user', done, {user: None})
    checks.equal('a user', '5000' in repr(found[user]), True)


if __name__ == '__main__':
    steps = dict(STEPS)
    if not IS_LATER:
        for name in ('idempotence', 'transactions'):
            del steps[name]
    serve(Steps(kafka.__version__, _client, steps))
