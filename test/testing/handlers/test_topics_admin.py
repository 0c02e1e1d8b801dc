"""Topics are created, grown and deleted as brokers of each era do it."""

from __future__ import annotations

import pytest

from kafka.protocol.admin.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from kafka.protocol.wire import ZERO_UUID
from kafka.testing import errors, state
from test.testing.drive import Driver


def topic(name='t', partitions=1, copies=1, assignments=(), **configs):
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=copies,
        assignments=[
            CreatableReplicaAssignment(partition_index=i, broker_ids=list(nodes))
            for i, nodes in enumerate(assignments)
        ],
        configs=[
            CreatableTopicConfig(name=key.replace('_', '.'), value=value)
            for key, value in configs.items()
        ],
    )


def create(driver, *topics, version=None, node=0, validate_only=False, timeout_ms=1000):
    request = CreateTopicsRequest(
        topics=list(topics), timeout_ms=timeout_ms, validate_only=validate_only
    )
    return driver.ask(request, version, node).topics


def code(driver, *topics, **options):
    return create(driver, *topics, **options)[0].error_code


@pytest.mark.parametrize('release', ['0.10.1', '0.11', '2.3', '2.8', '3.9', '4.4'])
def test_every_version_creates(release):
    driver = Driver(release)
    low, high = driver.state.release.served[CreateTopicsRequest.api_key]
    for version in range(low, high + 1):
        [result] = create(driver, topic('t%d' % version, 3), version=version)
        assert result.error_code == errors.NONE
        assert len(driver.state.topics['t%d' % version].partitions) == 3


def test_version_7_tells_id_counts_and_settings():
    driver = Driver()
    [result] = create(driver, topic('t', 2, retention_ms='5'))
    assert result.topic_id == driver.state.topics['t'].topic_id
    assert (result.num_partitions, result.replication_factor) == (2, 1)
    by_name = {config.name: config for config in result.configs}
    assert (by_name['retention.ms'].value, by_name['retention.ms'].config_source) == ('5', 1)
    assert (by_name['segment.ms'].value, by_name['segment.ms'].config_source) == ('604800000', 5)


def test_validation_creates_nothing():
    driver = Driver()
    assert code(driver, topic(), validate_only=True) == errors.NONE
    assert driver.state.topics == {}


