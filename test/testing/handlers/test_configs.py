"""Settings are told and changed as brokers of each era do it."""

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
    ListConfigResourcesRequest,
)
from kafka.testing import errors
from kafka.testing.settings import configs
from test.testing.drive import Driver

SET, DELETE, APPEND, SUBTRACT = range(4)


def describe(driver, kind, name, keys=None, version=None, node=0, **options):
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=keys
    )
    request = DescribeConfigsRequest(resources=[resource], **options)
    return driver.ask(request, version, node).results[0]


def told(driver, kind, name, key, **options):
    [entry] = describe(driver, kind, name, [key], **options).configs
    return entry


def alter(driver, kind, name, values, version=None, validate_only=False, node=0):
    resource = AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[AlterableConfig(name=key, value=value) for key, value in values.items()],
    )
    request = AlterConfigsRequest(resources=[resource], validate_only=validate_only)
    return driver.ask(request, version, node).responses[0].error_code


def change(driver, kind, name, *changes, validate_only=False, version=None):
    resource = IncrementalAlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            IncrementalAlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ],
    )
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    return driver.ask(request, version).responses[0].error_code


def with_topic(release='4.4', **settings):
    driver = Driver(release, **settings)
    driver.state.create_topic('t')
    return driver


@pytest.mark.parametrize('release', ['0.11', '1.1', '2.8', '3.9', '4.4'])
def test_every_version_describes(release):
    driver = with_topic(release)
    low, high = driver.state.release.served[DescribeConfigsRequest.api_key]
    for version in range(low, high + 1):
        found = describe(driver, configs.TOPIC, 't', version=version)
        assert found.error_code == errors.NONE
        assert {each.name: each.value for each in found.configs}['retention.ms'] == '604800000'
        found = describe(driver, configs.BROKER, '0', version=version)
        assert {each.name: each.value for each in found.configs}['num.partitions'] == '1'


def test_version_0_tells_what_is_a_default():
    driver = with_topic('0.11')
    alter(driver, configs.TOPIC, 't', {'retention.ms': '5'})
    assert not told(driver, configs.TOPIC, 't', 'retention.ms', version=0).is_default
    assert told(driver, configs.TOPIC, 't', 'segment.ms', version=0).is_default


def test_synonyms_name_every_value_and_its_source():
    driver = with_topic()
    alter(driver, configs.TOPIC, 't', {'segment.bytes': '2000000'})
    alter(driver, configs.BROKER, '', {'log.segment.bytes': '3000000'})
    entry = told(driver, configs.TOPIC, 't', 'segment.bytes', include_synonyms=True)
    assert [(each.name, each.value, each.source) for each in entry.synonyms] == [
        ('segment.bytes', '2000000', 1),
        ('log.segment.bytes', '3000000', 3),
        ('log.segment.bytes', '1073741824', 5),
    ]
    assert told(driver, configs.TOPIC, 't', 'segment.bytes').synonyms == []


def test_types_and_documentation_come_with_version_3():
    driver = with_topic()
    entry = told(driver, configs.TOPIC, 't', 'cleanup.policy', include_documentation=True)
    assert (entry.config_type, bool(entry.documentation)) == (7, True)
    assert told(driver, configs.TOPIC, 't', 'cleanup.policy').documentation is None


def test_passwords_are_never_told():
    driver = with_topic()
    alter(driver, configs.BROKER, '0', {'ssl.key.password': 'secret'})
    entry = told(driver, configs.BROKER, '0', 'ssl.key.password', include_synonyms=True)
    assert entry.is_sensitive
    assert (entry.value, [each.value for each in entry.synonyms]) == (None, [None])


