"""kafka.config: which options exclude each other, and which give way."""

from __future__ import annotations

import math

import pytest

from kafka import config
from kafka.errors import InvalidOptionError

P, C = config.PRODUCER, config.CONSUMER

REFUSED = [
    (P, {'enable_idempotence': True, 'acks': 1}, ['enable_idempotence', 'acks']),
    (P, {'enable_idempotence': True, 'retries': 0}, ['retries']),
    (
        P,
        {'transactional_id': 't', 'acks': 0, 'max_in_flight_requests_per_connection': 6},
        ['transactional_id', 'acks', 'max_in_flight'],
    ),
    (P, {'enable_idempotence': True, 'api_version': (0, 10, 2)}, ['0.11', '0.10.2']),
    (P, {'transactional_id': 't', 'enable_idempotence': False}, ['enable_idempotence']),
    (P, {'delivery_timeout_ms': 1000, 'linger_ms': 1000}, ['delivery_timeout_ms', 'linger_ms']),
    (
        P,
        {'delivery_timeout_ms': 5000, 'request_timeout_ms': 5001},
        ['delivery_timeout_ms', 'request_timeout_ms'],
    ),
    (P, {'compression_level': 3}, ['compression_level', 'compression_type']),
    (P, {'compression_level': 3, 'compression_type': 'snappy'}, ['compression_level']),
    (P, {'reconnect_backoff_ms': 500, 'reconnect_backoff_max_ms': 100}, ['500 > 100']),
    (P, {'retry_backoff_ms': 500, 'retry_backoff_max_ms': 100}, ['500 > 100']),
    (C, {'fetch_max_wait_ms': 30000}, ['fetch_max_wait_ms', '30000']),
    (C, {'request_timeout_ms': 540000}, ['connections_max_idle_ms']),
    (C, {'connections_max_idle_ms': 30000}, ['connections_max_idle_ms']),
    (C, {'heartbeat_interval_ms': 46000}, ['heartbeat_interval_ms', '46000 >= 45000']),
    (C, {'heartbeat_interval_ms': 5000, 'session_timeout_ms': 5000, 'group_id': 'g'}, ['5000']),
    (C, {'group_instance_id': 'i'}, ['group_id']),
    (
        C,
        {'group_id': 'g', 'api_version': (0, 9), 'request_timeout_ms': 20000},
        ['request_timeout_ms', 'session_timeout_ms', '0.10.1'],
    ),
    (C, {'auto_offset_reset': 5}, ['auto_offset_reset']),
]

# Face, given, what comes out.
SETTLED = [
    (P, {}, {'enable_idempotence': True, 'acks': -1, 'retries': math.inf}),
    (P, {'acks': 1}, {'enable_idempotence': False, 'acks': 1}),
    (P, {'acks': 'all'}, {'enable_idempotence': True, 'acks': -1}),
    (P, {'retries': 0}, {'enable_idempotence': False, 'acks': -1, 'retries': 0}),
    (P, {'max_in_flight_requests_per_connection': 6}, {'enable_idempotence': False}),
    (P, {'api_version': (0, 10)}, {'enable_idempotence': False, 'acks': -1}),
    (P, {'enable_idempotence': False}, {'enable_idempotence': False, 'acks': -1}),
    (P, {'dialect': '2.3'}, {'enable_idempotence': False, 'acks': 1}),
    (P, {'dialect': '2.3', 'transactional_id': 't'}, {'enable_idempotence': True, 'acks': -1}),
    (P, {'dialect': '2.0', 'enable_idempotence': True}, {'acks': -1, 'retries': math.inf}),
    (P, {'linger_ms': 200000}, {'delivery_timeout_ms': 230000}),
    (P, {'request_timeout_ms': 120001}, {'delivery_timeout_ms': 120001}),
    (P, {'delivery_timeout_ms': 5000, 'linger_ms': 1000}, {'request_timeout_ms': 4000}),
    (P, {'delivery_timeout_ms': 5000}, {'delivery_timeout_ms': 5000, 'request_timeout_ms': 5000}),
    (P, {'reconnect_backoff_ms': 500}, {'reconnect_backoff_max_ms': 500}),
    (P, {'reconnect_backoff_ms': 60000}, {'reconnect_backoff_max_ms': 60000}),
    (P, {'reconnect_backoff_max_ms': 10}, {'reconnect_backoff_ms': 10}),
    (P, {'retry_backoff_ms': 5000}, {'retry_backoff_max_ms': 5000}),
    (P, {'retry_backoff_ms': 50}, {'retry_backoff_max_ms': 1000}),
    (C, {'consumer_timeout_ms': -1}, {'consumer_timeout_ms': math.inf}),
    (C, {'dialect': '1.2'}, {'consumer_timeout_ms': math.inf, 'request_timeout_ms': 40000}),
    (C, {'auto_offset_reset': 'smallest'}, {'auto_offset_reset': 'earliest'}),
    (C, {'auto_offset_reset': 'earlyest'}, {'auto_offset_reset': 'earlyest'}),
    (C, {'heartbeat_interval_ms': 45000}, {'heartbeat_interval_ms': 45000}),
    (C, {'fetch_max_bytes': 2**31 - 1}, {'receive_message_max_bytes': 2**31 - 1 + 2**20}),
    (C, {'connections_max_idle_ms': -1}, {'connections_max_idle_ms': -1}),
    (C, {'api_version': (2, 8)}, {'session_timeout_ms': 30000, 'max_poll_interval_ms': 300000}),
    (C, {'api_version': (3, 0)}, {'session_timeout_ms': 45000}),
    (
        C,
        {'api_version': (0, 10), 'group_id': 'g'},
        {'session_timeout_ms': 30000, 'max_poll_interval_ms': 30000, 'request_timeout_ms': 40000},
    ),
    (
        C,
        {'api_version': (0, 9), 'max_poll_interval_ms': 9000},
        {'session_timeout_ms': 9000, 'max_poll_interval_ms': 9000},
    ),
    (C, {'group_id': 'g', 'request_timeout_ms': 20000}, {'session_timeout_ms': 45000}),
]


