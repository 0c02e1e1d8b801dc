"""How long delegation tokens last, and for whom."""

from __future__ import annotations

import pytest

from kafka.testing import errors
from kafka.testing.security.tokens import FIRST_EXPIRY_MS, MOST_LIFETIME_MS, Principal, Tokens
from kafka.testing.topic_checks import Refused
from test.testing.drive import Driver

ALICE, BOB, EVE = (Principal('User', name) for name in ('alice', 'bob', 'eve'))


@pytest.fixture
def driver():
    return Driver()


@pytest.fixture
def tokens(driver):
    return Tokens(driver.state, 'secret')


def code_of(function, *values):
    with pytest.raises(Refused) as caught:
        function(*values)
    return caught.value.code


def test_a_token_lasts_a_day_and_a_week_at_most(tokens):
    token = tokens.create(ALICE, ALICE, (), -1)
    assert token.expires_ms - token.issued_ms == FIRST_EXPIRY_MS
    assert token.last_ms - token.issued_ms == MOST_LIFETIME_MS
    short = tokens.create(ALICE, ALICE, (), 1000)
    assert short.expires_ms - short.issued_ms == 1000


def test_renewing_ends_with_the_life(tokens, driver):
    token = tokens.create(ALICE, ALICE, (BOB,), -1)
    driver.advance(3600)
    assert tokens.renew(BOB, token.password, -1) == token.issued_ms + 3600000 + FIRST_EXPIRY_MS
    assert tokens.renew(BOB, token.password, 2**62) == token.issued_ms + 3600000 + FIRST_EXPIRY_MS


def test_strangers_may_not(tokens):
    token = tokens.create(ALICE, ALICE, (BOB,), -1)
    assert code_of(tokens.renew, EVE, token.password, 1) == errors.DELEGATION_TOKEN_OWNER_MISMATCH
    assert code_of(tokens.expire, EVE, b'x', 1) == errors.DELEGATION_TOKEN_NOT_FOUND
    assert tokens.of(None, lambda token: token.may_renew(EVE)) == []
    assert tokens.of(None, lambda token: token.may_renew(BOB)) == [token]
    assert tokens.of([BOB], lambda token: token.may_renew(BOB)) == []


def test_a_token_ends_at_once_or_later(tokens, driver):
    one, two = (tokens.create(ALICE, ALICE, (), -1) for _ in 'ab')
    tokens.expire(ALICE, one.password, -1)
    assert tokens.get(one.token_id) is None
    tokens.expire(ALICE, two.password, 1000)
    assert tokens.get(two.token_id) is two
    driver.advance(2)
    assert code_of(tokens.renew, ALICE, two.password, 1) == errors.DELEGATION_TOKEN_EXPIRED
    assert tokens.get(two.token_id) is None
