"""A producer on the virtual clock of a cluster in memory, with all of its real parts.

They are put together as KafkaProducer puts them together: accumulator, sender, state, driver, pool.

Owns the wiring and the sending of one record. What goes wrong is trouble.py's, what must hold
checks.py's.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from kafka.errors import KafkaTimeoutError
from kafka.net.pool import Pool
from kafka.net.settings import NetSettings, parse_servers
from kafka.producer.future import future_of
from kafka.producer.produce_requests import SenderSettings
from kafka.producer.record_accumulator import Limits, RecordAccumulator
from kafka.producer.sender import Sender
from kafka.producer.transaction_driver import TransactionDriver
from kafka.producer.transaction_state import TransactionState
from test.simulation.loop import SimLoop

#: For so many seconds who sends a record that is alone waits for it in the same turn, in turns.
PATIENCE = (60.0, 0.0, 0.01)


class Options(NamedTuple):
    """What a producer is told; seconds and bytes."""

    transactional_id: object = None
    transaction_timeout: float = 60.0
    linger: float = 0.005
    batch_size: int = 300
    buffer_memory: int = 32 * 1024
    delivery_timeout: float = 120.0
    request_timeout: float = 3.0
    max_block: float = 60.0
    max_in_flight: int = 5


class SimulatedProducer:
    """One producer. Its calls let virtual time pass until they have what they wait for.

    Arguments: cluster: a MemoryCluster that runs; options; chance: of the jitter.
    """

    def __init__(self, cluster, options, chance):
        self.cluster = cluster
        self.options = options
        self.loop = SimLoop(cluster)
        settings = NetSettings(
            servers=parse_servers(cluster.bootstrap),
            request_timeout=options.request_timeout,
            retry_backoff=0.05,
            reconnect_backoff_max=0.5,
        )
        self.pool = Pool(self.loop, settings, random.Random(chance.random()))
        limits = Limits(
            batch_size=options.batch_size,
            linger=options.linger,
            buffer_memory=options.buffer_memory,
            delivery_timeout=options.delivery_timeout,
        )
        self.accumulator = RecordAccumulator(limits, self._wake, self.loop.wait)
        self.state = TransactionState(
            options.transactional_id, int(options.transaction_timeout * 1000)
        )
        self.sender = Sender(
            self.loop,
            self.pool,
            self.accumulator,
            self.state,
            SenderSettings(
                acks=-1,
                request_timeout=options.request_timeout,
                delivery_timeout=options.delivery_timeout,
                max_in_flight=options.max_in_flight,
                batch_size=options.batch_size,
                retry_backoff=0.05,
            ),
            chance=random.Random(chance.random()),
        )
        self.driver = TransactionDriver(
            self.loop,
            self.pool,
            self.state,
            self.accumulator,
            self.sender.poke,
            max_block=options.max_block,
            request_timeout=options.request_timeout,
            retry_backoff=0.05,
            chance=random.Random(chance.random()),
        )
        self._looks = 0
        self.sender.start()

    def _wake(self):
        self.loop.call_soon(self._look)

    def _look(self):
        """Look as a caller does who waits, and gets the turn: what is alone goes the short way."""
        self.loop.call_soon(self.sender.look)
        self._looks += 1
        self.sender.begin(self.loop.time() + PATIENCE[self._looks % len(PATIENCE)])

    def bootstrap(self, topic):
        """Find the cluster and the partitions of a topic."""
        self.loop.run(self.pool.bootstrap(60.0), 70.0)
        self.loop.run(self.pool.wait_for_topic(topic, 60.0), 70.0)
        partitions = sorted(self.pool.cluster.partitions_for_topic(topic))
        self.accumulator.update(self.accumulator.topic(topic), partitions, partitions)

    def send(self, topic, partition, value):
        """Put a record into a batch; return its future. Raises KafkaTimeoutError without memory."""
        self.state.check_send()
        queue, ticket = self.accumulator.topic(topic), None
        while True:
            found = self.accumulator.append(
                queue, partition, None, value, (), None, self.loop.wall(), self.loop.time(), ticket
            )
            if isinstance(found, tuple):
                return future_of(*found, -1, len(value), -1)
            ticket = found
            if not self.loop.wait(lambda ticket=ticket: ticket.granted, self.options.max_block):
                self.accumulator.leave(ticket)
                raise KafkaTimeoutError('no memory')

    def flush(self, timeout):
        """Return whether everything has an outcome within some seconds."""
        batches = self.accumulator.begin_flush(self.loop.time())
        return self.loop.wait(lambda: all(batch.is_done for batch in batches), timeout)

    def wait_for_all(self):
        """Let time pass until everything has an outcome."""
        self.loop.wait(self.accumulator.is_empty, self.options.delivery_timeout)

    def rest(self, seconds):
        """Let time pass."""
        self.loop.wait(lambda: False, seconds)

    def close(self):
        """End it, whatever is under way."""
        self.driver.close()
        self.pool.close()
        self.loop.close()
