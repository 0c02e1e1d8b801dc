"""What no client can work with is refused by the constructor of each of them, with a hint."""

from __future__ import annotations

import socket

import pytest

import kafka
from kafka import KafkaProducer
from kafka.conn import BrokerConnection, KafkaConnection
from kafka.errors import KafkaConfigurationError
from kafka.evented.client import KafkaClient as EventedClient

SERVER = '127.0.0.1:1'
BY_ADDRESS = {
    'KafkaProducer': lambda servers, **more: KafkaProducer(
        bootstrap_servers=servers, api_version=(2, 8), **more
    ),
    'evented KafkaClient': lambda servers, **more: EventedClient(
        bootstrap_servers=servers, api_version=(2, 8), **more
    ),
    'KafkaClient of 0.9.5': lambda servers, **more: kafka.KafkaClient(servers, **more),
    'KafkaConsumer of 0.9.5': lambda servers, **more: kafka.KafkaConsumer(
        't', bootstrap_servers=servers, dialect='0.9.5', **more
    ),
    'SimpleClient': lambda servers, **more: kafka.SimpleClient(servers, **more),
}
FACES = {
    **BY_ADDRESS,
    'KafkaConnection': lambda servers, **more: KafkaConnection('127.0.0.1', 1, **more),
    'BrokerConnection': lambda servers, **more: BrokerConnection(
        '127.0.0.1', 1, socket.AF_INET, **more
    ),
}
LOGIN = {
    'security_protocol': 'SASL_PLAINTEXT',
    'sasl_plain_username': 'u',
    'sasl_plain_password': 'canary',
}


@pytest.mark.parametrize('face', sorted(BY_ADDRESS))
@pytest.mark.parametrize(
    ('servers', 'told'),
    [
        ('http://127.0.0.1:8082', 'http:// is not a protocol of brokers, write host:port'),
        ('127.0.0.1:99999', '65535'),
        ('127.0.0.1:port', 'port'),
        ('u:canary@127.0.0.1:9092', 'sasl_plain_username'),
        ('127.0.0.1:2181/kafka', 'path'),
    ],
)
def test_an_address_that_is_none(face, servers, told):
    with pytest.raises(KafkaConfigurationError, match=told) as raised:
        BY_ADDRESS[face](servers)
    assert 'canary' not in str(raised.value)


@pytest.mark.parametrize('face', sorted(FACES))
@pytest.mark.parametrize(
    ('options', 'told'),
    [
        ({**LOGIN, 'sasl_mechanism': 'PLAINN'}, 'did you mean PLAIN?'),
        ({**LOGIN, 'sasl_mechanism': 'SCRAM-SHA256'}, 'did you mean SCRAM-SHA-256?'),
        ({**LOGIN, 'sasl_mechanism': 'scram_sha_512'}, 'did you mean SCRAM-SHA-512?'),
        ({**LOGIN, 'sasl_mechanism': 'PASSWORD'}, 'there are AWS_MSK_IAM, GSSAPI'),
        ({**LOGIN}, 'needs a sasl_mechanism'),
        ({'security_protocol': 'TLS'}, "did you mean 'SSL'?"),
        ({'security_protocol': 'SASLSSL'}, "did you mean 'SASL_SSL'?"),
        ({'security_protocol': 'SSL', 'ssl_cafile': '/none/there'}, 'ssl_cafile'),
        ({'proxy_url': 'ftp://127.0.0.1:1'}, 'socks5://'),
    ],
)
def test_security_that_there_is_not(face, options, told):
    with pytest.raises(KafkaConfigurationError) as raised:
        FACES[face](SERVER, **options)
    assert told in str(raised.value)
    assert 'canary' not in str(raised.value)


@pytest.mark.parametrize('face', sorted(BY_ADDRESS))
@pytest.mark.parametrize(
    'options', [{'security_protocol': 'plaintext'}, {**LOGIN, 'sasl_mechanism': 'plain'}]
)
def test_words_in_small_letters_are_taken(face, options):
    try:
        BY_ADDRESS[face](SERVER, **options).close()
    except KafkaConfigurationError:
        raise
    except kafka.common.KafkaError:
        pass  # those of 0.9.5 ask a broker at once, and there is none
