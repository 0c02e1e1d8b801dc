"""Whatever a client sends in place of a token: it is refused, and nothing else happens."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka.protocol.sasl import SaslHandshakeRequest
from kafka.testing.security.sasl.login import Sasl
from kafka.testing.security.sasl.mechanisms import LoginBroken, LoginFailed
from test.testing.drive import Driver
from test.testing.security.sasl.clients import ScramClient

MECHANISMS = ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512', 'OAUTHBEARER']
#: Pieces of which tokens are made, right and wrong ones.
PIECES = st.sampled_from(
    b'n,, y,, p=x,, n,a=alice, n=alice n=bob n=a=2Cb ,r=abc ,r= ,m=x ,tokenauth=true ,x=y'
    b' c=biws ,p=AAAA ,p==== \x01 auth=Bearer a.b. auth=Basic e30.e30. eyJhbGciOiJub25lIn0'
    b' \0 alice secret \xff \x01\x01 = ,'.split(b' ')
)
TOKENS = st.one_of(st.binary(max_size=60), st.lists(PIECES, max_size=8).map(b''.join))


def state():
    made = Driver().state
    made.sasl = Sasl(made, {'alice': 'secret'}, MECHANISMS)
    return made


STATE = state()


@pytest.mark.parametrize('name', MECHANISMS)
@settings(max_examples=200, deadline=None)
@given(tokens=st.lists(TOKENS, min_size=1, max_size=4))
def test_a_mechanism_takes_or_refuses(name, tokens):
    mechanism = STATE.sasl.begin(name)
    for token in tokens:
        try:
            assert isinstance(mechanism.step(token), bytes)
        except (LoginFailed, LoginBroken):
            return
        assert mechanism.principal in ('', 'User:alice') or name == 'OAUTHBEARER'


@settings(max_examples=100, deadline=None)
@given(token=TOKENS)
def test_nothing_but_the_proof_is_a_last_token_of_scram(token):
    mechanism = STATE.sasl.begin('SCRAM-SHA-256')
    mechanism.step(ScramClient('SCRAM-SHA-256', 'alice', 'secret').first())
    with pytest.raises((LoginFailed, LoginBroken)):
        mechanism.step(token)


@settings(max_examples=100, deadline=None)
@given(frames=st.lists(st.binary(max_size=80), min_size=1, max_size=5), is_bare=st.booleans())
def test_frames_before_a_login_lead_nowhere(frames, is_bare):
    driver = Driver()
    driver.state.sasl = Sasl(driver.state, {}, ['PLAIN'])
    client = driver.client()
    if is_bare:
        client.send(SaslHandshakeRequest(mechanism='PLAIN'), 0)
    for frame in frames:
        client.connection.receive_data(struct.pack('>i', len(frame)) + frame)
        driver.advance(0.2)
    assert not driver.state.control.failures
    assert client.connection.principal == 'User:ANONYMOUS'
