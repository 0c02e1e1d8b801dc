"""Who may see and change settings."""

from __future__ import annotations

import pytest

from kafka.protocol.admin.configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from kafka.testing.security import acls
from kafka.testing.settings import configs
from test.testing.guards.people import CLUSTER, GROUP, TOPIC, People

PLACES = [(configs.TOPIC, 't'), (configs.BROKER, '0'), (configs.GROUP, 'g')]
RIGHTS = [(TOPIC, 't', 29), (CLUSTER, acls.CLUSTER_NAME, 31), (GROUP, 'g', 30)]


@pytest.fixture
def people():
    people = People('4.4')
    people.state.create_topic('t')
    return people


def described(people):
    resources = [
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
        for kind, name in PLACES
    ]
    found = people.ask_as('bob', DescribeConfigsRequest(resources=resources)).results
    assert all(bool(each.configs) is not bool(each.error_code) for each in found)
    return {(each.resource_type, each.resource_name): each.error_code for each in found}


def altered(people, request_class, resource_class, config):
    values = {configs.GROUP: ('share.record.lock.duration.ms', '30000')}
    resources = [
        resource_class(
            resource_type=kind,
            resource_name=name,
            configs=[config(*values.get(kind, ('retention.ms', '1000')))]
            if kind != configs.BROKER
            else [],
        )
        for kind, name in PLACES
    ]
    request = request_class(resources=resources, validate_only=True)
    found = people.ask_as('bob', request).responses
    return {(each.resource_type, each.resource_name): each.error_code for each in found}


def all_at_once(people):
    return altered(
        people,
        AlterConfigsRequest,
        AlterConfigsResource,
        lambda name, value: AlterableConfig(name=name, value=value),
    )


def one_by_one(people):
    return altered(
        people,
        IncrementalAlterConfigsRequest,
        IncrementalAlterConfigsResource,
        lambda name, value: IncrementalAlterableConfig(name=name, config_operation=0, value=value),
    )


@pytest.mark.parametrize(
    ('ask', 'operation'),
    [
        (described, acls.DESCRIBE_CONFIGS),
        (all_at_once, acls.ALTER_CONFIGS),
        (one_by_one, acls.ALTER_CONFIGS),
    ],
)
def test_each_kind_of_resource_has_its_right(people, ask, operation):
    expected = {place: code for place, (_, _, code) in zip(PLACES, RIGHTS)}
    assert ask(people) == expected
    for place, (kind, name, _) in zip(PLACES, RIGHTS):
        people.allow('bob', operation, kind, name)
        expected[place] = 0
        assert ask(people) == expected


def test_a_topic_that_there_is_not_is_hidden(people):
    del people.state.topics['t']
    assert described(people)[configs.TOPIC, 't'] == 29
    people.allow('bob', acls.DESCRIBE_CONFIGS, TOPIC, 't')
    assert described(people)[configs.TOPIC, 't'] == 3


def test_what_is_no_resource_is_told_so_to_everybody(people):
    resource = DescribeConfigsResource(resource_type=77, resource_name='x', configuration_keys=None)
    found = people.ask_as('bob', DescribeConfigsRequest(resources=[resource])).results
    assert [each.error_code for each in found] == [42]
