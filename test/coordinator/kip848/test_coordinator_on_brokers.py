"""Members of KIP-848 groups on embedded brokers, in memory and on a clock of their own."""

from __future__ import annotations

import random
import threading

import pytest

from kafka.consumer.subscription_state import SubscriptionPattern, SubscriptionState
from kafka.coordinator.kip848.coordinator import ConsumerMember
from kafka.coordinator.member import GroupSettings, StepKind
from kafka.errors import (
    FencedInstanceIdError,
    InvalidRegularExpressionError,
    UnreleasedInstanceIdError,
    UnsupportedAssignorError,
    UnsupportedVersionError,
)
from kafka.net.pool import Pool
from kafka.net.settings import NetSettings, parse_servers
from kafka.protocol.admin.topics import DeleteTopicsRequest, DeleteTopicState
from kafka.structs import TopicPartition
from kafka.testing.memory import MemoryCluster
from test.simulation.loop import SimLoop

RELEASES = ['4.0.2', '4.3.1', '4.4.0']
SETTINGS = GroupSettings('g', rebalance_timeout=60.0)


class Consumer:
    """A program with a member: it polls each half second, and does what it has to."""

    def __init__(self, cluster, loop, topics=('t',), pattern=None, settings=SETTINGS, seed=1):
        servers = parse_servers(cluster.bootstrap)
        self.cluster, self.loop = cluster, loop
        self.pool = Pool(
            loop, NetSettings(servers=servers, allow_auto_create_topics=False), random.Random(seed)
        )
        loop.run(self.pool.bootstrap(), 30)
        self.subscription = SubscriptionState()
        self.subscription.subscribe(topics if pattern is None else (), pattern)
        for topic in topics if pattern is None else ():
            self.pool.want_topic(topic)
        self.member = ConsumerMember(
            loop,
            self.pool,
            settings,
            self.subscription,
            threading.Lock(),
            lambda: None,
            random.Random(seed),
        )
        self.member.start()
        self.steps = []
        self.polls = True

    def poll(self):
        if not self.polls:
            return
        self.member.polled(self.loop.time())
        step = self.member.step
        if step is None or not step.begin():
            return
        self.steps.append(step.kind)
        if step.kind is StepKind.ASSIGN:
            self.subscription.assign_from_subscribed(step.owned)
        else:
            self.subscription.revoke(step.partitions)
        step.finish()

    @property
    def owned(self):
        return self.subscription.owned()

    def leave(self):
        self.loop.run(self.member.leave('enough', 5.0), 10)
        self.subscription.revoke(self.owned)


class Stage:
    """A cluster, a loop, and those who consume."""

    def __init__(self, version, nodes=1, **settings):
        self.cluster = MemoryCluster(
            version=version, brokers=nodes, seed=7, topics={'t': 4}, **settings
        )
        self.cluster.start()
        self.loop = SimLoop(self.cluster)
        self.consumers = []

    def consumer(self, *args, **fields):
        fields.setdefault('seed', len(self.consumers) + 1)
        consumer = Consumer(self.cluster, self.loop, *args, **fields)
        self.consumers.append(consumer)
        return consumer

    def pass_time(self, seconds):
        """Let time pass, and the programs poll."""
        end = self.loop.time() + seconds
        while self.loop.time() < end:
            self.loop.wait(lambda: False, 0.5)
            for each in self.consumers:
                each.poll()

    def until(self, done, seconds=60):
        end = self.loop.time() + seconds
        while not done():
            assert self.loop.time() < end, 'it does not happen'
            self.pass_time(0.5)

    def settle(self, count=4):
        """Return when all are stable and each partition has an owner."""
        self.pass_time(12)  # for two heartbeats: whoever has something may have to give it
        self.until(
            lambda: (
                all(each.member.is_stable for each in self.consumers)
                and sum(len(each.owned) for each in self.consumers) == count
            )
        )
        owned = [each for consumer in self.consumers for each in consumer.owned]
        assert len(owned) == len(set(owned))

    def close(self):
        for each in self.consumers:
            each.member.close()
            each.pool.close()
        self.loop.close()
        self.cluster.stop()


@pytest.fixture(params=RELEASES)
def stage(request):
    made = Stage(request.param)
    yield made
    made.close()


@pytest.fixture
def newest():
    made = Stage(RELEASES[-1])
    yield made
    made.close()


def partitions(*numbers, topic='t'):
    return {TopicPartition(topic, number) for number in numbers}


def test_one_member_gets_everything(stage):
    consumer = stage.consumer()
    stage.settle()
    assert consumer.owned == partitions(0, 1, 2, 3)
    assert consumer.steps[-1] is StepKind.ASSIGN
    assert consumer.member.identity().generation_id > 0


def test_members_share_and_hand_over_one_by_one(stage):
    first = stage.consumer()
    stage.settle()
    second = stage.consumer()
    stage.settle()
    assert len(first.owned) == len(second.owned) == 2
    assert StepKind.REVOKE in first.steps
    assert StepKind.REVOKE not in second.steps
    second.leave()
    stage.consumers.remove(second)
    stage.settle()
    assert first.owned == partitions(0, 1, 2, 3)
    second.member.close()
    second.pool.close()


