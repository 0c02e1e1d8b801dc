"""Stand-ins for a consumer and a transactional producer that keep the public contract of theirs.

What goes wrong on which call a test says by ``script`` and ``before_poll``.
"""

from __future__ import annotations

import collections
from typing import NamedTuple

from kafka import errors
from kafka.errors import (
    CommitFailedError,
    IllegalStateError,
    KafkaTimeoutError,
    ProducerFencedError,
)
from kafka.exactly_once import ExactlyOnce
from kafka.structs import ConsumerGroupMetadata, TopicPartition

P0, P1 = TopicPartition('in', 0), TopicPartition('in', 1)


class Record(NamedTuple):
    topic: str
    partition: int
    offset: int
    value: bytes
    key: bytes = None
    leader_epoch: int = 7
    headers: tuple = ()


class Consumer:
    """Reads two partitions; knows who it is to its group."""

    def __init__(self, group, records=3):
        self.group = group
        self.config = {
            'group_id': 'g',
            'enable_auto_commit': False,
            'isolation_level': 'read_committed',
        }
        self.logs = {
            place: [Record('in', place.partition, n, b'%d' % n) for n in range(records)]
            for place in (P0, P1)
        }
        self.hidden = 0  # marks behind the last record: nobody's to read
        self.positions = {P0: 0, P1: 0}
        self.who = ConsumerGroupMetadata('g', 1, 'me', None)
        self.is_member = True
        self.before_poll = collections.deque()
        self.polls = []
        self.commits = []

    def poll(self, timeout_ms=0, max_records=None):
        self.polls.append(timeout_ms)
        if self.before_poll:
            self.before_poll.popleft()()
        found = {}
        for place in sorted(self.positions):
            position = self.positions[place]
            some = [each for each in self.logs[place] if each.offset >= position][:max_records]
            if some:
                found[place] = some
                self.positions[place] = some[-1].offset + 1
                if some[-1] is self.logs[place][-1]:
                    self.positions[place] += self.hidden
        return found

    def position(self, partition):
        return self.positions[partition]

    def assignment(self):
        return set(self.positions)

    def seek(self, partition, offset):
        assert partition in self.positions, 'not assigned'
        self.positions[partition] = offset

    def commit(self, offsets):
        self.commits.append(offsets)
        if self.who.generation_id not in (-1, self.group.generation):
            raise CommitFailedError('group g has moved on')

    def subscription(self):
        return {'in'} if self.is_member else None

    def group_metadata(self):
        return self.who

    def rebalance(self, partitions):
        """Own other partitions from their committed offsets on, in the next generation."""
        self.who = self.who._replace(generation_id=self.who.generation_id + 1)
        committed = self.group.committed
        self.positions = {
            place: committed[place].offset if place in committed else 0 for place in partitions
        }
        self.group.generation = self.who.generation_id


class Group:
    """What brokers have: committed offsets, and what transactions wrote."""

    def __init__(self):
        self.committed = {}
        self.written = []
        self.generation = 1


class Producer:
    """A transactional producer. script: {call: [errors or functions, one for each call]}."""

    def __init__(self, group):
        self.group = group
        self.config = {'transactional_id': 'pay'}
        self.state = 'new'
        self.calls = []
        self.script = collections.defaultdict(collections.deque)
        self.pending, self.offsets = [], {}

    def _call(self, name, *states):
        self.calls.append(name)
        if self.state == 'fenced':
            raise ProducerFencedError('%s is not possible any more' % name)
        if self.state not in states:
            raise IllegalStateError('%s when %s' % (name, self.state))
        said = self.script[name].popleft() if self.script[name] else None
        if isinstance(said, BaseException):
            if said.fatal:
                self.state = 'fenced'
            elif not isinstance(said, KafkaTimeoutError):
                self.state = 'abortable'
            elif name in ('commit', 'abort'):
                self.state = name
            raise said
        if said is not None:
            said()

    def init_transactions(self):
        self._call('init', 'new')
        self.state = 'ready'

    def begin_transaction(self):
        self._call('begin', 'ready')
        self.state, self.pending, self.offsets = 'open', [], {}

    def send(self, topic, value=None, key=None, headers=None, partition=None, timestamp_ms=None):
        self._call('send', 'open')
        self.pending.append((topic, value, key, headers, partition, timestamp_ms))

    def send_offsets_to_transaction(self, offsets, group_metadata):
        self._call('offsets', 'open')
        generation = group_metadata.generation_id
        if generation >= 0 and generation != self.group.generation:
            self.state = 'abortable'
            raise errors.IllegalGenerationError('group g has moved on')
        self.offsets = dict(offsets)

    def commit_transaction(self):
        self._call('commit', 'open', 'commit')
        self.group.written += self.pending
        self.group.committed.update(self.offsets)
        self.state = 'ready'

    def abort_transaction(self):
        self._call('abort', 'open', 'abortable', 'abort')
        self.state = 'ready'


class Rig:
    def __init__(self, records=3, **more):
        self.group = Group()
        self.consumer = Consumer(self.group, records)
        self.producer = Producer(self.group)
        self.once = ExactlyOnce(self.consumer, self.producer, **more)
        self.pauses = []
        self.once.sleep = self.pauses.append

    @property
    def values(self):
        """What was written for good."""
        return [each[1] for each in self.group.written]

    @property
    def offsets(self):
        return {place: offset.offset for place, offset in self.group.committed.items()}


ALL = [b'0', b'1', b'2', b'0', b'1', b'2']


def copied(records):
    return [('out', each.value, each.key) for each in records]
