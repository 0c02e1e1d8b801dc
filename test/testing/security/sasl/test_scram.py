"""SCRAM, token by token, against a client that follows the RFC."""

from __future__ import annotations

import pytest

from kafka.testing.security.sasl.login import Sasl
from kafka.testing.security.sasl.mechanisms import LoginBroken, LoginFailed
from kafka.testing.security.sasl.scram import Scram
from kafka.testing.security.scram import MECHANISMS
from kafka.testing.security.tokens import Principal, Tokens, password_text
from test.testing.drive import Driver
from test.testing.security.sasl.clients import ScramClient

BOTH = sorted(MECHANISMS.values())


@pytest.fixture
def state():
    state = Driver().state
    Sasl(state, {'alice': 'secret', 'a,b=c': 'zoé'}, BOTH)
    return state


def said(mechanism, client, change=lambda token: token):
    """Exchange both tokens; return the last answer."""
    return mechanism.step(change(client.last(mechanism.step(client.first()))))


@pytest.mark.parametrize(('user', 'password'), [('alice', 'secret'), ('a,b=c', 'zoé')])
@pytest.mark.parametrize('name', BOTH)
def test_the_right_password_is_taken_and_the_broker_proves_itself(state, name, user, password):
    mechanism, client = Scram(name, state), ScramClient(name, user, password)
    assert said(mechanism, client) == client.expected
    assert (mechanism.is_complete, mechanism.principal) == (True, 'User:' + user)


@pytest.mark.parametrize('name', BOTH)
def test_a_wrong_password_is_not(state, name):
    mechanism = Scram(name, state)
    with pytest.raises(LoginFailed):
        said(mechanism, ScramClient(name, 'alice', 'Secret'))
    assert not mechanism.is_complete


def test_an_unknown_user_fails_at_once(state):
    with pytest.raises(LoginFailed):
        Scram('SCRAM-SHA-256', state).step(ScramClient('SCRAM-SHA-256', 'bob', 'x').first())


def test_a_user_may_lack_one_of_the_mechanisms(state):
    del state.scram['alice'][2]
    with pytest.raises(LoginFailed):
        Scram('SCRAM-SHA-512', state).step(ScramClient('SCRAM-SHA-512', 'alice', 'x').first())


@pytest.mark.parametrize(
    'token',
    [
        b'',
        b'n,,n=alice',
        b'n,,n=alice,r=',
        b'y,,n=alice,r=1',
        b'p=tls-unique,,n=alice,r=1',
        b'n,,n=ali=ce,r=1',
        b'n,,n=,r=1',
        b'n,,n=alice,r=1 2',
        b'n,,n=alice,r=1,tokenauth',
        b'n,a=bob,n=alice,r=1',
        b'\xff',
    ],
)
def test_a_first_token_that_is_none_is_refused(state, token):
    with pytest.raises(LoginFailed):
        Scram('SCRAM-SHA-256', state).step(token)


@pytest.mark.parametrize(
    'change',
    [
        lambda token: token.replace(b'r=fyko', b'r=fyka'),
        lambda token: token[: token.index(b',p=')],
        lambda token: token[:-8] + b'AAAAAAA=',
        lambda token: token + b'!',
        lambda token: b'',
    ],
)
def test_a_last_token_that_proves_nothing_is_refused(state, change):
    with pytest.raises(LoginFailed):
        said(Scram('SCRAM-SHA-256', state), ScramClient('SCRAM-SHA-256', 'alice', 'secret'), change)


@pytest.mark.parametrize('proof', [b'AAAA', b'A', b'===='])
def test_at_a_proof_of_another_size_brokers_stumble(state, proof):
    client = ScramClient('SCRAM-SHA-256', 'alice', 'secret')
    with pytest.raises(LoginBroken):
        said(
            Scram('SCRAM-SHA-256', state),
            client,
            lambda token: token[: token.index(b'p=') + 2] + proof,
        )


def test_the_same_authorization_id_is_fine(state):
    client = ScramClient('SCRAM-SHA-256', 'alice', 'secret', header='n,a=alice,')
    assert said(Scram('SCRAM-SHA-256', state), client) == client.expected


def test_nonces_are_others_each_time(state):
    client = ScramClient('SCRAM-SHA-256', 'alice', 'secret')
    answers = {Scram('SCRAM-SHA-256', state).step(client.first()) for _ in range(3)}
    assert len(answers) == 3


# ---------------------------------------------------------------- delegation tokens


@pytest.fixture
def token(state):
    state.tokens = Tokens(state, 'secret of the brokers')
    owner = Principal('User', 'alice')
    return state.tokens.create(owner, owner, (), -1)


@pytest.mark.parametrize('name', BOTH)
def test_a_delegation_token_logs_in_its_owner(state, token, name):
    client = ScramClient(name, token.token_id, password_text(token), ',tokenauth=true')
    mechanism = Scram(name, state)
    assert said(mechanism, client) == client.expected
    assert (mechanism.principal, mechanism.is_by_token) == ('User:alice', True)
    assert mechanism.expires_ms == token.expires_ms


@pytest.mark.parametrize('extensions', ['', ',tokenauth=false'])
def test_a_token_is_no_user(state, token, extensions):
    client = ScramClient('SCRAM-SHA-256', token.token_id, password_text(token), extensions)
    with pytest.raises(LoginFailed):
        Scram('SCRAM-SHA-256', state).step(client.first())


def test_a_user_is_no_token(state, token):
    client = ScramClient('SCRAM-SHA-256', 'alice', 'secret', ',tokenauth=true')
    with pytest.raises(LoginFailed):
        Scram('SCRAM-SHA-256', state).step(client.first())
