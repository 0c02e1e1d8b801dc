"""Logins of the client to embedded brokers: each mechanism, ways of the tokens, refusals."""

from __future__ import annotations

import pytest

from kafka.errors import (
    IllegalSaslStateError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)
from kafka.net.failures import SaslError
from kafka.net.sasl import (
    AbstractTokenProvider,
    Mechanism,
    authenticate,
    mechanism,
    renewal_seconds,
)
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.negotiation import BrokerVersions
from kafka.protocol.sasl import SaslAuthenticateResponse, SaslHandshakeResponse
from kafka.protocol.session import LoginAnswered, ResponseReceived, Role, Session, State
from kafka.testing.security.sasl.oauthbearer import unsigned_token
from test.net.sasl.logins import Link, settings

METADATA = MetadataRequest(topics=[])


class Provider(AbstractTokenProvider):
    def __init__(self, user='alice', ms=2**44, extensions=None):
        self.made = unsigned_token(user, ms)
        self.said = extensions or {}

    def token(self):
        return self.made

    def extensions(self):
        return self.said


def of(name, **options):
    if name == 'OAUTHBEARER':
        options.setdefault('sasl_oauth_token_provider', Provider())
    return settings(name, **options)


@pytest.mark.parametrize('name', ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512', 'OAUTHBEARER'])
@pytest.mark.parametrize('version', ['2.0', '2.2', '2.8', '4.4'])
def test_a_client_logs_in_by_each_mechanism(version, name):
    link = Link(version, [name])
    assert link.log_in(of(name)).unsent == b''
    assert link.principal == 'User:alice'
    assert link.ask(METADATA).brokers


@pytest.mark.parametrize('name', ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'])
@pytest.mark.parametrize('version', ['0.10.2', '0.11'])
def test_brokers_before_1_0_take_bare_tokens(version, name):
    link = Link(version, [name])
    assert link.log_in(settings(name)) == (0, b'')
    assert link.principal == 'User:alice'
    assert link.ask(METADATA).brokers


@pytest.mark.parametrize('name', ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'])
@pytest.mark.parametrize('version', ['0.10.2', '1.0', '4.4'])
def test_a_wrong_password_is_refused_and_not_shown(version, name):
    link = Link(version, [name])
    with pytest.raises(SaslAuthenticationFailedError) as caught:
        link.log_in(settings(name, password='Canary'))
    error = caught.value
    assert error.stage == 'SASL' and name in str(error)
    assert 'sasl_plain_password' in str(error) and 'Canary' not in str(error)
    assert not error.login_again


def test_a_refused_token_is_told_with_the_reason():
    link = Link('4.4', ['OAUTHBEARER'])
    with pytest.raises(SaslAuthenticationFailedError, match='its answer: {"status"'):
        link.log_in(of('OAUTHBEARER', sasl_oauth_token_provider=Provider(ms=1)))


def test_a_mechanism_that_is_not_offered_is_named_with_those_that_are():
    link = Link('4.4', ['SCRAM-SHA-512'])
    with pytest.raises(UnsupportedSaslMechanismError, match='not offer PLAIN.*but SCRAM-SHA-512'):
        link.log_in(settings('PLAIN'))


def test_a_listener_without_sasl_says_so():
    link = Link()
    link.driver.state.sasl = None
    link.connect()
    with pytest.raises(IllegalSaslStateError, match='this listener has no SASL') as caught:
        link.log_in(settings('PLAIN'))
    assert caught.value.stage == 'SASL'


@pytest.mark.parametrize(
    ('sent', 'text'),
    [(0, 'when asked for its versions'), (1, 'at the SASL handshake'), (2, 'during the login')],
)
def test_a_broker_that_closes_is_told_with_the_step(sent, text):
    link = Link()
    steps = authenticate(link.session, mechanism(settings('PLAIN'), 'broker', 0.0))
    data = next(steps)
    for _ in range(sent):
        link.write(data)
        data = steps.send(link.event())
    with pytest.raises(SaslError, match=text):
        steps.send(None)


@pytest.mark.parametrize('sent', [1, 2])
def test_an_answer_of_another_kind_ends_the_login(sent):
    link = Link()
    steps = authenticate(link.session, mechanism(settings('PLAIN'), 'broker', 0.0))
    data = next(steps)
    for _ in range(sent):
        link.write(data)
        told = link.event()
        data = steps.send(told)
    wrong = ResponseReceived(0, METADATA, 0, METADATA, 0, False)
    with pytest.raises(SaslError, match='with something else'):
        steps.send(wrong)


def test_a_login_that_ends_is_renewed_on_the_connection():
    """KIP-368; answers to what was asked before come first and are handed on."""
    link = Link('4.4', connections_max_reauth_ms=10_000)
    assert link.log_in(settings('PLAIN')).lifetime_ms == 10_000
    link.driver.advance(9)
    link.write(link.session.send(METADATA))
    others = []
    assert link.log_in(settings('PLAIN'), others).lifetime_ms == 10_000
    assert [type(each) for each in others] == [ResponseReceived]
    link.driver.advance(9)
    assert link.ask(METADATA).brokers
    assert link.session.state is State.READY


def test_a_login_that_is_not_renewed_ends():
    link = Link('4.4', connections_max_reauth_ms=10_000)
    link.log_in(settings('PLAIN'))
    link.driver.advance(11)
    link.write(link.session.send(METADATA))
    assert link.event() is None


def test_a_login_is_renewed_before_its_end():
    assert renewal_seconds(0) is None
    assert renewal_seconds(10_000, 0.9) == 9.0
    assert all(8.5 <= renewal_seconds(10_000) <= 9.5 for _ in range(50))


def test_versions_are_known_in_full_after_the_login():
    link = Link('4.4')
    link.log_in(settings('PLAIN'))
    assert link.session.versions.finalized_features == {}
    link.write(link.session.negotiate())
    assert link.event().versions.ranges == link.session.versions.ranges
    assert link.session.versions.finalized_features


class Endless(Mechanism):
    name = 'ENDLESS'

    def exchange(self):
        while True:
            yield b'more'


@pytest.mark.parametrize('is_bare', [False, True])
def test_a_login_that_does_not_end_is_given_up(is_bare):
    session = Session(Role.CLIENT, 'me')
    if is_bare:
        session.adopt(BrokerVersions({17: (0, 0)}))
    else:
        session.adopt(BrokerVersions({17: (0, 1), 36: (0, 1)}))
    steps = authenticate(session, Endless(None, 'localhost', 0.0))
    next(steps)
    answered = steps.send(
        LoginAnswered(SaslHandshakeResponse(error_code=0, mechanisms=['ENDLESS']))
    )
    with pytest.raises(SaslError, match='ENDLESS did not end after 32 steps'):
        for _ in range(1000):
            assert answered
            answer = (
                b'more'
                if is_bare
                else SaslAuthenticateResponse(error_code=0, error_message=None, auth_bytes=b'more')
            )
            answered = steps.send(LoginAnswered(answer))
