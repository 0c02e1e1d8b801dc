"""A program that reads in a group: the real KafkaConsumer on the virtual clock, and its listener.

Owns the wiring, and the telling of the ledger of whatever happens to the program. What programs do
when is group_runs.py's, what must hold ledger.py's.
"""

from __future__ import annotations

import functools
import weakref

from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka.errors import (
    CommitFailedError,
    FencedInstanceIdError,
    KafkaError,
    KafkaTimeoutError,
    RebalanceInProgressError,
    UnknownTopicOrPartitionError,
    UnreleasedInstanceIdError,
)
from kafka.net.client import NetworkClient
from test.simulation.interruption import Interrupting
from test.simulation.loop import SimLoop

#: So much longer than it was told a call may take, in seconds.
SLACK = 0.15
#: After so many seconds without a poll a rebalance does not wait for it: the shortest session, and
#: the shortest max_poll_interval_ms.
LATE = 6.0
#: No batch is larger; one of them comes whatever the budget is, in older releases one of each
#: partition.
BATCH_BYTES = 500
#: How commits may fail: also while a topic is deleted.
_COMMITS_FAIL = (
    CommitFailedError,
    RebalanceInProgressError,
    KafkaTimeoutError,
    UnknownTopicOrPartitionError,
)


def _count_and_do(taken, do, steps, step):
    taken.append(step.kind)
    do(steps, step)


class SimConsumer(KafkaConsumer):
    """KafkaConsumer in a loop of a simulation."""

    _world = None  # of the run: cluster, and the loops of all

    def _new_client(self, settings, *arguments):
        return NetworkClient(settings, loop=SimLoop(*self._world))

    def _open_modern(self, configs):
        super()._open_modern(configs)
        self._taken, steps = [], self._modern._steps  # no cycle: consumers are collected here, too
        steps._do = functools.partial(
            _count_and_do, self._taken, type(steps)._do, weakref.proxy(steps)
        )

    @property
    def steps(self):
        """How many steps of rebalances it has taken."""
        return len(self._taken)

    @classmethod
    def of(cls, cluster, loops, *topics, **options):
        """Return one on a cluster."""
        made = type(cls.__name__, (cls,), {'_world': (cluster, loops)})
        return made(*topics, bootstrap_servers=cluster.bootstrap, **options)


