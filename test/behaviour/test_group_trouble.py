"""Groups in trouble: members that come, stall, die and leave, calls that fail, brokers that die.

Each seed is another history. Whatever happens, no two members of one generation own a partition
together, and once the trouble is over everything is read by somebody.
"""

from __future__ import annotations

import random

import pytest

from kafka.testing.faults import Delay, DropRequest, DropResponse, Error, Hang
from test.coordinator.group_world import World

RELEASES = ['0.9.0.1', '0.10.0.1', '0.11.0.3', '2.8.2', '4.4.0']
ASSIGNORS = [(), ['cooperative-sticky'], ['sticky'], ['range', 'cooperative-sticky']]
CALLS = ['JoinGroup', 'SyncGroup', 'Heartbeat', 'LeaveGroup', 'FindCoordinator']
CODES = [14, 15, 16, 22, 25, 27, 30, -1]
TOPICS = [('t',), ('u',), ('t', 'u')]
STEPS = 25


class Trouble:
    """One history."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.release = RELEASES[seed % len(RELEASES)]
        self.assignors = ASSIGNORS[seed // len(RELEASES) % len(ASSIGNORS)]
        self.brokers = 1 + seed % 2 * 2
        self.live = []

    def run(self):
        topics = {'t': 6, 'u': 3}
        with World(self.release, brokers=self.brokers, topics=topics) as self.world:
            self.world.check = self.check
            for _ in range(3):
                self.join()
            for _ in range(STEPS):
                getattr(self, self.chance.choice(self.kinds()))()
                self.world.run(self.chance.uniform(0, 6))
                self.check()
            self.recover()

    def kinds(self):
        kinds = ['join', 'leave', 'die', 'stall', 'wake', 'hesitate', 'subscribe', 'rejoin']
        return kinds + ['fail'] * 3 + ['move', 'kill'] * (self.brokers > 1)

    def check(self):
        """No partition is owned twice in one generation."""
        owners = {}
        for reader in self.live:
            if reader.polls and reader.member.is_stable:
                generation = reader.member.identity().generation_id
                for partition in reader.owned:
                    assert owners.setdefault((generation, partition), reader) is reader

    def recover(self):
        self.world.cluster.faults.clear()
        self.wake()
        for reader in self.live:
            reader.subscribe('t', 'u')
        self.world.run(30)
        self.world.settle(*self.live, seconds=120)
        self.check()
        assert sum(len(reader.owned) for reader in self.live) == 9
        assert [reader.member.error for reader in self.live if reader.member.error] == []

    # -- what happens ----------------------------------------------------------------------------

    def join(self):
        if len(self.live) < 5:
            # How brokers of 0.9 treat some requests tells what they are: not amid faults.
            release = '0.9' if self.release.startswith('0.9') else None
            reader = self.world.reader(
                *('t', 'u'),
                assignors=self.assignors,
                request_timeout=5.0,
                rebalance_timeout=self.chance.choice([8.0, 15.0]),
                net={'request_timeout': 5.0, 'release': release},
            )
            self.live.append(reader)

    def leave(self):
        if len(self.live) > 1:
            reader = self.live.pop(self.chance.randrange(len(self.live)))
            reader.leave(2.0)
            reader.close()

    def die(self):
        if len(self.live) > 1:
            reader = self.live.pop(self.chance.randrange(len(self.live)))
            reader.polls = False
            reader.close()

    def stall(self):
        self.chance.choice(self.live).polls = False

    def hesitate(self):
        reader = self.chance.choice(self.live)
        reader.takes_steps = not reader.takes_steps

    def wake(self):
        for reader in self.live:
            reader.polls = reader.takes_steps = True

    def subscribe(self):
        self.chance.choice(self.live).subscribe(*self.chance.choice(TOPICS))

    def rejoin(self):
        self.world.loop.call_soon(self.chance.choice(self.live).member.rejoin, 'because')

    def fail(self):
        slow = Delay(self.chance.uniform(0, 4))
        said = Error(self.chance.choice(CODES))
        fault = self.chance.choice([DropRequest(), DropResponse(), Hang(), slow, said])
        times = self.chance.randrange(1, 4)
        self.world.cluster.faults.add(fault, self.chance.choice(CALLS), times=times)

    def move(self):
        self.world.cluster.move_coordinator('g', self.chance.randrange(self.brokers))

    def kill(self):
        node = self.chance.randrange(self.brokers)
        self.world.cluster.kill(node)
        self.world.run(self.chance.uniform(0, 5))
        self.world.cluster.restart(node)


@pytest.mark.parametrize('seed', range(20))
def test_a_group_comes_through_trouble(seed):
    Trouble(seed).run()
