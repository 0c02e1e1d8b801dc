"""What a login is, and which mechanisms there are; whole logins are in handlers/test_sasl.py."""

from __future__ import annotations

import pytest

from kafka.protocol.api import ApiKey
from kafka.testing.releases import broker_release
from kafka.testing.security.sasl.login import (
    MAX_REQUEST_BYTES,
    MAX_TOKEN_BYTES,
    TRANSITIONS,
    Login,
    Move,
    Sasl,
    Stage,
    Verdict,
    chosen_mechanisms,
)
from kafka.testing.security.sasl.mechanisms import LoginFailed
from test.testing.drive import Driver
from test.testing.security.sasl.clients import plain

WITH_PASSWORDS = ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512']


@pytest.fixture
def login():
    state = Driver().state
    state.sasl = Sasl(state, {'alice': 'secret'}, WITH_PASSWORDS)
    return Login(state)


@pytest.mark.parametrize(
    ('release', 'names'),
    [('0.10.0', ['PLAIN']), ('0.10.2', WITH_PASSWORDS), ('1.1', WITH_PASSWORDS)],
)
def test_mechanisms_are_those_with_passwords_of_the_release(release, names):
    assert chosen_mechanisms(broker_release(release), None) == names


def test_others_are_chosen_by_name():
    names = ['OAUTHBEARER', 'PLAIN']
    assert chosen_mechanisms(broker_release('4.4'), names) == names


@pytest.mark.parametrize(
    ('release', 'names', 'reason'),
    [
        ('1.1', ['OAUTHBEARER'], r'Kafka 1\.1 has no SASL mechanism OAUTHBEARER'),
        ('0.9', None, '0.9 has GSSAPI only'),
        ('0.8.2', ['PLAIN'], '0.9 has GSSAPI only'),
        ('4.4', ['GSSAPI'], 'GSSAPI.*there are PLAIN'),
        ('4.4', [], 'empty'),
    ],
)
def test_what_cannot_be_is_said(release, names, reason):
    with pytest.raises(ValueError, match=reason):
        chosen_mechanisms(broker_release(release), names)


def test_a_text_is_no_list_of_mechanisms():
    with pytest.raises(TypeError, match='PLAIN'):
        chosen_mechanisms(broker_release('4.4'), 'PLAIN')


def test_a_client_says_one_thing_after_the_other(login):
    verdicts = []
    for step in (
        login.told_versions,
        lambda: login.agree('PLAIN', is_bare=False),
        lambda: login.step(plain('alice', 'secret')),
    ):
        asked = ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.FETCH
        verdicts.append(''.join(login.judge(key).name[0] for key in asked))
        step()
    assert verdicts == ['PPCC', 'CPCC', 'RRPR']
    assert login.judge(ApiKey.FETCH) is Verdict.PASS


def test_frames_may_be_long_after_a_login(login):
    assert login.max_frame_bytes == MAX_TOKEN_BYTES
    login.agree('PLAIN', is_bare=False)
    login.step(plain('alice', 'secret'))
    assert login.max_frame_bytes == MAX_REQUEST_BYTES


def test_after_a_failure_nothing_passes(login):
    login.agree('PLAIN', is_bare=False)
    with pytest.raises(LoginFailed, match='invalid credentials'):
        login.step(b'')
    assert {login.judge(key) for key in ApiKey} == {Verdict.CLOSE}


def test_the_table_knows_every_stage_and_leads_only_to_stages():
    assert set(TRANSITIONS) == set(Stage)
    assert {after for moves in TRANSITIONS.values() for after in moves.values()} <= set(Stage)
    assert all(moves[Move.FAIL] is Stage.OVER for moves in TRANSITIONS.values())
