"""The rows of the option table: defaults of every era, names, and that every check can refuse."""

from __future__ import annotations

import math

import pytest

from kafka import config
from kafka.config.kinds import Unfit
from kafka.config.option import FACES, dialect_of, table
from kafka.config.resolution import OPTIONS
from kafka.consumer.arguments_09 import DEFAULT_CONSUMER_CONFIG
from kafka.version import __version__

NAME = 'kafka-python-' + __version__
SECURITY_1_2 = {
    'security_protocol': 'PLAINTEXT',
    'ssl_context': None,
    'ssl_check_hostname': True,
    'ssl_cafile': None,
    'ssl_certfile': None,
    'ssl_keyfile': None,
    'ssl_crlfile': None,
}
# The tables of 1.2.1's documents; what is no number, text or None is left out.
OF_1_2 = {
    config.PRODUCER: {
        'bootstrap_servers': 'localhost',
        'client_id': None,
        'key_serializer': None,
        'value_serializer': None,
        'acks': 1,
        'compression_type': None,
        'retries': 0,
        'batch_size': 16384,
        'linger_ms': 0,
        'buffer_memory': 33554432,
        'max_block_ms': 60000,
        'max_request_size': 1048576,
        'metadata_max_age_ms': 300000,
        'retry_backoff_ms': 100,
        'request_timeout_ms': 30000,
        'receive_buffer_bytes': None,
        'send_buffer_bytes': None,
        'reconnect_backoff_ms': 50,
        'max_in_flight_requests_per_connection': 5,
        **SECURITY_1_2,
    },
    config.CONSUMER: {
        'bootstrap_servers': 'localhost',
        'client_id': NAME,
        'group_id': 'kafka-python-default-group',
        'key_deserializer': None,
        'value_deserializer': None,
        'fetch_max_wait_ms': 500,
        'fetch_min_bytes': 1,
        'max_partition_fetch_bytes': 1048576,
        'request_timeout_ms': 40000,
        'retry_backoff_ms': 100,
        'reconnect_backoff_ms': 50,
        'max_in_flight_requests_per_connection': 5,
        'auto_offset_reset': 'latest',
        'enable_auto_commit': True,
        'auto_commit_interval_ms': 5000,
        'metadata_max_age_ms': 300000,
        'heartbeat_interval_ms': 3000,
        'session_timeout_ms': 30000,
        'send_buffer_bytes': None,
        'receive_buffer_bytes': None,
        'consumer_timeout_ms': -1,
        'connections_max_idle_ms': 540000,
        'metric_reporters': [],
        'metrics_num_samples': 2,
        'metrics_sample_window_ms': 30000,
        'check_crcs': True,
        **SECURITY_1_2,
    },
    config.CLIENT: {
        'bootstrap_servers': 'localhost',
        'client_id': NAME,
        'request_timeout_ms': 40000,
        'reconnect_backoff_ms': 50,
        'max_in_flight_requests_per_connection': 5,
        'receive_buffer_bytes': None,
        'send_buffer_bytes': None,
        'retry_backoff_ms': 100,
        'metadata_max_age_ms': 300000,
        **SECURITY_1_2,
    },
    config.CONNECTION: {
        'client_id': NAME,
        'request_timeout_ms': 40000,
        'reconnect_backoff_ms': 50,
        'max_in_flight_requests_per_connection': 5,
        'receive_buffer_bytes': None,
        'send_buffer_bytes': None,
        'api_version': (0, 8, 2),
        'state_change_callback': None,
        **SECURITY_1_2,
    },
}
# What changed, by the releases that later-behaviour.md names: face, option, dialect, default.
CHANGED = [
    ('P', 'acks', '2.3', 1),
    ('P', 'acks', '3.0', -1),
    ('P', 'acks', None, -1),
    ('P', 'retries', '2.0', 0),
    ('P', 'retries', '2.3', math.inf),
    ('P', 'enable_idempotence', '2.3', False),
    ('P', 'enable_idempotence', None, True),
    ('P', 'raise_on_too_large', None, False),
    ('P', 'raise_on_too_large', '2.3', False),
    ('P', 'raise_on_too_large', '3.0', True),
    ('P', 'request_timeout_ms', '1.2', 30000),
    ('C', 'request_timeout_ms', '1.2', 40000),
    ('C', 'request_timeout_ms', '1.4', 305000),
    ('C', 'request_timeout_ms', '2.3', 305000),
    ('C', 'request_timeout_ms', '3.0', 30000),
    ('C', 'session_timeout_ms', '2.0', 10000),
    ('C', 'session_timeout_ms', None, 45000),
    ('C', 'max_poll_records', '1.2', math.inf),
    ('C', 'max_poll_records', '1.4', 500),
    ('C', 'group_id', '1.4', None),
    ('C', 'consumer_timeout_ms', '1.4', math.inf),
    ('K', 'request_timeout_ms', '1.4', 30000),
    ('A', 'request_timeout_ms', None, 30000),
    ('P', 'reconnect_backoff_max_ms', '1.4', 1000),
    ('P', 'reconnect_backoff_max_ms', '2.3', 30000),
    ('P', 'receive_message_max_bytes', None, 100000000),
]
BY_LETTER = {face.letter: face for face in FACES}


