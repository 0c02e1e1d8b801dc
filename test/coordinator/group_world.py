"""Members of classic groups on an embedded cluster in memory, with programs that poll.

Owns the stand-ins of consumers: they poll, take steps, and note what they were told. What members
do is theirs. All live in one loop and on one virtual clock.
"""

from __future__ import annotations

import random
import threading
from types import SimpleNamespace

from kafka.coordinator.assignors.adapt import adapt_assignors
from kafka.coordinator.classic.coordinator import ClassicMember
from kafka.coordinator.member import GroupSettings, StepKind
from kafka.net.pool import Pool
from kafka.net.settings import NetSettings, parse_servers
from kafka.testing import MemoryCluster
from test.simulation.loop import SimLoop

#: How often programs poll, in seconds.
POLL_EVERY = 0.05


class World:
    """A cluster, and whoever reads of it. Use as a context manager."""

    def __init__(self, version='4.4', brokers=1, topics=None, **settings):
        topics = {'t': 4} if topics is None else topics
        self.cluster = MemoryCluster(
            version=version, brokers=brokers, seed=1, topics=topics, **settings
        )
        self.readers = []
        self._next = None

    def __enter__(self):
        self.cluster.start()
        self.loop = SimLoop(self.cluster)
        self._poll_all()
        return self

    def __exit__(self, *exc_info):
        self._next.cancel()
        for reader in self.readers:
            reader.close()
        self.loop.close()
        self.cluster.stop()

    def _poll_all(self):
        for reader in self.readers:
            if reader.polls:
                reader.poll()
        self._next = self.loop.call_later(POLL_EVERY, self._poll_all)

    def reader(self, *topics, start=True, **how):
        made = Reader(self, topics or ('t',), len(self.readers), **how)
        self.readers.append(made)
        if start:
            made.start()
        return made

    def run(self, seconds):
        self.loop.wait(lambda: False, seconds)

    def until(self, condition, seconds=60.0):
        assert self.loop.wait(condition, seconds), [reader.member for reader in self.readers]

    def settle(self, *readers, seconds=60.0):
        """Let them become stable, all in one generation, with everything that there is."""
        readers = readers or [each for each in self.readers if each.polls]

        def is_settled():
            generations = {each.member.identity().generation_id for each in readers}
            return all(each.member.is_stable for each in readers) and len(generations) == 1

        self.until(is_settled, seconds)

    def requests(self, api):
        return [each.request for each in self.cluster.requests if each.api.name == api]

    def check(self):
        """Nobody may own what somebody else does."""
        owned = [part for each in self.readers if not each.is_stale for part in each.owned]
        assert len(owned) == len(set(owned)), {each: each.owned for each in self.readers}


class Reader:
    """A program with a consumer. Attributes: polls: whether it does; told: what it was told."""

    def __init__(self, world, topics, number, assignors=(), polls=True, net=None, **settings):
        self.world, self.loop, self.number, self.polls = world, world.loop, number, polls
        self.subscription = SimpleNamespace(subscription=set(topics))
        self.owned = set()
        self.told = []
        self.steps = []
        self.errors = []
        self.changes = 0
        self.is_stale = False  # it cannot know what the group has done without it
        self.takes_steps = True
        net = NetSettings(
            servers=parse_servers(world.cluster.bootstrap),
            client_id='reader-%d' % number,
            **(net or {}),
        )
        self.pool = Pool(world.loop, net, random.Random(number))
        settings.setdefault('session_timeout', 10.0)
        settings.setdefault('rebalance_timeout', 60.0)
        self.member = ClassicMember(
            world.loop,
            self.pool,
            GroupSettings('g', **settings),
            self.subscription,
            threading.Lock(),
            adapt_assignors(assignors),
            self._on_change,
            random.Random(number),
        )

    def __repr__(self):
        return '<Reader %d of %s>' % (self.number, self.subscription.subscription)

    def start(self):
        # Of the loop that all share: it is asked by a task, nobody else waits meanwhile.
        self.loop.spawn(self._start())
        return self

    async def _start(self):
        await self.pool.bootstrap(30)
        for topic in self.subscription.subscription:
            self.pool.want_topic(topic)
        self.member.start()

    def subscribe(self, *topics):
        self.subscription.subscription = set(topics)
        self.loop.call_soon(self.member.subscription_changed)

    def _on_change(self):
        self.changes += 1

    def poll(self):
        self.member.polled(self.loop.time())
        step = self.member.step
        if step is not None and self.takes_steps and step.begin():
            self.take(step)
        if self.member.error is not None:
            self.errors.append(self.member.error)

    def take(self, step):
        numbers = sorted(each.partition for each in step.partitions)
        self.steps.append(step)
        self.told.append((step.kind.value, numbers))
        self.is_stale = False
        if step.kind is StepKind.ASSIGN:
            self.owned |= step.partitions
        else:
            self.owned -= step.partitions
        assert self.owned == step.owned
        self.world.check()
        step.finish()

    def leave(self, timeout=5.0):
        self.polls = False
        self.owned = set()
        self.loop.run(self.member.leave('it is over', timeout), timeout + 1)

    def close(self):
        self.member.close()
        self.pool.close()
