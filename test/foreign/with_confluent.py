"""The verbs of steps.py for confluent-kafka, which is librdkafka."""

from __future__ import annotations

import os
import sys
import time
from typing import Any, Dict, List, Optional, Set, Tuple

sys.path.append(os.path.dirname(os.path.abspath(__file__)))

import confluent_kafka
from checking import Checks, Record, Steps, serve
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka import admin as admins
from steps import STEPS, group_of_one

SECONDS = 20.0
ASK_SECONDS = 5.0


def _client(cluster: Dict[str, Any]) -> Client:
    return Client(cluster)


class _Producer:
    def __init__(self, config: Dict[str, Any]) -> None:
        self.failed: List[str] = []
        self.raw = Producer(config)
        if 'transactional.id' in config:
            self.raw.init_transactions(SECONDS)

    def _delivered(self, error: Any, _: Any) -> None:
        if error is not None:
            self.failed.append(str(error))

    def send(
        self,
        topic: str,
        value: Optional[bytes],
        key: Optional[bytes],
        partition: int,
        headers: Any = None,
        timestamp: int = 0,
    ) -> None:
        self.raw.produce(
            topic,
            value,
            key,
            partition,
            on_delivery=self._delivered,
            timestamp=timestamp,
            headers=headers or [],
        )
        self.raw.poll(0)

    def flush(self) -> None:
        left = self.raw.flush(SECONDS)
        Checks().equal('records that were not delivered', (left, self.failed), (0, []))

    def begin(self) -> None:
        self.raw.begin_transaction()

    def commit(self) -> None:
        self.raw.commit_transaction(SECONDS)

    def abort(self) -> None:
        self.raw.abort_transaction(SECONDS)

    def send_offsets(self, member: Any, offsets: Dict[Tuple[str, int], int]) -> None:
        places = [TopicPartition(*place, offset) for place, offset in offsets.items()]
        metadata = member.do(member.consumer.raw.consumer_group_metadata)
        self.raw.send_offsets_to_transaction(places, metadata, SECONDS)

    def close(self) -> None:
        self.raw.flush(SECONDS)


class _Consumer:
    def __init__(self, config: Dict[str, Any], topic: str) -> None:
        self.raw = Consumer(config)
        self.raw.subscribe([topic])
        self.parts: Set[int] = set()

    def poll(self, seconds: float) -> List[Record]:
        messages = self.raw.consume(100, seconds)
        self.parts = {each.partition for each in self.raw.assignment()}
        return [_record(each) for each in messages if _is_record(each)]

    def assignment(self) -> Set[int]:
        return self.parts

    def commit(self) -> None:
        self.raw.commit(asynchronous=False)

    def close(self) -> None:
        self.raw.close()


def _is_record(message: Any) -> bool:
    error = message.error()
    if error is None:
        return True
    if error.retriable() or error.code() == error._PARTITION_EOF:
        return False
    raise KafkaException(error)


def _record(message: Any) -> Record:
    kind, timestamp = message.timestamp()
    return Record(
        message.partition(),
        message.offset(),
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
        timestamp if kind else -1,
    )


