"""Who leads, who is in sync, and what a topic is made of."""

from __future__ import annotations

import pytest

from kafka.testing.state import NO_LEADER, Partition, text_id
from test.testing.drive import Driver


@pytest.fixture
def state():
    return Driver(brokers=3).state


def partition_of(state, assignment):
    return state.create_topic('t', assignments=[assignment]).partitions[0]


def test_a_replica_in_sync_leads_when_the_leader_dies(state):
    partition = partition_of(state, [1, 2, 0])
    state.node_died(1)
    assert (partition.leader, partition.leader_epoch, partition.isr) == (2, 1, [2, 0])


def test_the_epoch_stays_when_the_leader_does(state):
    partition = partition_of(state, [1, 2, 0])
    state.node_died(2)
    assert (partition.leader, partition.leader_epoch, partition.isr) == (1, 0, [1, 0])


def test_a_node_that_comes_back_follows(state):
    partition = partition_of(state, [1, 2, 0])
    state.node_died(1)
    state.node_came(1)
    assert (partition.leader, partition.leader_epoch) == (2, 1)
    assert partition.isr == [1, 2, 0]


def test_only_the_last_in_sync_can_lead_again(state):
    partition = partition_of(state, [1, 2])
    state.node_died(1)
    state.node_died(2)
    assert (partition.leader, partition.isr) == (NO_LEADER, [2])
    state.node_came(1)
    assert (partition.leader, partition.isr) == (NO_LEADER, [2])
    state.node_came(2)
    assert (partition.leader, partition.isr) == (2, [1, 2])


def test_a_preferred_leader_must_be_in_sync(state):
    partition = partition_of(state, [1, 2, 0])
    state.node_died(2)
    partition.elect(state.alive, preferred=2)
    assert partition.leader == 1
    partition.elect(state.alive, preferred=0)
    assert (partition.leader, partition.leader_epoch) == (0, 1)


def test_the_controller_is_a_live_node(state):
    state.node_died(0)
    assert state.controller_id == 1
    state.node_came(0)
    assert state.controller_id == 1
    for node in (0, 1, 2):
        state.node_died(node)
    assert state.controller_id == NO_LEADER


def test_a_coordinator_lives_and_can_be_moved(state):
    first = state.coordinator_of('g')
    other = (first + 1) % 3
    state.moved_coordinators['g'] = other
    assert state.coordinator_of('g') == other
    state.node_died(other)
    assert state.coordinator_of('g') in state.alive
    for node in list(state.alive):
        state.node_died(node)
    assert state.coordinator_of('g') == NO_LEADER


def test_the_replicas_of_a_topic_are_different_nodes(state):
    topic = state.create_topic('t', 6, 3)
    assert all(sorted(each.replicas) == [0, 1, 2] for each in topic.partitions)
    assert sorted(each.leader for each in topic.partitions) == [0, 0, 1, 1, 2, 2]


def test_by_default_a_topic_has_as_many_copies_as_nodes_live(state):
    state.node_died(1)
    assert sorted(state.create_topic('t').partitions[0].replicas) == [0, 2]


def test_more_copies_than_live_nodes_cannot_be(state):
    state.node_died(1)
    with pytest.raises(ValueError, match='3 replicas'):
        state.create_topic('t', 1, 3)


def test_a_topic_without_a_live_node_cannot_be(state):
    for node in (0, 1, 2):
        state.node_died(node)
    with pytest.raises(ValueError):
        state.create_topic('t')


def test_a_topic_is_found_by_its_id(state):
    topic = state.create_topic('t')
    assert state.topic_by_id(topic.topic_id) is topic
    assert state.topic_by_id(bytes(16)) is None


@pytest.mark.parametrize('index, is_there', [(0, True), (1, True), (2, False), (-1, False)])
def test_a_partition_is_found_by_its_number(state, index, is_there):
    topic = state.create_topic('t', 2)
    assert (topic.partition(index) is not None) is is_there


def test_topics_of_the_brokers_themselves_are_internal(state):
    assert state.create_topic('__consumer_offsets').is_internal
    assert not state.create_topic('t').is_internal


def test_ids_are_written_as_brokers_write_them():
    assert text_id(b'\xff' * 16) == '_____________________w'


def test_ids_come_from_chance():
    assert Driver().state.cluster_id == Driver().state.cluster_id


def test_a_partition_without_replicas_has_no_leader():
    assert Partition('t', 0, []).leader == NO_LEADER


def test_a_topic_is_found_by_its_id_as_long_as_it_is_there(state):
    first, second = state.create_topic('a'), state.create_topic('b')
    assert state.topic_by_id(second.topic_id) is second
    state.drop_topic('b')
    assert state.topic_by_id(second.topic_id) is None
    again = state.create_topic('a')
    assert (state.topic_by_id(first.topic_id), state.topic_by_id(again.topic_id)) == (None, again)
