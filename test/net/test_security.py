"""Security as options say it: what is made of them, what is refused, what is never shown."""

from __future__ import annotations

import copy
import logging
import pickle
import ssl

import pytest

from kafka.errors import InvalidOptionError, KafkaConfigurationError
from kafka.net.sasl import AbstractTokenProvider
from kafka.net.security import OPTIONS, SecuritySettings
from kafka.testing.security.certificates import local_tls

CANARY = 'Canary'


def of(**options):
    return SecuritySettings.from_options(options)


def full(**more):
    return of(
        security_protocol='SASL_SSL',
        ssl_cafile=local_tls().certificate,
        ssl_password=CANARY,
        sasl_mechanism='SCRAM-SHA-512',
        sasl_plain_username='alice',
        sasl_plain_password=CANARY,
        proxy_url='http://me:Canary@proxy:1',
        **more,
    )


def test_without_options_nothing_is_secured():
    settings = of()
    assert settings.is_plain and settings.protocol == 'PLAINTEXT'
    assert (settings.tls, settings.sasl, settings.proxy) == (None, None, None)
    assert repr(settings) == '<SecuritySettings PLAINTEXT>'


@pytest.mark.parametrize(
    ('protocol', 'has_tls', 'has_sasl'),
    [
        ('PLAINTEXT', False, False),
        ('SSL', True, False),
        ('SASL_PLAINTEXT', False, True),
        ('SASL_SSL', True, True),
        ('sasl_ssl', True, True),
    ],
)
def test_the_protocol_decides(protocol, has_tls, has_sasl):
    settings = of(
        security_protocol=protocol,
        sasl_mechanism='PLAIN',
        sasl_plain_username='u',
        sasl_plain_password='p',
    )
    assert (settings.tls is not None, settings.sasl is not None) == (has_tls, has_sasl)
    assert not has_sasl or settings.sasl.is_encrypted == has_tls


def test_no_secret_is_shown(caplog):
    caplog.set_level(logging.DEBUG)
    settings = full()
    shown = '%r %s %r %r' % (settings, settings, settings.tls, settings.sasl)
    shown += '%r %r %r' % (vars(settings), tuple(settings.tls), tuple(settings.sasl))
    assert CANARY not in shown + caplog.text
    assert 'SCRAM-SHA-512' in shown and 'alice' in shown and 'http://***@proxy:1' in shown


def test_settings_are_pickled_whole_and_compared_by_what_they_say():
    settings = full()
    again = pickle.loads(pickle.dumps(settings))
    assert again == settings == full() and again.sasl.password == CANARY
    assert again != of() and settings != 'x'
    assert copy.deepcopy(settings) is settings
    assert isinstance(again.context(), ssl.SSLContext)


def test_the_context_is_made_once():
    settings = full()
    assert settings.context() is settings.context()


def test_a_context_of_the_program_cannot_be_pickled():
    settings = of(security_protocol='SSL', ssl_context=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    assert repr(settings.tls) == '<TlsSettings with a context of the program>'
    with pytest.raises(KafkaConfigurationError, match='give ssl_cafile'):
        pickle.dumps(settings)


class Provider(AbstractTokenProvider):
    def token(self):
        return 'x'


@pytest.mark.parametrize(
    ('options', 'match'),
    [
        ({'security_protocol': 'TLS'}, 'security_protocol must be one of PLAINTEXT, SSL'),
        ({'security_protocol': None}, 'security_protocol must be one of'),
        ({'security_protocol': 'SSL', 'ssl_context': 'x'}, 'ssl_context must be an ssl.SSLContext'),
        ({'security_protocol': 'SSL', 'ssl_cafile': 5}, 'ssl_cafile must be a path or PEM text'),
        ({'security_protocol': 'SSL', 'ssl_keyfile': 'x'}, 'ssl_keyfile needs ssl_certfile'),
        ({'security_protocol': 'SASL_SSL'}, 'needs a sasl_mechanism'),
        ({'security_protocol': 'SASL_SSL', 'sasl_mechanism': 5}, 'needs a sasl_mechanism'),
        ({'security_protocol': 'SASL_SSL', 'sasl_mechanism': 'PLAIN'}, 'sasl_plain_username'),
        (
            {
                'security_protocol': 'SASL_SSL',
                'sasl_mechanism': 'scram-sha-256',
                'sasl_plain_username': 'u',
                'sasl_plain_password': b'Canary',
            },
            'SCRAM-SHA-256 needs sasl_plain_password',
        ),
        (
            {'security_protocol': 'SASL_SSL', 'sasl_mechanism': 'OAUTHBEARER'},
            'needs a sasl_oauth_token_provider.*not NoneType',
        ),
        ({'socks5_proxy': 'proxy:1080'}, 'a proxy is socks5://host:port'),
        ({'proxy_url': 5}, 'a proxy is a URL'),
    ],
)
def test_what_cannot_be_meant_is_refused(options, match):
    with pytest.raises(InvalidOptionError, match=match) as caught:
        of(**options)
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    ('options', 'text'),
    [
        ({'sasl_mechanism': 'PLAIN'}, 'sasl_mechanism is of no effect'),
        ({'security_protocol': 'SSL', 'ssl_check_hostname': False}, 'ssl_check_hostname is off'),
        (
            {
                'security_protocol': 'SASL_PLAINTEXT',
                'sasl_mechanism': 'PLAIN',
                'sasl_plain_username': 'u',
                'sasl_plain_password': 'Canary',
            },
            'the password is sent in the clear',
        ),
    ],
)
def test_what_is_doubtful_is_logged(options, text, caplog):
    of(**options)
    assert text in caplog.text and CANARY not in caplog.text


def test_a_context_that_verifies_nothing_is_logged(caplog):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    of(security_protocol='SSL', ssl_context=context)
    assert 'any host can pose as broker' in caplog.text


def test_the_newer_name_of_the_proxy_wins():
    assert of(socks5_proxy='socks5://a').proxy == 'socks5://a'
    assert of(socks5_proxy='socks5://a', proxy_url='http://b').proxy == 'http://b'


def test_other_options_are_passed_over_and_known_to_mechanisms_of_the_program():
    settings = of(
        security_protocol='SASL_SSL',
        sasl_mechanism='OAUTHBEARER',
        sasl_oauth_token_provider=Provider(),
        acks='all',
    )
    assert settings.sasl.options['acks'] == 'all'


def test_keywords_of_blocking_clients():
    assert SecuritySettings.of_keywords('X', {}) is None
    assert SecuritySettings.of_keywords('X', {'security_protocol': 'PLAINTEXT'}) is None
    assert SecuritySettings.of_keywords('X', {'security': None}) is None
    settings = full()
    assert SecuritySettings.of_keywords('X', {'security': settings}) is settings
    for options, match in (
        ({'acks': 1}, 'X has no argument acks'),
        ({'security': 5}, 'X: security must be SecuritySettings'),
        ({'security': settings, 'ssl_cafile': 'x'}, 'security stands for all of ssl_cafile'),
    ):
        with pytest.raises(TypeError, match=match):
            SecuritySettings.of_keywords('X', options)


def test_every_option_has_its_default():
    assert of(**OPTIONS) == of()