@pytest.mark.parametrize('release', ['2.8', '4.4'])
@pytest.mark.parametrize(
    'asked, expected',
    [
        (topic('a b'), errors.INVALID_TOPIC_EXCEPTION),
        (topic('..'), errors.INVALID_TOPIC_EXCEPTION),
        (topic('x' * 250), errors.INVALID_TOPIC_EXCEPTION),
        (topic('here'), errors.TOPIC_ALREADY_EXISTS),
        (topic('__consumer_offsets'), errors.TOPIC_ALREADY_EXISTS),
        (topic('a_b'), errors.INVALID_TOPIC_EXCEPTION),
        (topic(partitions=0), errors.INVALID_PARTITIONS),
        (topic(partitions=2**31 - 1), errors.INVALID_PARTITIONS),
        (topic(copies=0), errors.INVALID_REPLICATION_FACTOR),
        (topic(copies=2), errors.INVALID_REPLICATION_FACTOR),
        (topic(no_such='1'), errors.INVALID_CONFIG),
        (topic(retention_ms='soon'), errors.INVALID_CONFIG),
        (topic(min_insync_replicas='0'), errors.INVALID_CONFIG),
        (topic(assignments=[[0]]), errors.INVALID_REQUEST),
        (topic(partitions=-1, copies=-1, assignments=[[0, 0]]), errors.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_bad_topics_are_refused(release, asked, expected):
    driver = Driver(release)
    create(driver, topic('here'), topic('a.b'))
    assert code(driver, asked) == expected
    assert set(driver.state.topics) == {'here', 'a.b'}


def test_a_cluster_has_no_more_partitions_than_there_is_memory_for(monkeypatch):
    monkeypatch.setattr(state, 'MOST_PARTITIONS', 5)
    driver = Driver()
    given = topic('a', partitions=-1, copies=-1, assignments=[[0]] * 6)
    assert code(driver, given) == errors.INVALID_PARTITIONS
    assert code(driver, topic('a', 3)) == errors.NONE
    assert code(driver, topic('b', 3)) == errors.INVALID_PARTITIONS
    assert grow(driver, 6, name='a') == errors.INVALID_PARTITIONS
    assert grow(driver, 5, name='a') == errors.NONE
    driver.state.drop_topic('a')
    assert code(driver, topic('b', 5)) == errors.NONE


@pytest.mark.parametrize('release', ['2.8', '4.4'])
def test_a_partition_lives_on_no_more_brokers_than_there_can_be(release):
    asked = topic(partitions=-1, copies=-1, assignments=[list(range(200_000))])
    assert code(Driver(release), asked) == errors.INVALID_REPLICA_ASSIGNMENT


def test_unknown_brokers_are_refused_without_zookeeper_only():
    asked = topic(partitions=-1, copies=-1, assignments=[[9]])
    assert code(Driver('4.4'), asked) == errors.INVALID_REPLICA_ASSIGNMENT
    driver = Driver('2.8')
    assert code(driver, asked) == errors.REQUEST_TIMED_OUT  # there is no leader to wait for
    assert driver.state.topics['t'].partitions[0].replicas == [9]
    assert driver.timers.clock.monotonic() >= 1


def test_one_name_twice_is_refused_once():
    [result] = create(Driver(), topic(), topic())
    assert result.error_code == errors.INVALID_REQUEST
    twice = create(Driver('2.8'), topic(), topic())
    assert [each.error_code for each in twice] == [errors.INVALID_REQUEST] * 2


def test_only_the_controller_creates_where_zookeeper_is():
    assert code(Driver('2.8', brokers=2), topic(), node=1) == errors.NOT_CONTROLLER
    assert code(Driver('4.4', brokers=2), topic(), node=1) == errors.NONE


def test_defaults_of_the_cluster_stand_for_minus_1_since_2_4():
    driver = Driver('2.4', brokers=2, num_partitions=5)
    create(driver, topic(partitions=-1, copies=-1))
    assert len(driver.state.topics['t'].partitions) == 5
    assert len(driver.state.topics['t'].partitions[0].replicas) == 2
    assert code(Driver('2.3'), topic(partitions=-1)) == errors.INVALID_PARTITIONS


def test_no_time_to_wait_is_a_timeout_where_zookeeper_is():
    driver = Driver('2.8')
    assert code(driver, topic(), timeout_ms=0) == errors.REQUEST_TIMED_OUT
    assert 't' in driver.state.topics


@pytest.mark.parametrize('release', ['0.10.1', '2.8', '4.4'])
def test_every_version_deletes(release):
    driver = Driver(release, delete_topic_enable=True)
    low, high = driver.state.release.served[DeleteTopicsRequest.api_key]
    for version in range(low, high + 1):
        create(driver, topic())
        if version < 6:
            request = DeleteTopicsRequest(topic_names=['t'], timeout_ms=1)
        else:
            state = DeleteTopicState(name='t', topic_id=ZERO_UUID)
            request = DeleteTopicsRequest(topics=[state], timeout_ms=1)
        [result] = driver.ask(request, version).responses
        assert (result.name, result.error_code) == ('t', errors.NONE)
        assert driver.state.topics == {}


def test_nothing_is_deleted_before_1_0_and_the_answer_takes_its_time():
    driver = Driver('0.11')
    create(driver, topic())
    request = DeleteTopicsRequest(topic_names=['t', 'none'], timeout_ms=700)
    results = driver.ask(request, 0).responses
    assert driver.timers.clock.monotonic() >= 0.7
    assert [(each.name, each.error_code) for each in results] == [
        ('t', errors.REQUEST_TIMED_OUT),
        ('none', errors.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert list(driver.state.topics) == ['t']


@pytest.mark.parametrize(
    ('version', 'error'), [(2, errors.INVALID_REQUEST), (3, errors.TOPIC_DELETION_DISABLED)]
)
def test_brokers_that_delete_nothing_say_so_from_2_1_on(version, error):
    driver = Driver('2.8', delete_topic_enable=False)
    create(driver, topic())
    request = DeleteTopicsRequest(topic_names=['t'], timeout_ms=700)
    assert [each.error_code for each in driver.ask(request, version).responses] == [error]
    assert list(driver.state.topics) == ['t']


@pytest.mark.parametrize(('release', 'answers'), [('1.1', 1), ('2.8', 2)])
def test_a_topic_named_twice_is_deleted_once(release, answers):
    driver = Driver(release)
    create(driver, topic())
    request = DeleteTopicsRequest(topic_names=['t', 't'], timeout_ms=700)
    assert [each.error_code for each in driver.ask(request, 1).responses] == [errors.NONE] * answers


def test_partitions_have_gaps_before_2_0():
    driver = Driver('1.1')
    asked = topic(partitions=-1, copies=-1)
    asked.assignments = [CreatableReplicaAssignment(partition_index=3, broker_ids=[0])]
    assert code(driver, asked) == errors.NONE
    [found] = driver.state.topics['t'].partitions
    assert found.index == 3
    assert driver.state.topics['t'].partition(3) is found
    assert driver.state.topics['t'].partition(0) is None


def test_a_null_config_could_not_be_read_before_0_11():
    asked = topic()
    asked.configs = [CreatableTopicConfig(name='retention.ms', value=None)]
    driver = Driver('0.10.2')
    client = driver.client()
    client.send(CreateTopicsRequest(topics=[asked], timeout_ms=1), 1)
    assert client.wire.is_closed


def test_topics_are_deleted_by_id():
    driver = Driver()
    create(driver, topic())
    wanted = [
        DeleteTopicState(name=None, topic_id=driver.state.topics['t'].topic_id),
        DeleteTopicState(name=None, topic_id=b'x' * 16),
        DeleteTopicState(name='none', topic_id=ZERO_UUID),
        DeleteTopicState(name='t', topic_id=b'x' * 16),
        DeleteTopicState(name=None, topic_id=ZERO_UUID),
    ]
    results = driver.ask(DeleteTopicsRequest(topics=wanted, timeout_ms=1)).responses
    assert [(each.name, each.error_code) for each in results] == [
        ('t', errors.NONE),
        (None, errors.UNKNOWN_TOPIC_ID),
        ('none', errors.UNKNOWN_TOPIC_OR_PARTITION),
        ('t', errors.INVALID_REQUEST),
        (None, errors.INVALID_REQUEST),
    ]


def grow(driver, count, assignments=None, name='t', validate_only=False, version=None):
    given = assignments and [CreatePartitionsAssignment(broker_ids=each) for each in assignments]
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=count, assignments=given)],
        timeout_ms=1,
        validate_only=validate_only,
    )
    return driver.ask(request, version).results[0].error_code


@pytest.mark.parametrize('release', ['1.0', '2.8', '4.4'])
def test_every_version_grows(release):
    driver = Driver(release)
    create(driver, topic())
    low, high = driver.state.release.served[CreatePartitionsRequest.api_key]
    for version in range(low, high + 1):
        count = len(driver.state.topics['t'].partitions) + 2
        assert grow(driver, count, version=version) == errors.NONE
        assert len(driver.state.topics['t'].partitions) == count


@pytest.mark.parametrize('release', ['2.8', '4.4'])
@pytest.mark.parametrize(
    'count, assignments, name, expected',
    [
        (2, None, 't', errors.INVALID_PARTITIONS),
        (1, None, 't', errors.INVALID_PARTITIONS),
        (3, None, 'none', errors.UNKNOWN_TOPIC_OR_PARTITION),
        (3, [[0], [0]], 't', errors.INVALID_REPLICA_ASSIGNMENT),
        (3, [[7]], 't', errors.INVALID_REPLICA_ASSIGNMENT),
        (3, [[0, 0]], 't', errors.INVALID_REPLICA_ASSIGNMENT),
        (3, [[0]], 't', errors.NONE),
    ],
)
def test_growth_is_checked(release, count, assignments, name, expected):
    driver = Driver(release)
    create(driver, topic('t', 2))
    assert grow(driver, count, assignments, name) == expected
    assert len(driver.state.topics['t'].partitions) == (3 if expected == 0 else 2)


def test_growth_can_be_tried():
    driver = Driver()
    create(driver, topic())
    assert grow(driver, 9, validate_only=True) == errors.NONE
    assert len(driver.state.topics['t'].partitions) == 1


def test_what_is_named_twice_stays_without_zookeeper():
    for release, expected in (('2.8', [0, 0]), ('4.4', [errors.INVALID_REQUEST])):
        driver = Driver(release)
        create(driver, topic())
        request = DeleteTopicsRequest(topic_names=['t', 't'], timeout_ms=1)
        found = driver.ask(request, 5).responses
        assert [each.error_code for each in found] == expected
        assert ('t' in driver.state.topics) == (release == '4.4')


def test_a_topic_on_no_broker_is_waited_for_where_zookeeper_is():
    asked = topic(partitions=-1, copies=-1, assignments=[[]])
    assert code(Driver('4.4'), asked) == errors.INVALID_REPLICA_ASSIGNMENT
    driver = Driver('2.8')
    assert code(driver, asked) == errors.REQUEST_TIMED_OUT
    assert driver.state.topics == {}
    create(driver, topic())
    assert grow(driver, 2, [[]]) == errors.INVALID_REPLICA_ASSIGNMENT


def test_the_first_releases_stumble_over_bad_settings():
    driver = Driver('1.1')
    assert code(driver, topic(retention_ms='soon')) == errors.UNKNOWN_SERVER_ERROR
    assert code(driver, topic(retention_ms=None)) == errors.UNKNOWN_SERVER_ERROR
    assert code(driver, topic(no_such='1')) == errors.INVALID_CONFIG
    assert driver.state.topics == {}
