"""The machine of a KIP-848 member on a clock by hand; the coordinator says what a test says."""

from __future__ import annotations

import math

from kafka.coordinator.group_settings import GroupSettings
from kafka.coordinator.kip848.state_machine import ConsumerMembership, MemberState
from kafka.structs import TopicPartition
from test.coordinator.heartbeats import NAMES, answer

SETTINGS = GroupSettings(
    'g', rebalance_timeout=60.0, client_rack='r1', remote_assignor='uniform', heartbeat_interval=3.0
)
A0, A1, B0 = TopicPartition('a', 0), TopicPartition('a', 1), TopicPartition('b', 0)
V1 = 1


class Driven:
    """A machine on a clock of its own."""

    def __init__(self, settings=SETTINGS, member_id='m', topics=('a', 'b'), pattern=None):
        self.machine = ConsumerMembership(
            settings, member_id, [None, 0.1, 0.2, 0.3, 0.4].__getitem__
        )
        self.now = 100.0
        self.machine.subscribe(topics, pattern)

    def send(self, version=V1):
        assert self.machine.due <= self.now, 'no heartbeat is due'
        self.life = None
        heartbeat = self.machine.heartbeat(self.now, version)
        self.life = heartbeat.life
        return heartbeat.request

    def take(self, *args, **fields):
        return self.machine.answered(self.life, answer(*args, **fields), self.now)

    def beat(self, *args, **fields):
        """Send what is due and take an answer."""
        request = self.send()
        self.take(*args, **fields)
        return request

    def wait(self):
        self.now = max(self.now, self.machine.due)
        assert self.now < math.inf

    def reconcile(self):
        plan = self.machine.reconcile(NAMES.get)
        self.machine.revoked(plan)
        self.machine.assigned(plan)
        return plan

    def join(self, epoch=1, **partitions):
        self.machine.join()
        return self.beat(epoch, partitions)


def stable(*args, **fields):
    driven = Driven(*args, **fields)
    driven.join(a=[0, 1])
    driven.reconcile()
    driven.beat(1)
    assert driven.machine.state is MemberState.STABLE
    return driven


def units(request):
    if request.topic_partitions is None:
        return None
    return {(each.topic_id, n) for each in request.topic_partitions for n in each.partitions}