@pytest.mark.parametrize('face', OF_1_2, ids=lambda face: face.title)
def test_defaults_of_1_2(face):
    defaults = config.defaults(face, '1.2')
    wanted = OF_1_2[face]
    assert {name: defaults[name] for name in wanted} == wanted


@pytest.mark.parametrize('letter, name, dialect, default', CHANGED)
def test_defaults_of_later_eras(letter, name, dialect, default):
    assert config.defaults(BY_LETTER[letter], dialect)[name] == default


def test_defaults_of_0_9_5():
    """They are those that test/consumer/test_arguments_09.py has in full."""
    defaults = config.defaults(config.TOWER)
    assert defaults.pop('deserializer_class')(b'x') == b'x'
    own = {name: value for name, value in defaults.items() if name not in config.SECURITY}
    expected = dict(DEFAULT_CONSUMER_CONFIG)
    del expected['deserializer_class']
    assert own == expected


def test_only_0_9_names_no_option_of_a_later_release():
    assert 'fetch_wait_max_ms' in config.ONLY_0_9
    assert 'metadata_broker_list' in config.ONLY_0_9
    assert not config.ONLY_0_9 & set(OPTIONS)


@pytest.mark.parametrize('face', FACES, ids=lambda face: face.title)
@pytest.mark.parametrize('dialect', [None, *config.DIALECTS])
def test_defaults_are_of_their_kinds(face, dialect):
    for name, row in config.options_of(face).items():
        row.kind.convert(row.default_for(face, dialect)), name


@pytest.mark.parametrize('name', sorted(OPTIONS))
def test_every_check_refuses_something(name):
    """An option whose kind takes anything is in this list, or has no check at all by mistake."""
    row = OPTIONS[name]
    unchecked = {
        'auto_offset_reset',  # by a rule
        'metrics', 'node_id', 'state_change_callback',  # of a face that never looked
        'sasl_kerberos_name', 'sasl_oauth_token_provider',  # in net/security.py
    }  # fmt: skip
    refused = 0
    for value in (object(), 1j, b'\xff', '', -(10**12), [object()]):
        try:
            row.kind.convert(value)
        except Unfit:
            refused += 1
    assert bool(refused) != (row.is_ignored or name in unchecked)


def test_rows_are_complete():
    letters = ''.join(BY_LETTER)
    for name, row in OPTIONS.items():
        assert row.name == name
        assert set(row.faces) <= set(letters) and row.faces
        assert row.doc.strip()
        assert row.kind.text
        assert [last for last, _, _ in row.until] == sorted(last for last, _, _ in row.until)


def test_defaults_belong_to_who_asks():
    config.defaults(config.PRODUCER)['socket_options'].append(1)
    assert config.defaults(config.PRODUCER)['socket_options'] == [(6, 1, 1)]


def test_a_name_has_one_row():
    row = OPTIONS['acks']
    with pytest.raises(AssertionError):
        table(row, row)


@pytest.mark.parametrize(
    'release, dialect',
    [
        ('0.9.5', '0.9.5'),
        ('1.0.2', '1.2'),
        ('1.2.1', '1.2'),
        ('1.3.0', '1.4'),
        ('1.4.7', '1.4'),
        ('2.0.2', '2.0'),
        ('2.1.0', '2.3'),
        ('2.3.2', '2.3'),
        ('3.0', '3.0'),
        ('3.0.12', '3.0'),
        ('4.0', None),
        ('0.8', None),
        ('3', None),
        ('3.x', None),
        ('2.0.2-rc', None),
        ('', None),
    ],
)
def test_dialect_of_a_release(release, dialect):
    assert dialect_of(release) == dialect
