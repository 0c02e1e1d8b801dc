"""What the network floor goes by: from options to seconds and addresses."""

from __future__ import annotations

import math
import socket

import pytest

from kafka.errors import KafkaConfigurationError
from kafka.net.settings import NetSettings, parse_servers


@pytest.mark.parametrize(
    'text, expected',
    [
        ('a', [('a', 9092)]),
        ('a:1, b:2', [('a', 1), ('b', 2)]),
        (['a:1', 'b'], [('a', 1), ('b', 9092)]),
        ('127.0.0.1:5', [('127.0.0.1', 5)]),
        ('[::1]', [('::1', 9092)]),
        ('[::1]:77', [('::1', 77)]),
        ('2001::1', [('2001::1', 9092)]),
        ('PLAINTEXT://a:1', [('a', 1)]),
        ('', []),
    ],
)
def test_servers(text, expected):
    assert list(parse_servers(text)) == expected


def test_options_become_seconds():
    settings = NetSettings.from_options(
        {
            'bootstrap_servers': 'a:1',
            'client_id': 'me',
            'request_timeout_ms': 1500,
            'reconnect_backoff_ms': 20,
            'reconnect_backoff_max_ms': 400,
            'connections_max_idle_ms': -1,
            'send_buffer_bytes': 5,
            'socket_options': [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)],
            'security_protocol': 'SSL',
        }
    )
    assert settings.servers == (('a', 1),)
    assert (settings.client_id, settings.request_timeout) == ('me', 1.5)
    assert (settings.reconnect_backoff, settings.reconnect_backoff_max) == (0.02, 0.4)
    assert settings.idle_timeout == math.inf
    assert settings.socket.send_buffer_bytes == 5
    assert settings.socket.others == ((socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),)
    assert settings.security.protocol == 'SSL'


def test_what_is_not_given_is_the_default():
    assert NetSettings.from_options({}) == NetSettings()


def test_who_sets_only_the_base_of_the_back_off_wants_it_constant():
    settings = NetSettings.from_options({'reconnect_backoff_ms': 3000})
    assert settings.reconnect_backoff_max == 3.0


@pytest.mark.parametrize(
    'version, release',
    [
        ((0, 8, 0), '0.8.0'),
        ((0, 8, 1), '0.8.1'),
        ((0, 8, 2), '0.8.2'),
        ((0, 9), '0.9'),
        ((0, 10), None),
        ((2, 5, 0), None),
    ],
)
def test_an_old_version_that_is_given_is_not_asked_for(version, release):
    assert NetSettings.from_options({'api_version': version}).release == release


def test_a_file_that_cannot_be_used_is_told_at_once():
    with pytest.raises(KafkaConfigurationError, match='ssl_cafile.*nowhere.pem'):
        NetSettings.from_options({'security_protocol': 'SSL', 'ssl_cafile': '/nowhere.pem'})