@pytest.mark.parametrize('face, given, named', REFUSED)
def test_what_contradicts_each_other_is_refused_by_name(face, given, named):
    with pytest.raises(InvalidOptionError) as caught:
        config.resolve(face, given)
    for name in named:
        assert name in str(caught.value)


@pytest.mark.parametrize('face, given, wanted', SETTLED)
def test_what_was_given_is_obeyed_and_a_default_gives_way(face, given, wanted):
    options = config.resolve(face, given)
    assert {name: options[name] for name in wanted} == wanted


def test_idempotence_that_is_off_by_itself_is_told(caplog):
    config.resolve(P, {'acks': 1})
    assert "acks is 'all', not 1" in caplog.text


def test_idempotence_that_is_off_for_old_brokers_is_no_warning(caplog):
    caplog.set_level('INFO', 'kafka.config')
    config.resolve(P, {'api_version': (0, 9)})
    config.settle_release(config.resolve(P, {}), (0, 9))
    assert [(each.levelname, each.message.split(' or ')[1]) for each in caplog.records] == [
        ('INFO', 'later, but api_version says 0.9'),
        ('INFO', 'later, but these are of 0.9'),
    ]


@pytest.mark.parametrize('given', [{'enable_idempotence': False}, {'dialect': '2.3'}, {}])
def test_idempotence_that_is_as_asked_for_is_not_told(given, caplog):
    config.resolve(P, given)
    assert not caplog.text


@pytest.mark.parametrize(
    'word, told',
    [
        ('smallest', 'deprecated: use earliest'),
        ('earlyest', 'Did you mean earliest'),
        ('none', ''),
    ],
)
def test_words_for_where_to_begin(word, told, caplog):
    config.resolve(C, {'auto_offset_reset': word})
    assert told in caplog.text
    assert bool(told) == bool(caplog.text)


def test_an_old_broker_switches_idempotence_off_when_it_is_met():
    options = config.resolve(P, {})
    config.settle_release(options, (0, 10, 2))
    assert (options['api_version'], options['enable_idempotence']) == ((0, 10, 2), False)


def test_an_old_broker_is_refused_by_who_asked_for_idempotence():
    options = config.resolve(P, {'transactional_id': 't'})
    with pytest.raises(InvalidOptionError, match=r'0\.11 or later, but these are of 0\.10'):
        config.settle_release(options, (0, 10, 2))


def test_a_group_goes_by_the_broker_that_it_meets():
    options = config.resolve(C, {'group_id': 'g'})
    config.settle_release(options, (0, 9))
    assert options['max_poll_interval_ms'] == options['session_timeout_ms'] == 30000
    options = config.resolve(C, {'group_id': 'g'})
    config.settle_release(options, (4, 0))
    assert options['session_timeout_ms'] == 45000


def test_faces_without_rules_take_any_release():
    options = config.resolve(config.ADMIN, {})
    config.settle_release(options, (1, 0))
    assert options['api_version'] == (1, 0)
