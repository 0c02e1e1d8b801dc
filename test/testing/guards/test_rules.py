"""Every guard, of every API in every version: who may nothing is refused in a form that fits."""

from __future__ import annotations

import pytest

from kafka.protocol.api import ApiKey, request_class
from kafka.protocol.metadata import MetadataRequest, MetadataRequestTopic
from kafka.protocol.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka.testing import guards
from kafka.testing.calls import HANDLERS
from kafka.testing.guards.rules import GUARDS
from kafka.testing.releases import broker_release
from kafka.testing.security import acls
from test.testing.filled_messages import filled
from test.testing.guards.people import AUTHORIZATION, TOPIC, People, codes

guards.load()

#: These leave out what one may not see, and say no code.
SILENT = {
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.DESCRIBE_LOG_DIRS,
    ApiKey.LIST_GROUPS,
    ApiKey.LIST_TRANSACTIONS,
}


#: Of these brokers have none before 4.0, whoever asks.
NEW_GROUPS = {ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE}


@pytest.mark.parametrize('release', ['0.9', '0.11', '1.1', '2.8', '3.9', '4.4'])
def test_who_may_nothing_is_refused_everything(release):
    people = People(release)
    # Before 1.0 what one may not see was told to be unknown.
    refusals = AUTHORIZATION | ({3} if release == '0.11' else set())
    for key, (low, high) in broker_release(release).served.items():
        if key not in GUARDS or key not in HANDLERS:
            continue
        if release == '3.9' and key in NEW_GROUPS:
            continue
        for version in range(low, high + 1):
            request = filled(request_class(key), version)
            for each in getattr(request, 'resources', ()):
                each.resource_type = TOPIC
            response = people.ask_as('bob', request, version)
            where = '%s v%d of %s' % (ApiKey(key).name, version, release)
            if key == ApiKey.PRODUCE:  # acks=0
                assert response is None, where
            elif key not in SILENT and not (key == ApiKey.LIST_GROUPS and release < '2.1'):
                assert codes(response) & refusals, where
                assert not codes(response) - refusals - {0, 55}, where
    assert not people.state.control.failures
    assert not people.state.topics


def test_super_users_are_not_refused():
    people = People('4.4')
    for key, (_, high) in broker_release('4.4').served.items():
        if key in GUARDS and key in HANDLERS and key != ApiKey.PRODUCE:
            response = people.ask_as('root', filled(request_class(key), high), high)
            if response is not None:
                assert not codes(response) & (AUTHORIZATION - {53}), ApiKey(key).name


def test_without_an_authorizer_nothing_is_guarded():
    people = People('4.4')
    people.state.authorizer = None
    assert people.ask_as('bob', MetadataRequest(topics=[MetadataRequestTopic(name='t')]))
    assert list(people.state.topics) == ['t']


def test_a_request_is_not_changed_in_the_log():
    people = People('4.4')
    people.state.create_topic('t')
    people.allow('bob', acls.WRITE, TOPIC, 't')
    ids = [people.state.topics['t'].topic_id, people.state.create_topic('u').topic_id]
    topics = [
        TopicProduceData(
            topic_id=each, partition_data=[PartitionProduceData(index=0, records=None)]
        )
        for each in ids
    ]
    request = ProduceRequest(transactional_id=None, acks=1, timeout_ms=1, topic_data=topics)
    answer = people.ask_as('bob', request)
    assert len(answer.responses) == 2
    (logged,) = people.state.control.requests.entries()
    assert [each.topic_id for each in logged.request.topic_data] == ids
