"""kafka.consumer.arguments_09: what 0.9.5's KafkaConsumer accepts, and how it refuses the rest."""

from __future__ import annotations

import logging

import pytest

from kafka.consumer.arguments_09 import (
    DEFAULT_CONSUMER_CONFIG,
    DEPRECATED_CONFIG_KEYS,
    complete_options,
    wanted_partitions,
)
from kafka.errors import KafkaConfigurationError, UnknownTopicOrPartitionError

TOPICS = {b'one': [0, 1], b'two': [0, 1, 2], b'm\xc3\xa4rz': [0]}


def wanted(*arguments):
    return list(wanted_partitions(arguments, lambda topic: TOPICS.get(topic, [])).items())


def options(**configs):
    return complete_options({'bootstrap_servers': 'host', **configs}, DEFAULT_CONSUMER_CONFIG)


# ---------------------------------------------------------------- partitions


@pytest.mark.parametrize(
    'argument, found',
    [
        ('one', [((b'one', 0), None), ((b'one', 1), None)]),
        (b'one', [((b'one', 0), None), ((b'one', 1), None)]),
        ('märz', [((b'm\xc3\xa4rz', 0), None)]),
        (('two', 1), [((b'two', 1), None)]),
        (('two', 1, 5), [((b'two', 1), 5)]),
        ((b'two', 1, None), [((b'two', 1), None)]),
        ({'two': 2}, [((b'two', 2), None)]),
        ({'two': [2, 0]}, [((b'two', 2), None), ((b'two', 0), None)]),
        ({'two': (2,)}, [((b'two', 2), None)]),
        ({'one': 1, b'two': [0]}, [((b'one', 1), None), ((b'two', 0), None)]),
        ({('one', 0): 12, (b'two', 1): 0}, [((b'one', 0), 12), ((b'two', 1), 0)]),
        ({('one', 0): None}, [((b'one', 0), None)]),
        ({'two': []}, []),
        ({}, []),
    ],
)
def test_every_documented_form(argument, found):
    assert wanted(argument) == found


def test_forms_mix_and_keep_their_order():
    assert wanted('one', ('two', 2), {'two': 0}) == [
        ((b'one', 0), None),
        ((b'one', 1), None),
        ((b'two', 2), None),
        ((b'two', 0), None),
    ]


def test_a_partition_named_twice_comes_once_with_the_last_offset():
    assert wanted('one', ('one', 1, 7)) == [((b'one', 0), None), ((b'one', 1), 7)]
    assert wanted(('one', 1, 7), 'one') == [((b'one', 1), 7), ((b'one', 0), None)]
    assert wanted(('one', 1, 7), ('one', 1, 8)) == [((b'one', 1), 8)]


@pytest.mark.parametrize(
    'argument',
    [
        7,
        None,
        ['one'],
        {'one'},
        (),
        ('one',),
        ('one', 0, 0, 0),
        ('one', '0'),
        ('one', None),
        ('one', 1.0),
        ('one', 0, '5'),
        ('one', 0, 5.0),
        ('one', 0, 2**63),
        ('one', 0, -(2**63)),
        (7, 0),
        {7: 0},
        {'one': '0'},
        {'one': None},
        {'one': [0, None]},
        {'one': {0}},
        {('one', 0, 5): 1},
        {('one', 0): 'end'},
        {('one', 0): 10**400},
        {(None, 0): 5},
    ],
)
def test_anything_else_is_a_configuration_error_that_shows_it(argument):
    with pytest.raises(KafkaConfigurationError) as caught:
        wanted(argument)
    assert repr(argument) in str(caught.value)


@pytest.mark.parametrize(
    'argument, name',
    [
        ('three', "topic b'three'"),
        (('three', 0), "topic b'three'"),
        (('one', 2), "topic b'one' partition 2"),
        ({'one': [0, -1]}, "topic b'one' partition -1"),
        ({('one', 5): 0}, "topic b'one' partition 5"),
    ],
)
def test_what_does_not_exist_is_named(argument, name):
    with pytest.raises(UnknownTopicOrPartitionError, match=name):
        wanted(argument)


def test_a_topic_that_is_no_utf8_is_named():
    with pytest.raises(ValueError, match='topic'):
        wanted('\ud800')


# ---------------------------------------------------------------- options


