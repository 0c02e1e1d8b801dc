"""What the runs of simulated programs have in common: their chance, their clock, and a writer.

Owns the writing of records straight into the logs of the brokers, also in transactions. What is
read and copied is the business of group_runs.py and copy_runs.py.
"""

from __future__ import annotations

import contextlib
import hashlib
import random
import sys

from kafka.consumer import siblings
from kafka.record.default_records import encode_batch
from kafka.record.legacy_records import encode_message_set
from kafka.testing.logs.appending import append, append_marker
from kafka.testing.logs.log_settings import log_settings
from kafka.testing.logs.partition_log import Batch


@contextlib.contextmanager
def seeded(seed):
    """Let all chance come from a seed, also of those who make their own.

    No consumer from before the block is a sibling of one in it: seeds share the name of a group.
    """
    watches, told = siblings._watches, siblings._told
    siblings._watches, siblings._told = {}, set()
    real, source = random.Random, random.Random('chance %s' % seed)

    class Seeded(real):
        def __init__(self, x=None):
            super().__init__(source.random() if x is None else x)

    state = random.getstate()
    random.seed('module %s' % seed)
    random.Random = Seeded
    try:
        yield
    finally:
        random.Random = real
        random.setstate(state)
        siblings._watches, siblings._told = watches, told


class World:
    """One run.

    Attributes: chance; loops: of all clients; history: a digest of all that happened, once it is
    over.
    """

    def __init__(self, seed, chance, verbose):
        self.seed = seed
        self.chance = chance
        self.verbose = verbose
        self.loops = []
        self.count = 0
        self.digest = hashlib.sha256()
        self.history = ''

    def now(self):
        return self.cluster.timers.clock.monotonic()

    def note(self, text, *values):
        """Note what happened."""
        line = '%9.3f %s' % (self.now(), text % values)
        self.digest.update(line.encode())
        if self.verbose:
            sys.stdout.write(line + '\n')

    def rest(self, seconds):
        """Let time pass without any program doing anything."""
        end = self.now() + seconds
        while self.cluster.timers.step(end):
            for loop in list(self.loops):
                loop.settle_alone()
        self.cluster.advance(max(0.0, end - self.now()))

    # ------------------------------------------------------------ what is written

    def wrote(self, partition, first_offset, values):
        """Take note of what readers have to see."""
        raise NotImplementedError

    def values(self, number):
        """Return so many values that were not written before."""
        first, self.count = self.count + 1, self.count + number
        return [b'%06d' % value for value in range(first, first + number)]

    def append_in_transaction(self, partition, is_good, pause):
        """Write a record in a transaction that ends, well or not, after so many seconds."""
        (value,) = self.values(1)
        producer_id = self.count
        self.append(partition, [value], producer_id, is_good)
        if pause:
            self.cluster.timers.later(pause, lambda: self.mark(partition, producer_id, is_good))
        else:
            self.mark(partition, producer_id, is_good)

    def mark(self, partition, producer_id, is_good):
        """End a transaction."""
        state, waiting = self.cluster.state, self.cluster.waiting
        append_marker(state, waiting, partition, producer_id, 0, is_good)

    def append(self, partition, values, producer_id=-1, is_good=True):
        """Write a batch."""
        state = self.cluster.state
        magic = log_settings(state, partition.topic).magic
        now_ms = self.cluster.timers.clock.wall_ms()
        if magic == 2:
            ids = (
                {}
                if producer_id < 0
                else {'producer_id': producer_id, 'producer_epoch': 0, 'base_sequence': 0}
            )
            rows = [(now_ms, None, value, ()) for value in values]
            data = encode_batch(rows, transactional=producer_id >= 0, **ids)
        else:
            rows = [(n, now_ms, None, value) for n, value in enumerate(values)]
            data = encode_message_set(rows, magic=magic)
        ids = (producer_id, 0, 0, True) if producer_id >= 0 else ()
        batch = Batch(0, len(values) - 1, now_ms, magic, data, *ids)
        done = append(state, self.cluster.waiting, partition, [batch])
        if is_good:
            self.wrote(partition, done.base_offset, values)
        what = 'written' if is_good else 'written to be aborted'
        last = done.base_offset + len(values) - 1
        self.note('%s %s-%d %d..%d', what, partition.topic, partition.index, done.base_offset, last)
