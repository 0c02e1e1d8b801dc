"""OAUTHBEARER, token by token."""

from __future__ import annotations

import base64
import json

import pytest

from kafka.testing.security.sasl.mechanisms import LoginBroken, LoginFailed
from kafka.testing.security.sasl.oauthbearer import OAuthBearer, unsigned_token
from kafka.testing.timers import VirtualClock

NOW_MS = VirtualClock().wall_ms()
LATER_MS = NOW_MS + 60_000


def first(token, pairs='', authorized='', scheme='Bearer '):
    start = 'n,%s,' % ('a=%s' % authorized if authorized else '')
    return ('%s\x01auth=%s%s\x01%s\x01' % (start, scheme, token, pairs)).encode('ascii')


def jwt(header='{"alg":"none"}', signature='', **claims):
    if isinstance(header, str):
        texts = [header, json.dumps({'sub': 'alice', 'exp': LATER_MS / 1000, **claims})]
    encoded = [base64.urlsafe_b64encode(each.encode()).rstrip(b'=').decode() for each in texts]
    return '.'.join([*encoded, signature])


@pytest.mark.parametrize(
    'token',
    [
        first(unsigned_token('alice', LATER_MS)),
        first(unsigned_token('alice', LATER_MS, NOW_MS)),
        first(jwt(), authorized='alice'),
        first(jwt(), 'traceId=123\x01more=x\x01'),
        first(jwt(), scheme='bearer '),
    ],
)
def test_an_unsigned_token_is_taken(token):
    mechanism = OAuthBearer(VirtualClock())
    assert mechanism.step(token) == b''
    assert (mechanism.principal, mechanism.expires_ms) == ('User:alice', LATER_MS)


@pytest.mark.parametrize(
    'token',
    [
        jwt(exp=NOW_MS / 1000),
        jwt(exp='later'),
        jwt(exp=None),
        jwt(exp=True),
        jwt(exp=float('inf')),
        jwt(exp=float('nan')),
        jwt(exp=10**400),
        jwt(iat=NOW_MS / 1000 + 1),
        jwt(iat='x'),
        jwt(sub=''),
        jwt(sub=7),
        jwt(signature='c2ln'),
        jwt('{"alg":"HS256"}'),
        jwt('[]'),
        jwt('{'),
        jwt('[' * 100000),
        'a.b',
        'a.b.c.d',
        '...',
    ],
)
def test_a_token_that_is_not_good_is_told_and_then_refused(token):
    mechanism = OAuthBearer(VirtualClock())
    assert json.loads(mechanism.step(first(token)).decode()) == {'status': 'invalid_token'}
    assert not mechanism.is_complete
    with pytest.raises(LoginFailed, match='invalid_token'):
        mechanism.step(b'\x01')


@pytest.mark.parametrize(
    'token',
    [
        b'',
        b'\x01',
        b'n,,\x01\x01',
        b'n,,\x01auth=Bearer \x01\x01',
        first(jwt(), authorized='bob'),
        b'y,,\x01auth=Bearer a.b.\x01\x01',
        b'\xff',
    ],
)
def test_what_is_no_first_token_is_refused(token):
    with pytest.raises(LoginFailed):
        OAuthBearer(VirtualClock()).step(token)


def test_at_another_scheme_brokers_stumble():
    with pytest.raises(LoginBroken):
        OAuthBearer(VirtualClock()).step(b'n,,\x01auth=Basic abc\x01\x01')