@pytest.mark.parametrize(
    'kind, name, expected',
    [
        (configs.TOPIC, 'none', errors.UNKNOWN_TOPIC_OR_PARTITION),
        (configs.TOPIC, 'a b', errors.INVALID_TOPIC_EXCEPTION),
        (configs.BROKER, '1', errors.INVALID_REQUEST),
        (configs.BROKER, 'x', errors.INVALID_REQUEST),
        (configs.BROKER, '', errors.NONE),
        (configs.BROKER_LOGGER, '0', errors.NONE),
        (configs.CLIENT_METRICS, 'm', errors.NONE),
        (configs.GROUP, 'g', errors.NONE),
        (99, 'x', errors.INVALID_REQUEST),
    ],
)
def test_resources_are_checked(kind, name, expected):
    driver = with_topic(brokers=2)
    assert describe(driver, kind, name).error_code == expected


@pytest.mark.parametrize('release', ['0.11', '2.8', '4.4'])
def test_every_version_alters(release):
    driver = with_topic(release)
    low, high = driver.state.release.served[AlterConfigsRequest.api_key]
    for version in range(low, high + 1):
        value = {'retention.ms': str(version)}
        assert alter(driver, configs.TOPIC, 't', value, version) == errors.NONE
        assert driver.state.topics['t'].configs == value


def test_altering_replaces_and_changing_does_not():
    driver = with_topic()
    alter(driver, configs.TOPIC, 't', {'retention.ms': '1', 'segment.ms': '2'})
    change(driver, configs.TOPIC, 't', ('retention.ms', SET, '3'))
    assert driver.state.topics['t'].configs == {'retention.ms': '3', 'segment.ms': '2'}
    alter(driver, configs.TOPIC, 't', {'flush.ms': '4'})
    assert driver.state.topics['t'].configs == {'flush.ms': '4'}


def test_lists_are_extended_and_shortened():
    driver = with_topic()
    change(driver, configs.TOPIC, 't', ('cleanup.policy', APPEND, 'compact'))
    assert driver.state.topics['t'].configs == {'cleanup.policy': 'delete,compact'}
    change(driver, configs.TOPIC, 't', ('cleanup.policy', SUBTRACT, 'delete'))
    assert driver.state.topics['t'].configs == {'cleanup.policy': 'compact'}
    change(driver, configs.TOPIC, 't', ('cleanup.policy', DELETE, None))
    assert driver.state.topics['t'].configs == {}


@pytest.mark.parametrize('release', ['2.8', '4.4'])
@pytest.mark.parametrize(
    'changes, expected',
    [
        ([('no.such', SET, '1')], (errors.INVALID_CONFIG, errors.INVALID_CONFIG)),
        ([('retention.ms', SET, 'x')], (errors.INVALID_REQUEST, errors.INVALID_CONFIG)),
        ([('retention.ms', APPEND, '1')], (errors.INVALID_REQUEST, errors.INVALID_CONFIG)),
        ([('retention.ms', SET, None)], (errors.INVALID_REQUEST, errors.INVALID_REQUEST)),
        ([('retention.ms', 9, '1')], (errors.UNKNOWN_SERVER_ERROR,) * 2),
        ([('flush.ms', SET, '1')] * 2, (errors.INVALID_REQUEST, errors.INVALID_REQUEST)),
        ([('flush.ms', SET, '1'), ('no', SET, '')], (errors.INVALID_CONFIG,) * 2),
    ],
)
def test_bad_changes_change_nothing(release, changes, expected):
    driver = with_topic(release)
    assert change(driver, configs.TOPIC, 't', *changes) == expected[release == '4.4']
    assert driver.state.topics['t'].configs == {}


def test_trying_changes_nothing():
    driver = with_topic()
    assert alter(driver, configs.TOPIC, 't', {'flush.ms': '1'}, validate_only=True) == errors.NONE
    assert driver.state.topics['t'].configs == {}


