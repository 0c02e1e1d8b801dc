"""A bounded reader on an embedded cluster in memory, whose logs are written directly."""

from __future__ import annotations

from kafka.consumer.bounded.reader import BoundedReader
from kafka.net.client import NetworkClient
from kafka.record.default_records import encode_batch
from kafka.structs import TopicPartition
from kafka.testing.logs.partition_log import Batch
from kafka.testing.memory import MemoryCluster
from test.simulation.loop import SimLoop

NOW = 1_600_000_000_000
T0 = TopicPartition('t', 0)


def write(log, *values, at=NOW, damage=None, **fields):
    """Write a batch; values are bytes or (key, value, headers). Return its first offset."""
    records = [
        (at + number, *value) if isinstance(value, tuple) else (at + number, None, value, ())
        for number, value in enumerate(values)
    ]
    data = encode_batch(records, **fields)
    if damage is not None:
        data = damage(data)
    batch = Batch(
        0,
        len(values) - 1,
        at + len(values) - 1,
        2,
        data,
        fields.get('producer_id', -1),
        fields.get('producer_epoch', -1),
        fields.get('base_sequence', -1),
        fields.get('transactional', False),
        fields.get('control', False),
    )
    if batch.is_control:
        return log.end_transaction(batch, 0, values[0][0][3] == 1)
    return log.append(batch, 0)


class Stage:
    """A cluster with logs to write to, and readers of it."""

    def __init__(self, version='4.4', topics=None, **settings):
        self.cluster = MemoryCluster(version=version, seed=3, topics=topics or {'t': 1}, **settings)
        self.cluster.start()
        self.readers = []

    def reader(self, what='t', *bounds, **options):
        """Return a reader that lives on the clock of the cluster."""
        cluster = self.cluster

        class SimReader(BoundedReader):
            @staticmethod
            def _new_client(settings, name):
                return NetworkClient(settings, loop=SimLoop(cluster))

        options.setdefault('bootstrap_servers', cluster.bootstrap)
        self.readers.append(SimReader(what, *bounds, **options))
        return self.readers[-1]

    def log(self, topic='t', partition=0):
        return self.cluster.state.topics[topic].partitions[partition].log

    def write(self, *values, topic='t', partition=0, **fields):
        return write(self.log(topic, partition), *values, **fields)

    def end(self, producer_id, commit, **where):
        """Write the marker that ends a transaction."""
        key = b'\x00\x00\x00' + bytes([commit])
        value = (key, b'\x00\x00\x00\x00\x00\x00', ())
        return self.write(
            value,
            producer_id=producer_id,
            producer_epoch=0,
            transactional=True,
            control=True,
            **where,
        )

    def close(self):
        for each in self.readers:
            each.close()
        self.cluster.stop()


def values(records):
    return [each.value for each in records]


def offsets(records):
    return [each.offset for each in records]


def numbered(count, size=10, start=0):
    return [b'%0*d' % (size, start + number) for number in range(count)]


def flip_last(data):
    """Damage the last byte of a batch."""
    return data[:-1] + bytes([data[-1] ^ 1])