def test_the_defaults_are_those_of_0_9_5():
    defaults = dict(DEFAULT_CONSUMER_CONFIG)
    identity = defaults.pop('deserializer_class')
    assert identity(b'raw') == b'raw'
    assert identity(None) is None
    assert defaults == {
        'client_id': 'kafka.consumer.kafka',
        'group_id': None,
        'bootstrap_servers': [],
        'socket_timeout_ms': 30000,
        'fetch_message_max_bytes': 1048576,
        'auto_offset_reset': 'largest',
        'fetch_min_bytes': 1,
        'fetch_wait_max_ms': 100,
        'refresh_leader_backoff_ms': 200,
        'auto_commit_enable': False,
        'auto_commit_interval_ms': 60000,
        'auto_commit_interval_messages': None,
        'consumer_timeout_ms': -1,
        'socket_receive_buffer_bytes': 65536,
        'num_consumer_fetchers': 1,
        'default_fetcher_backoff_ms': 1000,
        'queued_max_message_chunks': 10,
        'rebalance_max_retries': 4,
        'rebalance_backoff_ms': 2000,
    }
    assert DEPRECATED_CONFIG_KEYS == {'metadata_broker_list': 'bootstrap_servers'}


def test_what_is_not_given_has_its_default():
    assert options(fetch_min_bytes=7) == {
        **DEFAULT_CONSUMER_CONFIG,
        'bootstrap_servers': 'host',
        'fetch_min_bytes': 7,
    }


def test_unknown_options_are_all_named():
    with pytest.raises(KafkaConfigurationError, match='bootstrap_server, group'):
        options(group='g', bootstrap_server='host')


@pytest.mark.parametrize('servers', [None, '', [], ()])
def test_servers_are_needed(servers):
    with pytest.raises(KafkaConfigurationError, match='bootstrap_servers'):
        options(bootstrap_servers=servers)


@pytest.mark.parametrize('group', [None, '', b''])
def test_auto_commit_needs_a_group(group):
    with pytest.raises(KafkaConfigurationError, match='group_id'):
        options(auto_commit_enable=True, group_id=group)
    assert options(auto_commit_enable=True, group_id='g')['auto_commit_enable'] is True


def test_metadata_broker_list_is_the_old_name_of_bootstrap_servers(caplog):
    made = complete_options({'metadata_broker_list': 'old:1'}, DEFAULT_CONSUMER_CONFIG)
    assert made['bootstrap_servers'] == 'old:1'
    assert 'metadata_broker_list' not in made
    (line,) = caplog.records
    assert (line.name, line.levelno) == ('kafka.consumer.kafka', logging.WARNING)
    assert 'metadata_broker_list' in line.getMessage()


def test_metadata_broker_list_is_ignored_beside_bootstrap_servers(caplog):
    assert options(metadata_broker_list='old:1')['bootstrap_servers'] == 'host'
    assert 'ignored' in caplog.text


@pytest.mark.parametrize('value', ['100', None, -1, 2**31, float('nan'), float('inf'), b'1', []])
@pytest.mark.parametrize(
    'name',
    [
        'socket_timeout_ms',
        'fetch_message_max_bytes',
        'fetch_min_bytes',
        'fetch_wait_max_ms',
        'refresh_leader_backoff_ms',
    ],
)
def test_a_size_or_time_that_cannot_be_is_named(name, value):
    with pytest.raises(KafkaConfigurationError, match=name):
        options(**{name: value})


@pytest.mark.parametrize(
    'name, value',
    [
        ('socket_timeout_ms', 0),
        ('fetch_message_max_bytes', 0),
        ('fetch_message_max_bytes', 1024.0),
        ('deserializer_class', None),
        ('deserializer_class', 'json'),
        ('consumer_timeout_ms', '1000'),
        ('consumer_timeout_ms', float('nan')),
        ('consumer_timeout_ms', 10**400),
        ('fetch_wait_max_ms', 10**400),
        ('auto_commit_interval_ms', -(10**400)),
        ('auto_commit_interval_ms', 'often'),
        ('auto_commit_interval_messages', [20]),
    ],
)
def test_other_values_that_cannot_be_are_named(name, value):
    with pytest.raises(KafkaConfigurationError, match=name):
        options(**{name: value})


@pytest.mark.parametrize(
    'name, value',
    [
        ('consumer_timeout_ms', None),
        ('consumer_timeout_ms', 0),
        ('consumer_timeout_ms', float('inf')),
        ('consumer_timeout_ms', 2**53 + 1),
        ('auto_commit_interval_ms', None),
        ('auto_commit_interval_ms', 0.5),
        ('auto_commit_interval_messages', 0),
        ('fetch_wait_max_ms', 0),
        ('fetch_wait_max_ms', 1.5),
        ('fetch_min_bytes', 0),
        ('auto_offset_reset', None),
        ('num_consumer_fetchers', 'without effect, so not looked at'),
    ],
)
def test_values_that_work(name, value):
    assert options(**{name: value})[name] == value
