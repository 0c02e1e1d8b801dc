"""PLAIN, token by token."""

from __future__ import annotations

import pytest

from kafka.testing.security.sasl.mechanisms import LoginFailed, OldPlain, Plain
from test.testing.security.sasl.clients import plain

USERS = {'alice': 'secret', 'zoé': 'pä,ss=w'}


@pytest.mark.parametrize('user', USERS)
@pytest.mark.parametrize('authorized', ['', 'same'])
def test_the_right_password_is_taken(user, authorized):
    mechanism = Plain(USERS)
    answer = mechanism.step(plain(user, USERS[user], authorized and user))
    assert (answer, mechanism.is_complete) == (b'', True)
    assert (mechanism.user, mechanism.principal) == (user, 'User:' + user)
    assert mechanism.expires_ms is None


@pytest.mark.parametrize(
    ('token', 'reason'),
    [
        (plain('alice', 'Secret'), 'Invalid username or password'),
        (plain('bob', 'secret'), 'Invalid username or password'),
        (plain('', 'secret'), 'username not specified'),
        (plain('alice', ''), 'password not specified'),
        (plain('alice', 'secret', 'bob'), 'authorization id'),
        (b'\0alice\0secret\0more', '^$'),
        (b'alice', '^$'),
        (b'', '^$'),
        (b'\0alice\0\xff', '^$'),
    ],
)
def test_anything_else_is_not(token, reason):
    mechanism = Plain(USERS)
    with pytest.raises(LoginFailed, match=reason):
        mechanism.step(token)
    assert not mechanism.is_complete


def test_a_user_without_password_is_nobody():
    with pytest.raises(LoginFailed):
        Plain({'alice': ''}).step(plain('alice', ''))


def test_passwords_are_not_shown():
    mechanism = Plain(USERS)
    assert 'secret' not in repr(mechanism)
    mechanism.step(plain('alice', 'secret'))
    assert repr(mechanism) == '<Plain alice>'


def test_before_2_0_what_is_empty_at_the_end_was_overlooked():
    mechanism = OldPlain(USERS)
    mechanism.step(b'\0alice\0secret\0')
    assert mechanism.user == 'alice'
    with pytest.raises(LoginFailed):
        OldPlain(USERS).step(b'\0alice\0')
