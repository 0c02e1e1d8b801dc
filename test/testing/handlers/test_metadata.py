"""Brokers, topics and leaders, in every version."""

from __future__ import annotations

import pytest

from kafka.protocol.metadata import MetadataRequest, MetadataRequestTopic
from kafka.testing import state
from kafka.testing.errors import (
    INVALID_REPLICATION_FACTOR,
    INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION,
    LEADER_NOT_AVAILABLE,
    NONE,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kafka.testing.handlers.metadata import is_legal_name
from kafka.testing.releases import RELEASES
from test.testing.drive import Driver

NO_ID = bytes(16)


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


@pytest.mark.parametrize(
    'release, error',
    [
        ('0.8.2', UNKNOWN_SERVER_ERROR),
        ('0.10.0', UNKNOWN_SERVER_ERROR),
        ('0.10.1', INVALID_REPLICATION_FACTOR),
        ('2.8', INVALID_REPLICATION_FACTOR),
        ('4.4', UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_no_topic_is_created_while_there_are_too_few_brokers_for_its_copies(release, error):
    driver = Driver(release, brokers=3)
    driver.state.node_died(2)
    assert ask(driver, 't', version=0).topics[0].error_code == error
    assert driver.state.topics == {}
    driver.state.node_came(2)
    ask(driver, 't', version=0)
    assert len(driver.state.topics['t'].partitions[0].replicas) == 3


def test_no_more_topics_are_created_than_there_is_memory_for(monkeypatch):
    monkeypatch.setattr(state, 'MOST_PARTITIONS', 4)
    driver = Driver(num_partitions=2)
    ask(driver, 'a', 'b', 'c')
    assert set(driver.state.topics) == {'a', 'b'}
    driver.state.drop_topic('a')
    ask(driver, 'c')
    assert set(driver.state.topics) == {'b', 'c'}


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


def by_id(driver, *places, version):
    """Ask for (id, name) pairs; return the answer, and what it says of topics."""
    asked = [MetadataRequestTopic(topic_id=topic_id, name=name) for topic_id, name in places]
    answer = driver.ask(MetadataRequest(topics=asked), version=version)
    return answer, [(each.error_code, each.name, each.topic_id) for each in answer.topics]


def test_where_an_id_is_asked_for_names_do_not_count(driver):
    topic = driver.state.create_topic('t')
    driver.state.create_topic('u')
    unknown = b'\1' * 16
    places = [(topic.topic_id, 'v'), (unknown, None), (topic.topic_id, None), (NO_ID, 'u')]
    _, topics = by_id(driver, *places, version=13)
    assert topics == [(UNKNOWN_TOPIC_ID, None, unknown), (NONE, 't', topic.topic_id)]
    assert set(driver.state.topics) == {'t', 'u'}


@pytest.mark.parametrize('release, version', [('2.8', 10), ('2.8', 11), ('4.4', 11)])
def test_ids_and_null_names_fail_the_whole_request_before_version_12(release, version):
    driver = Driver(release)
    known = driver.state.create_topic('t').topic_id
    for place in [(known, None), (known, 't'), (NO_ID, None)]:
        answer, topics = by_id(driver, place, (NO_ID, 't'), version=version)
        failed = INVALID_REQUEST
        assert topics == [(failed, place[1] or '', place[0]), (failed, 't', NO_ID)]
        assert (answer.brokers, answer.cluster_id, answer.controller_id) == ([], None, -1)


def test_a_topic_without_name_and_id_fails_inside_the_broker(driver):
    answer, topics = by_id(driver, (NO_ID, None), (NO_ID, 't'), version=13)
    failed = UNKNOWN_SERVER_ERROR
    assert topics == [(failed, '', NO_ID), (failed, 't', NO_ID)]
    assert (answer.error_code, answer.brokers) == (failed, [])


@pytest.mark.parametrize('release', RELEASES)
def test_a_topic_that_is_asked_for_twice_is_answered_once(release):
    driver = Driver(release)
    driver.state.create_topic('t')
    assert [each.name for each in ask(driver, 't', 't', version=0).topics] == ['t']


def test_what_is_allowed_is_told_when_it_is_asked_for(driver):
    driver.state.create_topic('t')
    answer = ask(driver, 't', 'a/b', version=8)
    unknown = -0x80000000
    assert [each.topic_authorized_operations for each in answer.topics] == [unknown, unknown]
    assert answer.cluster_authorized_operations == unknown
    more = {
        'include_topic_authorized_operations': True,
        'include_cluster_authorized_operations': True,
    }
    answer = ask(driver, 't', 'a/b', version=8, **more)
    assert [each.topic_authorized_operations for each in answer.topics] == [3576, 3576]
    assert answer.cluster_authorized_operations == 8096


@pytest.mark.parametrize(
    'release, version, error',
    [
        ('0.9', 0, INVALID_TOPIC_EXCEPTION),
        ('0.11', 0, INVALID_TOPIC_EXCEPTION),
        ('0.11', 4, UNKNOWN_TOPIC_OR_PARTITION),
        ('1.1', 5, UNKNOWN_TOPIC_OR_PARTITION),
        ('2.4', 5, UNKNOWN_TOPIC_OR_PARTITION),
        ('2.8', 5, INVALID_TOPIC_EXCEPTION),
        ('4.4', 5, INVALID_TOPIC_EXCEPTION),
    ],
)
def test_an_illegal_name_is_found_when_the_topic_is_to_be_created_and_later_always(
    release, version, error
):
    more = {'allow_auto_topic_creation': False} if version >= 4 else {}
    assert ask(Driver(release), 'a/b', version=version, **more).topics[0].error_code == error


@pytest.mark.parametrize(
    'release, longest', [('0.8.2', 255), ('0.9', 255), ('0.10.0', 249), ('4.4', 249)]
)
def test_names_were_longer_before_0_10(release, longest):
    driver = Driver(release)
    ask(driver, 'x' * longest, version=0)
    assert 'x' * longest in driver.state.topics
    too_long = ask(driver, 'x' * (longest + 1), version=0)
    assert too_long.topics[0].error_code == INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize('release', ['0.8.0', '0.8.1', '0.8.2'])
def test_an_illegal_name_fails_the_whole_request_in_0_8(release):
    driver = Driver(release)
    driver.state.create_topic('t')
    answer = ask(driver, 't', 'a/b', 't', version=0)
    assert [(each.name, each.error_code) for each in answer.topics] == [
        ('t', INVALID_TOPIC_EXCEPTION),
        ('a/b', INVALID_TOPIC_EXCEPTION),
        ('t', INVALID_TOPIC_EXCEPTION),
    ]
    assert answer.brokers == []


@pytest.mark.parametrize('release', ['0.8.0', '0.8.1', '0.8.2'])
def test_brokers_of_0_8_know_of_nobody_before_the_first_topic(release):
    driver = Driver(release, brokers=2)
    assert ask(driver, version=0).brokers == []
    answer = ask(driver, 't', version=0)
    assert (answer.topics[0].error_code, answer.brokers) == (LEADER_NOT_AVAILABLE, [])
    assert len(ask(driver, 't', version=0).brokers) == 2
    assert len(ask(driver, version=0).brokers) == 2


def test_brokers_of_0_8_1_are_those_of_the_topics_in_the_answer():
    for release, nodes in (('0.8.1', [1]), ('0.8.2', [0, 1])):
        driver = Driver(release, brokers=2)
        driver.state.create_topic('t', assignments=[[1]])
        assert [each.node_id for each in ask(driver, 't', version=0).brokers] == nodes


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
