"""Who may know of topics, create, change and delete them."""

from __future__ import annotations

import pytest

from kafka.protocol.admin.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from kafka.protocol.metadata import (
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    MetadataRequestTopic,
)
from kafka.protocol.metadata import TopicRequest as DescribedTopic
from kafka.protocol.wire import ZERO_UUID
from kafka.testing.security import acls
from test.testing.guards.people import CLUSTER, TOPIC, People

NONE_GIVEN = -0x80000000


@pytest.fixture
def people(request):
    people = People(getattr(request, 'param', '4.4'))
    people.state.create_topic('mine')
    people.state.create_topic('theirs')
    return people


def metadata(people, *names, version=None, user='bob', **values):
    topics = [MetadataRequestTopic(name=name) for name in names] if names else None
    response = people.ask_as(user, MetadataRequest(topics=topics, **values), version)
    return {each.name: each.error_code for each in response.topics}, response


def test_of_all_topics_one_sees_what_one_may_describe(people):
    people.allow('bob', acls.DESCRIBE, TOPIC, 'mine')
    found, response = metadata(people)
    assert found == {'mine': 0}
    assert response.brokers


@pytest.mark.parametrize('people', ['0.9', '0.10.0', '0.10.1'], indirect=True)
def test_0_10_0_alone_names_the_others_too(people):
    people.allow('bob', acls.DESCRIBE, TOPIC, 'mine')
    others = {'theirs': 29} if people.state.release.version[:3] == (0, 10, 0) else {}
    response = people.ask_as('bob', MetadataRequest(topics=[]), 0)
    assert {each.name: each.error_code for each in response.topics} == {'mine': 0, **others}


@pytest.mark.parametrize('people', ['2.8'], indirect=True)
@pytest.mark.parametrize('names', [(), ('theirs',)])
def test_in_version_0_too(people, names):
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])
    people.allow('bob', acls.DESCRIBE, TOPIC, 'mine')
    found = people.ask_as('bob', request, 0).topics
    expected = [('theirs', 29)] if names else [('mine', 0)]
    assert [(each.name, each.error_code) for each in found] == expected


def test_hidden_topics_look_like_those_that_there_are_not(people):
    people.allow('bob', acls.READ, TOPIC, 'mine')
    found, response = metadata(people, 'mine', 'theirs', 'nowhere')
    assert found == {'mine': 0, 'theirs': 29, 'nowhere': 29}
    assert [len(each.partitions) for each in response.topics] == [1, 0, 0]
    assert [each.topic_id == ZERO_UUID for each in response.topics] == [False, True, True]
    assert 'nowhere' not in people.state.topics


@pytest.mark.parametrize(
    ('people', 'kind', 'name', 'code'),
    [
        ('4.4', TOPIC, 'new', 3),
        ('4.4', CLUSTER, acls.CLUSTER_NAME, 3),
        ('4.4', TOPIC, 'other', 29),
        ('2.0', TOPIC, 'new', 5),
        ('1.1', TOPIC, 'new', 29),
        ('1.1', CLUSTER, acls.CLUSTER_NAME, 5),
    ],
    indirect=['people'],
)
def test_topics_are_created_by_who_may(people, kind, name, code):
    people.allow('bob', acls.DESCRIBE, TOPIC, '*')
    people.allow('bob', acls.CREATE, kind, name)
    assert metadata(people, 'new')[0] == {'new': code}
    assert ('new' in people.state.topics) is (code != 29)


def test_who_does_not_want_a_topic_created_needs_no_right_to(people):
    people.allow('bob', acls.DESCRIBE, TOPIC, '*')
    assert metadata(people, 'new', allow_auto_topic_creation=False)[0] == {'new': 3}


def test_an_id_hides_nothing_but_the_name(people):
    ids = [people.state.topics['theirs'].topic_id, b'\1' * 16]
    topics = [MetadataRequestTopic(name=None, topic_id=each) for each in ids]
    found = people.ask_as('bob', MetadataRequest(topics=topics)).topics
    assert {(each.topic_id, each.name, each.error_code) for each in found} == {
        (ids[0], None, 29),
        (ids[1], None, 100),
    }


