"""What valid requests leave behind has one budget: beyond it what is new is refused."""

from __future__ import annotations

import pytest

from kafka.protocol.admin.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
)
from kafka.protocol.admin.configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from kafka.protocol.admin.groups import DeleteGroupsRequest
from kafka.protocol.admin.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
    OpData,
)
from kafka.protocol.admin.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from kafka.protocol.admin.users import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kafka.protocol.wire import ZERO_UUID
from kafka.testing import Cluster
from kafka.testing.errors import (
    COORDINATOR_NOT_AVAILABLE,
    NONE,
    POLICY_VIOLATION,
    UNKNOWN_SERVER_ERROR,
)
from kafka.testing.settings import configs
from test.testing.drive import Driver
from test.testing.group_requests import commit
from test.testing.handlers.test_transactions import Producer

LIMIT = 20_000


def acl(driver, name, text):
    asked = AclCreation(2, name + text, 3, 'User:bob', '*', 3, 3)
    return driver.ask(CreateAclsRequest(creations=[asked])).results[0].error_code


def no_acl(driver, name):
    asked = DeleteAclsFilter(2, None, 1, None, None, 1, 1)
    asked.resource_name_filter = next(
        each.resource_name for each in driver.state.acls if each.resource_name.startswith(name)
    )
    return driver.ask(DeleteAclsRequest(filters=[asked])).filter_results[0].error_code


def quota(driver, name, text, *, remove=False):
    operation = OpData(key='producer_byte_rate', value=1.0, remove=remove)
    entity = [EntityData(entity_type='user', entity_name=name)]
    entity += [EntityData(entity_type='client-id', entity_name='x' * len(text))]
    entry = AlterClientQuotasRequestEntryData(entity=entity, ops=[operation])
    return driver.ask(AlterClientQuotasRequest([entry], False)).entries[0].error_code


def no_quota(driver, name):
    [length] = [len(e[1][1]) for e in driver.state.quotas if e[0][1] == name]
    return quota(driver, name, 'x' * length, remove=True)


def user(driver, name, text):
    asked = ScramCredentialUpsertion(name, 1, 4096, text.encode(), b'x' * 32)
    request = AlterUserScramCredentialsRequest(deletions=[], upsertions=[asked])
    return driver.ask(request).results[0].error_code


def no_user(driver, name):
    asked = ScramCredentialDeletion(name, 1)
    request = AlterUserScramCredentialsRequest(deletions=[asked], upsertions=[])
    return driver.ask(request).results[0].error_code


def setting(driver, kind, name, key, value):
    config = IncrementalAlterableConfig(key, 0 if value else 1, value)
    resource = IncrementalAlterConfigsResource(kind, name, [config])
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
    return driver.ask(request).responses[0].error_code


def metrics(driver, name, text):
    return setting(driver, configs.CLIENT_METRICS, name, 'metrics', text or 'x')


def no_metrics(driver, name):
    return setting(driver, configs.CLIENT_METRICS, name, 'metrics', None)


