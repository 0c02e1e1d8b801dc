"""One run of the simulation of programs that copy exactly once, from the release to the checks.

Owns which programs there are, what meets them and when, and what a reader of committed records has
to find at the end: each record once, in the order of its partition. ``run_copy(seed)`` repeats a
run event by event, in any process.

Since 2.5 each program has a transactional id of its own, and the group tells the offsets of those
that it has gone on without (KIP-447). Before, one id and one program at a time have to do: whoever
comes later ends what the one before it left open.
"""

from __future__ import annotations

import random

from kafka.errors import KafkaError, NoBrokersAvailable
from kafka.testing import MemoryCluster
from test.simulation.checks import Wrong, check_partition, committed, hearing, repeatable
from test.simulation.copier import Copier
from test.simulation.trouble import Trouble
from test.simulation.world import World, seeded

GROUP = 'copiers'
RELEASES = ['0.11', '1.1', '2.4', '2.8', '3.5', '3.9', '4.0', '4.4', '4.4', '4.4']
#: Since when groups fence offsets, and the next-generation protocol is there.
GROUP_FENCES_SINCE, NEXT_SINCE = (2, 5), (4, 0)
ASSIGNORS = ['range', 'sticky', 'cooperative-sticky']
MOST_COPIERS = 3
TROUBLE_SECONDS = 20.0
PATIENCE_SECONDS = 200.0