class Client:
    """confluent-kafka, on one cluster."""

    def __init__(self, cluster: Dict[str, Any]) -> None:
        self.cluster, self.version = cluster, cluster['version']
        self.has_times = self.version >= [0, 10, 1]
        self.config = {'bootstrap.servers': cluster['bootstrap']}
        if self.version < [0, 10]:  # these cannot be asked for their versions
            fallback = {'0.8.2': '0.8.2.2', '0.9': '0.9.0.1'}[cluster['release']]
            self.config.update({'api.version.request': False, 'broker.version.fallback': fallback})

        login = cluster.get('login')
        if login:
            self.config.update(
                {
                    'security.protocol': 'SASL_SSL',
                    'sasl.mechanism': login['mechanism'],
                    'sasl.username': login['user'],
                    'sasl.password': login['password'],
                    'ssl.ca.location': login['ca'],
                    'log_level': 0,
                }
            )

    def producer(
        self, codec: str, idempotent: bool = False, transactional_id: Optional[str] = None
    ) -> Any:
        config = {**self.config, 'compression.type': codec, 'linger.ms': 20}
        if idempotent:
            config['enable.idempotence'] = True
        if transactional_id is not None:
            config['transactional.id'] = transactional_id
        return _Producer(config)

    def consumer(self, group: str, topic: str, protocol: str) -> Any:
        config = {
            **self.config,
            'group.id': group,
            'auto.offset.reset': 'earliest',
            'enable.auto.commit': False,
        }
        if protocol == 'classic':
            config.update({'session.timeout.ms': 6000, 'heartbeat.interval.ms': 300})
        else:
            config['group.protocol'] = protocol
        return _Consumer(config, topic)

    def _reader(self, **more: Any) -> Any:
        return Consumer({**self.config, 'group.id': 'reader', 'enable.auto.commit': False, **more})

    def read(
        self, topic: str, partitions: List[int], committed: bool = False, start: int = 0
    ) -> List[Record]:
        level = 'read_committed' if committed else 'read_uncommitted'
        consumer = self._reader(**{'enable.partition.eof': True, 'isolation.level': level})
        consumer.assign([TopicPartition(topic, each, start) for each in partitions])
        found, missing = [], set(partitions)
        while missing:
            message = consumer.poll(SECONDS)
            if message is None:
                break  # the comparison tells what is missing
            if message.error() is not None and not _is_record(message):
                missing.discard(message.partition())
            else:
                found.append(_record(message))
        consumer.close()
        return sorted(found, key=lambda record: record[:2])

    def committed(self, group: str, topic: str, partitions: List[int]) -> Dict[int, Optional[int]]:
        consumer = self._reader(**{'group.id': group})
        places = [TopicPartition(topic, each) for each in partitions]
        found = consumer.committed(places, SECONDS)
        consumer.close()
        return {each.partition: each.offset if each.offset >= 0 else None for each in found}

    def bounds(self, topic: str, partitions: List[int]) -> Dict[int, Tuple[int, int]]:
        consumer = self._reader()
        found = {
            each: consumer.get_watermark_offsets(TopicPartition(topic, each), ASK_SECONDS)
            for each in partitions
        }
        consumer.close()
        return found

    def at_time(self, topic: str, partition: int, ms: int) -> Optional[int]:
        consumer = self._reader()
        (found,) = consumer.offsets_for_times([TopicPartition(topic, partition, ms)], SECONDS)
        consumer.close()
        return found.offset if found.offset >= 0 else None

    def admin(self, checks: Checks, topic: str) -> None:
        _Admin(self, checks, topic).run()


def _result(futures: Dict[Any, Any]) -> Any:
    (future,) = futures.values()
    return future.result(SECONDS)


