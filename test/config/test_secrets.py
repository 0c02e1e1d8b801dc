"""kafka.config.secrets, and that no secret leaves the options but by being asked for."""

from __future__ import annotations

import copy
import logging
import pickle

import pytest

from kafka import config
from kafka.config import secrets
from kafka.errors import KafkaConfigurationError

CANARY = 'canary-5up3r'
PEM = '-----BEGIN PRIVATE KEY-----\n%s\n-----END PRIVATE KEY-----\n' % CANARY


class Provider:
    def __repr__(self):
        return 'Provider(%s)' % CANARY

    def token(self):
        return CANARY


# Each with a canary in a place where a secret belongs.
GIVEN = [
    {'sasl_plain_password': CANARY},
    {'ssl_password': CANARY},
    {'ssl_password': CANARY.encode()},
    {'ssl_keyfile': PEM},
    {'ssl_certfile': PEM.encode()},
    {'proxy_url': 'socks5://user:%s@host:1' % CANARY},
    {'socks5_proxy': 'socks5://%s@host:1' % CANARY},
    {'sasl_oauth_token_provider': Provider()},
]
# And in a place where it is no good.
REFUSED = [
    {'sasl_plain_pasword': CANARY},
    {'sasl_plain_password': CANARY.encode()},
    {'sasl_plain_password': [CANARY]},
    {'ssl_password': (CANARY,)},
    {'ssl_keyfile': PEM, 'acks': PEM},
    {'ssl_cafile': [PEM]},
    {'proxy_url': 'user:%s@host:1' % CANARY},
    {'bootstrap_servers': 'user:%s@host:1' % CANARY},
    {'bootstrap_servers': ['SASL_SSL://user:%s@host:1' % CANARY]},
    {'bootstrap_servers': 'https://user:%s@host/path' % CANARY},
    {'security_protocol': 'SSL://u:%s@host' % CANARY},
    {'linger_ms': Provider()},
    {'sasl_plain_password': CANARY, 'linger_ms': -1},
]


@pytest.mark.parametrize('face', config.FACES, ids=lambda face: face.title)
@pytest.mark.parametrize('given', GIVEN)
def test_options_work_with_secrets_and_show_none(face, given):
    options = config.resolve(face, given)
    (name,) = given
    assert options[name] == given[name]
    twins = [options, pickle.loads(pickle.dumps(options)) if name[:10] != 'sasl_oauth' else options]
    for each in [*twins, copy.copy(options), copy.deepcopy(options)]:
        for text in (repr(each), str(each), '%s' % each, '{}'.format(each)):  # noqa: UP032
            assert CANARY not in text
        assert each.keys() == options.keys()


@pytest.mark.parametrize('given', GIVEN[:-1])
def test_a_plain_dict_of_the_values_shows_no_secret_either(given):
    options = dict(config.resolve(config.PRODUCER, given))
    for text in (repr(options), str(list(options.items())), repr(copy.deepcopy(options))):
        assert CANARY not in text


@pytest.mark.parametrize('given', REFUSED)
def test_no_error_tells_a_secret(given, caplog):
    caplog.set_level(logging.DEBUG)
    with pytest.raises(KafkaConfigurationError) as caught:
        config.resolve(config.PRODUCER, given)
    error = caught.value
    for text in (str(error), repr(error), repr(error.args), repr(error.__context__), caplog.text):
        assert CANARY not in text
    assert error.__suppress_context__ or error.__context__ is None


def test_a_secret_put_in_later_is_not_shown():
    options = config.resolve(config.PRODUCER, {})
    options['sasl_plain_password'] = CANARY
    assert CANARY not in repr(options)


def test_secrets_are_what_they_were():
    secret = secrets.hide('abc')
    assert (secret, secret.encode(), secret + 'd', 'x%sx' % secret) == (
        'abc',
        b'abc',
        'abcd',
        'xabcx',
    )
    assert repr([secret, secrets.hide(b'abc')]) == "['***', '***']"
    assert secrets.hide(None) is None


@pytest.mark.parametrize(
    'value, text',
    [
        (5, '5'),
        (None, 'None'),
        ('x', "'x'"),
        ('x' * 100, "'" + 'x' * 56 + '...'),
        (b'x', "b'x'"),
        ('http://u:p@h', "'http://***@h'"),
        ('u:p@h', "'***@h'"),
        (PEM, 'a secret'),
        (secrets.hide('x'), 'a secret'),
        ([1], 'a value of type list'),
        (dict, 'the class dict'),
    ],
)
def test_what_an_error_tells_of_a_value(value, text):
    assert secrets.shown(value) == text
