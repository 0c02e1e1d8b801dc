"""One run of threads that share a producer, and are hit by exceptions: what a seed makes of it.

Owns the program of such a thread, which waits for each record that it sends, and what must hold:
whatever is raised in a thread, at whatever point, all of them go on, every acknowledged record is
stored once and in order, and no memory is kept. Turns are divided between threads as in earnest
(driven.py), so a loop that lets itself be torn is found.
"""

from __future__ import annotations

import random
import threading
from contextlib import closing

from kafka.testing import MemoryCluster
from test.raising import PACKAGE, Interruption, Raiser
from test.simulation.checks import (
    Wrong,
    check_partition,
    check_producer,
    committed,
    hearing,
    repeatable,
)
from test.simulation.driven import DrivenLoop
from test.simulation.producer import Options, SimulatedProducer

TOPIC = 't'
RELEASES = ['0.11', '2.8', '4.4']
THREADS = 3
SENDS = 12
#: This part of the calls is hit, somewhere in the first so many points.
HIT = 0.3
MOST_POINTS = 300
#: What is raised into: all that a program's thread may run of a producer.
WITHIN = [PACKAGE + name for name in ('future.py', 'net/', 'producer/', 'protocol/', 'record/')]
#: Of the virtual clock, for one record; of the machine's, for a whole thread.
PATIENCE_SECONDS = 60.0
HANGS_SECONDS = 60.0


class Worker(threading.Thread):
    """Sends records to a partition of its own, and waits for each.

    Attributes: acknowledged: values, in their order; hits: how many calls were ended; error: what
    was raised but Interruption, None if nothing was.
    """

    def __init__(self, producer, partition, chance):
        super().__init__(name='worker %d' % partition, daemon=True)
        self.acknowledged = []
        self.hits = 0
        self.error = None
        self._producer, self._partition, self._chance = producer, partition, chance

    def run(self):
        try:
            for number in range(SENDS):
                self._send(b'%03d' % number)
        except Exception as error:
            self.error = error

    def _send(self, value):
        is_hit = self._chance.random() < HIT
        raiser = Raiser(self._chance.randrange(MOST_POINTS) if is_hit else None, within=WITHIN)
        try:
            if is_hit:
                with raiser:
                    self._call(value)
            else:
                self._call(value)
        except Interruption:
            self.hits += 1
        else:
            self.acknowledged.append(value)

    def _call(self, value):
        self._producer.send(TOPIC, self._partition, value).get(PATIENCE_SECONDS)


class WorkerRun:
    """One run. Attributes: hits: how many calls of threads were ended; history: is empty."""

    history = ''  # the threads are real

    def __init__(self, seed):
        self.seed = seed
        self.chance = random.Random('workers %d' % seed)
        self.release = self.chance.choice(RELEASES)
        self.hits = 0

    def __repr__(self):
        return '<WorkerRun %d on %s>' % (self.seed, self.release)

    def go(self):
        """Do it all. Raises Wrong."""
        with hearing(self.seed), MemoryCluster(
            brokers=2, version=self.release, seed=self.seed, topics={TOPIC: THREADS}
        ) as cluster:
            options = Options(
                linger=self.chance.choice([0.0, 0.005]),
                buffer_memory=self.chance.choice([2000, 32 * 1024]),
            )
            with closing(
                SimulatedProducer(cluster, options, self.chance, DrivenLoop(cluster))
            ) as producer:
                acknowledged = self._send(producer)
            for partition in cluster.state.topics[TOPIC].partitions:
                seen = committed(partition.log, may_hang=False)
                check_partition(partition.index, seen, acknowledged[partition.index], ())

    def _send(self, producer):
        """Let the threads send; return by partition the values that were acknowledged."""
        producer.bootstrap(TOPIC)
        workers = [
            Worker(producer, partition, random.Random('%d of %r' % (partition, self)))
            for partition in range(THREADS)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(HANGS_SECONDS)
            self.hits += worker.hits
        for worker in workers:
            self._check(worker)
        if not producer.flush(PATIENCE_SECONDS):
            raise Wrong('futures are not resolved: %r' % producer.accumulator)
        # What an exception has left half done is repaired in the next turn, which may be to come.
        producer.loop.wait(producer.accumulator.is_empty, PATIENCE_SECONDS)
        check_producer(producer)
        return [worker.acknowledged for worker in workers]

    def _check(self, worker):
        """Raise Wrong unless a thread could send to the end."""
        if worker.is_alive():
            raise Wrong('%s hangs after %r' % (worker.name, worker.acknowledged))
        if worker.error is not None:
            raise Wrong(
                '%s cannot go on after %d hits: %r' % (worker.name, worker.hits, worker.error)
            ) from worker.error


def run_workers(seed):
    """Make one run. Raises Wrong, or whatever else goes wrong, with the way to repeat it."""
    made = WorkerRun(seed)
    with repeatable(made, '--workers --seed %d' % seed):
        made.go()
    return made
