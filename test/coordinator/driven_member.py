"""A ConsumerMember with a scripted coordinator, and the program that polls, on a clock by hand."""

from __future__ import annotations

import random
import threading

from kafka.consumer.subscription_state import SubscriptionState
from kafka.coordinator.kip848.coordinator import ConsumerMember
from kafka.coordinator.member import GroupSettings, StepKind
from kafka.errors import KafkaConnectionError
from kafka.protocol.api import ApiKey
from kafka.protocol.negotiation import BrokerVersions
from kafka.structs import TopicPartition
from test.coordinator.heartbeats import A, B, C, answer
from test.manual_loop import ManualLoop

SETTINGS = GroupSettings('g', rebalance_timeout=60.0, request_timeout=10.0)
A0, A1, B0 = TopicPartition('a', 0), TopicPartition('a', 1), TopicPartition('b', 0)
HEARTBEATS = {ApiKey.CONSUMER_GROUP_HEARTBEAT: (0, 1), ApiKey.METADATA: (0, 13)}


class Loop(ManualLoop):
    call_threadsafe = ManualLoop.call_soon


class Link:
    """The coordinator; answers when the test says so."""

    host, port = 'h', 9092

    def __init__(self, pool):
        self.pool = pool
        self.is_ready = True
        self.versions = BrokerVersions(HEARTBEATS)
        self.session = self
        self.waiting = []  # (request, call)
        self.farewells = []
        self.at_farewell = []  # codes and errors, 0 when there are no more

    def submit(self, request, call, timeout=None):
        self.waiting.append((request, call))

    def choose_version(self, request):
        return 13

    async def request(self, request, timeout=None, version=None):
        if hasattr(request, 'topics'):
            return await self.pool.name(request)
        self.farewells.append(request)
        what = self.at_farewell.pop(0) if self.at_farewell else 0
        if isinstance(what, Exception):
            raise what
        return answer(-1, code=what)


class Pool:
    """A cluster with one coordinator; also what is known of it."""

    def __init__(self, loop):
        self.loop = loop
        self.node = None  # of the coordinator, as far as it is known
        self.names = {A: 'a', B: 'b'}
        self.nameable = {C: 'c'}
        self.asked_names = []
        self.naming_takes = 0.0
        self.wanted = []
        self.looked_up = 0
        self.unreachable = []
        self.the_link = Link(self)
        self.cluster = self

    # of the cluster

    def topic_of_id(self, topic_id):
        return self.names.get(topic_id)

    def merge(self, response, version):
        self.names.update(response)

    # of the pool

    def group_link_at_hand(self, group):
        known = self.node is not None and self.the_link.is_ready
        return self.the_link if known else None

    async def any_ready(self):
        return self.the_link

    async def group_link(self, group):
        self.looked_up += 1
        if self.unreachable:
            raise self.unreachable.pop(0)
        await self.loop.sleep(0.01)
        self.node, self.the_link.is_ready = 1, True
        return self.the_link

    def forget_coordinator(self, kind, group):
        self.node = None

    def want_topic(self, topic):
        self.wanted.append(topic)

    async def name(self, request):
        ids = [each.topic_id for each in request.topics]
        self.asked_names.append(ids)
        await self.loop.sleep(self.naming_takes)
        return {each: self.nameable[each] for each in ids if each in self.nameable}


class Driven:
    """A member with a scripted coordinator, and the program that polls."""

    def __init__(self, settings=SETTINGS, topics=('a', 'b'), pattern=None, figures=None):
        self.loop = Loop()
        self.pool = Pool(self.loop)
        self.subscription = SubscriptionState()
        if topics or pattern:
            self.subscription.subscribe(topics if pattern is None else (), pattern)
        self.changes = 0
        self.member = ConsumerMember(
            self.loop,
            self.pool,
            settings,
            self.subscription,
            threading.Lock(),
            self.changed,
            random.Random(1),
        )
        self.member.figures = figures
        self.member.start()

    def changed(self):
        self.changes += 1

    @property
    def waiting(self):
        return self.pool.the_link.waiting

    def poll(self):
        self.member.polled(self.loop.now)
        self.loop.advance(0.02)

    def take(self, *args, **fields):
        """Answer the heartbeat that is on its way; return it."""
        request, call = self.waiting.pop(0)
        call(answer(*args, **fields), None)
        self.loop.settle()
        return request

    def lose(self, error=None):
        _, call = self.waiting.pop(0)
        call(None, error or KafkaConnectionError('gone'))
        self.loop.settle()

    def step(self, kind):
        """Do what the member asks for, as the thread that polls does."""
        step = self.member.step
        assert step is not None, 'there is nothing to do'
        assert step.kind is kind
        assert step.is_begun or step.begin()
        if kind is StepKind.ASSIGN:
            self.subscription.assign_from_subscribed(step.owned)
        else:
            self.subscription.revoke(step.partitions)
        step.finish()
        self.loop.settle()
        return step

    def beat(self, *args, **fields):
        """Let an interval pass, answer the heartbeat."""
        self.wait()
        return self.take(*args, **fields)

    def wait(self):
        for _ in range(60):
            if self.waiting:
                return
            self.loop.advance(0.1)
            self.member.polled(self.loop.now)
        raise AssertionError('no heartbeat comes')

    def join(self, **partitions):
        self.poll()
        self.take(1, partitions or {'a': [0, 1]})
        self.step(StepKind.ASSIGN)
        self.take(1)
        assert self.member.is_stable


def joined(*args, **fields):
    driven = Driven(*args, **fields)
    driven.join()
    return driven
