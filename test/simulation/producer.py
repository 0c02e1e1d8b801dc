"""A producer on the virtual clock of a cluster in memory, with all of its real parts.

They are put together as KafkaProducer puts them together: accumulator, sender, state, driver, pool.

Owns the wiring and the sending of one record. What goes wrong is trouble.py's, what must hold
checks.py's.
"""

from __future__ import annotations

import contextlib
import random
import sys
from typing import NamedTuple

from kafka.errors import KafkaTimeoutError
from kafka.net.pool import Pool
from kafka.net.settings import NetSettings, parse_servers
from kafka.producer.future import future_of
from kafka.producer.produce_request import SenderSettings
from kafka.producer.record_accumulator import AccumulatorConfig, RecordAccumulator
from kafka.producer.sender import Sender
from kafka.producer.transaction_driver import TransactionDriver
from kafka.producer.transaction_state import TransactionState
from test.raising import PACKAGE, Interruption, Raiser
from test.simulation.loop import SimLoop

#: For so many seconds who sends a record that is alone waits for it in the same turn, in turns.
PATIENCE = (60.0, 0.0, 0.01)


#: What is raised into, and called from inside: the calls of programs, and no turn of the loop.
WITHIN = [PACKAGE + 'producer/', PACKAGE + 'partitioner/']
#: From 3.13 on there are no such points, see test/raising.py.
HAS_POINTS = sys.version_info < (3, 13)
MOST_POINTS = 60


class UntracedLoop(SimLoop):
    """A loop in whose turns nothing is raised by a Raiser around the call that waits for them.

    In earnest turns are run where no exception comes from outside (kafka/net/loop/loop.py).
    """

    def wait(self, done, timeout, begin=None):
        before = sys.gettrace()
        if not isinstance(getattr(before, '__self__', None), Raiser):
            return super().wait(done, timeout)
        sys.settrace(None)
        try:
            return super().wait(done, timeout)
        finally:
            sys.settrace(before)


class Inside(Raiser):
    """Makes a call at a point, as a finalizer does, in the middle of a change of an accumulator."""

    def __init__(self, at, accumulator, call):
        super().__init__(at, within=WITHIN)
        self._accumulator, self._call = accumulator, call

    def _meet(self, frame):
        if self.count >= self.at and self._accumulator.is_changing and self.raised_at is None:
            self.raised_at = frame.f_code.co_name
            self._call()
        self.count += 1


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

    Arguments: cluster: a MemoryCluster that runs; options; chance: of the jitter; loop: None for
    one in which all is one thread.
    """

    def __init__(self, cluster, options, chance, loop=None):
        self.cluster = cluster
        self.options = options
        self.loop = UntracedLoop(cluster) if loop is None else loop
        self._is_driven = loop is not None  # by the threads that wait
        settings = NetSettings(
            servers=parse_servers(cluster.bootstrap),
            request_timeout=options.request_timeout,
            retry_backoff=0.05,
            reconnect_backoff_max=0.5,
        )
        self.pool = Pool(self.loop, settings, random.Random(chance.random()))
        limits = AccumulatorConfig(
            batch_size=options.batch_size,
            linger=options.linger,
            buffer_memory=options.buffer_memory,
            delivery_timeout=options.delivery_timeout,
        )
        self.accumulator = RecordAccumulator(limits, self._wake, self._wait)
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
        self.loop.call_lazily(self.sender.look if self._is_driven else self._look)

    def _wait(self, done, timeout):
        return self.loop.wait(done, timeout, self.sender if self._is_driven else None)

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

    def interrupted(self, chance, call, *arguments):
        """Make a call in which an exception is raised at some point. Raises Interruption."""
        try:
            with Raiser(chance.randrange(MOST_POINTS), within=WITHIN):
                return call(*arguments)
        except Interruption:
            if chance.random() < 0.5:  # else the next call has to find out
                self.accumulator.settle()
            raise

    def send_with_another(self, chance, topic, partition, value, another):
        """Send a record, and another call at some point in the middle of that."""
        with Inside(chance.randrange(MOST_POINTS), self.accumulator, another):
            return self.send(topic, partition, value)

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

    def flush(self, timeout, chance=None):
        """Return whether everything has an outcome within some seconds.

        Arguments: chance: where an exception is raised in a call before; None: none is.
        """
        if chance is not None:
            with contextlib.suppress(Interruption):
                self.interrupted(chance, self.accumulator.begin_flush, self.loop.time())
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
