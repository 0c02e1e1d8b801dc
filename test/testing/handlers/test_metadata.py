"""Brokers, topics and leaders, in every version."""

from __future__ import annotations

import pytest

from kafka.protocol.metadata import MetadataRequest, MetadataRequestTopic
from kafka.testing.errors import (
    INVALID_TOPIC_EXCEPTION,
    LEADER_NOT_AVAILABLE,
    NONE,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kafka.testing.handlers.metadata import is_legal_name
from test.testing.drive import Driver


@pytest.fixture
def driver():
    return Driver(brokers=3)


def ask(driver, *names, version=None, **more):
    topics = [MetadataRequestTopic(name=name) for name in names]
    return driver.ask(MetadataRequest(topics=topics, **more), version=version)


def versions():
    return [('3.9', version) for version in range(13)] + [('4.4', 13)]


@pytest.mark.parametrize('release, version', versions())
def test_every_version_tells_of_brokers_and_leaders(release, version):
    driver = Driver(release, brokers=2)
    driver.state.create_topic('t', 3)
    answer = ask(driver, 't', version=version)
    assert [(each.node_id, each.port) for each in answer.brokers] == [(0, 9092), (1, 9093)]
    (topic,) = answer.topics
    assert (topic.error_code, topic.name) == (NONE, 't')
    assert [each.partition_index for each in topic.partitions] == [0, 1, 2]
    assert {each.leader_id for each in topic.partitions} == {0, 1}
    assert sorted(topic.partitions[0].isr_nodes) == [0, 1]


def test_no_topic_is_all_of_them_in_version_0_and_none_later():
    driver = Driver('2.8')
    driver.state.create_topic('b')
    driver.state.create_topic('a')
    names = [each.name for each in driver.ask(MetadataRequest(topics=[]), version=0).topics]
    assert names == ['a', 'b']
    assert driver.ask(MetadataRequest(topics=[]), version=1).topics == []
    assert len(driver.ask(MetadataRequest(topics=None), version=1).topics) == 2


@pytest.mark.parametrize(
    'release, error', [('2.8', LEADER_NOT_AVAILABLE), ('4.4', UNKNOWN_TOPIC_OR_PARTITION)]
)
def test_a_topic_that_is_asked_for_is_created_and_there_the_next_time(release, error):
    driver = Driver(release)
    assert ask(driver, 't').topics[0].error_code == error
    assert ask(driver, 't').topics[0].error_code == NONE


def test_a_client_may_want_none_created(driver):
    answer = ask(driver, 't', allow_auto_topic_creation=False)
    assert answer.topics[0].error_code == UNKNOWN_TOPIC_OR_PARTITION
    assert driver.state.topics == {}


def test_brokers_may_not_create_any():
    driver = Driver(auto_create_topics=False)
    assert ask(driver, 't').topics[0].error_code == UNKNOWN_TOPIC_OR_PARTITION
    assert driver.state.topics == {}


def test_a_name_that_cannot_be_is_refused(driver):
    assert ask(driver, 'a/b').topics[0].error_code == INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize(
    'name, legal',
    [('a', True), ('a.b_c-D9', True), ('x' * 249, True), ('x' * 250, False), ('', False)]
    + [('.', False), ('..', False), ('...', True), ('a b', False), ('ä', False), ('a\n', False)],
)
def test_names_of_topics(name, legal):
    assert is_legal_name(name) is legal


def test_a_topic_is_found_by_its_id(driver):
    topic = driver.state.create_topic('t')
    asked = MetadataRequestTopic(topic_id=topic.topic_id, name=None)
    (answer,) = driver.ask(MetadataRequest(topics=[asked]), version=12).topics
    assert (answer.error_code, answer.name) == (NONE, 't')
    unknown = MetadataRequestTopic(topic_id=b'\1' * 16, name=None)
    (answer,) = driver.ask(MetadataRequest(topics=[unknown]), version=12).topics
    assert answer.error_code == UNKNOWN_TOPIC_ID


def test_dead_brokers_are_left_out_and_their_replicas_offline(driver):
    driver.state.create_topic('t', assignments=[[0, 1, 2], [2]])
    driver.state.node_died(2)
    answer = ask(driver, 't')
    assert [each.node_id for each in answer.brokers] == [0, 1]
    first, second = answer.topics[0].partitions
    assert (first.error_code, first.offline_replicas, first.isr_nodes) == (NONE, [2], [0, 1])
    assert (second.error_code, second.leader_id) == (LEADER_NOT_AVAILABLE, -1)


def test_the_cluster_and_its_controller_are_named(driver):
    answer = ask(driver, version=9)
    assert (answer.cluster_id, answer.controller_id) == (driver.state.cluster_id, 0)
