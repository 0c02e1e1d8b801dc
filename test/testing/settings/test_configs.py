"""Which settings a release has, and which value of several holds."""

from __future__ import annotations

import pytest

from kafka.testing.releases import RELEASES
from kafka.testing.settings import configs
from test.testing.drive import Driver


@pytest.mark.parametrize('release', RELEASES)
def test_every_release_has_tables_whose_defaults_are_valid(release):
    tables = [configs.topic_keys, configs.broker_keys, configs.group_keys, configs.metrics_keys]
    for keys in (table(release) for table in tables):
        for name, key in keys.items():
            assert key.name == name
            assert key.type in configs.TYPES
            assert key.default is None or configs.invalid(key, key.default) is None


def test_defaults_follow_the_release():
    def default(release, name):
        return configs.topic_config(Driver(release).state, 't', name)

    assert default('2.4', 'max.message.bytes') == '1000012'
    assert default('2.5', 'max.message.bytes') == '1048588'
    assert default('0.11', 'message.format.version') == '0.11.0-IV2'
    assert default('3.9', 'message.format.version') == '3.0-IV1'
    assert default('4.0', 'message.timestamp.after.max.ms') == '3600000'


def test_a_setting_that_the_release_lacks_has_some_default():
    assert configs.topic_config(Driver('0.9').state, 't', 'message.timestamp.type') == 'CreateTime'
    with pytest.raises(KeyError):
        configs.topic_config(Driver().state, 't', 'no.such')


def test_the_topic_goes_before_the_broker_before_all_brokers_before_the_file():
    state = Driver(message_max_bytes=5).state
    topic = state.create_topic('t')

    def value():
        return configs.topic_config(state, topic, 'max.message.bytes')

    assert value() == '5'
    state.configs[configs.BROKER, ''] = {'message.max.bytes': '6'}
    assert value() == '6'
    state.configs[configs.BROKER, '0'] = {'message.max.bytes': '7'}
    assert value() == '7'
    topic.configs['max.message.bytes'] = '8'
    assert value() == '8'


def test_a_chosen_setting_of_brokers_is_told():
    state = Driver(num_partitions=4).state
    assert configs.broker_config(state, 0, 'num.partitions') == '4'
    assert configs.broker_config(state, 0, 'log.retention.hours') == '168'


@pytest.mark.parametrize(
    'name, value, is_good',
    [
        ('retention.ms', '-1', True),
        ('retention.ms', '-2', False),
        ('retention.ms', '9223372036854775808', False),
        ('retention.ms', '1' * 5000, False),
        ('min.cleanable.dirty.ratio', '0.3', True),
        ('min.cleanable.dirty.ratio', '1.5', False),
        ('min.cleanable.dirty.ratio', 'nan', False),
        ('cleanup.policy', 'compact, delete', True),
        ('cleanup.policy', 'compact,keep', False),
        ('preallocate', 'TRUE', True),
        ('preallocate', 'yes', False),
        ('compression.type', 'zstd', True),
        ('compression.type', 'rar', False),
    ],
)
def test_values_are_checked(name, value, is_good):
    key = configs.topic_keys('4.4')[name]
    assert (configs.invalid(key, value) is None) == is_good