@pytest.mark.parametrize(
    'kind, name, values, expected',
    [
        (configs.TOPIC, 'none', {}, errors.UNKNOWN_TOPIC_OR_PARTITION),
        (configs.BROKER, '0', {'num.io.threads': '3'}, errors.NONE),
        (configs.BROKER, '0', {'broker.id': '3'}, errors.INVALID_REQUEST),
        (configs.BROKER, '1', {'num.io.threads': '3'}, errors.INVALID_REQUEST),
        (configs.GROUP, 'g', {'consumer.session.timeout.ms': '50000'}, errors.NONE),
        (configs.GROUP, 'g', {'no.such': '50000'}, errors.INVALID_CONFIG),
        (configs.CLIENT_METRICS, 'm', {'interval.ms': '1000'}, errors.NONE),
        (configs.BROKER_LOGGER, '0', {'kafka': 'DEBUG'}, errors.NONE),
        (configs.BROKER_LOGGER, '0', {'kafka': 'LOUD'}, errors.INVALID_CONFIG),
        (99, 'x', {}, errors.INVALID_REQUEST),
    ],
)
def test_only_what_may_change_changes(kind, name, values, expected):
    driver = with_topic(brokers=2)
    assert alter(driver, kind, name, values) == expected
    assert (driver.state.configs.get((kind, name)) == values) == (expected == errors.NONE)


def test_one_resource_twice_is_refused():
    driver = with_topic()
    resource = AlterConfigsResource(resource_type=2, resource_name='t', configs=[])
    request = AlterConfigsRequest(resources=[resource, resource], validate_only=False)
    [response] = driver.ask(request).responses
    assert response.error_code == errors.INVALID_REQUEST


def test_resources_with_settings_are_listed():
    driver = with_topic()
    alter(driver, configs.GROUP, 'g', {'consumer.session.timeout.ms': '50000'})
    alter(driver, configs.CLIENT_METRICS, 'm', {'interval.ms': '1000'})

    def names(version, *types):
        request = ListConfigResourcesRequest(resource_types=list(types))
        found = driver.ask(request, version)
        assert found.error_code == errors.NONE
        return [(each.resource_type, each.resource_name) for each in found.config_resources]

    assert names(0) == [(16, 'm')]
    assert names(1, 32) == [(32, 'g')]
    assert names(1) == [(2, 't'), (4, '0'), (8, '0'), (16, 'm'), (32, 'g')]


def test_an_unknown_type_of_resource_is_an_unsupported_version():
    response = Driver().ask(ListConfigResourcesRequest(resource_types=[77]))
    assert response.error_code == errors.UNSUPPORTED_VERSION


def test_the_first_brokers_told_less():
    driver = with_topic('0.11')
    entry = told(driver, configs.BROKER, '0', 'log.retention.ms')
    assert entry.read_only
    assert describe(driver, 99, 'x').resource_type == 0
    assert alter(driver, configs.TOPIC, 'none', {}) == errors.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize(('release', 'is_fixed'), [('1.0', True), ('1.1', False), ('2.0', True)])
def test_1_1_calls_a_setting_dynamic_if_it_is_under_another_name(release, is_fixed):
    entry = told(with_topic(release), configs.BROKER, '0', 'log.retention.hours')
    assert entry.read_only == is_fixed


def test_levels_of_loggers_are_set_and_deleted_only():
    driver = with_topic('2.8')
    place = configs.BROKER_LOGGER, '0'
    assert change(driver, *place, ('kafka', SET, 'DEBUG')) == errors.NONE
    assert change(driver, *place, ('kafka', APPEND, 'DEBUG')) == errors.INVALID_REQUEST
    assert change(driver, *place, ('kafka', SET, 'LOUD')) == errors.INVALID_REQUEST
    assert change(driver, *place, ('kafka', DELETE, None)) == errors.NONE


def test_a_setting_of_brokers_has_the_limits_of_that_of_topics():
    driver = with_topic()
    name = 'log.segment.delete.delay.ms'
    assert change(driver, configs.BROKER, '0', (name, SET, '-5')) == errors.INVALID_REQUEST
    assert change(driver, configs.BROKER, '0', (name, SET, '5')) == errors.NONE
