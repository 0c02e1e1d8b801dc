"""A program that copies: ExactlyOnce over the real KafkaConsumer and KafkaProducer.

Owns the wiring on the virtual clock, and what the program does about errors. What programs do when,
and what must come of it, is copy_runs.py's.
"""

from __future__ import annotations

from kafka import KafkaProducer
from kafka.errors import KafkaError
from kafka.exactly_once import ExactlyOnce
from kafka.net.client import NetworkClient
from kafka.producer import kafka as producers
from kafka.testing.settings.configs import topic_keys
from test.simulation.loop import SimLoop
from test.simulation.reader import SimConsumer

#: What a step may take beside what it was told, in seconds: see Copier.step().
SLACK = 1.0


class GivesUp(Exception):
    """What a transform raises."""


def create_topic(cluster, name, partitions=1):
    """Create a topic for records of a SimProducer: their time is not that of the virtual clock."""
    limit = {'message.timestamp.after.max.ms': str(2**63 - 1)}
    has_limit = limit.keys() <= topic_keys(cluster.state.release.name).keys()
    cluster.create_topic(name, partitions, configs=limit if has_limit else None)


class SimProducer(KafkaProducer):
    """KafkaProducer in a loop of a simulation."""

    _world = None  # the cluster, and the loops of all
    after_offsets = staticmethod(lambda: None)

    def _new_client(self, settings, *arguments):
        return NetworkClient(settings, loop=SimLoop(*self._world))

    def send_offsets_to_transaction(self, *arguments):
        super().send_offsets_to_transaction(*arguments)
        self.after_offsets()

    @classmethod
    def of(cls, cluster, loops, **options):
        """Return one on a cluster."""
        made = type(cls.__name__, (cls,), {'_world': (cluster, loops)})
        return made(bootstrap_servers=cluster.bootstrap, **options)


class Copier:
    """One program.

    Arguments: run; number: of the program, in the order they began; slot: which transactional id is
    its own; reads, writes: options of its clients; tries, pause_ms, poll_ms, most: of its loop.
    Attributes: is_busy: whether it is in the middle of a step; is_over: whether it can do nothing
    more; quiet_until: the time before which it does nothing.
    """

    def __init__(self, run, number, slot, reads, writes, tries, poll_ms, most):
        self.run = run
        self.number = number
        self.slot = slot
        self.is_busy = self.is_over = self.is_dead = False
        self.quiet_until = 0.0
        self.consumer = SimConsumer.of(run.cluster, run.loops, 'in', **reads)
        try:
            self.producer = SimProducer.of(run.cluster, run.loops, **writes)
        except BaseException:
            self._kill_consumer()
            raise
        self.producer.after_offsets = lambda: run.meanwhile(self, 0.25)
        self.once = ExactlyOnce(
            self.consumer,
            self.producer,
            max_tries=tries,
            retry_backoff_ms=50,
            retry_backoff_max_ms=500,
            poll_timeout_ms=poll_ms,
            max_records=most,
        )
        self.once.sleep = run.rest

    def __repr__(self):
        return '<Copier %d of %d>' % (self.number, self.slot)

    def loops(self):
        return self.consumer._engine.loop, self.producer._loop

    def freeze(self, is_frozen):
        """Let nothing happen in it, as in a process that was stopped, or go on."""
        for loop in self.loops():
            loop.is_frozen = is_frozen

    def step(self):
        """Do one step; return how many records were copied."""
        self.is_busy = True
        try:
            count = self.once.step(self.transform)
        except GivesUp:
            count = 0
        except KafkaError as error:
            self.run.note('%r: %s %s', self, type(error).__name__, error.fatal)
            self.is_over = self.once._cause is not None or error.fatal
            count = 0
        finally:
            self.is_busy = False
        if count:
            self.run.note('%r has copied %d', self, count)
        return count

    def transform(self, records):
        """Return what is to be written; take long at times, or fail."""
        self.run.note('%r got %s', self, [(each.partition, each.offset) for each in records])
        self.run.meanwhile(self, 0.25)
        for number, record in enumerate(records):
            if self.run.fails():
                raise GivesUp
            yield 'out', record.value, None, None, record.partition
            if number % 3 == 2:
                self.run.meanwhile(self, 0.05)

    def close(self):
        """End it as a program should."""
        self.run.note('%r closes', self)
        try:
            self.once.close()
        except KafkaError as error:
            self.run.note('%r: %s', self, type(error).__name__)
        self.consumer.close(timeout_ms=3000)
        self.producer.close(timeout=3)
        self.is_over = self.is_dead = True

    def die(self):
        """End it as kill -9 does."""
        self.run.note('%r dies', self)
        self.is_over = self.is_dead = True
        self._kill_consumer()
        self.producer._loop.die()
        self.producer._closed = True
        producers._open.discard(self.producer)

    def _kill_consumer(self):
        self.consumer._engine.loop.die()
        self.consumer._guard.is_closed = True


__all__ = ['Copier', 'SimProducer']
