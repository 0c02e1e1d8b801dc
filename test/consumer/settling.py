"""What positions are about: the parts of a consumer, with scripted brokers and a scripted group."""

from __future__ import annotations

import random
import threading

from kafka.consumer.offsets_request_manager import OffsetsRequestManager
from kafka.consumer.partition_state import Phase
from kafka.consumer.subscription_state import SubscriptionState
from kafka.coordinator.commits.manager import FetchedOffsets
from kafka.offsets.lookups import OffsetLookups
from kafka.protocol.api import ApiKey
from test.consumer.scripted_pool import ScriptedPool, questions, tp
from test.manual_loop import ManualLoop

LEADS = {'a-0': (0, 3), 'a-1': (1, 3), 'b-0': (0, 5)}
WALL = 1_600_000_000.0
A0, A1, B0 = tp('a-0'), tp('a-1'), tp('b-0')


class Lock:
    """A plain lock that tells when a turn would have to wait for itself. Attributes: held."""

    def __init__(self):
        self._lock = threading.Lock()

    @property
    def held(self):
        return self._lock.locked()

    def __enter__(self):
        assert self._lock.acquire(blocking=False), 'the lock is taken twice'

    def __exit__(self, *error):
        self._lock.release()


class Consumer:
    """The parts of a consumer that positions are about.

    Attributes: committed: {partition: offset, None}, or an error, that the group has; fetches: the
    partitions of each question for them; fetch_waiter: what the next one waits for; changes: how
    often on_change was called.
    """

    def __init__(self, policy='earliest', group=True, leads=None):
        self.loop = ManualLoop()
        self.loop.wall = lambda: WALL
        self.pool = ScriptedPool(self.loop, LEADS if leads is None else leads)
        self.subscription = SubscriptionState(policy)
        self.lock = Lock()
        self.committed, self.fetches, self.fetch_waiter = {}, [], None
        self.changes = 0
        lookups = OffsetLookups(self.loop, self.pool, False, 30.0, 0.1, 1.0, random.Random(1))
        self.positions = OffsetsRequestManager(
            self.loop,
            self.pool,
            self.subscription,
            self.lock,
            lookups,
            self.fetch if group else None,
            self.changed,
        )

    async def fetch(self, partitions):
        self.fetches.append(sorted('%s-%d' % each for each in partitions))
        waiter, self.fetch_waiter = self.fetch_waiter, None
        if waiter is not None:
            await waiter
        if isinstance(self.committed, Exception):
            raise self.committed
        names = {each: '%s-%d' % each for each in partitions}
        told = FetchedOffsets({}, {})
        for each, name in names.items():
            offset = self.committed.get(name)
            (told.failed if isinstance(offset, Exception) else told.found)[each] = offset
        return told

    def changed(self):
        assert not self.lock.held
        self.changes += 1

    def assign(self, *names):
        self.subscription.assign_from_user([tp(name) for name in names])
        self.look()

    def look(self, seconds=0.0):
        self.positions.look()
        self.loop.advance(seconds)

    def state(self, name):
        return self.subscription.state(tp(name))

    def seen(self):
        """Return where every partition is: its position, or its phase."""
        return {
            '%s-%d' % each: state.position if state.phase is Phase.FETCHING else state.phase
            for each, state in self.subscription.assignment.items()
        }

    def asked(self, kind=ApiKey.LIST_OFFSETS):
        return [
            (node, questions(request))
            for node, _, request in self.pool.asked
            if request.api_key == kind
        ]

    def learn(self):
        self.pool.learn()
        self.loop.settle()


def without_group(policy='earliest', leads=None):
    return Consumer(policy, False, leads)
