"""OAUTHBEARER: what is sent of what a provider gives, and providers that fail."""

from __future__ import annotations

import pytest

from kafka.errors import KafkaConfigurationError
from kafka.net.failures import SaslError
from kafka.net.sasl import AbstractTokenProvider, mechanism
from test.net.sasl.logins import settings


class Provider(AbstractTokenProvider):
    def __init__(self, token='abc.def', extensions=None):
        super().__init__(anything='is taken')
        self.given = token
        self.more = extensions
        self.calls = 0

    def token(self):
        self.calls += 1
        if isinstance(self.given, Exception):
            raise self.given
        return self.given

    def extensions(self):
        return super().extensions() if self.more is None else self.more


def made(provider):
    return mechanism(settings('OAUTHBEARER', sasl_oauth_token_provider=provider), 'broker', 0.0)


def test_the_token_is_sent_as_the_rfc_has_it():
    assert next(made(Provider()).exchange()) == b'n,,\x01auth=Bearer abc.def\x01\x01'


def test_extensions_stand_behind_it():
    means = made(Provider(extensions={'logicalCluster': 'lkc-1', 'x': 'a b'}))
    assert next(means.exchange()) == (
        b'n,,\x01auth=Bearer abc.def\x01logicalCluster=lkc-1\x01x=a b\x01\x01'
    )


def test_a_token_is_asked_for_once_for_each_login():
    provider = Provider()
    means = made(provider)
    means.prepare()
    next(means.exchange())
    assert provider.calls == 1
    next(made(provider).exchange())
    assert provider.calls == 2


def test_a_refusal_is_acknowledged_and_kept():
    means = made(Provider())
    steps = means.exchange()
    next(steps)
    assert steps.send(b'{"status":"invalid_token"}') == b'\x01'
    assert means.hint == 'its answer: {"status":"invalid_token"}'


def test_a_token_that_is_taken_ends_it():
    steps = made(Provider()).exchange()
    next(steps)
    with pytest.raises(StopIteration):
        steps.send(b'')


class Duck:
    """Provides tokens without being derived from anything, as 3.x refuses and others take."""

    def token(self):
        return 'duck'


def test_whoever_has_token_can_provide():
    assert b'duck' in next(made(Duck()).exchange())


@pytest.mark.parametrize('provider', [None, object(), 'token', lambda: 'token'])
def test_what_provides_nothing_is_refused_at_once(provider):
    with pytest.raises(KafkaConfigurationError, match='sasl_oauth_token_provider'):
        made(provider)


@pytest.mark.parametrize('token', ['', 'a b', 'a\x01auth=x', 'a\n', None, 5, '\xe9'])
def test_a_token_that_cannot_be_sent_is_refused(token):
    with pytest.raises(KafkaConfigurationError, match=r'Provider.token\(\) must return'):
        made(Provider(token)).prepare()


@pytest.mark.parametrize('more', [{'auth': 'x'}, {'a1': 'x'}, {'a': 'b\x01c'}, {'': 'x'}])
def test_extensions_that_cannot_be_sent_are_refused(more):
    with pytest.raises(KafkaConfigurationError, match=r'Provider.extensions\(\) must return'):
        made(Provider(extensions=more)).prepare()


def test_a_provider_that_fails_is_named_and_what_it_says_is_the_cause_alone():
    cause = ValueError('https://idp/?client_secret=canary')
    with pytest.raises(
        SaslError, match='Provider, the provider of tokens, failed with ValueE'
    ) as e:
        made(Provider(cause)).prepare()
    assert 'canary' not in repr(e.value) and e.value.__cause__ is cause


def test_an_error_of_this_package_passes_as_it_is():
    with pytest.raises(SaslError, match='mine$'):
        made(Provider(SaslError('mine'))).prepare()
