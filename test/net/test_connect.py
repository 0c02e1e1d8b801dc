"""The connect conversation without a driver: which actions follow each other, and what ends it."""

from __future__ import annotations

import pytest

from kafka.errors import KafkaConnectionError, SaslAuthenticationFailedError
from kafka.net import mechanisms
from kafka.net.connect import (
    AskBroker,
    ConnectConversation,
    Family,
    OpenConnection,
    ReceiveBytes,
    ResolveHost,
    RunBlocking,
    SendBytes,
    StartTls,
    VersionsAsked,
    ask_versions,
    log_in,
)
from kafka.net.failures import ProxyError, SaslError, TlsError
from kafka.net.sasl import ClosedAtVersions, LoggedIn
from kafka.net.sasl.plain import Plain
from kafka.net.security import SecuritySettings
from kafka.net.settings import NetSettings
from kafka.net.tls import TlsClient
from kafka.protocol.api_versions import ApiVersionsRequest
from kafka.protocol.probe import SILENT_SECONDS, VERSIONS_TRIED, VersionsUnanswered, probe_versions
from kafka.protocol.session import LoginAnswered

LOGIN = {
    'security_protocol': 'SASL_PLAINTEXT',
    'sasl_mechanism': 'PLAIN',
    'sasl_plain_username': 'alice',
    'sasl_plain_password': 'canary',
}


def conversation(asks=VersionsAsked.ALWAYS, family=None, api_version=None, **options):
    security = SecuritySettings.from_options(options)
    settings = NetSettings(security=security, api_version=api_version)
    return ConnectConversation(settings, 'broker', 9092, family or Family(), lambda: 0.0, asks)


def broken(cause=None):
    error = KafkaConnectionError('it broke')
    error.__cause__ = cause
    return error


def next_of(steps, kind):
    """Answer actions with nothing until one of a kind comes."""
    action = next(steps)
    while not isinstance(action, kind):
        action = steps.send(None)
    return action


def result_of(steps, answer=None):
    with pytest.raises(StopIteration) as done:
        steps.send(answer)
    return done.value.value


def end(steps, answer):
    """Answer an action by bytes or an error, and what follows by nothing, until it raises."""
    action = steps.throw(answer) if isinstance(answer, Exception) else steps.send(answer)
    while True:
        assert isinstance(action, SendBytes)  # an alert of TLS
        action = steps.send(None)


def knowing(version=VERSIONS_TRIED[0]):
    family = Family()
    family.lists_versions, family.versions_version = True, version
    return family


# ---------------------------------------------------------------- the order of actions


def test_nothing_to_do_is_a_connection_alone():
    steps = conversation(VersionsAsked.BY_LOGIN).connect()
    assert next(steps) == OpenConnection()
    established = result_of(steps)
    assert established.versions is None and established.lifetime_ms == 0


def test_a_release_of_the_options_asks_nothing():
    steps = conversation(api_version=(2, 8)).connect()
    assert next(steps) == OpenConnection()
    established = result_of(steps)
    assert established.versions is established.session.versions
    assert not established.is_unasked


def test_a_proxy_that_looks_up_no_names_is_told_an_address():
    steps = conversation(VersionsAsked.BY_LOGIN, proxy_url='socks5://proxy:1').connect()
    assert next(steps) == OpenConnection()
    assert steps.send(None) == ResolveHost()
    assert steps.send('10.0.0.1') == SendBytes(b'\x05\x01\x00')
    assert steps.send(None) == ReceiveBytes()
    asked = steps.send(b'\x05\x00')
    assert asked == SendBytes(b'\x05\x01\x00' + b'\x01\x0a\x00\x00\x01' + (9092).to_bytes(2, 'big'))
    assert steps.send(None) == ReceiveBytes()
    assert result_of(steps, b'\x05\x00\x00\x01' + bytes(6)).versions is None


def test_a_proxy_that_closes_is_named_and_one_that_breaks_is_raised_as_it_is():
    talk = conversation(proxy_url='socks5h://proxy:1')
    steps = talk.connect()
    next_of(steps, ReceiveBytes)
    assert talk.stage == 'proxy'
    with pytest.raises(ProxyError, match='closed the connection'):
        steps.send(b'')
    steps = talk.connect()
    next_of(steps, ReceiveBytes)
    with pytest.raises(KafkaConnectionError, match='^[^;]*it broke$'):
        steps.throw(broken(ConnectionResetError()))


# ---------------------------------------------------------------- TLS


@pytest.mark.parametrize('reset', [ConnectionResetError(), broken(BrokenPipeError())])
@pytest.mark.parametrize('at', [SendBytes, ReceiveBytes])
def test_a_reset_during_the_tls_handshake_means_the_same_as_closing(at, reset):
    talk = conversation(security_protocol='SSL')
    steps = talk.connect()
    next_of(steps, at)
    assert talk.stage == 'TLS'
    with pytest.raises(TlsError, match='So does a listener without TLS'):
        end(steps, reset)


def test_a_peer_that_closes_during_the_tls_handshake():
    steps = conversation(security_protocol='SSL').connect()
    next_of(steps, ReceiveBytes)
    with pytest.raises(TlsError, match='So does a listener without TLS'):
        end(steps, b'')


@pytest.mark.parametrize('error', [broken(), OSError('no route')])
def test_what_is_no_end_of_the_peer_is_raised_as_it_is(error):
    steps = conversation(security_protocol='SSL').connect()
    next_of(steps, ReceiveBytes)
    with pytest.raises(type(error)) as caught:
        steps.throw(error)
    assert caught.value is error