class _Admin:
    def __init__(self, client: Client, checks: Checks, topic: str) -> None:
        self.client, self.checks, self.topic = client, checks, topic
        self.version = client.version
        self.raw = admins.AdminClient(client.config)
        self.resource = admins.ConfigResource(admins.ConfigResource.Type.TOPIC, topic)

    def run(self) -> None:
        self.topics()
        if self.version >= [0, 11]:
            self.configs()
            self.records()
        self.groups()
        if self.version >= [2, 7]:
            self.users()
        self.raw_delete()

    def topics(self) -> None:
        new = admins.NewTopic(self.topic, 2, 3, config={'retention.ms': '1234567'})
        _result(self.raw.create_topics([new]))
        self.checks.raises(
            'a topic that is there',
            'already_exists',
            lambda: _result(self.raw.create_topics([new])),
        )
        found = self.raw.list_topics(timeout=SECONDS)
        shape = {
            n: (len(p.replicas), len(p.isrs))
            for n, p in found.topics[self.topic].partitions.items()
        }
        self.checks.equal('partitions', shape, {0: (3, 3), 1: (3, 3)})
        self.checks.equal('brokers', sorted(found.brokers), [0, 1, 2])
        if self.version >= [1, 0]:
            _result(self.raw.create_partitions([admins.NewPartitions(self.topic, 4)]))
            found = self.raw.list_topics(self.topic, SECONDS)
            self.checks.equal('partitions then', len(found.topics[self.topic].partitions), 4)
        described = self.raw.describe_topics(confluent_kafka.TopicCollection([self.topic]))
        self.checks.equal('name of a topic', _result(described).name, self.topic)
        cluster = self.raw.describe_cluster().result(SECONDS)
        self.checks.equal('nodes', sorted(node.id for node in cluster.nodes), [0, 1, 2])

    def _config(self, name: str) -> Any:
        return _result(self.raw.describe_configs([self.resource]))[name].value

    def configs(self) -> None:
        self.checks.equal('a config', self._config('retention.ms'), '1234567')
        if self.version >= [2, 3]:
            self.resource.add_incremental_config(
                admins.ConfigEntry(
                    'retention.ms', '7654321', incremental_operation=admins.AlterConfigOpType.SET
                )
            )
            _result(self.raw.incremental_alter_configs([self.resource]))
        else:
            self.resource.set_config('retention.ms', '7654321')
            _result(self.raw.alter_configs([self.resource]))
        self.checks.equal('a config then', self._config('retention.ms'), '7654321')

    def records(self) -> None:
        group_of_one(self.client, self.topic, 'first group of ' + self.topic)
        place = TopicPartition(self.topic, 0, 4)
        self.checks.equal(
            'first record that is left', _result(self.raw.delete_records([place])).low_watermark, 4
        )
        self.checks.equal('bounds', self.client.bounds(self.topic, [0]), {0: (4, 10)})
        found = _result(
            self.raw.list_offsets({TopicPartition(self.topic, 0): admins.OffsetSpec.latest()})
        )
        self.checks.equal('end of the log', found.offset, 10)

    def groups(self) -> None:
        name = 'group of ' + self.topic
        group_of_one(self.client, self.topic, name)
        listed = self.raw.list_consumer_groups().result(SECONDS)
        self.checks.equal('errors', listed.errors, [])
        self.checks.equal('listed', name in [each.group_id for each in listed.valid], True)
        found = _result(self.raw.describe_consumer_groups([name]))
        self.checks.equal('a group', (found.group_id, found.state.name), (name, 'EMPTY'))
        if self.version < [0, 11]:
            return
        asked = confluent_kafka.ConsumerGroupTopicPartitions(name, [TopicPartition(self.topic, 0)])
        found = _result(self.raw.list_consumer_group_offsets([asked]))
        end = found.topic_partitions[0].offset
        self.checks.equal('committed', end > 0, True)
        asked = confluent_kafka.ConsumerGroupTopicPartitions(
            name, [TopicPartition(self.topic, 0, 3)]
        )
        _result(self.raw.alter_consumer_group_offsets([asked]))
        self.checks.equal('moved', self.client.committed(name, self.topic, [0]), {0: 3})
        if self.version >= [1, 1]:
            _result(self.raw.delete_consumer_groups([name]))
            self.checks.equal('gone', self.client.committed(name, self.topic, [0]), {0: None})

    def users(self) -> None:
        mechanism = admins.ScramMechanism.SCRAM_SHA_256
        name = 'user of ' + self.topic
        credential = admins.UserScramCredentialUpsertion(
            name, admins.ScramCredentialInfo(mechanism, 5000), b'secret'
        )
        _result(self.raw.alter_user_scram_credentials([credential]))
        found = _result(self.raw.describe_user_scram_credentials([name]))
        shown = [(each.mechanism, each.iterations) for each in found.scram_credential_infos]
        self.checks.equal('credentials', shown, [(mechanism, 5000)])
        gone = admins.UserScramCredentialDeletion(name, mechanism)
        _result(self.raw.alter_user_scram_credentials([gone]))
        self.checks.raises(
            'a user that is gone',
            'RESOURCE_NOT_FOUND',
            lambda: _result(self.raw.describe_user_scram_credentials([name])),
        )

    def raw_delete(self) -> None:
        _result(self.raw.delete_topics([self.topic]))
        found = self.raw.list_topics(timeout=SECONDS).topics
        self.checks.equal('the topic is there', self.topic in found, False)


def share(client: Client, checks: Checks, topic: str) -> Any:
    """Read in a share group: accept records, release one, reject one."""
    producer = client.producer('none')
    for number in range(10):
        producer.send(topic, b'%d' % number, None, 0)
    producer.flush()
    name = 'share of ' + topic
    resource = admins.ConfigResource(admins.ConfigResource.Type.GROUP, name)
    operation = admins.AlterConfigOpType.SET
    resource.add_incremental_config(
        admins.ConfigEntry('share.auto.offset.reset', 'earliest', incremental_operation=operation)
    )
    admin = admins.AdminClient(client.config)
    _result(admin.incremental_alter_configs([resource]))
    kinds = confluent_kafka.AcknowledgeType
    config = {**client.config, 'group.id': name, 'share.acknowledgement.mode': 'explicit'}
    consumer = confluent_kafka.ShareConsumer(config)
    consumer.subscribe([topic])
    seen, errors = [], []
    end = time.monotonic() + SECONDS
    while len(seen) < 11 and time.monotonic() < end:
        for message in consumer.poll(1):
            seen.append(message.value())
            kind = {b'3': kinds.RELEASE, b'5': kinds.REJECT}.get(message.value(), kinds.ACCEPT)
            is_new = seen.count(message.value()) == 1
            consumer.acknowledge(message, kind if is_new else kinds.ACCEPT)
        errors += [each for each in consumer.commit_sync(SECONDS).values() if each is not None]
    checks.equal('errors of commits', errors, [])
    checks.records('records', seen, [*(b'%d' % number for number in range(10)), b'3'])
    checks.equal('records that are left', [each.value() for each in consumer.poll(1)], [])
    consumer.close()


if __name__ == '__main__':
    library = confluent_kafka.libversion()[0]
    serve(
        Steps(
            '%s (librdkafka %s)' % (confluent_kafka.__version__, library),
            _client,
            {**STEPS, 'share': share},
        )
    )
