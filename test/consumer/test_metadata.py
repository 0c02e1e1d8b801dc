"""A subscription by pattern while topics are missing in the metadata for a moment."""

from __future__ import annotations

import re
import threading

import pytest

from kafka.cluster import ClusterMetadata
from kafka.consumer.metadata import MISSING_SECONDS, ConsumerMetadata
from kafka.consumer.subscription_state import SubscriptionState
from kafka.protocol.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafka.structs import TopicPartition

VERSION = 8


class Interest:
    """Keeps what a consumer takes interest in, as pool.topics does."""

    def __init__(self):
        self.wants_all = False
        self.refreshes = 0

    def want(self, topic):
        pass

    def forget(self, topic):
        pass

    def refresh(self):
        self.refreshes += 1


class Stage:
    """A subscription that follows a cluster. `now` is the time of the answers to Metadata."""

    def __init__(self, member=None):
        self.now = 100.0
        self.cluster = ClusterMetadata(lambda: self.now)
        self.topics = Interest()
        self.subscription = SubscriptionState('latest')
        self.subscription.subscribe(pattern=re.compile('t'))
        following = ConsumerMetadata(
            self, self.subscription, threading.Lock(), member, lambda: None, True
        )
        self.cluster.add_listener(following)

    def answer(self, *names):
        """Let brokers name some topics, of one partition each."""
        topics = [
            MetadataResponseTopic(
                error_code=0,
                name=name,
                partitions=[
                    MetadataResponsePartition(
                        error_code=0,
                        partition_index=0,
                        leader_id=0,
                        replica_nodes=[0],
                        isr_nodes=[0],
                    )
                ],
            )
            for name in names
        ]
        broker = MetadataResponseBroker(node_id=0, host='h', port=1)
        response = MetadataResponse(brokers=[broker], controller_id=0, topics=topics)
        self.cluster.replace(response, VERSION)

    @property
    def assigned(self):
        return sorted(str(each.topic) for each in self.subscription.assignment)


class Member:
    def __init__(self):
        self.changes = 0

    def subscription_changed(self):
        self.changes += 1


def test_a_topic_that_is_missing_for_a_moment_keeps_its_partitions_and_positions():
    """Otherwise a consumer that does not commit would begin elsewhere when it comes back."""
    stage = Stage()
    stage.answer('t1', 't2', 'other')
    partition = TopicPartition('t1', 0)
    stage.subscription.seek(partition, 7)
    before_all = stage.subscription.assignment[partition]
    for names in ((), ('t2',)):
        stage.now += MISSING_SECONDS / 3
        before = stage.topics.refreshes
        stage.answer(*names)
        assert stage.assigned == ['t1', 't2']
        assert stage.topics.refreshes > before, 'it is asked again soon'
    stage.now += MISSING_SECONDS
    stage.answer('t1', 't2')
    assert stage.subscription.assignment[partition] is before_all


def test_a_topic_that_stays_away_is_dropped():
    stage = Stage()
    stage.answer('t1', 't2')
    stage.answer('t2')
    stage.now += MISSING_SECONDS
    stage.answer('t2')
    assert stage.assigned == ['t2']
    before = stage.topics.refreshes
    stage.answer('t2')
    assert stage.topics.refreshes == before


def test_a_group_does_not_rebalance_for_it():
    member = Member()
    stage = Stage(member)
    stage.answer('t1', 't2')
    before = member.changes
    stage.answer('t2')
    assert set(stage.subscription.subscription) == {'t1', 't2'}
    assert member.changes == before
    stage.now += MISSING_SECONDS
    stage.answer('t2')
    assert set(stage.subscription.subscription) == {'t2'}
    assert member.changes == before + 1


@pytest.mark.parametrize('gap', [0.0, MISSING_SECONDS * 3])
def test_each_absence_counts_anew(gap):
    stage = Stage()
    stage.answer('t1')
    stage.answer()
    stage.answer('t1')
    stage.now += gap
    stage.answer()
    assert stage.assigned == ['t1']