def topic_setting(driver, name, text):
    """By the older API, which replaces all of them."""
    if name not in driver.state.topics:
        driver.state.create_topic(name)
    key = 'leader.replication.throttled.replicas'
    value = ','.join(['0:0'] * (1 + len(text) // 4))
    resource = AlterConfigsResource(configs.TOPIC, name, [AlterableConfig(key, value)])
    request = AlterConfigsRequest(resources=[resource], validate_only=False)
    return driver.ask(request).responses[0].error_code


def no_topic_setting(driver, name):
    resource = AlterConfigsResource(configs.TOPIC, name, [])
    request = AlterConfigsRequest(resources=[resource], validate_only=False)
    return driver.ask(request).responses[0].error_code


def new_topic(driver, name, text):
    key = 'leader.replication.throttled.replicas'
    value = ','.join(['0:0'] * (1 + len(text) // 4))
    config = CreatableTopicConfig(key, value)
    asked = CreatableTopic(name, 1, 1, assignments=[], configs=[config])
    return driver.ask(CreateTopicsRequest(topics=[asked], timeout_ms=1000)).topics[0].error_code


def no_topic(driver, name):
    asked = DeleteTopicState(name=name, topic_id=ZERO_UUID)
    answer = driver.ask(DeleteTopicsRequest(topics=[asked], timeout_ms=1000))
    return answer.responses[0].error_code


def group_setting(driver, name, text):
    return setting(driver, configs.GROUP, name + text, 'consumer.session.timeout.ms', '50000')


def no_group_setting(driver, name):
    [name] = [each for kind, each in driver.state.configs if each.startswith(name)]
    return setting(driver, configs.GROUP, name, 'consumer.session.timeout.ms', None)


def offset(driver, name, text):
    if 't' not in driver.state.topics:
        driver.state.create_topic('t')
    answer = driver.ask(commit(1, group=name, metadata=text), 8)
    return answer.topics[0].partitions[0].error_code


def no_offset(driver, name):
    return driver.ask(DeleteGroupsRequest(groups_names=[name])).results[0].error_code


KINDS = {
    'acl': (acl, no_acl, POLICY_VIOLATION),
    'quota': (quota, no_quota, POLICY_VIOLATION),
    'user': (user, no_user, POLICY_VIOLATION),
    'metrics': (metrics, no_metrics, POLICY_VIOLATION),
    'topic setting': (topic_setting, no_topic_setting, POLICY_VIOLATION),
    'new topic': (new_topic, no_topic, POLICY_VIOLATION),
    'group setting': (group_setting, no_group_setting, POLICY_VIOLATION),
    'offset': (offset, no_offset, COORDINATOR_NOT_AVAILABLE),
}
#: Those that can be altered under their name.
ALTERED = ('user', 'metrics', 'topic setting', 'offset')


def started(limit=LIMIT, version='4.4', **settings):
    return Driver(version, state_bytes_limit=limit, authorizer=True, super_users=['ANONYMOUS'])


def filled(driver, put, refused, text='x' * 500):
    """Put until it is refused; return how many times it went well."""
    for count in range(100):
        code = put(driver, 'name-%02d-' % count, text)
        if code != NONE:
            assert code == refused
            return count
    raise AssertionError('nothing is refused')


def is_counted_right(driver):
    counted = driver.state.kept.used
    driver.state.kept.measure_again()
    return driver.state.kept.used == counted


@pytest.mark.parametrize('kind', KINDS)
def test_each_kind_is_refused_beyond_the_budget_and_taken_when_some_has_gone(kind):
    put, remove, refused = KINDS[kind]
    driver = started()
    count = filled(driver, put, refused)
    assert 5 <= count <= LIMIT // 700
    assert LIMIT - 2500 < driver.state.kept.used <= LIMIT
    assert is_counted_right(driver)
    assert put(driver, 'other', 'x' * 500) == refused
    assert remove(driver, 'name-00-') == NONE
    assert is_counted_right(driver)
    assert put(driver, 'other', 'x' * 500) == NONE
    assert put(driver, 'another', 'x' * 500) == refused
    assert is_counted_right(driver)


@pytest.mark.parametrize('kind', ALTERED)
def test_what_is_there_may_become_smaller_and_not_larger(kind):
    put, _, refused = KINDS[kind]
    driver = started()
    filled(driver, put, refused)
    assert put(driver, 'name-01-', 'x' * 500) == NONE
    driver.state.defaults = driver.state.defaults._replace(state_bytes_limit=100)
    assert put(driver, 'name-01-', 'x' * 300) == NONE
    assert put(driver, 'name-01-', 'x' * 500) == refused
    assert is_counted_right(driver)


@pytest.mark.parametrize('other', KINDS)
def test_it_is_one_budget_for_all_of_them(other):
    driver = started()
    filled(driver, quota, POLICY_VIOLATION, 'x' * 900)
    filled(driver, acl, POLICY_VIOLATION, '')  # what was too little for a quota
    put, _, refused = KINDS[other]
    assert put(driver, 'one', 'x' * 500) == refused


def test_validation_leaves_nothing():
    driver = started()
    for _ in range(100):
        config = IncrementalAlterableConfig('metrics', 0, 'x' * 500)
        resource = IncrementalAlterConfigsResource(configs.CLIENT_METRICS, 'm', [config])
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=True)
        assert driver.ask(request).responses[0].error_code == NONE
    assert driver.state.kept.used == 0


def test_offsets_in_transactions_are_refused():
    driver = Driver('4.4', state_bytes_limit=LIMIT)
    producer = Producer(driver)
    assert producer.init() == NONE
    codes = []
    for number in range(100):
        group = 'g%02d%s' % (number, 'x' * 500)
        assert producer.add_offsets(group) == NONE
        codes.append(producer.commit_offset(1, group))
    assert set(codes) == {NONE, COORDINATOR_NOT_AVAILABLE}
    assert driver.state.kept.used <= LIMIT
    assert producer.end(False) == NONE
    driver.advance(1)
    assert driver.state.kept.used == 0


def test_offsets_in_zookeeper_are_refused():
    driver = Driver('2.8', state_bytes_limit=LIMIT)
    driver.state.create_topic('t')
    codes = set()
    for number in range(100):
        request = commit(1, group='g%02d%s' % (number, 'x' * 500))
        codes.add(driver.ask(request, 0).topics[0].partitions[0].error_code)
    assert codes == {NONE, UNKNOWN_SERVER_ERROR}
    assert driver.state.kept.used <= LIMIT
    again = driver.ask(commit(2, group='g00' + 'x' * 500), 0)
    assert again.topics[0].partitions[0].error_code == NONE


def test_what_users_of_the_cluster_put_there_themselves_counts():
    cluster = Cluster(authorizer=True)
    cluster.allow('alice', 'Read', topic='t')
    assert cluster.state.kept.used > 0
    cluster.allow('bob', 'Read', topic='t')
    before = cluster.state.kept.used
    cluster.create_topic('t', configs={'retention.ms': '1000'})
    assert cluster.state.kept.used > before


def test_what_comes_back_counts(folders):
    driver = folders.start()
    metrics(driver, 'm', 'x' * 500)
    offset(driver, 'g', 'x' * 500)
    used = driver.state.kept.used
    assert used > 1000
    assert folders.after_stop().state.kept.used == used
