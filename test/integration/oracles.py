"""Clients that nobody here wrote, as judges: Kafka's own console programs, and confluent-kafka.

Each writes (key, value) pairs to partition 0 with a codec, and reads a topic. The console programs
are the release's own; 4.4.0 came without them, so a page of Java on its kafka-clients stands in.
Where brokers are embedded, and no release is at hand, confluent-kafka does what they do.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

JAVA_CONSOLE = Path(__file__).with_name('Console.java')


class Console:
    """The release's ConsoleProducer and ConsoleConsumer. Keys and values are lines of text."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.version = cluster.release.version
        self.producer = cluster.release.main_class(
            'org.apache.kafka.tools.ConsoleProducer',
            'kafka.tools.ConsoleProducer',
            'kafka.producer.ConsoleProducer',
        )
        self.consumer = cluster.release.main_class(
            'org.apache.kafka.tools.consumer.ConsoleConsumer',
            'kafka.tools.ConsoleConsumer',
            'kafka.consumer.ConsoleConsumer',
        )

    def write(self, topic, codec, pairs):
        """Write the pairs; they go to partitions by key."""
        lines = b''.join(b'%s\t%s\n' % pair for pair in pairs)
        if self.producer is None:
            self._own('write', topic, codec, lines)
            return
        arguments = ['--topic', topic, '--property', 'parse.key=true']
        arguments += ['--request-required-acks', '1']  # default 0, lost when the program ends early
        if self.version < (2, 5):
            arguments += ['--broker-list', self.cluster.bootstrap]
        else:
            arguments += ['--bootstrap-server', self.cluster.bootstrap]
        if self.version >= (0, 8, 2):
            arguments += ['--compression-codec', codec]
        elif codec == 'gzip':
            arguments += ['--compress']
        done = self.cluster.run_tool(self.producer, *arguments, stdin=lines)
        assert done.returncode == 0, done
        assert b'ERROR' not in done.stdout + done.stderr, done

    def read(self, topic, count):
        """Return ``count`` pairs of all partitions, sorted."""
        if self.consumer is None:
            return self._pairs(self._own('read', topic, str(count), b'').stdout)
        arguments = ['--topic', topic, '--from-beginning', '--max-messages', str(count)]
        arguments += ['--property', 'print.key=true']
        if self.version < (0, 9):
            arguments += ['--zookeeper', self.cluster.zookeeper]
        else:
            arguments += ['--bootstrap-server', self.cluster.bootstrap]
        if (0, 9) <= self.version < (0, 10, 1):
            arguments += ['--new-consumer']
        done = self.cluster.run_tool(self.consumer, *arguments)
        assert done.returncode == 0, done
        return self._pairs(done.stdout)

    def _own(self, verb, topic, argument, lines):
        done = self.cluster.run_java(
            '-cp',
            self.cluster.class_path,
            str(JAVA_CONSOLE),
            verb,
            self.cluster.bootstrap,
            topic,
            argument,
            stdin=lines,
        )
        assert done.returncode == 0, done
        return done

    @staticmethod
    def _pairs(output):
        # Lines without a tab are advice, as that an option will go.
        return sorted(tuple(line.split(b'\t')) for line in output.splitlines() if b'\t' in line)


class ConsoleStandIn:
    """What the console programs do, by confluent-kafka."""

    def __init__(self, cluster):
        self.confluent = Confluent(cluster)

    def write(self, topic, codec, pairs):
        """Write the pairs; they go to partitions by key."""
        self.confluent.write_by_key(topic, pairs, codec)

    def read(self, topic, count):
        """Return ``count`` pairs of all partitions, sorted."""
        return sorted(self.confluent.read_all(topic, count))


def console_of(cluster):
    """Return the console programs for a cluster, or what stands in for them."""
    return (ConsoleStandIn if cluster.is_embedded else Console)(cluster)


class Confluent:
    """confluent-kafka, which is librdkafka."""

    def __init__(self, cluster):
        self.config = {'bootstrap.servers': cluster.bootstrap, 'log_level': 0}
        if cluster.release.version < (0, 10):  # it cannot ask these for their versions
            own = '.'.join(map(str, cluster.release.version[:3]))
            self.config.update({'api.version.request': False, 'broker.version.fallback': own})

    def write(self, topic, codec, pairs, partition=0):
        """Write the pairs to one partition, in batches as large as they come."""
        from confluent_kafka import Producer  # late: one of two judges, and heavy

        failed = []
        producer = Producer({**self.config, 'compression.type': codec, 'linger.ms': 20})
        for key, value in pairs:
            producer.produce(
                topic,
                value,
                key,
                partition,
                on_delivery=lambda error, _: error and failed.append(error),
            )
        assert (producer.flush(30), failed) == (0, [])

    def transact(self, topic, name, transactions):
        """Write values to partition 0 in transactions, (values, 'commit' or 'abort') each."""
        from confluent_kafka import Producer  # late, as above

        producer = Producer({**self.config, 'transactional.id': name})
        producer.init_transactions(30)
        for values, end in transactions:
            producer.begin_transaction()
            for value in values:
                producer.produce(topic, value, partition=0)
            assert producer.flush(30) == 0
            (producer.commit_transaction if end == 'commit' else producer.abort_transaction)(30)

    @contextlib.contextmanager
    def member(self, group, topic, seconds=30):
        """Be a member of a group that reads a topic, as long as the block lasts."""
        from confluent_kafka import Consumer  # late, as above

        consumer = Consumer({**self.config, 'group.id': group, 'enable.auto.commit': False})
        consumer.subscribe([topic])
        deadline = time.monotonic() + seconds
        while not consumer.assignment() and time.monotonic() < deadline:
            consumer.poll(0.2)
        assert consumer.assignment()
        try:
            yield
        finally:
            consumer.close()

    def write_by_key(self, topic, pairs, codec='none'):
        """Write the pairs, each to the partition that the Java client chooses for its key."""
        from confluent_kafka import Producer  # late, as above

        producer = Producer(
            {**self.config, 'partitioner': 'murmur2_random', 'compression.type': codec}
        )
        for key, value in pairs:
            producer.produce(topic, value, key)
        assert producer.flush(30) == 0

    def read(self, topic, count, seconds=30, partition=0):
        """Return ``count`` pairs of one partition in their order."""
        return self._read(topic, count, seconds, [partition])

    def read_all(self, topic, count, seconds=30):
        """Return ``count`` pairs of all partitions."""
        return self._read(topic, count, seconds, None)

    def _read(self, topic, count, seconds, partitions):
        from confluent_kafka import Consumer, TopicPartition  # late, as above

        found = []
        consumer = Consumer({**self.config, 'group.id': 'judge', 'enable.auto.commit': False})
        if partitions is None:
            partitions = consumer.list_topics(topic, seconds).topics[topic].partitions
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        deadline = time.monotonic() + seconds
        while len(found) < count and time.monotonic() < deadline:
            message = consumer.poll(0.5)
            if message is not None:
                assert message.error() is None, message.error()
                found.append((message.key(), message.value()))
        consumer.close()
        return found