class CopyRun(World):
    """One run."""

    def __init__(self, seed, verbose=False):
        chance = random.Random('copy %d' % seed)
        super().__init__(seed, chance, verbose)
        self.release = chance.choice(RELEASES)
        self.version = tuple(int(part) for part in self.release.split('.'))
        self.rate = chance.choice([0.0, 0.2, 0.5, 1.0])
        self.is_next = self.version >= NEXT_SINCE and chance.random() < 0.6
        self.assignor = chance.choice(ASSIGNORS)
        self.has_slots = self.version >= GROUP_FENCES_SINCE
        self.brokers = chance.choice([1, 2, 3])
        self.partitions = chance.choice([1, 2, 4])
        self.is_unwell = True
        self.begun = 0
        self.copiers = []
        self.wanted = {index: {} for index in range(self.partitions)}  # values by offset

    def __repr__(self):
        how = 'consumer protocol' if self.is_next else self.assignor
        words = 'seed', self.seed, self.release, how, self.rate
        return '<CopyRun %s>' % ' '.join(map(str, words))

    def wrote(self, partition, first_offset, values):
        self.wanted[partition.index].update(enumerate(values, first_offset))

    def go(self):
        """Do it all. Raises Wrong."""
        with hearing(self.seed), seeded(self.seed), MemoryCluster(
            brokers=self.brokers,
            version=self.release,
            seed=self.seed,
            topics={'in': self.partitions, 'out': self.partitions},
            auto_create_topics=False,
            group_consumer_session_timeout_ms=6000,
            group_consumer_heartbeat_interval_ms=2000,
        ) as self.cluster, self.cluster.patched():
            try:
                self._go()
            finally:
                for copier in self.copiers:
                    copier.die()

    def _go(self):
        for _ in range(self.chance.choice([3, 10])):
            self.write()
        keys = [GROUP, *(self.name_of(slot) for slot in range(MOST_COPIERS))]
        trouble = Trouble(self.cluster, self.chance, 'out', keys, self.rate)
        trouble.begin_for_copies(TROUBLE_SECONDS)
        end = self.now() + TROUBLE_SECONDS
        while self.now() < end:
            self.one_event(None)
        trouble.end()
        self.is_unwell = False
        self.note('well again')
        self.finish()
        self.digest.update(repr(self.cluster.trace).encode())
        self.history = self.digest.hexdigest()[:16]

    # ------------------------------------------------------------ what happens

    def one_event(self, busy):
        """Let one thing happen; ``busy`` is a program that is in the middle of a step."""
        chance = self.chance
        if not self.copiers:
            self.join()
            return
        number = chance.random()
        for share, event in (
            (0.62, self.step_one),
            (0.16, self.write),
            (0.06, self.write_in_transaction),
            (0.06, self.join),
            (0.02, self.close_one),
            (0.03, self.kill_one),
            (0.05, self.stall_one),
        ):
            number -= share
            if number < 0:
                event()
                return

    def meanwhile(self, copier, share):
        """Let things happen in the middle of a step, at times."""
        if not self.is_unwell or copier.is_dead or self.chance.random() >= share:
            return
        if self.chance.random() < 0.3:
            seconds = self.chance.choice([0.5, 9.0, 12.0])
            self.note('%r stalls for %.1f s', copier, seconds)
            copier.freeze(True)
            end = self.now() + seconds
            while self.now() < end:
                before = self.now()
                self.one_event(copier)
                if self.now() == before:
                    self.rest(0.1)
            copier.freeze(False)
            self.rest(self.chance.choice([0.0, 0.2, 2.5]))  # in which it may hear what happened
        else:
            for _ in range(self.chance.choice([1, 3])):
                self.one_event(copier)

    def fails(self):
        """Tell whether a transform is to fail now."""
        return self.is_unwell and self.chance.random() < 0.02

    def idle(self):
        """Return the programs that are not in the middle of a step."""
        return [each for each in self.copiers if not each.is_busy]

    def step_one(self):
        awake = [each for each in self.idle() if each.quiet_until <= self.now()]
        if not awake:
            self.rest(0.5)
            return
        copier = self.chance.choice(awake)
        copier.step()
        if copier.is_over:
            self.end(copier)

    def end(self, copier):
        self.copiers.remove(copier)
        copier.close()

    def write(self):
        partition = self.chance.choice(self.cluster.state.topics['in'].partitions)
        self.append(partition, self.values(self.chance.choice([1, 3, 8])))

    def write_in_transaction(self):
        partition = self.chance.choice(self.cluster.state.topics['in'].partitions)
        is_good = self.chance.random() < 0.4
        self.append_in_transaction(partition, is_good, self.chance.choice([0.0, 1.0, 3.0]))

    def name_of(self, slot):
        return 'pay-%d' % slot

    def options(self, slot):
        """Return what the clients of a program are told."""
        chance = self.chance
        common = {
            'client_id': 'copier',
            'request_timeout_ms': 3000,
            'retry_backoff_ms': 100,
            'retry_backoff_max_ms': 1000,
            'reconnect_backoff_max_ms': 500,
            'metadata_max_age_ms': 3000,
            'metrics_enabled': False,
        }
        reads = {
            **common,
            'group_id': GROUP,
            'group_protocol': 'consumer' if self.is_next else 'classic',
            'auto_offset_reset': 'earliest',
            'isolation_level': 'read_committed',
            'enable_auto_commit': False,
            'max_poll_interval_ms': chance.choice([6000, 20000]),
            'fetch_max_wait_ms': chance.choice([200, 500]),
        }
        if not self.is_next:
            reads['session_timeout_ms'] = 6000
            reads['heartbeat_interval_ms'] = chance.choice([500, 2000])
            reads['partition_assignment_strategy'] = [self.assignor]
        if self.has_slots and chance.random() < 0.3:
            reads['group_instance_id'] = 'static-%d' % slot
        writes = {
            **common,
            'transactional_id': self.name_of(slot),
            'transaction_timeout_ms': chance.choice([4000, 15000]),
            'delivery_timeout_ms': chance.choice([4000, 30000]),
            'max_block_ms': chance.choice([1500, 10000]),
            'linger_ms': chance.choice([0, 5]),
            'batch_size': chance.choice([200, 16384]),
        }
        return reads, writes

    def join(self):
        """Let one program more copy, or take the place of one that is stalled."""
        taken = {each.slot for each in self.copiers}
        free = [slot for slot in range(MOST_COPIERS) if slot not in taken]
        if not self.has_slots:
            free = [0] if len(self.copiers) < 2 and self.chance.random() < 0.3 + (not taken) else []
        if not free:
            return
        slot = self.chance.choice(free)
        reads, writes = self.options(slot)
        chance = self.chance
        tries, poll_ms = chance.choice([1, 3, 5]), chance.choice([50, 200])
        try:
            made = Copier(
                self, self.begun, slot, reads, writes, tries, poll_ms, chance.choice([None, 1, 5])
            )
        except NoBrokersAvailable:
            self.note('nobody answers')
            return
        self.begun += 1
        self.note('%r begins', made)
        self.copiers.append(made)

    def close_one(self):
        if self.idle():
            self.end(self.chance.choice(self.idle()))

    def kill_one(self):
        if self.idle():
            copier = self.chance.choice(self.idle())
            self.copiers.remove(copier)
            copier.die()

    def stall_one(self):
        """Let a program do nothing for a while, and often nothing be done for it either."""
        idle = [each for each in self.idle() if each.quiet_until <= self.now()]
        if not idle:
            return
        copier = self.chance.choice(idle)
        copier.quiet_until = self.now() + self.chance.choice([2.0, 9.0])
        self.note('%r stalls until %.3f', copier, copier.quiet_until)
        if self.chance.random() < 0.6:
            copier.freeze(True)
            self.cluster.timers.at(copier.quiet_until, lambda: copier.freeze(False))

    # ------------------------------------------------------------ the end

    def finish(self):
        """Let everything come to its end, and check it."""
        for copier in self.copiers:
            copier.quiet_until = 0.0
            copier.freeze(False)
        for partition in self.cluster.state.topics['in'].partitions:
            self.append(partition, self.values(1))
        end = self.now() + PATIENCE_SECONDS
        while not self.is_over():
            if self.now() > end:
                raise Wrong('it does not come to its end: %s' % self.left())
            if not self.copiers:
                self.join()
                self.rest(0.1)
            for copier in list(self.copiers):
                copier.step()
                if copier.is_over:
                    self.end(copier)
        for copier in list(self.copiers):  # there is nothing more to be copied
            if copier.step():
                raise Wrong('something was copied that was copied before')
            self.end(copier)
        self.rest(20.0)  # brokers end what was left open
        self.check()

    def is_over(self):
        """Tell whether the group has committed all there is."""
        return not self.left()

    def left(self):
        """Return by partition what is not copied."""
        offsets = self.cluster.state.offsets
        left = {}
        for index, values in self.wanted.items():
            stored = offsets.fetch(GROUP, 'in', index)
            begin = 0 if stored is None else stored.offset
            rest = [offset for offset in values if offset >= begin]
            if rest:
                left[index] = rest
        return left

    def check(self):
        """Raise Wrong unless each record was copied once, in its order."""
        for partition in self.cluster.state.topics['out'].partitions:
            seen = committed(partition.log, may_hang=False)
            wanted = list(self.wanted[partition.index].values())
            check_partition(partition.index, seen, wanted, set(seen) - set(wanted))


def run_copy(seed, verbose=False):
    """Make one run. Raises Wrong, or whatever else goes wrong, with the way to repeat it."""
    made = CopyRun(seed, verbose)
    with repeatable(made, '--copies --seed %d' % seed):
        made.go()
    return made


__all__ = ['CopyRun', 'KafkaError', 'run_copy']