class Reader(ConsumerRebalanceListener):
    """One program with one consumer, and its listener.

    Arguments: run; number: of the program, in the order they began; wanted: what it
    subscribes to, as subscribe() takes it; options.
    Attributes: member_id: what the group called it when it was told last; quiet_until: the time
    before which it does not poll; is_fenced: whether another has taken its place; resets_to_end:
    whether it begins at the end of logs where nothing is committed; is_elsewhere: whether it has
    subscribed to something else for a while; has_stalled: whether it ever did not poll for long.
    """

    def __init__(self, run, number, wanted, options):
        self.run = run
        self.ledger = run.ledger
        self.number = number
        self.instance = options.get('group_instance_id')
        self.member_id = ''
        self.quiet_until = 0.0
        self.polled_at = run.now()
        self.is_fenced = False
        self.was_interrupted = False
        self.errors = []
        self.resets_to_end = options['auto_offset_reset'] == 'latest'
        self.wanted = wanted
        self.is_elsewhere = False
        self.has_stalled = False
        self.consumer = SimConsumer.of(run.cluster, run.loops, **options)
        self.consumer.subscribe(listener=self, **wanted)

    def __repr__(self):
        return '<Reader %d %s>' % (self.number, self.member_id)

    def _now(self):
        return self.run.now()

    # ------------------------------------------------------------ as a listener

    def on_partitions_assigned(self, partitions):
        self.member_id = self.consumer.group_metadata().member_id
        self.run.note('%r assigned %s', self, sorted(partitions))
        self.ledger.assigned(self, partitions)

    def on_partitions_revoked(self, partitions):
        partitions = self._assigned_before(partitions)
        self.run.note('%r revoked %s', self, sorted(partitions))
        if self.run.commits_what_goes and self.commit() or self.run.is_calm(self):
            self.ledger.gave_back(self, partitions)
        self.ledger.gone(self, partitions)

    def on_partitions_lost(self, partitions):
        partitions = self._assigned_before(partitions)
        self.run.note('%r lost %s', self, sorted(partitions))
        self.ledger.gone(self, partitions)

    def _assigned_before(self, partitions):
        """Leave out what came while an interruption kept the listener from being told of it."""
        if not self.was_interrupted:
            return partitions
        places = self.ledger.places
        return {each for each in partitions if each not in places or self in places[each].holds}

    # ------------------------------------------------------------ what it does

    def may_be_passed_over(self):
        """Tell whether its group may give others what it has, and have it as a member all the same.

        That is so of a static member that does not come to a rebalance of the classic protocol in
        time (KIP-345). Whoever else does not poll is put out first.
        """
        is_late = self._now() - self.polled_at > LATE
        return is_late and self.instance is not None and not self.run.is_next

    def poll(self, timeout_ms):
        """Poll once, and tell what came."""
        began, steps = self._now(), self.consumer.steps
        found = {}
        try:
            at = self.run.interrupts_at()
            if at is None:
                found = self.consumer.poll(timeout_ms=timeout_ms)
            else:
                with Interrupting(at) as interrupting:
                    found = self.consumer.poll(timeout_ms=timeout_ms)
                if interrupting.has_raised:
                    self.was_interrupted = True
                    self.run.note('%r is interrupted at the %s', self, interrupting.where)
        except (FencedInstanceIdError, UnreleasedInstanceIdError):
            if not self.run.may_be_fenced(self):
                raise
            self.is_fenced = True
            found = {}
        self.polled_at = self._now()
        took = self.polled_at - began
        # Each step may commit, for as long as a request may take.
        steps = self.consumer.steps - steps
        allowed = timeout_ms / 1000 + SLACK + steps * (self.run.request_timeout * 1.1 + 1.05)
        if took > allowed:
            self.ledger.wrong('%r polled %.3f s, not %.3f', self, took, timeout_ms / 1000)
        used = self.consumer._engine.fetcher._buffer.used
        if used > self.consumer.config['fetch_max_buffered_bytes'] + self.run.batches * BATCH_BYTES:
            self.ledger.wrong('%r has %d bytes of fetches', self, used)
        for partition, records in found.items():
            if self.is_elsewhere and partition.topic not in self.consumer.subscription():
                self.ledger.wrong('%r got %s, to which it is not subscribed', self, partition)
            self.run.note('%r got %s %s', self, partition, [each.offset for each in records])
            self.ledger.handed(self, partition, records)
            if self.run.commits_by == 'marks':
                self.consumer.task_done(records[-1])
        return found

    def commit(self):
        """Commit what was handed out, and tell whether that went well."""
        began = self._now()
        try:
            self.consumer.commit(timeout_ms=self.run.commit_ms)
        except _COMMITS_FAIL as error:
            self.run.note('%r could not commit: %r', self, error)
            return False
        except FencedInstanceIdError:
            if not self.run.may_be_fenced(self):
                raise
            return False
        finally:
            if self._now() - began > self.run.commit_ms / 1000 * 1.1 + 1.0 + SLACK:
                self.ledger.wrong('%r committed for %.3f s', self, self._now() - began)
        return True

    def commit_later(self):
        """Commit without waiting."""
        self.consumer.commit_async(callback=self._on_commit)

    def _on_commit(self, offsets, error):
        if error is not None:
            self.run.note('%r could not commit %s: %r', self, offsets, error)

    def seek(self, partition, offset):
        """Go on elsewhere."""
        self.run.note('%r seeks %s %d', self, partition, offset)
        self.consumer.seek(partition, offset)
        self.ledger.sought(self, partition, offset)

    def subscribe_elsewhere(self, topics):
        """Subscribe to other topics for a while."""
        self.run.note('%r subscribes to %s', self, topics)
        self.consumer.subscribe(topics, listener=self)
        self.is_elsewhere = True

    def come_back(self):
        """Subscribe to what it wants."""
        if self.is_elsewhere:
            self.run.note('%r comes back', self)
            self.consumer.subscribe(listener=self, **self.wanted)
            self.is_elsewhere = False

    def wake(self):
        """Let it go on, if it was stalled."""
        self.quiet_until = 0.0
        self.consumer._engine.loop.is_frozen = False

    def close(self):
        """End it as a program should."""
        self.run.note('%r closes', self)
        began = self._now()
        self.consumer.close(timeout_ms=5000)
        if self._now() - began > 5 + 5 + 2.5:
            self.ledger.wrong('%r closed for %.3f s', self, self._now() - began)
        self.ledger.ended(self)

    def die(self):
        """End it as kill -9 does."""
        self.run.note('%r dies', self)
        self.consumer._engine.loop.die()
        self.consumer._guard.is_closed = True
        self.ledger.ended(self)


__all__ = ['KafkaError', 'Reader', 'SimConsumer']