def test_operations_are_those_that_one_may(people):
    people.allow('bob', acls.DELETE, TOPIC, 'mine')
    _, response = metadata(people, 'mine', 'theirs', include_topic_authorized_operations=True)
    found = {each.name: each.topic_authorized_operations for each in response.topics}
    assert found == {'mine': 1 << acls.DELETE | 1 << acls.DESCRIBE, 'theirs': NONE_GIVEN}


@pytest.mark.parametrize(
    ('operation', 'expected'),
    [(acls.CREATE, 0), (acls.ALTER, 1 << acls.ALTER | 1 << acls.DESCRIBE), (acls.ALL, 8096)],
)
def test_operations_on_the_cluster_are_for_who_may_describe_it(people, operation, expected):
    people.allow('bob', operation, CLUSTER)
    _, response = metadata(people, version=10, include_cluster_authorized_operations=True)
    assert response.cluster_authorized_operations == expected


def test_topics_are_described_to_who_may(people):
    people.allow('bob', acls.DESCRIBE, TOPIC, 'mine')
    for names in ([], ['mine', 'theirs', 'nowhere']):
        request = DescribeTopicPartitionsRequest(
            topics=[DescribedTopic(name=name) for name in names], response_partition_limit=10
        )
        found = people.ask_as('bob', request).topics
        expected = {'mine': 0, 'theirs': 29, 'nowhere': 29} if names else {'mine': 0}
        assert {each.name: each.error_code for each in found} == expected


# ---------------------------------------------------------------- changes


def created(people, *names, **values):
    topics = [
        CreatableTopic(
            name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[]
        )
        for name in names
    ]
    request = CreateTopicsRequest(topics=topics, timeout_ms=100, **values)
    return {each.name: each for each in people.ask_as('bob', request).topics}


def codes_of(found):
    return {name: each.error_code for name, each in found.items()}


def test_one_creates_the_topics_that_one_may(people):
    people.allow('bob', acls.CREATE, TOPIC, 'new-', acls.PREFIXED)
    assert codes_of(created(people, 'new-1', 'other')) == {'new-1': 0, 'other': 29}
    assert 'other' not in people.state.topics


def test_who_may_create_in_the_cluster_may_create_all(people):
    people.allow('bob', acls.CREATE, CLUSTER)
    assert codes_of(created(people, 'a', 'b')) == {'a': 0, 'b': 0}


@pytest.mark.parametrize('people', ['1.1'], indirect=True)
def test_before_2_0_nothing_else_would_do(people):
    people.allow('bob', acls.CREATE, TOPIC, '*')
    assert codes_of(created(people, 'a')) == {'a': 31}


def test_the_settings_of_a_new_topic_are_for_who_may_see_them(people):
    people.allow('bob', acls.CREATE, TOPIC, '*')
    people.allow('bob', acls.DESCRIBE_CONFIGS, TOPIC, 'seen')
    found = created(people, 'seen', 'unseen')
    assert (found['seen'].topic_config_error_code, found['seen'].num_partitions) == (0, 1)
    assert (found['unseen'].topic_config_error_code, found['unseen'].num_partitions) == (29, -1)
    assert found['seen'].configs
    assert not found['unseen'].configs


@pytest.mark.parametrize('version', [5, 6])
def test_one_deletes_the_topics_that_one_may(people, version):
    people.allow('bob', acls.DELETE, TOPIC, 'mine')
    names = ['mine', 'theirs', 'nowhere']
    states = [DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in names]
    asked = {'topic_names': names} if version == 5 else {'topics': states}
    request = DeleteTopicsRequest(timeout_ms=100, **asked)
    found = people.ask_as('bob', request, version).responses
    assert {each.name: each.error_code for each in found} == {
        'mine': 0,
        'theirs': 29,
        'nowhere': 29,
    }
    assert list(people.state.topics) == ['theirs']


def test_partitions_are_added_by_who_may_alter(people):
    people.allow('bob', acls.ALTER, TOPIC, 'mine')
    topics = [
        CreatePartitionsTopic(name=each, count=2, assignments=None) for each in ('mine', 'theirs')
    ]
    request = CreatePartitionsRequest(topics=topics, timeout_ms=100, validate_only=False)
    found = people.ask_as('bob', request).results
    assert {each.name: each.error_code for each in found} == {'mine': 0, 'theirs': 29}
