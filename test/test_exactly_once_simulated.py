"""ExactlyOnce on the parts of the real producer and on embedded brokers, with trouble by seeds.

A program that dies begins anew from the offsets that its group has committed. At the end each
record that was to be read has been written once, in the order of its partition.
"""

from __future__ import annotations

import random

import pytest

from kafka.coordinator.commits.manager import OffsetCommits
from kafka.errors import KafkaError, KafkaTimeoutError
from kafka.exactly_once import ExactlyOnce
from kafka.structs import ConsumerGroupMetadata, TopicPartition
from kafka.testing import MemoryCluster
from test.scripted_clients import Record
from test.simulation.checks import committed
from test.simulation.producer import Options, SimulatedProducer
from test.simulation.trouble import Trouble

PARTITIONS, RECORDS = 2, 30
RELEASES = ['0.11.0.3', '2.8.2', '3.9.2', '4.4.0']


class Reader:
    """The consumer: what it reads stands in memory, what its group has committed on the brokers."""

    config = {'group_id': 'g', 'enable_auto_commit': False, 'isolation_level': 'read_committed'}

    def __init__(self, chance):
        self.chance = chance
        self.positions = {}

    def start(self, offsets):
        self.positions = {
            place: 0 if found is None else found.offset for place, found in offsets.items()
        }

    def poll(self, timeout_ms):
        found = {}
        for place, position in self.positions.items():
            end = min(RECORDS, position + self.chance.randrange(4))
            if end > position:
                found[place] = [
                    Record('in', place.partition, n, b'%d-%03d' % (place.partition, n), None, -1)
                    for n in range(position, end)
                ]
                self.positions[place] = end
        return found

    def position(self, partition):
        return self.positions[partition]

    def assignment(self):
        return set(self.positions)

    def seek(self, partition, offset):
        self.positions[partition] = offset

    def subscription(self):
        return None

    def group_metadata(self):
        return ConsumerGroupMetadata('g')

    @property
    def is_done(self):
        return all(position >= RECORDS for position in self.positions.values())


class Writer:
    """The face of a simulated producer."""

    config = {'transactional_id': 'pay'}

    def __init__(self, simulated):
        driver = simulated.driver
        self.simulated = simulated
        self.init_transactions = driver.init_transactions
        self.begin_transaction = driver.begin_transaction
        self.send_offsets_to_transaction = driver.send_offsets_to_transaction
        self.commit_transaction = driver.commit_transaction
        self.abort_transaction = driver.abort_transaction

    def send(self, topic, value, key=None, headers=None, partition=None, timestamp_ms=None):
        self.simulated.send(topic, partition, value)


class Program:
    """One life of a program."""

    def __init__(self, cluster, chance, max_block):
        options = Options(
            transactional_id='pay',
            transaction_timeout=chance.choice([5.0, 60.0]),
            delivery_timeout=chance.choice([1.5, 30.0]),
            max_block=max_block,
        )
        self.writer = SimulatedProducer(cluster, options, chance)
        self.writer.bootstrap('out')
        self.offsets = OffsetCommits(
            self.writer.loop, self.writer.pool, 'g', 3.0, 0.05, 0.5, random.Random(chance.random())
        )
        self.reader = Reader(chance)
        self.chance = chance
        self.once = ExactlyOnce(self.reader, Writer(self.writer), max_tries=3)
        self.once.sleep = self.writer.rest

    def live(self):
        """Go on until all is read; return whether that came to its end."""
        try:
            self.writer.driver.init_transactions()  # whom it replaces changes nothing any more
            places = [TopicPartition('in', number) for number in range(PARTITIONS)]
            found = self.writer.loop.run(self.offsets.fetch(places, 100.0), 200)
            self.reader.start(found)
            while not self.reader.is_done:
                try:
                    self.once.step(self.transform)
                except (KafkaTimeoutError, ZeroDivisionError):
                    if self.chance.random() < 0.5:
                        return False  # it gives up there and then
            self.once.close()
        except KafkaError:
            return False
        return True

    def transform(self, records):
        for record in records:
            if self.chance.random() < 0.02:
                raise ZeroDivisionError
            yield 'out', record.value, None, None, record.partition

    def end(self):
        self.writer.close()


@pytest.mark.parametrize('seed', range(16))
def test_each_record_is_written_once_whatever_goes_wrong(seed):
    chance = random.Random('exactly once %d' % seed)
    release = RELEASES[seed % len(RELEASES)]
    with MemoryCluster(
        brokers=3, version=release, seed=seed, topics={'in': PARTITIONS, 'out': PARTITIONS}
    ) as cluster:
        trouble = Trouble(cluster, chance, 'out', ['pay', 'g'], chance.choice([0.0, 0.3, 0.8]))
        trouble.begin(60.0)
        lives = 0
        while True:
            lives += 1
            assert lives < 50
            program = Program(cluster, chance, chance.choice([2.0, 60.0]))
            is_over = program.live()
            program.end()
            if is_over:
                break
        trouble.end()
        for number in range(PARTITIONS):
            log = cluster.state.topics['out'].partitions[number].log
            seen = committed(log, may_hang=False)
            assert seen == [b'%d-%03d' % (number, n) for n in range(RECORDS)]