def test_who_does_not_revoke_holds_it_up_for_the_others(newest):
    first = newest.consumer()
    newest.settle()
    first.polls = False
    second = newest.consumer()
    newest.pass_time(20)
    assert second.owned == set()
    assert len(first.owned) == 4
    first.polls = True
    newest.settle()


def test_who_polls_no_more_loses_its_share_and_comes_back(stage):
    first = stage.consumer()
    second = stage.consumer()
    stage.settle()
    first.polls = False
    stage.until(lambda: len(second.owned) == 4, 90)
    assert first.member.step.kind is StepKind.LOSE
    first.polls = True
    stage.until(lambda: StepKind.LOSE in first.steps)
    stage.settle()
    assert len(first.owned) == 2


def test_who_was_put_out_loses_all_and_comes_back(stage):
    consumer = stage.consumer()
    stage.settle()
    group = stage.cluster.state.groups.consumers.get('g')
    (member,) = group.members.values()
    group.remove(member)
    stage.until(lambda: StepKind.LOSE in consumer.steps)
    stage.settle()
    assert consumer.steps[-1] is StepKind.ASSIGN
    assert set(group.members) == {member.member_id}


def test_new_topics_and_partitions_are_found(stage):
    consumer = stage.consumer(('t', 'u'))
    stage.settle()
    stage.cluster.create_topic('u', 2)
    stage.settle(6)
    consumer.subscription.subscribe(['u'])
    consumer.member.subscription_changed()
    stage.settle(2)
    assert consumer.owned == partitions(0, 1, topic='u')


def test_brokers_match_patterns(stage):
    stage.cluster.create_topic('abc', 2)
    stage.cluster.create_topic('abd', 1)
    consumer = stage.consumer(pattern=SubscriptionPattern('ab.'))
    stage.settle(3)
    assert {each.topic for each in consumer.owned} == {'abc', 'abd'}
    stage.cluster.create_topic('abe', 1)
    stage.settle(4)


def test_a_pattern_that_is_none_is_refused(newest):
    consumer = newest.consumer(pattern=SubscriptionPattern('(?=a)'))
    newest.until(lambda: consumer.member.error is not None)
    assert isinstance(consumer.member.error, InvalidRegularExpressionError)
    consumer.subscription.subscribe(pattern=SubscriptionPattern('t'))
    consumer.member.subscription_changed()
    newest.settle()


def test_a_static_member_comes_back_to_what_it_had(stage):
    settings = SETTINGS._replace(group_instance_id='i')
    first = stage.consumer(settings=settings)
    other = stage.consumer()
    stage.settle()
    had = first.owned
    first.leave()
    stage.consumers.remove(first)
    stage.pass_time(3)
    assert len(other.owned) == 2
    again = stage.consumer(settings=settings, seed=9)
    stage.settle()
    assert again.owned == had
    first.member.close()
    first.pool.close()


def test_an_instance_id_that_is_in_use_is_refused(newest):
    settings = SETTINGS._replace(group_instance_id='i')
    first = newest.consumer(settings=settings)
    newest.settle()
    second = newest.consumer(settings=settings)
    newest.until(lambda: second.member.error is not None)
    assert isinstance(second.member.error, (UnreleasedInstanceIdError, FencedInstanceIdError))
    newest.pass_time(6)
    assert first.member.is_stable


@pytest.mark.parametrize('assignor', ['uniform', 'range'])
def test_assignors_of_brokers(newest, assignor):
    newest.consumer(settings=SETTINGS._replace(remote_assignor=assignor))
    newest.settle()


def test_an_assignor_that_brokers_do_not_have(newest):
    consumer = newest.consumer(settings=SETTINGS._replace(remote_assignor='mine'))
    newest.until(lambda: consumer.member.error is not None)
    assert isinstance(consumer.member.error, UnsupportedAssignorError)


@pytest.mark.parametrize('version', ['3.9.2', '2.8.2'])
def test_brokers_before_4_are_named(version):
    stage = Stage(version)
    try:
        consumer = stage.consumer()
        stage.until(lambda: consumer.member.error is not None)
        assert isinstance(consumer.member.error, UnsupportedVersionError)
        assert 'Kafka 4.0' in str(consumer.member.error)
    finally:
        stage.close()


def test_a_coordinator_that_moves_is_followed():
    stage = Stage('4.4.0', nodes=3)
    try:
        consumer = stage.consumer()
        stage.settle()
        node = stage.cluster.coordinator('g')
        stage.cluster.kill(node)
        stage.pass_time(60)
        stage.settle()
        assert stage.cluster.coordinator('g') != node
        assert consumer.member.error is None
    finally:
        stage.close()


def test_a_deleted_topic_is_given_back(newest):
    newest.cluster.create_topic('u', 2)
    consumer = newest.consumer(('t', 'u'))
    newest.settle(6)
    gone = DeleteTopicsRequest(
        topics=[DeleteTopicState(name='u', topic_id=bytes(16))], timeout_ms=1000
    )
    newest.loop.run(consumer.pool.send(gone), 10)
    newest.settle(4)
    assert consumer.owned == partitions(0, 1, 2, 3)