@pytest.mark.parametrize('error', [BrokenPipeError('gone'), broken()])
def test_why_tls_failed_is_told_though_the_alert_cannot_be_sent(error):
    steps = conversation(security_protocol='SSL').connect()
    next_of(steps, ReceiveBytes)
    assert isinstance(steps.send(b'\x16\x03\x03\x00\x05hello'), SendBytes)
    with pytest.raises(TlsError):
        steps.throw(error)


def test_tls_starts_once_the_handshake_is_done(monkeypatch):
    monkeypatch.setattr(TlsClient, 'handshake', lambda client: True)
    steps = conversation(VersionsAsked.BY_LOGIN, security_protocol='SSL').connect()
    assert next(steps) == OpenConnection()
    assert isinstance(steps.send(None).client, TlsClient)
    assert result_of(steps).versions is None
    assert isinstance(next_of(conversation(security_protocol='SSL').connect(), StartTls), StartTls)


# ---------------------------------------------------------------- logging in


class Slow(Plain):
    def prepare(self):
        raise AssertionError('the driver calls it')


def test_what_a_mechanism_has_to_wait_for_is_for_the_driver_to_run(monkeypatch):
    monkeypatch.setattr(mechanisms, 'registered', {**mechanisms.registered, 'PLAIN': Slow})
    talk = conversation(**LOGIN)
    steps = talk.connect()
    next_of(steps, RunBlocking)
    assert talk.stage == 'SASL'
    with pytest.raises(SaslError, match='no token'):
        steps.throw(SaslError('no token'))


@pytest.mark.parametrize('reset', [ConnectionResetError(), broken(ConnectionResetError())])
def test_a_reset_at_the_first_question_of_a_login_may_be_a_broker_of_0_9(reset):
    steps = conversation(**LOGIN).connect()
    next_of(steps, ReceiveBytes)
    with pytest.raises(ClosedAtVersions):
        steps.throw(reset)


def test_a_login_yields_what_it_asks_and_what_needs_no_response():
    def login():
        event = yield b'question'
        assert event is LOGGED
        return LoggedIn(7, b'unsent')

    LOGGED = LoginAnswered(b'')
    steps = log_in(login())
    assert next(steps) == AskBroker(b'question')
    assert steps.send(LOGGED) == SendBytes(b'unsent')
    assert result_of(steps) == 7


def test_actions_show_no_bytes():
    for action in (SendBytes(b'canary'), AskBroker(b'canary')):
        assert 'canary' not in repr(action)
    assert 'canary' not in repr(conversation(**LOGIN))


def test_a_login_that_is_refused_is_tried_again_only_where_it_may_go_otherwise():
    talk = conversation(**LOGIN)
    refused = SaslAuthenticationFailedError('no')
    assert not talk.may_try_again(refused)
    talk, refused.login_again = conversation(**LOGIN), True
    assert [talk.may_try_again(refused) for _ in range(3)] == [True, True, False]


def test_brokers_of_0_9_take_the_token_of_gssapi_at_once():
    family = Family()
    closed = ClosedAtVersions('closed')
    assert not conversation(family=family, **LOGIN).may_try_again(closed)
    assert family.lists_versions is None
    gssapi = {**LOGIN, 'sasl_mechanism': 'GSSAPI'}
    assert conversation(family=family, **gssapi).may_try_again(closed)
    assert family.lists_versions is False


# ---------------------------------------------------------------- versions


def test_a_family_that_lists_is_asked_without_a_probe():
    steps = conversation(family=knowing()).connect()
    asked = next_of(steps, SendBytes)
    assert asked.data[4:8] == b'\0\x12' + VERSIONS_TRIED[0].to_bytes(2, 'big')
    assert steps.send(None) == ReceiveBytes(SILENT_SECONDS)


@pytest.mark.parametrize('end', [b'', None, ConnectionResetError()])
def test_a_version_that_is_not_answered_is_followed_by_lower_ones(end):
    talk = conversation(family=knowing())
    for version in VERSIONS_TRIED:
        steps = talk.connect()
        asked = next_of(steps, SendBytes)
        assert int.from_bytes(asked.data[6:8], 'big') == version
        receive = steps.send(None)
        assert receive == ReceiveBytes(SILENT_SECONDS if version else None)
        with pytest.raises(KafkaConnectionError, match=r'version %d \(' % version) as caught:
            if isinstance(end, OSError):
                steps.throw(end)
            else:
                steps.send(end if version or end is not None else b'')
        assert talk.may_try_again(caught.value) is bool(version)
    assert isinstance(caught.value, VersionsUnanswered) and 'may want TLS' in str(caught.value)


def test_a_broker_that_answers_no_version_is_mute_where_its_release_is_known():
    talk = conversation(api_version=(0, 11))
    assert talk.may_try_again(VersionsUnanswered('none'))
    steps = talk.connect()
    assert next(steps) == OpenConnection()
    assert result_of(steps).is_unasked


def test_a_probe_opens_connections_and_counts_a_reset_as_closed():
    steps = ask_versions(probe_versions())
    first = next(steps)
    assert steps.send(None) == ReceiveBytes()
    assert steps.throw(ConnectionResetError()) == OpenConnection()
    assert steps.send(None) == first
    assert steps.throw(broken(BrokenPipeError())) == OpenConnection()
    assert ApiVersionsRequest.api_key == int.from_bytes(steps.send(None).data[4:6], 'big')
    assert steps.send(None) == ReceiveBytes(SILENT_SECONDS)
    with pytest.raises(OSError, match='no route'):
        steps.throw(OSError('no route'))
