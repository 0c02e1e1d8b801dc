"""What other clients put into topics and groups, and what they see there after a program ran.

Owns: whole topics (every partition, by confluent-kafka) and committed offsets (ZooKeeper's own
shell where those of 0.8 live in ZooKeeper, confluent-kafka where there is none; of an embedded
broker, what it says itself). Does not own:
codecs and formats (oracles.py).
"""

from __future__ import annotations

import re
import time

from test.integration.oracles import Confluent

SECONDS = 20


class Topics:
    """Fills topics and reads them, by confluent-kafka."""

    def __init__(self, cluster):
        self.config = Confluent(cluster).config

    def fill(self, contents):
        """Write {topic: {partition: [value, or (key, value)]}}."""
        from confluent_kafka import Producer  # late: only runs on brokers need it

        failed = []
        producer = Producer({**self.config, 'linger.ms': 5})
        for topic, partitions in contents.items():
            for partition, messages in partitions.items():
                for key, value in map(pair, messages):
                    producer.produce(
                        topic,
                        value,
                        key,
                        partition,
                        on_delivery=lambda error, _: error and failed.append(error),
                    )
        assert (producer.flush(SECONDS), failed) == (0, [])

    def contents(self, topic, at_least=0):
        """Return {partition: [(key, value)]}; waits for so many messages, reads all there are."""
        from confluent_kafka import Consumer, TopicPartition  # late, as above

        found = {}
        consumer = Consumer({**self.config, 'group.id': 'judge', 'enable.auto.commit': False})
        try:
            partitions = consumer.list_topics(topic, SECONDS).topics[topic].partitions
            deadline = time.monotonic() + SECONDS
            while True:
                ends = {p: self._end(consumer, topic, p) for p in partitions}
                if sum(ends.values()) >= at_least or time.monotonic() > deadline:
                    break
                time.sleep(0.1)
            found = {p: [] for p in partitions}
            consumer.assign([TopicPartition(topic, p, 0) for p in partitions])
            while sum(map(len, found.values())) < sum(ends.values()):
                message = consumer.poll(0.2)
                if message is not None:
                    assert message.error() is None, message.error()
                    found[message.partition()].append((message.key(), message.value()))
                assert time.monotonic() < deadline, 'read %r, ends %r' % (found, ends)
        finally:
            consumer.close()
        return found

    @staticmethod
    def _end(consumer, topic, partition):
        from confluent_kafka import TopicPartition  # late, as above

        return consumer.get_watermark_offsets(TopicPartition(topic, partition), SECONDS)[1]


def pair(message):
    """Return (key, value) of a message that may be written as its value alone."""
    return message if isinstance(message, tuple) else (None, message)


class BrokerOffsets:
    """Offsets that the group's coordinator keeps, by confluent-kafka."""

    def __init__(self, cluster):
        self.config = {**Confluent(cluster).config, 'enable.auto.commit': False}

    def store(self, group, topic, offsets):
        """Commit {partition: offset} for a group."""
        places = self._places(topic, offsets)
        for place in self._ask(group, 'commit', offsets=places, asynchronous=False):
            assert place.error is None, place.error

    def stored(self, group, topic, partitions):
        """Return {partition: offset}; partitions without a committed offset are left out."""
        places = self._places(topic, dict.fromkeys(partitions, 0))
        found = self._ask(group, 'committed', places, SECONDS)
        return {place.partition: place.offset for place in found if place.offset >= 0}

    @staticmethod
    def _places(topic, offsets):
        from confluent_kafka import TopicPartition  # late, as above

        return [TopicPartition(topic, p, offset) for p, offset in offsets.items()]

    def _ask(self, group, verb, *args, **options):
        from confluent_kafka import Consumer  # late, as above

        consumer = Consumer({**self.config, 'group.id': group})
        try:
            return getattr(consumer, verb)(*args, **options)
        finally:
            consumer.close()


class ZooKeeperOffsets:
    """Offsets in ZooKeeper, where OffsetCommit v0 puts them, by ZooKeeper's own shell."""

    def __init__(self, cluster):
        self.cluster = cluster

    def store(self, group, topic, offsets):
        """Write {partition: offset} for a group that has none of this topic yet."""
        folders = ['/consumers', '/consumers/' + group]
        folders += [folders[-1] + '/offsets', '%s/offsets/%s' % (folders[-1], topic)]
        lines = ['create %s x' % folder for folder in folders]
        lines += ['create %s/%d %d' % (folders[-1], p, o) for p, o in offsets.items()]
        self._shell(lines)
        assert self.stored(group, topic, offsets) == offsets

    def stored(self, group, topic, partitions):
        """Return {partition: offset}; partitions without a stored offset are left out."""
        folder = '/consumers/%s/offsets/%s' % (group, topic)
        wanted = ['get %s/%d' % (folder, partition) for partition in sorted(partitions)]
        said = self._shell(['ls ' + folder, *wanted])
        listed = re.search(r'(?m)^\[([\d, ]*)\]$', said)
        there = {int(child) for child in re.findall(r'\d+', listed.group(1))} if listed else set()
        # One line for each that is there; what else is said of a node goes to stderr.
        offsets = map(int, re.findall(r'(?m)^\d+$', said))
        return dict(zip(sorted(there.intersection(partitions)), offsets))

    def _shell(self, lines):
        done = self.cluster.run_tool(
            'org.apache.zookeeper.ZooKeeperMain',
            '-server',
            self.cluster.zookeeper,
            stdin='\n'.join([*lines, 'quit', '']).encode(),
        )
        return done.stdout.decode()


class EmbeddedZooKeeperOffsets:
    """Offsets where OffsetCommit v0 puts them in an embedded broker, which has no ZooKeeper."""

    def __init__(self, cluster):
        self.cluster = cluster

    def store(self, group, topic, offsets):
        """Write {partition: offset} for a group."""
        self.cluster.store_in_zookeeper(group, topic, offsets)

    def stored(self, group, topic, partitions):
        """Return {partition: offset}; partitions without a stored offset are left out."""
        return self.cluster.zookeeper_offsets(group, topic, list(partitions))


def offsets_of(cluster):
    """Return the judge of what OffsetCommit v0 stores on a cluster."""
    if cluster.release.has_zookeeper and cluster.is_embedded:
        return EmbeddedZooKeeperOffsets(cluster)
    return ZooKeeperOffsets(cluster) if cluster.release.has_zookeeper else BrokerOffsets(cluster)
