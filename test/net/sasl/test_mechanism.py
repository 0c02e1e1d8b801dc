"""Mechanisms of programs: how they are registered, and both shapes that they may have."""

from __future__ import annotations

import importlib

import pytest

from kafka.errors import (
    InvalidOptionError,
    KafkaConfigurationError,
    SaslAuthenticationFailedError,
)
from kafka.net import mechanisms, sasl
from kafka.net.sasl import Mechanism, SaslMechanism, get_sasl_mechanism, register_sasl_mechanism
from test.net.sasl.logins import Link, settings


@pytest.fixture(autouse=True)
def nothing_stays_registered(monkeypatch):
    monkeypatch.setattr(mechanisms, 'registered', dict(mechanisms.registered))


class OldShape(SaslMechanism):
    """PLAIN, written as for 2.3."""

    good = True

    def __init__(self, **config):
        super().__init__(**config)
        assert config['host'] == '127.0.0.1'
        self.config = config
        self.answers = []

    def auth_bytes(self):
        user, password = self.config['sasl_plain_username'], self.config['sasl_plain_password']
        return ('\0%s\0%s' % (user, password)).encode()

    def receive(self, auth_bytes):
        self.answers.append(auth_bytes)

    def is_done(self):
        return bool(self.answers)

    def is_authenticated(self):
        return self.good


class NewShape(Mechanism):
    name = 'PLAIN'

    def exchange(self):
        yield b'\0alice\0secret'


@pytest.mark.parametrize('cls', [OldShape, NewShape])
def test_a_mechanism_of_the_program_logs_in(cls):
    register_sasl_mechanism('PLAIN', cls, overwrite=True)
    assert get_sasl_mechanism('PLAIN') is cls
    link = Link()
    link.log_in(settings('PLAIN'))
    assert link.principal == 'User:alice'


def test_a_mechanism_may_say_that_it_did_not_go_well():
    register_sasl_mechanism('PLAIN', type('Bad', (OldShape,), {'good': False}), overwrite=True)
    with pytest.raises(SaslAuthenticationFailedError, match='PLAIN gave up'):
        Link().log_in(settings('PLAIN'))


def test_a_name_is_taken_once():
    with pytest.raises(ValueError, match='overwrite=True replaces it'):
        register_sasl_mechanism('PLAIN', NewShape)
    register_sasl_mechanism('MINE', NewShape)
    assert get_sasl_mechanism('MINE') is NewShape


@pytest.mark.parametrize('cls', [None, object, dict, 'x', NewShape.exchange])
def test_what_is_no_mechanism_is_refused(cls):
    with pytest.raises(KafkaConfigurationError, match='SASL mechanism'):
        register_sasl_mechanism('MINE', cls)


def test_an_unknown_mechanism_is_told_with_those_that_there_are():
    with pytest.raises(KafkaConfigurationError, match="no sasl_mechanism 'NOPE'; there are AWS"):
        sasl.mechanism(settings('NOPE'), 'broker', 0.0)


def test_a_mechanism_shows_no_secret():
    made = sasl.mechanism(settings('PLAIN', password='Canary'), 'broker', 0.0)
    assert repr(made) == '<Plain for broker>'


@pytest.mark.parametrize('text', ['a\0b', '\ud800'])
def test_what_plain_cannot_send_is_named_and_not_shown(text):
    made = sasl.mechanism(settings('PLAIN', password='Canary' + text), 'broker', 0.0)
    with pytest.raises(InvalidOptionError, match='sasl_plain_password') as caught:
        next(made.exchange())
    assert 'Canary' not in str(caught.value)


def test_an_endless_login_ends():
    class Endless(Mechanism):
        name = 'PLAIN'

        def exchange(self):
            while True:
                yield b'x'

    register_sasl_mechanism('PLAIN', Endless, overwrite=True)
    link = Link()
    link.driver.state.sasl.begin = lambda name: _Patient()
    with pytest.raises(sasl.SaslError, match='did not end after 32 steps'):
        link.log_in(settings('PLAIN'))


class _Patient:
    """A broker's half that never comes to an end."""

    is_complete = False

    def step(self, token):
        return b'more'


def test_the_names_of_other_eras_are_the_same_things():
    paths = {
        'kafka.oauth': 'AbstractTokenProvider',
        'kafka.oauth.abstract': 'AbstractTokenProvider',
        'kafka.sasl.oauth': 'AbstractTokenProvider',
        'kafka.net.sasl.oauth': 'AbstractTokenProvider',
        'kafka.sasl.abc': 'SaslMechanism',
        'kafka.net.sasl.abc': 'SaslMechanism',
        'kafka.sasl': 'register_sasl_mechanism',
    }
    for path, name in paths.items():
        assert getattr(importlib.import_module(path), name) is getattr(sasl, name)


@pytest.mark.parametrize(
    ('path', 'names'),
    [
        ('plain', ['SaslMechanismPlain']),
        ('scram', ['ScramSha256', 'ScramSha512']),
        ('gssapi', ['SaslMechanismGSSAPI']),
        ('msk', ['SaslMechanismAwsMskIam']),
        ('oauth', ['SaslMechanismOAuth']),
        ('sspi', []),
    ],
)
def test_the_modules_of_2_3_have_what_a_program_registers_under_its_own_name(path, names):
    module = importlib.import_module('kafka.sasl.' + path)
    for name in names:
        register_sasl_mechanism('MY-' + name, getattr(module, name))
        assert sasl.get_sasl_mechanism('MY-' + name) is getattr(module, name)
